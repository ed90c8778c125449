//! A paper's experiments: its figures, drawn of what was run here, and its claims with their scores.

use crate::paper::{
    Across, ClaimVerdict, Figure, Paper, Picture, Quantity, Results, Score, improvement, quantity,
};
use std::collections::BTreeSet;

use crate::compare::rates::{Group, Improvement};
use crate::report::number::{exact, whole};
use crate::report::{Axis, Bars, Chart, Dot, Mark, Part, Plot, Section, Series, Table, Value};
use crate::search::median::median;
use crate::search::sweep::Run;

/// Curves in one plot: more cannot be told apart.
const MOST_CURVES: usize = 8;

/// Sections about a paper: the scorecard, the figures, and what was searched.
#[must_use]
pub fn paper(paper: &Paper, results: &Results, scores: &[Score]) -> Vec<Section> {
    let scorecard = Section {
        title: "Scorecard".to_owned(),
        parts: vec![Part::Text(paper.about.to_owned()), Part::Table(scorecard(scores))],
    };
    let plots = paper.figures.iter().flat_map(|figure| plots(figure, results));
    let pictures = paper.pictures.iter().filter_map(|picture| drawn(picture, results));
    let figures: Vec<_> = plots.map(Part::Plot).chain(pictures).collect();
    let mut sections = Vec::new();
    if let Some(points) = points(scores) {
        sections.push(Section { title: "Key points".to_owned(), parts: vec![Part::Table(points)] });
    }
    sections.push(scorecard);
    if !figures.is_empty() {
        sections.push(Section { title: "Figures".to_owned(), parts: figures });
    }
    for experiment in &paper.experiments {
        let cells = results.cells(experiment.name);
        if !cells.is_empty() {
            sections.extend(super::lossless(cells));
        }
        sections.extend(results.stored(experiment.name).iter().flat_map(|it| super::offline(it)));
    }
    sections
}

/// The key points that a paper sums itself up in; `None` of one without.
fn points(scores: &[Score]) -> Option<Table> {
    let mut points: Vec<_> = scores.iter().filter_map(|it| Some((it.point?, it))).collect();
    points.sort_by_key(|(number, _)| *number);
    let row = |(number, score): &(u32, &Score)| {
        let (claim, source) = (score.claim.to_owned(), score.source.to_owned());
        vec![number.to_string(), claim, score.verdict_words(), score.seen_words(), source]
    };
    let number = |verdict| points.iter().filter(|(_, score)| score.verdict == verdict).count();
    let columns = [("", true), ("key point", false), ("here it", false), ("seen here", false)];
    let columns = columns.into_iter().chain([("source", false)]);
    let table = Table {
        columns: columns.map(|(name, is_number)| (name.to_owned(), is_number)).collect(),
        rows: points.iter().map(row).collect(),
        note: Some(format!(
            "Of {} key points {} hold here, {} do not, {} are unavailable.",
            points.len(),
            number(ClaimVerdict::Holds),
            number(ClaimVerdict::Fails),
            number(ClaimVerdict::Unavailable)
        )),
    };
    (!points.is_empty()).then_some(table)
}

/// Claims, what was seen, and verdicts.
#[must_use]
pub fn scorecard(scores: &[Score]) -> Table {
    let row = |score: &Score| {
        let (claim, source) = (score.claim.to_owned(), score.source.to_owned());
        vec![claim, source, score.seen_words(), score.verdict_words()]
    };
    let number = |verdict| scores.iter().filter(|score| score.verdict == verdict).count();
    Table {
        columns: ["claim", "source", "seen here", "here it"]
            .iter()
            .map(|name| ((*name).to_owned(), false))
            .collect(),
        rows: scores.iter().map(row).collect(),
        note: Some(format!(
            "{} hold, {} do not, {} unavailable; {} are coarse, since a part of their points was not measured. A claim that does not hold here is no mistake of the paper: machine, \
             system and programs are others.",
            number(ClaimVerdict::Holds),
            number(ClaimVerdict::Fails),
            number(ClaimVerdict::Unavailable),
            scores.iter().filter(|score| score.coarse.is_some()).count()
        )),
    }
}

/// A picture of what was run; `None` where nothing was.
fn drawn(picture: &Picture, results: &Results) -> Option<Part> {
    match picture {
        Picture::Path { title, of } => {
            let runs = results.of(of);
            let lost = |run: &Run| run.trial.loss().unwrap_or(0.0);
            let most = runs.runs().max_by(|one, other| lost(one).total_cmp(&lost(other)))?;
            let (size, reached) = (most.point.load.size, super::whole(most.trial.reached));
            let title = format!("{title}: {size} bytes at {reached} frames a second");
            Some(super::waterfall(title, &most.trial))
        }
        Picture::Improvements { title, caption, of, pairs } => {
            let found = pairs.iter().filter_map(|pair| {
                let [from, to] = pair;
                Some((format!("{to} over {from}"), improvement(results.cells(of), *pair)?))
            });
            let found: Vec<_> = found.collect();
            let rows = found.iter().flat_map(|(_, group)| &group.rows);
            let sizes: BTreeSet<_> = rows.map(|row| row.size).collect();
            let value = |group: &Group, size: u32| {
                let row = group.rows.iter().find(|row| row.size == size);
                row.map_or(Value::Unknown, |row| match row.improvement {
                    Improvement::Exactly { percent } => Value::Exactly(percent),
                    Improvement::AtLeast { percent } => Value::AtLeast(percent),
                    Improvement::AtMost { percent } => Value::AtMost(percent),
                    Improvement::Unavailable { .. } => Value::Unknown,
                })
            };
            let series = found.iter().map(|(name, group)| {
                (name.clone(), sizes.iter().map(|size| value(group, *size)).collect())
            });
            let bars = Bars {
                y: Axis::new("improvement of the rate, %"),
                groups: (
                    "bytes of a frame".to_owned(),
                    sizes.iter().map(|size| exact((*size).into())).collect(),
                ),
                series: series.collect(),
            };
            (!found.is_empty()).then(|| Part::Plot(Plot::new(*title, *caption, Chart::Bars(bars))))
        }
    }
}

/// The plots of a figure: several where there are too many curves for one.
fn plots(figure: &Figure, results: &Results) -> Vec<Plot> {
    let curves = curves(figure, results);
    let parts = curves.chunks(MOST_CURVES).enumerate();
    let is_share = figure.quantities.iter().all(|quantity| quantity.is_share());
    let y = if is_share { Axis::share } else { Axis::new };
    parts
        .map(|(number, series)| {
            let title = match number {
                0 => figure.title.to_owned(),
                number => format!("{}, {}", figure.title, number + 1),
            };
            let limits = figure.limits.iter().map(|(at, words)| Mark::y(*at, words.as_str()));
            let chart = Chart::Curves {
                x: across(figure.across),
                y: y(label(&figure.quantities)),
                series: series.to_vec(),
                marks: limits.collect(),
                has_diagonal: false,
            };
            let plot = Plot::new(title, figure.caption, chart);
            // What is left out belongs to no curve.
            if number == 0 { left_out(plot, figure, results) } else { plot }
        })
        .collect()
}

/// What is to the right. Times and sizes of rings go over powers.
fn across(across: Across) -> Axis {
    match across {
        Across::Bytes(name) => Axis::bytes(quantity(name)),
        Across::Time => Axis::new(across.label()).logarithmic(),
        Across::Rate | Across::Size | Across::Stall | Across::Option(_) => {
            Axis::new(across.label())
        }
    }
}

/// A figure's plot with what is not in it: runs that prove nothing, and those that do not tell a quantity.
fn left_out(plot: Plot, figure: &Figure, results: &Results) -> Plot {
    let runs = || figure.of.iter().filter_map(|name| results.runs.get(*name)).flatten();
    let faulty = runs().filter(|run| !run.trial.is_valid()).count();
    let mute = |run: &&Run| {
        let tells = |quantity: &Quantity| quantity.of(&run.trial).is_some();
        figure.across.of(run).is_none() || !figure.quantities.iter().all(tells)
    };
    let mute = runs().filter(|run| run.trial.is_valid()).filter(mute).count();
    plot.without(faulty, "runs that prove nothing").without(mute, "runs that do not tell all of it")
}

/// What is upwards. Where there are several quantities, each line says which it is, and the axis what they are in.
fn label(quantities: &[Quantity]) -> String {
    if let [quantity] = quantities {
        return quantity.label().to_owned();
    }
    let mut units: Vec<_> = quantities.iter().map(|quantity| quantity.unit()).collect();
    units.dedup();
    units.join("; ")
}

fn curves(figure: &Figure, results: &Results) -> Vec<Series> {
    let runs: Vec<(&str, &Run)> = figure
        .of
        .iter()
        .flat_map(|name| results.of(name).runs().map(move |run| (*name, run)).collect::<Vec<_>>())
        .collect();
    let words: Vec<_> = runs.iter().map(|(name, run)| words(name, run, figure.across)).collect();
    // What is the same everywhere tells nothing.
    let is_told = |word: &String| !words.iter().all(|other| other.contains(word));
    let mut curves: Vec<(String, Vec<&Run>)> = Vec::new();
    for ((_, run), words) in runs.iter().zip(&words) {
        let told: Vec<_> = words.iter().filter(|word| is_told(word)).cloned().collect();
        let name = told.join(", ");
        match curves.iter_mut().find(|(other, _)| *other == name) {
            Some((_, runs)) => runs.push(run),
            None => curves.push((name, vec![run])),
        }
    }
    let several = figure.quantities.len() > 1;
    let pairs =
        curves.iter().flat_map(|curve| figure.quantities.iter().map(move |of| (curve, *of)));
    pairs
        .map(|((name, runs), quantity)| {
            let name = match (name.is_empty(), several) {
                (true, _) => quantity.label().to_owned(),
                (false, true) => format!("{name}: {}", quantity.label()),
                (false, false) => name.clone(),
            };
            Series { name, dots: dots(runs, figure.across, quantity), is_line: true }
        })
        .filter(|series| !series.dots.is_empty())
        .collect()
}

/// What a run is, but for what is to the right.
fn words(experiment: &str, run: &Run, across: Across) -> Vec<String> {
    let (point, mut words) = (&run.point, vec![experiment.to_owned(), run.point.tool.clone()]);
    if across != Across::Size {
        words.push(format!("{} bytes", point.load.size));
    }
    if across != Across::Time {
        words.push(format!("{} s", point.load.time.as_secs_f64()));
    }
    if across != Across::Rate && across != Across::Size {
        let rate = point.load.rate.map_or("full speed".to_owned(), |rate| whole(rate) + "/s");
        words.push(rate);
    }
    let all = [&point.settings, &point.load.options, &point.host].into_iter().flatten();
    let others = all.filter(|setting| across.option() != Some(setting.name.as_str()));
    words.extend(others.map(|setting| format!("{} {}", setting.name, setting.value)));
    words
}

/// The middle of each value's runs, with what they reach from and to.
fn dots(runs: &[&Run], across: Across, quantity: Quantity) -> Vec<Dot> {
    // Repetitions of one rate reach slightly different ones: they are one value.
    let key = |run: &Run| match across {
        Across::Rate => run.point.load.rate.or(run.trial.reached),
        _ => across.of(run),
    };
    let mut keys: Vec<f64> = runs.iter().filter_map(|run| key(run)).collect();
    keys.sort_by(f64::total_cmp);
    keys.dedup();
    let dot = |at: &f64| {
        let of: Vec<_> = runs.iter().filter(|run| key(run) == Some(*at)).collect();
        let values: Vec<_> = of.iter().filter_map(|run| quantity.of(&run.trial)).collect();
        let range =
            values.iter().copied().reduce(f64::min).zip(values.iter().copied().reduce(f64::max));
        let x = median(of.iter().filter_map(|run| across.of(run)).collect())?;
        Some(Dot { x, y: median(values)?, range })
    };
    keys.iter().filter_map(dot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Load;
    use crate::report::Scale;
    use crate::search::sweep::Point;
    use crate::tools::{Counted, Setting};
    use crate::trial::{Fault, Trial};

    fn run(ring: &str, rate: f64, lost: u64) -> Run {
        let settings = vec![Setting { name: "ring".into(), value: ring.into() }];
        let load = Load { size: 64, rate: Some(rate), ..Load::default() };
        let point = Point {
            host: vec![],
            tool: "work".into(),
            settings,
            load: load.clone(),
            repetition: 0,
        };
        let counted =
            Counted { captured: Some(100 - lost), dropped: Some(lost), ..Counted::default() };
        let reached = Some(rate + lost as f64 / 100.0);
        Run {
            point,
            trial: Trial { sent: 100, arrived: 100, reached, load, counted, ..Trial::default() },
        }
    }

    fn figure(across: Across, quantities: &[Quantity]) -> Figure {
        let (of, quantities, limits) =
            (vec!["x"], quantities.to_vec(), vec![(0.5, "limit".into())]);
        Figure { title: "f", caption: "c", of, across, quantities, limits }
    }

    #[test]
    fn the_axis_of_several_quantities_has_their_unit() {
        assert_eq!(label(&[Quantity::Loss]), "lost, of what was sent");
        assert_eq!(label(&[Quantity::KernelLoss, Quantity::ApplicationLoss]), "share of packets");
        assert_eq!(label(&[Quantity::MemoryMean, Quantity::MemoryPeak]), "MB");
    }

    #[test]
    fn curves_are_named_by_what_differs() {
        let runs =
            vec![run("1M", 10.0, 1), run("2M", 10.0, 0), run("1M", 20.0, 9), run("1M", 10.0, 3)];
        let results = Results { runs: [("x".to_owned(), runs)].into(), ..Results::default() };
        let of = |across, quantities: &[Quantity]| curves(&figure(across, quantities), &results);
        let seen = of(Across::Rate, &[Quantity::Loss]);
        let names: Vec<_> = seen.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["ring 1M", "ring 2M"]);
        let first = seen[0].dots[0];
        assert_eq!((first.y, first.range), (0.02, Some((0.01, 0.03))));
        assert!((first.x - 10.02).abs() < 1e-9 && seen[0].dots.len() == 2);
        let seen = of(Across::Bytes("ring"), &[Quantity::Loss, Quantity::ApplicationLoss]);
        let names: Vec<_> = seen.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names.len(), 4);
        assert!(names[0].starts_with("10/s: lost, of what was sent"), "{names:?}");
        assert_eq!(
            seen[0].dots.iter().map(|dot| dot.x).collect::<Vec<_>>(),
            [1_048_576.0, 2_097_152.0]
        );
    }

    #[test]
    fn limits_are_lines_and_what_is_left_out_is_counted() {
        let (mut faulty, mut mute) = (run("1M", 10.0, 1), run("1M", 20.0, 1));
        faulty.trial.faults.push(Fault::Rate);
        mute.trial.counted = Counted::default();
        let runs = vec![run("1M", 10.0, 1), faulty, mute];
        let results = Results { runs: [("x".to_owned(), runs)].into(), ..Results::default() };
        let plots = plots(&figure(Across::Bytes("ring"), &[Quantity::Loss]), &results);
        let note = plots[0].note().unwrap();
        assert!(note.contains("prove nothing (1)") && note.contains("all of it (1)"), "{note}");
        let Chart::Curves { x, marks, .. } = &plots[0].chart else { panic!("they are curves") };
        assert_eq!((x.scale, marks[0].at, marks[0].label.as_str()), (Scale::Log2, 0.5, "limit"));
    }

    #[test]
    fn a_scorecard_counts() {
        let score = |verdict| Score {
            claim: "a",
            source: "b",
            point: (verdict == ClaimVerdict::Fails).then_some(7),
            seen: "c".to_owned(),
            verdict,
            coarse: None,
        };
        let scores =
            [score(ClaimVerdict::Holds), score(ClaimVerdict::Fails), score(ClaimVerdict::Holds)];
        let table = scorecard(&scores);
        assert_eq!(table.rows[1], ["a", "b", "c", "does not hold"]);
        assert!(table.note.unwrap().starts_with("2 hold, 1 do not, 0 unavailable; 0 are coarse"));
        let table = points(&scores).unwrap();
        assert_eq!(table.rows, [["7", "a", "does not hold", "c", "b"]]);
        assert!(table.note.unwrap().starts_with("Of 1 key points 0 hold here, 1 do not, 0 are"));
        assert_eq!(points(&scores[..1]), None, "there are none");
    }
}
