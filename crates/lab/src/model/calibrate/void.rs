//! Calibrations that no prediction may rest on: which run was wrong, how, and what to do.

use anyhow::{bail, ensure};
use netsniff_console::number::exact;

use super::super::Model;
use super::super::fit::{Fit, Observation};
use super::super::stalls::Stalls;
use crate::tools::Setting;

/// The most of the time that a machine may stand still while it is watched: beyond it, chance decides what is lost.
const MOST_STILL: f64 = 0.5;

/// The most that costs may be off on average, as a share of the time that the runs had which they come from: who misses what
/// is known by more predicts nothing of what is not.
const MOST_MISSED: f64 = 0.2;

/// The least that keeping a frame costs in a capture, as a share of what the application takes for it by itself: it does the
/// same there, in colder caches. Costs below that were found where something else took the time.
const LEAST_KEPT: f64 = 0.5;

/// What to do about a calibration that other work has disturbed.
const REST: &str =
    "end what else runs on this machine, or give it processors of its own, and calibrate again";

/// A point of which no run tells what frames cost.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct VoidPoint {
    pub(super) settings: Vec<Setting>,
    pub(super) size: u32,
    /// Frames a second that were asked for in the last run.
    pub(super) rate: f64,
    pub(super) burst: u32,
    /// What was wrong with the last run.
    pub(super) why: String,
}

impl VoidPoint {
    /// The run, and what was wrong with it.
    pub(super) fn words(&self) -> String {
        let Self { settings, size, rate, burst, why } = self;
        format!("{}: {why}", run(settings, *size, *rate, *burst))
    }
}

/// A run in words, by what was sent and how the tool was set.
fn run(settings: &[Setting], size: u32, rate: f64, burst: u32) -> String {
    let settings: Vec<_> =
        settings.iter().map(|Setting { name, value }| format!(", {name}={value}")).collect();
    let rate = exact(rate.round() as i128);
    format!("the run of {size} bytes at {rate} frames/s, {burst} together{}", settings.concat())
}

/// Refuses what was observed where a size of frames is not known since its runs prove nothing, or where too few do.
///
/// # Errors
///
/// With the run, what was wrong with it, and what to do.
pub(super) fn check_points(observations: &[Observation], void: &[VoidPoint]) -> anyhow::Result<()> {
    let is_known = |of: &VoidPoint| {
        observations.iter().any(|one| one.size == of.size && one.settings == of.settings)
    };
    let is_short = observations.len() < Fit::needed(observations);
    let Some(worst) = void.iter().find(|of| is_short || !is_known(of)) else { return Ok(()) };
    bail!(
        "the calibration is void: {} ({} runs tell something, {} points tell nothing); {REST}",
        worst.words(),
        observations.len(),
        void.len()
    )
}

/// Refuses a machine that stood still for most of the time.
///
/// # Errors
///
/// With how long that was, and what to do.
pub(super) fn check_stalls(stalls: &Stalls) -> anyhow::Result<()> {
    let still = stalls.share();
    ensure!(
        still <= MOST_STILL,
        "the calibration is void: the processor that captures stood still for {:.0} % of the time that it was watched, and \
         may for {:.0} % at most; {REST}",
        still * 100.0,
        MOST_STILL * 100.0
    );
    Ok(())
}

/// Refuses a model that no prediction may rest on, whoever made it: of a machine that stood still, or with costs that cannot be
/// or do not explain their own runs.
///
/// # Errors
///
/// With the run that tells, what is wrong, and what to do.
pub fn check(model: &Model) -> anyhow::Result<()> {
    check_stalls(&model.stalls)?;
    for one in &model.observations {
        check_kept(model, one)?;
    }
    let known = model.observations.iter().filter_map(|one| Some((one, explained(model, one)?)));
    let known: Vec<_> = known.collect();
    let off = |share: f64| (share - 1.0).abs();
    let missed = known.iter().map(|(_, share)| off(*share)).sum::<f64>() / known.len() as f64;
    let worst = known.iter().max_by(|(_, one), (_, other)| off(*one).total_cmp(&off(*other)));
    let Some((one, share)) = worst.filter(|_| missed > MOST_MISSED) else { return Ok(()) };
    bail!(
        "the calibration is void: its costs are off by {:.0} % of the time of its own runs on average, and may be by {:.0} % at \
         most; {} is explained worst: its costs make {:.0} % of the time that it had; {REST} (--calibrate)",
        missed * 100.0,
        MOST_MISSED * 100.0,
        run(&one.settings, one.size, one.rate, one.burst),
        share * 100.0
    )
}

/// Refuses costs by which keeping a frame takes much less than what the application does for it, where that is known.
fn check_kept(model: &Model, one: &Observation) -> anyhow::Result<()> {
    let Some(fit) = model.fit_with(&one.settings) else { return Ok(()) };
    let kept = fit.costs(one.size, one.raw, one.least).kept;
    ensure!(
        kept >= LEAST_KEPT * one.raw,
        "the calibration is void: by its costs a frame that is kept takes {kept:.0} ns in {}, but the application takes {:.0} ns \
         for one by itself; {REST} (--calibrate)",
        run(&one.settings, one.size, one.rate, one.burst),
        one.raw
    );
    Ok(())
}

/// What the costs of a model make of an observation, as a share of the time that it had; `None` where the model has no costs
/// for its settings.
fn explained(model: &Model, one: &Observation) -> Option<f64> {
    let costs = model.fit_with(&one.settings)?.costs(one.size, one.raw, one.least);
    let frames = (one.rate * costs.frame + one.served * costs.kept) / 1e9;
    Some((costs.interrupts(one.rate, one.burst) + frames) / one.time)
}
