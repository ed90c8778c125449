//! Every prediction, and what came: lines of a file that is only added to, so that nothing is predicted afterwards.

use super::Model;
use super::plan::{Held, Pace};
use super::predict::{Prediction, Question};
use crate::search::HighestRate;
use crate::search::median::median;
use crate::trial::Trial;

/// One line of the ledger.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum LedgerEntry {
    /// Points that models will be tried on.
    Plan {
        /// When it was written; nanoseconds since 1970.
        at: i64,
        /// What they come from.
        seed: u64,
        /// The points that are held back from the model.
        points: Vec<Held>,
    },
    /// What predicts from here on.
    Model {
        /// When it was written; nanoseconds since 1970.
        at: i64,
        /// The model that predicts from here on.
        model: Box<Model>,
    },
    /// A prediction, written before its run.
    Prediction {
        /// When it was written; nanoseconds since 1970.
        at: i64,
        /// Its number, from 0.
        number: u32,
        /// What the rate does, where it is a point of a plan.
        pace: Option<Pace>,
        /// The question that it answers.
        question: Question,
        /// What is to come.
        prediction: Box<Prediction>,
    },
    /// A run that tests a prediction.
    Run {
        /// When it was written; nanoseconds since 1970.
        at: i64,
        /// The number of the prediction.
        number: u32,
        /// What was counted in the run.
        trial: Box<Trial>,
    },
    /// The rate without loss, as it was found by trying.
    Rate {
        /// When it was written; nanoseconds since 1970.
        at: i64,
        /// The number of the prediction.
        number: u32,
        /// The rate that was found.
        found: HighestRate,
        /// The runs that found it.
        trials: Vec<Trial>,
    },
    /// The longest burst at the sender's full speed that loses nothing, as it was found by trying.
    Burst {
        /// When it was written; nanoseconds since 1970.
        at: i64,
        /// The number of the prediction.
        number: u32,
        /// Its length, where a rate is: in frames.
        found: HighestRate,
        /// The runs that found it.
        trials: Vec<Trial>,
    },
}

/// A prediction and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored<'a> {
    /// Number of the prediction, from 0.
    pub number: u32,
    /// Which model of the ledger predicted it, from 1.
    pub model: usize,
    /// What the rate does.
    pub pace: Option<Pace>,
    /// The question that it answers.
    pub question: &'a Question,
    /// What was to come.
    pub prediction: &'a Prediction,
    /// Shares that were lost, of runs that prove something.
    pub losses: Vec<f64>,
    /// Seconds after the first frame between which the first one was lost, of runs that tell.
    pub first_losses: Vec<[f64; 2]>,
    /// Runs that prove nothing.
    pub faulty: usize,
    /// The rate without loss, where it was sought.
    pub rate: Option<HighestRate>,
    /// The longest burst that loses nothing, in frames, where it was sought.
    pub burst: Option<HighestRate>,
}

impl Scored<'_> {
    /// The share that was lost, on average; `None` where nothing was run.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        (!self.losses.is_empty())
            .then(|| self.losses.iter().sum::<f64>() / self.losses.len() as f64)
    }

    /// By how much the runs differ from each other: the highest less the lowest; `None` where there are not two.
    #[must_use]
    pub fn spread(&self) -> Option<f64> {
        let most = self.losses.iter().copied().reduce(f64::max)?;
        let least = self.losses.iter().copied().reduce(f64::min)?;
        (self.losses.len() > 1).then_some(most - least)
    }

    /// By what part the rate without loss was predicted too high, or too low where that is negative; `None` where it is
    /// not known, or only a bound of it.
    #[must_use]
    pub fn rate_error(&self) -> Option<f64> {
        Some(self.prediction.lossless.value / exactly(self.rate)? - 1.0)
    }

    /// By what part the longest burst without loss was predicted too long, or too short where that is negative; `None`
    /// likewise.
    #[must_use]
    pub fn burst_error(&self) -> Option<f64> {
        Some(self.prediction.survived? / exactly(self.burst)? - 1.0)
    }

    /// When the first frame was lost, in seconds: of what each run leaves open what is nearest to the prediction, or the middle
    /// where none was predicted; the median, where at least half of the runs that prove something tell.
    #[must_use]
    pub fn first_loss(&self) -> Option<f64> {
        let is_usual = !self.losses.is_empty() && self.first_losses.len() * 2 >= self.losses.len();
        let predicted = self.prediction.first_loss;
        let nearest = |[since, until]: &[f64; 2]| {
            let at = predicted.unwrap_or(f64::midpoint(*since, *until));
            at.max(*since).min(*until)
        };
        median(self.first_losses.iter().map(nearest).collect()).filter(|_| is_usual)
    }

    /// Whether the first loss lies in the interval that was predicted, in at least half of the runs that tell; `None` where
    /// none was predicted, or no run tells.
    #[must_use]
    pub fn first_loss_is_within(&self) -> Option<bool> {
        let [low, high] = self.prediction.first_loss_within?;
        let runs = &self.first_losses;
        let within = runs.iter().filter(|[since, until]| *since <= high && *until >= low).count();
        (!runs.is_empty()).then_some(within * 2 >= runs.len())
    }

    /// By what part the first loss was predicted too late, or too early where that is negative; `None` where it was not
    /// predicted, or did not come.
    #[must_use]
    pub fn first_loss_error(&self) -> Option<f64> {
        Some(self.prediction.first_loss? / self.first_loss().filter(|seen| *seen > 0.0)? - 1.0)
    }

    /// What the textbook says: 1 - μ/λ above what the processor manages.
    #[must_use]
    pub fn textbook(&self) -> f64 {
        (1.0 - self.prediction.costs.knee(self.question.burst) / self.question.rate).max(0.0)
    }
}

/// What was found, where it is more than a bound.
#[must_use]
pub fn exactly(found: Option<HighestRate>) -> Option<f64> {
    match found? {
        HighestRate::Rate(value) => Some(value),
        HighestRate::AtLeast(_) | HighestRate::Below(_) | HighestRate::Ended => None,
    }
}

/// How many models a ledger has: the newest one's number.
#[must_use]
pub fn models(entries: &[LedgerEntry]) -> usize {
    entries.iter().filter(|entry| matches!(entry, LedgerEntry::Model { .. })).count()
}

/// Predictions, each with what came of it.
#[must_use]
pub fn scored(entries: &[LedgerEntry]) -> Vec<Scored<'_>> {
    let mut all: Vec<Scored<'_>> = Vec::new();
    let mut models = 0;
    for entry in entries {
        match entry {
            LedgerEntry::Prediction { number, pace, question, prediction, .. } => {
                all.push(Scored {
                    number: *number,
                    model: models,
                    pace: *pace,
                    question,
                    prediction,
                    losses: Vec::new(),
                    first_losses: Vec::new(),
                    faulty: 0,
                    rate: None,
                    burst: None,
                });
            }
            // A run before its prediction scores nothing.
            LedgerEntry::Run { number, trial, .. } => {
                let Some(scored) = all.iter_mut().find(|scored| scored.number == *number) else {
                    continue;
                };
                match trial.loss().filter(|_| trial.is_valid()) {
                    Some(loss) => {
                        scored.losses.push(loss);
                        scored.first_losses.extend(trial.first_loss());
                    }
                    None => scored.faulty += 1,
                }
            }
            LedgerEntry::Rate { number, found, .. } => {
                let of = all.iter_mut().filter(|scored| scored.number == *number);
                of.for_each(|scored| scored.rate = Some(*found));
            }
            LedgerEntry::Burst { number, found, .. } => {
                let of = all.iter_mut().filter(|scored| scored.number == *number);
                of.for_each(|scored| scored.burst = Some(*found));
            }
            LedgerEntry::Model { .. } => models += 1,
            LedgerEntry::Plan { .. } => {}
        }
    }
    all
}

/// The median of how far off predicted rates without loss were, as parts of those that were found; and of how many.
#[must_use]
pub fn rates(all: &[Scored<'_>]) -> Option<(f64, usize)> {
    middle(all.iter().filter_map(Scored::rate_error))
}

/// Likewise of the longest bursts without loss.
#[must_use]
pub fn bursts(all: &[Scored<'_>]) -> Option<(f64, usize)> {
    middle(all.iter().filter_map(Scored::burst_error))
}

/// Likewise of when the first frame was lost.
#[must_use]
pub fn first_losses(all: &[Scored<'_>]) -> Option<(f64, usize)> {
    middle(all.iter().filter_map(Scored::first_loss_error))
}

fn middle(errors: impl Iterator<Item = f64>) -> Option<(f64, usize)> {
    let errors: Vec<_> = errors.map(f64::abs).collect();
    let number = errors.len();
    Some((median(errors)?, number))
}

/// How good predictions are, as shares of what was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Score {
    /// Predictions that were run.
    pub number: usize,
    /// The mean absolute error.
    pub error: f64,
    /// Half the spread of the runs of a point, on average: no prediction is to be blamed for that. `None` where no point
    /// has two runs.
    pub half_spread: Option<f64>,
    /// The error of who says that nothing is lost.
    pub nothing: f64,
    /// The error of 1 - μ/λ.
    pub textbook: f64,
    /// The share of predictions whose interval, with half the spread, has what came.
    pub within: f64,
}

/// The most that predictions may be off on average, beside half the spread: as shares of what was sent, and of the error
/// of each other rule.
const MOST_ERROR: f64 = 0.02;
const MOST_OF_OTHERS: f64 = 0.5;

impl Score {
    /// Whether they are good: two points off at most, but for half the spread, and half as much as either other rule.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.error <= MOST_ERROR + self.half_spread.unwrap_or(0.0)
            && self.error <= MOST_OF_OTHERS * self.nothing.min(self.textbook)
    }
}

/// How good some predictions are; `None` where none of them was run.
#[must_use]
pub fn score<'a>(all: impl Iterator<Item = &'a Scored<'a>>) -> Option<Score> {
    let mut sum = Score::default();
    let mut halves = Vec::new();
    for scored in all {
        let Some(loss) = scored.loss() else { continue };
        let total = scored.prediction.total;
        let half = scored.spread().map(|spread| spread / 2.0);
        halves.extend(half);
        let half = half.unwrap_or(0.0);
        sum.number += 1;
        sum.error += (total.value - loss).abs();
        sum.nothing += loss;
        sum.textbook += (scored.textbook() - loss).abs();
        let is_within = loss >= total.low - half && loss <= total.high + half;
        sum.within += f64::from(u8::from(is_within));
    }
    let mean = |value: f64| value / sum.number as f64;
    let half_spread = halves.iter().sum::<f64>() / halves.len() as f64;
    (sum.number > 0).then(|| Score {
        number: sum.number,
        error: mean(sum.error),
        half_spread: (!halves.is_empty()).then_some(half_spread),
        nothing: mean(sum.nothing),
        textbook: mean(sum.textbook),
        within: mean(sum.within),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Costs;
    use crate::model::predict::Estimate;
    use crate::trial::Fault;

    fn estimate(value: f64) -> Estimate {
        Estimate { value, low: value - 0.01, high: value + 0.01 }
    }

    fn prediction(number: u32, rate: f64, total: f64) -> LedgerEntry {
        let question = Question {
            size: 512,
            rate,
            burst: 32,
            keeps_gaps: false,
            ring: 1 << 20,
            cost: crate::work::Cost::default(),
            settings: Vec::new(),
            seconds: 1.0,
        };
        let prediction = Prediction {
            raw: 0.0,
            service: None,
            costs: Costs { wake: 0.0, share: 1.0, frame: 2000.0, kept: 8000.0, deviation: 0.0 },
            kernel: estimate(0.0),
            application: estimate(total),
            total: estimate(total),
            first_loss: None,
            first_loss_within: None,
            lossless: estimate(1e5),
            survived: Some(12_000.0),
        };
        LedgerEntry::Prediction {
            at: 0,
            number,
            pace: None,
            question,
            prediction: Box::new(prediction),
        }
    }

    fn run(number: u32, captured: u64, faults: &[Fault]) -> LedgerEntry {
        let mut trial = Trial { sent: 1000, faults: faults.to_vec(), ..Trial::default() };
        trial.counted.captured = Some(captured);
        LedgerEntry::Run { at: 1, number, trial: Box::new(trial) }
    }

    #[test]
    fn predictions_are_scored_by_runs_that_prove_something() {
        let entries = [
            run(0, 1000, &[]),
            prediction(0, 200e3, 0.50),
            prediction(1, 50e3, 0.0),
            prediction(2, 60e3, 0.0),
            run(0, 440, &[]),
            run(0, 460, &[]),
            run(0, 10, &[Fault::Wire]),
            run(1, 1000, &[]),
        ];
        let all = scored(&entries);
        let (first, second) = (&all[0], &all[1]);
        assert_eq!((first.losses.len(), first.faulty, second.losses.len()), (2, 1, 1));
        assert!(
            (first.loss().unwrap() - 0.55).abs() < 1e-9
                && (first.spread().unwrap() - 0.02).abs() < 1e-9
        );
        assert_eq!((all[2].loss(), first.textbook(), second.textbook()), (None, 0.5, 0.0));
        let score = score(all.iter()).unwrap();
        assert_eq!(score.number, 2);
        for (value, expected) in [
            (score.error, 0.025),
            (score.half_spread.unwrap(), 0.01),
            (score.nothing, 0.275),
            (score.textbook, 0.025),
            (score.within, 0.5),
        ] {
            assert!((value - expected).abs() < 1e-9, "{score:?}");
        }
        // Not half as much as the textbook is off.
        assert!(!score.is_good());
        assert!(Score { textbook: 0.06, ..score }.is_good());
        assert!(!Score { error: 0.031, textbook: 0.07, ..score }.is_good());
        assert_eq!(second.spread(), None, "one run differs from no other");
        assert_eq!(super::score([].iter()), None);
        assert_eq!(rates(&all), None);
        let found = |number, found| LedgerEntry::Rate { at: 2, number, found, trials: Vec::new() };
        let sought = [
            found(0, HighestRate::Rate(80e3)),
            found(1, HighestRate::Rate(125e3)),
            found(2, HighestRate::AtLeast(90e3)),
        ];
        let entries = [&entries[..], &sought].concat();
        let (error, number) = rates(&scored(&entries)).unwrap();
        assert!((error - 0.225).abs() < 1e-9 && number == 2, "{error} of {number}");
        assert_eq!(bursts(&scored(&entries)), None);
        let tried = |number, found| LedgerEntry::Burst { at: 2, number, found, trials: Vec::new() };
        let of = [
            tried(0, HighestRate::Rate(8000.0)),
            tried(1, HighestRate::Rate(16_000.0)),
            tried(2, HighestRate::Ended),
        ];
        let entries = [&entries[..], &of].concat();
        let all = scored(&entries);
        let errors = [0, 1, 2].map(|at| all[at].burst_error());
        assert_eq!(errors, [Some(0.5), Some(-0.25), None]);
        assert_eq!(bursts(&all), Some((0.375, 2)));
        let text = serde_json::to_string(&entries[1]).unwrap();
        assert_eq!(serde_json::from_str::<LedgerEntry>(&text).unwrap(), entries[1]);
    }

    #[test]
    fn first_losses_are_scored_where_most_runs_have_one() {
        let predicted = |number, first_loss| {
            let mut entry = prediction(number, 200e3, 0.5);
            if let LedgerEntry::Prediction { prediction, .. } = &mut entry {
                prediction.first_loss = first_loss;
                prediction.first_loss_within = first_loss.map(|at| [at - 0.1, at + 0.1]);
            }
            entry
        };
        let lost = |number, first: Option<[u64; 2]>, before_ring: u64| {
            let LedgerEntry::Run { at, number, mut trial } = run(number, 440, &[]) else {
                unreachable!()
            };
            trial.counted.first_drop_ns = first;
            trial.backlog_dropped = before_ring;
            LedgerEntry::Run { at, number, trial }
        };
        let second = Some([900_000_000, 1_100_000_000]);
        let entries = [
            predicted(0, Some(1.5)),
            lost(0, second, 0),
            lost(0, Some([3_000_000_000, 5_000_000_000]), 0),
            lost(0, None, 0),
            predicted(1, Some(0.9)),
            lost(1, second, 0),
            lost(1, None, 0),
            lost(1, None, 0),
            predicted(2, None),
            lost(2, second, 0),
            predicted(3, Some(2.0)),
            // What was lost before the ring may have been lost earlier.
            lost(3, second, 7),
            predicted(4, Some(0.75)),
            lost(4, second, 0),
            predicted(5, Some(0.95)),
            lost(5, second, 0),
        ];
        let all = scored(&entries);
        let of = |at: usize| (all[at].first_losses.len(), all[at].first_loss());
        assert_eq!((of(0), of(1), of(3)), ((2, Some(2.05)), (1, None), (0, None)));
        assert_eq!(
            (of(2), of(5)),
            ((1, Some(1.0)), (1, Some(0.95))),
            "the middle, and what it has"
        );
        let errors: Vec<_> = all.iter().map(Scored::first_loss_error).collect();
        let near = |error: Option<f64>, expected: f64| (error.unwrap() - expected).abs() < 1e-9;
        assert!(
            near(errors[0], 1.5 / 2.05 - 1.0) && near(errors[4], 0.75 / 0.9 - 1.0),
            "{errors:?}"
        );
        assert_eq!(errors[1..4], [None; 3]);
        assert!(near(errors[5], 0.0), "{errors:?}");
        // One of two runs that tell is, 0.75 is too early by 0.05 s, and the others tell nothing or were not predicted.
        let within: Vec<_> = all.iter().map(Scored::first_loss_is_within).collect();
        assert_eq!(within, [Some(false), Some(true), None, None, Some(false), Some(true)]);
        let (error, number) = first_losses(&all).unwrap();
        assert!((error - (1.0 - 0.75 / 0.9)).abs() < 1e-9 && number == 3, "{error} of {number}");
    }
}
