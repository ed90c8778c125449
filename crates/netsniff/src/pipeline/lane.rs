//! What one worker does, in a thread of its own or not.

use netsniff_analysis::flow::tracker::FlowTracker;
use netsniff_analysis::flow::wheel::TICK_NANOS;
use netsniff_analysis::{Limits, Unit};
use netsniff_packet::Timestamp;

use crate::output::{Format, RowBuffer};

/// What a lane is to do next.
#[derive(Debug)]
pub enum Task {
    /// Datagrams, and the watermark up to which records are complete after them.
    Units(Vec<Unit>, Timestamp),
    /// The end begins: the engine time of the last packet.
    BeginFinish(Timestamp),
    /// A part of the flows that are left.
    FinishStep(u32, Timestamp),
}

/// A worker's flows and the rows that wait for their watermark.
#[derive(Debug)]
pub struct Lane {
    tracker: FlowTracker,
    rows: RowBuffer,
}

impl Lane {
    /// A lane without flows.
    #[must_use]
    pub fn new(limits: Limits, seed: u64, format: Format) -> Self {
        Self { tracker: FlowTracker::new(limits, seed), rows: RowBuffer::new(format) }
    }

    /// Does a task, fills `done` with the rows that are complete, sorted, and gives back the
    /// task's memory.
    pub fn work(&mut self, task: Task, done: &mut RowBuffer) -> Option<Vec<Unit>> {
        let (watermark, memory) = match task {
            Task::Units(mut units, watermark) => {
                self.tracker.units(&units, &mut self.rows);
                self.tracker.advance(watermark, &mut self.rows);
                units.clear();
                (watermark, Some(units))
            }
            Task::BeginFinish(now) => {
                self.tracker.begin_finish(now, &mut self.rows);
                (now, None)
            }
            Task::FinishStep(step, now) => {
                self.tracker.finish_step(step, now, &mut self.rows);
                (Timestamp::MAX, None)
            }
        };
        self.rows.take_before(watermark, done);
        memory
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
