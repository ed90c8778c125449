//! Every kind of plot, as a reader of XML sees it.

use super::letters::width;
use super::*;
use crate::report::tests::xml;

/// Names that no program should trip over.
const EVIL: &str = "a<b> & \"c\" 'd' \u{1} ]]>";

fn text(words: &str) -> String {
    format!("{words} {EVIL}")
}

fn curves(x: Axis, marks: Vec<Mark>) -> Chart {
    let series = |number: u32| {
        let dots = (0..12_u32).map(|at| {
            let x = 1024.0 * 2_f64.powf(at.into());
            let y = 1.0 / f64::from(at + number + 1);
            Dot { x, y, range: Some((y * 0.8, y * 1.2)) }
        });
        let name = text(&format!("a long name of a curve, ring 64M, number {number}"));
        Series { name, dots: dots.collect(), is_line: number.is_multiple_of(2) }
    };
    let (y, series) = (Axis::share(text("loss")), (0..9).map(series).collect());
    Chart::Curves { x, y, series, marks, has_diagonal: false }
}

/// One of each kind, small and large.
fn plots() -> Vec<Plot> {
    let words = |number: usize| (0..number).map(|at| text(&at.to_string())).collect::<Vec<_>>();
    let marks = |number: u32| {
        let marks = (0..number).flat_map(|at| {
            let x = Mark::x(2e6 - f64::from(at), text("the knee of a curve")).of(at as usize);
            [x, Mark::y(0.5 + f64::from(at) / 1e3, text("limit"))]
        });
        marks.collect::<Vec<_>>()
    };
    let bars = |groups: usize, series: usize| {
        let value = |at: usize| match at % 4 {
            0 => Value::Exactly(1e6 / (at + 1) as f64),
            1 => Value::AtLeast(1e5 * at as f64),
            2 => Value::AtMost(-3e5),
            _ => Value::Unknown,
        };
        let values = (0..groups).map(value).collect::<Vec<_>>();
        let series = words(series).into_iter().map(|name| (name, values.clone())).collect();
        let y = Axis::new(text("frames a second"));
        Chart::Bars(Bars { y, groups: (text("bytes"), words(groups)), series })
    };
    let interval = |at: usize| Interval {
        label: text("512 bytes, 200,000/s, 10 s, ring 64M"),
        value: [Value::Exactly(at as f64 - 3.0), Value::Unknown][usize::from(at == 2)],
        ends: [(at != 1).then_some(-5.0), (at != 3).then_some(at as f64)],
        words: text("+12.345 % (+1.234 to +34.567)"),
        is_apart: at.is_multiple_of(2),
    };
    let rows = (0..7).map(interval).collect();
    let intervals = Intervals { x: Axis::new(text("change %")), none: 0.0, rows };
    let map = |columns: usize, rows: usize| {
        let share = |at: usize| (!at.is_multiple_of(5)).then(|| 1.0 / (at + 1) as f64);
        let shares = (0..rows).map(|row| (0..columns).map(|at| share(row * at)).collect());
        let (x, y) = ((text("rate"), words(columns)), (text("bytes"), words(rows)));
        Chart::HeatMap(HeatMap { x, y, of: text("lost"), shares: shares.collect() })
    };
    let stage = |lost| Stage { name: text("stage"), lost };
    let waterfall = Waterfall {
        all: 4_812_345_678,
        begin: "sent".to_owned(),
        stages: vec![stage(Some(7)), stage(None), stage(Some(1_000_000_000))],
        left: "captured".to_owned(),
    };
    let charts = [
        curves(Axis::bytes(text("ring")), marks(4)),
        curves(Axis::new("x"), marks(1)),
        curves(Axis::new("x").logarithmic(), vec![]),
        bars(3, 2),
        bars(12, 7),
        bars(1, 1),
        Chart::Intervals(intervals),
        map(3, 3),
        map(40, 30),
        Chart::Waterfall(waterfall),
    ];
    let caption = text("what one sees");
    charts
        .into_iter()
        .map(|chart| Plot::new(text("A title"), caption.clone(), chart).without(2, text("runs")))
        .collect()
}

/// All pictures of a plot.
fn pictures(plot: &Plot) -> Vec<String> {
    let both = Palette::ALL.into_iter();
    both.flat_map(|(palette, _)| [plot.svg(palette), plot.picture(palette)]).collect()
}

#[test]
fn pictures_are_xml_and_say_what_they_show() {
    for plot in plots() {
        for svg in pictures(&plot) {
            let tags = xml(&svg);
            let root = &tags[0];
            assert_eq!((root.name.as_str(), root.of("role")), ("svg", Some("img")));
            assert!(root.of("aria-label").unwrap().starts_with("A title a<b> & \"c\" 'd'"));
            assert_eq!(root.of("xmlns"), Some("http://www.w3.org/2000/svg"), "it stands alone");
            let told = |name: &str| tags.iter().find(|tag| tag.name == name).unwrap().text.as_str();
            assert!(told("title").starts_with("A title a<b> &"), "{svg}");
            assert!(told("desc").contains("Not drawn: ") && told("desc").contains("what one sees"));
            let told_inside =
                tags.iter().any(|tag| tag.name == "text" && tag.text.contains("drawn:"));
            assert_eq!(told_inside, svg.contains("font-weight=\"bold\""), "alone, it has its note");
        }
    }
}

#[test]
fn no_text_leaves_the_picture() {
    for plot in plots() {
        for svg in pictures(&plot) {
            let tags = xml(&svg);
            let of = |name: &str| tags[0].of(name).unwrap().parse::<f64>().unwrap();
            let (wide, high) = (of("width"), of("height"));
            assert_eq!(tags[0].of("viewBox"), Some(format!("0 0 {wide} {high}").as_str()));
            let texts: Vec<_> = tags.iter().filter(|tag| tag.name == "text").collect();
            assert!(texts.len() > 5, "{svg}");
            for tag in texts {
                let number = |name: &str| tag.of(name).unwrap().parse::<f64>().unwrap();
                let (x, y, size) = (number("x"), number("y"), number("font-size"));
                let long = f64::from(width(&tag.text, size));
                let before = match tag.of("text-anchor") {
                    Some("start") => 0.0,
                    Some("end") => long,
                    _ => long / 2.0,
                };
                let (begin, end) = match tag.of("transform") {
                    // Upwards from its place.
                    Some(_) => (y - (long - before), y + before),
                    None => (x - before, x - before + long),
                };
                let most = if tag.of("transform").is_some() { high } else { wide };
                assert!(begin >= 0.0 && end <= most, "{:?} is from {begin} to {end}", tag.text);
                // The other way a line is as high as its letters.
                let (at, most) = if most == high { (x, wide) } else { (y, high) };
                let below = match tag.of("dy") {
                    Some("0.76em") => size,
                    Some("0.5ex") => size / 2.0,
                    _ => 0.0,
                };
                let (top, bottom) = (at + below - size, at + below);
                assert!(top >= 0.0 && bottom <= most, "{:?} is from {top} to {bottom}", tag.text);
            }
        }
    }
}

#[test]
fn bars_and_lines_stay_inside() {
    for plot in plots() {
        let svg = plot.svg(Palette::Light);
        let tags = xml(&svg);
        let of = |name: &str| tags[0].of(name).unwrap().parse::<f64>().unwrap();
        let (wide, high) = (of("width"), of("height"));
        for tag in &tags {
            for pair in tag.of("points").unwrap_or_default().split_whitespace() {
                let (x, y) = pair.split_once(',').unwrap();
                let at = (x.parse::<f64>().unwrap(), y.parse::<f64>().unwrap());
                assert!((0.0..=wide).contains(&at.0) && (0.0..=high).contains(&at.1), "{tag:?}");
            }
            for name in ["width", "height"] {
                let value = tag.of(name).map(|value| value.parse::<f64>().unwrap());
                assert!(value.is_none_or(|value| value >= 0.0), "{tag:?}");
            }
        }
    }
}
