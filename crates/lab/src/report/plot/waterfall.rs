//! What each stage lost of something.

use plotters::element::{Rectangle, Text};
use plotters::style::Color as _;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::frame::{SIDE, clean};
use super::letters::{shorten, width};
use super::{Area, Drawn, Palette, WIDTH, Waterfall};
use crate::report::number::exact;

/// Pixels around the bars.
const LEFT: i32 = 230;
const RIGHT: i32 = 210;
const TOP: i32 = 10;

/// Pixels from a bar to the next.
const ROW: i32 = 46;

const LABEL: f64 = 12.5;

/// Pixels of a bar that is nearly nothing, so that it is seen.
const LEAST: i32 = 3;

pub(super) fn height(waterfall: &Waterfall) -> u32 {
    ((waterfall.stages.len() as i32 + 2) * ROW + 2 * TOP) as u32
}

pub(super) fn unplaced(waterfall: &Waterfall) -> Vec<(String, usize)> {
    let stages = &waterfall.stages;
    // What is left in the end is a bar, too.
    let unknown = stages.iter().position(|stage| stage.lost.is_none());
    let unknown = unknown.map_or(0, |first| stages.len() - first + 1);
    vec![("bars from the first stage on of which nobody knows what it lost".to_owned(), unknown)]
}

pub(super) fn draw(area: &Area<'_>, waterfall: &Waterfall, palette: Palette) -> Drawn {
    let Waterfall { all, begin: first, stages, left } = waterfall;
    let rows = stages.len() as i32 + 2;
    let labels =
        stages.iter().map(|stage| stage.name.as_str()).chain([first.as_str(), left.as_str()]);
    let widest = labels.map(|label| width(&clean(label), LABEL)).max().unwrap_or(0);
    let begin = LEFT.min(widest + SIDE + 10);
    let width = WIDTH as i32 - begin - RIGHT;
    let across =
        |count: u64| begin + (f64::from(width) * count as f64 / (*all).max(1) as f64) as i32;
    let bar = |row: i32, from: u64, to: u64, color: usize| {
        let (top, begin) = (TOP + row * ROW, across(from.min(to)));
        let end = across(from.max(to)).max(begin + if from == to { 0 } else { LEAST });
        let corners = [(begin, top + ROW / 6), (end, top + ROW * 5 / 6)];
        area.draw(&Rectangle::new(corners, palette.series(color).filled()))
    };
    let label = |row: i32, name: &str, value: &str| -> Drawn {
        let middle = TOP + row * ROW + ROW / 2;
        let name_style = palette.font(LABEL).pos(Pos::new(HPos::Right, VPos::Center));
        area.draw(&Text::new(
            shorten(&clean(name), LABEL, begin - SIDE - 10),
            (begin - 10, middle),
            name_style,
        ))?;
        let value_style = palette.font(LABEL).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(value.to_owned(), (WIDTH as i32 - RIGHT + 10, middle), value_style))?;
        Ok(())
    };
    bar(0, 0, *all, 0)?;
    label(0, first, &exact(*all))?;
    // What nobody knows may be anything: from there on nothing is drawn.
    let mut rest = Some(*all);
    for (row, stage) in (1..).zip(stages) {
        let share = |lost: u64| lost as f64 / (*all).max(1) as f64 * 100.0;
        let text = match stage.lost {
            Some(0) => "0".to_owned(),
            // What is not nothing never looks like it.
            Some(lost) if share(lost) < 0.000_05 => format!("{} (<0.0001 %)", exact(lost)),
            Some(lost) => format!("{} ({:.4} %)", exact(lost), share(lost)),
            None => "unavailable".to_owned(),
        };
        label(row, &stage.name, &text)?;
        if let (Some(before), Some(lost)) = (rest, stage.lost) {
            bar(row, before, before.saturating_sub(lost), 1)?;
        }
        rest = rest.zip(stage.lost).map(|(before, lost)| before.saturating_sub(lost));
    }
    let text = rest.map_or("unavailable".to_owned(), exact);
    label(rows - 1, left, &text)?;
    if let Some(rest) = rest {
        bar(rows - 1, 0, rest, 2)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Chart, Plot, Stage};
    use super::*;

    #[test]
    fn small_losses_are_seen_and_unknown_ones_said() {
        let stage = |name: &str, lost| Stage { name: name.to_owned(), lost };
        let waterfall = |third| Waterfall {
            all: 4_812_345,
            begin: "sent".to_owned(),
            stages: vec![
                stage("backlog", Some(0)),
                stage("ring", Some(7)),
                stage("application", third),
            ],
            left: "captured".to_owned(),
        };
        let svg = |of| Plot::new("", "", Chart::Waterfall(of)).svg(Palette::Light);
        let known = svg(waterfall(Some(2_000_000)));
        for text in ["4,812,345", "7 (0.0001 %)", "2,000,000 (41.5598 %)", "2,812,338"] {
            assert!(known.contains(text), "{text} is not in {known}");
        }
        assert_eq!(known.matches("<rect").count(), 1 + 5, "{known}");
        let unknown = svg(waterfall(None));
        assert_eq!(unknown.matches("unavailable").count(), 2, "{unknown}");
        assert!(unknown.contains("what it lost (2)"), "{unknown}");
        assert_eq!(unknown.matches("<rect").count(), 1 + 3, "{unknown}");
        assert_eq!(svg(Waterfall::default()).matches("</svg>").count(), 1);
    }
}
