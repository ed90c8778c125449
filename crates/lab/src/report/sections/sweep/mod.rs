//! Losses over combinations of values.

mod options;
mod order;

use super::unproven::unproven;
use super::{percent, waterfall, whole};
use crate::paper::Quantity;
use crate::report::plot::tick;
use crate::report::{Axis, Chart, Dot, HeatMap, Mark, Part, Plot, Section, Series, Table, Unit};
use crate::search::median::median;
use crate::search::sweep::{Point, Run};
use crate::trial::{Limit, Trial};

/// Curves in one plot: more cannot be told apart.
const MOST_CURVES: usize = 7;

/// Sizes or rates from which on a map tells more than curves.
const LEAST_OF_MAP: usize = 3;

/// Sections about a sweep.
#[must_use]
pub fn sweep(runs: &[Run]) -> Vec<Section> {
    let groups = groups(runs);
    let mut losses = Vec::new();
    for (number, curves) in groups.chunks(MOST_CURVES).enumerate() {
        let title = match number {
            0 => "Loss against rate".to_owned(),
            number => format!("Loss against rate, {}", number + 1),
        };
        losses.push(Part::Plot(against_rate(title, curves)));
    }
    losses.extend(maps(&groups).into_iter().map(Part::Plot));
    losses.extend(options::against_options(runs).into_iter().map(Part::Plot));
    let loses =
        |run: &&Run| run.trial.is_valid() && run.trial.loss().is_some_and(|loss| loss > 0.0);
    let worst = runs.iter().filter(loses).max_by(|one, other| {
        one.trial.loss().unwrap_or(0.0).total_cmp(&other.trial.loss().unwrap_or(0.0))
    });
    if let Some(run) = worst {
        let rate = whole(run.trial.reached);
        let title =
            format!("Where the most was lost: {} at {rate} frames a second", name(&run.point));
        losses.push(waterfall(title, &run.trial));
    }
    let lost = Section { title: "Losses".to_owned(), parts: losses };
    let table =
        Section { title: "Every combination".to_owned(), parts: vec![Part::Table(table(&groups))] };
    let order = order::order(runs, &groups);
    let without = unproven(runs.iter().map(|run| (name(&run.point), &run.trial, false)));
    std::iter::once(lost).chain(order).chain([table]).chain(without).collect()
}

/// What a curve is of.
struct Group<'a> {
    name: String,
    size: u32,
    tool_and_options: String,
    /// Rates that were asked for, in order, each with its runs.
    rates: Vec<(Option<f64>, Vec<&'a Trial>)>,
}

fn name(point: &Point) -> String {
    format!("{}, {} bytes", options(point), point.load.size)
}

fn options(point: &Point) -> String {
    let all = [&point.settings, &point.load.options, &point.host].into_iter().flatten();
    let options: String = all.map(|it| format!(", {} {}", it.name, it.value)).collect();
    point.tool.clone() + &options
}

fn groups(runs: &[Run]) -> Vec<Group<'_>> {
    // Where all runs take as long, that tells nothing.
    let time = |run: &Run| run.point.load.time;
    let has_times = runs.windows(2).any(|pair| time(&pair[0]) != time(&pair[1]));
    let of_time = |run: &Run| match has_times {
        true => format!(", {} s", time(run).as_secs_f64()),
        false => String::new(),
    };
    let key = |run: &Run| name(&run.point) + &of_time(run);
    let mut groups: Vec<Group<'_>> = Vec::new();
    for run in runs {
        let name = key(run);
        let at = groups.iter().position(|group| group.name == name).unwrap_or_else(|| {
            let tool_and_options = options(&run.point) + &of_time(run);
            groups.push(Group {
                name,
                size: run.point.load.size,
                tool_and_options,
                rates: Vec::new(),
            });
            groups.len() - 1
        });
        let rates = &mut groups[at].rates;
        let rate = run.point.load.rate;
        match rates.iter_mut().find(|(other, _)| *other == rate) {
            Some((_, trials)) => trials.push(&run.trial),
            None => rates.push((rate, vec![&run.trial])),
        }
    }
    for group in &mut groups {
        let order = |rate: Option<f64>| rate.unwrap_or(f64::INFINITY);
        group.rates.sort_by(|one, other| order(one.0).total_cmp(&order(other.0)));
    }
    groups
}

fn of<'a>(trials: &'a [&Trial], value: impl Fn(&Trial) -> Option<f64> + 'a) -> Vec<f64> {
    trials.iter().filter(|trial| trial.is_valid()).filter_map(|trial| value(trial)).collect()
}

/// A curve of a quantity over the rate for each group.
fn curves(groups: &[Group<'_>], quantity: Quantity) -> Vec<Series> {
    let unknown = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let dot = |(_, trials): &(Option<f64>, Vec<&Trial>)| {
        let values = of(trials, |trial| quantity.of(trial));
        let ends =
            values.iter().copied().reduce(f64::min).zip(values.iter().copied().reduce(f64::max));
        let x = unknown(median(of(trials, |trial| trial.reached)));
        Dot { x, y: unknown(median(values)), range: ends }
    };
    let series = |group: &Group<'_>| {
        let dots = group.rates.iter().map(dot).collect();
        Series { name: group.name.clone(), dots, is_line: true }
    };
    groups.iter().map(series).collect()
}

fn against_rate(title: String, groups: &[Group<'_>]) -> Plot {
    let series = curves(groups, Quantity::Loss);
    let marks = series.iter().enumerate().filter_map(|(number, series)| {
        let at = knee(&series.dots)?;
        let label = format!("knee at {}: {}", whole(Some(at)), series.name);
        Some(Mark::x(at, label).of(number))
    });
    let faulty = faulty(groups);
    let caption = "Medians of runs that prove something; the thin lines reach from the least to the most that was lost. A knee \
                   is the highest rate up to which at most 0.1 % is lost, where more is above it.";
    let chart = Chart::Curves {
        x: Axis::new("frames a second that were sent"),
        y: Axis::share("lost, of what was sent"),
        marks: marks.collect(),
        series,
        has_diagonal: false,
    };
    Plot::new(title, caption, chart).without(faulty, "runs that prove nothing")
}

fn faulty(groups: &[Group<'_>]) -> usize {
    let trials = groups.iter().flat_map(|group| &group.rates).flat_map(|(_, trials)| trials);
    trials.filter(|trial| !trial.is_valid()).count()
}

/// What is lost below a knee at most.
const TOLERATED: f64 = 0.001;

/// The highest rate before more is lost; `None` where that is never seen, or the lowest rate already loses more.
fn knee(dots: &[Dot]) -> Option<f64> {
    let known = || dots.iter().filter(|dot| dot.x.is_finite() && dot.y.is_finite());
    let at = known().position(|dot| dot.y > TOLERATED)?;
    known().nth(at.checked_sub(1)?).map(|dot| dot.x)
}

/// Maps of sizes and rates, where there are several of both.
fn maps(groups: &[Group<'_>]) -> Vec<Plot> {
    let mut maps = Vec::new();
    let mut names: Vec<_> = groups.iter().map(|group| group.tool_and_options.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let of_name: Vec<_> =
            groups.iter().filter(|group| group.tool_and_options == name).collect();
        let mut rates: Vec<_> =
            of_name.iter().flat_map(|group| &group.rates).map(|(rate, _)| *rate).collect();
        rates.sort_by(|one, other| {
            one.unwrap_or(f64::INFINITY).total_cmp(&other.unwrap_or(f64::INFINITY))
        });
        rates.dedup();
        if of_name.len() < LEAST_OF_MAP || rates.len() < LEAST_OF_MAP {
            continue;
        }
        let share = |group: &Group<'_>, rate: &Option<f64>| {
            let (_, trials) = group.rates.iter().find(|(other, _)| other == rate)?;
            median(of(trials, Trial::loss))
        };
        let shares =
            of_name.iter().map(|group| rates.iter().map(|rate| share(group, rate)).collect());
        let label =
            |rate: &Option<f64>| rate.map_or("top".to_owned(), |rate| tick(rate, Unit::Number));
        let map = HeatMap {
            x: ("frames a second".to_owned(), rates.iter().map(label).collect()),
            y: (
                "bytes of a frame".to_owned(),
                of_name.iter().map(|group| group.size.to_string()).collect(),
            ),
            of: "lost, of what was sent".to_owned(),
            shares: shares.collect(),
        };
        let caption = "Medians; a question mark is where no run proves anything.";
        maps.push(Plot::new(format!("Losses of {name}"), caption, Chart::HeatMap(map)));
    }
    maps
}

fn table(groups: &[Group<'_>]) -> Table {
    const COLUMNS: [&str; 12] = [
        "tool, options",
        "bytes",
        "frames/s",
        "planted %",
        "lost %",
        "kernel %",
        "appl. %",
        "CPU %",
        "memory MB",
        "polls/packet",
        "limited by",
        "runs",
    ];
    let mut rows = Vec::new();
    for group in groups {
        for (_, trials) in &group.rates {
            let middle = |value: fn(&Trial) -> Option<f64>| median(of(trials, value));
            let cpu = middle(|trial| {
                Some(trial.cpu_ns as f64 / 1e9 / (trial.sent as f64 / trial.reached?) * 100.0)
            });
            let polls = middle(|trial| {
                let polls = trial.counted.books.as_ref()?["polls"].as_u64()?;
                Some(polls as f64 / trial.counted.captured?.max(1) as f64)
            });
            let valid = trials.iter().filter(|trial| trial.is_valid()).count();
            rows.push(vec![
                group.tool_and_options.clone(),
                group.size.to_string(),
                whole(middle(|trial| trial.reached)),
                percent(middle(Trial::planted_loss)),
                percent(middle(Trial::loss)),
                percent(middle(Trial::kernel_loss)),
                percent(middle(Trial::application_loss)),
                whole(cpu),
                whole(middle(|trial| Some(trial.memory_peak as f64 / 1e6))),
                polls.map_or("-".to_owned(), |polls| format!("{polls:.5}")),
                Limit::usual(trials.iter().copied()).map_or("-", Limit::words).to_owned(),
                format!("{valid} of {}", trials.len()),
            ]);
        }
    }
    Table {
        columns: COLUMNS
            .iter()
            .map(|name| ((*name).to_owned(), ![COLUMNS[0], "limited by"].contains(name)))
            .collect(),
        rows,
        note: Some(
            "Medians of the runs that prove something, of all runs. planted: lost on purpose, of what was sent, which no other \
             loss has in it; lost: of what was sent; kernel: before the tool's socket; appl.: at the socket, of what came \
             there. CPU: of the tool's threads, 100 is one processor."
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knee_is_where_losses_begin() {
        let dots = |losses: &[f64]| -> Vec<Dot> {
            (1..).zip(losses).map(|(x, y)| Dot { x: f64::from(x), y: *y, range: None }).collect()
        };
        assert_eq!(knee(&dots(&[0.0, 0.001, 0.002, 0.0, 0.5])), Some(2.0));
        assert_eq!(knee(&dots(&[0.0, f64::NAN, 0.5])), Some(1.0), "what is unknown is no end");
        for without in [&[0.0, 0.0][..], &[0.1, 0.5], &[f64::NAN], &[]] {
            assert_eq!(knee(&dots(without)), None);
        }
    }
}
