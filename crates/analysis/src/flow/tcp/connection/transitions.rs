//! How the flags of a segment change the states of both sides.

use netsniff_packet::decode::TcpFlags;

use super::letters::kind;
use super::{Close, SegmentContext, TcpConnection};
use crate::flow::tcp::endpoint::State;
use crate::flow::tcp::segment::{ORIGINATOR, Segment};
use crate::flow::tcp::sequence;
use crate::weird::Weirds;

impl TcpConnection {
    /// Takes the sender's side on by one segment, which reached `advance` beyond its last one.
    #[inline]
    pub(super) fn transition(
        &mut self,
        segment: &Segment<'_>,
        advance: i32,
        context: &mut SegmentContext<'_>,
    ) -> Close {
        let control = TcpFlags::SYN.with(TcpFlags::FIN).with(TcpFlags::RST);
        match self.ends[segment.from].state {
            State::Established if !segment.has(control) => Close::default(),
            State::Established | State::Partial => self.when_established(segment, context.weirds),
            State::Inactive => self.when_inactive(segment, context),
            State::SynSent | State::SynAckSent => self.when_syn_sent(segment, context.weirds),
            State::Closed => self.when_closed(segment, advance, context.weirds),
            State::Reset => {
                after_reset(segment, context.weirds);
                Close::default()
            }
        }
    }

    /// Changes a side's state. The end of the handshake brings the longer time-out.
    fn set_state(&mut self, side: usize, state: State) {
        let peer = self.ends[1 - side].state;
        let end = &mut self.ends[side];
        if end.state == state {
            return;
        }
        self.hastened = true;
        if !state.is_handshake() && end.state.is_handshake() && peer.is_handshake() {
            self.is_established = true;
        }
        let end = &mut self.ends[side];
        end.previous = end.state;
        end.state = state;
    }

    fn when_inactive(&mut self, segment: &Segment<'_>, context: &mut SegmentContext<'_>) -> Close {
        let mut from = segment.from;
        let mut close = Close::default();
        if segment.has(TcpFlags::SYN) {
            if segment.is_originator() {
                self.originator_begins(segment, context);
            } else {
                from = self.responder_begins(segment, context.weirds);
            }
        }
        if segment.has(TcpFlags::FIN) {
            self.set_state(from, State::Closed);
            close = Close { closed: true, finished: true };
            if self.ends[1 - from].state != State::Partial && !segment.has(TcpFlags::SYN) {
                context.weirds.add("spontaneous_FIN");
            }
        }
        if segment.has(TcpFlags::RST) {
            self.set_state(from, State::Reset);
            let peer = self.ends[1 - from].state;
            // A SYN is refused, or a SYN-ACK whose SYN was not seen: a scan from elsewhere.
            let rejects = if from == ORIGINATOR {
                peer == State::Established
            } else {
                matches!(peer, State::SynSent | State::SynAckSent)
            };
            close = Close { closed: true, finished: !rejects };
            if !rejects && peer == State::Inactive {
                context.weirds.add("spontaneous_RST");
            }
        }
        if self.ends[from].state == State::Inactive {
            self.without_control(from, segment);
        }
        close
    }

    fn originator_begins(&mut self, segment: &Segment<'_>, context: &mut SegmentContext<'_>) {
        if segment.has(TcpFlags::ACK) {
            context.weirds.add("connection_originator_SYN_ack");
            self.set_state(ORIGINATOR, State::SynAckSent);
        } else {
            self.set_state(ORIGINATOR, State::SynSent);
        }
        self.attempt_until = context.now + context.limits.tcp_attempt;
    }

    /// Returns the sender's index, which changes where SYN and SYN-ACK were captured in the wrong
    /// order.
    fn responder_begins(&mut self, segment: &Segment<'_>, weirds: &mut Weirds) -> usize {
        let (mut from, peer) = (segment.from, 1 - segment.from);
        let peer_end = &self.ends[peer];
        if segment.has(TcpFlags::ACK) {
            if !matches!(peer_end.state, State::Inactive | State::Partial)
                && !sequence::between(
                    segment.tcp.acknowledgement,
                    peer_end.start,
                    peer_end.last.number,
                )
            {
                weirds.add("bad_SYN_ack");
            }
        } else if peer_end.state == State::SynAckSent
            && segment.tcp.sequence == self.ends[from].start
        {
            self.flip();
            from = 1 - from;
            self.set_state(1 - from, State::Established);
            self.seen |= 1;
        } else {
            weirds.add("simultaneous_open");
            self.is_crossed = true;
        }
        let peer = 1 - from;
        if self.ends[peer].state == State::SynSent {
            self.set_state(peer, State::Established);
        } else if self.ends[peer].state == State::Inactive {
            weirds.add("unsolicited_SYN_response");
        }
        self.set_state(from, State::Established);
        if self.ends[peer].state != State::Partial {
            self.handshake_done = true;
        }
        from
    }

    /// The first segment of a side, without SYN, FIN and RST.
    fn without_control(&mut self, from: usize, segment: &Segment<'_>) {
        let peer = self.ends[1 - from].state;
        if from != ORIGINATOR
            && segment.tcp.payload_len == 0
            && self.ends[ORIGINATOR].state == State::SynSent
        {
            // Some systems acknowledge a SYN before they answer it.
        } else if segment.has(TcpFlags::ACK) && peer == State::Established {
            // Only the SYN was missed.
            self.set_state(from, State::Established);
            self.partial = false;
            self.seen |= 1 << from;
        } else {
            self.set_state(from, State::Partial);
        }
    }

    /// Whether a SYN-ACK that the originator waits for comes behind what it should have come before.
    fn is_late_answer(&self, segment: &Segment<'_>) -> bool {
        let sender = &self.ends[segment.from & 1];
        segment.has(TcpFlags::SYN)
            && segment.has(TcpFlags::ACK)
            && !segment.is_originator()
            && sender.state == State::Partial
            && segment.tcp.sequence == sender.start
            && self.ends[ORIGINATOR].state == State::SynSent
    }

    fn when_syn_sent(&mut self, segment: &Segment<'_>, weirds: &mut Weirds) -> Close {
        let from = segment.from;
        let state = self.ends[from].state;
        let peer = self.ends[1 - from].state;
        let mut close = Close::default();
        if segment.has(TcpFlags::SYN) {
            let with_ack = segment.has(TcpFlags::ACK);
            let alone = !segment.has(TcpFlags::FIN.with(TcpFlags::RST));
            if segment.is_originator() {
                if with_ack && alone && state != State::SynAckSent {
                    weirds.add("repeated_SYN_with_ack");
                }
            } else if !with_ack && state != State::SynSent {
                weirds.add("repeated_SYN_reply_wo_ack");
            }
        }
        if segment.has(TcpFlags::FIN) {
            if matches!(peer, State::Inactive | State::SynSent) {
                weirds.add("inappropriate_FIN");
            }
            self.set_state(from, State::Closed);
            close = Close { closed: true, finished: true };
        }
        if segment.has(TcpFlags::RST) {
            self.set_state(from, State::Reset);
            self.inactive = true;
            close.closed = true;
        } else if segment.tcp.payload_len > 0 {
            weirds.add("data_before_established");
        }
        close
    }

    fn when_established(&mut self, segment: &Segment<'_>, weirds: &mut Weirds) -> Close {
        let (from, peer) = (segment.from, 1 - segment.from);
        let mut close = Close::default();
        if segment.has(TcpFlags::SYN)
            && self.ends[from].state == State::Partial
            && self.ends[peer].state == State::Inactive
            && !segment.has(TcpFlags::ACK)
        {
            weirds.add("SYN_after_partial");
            self.set_state(from, State::SynSent);
        }
        if self.is_late_answer(segment) {
            self.responder_begins(segment, weirds);
        }
        if segment.has(TcpFlags::FIN) && !segment.has(TcpFlags::RST) {
            self.set_state(from, State::Closed);
            let end = &self.ends[peer];
            if end.state == State::Reset && end.previous == State::Closed {
                // The peer sent a FIN and then a RST: an orderly end after all.
                self.set_state(peer, State::Closed);
            }
            close = Close { closed: true, finished: true };
        }
        if segment.has(TcpFlags::RST) {
            self.set_state(from, State::Reset);
            close.closed = true;
            let end = &self.ends[peer];
            if end.state != State::Reset || end.previous != State::Established {
                self.inactive = true;
            }
        }
        close
    }

    fn when_closed(&mut self, segment: &Segment<'_>, advance: i32, weirds: &mut Weirds) -> Close {
        let from = segment.from;
        let mut close = Close::default();
        if segment.has(TcpFlags::SYN) {
            weirds.add("SYN_after_close");
        }
        if segment.has(TcpFlags::FIN) && advance > 0 {
            weirds.add("FIN_advanced_last_seq");
        }
        // After a FIN from both sides a RST changes nothing.
        if segment.has(TcpFlags::RST) && self.ends[1 - from].state != State::Closed {
            self.set_state(from, State::Reset);
            close.closed = !self.ends[from].did_close;
        }
        close
    }

    /// Takes what a SYN says, and what is odd about it.
    pub(super) fn note_syn(&mut self, segment: &Segment<'_>, weirds: &mut Weirds) {
        let tcp = segment.tcp;
        if segment.has(TcpFlags::RST) {
            weirds.add("TCP_christmas");
        }
        if segment.has(TcpFlags::URG) {
            weirds.add("baroque_SYN");
        }
        if tcp.payload_len > 0 {
            weirds.add("SYN_with_data");
        }
        let [low, high] = &mut self.ends;
        let (sender, peer) = if segment.is_originator() { (low, high) } else { (high, low) };
        let Some(scale) = tcp.options.window_scale else {
            sender.window_scale = 0;
            if segment.has(TcpFlags::ACK) {
                peer.window_scale = 0;
            }
            return;
        };
        if scale > 14 {
            weirds.add("TCP_scale_range");
        }
        sender.window_scale = scale.min(14);
        sender.window_sequence = tcp.sequence;
        sender.window_acknowledgement = tcp.acknowledgement;
        peer.window_sequence = tcp.acknowledgement;
        peer.window_acknowledgement = tcp.sequence;
    }

    fn flip(&mut self) {
        self.partial = false;
        self.flipped = true;
        self.turn();
    }

    /// Originator and responder change places.
    pub fn turn(&mut self) {
        self.ends.swap(0, 1);
        self.seen = (self.seen & 1) << 1 | (self.seen >> 1) & 1;
        self.is_crossed = false;
        self.metrics.flip();
        if let Some(contest) = &mut self.contest {
            contest.flip();
        }
        if let Some(hearsay) = &mut self.hearsay {
            hearsay.flip();
        }
    }
}

/// Receivers differ in whether and where the byte is in the stream that the urgent pointer names (RFC
/// 6093): that others may have read something else is told once.
#[cold]
pub(super) fn note_urgent(segment: &Segment<'_>, context: &mut SegmentContext<'_>) {
    let shift = if segment.is_originator() { 0 } else { 16 };
    if segment.urgent_offset().is_some() && context.history.is_first(kind::URGENT << shift) {
        context.weirds.add("urgent_data");
    }
}

fn after_reset(segment: &Segment<'_>, weirds: &mut Weirds) {
    if segment.has(TcpFlags::SYN) {
        weirds.add("SYN_after_reset");
    }
    if segment.has(TcpFlags::FIN) {
        weirds.add("FIN_after_reset");
    }
    if segment.tcp.payload_len > 0 && !segment.has(TcpFlags::RST) {
        weirds.add("data_after_reset");
    }
}
