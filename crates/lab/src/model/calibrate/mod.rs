//! The runs that costs come from: a minute at most, whatever is repeated.

mod runs;
mod void;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use self::runs::{Observed, Runs};
pub use self::void::check;
use super::fit::Fit;
use super::raw::{self, Raw};
use super::simulate::Clock;
use super::stalls::{self, Stalls};
use super::traffic::Traffic;
use super::wakes::{self, Wakes};
use super::{Model, Service};
use crate::host::process;
use crate::load::Load;
use crate::stop::Stop;
use crate::testbed::{CAPTURE_CPU, Layout, Testbed};
use crate::tools::{Setting, Tool};
use crate::trial::{self, Trial};
use crate::work::Cost;

const SIZES: [u32; 2] = [64, 1518];

/// What `lab work` does for each packet; others do what they do.
const LEVELS: [u32; 2] = [1, 6];

/// Rates that are tried, as multiples of what a processor is thought to manage, and how many frames come together. Where
/// they come one by one, interrupts take as much of the time as they may, which tells that part and not what one costs:
/// some that come together tell that, and many what frames cost beside it.
/// What matters most comes first: a calibration of which the time is over leaves out the rest.
pub(super) const OVER: [(f64, u32); 4] = [(1.35, 32), (1.6, 1), (1.6, 6), (2.1, 32)];

/// A run that loses less than this has time left, and tells nothing; then the rate is raised so much, so often at most.
const LEAST_LOSS: f64 = 0.04;
const RAISED: f64 = 1.5;

/// One that loses more than this tells next to nothing of what is kept; then the rate is lowered so much.
const MOST_LOSS: f64 = 0.95;
const LOWERED: f64 = 0.4;

/// How often a load is tried, with other rates or since a run proves nothing.
const TRIED: u32 = 3;

/// Bytes of the ring: little, so that what it holds is of no account.
const RING: u64 = 4 << 20;

/// How long work is measured by itself, and on the smallest frames.
pub const RAW: Duration = Duration::from_millis(100);
const RAW_LEAST: Duration = Duration::from_millis(25);

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

/// The tool and the testbed for which a model is made.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The tool that captures.
    pub tool: &'a Tool,
    /// How sender and capture are joined.
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

/// When this kernel closes blocks.
fn clock() -> Clock {
    std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or(Clock::default(), |release| Clock::of(release.trim()))
}

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
    let Some(traffic) = traffic else {
        let [frames, least] = [raw::stamped(size)?, raw::stamped(SIZES[0])?];
        let look = move || {
            let raw = raw::measure(cost, &frames, RAW)?;
            let least = raw::measure(cost, &least, RAW_LEAST)?.mean;
            Ok(Some(Raw { least, ..raw }))
        };
        return process::on_processor(CAPTURE_CPU, look)?;
    };
    // Frames of a capture have sizes of their own, of which the smallest tells nothing.
    let frames = traffic.samples().to_vec();
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

    fn run(&mut self, tool: &Tool, load: &Load) -> anyhow::Result<Trial>;

    /// Hears what is done.
    fn progress(&mut self, text: &str);
}

struct OnBed<'a> {
    begin: Instant,
    bed: &'a Testbed,
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

    fn progress(&mut self, text: &str) {
        (self.tell)(text);
    }
}

/// Runs everything that a model needs, in time; `tell` hears of each run.
///
/// # Errors
///
/// Where a run fails, where it was ended, where there was not time for enough, where no run lost anything (then the sender is
/// the limit), and where the calibration is void: too few of its runs prove something, or no costs explain them.
pub fn calibrate(
    bed: &Testbed,
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
    void::check_stalls(&stalls)?;
    let still = stalls.share();
    let said =
        format!("stalls: {:.2} % of the time, {} of them", still * 100.0, stalls.lengths.len());
    host.progress(&said);
    let wakes = host.wakes()?;
    if let (Some(median), Some(p99)) = (wakes.quantile(0.5), wakes.quantile(0.99)) {
        let [median, p99] = [median, p99].map(|nanos| nanos as f64 / 1e3);
        host.progress(&format!("waking: {median:.0} us, one in 100 more than {p99:.0} us"));
    }
    let mut runs = Runs::new(host, &subject, 1.0 - still);
    let gaps = runs.gaps()?;
    let Observed { observations, void, left_out } =
        runs.observe_all(&kinds(tool, variants), &gaps)?;
    void::check_points(&observations, &void)?;
    if left_out > 0 {
        let said = format!("{left_out} runs are left out, since {} s are over", MOST.as_secs());
        runs.host.progress(&said);
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
    let model = Model {
        tool: tool.name.clone(),
        layout: layout.clone(),
        traffic: traffic.cloned(),
        fit,
        variants,
        gaps,
        stalls,
        wakes,
        backlog,
        clock: clock(),
        services,
        observations,
        left_out,
        seconds: host.elapsed().as_secs_f64(),
    };
    check(&model)?;
    Ok(model)
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
