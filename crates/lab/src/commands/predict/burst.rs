//! The longest burst that loses nothing, found by trying, to hold the predicted one against it.

use std::time::Duration;

use super::super::question::seconds;
use super::super::table;
use super::lab::Lab;
use super::{AROUND, TRIED};
use crate::model::Model;
use crate::model::predict::{Prediction, Question};
use crate::search::{Bench, Goal, HighestRate, Purpose, RunOutcome, widening};
use crate::trial::{Fault, Trial};

/// How exact a search is: a burst in some is not to decide.
const GOAL: Goal = Goal { width: 0.02, steps: 8, confirmations: 1, lowered: 0.03, attempts: 6 };

/// Bursts of a run that steers, and of one that confirms.
const STEERED: u32 = 2;
const CONFIRMED: u32 = 4;

/// Where a search begins, as a multiple of what was predicted.
const ABOVE: f64 = 1.6;

/// The longest that it goes on to where all that was tried lost nothing: this power of that multiple.
const WIDER: i32 = 9;

/// How long one takes, about.
pub(super) const PLANNED: Duration = Duration::from_secs(60);

/// Searches the longest burst at the sender's full speed of which nothing is lost, in frames, from a predicted one.
///
/// # Errors
///
/// Where a run fails.
pub(super) fn find(
    lab: &Lab<'_>,
    model: &Model,
    asked: (&Question, &Prediction),
    predicted: f64,
) -> anyhow::Result<(HighestRate, Vec<Trial>)> {
    let mut series = Series { lab, model, asked, most: predicted * ABOVE, trials: Vec::new() };
    let longest = predicted * ABOVE.powi(WIDER);
    let found = widening(&mut series, &GOAL, |series| {
        series.most *= ABOVE.powi(2);
        series.most <= longest
    })?;
    Ok((found, series.trials))
}

/// Bursts that are tried; what is a rate to a search is their length here.
struct Series<'a> {
    lab: &'a Lab<'a>,
    model: &'a Model,
    asked: (&'a Question, &'a Prediction),
    /// What is tried first.
    most: f64,
    trials: Vec<Trial>,
}

impl Bench for Series<'_> {
    fn run(&mut self, frames: Option<f64>, purpose: Purpose) -> anyhow::Result<Option<RunOutcome>> {
        let frames = frames.unwrap_or(self.most).round().max(1.0);
        let bursts = if purpose == Purpose::Confirm { CONFIRMED } else { STEERED };
        let question = self.model.spaced(self.asked, frames, bursts);
        for _ in 0..TRIED {
            if self.lab.stop.before(seconds(&question)? + AROUND).is_some() {
                return Ok(None);
            }
            let Some(trial) = self.lab.run(self.model, &question)? else { return Ok(None) };
            self.lab.say(&format!("bursts of {frames:.0} frames: {}", table::trial(&trial)));
            self.trials.push(trial.clone());
            // Where bursts are far apart no quarter of a run is like another one.
            if trial.faults.iter().all(|fault| *fault == Fault::Unsteady) {
                let kept = trial.loss().map_or(frames, |loss| frames * (1.0 - loss));
                let is_lossless = trial.is_lossless();
                return Ok(Some(RunOutcome { reached: frames, kept, is_lossless }));
            }
        }
        Ok(None)
    }
}
