//! Shares over two lists of values, as colours.

use plotters::element::{PathElement, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, FontTransform, RGBColor};

use super::frame::{SIDE, clean};
use super::letters::{shorten, width as width_of};
use super::{Area, Drawn, HeatMap, Palette, Unit, WIDTH, tick};

/// Pixels of the map, and around it.
const HEIGHT: i32 = 340;
const LEAST_LEFT: i32 = 96;
const MOST_LEFT: i32 = 240;
const RIGHT: i32 = 128;
const TOP: i32 = 16;
const BOTTOM: i32 = 64;

/// Pixels of a column's name at most.
const MOST_NAME: i32 = 200;

const CELL: f64 = 11.0;
const LABEL: f64 = 12.0;

/// Shares that the key tells.
const TOLD: [f64; 8] = [0.0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0];

const CENTER: Pos = Pos { h_pos: HPos::Center, v_pos: VPos::Center };

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

pub(super) const fn height(_: &HeatMap) -> u32 {
    (TOP + HEIGHT + BOTTOM) as u32
}

pub(super) fn unplaced(map: &HeatMap) -> Vec<(String, usize)> {
    let unknown = |share: &&Option<f64>| share.is_none_or(|share| !share.is_finite());
    let number = map.shares.iter().flatten().filter(unknown).count();
    vec![("cells of which nothing is known".to_owned(), number)]
}

struct Grid {
    columns: i32,
    rows: i32,
    left: i32,
    width: i32,
}

impl Grid {
    fn new(map: &HeatMap) -> Self {
        let (columns, rows) = (map.x.1.len() as i32, map.y.1.len() as i32);
        let widest = map.y.1.iter().map(|label| width_of(&clean(label), LABEL)).max().unwrap_or(0);
        let left = (widest + 48).clamp(LEAST_LEFT, MOST_LEFT);
        Self { columns, rows, left, width: WIDTH as i32 - left - RIGHT }
    }

    const fn across(&self, column: i32) -> i32 {
        self.left + self.width * column / if self.columns > 0 { self.columns } else { 1 }
    }

    /// The first of y is at the bottom, as at an axis.
    const fn down(&self, row: i32) -> i32 {
        TOP + HEIGHT * (self.rows - row) / if self.rows > 0 { self.rows } else { 1 }
    }
}

pub(super) fn draw(area: &Area<'_>, map: &HeatMap, palette: Palette) -> Drawn {
    let grid = Grid::new(map);
    for (row, shares) in (0..grid.rows).zip(&map.shares) {
        for (column, share) in (0..grid.columns).zip(shares) {
            let corners = [
                (grid.across(column) + 1, grid.down(row + 1) + 1),
                (grid.across(column + 1) - 1, grid.down(row) - 1),
            ];
            cell(area, corners, *share, palette)?;
        }
    }
    labels(area, map, &grid, palette)?;
    key(area, map, palette)
}

/// A cell; one of which nothing is known has no colour but a frame, and a question mark where there is room.
fn cell(area: &Area<'_>, corners: [(i32, i32); 2], share: Option<f64>, palette: Palette) -> Drawn {
    let [from, to] = corners;
    let (text, label) = if let Some(share) = share.filter(|share| share.is_finite()) {
        let fill = color(share);
        area.draw(&Rectangle::new(corners, fill.filled()))?;
        (contrast(fill), percent(share))
    } else {
        area.draw(&Rectangle::new(corners, palette.page().filled()))?;
        let frame = vec![from, (to.0, from.1), to, (from.0, to.1), from];
        area.draw(&PathElement::new(frame, palette.text().mix(0.4).stroke_width(1)))?;
        (*palette.text(), "?".to_owned())
    };
    if to.0 - from.0 > width_of(&label, CELL) + 2 && to.1 - from.1 > CELL as i32 {
        let middle = (i32::midpoint(from.0, to.0), i32::midpoint(from.1, to.1));
        area.draw(&Text::new(label, middle, palette.font(CELL).color(&text).pos(CENTER)))?;
    }
    Ok(())
}

/// Labels that would touch each other are left out.
fn labels(area: &Area<'_>, map: &HeatMap, grid: &Grid, palette: Palette) -> Drawn {
    let names: Vec<_> =
        map.x.1.iter().map(|name| shorten(&clean(name), LABEL, MOST_NAME)).collect();
    let widest = names.iter().map(|label| width_of(label, LABEL)).max().unwrap_or(0) + 8;
    let each = (widest * grid.columns / grid.width.max(1) + 1).max(1);
    for (column, label) in (0..grid.columns).zip(names).filter(|(at, _)| at % each == 0) {
        let middle = i32::midpoint(grid.across(column), grid.across(column + 1));
        let style = palette.font(LABEL).pos(CENTER);
        area.draw(&Text::new(label, (middle, TOP + HEIGHT + 14), style))?;
    }
    let each = ((LABEL as i32 + 4) * grid.rows / HEIGHT + 1).max(1);
    for (row, label) in (0..grid.rows).zip(&map.y.1).filter(|(at, _)| at % each == 0) {
        let at = (grid.left - 8, i32::midpoint(grid.down(row), grid.down(row + 1)));
        let style = palette.font(LABEL).pos(Pos::new(HPos::Right, VPos::Center));
        area.draw(&Text::new(shorten(&clean(label), LABEL, grid.left - 44), at, style))?;
    }
    let below = (grid.left + grid.width / 2, TOP + HEIGHT + BOTTOM - 22);
    area.draw(&Text::new(clean(&map.x.0), below, palette.font(13.0).pos(CENTER)))?;
    let beside = palette.font(13.0).transform(FontTransform::Rotate270).pos(CENTER);
    area.draw(&Text::new(clean(&map.y.0), (20, TOP + HEIGHT / 2), beside))?;
    Ok(())
}

/// What the colours mean: the same steps for every map.
fn key(area: &Area<'_>, map: &HeatMap, palette: Palette) -> Drawn {
    const WIDE: i32 = 18;
    const TALL: i32 = 30;
    let left = WIDTH as i32 - RIGHT + 36;
    let style = palette.font(LABEL).pos(Pos::new(HPos::Left, VPos::Center));
    for (step, share) in (0..).zip(TOLD) {
        let top = TOP + HEIGHT - (step + 1) * TALL - 40;
        let corners = [(left, top), (left + WIDE, top + TALL)];
        area.draw(&Rectangle::new(corners, color(share).filled()))?;
        let at = (left + WIDE + 8, top + TALL / 2);
        area.draw(&Text::new(tick(share, Unit::Share), at, style.clone()))?;
    }
    let top = TOP + HEIGHT - TALL;
    cell(area, [(left, top), (left + WIDE, top + TALL)], None, palette)?;
    area.draw(&Text::new("unknown".to_owned(), (left + WIDE + 8, top + TALL / 2), style))?;
    let beside = palette.font(LABEL).transform(FontTransform::Rotate270).pos(CENTER);
    let middle = TOP + HEIGHT - 40 - TOLD.len() as i32 * TALL / 2;
    area.draw(&Text::new(clean(&map.of), (left - SIDE, middle), beside))?;
    Ok(())
}

/// Small shares stay in sight: what is not nothing never looks like it.
fn percent(share: f64) -> String {
    match share {
        0.0 => "0".to_owned(),
        small if small < 0.000_05 => "<0.01 %".to_owned(),
        large if large > 0.999_95 && large < 1.0 => ">99.99 %".to_owned(),
        share => tick((share * 1e4).round() / 1e4, Unit::Share),
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
            of: "loss".to_owned(),
            shares: vec![
                vec![Some(0.0), Some(0.123), None],
                vec![Some(1e-6), Some(f64::NAN), Some(1.0)],
            ],
        };
        let plot = Plot::new("", "", Chart::HeatMap(map));
        let svg = plot.svg(Palette::Dark);
        // The page is one, too, and the key has one for each step and one for what is unknown.
        assert_eq!(svg.matches("<rect").count(), 1 + 6 + TOLD.len() + 1, "{svg}");
        assert_eq!(svg.matches("?\n").count(), 3, "two, and that of the key: {svg}");
        assert_eq!(
            svg.matches("fill=\"#14171A\"").count(),
            4,
            "what is unknown has no colour: {svg}"
        );
        assert!(plot.note().unwrap().ends_with("nothing is known (2)."));
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
