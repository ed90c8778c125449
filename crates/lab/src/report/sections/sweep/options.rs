//! Losses against the value of an option that was varied.

use std::collections::BTreeSet;

use super::super::whole;
use super::MOST_CURVES;
use crate::paper::quantity;
use crate::report::{Axis, Chart, Dot, Plot, Series};
use crate::search::median::median;
use crate::search::sweep::{Point, Run, number};
use crate::tools::Setting;

/// Values from which on a curve tells more than a table.
const LEAST: usize = 3;

/// A plot for each option that has some numbers as values.
pub(super) fn against_options(runs: &[Run]) -> Vec<Plot> {
    varied(runs).into_iter().map(|name| against(name, runs)).collect()
}

fn settings(point: &Point) -> impl Iterator<Item = &Setting> {
    [&point.settings, &point.load.options, &point.host].into_iter().flatten()
}

/// Options that have numbers as values, and enough of them.
fn varied(runs: &[Run]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for setting in runs.iter().flat_map(|run| settings(&run.point)) {
        if !names.contains(&setting.name.as_str()) {
            names.push(&setting.name);
        }
    }
    let is_varied = |name: &&str| {
        let values: BTreeSet<_> = runs.iter().filter_map(|run| value(run, name)).collect();
        values.len() >= LEAST && values.iter().all(|value| number(value).is_some())
    };
    names.into_iter().filter(is_varied).collect()
}

fn value<'a>(run: &'a Run, name: &str) -> Option<&'a str> {
    let setting = settings(&run.point).find(|setting| setting.name == name);
    setting.map(|setting| setting.value.as_str())
}

/// What a run is beside the option.
fn others(run: &Run, name: &str) -> String {
    let point = &run.point;
    let rate = point.load.rate.map_or("full speed".to_owned(), |rate| whole(Some(rate)) + "/s");
    let time = point.load.time.as_secs_f64();
    let mut words = format!("{}, {} bytes, {rate}, {time} s", point.tool, point.load.size);
    for setting in settings(point).filter(|setting| setting.name != name) {
        words += &format!(", {} {}", setting.name, setting.value);
    }
    words
}

/// The quantity of an option without its unit.
fn title(name: &str) -> &str {
    quantity(name).split(", ").next().unwrap_or(name)
}

fn against(name: &str, runs: &[Run]) -> Plot {
    let mut groups: Vec<(String, Vec<&Run>)> = Vec::new();
    for run in runs.iter().filter(|run| value(run, name).is_some()) {
        let others = others(run, name);
        match groups.iter_mut().find(|(known, _)| *known == others) {
            Some((_, runs)) => runs.push(run),
            None => groups.push((others, vec![run])),
        }
    }
    let left_out: usize = groups.iter().skip(MOST_CURVES).map(|(_, runs)| runs.len()).sum();
    groups.truncate(MOST_CURVES);
    let faulty = groups.iter().flat_map(|(_, runs)| runs).filter(|run| !run.trial.is_valid());
    let faulty = faulty.count();
    let series = groups.into_iter().map(|(others, runs)| Series {
        name: others,
        dots: dots(name, &runs),
        is_line: true,
    });
    let is_size = |run: &Run| value(run, name).is_none_or(|value| value.ends_with(['K', 'M', 'G']));
    let x = if runs.iter().all(is_size) {
        Axis::bytes(quantity(name))
    } else {
        Axis::new(quantity(name))
    };
    let chart = Chart::Curves {
        x,
        y: Axis::share("lost, of what was sent"),
        series: series.collect(),
        marks: Vec::new(),
        has_diagonal: false,
    };
    let caption = "Medians of runs that prove something; the thin lines reach from the least to the most that was lost.";
    Plot::new(format!("Loss against {}", title(name)), caption, chart)
        .without(faulty, "runs that prove nothing")
        .without(left_out, "runs of other combinations")
}

/// The middle of what was lost at each value, with what it reaches from and to.
fn dots(name: &str, runs: &[&Run]) -> Vec<Dot> {
    let number = |run: &Run| value(run, name).and_then(number);
    let mut values: Vec<f64> = runs.iter().filter_map(|run| number(run)).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let dot = |x: &f64| {
        let of = runs.iter().filter(|run| run.trial.is_valid() && number(run) == Some(*x));
        let losses: Vec<_> = of.filter_map(|run| run.trial.loss()).collect();
        let range =
            losses.iter().copied().reduce(f64::min).zip(losses.iter().copied().reduce(f64::max));
        Some(Dot { x: *x, y: median(losses)?, range })
    };
    values.iter().filter_map(dot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Load;
    use crate::report::{Plot, Scale};
    use crate::tools::Counted;
    use crate::trial::{Fault, Trial};

    fn run(settings: &[(&str, &str)], lost: u64) -> Run {
        let setting = |(name, value): &(&str, &str)| Setting {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        };
        let load = Load { size: 64, rate: Some(1e5), ..Load::default() };
        let point = Point {
            host: Vec::new(),
            tool: "count".to_owned(),
            settings: settings.iter().map(setting).collect(),
            load: load.clone(),
            repetition: 0,
        };
        let counted = Counted { captured: Some(100 - lost), ..Counted::default() };
        Run { point, trial: Trial { sent: 100, load, counted, ..Trial::default() } }
    }

    fn curves(plot: &Plot) -> (&Axis, &[Series]) {
        let Chart::Curves { x, series, .. } = &plot.chart else { panic!("they are curves") };
        (x, series)
    }

    #[test]
    fn what_has_numbers_as_values_is_drawn() {
        let mut runs = Vec::new();
        for wait in ["poll", "busy"] {
            for (ring, lost) in [("4M", 1), ("1M", 9), ("2M", 5)] {
                runs.push(run(&[("ring", ring), ("wait", wait)], lost));
            }
        }
        let mut faulty = run(&[("ring", "1M"), ("wait", "poll")], 90);
        faulty.trial.faults.push(Fault::Rate);
        runs.push(faulty);
        let plots = against_options(&runs);
        assert_eq!(plots.len(), 1, "ways to wait are no numbers");
        let (x, series) = curves(&plots[0]);
        assert_eq!((x.scale, series.len()), (Scale::Log2, 2));
        assert_eq!(series[0].name, "wait poll");
        let seen: Vec<_> = series[0].dots.iter().map(|dot| (dot.x, dot.y)).collect();
        assert_eq!(seen, [(1_048_576.0, 0.09), (2_097_152.0, 0.05), (4_194_304.0, 0.01)]);
        let note = plots[0].note().unwrap();
        assert!(note.starts_with("Common to all: count, 64 bytes, 100,000/s"), "{note}");
        assert!(note.ends_with("Not drawn: runs that prove nothing (1)."), "{note}");
    }

    #[test]
    fn few_values_are_no_curve_and_many_curves_are_counted() {
        let two = [run(&[("zip", "1")], 1), run(&[("zip", "9")], 2)];
        assert!(against_options(&two).is_empty());
        let mut many = Vec::new();
        for number in 0..9 {
            let ring = format!("x{number}");
            for zip in ["1", "2", "3"] {
                many.push(run(&[("zip", zip), ("name", &ring)], 1));
            }
        }
        let plots = against_options(&many);
        let (x, series) = curves(&plots[0]);
        assert_eq!((plots.len(), x.scale, series.len()), (1, Scale::Linear, MOST_CURVES));
        assert!(plots[0].note().unwrap().contains("other combinations (6)"));
    }
}
