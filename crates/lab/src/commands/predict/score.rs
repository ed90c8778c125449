//! Predictions are run, and what came is written down.

use std::path::Path;

use anyhow::bail;

use super::super::journal::Journal;
use super::super::question::seconds;
use super::super::{common, table};
use super::lab::{Lab, now};
use super::{AROUND, TRIED};
use crate::load::{KEEP_GAPS, Load};
use crate::model::Model;
use crate::model::calibrate::settings;
use crate::model::ledger::{LedgerEntry, Scored, models, scored};
use crate::model::predict::Question;
use crate::tools::{FLAG, Setting, Tool};
use crate::trial;

impl Lab<'_> {
    /// Runs all predictions that were not run often enough; whether it could.
    pub(super) fn score(&mut self, model: &Model) -> anyhow::Result<bool> {
        self.make_bed(&model.layout)?;
        let repeat = self.args.repeat as usize;
        // What other models predicted was of another testbed, tool or traffic, or of a machine that was another one then.
        let newest = models(self.journal.entries());
        let is_missing = |one: &Scored<'_>, round: usize| {
            one.model == newest && one.losses.len() < round && one.faulty < repeat * TRIED as usize
        };
        let missing = |journal: &Journal<LedgerEntry>, round: usize| -> Vec<(u32, Question)> {
            let all = scored(journal.entries());
            let missing = all.iter().filter(|one| is_missing(one, round));
            missing.map(|one| (one.number, one.question.clone())).collect()
        };
        // Rounds over all predictions, so that a disturbance does not meet all runs of one.
        for round in 1..=repeat {
            for _ in 0..TRIED {
                let left = missing(self.journal, round);
                for (at, (number, question)) in left.iter().enumerate() {
                    let time = seconds(question)? + AROUND;
                    if self.stop.before(time).is_some() {
                        return Ok(false);
                    }
                    let Some(trial) = self.run(model, question)? else { return Ok(false) };
                    let rest = time * u32::try_from(left.len() - at - 1).unwrap_or(u32::MAX);
                    let rest = if rest.is_zero() {
                        String::new()
                    } else {
                        format!(", {} left of it", common::in_words(rest))
                    };
                    let run = table::trial(&trial);
                    self.say(&format!("round {round} of {repeat}{rest}: {run}"));
                    self.add(LedgerEntry::Run {
                        at: now(),
                        number: *number,
                        trial: Box::new(trial),
                    })?;
                }
            }
        }
        let all = scored(self.journal.entries());
        Ok(all.iter().all(|one| one.model != newest || one.losses.len() >= repeat))
    }

    /// Runs what was asked; `None` after a signal.
    pub(super) fn run(
        &self,
        model: &Model,
        question: &Question,
    ) -> anyhow::Result<Option<trial::Trial>> {
        let (program, _) = super::super::programs()?;
        let Some(bed) = &self.bed else { bail!("there is no testbed") };
        let tool = as_asked(&self.tool, question).map_err(anyhow::Error::msg)?;
        let (name, value) = match question.keeps_gaps {
            true => (KEEP_GAPS, FLAG.to_owned()),
            false => ("burst", question.burst.to_string()),
        };
        let together = Setting { name: name.to_owned(), value };
        let load = Load {
            size: question.size,
            rate: Some(question.rate),
            time: seconds(question)?,
            capture: model.traffic.as_ref().map(|traffic| traffic.path.clone()),
            ..Load::default()
        };
        match trial::run(bed, Path::new(&program), &tool, &load.with(&[together])) {
            _ if self.stop.is_set() => Ok(None),
            result => result.map(Some),
        }
    }
}

/// The tool with the ring, the work and the settings of a question.
fn as_asked(tool: &Tool, question: &Question) -> Result<Tool, String> {
    tool.with(&[settings(question.cost, question.ring), question.settings.clone()].concat())
}

#[cfg(test)]
mod tests {
    use crate::work::Cost;

    use super::*;

    #[test]
    fn what_is_run_is_what_was_asked() {
        let question = Question {
            size: 512,
            rate: 1e5,
            burst: 32,
            keeps_gaps: false,
            ring: 8 << 20,
            cost: Cost::default(),
            settings: vec![Setting { name: "depth".to_owned(), value: "tcp".to_owned() }],
            seconds: 1.0,
        };
        let analyze = Tool::all().into_iter().find(|tool| tool.name == "analyze").unwrap();
        let tool = as_asked(&analyze, &question).unwrap();
        let words = tool.words(Path::new("netsniff"), "rx0", Path::new("/")).join(" ");
        assert!(words.contains("--ring 8388608") && words.ends_with("--depth tcp"), "{words}");
    }
}
