//! The order of records, which makes output the same for any number of workers.

use netsniff_packet::Timestamp;

use super::{Connection, Fact, Membership, Record, Row, Undecided, WholeRow};
use crate::key::uid::Uid;

/// Whoever takes the records of the engine.
pub trait Observer {
    /// One record, which belongs at `key` in its log. Keys may come out of order.
    fn record<R: Record>(&mut self, key: &SortKey, record: &R);

    /// One fact of `connection`, which belongs at `key` among all facts and records. Whoever merges those of all
    /// workers hands it to the join that takes it.
    fn fact(&mut self, _key: &SortKey, _connection: &Connection, _fact: Box<dyn Fact>) {}

    /// One row of `connection` whose last columns a join adds, as it is told by `fact`. Whoever joins nothing
    /// has the row without them.
    fn begun_row(
        &mut self,
        key: &SortKey,
        connection: &Connection,
        row: &dyn Row,
        _fact: Box<dyn Fact>,
    ) {
        self.record(key, &WholeRow::new(connection, row));
    }

    /// A record that no log has, for whoever looks through records. Nobody else keeps it.
    fn unwritten<R: Record>(&mut self, _key: &SortKey, _record: &R) {}

    /// A packet belongs to a flow. Where nobody asks, nothing is computed.
    #[inline(always)]
    fn member(&mut self, _membership: &Membership<'_>) {}

    /// The packet with this number may turn out to belong to a flow, or to another one.
    #[inline(always)]
    fn undecided(&mut self, _ordinal: u64, _why: Undecided<'_>) {}

    /// It is time for joins to look at what waits to be over, as Zeek looks at its tables.
    fn look(&mut self, _key: &SortKey) {}

    /// Whatever belongs before `watermark` was observed: what comes from now on belongs at or behind it.
    fn complete(&mut self, _watermark: SortKey) {}
}

/// Where a record stands among all others of a run.
///
/// Compared field by field from the top. No two records of one log have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortKey {
    /// Engine time: the running maximum of the input's timestamps, or the deadline of the timer.
    pub time: Timestamp,
    /// What made the record.
    pub phase: Phase,
    /// Number of the packet in the input that made the record; 0 for timers and at the end.
    pub ordinal: u64,
    /// The flow that the record is about.
    pub uid: Uid,
    /// Number of the record among those of its flow.
    pub number: u32,
}

/// What made a record, in the order in which they count at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// A timer that fired at its deadline.
    Timer,
    /// A packet, by its number.
    Packet,
    /// The end of the input.
    End,
    /// What flows told together, at the end of the input.
    Join,
}

impl SortKey {
    /// The first key of all at an engine time.
    #[must_use]
    pub const fn first_at(time: Timestamp) -> Self {
        Self { time, phase: Phase::Timer, ordinal: 0, uid: Uid::NONE, number: 0 }
    }

    /// The first key behind all those of a packet and of the packets before it, of which the latest came
    /// at `time`.
    #[must_use]
    pub const fn behind_packet(time: Timestamp, ordinal: u64) -> Self {
        Self { time, phase: Phase::Packet, ordinal: ordinal + 1, uid: Uid::NONE, number: 0 }
    }

    /// The place behind every record.
    pub const END: Self = Self::first_at(Timestamp::MAX);
}
