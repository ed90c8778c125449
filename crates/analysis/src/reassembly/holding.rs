//! What came of a stream beyond holes, until the holes end.

use std::collections::VecDeque;

use netsniff_packet::Timestamp;

use super::stream::Arrival;
use crate::options::Overlap;

/// Bytes that a segment takes besides its own.
const PER_SEGMENT: usize = size_of::<Segment>() + 16;

/// A part of a segment that lies beyond a hole.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) time: Timestamp,
    pub(super) position: u64,
    pub(super) data: Box<[u8]>,
    /// Bytes behind `data` that were not captured.
    pub(super) missing: u64,
}

impl Segment {
    const fn high(&self) -> u64 {
        self.position.saturating_add(self.data.len() as u64).saturating_add(self.missing)
    }
}

/// Segments beyond holes: sorted, not empty, and without overlaps.
#[derive(Debug)]
pub(super) struct Holding {
    segments: VecDeque<Segment>,
    bytes: usize,
    /// From when on the first hole is waited for: since it was noticed, or since the one before it
    /// was filled, which others may follow.
    pub(super) since: Timestamp,
    /// Until when the bytes of the first hole are waited for, after they were acknowledged.
    pub(super) due: Option<Timestamp>,
}

impl Holding {
    pub(super) const fn new(since: Timestamp) -> Self {
        Self { segments: VecDeque::new(), bytes: 0, since, due: None }
    }

    /// Bytes that the segments take.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many segments there are.
    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    /// The position at which the first segment begins.
    pub(super) fn first(&self) -> Option<u64> {
        self.segments.front().map(|segment| segment.position)
    }

    /// When the first segment came.
    pub(super) fn first_time(&self) -> Option<Timestamp> {
        self.segments.front().map(|segment| segment.time)
    }

    /// Takes the first segment, if it begins at or before `next`.
    pub(super) fn pop_at(&mut self, next: u64) -> Option<Segment> {
        let segment = self.segments.pop_front_if(|segment| segment.position <= next)?;
        self.bytes = self.bytes.saturating_sub(segment.data.len() + PER_SEGMENT);
        Some(segment)
    }

    /// Adds what is new of an arrival between `next` and `high`. Returns whether it contradicts
    /// what was there.
    pub(super) fn insert(
        &mut self,
        it: &Arrival<'_>,
        next: u64,
        high: u64,
        overlap: Overlap,
    ) -> bool {
        let mut low = it.position.max(next);
        let mut is_contradicted = false;
        let mut at = self.segments.partition_point(|segment| segment.high() <= low);
        while low < high {
            let Some(segment) = self.segments.get_mut(at).filter(|it| it.position < high) else {
                self.add(at, it, low, high);
                break;
            };
            let (from, to) = (segment.position, segment.high());
            if low < from {
                self.add(at, it, low, from);
                at += 1;
                low = from;
                continue;
            }
            is_contradicted |= meet(segment, it, low, to.min(high), overlap);
            low = to;
            at += 1;
        }
        is_contradicted
    }

    /// Drops what lies at `end` or behind it. Returns whether there was any.
    pub(super) fn truncate(&mut self, end: u64) -> bool {
        let mut is_cut = false;
        while let Some(mut last) = self.segments.pop_back_if(|last| last.high() > end) {
            is_cut = true;
            self.bytes = self.bytes.saturating_sub(last.data.len() + PER_SEGMENT);
            if last.position < end {
                last.data = part(&last.data, last.position, last.position, end).into();
                last.missing = end - last.position - last.data.len() as u64;
                self.bytes += last.data.len() + PER_SEGMENT;
                self.segments.push_back(last);
                break;
            }
        }
        is_cut
    }

    /// Adds the part of an arrival from `low` to `high` before the segment at `at`.
    fn add(&mut self, at: usize, it: &Arrival<'_>, low: u64, high: u64) {
        let data = part(it.data, it.position, low, high);
        let missing = high - low - data.len() as u64;
        let segment = Segment { time: it.time, position: low, data: data.into(), missing };
        self.bytes += segment.data.len() + PER_SEGMENT;
        self.segments.insert(at, segment);
    }
}

/// Compares the bytes of a segment with those of an arrival between two positions, and settles
/// which of them count. Returns whether they differ.
fn meet(segment: &mut Segment, it: &Arrival<'_>, low: u64, high: u64, overlap: Overlap) -> bool {
    let fresh = part(it.data, it.position, low, high);
    let from = usize::try_from(low - segment.position).unwrap_or(usize::MAX);
    let known = segment.data.get_mut(from..).unwrap_or_default();
    let len = known.len().min(fresh.len());
    let (known, fresh) = (&mut known[..len], &fresh[..len]);
    let differs = known != fresh;
    if differs && overlap == Overlap::Last {
        known.copy_from_slice(fresh);
    }
    differs
}

/// The bytes between two positions, as far as there are any.
fn part(data: &[u8], position: u64, low: u64, high: u64) -> &[u8] {
    let index = |at: u64| usize::try_from(at.saturating_sub(position)).unwrap_or(usize::MAX);
    data.get(index(low).min(data.len())..index(high).min(data.len())).unwrap_or_default()
}
