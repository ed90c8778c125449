//! Plots as SVG.

mod axis;
mod bars;
mod curves;
mod frame;
mod heat;
mod intervals;
mod letters;
mod palette;
mod said;
mod waterfall;

use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea as _};

use self::axis::Span;
pub(in crate::report) use self::axis::tick;
pub use self::axis::{Axis, Scale, Unit};
pub use self::palette::Palette;
use super::number::exact;

/// A picture with a caption.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// The title above the plot.
    pub title: String,
    /// What one sees, and how to read it.
    pub caption: String,
    /// The kind of chart, with its values.
    pub chart: Chart,
    /// What is not drawn though it was measured: why, and how many.
    pub left_out: Vec<(String, usize)>,
    /// What the names of all curves or bars have in common, which stands in no name.
    common: Vec<String>,
    /// Names of curves that are 0 at every point.
    flat: Vec<String>,
}

/// The kind of chart, with its values.
#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    /// Series of points, joined by lines.
    Curves {
        /// The horizontal axis.
        x: Axis,
        /// The vertical axis.
        y: Axis,
        /// The series that are compared.
        series: Vec<Series>,
        /// Values that mean something.
        marks: Vec<Mark>,
        /// Whether the line is drawn on which both values are the same.
        has_diagonal: bool,
    },
    /// Values side by side, in groups.
    Bars(Bars),
    /// What values may be, each in a line.
    Intervals(Intervals),
    /// Values over two others, as colours.
    HeatMap(HeatMap),
    /// What each stage lost of something.
    Waterfall(Waterfall),
}

/// Values that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name of the series, for the legend.
    pub name: String,
    /// The points of the series.
    pub dots: Vec<Dot>,
    /// Whether a line joins them.
    pub is_line: bool,
}

/// A point of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dot {
    /// Value on the horizontal axis.
    pub x: f64,
    /// Value on the vertical axis.
    pub y: f64,
    /// What it may be between.
    pub range: Option<(f64, f64)>,
}

/// A line across a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Value on the axis that the mark stands at.
    pub at: f64,
    /// On which axis that is.
    pub on: Direction,
    /// Text beside the mark.
    pub label: String,
    /// The series that it belongs to, if it does to one: it has its colour.
    pub series: Option<usize>,
}

/// An axis of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// At a value of the horizontal axis.
    X,
    /// At a value of the vertical axis.
    Y,
}

/// Values side by side, in groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// The vertical axis.
    pub y: Axis,
    /// Names of groups, and what they are.
    pub groups: (String, Vec<String>),
    /// What is compared: a name, and a value for each group.
    pub series: Vec<(String, Vec<Value>)>,
}

/// A value as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Value {
    /// The value is known to a number.
    Exactly(f64),
    /// It is this or more.
    AtLeast(f64),
    /// It is this or less.
    AtMost(f64),
    /// The value is not known.
    #[default]
    Unknown,
}

/// What values may be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Intervals {
    /// The horizontal axis.
    pub x: Axis,
    /// The value that means that nothing differs.
    pub none: f64,
    /// The rows from top to bottom.
    pub rows: Vec<Interval>,
}

/// What a value may be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// Text at the left of the row.
    pub label: String,
    /// The value of the row.
    pub value: Value,
    /// The least and the most that it may be: `None` for an open end.
    pub ends: [Option<f64>; 2],
    /// Text beside the value.
    pub words: String,
    /// Whether it surely differs from none.
    pub is_apart: bool,
}

/// Shares over two lists of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatMap {
    /// What is to the right, and each of it.
    pub x: (String, Vec<String>),
    /// What is upwards, and each of it.
    pub y: (String, Vec<String>),
    /// What the colours tell.
    pub of: String,
    /// For each of y the shares of each of x; `None` where nothing is known.
    pub shares: Vec<Vec<Option<f64>>>,
}

/// What is left after each stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waterfall {
    /// How many there were before the first stage.
    pub all: u64,
    /// What became of them before it: sent, say, or arrived.
    pub begin: String,
    /// What became of it, in order.
    pub stages: Vec<Stage>,
    /// What is left in the end.
    pub left: String,
}

/// Where some were lost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stage {
    /// The name of the stage.
    pub name: String,
    /// How many; `None` where nobody knows.
    pub lost: Option<u64>,
}

/// Pixels from left to right.
const WIDTH: u32 = 860;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

impl Mark {
    /// A vertical line at a value of the horizontal axis.
    #[must_use]
    pub fn x(at: f64, label: impl Into<String>) -> Self {
        Self { at, on: Direction::X, label: label.into(), series: None }
    }

    /// A line to the right.
    #[must_use]
    pub fn y(at: f64, label: impl Into<String>) -> Self {
        Self { on: Direction::Y, ..Self::x(at, label) }
    }

    /// It in the colour of a series.
    #[must_use]
    pub fn of(self, series: usize) -> Self {
        Self { series: Some(series), ..self }
    }
}

impl Value {
    /// A number that is known, or the end of what it may be.
    pub(super) fn number(self) -> Option<f64> {
        match self {
            Self::Exactly(value) | Self::AtLeast(value) | Self::AtMost(value) => {
                value.is_finite().then_some(value)
            }
            Self::Unknown => None,
        }
    }

    /// It in few letters.
    fn words(self, unit: Unit) -> String {
        let told = self.number().map(|number| tick(number, unit));
        match (self, told) {
            (Self::AtLeast(_), Some(told)) => format!("\u{2265} {told}"),
            (Self::AtMost(_), Some(told)) => format!("\u{2264} {told}"),
            (_, told) => told.unwrap_or_else(|| "?".to_owned()),
        }
    }
}

impl Plot {
    /// One of which everything is drawn, but for curves that are 0 everywhere: its note says that.
    #[must_use]
    pub fn new(title: impl Into<String>, caption: impl Into<String>, mut chart: Chart) -> Self {
        let mut flat = chart.take_flat();
        let common = chart.take_common(&mut flat);
        let (title, caption) = (title.into(), caption.into());
        Self { title, caption, chart, left_out: Vec::new(), common, flat }
    }

    /// Whether there is nothing to draw: then the note says all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chart.is_empty()
    }

    /// It without so many, which are not drawn for a reason.
    #[must_use]
    pub fn without(mut self, number: usize, why: impl Into<String>) -> Self {
        if number > 0 {
            self.left_out.push((why.into(), number));
        }
        self
    }

    /// What no picture shows: words that all names have, curves that are 0 everywhere, and what is not drawn, counted.
    /// `None` where there is nothing of that.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let unplaced = match &self.chart {
            Chart::Curves { x, y, series, marks, .. } => curves::unplaced((x, y), series, marks),
            Chart::Bars(bars) => bars::unplaced(bars),
            Chart::Intervals(intervals) => intervals::unplaced(intervals),
            Chart::HeatMap(map) => heat::unplaced(map),
            Chart::Waterfall(waterfall) => waterfall::unplaced(waterfall),
        };
        let all = unplaced.into_iter().chain(self.left_out.iter().cloned());
        let words: Vec<_> = all
            .filter(|(_, number)| *number > 0)
            .map(|(why, number)| format!("{why} ({})", exact(number as u64)))
            .collect();
        let nothing = (self.is_empty() && self.flat.is_empty())
            .then(|| "There is no picture, since no value is known.".to_owned());
        let common = (!self.common.is_empty())
            .then(|| format!("Common to all: {}.", self.common.join(", ")));
        let flat =
            (!self.flat.is_empty()).then(|| format!("0 at every point: {}.", self.flat.join("; ")));
        let without = (!words.is_empty()).then(|| format!("Not drawn: {}.", words.join("; ")));
        let all: Vec<_> = nothing.into_iter().chain(common).chain(flat).chain(without).collect();
        (!all.is_empty()).then(|| all.join(" "))
    }

    /// It for a page that has its title and its note beside it, in the colours of a light or of a dark one.
    #[must_use]
    pub fn svg(&self, palette: Palette) -> String {
        self.draw(palette, false)
    }

    /// It as a picture by itself, with its title and its note in it.
    #[must_use]
    pub fn picture(&self, palette: Palette) -> String {
        self.draw(palette, true)
    }

    fn draw(&self, palette: Palette, is_alone: bool) -> String {
        let note = self.note();
        let frame = frame::Frame::new(self, note.as_deref().filter(|_| is_alone), is_alone);
        let height = self.chart.height();
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, (WIDTH, frame.height(height)));
        let area = area.into_drawing_area();
        // A String takes everything, and a picture that ends early shows it.
        let _ = area
            .fill(&palette.page())
            .map_err(Into::into)
            .and_then(|()| frame.draw(&area, height, palette))
            .and_then(|()| {
                let inner = area.clone().shrink((0, frame.above()), (WIDTH, height));
                self.chart.draw(&inner, palette)
            })
            .and_then(|()| area.present().map_err(Into::into));
        drop(area);
        frame::described(&svg, self, note.as_deref())
    }
}

impl Chart {
    fn height(&self) -> u32 {
        match self {
            Self::Curves { series, marks, .. } => curves::height(series, marks),
            Self::Bars(bars) => bars::height(bars),
            Self::Intervals(intervals) => intervals::height(intervals),
            Self::HeatMap(map) => heat::height(map),
            Self::Waterfall(waterfall) => waterfall::height(waterfall),
        }
    }

    fn draw(&self, area: &Area<'_>, palette: Palette) -> Drawn {
        match self {
            Self::Curves { .. } => curves::draw(area, self, palette),
            Self::Bars(bars) => bars::draw(area, bars, palette),
            Self::Intervals(intervals) => intervals::draw(area, intervals, palette),
            Self::HeatMap(map) => heat::draw(area, map, palette),
            Self::Waterfall(waterfall) => waterfall::draw(area, waterfall, palette),
        }
    }
}

#[cfg(test)]
mod tests;
