//! What goes into a stream and what comes out of it.

use netsniff_packet::Timestamp;

use super::fingerprint::Fingerprints;
use crate::limits::Limits;

/// Which bytes count where TCP segments overlap and differ, as long as neither was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// Those that came first.
    #[default]
    First,
    /// Those that came last.
    Last,
}

/// A piece of a stream, in the order in which the application wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// The next bytes of the stream.
    Bytes(&'a [u8]),
    /// The next bytes are missing: how many, and why.
    Gap(u64, GapCause),
    /// There will be nothing more.
    End,
}

crate::words! {
    /// Why bytes of a stream are missing.
    pub enum GapCause {
        /// The receiver acknowledged them, but the capture never saw them.
        Capture => "capture",
        /// The capture kept only the beginning of their packet.
        Snaplen => "snaplen",
        /// More came behind them than may be held.
        Bound => "bound",
        /// They did not come for long, and no acknowledgement tells whether the receiver had them.
        Time => "time",
        /// The connection ended before they came.
        End => "end",
    }
}

/// How holes in streams ended, over all streams of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoleEndings {
    /// Their bytes came in the end.
    pub filled: u64,
    /// They became gaps, by [`GapCause`].
    pub gaps: [u64; GapCause::ALL.len()],
}

impl HoleEndings {
    /// Adds those of another worker.
    pub fn merge(&mut self, other: &Self) {
        self.filled += other.filled;
        for (sum, more) in self.gaps.iter_mut().zip(other.gaps) {
            *sum += more;
        }
    }
}

/// What came, when, and where it belongs.
#[derive(Clone, Copy, Debug)]
pub struct ArrivedSegment<'a> {
    /// When it was seen.
    pub time: Timestamp,
    /// Position of its first byte.
    pub position: u64,
    /// Its bytes as far as they were captured.
    pub data: &'a [u8],
    /// How many bytes of it were not captured.
    pub missing: u64,
    /// Whether it may never reach its receiver: it counts once it is acknowledged, and gives way to
    /// what comes in its place before that.
    pub is_doubtful: bool,
    /// The position of the byte that it marks as urgent, in it or behind it, where that is no part of
    /// the stream.
    pub urgent: Option<u64>,
}

/// Whoever takes the pieces, with the time at which each could be told.
pub trait Sink {
    /// Takes one piece, which ends at the position `reach`.
    fn piece(&mut self, time: Timestamp, reach: u64, piece: Piece<'_>);

    /// Takes what is odd about the segments, by name; each name once.
    fn oddity(&mut self, name: &'static str);
}

/// Bounds and choices, and what is counted over all streams.
pub struct ReassemblyContext<'a> {
    /// Bounds of what streams hold, and for how long.
    pub limits: &'a Limits,
    /// Which bytes count where segments contradict each other.
    pub overlap: Overlap,
    /// The key of fingerprints of what was handed on.
    pub keys: &'a Fingerprints,
    /// Bytes that all streams hold together.
    pub held_in_all: &'a mut usize,
    /// Counts how holes ended.
    pub endings: &'a mut HoleEndings,
}
