//! Acknowledgements of data that nobody saw, of which one segment alone tells.
//!
//! A host acknowledges what it got, so that the capture may have missed that. One segment may as well
//! have been forged, or be of an older connection. It acknowledges nothing until something else bears
//! it out: another acknowledgement that goes as far, or its sender's numbers, which reach as far. One
//! number may be a FIN; no byte depends on it.

use netsniff_packet::Timestamp;
use netsniff_packet::decode::TcpFlags;

use super::machine::{Context, Segment, TcpConnection};
use super::metrics::elapsed;
use super::numbers::sequence_length;
use super::sequence::delta;
use crate::limits::Limits;

/// Such acknowledgements that are kept of each direction; of more the oldest is given up.
const MAX_CLAIMS: usize = 4;

/// An acknowledgement further back than another is an old one itself.
const MAX_BEHIND: i32 = 1 << 30;

/// Within these nanoseconds a packet without IP identification may be the one before it, doubled.
const DOUBLED: u64 = 3_000_000;

/// The oddity that nothing bore one out.
pub(in crate::flow) const WEIRD: &str = "unconfirmed_ack_of_unseen_data";

/// The oddity that data may never have reached its receiver.
pub(in crate::flow) const UNSURE_WEIRD: &str = "unconfirmed_data";

/// An acknowledgement of what was not seen.
#[derive(Clone, Copy, Debug)]
struct Claim {
    number: u32,
    /// The same, relative to the begin of the direction.
    position: u64,
    /// The sequence number of the segment.
    sequence: u32,
    time: Timestamp,
    identification: u16,
}

/// What is claimed of what originator and responder sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Hearsay {
    directions: [Vec<Claim>; 2],
    /// Whether something was refuted, and that was told.
    is_refuted: bool,
}

impl Hearsay {
    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.directions.iter().map(|claims| claims.capacity() * size_of::<Claim>()).sum()
    }

    pub(super) fn flip(&mut self) {
        self.directions.swap(0, 1);
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

    /// Whether the segment comes too late for one that was captured in the wrong order.
    fn is_late(&self, segment: &Segment<'_>, limits: &Limits) -> bool {
        let wait = limits.stream_acknowledged_wait.as_nanos();
        elapsed(self.time, segment.time).is_some_and(|age| u128::from(age) > wait)
    }
}

impl TcpConnection {
    /// Whether acknowledgements of data that nobody saw stand, or stood, with nothing that bears them out.
    #[must_use]
    pub fn is_unconfirmed(&self) -> bool {
        self.hearsay.as_ref().is_some_and(|hearsay| {
            hearsay.is_refuted || hearsay.directions.iter().any(|claims| !claims.is_empty())
        })
    }

    /// Whether data at the end of a side may never have reached the other.
    #[must_use]
    pub const fn is_unsure(&self) -> bool {
        let [originator, responder] = &self.ends;
        originator.is_unsure(responder.state) || responder.is_unsure(originator.state)
    }

    /// Whether that has to be told still, at the end of the connection.
    #[must_use]
    pub fn is_silently_unconfirmed(&self) -> bool {
        self.is_unconfirmed() && !self.hearsay.as_ref().is_some_and(|hearsay| hearsay.is_refuted)
    }

    /// Notes whether the segment acknowledges data that nobody saw, and that nobody else has told of.
    /// Returns its position then.
    #[inline]
    pub(super) fn note_claim(&mut self, segment: &Segment<'_>) -> Option<u64> {
        let side = 1 - (segment.from & 1);
        let end = &self.ends[side];
        let number = segment.tcp.acknowledgement;
        if delta(number, end.last.number) <= 1
            || !segment.has(TcpFlags::ACK)
            || self.seen & (1 << side) == 0
        {
            return None;
        }
        self.note_unseen(segment, side)
    }

    #[cold]
    fn note_unseen(&mut self, segment: &Segment<'_>, side: usize) -> Option<u64> {
        let number = segment.tcp.acknowledgement;
        let end = &self.ends[side];
        let (position, is_before) = end.last.relative(number, end.start);
        let is_known = delta(number, end.acknowledged.number) <= 0;
        let is_said = [0, 1].iter().any(|&by| self.has_claim(side, number, by));
        if is_known || is_before || is_said {
            return None;
        }
        let claims = &mut self.hearsay.get_or_insert_default().directions[side];
        if claims.iter().any(|claim| claim.may_be_of(segment)) {
            return Some(position);
        }
        if claims.len() >= MAX_CLAIMS {
            claims.remove(0);
        }
        let Segment { time, identification, .. } = *segment;
        let sequence = segment.tcp.sequence;
        claims.push(Claim { number, position, sequence, time, identification });
        Some(position)
    }

    /// How far what is claimed of a side goes, where that is further than `number`.
    pub(super) fn claimed_beyond(&self, side: usize, number: u64) -> u64 {
        let Some(hearsay) = &self.hearsay else { return number };
        let start = u64::from(self.ends[side & 1].start);
        let claims = hearsay.directions[side & 1].iter();
        claims.map(|claim| start.saturating_add(claim.position)).fold(number, u64::max)
    }

    /// Believes what the segment bears out of the claims of either side. Returns up to where its own
    /// data is acknowledged by that, and up to where that of the other side is.
    #[cold]
    pub(super) fn bear_out(
        &mut self,
        segment: &Segment<'_>,
        context: &mut Context<'_>,
    ) -> [Option<u64>; 2] {
        let from = segment.from & 1;
        if segment.has(TcpFlags::SYN) && segment.tcp.sequence != self.ends[from].start {
            // Its numbers begin anew.
            if let Some(hearsay) = &mut self.hearsay {
                hearsay.directions[from].clear();
            }
            return [None; 2];
        }
        let reach = segment.tcp.sequence.wrapping_add(sequence_length(segment.tcp));
        let limits = context.limits;
        self.refute(from, context, |claim| {
            delta(segment.tcp.sequence, claim.number) < 0 && claim.is_late(segment, limits)
        });
        let own = self.believe(from, context, |claim| delta(reach, claim.number) >= 0);
        // Any other RST may be forged (RFC 9293, 3.10.7.4).
        let is_next = segment.tcp.sequence == self.ends[from].last.number;
        if !segment.has(TcpFlags::ACK) || segment.has(TcpFlags::RST) && !is_next {
            return [own, None];
        }
        let acknowledged = segment.tcp.acknowledgement;
        let peer = self.believe(1 - from, context, |claim| {
            delta(acknowledged, claim.number) >= 0 && !claim.may_be_of(segment)
        });
        // An acknowledgement of less, that comes too late to have been overtaken, refutes one of more.
        self.refute(1 - from, context, |claim| {
            let behind = delta(claim.number, acknowledged);
            let is_less = 0 < behind && behind <= MAX_BEHIND && !segment.has(TcpFlags::RST);
            is_less && claim.is_late(segment, limits)
        });
        [own, peer]
    }

    /// Believes the claims of a side that are borne out, and returns up to where they go.
    fn believe(
        &mut self,
        side: usize,
        context: &mut Context<'_>,
        is_borne_out: impl Fn(&Claim) -> bool,
    ) -> Option<u64> {
        let claims = &mut self.hearsay.as_mut()?.directions[side & 1];
        let mut highest: Option<Claim> = None;
        claims.retain(|claim| {
            let is_true = is_borne_out(claim);
            if is_true && highest.is_none_or(|it| it.position < claim.position) {
                highest = Some(*claim);
            }
            !is_true
        });
        let Claim { number, position, time, .. } = highest?;
        let end = &mut self.ends[side & 1];
        if delta(number, end.acknowledged.number) > 0 {
            end.acknowledged.advance(number);
            end.confirm(number);
        }
        self.metrics.bear_out(side, number, position, time, context.limits);
        self.acknowledge(side, position, context);
        Some(position)
    }

    /// Forgets the claims of a side that are refuted, and tells that there were some.
    fn refute(
        &mut self,
        side: usize,
        context: &mut Context<'_>,
        is_refuted: impl Fn(&Claim) -> bool,
    ) {
        let Some(hearsay) = &mut self.hearsay else { return };
        let claims = &mut hearsay.directions[side & 1];
        let count = claims.len();
        claims.retain(|claim| !is_refuted(claim));
        if claims.len() == count {
            return;
        }
        let is_over = claims.is_empty();
        if !core::mem::replace(&mut hearsay.is_refuted, true) {
            context.weirds.add(WEIRD);
        }
        if is_over {
            self.metrics.retract(side);
        }
    }
}
