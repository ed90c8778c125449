//! The picture of traffic over time, as SVG whose colours are those of the page.

use netsniff_console::number::rate;
use plotters::backend::SVGBackend;
use plotters::drawing::IntoDrawingArea as _;
use plotters::element::Rectangle;
use plotters::style::{Color as _, RGBColor};

use super::axes::{Axis, axes, in_colours_of_the_page};
use super::table::moment;

/// Layers that can be told apart.
pub(crate) const COLOURS: usize = 8;

/// Amounts in spans of time, one layer on the other.
#[derive(Clone, Debug)]
pub(crate) struct Layers<'a> {
    /// What it shows.
    pub title: &'a str,
    /// When the first span begins, in nanoseconds since 1970.
    pub begin: i64,
    /// Nanoseconds of a span.
    pub width: i64,
    /// For each span the bytes of each layer.
    pub values: Vec<Vec<u128>>,
}

/// Pixels of the picture.
const SIZE: (u32, u32) = (920, 320);

/// A colour that nothing else in the picture has, so that it can become a name of the page's style.
const fn layer(number: usize) -> RGBColor {
    RGBColor(3, 3, (number % COLOURS) as u8)
}

impl Layers<'_> {
    /// The picture. Its colours are variables of the page: `--text`, `--line`, `--c0` and so on.
    pub(crate) fn svg(&self) -> String {
        let mut svg = String::new();
        // A String takes everything, and a picture that ends early shows it.
        let _ = self.draw(&mut svg);
        let mut svg = in_colours_of_the_page(&svg);
        for number in 0..COLOURS {
            svg = svg.replace(&format!("#0303{number:02X}"), &format!("var(--c{number})"));
        }
        let head = format!("<svg role=\"img\" aria-label=\"{}\"", self.title);
        svg.replacen("<svg", &head, 1)
    }

    fn draw(&self, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        let seconds = self.width as f64 / 1e9;
        let rates = |span: &[u128]| span.iter().map(|bytes| *bytes as f64 * 8.0 / seconds).sum();
        let most = self.values.iter().map(|span| rates(span)).fold(0.0_f64, f64::max);
        let spans = self.values.len();
        let is_short = (self.width as i128 * spans as i128) < 86_400_000_000_000;
        let x = Axis {
            range: 0.0..spans.max(1) as f64,
            labels: 6,
            label: &|at| self.label(*at, is_short),
        };
        let y = Axis {
            range: 0.0..(most * 1.05).max(1.0),
            labels: 5,
            label: &|value| rate(*value, "bit/s"),
        };
        let mut chart = axes(&area, &x, &y)?;
        for (at, span) in self.values.iter().enumerate() {
            let mut below = 0.0;
            for (number, bytes) in span.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
                let high = below + *bytes as f64 * 8.0 / seconds;
                // A little gap between spans, where there is room for it.
                let right = at as f64 + if spans > 120 { 1.0 } else { 0.9 };
                let corners = [(at as f64, below), (right, high)];
                let bar = Rectangle::new(corners, layer(number).filled());
                chart.draw_series(std::iter::once(bar))?;
                below = high;
            }
        }
        area.present()?;
        Ok(())
    }

    /// The time of day at a place, or the day where it is long.
    fn label(&self, at: f64, is_short: bool) -> String {
        let nanos = self.begin.saturating_add((at * self.width as f64) as i64);
        let text = moment(nanos);
        let (day, time) = text.split_once(' ').unwrap_or((&text, ""));
        if !is_short {
            return format!("{day} {}", time.get(..5).unwrap_or_default());
        }
        let part = nanos.rem_euclid(1_000_000_000) / 1_000_000;
        if self.width < 1_000_000_000 { format!("{time}.{part:03}") } else { time.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_the_pages_colours_alone() {
        let values = vec![vec![1000, 2000], vec![0, 0], vec![0, 500]];
        let plot = Layers { title: "t", begin: 0, width: 1_000_000_000, values };
        let svg = plot.svg();
        assert_eq!(svg.matches("var(--c0)").count(), 1, "{svg}");
        assert_eq!(svg.matches("var(--c1)").count(), 2);
        assert!(svg.contains("00:00:0") && svg.contains("kbit/s"), "{svg}");
        assert!(!svg.contains("=\"#"), "{svg}");
        assert!(!svg.contains("style="), "the page's policy allows none");
    }
}
