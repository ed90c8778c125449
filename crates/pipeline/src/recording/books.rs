//! What became of the packets of a recording, and how writing went.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A write that takes longer stalls the recorder: a disk takes a buffer within few milliseconds.
pub(super) const STALL: Duration = Duration::from_millis(10);

/// Packets, and the bytes that were captured of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    /// Number of packets.
    pub packets: u64,
    /// Bytes captured of them.
    pub bytes: u64,
}

impl Tally {
    pub(super) const fn add(&mut self, packets: u64, bytes: u64) {
        self.packets = self.packets.saturating_add(packets);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// A recording in numbers.
///
/// At any time `delivered` is the sum of `recorded`, `refused` and `in_flight` in packets, and at
/// the end, where all was recorded, that of `recorded`, `snapped` and `cut` in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Statistics {
    /// What was given to the recorder.
    pub delivered: Tally,
    /// What was written, so that it stays whatever happens to this process; of packed files what
    /// was flushed.
    pub recorded: Tally,
    /// What was not recorded: writing fell behind or failed, or the format cannot hold the packet.
    pub refused: Tally,
    /// Packets that wait to be written.
    pub in_flight: u64,
    /// Packets that were longer than the snaplen, and the bytes that it took.
    pub snapped: Tally,
    /// Packets of which the flow cut-off left the headers, and the bytes that it took.
    pub cut: Tally,
    /// Packets that the capture said were lost before.
    pub lost_before: u64,
    /// Packets that stand behind one with a later stamp: they came too late to be put in order.
    pub out_of_order: u64,
    /// Number of files begun.
    pub files: u64,
    /// Files removed, for the bounds of their number or bytes.
    pub files_removed: u64,
    /// Bytes written to files, as packed.
    pub file_bytes: u64,
    /// Writes that took longer than 10 ms.
    pub stalls: u64,
    /// Nanoseconds that these took together.
    pub stalled_nanos: u64,
    /// Nanoseconds that the slowest write took.
    pub slowest_write_nanos: u64,
    /// Buffers that wait to be written.
    pub queued: usize,
    /// The most buffers that waited at once.
    pub queue_high_water: usize,
    /// Number of buffers.
    pub buffers: usize,
}

/// Whether a recording goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Packets are recorded.
    Recording,
    /// Whoever read its pipe has enough.
    Closed,
    /// It cannot be written, which was told on standard error.
    Failed,
}

/// What the writing thread counts.
#[derive(Debug, Default)]
pub(super) struct Books {
    recorded_packets: AtomicU64,
    recorded_bytes: AtomicU64,
    refused_packets: AtomicU64,
    refused_bytes: AtomicU64,
    files: AtomicU64,
    files_removed: AtomicU64,
    file_bytes: AtomicU64,
    stalls: AtomicU64,
    stalled_nanos: AtomicU64,
    slowest_nanos: AtomicU64,
    pub(super) queued: AtomicUsize,
    state: AtomicU8,
    failure: Mutex<Option<String>>,
}

impl Books {
    pub(super) fn record(&self, tally: Tally) {
        self.recorded_bytes.fetch_add(tally.bytes, Ordering::Relaxed);
        self.recorded_packets.fetch_add(tally.packets, Ordering::Release);
    }

    pub(super) fn refuse(&self, tally: Tally) {
        self.refused_bytes.fetch_add(tally.bytes, Ordering::Relaxed);
        self.refused_packets.fetch_add(tally.packets, Ordering::Release);
    }

    pub(super) fn begin_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn remove_file(&self) {
        self.files_removed.fetch_add(1, Ordering::Relaxed);
    }

    /// A write of so many bytes took so long.
    pub(super) fn wrote(&self, bytes: usize, took: Duration) {
        self.file_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.slowest_nanos.fetch_max(nanos, Ordering::Relaxed);
        if took > STALL {
            self.stalls.fetch_add(1, Ordering::Relaxed);
            self.stalled_nanos.fetch_add(nanos, Ordering::Relaxed);
        }
    }

    /// Ends the recording; the first cause stays.
    pub(super) fn end(&self, state: State, cause: Option<String>) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if self.state() == State::Recording {
            *failure = cause;
            let state = if state == State::Closed { 1 } else { 2 };
            self.state.store(state, Ordering::Release);
        }
    }

    #[inline]
    pub(super) fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Recording,
            1 => State::Closed,
            _ => State::Failed,
        }
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds what was counted here to what the encoding half counted. `accepted` is what it took.
    pub(super) fn close(&self, accepted: Tally, own: Statistics) -> Statistics {
        let load = |counter: &AtomicU64| counter.load(Ordering::Acquire);
        let recorded =
            Tally { packets: load(&self.recorded_packets), bytes: load(&self.recorded_bytes) };
        let refused =
            Tally { packets: load(&self.refused_packets), bytes: load(&self.refused_bytes) };
        let mut all = own;
        all.refused.add(refused.packets, refused.bytes);
        Statistics {
            recorded,
            in_flight: accepted.packets.saturating_sub(recorded.packets + refused.packets),
            files: load(&self.files),
            files_removed: load(&self.files_removed),
            file_bytes: load(&self.file_bytes),
            stalls: load(&self.stalls),
            stalled_nanos: load(&self.stalled_nanos),
            slowest_write_nanos: load(&self.slowest_nanos),
            queued: self.queued.load(Ordering::Relaxed),
            ..all
        }
    }
}
