//! The runs that costs come from: a minute at most, whatever is repeated.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use super::fit::{Fit, Observation};
use super::raw::{self, Raw};
use super::simulate::Queues;
use super::stalls::{self, Stalls};
use super::traffic::Traffic;
use super::wakes::{self, Wakes};
use super::{Model, Service};
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
/// What matters most comes first: a calibration of which the time is over leaves out the rest.
const OVER: [(f64, u32); 4] = [(1.35, 32), (1.6, 1), (2.1, 32), (0.7, 1)];

/// A run that loses less than this has time left, and tells nothing; then the rate is raised so much, so often at most.
const LEAST_LOSS: f64 = 0.04;
const RAISED: f64 = 1.5;
const TRIED: u32 = 3;

/// Bytes of the ring: little, so that what it holds is of no account.
const RING: u64 = 4 << 20;

/// How long work is measured by itself.
pub const RAW: Duration = Duration::from_millis(100);

/// How long stalls are watched, waking is tried, and frames are sent.
const WATCHED: Duration = Duration::from_secs(4);
const WOKEN: Duration = Duration::from_secs(1);
const SENT: Duration = Duration::from_millis(1500);

/// How long all of it may take: what would take longer is not begun.
pub const MOST: Duration = Duration::from_secs(60);

/// What a run takes beside the time that frames are sent, before any run has shown it.
const AROUND: Duration = Duration::from_millis(1500);

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
    /// Settings of the tool that its cost depends on, each of which it is tried with; without any as it comes.
    pub variants: &'a [Vec<Setting>],
    /// The capture whose frames are sent; `None` for stamped ones.
    pub traffic: Option<&'a Traffic>,
}

/// What is tried: settings, and what work is done for each packet.
type Kind = (Vec<Setting>, Cost);

/// The tool whose cost is a dial.
const WORK: &str = "work";

/// The setting of the kernel that is now, which the testbed may have changed.
fn backlog() -> anyhow::Result<u64> {
    let text = std::fs::read_to_string("/proc/sys/net/core/netdev_max_backlog");
    text.ok()
        .and_then(|text| text.trim().parse().ok())
        .context("the kernel does not tell its backlog")
}

/// What work costs by itself on the processor that captures, on stamped frames of a size or on those of a capture; `None`
/// of what no work is told of.
///
/// # Errors
///
/// As [`raw::stamped`] and [`raw::measure`].
pub fn raw_of(cost: Cost, size: u32, traffic: Option<&Traffic>) -> anyhow::Result<Option<Raw>> {
    if cost.zip.is_none() {
        return Ok(None);
    }
    let frames = match traffic {
        Some(traffic) => traffic.samples().to_vec(),
        None => raw::stamped(size)?,
    };
    process::on_processor(CAPTURE_CPU, move || raw::measure(cost, &frames, RAW))?.map(Some)
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

/// Where runs are made, and by which clock.
trait Host {
    /// How long ago the calibration began.
    fn elapsed(&self) -> Duration;

    /// When the machine stands still.
    fn stalls(&mut self) -> anyhow::Result<Stalls>;

    /// How long it takes until who sleeps goes on.
    fn wakes(&mut self) -> anyhow::Result<Wakes>;

    /// What work costs by itself on frames of a size; `None` where nobody knows.
    fn raw(&mut self, cost: Cost, size: u32) -> anyhow::Result<Option<Raw>>;

    /// A run.
    fn run(&mut self, tool: &Tool, load: &Load) -> anyhow::Result<Trial>;

    /// Hears what is done.
    fn tell(&mut self, text: &str);
}

/// A testbed.
struct OnBed<'a> {
    begin: Instant,
    bed: &'a Bed,
    netsniff: &'a Path,
    traffic: Option<&'a Traffic>,
    stop: &'a Stop<'a>,
    tell: &'a mut dyn FnMut(&str),
}

impl Host for OnBed<'_> {
    fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    fn stalls(&mut self) -> anyhow::Result<Stalls> {
        stalls::watch(CAPTURE_CPU, WATCHED)
    }

    fn wakes(&mut self) -> anyhow::Result<Wakes> {
        wakes::measure(CAPTURE_CPU, WOKEN)
    }

    fn raw(&mut self, cost: Cost, size: u32) -> anyhow::Result<Option<Raw>> {
        raw_of(cost, size, self.traffic)
    }

    fn run(&mut self, tool: &Tool, load: &Load) -> anyhow::Result<Trial> {
        if let Some(why) = self.stop.before(load.time) {
            bail!("the calibration was ended: {}", why.words());
        }
        trial::run(self.bed, self.netsniff, tool, load)
    }

    fn tell(&mut self, text: &str) {
        (self.tell)(text);
    }
}

/// Runs everything that a model needs, in time; `tell` hears of each run.
///
/// # Errors
///
/// Where a run fails, where it was ended, where there was not time for enough, and where no run lost anything: then the
/// sender is the limit.
pub fn calibrate(
    bed: &Bed,
    netsniff: &Path,
    subject: Subject<'_>,
    stop: &Stop<'_>,
    tell: &mut dyn FnMut(&str),
) -> anyhow::Result<Model> {
    let traffic = subject.traffic;
    let mut host = OnBed { begin: Instant::now(), bed, netsniff, traffic, stop, tell };
    calibrate_on(&mut host, subject, backlog()?)
}

fn calibrate_on(host: &mut dyn Host, subject: Subject<'_>, backlog: u64) -> anyhow::Result<Model> {
    let Subject { tool, layout, variants, traffic } = subject;
    let stalls = host.stalls()?;
    let still = stalls.lengths.iter().sum::<u64>() as f64 / stalls.watched.max(1) as f64;
    let said =
        format!("stalls: {:.2} % of the time, {} of them", still * 100.0, stalls.lengths.len());
    host.tell(&said);
    let wakes = host.wakes()?;
    if let (Some(median), Some(p99)) = (wakes.quantile(0.5), wakes.quantile(0.99)) {
        let [median, p99] = [median, p99].map(|nanos| nanos as f64 / 1e3);
        host.tell(&format!("waking: {median:.0} us, one in 100 more than {p99:.0} us"));
    }
    let mut runs =
        Runs { host, tool, traffic, time: 1.0 - still, around: AROUND, looks: Vec::new() };
    let gaps = runs.gaps()?;
    let Observed { observations, left_out } = runs.observe_all(&kinds(tool, variants), &gaps)?;
    if left_out > 0 {
        let said = format!("{left_out} runs are left out, since {} s are over", MOST.as_secs());
        runs.host.tell(&said);
        ensure!(
            observations.len() >= Fit::needed(&observations),
            "{} s are too little for a model of {}: {} runs tell something, and {left_out} more were planned; runs that are \
             repeated take most of it where the machine is busy",
            MOST.as_secs(),
            tool.name,
            observations.len()
        );
    }
    let services = services(runs.looks);
    let variants = Fit::variants(&observations);
    let Some(fit) = variants.first().map(|variant| variant.fit) else {
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
        variants,
        gaps,
        stalls,
        wakes,
        backlog,
        services,
        observations,
        left_out,
        seconds: host.elapsed().as_secs_f64(),
    })
}

struct Runs<'a> {
    host: &'a mut dyn Host,
    tool: &'a Tool,
    traffic: Option<&'a Traffic>,
    /// The share of the time that the machine does not stand still.
    time: f64,
    /// The most that a run took so far beside the time that frames are sent.
    around: Duration,
    /// What was seen of work by itself.
    looks: Vec<Service>,
}

/// What runs told.
struct Observed {
    observations: Vec<Observation>,
    /// Runs for which there was no time.
    left_out: u32,
}

/// What came of a point.
enum Seen {
    Costs(Observation),
    /// The sender cannot send too much.
    Nothing,
    NoTime,
}

impl Runs<'_> {
    /// A run, and what work costs by itself right after it; `None` where there is no time for that.
    fn run(
        &mut self,
        tool: &Tool,
        load: &Load,
        cost: Cost,
    ) -> anyhow::Result<Option<(Trial, Option<Raw>)>> {
        let begin = self.host.elapsed();
        if begin + load.time + self.around > MOST {
            return Ok(None);
        }
        let trial = self.host.run(tool, load)?;
        let lost =
            trial.loss().map_or("unavailable".to_owned(), |loss| format!("{:.2} %", loss * 100.0));
        let rate = trial.reached.unwrap_or_default();
        self.host.tell(&format!("{} bytes at {rate:.0} frames/s: {lost} lost", load.size));
        let raw = self.host.raw(cost, load.size)?;
        let took = self.host.elapsed().saturating_sub(begin);
        self.around = self.around.max(took.saturating_sub(load.time));
        Ok(Some((trial, raw)))
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
    fn observe_all(&mut self, kinds: &[Kind], gaps: &[(u32, f64)]) -> anyhow::Result<Observed> {
        let mut observed = Observed { observations: Vec::new(), left_out: 0 };
        for over in OVER {
            for (size, gap) in gaps {
                for kind in kinds {
                    match self.observe((*size, kind), over, 1e9 / gap)? {
                        Seen::Costs(observation) => observed.observations.push(observation),
                        Seen::Nothing => {}
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
        if self.host.elapsed() + SENT + self.around > MOST {
            return Ok(Seen::NoTime);
        }
        // Machines are faster and slower from second to second: what counts is how fast this one was at the time.
        let mut before = self.host.raw(cost, size)?;
        self.look(before, size, kind);
        let mut rate = 1e9 / (mean(before) + GUESSED) * over;
        for _ in 0..TRIED {
            let together = Setting { name: "burst".to_owned(), value: burst.to_string() };
            let load = Load { rate: Some(rate.min(top * REACHED)), ..self.load(size) };
            let load = load.with(&[together]);
            let Some((trial, after)) = self.run(&tool, &load, cost)? else {
                return Ok(Seen::NoTime);
            };
            self.look(after, size, kind);
            let raw = f64::midpoint(mean(before), mean(after));
            before = after;
            ensure!(
                trial.counted.captured.is_some() && trial.reached.is_some(),
                "{} does not tell what it captured",
                tool.name
            );
            if !trial.is_true_at_reached() {
                continue;
            }
            if let Some((rate, served)) = served(&trial, size) {
                let (settings, time) = (variant.clone(), self.time);
                let observation = Observation { settings, size, raw, burst, rate, served, time };
                return Ok(Seen::Costs(observation));
            }
            if rate >= top * REACHED {
                return Ok(Seen::Nothing);
            }
            rate *= RAISED;
        }
        Ok(Seen::Nothing)
    }
}

/// Frames a second that arrived and that were kept in a run; `None` where it lost next to nothing, so that it had time
/// left.
fn served(trial: &Trial, size: u32) -> Option<(f64, f64)> {
    let (captured, reached) = (trial.counted.captured?, trial.reached?);
    trial.loss().filter(|loss| *loss >= LEAST_LOSS)?;
    let seconds = trial.sent as f64 / reached;
    // What the ring held in the end was not served while frames came.
    let room = Queues::new(RING, 0).frames(size);
    // Drops of the backlog are the whole machine's.
    let arrived = trial.sent.min(trial.arrived);
    Some((arrived as f64 / seconds, (captured as f64 - room).max(0.0) / seconds))
}

fn mean(raw: Option<Raw>) -> f64 {
    raw.unwrap_or_default().mean
}

/// Of each work and size the look in the middle, since machines are faster and slower from second to second.
fn services(looks: Vec<Service>) -> Vec<Service> {
    let mut kinds: Vec<Vec<Service>> = Vec::new();
    let key = |of: &Service| (of.settings.clone(), of.cost, of.size);
    for look in looks {
        match kinds.iter_mut().find(|kind| key(&kind[0]) == key(&look)) {
            Some(kind) => kind.push(look),
            None => kinds.push(vec![look]),
        }
    }
    let middle = |mut kind: Vec<Service>| {
        kind.sort_by(|one, other| one.raw.mean.total_cmp(&other.raw.mean));
        kind.swap_remove(kind.len() / 2)
    };
    kinds.into_iter().map(middle).collect()
}

/// What of a tool is tried.
fn kinds(tool: &Tool, variants: &[Vec<Setting>]) -> Vec<Kind> {
    let costs: Vec<_> = if tool.name == WORK {
        LEVELS.map(|level| Cost { zip: Some(level), delay: None }).to_vec()
    } else {
        vec![Cost::default()]
    };
    let as_it_comes = [Vec::new()];
    let variants = if variants.is_empty() { &as_it_comes } else { variants };
    let kinds = variants.iter().map(|variant| costs.iter().map(|cost| (variant.clone(), *cost)));
    kinds.flatten().collect()
}

#[cfg(test)]
mod tests;
