//! Acknowledgements of data that nobody saw, of which one segment alone tells, and what contradicts them.
//!
//! A host acknowledges what it got, so that the capture missed that. Such an acknowledgement is believed.
//! Somebody may have forged it all the same, or it is of an older connection. Then the hosts go on as
//! though it had not been: what they send later than it is of less. It is taken back at that.
//!
//! Segments overtake each other, so that only what was surely sent later is a contradiction.

use netsniff_packet::Timestamp;
use netsniff_packet::decode::TcpFlags;

use super::numbers::sequence_length;
use super::{SegmentContext, TcpConnection};
use crate::flow::tcp::assembler::Assembler;
use crate::flow::tcp::observed::elapsed;
use crate::flow::tcp::segment::Segment;
use crate::flow::tcp::sequence::{Wrapping, delta};
use crate::limits::Limits;

/// Within these nanoseconds a packet without IP identification may be the one before it, doubled.
const DOUBLED: u64 = 3_000_000;

/// An acknowledgement of what was not seen.
#[derive(Clone, Debug, PartialEq)]
struct Claim {
    number: u32,
    /// The segment that says so.
    sequence: u32,
    identification: u16,
    time: Timestamp,
    /// The next number of its sender, which sends later what stands there; `None` where it may have sent
    /// that before.
    next: Option<u32>,
    /// Up to where the other side was seen to send.
    seen: u32,
    /// The highest acknowledgement but this one.
    other: Wrapping,
    /// What was seen of the other side.
    assembler: Assembler,
    /// Bytes that count as missed because of it.
    missed: u64,
}

/// What is claimed of originator and responder.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Hearsay {
    claims: [Option<Claim>; 2],
    /// What the last segment took back.
    withdrawn: [Option<Withdrawn>; 2],
}

/// What a side never sent, though it was acknowledged. Positions are relative to the SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Withdrawn {
    /// The first position of which nothing was seen when it was acknowledged.
    pub low: u64,
    /// Up to where the side was acknowledged otherwise.
    pub acknowledged: u64,
}

impl Hearsay {
    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.claims.iter().flatten().map(|claim| claim.assembler.heap_bytes()).sum()
    }

    pub(super) fn flip(&mut self) {
        self.claims.swap(0, 1);
        self.withdrawn.swap(0, 1);
    }

    fn is_idle(&self) -> bool {
        self.claims.iter().all(Option::is_none) && self.withdrawn.iter().all(Option::is_none)
    }
}

impl Claim {
    /// Whether the segment may be the one that claims this, once more.
    fn may_be_of(&self, segment: &Segment<'_>) -> bool {
        let is_like = segment.tcp.sequence == self.sequence
            && segment.tcp.acknowledgement == self.number
            && segment.identification == self.identification;
        let is_near = || elapsed(self.time, segment.time).is_none_or(|age| age <= DOUBLED);
        is_like && (segment.identification != 0 || is_near())
    }

    /// Whether a segment of whom it is said has sent less. `last` is the number up to where it was seen to
    /// send.
    fn is_denied_by(&self, segment: &Segment<'_>, last: u32) -> bool {
        if segment.tcp.sequence != last || segment.has(TcpFlags::SYN.with(TcpFlags::RST)) {
            return false;
        }
        if segment.has(TcpFlags::FIN) {
            return true;
        }
        // A window probe and a keep-alive stand before what was sent, data may be sent again.
        let is_bare = segment.tcp.payload_len == 0 && segment.has(TcpFlags::ACK);
        let acknowledges_later =
            |next| delta(segment.tcp.acknowledgement, next) > 0 && delta(self.number, last) > 1;
        is_bare && self.next.is_some_and(acknowledges_later)
    }

    /// Whether a segment of whom it was got less. `last` is the number up to where it was seen to send,
    /// `peer_last` the same of the other side.
    fn is_disowned_by(
        &self,
        segment: &Segment<'_>,
        [last, peer_last]: [u32; 2],
        limits: &Limits,
    ) -> bool {
        let number = segment.tcp.acknowledgement;
        let is_later = sequence_length(segment.tcp) > 0
            && segment.tcp.sequence == last
            && self.next.is_some_and(|next| delta(last, next) >= 0);
        if is_later {
            return true;
        }
        // It acknowledges what was sent since.
        let wait = limits.stream_acknowledged_wait.as_nanos();
        delta(number, self.seen) > 0
            && delta(number, self.other.number) > 0
            && delta(number, peer_last) <= 0
            && elapsed(self.time, segment.time).is_some_and(|age| u128::from(age) > wait)
    }
}

impl TcpConnection {
    /// Whether something was acknowledged that was never sent.
    pub(super) const fn has_taken_back(&self) -> bool {
        self.has_taken_back
    }

    /// What the segment that was taken last shows never to have been sent, of either side.
    #[must_use]
    #[inline]
    pub fn withdrawn(&self) -> Option<[Option<Withdrawn>; 2]> {
        self.hearsay.as_ref().map(|hearsay| hearsay.withdrawn)
    }

    /// Whether the segment acknowledges data that nobody saw.
    #[inline]
    pub(super) fn is_claiming(&self, segment: &Segment<'_>) -> bool {
        let side = 1 - (segment.from & 1);
        let (end, number) = (&self.ends[side], segment.tcp.acknowledgement);
        delta(number, end.last.number) > 1
            && segment.has(TcpFlags::ACK)
            && delta(number, end.acknowledged.number) > 0
            && self.seen & (1 << side) != 0
            && !segment.has(TcpFlags::SYN.with(TcpFlags::RST))
            && !self.renumbered
    }

    /// Keeps what the other side was before the segment acknowledged what nobody saw.
    #[cold]
    pub(super) fn note_claim(&mut self, segment: &Segment<'_>) {
        let side = 1 - (segment.from & 1);
        let Segment { time, identification, tcp, .. } = *segment;
        let end = tcp.sequence.wrapping_add(sequence_length(tcp));
        let sender_last = self.ends[segment.from & 1].last.number;
        let it = &self.ends[side];
        let claim = Claim {
            number: tcp.acknowledgement,
            sequence: tcp.sequence,
            identification,
            time,
            next: (delta(end, sender_last) >= 0).then_some(end),
            seen: it.last.number,
            other: it.acknowledged,
            assembler: it.assembler.clone(),
            missed: self.missed_bytes,
        };
        self.hearsay.get_or_insert_default().claims[side] = Some(claim);
    }

    /// Notes what came of the claim that the segment made.
    #[cold]
    pub(super) fn claimed(&mut self, segment: &Segment<'_>) {
        let missed = self.missed_bytes;
        let Some(hearsay) = &mut self.hearsay else { return };
        if let Some(claim) = &mut hearsay.claims[1 - (segment.from & 1)] {
            claim.missed = missed.saturating_sub(claim.missed);
        }
    }

    /// Looks whether a segment bears out or contradicts what is claimed of either side.
    #[cold]
    pub(super) fn weigh(&mut self, segment: &Segment<'_>, context: &mut SegmentContext<'_>) {
        let from = segment.from & 1;
        let tcp = segment.tcp;
        let [last, peer_last] = [from, 1 - from].map(|side| self.ends[side].last.number);
        let Some(hearsay) = &mut self.hearsay else { return };
        hearsay.withdrawn = [None; 2];
        if segment.has(TcpFlags::SYN) {
            // Its numbers may begin anew.
            hearsay.claims[from] = None;
        }
        let mut taken_back = [false; 2];
        if let Some(claim) = &hearsay.claims[from] {
            let reach = tcp.sequence.wrapping_add(sequence_length(tcp));
            if delta(reach, claim.number) >= 0 {
                hearsay.claims[from] = None;
            } else {
                taken_back[from] = claim.is_denied_by(segment, last);
            }
        }
        let control = TcpFlags::SYN.with(TcpFlags::RST);
        let slot = &mut hearsay.claims[1 - from];
        if let Some(claim) = slot
            && segment.has(TcpFlags::ACK)
            && !segment.has(control)
        {
            let number = tcp.acknowledgement;
            if delta(number, claim.number) < 0 {
                taken_back[1 - from] =
                    claim.is_disowned_by(segment, [last, peer_last], context.limits);
                if delta(number, claim.other.number) > 0 && delta(number, peer_last) <= 0 {
                    claim.other.advance(number);
                }
            } else if !claim.may_be_of(segment) {
                *slot = None;
            }
        }
        for side in [0, 1] {
            if taken_back[side] {
                self.take_back(side, context);
            }
        }
        if self.hearsay.as_ref().is_some_and(|hearsay| hearsay.is_idle()) {
            self.hearsay = None;
        }
    }

    /// Makes a side what it was before somebody claimed that more of it had come.
    #[cold]
    fn take_back(&mut self, side: usize, context: &mut SegmentContext<'_>) {
        let Some(hearsay) = &mut self.hearsay else { return };
        let Some(claim) = hearsay.claims[side & 1].take() else { return };
        let Claim { number, seen, other, mut assembler, missed, time, .. } = claim;
        let end = &mut self.ends[side & 1];
        if end.acknowledged.number != number {
            return;
        }
        let [low, high, got] = [seen, number, other.number]
            .map(|number| end.acknowledged.relative(number, end.start).0);
        hearsay.withdrawn[side & 1] = Some(Withdrawn { low, acknowledged: got });
        if !core::mem::replace(&mut self.has_taken_back, true) {
            context.weirds.add("ack_of_unsent_data");
        }
        let last = end.last.relative(end.last.number, end.start).0;
        assembler.insert(low, last, context.limits.tcp_ranges);
        end.acknowledged = other;
        end.assembler = assembler;
        self.missed_bytes = self.missed_bytes.saturating_sub(missed);
        self.ends[1 - (side & 1)].window_acknowledgement = other.number;
        let range = [low, high].map(u64::cast_signed);
        self.metrics.take_back(side, other.number, range, time);
        self.acknowledge(side, got, context);
    }
}
