//! The rate without loss, found by trying, to hold the predicted one against it.

use std::time::Duration;

use super::lab::Lab;
use super::{AROUND, TRIED};
use crate::model::Model;
use crate::model::predict::{Question, SECONDS};
use crate::search::{Bench, Goal, HighestRate, Purpose, RunOutcome, widening};
use crate::trial::Trial;

/// How exact a search is, and how sure: as a prediction, of one run of some seconds.
const GOAL: Goal = Goal { width: 0.03, steps: 8, confirmations: 1, lowered: 0.03, attempts: 4 };

/// Where a search begins, as a multiple of the predicted rate.
const ABOVE: f64 = 1.6;

/// How long one takes, about.
pub(super) const PLANNED: Duration = Duration::from_secs(70);

/// Searches the highest rate at which a question loses nothing.
///
/// # Errors
///
/// Where a run fails.
pub(super) fn find(
    lab: &Lab<'_>,
    model: &Model,
    question: &Question,
    predicted: f64,
) -> anyhow::Result<(HighestRate, Vec<Trial>)> {
    let mut series = Series { lab, model, question, most: predicted * ABOVE, trials: Vec::new() };
    let top = 1e9 / model.gap(question.size);
    let found = widening(&mut series, &GOAL, |series| {
        let is_less = series.most < top;
        series.most = (series.most * ABOVE.powi(2)).min(top);
        is_less
    })?;
    Ok((found, series.trials))
}

struct Series<'a> {
    lab: &'a Lab<'a>,
    model: &'a Model,
    question: &'a Question,
    /// What is tried first.
    most: f64,
    trials: Vec<Trial>,
}

impl Bench for Series<'_> {
    fn run(&mut self, rate: Option<f64>, purpose: Purpose) -> anyhow::Result<Option<RunOutcome>> {
        let question =
            Question { rate: rate.unwrap_or(self.most), seconds: SECONDS, ..self.question.clone() };
        for _ in 0..TRIED {
            if self.lab.stop.before(Duration::from_secs_f64(SECONDS) + AROUND).is_some() {
                return Ok(None);
            }
            let Some(trial) = self.lab.run(self.model, &question)? else { return Ok(None) };
            let run = super::super::table::trial(&trial);
            self.lab.say(&format!("rate without loss: {run}"));
            self.trials.push(trial.clone());
            // Where it only steers, what is true of the rate that was reached is enough.
            let is_proof = match purpose {
                Purpose::Top | Purpose::Steer => trial.is_true_at_reached(),
                Purpose::Confirm => trial.is_valid(),
            };
            if let Some(reached) = trial.reached.filter(|_| is_proof) {
                let (kept, is_lossless) =
                    (trial.kept_rate().unwrap_or(reached), trial.is_lossless());
                return Ok(Some(RunOutcome { reached, kept, is_lossless }));
            }
        }
        Ok(None)
    }
}
