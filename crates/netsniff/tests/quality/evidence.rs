//! Which losses the packets of a capture prove, by the rules that netsniff states for its verdicts:
//!
//! - acknowledged but never seen: lost in the capture;
//! - a hole that was filled before the receiver acknowledged past it: lost before the tap;
//! - a second copy of data that was seen, where duplicate acknowledgements or SACK had shown that the receiver lacked
//!   it: lost behind the tap.
//!
//! Here the truth about each frame is known, so only frames that were lost there are asked whether the captured ones
//! prove it. How long a hole was open is not asked: where a loss passes for reordering, it is told wrongly.

use netsniff_packet::decode::TcpFlags;

use super::recording::Event;
use super::segment::Segment;
use super::{Place, Places};

/// What can be known of the losses of one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    /// Places whose losses the captured packets prove.
    pub(crate) proven: Places,
    /// Places where something was lost that takes room in the sequence space, as a capture could know them.
    pub(crate) happened: Places,
    /// Whether the capture lost a frame of any kind.
    pub(crate) capture_lost: bool,
    /// Whether the capture lost a SYN, FIN or data that its receiver got, and has a later acknowledgement of it.
    pub(crate) acknowledged_later: bool,
    /// Whether the capture lost a SYN, FIN or data.
    pub(crate) capture_lost_sequence: bool,
}

/// Looks at the frames of one connection, in order of time.
pub(crate) fn evidence(events: &[Event]) -> Evidence {
    let mut found = Evidence::default();
    let mut sides = [Side::new(events, 0), Side::new(events, 1)];
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
        if takes_room {
            sides[segment.from].lose(event);
        }
    }
    found
}

/// Positions from the first up to, not including, the second.
type Range = (i64, i64);

/// A loss that is not yet proven.
struct Open {
    place: Place,
    /// What of it has not been seen (lost before the tap or in the capture) or not been seen again (behind it).
    left: Vec<Range>,
    /// Whether data beyond it was captured, or for a loss behind the tap, whether the receiver showed that it lacks it.
    shown: bool,
}

/// What one end sends, as the capture has it.
struct Side {
    /// Position 0.
    base: u32,
    seen: Vec<Range>,
    /// The highest acknowledgement and how often it was repeated without payload.
    acknowledged: Option<(i64, u32)>,
    open: Vec<Open>,
    /// Ends of what the capture lost and nobody acknowledged yet.
    waiting: Vec<i64>,
}

impl Side {
    fn new(events: &[Event], from: usize) -> Self {
        let first = events.iter().find(|event| event.segment.from == from);
        Self {
            base: first.map_or(0, |event| event.segment.sequence),
            seen: Vec::new(),
            acknowledged: None,
            open: Vec::new(),
            waiting: Vec::new(),
        }
    }

    fn position(&self, sequence: u32) -> i64 {
        sequence.wrapping_sub(self.base).cast_signed().into()
    }

    fn range(&self, segment: &Segment) -> Range {
        let start = self.position(segment.sequence);
        (start, start + i64::from(segment.len()))
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
        self.open.push(Open { place, left, shown: place != Place::Behind && top > start });
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
                found.proven.insert(open.place);
            }
            cut(&mut open.left, range);
            let beyond = open.left.first().is_some_and(|left| left.0 < range.0);
            open.shown |= open.place == Place::Before && beyond;
        }
        self.open.retain(|open| !open.left.is_empty());
        cut(&mut self.seen, range);
        self.seen.push(range);
    }

    /// Takes a captured segment of the other side.
    fn hear(&mut self, segment: &Segment, found: &mut Evidence) {
        if !segment.flags.any(TcpFlags::ACK) || segment.flags.any(TcpFlags::RST) {
            return;
        }
        let number = self.position(segment.acknowledgement);
        let repeated = match self.acknowledged {
            Some((highest, repeated)) if highest == number && segment.len() == 0 => repeated + 1,
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
        for open in &mut self.open {
            if open.place == Place::Capture && open.left.first().is_some_and(|left| left.0 < number)
            {
                found.proven.insert(Place::Capture);
            }
            cut(&mut open.left, (i64::MIN, number));
            if open.place == Place::Behind {
                blocks.iter().for_each(|block| cut(&mut open.left, *block));
                let Some(&(start, end)) = open.left.first() else { continue };
                let beyond = blocks.iter().any(|block| block.0 >= end);
                open.shown |= beyond || (number == start && repeated >= 3);
            }
        }
        self.open.retain(|open| !open.left.is_empty());
    }
}

/// Takes a range out of ranges that are sorted and apart.
fn cut(ranges: &mut Vec<Range>, (low, high): Range) {
    let parts = |(start, end): Range| [(start, end.min(low)), (start.max(high), end)];
    *ranges = ranges.iter().copied().flat_map(parts).filter(|(start, end)| start < end).collect();
}
