//! What of both streams was seen and acknowledged, and when a side that ended is complete.

use netsniff_packet::Timestamp;
use netsniff_packet::decode::TcpFlags;

use super::{SegmentContext, TcpConnection};
use crate::flow::history::History;
use crate::flow::tcp::assembler::RevealedGaps;
use crate::flow::tcp::endpoint::{State, TcpEndpoint};
use crate::flow::tcp::segment::{ORIGINATOR, Segment};
use crate::limits::Limits;

impl TcpConnection {
    /// The peer of `from` acknowledged `position` in what `from` sent.
    #[inline]
    pub(super) fn acknowledge(
        &mut self,
        from: usize,
        position: u64,
        context: &mut SegmentContext<'_>,
    ) {
        let partial = self.partial;
        let end = &mut self.ends[from];
        let mut position = position;
        if end.fins > 0 && position >= end.fin_position {
            position = end.fin_position.wrapping_sub(1);
        }
        if position <= end.assembler.trimmed() {
            return;
        }
        let gaps = end.assembler.acknowledge(position, partial);
        self.note_gaps(from, gaps, &mut context.history);
        self.check_end(from, context);
    }

    /// Gaps count only while both sides are established or in an orderly end: elsewhere they come
    /// from numbers that cannot be trusted.
    fn note_gaps(&mut self, from: usize, gaps: RevealedGaps, history: &mut History<'_>) {
        if gaps.count == 0 || !self.ends.iter().all(is_clean) {
            return;
        }
        self.missed_bytes = self.missed_bytes.saturating_add(gaps.bytes);
        for _ in 0..gaps.count {
            if self.ends[from].gaps.hit() {
                history.push(if from == ORIGINATOR { b'G' } else { b'g' });
            }
        }
    }

    #[inline]
    pub(super) fn note_data(
        &mut self,
        from: usize,
        segment: &Segment<'_>,
        position: u64,
        underflow: bool,
        context: &mut SegmentContext<'_>,
    ) {
        let tcp = segment.tcp;
        if tcp.payload_len == 0 || segment.has(TcpFlags::RST) || underflow {
            return;
        }
        let peer = self.ends[1 - from].state;
        let sender = &mut self.ends[from];
        if sender.assembler.is_abandoned() {
            return;
        }
        if tcp.payload_captured < tcp.payload_len {
            // As in Zeek, a payload that the capture cut counts as not seen.
            context.weirds.add("truncated_tcp_payload");
            return;
        }
        let mut low = position;
        if segment.has(TcpFlags::SYN) {
            low = low.wrapping_add(1);
        }
        let high = low.saturating_add(tcp.payload_len.into());
        let acknowledged = sender.acknowledged.full().wrapping_sub(sender.start.into());
        if high <= acknowledged {
            return;
        }
        let gaps = sender.assembler.insert(low.max(acknowledged), high, context.limits.tcp_ranges);
        if sender.nothing_acknowledged() {
            // The acknowledgements take another way, or were filtered out.
            if sender.size(peer) > context.limits.tcp_initial_window {
                let next = sender.assembler.next();
                sender.assembler.acknowledge(next, false);
            }
            if sender.assembler.above_hole() > context.limits.tcp_above_hole_without_ack {
                context.weirds.add("above_hole_data_without_any_acks");
                sender.assembler.abandon();
            }
        }
        if sender.assembler.unacknowledged() > context.limits.tcp_unacknowledged {
            context.weirds.add("excessive_data_without_further_acks");
            sender.assembler.abandon();
        }
        self.note_gaps(from, gaps, &mut context.history);
    }

    /// Whether data is missing that a closing side still waits for.
    fn is_pending(&self, from: usize) -> bool {
        let end = &self.ends[from];
        if end.assembler.is_abandoned() {
            return false;
        }
        if (end.start as u64 + end.assembler.next()) > end.last.full() {
            return false;
        }
        !end.is_delivered()
            || (end.state != State::Reset && self.ends[1 - from].assembler.has_unacknowledged())
    }

    /// Looks whether the data of a side that has ended is complete by now.
    #[inline]
    pub(super) fn check_end(&mut self, from: usize, context: &mut SegmentContext<'_>) {
        let end = &self.ends[from];
        let ended = end.fins > 0 || matches!(end.state, State::Closed | State::Reset);
        if !ended || end.did_end || self.is_pending(from) {
            return;
        }
        self.ends[from].did_end = true;
        if self.close_deferred {
            let finish = self.deferred_finish;
            self.close(from, finish, context.now, context.limits);
            self.close_deferred = false;
        }
    }

    /// Reports a side as closed, and with it perhaps the whole connection.
    pub(super) fn close(&mut self, from: usize, finished: bool, now: Timestamp, limits: &Limits) {
        if self.is_pending(from) {
            self.close_deferred = true;
            self.deferred_finish |= finished;
            return;
        }
        self.close_deferred = false;
        if self.ends[from].did_close {
            return;
        }
        self.ends[from].did_close = true;
        self.hastened = true;
        let (end, peer) = (&self.ends[from], &self.ends[1 - from]);
        let complete = end.state == State::Reset || peer.did_close || peer.state == State::Inactive;
        if complete {
            let heard = end.previous != State::Inactive || peer.state != State::Inactive;
            if heard && (finished || core::mem::take(&mut self.deferred_finish)) {
                self.inactive = true;
            }
            self.timers_cancelled = true;
            self.attempt_until = Timestamp::MAX;
            self.half_closed_at = Timestamp::MAX;
            self.remove_at = self.remove_at.min(now + limits.tcp_close);
        } else if end.previous != State::Inactive && !self.timers_cancelled {
            self.half_closed_at = now;
        }
    }
}

fn is_clean(end: &TcpEndpoint) -> bool {
    end.state == State::Established
        || (end.state == State::Closed && end.previous == State::Established)
}
