//! Why data was sent again: the evidence that passes the tap tells.

use netsniff_packet::Timestamp;
use netsniff_packet::decode::TcpFlags;

use super::bit;
use super::counts::Counts;
use super::direction::Direction;
use super::handshake::{Handshake, Recovery};
use super::rtt::RttStatistics;
use crate::flow::tcp::losses::{Again, Class, Ledger, Repair, Skipped, Unseen, reported_twice};
use crate::flow::tcp::observed::{Observed, elapsed};
use crate::flow::tcp::sequence::delta;

/// Duplicate acknowledgements that ask for a retransmission, RFC 5681, 3.2.
pub(super) const DUPLICATE_ACKS: u16 = 3;

/// How soon a side answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) recovery: Recovery,
    /// The least time in which it answers what passes the tap; nanoseconds.
    pub(super) least_answer: Option<u64>,
    /// The least time in which the other side does; nanoseconds.
    pub(super) least_acknowledgement: Option<u64>,
    pub(super) repair: Repair,
}

impl Answer {
    /// Of what `from` sends; `own` tells of what it sent, `peer` of what the other side did.
    pub(super) fn of(
        handshake: &Handshake,
        from: usize,
        own: &RttStatistics,
        peer: &RttStatistics,
    ) -> Self {
        Self {
            recovery: handshake.recovery(),
            least_answer: handshake.least_answer(from, peer),
            least_acknowledgement: handshake.least_answer(1 - from, own),
            repair: handshake.repair(from, own, peer),
        }
    }
}

/// What tells why numbers came that are not new, besides the state of their direction.
#[derive(Clone, Copy, Debug)]
struct Evidence {
    /// The hole that they fill, where it is remembered.
    hole: Option<Skipped>,
    /// Whether they were surely sent after what revealed the hole, so that they were sent again.
    is_later: bool,
    /// The least time in which their sender answers what passes the tap; nanoseconds.
    least_answer: Option<u64>,
}

impl Direction {
    /// A segment without payload just below the next sequence number: it wants an answer.
    #[cold]
    pub(super) fn probe_or_keep_alive(&mut self, peer_closed: bool) {
        let count =
            if peer_closed { &mut self.counts.window_probes } else { &mut self.counts.keep_alives };
        *count = count.saturating_add(1);
    }

    /// Takes a segment that begins below the next sequence number, or one byte while the peer's
    /// window is closed.
    #[cold]
    pub(super) fn send_again(
        &mut self,
        seen: &Observed<'_>,
        len: u32,
        peer_closed: bool,
        answer: &Answer,
        ledger: &mut Ledger,
    ) {
        let tcp = seen.segment.tcp;
        let control = seen.has(TcpFlags::SYN.with(TcpFlags::FIN));
        let single = tcp.payload_len == 1 && !control;
        let at_edge = tcp.sequence == self.next || tcp.sequence == self.next.wrapping_sub(1);
        if single && peer_closed && at_edge {
            self.counts.window_probes = self.counts.window_probes.saturating_add(1);
            self.repeated_bytes = self.repeated_bytes.saturating_add(1);
            if tcp.sequence == self.next {
                self.set(bit::PROBED, true);
            }
            return;
        }
        let end = tcp.sequence.wrapping_add(len);
        if delta(tcp.sequence, self.next) >= 0 {
            // One byte beyond a closed window, but not where a probe would be.
            self.next = end;
            return;
        }
        if single && end == self.next && self.is_acknowledged(end) {
            self.probe_or_keep_alive(false);
            self.repeated_bytes = self.repeated_bytes.saturating_add(1);
            // Its receiver reports the byte like any that comes twice.
            ledger.doubled(seen);
            return;
        }
        self.repeat(seen, end, answer, ledger);
    }

    fn repeat(&mut self, seen: &Observed<'_>, end: u32, answer: &Answer, ledger: &mut Ledger) {
        let tcp = seen.segment.tcp;
        let Answer { least_answer, least_acknowledgement, repair, .. } = *answer;
        let known = if delta(end, self.next) > 0 { self.next } else { end };
        let unseen = ledger.unseen(seen, known);
        let below = delta(known, tcp.sequence).max(0).unsigned_abs();
        let repeated = u64::from(below).saturating_sub(unseen.len).min(tcp.payload_len.into());
        self.repeated_bytes = self.repeated_bytes.saturating_add(repeated);
        // Karn: an acknowledgement from here on may be that of either copy.
        if self.is(bit::TIMING) && delta(tcp.sequence, self.timed_end) < 0 {
            self.set(bit::TIMING, false);
        }
        let hole = ledger.hole(seen, known);
        let is_counting = self.identifications.is_counting();
        let is_earlier = hole.and_then(|hole| hole.revealed.is_after(seen, is_counting));
        let is_hasty = is_earlier.is_none()
            && self.is_too_soon(seen.segment.time, tcp.sequence, known, &repair);
        let class = match (hole, is_earlier) {
            (Some(_), Some(true)) => Class::OutOfOrder,
            _ => {
                let evidence = Evidence { hole, is_later: is_earlier.is_some(), least_answer };
                self.class(seen, known, unseen, &evidence, answer)
            }
        };
        let is_new = unseen.len > 0 || hole.is_some();
        let class = if is_new { class } else { self.if_possible(class, seen, &repair) };
        if class == Class::Fast && !self.is(bit::RECOVERY) {
            self.set(bit::RECOVERY, true);
            self.recover = self.next;
        }
        self.count(class);
        if class == Class::Doubled {
            self.note_duplicate_bytes(seen);
        }
        let again = Again {
            class,
            // What was sent before the lack was shown is no answer to it.
            least_answer: least_answer.filter(|_| is_earlier != Some(true)),
            is_hasty,
            least_acknowledgement,
            is_later: is_earlier == Some(false),
            repair,
            stamp: seen.segment.tcp.options.timestamps.map(|(value, _)| value),
            is_newest: self.is(bit::NEWEST_STAMP),
            sent_beyond: delta(self.next, known).max(0).unsigned_abs(),
            may_be_doubled: self.is(bit::LIKE_LAST)
                && seen.segment.identification == 0
                && self.is_young(tcp.sequence, seen.segment.time, repair.by_timer),
        };
        let mut is_open = ledger.seen_again(seen, known, &again);
        if is_open && known != end {
            // The rest is new.
            is_open = ledger.seen(seen, end);
        }
        self.set(bit::OPEN_GAPS, is_open);
        (self.last_repeat, self.last_repeat_at) = (tcp.sequence, seen.segment.time);
        self.last_class = class;
        self.set(bit::UNSEEN, ledger.has_unseen_below(seen, self.next));
        self.next = if known == end { self.next } else { end };
    }

    /// What a second copy is, which its sender can have sent only some time after the first.
    fn if_possible(&self, class: Class, seen: &Observed<'_>, repair: &Repair) -> Class {
        let least = match class {
            Class::Timeout => repair.by_timer,
            Class::Fast => repair.asked_for,
            _ => return class,
        };
        if !self.is_young(seen.segment.tcp.sequence, seen.segment.time, least) {
            return class;
        }
        // With a number of its own it was sent again, though its sender cannot have known why.
        let is_numbered = seen.segment.identification != 0 && self.identifications.is_counting();
        if is_numbered { Class::Unnecessary } else { Class::Doubled }
    }

    /// Whether what stands at `low` was sent for the first time, or came late, less than so many nanoseconds before.
    fn is_young(&self, low: u32, time: Timestamp, nanos: u64) -> bool {
        let is_last = self.last_repeat == low
            && elapsed(self.last_repeat_at, time).is_some_and(|age| age < nanos);
        is_last || self.marks.is_within(low, time, nanos)
    }

    /// Judges by the evidence, the strongest first.
    fn class(
        &self,
        seen: &Observed<'_>,
        high: u32,
        unseen: Unseen,
        evidence: &Evidence,
        answer: &Answer,
    ) -> Class {
        let recovery = &answer.recovery;
        let (time, low) = (seen.segment.time, seen.segment.tcp.sequence);
        let noticed = evidence.hole.map_or(unseen.since, |hole| hole.revealed.at);
        let wait = elapsed(noticed, time).unwrap_or(0);
        let fills = unseen.len > 0 || evidence.hole.is_some();
        if self.is_acknowledged(high) {
            // What was acknowledged before it was seen may have been captured late.
            let late = fills && wait <= recovery.reorder && !evidence.is_later;
            return if late { Class::OutOfOrder } else { Class::Unnecessary };
        }
        let is_answer = evidence.is_later || self.may_be_answer(time, low, evidence);
        if fills && wait <= recovery.reorder && !is_answer {
            return Class::OutOfOrder;
        }
        if self.is_asked_for(time, low, recovery) {
            return Class::Fast;
        }
        if fills && wait <= recovery.reorder_without_evidence && !is_answer {
            return Class::OutOfOrder;
        }
        Class::Timeout
    }

    /// Whether data that fills a hole may have been sent because the receiver showed that it lacks
    /// just this: duplicate acknowledgements of another hole ask for nothing here, and an answer
    /// takes its time.
    fn may_be_answer(&self, time: Timestamp, low: u32, evidence: &Evidence) -> bool {
        let Some(hole) = evidence.hole else {
            return self.duplicate_acks_in_row >= DUPLICATE_ACKS && low == self.una;
        };
        let Some(lacked) = hole.lacked else { return false };
        let age = elapsed(lacked, time);
        evidence.least_answer.is_none_or(|least| age.is_none_or(|age| age >= least))
    }

    /// Whether what fills a hole comes sooner than its sender should have sent it again for what the
    /// receiver was seen to tell of what it has from beyond it: three segments ask for that at once (RFC 6675, 5), as does a
    /// partial acknowledgement (RFC 6582, 3.2), and fewer do a while later (RFC 8985, 6.2).
    fn is_too_soon(&self, time: Timestamp, low: u32, high: u32, repair: &Repair) -> bool {
        let acks = if low == self.una { self.duplicate_acks_in_row } else { 0 };
        let beyond = if self.is(bit::SACKED) { i64::from(delta(self.sacked, high)) } else { 0 };
        let is_asked_for = acks >= DUPLICATE_ACKS
            || self.is(bit::PARTIAL) && low == self.una
            || beyond > 2 * i64::from(self.largest_segment)
            || self.is(bit::RECOVERY) && delta(low, self.recover) < 0;
        beyond > 0 && !is_asked_for && self.marks.is_within(low, time, repair.hardly_shown)
    }

    fn is_acknowledged(&self, high: u32) -> bool {
        self.is(bit::ACKNOWLEDGED) && delta(high, self.una) <= 0
    }

    /// Whether the receiver showed lately that it lacks the data at `low`.
    fn is_asked_for(&self, time: Timestamp, low: u32, recovery: &Recovery) -> bool {
        let evidence = (self.duplicate_acks_in_row >= DUPLICATE_ACKS && low == self.una)
            || (self.is(bit::SACKED) && delta(low, self.sacked) < 0)
            || (self.is(bit::RECOVERY) && delta(low, self.recover) < 0);
        evidence && elapsed(self.evidence_at, time).is_none_or(|age| age <= recovery.reaction)
    }

    fn count(&mut self, class: Class) {
        let count = self.counter(class);
        *count = count.saturating_add(1);
    }

    fn counter(&mut self, class: Class) -> &mut u32 {
        let Counts {
            retransmitted_timeout,
            retransmitted_fast,
            retransmitted_unnecessarily,
            out_of_order,
            duplicates,
            ..
        } = &mut *self.counts;
        match class {
            Class::Timeout => retransmitted_timeout,
            Class::Fast => retransmitted_fast,
            Class::Unnecessary => retransmitted_unnecessarily,
            Class::OutOfOrder => out_of_order,
            Class::Doubled => duplicates,
        }
    }

    /// Takes the SACK blocks of a segment; `counts` are those of its sender, which answers what passes the tap
    /// within `wait` nanoseconds. Only the latest acknowledgement tells what the receiver lacks.
    #[cold]
    pub(super) fn selectively_acknowledged(
        &mut self,
        seen: &Observed<'_>,
        is_latest: bool,
        wait: u64,
        counts: &mut Counts,
        ledger: &mut Ledger,
    ) {
        counts.sacks = counts.sacks.saturating_add(1);
        let options = &seen.segment.tcp.options;
        let number = seen.segment.tcp.acknowledgement;
        let blocks = options.sack.get(..usize::from(options.sack_count)).unwrap_or_default();
        let mut blocks = blocks;
        if let Some((low, high)) = reported_twice(seen) {
            counts.dsacks = counts.dsacks.saturating_add(1);
            // With the echo of a stamp that was not seen it is of a segment that was not seen.
            let echo = options.timestamps.map_or(self.stamp, |(_, echo)| echo);
            if self.stamp == 0 || delta(echo, self.stamp) <= 0 {
                self.was_unnecessary(low, high);
                ledger.came_twice(seen, (low, high), wait);
            }
            blocks = blocks.get(1..).unwrap_or_default();
        }
        for &(_, high) in blocks {
            let beyond = !self.is(bit::SACKED) || delta(high, self.sacked) > 0;
            if beyond && delta(high, self.una) > 0 && delta(high, self.next) <= 0 {
                self.sacked = high;
                self.set(bit::SACKED, true);
            }
        }
        if self.is(bit::SACKED) && is_latest {
            self.evidence_at = seen.segment.time;
            if !blocks.is_empty() && delta(number, self.next) < 0 {
                let is_open = ledger.lacks(seen, blocks, self.next);
                self.set(bit::OPEN_GAPS, is_open);
            }
        }
    }

    /// The receiver had what lies from `low` up to `high`: if the last retransmission was of it,
    /// nothing had been lost.
    fn was_unnecessary(&mut self, low: u32, high: u32) {
        let covers = delta(self.last_repeat, low) >= 0 && delta(self.last_repeat, high) < 0;
        if !covers || !matches!(self.last_class, Class::Timeout | Class::Fast) {
            return;
        }
        let class = self.last_class;
        let count = self.counter(class);
        if *count > 0 {
            *count -= 1;
            self.count(Class::Unnecessary);
        }
        self.last_class = Class::Unnecessary;
    }
}
