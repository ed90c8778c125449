//! What one worker does, in a thread of its own or not.

use netsniff_analysis::flow::tracker::FlowTracker;
use netsniff_analysis::flow::turnover::Turn;
use netsniff_analysis::flow::wheel::TICK_NANOS;
use netsniff_analysis::{Depth, Hole, Limits, Options, Unit};
use netsniff_packet::Timestamp;

use crate::output::{Format, RowBuffer};

/// A worker's flows and the rows that wait for their watermark.
#[derive(Debug)]
pub struct Lane {
    tracker: FlowTracker,
    rows: RowBuffer,
}

impl Lane {
    /// A lane without flows.
    #[must_use]
    pub fn new(limits: Limits, options: Options, seed: u64, format: Option<Format>) -> Self {
        let rows = RowBuffer::new(format).anonymized(options.anonymizer.clone());
        Self { tracker: FlowTracker::new(limits, options, seed), rows }
    }

    /// Takes datagrams of a slice, each with its place there, with the bytes that they lie in and
    /// the holes between them, and fills `done` with the rows that are complete before `watermark`,
    /// sorted.
    pub fn units<'u>(
        &mut self,
        units: impl Iterator<Item = (usize, &'u Unit)>,
        holes: &[Hole],
        bytes: &[u8],
        watermark: Timestamp,
        done: &mut RowBuffer,
    ) {
        if holes.is_empty() {
            self.tracker.units(units.map(|(_, unit)| unit), bytes, &mut self.rows);
        } else {
            self.units_between(units, holes, bytes);
        }
        self.tracker.advance(watermark, &mut self.rows);
        self.rows.take_before(watermark, done);
    }

    /// Every lane learns of every hole, at the same place among the datagrams of all.
    fn units_between<'u>(
        &mut self,
        units: impl Iterator<Item = (usize, &'u Unit)>,
        holes: &[Hole],
        bytes: &[u8],
    ) {
        let mut units = units.peekable();
        for hole in holes {
            let before = core::iter::from_fn(|| units.next_if(|(at, _)| *at < hole.at));
            self.tracker.units(before.map(|(_, unit)| unit), bytes, &mut self.rows);
            self.tracker.hole(hole, &mut self.rows);
        }
        self.tracker.units(units.map(|(_, unit)| unit), bytes, &mut self.rows);
    }

    /// Begins the end; `now` is the engine time of the last packet.
    pub fn begin_finish(&mut self, now: Timestamp, done: &mut RowBuffer) {
        self.tracker.begin_finish(now, &mut self.rows);
        self.rows.take_before(now, done);
    }

    /// Ends a part of the flows that are left.
    pub fn finish_step(&mut self, step: u32, now: Timestamp, done: &mut RowBuffer) {
        self.tracker.finish_step(step, now, &mut self.rows);
        self.rows.take_before(Timestamp::MAX, done);
    }

    /// How deep flows are analysed that begin from now on.
    pub fn set_depth(&mut self, depth: Depth) {
        self.tracker.set_depth(depth);
    }

    /// How many bytes may be decoded of compressed bodies until this is called again.
    pub const fn allow_decoding(&mut self, bytes: u64) {
        self.tracker.allow_decoding(bytes);
    }

    /// Notes from now on which flows begin and end.
    pub fn note_turnover(&mut self) {
        self.tracker.note_turnover();
    }

    /// Swaps what was noted of them for `empty`.
    pub const fn swap_turnover(&mut self, empty: &mut Vec<Turn>) {
        self.tracker.swap_turnover(empty);
    }

    /// The flows.
    #[must_use]
    pub const fn tracker(&self) -> &FlowTracker {
        &self.tracker
    }
}

/// The watermark after packets up to engine time `now`: whatever comes later belongs at or after
/// it.
#[must_use]
pub const fn watermark(now: Timestamp) -> Timestamp {
    Timestamp::from_nanos(now.nanos().saturating_sub(now.nanos().rem_euclid(TICK_NANOS)))
}
