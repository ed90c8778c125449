//! How the peer acknowledges what a direction sent.

use netsniff_packet::Timestamp;
use netsniff_packet::decode::TcpFlags;

use super::bit;
use super::classify::DUPLICATE_ACKS;
use super::direction::Direction;
use super::handshake::Handshake;
use crate::flow::tcp::losses::{Ledger, Path, reported_twice};
use crate::flow::tcp::observed::{Observed, elapsed};
use crate::flow::tcp::sequence::{MAX_WINDOW, delta};

/// Round trips that are measured until the shortest of them tells how soon an answer can come. Those of the first
/// segments may all have waited in the same queue.
const SURE: u32 = 8;

impl Direction {
    /// Takes what `from` acknowledges of this direction with the segment. Returns a round-trip
    /// time, if the acknowledgement gave one.
    #[inline]
    pub(super) fn acknowledged(
        &mut self,
        seen: &Observed<'_>,
        from: &mut Self,
        handshake: &Handshake,
        ledger: &mut Ledger,
    ) -> Option<u64> {
        let number = seen.segment.tcp.acknowledgement;
        let same_window = from.take_window(seen);
        if !self.is(bit::BEGUN) {
            self.expect(number, seen.segment.time);
            return None;
        }
        // One further beyond the data is broken.
        if delta(number, self.next) > MAX_WINDOW {
            return None;
        }
        let advance = delta(number, self.una);
        let mut rtt = None;
        if advance > 0 {
            rtt = self.advance(number, seen.segment.time);
        }
        if advance >= 0 {
            self.bits |= bit::ACKNOWLEDGED;
        }
        if self.is(bit::OPEN_GAPS) || delta(number, self.next) > 0 {
            let path = path_of(handshake, seen, self, from, advance);
            let is_open = ledger.acknowledged(seen, self.next, &path);
            self.set(bit::OPEN_GAPS, is_open);
        }
        let control = TcpFlags::SYN.with(TcpFlags::FIN);
        let sack = seen.segment.tcp.options.sack_count > 0;
        if sack {
            // What was overtaken by a later acknowledgement tells what is past.
            let wait = handshake.recovery().reaction;
            self.selectively_acknowledged(seen, advance >= 0, wait, &mut from.counts, ledger);
        }
        if advance == 0
            && seen.segment.tcp.payload_len == 0
            && !seen.has(control)
            && (same_window || sack)
            && delta(self.next, number) > 0
        {
            from.counts.duplicate_acks = from.counts.duplicate_acks.saturating_add(1);
            self.duplicate_acks_in_row = self.duplicate_acks_in_row.saturating_add(1);
            self.evidence_at = seen.segment.time;
            if self.duplicate_acks_in_row == DUPLICATE_ACKS {
                let is_open = ledger.lacks(seen, &[], self.next);
                self.set(bit::OPEN_GAPS, is_open);
            }
        }
        rtt
    }

    /// Takes an acknowledgement of a side that was not seen yet: the first one tells where it begins.
    #[cold]
    fn expect(&mut self, number: u32, time: Timestamp) {
        if !self.is(bit::EXPECTED) {
            (self.start, self.una, self.evidence_at) = (number, number, time);
            self.set(bit::EXPECTED, true);
        }
        if delta(number, self.una) > 0 {
            self.una = number;
        }
    }

    /// The peer has not got more than what lies below `number`, though it seemed so.
    pub(super) const fn take_back(&mut self, number: u32) {
        self.una = number;
    }

    /// How many numbers were acknowledged of a side of which nothing but a RST was seen, since its begin.
    pub(in crate::flow::tcp) fn acknowledged_unseen(&self) -> Option<i64> {
        let is_unseen = self.is(bit::EXPECTED) && !self.is(bit::BEGUN) && self.resets > 0;
        is_unseen.then(|| delta(self.una, self.start).into())
    }

    /// Takes what the RST of `from` says that it got of this direction. One whose sequence number
    /// is not the next may be forged (RFC 9293, 3.10.7.4), or come from a host that has let go.
    #[cold]
    pub(super) fn reset_acknowledges(
        &mut self,
        seen: &Observed<'_>,
        from: &Self,
        handshake: &Handshake,
        ledger: &mut Ledger,
    ) {
        let is_in_order = from.is(bit::BEGUN) && seen.segment.tcp.sequence == from.next;
        let beyond = delta(seen.segment.tcp.acknowledgement, self.next);
        if !is_in_order || !self.is(bit::BEGUN) || !seen.has(TcpFlags::ACK) {
            return;
        }
        if self.is(bit::OPEN_GAPS) || (0 < beyond && beyond <= MAX_WINDOW) {
            let path = path_of(handshake, seen, self, from, 0);
            let is_open = ledger.acknowledged(seen, self.next, &path);
            self.set(bit::OPEN_GAPS, is_open);
        }
    }

    /// Whether the segment offers the same window as the one before.
    #[inline]
    fn take_window(&mut self, seen: &Observed<'_>) -> bool {
        let window = u32::from(seen.segment.tcp.window);
        let same = self.is(bit::ACK_SENT) && window == self.window;
        self.window = window;
        self.set(bit::ACK_SENT, true);
        same
    }

    /// The cumulative acknowledgement went on to `number`.
    #[inline]
    fn advance(&mut self, number: u32, time: Timestamp) -> Option<u64> {
        if !self.is(bit::INITIAL_WINDOW) && self.is(bit::SYN) && delta(number, self.start) > 0 {
            self.set(bit::INITIAL_WINDOW, true);
            self.initial_window = delta(self.next, self.start).max(0).unsigned_abs();
        }
        self.una = number;
        if self.duplicate_acks_in_row > 0 || self.is(bit::PARTIAL) {
            self.set(bit::PARTIAL, self.duplicate_acks_in_row >= DUPLICATE_ACKS);
            self.duplicate_acks_in_row = 0;
        }
        if self.is(bit::RECOVERY | bit::SACKED | bit::PROBED) {
            self.repaired(number, time);
        }
        if self.is(bit::TIMING) && delta(number, self.timed_end) >= 0 {
            self.bits &= !bit::TIMING;
            return elapsed(self.timed_at, time);
        }
        None
    }

    #[cold]
    fn repaired(&mut self, number: u32, time: Timestamp) {
        if self.is(bit::PROBED) {
            // The receiver took the byte that was sent beyond its window.
            if number == self.next.wrapping_add(1) {
                self.next = number;
                self.repeated_bytes = self.repeated_bytes.saturating_sub(1);
            }
            self.set(bit::PROBED, false);
        }
        if self.is(bit::SACKED) && delta(number, self.sacked) >= 0 {
            self.set(bit::SACKED, false);
        }
        if self.is(bit::RECOVERY) {
            if delta(number, self.recover) >= 0 {
                self.set(bit::RECOVERY, false);
            } else {
                // A partial acknowledgement, RFC 6582: the next hole is lost, too.
                self.evidence_at = time;
            }
        }
    }
}

/// The path of what `sender` sent, by what `receiver` acknowledges with a segment.
fn path_of(
    handshake: &Handshake,
    seen: &Observed<'_>,
    sender: &Direction,
    receiver: &Direction,
    advance: i32,
) -> Path {
    let options = &seen.segment.tcp.options;
    let has_sack = receiver.reports_duplicates(sender);
    Path {
        least_answer: handshake.least_answer(seen.from, &sender.rtt),
        least_measured: handshake.least_measured(seen.from, &sender.rtt),
        is_least_sure: sender.rtt.count >= SURE,
        reorder: handshake.recovery().reorder,
        rtt: handshake.rtt(),
        repair: handshake.repair(1 - (seen.from & 1), &sender.rtt, &receiver.rtt),
        has_nothing_beyond: options.sack_count == 0 && !options.cut && has_sack,
        has_sack,
        reports_nothing: has_sack && reported_twice(seen).is_none() && !options.cut,
        advance: advance.max(0).into(),
        echo: options.timestamps.map(|(_, echo)| echo),
    }
}
