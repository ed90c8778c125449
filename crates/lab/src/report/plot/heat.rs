//! Shares over two lists of values, as colours.

use plotters::element::{Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, FontTransform, RGBColor};

use super::{Area, Drawn, HEIGHT, HeatMap, Palette, WIDTH, tick};

/// Pixels around the map.
const LEFT: i32 = 96;
const RIGHT: i32 = 24;
const TOP: i32 = 16;
const BOTTOM: i32 = 64;

/// From none to all: each lighter or darker than the one before, so that they are told apart without colours (after
/// matplotlib's viridis, turned around).
const SCALE: [(u8, u8, u8); 6] = [
    (0xfd, 0xf2, 0xb0),
    (0xb5, 0xde, 0x5b),
    (0x35, 0xb7, 0x79),
    (0x26, 0x82, 0x8e),
    (0x3e, 0x4a, 0x89),
    (0x44, 0x01, 0x54),
];

pub(super) fn draw(area: &Area<'_>, map: &HeatMap, palette: Palette) -> Drawn {
    let (columns, rows) = (map.x.1.len() as i32, map.y.1.len() as i32);
    let center = Pos::new(HPos::Center, VPos::Center);
    let (width, height) = (WIDTH as i32 - LEFT - RIGHT, HEIGHT as i32 - TOP - BOTTOM);
    let across = |column: i32| LEFT + width * column / columns.max(1);
    // The first of y is at the bottom, as at an axis.
    let down = |row: i32| TOP + height * (rows - row) / rows.max(1);
    for (row, shares) in (0..rows).zip(&map.shares) {
        for (column, share) in (0..columns).zip(shares) {
            let corners =
                [(across(column) + 1, down(row + 1) + 1), (across(column + 1) - 1, down(row) - 1)];
            let middle = (
                i32::midpoint(corners[0].0, corners[1].0),
                i32::midpoint(corners[0].1, corners[1].1),
            );
            let (fill, text, label) = match share.filter(|share| share.is_finite()) {
                Some(share) => {
                    let fill = color(share);
                    (fill, contrast(fill), percent(share))
                }
                None => (palette.page(), *palette.text(), "?".to_owned()),
            };
            area.draw(&Rectangle::new(corners, fill.filled()))?;
            let has_room = corners[1].0 - corners[0].0 >= 7 * label.len() as i32;
            if has_room {
                let style = palette.font(12.0).color(&text).pos(center);
                area.draw(&Text::new(label, middle, style))?;
            }
        }
    }
    // Labels that would touch each other are left out.
    let longest = map.x.1.iter().map(String::len).max().unwrap_or(0) as i32;
    let each = (longest * 8 * columns / width.max(1)) + 1;
    for (column, label) in (0..columns).zip(&map.x.1).filter(|(column, _)| column % each == 0) {
        let at = (i32::midpoint(across(column), across(column + 1)), HEIGHT as i32 - BOTTOM + 14);
        area.draw(&Text::new(label.clone(), at, palette.font(13.0).pos(center)))?;
    }
    for (row, label) in (0..rows).zip(&map.y.1) {
        let at = (LEFT - 8, i32::midpoint(down(row), down(row + 1)));
        let style = palette.font(13.0).pos(Pos::new(HPos::Right, VPos::Center));
        area.draw(&Text::new(label.clone(), at, style))?;
    }
    let below = (LEFT + width / 2, HEIGHT as i32 - 18);
    area.draw(&Text::new(map.x.0.clone(), below, palette.font(15.0).pos(center)))?;
    let beside = palette.font(15.0).transform(FontTransform::Rotate270).pos(center);
    area.draw(&Text::new(map.y.0.clone(), (20, TOP + height / 2), beside))?;
    Ok(())
}

/// Small shares stay in sight: what is not nothing never looks like it.
fn percent(share: f64) -> String {
    match share {
        0.0 => "0".to_owned(),
        small if small < 0.000_05 => "<0.01 %".to_owned(),
        large if large > 0.999_95 && large < 1.0 => ">99.99 %".to_owned(),
        share => tick((share * 1e4).round() / 1e4, true),
    }
}

/// The colour of a share: small ones differ more, since 0.1 % and 1 % are what matters. Nothing has the first.
fn color(share: f64) -> RGBColor {
    let place = share.clamp(0.0, 1.0).powf(0.4) * (SCALE.len() - 1) as f64;
    let below = (place.floor() as usize).min(SCALE.len() - 2);
    let part = place - below as f64;
    let mix = |one: u8, other: u8| {
        (f64::from(one) * (1.0 - part) + f64::from(other) * part).round() as u8
    };
    let (one, other) = (SCALE[below], SCALE[below + 1]);
    RGBColor(mix(one.0, other.0), mix(one.1, other.1), mix(one.2, other.2))
}

/// The better of black and white on a colour (its luminance by BT.709).
fn contrast(RGBColor(red, green, blue): RGBColor) -> RGBColor {
    let luminance = 0.2126 * f64::from(red) + 0.7152 * f64::from(green) + 0.0722 * f64::from(blue);
    if luminance > 128.0 { RGBColor(0, 0, 0) } else { RGBColor(255, 255, 255) }
}

#[cfg(test)]
mod tests {
    use super::super::{Chart, Plot};
    use super::*;

    #[test]
    fn every_cell_is_there_and_what_is_unknown_says_so() {
        let names = |of: &[&str]| of.iter().map(|name| (*name).to_owned()).collect();
        let map = HeatMap {
            x: ("frames/s".to_owned(), names(&["100k", "200k", "300k"])),
            y: ("bytes".to_owned(), names(&["64", "1518"])),
            shares: vec![
                vec![Some(0.0), Some(0.123), None],
                vec![Some(1e-6), Some(f64::NAN), Some(1.0)],
            ],
        };
        let plot =
            Plot { title: String::new(), caption: String::new(), chart: Chart::HeatMap(map) };
        let svg = plot.svg(Palette::Dark);
        // The page is one, too.
        assert_eq!(svg.matches("<rect").count(), 7, "{svg}");
        assert_eq!(svg.matches("?\n").count(), 2, "{svg}");
        assert_eq!(
            svg.matches("fill=\"#14171A\"").count(),
            3,
            "what is unknown has no colour: {svg}"
        );
        for text in ["0\n", "12.3 %", "&lt;0.01 %", "100 %", "1518", "frames/s"] {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
    }

    #[test]
    fn what_is_nearly_all_or_nothing_is_told_apart() {
        let told = [0.0, 1e-9, 0.0012, 0.999_99, 1.0].map(percent);
        assert_eq!(told, ["0", "<0.01 %", "0.12 %", ">99.99 %", "100 %"]);
    }

    #[test]
    fn more_is_darker() {
        let light = |share| {
            let RGBColor(red, green, blue) = color(share);
            u32::from(red) + u32::from(green) + u32::from(blue)
        };
        for step in 0..20 {
            let share = f64::from(step) / 20.0;
            assert!(light(share) > light(share + 0.05), "{share}");
        }
    }
}
