//! What each ring tells of itself while it runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use netsniff_analysis::depth::PacketsByDepth;
use netsniff_capture::counters::RingCounters;
use netsniff_packet::Timestamp;

use super::onset::Onset;

/// The state of an interface, as a ring sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkState {
    /// It is up.
    #[default]
    Up,
    /// It is down and may come up again.
    Down,
    /// It is gone.
    Gone,
}

/// What one ring has counted at a moment.
#[derive(Clone, Debug, Default)]
pub struct RingReport {
    /// What the kernel and the ring say.
    pub counters: RingCounters,
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
    /// Rows that had no room on their way to the logs.
    pub refused_rows: u64,
    /// The interface.
    pub link: LinkState,
    /// How often it went down.
    pub downs: u64,
    /// Flows that are open; `None` where there are none.
    pub flows: Option<u64>,
    /// Flows that began while another ring of the interface had them; `None` where nobody can tell.
    pub flow_split: Option<u64>,
    /// Engine time.
    pub now: Option<Timestamp>,
}

impl RingReport {
    /// Adds what another ring of the same interface has counted; the state of the interface stays.
    pub fn add(&mut self, other: &Self) {
        let both = |own: Option<u64>, other: Option<u64>| Some(own? + other?);
        // Named one by one, so that a counter cannot be forgotten.
        let Self {
            counters,
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
            refused_rows,
            link: _,
            downs: _,
            flows,
            flow_split,
            now,
        } = other;
        self.counters.add(counters);
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
        self.refused_rows += refused_rows;
        self.flows = both(self.flows, *flows);
        self.flow_split = both(self.flow_split, *flow_split);
        self.now = self.now.max(*now);
    }
}

/// What the thread that rules a run and the threads of its rings tell each other.
#[derive(Debug)]
pub struct Control {
    stop: AtomicBool,
    /// The number of reports that were asked for.
    asked: AtomicU64,
    /// Packets that all rings have handed to the analysis together.
    pub(super) taken: AtomicU64,
    rings: Vec<Mutex<(u64, RingReport)>>,
}

impl Control {
    /// For a run with so many rings.
    #[must_use]
    pub fn new(rings: usize) -> Self {
        Self {
            stop: AtomicBool::new(false),
            asked: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            rings: (0..rings).map(|_| Mutex::default()).collect(),
        }
    }

    /// Ends the run.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the run is to end.
    #[must_use]
    pub fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Asks every ring for a report, and returns its number.
    pub fn ask(&self) -> u64 {
        self.asked.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The number of the report that was asked for last.
    pub(crate) fn wanted(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Hands in a ring's report.
    pub(crate) fn report(&self, ring: usize, number: u64, report: RingReport) {
        if let Some(place) = self.rings.get(ring) {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = (number, report);
        }
    }

    /// What each ring reported last, and whether all of them have answered the question of this number.
    #[must_use]
    pub fn reports(&self, number: u64) -> (Vec<RingReport>, bool) {
        let mut are_new = true;
        let reports = self.rings.iter().map(|place| {
            let place = place.lock().unwrap_or_else(PoisonError::into_inner);
            are_new &= place.0 >= number;
            place.1.clone()
        });
        (reports.collect(), are_new)
    }
}
