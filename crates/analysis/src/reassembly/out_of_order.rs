//! What came of a stream beyond holes, until the holes end.

use std::collections::BTreeMap;

use netsniff_packet::Timestamp;

use super::stream::ArrivedSegment;
use crate::reassembly::piece::Overlap;

/// Bytes that a segment takes besides its own: nodes of the tree are half full at least, and two thirds mostly.
const PER_SEGMENT: usize = (size_of::<u64>() + size_of::<Segment>()) * 3 / 2 + 16;

/// A part of a segment that lies beyond a hole.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) time: Timestamp,
    pub(super) position: u64,
    pub(super) data: Box<[u8]>,
    /// Bytes behind `data` that were not captured.
    pub(super) missing: u64,
    /// Whether it counts only once it is acknowledged, unless others come in its place.
    is_tentative: bool,
    /// Whether it is an urgent byte, which is no part of what is read.
    pub(super) is_urgent: bool,
}

impl Segment {
    pub(super) const fn high(&self) -> u64 {
        self.position.saturating_add(self.data.len() as u64).saturating_add(self.missing)
    }

    fn as_arrival(&self) -> ArrivedSegment<'_> {
        ArrivedSegment {
            time: self.time,
            position: self.position,
            data: &self.data,
            missing: self.missing,
            is_doubtful: self.is_tentative,
            urgent: None,
        }
    }
}

/// Segments beyond holes: sorted, not empty, and without overlaps. A tree, because somebody may send thousands of tiny ones in
/// the worst order.
#[derive(Debug)]
pub(super) struct OutOfOrderQueue {
    /// By their positions.
    segments: BTreeMap<u64, Segment>,
    /// How many of them go on where the one before ends.
    joints: usize,
    bytes: usize,
    /// From when on the first hole is waited for: since it was noticed, or since the one before it
    /// was filled, which others may follow.
    pub(super) since: Timestamp,
    /// Until when the bytes of the first hole are waited for, after they were acknowledged.
    pub(super) due: Option<Timestamp>,
    /// When the last bytes before the held ones were told.
    pub(super) told: Timestamp,
}

impl OutOfOrderQueue {
    pub(super) const fn new(since: Timestamp) -> Self {
        let told = Timestamp::from_nanos(i64::MIN);
        Self { segments: BTreeMap::new(), joints: 0, bytes: 0, since, due: None, told }
    }

    /// Bytes that the segments take.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many ranges there are with holes between them, however they came in segments.
    pub(super) fn ranges(&self) -> usize {
        self.segments.len().saturating_sub(self.joints)
    }

    /// The position at which the first segment begins.
    pub(super) fn first(&self) -> Option<u64> {
        self.segments.first_key_value().map(|(position, _)| *position)
    }

    /// When the first segment came.
    pub(super) fn first_time(&self) -> Option<Timestamp> {
        self.segments.first_key_value().map(|(_, segment)| segment.time)
    }

    /// Takes the first segment, if it begins at or before `next`, below `end`, and counts: below
    /// `acknowledged` everything does.
    pub(super) fn pop_at(&mut self, next: u64, acknowledged: u64, end: u64) -> Option<Segment> {
        let (_, first) = self.segments.first_key_value()?;
        let is_due = first.position <= next
            && first.position < end
            && (!first.is_tentative || first.high() <= acknowledged);
        let position = first.position;
        is_due.then(|| self.remove(position)).flatten()
    }

    /// Whether the first segment stands at `next` and waits to be acknowledged.
    pub(super) fn is_tentative_at(&self, next: u64) -> bool {
        let first = self.segments.first_key_value();
        first.is_some_and(|(_, first)| first.is_tentative && first.position <= next)
    }

    /// Lets the first segment count.
    pub(super) fn accept_first(&mut self) {
        if let Some(mut first) = self.segments.first_entry() {
            first.get_mut().is_tentative = false;
        }
    }

    /// Adds what is new of an arrival between `next` and `high`. Returns whether it contradicts
    /// what was there.
    pub(super) fn insert(
        &mut self,
        it: &ArrivedSegment<'_>,
        next: u64,
        high: u64,
        overlap: Overlap,
    ) -> bool {
        let mut low = it.position.max(next);
        let mut is_contradicted = false;
        while low < high {
            let Some(segment) = self.reaching_beyond(low).filter(|it| it.position < high) else {
                self.add(it, low, high);
                break;
            };
            let (from, to) = (segment.position, segment.high());
            if low < from {
                self.add(it, low, from);
                low = from;
                continue;
            }
            let to = to.min(high);
            is_contradicted |= meet(segment, it, low, to, overlap);
            if segment.is_tentative && !it.is_doubtful {
                self.replace(from, it, low, to);
            }
            low = to;
        }
        is_contradicted
    }

    /// Drops all that lies at `end` or behind it.
    pub(super) fn truncate(&mut self, end: u64) {
        while let Some((&position, _)) = self.segments.last_key_value()
            && position >= end
        {
            self.remove(position);
        }
    }

    /// Cuts the segment that reaches over a position in two.
    pub(super) fn split_at(&mut self, position: u64) {
        let before = self.segments.range(..position).next_back();
        let over = before.filter(|(_, segment)| segment.high() > position).map(|(at, _)| *at);
        let Some(old) = over.and_then(|at| self.remove(at)) else { return };
        let whole = old.as_arrival();
        self.add(&whole, position, old.high());
        self.add(&whole, old.position, position);
    }

    /// Marks the byte at a position as urgent, if it is held. A mark that may never reach the receiver
    /// `is_doubtful`, and changes nothing that is sure to.
    pub(super) fn mark_urgent(&mut self, position: u64, is_doubtful: bool) {
        let marked = self.reaching_beyond(position).is_some_and(|segment| {
            segment.position <= position
                && !segment.is_urgent
                && (!is_doubtful || segment.is_tentative)
        });
        if !marked {
            return;
        }
        self.split_at(position);
        self.split_at(position.saturating_add(1));
        if let Some(byte) = self.segments.get_mut(&position) {
            byte.is_urgent = true;
        }
    }

    /// Whether there is something behind `end`.
    pub(super) fn reaches_beyond(&self, end: u64) -> bool {
        self.segments.last_key_value().is_some_and(|(_, last)| last.high() > end)
    }

    /// The first segment of which something lies at a position or behind it.
    fn reaching_beyond(&mut self, position: u64) -> Option<&mut Segment> {
        let before = self.segments.range(..=position).next_back();
        let at = match before.filter(|(_, segment)| segment.high() > position) {
            Some((at, _)) => *at,
            None => *self.segments.range(position..).next()?.0,
        };
        self.segments.get_mut(&at)
    }

    /// Puts an arrival in the place of the part of the tentative segment at `at` that lies from `low`
    /// to `high`.
    fn replace(&mut self, at: u64, it: &ArrivedSegment<'_>, low: u64, high: u64) {
        let Some(old) = self.remove(at) else { return };
        let rest = old.as_arrival();
        if old.position < low {
            self.add(&rest, old.position, low);
        }
        self.add(it, low, high);
        if high < old.high() {
            self.add(&rest, high, old.high());
        }
    }

    /// Adds the part of an arrival from `low` to `high`, where nothing is.
    fn add(&mut self, it: &ArrivedSegment<'_>, low: u64, high: u64) {
        let data = part(it.data, it.position, low, high);
        let missing = high - low - data.len() as u64;
        let is_tentative = it.is_doubtful;
        let (time, data) = (it.time, data.into());
        let segment =
            Segment { time, position: low, data, missing, is_tentative, is_urgent: false };
        self.bytes += segment.data.len() + PER_SEGMENT;
        self.joints += self.neighbours(&segment);
        self.segments.insert(low, segment);
    }

    fn remove(&mut self, at: u64) -> Option<Segment> {
        let segment = self.segments.remove(&at)?;
        self.bytes = self.bytes.saturating_sub(segment.data.len() + PER_SEGMENT);
        self.joints = self.joints.saturating_sub(self.neighbours(&segment));
        Some(segment)
    }

    /// How many others touch a segment that is not among them.
    fn neighbours(&self, segment: &Segment) -> usize {
        let before = self.segments.range(..segment.position).next_back();
        usize::from(before.is_some_and(|(_, before)| before.high() == segment.position))
            + usize::from(self.segments.contains_key(&segment.high()))
    }
}

/// Compares the bytes of a segment with those of an arrival between two positions, and settles
/// which of them count. Returns whether they differ.
fn meet(
    segment: &mut Segment,
    it: &ArrivedSegment<'_>,
    low: u64,
    high: u64,
    overlap: Overlap,
) -> bool {
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
