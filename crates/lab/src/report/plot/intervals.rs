//! What values may be: a line for each, beside what would be no difference.

use plotters::element::{Circle, PathElement, Polygon, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, ShapeStyle};

use super::frame::{SIDE, clean};
use super::letters::{width, wrap};
use super::{Area, Drawn, Interval, Intervals, Palette, WIDTH, tick};

/// Pixels of a row, and of a line of its label.
const ROW: i32 = 30;
const LINE: i32 = 15;

/// Pixels above the rows and below them.
const ABOVE: i32 = 12;
const BELOW: i32 = 54;

/// Pixels for labels and for values in words, at most.
const MOST_LEFT: i32 = 270;
const MOST_RIGHT: i32 = 230;

const LABEL: f64 = 12.0;

pub(super) fn height(intervals: &Intervals) -> u32 {
    let columns = Columns::new(intervals);
    (ABOVE + columns.rows.iter().map(|(_, _, high)| high).sum::<i32>() + BELOW) as u32
}

pub(super) fn unplaced(intervals: &Intervals) -> Vec<(String, usize)> {
    let rows = || intervals.rows.iter();
    let unknown = rows().filter(|row| row.value.number().is_none()).count();
    let open = rows().filter(|row| row.value.number().is_some() && row.ends == [None, None]);
    vec![
        ("values that are unknown".to_owned(), unknown),
        ("intervals that are not known, of values that are".to_owned(), open.count()),
    ]
}

/// Labels at the left, words at the right, and how high each row is.
struct Columns {
    rows: Vec<Lines>,
    left: i32,
    right: i32,
}

/// The label of a row, its words, and how high it is.
type Lines = (Vec<String>, Vec<String>, i32);

impl Columns {
    fn new(intervals: &Intervals) -> Self {
        let lines = |row: &Interval| {
            let label = wrap(&clean(&row.label), LABEL, MOST_LEFT);
            let words = wrap(&clean(&row.words), LABEL, MOST_RIGHT);
            let high = (label.len().max(words.len()) as i32 * LINE + 8).max(ROW);
            (label, words, high)
        };
        let rows: Vec<_> = intervals.rows.iter().map(lines).collect();
        let widest = |of: fn(&Lines) -> &Vec<String>| {
            rows.iter().flat_map(of).map(|text| width(text, LABEL)).max().unwrap_or(0)
        };
        let left = SIDE + widest(|row| &row.0) + 16;
        let right = WIDTH as i32 - SIDE - widest(|row| &row.1) - 20;
        Self { rows, left, right }
    }
}

pub(super) fn draw(area: &Area<'_>, intervals: &Intervals, palette: Palette) -> Drawn {
    let Intervals { x, none, rows } = intervals;
    let columns = Columns::new(intervals);
    let known = |row: &Interval| row.ends.into_iter().flatten().chain(row.value.number());
    let span = x.span(rows.iter().flat_map(known).chain([*none]));
    let across = |value: f64| {
        columns.left + (span.place(value) * f64::from(columns.right - columns.left)).round() as i32
    };
    let bottom = ABOVE + columns.rows.iter().map(|(_, _, high)| high).sum::<i32>();
    let upright = |value: f64, style: ShapeStyle| {
        area.draw(&PathElement::new(vec![(across(value), ABOVE), (across(value), bottom)], style))
    };
    for value in span.ticks(7) {
        upright(value, palette.faint().stroke_width(1))?;
        let style = palette.font(LABEL).pos(Pos::new(HPos::Center, VPos::Center));
        area.draw(&Text::new(tick(value, x.unit), (across(value), bottom + 12), style))?;
    }
    upright(*none, palette.text().mix(0.75).stroke_width(2))?;
    let mut top = ABOVE;
    for (row, (label, words, high)) in rows.iter().zip(&columns.rows) {
        let middle = top + high / 2;
        put_lines(area, label, (SIDE, middle), palette)?;
        put_lines(area, words, (columns.right + 20, middle), palette)?;
        let color = usize::from(row.is_apart);
        put(area, row, (&across, [columns.left, columns.right], middle), (palette, color))?;
        top += high;
    }
    let style = palette.font(13.0).pos(Pos::new(HPos::Center, VPos::Center));
    let at = (i32::midpoint(columns.left, columns.right), bottom + 36);
    area.draw(&Text::new(clean(&x.label), at, style))?;
    Ok(())
}

fn put_lines(
    area: &Area<'_>,
    lines: &[String],
    (x, middle): (i32, i32),
    palette: Palette,
) -> Drawn {
    let first = middle - (lines.len() as i32 - 1) * LINE / 2;
    for (number, text) in (0..).zip(lines) {
        let style = palette.font(LABEL).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(text.clone(), (x, first + number * LINE), style))?;
    }
    Ok(())
}

/// A value and its interval: an open end has an arrow; what surely differs is full and of another colour.
fn put(
    area: &Area<'_>,
    row: &Interval,
    (across, sides, y): (&impl Fn(f64) -> i32, [i32; 2], i32),
    (palette, color): (Palette, usize),
) -> Drawn {
    let Some(value) = row.value.number() else { return Ok(()) };
    let color = palette.series(color);
    let style = ShapeStyle::from(color).stroke_width(2);
    if row.ends != [None, None] {
        let [low, high] = row.ends;
        let (from, to) = (low.map_or(sides[0], across), high.map_or(sides[1], across));
        area.draw(&PathElement::new(vec![(from, y), (to, y)], style))?;
        for (end, x, back) in [(low, from, 8), (high, to, -8)] {
            if end.is_some() {
                area.draw(&PathElement::new(vec![(x, y - 6), (x, y + 6)], style))?;
            } else {
                let corners = vec![(x, y), (x + back, y - 5), (x + back, y + 5)];
                area.draw(&Polygon::new(corners, color.filled()))?;
            }
        }
    }
    let at = (across(value), y);
    area.draw(&Circle::new(at, 5, palette.page().filled()))?;
    area.draw(&Circle::new(at, 5, if row.is_apart { color.filled() } else { style }))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Chart, Plot, Value};
    use super::*;

    fn row(label: &str, value: Value, ends: [Option<f64>; 2]) -> Interval {
        let is_apart = ends[0].is_some_and(|low| low > 0.0);
        Interval { label: label.to_owned(), value, ends, words: "words".to_owned(), is_apart }
    }

    fn plot(rows: Vec<Interval>) -> Plot {
        let x = Axis::new("improvement %");
        Plot::new("t", "", Chart::Intervals(Intervals { x, none: 0.0, rows }))
    }

    #[test]
    fn open_ends_are_arrows_and_unknown_values_are_counted() {
        let plot = plot(vec![
            row("64 <bytes>", Value::Exactly(20.0), [Some(10.0), Some(35.0)]),
            row("512", Value::AtLeast(5.0), [Some(5.0), None]),
            row("1518", Value::Unknown, [None, None]),
            row("mean", Value::Exactly(-3.0), [None, None]),
        ]);
        let svg = plot.svg(Palette::Light);
        assert_eq!(svg.matches("<polygon").count(), 1, "{svg}");
        assert_eq!(svg.matches("<circle").count(), 3 * 2, "{svg}");
        assert!(svg.contains("64 &lt;bytes&gt;") && svg.contains("1518"), "{svg}");
        let note = plot.note().unwrap();
        assert!(note.contains("unknown (1)") && note.contains("of values that are (1)"), "{note}");
    }

    #[test]
    fn rows_are_as_high_as_their_words() {
        let short = plot(vec![row("a", Value::Unknown, [None, None])]);
        let long = plot(vec![row(&"many words ".repeat(20), Value::Unknown, [None, None])]);
        let height = |plot: &Plot| plot.chart.height();
        assert!(height(&long) > height(&short) + 3 * LINE as u32);
        assert!(plot(vec![]).svg(Palette::Dark).trim_end().ends_with("</svg>"));
    }
}
