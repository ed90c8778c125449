//! The picture of one direction, as SVG whose looks are those of the page.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use netsniff_console::number::bytes;
use plotters::backend::SVGBackend;
use plotters::drawing::IntoDrawingArea as _;

use super::facts::{Direction, Kind, Sequence};
use super::following::SignKind;
use super::marks::{Class, Stairs};
use crate::page::axes::{Axis, Chart, axes, in_colours_of_the_page};

/// Pixels of the picture.
const SIZE: (u32, u32) = (920, 420);
/// The least pixels that a loss takes.
const LEAST: i32 = 4;

/// The fewest bytes that the axis has, whose labels are whole numbers.
const LEAST_RANGE: i64 = 10;

/// The class of a mark in the style.
pub(super) const fn class_name(class: Class) -> &'static str {
    match class {
        Class::Data => "seq-data",
        Class::Again => "seq-again",
        Class::Needless => "seq-needless",
        Class::Late => "seq-late",
        Class::Doubled => "seq-doubled",
        Class::Probe => "seq-probe",
        Class::Refused => "seq-refused",
        Class::Sack => "seq-sack",
    }
}

/// The class of a loss in the style, by who lost it.
pub(super) fn gap_name(cause: &str) -> &'static str {
    match cause {
        "capture" => "seq-gap-capture",
        "network_before" | "network_behind" => "seq-gap-network",
        _ => "seq-gap-unknown",
    }
}

/// Where values lie in the picture.
struct Frame<'a> {
    chart: Chart<'a>,
    /// Nanoseconds at the left and at the right.
    times: (i64, i64),
    low: i64,
    high: i64,
    /// What was drawn, as SVG.
    drawn: String,
}

impl Sequence {
    /// The picture of what the originator (0) or the responder (1) sent. Its looks are in [`STYLE`](super::STYLE).
    #[must_use]
    pub fn svg(&self, role: usize) -> String {
        let direction = &self.directions[role & 1];
        let mut svg = String::new();
        // A String takes everything, and a picture that ends early shows it.
        let drawn = self.draw(direction, &mut svg).unwrap_or_default();
        let svg = in_colours_of_the_page(&svg);
        let what = match self.kind {
            Kind::Tcp => "TCP sequence numbers over time",
            Kind::Datagrams => "Payload bytes over time",
        };
        let name = format!("{what}, sent by {} to {}", direction.from, direction.to);
        let description = direction.description(self.kind);
        let id = format!("seq-{}", role & 1);
        let head = format!("<svg role=\"img\" class=\"seq\" aria-labelledby=\"{id}-t {id}-d\"");
        let titles =
            format!("><title id=\"{id}-t\">{name}</title><desc id=\"{id}-d\">{description}</desc>");
        let svg = svg.replacen("<svg", &head, 1).replacen('>', &titles, 1);
        svg.replacen("</svg>", &format!("{drawn}</svg>"), 1)
    }

    fn draw(
        &self,
        direction: &Direction,
        svg: &mut String,
    ) -> Result<String, Box<dyn std::error::Error>> {
        let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        let (low, high) = direction.frame(self.kind);
        let left = self.earliest as f64 / 1e9;
        let right = (self.span.max(1) as f64 / 1e9) * 1.02;
        let label = |at: &f64| seconds_label(*at, right - left);
        let x = Axis { range: left..right, labels: 8, label: &label };
        let label = |value: &f64| number_label(*value);
        let y = Axis { range: low as f64..high as f64, labels: 6, label: &label };
        let chart = axes(&area, &x, &y)?;
        let mut frame =
            Frame { chart, times: (self.earliest, self.span), low, high, drawn: String::new() };
        match self.kind {
            Kind::Tcp => frame.tcp(direction),
            Kind::Datagrams => frame.stairs("seq-bytes", &direction.track.bytes, true),
        }
        let drawn = std::mem::take(&mut frame.drawn);
        drop(frame);
        area.present()?;
        drop(area);
        Ok(drawn)
    }
}

impl Direction {
    /// The numbers that the picture shows: those of data, and up to where it was acknowledged. A window may reach further, and
    /// is cut there.
    fn range(&self, kind: Kind) -> (i64, i64) {
        if kind == Kind::Datagrams {
            return (0, self.track.bytes.highest().unwrap_or(0).max(LEAST_RANGE));
        }
        let strokes = || {
            let drawn = Class::ALL.iter().filter(|class| **class != Class::Sack);
            drawn.flat_map(|class| &self.strokes(*class).list)
        };
        let (mut low, mut high) = (0, LEAST_RANGE);
        for stroke in strokes() {
            low = low.min(stroke.low);
            high = high.max(stroke.high);
        }
        for gap in self.gaps.iter().filter(|gap| gap.what == "data") {
            high = high.max(gap.end);
        }
        (low, high.max(self.track.accepted.unwrap_or(0)))
    }

    /// Whether a part of the window's limit is in the picture.
    pub(super) fn shows_window(&self) -> bool {
        let (_, high) = self.frame(Kind::Tcp);
        let points = self.track.window.points.iter();
        points.filter_map(|(_, value)| *value).any(|value| value <= high)
    }

    /// The lowest number of the picture's frame, and the highest.
    fn frame(&self, kind: Kind) -> (i64, i64) {
        let (low, high) = self.range(kind);
        let room = ((high - low) / 20).max(1);
        (if low < 0 { low - room } else { low }, high + room)
    }

    fn description(&self, kind: Kind) -> String {
        let count = |column: &str| {
            self.figure(column).map_or_else(|| "unknown".to_owned(), |count| count.to_string())
        };
        if kind == Kind::Datagrams {
            return format!("{} packets, {} payload bytes.", count("pkts"), count("bytes"));
        }
        let again = ["retx_rto", "retx_fast", "retx_spurious"];
        let again = again.iter().try_fold(0_u64, |sum, one| Some(sum + self.figure(one)?));
        let again = again.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
        format!(
            "{} segments with data, {} sent again, {} out of order, {} losses listed. The tables have all numbers.",
            count("data_segments"),
            again,
            count("out_of_order"),
            self.gaps.len()
        )
    }
}

impl Frame<'_> {
    /// Pixels from the left and from the top.
    fn place(&self, at: i64, value: i64) -> (i32, i32) {
        let at = at.clamp(self.times.0, self.times.1) as f64 / 1e9;
        self.chart.backend_coord(&(at, value.clamp(self.low, self.high) as f64))
    }

    fn tcp(&mut self, direction: &Direction) {
        self.gaps(direction);
        let track = &direction.track;
        self.stairs("seq-window", &track.window, false);
        self.stairs("seq-ack", &track.acknowledged, true);
        for class in Class::ALL {
            self.strokes(direction, class);
        }
        for kind in SignKind::ALL {
            self.signs(direction, kind);
        }
    }

    fn gaps(&mut self, direction: &Direction) {
        for gap in direction.gaps.iter().filter(|gap| gap.what == "data") {
            let (left, bottom) = self.place(gap.at, gap.start);
            let (right, top) = self.place(gap.until, gap.end);
            let name = gap_name(&gap.cause);
            let width = (right - left).max(LEAST);
            let height = (bottom - top).max(LEAST);
            // Writing to a `String` cannot fail.
            let _ = write!(
                self.drawn,
                "<rect class=\"{name}\" x=\"{left}\" y=\"{}\" width=\"{width}\" height=\"{height}\"><title>{} bytes missing, {} to {}: {}, {}</title></rect>",
                bottom - height,
                gap.end - gap.start,
                gap.start,
                gap.end,
                gap.cause,
                gap.ended,
            );
        }
    }

    /// A line that goes on level up to each point; without those that are beyond the picture, where they are `cut`.
    fn stairs(&mut self, name: &str, stairs: &Stairs, goes_on: bool) {
        let mut path = String::new();
        let mut pen: Option<(i32, i32)> = None;
        for (at, value) in &stairs.points {
            let value = value.filter(|value| goes_on || *value <= self.high);
            let x = self.place(*at, 0).0;
            if let Some((_, y)) = pen
                && pen != Some((x, y))
            {
                let _ = write!(path, "H{x}");
            }
            let Some(value) = value else {
                pen = None;
                continue;
            };
            let y = self.place(*at, value).1;
            match pen {
                None => _ = write!(path, "M{x} {y}"),
                Some((_, before)) if before != y => _ = write!(path, "V{y}"),
                Some(_) => {}
            }
            pen = Some((x, y));
        }
        if pen.is_some() {
            let _ = write!(path, "H{}", self.place(self.times.1, 0).0);
        }
        self.path(name, &path);
    }

    fn strokes(&mut self, direction: &Direction, class: Class) {
        let mut seen = BTreeSet::new();
        let mut path = String::new();
        for stroke in &direction.strokes(class).list {
            let begin = self.place(stroke.at, stroke.low);
            let end = self.place(stroke.until, stroke.high);
            // Many strokes are the same on paper.
            if seen.insert((begin, end)) {
                let _ = write!(path, "M{} {}L{} {}", begin.0, begin.1, end.0, end.1);
            }
        }
        self.path(class_name(class), &path);
    }

    fn signs(&mut self, direction: &Direction, kind: SignKind) {
        let mut seen = BTreeSet::new();
        let mut path = String::new();
        for sign in direction.track.signs.iter().filter(|sign| sign.kind == kind) {
            let (x, y) = self.place(sign.at, sign.position);
            if !seen.insert((x, y)) {
                continue;
            }
            let _ = match kind {
                SignKind::Syn => write!(path, "M{} {y}l5 -5l5 5l-5 5z", x - 5),
                SignKind::Fin => write!(path, "M{} {}h8v8h-8z", x - 4, y - 4),
                SignKind::Rst => write!(path, "M{} {}l8 8m0 -8l-8 8", x - 4, y - 4),
                SignKind::ZeroWindow => write!(path, "M{} {}h10M{x} {}v5", x - 5, y - 2, y - 7),
            };
        }
        let name = match kind {
            SignKind::Syn => "seq-syn",
            SignKind::Fin => "seq-fin",
            SignKind::Rst => "seq-rst",
            SignKind::ZeroWindow => "seq-zero",
        };
        self.path(name, &path);
    }

    fn path(&mut self, name: &str, path: &str) {
        if !path.is_empty() {
            let _ = write!(self.drawn, "<path class=\"{name}\" d=\"{path}\"/>");
        }
    }
}

/// Seconds, with as many digits as the picture's span needs.
fn seconds_label(at: f64, span: f64) -> String {
    let digits = (1.0 - span.log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{at:.digits$} s")
}

/// A sequence number as a number of bytes.
fn number_label(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", bytes(value.abs() as u64))
}
