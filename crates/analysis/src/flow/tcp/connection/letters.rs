//! What the history says of a segment: Zeek's letters.

use netsniff_packet::decode::TcpFlags;

use super::{SegmentContext, TcpConnection};
use crate::flow::history::History;
use crate::flow::tcp::endpoint::State;
use crate::flow::tcp::segment::Segment;
use crate::flow::tcp::sequence;

/// Zeek's letters are noted once for each of these kinds; the responder's are 16 bits further up.
pub(super) mod kind {
    pub(in super::super) const SYN: u32 = 0x1;
    pub(in super::super) const FIN: u32 = 0x2;
    pub(in super::super) const RST: u32 = 0x4;
    pub(in super::super) const FIN_RST: u32 = 0x8;
    pub(in super::super) const DATA: u32 = 0x10;
    pub(in super::super) const ACK: u32 = 0x20;
    pub(in super::super) const MULTI: u32 = 0x40;
    /// Urgent data, which has no letter.
    pub(in super::super) const URGENT: u32 = 0x80;
}

impl TcpConnection {
    #[inline]
    pub(super) fn note_history(
        &mut self,
        segment: &Segment<'_>,
        position: u64,
        history: &mut History<'_>,
    ) {
        let (shift, case) = if segment.is_originator() { (0, 0) } else { (16, b'a' - b'A') };
        let tcp = segment.tcp;
        let control = TcpFlags::SYN.with(TcpFlags::FIN).with(TcpFlags::RST);
        if !tcp.flags.any(control) {
            if tcp.payload_len > 0 {
                history.once(kind::DATA << shift, b'D' + case);
            } else if tcp.flags.any(TcpFlags::ACK) {
                history.once(kind::ACK << shift, b'A' + case);
            }
            return;
        }
        if (tcp.flags.0 & control.0).count_ones() > 1 {
            if segment.has(TcpFlags::FIN) && segment.has(TcpFlags::RST) {
                history.once(kind::FIN_RST << shift, b'I' + case);
            } else {
                history.once(kind::MULTI << shift, b'Q' + case);
            }
            return;
        }
        let (bit, letter, at, slot) = if segment.has(TcpFlags::SYN) {
            let letter = if segment.has(TcpFlags::ACK) { b'H' } else { b'S' };
            (kind::SYN, letter, position, 0)
        } else if segment.has(TcpFlags::FIN) {
            (kind::FIN, b'F', position.wrapping_add(tcp.payload_len.into()), 1)
        } else {
            (kind::RST, b'R', position, 2)
        };
        let last = &mut self.ends[segment.from].last_control[slot];
        if history.once(bit << shift, letter + case) && *last != at as u32 {
            history.push(letter + case);
        }
        *last = at as u32;
    }

    #[inline]
    pub(super) fn note_window(&mut self, segment: &Segment<'_>, context: &mut SegmentContext<'_>) {
        let peer_state = self.ends[1 - segment.from].state;
        let sender = &mut self.ends[segment.from];
        let window = u32::from(segment.tcp.window) << sender.window_scale;
        let over = matches!(sender.state, State::Reset);
        if window == 0
            && !segment.has(TcpFlags::RST)
            && peer_state != State::Closed
            && !over
            && sender.zero_windows.hit()
        {
            context.history.push(if segment.is_originator() { b'W' } else { b'w' });
        }
        // Windows of control segments, and after the end, are often taken back.
        let control = TcpFlags::SYN.with(TcpFlags::FIN).with(TcpFlags::RST);
        if segment.has(control) || over || sender.state == State::Closed {
            return;
        }
        let tcp = segment.tcp;
        if sequence::delta(tcp.sequence, sender.window_sequence) >= 0
            && sequence::delta(tcp.acknowledgement, sender.window_acknowledgement) >= 0
        {
            let edge = tcp.acknowledgement.wrapping_add(window);
            let old = sender.window_acknowledgement.wrapping_add(sender.window);
            let advance = sequence::delta(edge, old);
            // Scaling rounds windows down, which is no taking back.
            if advance < 0 && advance.unsigned_abs() >= 1 << sender.window_scale {
                context.weirds.add("window_recision");
            }
            sender.window = window;
            sender.window_acknowledgement = tcp.acknowledgement;
            sender.window_sequence = tcp.sequence;
        }
    }
}
