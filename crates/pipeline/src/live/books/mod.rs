//! What each ring tells of itself while it runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use netsniff_analysis::depth::PacketsByDepth;
use netsniff_analysis::ingress::cut_headers::CutHeaders;
use netsniff_capture::backend::Gate;
use netsniff_capture::counters::{Counted, RingCounters};
use netsniff_capture::interface::LinkCounters;
use netsniff_packet::Timestamp;

use super::onset::Onset;

/// How long a packet may take from the counter of its interface to that of its ring, or the other way, but for what
/// is seen to wait between them.
pub const LAG: Duration = Duration::from_millis(2);

/// The state of an interface, as a ring sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkState {
    /// The interface is up.
    #[default]
    Up,
    /// It is down and may come up again.
    Down,
    /// The interface is gone.
    Gone,
}

/// A moment that is known as well as this: it lies between two times of the monotonic clock, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// It is not earlier.
    pub begin: u64,
    /// It is not later.
    pub end: u64,
}

impl Moment {
    /// The moment at which something is done, with what came of it.
    pub fn of<T>(done: impl FnOnce() -> T) -> (Self, T) {
        let begin = netsniff_capture::monotonic();
        let result = done();
        (Self { begin, end: netsniff_capture::monotonic() }, result)
    }

    /// The time in which both lie.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self { begin: self.begin.min(other.begin), end: self.end.max(other.end) }
    }
}

/// How an interface was found that came back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Return {
    /// How often it has come back.
    pub times: u64,
    /// The number that the kernel gives it since.
    pub index: u32,
    /// What it had counted before the ring was started.
    pub before: LinkCounters,
    /// At once behind that.
    pub at: LinkCounters,
    /// When all was in the ring that it had counted before.
    pub after: LinkCounters,
}

/// Bytes of memory that wait behind holes of TCP streams, until what is missing comes or is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldBehindHoles {
    /// Now.
    pub bytes: u64,
    /// The most at once since the books before; `None` for several rings, which have theirs at different times.
    pub most: Option<u64>,
}

/// What one ring has counted at a moment.
#[derive(Clone, Debug, Default)]
pub struct RingReport {
    /// What the kernel and the ring say.
    pub counters: RingCounters,
    /// When these were read; `None` before.
    pub read: Option<Moment>,
    /// How the interface was found that the ring is bound to, where it is not the first one.
    pub returned: Option<Return>,
    /// When it began to lose packets.
    pub onset: Onset,
    /// Packets that were analysed; `None` where nothing is.
    pub analysed: Option<u64>,
    /// Those of them whose headers could be read, by depth.
    pub by_depth: Option<PacketsByDepth>,
    /// How often new flows got less depth than was asked for.
    pub shed: u64,
    /// For how long, in nanoseconds.
    pub shed_nanos: u64,
    /// Packets that the filter refused in user space.
    pub filtered: u64,
    /// Packets behind the last one that was wanted.
    pub beyond_end: u64,
    /// Packets that a hand-off to the analysis refused.
    pub refused: u64,
    /// Packets that wait for earlier ones, or for the analysis.
    pub waiting: u64,
    /// Packets that the analysis got with a stamp earlier than one before.
    pub late: u64,
    /// Packets whose headers the snap length cut, of those that were looked at.
    pub cut_headers: CutHeaders,
    /// What waits behind holes; `None` where nothing is analysed, and where the ring does not answer.
    pub held: Option<HeldBehindHoles>,
    /// Holes that were given up, since more waited behind them than may.
    pub holes_given_up: u64,
    /// Rows that had no room on their way to the logs.
    pub refused_rows: u64,
    /// Whether the interface is up.
    pub link: LinkState,
    /// How often it went down.
    pub downs: u64,
    /// Flows that are open; `None` where there are none.
    pub flows: Option<u64>,
    /// Flows that began while another ring of the interface had them; `None` where nobody can tell.
    pub flow_split: Option<u64>,
    /// Engine time of the analysis, where there is one.
    pub now: Option<Timestamp>,
}

impl RingReport {
    /// This with what the kernel had counted at a later moment.
    #[must_use]
    pub fn at(mut self, moment: Moment, counted: Counted) -> Self {
        self.counters.set_counted(counted);
        self.read = Some(moment);
        self
    }

    /// Adds what another ring of the same interface has counted; what is told of the interface stays.
    pub fn add(&mut self, other: &Self) {
        let both = |own: Option<u64>, other: Option<u64>| Some(own? + other?);
        // Named one by one, so that a counter cannot be forgotten.
        let Self {
            counters,
            read,
            returned: _,
            onset,
            analysed,
            by_depth,
            shed,
            shed_nanos,
            filtered,
            beyond_end,
            refused,
            waiting,
            late,
            cut_headers,
            held,
            holes_given_up,
            refused_rows,
            link: _,
            downs: _,
            flows,
            flow_split,
            now,
        } = other;
        self.counters.add(counters);
        self.read = self.read.zip(*read).map(|(own, other)| own.with(other));
        self.onset.add(onset);
        self.analysed = both(self.analysed, *analysed);
        self.by_depth = self.by_depth.zip(*by_depth).map(|(own, other)| own.with(&other));
        self.shed += shed;
        self.shed_nanos += shed_nanos;
        self.filtered += filtered;
        self.beyond_end += beyond_end;
        self.refused += refused;
        self.waiting += waiting;
        self.late += late;
        self.cut_headers.merge(cut_headers);
        self.held = self
            .held
            .zip(*held)
            .map(|(own, other)| HeldBehindHoles { bytes: own.bytes + other.bytes, most: None });
        self.holes_given_up += holes_given_up;
        self.refused_rows += refused_rows;
        self.flows = both(self.flows, *flows);
        self.flow_split = both(self.flow_split, *flow_split);
        self.now = self.now.max(*now);
    }
}

/// How packets get into a ring.
#[derive(Debug)]
struct Door {
    gate: Gate,
    earlier: Earlier,
}

/// What there was before a ring, where its interface went away and came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// How often it has come back.
    pub times: u64,
    /// What the kernel had counted of the rings before.
    pub counted: Counted,
}

impl Earlier {
    /// The interface never came back, so that nothing was counted before.
    pub const NONE: Self = Self {
        times: 0,
        counted: Counted { accepted: Some(0), dropped: Some(0), filtered: Some(0) },
    };
}

/// What a ring reported last.
#[derive(Debug, Default)]
struct Answer {
    /// The number of the report.
    number: u64,
    report: RingReport,
    /// Whether it is in the books.
    is_taken: bool,
}

/// What the thread that rules a run and the threads of its rings tell each other.
#[derive(Debug)]
pub struct Control {
    /// Somebody wants the run to end.
    ends: AtomicBool,
    /// Nothing more is let in.
    is_shut: AtomicBool,
    /// The number of the report that was asked for last.
    asked: AtomicU64,
    /// When its counters are to be read, by the monotonic clock.
    due: AtomicU64,
    /// Packets that all rings have handed to the analysis together.
    pub(super) taken: AtomicU64,
    rings: Vec<Mutex<Answer>>,
    doors: Vec<Mutex<Option<Door>>>,
    turns: Vec<Turns>,
}

/// Turns that a ring's thread has made, in a cache line that no other ring writes to.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Turns(AtomicU64);

impl Control {
    /// For a run with so many rings.
    #[must_use]
    pub fn new(rings: usize) -> Self {
        Self {
            ends: AtomicBool::new(false),
            is_shut: AtomicBool::new(false),
            asked: AtomicU64::new(0),
            due: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            rings: (0..rings).map(|_| Mutex::default()).collect(),
            doors: (0..rings).map(|_| Mutex::default()).collect(),
            turns: (0..rings).map(|_| Turns::default()).collect(),
        }
    }

    /// Notes that the thread of a ring has come round once more, as it does many times a second, be there packets or not.
    pub(crate) fn turned(&self, ring: usize) {
        if let Some(Turns(turns)) = self.turns.get(ring) {
            turns.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often the thread of each ring has come round: one that hangs does not go on.
    #[must_use]
    pub fn turns(&self) -> Vec<u64> {
        self.turns.iter().map(|Turns(turns)| turns.load(Ordering::Relaxed)).collect()
    }

    /// Asks for the end of the run. The thread that rules it lets nothing more in soon.
    pub fn end(&self) {
        self.ends.store(true, Ordering::Relaxed);
    }

    /// Whether the run is to end.
    #[must_use]
    pub fn ends(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }

    /// Lets nothing more into any ring, whatever their threads do, and tells when that was. What a gate has
    /// failed at, the thread of its ring tries again.
    pub fn shut(&self) -> Moment {
        self.end();
        let (moment, ()) = Moment::of(|| {
            for door in &self.doors {
                if let Some(door) = &*lock(door) {
                    let _ = door.gate.shut();
                }
            }
        });
        self.is_shut.store(true, Ordering::Release);
        moment
    }

    /// Whether nothing more is let in.
    #[must_use]
    pub fn is_shut(&self) -> bool {
        self.is_shut.load(Ordering::Acquire)
    }

    /// Says how a ring is shut, and what there was before it.
    pub fn put_gate(&self, ring: usize, gate: Gate, earlier: Earlier) {
        if let Some(place) = self.doors.get(ring) {
            *lock(place) = Some(Door { gate, earlier });
        }
    }

    /// Reads at this moment what the kernel has counted of each ring and those before it, whatever their threads
    /// do; `None` for one that is not there any more, and for one that does not belong to its report.
    pub(crate) fn counted(&self, reports: &[RingReport]) -> Vec<Option<Counted>> {
        let counted = self.doors.iter().zip(reports).map(|(door, report)| {
            let door = lock(door);
            let Door { gate, earlier } = door.as_ref()?;
            let times = report.returned.map_or(0, |returned| returned.times);
            // It reads again where it has just come back.
            let is_told = times == earlier.times;
            let now = is_told.then(|| gate.counted().ok().flatten()).flatten()?;
            Some(now.with(earlier.counted))
        });
        counted.collect()
    }

    /// Asks every ring to read its counters at this time of the monotonic clock, and returns the number of the
    /// reports.
    pub fn ask(&self, due: u64) -> u64 {
        self.due.store(due, Ordering::Relaxed);
        self.asked.fetch_add(1, Ordering::Release) + 1
    }

    /// The number of the report that was asked for last, and when it is due.
    pub(crate) fn wanted(&self) -> (u64, u64) {
        let number = self.asked.load(Ordering::Acquire);
        (number, self.due.load(Ordering::Relaxed))
    }

    /// Hands in a ring's report, and returns it with the peaks of one before that came too late for the books.
    pub fn report(&self, ring: usize, number: u64, mut report: RingReport) -> RingReport {
        if let Some(place) = self.rings.get(ring) {
            let mut place = lock(place);
            if let (Some(held), Some(late), false) =
                (&mut report.held, place.report.held, place.is_taken)
            {
                held.most = held.most.max(late.most);
            }
            *place = Answer { number, report: report.clone(), is_taken: false };
        }
        report
    }

    /// What each ring reported last, without looking for answers to a question.
    #[must_use]
    pub fn last_reports(&self) -> Vec<RingReport> {
        self.rings.iter().map(|place| lock(place).report.clone()).collect()
    }

    /// What each ring reported last, for the books, and whether all of them have answered the question of this
    /// number. What was counted up to an earlier question stands; what waited then is not what waits now.
    #[must_use]
    pub fn reports(&self, number: u64) -> (Vec<RingReport>, bool) {
        let mut are_new = true;
        let reports = self.rings.iter().map(|place| {
            let mut place = lock(place);
            let is_new = place.number >= number;
            are_new &= is_new;
            place.is_taken |= is_new;
            let report = place.report.clone();
            RingReport { held: report.held.filter(|_| is_new), ..report }
        });
        (reports.collect(), are_new)
    }
}

fn lock<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(crate) mod tests;
