//! What each experiment may take of a budget that is too small for all: so that each of them gets some points, and what it
//! gets are those that tell the most.

use std::time::Duration;

use crate::search::lossless::planned;
use crate::search::sweep::Point;
use crate::search::{Goal, sweep};
use crate::stop::Stop;
use crate::tools::Tool;

/// The time that is needed for experiments that are still to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needed {
    /// For the next one.
    pub(super) next: Duration,
    /// For the ends of its values alone, without which no claim can be judged.
    pub(super) least: Duration,
    /// For all of them, the next one among them.
    pub(super) all: Duration,
}

impl Needed {
    /// The part of the time left that the next experiment may take; `None` where there is enough for all.
    pub(super) fn share(&self, stop: &Stop<'_>) -> Option<Duration> {
        let left = stop.left().filter(|left| *left < self.all)?;
        let part = self.next.as_secs_f64() / self.all.as_secs_f64().max(1e-9);
        // Less than the ends would be lost: then the first experiments have them, and the last ones nothing.
        Some(left.mul_f64(part.min(1.0)).max(self.least))
    }
}

/// The time for the ends of all that is varied.
pub(super) fn ends(points: &[Point]) -> Duration {
    let levels = Levels::of(points);
    let ends = points.iter().filter(|point| point.repetition == 0 && levels.level(point) == 0);
    sweep::duration(&ends.cloned().collect::<Vec<_>>())
}

/// The time for searches of one size with the widest interval.
pub(super) fn one_size(goal: &Goal, pairs: &[(&Tool, u32)]) -> Duration {
    let goal = coarsest(goal);
    let Some((_, first)) = pairs.first() else { return Duration::ZERO };
    let of_size = pairs.iter().filter(|(_, size)| size == first);
    of_size.map(|(tool, size)| planned(tool, *size, &goal)[0]).sum()
}

/// A wide interval, and one long run that confirms.
const fn coarsest(goal: &Goal) -> Goal {
    Goal { width: 0.25, steps: 3, confirmations: 1, ..*goal }
}

/// The points in the order of how much they tell: of each option the ends of its values first, then the middle, then what
/// lies between; whatever the time ends at, what was measured covers all of it, coarsely.
pub(super) fn coarse_first(points: Vec<Point>) -> Vec<Point> {
    let levels = Levels::of(&points);
    let mut points: Vec<_> =
        points.into_iter().map(|point| (levels.level(&point), point)).collect();
    // The order of points of one level stays: a testbed changes least often.
    points.sort_by_key(|(level, point)| (point.repetition, *level));
    points.into_iter().map(|(_, point)| point).collect()
}

/// A goal that a search can reach in its share of the time: a wider interval, with one long run that confirms.
pub(super) fn coarser(goal: &Goal, pairs: &[(&Tool, u32)], share: Option<Duration>) -> Goal {
    let Some(share) = share else { return *goal };
    let between = Goal { width: 0.1, steps: 5, confirmations: 1, ..*goal };
    let all = [*goal, between, coarsest(goal)];
    let time = |goal: &Goal| -> Duration {
        pairs.iter().map(|(tool, size)| planned(tool, *size, goal)[0]).sum()
    };
    let fits = |goal: &&Goal| time(goal) <= share && goal.width >= all[0].width;
    *all.iter().find(fits).unwrap_or(&all[2])
}

/// The searches with the sizes in the order of how much they tell; for each size all tools, so that they can be compared.
pub(super) fn sizes_coarse_first(mut pairs: Vec<(&Tool, u32)>) -> Vec<(&Tool, u32)> {
    let sizes = distinct(pairs.iter().map(|(_, size)| f64::from(*size)).collect());
    pairs.sort_by_key(|(_, size)| level(&sizes, f64::from(*size)));
    pairs
}

/// The values of all that is varied by numbers.
struct Levels {
    rates: Vec<f64>,
    sizes: Vec<f64>,
    times: Vec<f64>,
    options: Vec<(String, Vec<f64>)>,
}

impl Levels {
    fn of(points: &[Point]) -> Self {
        let values = |of: fn(&Point) -> f64| distinct(points.iter().map(of).collect());
        let mut options: Vec<(String, Vec<f64>)> = Vec::new();
        for (name, value) in points.iter().flat_map(sweep::numbers) {
            match options.iter_mut().find(|(known, _)| known == name) {
                Some((_, values)) => values.push(value),
                None => options.push((name.to_owned(), vec![value])),
            }
        }
        let options = options.into_iter().map(|(name, values)| (name, distinct(values)));
        Self {
            rates: values(rate),
            sizes: values(size),
            times: values(time),
            options: options.collect(),
        }
    }

    fn level(&self, point: &Point) -> u32 {
        let of_option = |(name, value): (&str, f64)| {
            let values = self.options.iter().find(|(known, _)| known == name);
            values.map_or(0, |(_, values)| level(values, value))
        };
        let options = sweep::numbers(point).map(of_option).max().unwrap_or(0);
        level(&self.rates, rate(point))
            .max(level(&self.sizes, size(point)))
            .max(level(&self.times, time(point)))
            .max(options)
    }
}

fn rate(point: &Point) -> f64 {
    point.load.rate.unwrap_or(f64::INFINITY)
}

fn size(point: &Point) -> f64 {
    point.load.size.into()
}

fn time(point: &Point) -> f64 {
    point.load.time.as_secs_f64()
}

fn distinct(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// How often a range has to be halved until a value is met: 0 for its ends, 1 for its middle.
fn level(values: &[f64], value: f64) -> u32 {
    let Some(at) = values.iter().position(|other| *other == value) else { return 0 };
    let (mut low, mut high, mut level) = (0, values.len() - 1, 0);
    while at != low && at != high {
        level += 1;
        let middle = usize::midpoint(low, high);
        match at.cmp(&middle) {
            std::cmp::Ordering::Equal => return level,
            std::cmp::Ordering::Less => high = middle,
            std::cmp::Ordering::Greater => low = middle,
        }
    }
    level
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::load::Load;
    use crate::tools::Setting;

    fn point(rate: f64, ring: &str) -> Point {
        Point {
            host: Vec::new(),
            tool: "record".to_owned(),
            settings: vec![Setting { name: "ring".to_owned(), value: ring.to_owned() }],
            load: Load { size: 64, rate: Some(rate), ..Load::default() },
            repetition: 0,
        }
    }

    #[test]
    fn ends_come_first_and_then_the_middle() {
        let levels: Vec<_> =
            (0..9).map(|at| level(&[0., 1., 2., 3., 4., 5., 6., 7., 8.], f64::from(at))).collect();
        assert_eq!(levels, [0, 3, 2, 3, 1, 3, 2, 3, 0]);
        assert_eq!((level(&[5.0], 5.0), level(&[5.0, 6.0], 6.0), level(&[], 1.0)), (0, 0, 0));
        let rings = ["1M", "2M", "16M"];
        let all: Vec<_> =
            (1..=5).flat_map(|rate| rings.map(|ring| point(f64::from(rate), ring))).collect();
        let ordered = coarse_first(all.clone());
        let first: Vec<_> = ordered[..4]
            .iter()
            .map(|point| (rate(point), point.settings[0].value.as_str()))
            .collect();
        assert_eq!(first, [(1.0, "1M"), (1.0, "16M"), (5.0, "1M"), (5.0, "16M")]);
        let each = sweep::duration(&all[..1]);
        assert_eq!(ends(&all), each * 4, "the ends of both");
        assert!(ordered.len() == all.len() && all.iter().all(|point| ordered.contains(point)));
        let mut again = point(1.0, "1M");
        again.repetition = 1;
        let ordered = coarse_first(vec![again.clone(), point(3.0, "2M"), point(1.0, "1M")]);
        assert_eq!(ordered[2], again, "another round comes behind the first one");
    }

    #[test]
    fn a_small_budget_is_shared_and_a_search_is_as_exact_as_it_can_be() {
        let signal = Arc::new(AtomicBool::new(false));
        let minutes = |number: u64| Duration::from_secs(60 * number);
        let needed = Needed { next: minutes(10), least: Duration::ZERO, all: minutes(40) };
        let share = |budget| needed.share(&Stop::new(&signal, budget));
        assert_eq!((share(None), share(Some(minutes(41)))), (None, None));
        let quarter = share(Some(minutes(4))).unwrap();
        assert!(quarter <= minutes(1) && quarter > Duration::from_secs(59), "{quarter:?}");
        let ends = Needed { least: minutes(2), ..needed };
        let share = ends.share(&Stop::new(&signal, Some(minutes(4))));
        assert_eq!(share, Some(minutes(2)), "what is less than its ends tells nothing");
        let tools = Tool::all();
        let goal = Goal::default();
        let pairs = [(&tools[0], 64), (&tools[0], 512)];
        assert_eq!(coarser(&goal, &pairs, None), goal);
        assert_eq!(coarser(&goal, &pairs, Some(minutes(60))), goal);
        let coarse = coarser(&goal, &pairs, Some(minutes(1)));
        assert_eq!((coarse.width, coarse.confirmations), (0.25, 1));
        let sizes: Vec<_> =
            sizes_coarse_first([64, 128, 256, 512, 1518].map(|size| (&tools[0], size)).to_vec());
        let sizes: Vec<_> = sizes.into_iter().map(|(_, size)| size).collect();
        assert_eq!(sizes, [64, 1518, 256, 128, 512]);
    }
}
