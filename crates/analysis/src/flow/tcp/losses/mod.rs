//! What is missing in the streams of a connection, and who lost it: the capture, or the network
//! before or behind the tap.
//!
//! | module | concern |
//! |---|---|
//! | [`stream`] | evidence in one direction |
//! | `again` | what came again, and how soon it can have been sent |
//! | [`gap`] | one loss |
//! | `hole` | what is missing until it is known why |
//! | `reports` | what receivers say to have come twice |
//! | `second_copies` | what came twice |
//! | [`surplus`] | what there is no room for |
//! | `unsent` | what was never sent |
//!
//! `docs/losses.md` tells the rules.

mod again;
pub mod gap;
mod hole;
mod reports;
mod second_copies;
pub mod stream;
pub mod surplus;
mod unsent;

pub use again::{Again, Class, Path, Repair};

use netsniff_packet::Timestamp;
use netsniff_packet::decode::TcpFlags;

use super::observed::{Observed, elapsed};
use super::sequence::delta;
use hole::{Coming, Evidence};
use reports::Report;
use stream::StreamLosses;

/// Blocks that fit a segment with time stamps (RFC 2018, 3): where there are so many, the receiver
/// may have more than it tells.
const FULL_SACK: u8 = 3;

/// What a segment reports as come twice: the first block, if it lies below the cumulative acknowledgement or
/// inside the second one (RFC 2883, 4).
pub(in crate::flow::tcp) fn reported_twice(seen: &Observed<'_>) -> Option<(u32, u32)> {
    let options = &seen.segment.tcp.options;
    let blocks = options.sack.get(..usize::from(options.sack_count)).unwrap_or_default();
    let (&(low, high), rest) = blocks.split_first()?;
    let is_inside = rest.first().is_some_and(|&(l, h)| delta(low, l) >= 0 && delta(high, h) <= 0);
    (delta(high, seen.segment.tcp.acknowledgement) <= 0 || is_inside).then_some((low, high))
}

/// The segment that revealed a hole: its sender sent it later than what it skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revealed {
    /// When it was seen.
    pub at: Timestamp,
    /// Its time stamp (RFC 7323), where it has one.
    pub stamp: Option<u32>,
    /// The low 16 bits of its IP identification; 0 where there is none.
    pub identification: u16,
}

impl Revealed {
    /// By a segment of the side that skipped something.
    const fn by(seen: &Observed<'_>) -> Self {
        let stamp = match seen.segment.tcp.options.timestamps {
            Some((value, _)) => Some(value),
            None => None,
        };
        Self { at: seen.segment.time, stamp, identification: seen.segment.identification }
    }

    /// By an acknowledgement, which tells nothing of when the data was sent.
    const fn at(at: Timestamp) -> Self {
        Self { at, stamp: None, identification: 0 }
    }

    /// Whether a segment was sent before this one, by its stamp or else by its number, where these
    /// tell: what is sent again has a later stamp, and a later number if its host `is_counting` packets.
    #[must_use]
    pub fn is_after(&self, seen: &Observed<'_>, is_counting: bool) -> Option<bool> {
        if let (Some(own), Some((other, _))) = (self.stamp, seen.segment.tcp.options.timestamps)
            && own != other
        {
            return Some(delta(other, own) < 0);
        }
        let (own, other) = (self.identification, seen.segment.identification);
        let behind = own.wrapping_sub(other);
        if own == 0 || other == 0 {
            return None;
        }
        if is_counting && behind != 0 {
            return Some(behind < u16::MAX / 2);
        }
        // Random numbers are near each other once in a thousand times.
        (1..=NEAR).contains(&behind).then_some(true)
    }
}

/// Packets of a host that are on their way together, at most.
const NEAR: u16 = 64;

/// What is known of a hole that a segment fills, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The segment that revealed it.
    pub revealed: Revealed,
    /// When the receiver first showed that it lacks it.
    pub lacked: Option<Timestamp>,
}

/// Numbers that were not seen yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// How many.
    pub len: u64,
    /// When the first of the holes that they lie in was noticed.
    pub since: Timestamp,
}

/// The losses in both streams of a connection, originator first, for those that have any: mostly one alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger([Option<Box<StreamLosses>>; 2]);

impl Ledger {
    /// What was found in the stream of originator (0) or responder (1).
    #[must_use]
    pub fn stream(&self, from: usize) -> Option<&StreamLosses> {
        self.0[from & 1].as_deref()
    }

    /// Originator and responder change places.
    pub fn flip(&mut self) {
        self.0.swap(0, 1);
    }

    /// Bytes that it holds outside itself.
    #[must_use]
    #[inline]
    pub fn heap_bytes(&self) -> usize {
        if self.is_empty() { 0 } else { self.count_bytes() }
    }

    #[cold]
    fn count_bytes(&self) -> usize {
        let streams = self.0.iter().flatten();
        streams.map(|stream| size_of::<StreamLosses>() + stream.heap_bytes()).sum()
    }

    /// Whether neither stream has lost anything.
    #[inline]
    const fn is_empty(&self) -> bool {
        matches!(self.0, [None, None])
    }

    /// Forgets what is open in a stream that begins anew.
    #[cold]
    pub(super) fn begin_anew(&mut self, from: usize) {
        if let Some(stream) = &mut self.0[from & 1] {
            stream.begin_anew();
        }
    }

    /// Positions in a stream are higher by so many numbers than they were, since it begins elsewhere.
    #[cold]
    pub(super) fn move_positions(&mut self, from: usize, by: i64) {
        if let Some(stream) = &mut self.0[from & 1] {
            stream.move_positions(by);
        }
    }

    /// A stream goes on at the end of a range of positions at some time, and nobody knows what lies in there.
    #[cold]
    pub(super) fn renumber(&mut self, from: usize, range: [i64; 2], at: Timestamp) {
        self.open(from).pass_over(range, at);
    }

    /// What was acknowledged of a stream at some time, up to the end of a range of positions, was never sent from
    /// the begin of that.
    #[cold]
    pub(super) fn take_back(&mut self, from: usize, range: [i64; 2], at: Timestamp) {
        self.open(from).take_back(range, at);
    }

    /// The sender of a segment skipped the sequence numbers from `from` up to its own.
    #[cold]
    pub(super) fn skipped(&mut self, seen: &Observed<'_>, from: u32) {
        let Some(place) = seen.place else { return };
        let low = place.position - i64::from(delta(seen.segment.tcp.sequence, from));
        let stream = self.open(seen.from);
        stream.pass(low, place.position, Revealed::by(seen), place.limits);
    }

    /// What is known of the oldest hole that the numbers of a segment up to `end` lie in.
    #[cold]
    pub(super) fn hole(&self, seen: &Observed<'_>, end: u32) -> Option<Skipped> {
        let (place, stream) = (seen.place?, self.stream(seen.from)?);
        let high = place.position + i64::from(delta(end, seen.segment.tcp.sequence));
        stream.hole(place.position, high)
    }

    /// What the numbers of a segment up to `end` bring for the first time.
    #[cold]
    pub(super) fn unseen(&self, seen: &Observed<'_>, end: u32) -> Unseen {
        let (Some(place), Some(stream)) = (seen.place, self.stream(seen.from)) else {
            return Unseen::default();
        };
        let high = place.position + i64::from(delta(end, seen.segment.tcp.sequence));
        stream.unseen(place.position, high)
    }

    /// Whether its sender skipped something below the number `next` that was not seen since.
    #[cold]
    pub(super) fn has_unseen_below(&self, seen: &Observed<'_>, next: u32) -> bool {
        let (Some(place), Some(stream)) = (seen.place, self.stream(seen.from)) else {
            return false;
        };
        let position = place.position + i64::from(delta(next, seen.segment.tcp.sequence));
        stream.has_unseen_below(position)
    }

    /// The SYN of a side was missed, though that of the other side was seen; its data begins at
    /// `start`, and the first segment that is seen may stand beyond. Returns whether it does.
    #[cold]
    pub(super) fn begun_late(&mut self, seen: &Observed<'_>, start: u32) -> bool {
        let missing = i64::from(delta(seen.segment.tcp.sequence, start));
        let Some(place) = seen.place.filter(|_| missing > 0) else { return false };
        let stream = self.open(seen.from);
        stream.begin_at(place.position - missing);
        let revealed = Revealed::by(seen);
        stream.pass(place.position - missing, place.position, revealed, place.limits);
        true
    }

    /// A segment brought the numbers up to `end`, while something was missing or beyond a hole.
    /// Returns whether anything is still open.
    #[cold]
    pub(super) fn seen(&mut self, seen: &Observed<'_>, end: u32) -> bool {
        self.filled(seen, end, &Coming::NEW)
    }

    fn filled(&mut self, seen: &Observed<'_>, end: u32, coming: &Coming) -> bool {
        let (Some(place), Some(stream)) = (seen.place, &mut self.0[seen.from & 1]) else {
            return false;
        };
        let high = place.position + i64::from(delta(end, seen.segment.tcp.sequence));
        stream.fill(place.position, high, seen.segment.time, coming, place.limits);
        stream.is_open()
    }

    /// A segment brought numbers up to `end` that are not new. Returns whether anything is still
    /// open.
    #[cold]
    pub(super) fn seen_again(&mut self, seen: &Observed<'_>, end: u32, again: &Again) -> bool {
        let Some(place) = seen.place else { return false };
        let high = place.position + i64::from(delta(end, seen.segment.tcp.sequence));
        let is_asking = seen.has(TcpFlags::SYN) && !seen.has(TcpFlags::ACK);
        if seen.segment.tcp.payload_len == 0 || is_asking {
            // Of a SYN or FIN that came again nobody can tell whether it was lost, or its
            // acknowledgement, whether data was in it or not. It may fill a hole.
            return self.filled(seen, end, &Coming::of(again, high));
        }
        let stream = self.open(seen.from);
        stream.copy(place.position, high, seen.segment.time, again, place.limits);
        stream.is_open()
    }

    /// The receiver acknowledged what `number` says, of a stream of which everything up to `next`
    /// was sent, as far as that was seen. Returns whether anything is open.
    #[cold]
    pub(super) fn acknowledged(&mut self, seen: &Observed<'_>, next: u32, path: &Path) -> bool {
        let Some(place) = seen.place else { return false };
        let stream = self.open(1 - (seen.from & 1));
        if place.acknowledged <= 0 {
            return stream.is_open();
        }
        let beyond = delta(seen.segment.tcp.acknowledgement, next);
        if beyond > 0 {
            let low = place.acknowledged - i64::from(beyond);
            stream.skip(low, place.acknowledged, Evidence::ahead(seen.segment.time), place.limits);
        }
        stream.acknowledge(place.acknowledged, seen.segment.time, path, place.limits);
        stream.is_open()
    }

    /// The receiver shows that it lacks what comes at the number that it acknowledges: by duplicate
    /// acknowledgements, or by `blocks` of later data that it has (RFC 2018), which was sent up to `next`.
    /// Returns whether anything is open.
    #[cold]
    pub(super) fn lacks(&mut self, seen: &Observed<'_>, blocks: &[(u32, u32)], next: u32) -> bool {
        let Some(place) = seen.place else { return false };
        let stream = self.open(1 - (seen.from & 1));
        let at = |number| {
            place.acknowledged + i64::from(delta(number, seen.segment.tcp.acknowledgement))
        };
        let mut has = [(0, 0); 4];
        let mut count = 0;
        for (slot, &(low, high)) in has.iter_mut().zip(blocks) {
            *slot = (at(low), at(high));
            count += 1;
        }
        let blocks = has.get(..count).unwrap_or_default();
        let is_complete = seen.segment.tcp.options.sack_count < FULL_SACK;
        stream.lacks(place.acknowledged, blocks, is_complete, at(next), seen.segment.time);
        stream.is_open()
    }

    /// The receiver reports that what lies from `low` up to `high` came to it twice (RFC 2883), which it does
    /// within `wait` nanoseconds.
    #[cold]
    pub(super) fn came_twice(&mut self, seen: &Observed<'_>, (low, high): (u32, u32), wait: u64) {
        let Some(place) = seen.place.filter(|_| !self.is_empty()) else { return };
        let at = |number| {
            place.acknowledged + i64::from(delta(number, seen.segment.tcp.acknowledgement))
        };
        let report = Report {
            low: at(low),
            high: at(high),
            at: seen.segment.time,
            acknowledged: place.acknowledged,
            stamps: seen.segment.tcp.options.timestamps,
            identification: seen.segment.identification,
        };
        self.open(1 - (seen.from & 1)).came_twice(&report, wait, place.limits);
    }

    /// The same packet came once more. The receiver may report what it brings as come twice.
    pub(super) fn doubled(&mut self, seen: &Observed<'_>) {
        let Some(place) = seen.place.filter(|_| !self.is_empty()) else { return };
        let high = place.position + i64::from(seen.segment.tcp.payload_len);
        self.open(seen.from).doubled(place.position, high, place.limits);
    }

    fn open(&mut self, from: usize) -> &mut StreamLosses {
        self.0[from & 1].get_or_insert_default()
    }
}

/// Nanoseconds of a time-out.
fn nanos(duration: core::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Whether more than `wait` has passed; a clock that went back tells nothing.
fn is_past(since: Timestamp, now: Timestamp, wait: u64) -> bool {
    elapsed(since, now).is_some_and(|age| age > wait)
}
