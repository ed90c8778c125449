//! What is said in a sentence instead of drawn: curves that are 0 everywhere, which lie on the axis and on each other, what
//! all names have in common, and charts without any value.

use super::{Chart, Mark, Series};

/// Between the words of a name.
const BETWEEN: &str = ", ";

/// The name of a series of which others have more to say.
const WITHOUT: &str = "nothing else";

impl Chart {
    /// Takes out the curves that are 0 at every point, and returns their names.
    pub(super) fn take_flat(&mut self) -> Vec<String> {
        let Self::Curves { series, marks, .. } = self else { return Vec::new() };
        let mut names = Vec::new();
        let is_flat: Vec<_> = series.iter().map(is_flat).collect();
        let place = |number: usize| is_flat[..number].iter().filter(|flat| !**flat).count();
        for mark in marks.iter_mut() {
            mark.series =
                mark.series.filter(|number| is_flat.get(*number) == Some(&false)).map(place);
        }
        let mut flat = is_flat.iter();
        series.retain(|series| {
            let is_flat = flat.next() == Some(&true);
            if is_flat {
                names.push(series.name.clone());
            }
            !is_flat
        });
        names
    }

    /// Takes the words out of the names of curves or bars that all of them have, and returns these; `others` are names of what
    /// is not drawn.
    pub(super) fn take_common(&mut self, others: &mut [String]) -> Vec<String> {
        let (names, marks): (Vec<&mut String>, &mut [Mark]) = match self {
            Self::Curves { series, marks, .. } => {
                (series.iter_mut().map(|series| &mut series.name).collect(), marks)
            }
            Self::Bars(bars) => (bars.series.iter_mut().map(|(name, _)| name).collect(), &mut []),
            Self::Intervals(_) | Self::HeatMap(_) | Self::Waterfall(_) => return Vec::new(),
        };
        let mut names: Vec<_> = names.into_iter().chain(others).collect();
        let Some((first, rest)) = names.split_first().filter(|(_, rest)| !rest.is_empty()) else {
            return Vec::new();
        };
        let is_common =
            |word: &&str| rest.iter().all(|name| name.split(BETWEEN).any(|other| other == *word));
        let common: Vec<_> = first.split(BETWEEN).filter(is_common).map(str::to_owned).collect();
        for name in &mut names {
            let is_own = |word: &&str| !common.iter().any(|common| common == word);
            let own: Vec<_> = name.split(BETWEEN).filter(is_own).collect();
            let own = if own.is_empty() { WITHOUT.to_owned() } else { own.join(BETWEEN) };
            for mark in marks.iter_mut().filter(|mark| mark.series.is_some()) {
                if let Some(before) = mark.label.strip_suffix(name.as_str()) {
                    mark.label = format!("{before}{own}");
                }
            }
            **name = own;
        }
        common
    }

    /// Whether there is no value in it.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Curves { series, .. } => series.iter().all(|series| {
                !series.dots.iter().any(|dot| dot.x.is_finite() && dot.y.is_finite())
            }),
            Self::Bars(bars) => {
                let mut values = bars.series.iter().flat_map(|(_, values)| values);
                !values.any(|value| value.number().is_some())
            }
            Self::Intervals(intervals) => {
                !intervals.rows.iter().any(|row| row.value.number().is_some())
            }
            Self::HeatMap(map) => !map.shares.iter().flatten().any(Option::is_some),
            Self::Waterfall(_) => false,
        }
    }
}

fn is_flat(series: &Series) -> bool {
    let is_zero = |value: f64| value == 0.0;
    series.is_line
        && !series.dots.is_empty()
        && series.dots.iter().all(|dot| {
            is_zero(dot.y) && dot.range.is_none_or(|(low, high)| is_zero(low) && is_zero(high))
        })
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Dot, Plot};
    use super::*;

    fn series(name: &str, values: &[f64]) -> Series {
        let dots = (1..).zip(values).map(|(x, y)| Dot { x: f64::from(x), y: *y, range: None });
        Series { name: name.to_owned(), dots: dots.collect(), is_line: true }
    }

    fn plot(series: Vec<Series>) -> Plot {
        let last = series.len() - 1;
        let marks = vec![Mark::x(2.0, format!("knee: {}", series[last].name)).of(last)];
        let (x, y) = (Axis::new("x"), Axis::new("y"));
        Plot::new("t", "c", Chart::Curves { x, y, series, marks, has_diagonal: false })
    }

    fn drawn(plot: &Plot) -> (Vec<&str>, &[Mark]) {
        let Chart::Curves { series, marks, .. } = &plot.chart else { panic!("they are curves") };
        (series.iter().map(|series| series.name.as_str()).collect(), marks)
    }

    #[test]
    fn what_is_0_everywhere_is_said_and_marks_keep_their_curves() {
        let all = vec![
            series("a, ring 1M", &[0.0, 0.0]),
            series("a, ring 2M", &[0.0, 0.5]),
            series("a, ring 4M", &[0.0, f64::NAN]),
            series("a", &[0.1, 0.2]),
        ];
        let plot = plot(all);
        let (names, marks) = drawn(&plot);
        assert_eq!(names, ["ring 2M", "ring 4M", WITHOUT], "a value that is unknown is not 0");
        assert_eq!((marks[0].series, marks[0].label.as_str()), (Some(2), "knee: nothing else"));
        let said = plot.note().unwrap();
        assert!(
            said.contains("Common to all: a.") && said.contains("0 at every point: ring 1M."),
            "{said}"
        );
        assert!(!plot.is_empty());
    }

    #[test]
    fn nothing_but_0_and_no_value_at_all_are_no_picture() {
        let flat = plot(vec![series("a", &[0.0]), series("b", &[0.0, 0.0])]);
        assert!(flat.is_empty() && flat.note().unwrap().contains("0 at every point: a; b."));
        assert!(plot(vec![series("a", &[f64::NAN])]).is_empty());
        assert!(!plot(vec![series("a", &[0.0, 1.0])]).is_empty());
    }
}
