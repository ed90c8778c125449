//! One run: a load, a tool, and everything that was counted meanwhile. A run checks itself: what the generator says it
//! sent must be what both ends of the wire have counted.

mod failure;
mod limit;
mod running;
mod scratch;
mod sending;
mod steady;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use netsniff_capture::host::HostReader;
use netsniff_capture::interface::LinkCounters;

use self::failure::Failure;
pub use self::failure::attempt;
use self::limit::Given;
pub use self::limit::Limit;
use self::running::Running;
use self::scratch::Scratch;
use self::sending::{Memory, Sent, send};
use crate::disk::{Drain, Written};
use crate::host::machine::{Busy, Times};
use crate::host::process::{self, Usage};
use crate::load::Load;
use crate::testbed::Testbed;
use crate::testbed::tap::{Meter, Planted, Reading};
use crate::tools::{Counted, Tool};

/// How long a tool may take to begin, and to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// The share of frames that a sender which was held up may have moved its plan for.
const MOST_SLIPS: f64 = 0.001;

/// By what part the reached rate may be off, since the plan was moved.
const MOST_OFF: f64 = 0.01;

/// By how much of a processor a tool's work may differ between the third and the last quarter of a run.
const MOST_DRIFT: f64 = 0.1;

/// Runs that are shorter, or of which a ring holds more, tell of bursts (PAPERS D4).
const LONG: Duration = Duration::from_secs(10);
pub(crate) const MOST_HELD: f64 = 0.1;

/// Why a run proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The interface has not counted what the generator says it sent.
    Generator,
    /// Frames were lost on the way, or others came.
    Wire,
    /// The counts of the tap do not add up.
    Tap,
    /// The planted disk was held up for too long, or has not got what the tool says that it wrote.
    Disk,
    /// The sender was held up too often.
    Slips,
    /// The sender was too slow.
    Rate,
    /// Packets arrived that stand nowhere in the books.
    Books,
    /// It cannot be told how many packets were captured, or it is more than were sent.
    Count,
    /// The tool had to be killed: what it had not read or written by then is missing, and nobody knows how much that is.
    Killed,
    /// The tool had more to do at the end than before, or less: it was not yet in a steady state.
    Unsteady,
    /// The tool does not begin to capture, so that nothing was sent: it cannot be started, ends at once, or has no such option.
    Unable,
    /// The tool or the generator failed meanwhile.
    Failed,
}

impl Fault {
    /// The words for it in reports.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Generator => "the interface has not counted what was sent",
            Self::Wire => "frames were lost on the way, or others came",
            Self::Tap => "the counts of the tap do not add up",
            Self::Disk => {
                "the planted disk was slower than planned, or has not got what was written"
            }
            Self::Slips => "the sender was held up too often",
            Self::Rate => "the sender was too slow",
            Self::Books => "the books do not close",
            Self::Count => "what was captured cannot be told",
            Self::Killed => "the tool did not end by itself",
            Self::Unsteady => "the tool was in no steady state",
            Self::Unable => "the tool does not begin to capture",
            Self::Failed => "the tool or the generator failed",
        }
    }
}

/// What was counted in one run.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(remote = "Self")]
pub struct Trial {
    /// Name of the tool that captured.
    pub tool: String,
    /// What was to be sent.
    pub load: Load,
    /// Frames that were sent.
    pub sent: u64,
    /// Frames a second, from the first to the last.
    pub reached: Option<f64>,
    /// How often the sender was held up.
    pub stalls: u64,
    /// Nanoseconds that the sender moved its plan by for that.
    pub slipped_ns: u64,
    /// Frames that came to the receiving interface.
    pub arrived: u64,
    /// Frames that the receiving interface had no room for, as one of hardware may.
    #[serde(default)]
    pub missed: u64,
    /// Packets that the kernel dropped before any socket.
    pub backlog_dropped: u64,
    /// Frames that the wire took from the sender and dropped before the receiving interface: what its backlog dropped, and
    /// what found the ring of a NAPI full.
    #[serde(default)]
    pub wire_dropped: u64,
    /// What was lost on purpose, where the tool captures behind a tap.
    pub planted: Option<Planted>,
    /// What the disk has taken, where one is planted.
    #[serde(default)]
    pub written: Option<Written>,
    /// What the tool has.
    pub counted: Counted,
    /// What each processor did while frames were sent.
    pub processors: Vec<Busy>,
    /// Nanoseconds of the tool's threads on processors while frames were sent.
    pub cpu_ns: u64,
    /// The greatest share of a processor that they took in any fifth of a second, 1 for all of one; `None` where nobody looked
    /// often enough.
    #[serde(default)]
    pub cpu_peak: Option<f64>,
    /// The most resident memory of the tool, and its mean, in bytes.
    pub memory_peak: u64,
    /// Mean of the resident memory of the tool, in bytes.
    pub memory_mean: u64,
    /// Likewise what of it is neither of files nor shared with the kernel, as the ring is; `None` where that cannot be
    /// told.
    #[serde(default)]
    pub own_peak: Option<u64>,
    /// Mean of the same in bytes; `None` where that cannot be told.
    #[serde(default)]
    pub own_mean: Option<u64>,
    /// The share of the frames that the tool's ring holds.
    pub ring_share: Option<f64>,
    /// Whether it tells of a burst: it was short, or the ring holds much of it.
    pub is_burst: bool,
    /// By how much of a processor the tool's work differed between the third and the last quarter of the run; `None` for
    /// short ones.
    #[serde(default)]
    pub drift: Option<f64>,
    /// What was in the way, where something was lost and it can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// Whether the tool ended by itself when it was asked to.
    pub ended: bool,
    /// Why it proves nothing.
    pub faults: Vec<Fault>,
    /// What a tool or the generator said that could not be run ([`Fault::Unable`], [`Fault::Failed`]): then nothing else was
    /// counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl Trial {
    /// Frames that a tool could capture: all that were sent, but for those that were lost on purpose, which no tool is
    /// to be blamed for. `None` where these are more, which contradicts itself, and where nothing could be counted.
    #[must_use]
    pub fn offered(&self) -> Option<u64> {
        if self.failure.is_some() {
            return None;
        }
        self.sent.checked_sub(self.planted.map_or(0, |planted| planted.lost()))
    }

    /// Frames that came to the interface that the tool captures on.
    #[must_use]
    pub fn monitored(&self) -> u64 {
        self.planted.map_or(self.arrived, |planted| planted.monitored)
    }

    /// The share of what was sent that was lost on purpose; `None` where nothing was to be.
    #[must_use]
    pub fn planted_loss(&self) -> Option<f64> {
        Some(self.planted?.lost() as f64 / self.sent.max(1) as f64)
    }

    /// Whether all that was offered was captured, and nothing was dropped.
    #[must_use]
    pub fn is_lossless(&self) -> bool {
        self.counted.captured.is_some_and(|captured| Some(captured) == self.offered())
            && self.counted.dropped.is_none_or(|dropped| dropped == 0)
            && self.backlog_dropped == 0
            && self.wire_dropped == 0
    }

    /// The share of what was offered that was not captured.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        let offered = self.offered()?;
        let lost = offered.checked_sub(self.counted.captured?)?;
        Some(lost as f64 / offered.max(1) as f64)
    }

    /// Seconds after the first frame between which the first one was lost; `None` where nothing was, where something may have
    /// been before the ring, or where the tool does not tell.
    #[must_use]
    pub fn first_loss(&self) -> Option<[f64; 2]> {
        let is_of_ring = self.backlog_dropped == 0 && self.missed == 0 && self.wire_dropped == 0;
        let at = self.counted.first_drop_ns.filter(|_| is_of_ring)?;
        Some(at.map(|nanos| nanos as f64 / 1e9))
    }

    /// Frames a second that were captured, of those that were sent.
    #[must_use]
    pub fn kept_rate(&self) -> Option<f64> {
        Some(self.reached? * (1.0 - self.loss()?))
    }

    /// The share of what was offered that the kernel lost before the interface handed it to sockets (PAPERS E-12).
    #[must_use]
    pub fn kernel_loss(&self) -> Option<f64> {
        let offered = self.offered()?;
        Some(offered.checked_sub(self.monitored())? as f64 / offered.max(1) as f64)
    }

    /// The share of what came to the tool's socket that was dropped there, since the tool was too slow (PAPERS E-12).
    #[must_use]
    pub fn application_loss(&self) -> Option<f64> {
        let (captured, dropped) = (self.counted.captured?, self.counted.dropped?);
        Some(dropped as f64 / (captured + dropped).max(1) as f64)
    }

    /// Whether it proves anything.
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    /// Why it proves nothing, in words; empty where it proves something.
    #[must_use]
    pub fn reasons(&self) -> String {
        reasons(&self.faults, self.failure.as_deref())
    }

    /// Whether to repeat it proves no more: it proves something, or its tool does not begin, which it will not the next time,
    /// either.
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.is_valid() || self.faults.contains(&Fault::Unable)
    }

    /// Whether it proves something for the rate that was reached, if not for the one that was asked for.
    #[must_use]
    pub fn is_true_at_reached(&self) -> bool {
        self.faults.iter().all(|fault| matches!(fault, Fault::Slips | Fault::Rate))
    }
}

/// Faults in words, with what a tool or the generator said that could not be run.
#[must_use]
pub fn reasons(faults: &[Fault], failure: Option<&str>) -> String {
    let faults: Vec<_> = faults.iter().map(|fault| fault.words()).collect();
    let failure = failure.map_or_else(String::new, |why| format!(": {why}"));
    faults.join(", ") + &failure
}

/// Counters around a run.
struct Counters<'a> {
    bed: &'a Testbed,
    tap: Option<Meter>,
    host: HostReader,
}

/// What they stand at.
struct Counts {
    /// Frames that the interface that sends has counted.
    left: u64,
    /// Frames that the wire has dropped.
    wire_dropped: u64,
    rx: LinkCounters,
    tap: Option<Reading>,
    backlog_dropped: u64,
}

impl<'a> Counters<'a> {
    fn open(bed: &'a Testbed) -> anyhow::Result<Self> {
        Ok(Self { bed, tap: bed.meter()?, host: HostReader::open()? })
    }

    fn read(&mut self) -> anyhow::Result<Counts> {
        Ok(Counts {
            left: self.bed.left()?,
            wire_dropped: self.bed.dropped()?,
            rx: self.bed.came()?,
            tap: self.tap.as_mut().map(Meter::read).transpose()?,
            backlog_dropped: self.host.counters()?.backlog_dropped,
        })
    }
}

/// What the two interfaces say of a run beside what a trial has.
struct Wire {
    /// Frames that left the one that sends.
    left: u64,
    /// Frames that the one that receives has sent.
    back: u64,
}

/// Runs a tool under a load.
///
/// # Errors
///
/// Where the tool or the generator cannot be run; [`attempt`] takes that for a run that proves nothing.
pub fn run(bed: &Testbed, netsniff: &Path, tool: &Tool, load: &Load) -> anyhow::Result<Trial> {
    run_and(bed, netsniff, tool, load, &mut |_| Ok(()))
}

/// Likewise; `look` sees the tool's file before it goes, where it has written one and no disk is planted under it.
///
/// # Errors
///
/// As [`run`], and what `look` fails with.
pub fn run_and(
    bed: &Testbed,
    netsniff: &Path,
    tool: &Tool,
    load: &Load,
    look: &mut dyn FnMut(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<Trial> {
    ensure!(
        bed.disk().is_none() || tool.writes_file(),
        "{} writes no capture file for a planted disk",
        tool.name
    );
    let scratch = Scratch::make(bed)?;
    let words = tool.words(netsniff, bed.interface(), &scratch.files);
    let disk = scratch.drain(bed, tool)?;
    let mut running = Running::start(bed, tool, &words, &scratch)?;
    let mut counters = Counters::open(bed)?;
    let first = counters.read()?;
    let before = process::usage(running.0.id()).unwrap_or_default();
    let pressed = bed.pressure()?;
    let (times, begin) = (Times::now(), Instant::now());
    disk.iter().for_each(Drain::begin);
    let (sent, mut memory) = send(bed, netsniff, load, running.0.id())?;
    let (processors, watched) = (Times::now().since(&times), begin.elapsed());
    let used = process::usage(running.0.id()).ok_or_else(|| Failure::ended(tool, &scratch))?;
    disk.iter().for_each(Drain::release);
    thread::sleep(tool.tail);
    if let Some(after) = process::usage(running.0.id()) {
        memory.add(after);
    }
    let last = counters.read()?;
    let ended = process::interrupt(&mut running.0, PATIENCE)?;
    let (counted, written) = scratch.count(tool, disk).map_err(Failure::of)?;
    if written.is_none() {
        look(&tool.file(&scratch.files))?;
    }
    let observed = Observed { first, last, sent, memory, processors, before, used };
    let mut trial = observed.trial(tool, load, counted);
    (trial.written, trial.ended) = (written, ended);
    trial.faults = faults(&trial, &observed.sent, &observed.wire());
    let given = Given {
        processors: bed.processors(),
        watched,
        quota: bed.quota(),
        is_short_of_memory: bed.pressure()?.reached > pressed.reached,
    };
    trial.limit = Limit::of(&trial, &given);
    Ok(trial)
}

/// What was seen of a run.
struct Observed {
    /// Counters before the frames and behind them.
    first: Counts,
    last: Counts,
    sent: Sent,
    memory: Memory,
    processors: Vec<Busy>,
    /// What the tool had used before the frames, and behind them.
    before: Usage,
    used: Usage,
}

impl Observed {
    /// The trial, which is not judged yet.
    fn trial(&self, tool: &Tool, load: &Load, counted: Counted) -> Trial {
        let Self { first, last, sent, memory, .. } = self;
        let ring_share =
            tool.ring.map(|ring| Load::share_of_ring(tool.kept(load.size), ring, sent.frames));
        let is_held = ring_share.is_some_and(|share| share > MOST_HELD);
        Trial {
            tool: tool.name.clone(),
            load: load.clone(),
            sent: sent.frames,
            reached: sent.frames_per_second,
            stalls: sent.stalls,
            slipped_ns: sent.slipped_ns,
            arrived: last.rx.rx_packets.wrapping_sub(first.rx.rx_packets),
            missed: missed(&last.rx).wrapping_sub(missed(&first.rx)),
            backlog_dropped: last.backlog_dropped.wrapping_sub(first.backlog_dropped),
            wire_dropped: last.wire_dropped.wrapping_sub(first.wire_dropped),
            planted: last.tap.zip(first.tap).map(|(last, first)| last.since(&first)),
            written: None,
            counted,
            processors: self.processors.clone(),
            cpu_ns: self.used.cpu_ns.saturating_sub(self.before.cpu_ns),
            cpu_peak: memory.work.peak(),
            memory_peak: memory.resident.peak,
            memory_mean: memory.resident.mean().unwrap_or(self.used.resident),
            own_peak: memory.own.mean().map(|_| memory.own.peak),
            own_mean: memory.own.mean(),
            ring_share,
            is_burst: load.time < LONG || is_held,
            drift: memory.work.drift(),
            limit: None,
            ended: false,
            faults: Vec::new(),
            failure: None,
        }
    }

    fn wire(&self) -> Wire {
        Wire {
            left: self.last.left.wrapping_sub(self.first.left),
            back: self.last.rx.tx_packets.wrapping_sub(self.first.rx.tx_packets),
        }
    }
}

/// Frames that came and that the interface had no room for.
const fn missed(of: &LinkCounters) -> u64 {
    of.rx_missed.wrapping_add(of.rx_fifo).wrapping_add(of.rx_over)
}

fn faults(trial: &Trial, sent: &Sent, wire: &Wire) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut check = |is_wrong: bool, fault| {
        if is_wrong {
            faults.push(fault);
        }
    };
    check(wire.left != trial.sent, Fault::Generator);
    // Where the interface, the processor's backlog, or the ring of a NAPI was full, what is missing is known. A tool may capture
    // what is sent back for what it has lost.
    let dropped = trial.backlog_dropped.max(trial.wire_dropped);
    let known = trial.arrived + trial.missed + dropped;
    check(known < trial.sent || trial.arrived > trial.sent || wire.back > 0, Fault::Wire);
    // On the wire the backlog has dropped what did not arrive; the rest of its drops may be copies.
    let missing = trial.sent.saturating_sub(trial.arrived);
    let dropped = trial.backlog_dropped.saturating_sub(missing);
    check(trial.planted.is_some_and(|it| !it.closes(trial.arrived, dropped)), Fault::Tap);
    let is_disk = |it: Written| it.is_punctual() && it.packets == trial.counted.captured;
    check(trial.written.is_some_and(|it| !is_disk(it)), Fault::Disk);
    let is_held_up = trial.stalls as f64 > MOST_SLIPS * trial.sent as f64;
    check(trial.load.rate.is_some() && is_held_up, Fault::Slips);
    let is_off =
        |asked: f64| sent.frames_per_second.is_none_or(|rate| rate < asked * (1.0 - MOST_OFF));
    check(trial.load.even_rate().is_some_and(is_off), Fault::Rate);
    check(trial.counted.unexplained.is_some_and(|packets| packets != 0), Fault::Books);
    let is_known = |captured| trial.offered().is_some_and(|offered| captured <= offered);
    check(!trial.counted.captured.is_some_and(is_known), Fault::Count);
    check(!trial.ended, Fault::Killed);
    let is_even = trial.load.capture.is_none() || trial.load.even_rate().is_some();
    check(is_even && trial.drift.is_some_and(|drift| drift > MOST_DRIFT), Fault::Unsteady);
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial() -> (Trial, Sent) {
        let sent = Sent {
            frames: 1_000_000,
            frames_per_second: Some(100_000.0),
            stalls: 0,
            slipped_ns: 0,
            error: None,
        };
        let trial = Trial {
            tool: "record".to_owned(),
            load: Load { size: 64, rate: Some(100_000.0), time: LONG, ..Load::default() },
            sent: sent.frames,
            reached: sent.frames_per_second,
            stalls: 0,
            slipped_ns: 0,
            arrived: sent.frames,
            missed: 0,
            backlog_dropped: 0,
            wire_dropped: 0,
            planted: None,
            written: None,
            counted: Counted {
                captured: Some(sent.frames),
                dropped: Some(0),
                unexplained: Some(0),
                ..Counted::default()
            },
            processors: Vec::new(),
            cpu_ns: 0,
            cpu_peak: None,
            memory_peak: 0,
            memory_mean: 0,
            own_peak: None,
            own_mean: None,
            ring_share: Some(0.05),
            is_burst: false,
            drift: Some(0.02),
            limit: None,
            ended: true,
            faults: Vec::new(),
            failure: None,
        };
        (trial, sent)
    }

    /// A wire on which so many frames left, and nothing else.
    const fn through(left: u64) -> Wire {
        Wire { left, back: 0 }
    }

    #[test]
    fn the_two_ratios_have_denominators_of_their_own() {
        let (mut trial, _) = trial();
        (trial.sent, trial.arrived) = (1000, 800);
        (trial.counted.captured, trial.counted.dropped) = (Some(600), Some(200));
        assert_eq!((trial.kernel_loss(), trial.application_loss()), (Some(0.2), Some(0.25)));
        assert_eq!(trial.loss(), Some(0.4));
        // What a tool has not read in the end was not lost by the kernel.
        trial.counted.captured = Some(500);
        assert_eq!(trial.kernel_loss(), Some(0.2));
        trial.counted.dropped = None;
        assert_eq!((trial.kernel_loss(), trial.application_loss()), (Some(0.2), None));
    }

    #[test]
    fn what_was_lost_on_purpose_is_nobodys_fault() {
        let (mut trial, sent) = trial();
        // Of a million, 995,000 arrive, since the backlog dropped 5,000, and 2,000 of the copies.
        let planted = Planted {
            before: 10_000,
            at: 20_000,
            copied: 965_000,
            behind: 13_000,
            monitored: 950_000,
        };
        (trial.arrived, trial.backlog_dropped) = (995_000, 7_000);
        trial.planted = Some(planted);
        (trial.counted.captured, trial.counted.dropped) = (Some(949_000), Some(1_000));
        assert_eq!((trial.offered(), trial.monitored()), (Some(957_000), 950_000));
        assert_eq!(trial.planted_loss(), Some(0.043));
        assert_eq!(trial.loss(), Some(8_000.0 / 957_000.0));
        assert_eq!(trial.kernel_loss(), Some(7_000.0 / 957_000.0));
        assert_eq!(trial.application_loss(), Some(1_000.0 / 950_000.0));
        assert!(!trial.is_lossless() && faults(&trial, &sent, &through(sent.frames)).is_empty());
        // One drop of the backlog less does not explain the copies that are missing.
        trial.backlog_dropped -= 1;
        assert_eq!(faults(&trial, &sent, &through(sent.frames)), [Fault::Tap]);
        trial.backlog_dropped += 1;
        trial.planted = Some(Planted { before: 10_001, ..planted });
        assert_eq!(faults(&trial, &sent, &through(sent.frames)), [Fault::Tap]);
        trial.planted = Some(Planted { at: 2_000_000, ..planted });
        assert_eq!((trial.offered(), trial.loss(), trial.is_lossless()), (None, None, false));
        assert_eq!(faults(&trial, &sent, &through(sent.frames)), [Fault::Tap, Fault::Count]);

        let (mut trial, sent) = self::trial();
        let rest = trial.sent - 100;
        trial.planted =
            Some(Planted { before: 100, copied: rest, monitored: rest, ..Planted::default() });
        trial.counted.captured = Some(rest);
        assert!(trial.is_lossless() && trial.loss() == Some(0.0));
        assert!(faults(&trial, &sent, &through(sent.frames)).is_empty());
        trial.counted.captured = Some(rest + 1);
        assert_eq!(faults(&trial, &sent, &through(sent.frames)), [Fault::Count]);
    }

    #[test]
    fn every_condition_is_needed() {
        let (trial, sent) = trial();
        assert!(trial.is_lossless() && faults(&trial, &sent, &through(sent.frames)).is_empty());
        let with = |change: fn(&mut Trial)| {
            let mut trial = trial.clone();
            change(&mut trial);
            (trial.is_lossless(), faults(&trial, &sent, &through(sent.frames)), trial.loss())
        };
        let fine = Vec::new;
        assert_eq!(with(|it| it.counted.captured = Some(999_990)), (false, fine(), Some(1e-5)));
        assert!(!with(|it| it.counted.dropped = Some(1)).0);
        assert_eq!(with(|it| it.counted.captured = None), (false, vec![Fault::Count], None));
        assert_eq!(with(|it| it.counted.unexplained = Some(-1)).1, [Fault::Books]);
        assert_eq!(with(|it| it.arrived -= 1).1, [Fault::Wire]);
        let whole = Written { packets: Some(1_000_000), late_ns: 50_000_000, ..Written::default() };
        let disk = |written: Written| {
            let trial = Trial { written: Some(written), ..trial.clone() };
            faults(&trial, &sent, &through(sent.frames))
        };
        assert_eq!(disk(whole), []);
        assert_eq!(disk(Written { packets: Some(999_999), ..whole }), [Fault::Disk]);
        assert_eq!(disk(Written { packets: None, ..whole }), [Fault::Disk]);
        assert_eq!(disk(Written { late_ns: 50_000_001, ..whole }), [Fault::Disk]);
        assert_eq!(with(|it| it.arrived += 1).1, [Fault::Wire]);
        let backlog = with(|it| (it.arrived, it.backlog_dropped) = (it.arrived - 3, 3));
        assert_eq!((backlog.0, backlog.1), (false, fine()));
        let ring = with(|it| (it.arrived, it.wire_dropped) = (it.arrived - 3, 3));
        assert_eq!((ring.0, ring.1), (false, fine()));
        assert_eq!(with(|it| it.ended = false).1, [Fault::Killed]);
        assert_eq!(with(|it| it.drift = Some(0.11)).1, [Fault::Unsteady]);
        assert_eq!(with(|it| it.drift = None).1, []);
        assert_eq!(with(|it| (it.arrived, it.missed) = (it.arrived - 3, 3)).1, fine());
        assert_eq!(with(|it| (it.arrived, it.missed) = (it.arrived - 3, 2)).1, [Fault::Wire]);
        assert_eq!(with(|it| it.stalls = 1001).1, [Fault::Slips]);
        assert_eq!(with(|it| it.load.rate = Some(102_000.0)).1, [Fault::Rate]);
        let gaps = crate::tools::Setting { name: "keep-gaps".to_owned(), value: "on".to_owned() };
        let recorded = with(|it| it.load.rate = Some(102_000.0));
        assert_eq!(recorded.1, [Fault::Rate]);
        let mut recorded = trial.clone();
        recorded.load.rate = Some(102_000.0);
        recorded.load.options.push(gaps);
        assert_eq!(
            faults(&recorded, &sent, &through(sent.frames)),
            [],
            "parts of a capture have other rates"
        );
        assert_eq!(faults(&trial, &sent, &through(sent.frames - 1)), [Fault::Generator]);
        let answered = Wire { left: sent.frames, back: 1 };
        assert_eq!(faults(&trial, &sent, &answered), [Fault::Wire]);
    }
}
