//! The flows of one worker, driven by rounds of datagrams.

use netsniff_packet::Timestamp;

use crate::depth::Depth;
use crate::flow::flow_events::FlowEvent;
use crate::flow::tracker::{FINISH_STEPS, FlowTracker};
use crate::limits::Limits;
use crate::options::Options;
use crate::record::{Observer, Phase, SortKey};
use crate::unit::{CaptureHole, DecodedDatagram};

/// A worker's share of all flows.
///
/// Every shard gets every round, also those without datagrams of its own, so that the records of all of
/// them are complete up to the same watermark.
#[derive(Debug)]
pub struct Shard {
    tracker: FlowTracker,
}

impl Shard {
    /// A shard without flows. `seed` protects its table from senders who aim at it, and changes no record.
    #[must_use]
    pub fn new(limits: Limits, options: Options, seed: u64) -> Self {
        Self { tracker: FlowTracker::new(limits, options, seed) }
    }

    /// Takes datagrams of a round, each with its place among those of all shards, with the bytes that
    /// they lie in and the holes between them. Afterwards the records before `watermark` are complete.
    pub fn round<'u, O: Observer>(
        &mut self,
        units: impl Iterator<Item = (usize, &'u DecodedDatagram)>,
        holes: &[CaptureHole],
        bytes: &[u8],
        watermark: SortKey,
        observer: &mut O,
    ) {
        if holes.is_empty() {
            self.tracker.units(units.map(|(_, unit)| unit), bytes, observer);
        } else {
            self.units_between(units, holes, bytes, observer);
        }
        if watermark.phase == Phase::Timer {
            self.tracker.advance(watermark.time, observer);
        } else {
            self.tracker.settle(watermark.time, observer);
        }
    }

    /// Every shard learns of every hole, at the same place among the datagrams of all.
    fn units_between<'u, O: Observer>(
        &mut self,
        units: impl Iterator<Item = (usize, &'u DecodedDatagram)>,
        holes: &[CaptureHole],
        bytes: &[u8],
        observer: &mut O,
    ) {
        let mut units = units.peekable();
        for hole in holes {
            let before = core::iter::from_fn(|| units.next_if(|(at, _)| *at < hole.at));
            self.tracker.units(before.map(|(_, unit)| unit), bytes, observer);
            self.tracker.hole(hole, observer);
        }
        self.tracker.units(units.map(|(_, unit)| unit), bytes, observer);
    }

    /// Does a part of ending all flows. Afterwards the records before [`FinishStep::watermark`] are complete.
    pub fn finish<O: Observer>(&mut self, step: FinishStep, observer: &mut O) {
        match step.part {
            None => self.tracker.begin_finish(step.now, observer),
            Some(part) => self.tracker.finish_step(part, step.now, observer),
        }
    }

    /// Goes on with the flows of `other`: [`FlowTracker::go_on_for`].
    pub(super) fn go_on_for(&mut self, other: Self) {
        self.tracker.go_on_for(other.tracker);
    }

    /// How deep flows are analysed that begin from now on.
    pub fn set_depth(&mut self, depth: Depth) {
        self.tracker.set_depth(depth);
    }

    /// How many bytes may be decoded of compressed bodies until this is called again.
    pub const fn allow_decoding(&mut self, bytes: u64) {
        self.tracker.allow_decoding(bytes);
    }

    /// As [`FlowTracker::begin_held_peak`].
    pub fn begin_held_peak(&mut self) {
        self.tracker.begin_held_peak();
    }

    /// Notes from now on which flows begin and end.
    pub fn note_turnover(&mut self) {
        self.tracker.note_turnover();
    }

    /// Swaps what was noted of them for `empty`.
    pub const fn swap_turnover(&mut self, empty: &mut Vec<FlowEvent>) {
        self.tracker.swap_turnover(empty);
    }

    /// The table of open flows.
    #[must_use]
    pub const fn tracker(&self) -> &FlowTracker {
        &self.tracker
    }
}

/// A part of the end of all flows, which is taken in steps so that their records never all wait at once.
#[derive(Clone, Copy, Debug)]
pub struct FinishStep {
    now: Timestamp,
    /// `None` for the first step, which ends the flows whose time is over.
    part: Option<u32>,
}

impl FinishStep {
    /// The steps in their order, for an input that ended at engine time `now`.
    pub fn all(now: Timestamp) -> impl Iterator<Item = Self> {
        let parts = core::iter::once(None).chain((0..FINISH_STEPS).map(Some));
        parts.map(move |part| Self { now, part })
    }

    /// Up to where records are complete behind this step, if all shards have taken it.
    #[must_use]
    pub const fn watermark(self) -> SortKey {
        if self.part.is_none() { SortKey::first_at(self.now) } else { SortKey::END }
    }
}
