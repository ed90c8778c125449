//! Packets that a capture lost, as far as it knows.

use crate::Timestamp;

/// A hole in what was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The last time at which surely nothing of it was missing; `None` where the hole may reach
    /// back to the begin of the capture.
    pub before: Option<Timestamp>,
    /// The first time at which surely nothing of it was missing any more.
    pub after: Timestamp,
    /// Number of packets lost.
    pub packets: u64,
    /// Where they were lost.
    pub stage: Stage,
}

/// Where a packet was lost on its way into the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The interface had no room for it.
    Interface,
    /// The operating system dropped it.
    System,
    /// The capture does not tell.
    Unknown,
}
