//! Values over others: lines, points, what they may be between, and what means something.

use plotters::chart::ChartBuilder;
use plotters::coord::ranged1d::Ranged as _;
use plotters::element::{PathElement, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, RGBColor, ShapeStyle};

use super::frame::{Key, SIDE, clean, dashes, line, point};
use super::letters::{shorten, width, wrap};
use super::{Area, Axis, Chart, Direction, Dot, Drawn, Mark, Palette, Series, Span, WIDTH};

/// Pixels of what lies between the axes, of labels below it, and at its left.
const HEIGHT: i32 = 340;
const BELOW: i32 = 58;
const LEFT: i32 = 88;

const LABEL: f64 = 11.5;
const LABEL_LINE: i32 = 16;
/// Letters of what an axis has.
const AXIS: f64 = 13.0;
/// Pixels at the right for labels of lines across, at most.
const MOST_RIGHT: i32 = 170;

pub(super) fn height(series: &[Series], marks: &[Mark]) -> u32 {
    (above(series, marks) + HEIGHT + BELOW) as u32
}

/// Pixels above what lies between the axes.
fn above(series: &[Series], marks: &[Mark]) -> i32 {
    let rows = marks.iter().filter(|mark| mark.on == Direction::X).count() as i32;
    key(series).height() + 10 + rows * LABEL_LINE
}

fn key(series: &[Series]) -> Key {
    Key::new(series.iter().map(|series| series.name.as_str()))
}

/// What has no place on the axes.
pub(super) fn unplaced(
    (x, y): (&Axis, &Axis),
    series: &[Series],
    marks: &[Mark],
) -> Vec<(String, usize)> {
    let dots = || series.iter().flat_map(|series| &series.dots);
    let is_unknown = |dot: &&Dot| !dot.x.is_finite() || !dot.y.is_finite();
    let is_off = |dot: &&Dot| !is_unknown(dot) && (!x.has(dot.x) || !y.has(dot.y));
    let wrong = |mark: &&Mark| !axis(mark, (x, y)).has(mark.at);
    vec![
        ("values that are unknown".to_owned(), dots().filter(is_unknown).count()),
        (
            "values of 0, which a logarithmic axis does not have".to_owned(),
            dots().filter(is_off).count(),
        ),
        ("lines without a place".to_owned(), marks.iter().filter(wrong).count()),
    ]
}

fn axis<'a>(mark: &Mark, (x, y): (&'a Axis, &'a Axis)) -> &'a Axis {
    match mark.on {
        Direction::X => x,
        Direction::Y => y,
    }
}

/// What lies between the axes, in pixels.
struct Field {
    spans: [Span; 2],
    x: (i32, i32),
    /// From the bottom to the top.
    y: (i32, i32),
}

impl Field {
    fn at(&self, x: f64, y: f64) -> (i32, i32) {
        (self.spans[0].map(&x, self.x), self.spans[1].map(&y, self.y))
    }
}

pub(super) fn draw(area: &Area<'_>, chart: &Chart, palette: Palette) -> Drawn {
    let Chart::Curves { x, y, series, marks, has_diagonal } = chart else { return Ok(()) };
    let placed = |on: Direction, axis: &Axis| {
        let here = |mark: &&Mark| mark.on == on && axis.has(mark.at);
        marks.iter().filter(here).collect::<Vec<_>>()
    };
    let (upright, across) = (placed(Direction::X, x), placed(Direction::Y, y));
    let labels = across.iter().map(|mark| wrap(&clean(&mark.label), LABEL, MOST_RIGHT - 12));
    let labels: Vec<_> = labels.collect();
    let widest = labels.iter().flatten().map(|text| width(text, LABEL)).max();
    let right = widest.map_or(24, |widest| widest + 12);
    let top = above(series, marks);
    let field = Field {
        spans: spans((x, y), series, (&upright, &across), *has_diagonal),
        x: (LEFT, WIDTH as i32 - right - SIDE),
        y: (top + HEIGHT, top),
    };
    mesh(area, (x, y), &field, palette)?;
    if *has_diagonal {
        let [low, high] = diagonal(&field.spans);
        let style = palette.text().mix(0.5).stroke_width(1);
        area.draw(&PathElement::new(vec![field.at(low, low), field.at(high, high)], style))?;
    }
    put_upright(area, &upright, &field, palette)?;
    put_across(area, &across, &labels, &field, palette)?;
    for (number, (series, at)) in series.iter().zip(spread(series, (x, y), &field)).enumerate() {
        put(area, (series, number), &at, (x, y), &field, palette)?;
    }
    key(series).draw(area, palette, |number, (x, y)| {
        if series[number].is_line {
            let style = palette.series(number).stroke_width(2);
            line(area, vec![(x - 14, y), (x + 14, y)], dashes(number), style)?;
        }
        point(area, number, (x, y), palette)
    })
}

/// Pixels between points of several curves that would lie on each other.
const APART: i32 = 9;

/// Where the points of each series are drawn: those of curves that would lie on each other stand side by side.
fn spread(series: &[Series], axes: (&Axis, &Axis), field: &Field) -> Vec<Vec<(i32, i32)>> {
    let mut placed: Vec<(usize, (i32, i32))> = Vec::new();
    let mut all = Vec::new();
    for (number, one) in series.iter().enumerate() {
        let mut places = Vec::new();
        for dot in drawn(std::slice::from_ref(one), axes) {
            let (x, y) = field.at(dot.x, dot.y);
            let is_free = |x: &i32| {
                let touches = |(of, (other, up)): &(usize, (i32, i32))| {
                    *of != number && (other - x).abs() < APART && (up - y).abs() < APART
                };
                !placed.iter().any(touches)
            };
            let steps = [0, 1, -1, 2, -2, 3, -3].map(|step| x + step * APART);
            let at = steps.into_iter().filter(|_| one.is_line).find(is_free).unwrap_or(x);
            places.push((at, y));
        }
        placed.extend(places.iter().map(|at| (number, *at)));
        all.push(places);
    }
    // Where curves have more points than there is room for, each stays where it is.
    let points: i32 = all.iter().map(|places| places.len() as i32).sum();
    if points * APART > 2 * (field.x.1 - field.x.0) {
        let of = |one: &Series| {
            let dots = drawn(std::slice::from_ref(one), axes);
            dots.map(|dot| field.at(dot.x, dot.y)).collect()
        };
        return series.iter().map(of).collect();
    }
    all
}

fn spans(
    (x, y): (&Axis, &Axis),
    series: &[Series],
    (upright, across): (&[&Mark], &[&Mark]),
    has_diagonal: bool,
) -> [Span; 2] {
    let dots = || drawn(series, (x, y));
    let at = |marks: &[&Mark]| marks.iter().map(|mark| mark.at).collect::<Vec<_>>();
    let ends = |dot: &Dot| [dot.y, dot.range.map_or(dot.y, |(_, high)| high)];
    let mut rights: Vec<_> = dots().map(|dot| dot.x).chain(at(upright)).collect();
    let mut ups: Vec<_> = dots().flat_map(ends).chain(at(across)).collect();
    if has_diagonal {
        let both = [rights.clone(), ups.clone()].concat();
        (rights, ups) = (both.clone(), both);
    }
    [x.span(rights.into_iter()), y.span(ups.into_iter())]
}

fn drawn<'a>(series: &'a [Series], (x, y): (&'a Axis, &'a Axis)) -> impl Iterator<Item = &'a Dot> {
    series.iter().flat_map(|series| &series.dots).filter(|dot| x.has(dot.x) && y.has(dot.y))
}

/// Where both axes have the same value.
fn diagonal([x, y]: &[Span; 2]) -> [f64; 2] {
    [x.low.max(y.low), x.high.min(y.high)]
}

fn mesh(area: &Area<'_>, (x, y): (&Axis, &Axis), field: &Field, palette: Palette) -> Drawn {
    let [right, up] = &field.spans;
    let (_, height) = area.dim_in_pixel();
    let mut context = ChartBuilder::on(area)
        .margin_top(field.y.1)
        .margin_right(WIDTH as i32 - field.x.1)
        .margin_bottom(height as i32 - field.y.0 - BELOW + 6)
        .margin_left(6)
        .x_label_area_size(BELOW - 6)
        .y_label_area_size(LEFT - 6)
        .build_cartesian_2d(right.clone(), up.clone())?;
    context
        .configure_mesh()
        .x_desc(clean(&x.words(right)))
        .y_desc(shorten(&clean(&y.words(up)), AXIS, field.y.0 - field.y.1))
        .axis_desc_style(palette.font(AXIS))
        .label_style(palette.font(12.0))
        .axis_style(palette.text().mix(0.6))
        .bold_line_style(palette.faint())
        .light_line_style(palette.faint().mix(0.0))
        .x_labels(9)
        .y_labels(8)
        .draw()?;
    Ok(())
}

fn color(mark: &Mark, palette: Palette) -> RGBColor {
    mark.series.map_or(*palette.text(), |series| palette.series(series))
}

/// A line upwards, with its label above the axes.
struct Flag<'a> {
    mark: &'a Mark,
    x: i32,
    label: String,
    is_right: bool,
}

impl<'a> Flag<'a> {
    fn new(mark: &'a Mark, field: &Field) -> Self {
        let x = field.at(mark.at, field.spans[1].low).0;
        // At the left of its line where there is more room than at its right.
        let rooms = (WIDTH as i32 - SIDE - x - 5, x - 5 - SIDE);
        let label = clean(&mark.label);
        let is_right = width(&label, LABEL) <= rooms.0 || rooms.0 >= rooms.1;
        let label = shorten(&label, LABEL, if is_right { rooms.0 } else { rooms.1 });
        Self { mark, x, label, is_right }
    }
}

/// Lines upwards; each label has a row of its own above the axes, so that it touches no curve and no other. Rows are in
/// the order in which lines cross the fewest labels.
fn put_upright(area: &Area<'_>, marks: &[&Mark], field: &Field, palette: Palette) -> Drawn {
    let mut flags: Vec<_> = marks.iter().map(|mark| Flag::new(mark, field)).collect();
    flags.sort_by_key(|flag| (flag.is_right, if flag.is_right { flag.x } else { -flag.x }));
    let (bottom, top) = field.y;
    let rows = flags.len() as i32;
    let middle = |row: i32| top - 10 - (rows - 1 - row) * LABEL_LINE;
    for (row, flag) in (0..).zip(&flags) {
        let style = color(flag.mark, palette).stroke_width(1);
        line(area, vec![(flag.x, bottom), (flag.x, middle(row) - 6)], Some((2, 3)), style)?;
    }
    for (row, flag) in (0..).zip(&flags) {
        let (wide, y) = (width(&flag.label, LABEL), middle(row));
        let (begin, anchor) =
            if flag.is_right { (flag.x + 3, HPos::Left) } else { (flag.x - 7 - wide, HPos::Right) };
        let corners = [(begin, y - 7), (begin + wide + 4, y + 7)];
        area.draw(&Rectangle::new(corners, palette.page().filled()))?;
        let at = (if flag.is_right { flag.x + 5 } else { flag.x - 5 }, y);
        let style = palette.font(LABEL).pos(Pos::new(anchor, VPos::Center));
        area.draw(&Text::new(flag.label.clone(), at, style))?;
    }
    Ok(())
}

/// Lines to the right; labels are at the right of the axes, below each other.
fn put_across(
    area: &Area<'_>,
    marks: &[&Mark],
    labels: &[Vec<String>],
    field: &Field,
    palette: Palette,
) -> Drawn {
    let mut marks: Vec<_> = marks.iter().zip(labels).collect();
    marks.sort_by(|one, other| other.0.at.total_cmp(&one.0.at));
    let mut free = field.y.1 - LABEL_LINE;
    for (mark, lines) in marks {
        let y = field.at(field.spans[0].low, mark.at).1;
        let style = ShapeStyle::from(color(mark, palette)).stroke_width(2);
        line(area, vec![(field.x.0, y), (field.x.1, y)], Some((7, 5)), style)?;
        let high = lines.len() as i32 * LABEL_LINE;
        let begin = (y - high / 2).max(free);
        free = begin + high;
        for (row, text) in (0..).zip(lines) {
            let at = (field.x.1 + 8, begin + row * LABEL_LINE + LABEL_LINE / 2);
            let anchor = Pos::new(HPos::Left, VPos::Center);
            area.draw(&Text::new(text.clone(), at, palette.font(LABEL).pos(anchor)))?;
        }
    }
    Ok(())
}

fn put(
    area: &Area<'_>,
    (series, number): (&Series, usize),
    at: &[(i32, i32)],
    axes: (&Axis, &Axis),
    field: &Field,
    palette: Palette,
) -> Drawn {
    let color = palette.series(number);
    let dots: Vec<_> = drawn(std::slice::from_ref(series), axes).collect();
    for (dot, place) in dots.iter().zip(at) {
        let ends = dot.range.filter(|(low, high)| low.is_finite() && high.is_finite());
        if let Some((low, high)) = ends.filter(|(low, high)| low < high) {
            // The low end may be where the axis does not go to.
            let least = field.spans[1].low;
            let up = |value: f64| (place.0, field.at(dot.x, value).1);
            let (low, high) = (up(low.max(least)), up(high));
            let style = color.mix(0.7).stroke_width(1);
            area.draw(&PathElement::new(vec![low, high], style))?;
            for (x, y) in [low, high] {
                area.draw(&PathElement::new(vec![(x - 3, y), (x + 3, y)], style))?;
            }
        }
    }
    if series.is_line && dots.len() > 1 {
        line(area, at.to_vec(), dashes(number), color.stroke_width(2))?;
    }
    for place in at {
        point(area, number, *place, palette)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Plot;
    use super::*;
    use crate::paper::Quantity;

    fn dot(x: f64, y: f64) -> Dot {
        Dot { x, y, range: Some((y * 0.9, y * 1.1)) }
    }

    fn plot(x: Axis, series: Vec<Series>, marks: Vec<Mark>) -> Plot {
        let y = Axis::share("loss");
        Plot::new("t", "", Chart::Curves { x, y, series, marks, has_diagonal: false })
    }

    fn series(dots: Vec<Dot>) -> Series {
        Series { name: "one".to_owned(), dots, is_line: true }
    }

    #[test]
    fn every_value_is_drawn_and_what_is_not_is_counted() {
        let dots = |number: u32| (0..number).map(|at| dot(f64::from(at) * 1e4, 0.5)).collect();
        let knee = || vec![Mark::x(5e4, "knee & more")];
        let of = |dots| plot(Axis::new("rate <frames/s>"), vec![series(dots)], knee());
        for palette in [Palette::Light, Palette::Dark] {
            let svg = of(dots(17)).svg(palette);
            assert_eq!(svg.matches("<circle").count(), 17 + 1, "and that of the key: {svg}");
            assert!(
                svg.contains("rate &lt;frames/s&gt;") && svg.contains("knee &amp; more"),
                "{svg}"
            );
            assert_eq!(svg, of(dots(17)).svg(palette), "it is the same each time");
        }
        assert_eq!(of(dots(17)).note(), None);
        let mut some = dots(5);
        some.extend([dot(f64::NAN, 0.1), dot(1e5, f64::INFINITY)]);
        let mut wrong = of(some);
        if let Chart::Curves { marks, .. } = &mut wrong.chart {
            marks.push(Mark::x(f64::NAN, "nowhere"));
        }
        let note = wrong.note().unwrap();
        assert_eq!(note, "Not drawn: values that are unknown (2); lines without a place (1).");
        let svg = wrong.svg(Palette::Light);
        assert_eq!(svg.matches("<circle").count(), 5 + 1, "and that of the key");
        assert!(!svg.contains("nowhere") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn no_label_is_longer_than_its_axis() {
        let told = |label: &str| {
            let series = vec![series(vec![dot(1.0, 0.5)])];
            let (x, y) = (Axis::new("x"), Axis::share(label));
            let chart = Chart::Curves { x, y, series, marks: vec![], has_diagonal: false };
            Plot::new("t", "", chart).svg(Palette::Light)
        };
        let long = "the share of all the frames that were sent and came to nobody at all";
        assert!(!told(long).contains(long) && told(long).contains("the share of all the frames"));
        for quantity in [
            Quantity::KernelLoss,
            Quantity::CpuPeak,
            Quantity::Deepest,
            Quantity::Late,
            Quantity::LargestShare,
        ] {
            assert!(told(quantity.label()).contains(quantity.label()), "{quantity:?}");
        }
    }

    #[test]
    fn nothing_is_put_at_zero_of_a_logarithm() {
        let all = vec![dot(0.0, 0.5), dot(1_048_576.0, 0.3), dot(4_194_304.0, 0.1)];
        let of = |axis| plot(axis, vec![series(all.clone())], vec![]).without(3, "runs");
        let svg = of(Axis::bytes("ring")).svg(Palette::Light);
        assert_eq!(svg.matches("<circle").count(), 2 + 1, "{svg}");
        assert!(svg.contains("ring, MiB") && svg.contains("\n4\n"), "{svg}");
        let note = of(Axis::bytes("ring")).note().unwrap();
        let zero = "values of 0, which a logarithmic axis does not have (1)";
        assert_eq!(note, format!("Not drawn: {zero}; runs (3)."));
        assert_eq!(of(Axis::new("ring")).note().unwrap(), "Not drawn: runs (3).");
    }

    #[test]
    fn points_that_would_lie_on_each_other_stand_side_by_side() {
        let field = Field {
            spans: [
                Axis::new("x").span([1e5].into_iter()),
                Axis::share("y").span([1.0].into_iter()),
            ],
            x: (0, 700),
            y: (300, 0),
        };
        let axes = (&Axis::new("x"), &Axis::share("y"));
        let places = |number: usize, dots: u32| {
            let dots: Vec<_> = (1..=dots).map(|at| dot(1e5 / f64::from(at), 0.5)).collect();
            spread(&vec![series(dots); number], axes, &field)
        };
        let three = places(3, 2);
        let [first, second, third] = [three[0][0], three[1][0], three[2][0]];
        assert_eq!((second.0 - first.0, third.0 - first.0), (APART, -APART));
        assert_eq!((first.1, second.1), (second.1, third.1), "upwards they stay where they are");
        let dense = places(2, 400);
        assert_eq!(dense[0], dense[1], "there is no room for so many");
    }

    #[test]
    fn nothing_and_much_can_be_drawn() {
        for number in [0, 1, 9] {
            let all = vec![series(vec![dot(1e5, 0.3)]); number];
            let svg = plot(Axis::new("x"), all, vec![]).svg(Palette::Dark);
            assert!(svg.trim_end().ends_with("</svg>"), "{svg}");
        }
    }
}
