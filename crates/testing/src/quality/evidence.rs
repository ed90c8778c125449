//! Which losses the packets of a capture prove, by the rules that netsniff states for its verdicts:
//!
//! - acknowledged but never seen: lost in the capture;
//! - a hole that was filled before the receiver acknowledged past it: lost before the tap;
//! - a second copy of data that was seen, where duplicate acknowledgements or SACK had shown that the receiver lacked
//!   it: lost behind the tap.
//!
//! Here the truth about each frame is known, so only frames that were lost there are asked whether the captured ones
//! prove it. These things are no proof:
//!
//! - a frame that the network doubled, of which only one copy was lost: what the other copy brings is not missing;
//! - what the receiver said before it can have missed the frame, which is about something else;
//! - a second copy that came so soon behind what had revealed the hole that no host can have been asked for it, with the
//!   stamp and number that a late first copy would have. A path that reorders gives the very same packets. Such losses
//!   are counted apart ([`Evidence::like_reordering`]);
//! - what the capture lost, where a copy of it comes within the wait after its acknowledgement and neither stamp nor number
//!   nor a D-SACK tells that it was sent again: a ring that was read late gives the same ([`Evidence::like_late`]);
//! - SYN and SYN-ACK where the capture has neither: the connection may as well have begun before it
//!   ([`Evidence::begin_missed`]).
//!
//! One thing looks like a proof and is none: data that came again, where neither the acknowledgement of the first copy nor a
//! D-SACK of each further one was captured. It is what a loss behind the tap leaves ([`Evidence::like_behind`]).

use netsniff_packet::Timestamp;
use netsniff_packet::decode::TcpFlags;

use super::recording::Event;
use super::segment::{Kind, Segment};
use super::{Place, Places};

/// What can be known of the losses of one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Places whose losses the captured packets prove.
    pub proven: Places,
    /// Places where something was lost that takes room in the sequence space, as a capture could know them.
    pub happened: Places,
    /// Whether a frame was lost before the tap so that nothing tells it from a late one.
    pub like_reordering: bool,
    /// Whether something was lost in the capture so that nothing tells it from what came late.
    pub like_late: bool,
    /// Whether something that was not lost came twice so that nothing tells it from a loss behind the tap.
    pub like_behind: bool,
    /// Whether the capture has no SYN of either side, so that nothing shows when the connection began.
    pub begin_missed: bool,
    /// Whether the capture lost a frame of any kind.
    pub capture_lost: bool,
    /// Whether the capture lost a SYN, FIN or data that its receiver got, and has a later acknowledgement of it.
    pub acknowledged_later: bool,
    /// Whether the capture lost a SYN, FIN or data.
    pub capture_lost_sequence: bool,
}

/// Looks at the frames of one connection, in order of time.
pub fn evidence(events: &[Event]) -> Evidence {
    let is_begin = |event: &Event| event.is_captured() && event.segment.kind() == Kind::Syn;
    let begin_missed = !events.iter().any(is_begin);
    let mut found = Evidence { begin_missed, ..Evidence::default() };
    let mut sides = [Side::new(events, 0), Side::new(events, 1)];
    let parts = [0, 1].map(|from| answer_time(events, from));
    for (side, other) in sides.iter_mut().zip([1, 0]) {
        side.answer = parts[other].unwrap_or(0);
        side.round_trip = parts[0].zip(parts[1]).map_or(0, |(one, other)| one + other);
    }
    for event in events {
        let segment = &event.segment;
        let takes_room = segment.kind().is_acknowledged();
        if event.lost.contains(&Place::Capture) {
            found.capture_lost = true;
            found.capture_lost_sequence |= takes_room;
        }
        if let Some(place) = event.effective_place().filter(|_| takes_room) {
            found.happened.insert(place);
        }
        if event.is_captured() {
            sides[segment.from].see(segment, &mut found);
            sides[1 - segment.from].hear(segment, &mut found);
        }
        let is_unknown = begin_missed && segment.kind() == Kind::Syn;
        if takes_room && !is_unknown && !has_twin(event, events) {
            sides[segment.from].lose(event);
        }
    }
    for side in &sides {
        found.like_late |= side.claims.iter().any(|claim| claim.may_be_late);
        if side.claims.iter().any(|claim| !claim.may_be_late) {
            found.proven.insert(Place::Capture);
        }
        found.like_behind |= side.copies.iter().any(|copy| copy.is_answered);
    }
    found
}

/// For how long data is waited for after its acknowledgement; nanoseconds.
const WAIT: i64 = 10_000_000;

/// Something that was acknowledged and not seen until then.
struct Claim {
    range: Range,
    at: Timestamp,
    /// The stamp that the acknowledgement echoed, and the segment that revealed the hole.
    echo: Option<u32>,
    revealer: Option<Segment>,
    /// Whether a copy came since that may be the first one.
    may_be_late: bool,
}

/// Data that was captured again before it was acknowledged, though no copy was lost.
struct Copy {
    range: Range,
    /// Whether an acknowledgement came since.
    is_answered: bool,
}

fn is_newer(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}

/// Whether a segment was surely sent after another one.
fn is_sent_after(it: &Segment, other: &Segment) -> bool {
    let stamps = it.stamps.zip(other.stamps);
    let (number, known) = (it.identification as u16, other.identification as u16);
    stamps.is_some_and(|(it, other)| is_newer(it.0, other.0))
        || (number != 0 && number.wrapping_sub(known).cast_signed() > 0)
}

/// Whether the network made two of a frame and the other one was captured and received.
fn has_twin(event: &Event, events: &[Event]) -> bool {
    let is_twin = |other: &Event| {
        other.is_doubled
            && other.effective_place().is_none()
            && other.segment.apart(&event.segment).is_some()
    };
    event.is_doubled && event.effective_place().is_some() && events.iter().any(is_twin)
}

/// How long `from` took in the handshake to answer what passed the tap; nanoseconds.
fn answer_time(events: &[Event], from: usize) -> Option<i64> {
    let syn = events
        .iter()
        .find(|event| event.segment.from != from && event.segment.flags.any(TcpFlags::SYN))?;
    let end = syn.segment.sequence.wrapping_add(1);
    let answers = events.iter().filter(|event| {
        event.segment.from == from
            && event.segment.flags.any(TcpFlags::ACK)
            && event.segment.acknowledgement == end
    });
    let apart = answers.map(|answer| answer.segment.time.nanos_since(syn.segment.time));
    apart.filter(|apart| *apart > 0).min()
}

/// Positions from the first up to, not including, the second.
type Range = (i64, i64);

/// A loss that is not yet proven.
struct Open {
    place: Place,
    /// When it passed the tap, or would have.
    time: Timestamp,
    /// What of it has not been seen (lost before the tap or in the capture) or not been seen again (behind it).
    left: Vec<Range>,
    /// Whether data beyond it was captured, or for a loss behind the tap, whether the receiver showed that it lacks it.
    shown: bool,
    /// Duplicate acknowledgements that ask for it.
    repeated: u32,
    revealer: Option<Segment>,
}

impl Open {
    /// Whether a segment may as well be the one that was lost, come late: it is behind what revealed the loss by less than
    /// a round trip, and neither its stamp nor its number is later.
    fn may_be_filled_late_by(&self, segment: &Segment, round_trip: i64) -> bool {
        let Some(revealer) = &self.revealer else { return false };
        let apart = segment.time.nanos_since(revealer.time);
        apart < round_trip && !is_sent_after(segment, revealer)
    }
}

/// What one end sends, as the capture has it.
struct Side {
    /// Sequence number of position 0.
    base: u32,
    seen: Vec<Range>,
    /// The first captured segment of those that reach furthest.
    highest: Option<Segment>,
    /// In what time the other end answers what passes the tap, and a round trip; nanoseconds, 0 where unknown.
    answer: i64,
    round_trip: i64,
    /// The highest acknowledgement and how often it was repeated without payload.
    acknowledged: Option<(i64, u32)>,
    open: Vec<Open>,
    claims: Vec<Claim>,
    copies: Vec<Copy>,
    /// Ends of what the capture lost and nobody acknowledged yet.
    waiting: Vec<i64>,
}

impl Side {
    fn new(events: &[Event], from: usize) -> Self {
        let first = events.iter().find(|event| event.segment.from == from);
        Self {
            base: first.map_or(0, |event| event.segment.sequence),
            seen: Vec::new(),
            highest: None,
            answer: 0,
            round_trip: 0,
            acknowledged: None,
            open: Vec::new(),
            claims: Vec::new(),
            copies: Vec::new(),
            waiting: Vec::new(),
        }
    }

    fn position(&self, sequence: u32) -> i64 {
        sequence.wrapping_sub(self.base).cast_signed().into()
    }

    fn range(&self, segment: &Segment) -> Range {
        let start = self.position(segment.sequence);
        (start, start + i64::from(segment.sequence_length()))
    }

    /// Takes a loss of this side.
    fn lose(&mut self, event: &Event) {
        let Some(place) = event.effective_place() else { return };
        let range = self.range(&event.segment);
        // What the receiver never got is not what it acknowledges later: that is a copy.
        if place == Place::Capture {
            self.waiting.push(range.1);
        }
        let mut left = vec![range];
        if place != Place::Behind {
            self.seen.iter().for_each(|seen| cut(&mut left, *seen));
        }
        if let Some((acknowledged, _)) = self.acknowledged {
            cut(&mut left, (i64::MIN, acknowledged));
        }
        let Some(&(start, _)) = left.first() else { return };
        let top = self.seen.iter().map(|range| range.1).max().unwrap_or(i64::MIN);
        let shown = place != Place::Behind && top > start;
        let revealer = self.highest.clone().filter(|_| shown);
        let time = event.segment.time;
        self.open.push(Open { place, time, left, shown, repeated: 0, revealer });
    }

    /// Takes a captured segment of this side.
    fn see(&mut self, segment: &Segment, found: &mut Evidence) {
        let range = self.range(segment);
        if range.0 == range.1 {
            return;
        }
        for open in &mut self.open {
            let touched = open.left.iter().any(|left| left.0 < range.1 && range.0 < left.1);
            // A copy of what the capture lost proves nothing: the receiver may have lacked it.
            if touched && open.shown && open.place != Place::Capture {
                if open.place == Place::Before
                    && open.may_be_filled_late_by(segment, self.round_trip)
                {
                    found.like_reordering = true;
                } else {
                    found.proven.insert(open.place);
                }
            }
            cut(&mut open.left, range);
            let beyond = open.left.first().is_some_and(|left| left.0 < range.0);
            if open.place == Place::Before && beyond && !open.shown {
                open.shown = true;
                open.revealer = Some(segment.clone());
            }
        }
        self.open.retain(|open| !open.left.is_empty());
        self.note_copy(segment, range, found);
        if self.seen.iter().all(|seen| seen.1 < range.1) {
            self.highest = Some(segment.clone());
        }
        cut(&mut self.seen, range);
        self.seen.push(range);
    }

    /// Looks at what was missing or seen before.
    fn note_copy(&mut self, segment: &Segment, range: Range, found: &mut Evidence) {
        let overlaps = |other: Range| other.0 < range.1 && range.0 < other.1;
        for claim in self.claims.iter_mut().filter(|claim| overlaps(claim.range)) {
            let is_soon = segment.time.nanos_since(claim.at) <= WAIT;
            let stamp = segment.stamps.map(|(value, _)| value);
            let is_later = claim.revealer.as_ref().is_some_and(|by| is_sent_after(segment, by))
                || stamp.zip(claim.echo).is_some_and(|(it, echo)| is_newer(it, echo));
            claim.may_be_late |= is_soon && !is_later;
            if !claim.may_be_late {
                found.proven.insert(Place::Capture);
            }
        }
        let is_acknowledged = self.acknowledged.is_some_and(|(number, _)| range.0 < number);
        let is_known = self.seen.iter().any(|seen| overlaps(*seen));
        if is_known && !is_acknowledged && segment.payload > 0 {
            self.copies.push(Copy { range, is_answered: false });
        }
    }

    /// Takes a captured segment of the other side.
    fn hear(&mut self, segment: &Segment, found: &mut Evidence) {
        if !segment.flags.any(TcpFlags::ACK) || segment.flags.any(TcpFlags::RST) {
            return;
        }
        let number = self.position(segment.acknowledgement);
        let repeated = match self.acknowledged {
            Some((highest, repeated)) if highest == number && segment.sequence_length() == 0 => {
                repeated + 1
            }
            Some((highest, repeated)) if highest >= number => repeated,
            _ => 0,
        };
        self.acknowledged =
            Some((self.acknowledged.map_or(number, |(n, _)| n.max(number)), repeated));
        found.acknowledged_later |= self.waiting.iter().any(|end| *end <= number);
        let blocks: Vec<Range> = segment
            .sack
            .iter()
            .map(|(low, high)| (self.position(*low), self.position(*high)))
            .collect();
        self.hear_report(&blocks, number);
        for copy in self.copies.iter_mut().filter(|copy| copy.range.1 <= number) {
            copy.is_answered = true;
        }
        for open in &mut self.open {
            if open.place == Place::Capture
                && let Some(left) = open.left.first().filter(|left| left.0 < number)
            {
                self.claims.push(Claim {
                    range: (left.0, left.1.min(number)),
                    at: segment.time,
                    echo: segment.stamps.map(|(_, echo)| echo),
                    revealer: open.revealer.clone(),
                    may_be_late: false,
                });
            }
            cut(&mut open.left, (i64::MIN, number));
            if open.place == Place::Behind {
                blocks.iter().for_each(|block| cut(&mut open.left, *block));
                let Some(&(start, end)) = open.left.first() else { continue };
                // Whatever passed sooner answers something that came before the loss.
                if segment.time.nanos_since(open.time) < self.answer {
                    continue;
                }
                let beyond = blocks.iter().any(|block| block.0 >= end);
                open.repeated += u32::from(number == start && segment.sequence_length() == 0);
                // The first one may be no duplicate.
                open.shown |= beyond || (repeated >= 3 && open.repeated >= 3);
            }
        }
        self.open.retain(|open| !open.left.is_empty());
    }

    /// Takes the first block for what it may be: a report of what came twice (RFC 2883).
    fn hear_report(&mut self, blocks: &[Range], number: i64) {
        let report = blocks.first().filter(|first| {
            let is_inside = blocks.get(1).is_some_and(|b| b.0 <= first.0 && first.1 <= b.1);
            first.1 <= number || is_inside
        });
        let Some(report) = report else { return };
        let is_it = |range: Range| range.0 < report.1 && report.0 < range.1;
        // One report is of one copy.
        if let Some(at) = self.copies.iter().rposition(|copy| is_it(copy.range)) {
            self.copies.remove(at);
        }
        for claim in self.claims.iter_mut().filter(|claim| is_it(claim.range)) {
            claim.may_be_late = false;
        }
    }
}

/// Takes a range out of ranges that are sorted and apart.
fn cut(ranges: &mut Vec<Range>, (low, high): Range) {
    let parts = |(start, end): Range| [(start, end.min(low)), (start.max(high), end)];
    *ranges = ranges.iter().copied().flat_map(parts).filter(|(start, end)| start < end).collect();
}
