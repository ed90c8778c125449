//! What is around charts: titles, keys and notes. And what pictures say to who does not see them.

use plotters::element::{
    Circle, Cross, EmptyElement, PathElement, Rectangle, Text, TriangleMarker,
};
use plotters::style::ShapeStyle;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::letters::{width, wrap};
use super::{Area, Drawn, Palette, Plot, WIDTH};
use crate::report::escape::escape;

/// Pixels at both sides of a picture.
pub(super) const SIDE: i32 = 14;

const TITLE: f64 = 16.0;
const NOTE: f64 = 12.0;
const KEY: f64 = 12.0;

/// Pixels from a line of text to the next.
const TITLE_LINE: i32 = 22;
const NOTE_LINE: i32 = 17;
const KEY_LINE: i32 = 19;

/// Pixels of the sample at the left of a name.
const SAMPLE: i32 = 34;

const LEFT: Pos = Pos { h_pos: HPos::Left, v_pos: VPos::Center };

/// Title above, note below.
pub(super) struct Frame {
    title: Vec<String>,
    note: Vec<String>,
}

impl Frame {
    pub(super) fn new(plot: &Plot, note: Option<&str>, has_title: bool) -> Self {
        let most = WIDTH as i32 - 2 * SIDE;
        let title = if has_title { wrap(&plot.title, TITLE * 1.08, most) } else { Vec::new() };
        Self { title, note: note.map_or(Vec::new(), |note| wrap(note, NOTE, most)) }
    }

    /// Pixels above the chart.
    pub(super) fn above(&self) -> u32 {
        if self.title.is_empty() { 0 } else { (self.title.len() as i32 * TITLE_LINE + 10) as u32 }
    }

    /// Pixels of the picture.
    pub(super) fn height(&self, chart: u32) -> u32 {
        let below = if self.note.is_empty() { 0 } else { self.note.len() as i32 * NOTE_LINE + 8 };
        self.above() + chart + below as u32
    }

    pub(super) fn draw(&self, area: &Area<'_>, chart: u32, palette: Palette) -> Drawn {
        for (line, text) in (0..).zip(&self.title) {
            let at = (SIDE, 10 + TITLE_LINE / 2 + line * TITLE_LINE);
            area.draw(&Text::new(clean(text), at, palette.bold(TITLE).pos(LEFT)))?;
        }
        let top = (self.above() + chart) as i32;
        for (line, text) in (0..).zip(&self.note) {
            let at = (SIDE, top + NOTE_LINE / 2 + line * NOTE_LINE);
            area.draw(&Text::new(clean(text), at, palette.font(NOTE).pos(LEFT)))?;
        }
        Ok(())
    }
}

/// Letters that XML does not have are replaced.
pub(super) fn clean(text: &str) -> String {
    let is_wrong = |letter: char| {
        (letter.is_control() && letter != '\n') || matches!(letter, '\u{fffe}' | '\u{ffff}')
    };
    text.replace(is_wrong, "\u{fffd}")
}

/// A picture with what it shows in words, for who does not see it.
pub(super) fn described(svg: &str, plot: &Plot, note: Option<&str>) -> String {
    let title = escape(&clean(&plot.title));
    let words = [plot.caption.as_str(), note.unwrap_or_default()].join(" ");
    let words = escape(&clean(words.trim()));
    let head = format!("<svg role=\"img\" aria-label=\"{title}\"");
    let body = format!(">\n<title>{title}</title>\n<desc>{words}</desc>\n");
    svg.replacen("<svg", &head, 1).replacen(">\n", &body, 1)
}

/// Names with samples, as many in a row as there is room for.
pub(super) struct Key {
    /// For each name: where it begins, its line, and its own lines.
    places: Vec<(i32, i32, Vec<String>)>,
    lines: i32,
}

impl Key {
    pub(super) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let (begin, end) = (SIDE + 4, WIDTH as i32 - SIDE);
        let (mut x, mut line, mut lines) = (begin, 0, 0);
        let mut places = Vec::new();
        for name in names {
            let parts = wrap(name, KEY, end - begin - SAMPLE);
            let wide = parts.iter().map(|part| width(part, KEY)).max().unwrap_or(0) + SAMPLE;
            if x > begin && x + wide > end {
                (x, line) = (begin, lines);
            }
            lines = lines.max(line + (parts.len() as i32).max(1));
            places.push((x, line, parts));
            x += wide + 22;
        }
        Self { places, lines }
    }

    /// Pixels that it takes.
    pub(super) fn height(&self) -> i32 {
        if self.lines == 0 { 0 } else { self.lines * KEY_LINE + 8 }
    }

    /// Draws it; `sample` draws what is at the left of a name, around a place.
    pub(super) fn draw(
        &self,
        area: &Area<'_>,
        palette: Palette,
        sample: impl Fn(usize, (i32, i32)) -> Drawn,
    ) -> Drawn {
        for (number, (x, line, parts)) in self.places.iter().enumerate() {
            let middle = |line: i32| 6 + line * KEY_LINE + KEY_LINE / 2;
            sample(number, (x + SAMPLE / 2 - 4, middle(*line)))?;
            for (more, part) in (0..).zip(parts) {
                let at = (x + SAMPLE, middle(line + more));
                area.draw(&Text::new(clean(part), at, palette.font(KEY).pos(LEFT)))?;
            }
        }
        Ok(())
    }
}

/// Series are told apart by the shapes of their points, too.
pub(super) fn point(area: &Area<'_>, number: usize, at: (i32, i32), palette: Palette) -> Drawn {
    let color = palette.series(number);
    let style = ShapeStyle::from(color).filled();
    match number % 5 {
        0 => area.draw(&Circle::new(at, 4, style))?,
        1 => area.draw(&TriangleMarker::new(at, 6, style))?,
        2 => area.draw(&(EmptyElement::at(at) + Rectangle::new([(-4, -4), (4, 4)], style)))?,
        3 => area.draw(&Cross::new(at, 5, ShapeStyle::from(color).stroke_width(2)))?,
        _ => {
            let corners = vec![(0, -6), (6, 0), (0, 6), (-6, 0), (0, -6)];
            let style = ShapeStyle::from(color).stroke_width(2);
            area.draw(&(EmptyElement::at(at) + PathElement::new(corners, style)))?;
        }
    }
    Ok(())
}

/// The dashes and gaps of a series' line, in pixels: the first has none.
pub(super) const fn dashes(number: usize) -> Option<(i32, i32)> {
    match number % 3 {
        0 => None,
        1 => Some((9, 4)),
        _ => Some((3, 4)),
    }
}

/// A line in pixels, with dashes or without.
pub(super) fn line(
    area: &Area<'_>,
    points: Vec<(i32, i32)>,
    dashes: Option<(i32, i32)>,
    style: ShapeStyle,
) -> Drawn {
    match dashes {
        None => area.draw(&PathElement::new(points, style))?,
        Some((dash, gap)) => {
            area.draw(&plotters::element::DashedPathElement::new(points, dash, gap, style))?;
        }
    }
    Ok(())
}
