//! Every prediction, and what came: lines of a file that is only added to, so that nothing is predicted afterwards.

use super::Model;
use super::plan::{Held, Pace};
use super::predict::{Prediction, Question};
use crate::trial::Trial;

/// A line.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Entry {
    /// Points that models will be tried on.
    Plan {
        /// Nanoseconds since 1970.
        at: i64,
        /// What they come from.
        seed: u64,
        /// The points.
        points: Vec<Held>,
    },
    /// What predicts from here on.
    Model {
        /// Nanoseconds since 1970.
        at: i64,
        /// The model.
        model: Box<Model>,
    },
    /// A prediction.
    Prediction {
        /// Nanoseconds since 1970.
        at: i64,
        /// Its number, from 0.
        number: u32,
        /// What the rate does, where it is a point of a plan.
        pace: Option<Pace>,
        /// What was asked.
        question: Question,
        /// What is to come.
        prediction: Box<Prediction>,
    },
    /// What came.
    Run {
        /// Nanoseconds since 1970.
        at: i64,
        /// The number of the prediction.
        number: u32,
        /// The run.
        trial: Box<Trial>,
    },
}

/// A prediction and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored<'a> {
    /// Its number.
    pub number: u32,
    /// Which model of the ledger predicted it, from 1.
    pub model: usize,
    /// What the rate does.
    pub pace: Option<Pace>,
    /// What was asked.
    pub question: &'a Question,
    /// What was to come.
    pub prediction: &'a Prediction,
    /// Shares that were lost, of runs that prove something.
    pub losses: Vec<f64>,
    /// Runs that prove nothing.
    pub faulty: usize,
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

    /// What the textbook says: 1 - μ/λ above what the processor manages.
    #[must_use]
    pub fn textbook(&self) -> f64 {
        (1.0 - self.prediction.costs.knee(self.question.burst) / self.question.rate).max(0.0)
    }
}

/// How many models a ledger has: the newest one's number.
#[must_use]
pub fn models(entries: &[Entry]) -> usize {
    entries.iter().filter(|entry| matches!(entry, Entry::Model { .. })).count()
}

/// Predictions, each with what came of it.
#[must_use]
pub fn scored(entries: &[Entry]) -> Vec<Scored<'_>> {
    let mut all: Vec<Scored<'_>> = Vec::new();
    let mut models = 0;
    for entry in entries {
        match entry {
            Entry::Prediction { number, pace, question, prediction, .. } => all.push(Scored {
                number: *number,
                model: models,
                pace: *pace,
                question,
                prediction,
                losses: Vec::new(),
                faulty: 0,
            }),
            // A run before its prediction scores nothing.
            Entry::Run { number, trial, .. } => {
                let Some(scored) = all.iter_mut().find(|scored| scored.number == *number) else {
                    continue;
                };
                match trial.loss().filter(|_| trial.is_valid()) {
                    Some(loss) => scored.losses.push(loss),
                    None => scored.faulty += 1,
                }
            }
            Entry::Model { .. } => models += 1,
            Entry::Plan { .. } => {}
        }
    }
    all
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

    fn prediction(number: u32, rate: f64, total: f64) -> Entry {
        let question = Question {
            size: 512,
            rate,
            burst: 32,
            keeps_gaps: false,
            ring: 1 << 20,
            cost: crate::work::Cost::default(),
            seconds: 1.0,
        };
        let prediction = Prediction {
            raw: 0.0,
            costs: Costs { wake: 0.0, share: 1.0, frame: 2000.0, kept: 8000.0 },
            kernel: estimate(0.0),
            application: estimate(total),
            total: estimate(total),
            first_loss: None,
            lossless: estimate(1e5),
            survived: None,
        };
        Entry::Prediction { at: 0, number, pace: None, question, prediction: Box::new(prediction) }
    }

    fn run(number: u32, captured: u64, faults: &[Fault]) -> Entry {
        let mut trial = Trial { sent: 1000, faults: faults.to_vec(), ..Trial::default() };
        trial.counted.captured = Some(captured);
        Entry::Run { at: 1, number, trial: Box::new(trial) }
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
        assert_eq!(second.spread(), None, "one run differs from no other");
        assert_eq!(super::score([].iter()), None);
        let text = serde_json::to_string(&entries[1]).unwrap();
        assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entries[1]);
    }
}
