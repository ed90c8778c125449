//! What metrics and losses need of one segment.

use netsniff_packet::Timestamp;
use netsniff_packet::decode::TcpFlags;

use super::segment::Segment;
use crate::limits::Limits;

/// Where a segment stands in both streams, counted on past the wrap of sequence numbers: the SYN
/// is 0 and the first byte of data is 1.
#[derive(Clone, Copy, Debug)]
pub struct StreamPosition<'a> {
    /// Its first sequence number, in the stream of its sender.
    pub position: i64,
    /// What it acknowledges, in the stream of its receiver; 0 where that tells nothing.
    pub acknowledged: i64,
    /// Bounds of what is remembered.
    pub limits: &'a Limits,
}

/// A segment as metrics and losses take it.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The segment itself.
    pub segment: &'a Segment<'a>,
    /// Index of its sender behind it: 0 is the originator, 1 the responder. The segment may have made them change places.
    pub from: usize,
    /// Shift of the sender's window.
    pub scale: u8,
    /// Where it stands in the streams; without it no losses are noted.
    pub place: Option<StreamPosition<'a>>,
}

impl<'a> Observed<'a> {
    /// A segment that `from` sent, with the shift of its window and its place.
    #[must_use]
    #[inline]
    pub const fn new(
        segment: &'a Segment<'a>,
        from: usize,
        scale: u8,
        place: Option<StreamPosition<'a>>,
    ) -> Self {
        Self { segment, from: from & 1, scale, place }
    }

    /// Whether any of the flags is set.
    #[must_use]
    #[inline]
    pub const fn has(&self, flags: TcpFlags) -> bool {
        self.segment.has(flags)
    }
}

/// Time from `earlier` to `later`, `None` where a clock went back.
#[must_use]
#[inline]
pub const fn elapsed(earlier: Timestamp, later: Timestamp) -> Option<u64> {
    let nanos = later.nanos_since(earlier);
    if nanos < 0 { None } else { Some(nanos.unsigned_abs()) }
}
