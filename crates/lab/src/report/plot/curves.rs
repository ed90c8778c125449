//! Values over others: lines, points, what they may be between, and what means something.

use plotters::backend::SVGBackend;
use plotters::chart::{ChartBuilder, ChartContext, SeriesLabelPosition};
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::types::RangedCoordf64;
use plotters::element::{
    Circle, Cross, EmptyElement, PathElement, Rectangle, Text, TriangleMarker,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, ShapeStyle};

use super::{Area, Axis, Chart, Dot, Drawn, Palette, Series, tick};

type Context<'a, 'b> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

pub(super) fn draw(area: &Area<'_>, chart: &Chart, palette: Palette) -> Drawn {
    let Chart::Curves { x, y, series, marks, has_diagonal } = chart else { return Ok(()) };
    let dots = || series.iter().flat_map(|series| finite(&series.dots));
    let ends = dots().flat_map(|dot| [dot.x]).chain(marks.iter().map(|mark| mark.x));
    let mut right = top(ends, if x.is_share { 0.01 } else { 1.0 });
    let heights = dots().flat_map(|dot| [dot.y, dot.range.map_or(dot.y, |(_, high)| high)]);
    let mut up = top(heights, if y.is_share { 0.01 } else { 1.0 });
    if y.is_share {
        up = up.min(1.02);
    }
    if *has_diagonal {
        (right, up) = (right.max(up), right.max(up));
    }
    let mut context = ChartBuilder::on(area)
        .margin(14)
        .x_label_area_size(52)
        .y_label_area_size(78)
        .build_cartesian_2d(0.0..right, 0.0..up)?;
    mesh(&mut context, (x, y), palette)?;
    if *has_diagonal {
        let end = right.min(up);
        context.draw_series([PathElement::new(
            vec![(0.0, 0.0), (end, end)],
            palette.text().mix(0.5),
        )])?;
    }
    for mark in marks.iter().filter(|mark| mark.x.is_finite()) {
        let style = palette.text().mix(0.55).stroke_width(1);
        context.draw_series([PathElement::new(vec![(mark.x, 0.0), (mark.x, up)], style)])?;
        // Left of the line where there is no room at its right.
        let is_right = mark.x < right * 0.7;
        let anchor = Pos::new(if is_right { HPos::Left } else { HPos::Right }, VPos::Top);
        let style = palette.font(13.0).pos(anchor);
        let by = if is_right { 5 } else { -5 };
        let label = EmptyElement::at((mark.x, up)) + Text::new(mark.label.clone(), (by, 2), style);
        context.draw_series([label])?;
    }
    for (number, series) in series.iter().enumerate() {
        put(&mut context, series, number, palette)?;
    }
    if !series.is_empty() {
        context
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .margin(16)
            .label_font(palette.font(13.0))
            .background_style(palette.page().mix(0.85))
            .border_style(palette.faint())
            .draw()?;
    }
    Ok(())
}

fn finite(dots: &[Dot]) -> impl Iterator<Item = &Dot> {
    dots.iter().filter(|dot| dot.x.is_finite() && dot.y.is_finite())
}

/// The end of an axis: a little above the highest value.
fn top(values: impl Iterator<Item = f64>, least: f64) -> f64 {
    values.filter(|value| value.is_finite()).fold(least, f64::max) * 1.05
}

fn mesh(context: &mut Context<'_, '_>, (x, y): (&Axis, &Axis), palette: Palette) -> Drawn {
    context
        .configure_mesh()
        .x_desc(x.label.clone())
        .y_desc(y.label.clone())
        .axis_desc_style(palette.font(15.0))
        .label_style(palette.font(13.0))
        .x_label_formatter(&|value| tick(*value, x.is_share))
        .y_label_formatter(&|value| tick(*value, y.is_share))
        .axis_style(palette.text().mix(0.6))
        .bold_line_style(palette.faint())
        .light_line_style(palette.faint().mix(0.0))
        .x_labels(9)
        .y_labels(8)
        .draw()?;
    Ok(())
}

/// Series are told apart by their shape, too.
fn put(context: &mut Context<'_, '_>, series: &Series, number: usize, palette: Palette) -> Drawn {
    let color = palette.series(number);
    let style = ShapeStyle::from(color).filled();
    for dot in finite(&series.dots) {
        if let Some((low, high)) =
            dot.range.filter(|(low, high)| low.is_finite() && high.is_finite())
        {
            let ends = vec![(dot.x, low.max(0.0)), (dot.x, high)];
            context.draw_series([PathElement::new(ends, color.mix(0.6).stroke_width(1))])?;
        }
    }
    if series.is_line {
        let line: Vec<_> = finite(&series.dots).map(|dot| (dot.x, dot.y)).collect();
        context.draw_series([PathElement::new(line, color.stroke_width(2))])?;
    }
    let places = || finite(&series.dots).map(|dot| (dot.x, dot.y));
    let name = series.name.clone();
    match number % 4 {
        0 => context
            .draw_series(places().map(|at| Circle::new(at, 4, style)))?
            .label(name)
            .legend(move |at| Circle::new(at, 4, style)),
        1 => context
            .draw_series(places().map(|at| TriangleMarker::new(at, 6, style)))?
            .label(name)
            .legend(move |at| TriangleMarker::new(at, 6, style)),
        2 => context
            .draw_series(
                places().map(|at| EmptyElement::at(at) + Rectangle::new([(-4, -4), (4, 4)], style)),
            )?
            .label(name)
            .legend(move |(x, y)| Rectangle::new([(x - 4, y - 4), (x + 4, y + 4)], style)),
        _ => context
            .draw_series(places().map(|at| Cross::new(at, 5, color.stroke_width(2))))?
            .label(name)
            .legend(move |at| Cross::new(at, 5, color.stroke_width(2))),
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Mark, Plot};
    use super::*;

    fn dot(x: f64, y: f64) -> Dot {
        Dot { x, y, range: Some((y * 0.9, y * 1.1)) }
    }

    fn plot(series: Vec<Series>) -> Plot {
        let axis = |label: &str, is_share| Axis { label: label.to_owned(), is_share };
        Plot {
            title: "t".to_owned(),
            caption: String::new(),
            chart: Chart::Curves {
                x: axis("rate <frames/s>", false),
                y: axis("loss", true),
                series,
                marks: vec![Mark { x: 250e3, label: "knee & more".to_owned() }],
                has_diagonal: false,
            },
        }
    }

    fn series(dots: Vec<Dot>) -> Series {
        Series { name: "one".to_owned(), dots, is_line: true }
    }

    #[test]
    fn every_value_is_drawn_and_no_other() {
        let dots = |number: u32| (0..number).map(|at| dot(f64::from(at) * 1e4, 0.5)).collect();
        for palette in [Palette::Light, Palette::Dark] {
            let svg = plot(vec![series(dots(17))]).svg(palette);
            assert_eq!(svg.matches("<circle").count(), 17 + 1, "and that of the legend: {svg}");
            assert!(
                svg.contains("rate &lt;frames/s&gt;") && svg.contains("knee &amp; more"),
                "{svg}"
            );
            assert_eq!(svg, plot(vec![series(dots(17))]).svg(palette), "it is the same each time");
        }
        let mut some = dots(5);
        some.extend([dot(f64::NAN, 0.1), dot(1e5, f64::INFINITY)]);
        let mut wrong = plot(vec![series(some)]);
        if let Chart::Curves { marks, .. } = &mut wrong.chart {
            marks.push(Mark { x: f64::NAN, label: "nowhere".to_owned() });
        }
        let svg = wrong.svg(Palette::Light);
        assert_eq!(svg.matches("<circle").count(), 5 + 1, "and that of the legend");
        assert!(!svg.contains("nowhere"), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn nothing_and_much_can_be_drawn() {
        for number in [0, 1, 9] {
            let all = vec![series(vec![dot(1e5, 0.3)]); number];
            let svg = plot(all).svg(Palette::Dark);
            assert!(svg.trim_end().ends_with("</svg>"), "{svg}");
        }
    }
}
