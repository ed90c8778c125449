//! The runs of a calibration, as long as there is time for them.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use super::super::Service;
use super::super::fit::Observation;
use super::super::raw::Raw;
use super::super::simulate::{Clock, Queues};
use super::super::traffic::Traffic;
use super::void::VoidPoint;
use super::{
    AROUND, GUESSED, Host, Kind, LEAST_LOSS, LOWERED, MOST, MOST_LOSS, OVER, RAISED, RAW,
    RAW_LEAST, REACHED, RING, SENT, SIZES, Subject, TRIED, settings,
};
use crate::load::Load;
use crate::tools::{Setting, Tool};
use crate::trial::{Trial, reasons};
use crate::work::Cost;

/// Runs that are made, and what they told so far.
pub(super) struct Runs<'a> {
    pub(super) host: &'a mut dyn Host,
    pub(super) tool: &'a Tool,
    pub(super) traffic: Option<&'a Traffic>,
    /// The share of the time that the machine does not stand still.
    pub(super) time: f64,
    /// The most that a run took so far beside the time that frames are sent.
    pub(super) around: Duration,
    /// What was seen of work by itself.
    pub(super) looks: Vec<Service>,
    /// By how much the processor manages more than is thought, or less, as the first round tells: of sizes and kinds.
    pub(super) learned: Vec<((u32, Kind), f64)>,
}

pub(super) struct Observed {
    pub(super) observations: Vec<Observation>,
    /// Points of which no run proves something.
    pub(super) void: Vec<VoidPoint>,
    /// Runs for which there was no time.
    pub(super) left_out: u32,
}

/// What came of a point.
enum Seen {
    Costs(Observation),
    /// The sender cannot send too much.
    Nothing,
    /// What was wrong with the last run.
    Void(VoidPoint),
    NoTime,
}

impl<'a> Runs<'a> {
    /// None was made yet; `time` is the share of it in which the machine does not stand still.
    pub(super) fn new(host: &'a mut dyn Host, subject: &Subject<'a>, time: f64) -> Self {
        let Subject { tool, traffic, .. } = *subject;
        Self { host, tool, traffic, time, around: AROUND, looks: Vec::new(), learned: Vec::new() }
    }

    /// A run, and what work costs by itself right after it; `None` where there is no time for that.
    fn run(
        &mut self,
        tool: &Tool,
        load: &Load,
        cost: Cost,
    ) -> anyhow::Result<Option<(Trial, Option<Raw>)>> {
        if !self.has_time(load.time) {
            return Ok(None);
        }
        let begin = self.host.elapsed();
        let trial = self.host.run(tool, load)?;
        let lost =
            trial.loss().map_or("unavailable".to_owned(), |loss| format!("{:.2} %", loss * 100.0));
        let rate = trial.reached.unwrap_or_default();
        self.host.progress(&format!("{} bytes at {rate:.0} frames/s: {lost} lost", load.size));
        let raw = self.host.raw(cost, load.size)?;
        let took = self.host.elapsed().saturating_sub(begin);
        // One that had to be killed tells nothing of others.
        if trial.ended {
            self.around = self.around.max(took.saturating_sub(load.time));
        }
        Ok(Some((trial, raw)))
    }

    /// Whether there is time for a run that sends for so long, and for a look before it.
    fn has_time(&self, time: Duration) -> bool {
        self.host.elapsed() + RAW + RAW_LEAST + time + self.around <= MOST
    }

    fn load(&self, size: u32) -> Load {
        let capture = self.traffic.map(|traffic| traffic.path.clone());
        Load { size, time: SENT, capture, ..Load::default() }
    }

    /// How far apart frames are that leave as fast as possible, where the capture does as little as it can.
    pub(super) fn gaps(&mut self) -> anyhow::Result<Vec<(u32, f64)>> {
        let count = Tool::all().into_iter().find(|tool| tool.name == "count");
        let count = count.context("there is no tool that only counts")?;
        let mut gaps = Vec::new();
        let sizes = self.traffic.map_or(SIZES.to_vec(), |traffic| vec![traffic.size()]);
        for size in sizes {
            gaps.push((size, self.gap(&count, size)?));
        }
        Ok(gaps)
    }

    fn gap(&mut self, count: &Tool, size: u32) -> anyhow::Result<f64> {
        let load = Load { time: SENT / 2, ..self.load(size) };
        for _ in 0..TRIED {
            let Some((trial, _)) = self.run(count, &load, Cost::default())? else { break };
            if let Some(reached) = trial.reached.filter(|_| trial.is_true_at_reached()) {
                return Ok(1e9 / reached);
            }
        }
        bail!("no run tells how fast the sender sends {size} bytes")
    }

    /// All points, as long as there is time: each round makes what the ones before told better.
    pub(super) fn observe_all(
        &mut self,
        kinds: &[Kind],
        gaps: &[(u32, f64)],
    ) -> anyhow::Result<Observed> {
        let mut observed = Observed { observations: Vec::new(), void: Vec::new(), left_out: 0 };
        for over in OVER {
            for (size, gap) in gaps {
                for kind in kinds {
                    match self.observe((*size, kind), over, 1e9 / gap)? {
                        Seen::Costs(observation) => observed.observations.push(observation),
                        Seen::Nothing => {}
                        Seen::Void(point) => {
                            self.host.progress(&point.words());
                            observed.void.push(point);
                        }
                        Seen::NoTime => observed.left_out += 1,
                    }
                }
            }
        }
        Ok(observed)
    }

    /// Keeps what was seen of work by itself.
    fn look(&mut self, raw: Option<Raw>, size: u32, (settings, cost): &Kind) {
        let service = |raw| Service { settings: settings.clone(), cost: *cost, size, raw };
        self.looks.extend(raw.map(service));
    }

    /// The rate that is tried first.
    fn first(&self, of: &(u32, Kind), raw: Option<Raw>, over: f64) -> f64 {
        let known = self.learned.iter().find(|(known, _)| known == of);
        1e9 / (mean(raw) + GUESSED) * over * known.map_or(1.0, |(_, times)| *times)
    }

    /// Keeps that a rate was right which is so many times the first one, where nothing is known yet.
    fn learn(&mut self, of: (u32, Kind), times: f64) {
        if self.learned.iter().all(|(known, _)| *known != of) {
            self.learned.push((of, times));
        }
    }

    /// A run that is too much for the processor.
    fn observe(
        &mut self,
        (size, kind): (u32, &Kind),
        (over, burst): (f64, u32),
        top: f64,
    ) -> anyhow::Result<Seen> {
        let (variant, cost) = (&kind.0, kind.1);
        let settings = [settings(cost, RING), variant.clone()].concat();
        let tool = self.tool.with(&settings).map_err(anyhow::Error::msg)?;
        if !self.has_time(SENT) {
            return Ok(Seen::NoTime);
        }
        // Machines are faster and slower from second to second: what counts is how fast this one was at the time.
        let mut before = self.host.raw(cost, size)?;
        self.look(before, size, kind);
        let of = (size, kind.clone());
        let first = self.first(&of, before, over);
        let (mut rate, mut void) = (first, None);
        let fail = |asked: f64, why| {
            let settings = variant.clone();
            Some(VoidPoint { settings, size, rate: asked, burst, why })
        };
        for _ in 0..TRIED {
            let load = self.load(size).with(&[together(burst)]);
            let asked = rate.min(top * REACHED);
            let load = Load { rate: Some(asked), ..load };
            let Some((trial, after)) = self.run(&tool, &load, cost)? else {
                return Ok(Seen::NoTime);
            };
            self.look(after, size, kind);
            let middle = |of: fn(Raw) -> f64| {
                let [before, after] = [before, after].map(|raw| of(raw.unwrap_or_default()));
                f64::midpoint(before, after)
            };
            let (raw, least) = (middle(|raw| raw.mean), middle(|raw| raw.least));
            before = after;
            ensure!(
                trial.counted.captured.is_some() && trial.reached.is_some(),
                "{} does not tell what it captured",
                tool.name
            );
            if !trial.is_true_at_reached() {
                void = fail(asked, reasons(&trial.faults, trial.failure.as_deref()));
                continue;
            }
            if let Some(loss) = trial.loss().filter(|loss| *loss > MOST_LOSS) {
                // What was sent was at most what the sender can do.
                rate = asked * LOWERED;
                void = fail(
                    asked,
                    format!("{:.1} % were lost, so nearly none was kept", loss * 100.0),
                );
                continue;
            }
            if let Some((arrived, served)) = served(&trial, size) {
                self.learn(of, rate / first);
                let (settings, rate, time) = (variant.clone(), arrived, self.time);
                let observation =
                    Observation { settings, size, raw, least, burst, rate, served, time };
                return Ok(Seen::Costs(observation));
            }
            if rate >= top * REACHED {
                return Ok(Seen::Nothing);
            }
            rate *= RAISED;
            void = None;
        }
        Ok(void.map_or(Seen::Nothing, Seen::Void))
    }
}

/// Frames a second that arrived and that were kept in a run; `None` where it lost next to nothing, so that it had time
/// left.
fn served(trial: &Trial, size: u32) -> Option<(f64, f64)> {
    let (captured, reached) = (trial.counted.captured?, trial.reached?);
    trial.loss().filter(|loss| *loss >= LEAST_LOSS)?;
    let seconds = trial.sent as f64 / reached;
    // What the ring held in the end was not served while frames came.
    let room = Queues::new(RING, 0, Clock::default()).frames(size);
    // Drops of the backlog are the whole machine's.
    let arrived = trial.sent.min(trial.arrived);
    Some((arrived as f64 / seconds, (captured as f64 - room).max(0.0) / seconds))
}

/// The option of the sender by which so many frames leave together.
fn together(burst: u32) -> Setting {
    Setting { name: "burst".to_owned(), value: burst.to_string() }
}

fn mean(raw: Option<Raw>) -> f64 {
    raw.unwrap_or_default().mean
}
