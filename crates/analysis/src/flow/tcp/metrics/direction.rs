//! One direction of a connection: what one side sent, and how the other acknowledged it.

use netsniff_packet::Timestamp;
use netsniff_packet::decode::TcpFlags;

use super::bit;
use super::classify::Answer;
use super::counts::RareCounts;
use super::handshake::Handshake;
use super::identifications::Identifications;
use super::marks::Marks;
use super::rtt::RttStatistics;
use crate::flow::tcp::losses::{Class, Ledger};
use crate::flow::tcp::observed::{Observed, elapsed};
use crate::flow::tcp::sequence::{MAX_WINDOW, delta};
use crate::prefetch::prefetch;

/// One direction. What a segment in order touches comes first.
#[derive(Clone, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Direction {
    /// One past the highest sequence number sent.
    pub(super) next: u32,
    /// The highest acknowledgement of it; the first sequence number before any.
    pub(super) una: u32,
    pub(super) bits: u32,
    pub(super) last_identification: u16,
    pub(super) identifications: Identifications,
    /// What the last packet was, see [`digest`].
    pub(super) last_digest: u64,
    /// The latest of its time stamps; 0 where none is known.
    pub(super) stamp: u32,
    /// The last window offered, scaled.
    pub(super) window: u32,
    pub(super) window_min: u32,
    pub(super) window_max: u32,
    /// Segments with payload, retransmissions included.
    pub data_segments: u32,
    /// Segments with nothing but an acknowledgement.
    pub pure_acks: u32,
    /// Payload bytes, those sent again included.
    pub payload_bytes: u64,
    /// The largest payload of a segment.
    pub largest_segment: u32,
    /// Most bytes sent and not yet acknowledged.
    pub(super) in_flight: u32,
    pub(super) timed_end: u32,
    /// Duplicate acknowledgements in a row of what it sent.
    pub(super) duplicate_acks_in_row: u16,
    pub(super) ttl_min: u8,
    pub(super) ttl_max: u8,
    pub(super) timed_at: Timestamp,
    /// When it had sent how much, lately.
    pub(super) marks: Marks,
    /// Round-trip times of what it sent: from the tap to the receiver and back.
    pub rtt: RttStatistics,
    /// The first sequence number of data.
    pub(super) start: u32,
    /// Up to where a fast retransmission began to repair.
    pub(super) recover: u32,
    /// The highest number that the peer selectively acknowledged.
    pub(super) sacked: u32,
    /// The last data sent again, and why it was thought to be.
    pub(super) last_repeat: u32,
    /// When that came.
    pub(super) last_repeat_at: Timestamp,
    pub(super) last_class: Class,
    /// The shift of the window that its SYN offered.
    pub(super) scale: u8,
    pub(super) mss: u16,
    /// When the peer last gave evidence of a loss.
    pub(super) evidence_at: Timestamp,
    /// Payload bytes that had been seen before.
    pub(super) repeated_bytes: u64,
    pub(super) first_payload: Timestamp,
    pub(super) zero_window_since: Timestamp,
    pub(super) zero_window_time: u64,
    pub(super) initial_window: u32,
    /// Counts of what is rare in a healthy connection.
    pub counts: RareCounts,
    /// FINs seen.
    pub fins: u32,
    /// RSTs seen.
    pub resets: u32,
}

impl Direction {
    /// Asks for the lines that every segment needs.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch(&self.next);
        prefetch(&self.in_flight);
        prefetch(&self.last_repeat);
    }

    #[inline]
    pub(super) const fn is(&self, bits: u32) -> bool {
        self.bits & bits != 0
    }

    pub(super) const fn set(&mut self, bits: u32, on: bool) {
        if on {
            self.bits |= bits;
        } else {
            self.bits &= !bits;
        }
    }

    pub(super) const fn next(&self) -> u32 {
        self.next
    }

    pub(super) const fn start(&self) -> u32 {
        self.start
    }

    /// Whether a segment other than a RST was seen.
    pub(in crate::flow::tcp) const fn has_begun(&self) -> bool {
        self.is(bit::BEGUN)
    }

    /// The number that it was expected to begin with, by the first acknowledgement of it.
    pub(in crate::flow::tcp) const fn expected_begin(&self) -> Option<u32> {
        if self.is(bit::EXPECTED) { Some(self.start) } else { None }
    }

    /// Whether its SYN was seen.
    pub(in crate::flow::tcp) const fn has_syn(&self) -> bool {
        self.is(bit::SYN)
    }

    /// Whether a SYN of it was never seen, though another one was.
    pub(in crate::flow::tcp) const fn missed_syn(&self) -> bool {
        self.is(bit::SYN_MISSED)
    }

    /// Whether it would report what came to it twice from `peer`: hosts with SACK do (RFC 2883).
    pub(in crate::flow::tcp) fn reports_duplicates(&self, peer: &Self) -> bool {
        self.is(bit::SACK_PERMITTED) && peer.is(bit::SACK_PERMITTED) || self.counts.sacks > 0
    }

    /// Whether something of it was acknowledged.
    pub(in crate::flow::tcp) const fn has_acknowledgements(&self) -> bool {
        self.is(bit::ACKNOWLEDGED)
    }

    #[inline]
    pub(super) const fn has_zero_window(&self) -> bool {
        self.is(bit::ZERO_WINDOW)
    }

    /// Whether the packet was seen before, and the sender numbers its packets: its IP identification,
    /// numbers, flags and length are those of the packet before it in this direction, or it has the
    /// identification of one of the latest and brings nothing that is new to `peer`. Parts of one large segment may share
    /// theirs: what fills a hole is new.
    #[inline]
    pub(super) fn is_duplicate(&self, seen: &Observed<'_>, peer: &Self, ledger: &Ledger) -> bool {
        let is_last = seen.segment.identification == self.last_identification
            && digest(seen) == self.last_digest;
        seen.segment.identification != 0
            && !self.is(bit::SAME_IDENTIFICATION)
            && (is_last
                || self.identifications.has(seen.segment.identification)
                    && self.is_old(seen, peer)
                    && !(self.is(bit::UNSEEN) && self.fills(seen, ledger)))
    }

    #[cold]
    fn fills(&self, seen: &Observed<'_>, ledger: &Ledger) -> bool {
        let tcp = seen.segment.tcp;
        ledger.unseen(seen, tcp.sequence.wrapping_add(tcp.payload_len)).len > 0
    }

    /// Whether the segment neither sends nor acknowledges anything for the first time.
    const fn is_old(&self, seen: &Observed<'_>, peer: &Self) -> bool {
        let tcp = seen.segment.tcp;
        let control = TcpFlags::SYN.with(TcpFlags::FIN).with(TcpFlags::RST);
        self.is(bit::BEGUN)
            && !seen.has(control)
            && delta(tcp.sequence.wrapping_add(tcp.payload_len), self.next) <= 0
            && delta(tcp.acknowledgement, peer.una) <= 0
    }

    #[cold]
    pub(super) fn duplicate(&mut self, seen: &Observed<'_>) {
        self.counts.duplicates = self.counts.duplicates.saturating_add(1);
        self.note_duplicate_bytes(seen);
        self.count_payload(seen);
        self.repeated_bytes =
            self.repeated_bytes.saturating_add(seen.segment.tcp.payload_len.into());
    }

    /// Takes the payload of a segment that its sender sent once and that is seen again.
    #[cold]
    pub(super) fn note_duplicate_bytes(&mut self, seen: &Observed<'_>) {
        let len = u64::from(seen.segment.tcp.payload_len);
        self.counts.duplicate_bytes = self.counts.duplicate_bytes.saturating_add(len);
    }

    #[inline]
    pub(super) fn count_payload(&mut self, seen: &Observed<'_>) {
        let len = seen.segment.tcp.payload_len;
        if len > 0 {
            self.data_segments = self.data_segments.saturating_add(1);
            self.payload_bytes = self.payload_bytes.saturating_add(len.into());
        }
    }

    /// Takes what does not depend on sequence numbers.
    #[inline]
    pub(super) fn note_header(&mut self, seen: &Observed<'_>) {
        let digest = digest(seen);
        if seen.segment.identification == self.last_identification && digest != self.last_digest {
            let heard = self.ttl_max > 0;
            self.bits |= if heard { bit::SAME_IDENTIFICATION } else { 0 };
        }
        self.set(bit::LIKE_LAST, digest == self.last_digest);
        self.last_identification = seen.segment.identification;
        self.identifications.note(seen.segment.identification);
        self.last_digest = digest;
        if self.ttl_max == 0 && self.ttl_min == 0 {
            self.ttl_min = seen.segment.ttl;
            self.set(bit::SIGNED, seen.segment.tcp.options.signed);
        } else if seen.segment.tcp.payload_len == 0 && self.is_signed_unlike(seen) {
            self.set(bit::PARTLY_SIGNED, true);
        }
        self.ttl_min = self.ttl_min.min(seen.segment.ttl);
        self.ttl_max = self.ttl_max.max(seen.segment.ttl);
        if seen.segment.traffic_class & 3 == 3 {
            self.counts.congestion_experienced += 1;
        }
        let rare = TcpFlags::SYN.with(TcpFlags::FIN).with(TcpFlags::ECE).with(TcpFlags::CWR);
        if seen.has(rare) {
            self.note_flags(seen);
        }
        if let Some((value, _)) = seen.segment.tcp.options.timestamps {
            let is_newest = self.stamp == 0 || delta(value, self.stamp) > 0;
            self.stamp = if is_newest { value } else { self.stamp };
            self.set(bit::NEWEST_STAMP, is_newest);
            self.set(bit::TIMESTAMPS, true);
        }
    }

    /// Whether a segment of this side has a mark of those that are sent to be seen and not to arrive: it
    /// has fewer hops to live than others, an older stamp than one before it (RFC 7323, 5), no
    /// acknowledgement (RFC 9293, 3.10.7.4), or is signed where no other is, or the other way round
    /// (RFC 2385, 2.0; RFC 5925, 7.3).
    #[inline]
    pub(super) fn doubts(&self, seen: &Observed<'_>) -> bool {
        let is_late = match seen.segment.tcp.options.timestamps {
            Some((value, _)) => self.stamp != 0 && delta(value, self.stamp) < 0,
            None => false,
        };
        let is_unacknowledging = !seen.has(TcpFlags::ACK) && !seen.has(TcpFlags::SYN);
        let is_unlike = self.is_signed_unlike(seen) && !self.is(bit::PARTLY_SIGNED);
        seen.segment.ttl < self.ttl_max || is_late || is_unacknowledging || is_unlike
    }

    /// Whether a segment is signed and the first of its side was not, or the other way round.
    #[inline]
    const fn is_signed_unlike(&self, seen: &Observed<'_>) -> bool {
        let options = &seen.segment.tcp.options;
        options.signed != self.is(bit::SIGNED) && self.ttl_max > 0 && !options.cut
    }

    /// Whether a segment of the other side acknowledges what this one was not seen to send (RFC 9293,
    /// 3.10.7.4).
    #[inline]
    pub(super) const fn is_ahead(&self, seen: &Observed<'_>) -> bool {
        self.is(bit::BEGUN)
            && seen.has(TcpFlags::ACK)
            && delta(seen.segment.tcp.acknowledgement, self.next) > 1
    }

    #[cold]
    fn note_flags(&mut self, seen: &Observed<'_>) {
        if seen.has(TcpFlags::FIN) {
            self.fins = self.fins.saturating_add(1);
        }
        if !seen.has(TcpFlags::SYN) {
            if seen.has(TcpFlags::ECE) {
                self.counts.ecn_echoes += 1;
            }
            if seen.has(TcpFlags::CWR) {
                self.counts.window_reduced += 1;
            }
            return;
        }
        let options = &seen.segment.tcp.options;
        self.mss = options.mss.unwrap_or(0);
        self.scale = options.window_scale.unwrap_or(0);
        self.set(bit::WINDOW_SCALE, options.window_scale.is_some());
        self.set(bit::SACK_PERMITTED, options.sack_permitted);
        self.set(bit::OPTIONS_CUT, options.cut);
    }

    /// Takes the window that the segment offers. Those of SYN segments are not scaled, and a side
    /// that ends, or whose host has let go of the connection, may offer anything.
    #[inline]
    pub(super) fn note_window(&mut self, seen: &Observed<'_>) {
        if seen.has(TcpFlags::SYN.with(TcpFlags::FIN)) || !seen.has(TcpFlags::ACK) {
            return;
        }
        let window = u32::from(seen.segment.tcp.window) << seen.scale.min(14);
        if !self.is(bit::WINDOW) {
            self.set(bit::WINDOW, true);
            self.window_min = window;
        }
        self.window_min = self.window_min.min(window);
        self.window_max = self.window_max.max(window);
        if window == 0 || self.is(bit::ZERO_WINDOW) {
            self.note_zero_window(seen, window);
        }
    }

    #[cold]
    fn note_zero_window(&mut self, seen: &Observed<'_>, window: u32) {
        if window > 0 {
            let closed = elapsed(self.zero_window_since, seen.segment.time).unwrap_or(0);
            self.zero_window_time = self.zero_window_time.saturating_add(closed);
            self.set(bit::ZERO_WINDOW, false);
            return;
        }
        self.counts.zero_windows = self.counts.zero_windows.saturating_add(1);
        if !self.is(bit::ZERO_WINDOW) {
            self.set(bit::ZERO_WINDOW, true);
            self.zero_window_since = seen.segment.time;
        }
    }

    /// Takes what the segment sends.
    #[inline]
    pub(super) fn send(
        &mut self,
        seen: &Observed<'_>,
        peer: &Self,
        handshake: &Handshake,
        ledger: &mut Ledger,
    ) {
        let tcp = seen.segment.tcp;
        let peer_closed = peer.has_zero_window();
        let control = seen.has(TcpFlags::SYN.with(TcpFlags::FIN));
        if !self.is(bit::BEGUN) || seen.has(TcpFlags::SYN) {
            self.begin(seen, peer, ledger);
        }
        if tcp.payload_len == 0 && !control {
            if tcp.sequence != self.next {
                self.note_stray(seen, peer_closed, ledger);
            }
            self.pure_acks = self.pure_acks.wrapping_add(1);
            return;
        }
        if tcp.payload_len > 0 {
            self.count_payload(seen);
            self.largest_segment = self.largest_segment.max(tcp.payload_len);
            if !self.is(bit::PAYLOAD) {
                self.set(bit::PAYLOAD, true);
                self.first_payload = seen.segment.time;
            }
        }
        let len = tcp
            .payload_len
            .wrapping_add(u32::from(seen.has(TcpFlags::SYN)))
            .wrapping_add(u32::from(seen.has(TcpFlags::FIN)));
        let ahead = delta(tcp.sequence, self.next);
        if ahead < 0 || (tcp.payload_len == 1 && peer_closed) {
            let answer = Answer::of(handshake, seen.from, &self.rtt, &peer.rtt);
            self.send_again(seen, len, peer_closed, &answer, ledger);
            return;
        }
        if ahead > 0 {
            self.skip(seen, ledger);
        }
        let begin = tcp.sequence;
        self.next = begin.wrapping_add(len);
        if self.is(bit::OPEN_GAPS) {
            let is_open = ledger.seen(seen, self.next);
            self.set(bit::OPEN_GAPS, is_open);
        }
        if tcp.payload_len > 0 {
            self.start_timing(seen);
            let repair = || handshake.repair(seen.from, &self.rtt, &peer.rtt);
            self.marks.note(begin, seen.segment.time, repair);
        }
    }

    /// Takes the numbers between the next one and that of the segment as missing.
    #[cold]
    fn skip(&mut self, seen: &Observed<'_>, ledger: &mut Ledger) {
        if delta(seen.segment.tcp.sequence, self.next) <= MAX_WINDOW {
            ledger.skipped(seen, self.next);
            self.set(bit::OPEN_GAPS | bit::UNSEEN, true);
        }
    }

    /// Takes a segment without payload that does not stand at the next sequence number.
    #[cold]
    fn note_stray(&mut self, seen: &Observed<'_>, peer_closed: bool, ledger: &mut Ledger) {
        let ahead = delta(seen.segment.tcp.sequence, self.next);
        if ahead == -1 {
            self.probe_or_keep_alive(peer_closed);
        } else if ahead > 0 && ahead <= MAX_WINDOW {
            // Its number tells what the sender has sent: something was skipped.
            self.skip(seen, ledger);
            self.next = seen.segment.tcp.sequence;
        }
    }

    /// Times one segment at a time, and none while something before it is missing: its
    /// acknowledgement would wait for that.
    #[inline]
    pub(super) fn start_timing(&mut self, seen: &Observed<'_>) {
        if !self.is(bit::TIMING | bit::UNSEEN) {
            self.bits |= bit::TIMING;
            self.timed_end = self.next;
            self.timed_at = seen.segment.time;
        }
        if self.is(bit::ACKNOWLEDGED) {
            let in_flight = delta(self.next, self.una).max(0).unsigned_abs();
            self.in_flight = self.in_flight.max(in_flight);
        }
    }

    /// Sets the numbers of a side that is heard for the first time, or anew.
    #[cold]
    fn begin(&mut self, seen: &Observed<'_>, peer: &Self, ledger: &mut Ledger) {
        let syn = seen.has(TcpFlags::SYN);
        let first = seen.segment.tcp.sequence.wrapping_add(u32::from(syn));
        let mut start = first;
        if self.is(bit::BEGUN) && start == self.start {
            // A copy, maybe of one that was missed; the numbers stand.
            self.set(bit::SYN, true);
            return;
        }
        if self.is(bit::BEGUN) {
            ledger.begin_anew(seen.from);
        } else if !syn && peer.is(bit::SYN) && self.is(bit::EXPECTED) {
            // The handshake was seen from one side, so that all is missing up to here.
            let is_open = ledger.begun_late(seen, self.start);
            self.set(bit::OPEN_GAPS, is_open);
            if (0..=MAX_WINDOW).contains(&delta(start, self.start)) {
                start = self.start;
            }
        }
        if syn && self.is(bit::EXPECTED) && !self.is(bit::BEGUN) && start == self.start {
            let is_missed = seen.place.is_some_and(|place| {
                let wait = place.limits.stream_acknowledged_wait.as_nanos();
                elapsed(self.evidence_at, seen.segment.time)
                    .is_some_and(|age| u128::from(age) > wait)
            });
            self.set(bit::SYN_MISSED, is_missed);
        }
        self.start = start;
        self.next = seen.segment.tcp.sequence;
        self.una = first;
        self.marks = Marks::default();
        self.set(bit::TIMING | bit::UNSEEN | bit::RECOVERY | bit::SACKED | bit::PROBED, false);
        self.set(bit::INITIAL_WINDOW | bit::ACKNOWLEDGED, false);
        self.set(bit::BEGUN, true);
        self.set(bit::SYN, syn);
    }
}

/// Numbers, flags and length in one word, which hardly ever is the same for different segments.
#[inline]
pub(super) const fn digest(seen: &Observed<'_>) -> u64 {
    let tcp = seen.segment.tcp;
    let numbers = (tcp.sequence as u64) << 32 | tcp.acknowledgement as u64;
    numbers.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (tcp.payload_len as u64) << 16
        ^ tcp.flags.0 as u64
}
