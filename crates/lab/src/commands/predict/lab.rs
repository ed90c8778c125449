//! A ledger and what adds to it: a model, predictions, and what came.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use netsniff_console::clock;
use netsniff_console::number::exact;
use netsniff_console::{UsageError, say};

use super::super::common;
use super::super::journal::Journal;
use super::super::question::{fits, unknown};
use super::{AROUND, PredictArgs, burst, last_model, limit};
use crate::model::Model;
use crate::model::calibrate::{MOST, RAW, Subject, calibrate, check, raw_of};
use crate::model::ledger::{LedgerEntry, Scored, models, scored};
use crate::model::plan::{Held, Pace, held};
use crate::model::predict::Question;
use crate::model::raw::Raw;
use crate::model::traffic::Traffic;
use crate::stop::Stop;
use crate::testbed::{Layout, Placement, Testbed};
use crate::tools::Tool;
use crate::work::Cost;

/// Looks at what an application costs by itself.
const LOOKS: usize = 5;

/// A ledger, and what adds to it.
pub(super) struct Lab<'a> {
    pub(super) args: &'a PredictArgs,
    pub(super) tool: Tool,
    pub(super) traffic: Option<Traffic>,
    pub(super) journal: &'a mut Journal<LedgerEntry>,
    pub(super) stop: &'a Stop<'a>,
    pub(super) bed: Option<Testbed>,
}

impl Lab<'_> {
    /// Does what is asked for; whether all of it was done.
    pub(super) fn work(&mut self, questions: &[Question]) -> anyhow::Result<bool> {
        let points = match (self.args.plan, self.args.seed) {
            (Some(number), Some(seed)) => {
                let points = held(seed, number, self.args.asked.time.as_secs_f64());
                self.add(LedgerEntry::Plan { at: now(), seed, points: points.clone() })?;
                points
            }
            _ => Vec::new(),
        };
        let model = self.model(!points.is_empty())?;
        let asked: Vec<_> = points.iter().map(|point| &point.question).chain(questions).collect();
        if let (Some(traffic), None, false) = (&model.traffic, &self.traffic, questions.is_empty())
        {
            let path = traffic.path.display();
            let said = format!(
                "the model of the ledger is of {path}: --replay says that questions are, too"
            );
            return Err(UsageError(said).into());
        }
        for question in &asked {
            fits(&model, question)?;
        }
        self.print_older();
        self.print_plan(asked.len());
        let points = points.iter().map(|point| (point.question.clone(), Some(point)));
        let asked: Vec<_> =
            points.chain(questions.iter().map(|question| (question.clone(), None))).collect();
        // Machines are faster and slower from minute to minute: what is run is predicted right before.
        let together = if self.args.score { 1 } else { asked.len().max(1) };
        for (number, some) in asked.chunks(together).enumerate() {
            if !self.answer(&model, some)? {
                return Ok(false);
            }
            if self.args.score {
                self.say(&format!("{} of {} predictions", number + 1, asked.len()));
                if !self.score(&model)? && self.is_over() {
                    return Ok(false);
                }
                let is_sought = |chosen| is_among(number, asked.len(), chosen);
                let Some(newest) = scored(self.journal.entries()).len().checked_sub(1) else {
                    continue;
                };
                if is_sought(self.args.lossless) && !self.find_rate(&model, newest)?
                    || is_sought(self.args.bursts) && !self.find_burst(&model, newest)?
                {
                    return Ok(false);
                }
            }
        }
        if !self.args.score {
            return Ok(true);
        }
        let is_whole = self.score(&model)?;
        Ok((!asked.is_empty() || self.find_rest(&model)?) && is_whole)
    }

    /// Finds rates and bursts without loss of some of the predictions that are there, where nothing else is asked; whether it
    /// could.
    fn find_rest(&mut self, model: &Model) -> anyhow::Result<bool> {
        let (rates, bursts) = (self.args.lossless, self.args.bursts);
        Ok(self.find_each(model, rates, |one| one.rate.is_none(), Self::find_rate)?
            && self.find_each(model, bursts, |one| one.burst.is_none(), Self::find_burst)?)
    }

    /// Finds something of so many of the predictions that are without it; whether it could.
    fn find_each(
        &mut self,
        model: &Model,
        chosen: u32,
        is_left: fn(&Scored<'_>) -> bool,
        find: fn(&mut Self, &Model, usize) -> anyhow::Result<bool>,
    ) -> anyhow::Result<bool> {
        let left = self.without(is_left);
        for (at, number) in left.iter().enumerate() {
            if is_among(at, left.len(), chosen) && !find(self, model, *number)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Predictions of the newest model of which something was not looked for: where they stand among all.
    fn without(&self, is_left: fn(&Scored<'_>) -> bool) -> Vec<usize> {
        let newest = models(self.journal.entries());
        let all = scored(self.journal.entries());
        (0..all.len()).filter(|at| all[*at].model == newest && is_left(&all[*at])).collect()
    }

    /// Predicts what is asked, and points of a plan with the rates that they come to; whether it could.
    fn answer(
        &mut self,
        model: &Model,
        asked: &[(Question, Option<&Held>)],
    ) -> anyhow::Result<bool> {
        let questions: Vec<_> = asked.iter().map(|(question, _)| question).collect();
        let raws = raws(&questions, model.traffic.as_ref(), self.stop)?;
        let Some(raws) = raws else { return Ok(false) };
        for ((question, point), raw) in asked.iter().zip(raws) {
            if self.is_over() {
                return Ok(false);
            }
            let question = match point {
                None => question.clone(),
                Some(point) => point.question(model, raw).with_context(|| unknown(question))?,
            };
            self.predict(model, question, raw, point.map(|point| point.pace))?;
        }
        Ok(true)
    }

    /// Finds the rate without loss of a prediction, by where it stands among all; whether it could.
    fn find_rate(&mut self, model: &Model, at: usize) -> anyhow::Result<bool> {
        let all = scored(self.journal.entries());
        let Some(one) = all.get(at) else { return Ok(true) };
        let (number, question) = (one.number, one.question.clone());
        let predicted = one.prediction.lossless.value;
        let (found, trials) = limit::find(self, model, &question, predicted)?;
        self.add(LedgerEntry::Rate { at: now(), number, found, trials })?;
        Ok(!self.is_over())
    }

    /// Finds the longest burst without loss of a prediction, by where it stands among all; whether it could.
    fn find_burst(&mut self, model: &Model, at: usize) -> anyhow::Result<bool> {
        let all = scored(self.journal.entries());
        let Some(one) = all.get(at) else { return Ok(true) };
        let (number, question) = (one.number, one.question.clone());
        let prediction = one.prediction.clone();
        let Some(predicted) = prediction.survived else {
            self.say("bursts: none is thought to be too long for this, so none is tried");
            return Ok(true);
        };
        let (found, trials) = burst::find(self, model, (&question, &prediction), predicted)?;
        self.add(LedgerEntry::Burst { at: now(), number, found, trials })?;
        Ok(!self.is_over())
    }

    pub(super) fn is_over(&self) -> bool {
        self.stop.before(Duration::ZERO).is_some()
    }

    pub(super) fn add(&mut self, entry: LedgerEntry) -> anyhow::Result<()> {
        self.journal.add(entry)
    }

    pub(super) fn say(&self, text: &str) {
        if !self.args.quiet {
            say(text);
        }
    }

    /// The model of the ledger, or a new one.
    fn model(&mut self, is_planned: bool) -> anyhow::Result<Model> {
        let layout = self.args.bed.single()?;
        let has_more = layout.tap.is_some() || layout.disk.is_some() || layout.memory.is_some();
        if has_more || layout.files.is_some() {
            let said = "no model knows a tap, a disk or a bound on memory: predictions are of testbeds without them";
            return Err(UsageError(said.to_owned()).into());
        }
        let is_one_whole = layout.processors == 1 && layout.quota.is_none();
        if layout.placement != Placement::Rps || !is_one_whole {
            let said = "the model is of --placement rps and of one whole processor: elsewhere frames wait in other queues";
            return Err(UsageError(said.to_owned()).into());
        }
        let known = last_model(self.journal.entries()).cloned();
        if let Some(model) = known.filter(|_| !self.args.calibrate && !is_planned) {
            ensure!(
                model.tool == self.tool.name && model.layout == layout,
                "the model of the ledger is of {} on another testbed, or of another tool; --calibrate makes a new one",
                model.tool
            );
            ensure!(
                self.traffic.as_ref().is_none_or(|now| {
                    model.traffic.as_ref().is_some_and(|before| before.path == now.path)
                }),
                "the model of the ledger is of other traffic; --calibrate makes a new one"
            );
            // Earlier versions have written down what they should have refused.
            check(&model)?;
            let traffic = model.traffic.as_ref().map(Traffic::again).transpose()?;
            return Ok(Model { traffic, ..model });
        }
        self.say(&format!("calibrating, {} at most", common::in_words(MOST)));
        self.make_bed(&layout)?;
        let Some(bed) = &self.bed else { bail!("there is no testbed") };
        let (program, _) = super::super::programs()?;
        let is_quiet = self.args.quiet;
        let mut tell = |text: &str| {
            if !is_quiet {
                say(&format!("calibrating: {text}"));
            }
        };
        let traffic = self.traffic.as_ref();
        let variants = self.args.asked.variants();
        let subject = Subject { tool: &self.tool, layout: &layout, variants: &variants, traffic };
        let model = calibrate(bed, &program, subject, self.stop, &mut tell)?;
        self.say(&format!("calibrated in {:.1} s", model.seconds));
        self.add(LedgerEntry::Model { at: now(), model: Box::new(model.clone()) })?;
        Ok(model)
    }

    pub(super) fn make_bed(&mut self, layout: &Layout) -> anyhow::Result<()> {
        if self.bed.is_none() {
            let (_, warden) = super::super::programs()?;
            self.bed = Some(Testbed::make(&warden, layout)?.until(self.stop));
        }
        Ok(())
    }

    fn predict(
        &mut self,
        model: &Model,
        question: Question,
        raw: Option<Raw>,
        pace: Option<Pace>,
    ) -> anyhow::Result<()> {
        let prediction = model.predict(&question, raw);
        let prediction = Box::new(prediction.with_context(|| unknown(&question))?);
        let number = scored(self.journal.entries()).len();
        let number = u32::try_from(number).context("the ledger is full")?;
        self.add(LedgerEntry::Prediction { at: now(), number, pace, question, prediction })
    }

    /// Tells how long it takes, where no run is repeated.
    fn print_plan(&self, asked: usize) {
        let newest = models(self.journal.entries());
        let all = scored(self.journal.entries());
        let left = all.iter().filter(|one| one.model == newest && one.losses.is_empty()).count();
        let runs = if self.args.score { (asked + left) as u32 * self.args.repeat } else { 0 };
        let looks = RAW * LOOKS as u32 * asked as u32;
        let sought = |chosen: u32, is_left: fn(&Scored<'_>) -> bool| {
            let there = if asked == 0 { self.without(is_left).len() } else { asked };
            chosen.min(u32::try_from(there).unwrap_or(u32::MAX))
        };
        let rates = sought(self.args.lossless, |one| one.rate.is_none());
        let bursts = sought(self.args.bursts, |one| one.burst.is_none());
        let searches = limit::PLANNED * rates + burst::PLANNED * bursts;
        let time = looks + searches + (self.args.asked.time + AROUND) * runs;
        let (asked, runs) = (exact(asked as i128), exact(runs.into()));
        let time = common::in_words(time);
        self.say(&format!(
            "{asked} predictions and {runs} runs take about {time} if none is repeated"
        ));
    }

    /// Tells how many predictions are not run, since they are of older models.
    fn print_older(&self) {
        let newest = models(self.journal.entries());
        let all = scored(self.journal.entries());
        let is_older =
            |one: &&Scored<'_>| one.model != newest && one.losses.len() < self.args.repeat as usize;
        let older = all.iter().filter(is_older).count();
        if older > 0 && self.args.score {
            self.say(&format!("{} of older models are not run", exact(older as i128)));
        }
    }
}

/// Whether a number is one of so many that are spread evenly over all.
fn is_among(number: usize, all: usize, chosen: u32) -> bool {
    let before = |number: usize| number * chosen as usize / all.max(1);
    before(number + 1) > before(number)
}

/// What the application costs by itself, for each question: the middle of some looks in rounds over all of them, since
/// machines are faster and slower from second to second. `None` for what nobody knows, and for all where it was ended.
fn raws(
    questions: &[&Question],
    traffic: Option<&Traffic>,
    stop: &Stop<'_>,
) -> anyhow::Result<Option<Vec<Option<Raw>>>> {
    let mut looks: Vec<((u32, Cost), Vec<Raw>)> = Vec::new();
    for question in questions {
        let of = (question.size, question.cost);
        if !looks.iter().any(|(known, _)| *known == of) {
            looks.push((of, Vec::new()));
        }
    }
    for _ in 0..LOOKS {
        for ((size, cost), looks) in &mut looks {
            if stop.before(RAW).is_some() {
                return Ok(None);
            }
            looks.extend(raw_of(*cost, *size, traffic)?);
        }
    }
    for (_, looks) in &mut looks {
        looks.sort_by(|one, other| one.mean.total_cmp(&other.mean));
    }
    let middle = |question: &&Question| {
        let of = (question.size, question.cost);
        let (_, looks) = looks.iter().find(|(known, _)| *known == of)?;
        looks.get(looks.len() / 2).copied()
    };
    Ok(Some(questions.iter().map(middle).collect()))
}

pub(super) fn now() -> i64 {
    clock::now().nanos()
}
