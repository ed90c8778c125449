//! Counts of what is rare in a healthy connection.

use core::ops::{Deref, DerefMut};

use super::first::First;
use super::rtt::RttStatistics;

/// Events that are rare in a healthy connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Retransmissions without other sign of a loss than time: the retransmission timer.
    pub retransmitted_timeout: u32,
    /// Retransmissions that duplicate acknowledgements or SACK asked for.
    pub retransmitted_fast: u32,
    /// Retransmissions of what the receiver had.
    pub retransmitted_unnecessarily: u32,
    /// Probes of a zero window.
    pub window_probes: u32,
    /// Keep-alives (RFC 9293, 3.8.4).
    pub keep_alives: u32,
    /// Segments that filled a hole in the way reordering does.
    pub out_of_order: u32,
    /// Packets that the capture has twice.
    pub duplicates: u32,
    /// Payload bytes of those, once each.
    pub duplicate_bytes: u64,
    /// Duplicate acknowledgements that it sent (RFC 5681, 2).
    pub duplicate_acks: u32,
    /// Segments sent with a zero window.
    pub zero_windows: u32,
    /// Segments sent with SACK blocks.
    pub sacks: u32,
    /// Duplicates reported by SACK.
    pub dsacks: u32,
    /// Packets marked CE on their way.
    pub congestion_experienced: u32,
    /// Segments with ECE after the handshake.
    pub ecn_echoes: u32,
    /// Segments with CWR after the handshake.
    pub window_reduced: u32,
}

impl Counts {
    /// Nothing happened.
    const NONE: Self = Self {
        retransmitted_timeout: 0,
        retransmitted_fast: 0,
        retransmitted_unnecessarily: 0,
        window_probes: 0,
        keep_alives: 0,
        out_of_order: 0,
        duplicates: 0,
        duplicate_bytes: 0,
        duplicate_acks: 0,
        zero_windows: 0,
        sacks: 0,
        dsacks: 0,
        congestion_experienced: 0,
        ecn_echoes: 0,
        window_reduced: 0,
    };
}

/// What is told of the metrics of a connection while it goes on, for both sides together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetricsTally {
    /// Segments that were sent again.
    pub retransmitted: u64,
    /// Round-trip times of data.
    pub samples: u64,
    /// Their sum, in nanoseconds.
    pub nanos: u64,
}

impl MetricsTally {
    /// That of a connection of which only opening segments were seen.
    #[must_use]
    pub const fn of_opening(first: &First) -> Self {
        Self { retransmitted: first.repeats() as u64, samples: 0, nanos: 0 }
    }

    /// Adds what one side sent.
    pub(super) const fn add(&mut self, counts: &Counts, rtt: &RttStatistics) {
        self.retransmitted += counts.retransmitted_timeout as u64
            + counts.retransmitted_fast as u64
            + counts.retransmitted_unnecessarily as u64;
        self.samples += rtt.count as u64;
        self.nanos = self.nanos.saturating_add(rtt.sum());
    }
}

/// [`Counts`], which have memory once one of them is not 0. Most directions never have.
#[derive(Clone, Debug, Default)]
pub struct RareCounts(Option<Box<Counts>>);

impl RareCounts {
    /// Bytes outside itself.
    #[inline]
    pub(super) const fn heap_bytes(&self) -> usize {
        if self.0.is_some() { size_of::<Counts>() } else { 0 }
    }
}

impl Deref for RareCounts {
    type Target = Counts;

    #[inline]
    fn deref(&self) -> &Counts {
        const NONE: &Counts = &Counts::NONE;
        self.0.as_deref().unwrap_or(NONE)
    }
}

/// Gives the counts memory: for whoever changes one of them.
impl DerefMut for RareCounts {
    #[inline]
    fn deref_mut(&mut self) -> &mut Counts {
        self.0.get_or_insert_default()
    }
}

impl PartialEq for RareCounts {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
