//! Values side by side, in groups.

use plotters::element::{PathElement, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, FontTransform, ShapeStyle};

use super::frame::{Key, SIDE, clean};
use super::letters::{shorten, width, wrap};
use super::{Area, Bars, Drawn, Palette, Span, Value, WIDTH, tick};

/// Pixels between the lowest and the highest value, and around that.
const HEIGHT: i32 = 320;
const BELOW: i32 = 44;
const ABOVE: i32 = 26;
const LEFT: i32 = 88;

/// Pixels of a group's name at most, where it is written upwards.
const MOST_NAME: i32 = 200;

/// Lines of a group's name at most, where it is written across, and pixels of each.
const MOST_LINES: usize = 3;
const LINE: i32 = 14;

const LABEL: f64 = 11.0;
const TICK: f64 = 12.0;

const CENTER: Pos = Pos { h_pos: HPos::Center, v_pos: VPos::Center };

pub(super) fn height(bars: &Bars) -> u32 {
    (key(bars).height() + ABOVE + HEIGHT + Names::new(bars).height() + BELOW) as u32
}

/// Pixels from left to right for a group.
fn each(bars: &Bars) -> i32 {
    (WIDTH as i32 - LEFT - SIDE) / (bars.groups.1.len() as i32).max(1)
}

/// Names of groups as there is room for them: no bar is without its name as long as a line fits between two of them.
enum Names {
    /// In lines, one above the other.
    Across(Vec<Vec<String>>),
    /// Upwards, since bars are narrow.
    Upwards(Vec<String>),
}

impl Names {
    fn new(bars: &Bars) -> Self {
        let room = each(bars) - 6;
        let names = || bars.groups.1.iter().map(|name| clean(name));
        let fits = |word: &str| width(word, TICK) <= room;
        let lines: Vec<_> = names().map(|name| wrap(&name, TICK, room.max(1))).collect();
        let are_short = lines.iter().all(|lines| lines.len() <= MOST_LINES);
        match are_short && names().all(|name| name.split_whitespace().all(fits)) {
            true => Self::Across(lines),
            false => Self::Upwards(names().map(|name| shorten(&name, TICK, MOST_NAME)).collect()),
        }
    }

    /// Pixels from top to bottom.
    fn height(&self) -> i32 {
        match self {
            Self::Across(names) => {
                names.iter().map(|lines| lines.len() as i32 * LINE).max().unwrap_or(0)
            }
            Self::Upwards(names) => {
                names.iter().map(|name| width(name, TICK)).max().unwrap_or(0) + 6
            }
        }
    }

    fn draw(&self, area: &Area<'_>, field: &Field, palette: Palette) -> Drawn {
        let style = || palette.font(TICK).pos(CENTER);
        let top = field.top + HEIGHT + 14;
        match self {
            Self::Across(names) => {
                for (group, lines) in (0..).zip(names) {
                    for (number, line) in (0..).zip(lines) {
                        let at = (field.middle(group), top + number * LINE);
                        area.draw(&Text::new(line.clone(), at, style()))?;
                    }
                }
            }
            Self::Upwards(names) => {
                let every = (LINE / field.each.max(1)).max(1);
                for (group, name) in (0..).zip(names).filter(|(at, _)| at % every == 0) {
                    let at = (field.middle(group), top - 8 + width(name, TICK) / 2);
                    let style = style().transform(FontTransform::Rotate270);
                    area.draw(&Text::new(name.clone(), at, style))?;
                }
            }
        }
        Ok(())
    }
}

fn key(bars: &Bars) -> Key {
    Key::new(bars.series.iter().map(|(name, _)| name.as_str()))
}

pub(super) fn unplaced(bars: &Bars) -> Vec<(String, usize)> {
    let values = || bars.series.iter().flat_map(|(_, values)| values);
    let unknown = values().filter(|value| value.number().is_none()).count();
    vec![("values that are unknown".to_owned(), unknown)]
}

struct Field {
    span: Span,
    top: i32,
    each: i32,
    bar: i32,
}

impl Field {
    fn new(bars: &Bars) -> Self {
        let values = bars.series.iter().flat_map(|(_, values)| values);
        let span = bars.y.span(values.filter_map(|value| value.number()));
        let each = each(bars);
        // A quarter of a group stays free.
        let bar = (each * 3 / 4 / (bars.series.len() as i32).max(1)).clamp(1, 70);
        Self { span, top: key(bars).height() + ABOVE, each, bar }
    }

    fn up(&self, value: f64) -> i32 {
        self.top + HEIGHT - (self.span.place(value) * f64::from(HEIGHT)).round() as i32
    }

    fn ground(&self) -> i32 {
        self.up(self.span.low.max(0.0))
    }

    fn middle(&self, group: i32) -> i32 {
        LEFT + group * self.each + self.each / 2
    }
}

pub(super) fn draw(area: &Area<'_>, bars: &Bars, palette: Palette) -> Drawn {
    let field = Field::new(bars);
    let sides = (LEFT, WIDTH as i32 - SIDE);
    for value in field.span.ticks(8) {
        let y = field.up(value);
        let style = ShapeStyle::from(palette.faint()).stroke_width(1);
        area.draw(&PathElement::new(vec![(sides.0, y), (sides.1, y)], style))?;
        let style = palette.font(TICK).pos(Pos::new(HPos::Right, VPos::Center));
        area.draw(&Text::new(tick(value, bars.y.unit), (LEFT - 8, y), style))?;
    }
    let count = bars.series.len() as i32;
    for (number, (_, values)) in bars.series.iter().enumerate() {
        for (group, value) in (0..).zip(values) {
            let left = field.middle(group) - field.bar * count / 2 + number as i32 * field.bar;
            put(area, (*value, number), left, (bars, &field), palette)?;
        }
    }
    let ground = field.ground();
    let style = palette.text().mix(0.6).stroke_width(1);
    area.draw(&PathElement::new(vec![(sides.0, ground), (sides.1, ground)], style))?;
    labels(area, bars, &field, palette)?;
    key(bars).draw(area, palette, |number, (x, y)| {
        fill(area, [(x - 10, y - 6), (x + 10, y + 6)], number, palette)
    })
}

/// Names of groups, and of both directions.
fn labels(area: &Area<'_>, bars: &Bars, field: &Field, palette: Palette) -> Drawn {
    let names = Names::new(bars);
    names.draw(area, field, palette)?;
    let bottom = field.top + HEIGHT + names.height();
    let below = (i32::midpoint(LEFT, WIDTH as i32 - SIDE), bottom + 26);
    area.draw(&Text::new(clean(&bars.groups.0), below, palette.font(13.0).pos(CENTER)))?;
    let beside = palette.font(13.0).transform(FontTransform::Rotate270).pos(CENTER);
    let at = (20, field.top + HEIGHT / 2);
    area.draw(&Text::new(clean(&bars.y.label), at, beside))?;
    Ok(())
}

/// A bar with its value: above it, or along it where bars are narrow.
fn put(
    area: &Area<'_>,
    (value, number): (Value, usize),
    left: i32,
    (bars, field): (&Bars, &Field),
    palette: Palette,
) -> Drawn {
    let ground = field.ground();
    let top = value.number().map_or(ground, |number| field.up(number));
    let (high, low) = (top.min(ground), top.max(ground));
    if value.number().is_some() {
        fill(area, [(left + 1, high), (left + field.bar - 1, low)], number, palette)?;
    }
    let words = value.words(bars.y.unit);
    let wide = width(&words, LABEL);
    let x = left + field.bar / 2;
    // A value below nothing has its label below it.
    let is_below = top > ground;
    if wide <= field.bar {
        let at = (x, if is_below { low + 9 } else { high - 9 });
        area.draw(&Text::new(words, at, palette.font(LABEL).pos(CENTER)))?;
    } else if field.bar >= LABEL as i32 {
        // Upwards: inside of the bar where there would be no room above it.
        let is_inside = !is_below && high - wide - 6 < field.top - ABOVE;
        let text = if is_inside { palette.page() } else { *palette.text() };
        let y = match (is_inside, is_below) {
            (true, _) => high + 6 + wide / 2,
            (false, true) => low + 6 + wide / 2,
            (false, false) => high - 6 - wide / 2,
        };
        let style = palette.font(LABEL).color(&text).transform(FontTransform::Rotate270);
        area.draw(&Text::new(words, (x, y), style.pos(CENTER)))?;
    }
    Ok(())
}

/// A bar of a series: those that follow each other are told apart by stripes, too.
fn fill(area: &Area<'_>, corners: [(i32, i32); 2], number: usize, palette: Palette) -> Drawn {
    area.draw(&Rectangle::new(corners, palette.series(number).filled()))?;
    let [(left, top), (right, bottom)] = corners;
    let style = ShapeStyle::from(palette.page().mix(0.55)).stroke_width(1);
    match number % 3 {
        1 => {
            for y in (top + 4..bottom).step_by(6) {
                area.draw(&PathElement::new(vec![(left, y), (right, y)], style))?;
            }
        }
        2 => {
            for x in (left + 4..right).step_by(6) {
                area.draw(&PathElement::new(vec![(x, top), (x, bottom)], style))?;
            }
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Chart, Plot};
    use super::*;

    fn plot(series: Vec<(String, Vec<Value>)>) -> Plot {
        let groups = ("bytes".to_owned(), vec!["64".to_owned(), "1518".to_owned()]);
        let bars = Bars { y: Axis::new("frames a second"), groups, series };
        Plot::new("t", "", Chart::Bars(bars))
    }

    #[test]
    fn bounds_and_unknown_values_say_so() {
        let one = vec![Value::AtLeast(612_345.0), Value::Exactly(82_000.0)];
        let other = vec![Value::Unknown, Value::AtMost(1000.0)];
        let plot = plot(vec![("a<b".to_owned(), one), ("c".to_owned(), other)]);
        let svg = plot.svg(Palette::Light);
        for text in ["\u{2265} 612k", "82k", "?\n", "\u{2264} 1,000", "1518", "a&lt;b"] {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
        // The page, three bars, two in the key.
        assert_eq!(svg.matches("<rect").count(), 1 + 3 + 2, "{svg}");
        assert_eq!(plot.note().unwrap(), "Not drawn: values that are unknown (1).");
    }

    #[test]
    fn every_bar_has_its_name() {
        let named = |names: Vec<String>| {
            let values = (1..=names.len()).map(|value| Value::Exactly(value as f64)).collect();
            let (y, groups) = (Axis::new("packets a second"), ("program".to_owned(), names));
            Bars { y, groups, series: vec![("median".to_owned(), values)] }
        };
        let few = named(["read", "all, + rows", "tcpdump"].map(str::to_owned).to_vec());
        let many = (1..=16).map(|number| format!("netsniff, {number} workers, head"));
        let many = named(many.collect());
        assert!(matches!(Names::new(&few), Names::Across(_)));
        assert!(matches!(Names::new(&many), Names::Upwards(_)));
        assert!(height(&many) > height(&few) + 100, "room for the names");
        for bars in [few, many] {
            let names = bars.groups.1.clone();
            let svg = Plot::new("t", "", Chart::Bars(bars)).svg(Palette::Light);
            for name in names {
                assert!(svg.contains(&format!("\n{name}\n")), "{name} is not in {svg}");
            }
        }
    }

    #[test]
    fn losses_of_a_comparison_hang_from_the_ground() {
        let of =
            |values: [f64; 2]| plot(vec![("x".to_owned(), values.map(Value::Exactly).to_vec())]);
        let svg = of([-20.0, 40.0]).svg(Palette::Light);
        assert!(svg.contains("-20\n") && svg.contains("40\n"), "{svg}");
        assert!(!svg.contains("height=\"-"), "no bar is upside down: {svg}");
        for all in
            [vec![], vec![("x".to_owned(), vec![])], vec![(String::new(), vec![Value::Unknown; 2])]]
        {
            assert!(plot(all).svg(Palette::Dark).trim_end().ends_with("</svg>"));
        }
    }
}
