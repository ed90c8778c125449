//! Header prediction (V. Jacobson, 1990): the segment that an established connection awaits takes a short way.
//!
//! Most segments are data in order or a pure acknowledgement, of a connection of which nothing is missing. They
//! change few numbers, and none of the steps of [`crate::flow::tcp::connection`] has anything else to do. Whoever is in doubt
//! takes the whole way. Builds with `debug_assertions`, as tests and fuzz targets are, take both ways with each
//! predicted segment and compare what comes of them.

use netsniff_packet::decode::TcpFlags;

use super::letters::kind;
use super::{SegmentContext, SegmentOutcome, TcpConnection};
use crate::flow::tcp::endpoint::{State, TcpEndpoint};
use crate::flow::tcp::observed::{Observed, StreamPosition};
use crate::flow::tcp::segment::Segment;
use crate::flow::tcp::sequence::delta;
use crate::limits::Limits;
#[cfg(debug_assertions)]
use {
    crate::flow::history::{History, Letters},
    crate::flow::tcp::metrics::series::IntervalRtt,
    crate::weird::Weirds,
    netsniff_packet::Timestamp,
};

/// Where a predicted segment stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Predicted {
    /// Its first byte, in the stream of its sender.
    position: u64,
    /// What it acknowledges, in the stream of its receiver.
    acknowledged: u64,
}

impl TcpEndpoint {
    /// Whether the side is in the middle of a stream of which nothing is missing.
    #[inline]
    fn is_steady(&self) -> bool {
        self.state == State::Established
            && !self.did_close
            && self.fins == 0
            && self.damaged == 0
            && !self.assembler.is_abandoned()
            && !self.assembler.has_holes()
    }

    /// Whether a segment of this side offers at least the window that it offered before.
    #[inline]
    fn keeps_window(&self, segment: &Segment<'_>) -> bool {
        let tcp = segment.tcp;
        let window = u32::from(tcp.window) << self.window_scale;
        let edge = tcp.acknowledgement.wrapping_add(window);
        let old = self.window_acknowledgement.wrapping_add(self.window);
        // Scaling rounds windows down, which is no taking back.
        tcp.window > 0
            && delta(tcp.sequence, self.window_sequence) >= 0
            && delta(tcp.acknowledgement, self.window_acknowledgement) >= 0
            && delta(edge, old) > -(1 << self.window_scale)
    }
}

impl TcpConnection {
    /// What [`Self::is_steady`] tells, found anew.
    pub(super) fn finds_steady(&self) -> bool {
        self.seen == 3
            && !self.partial
            && !self.unwatched
            && self.contest.is_none()
            && self.hearsay.is_none()
            && self.ends.iter().all(TcpEndpoint::is_steady)
    }

    /// Where the segment stands, if it is the one that the connection awaits.
    #[inline]
    pub(super) fn predict(&self, segment: &Segment<'_>, limits: &Limits) -> Option<Predicted> {
        let tcp = segment.tcp;
        debug_assert_eq!(self.is_steady, self.finds_steady());
        if !self.is_steady || tcp.flags.0 & !TcpFlags::PSH.0 != TcpFlags::ACK.0 {
            return None;
        }
        let from = segment.from & 1;
        let (sender, receiver) = (&self.ends[from], &self.ends[1 - from]);
        let is_whole = tcp.payload_captured == tcp.payload_len && !segment.is_damaged;
        let is_next = tcp.sequence == sender.last.number
            && tcp.acknowledgement != 0
            && delta(tcp.acknowledgement, receiver.acknowledged.number) >= 0
            && delta(tcp.acknowledgement, receiver.last.number) <= 0;
        if !(is_whole && is_next && sender.keeps_window(segment)) {
            return None;
        }
        let (position, is_before) = sender.last.relative(tcp.sequence, sender.start);
        let (acknowledged, is_old) =
            receiver.acknowledged.relative(tcp.acknowledgement, receiver.start);
        let top = position + u64::from(tcp.payload_len);
        let is_in_order = !is_before
            && !is_old
            && acknowledged > 0
            && acknowledged <= receiver.assembler.next()
            && sender.acknowledged.full() <= sender.last.full();
        // What is beyond the first window is not waited for where nothing is acknowledged.
        let is_bounded = top <= limits.tcp_initial_window || !sender.nothing_acknowledged();
        let is_within = tcp.payload_len == 0
            || position == sender.assembler.next()
                && is_bounded
                && top.saturating_sub(sender.assembler.trimmed()) <= limits.tcp_unacknowledged;
        (is_in_order && is_within).then_some(Predicted { position, acknowledged })
    }

    /// Takes a segment that was predicted.
    #[inline]
    pub(super) fn take_predicted(
        &mut self,
        segment: &Segment<'_>,
        predicted: Predicted,
        context: &mut SegmentContext<'_>,
    ) -> SegmentOutcome {
        let Predicted { position, acknowledged } = predicted;
        let (tcp, from) = (segment.tcp, segment.from & 1);
        (self.flipped, self.renumbered, self.hastened) = (false, false, false);
        let (kind, letter) =
            if tcp.payload_len > 0 { (kind::DATA, b'D') } else { (kind::ACK, b'A') };
        let (shift, case) = if segment.is_originator() { (0, 0) } else { (16, b'a' - b'A') };
        context.history.once(kind << shift, letter + case);
        *context.last_time = segment.time;

        let receiver = &mut self.ends[1 - from];
        if delta(tcp.acknowledgement, receiver.acknowledged.number) > 0 {
            receiver.acknowledged.advance(tcp.acknowledgement);
        }
        receiver.assembler.acknowledge(acknowledged, false);
        let sender = &mut self.ends[from];
        sender.window = u32::from(tcp.window) << sender.window_scale;
        sender.window_acknowledgement = tcp.acknowledgement;
        sender.window_sequence = tcp.sequence;
        let scale = sender.window_scale;
        if tcp.payload_len > 0 {
            sender.last.advance(tcp.sequence.wrapping_add(tcp.payload_len));
            sender.assembler.extend(position + u64::from(tcp.payload_len));
        }
        let place = StreamPosition {
            position: position.cast_signed(),
            acknowledged: acknowledged.cast_signed(),
            limits: context.limits,
        };
        let observed = Observed::new(segment, from, scale, Some(place));
        let (rtt, may_have_grown) = self.metrics.predicted(&observed, context.rtt_interval);
        *context.rtt = rtt;
        self.may_have_grown |= may_have_grown;
        self.outcome(&observed, Some(position), Some(acknowledged))
    }
}

/// What comes of a segment the whole way.
#[cfg(debug_assertions)]
pub(super) struct Whole {
    connection: TcpConnection,
    outcome: SegmentOutcome,
    kinds: u32,
    letters: Letters,
    last_time: Timestamp,
    rtt: Option<IntervalRtt>,
}

#[cfg(debug_assertions)]
impl TcpConnection {
    /// Takes a segment the whole way, with copies of everything that it changes.
    pub(super) fn take_in_full_beside(
        &self,
        segment: &Segment<'_>,
        context: &SegmentContext<'_>,
    ) -> Whole {
        let mut connection = self.clone();
        let (mut kinds, mut letters) = (*context.history.seen, context.history.letters.clone());
        let (mut last_time, mut rtt) = (*context.last_time, *context.rtt);
        let mut weirds = Weirds::default();
        let mut beside = SegmentContext {
            now: context.now,
            history: History { seen: &mut kinds, letters: &mut letters, grown: 0 },
            last_time: &mut last_time,
            weirds: &mut weirds,
            limits: context.limits,
            rtt_interval: context.rtt_interval,
            rtt: &mut rtt,
        };
        let outcome = connection.take_in_full(segment, &mut beside);
        assert!(weirds.is_empty(), "a predicted segment is odd: {weirds:?}");
        Whole { connection, outcome, kinds, letters, last_time, rtt }
    }
}

#[cfg(debug_assertions)]
impl Whole {
    /// Fails where the short way came to anything else.
    pub(super) fn assert_same(
        &self,
        connection: &TcpConnection,
        outcome: &SegmentOutcome,
        context: &SegmentContext<'_>,
    ) {
        let Self { outcome: taken, kinds, letters, last_time, rtt, .. } = self;
        assert_eq!(taken, outcome, "what a predicted segment amounts to");
        assert_eq!((kinds, letters), (&*context.history.seen, &*context.history.letters));
        assert_eq!((last_time, rtt), (&*context.last_time, &*context.rtt));
        // Who takes the whole way need not know whether it is to be counted anew.
        let may_have_grown = connection.may_have_grown;
        let whole = TcpConnection { may_have_grown, ..self.connection.clone() };
        assert!(whole == *connection, "the short way leads elsewhere:\n{whole:?}\n{connection:?}");
    }
}
