//! Plots as SVG.

mod curves;
mod heat;
mod waterfall;

use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea as _};
use plotters::style::{FontDesc, FontFamily, FontStyle, RGBColor, TextStyle};

/// A picture with a caption.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// What one sees, and how to read it.
    pub caption: String,
    /// What is drawn.
    pub chart: Chart,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    /// Values over others.
    Curves {
        /// To the right.
        x: Axis,
        /// Upwards.
        y: Axis,
        /// What is compared.
        series: Vec<Series>,
        /// Values of x that mean something.
        marks: Vec<Mark>,
        /// Whether the line is drawn on which both values are the same.
        has_diagonal: bool,
    },
    /// Values over two others, as colours.
    HeatMap(HeatMap),
    /// What each stage lost of something.
    Waterfall(Waterfall),
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What it has, with its unit.
    pub label: String,
    /// Whether values are shares, to be told in percent.
    pub is_share: bool,
}

/// Values that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its values.
    pub dots: Vec<Dot>,
    /// Whether a line joins them.
    pub is_line: bool,
}

/// A value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dot {
    /// To the right.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// What it may be between.
    pub range: Option<(f64, f64)>,
}

/// A line across a plot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mark {
    /// Where.
    pub x: f64,
    /// What is there.
    pub label: String,
}

/// Shares over two lists of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatMap {
    /// What is to the right, and each of it.
    pub x: (String, Vec<String>),
    /// What is upwards, and each of it.
    pub y: (String, Vec<String>),
    /// For each of y the shares of each of x; `None` where nothing is known.
    pub shares: Vec<Vec<Option<f64>>>,
}

/// What is left after each stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waterfall {
    /// What there was.
    pub all: u64,
    /// What became of it, in order.
    pub stages: Vec<Stage>,
    /// What is left in the end.
    pub left: String,
}

/// Where some were lost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stage {
    /// Where.
    pub name: String,
    /// How many; `None` where nobody knows.
    pub lost: Option<u64>,
}

/// The colours of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

/// Pixels of a picture.
const WIDTH: u32 = 860;
const HEIGHT: u32 = 440;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

impl Palette {
    const fn text(self) -> &'static RGBColor {
        match self {
            Self::Light => &RGBColor(0x1c, 0x1f, 0x23),
            Self::Dark => &RGBColor(0xe6, 0xe9, 0xec),
        }
    }

    const fn page(self) -> RGBColor {
        match self {
            Self::Light => RGBColor(0xff, 0xff, 0xff),
            Self::Dark => RGBColor(0x14, 0x17, 0x1a),
        }
    }

    const fn faint(self) -> RGBColor {
        match self {
            Self::Light => RGBColor(0xd5, 0xda, 0xe0),
            Self::Dark => RGBColor(0x36, 0x3d, 0x45),
        }
    }

    /// Colours that readers tell apart who do not see all of them (after Okabe and Ito).
    const fn series(self, number: usize) -> RGBColor {
        const LIGHT: [RGBColor; 7] = [
            RGBColor(0x00, 0x72, 0xb2),
            RGBColor(0xd5, 0x5e, 0x00),
            RGBColor(0x00, 0x85, 0x63),
            RGBColor(0xb0, 0x4f, 0x8a),
            RGBColor(0x9a, 0x6b, 0x00),
            RGBColor(0x3a, 0x8f, 0xc4),
            RGBColor(0x44, 0x4a, 0x50),
        ];
        const DARK: [RGBColor; 7] = [
            RGBColor(0x56, 0xb4, 0xe9),
            RGBColor(0xf0, 0x8a, 0x3c),
            RGBColor(0x2e, 0xc4, 0xa0),
            RGBColor(0xe0, 0x94, 0xc0),
            RGBColor(0xf0, 0xe4, 0x42),
            RGBColor(0x8c, 0xa8, 0xff),
            RGBColor(0xb8, 0xc0, 0xc8),
        ];
        match self {
            Self::Light => LIGHT[number % LIGHT.len()],
            Self::Dark => DARK[number % DARK.len()],
        }
    }

    fn font(self, size: f64) -> TextStyle<'static> {
        let font = FontDesc::new(FontFamily::SansSerif, size, FontStyle::Normal);
        TextStyle::from(font).color(self.text())
    }
}

pub(super) fn draw(plot: &Plot, palette: Palette) -> String {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
    let drawn = area.fill(&palette.page()).map_err(Into::into).and_then(|()| match &plot.chart {
        Chart::Curves { .. } => curves::draw(&area, &plot.chart, palette),
        Chart::HeatMap(map) => heat::draw(&area, map, palette),
        Chart::Waterfall(waterfall) => waterfall::draw(&area, waterfall, palette),
    });
    // A String takes everything, and a picture that ends early shows it.
    let _ = drawn.and_then(|()| area.present().map_err(Into::into));
    drop(area);
    svg
}

/// A number at an axis.
pub(super) fn tick(value: f64, is_share: bool) -> String {
    let short = |value: f64| {
        let digits = if value.abs() >= 100.0 || value.fract().abs() < 1e-9 { 0 } else { 2 };
        let text = format!("{value:.digits$}");
        if digits > 0 { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    };
    if is_share {
        return short((value * 1e5).round() / 1e3) + " %";
    }
    match value.abs() {
        large if large >= 1e6 => short(value / 1e6) + "M",
        large if large >= 1e4 => short(value / 1e3) + "k",
        _ => short(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_short() {
        for (value, is_share, text) in [
            (0.0, false, "0"),
            (500.0, false, "500"),
            (1500.0, false, "1500"),
            (250_000.0, false, "250k"),
            (1_250_000.0, false, "1.25M"),
            (0.5, true, "50 %"),
            (0.0125, true, "1.25 %"),
            (1.0, true, "100 %"),
        ] {
            assert_eq!(tick(value, is_share), text);
        }
    }
}
