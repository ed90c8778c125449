//! The runs that costs come from: a minute at most.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::fit::{Fit, Observation};
use super::simulate::Queues;
use super::traffic::Traffic;
use super::{Model, raw, stalls};
use crate::bed::{Bed, CAPTURE_CPU, Layout};
use crate::load::Load;
use crate::process;
use crate::stop::Stop;
use crate::tools::{Setting, Tool};
use crate::trial::{self, Trial};
use crate::work::Cost;

/// Sizes of frames.
const SIZES: [u32; 2] = [128, 1024];

/// What `lab work` does for each packet; others do what they do.
const LEVELS: [u32; 2] = [1, 6];

/// Rates that are tried, as multiples of what a processor is thought to manage, and how many frames come together. Where
/// they come one by one, interrupts take a part of the time, and less of it at the lower rate.
const OVER: [(f64, u32); 4] = [(1.35, 32), (2.1, 32), (0.7, 1), (1.6, 1)];

/// A run that loses less than this has time left, and tells nothing; then the rate is raised so much, so often at most.
const LEAST_LOSS: f64 = 0.04;
const RAISED: f64 = 1.5;
const TRIED: u32 = 3;

/// Bytes of the ring: little, so that what it holds is of no account.
const RING: u64 = 4 << 20;

/// How long work is measured by itself.
pub const RAW: Duration = Duration::from_millis(100);

/// How long stalls are watched, and frames are sent.
const WATCHED: Duration = Duration::from_secs(4);
const SENT: Duration = Duration::from_millis(1500);

/// How long all of it takes, about.
pub const PLANNED: Duration = Duration::from_secs(55);

/// What is thought of costs before anything is known, in nanoseconds.
const GUESSED: f64 = 2500.0;

/// The share of its full speed that a sender keeps to.
const REACHED: f64 = 0.9;

/// What is calibrated.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// What captures.
    pub tool: &'a Tool,
    /// The testbed.
    pub layout: &'a Layout,
    /// The capture whose frames are sent; `None` for stamped ones.
    pub traffic: Option<&'a Traffic>,
}

/// Runs everything that a model needs; `tell` hears of each run.
///
/// # Errors
///
/// Where a run fails, where it was ended, and where no run lost anything: then the sender is the limit.
pub fn calibrate(
    bed: &Bed,
    netsniff: &Path,
    subject: Subject<'_>,
    stop: &Stop<'_>,
    tell: &mut dyn FnMut(&str),
) -> anyhow::Result<Model> {
    let Subject { tool, layout, traffic } = subject;
    let begin = Instant::now();
    let stalls = stalls::watch(CAPTURE_CPU, WATCHED)?;
    let still = stalls.lengths.iter().sum::<u64>() as f64 / stalls.watched.max(1) as f64;
    tell(&format!("stalls: {:.2} % of the time, {} of them", still * 100.0, stalls.lengths.len()));
    let mut runs = Runs { bed, netsniff, tool, traffic, stop, tell, time: 1.0 - still };
    let gaps = runs.gaps()?;
    let mut observations = Vec::new();
    let costs: Vec<_> = if tool.name == WORK {
        LEVELS.map(|level| Cost { zip: Some(level), delay: None }).to_vec()
    } else {
        vec![Cost::default()]
    };
    for (size, gap) in &gaps {
        for cost in &costs {
            for over in OVER {
                observations.extend(runs.observe((*size, *cost), over, 1e9 / gap)?);
            }
        }
    }
    let Some(fit) = Fit::of(&observations) else {
        let top = gaps.iter().map(|(size, gap)| format!("{:.0} of {size} bytes", 1e9 / gap));
        bail!(
            "{} loses nothing that the sender can send, or next to nothing: up to {} frames a second; there is nothing to \
             predict",
            tool.name,
            top.collect::<Vec<_>>().join(", ")
        );
    };
    Ok(Model {
        tool: tool.name.clone(),
        layout: layout.clone(),
        traffic: traffic.cloned(),
        fit,
        gaps,
        stalls,
        backlog: backlog()?,
        observations,
        seconds: begin.elapsed().as_secs_f64(),
    })
}

/// The tool whose cost is a dial.
const WORK: &str = "work";

/// The setting of the kernel that is now, which the testbed may have changed.
fn backlog() -> anyhow::Result<u64> {
    let text = std::fs::read_to_string("/proc/sys/net/core/netdev_max_backlog");
    text.ok()
        .and_then(|text| text.trim().parse().ok())
        .context("the kernel does not tell its backlog")
}

/// What work costs by itself on the processor that captures, on stamped frames of a size or on those of a capture.
///
/// # Errors
///
/// As [`raw::stamped`] and [`raw::measure`].
pub fn raw_of(cost: Cost, size: u32, traffic: Option<&Traffic>) -> anyhow::Result<f64> {
    if cost.zip.is_none() {
        return Ok(0.0);
    }
    let frames = match traffic {
        Some(traffic) => traffic.samples().to_vec(),
        None => raw::stamped(size)?,
    };
    Ok(process::on_processor(CAPTURE_CPU, move || raw::measure(cost, &frames, RAW))??.mean)
}

/// The options of `lab work` that a cost is.
#[must_use]
pub fn settings(cost: Cost, ring: u64) -> Vec<Setting> {
    let setting = |name: &str, value: String| Setting { name: name.to_owned(), value };
    let zip = cost.zip.map(|level| setting("zip", level.to_string()));
    let delay =
        cost.delay.map(|delay| setting("delay", format!("{}us", delay.as_nanos() as f64 / 1e3)));
    let ring = setting("ring", ring.to_string());
    [Some(ring), zip, delay].into_iter().flatten().collect()
}

struct Runs<'a> {
    bed: &'a Bed,
    netsniff: &'a Path,
    tool: &'a Tool,
    traffic: Option<&'a Traffic>,
    stop: &'a Stop<'a>,
    tell: &'a mut dyn FnMut(&str),
    /// The share of the time that the machine does not stand still.
    time: f64,
}

impl Runs<'_> {
    fn run(&mut self, tool: &Tool, load: &Load) -> anyhow::Result<Trial> {
        if let Some(why) = self.stop.before(load.time) {
            bail!("the calibration was ended: {}", why.words());
        }
        let trial = trial::run(self.bed, self.netsniff, tool, load)?;
        let lost =
            trial.loss().map_or("unavailable".to_owned(), |loss| format!("{:.2} %", loss * 100.0));
        let rate = trial.reached.unwrap_or_default();
        (self.tell)(&format!("{} bytes at {rate:.0} frames/s: {lost} lost", load.size));
        Ok(trial)
    }

    fn load(&self, size: u32) -> Load {
        let capture = self.traffic.map(|traffic| traffic.path.clone());
        Load { size, time: SENT, capture, ..Load::default() }
    }

    /// How far apart frames are that leave as fast as possible, where the capture does as little as it can.
    fn gaps(&mut self) -> anyhow::Result<Vec<(u32, f64)>> {
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
        for _ in 0..TRIED {
            let trial = self.run(count, &Load { time: SENT / 2, ..self.load(size) })?;
            if let Some(reached) = trial.reached.filter(|_| trial.is_true_at_reached()) {
                return Ok(1e9 / reached);
            }
        }
        bail!("no run tells how fast the sender sends {size} bytes")
    }

    /// A run that is too much for the processor; `None` where the sender cannot send so much.
    fn observe(
        &mut self,
        (size, cost): (u32, Cost),
        (over, burst): (f64, u32),
        top: f64,
    ) -> anyhow::Result<Option<Observation>> {
        let tool = self.tool.with(&settings(cost, RING)).map_err(anyhow::Error::msg)?;
        let room = Queues::new(RING, 0).frames(size);
        // Machines are faster and slower from second to second: what counts is how fast this one was at the time.
        let mut before = raw_of(cost, size, self.traffic)?;
        let mut rate = 1e9 / (before + GUESSED) * over;
        for _ in 0..TRIED {
            let together = Setting { name: "burst".to_owned(), value: burst.to_string() };
            let load = Load { rate: Some(rate.min(top * REACHED)), ..self.load(size) };
            let load = load.with(&[together]);
            let trial = self.run(&tool, &load)?;
            let after = raw_of(cost, size, self.traffic)?;
            let raw = f64::midpoint(before, after);
            before = after;
            let (Some(captured), Some(reached)) = (trial.counted.captured, trial.reached) else {
                bail!("{} does not tell what it captured", tool.name);
            };
            if !trial.is_true_at_reached() {
                continue;
            }
            if trial.loss().is_some_and(|loss| loss >= LEAST_LOSS) {
                let seconds = trial.sent as f64 / reached;
                // What the ring held in the end was not served while frames came.
                let served = (captured as f64 - room).max(0.0) / seconds;
                // Drops of the backlog are the whole machine's.
                let arrived = trial.sent.min(trial.arrived) as f64 / seconds;
                return Ok(Some(Observation {
                    size,
                    raw,
                    burst,
                    rate: arrived,
                    served,
                    time: self.time,
                }));
            }
            if rate >= top * REACHED {
                return Ok(None);
            }
            rate *= RAISED;
        }
        Ok(None)
    }
}
