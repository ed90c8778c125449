//! The order of records, which makes output the same for any number of workers.

use netsniff_packet::Timestamp;

use super::Record;
use crate::uid::Uid;

/// Whoever takes the records of the engine.
pub trait Observer {
    /// One record, which belongs at `key` in its log. Keys may come out of order.
    fn record<R: Record>(&mut self, key: &SortKey, record: &R);
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
    /// A packet.
    Packet,
    /// The end of the input.
    End,
}
