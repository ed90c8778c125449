//! How much of an experiment was measured: what a claim rests on (a small budget leaves points out).

use super::score::rate;
use super::{Results, Selection};

/// What was measured of what an experiment has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Points, or searches, that prove something or will not be tried again.
    pub measured: usize,
    /// All that there are.
    pub planned: usize,
}

impl Coverage {
    /// Whether something is missing.
    #[must_use]
    pub const fn is_coarse(self) -> bool {
        self.measured < self.planned
    }
}

/// What is missing of an experiment that a claim rests on, in words, with the widest interval between rates in which nothing was
/// measured; `None` where nothing is missing, or nobody knows.
pub(super) fn missing(results: &Results, experiment: &str) -> Option<String> {
    let coverage = results.coverage.get(experiment).filter(|it| it.is_coarse())?;
    let Coverage { measured, planned } = coverage;
    let widest = widest(&results.of(experiment)).map_or_else(String::new, |[low, high]| {
        format!(", nothing between {} and {}", rate(low), rate(high))
    });
    Some(format!("{measured} of {planned} points of {experiment}{widest}"))
}

/// The neighbouring rates that are the most times apart.
fn widest(runs: &Selection<'_>) -> Option<[f64; 2]> {
    let rates: Vec<_> = runs.rates().into_iter().map(|(rate, _)| rate).collect();
    let pairs = rates.windows(2).map(|pair| [pair[0], pair[1]]);
    let times = |pair: &[f64; 2]| pair[1] / pair[0];
    pairs.max_by(|one, other| times(one).total_cmp(&times(other)))
}
