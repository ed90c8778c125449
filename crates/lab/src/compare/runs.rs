//! The runs of two sweeps, for each point that both have: what was lost, and what it took.
//!
//! Runs that prove nothing are not used, and counted. Repetitions of the two sides are not paired: they were made at
//! other times.

use serde::Serialize;

use super::interval::{Estimate, Interval, mean, of_nothing};
use super::{Chosen, LeftOut, Measured as _, Selection, Side, distinct, paired, pairs};
use crate::load::Load;
use crate::search::sweep::Run;
use crate::tools::Setting;
use crate::trial::Trial;

/// What is compared: THE list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The share of what was sent that was not captured; its changes are differences.
    Loss,
    /// Nanoseconds that the tool's threads were on processors, for each packet that it captured; its changes, as all that
    /// follow, are ratios.
    Cpu,
    /// The most resident memory of the tool, in bytes.
    Memory,
    /// How often the tool asked the kernel for packets, for each packet that it captured.
    Polls,
}

impl Measure {
    /// Every measure, in the order of reports.
    pub const ALL: [Self; 4] = [Self::Loss, Self::Cpu, Self::Memory, Self::Polls];

    /// Its value for a run; `None` where that cannot be told.
    #[must_use]
    pub fn of(self, trial: &Trial) -> Option<f64> {
        let captured = || Some(trial.counted.captured? as f64);
        let value = match self {
            Self::Loss => return trial.loss(),
            Self::Cpu => trial.cpu_ns as f64 / captured()?,
            Self::Memory => trial.memory_peak as f64,
            Self::Polls => trial.counted.books.as_ref()?["polls"].as_u64()? as f64 / captured()?,
        };
        // There is no ratio of anything else.
        (value > 0.0 && value.is_finite()).then_some(value)
    }

    /// Whether its changes are ratios, B / A, instead of differences.
    #[must_use]
    pub const fn is_ratio(self) -> bool {
        !matches!(self, Self::Loss)
    }

    /// Values as they are averaged, and back: ratios as logarithms, so that which side is the first makes no difference.
    fn scale(self, value: f64) -> f64 {
        if self.is_ratio() { value.ln() } else { value }
    }

    const fn unscale(self) -> fn(f64) -> f64 {
        if self.is_ratio() { f64::exp } else { |value| value }
    }
}

/// The points of two tools, or of one on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// The tools of A and B.
    pub tools: [String; 2],
    /// Each point that both have.
    pub rows: Vec<Row>,
    /// Means over these points, each with the same weight.
    pub means: Vec<Mean>,
}

/// What a point of both sides shares.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shared {
    /// The load that was sent.
    pub load: Load,
    /// Settings that neither side was selected by.
    pub settings: Vec<Setting>,
}

/// What both reports measured at one point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The point that both reports have.
    pub point: Shared,
    /// Runs of A and B that prove something.
    pub runs: [usize; 2],
    /// Runs that prove nothing.
    pub faulty: [usize; 2],
    /// Runs, of those that prove something, that tell of a burst.
    pub bursts: [usize; 2],
    /// The mean rate that the sender reached.
    pub reached: [Option<f64>; 2],
    /// What changed, as [`Measure::ALL`].
    pub compared: Vec<Compared>,
}

/// One measure of a point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The measure that is compared.
    pub measure: Measure,
    /// Runs of A and B that tell it.
    pub repetitions: [usize; 2],
    /// The means of A and B: of ratios the geometric ones.
    pub values: [Option<f64>; 2],
    /// From A to B; `None` where a side does not tell.
    pub change: Option<Change>,
    #[serde(skip)]
    estimate: Option<Estimate>,
    /// Frames of either side, where none of them was lost.
    #[serde(skip)]
    nothing_of: Option<[f64; 2]>,
}

/// A mean over points.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// The measure that is compared.
    pub measure: Measure,
    /// How many points it is of: those that tell it on both sides.
    pub points: usize,
    /// The mean of the differences, or the geometric mean of the ratios.
    pub change: Option<Change>,
}

/// By how much something differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// B - A, or B / A: see [`Measure::is_ratio`].
    pub value: f64,
    /// What it may be, with 95 % confidence.
    pub interval: Interval,
    /// Whether the interval does not have what would be no change.
    pub is_significant: bool,
}

impl Change {
    fn new(measure: Measure, estimate: &Estimate, nothing_of: Option<[f64; 2]>) -> Self {
        let interval = match nothing_of {
            Some(frames) => of_nothing(frames),
            None => estimate.interval(measure.unscale()),
        };
        let none = if measure.is_ratio() { 1.0 } else { 0.0 };
        let is_significant = interval.ends().is_some_and(|[low, high]| none < low || high < none);
        Self { value: measure.unscale()(estimate.value), interval, is_significant }
    }
}

/// Compares the runs of each tool and point.
#[must_use]
pub fn compare(sides: &[Chosen<'_, Run>; 2]) -> (Vec<Group>, Vec<LeftOut<Shared>>) {
    let (mut groups, mut left_out) = (Vec::new(), Vec::new());
    for tools in pairs(sides) {
        let of = [0, 1].map(|side| runs_of(&sides[side], tools[side].as_deref()));
        let points =
            of.each_ref().map(|runs| distinct(runs.iter().map(|(point, _)| point.clone())));
        let (both, alone) = paired(&points[0], &points[1]);
        let mut leave = |side: Side, point: Shared, why: String| {
            let tool = tools[side as usize].clone().unwrap_or_default();
            left_out.push(LeftOut { side, tool, point, why });
        };
        for (side, point) in alone {
            leave(side, point, format!("{} has no point to pair it with", side.other()));
        }
        let mut rows = Vec::new();
        for point in both {
            let row = Row::new(&point, &of);
            if !row.runs.contains(&0) {
                rows.push(row);
                continue;
            }
            for side in Side::BOTH.into_iter().filter(|side| row.runs[*side as usize] == 0) {
                let number = row.faulty[side as usize];
                leave(side, point.clone(), format!("none of its runs ({number}) proves anything"));
            }
        }
        if let [Some(a), Some(b)] = tools
            && !rows.is_empty()
        {
            let means = Measure::ALL.map(|measure| Mean::new(measure, &rows)).to_vec();
            groups.push(Group { tools: [a, b], rows, means });
        }
    }
    (groups, left_out)
}

/// The runs of a tool, with what they share with others.
fn runs_of<'a>(side: &Chosen<'a, Run>, tool: Option<&str>) -> Vec<(Shared, &'a Trial)> {
    let runs = side.of.iter().copied().filter(|run| Some(run.point.tool.as_str()) == tool);
    runs.map(|run| (shared(run, &side.selection), &run.trial)).collect()
}

fn shared(run: &Run, selection: &Selection) -> Shared {
    // Options of the generator are among the settings.
    let load = Load { options: Vec::new(), ..run.point.load.clone() };
    Shared { load, settings: selection.rest(run.settings()) }
}

impl Row {
    fn new(point: &Shared, of: &[Vec<(Shared, &Trial)>; 2]) -> Self {
        let all = of.each_ref().map(|runs| {
            let runs = runs.iter().filter(|(of, _)| of == point);
            runs.map(|(_, trial)| *trial).collect::<Vec<_>>()
        });
        let valid = all.each_ref().map(|trials| {
            trials.iter().copied().filter(|trial| trial.is_valid()).collect::<Vec<_>>()
        });
        Self {
            point: point.clone(),
            runs: valid.each_ref().map(Vec::len),
            faulty: [0, 1].map(|side| all[side].len() - valid[side].len()),
            bursts: valid.each_ref().map(|it| it.iter().filter(|it| it.is_burst).count()),
            reached: valid.each_ref().map(|trials| {
                mean(&trials.iter().filter_map(|trial| trial.reached).collect::<Vec<_>>())
            }),
            compared: Measure::ALL.map(|measure| Compared::new(measure, &valid)).to_vec(),
        }
    }
}

impl Compared {
    fn new(measure: Measure, of: &[Vec<&Trial>; 2]) -> Self {
        let values = of.each_ref().map(|trials| {
            let told = trials.iter().filter_map(|trial| measure.of(trial));
            told.map(|value| measure.scale(value)).collect::<Vec<_>>()
        });
        let [a, b] = &values;
        let estimate = Estimate::difference(a, b);
        let is_nothing = !measure.is_ratio() && a.iter().chain(b).all(|value| *value == 0.0);
        let frames = of.each_ref().map(|trials| {
            let told = trials.iter().filter(|trial| measure.of(trial).is_some());
            told.filter_map(|trial| trial.offered()).map(|frames| frames as f64).sum()
        });
        let nothing_of = (is_nothing && estimate.is_some()).then_some(frames);
        Self {
            measure,
            repetitions: values.each_ref().map(Vec::len),
            values: values.each_ref().map(|values| mean(values).map(measure.unscale())),
            change: estimate.map(|estimate| Change::new(measure, &estimate, nothing_of)),
            estimate,
            nothing_of,
        }
    }
}

impl Mean {
    fn new(measure: Measure, rows: &[Row]) -> Self {
        let of = rows.iter().flat_map(|row| &row.compared).filter(|it| it.measure == measure);
        let of: Vec<_> = of.filter_map(|it| Some((it.estimate?, it.nothing_of))).collect();
        let estimates: Vec<_> = of.iter().map(|(estimate, _)| *estimate).collect();
        // Where none was lost of n frames of a point, with a share p that is, the sum of n p over the points is at most
        // 3.7. The mean of p is then at most 3.7 over the number of points and the fewest frames of one.
        let nothing: Option<Vec<_>> = of.iter().map(|(_, nothing)| *nothing).collect();
        let fewest = |frames: Vec<[f64; 2]>| {
            let of = |side: usize| frames.iter().map(|of| of[side]).fold(f64::INFINITY, f64::min);
            [of(0), of(1)].map(|fewest| fewest * frames.len() as f64)
        };
        let nothing_of = nothing.filter(|frames| !frames.is_empty()).map(fewest);
        let mean = Estimate::mean(&estimates);
        Self {
            measure,
            points: of.len(),
            change: mean.map(|mean| Change::new(measure, &mean, nothing_of)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::compare::choose;
    use crate::search::sweep::Point;
    use crate::tools::Counted;
    use crate::trial::Fault;

    /// A run of a million frames: a share of them was lost, and each packet took so many nanoseconds.
    fn run(tool: &str, rate: f64, loss: f64, cpu: f64) -> Run {
        let load =
            Load { size: 64, rate: Some(rate), time: Duration::from_secs(10), ..Load::default() };
        let captured = (1e6 * (1.0 - loss)).round();
        let point = Point {
            tool: tool.to_owned(),
            settings: Vec::new(),
            load,
            host: Vec::new(),
            repetition: 0,
        };
        let counted = Counted { captured: Some(captured as u64), ..Counted::default() };
        let cpu_ns = (cpu * captured).round() as u64;
        let (sent, reached) = (1_000_000, Some(rate));
        let trial =
            Trial { sent, reached, counted, cpu_ns, memory_peak: 1 << 20, ..Trial::default() };
        Run { point, trial }
    }

    fn runs(rate: f64, of: &[(f64, f64)]) -> Vec<Run> {
        of.iter().map(|(loss, cpu)| run("x", rate, *loss, *cpu)).collect()
    }

    fn compared(a: &[Run], b: &[Run]) -> (Vec<Group>, Vec<LeftOut<Shared>>) {
        compare(&choose([(Selection::default(), a), (Selection::default(), b)]).unwrap())
    }

    fn one(a: &[Run], b: &[Run]) -> Group {
        let (mut groups, left_out) = compared(a, b);
        assert_eq!((groups.len(), left_out.len()), (1, 0));
        groups.remove(0)
    }

    fn change(row: &Row, measure: Measure) -> &Change {
        row.compared.iter().find(|it| it.measure == measure).unwrap().change.as_ref().unwrap()
    }

    fn is_near(value: f64, expected: f64) -> bool {
        (value - expected).abs() <= 1e-6 * expected.abs()
    }

    fn a() -> Vec<Run> {
        runs(1e5, &[(0.10, 410.0), (0.12, 395.0), (0.17, 402.0)])
    }

    fn b() -> Vec<Run> {
        runs(1e5, &[(0.22, 350.0), (0.31, 361.0), (0.26, 355.0)])
    }

    /// `scipy.stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)`, for the processor of `numpy.log` of them
    /// and with `numpy.exp` of the ends; scipy 1.17.1.
    #[test]
    fn losses_are_differences_and_costs_are_ratios() {
        let group = one(&a(), &b());
        let row = &group.rows[0];
        assert_eq!((row.runs, row.reached), ([3, 3], [Some(1e5), Some(1e5)]));
        let loss = change(row, Measure::Loss);
        assert!(is_near(loss.value, 0.4 / 3.0) && loss.is_significant);
        let [low, high] = loss.interval.ends().unwrap();
        assert!(is_near(low, 0.038991552980409766) && is_near(high, 0.22767511368625695));
        let cpu = change(row, Measure::Cpu);
        let [low, high] = cpu.interval.ends().unwrap();
        assert!(is_near(cpu.value, 0.8832131596164645) && cpu.is_significant);
        assert!(
            is_near(low, 0.8491097897385055) && is_near(high, 0.9186862461683898),
            "{low} {high}"
        );
        // All had the same memory, and none told of polls.
        let memory = change(row, Measure::Memory);
        assert!(memory.value == 1.0 && memory.interval.ends().is_none() && !memory.is_significant);
        assert_eq!((row.compared[3].repetitions, &row.compared[3].change), ([0, 0], &None));
        assert_eq!((group.means[0].points, group.means[3].points), (1, 0));
        assert_eq!(group.means[0].change.as_ref(), Some(loss));
    }

    #[test]
    fn turned_around_differences_change_their_sign_and_ratios_are_inverted() {
        let more = runs(2e5, &[(0.4, 300.0), (0.5, 310.0)]);
        let other = runs(2e5, &[(0.3, 320.0), (0.1, 410.0), (0.2, 301.0)]);
        let (a, b) = ([a(), more].concat(), [b(), other].concat());
        let (there, back) = (one(&a, &b), one(&b, &a));
        assert_eq!(there.rows.len(), 2);
        let all = |group: &Group| {
            let means = group.means.iter().map(|mean| (mean.measure, mean.change.clone()));
            let rows = group.rows.iter().flat_map(|row| &row.compared);
            rows.map(|it| (it.measure, it.change.clone())).chain(means).collect::<Vec<_>>()
        };
        let mut checked = 0;
        for ((measure, there), (_, back)) in all(&there).into_iter().zip(all(&back)) {
            let (Some(there), Some(back)) = (there, back) else { continue };
            assert_eq!(there.is_significant, back.is_significant);
            let ends = there.interval.ends().zip(back.interval.ends());
            let ends = ends
                .map_or(Vec::new(), |(one, other)| vec![(one[0], other[1]), (one[1], other[0])]);
            for (there, back) in ends.into_iter().chain([(there.value, back.value)]) {
                if measure.is_ratio() {
                    assert!((there * back - 1.0).abs() < 1e-12, "{there} {back}");
                } else {
                    assert_eq!(there, -back);
                }
                checked += 1;
            }
        }
        assert_eq!(checked, 3 * (3 + 3 + 1));
    }

    #[test]
    fn nothing_lost_is_no_difference_with_the_rule_of_three() {
        let nothing = |rate: f64, cpu: f64| runs(rate, &[(0.0, cpu), (0.0, cpu + 1.0), (0.0, cpu)]);
        let fewer = &nothing(2e5, 200.0)[..2];
        let (a, b) = (
            [nothing(1e5, 200.0), fewer.to_vec()].concat(),
            [nothing(1e5, 300.0), nothing(2e5, 300.0)].concat(),
        );
        let group = one(&a, &b);
        let loss = change(&group.rows[0], Measure::Loss);
        let of = |frames: f64| 3.688_879_454 / frames;
        let Interval::RuleOfThree { low, high } = loss.interval else { panic!("{loss:?}") };
        assert!(is_near(low, -of(3e6)) && is_near(high, of(3e6)), "{low} {high}");
        assert!(loss.value == 0.0 && !loss.is_significant);
        // As many frames as if each point had the fewest.
        let mean = group.means[0].change.as_ref().unwrap();
        let Interval::RuleOfThree { low, high } = mean.interval else { panic!("{mean:?}") };
        assert!(is_near(low, -of(4e6)) && is_near(high, of(6e6)), "{low} {high}");
        // A side that lost something spreads.
        let some = runs(1e5, &[(0.01, 300.0), (0.0, 300.0), (0.02, 300.0)]);
        let group = one(&nothing(1e5, 200.0), &some);
        let loss = change(&group.rows[0], Measure::Loss);
        assert!(matches!(loss.interval, Interval::Welch { .. }) && !loss.is_significant);
    }

    #[test]
    fn one_repetition_has_no_interval() {
        let group = one(&a()[..1], &b());
        let loss = change(&group.rows[0], Measure::Loss);
        let why = Interval::Unavailable { why: "a side has one repetition" };
        assert_eq!((&loss.interval, loss.is_significant), (&why, false));
        assert!(is_near(loss.value, 0.79 / 3.0 - 0.10), "{loss:?}");
    }

    #[test]
    fn runs_that_prove_nothing_are_counted_and_not_used() {
        let mut faulty = run("x", 1e5, 0.9, 4000.0);
        faulty.trial.faults.push(Fault::Slips);
        let with = [a(), vec![faulty.clone()]].concat();
        let (plain, group) = (one(&a(), &b()), one(&with, &b()));
        assert_eq!((group.rows[0].runs, group.rows[0].faulty), ([3, 3], [1, 0]));
        assert_eq!(plain.rows[0].compared, group.rows[0].compared);
        let (groups, left_out) = compared(&a(), &[faulty]);
        assert!(groups.is_empty());
        assert_eq!(
            (left_out[0].side, left_out[0].why.as_str()),
            (Side::B, "none of its runs (1) proves anything")
        );
    }

    #[test]
    fn points_without_a_partner_are_left_out() {
        let other = [b(), runs(3e5, &[(0.1, 1.0)]), vec![run("y", 1e5, 0.1, 1.0)]].concat();
        let (groups, left_out) = compared(&a(), &other);
        assert_eq!((groups.len(), groups[0].rows.len()), (1, 1));
        let left_out: Vec<_> = left_out
            .iter()
            .map(|it| (it.side, it.tool.as_str(), it.point.load.rate, it.why.as_str()))
            .collect();
        let why = "A has no point to pair it with";
        assert_eq!(left_out, [(Side::B, "x", Some(3e5), why), (Side::B, "y", Some(1e5), why)]);
        // The same load for another time is another point.
        let mut longer = b();
        longer.iter_mut().for_each(|run| run.point.load.time *= 2);
        assert_eq!(compared(&a(), &longer).1.len(), 2);
    }

    #[test]
    fn values_of_one_setting_are_compared_where_the_others_are_equal() {
        let with = |wait: &str, ring: &str, loss: f64| {
            let setting =
                |name: &str, value: &str| Setting { name: name.into(), value: value.into() };
            let mut run = run("x", 1e5, loss, 100.0);
            run.point.settings = vec![setting("wait", wait), setting("ring", ring)];
            run
        };
        let all = [
            with("poll", "2M", 0.1),
            with("adaptive", "2M", 0.2),
            with("poll", "64M", 0.3),
            with("adaptive", "64M", 0.5),
        ];
        let side = |words: &str| (Selection::of_words([words]).unwrap(), &all[..]);
        let (groups, left_out) =
            compare(&choose([side("wait=poll"), side("wait=adaptive")]).unwrap());
        let rows: Vec<_> = groups[0]
            .rows
            .iter()
            .map(|row| (row.point.settings[0].value.as_str(), change(row, Measure::Loss).value))
            .collect();
        assert_eq!((rows.len(), left_out.len()), (2, 0));
        assert!(rows[0].0 == "2M" && is_near(rows[0].1, 0.1), "{rows:?}");
        assert!(rows[1].0 == "64M" && is_near(rows[1].1, 0.2), "{rows:?}");
    }
}
