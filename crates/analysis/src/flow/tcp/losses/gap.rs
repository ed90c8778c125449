//! One loss.

use netsniff_packet::Timestamp;

use crate::log::gaps::{Cause, Ended, Missing};

/// Something that is missing in one direction, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamGap {
    /// What is missing: data, a SYN, a FIN or a second copy.
    pub what: Missing,
    /// Where it begins: position in the stream, the first byte of data being 1.
    pub low: i64,
    /// One past where it ends.
    pub high: i64,
    /// When it was noticed.
    pub since: Timestamp,
    /// When it was filled, acknowledged or given up.
    pub until: Timestamp,
    /// Whether it was filled, acknowledged or given up.
    pub ended: Ended,
    /// Whether the capture or the network lost it, and on which side of the tap.
    pub cause: Cause,
    /// What the receiver told of it.
    pub proof: Proof,
    /// Whether a packet that was only late would look the same.
    pub is_assumed: bool,
}

/// What a receiver told of data that was sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proof {
    /// The receiver told nothing.
    #[default]
    None,
    /// It lacked it until it was sent again: a D-SACK is of a double of that.
    Lacked,
    /// That it came twice, though there are more copies than such reports.
    Unsure,
}

impl StreamGap {
    /// Its numbers from the first byte of data on, which stands at 1 plus `shift`.
    #[must_use]
    pub fn bytes(&self, shift: i64) -> u64 {
        (self.high - self.low.max(shift + 1)).max(0).unsigned_abs()
    }

    /// Whether it has a number in common with those from `low` up to `high`.
    #[must_use]
    pub const fn overlaps(&self, low: i64, high: i64) -> bool {
        self.low < high && low < self.high
    }

    /// Whether it tells of data that was seen and came again.
    #[must_use]
    pub fn is_second_copy(&self) -> bool {
        self.ended == Ended::Filled && matches!(self.cause, Cause::NetworkBehind | Cause::Unknown)
    }

    /// Whether it tells of data that was skipped and came then.
    pub(super) fn is_fill(&self) -> bool {
        self.ended == Ended::Filled && self.cause == Cause::NetworkBefore
    }

    /// It was the capture that lost it, since the receiver had it.
    pub(super) const fn lost_by_capture(&mut self) {
        (self.cause, self.ended, self.is_assumed) = (Cause::Capture, Ended::Acknowledged, false);
    }

    /// Whether another loss is the rest of this one: a hole that many segments filled.
    #[must_use]
    pub fn is_continued_by(&self, next: &Self) -> bool {
        self.cause == Cause::NetworkBefore
            && next.cause == self.cause
            && next.low == self.high
            && next.since == self.since
    }
}
