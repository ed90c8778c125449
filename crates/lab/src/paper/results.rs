//! What was run, and questions to it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::coverage::{Coverage, missing};
use super::score::Seen;
use super::{Quantity, Score};
use crate::offline::StoredOutcome;
use crate::search::lossless::Cell;
use crate::search::median::median;
use crate::search::sweep::Run;
use crate::trial::MOST_HELD;

/// Everything that was run for a paper.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Runs of each sweep, by its name.
    pub runs: BTreeMap<String, Vec<Run>>,
    /// What each search found, by its name.
    pub cells: BTreeMap<String, Vec<Cell>>,
    /// What was measured of files, by the name of the experiment.
    pub offline: BTreeMap<String, StoredOutcome>,
    /// How much was measured of each experiment, by its name.
    pub coverage: BTreeMap<String, Coverage>,
    /// The experiments that were asked for.
    pub asked: Asked,
}

/// The names of experiments that were asked for, noted as they are, so that no claim has to say by itself what it rests on.
#[derive(Clone, Debug, Default)]
pub struct Asked(RefCell<BTreeSet<String>>);

impl Results {
    /// The runs of an experiment that prove something.
    #[must_use]
    pub fn of(&self, experiment: &str) -> Selection<'_> {
        let runs = self.all(experiment).iter();
        Selection(runs.filter(|run| run.trial.is_valid()).collect())
    }

    /// All runs of an experiment, also those that prove nothing.
    #[must_use]
    pub fn all(&self, experiment: &str) -> &[Run] {
        self.ask(experiment);
        self.runs.get(experiment).map_or(&[], Vec::as_slice)
    }

    /// What an experiment's searches found.
    #[must_use]
    pub fn cells(&self, experiment: &str) -> &[Cell] {
        self.ask(experiment);
        self.cells.get(experiment).map_or(&[], Vec::as_slice)
    }

    /// What an experiment measured of a file; `None` where it was not.
    #[must_use]
    pub fn stored(&self, experiment: &str) -> Option<&StoredOutcome> {
        self.ask(experiment);
        self.offline.get(experiment)
    }
}

impl Results {
    fn ask(&self, experiment: &str) {
        let mut asked = self.asked.0.borrow_mut();
        if !asked.contains(experiment) {
            asked.insert(experiment.to_owned());
        }
    }

    /// Judges a claim, and notes of which experiments what was seen is, and what is missing of them.
    pub(super) fn score(
        &self,
        claim: &'static str,
        source: &'static str,
        see: impl FnOnce(&Self) -> Seen,
    ) -> Score {
        self.asked.0.take();
        let score = Score::of(claim, source, see(self));
        let asked = self.asked.0.take();
        let missing: Vec<_> = asked.iter().filter_map(|name| missing(self, name)).collect();
        Score { coarse: (!missing.is_empty()).then(|| missing.join("; ")), ..score }
    }
}

/// A selection of the runs.
#[derive(Clone, Debug)]
pub struct Selection<'a>(Vec<&'a Run>);

/// Where a curve of losses leaves the ground.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossOnset {
    /// The highest rate up to which nothing worth speaking of is lost; `None` where the lowest one loses.
    pub at: Option<f64>,
    /// The lowest rate above; `None` where none loses.
    pub above: Option<f64>,
}

impl LossOnset {
    /// One line of text for reports.
    #[must_use]
    pub fn words(&self) -> String {
        use super::score::rate;
        match (self.at, self.above) {
            (Some(at), Some(above)) => format!("{} (not {})", rate(at), rate(above)),
            (Some(at), None) => format!("{} or more", rate(at)),
            (None, Some(above)) => format!("less than {}", rate(above)),
            (None, None) => "unavailable".to_owned(),
        }
    }

    /// Whether it is higher than another; `None` where the steps between rates are too wide to tell, or rates are missing.
    #[must_use]
    pub fn is_over(&self, other: &Self) -> Option<bool> {
        match (self.at.zip(other.above), self.above.zip(other.at)) {
            (Some((at, above)), _) if at >= above => Some(true),
            (_, Some((above, at))) if above <= at => Some(false),
            _ => None,
        }
    }

    /// How many times as high as another it is: the least that it may be, and the value by their lower ends. `None` where
    /// that cannot be told.
    #[must_use]
    pub fn over(&self, other: &Self) -> Option<(f64, f64)> {
        let at = self.at?;
        Some((at / other.above?, at / other.at.or(other.above)?))
    }
}

impl<'a> Selection<'a> {
    /// Those of which something is so.
    #[must_use]
    pub fn filter(&self, is_wanted: impl Fn(&Run) -> bool) -> Self {
        Self(self.0.iter().copied().filter(|run| is_wanted(run)).collect())
    }

    /// Those of which a ring holds so little that they tell of more than it (PAPERS D4).
    #[must_use]
    pub fn steady(&self) -> Self {
        self.filter(|run| run.trial.ring_share.is_none_or(|share| share <= MOST_HELD))
    }

    /// Those of a tool.
    #[must_use]
    pub fn tool(&self, name: &str) -> Self {
        self.filter(|run| run.point.tool == name)
    }

    /// Those with a value of an option: of the tool, the sender, or the testbed.
    #[must_use]
    pub fn set(&self, name: &str, value: &str) -> Self {
        self.filter(|run| option(run, name) == Some(value))
    }

    /// Those of a size of frames.
    #[must_use]
    pub fn size(&self, size: u32) -> Self {
        self.filter(|run| run.point.load.size == size)
    }

    /// Those that sent for so long.
    #[must_use]
    pub fn time(&self, time: Duration) -> Self {
        self.filter(|run| run.point.load.time == time)
    }

    /// The runs of the selection.
    pub fn runs(&self) -> impl Iterator<Item = &'a Run> {
        self.0.iter().copied()
    }

    /// Sizes of frames, from the smallest.
    #[must_use]
    pub fn sizes(&self) -> Vec<u32> {
        let mut sizes: Vec<_> = self.0.iter().map(|run| run.point.load.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Rates that were asked for, from the lowest, each with its runs.
    #[must_use]
    pub fn rates(&self) -> Vec<(f64, Self)> {
        let mut rates: Vec<_> = self.0.iter().filter_map(|run| run.point.load.rate).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        let of = |rate: f64| (rate, self.filter(|run| run.point.load.rate == Some(rate)));
        rates.into_iter().map(of).collect()
    }

    /// The middle of a quantity.
    #[must_use]
    pub fn median(&self, quantity: Quantity) -> Option<f64> {
        median(self.0.iter().filter_map(|run| quantity.of(&run.trial)).collect())
    }

    /// The least and the most of a quantity.
    #[must_use]
    pub fn ends(&self, quantity: Quantity) -> Option<(f64, f64)> {
        let values = || self.0.iter().filter_map(|run| quantity.of(&run.trial));
        values().reduce(f64::min).zip(values().reduce(f64::max))
    }

    /// Where the losses begin that are more than `tolerated`.
    #[must_use]
    pub fn knee(&self, tolerated: f64) -> Option<LossOnset> {
        let mut knee = LossOnset { at: None, above: None };
        for (rate, runs) in self.rates() {
            if runs.median(Quantity::Loss)? > tolerated {
                knee.above = Some(rate);
                break;
            }
            knee.at = Some(rate);
        }
        (knee.at.is_some() || knee.above.is_some()).then_some(knee)
    }
}

/// The value of an option in a run.
pub(super) fn option<'a>(run: &'a Run, name: &str) -> Option<&'a str> {
    let point = &run.point;
    let mut all = [&point.settings, &point.load.options, &point.host].into_iter().flatten();
    all.find(|setting| setting.name == name).map(|setting| setting.value.as_str())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::load::Load;
    use crate::search::sweep::Point;
    use crate::tools::{Counted, Setting};
    use crate::trial::{Fault, Trial};

    /// A run of a million frames with a loss.
    pub(in crate::paper) fn run(settings: &[(&str, &str)], load: Load, loss: f64) -> Run {
        let settings = settings
            .iter()
            .map(|(name, value)| Setting { name: (*name).into(), value: (*value).into() })
            .collect();
        let lost = (loss * 1e6).round() as u64;
        let counted =
            Counted { captured: Some(1_000_000 - lost), dropped: Some(lost), ..Counted::default() };
        let point = Point {
            host: vec![],
            tool: "work".into(),
            settings,
            load: load.clone(),
            repetition: 0,
        };
        let reached = load.rate;
        let sent = 1_000_000;
        let trial = Trial { sent, arrived: sent, reached, load, counted, ..Trial::default() };
        Run { point, trial }
    }

    fn at(rate: f64, loss: f64) -> Run {
        run(&[("ring", "2M")], Load { size: 64, rate: Some(rate), ..Load::default() }, loss)
    }

    #[test]
    fn a_knee_is_where_losses_begin() {
        let knee = |runs: &[Run]| Selection(runs.iter().collect()).knee(0.001);
        assert_eq!(knee(&[]), None);
        let curve = [at(1e3, 0.0), at(3e3, 0.5), at(2e3, 0.0005), at(4e3, 0.0)];
        let found = knee(&curve).unwrap();
        assert_eq!(found, LossOnset { at: Some(2e3), above: Some(3e3) });
        assert_eq!(found.words(), "2.0 k/s (not 3.0 k/s)");
        let low = knee(&curve[1..2]).unwrap();
        assert_eq!((low.at, low.words().as_str()), (None, "less than 3.0 k/s"));
        let high = knee(&curve[..1]).unwrap();
        assert_eq!((high.above, high.words().as_str()), (None, "1.0 k/s or more"));
        assert_eq!(found.over(&low), Some((2.0 / 3.0, 2.0 / 3.0)));
        assert_eq!((high.over(&high), low.over(&found)), (None, None));
        // From 2 to 3 thousand, up to 3 thousand, and from 1 thousand on.
        assert_eq!((found.is_over(&low), low.is_over(&found)), (None, None));
        assert_eq!((found.is_over(&high), high.is_over(&found)), (None, None));
        let far = LossOnset { at: Some(3e3), above: None };
        assert_eq!((far.is_over(&found), found.is_over(&far)), (Some(true), Some(false)));
        assert_eq!(found.is_over(&found), None);
        // The middle of several runs counts.
        let disturbed = [at(1e3, 0.2), at(1e3, 0.0), at(1e3, 0.0)];
        assert_eq!(knee(&disturbed).unwrap().at, Some(1e3));
    }

    #[test]
    fn runs_are_selected() {
        let mut wrong = at(1e3, 0.0);
        wrong.trial.faults.push(Fault::Wire);
        let runs = vec![at(1e3, 0.1), wrong, at(2e3, 0.2)];
        let results = Results { runs: [("x".to_owned(), runs)].into(), ..Results::default() };
        let all = results.of("x");
        assert_eq!((all.runs().count(), results.of("y").runs().count()), (2, 0));
        assert_eq!(all.set("ring", "2M").runs().count(), 2);
        assert_eq!(all.set("ring", "4M").runs().count(), 0);
        assert_eq!((all.tool("work").sizes(), all.tool("x").sizes()), (vec![64], vec![]));
        assert_eq!(all.size(65).median(Quantity::Loss), None);
        assert_eq!(all.rates()[1].1.median(Quantity::Loss), Some(0.2));
        let mut held = at(1e3, 0.0);
        held.trial.ring_share = Some(0.11);
        let results =
            Results { runs: [("x".to_owned(), vec![held, at(1e3, 0.0)])].into(), ..results };
        assert_eq!(results.of("x").steady().runs().count(), 1);
    }

    #[test]
    fn a_claim_that_rests_on_few_points_says_so() {
        let coverage = |measured| Coverage { measured, planned: 24 };
        let results = |measured| Results {
            runs: [("x".to_owned(), vec![at(1e3, 0.0), at(2e3, 0.0), at(8e3, 0.5)])].into(),
            coverage: [("x".to_owned(), coverage(measured)), ("y".to_owned(), coverage(0))].into(),
            ..Results::default()
        };
        let score = |measured| {
            results(measured).score("claim", "S9", |results| {
                Some((Some(true), results.of("x").knee(0.001)?.words()))
            })
        };
        let coarse = score(3);
        assert_eq!(coarse.verdict, crate::paper::ClaimVerdict::Holds);
        let words = "3 of 24 points of x, nothing between 2.0 k/s and 8.0 k/s";
        assert_eq!(
            coarse.coarse.as_deref(),
            Some(words),
            "of what it did not ask for it says nothing"
        );
        assert_eq!(coarse.verdict_words(), "holds, coarsely");
        assert_eq!((score(24).coarse.clone(), score(24).verdict_words().as_str()), (None, "holds"));
    }
}
