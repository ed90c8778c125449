//! One side of a TCP connection.

use super::assembler::Assembler;
use super::sequence::{Wrapping, delta};
use crate::flow::history::Scaled;

/// What was seen of a side, with Zeek's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing, or nothing but refused segments.
    #[default]
    Inactive,
    /// A SYN that was not answered yet.
    SynSent,
    /// A SYN with an acknowledgement from the side that should have begun.
    SynAckSent,
    /// Something, but no SYN before it.
    Partial,
    /// The handshake, to its end.
    Established,
    /// A FIN: the side sends nothing more.
    Closed,
    /// A RST: the side has aborted the connection.
    Reset,
}

impl State {
    /// Before the handshake is done.
    #[must_use]
    pub const fn is_handshake(self) -> bool {
        matches!(self, Self::Inactive | Self::SynSent | Self::SynAckSent)
    }
}

/// One side: state, sequence numbers of what it sends, acknowledgements of what it sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TcpEndpoint {
    /// The state of this side.
    pub state: State,
    /// The state before the last change.
    pub previous: State,
    /// Window scale shift (RFC 7323), at most 14.
    pub window_scale: u8,
    /// Whether this side was reported as closed.
    pub did_close: bool,
    /// Whether the end of its data was reached.
    pub did_end: bool,
    /// FINs seen.
    pub fins: u16,
    /// RSTs seen.
    pub resets: u16,
    /// Sequence number of its SYN, or one before its first byte.
    pub start: u32,
    /// One past the highest sequence number sent.
    pub last: Wrapping,
    /// The highest acknowledgement of what it sent.
    pub acknowledged: Wrapping,
    /// Bytes at the end of what it sent, of which all copies so far had a wrong checksum.
    pub damaged: u32,
    /// Numbers up to there that it cannot have sent: nobody knows how many of them are bytes.
    pub unproven: u64,
    /// The window it offers, scaled.
    pub window: u32,
    /// Its sequence number when `window` was noted.
    pub window_sequence: u32,
    /// Its acknowledgement number when `window` was noted.
    pub window_acknowledgement: u32,
    /// Relative position one past its FIN.
    pub fin_position: u64,
    /// Relative position of the last SYN, FIN and RST, to tell repetitions.
    pub last_control: [u32; 3],
    /// Retransmissions, as Zeek counts them for the history.
    pub retransmissions: Scaled,
    /// Segments that offer a window of zero.
    pub zero_windows: Scaled,
    /// Gaps in what it sent.
    pub gaps: Scaled,
    /// Coverage of what it sent.
    pub assembler: Assembler,
}

impl TcpEndpoint {
    /// Begins the numbering with `start` as the SYN.
    pub const fn begin(&mut self, start: u32, last: u32) {
        self.start = start;
        // Whatever was counted before counts no longer.
        self.acknowledged = Wrapping::first(start);
        self.last = Wrapping::first(start);
        self.last.advance(last);
        (self.unproven, self.damaged) = (0, 0);
    }

    /// Up to where it has sent something, as it was seen or as the other side says.
    #[must_use]
    pub fn top(&self) -> u64 {
        self.last.full().max(self.acknowledged.full())
    }

    /// Whether nothing but SYN-ACKs were seen of a side that should have begun.
    #[must_use]
    pub const fn is_answering(&self) -> bool {
        matches!(self.state, State::SynAckSent)
    }

    /// Whether at most the SYN was acknowledged of what it sent.
    #[must_use]
    pub const fn nothing_acknowledged(&self) -> bool {
        let acknowledged = self.acknowledged.full();
        acknowledged == self.start as u64 || acknowledged == self.start as u64 + 1
    }

    /// Whether its data was all seen up to its last sequence number, give or take a FIN.
    #[must_use]
    pub fn is_delivered(&self) -> bool {
        let delivered = self.start as u64 + self.assembler.next();
        let last = self.last.full();
        last < delivered || delivered == last || delivered + 1 == last
    }

    /// Payload bytes by sequence numbers, as Zeek's `orig_bytes` and `resp_bytes` tell them: from
    /// the start to the highest byte sent or acknowledged, without SYN and FIN, nor what it cannot have sent.
    #[must_use]
    pub const fn size(&self, peer: State) -> u64 {
        if matches!(self.previous, State::SynSent)
            && matches!(self.state, State::Reset)
            && matches!(peer, State::Inactive)
            && !self.nothing_acknowledged()
        {
            // A half-open connection was found out and aborted; its numbers tell nothing.
            return 0;
        }
        // Whatever stands behind a FIN was never sent.
        let fin = (self.start as u64).wrapping_add(self.fin_position);
        let is_behind = self.fins > 0 && fin < self.last.full();
        let damaged = if is_behind && self.has_damaged_end(peer) { self.damaged } else { 0 };
        let last = self.last.full().saturating_sub(damaged as u64);
        let acknowledged = self.acknowledged.full();
        let end = if last > acknowledged { last } else { acknowledged };
        let size = end.wrapping_sub(self.start as u64).saturating_sub(self.unproven);
        let without_syn = if size == 0 { 0 } else { size - 1 };
        if self.fins > 0 && without_syn != 0 { without_syn - 1 } else { without_syn }
    }

    /// Whether the other side, which was heard, had bytes at its end in damaged segments only, and
    /// acknowledged none of them: hosts drop those (RFC 9293, 3.1).
    #[must_use]
    pub const fn has_damaged_end(&self, peer: State) -> bool {
        self.damaged > 0 && !matches!(peer, State::Inactive)
    }

    /// Notes that a segment that is whole, or an acknowledgement, reaches up to a number: one behind the last,
    /// which counts a FIN that nobody saw, at most. What lies further on tells nothing of these bytes.
    #[inline]
    pub(super) fn reaches(&mut self, number: u32) {
        if self.damaged > 0 {
            let end = u64::from(self.start).wrapping_add(self.fin_position);
            let has_fin = self.fins > 0 && self.last.full() == end;
            let beyond = delta(self.last.number, number);
            if beyond >= -1 {
                let beyond = (beyond - i32::from(has_fin)).max(0);
                self.damaged = self.damaged.min(beyond.unsigned_abs());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_further_on_than_a_fin_tells_nothing_of_damaged_bytes() {
        for (number, is_closed, left) in [
            (100_u32, false, 0),
            (101, false, 0),
            (102, false, 10),
            (100_u32.wrapping_add(1 << 31), false, 10),
            (100_u32.wrapping_add(1 << 31), true, 10),
            (96, false, 4),
            (96, true, 3),
            (80, false, 10),
        ] {
            let mut end = TcpEndpoint::default();
            end.begin(50, 100);
            (end.damaged, end.fins, end.fin_position) = (10, is_closed.into(), 50);
            end.reaches(number);
            assert_eq!(end.damaged, left, "{number} {is_closed}");
        }
    }
}
