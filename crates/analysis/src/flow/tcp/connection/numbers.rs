//! How a segment that is taken moves the numbers of both sides.

use netsniff_packet::decode::{Tcp, TcpFlags};

use super::TcpConnection;
use crate::flow::history::History;
use crate::flow::tcp::endpoint::State;
use crate::flow::tcp::segment::Segment;
use crate::flow::tcp::sequence;
use crate::weird::Weirds;

/// Beyond this many bytes a jump of the sequence number is not believed of a SYN or RST.
const LARGE_JUMP: i32 = 1 << 20;

impl TcpConnection {
    /// Sets the sequence numbers of a side that is heard for the first time, or anew.
    pub(super) fn begin_endpoint(&mut self, segment: &Segment<'_>, end: u32, weirds: &mut Weirds) {
        let peer = self.ends[1 - segment.from].state;
        let sender = &mut self.ends[segment.from];
        let sequence = segment.tcp.sequence;
        let syn = segment.has(TcpFlags::SYN);
        match sender.state {
            State::Inactive if syn => sender.begin(sequence, end),
            State::Inactive => self.begin_unopened(segment),
            State::SynSent | State::SynAckSent if syn && sequence != sender.start => {
                weirds.add("SYN_seq_jump");
                sender.begin(sequence, end);
            }
            State::Established | State::Partial if syn => {
                if sender.size(peer) > 0 {
                    weirds.add("SYN_inside_connection");
                }
                // A late copy numbers nothing anew.
                if sequence != sender.start {
                    weirds.add("SYN_seq_jump");
                    sender.begin(sequence, end);
                }
            }
            // The RST that came first may have been forged.
            State::Reset if syn && sender.previous == State::Inactive => {
                sender.begin(sequence, end);
            }
            _ => {}
        }
    }

    /// Begins a side whose SYN was not seen: where the other side's handshake says, so that what was missed
    /// counts as carried. Else it is numbered as though there had been a SYN, and so that this is no repetition.
    #[cold]
    fn begin_unopened(&mut self, segment: &Segment<'_>) {
        let (side, sequence) = (segment.from & 1, segment.tcp.sequence);
        let is_behind =
            |begin: &u32| (0..=sequence::MAX_WINDOW).contains(&sequence::delta(sequence, *begin));
        let begin = self.metrics.expected_begin(side).filter(is_behind).unwrap_or(sequence);
        self.assume_begin(side, begin.wrapping_sub(1), begin);
    }

    /// Begins a side whose SYN was not seen at a number. What it said before stands at other positions then.
    #[cold]
    fn assume_begin(&mut self, side: usize, start: u32, last: u32) {
        let end = &mut self.ends[side & 1];
        let moved = sequence::delta(end.start, start);
        end.begin(start, last);
        if self.seen & (1 << side) != 0 && moved != 0 {
            self.metrics.move_positions(side, moved.into());
        }
    }

    /// Notes what the segment acknowledges, and returns it as a position in what the peer sent.
    #[inline]
    pub(super) fn note_acknowledgement(
        &mut self,
        segment: &Segment<'_>,
        weirds: &mut Weirds,
    ) -> Option<u64> {
        if !segment.has(TcpFlags::ACK) {
            return None;
        }
        let number = segment.tcp.acknowledgement;
        let sender = self.ends[segment.from].state;
        let peer = &mut self.ends[1 - segment.from];
        if peer.state == State::Inactive {
            let control = TcpFlags::SYN.with(TcpFlags::FIN).with(TcpFlags::RST);
            if !segment.has(control)
                && matches!(sender, State::SynSent | State::SynAckSent | State::Established)
            {
                weirds.add("possible_split_routing");
            }
            self.assume_begin(1 - segment.from, number.wrapping_sub(1), number.wrapping_sub(1));
            return Some(1);
        }
        let (position, underflow) = peer.acknowledged.relative(number, peer.start);
        if underflow {
            weirds.add("TCP_ack_underflow_or_misorder");
            return Some(0);
        }
        if !segment.has(TcpFlags::RST) {
            let advance = sequence::delta(number, peer.acknowledged.number);
            // A broken zero is more likely than a stream that ends just there.
            if advance > 0 && !(number == 0 && advance > LARGE_JUMP) {
                peer.acknowledged.advance(number);
                peer.reaches(number);
            }
        }
        Some(position)
    }

    /// Notes the end of the segment, and returns how far beyond the last one it reaches.
    #[inline]
    pub(super) fn note_last(
        &mut self,
        segment: &Segment<'_>,
        end: u32,
        history: &mut History<'_>,
    ) -> i32 {
        let sender = &mut self.ends[segment.from];
        let advance = sequence::delta(end, sender.last.number);
        let syn_or_rst = segment.has(TcpFlags::SYN.with(TcpFlags::RST));
        if syn_or_rst && advance.unsigned_abs() > LARGE_JUMP.unsigned_abs() {
            return advance;
        }
        let only_syn_seen = sender.last.number == sender.start.wrapping_add(1);
        if segment.has(TcpFlags::FIN) && only_syn_seen {
            // More than 2 GiB may lie between, of which nothing was seen.
            sender.last.advance(end);
            self.is_unlike_begin |= !(0..=sequence::MAX_WINDOW).contains(&advance);
        } else if sender.state == State::Reset || (segment.has(TcpFlags::RST) && advance > 0) {
            // Numbers of and after a reset are not to be trusted: whoever forges one guesses them.
        } else if advance > 0 {
            sender.last.advance(end);
            let bytes = advance.unsigned_abs().min(segment.tcp.payload_len);
            sender.damaged =
                if segment.is_damaged { sender.damaged.saturating_add(bytes) } else { 0 };
        } else if segment.tcp.payload_len > 0 && sender.retransmissions.hit() {
            history.push(if segment.is_originator() { b'T' } else { b't' });
        }
        if advance <= 0 && !segment.is_damaged {
            sender.reaches(end);
        }
        advance
    }
}

/// Positions that a segment takes in sequence space. Data in a RST is an explanation, not part of
/// the stream (RFC 9293, 3.10.7.3).
pub(super) const fn sequence_length(tcp: &Tcp) -> u32 {
    let mut length = if tcp.flags.any(TcpFlags::RST) { 0 } else { tcp.payload_len };
    if tcp.flags.any(TcpFlags::SYN) {
        length = length.wrapping_add(1);
    }
    if tcp.flags.any(TcpFlags::FIN) {
        length = length.wrapping_add(1);
    }
    length
}
