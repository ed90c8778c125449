//! Which settings keep a capture from losing, found by measuring: one change at a time, each against what there is, in turns.
//!
//! What helps beyond noise is kept, and what follows is measured on top of it. The search knows no process and no clock; what
//! runs is a [`Bench`]. [`beds`] has the one that runs testbeds, and THE list of candidates.

pub mod beds;

use netsniff_doctor::change::Change;
use serde::Serialize;

use crate::compare::interval::{Estimate, Interval, mean};
use crate::stop::{Stop, Why};
use crate::tools::Setting;

/// Something to try.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// What is changed, as a user would say it.
    pub name: String,
    /// How.
    pub what: What,
    /// What a loss does not tell of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
}

/// Why a loss does not tell all of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Note {
    /// It spreads flows, and all frames are of one.
    OneFlow,
    /// It rules what is captured, and what happens to that without it.
    Content(&'static str),
}

impl Note {
    /// It in words.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::OneFlow => "it spreads flows, and all frames are of one flow, which one queue and one processor take, \
                              however many there are"
                .to_owned(),
            Self::Content(effect) => {
                format!("it rules what is captured, and no loss tells of that: without it {effect}")
            }
        }
    }
}

/// What is changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// The testbed: where it receives, and settings of the kernel.
    Host(Vec<Setting>),
    /// Options of the tool.
    Tool(Vec<Setting>),
    /// A setting of an interface that is there, or of the kernel.
    Machine(Change),
}

impl What {
    /// Whether it lets more queues, processors or threads take flows.
    #[must_use]
    pub fn spreads_flows(&self) -> bool {
        let has = |settings: &[Setting], names: &[&str]| {
            settings.iter().any(|it| names.contains(&it.name.as_str()))
        };
        match self {
            Self::Host(settings) => has(settings, &["receivers", "queues"]),
            Self::Tool(settings) => has(settings, &["workers"]),
            Self::Machine(change) => change.setting.spreads_flows(),
        }
    }
}

/// What runs a tool with some changes, at a rate, and tells the share that was lost.
pub trait Bench {
    /// The share that was lost; `None` where no run proved anything.
    ///
    /// # Errors
    ///
    /// Whatever prevents a run; changes that cannot be made are no errors but [`Loss::Unable`].
    fn loss(&mut self, rate: f64, changes: &[&Candidate]) -> anyhow::Result<Loss>;
}

/// What a run told.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// The share that was lost.
    Share(f64),
    /// No run proved anything, and why the last one did not.
    Unknown(String),
    /// This change cannot be made here, and why.
    Unable(String),
}

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TuneGoal {
    /// Frames a second that are to be captured without loss; `None` for as many as can be.
    pub rate: Option<f64>,
    /// Frames a second to begin with, where none are told.
    pub first: f64,
    /// How often a candidate and what there is are measured against each other.
    pub pairs: usize,
    /// How long a run takes with all that it needs, to tell whether there is time for it.
    pub run: std::time::Duration,
}

/// What became of a candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// What was tried.
    pub candidate: Candidate,
    /// The rate at which it was, in frames a second.
    pub rate: f64,
    /// The shares that were lost without it.
    pub without: Vec<f64>,
    /// The shares that were lost with it.
    pub with: Vec<f64>,
    /// Their difference, in shares of what was sent; below 0 less was lost.
    pub difference: Option<f64>,
    /// Where it lies in 95 % of all cases.
    pub interval: Interval,
    /// What that means.
    pub verdict: Verdict,
}

/// What a comparison means.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Less is lost beyond noise: it is kept.
    Kept,
    /// No difference beyond noise: it is taken back.
    NoEffect,
    /// More is lost beyond noise: it is taken back.
    Worse,
    /// It could not be tried.
    Untried(String),
}

/// What a search came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tuned {
    /// The rate of the last comparison, in frames a second.
    pub rate: f64,
    /// Shares that were lost at it at the begin, without any change.
    pub before: Vec<f64>,
    /// Likewise with all that was kept, in turns with those.
    pub after: Vec<f64>,
    /// All candidates in the order in which they were tried.
    pub outcomes: Vec<Outcome>,
    /// Why not all were tried; `None` where all were, or no more need be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Why>,
    /// Whether nothing was lost in the end.
    pub is_lossless: bool,
}

impl Tuned {
    /// What was kept.
    pub fn kept(&self) -> impl Iterator<Item = &Candidate> {
        let kept = self.outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Kept);
        kept.map(|outcome| &outcome.candidate)
    }
}

/// A rate is raised by this while nothing is lost at it.
const STEP: f64 = 1.5;

/// How often at most.
const STEPS: usize = 24;

/// Searches; `say` is told of each step.
///
/// # Errors
///
/// As [`Bench::loss`].
pub fn tune(
    bench: &mut dyn Bench,
    candidates: &[Candidate],
    goal: &TuneGoal,
    stop: &Stop<'_>,
    say: &mut dyn FnMut(&str),
) -> anyhow::Result<Tuned> {
    let mut search = Search { bench, goal, stop, say, kept: Vec::new(), ended: None };
    let mut outcomes = Vec::new();
    let mut rate = search.losing(goal.rate.unwrap_or(goal.first))?;
    for candidate in candidates {
        if search.is_over(2 * goal.pairs) {
            break;
        }
        let outcome = search.compare(rate, candidate)?;
        (search.say)(&words(&outcome));
        if outcome.verdict == Verdict::Kept {
            search.kept.push(candidate.clone());
            let is_enough = outcome.with.iter().all(|loss| *loss == 0.0);
            outcomes.push(outcome);
            if is_enough && goal.rate.is_some() {
                break;
            }
            if is_enough {
                rate = search.losing(rate)?;
            }
        } else {
            outcomes.push(outcome);
        }
    }
    let (before, after) = search.proof(rate)?;
    let is_lossless = !after.is_empty() && after.iter().all(|loss| *loss == 0.0);
    Ok(Tuned { rate, before, after, outcomes, ended: search.ended, is_lossless })
}

struct Search<'a, 's> {
    bench: &'a mut dyn Bench,
    goal: &'a TuneGoal,
    stop: &'a Stop<'s>,
    say: &'a mut dyn FnMut(&str),
    kept: Vec<Candidate>,
    ended: Option<Why>,
}

impl Search<'_, '_> {
    /// Whether there is no time for so many runs more.
    fn is_over(&mut self, runs: usize) -> bool {
        let runs = u32::try_from(runs).unwrap_or(u32::MAX);
        self.ended = self.ended.or_else(|| self.stop.before(self.goal.run.saturating_mul(runs)));
        self.ended.is_some()
    }

    fn run(&mut self, rate: f64, more: Option<&Candidate>) -> anyhow::Result<Loss> {
        let changes: Vec<&Candidate> = self.kept.iter().chain(more).collect();
        self.bench.loss(rate, &changes)
    }

    /// The first rate from this one on at which something is lost with what is kept; this one, where it is the goal.
    fn losing(&mut self, mut rate: f64) -> anyhow::Result<f64> {
        if self.goal.rate.is_some() {
            return Ok(rate);
        }
        for _ in 0..STEPS {
            if self.is_over(1) {
                break;
            }
            match self.run(rate, None)? {
                Loss::Share(0.0) => rate *= STEP,
                Loss::Share(share) => {
                    (self.say)(&format!(
                        "at {rate:.0} frames a second {:.3} % are lost",
                        share * 100.0
                    ));
                    break;
                }
                // Faster than the sender: what there is is enough.
                Loss::Unknown(_) | Loss::Unable(_) => break,
            }
        }
        Ok(rate)
    }

    /// Measures a candidate against what there is, in turns: once the one first, then the other.
    fn compare(&mut self, rate: f64, candidate: &Candidate) -> anyhow::Result<Outcome> {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        let (mut untried, mut void) = (None, None);
        for pair in 0..self.goal.pairs {
            for turn in 0..2 {
                let is_with = (pair + turn) % 2 == 1;
                match self.run(rate, is_with.then_some(candidate))? {
                    Loss::Share(share) if is_with => with.push(share),
                    Loss::Share(share) => without.push(share),
                    Loss::Unknown(why) => void = Some(why),
                    Loss::Unable(why) => untried = Some(why),
                }
            }
            if untried.is_some() || self.stop.is_set() {
                break;
            }
        }
        if without.len().min(with.len()) < 2 {
            let why = void.unwrap_or_else(|| "too few runs".to_owned());
            untried = untried.or(Some(format!("too few runs proved something: {why}")));
        }
        let estimate = Estimate::difference(&without, &with);
        let interval = interval(&without, &with, estimate);
        let verdict = untried.map_or_else(|| verdict(&interval, &without, &with), Verdict::Untried);
        let difference = estimate.map(|it| it.value);
        Ok(Outcome {
            candidate: candidate.clone(),
            rate,
            without,
            with,
            difference,
            interval,
            verdict,
        })
    }

    /// What there was and what was kept, in turns.
    fn proof(&mut self, rate: f64) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for _ in 0..self.goal.pairs {
            if self.is_over(2) {
                break;
            }
            if let Loss::Share(share) = self.bench.loss(rate, &[])? {
                before.push(share);
            }
            if !self.kept.is_empty()
                && let Loss::Share(share) = self.run(rate, None)?
            {
                after.push(share);
            }
        }
        if self.kept.is_empty() {
            after.clone_from(&before);
        }
        Ok((before, after))
    }
}

/// An interval of the difference. Where the repetitions of one side do not differ at all, the other's spread tells.
fn interval(without: &[f64], with: &[f64], estimate: Option<Estimate>) -> Interval {
    if without.len() < 2 || with.len() < 2 {
        return Interval::Unavailable { why: "too few runs proved something" };
    }
    estimate.map_or(Interval::Unavailable { why: "no run proved anything" }, |it| {
        it.interval(|value| value)
    })
}

fn verdict(interval: &Interval, without: &[f64], with: &[f64]) -> Verdict {
    match interval.ends() {
        Some([_, high]) if high < 0.0 => Verdict::Kept,
        Some([low, _]) if low > 0.0 => Verdict::Worse,
        Some(_) => Verdict::NoEffect,
        // All runs of a side are alike: there is no noise.
        None => match mean(with).unwrap_or_default() - mean(without).unwrap_or_default() {
            less if less < 0.0 => Verdict::Kept,
            more if more > 0.0 => Verdict::Worse,
            _ => Verdict::NoEffect,
        },
    }
}

/// An outcome in a line.
#[must_use]
pub fn words(outcome: &Outcome) -> String {
    let share = |of: &[f64]| {
        mean(of).map_or_else(|| "unavailable".to_owned(), |mean| format!("{:.3} %", mean * 100.0))
    };
    let ends = outcome.interval.ends().map_or_else(String::new, |[low, high]| {
        format!(", the difference is {:.3} to {:.3} points", low * 100.0, high * 100.0)
    });
    let verdict = match &outcome.verdict {
        Verdict::Kept => "kept".to_owned(),
        Verdict::NoEffect => "no effect beyond noise: taken back".to_owned(),
        Verdict::Worse => "worse: taken back".to_owned(),
        Verdict::Untried(why) => format!("not tried: {why}"),
    };
    let note =
        outcome.candidate.note.map_or_else(String::new, |note| format!("; {}", note.words()));
    format!(
        "{}: lost {} without, {} with{ends}: {verdict}{note}",
        outcome.candidate.name,
        share(&outcome.without),
        share(&outcome.with)
    )
}

#[cfg(test)]
mod tests;
