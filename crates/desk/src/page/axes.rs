//! The frame of a picture: axes with their labels, in letters and colours of the page.

use core::ops::Range;

use plotters::backend::SVGBackend;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::drawing::DrawingArea;
use plotters::prelude::Cartesian2d;
use plotters::style::{Color as _, FontDesc, FontFamily, FontStyle, RGBColor, TextStyle};

/// The backend divides sizes by this, so that letters of 12 pixels are asked for as 14.88.
const PER_PIXEL: f64 = 1.24;
/// Colours that nothing else in a picture has, so that each can become a name of the page's style.
const TEXT: RGBColor = RGBColor(1, 1, 1);
const LINE: RGBColor = RGBColor(2, 2, 2);

/// A picture with its axes, to be drawn into.
pub(crate) type Chart<'a> =
    ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// What an axis shows.
pub(crate) struct Axis<'a> {
    /// Its values.
    pub range: Range<f64>,
    /// How many of them have a label, about.
    pub labels: usize,
    /// A value as its label.
    pub label: &'a dyn Fn(&f64) -> String,
}

/// Draws the axes.
///
/// # Errors
///
/// What the backend fails at.
pub(crate) fn axes<'a>(
    area: &DrawingArea<SVGBackend<'a>, Shift>,
    x: &Axis<'_>,
    y: &Axis<'_>,
) -> Result<Chart<'a>, Box<dyn std::error::Error>> {
    let font = FontDesc::new(FontFamily::SansSerif, 12.0 * PER_PIXEL, FontStyle::Normal);
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .margin_right(24)
        .x_label_area_size(28)
        .y_label_area_size(92)
        .build_cartesian_2d(x.range.clone(), y.range.clone())
        .map_err(|error| error.to_string())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(LINE)
        .light_line_style(LINE.mix(0.0))
        .axis_style(LINE)
        .label_style(TextStyle::from(font).color(&TEXT))
        .x_labels(x.labels)
        .y_labels(y.labels)
        .x_label_formatter(x.label)
        .y_label_formatter(y.label)
        .draw()
        .map_err(|error| error.to_string())?;
    Ok(chart)
}

/// A picture whose letters and lines have the colours of the page, which are its variables `--text` and `--line`.
pub(crate) fn in_colours_of_the_page(svg: &str) -> String {
    svg.replace("#010101", "var(--text)").replace("#020202", "var(--line)")
}
