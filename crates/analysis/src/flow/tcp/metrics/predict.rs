//! The short way of a segment that the connection awaited ([`crate::flow::tcp::connection`] tells which): new data or a new
//! acknowledgement, between sides of which nothing is remarkable. Builds with `debug_assertions` compare what comes of it with
//! what comes of the whole way.

use super::TcpMetrics;
use super::bit;
use super::direction::{Direction, digest};
use crate::flow::tcp::observed::{Observed, elapsed};
use crate::flow::tcp::sequence::delta;

/// What must be known of the side that sends.
const SENDER_HAS: u32 = bit::BEGUN | bit::WINDOW | bit::ACK_SENT;
/// What must not be so there.
const SENDER_LACKS: u32 = bit::ZERO_WINDOW | bit::OPEN_GAPS | bit::UNSEEN | bit::SIGNED;
/// The same of the side that is answered.
const PEER_HAS: u32 = bit::BEGUN | bit::INITIAL_WINDOW;
const PEER_LACKS: u32 =
    bit::ZERO_WINDOW | bit::OPEN_GAPS | bit::RECOVERY | bit::SACKED | bit::PROBED | bit::PARTIAL;

impl TcpMetrics {
    /// Takes a segment with no flags but ACK and PSH, if it goes the short way. Returns the round-trip time that it
    /// gave, if any; `None`, with nothing changed, if it does not.
    #[inline]
    pub(super) fn predicted(&mut self, seen: &Observed<'_>) -> Option<Option<u64>> {
        let [low, high] = &mut self.directions;
        let (sender, peer) = if seen.from == 0 { (low, high) } else { (high, low) };
        let tcp = seen.segment.tcp;
        let advance = delta(tcp.acknowledgement, peer.una);
        let digest = digest(seen);
        let is_calm = sender.bits & (SENDER_HAS | SENDER_LACKS) == SENDER_HAS
            && peer.bits & (PEER_HAS | PEER_LACKS) == PEER_HAS
            && peer.duplicate_acks_in_row == 0
            && sender.ttl_max > 0
            && self.handshake.is_done();
        let is_awaited = tcp.sequence == sender.next
            && advance >= 0
            && delta(tcp.acknowledgement, peer.next) <= 0
            && digest != sender.last_digest
            && if tcp.payload_len > 0 { sender.is(bit::PAYLOAD) } else { advance > 0 };
        let is_plain = tcp.window > 0
            && tcp.options.sack_count == 0
            && !tcp.options.signed
            && seen.segment.traffic_class & 3 != 3
            && (seen.segment.identification != sender.last_identification
                || sender.is(bit::SAME_IDENTIFICATION));
        if !(is_calm && is_awaited && is_plain) {
            return None;
        }
        sender.note_predicted(seen, digest);
        if tcp.payload_len > 0 {
            sender.count_payload(seen);
            sender.largest_segment = sender.largest_segment.max(tcp.payload_len);
            sender.next = tcp.sequence.wrapping_add(tcp.payload_len);
            sender.start_timing(seen);
            let handshake = &self.handshake;
            let repair = || handshake.repair(seen.from, &sender.rtt, &peer.rtt);
            sender.marks.note(tcp.sequence, seen.segment.time, repair);
        } else {
            sender.pure_acks = sender.pure_acks.wrapping_add(1);
        }
        sender.window = tcp.window.into();
        peer.bits |= bit::ACKNOWLEDGED;
        peer.una = tcp.acknowledgement;
        if advance > 0 && peer.is(bit::TIMING) && delta(tcp.acknowledgement, peer.timed_end) >= 0 {
            peer.bits &= !bit::TIMING;
            return Some(elapsed(peer.timed_at, seen.segment.time));
        }
        Some(None)
    }
}

impl Direction {
    /// Takes what does not depend on sequence numbers.
    #[inline]
    fn note_predicted(&mut self, seen: &Observed<'_>, digest: u64) {
        let segment = seen.segment;
        self.last_digest = digest;
        self.last_identification = segment.identification;
        self.identifications.note(segment.identification);
        self.ttl_min = self.ttl_min.min(segment.ttl);
        self.ttl_max = self.ttl_max.max(segment.ttl);
        let window = u32::from(segment.tcp.window) << seen.scale.min(14);
        self.window_min = self.window_min.min(window);
        self.window_max = self.window_max.max(window);
        let mut bits = self.bits & !bit::LIKE_LAST;
        if let Some((value, _)) = segment.tcp.options.timestamps {
            bits = bits & !bit::NEWEST_STAMP | bit::TIMESTAMPS;
            if self.stamp == 0 || delta(value, self.stamp) > 0 {
                self.stamp = value;
                bits |= bit::NEWEST_STAMP;
            }
        }
        self.bits = bits;
    }
}
