//! One direction of a TCP connection put in order: bytes, gaps with their causes, and the end.
//!
//! Positions are relative: the SYN is 0 and the first byte of data is 1. What was seen first wins
//! where segments overlap. An urgent byte is passed over where the receiver reads it apart.

use netsniff_packet::Timestamp;

use super::fingerprint::Fingerprints;
use super::out_of_order::{OutOfOrderQueue, Segment};
pub use super::piece::{ArrivedSegment, GapCause, HoleEndings, Piece, ReassemblyContext, Sink};
use super::recent::{Compared, Recent};
use crate::limits::Limits;

mod ending;
mod urgent;
mod withdrawal;

/// The largest window, RFC 7323, 2.3.
const MAX_WINDOW: u64 = 1 << 30;

/// One direction of a connection.
#[derive(Debug)]
pub struct StreamReassembler {
    /// The first position that was not handed on.
    next: u64,
    /// Everything below it was acknowledged; 0 as long as nothing was heard of the receiver.
    acknowledged: u64,
    /// A RST ended the connection.
    is_reset: bool,
    /// The position behind the last byte, once a FIN told it. The FIN counts when it is acknowledged;
    /// a FIN that was forged is refuted by an acknowledgement of what lies beyond it.
    end: u64,
    /// The urgent byte that was announced and did not come yet; `u64::MAX` where there is none. One that
    /// lies further on takes its place.
    urgent: u64,
    /// When the end was known and everything before it had come.
    end_time: Timestamp,
    has_ended: bool,
    /// Whether contradicting copies were told.
    has_contradictions: bool,
    /// Whether data behind the end was told.
    has_surplus: bool,
    /// Whether copies that cannot be compared were told.
    has_unknown: bool,
    /// What was handed on last.
    recent: Recent,
    /// What lies beyond holes. Most streams never have one.
    queue: Option<Box<OutOfOrderQueue>>,
}

impl Default for StreamReassembler {
    fn default() -> Self {
        Self {
            next: 1,
            acknowledged: 0,
            is_reset: false,
            end: u64::MAX,
            urgent: u64::MAX,
            end_time: Timestamp::default(),
            has_ended: false,
            has_contradictions: false,
            has_surplus: false,
            has_unknown: false,
            recent: Recent::default(),
            queue: None,
        }
    }
}

impl StreamReassembler {
    /// Bytes that it holds outside itself.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let queue = self.queue.as_ref().map_or(0, |it| size_of::<OutOfOrderQueue>() + it.bytes());
        queue + self.recent.heap_bytes()
    }

    /// Whether nothing of it was seen.
    #[must_use]
    pub const fn is_untouched(&self) -> bool {
        self.next == 1 && self.end == u64::MAX && self.queue.is_none()
    }

    /// Whether everything up to a position was handed on, and nothing waits.
    #[must_use]
    pub const fn has_handed_on(&self, reach: u64) -> bool {
        reach <= self.next && self.queue.is_none()
    }

    /// Bytes that it holds beyond holes, to give back what all streams hold together.
    #[must_use]
    pub fn held(&self) -> usize {
        self.queue.as_ref().map_or(0, |queue| queue.bytes())
    }

    /// Takes what a segment brought.
    #[inline]
    pub fn arrive(
        &mut self,
        it: &ArrivedSegment<'_>,
        around: &mut ReassemblyContext<'_>,
        to: &mut impl Sink,
    ) {
        if self.is_reset && !it.is_doubtful {
            let doubtful = ArrivedSegment { is_doubtful: true, ..*it };
            return self.arrive(&doubtful, around, to);
        }
        let len = (it.data.len() as u64).saturating_add(it.missing);
        let reach = it.position.saturating_add(len);
        if it.position < self.next || reach > self.end {
            self.look_back(it, reach, around.keys, to);
        }
        let is_sure = !it.is_doubtful || reach <= self.acknowledged;
        if let Some(urgent) = it.urgent.filter(|_| is_sure) {
            self.announce(urgent);
        }
        if self.has_ended || reach <= self.next {
            return;
        }
        if self.queue.is_none()
            && it.position <= self.next
            && reach <= self.end.min(self.urgent)
            && is_sure
            && it.urgent.is_none()
        {
            self.hand_on(it, reach, around, to);
            return;
        }
        self.hold(it, reach, around, to);
    }

    /// Looks at what comes again, or comes behind the end.
    #[cold]
    fn look_back(
        &mut self,
        it: &ArrivedSegment<'_>,
        reach: u64,
        keys: &Fingerprints,
        to: &mut impl Sink,
    ) {
        // A keep-alive has any byte in the place of the last one, which may be the FIN (RFC 9293,
        // 3.8.4). What was acknowledged is asked again so, and the SYN before anything was said.
        if it.data.len() <= 1 && (reach <= self.acknowledged.max(1) || reach > self.end) {
            return;
        }
        if reach > self.end {
            self.note_surplus(to);
        }
        match self.recent.compare(it.data, it.position, self.next, self.acknowledged, keys) {
            Compared::Differs => self.note_contradiction(to),
            Compared::Unknown => self.note_unknown(to),
            Compared::Agrees => {}
        }
    }

    fn note_unknown(&mut self, to: &mut impl Sink) {
        if !core::mem::replace(&mut self.has_unknown, true) {
            to.oddity("retransmission_not_compared");
        }
    }

    fn note_contradiction(&mut self, to: &mut impl Sink) {
        if !core::mem::replace(&mut self.has_contradictions, true) {
            to.oddity("retransmission_inconsistency");
        }
    }

    fn note_surplus(&mut self, to: &mut impl Sink) {
        if !core::mem::replace(&mut self.has_surplus, true) {
            to.oddity("data_after_FIN");
        }
    }

    /// Hands on what continues the stream.
    #[inline]
    fn hand_on(
        &mut self,
        it: &ArrivedSegment<'_>,
        high: u64,
        around: &mut ReassemblyContext<'_>,
        to: &mut impl Sink,
    ) {
        let from = usize::try_from(self.next - it.position).unwrap_or(usize::MAX);
        let wanted = usize::try_from(high - self.next).unwrap_or(usize::MAX);
        let fresh = it.data.get(from..).unwrap_or_default();
        let fresh = fresh.get(..wanted).unwrap_or(fresh);
        if !fresh.is_empty() {
            let fingerprint = Some(around.keys.of(fresh));
            self.recent.note(fresh.len() as u64, fingerprint, self.next, self.acknowledged);
            self.next += fresh.len() as u64;
            if let Some(queue) = &mut self.queue {
                queue.told = queue.told.max(it.time);
            }
            to.piece(it.time, self.next, Piece::Bytes(fresh));
        }
        if high > self.next {
            self.gap(it.time, high, GapCause::Snaplen, around.endings, to);
        }
        if self.end != u64::MAX {
            self.end_time = self.end_time.max(it.time);
            self.note_end(to);
        }
    }

    #[cold]
    fn hold(
        &mut self,
        it: &ArrivedSegment<'_>,
        high: u64,
        around: &mut ReassemblyContext<'_>,
        to: &mut impl Sink,
    ) {
        let is_filling = it.position <= self.next
            && self.queue.as_ref().is_some_and(|held| held.first().is_none_or(|at| at > self.next));
        let queue = self.queue.get_or_insert_with(|| Box::new(OutOfOrderQueue::new(it.time)));
        let before = queue.bytes();
        // What lies behind a FIN stands apart.
        let middle = high.min(self.end);
        let is_contradicted = queue.insert(it, self.next, middle, around.overlap)
            | queue.insert(it, self.next.max(middle), high, around.overlap);
        if let Some(urgent) = it.urgent {
            queue.mark_urgent(urgent, it.is_doubtful);
        }
        *around.held_in_all = (*around.held_in_all + queue.bytes()).saturating_sub(before);
        if is_contradicted {
            self.note_contradiction(to);
        }
        around.endings.filled += u64::from(is_filling);
        self.release(it.time, it.time, around, to);
        self.judge_acknowledgement(it.time, around.limits);
        while let Some(queue) = &self.queue
            && (queue.bytes() > around.limits.stream_held_bytes
                || *around.held_in_all > around.limits.streams_held_bytes
                || queue.ranges() > around.limits.tcp_ranges)
        {
            self.give_up(it.time, GapCause::Bound, around, to);
        }
    }

    /// Notes that everything below `position` was acknowledged, `now`.
    #[inline]
    pub fn acknowledge(
        &mut self,
        position: u64,
        now: Timestamp,
        around: &mut ReassemblyContext<'_>,
        to: &mut impl Sink,
    ) {
        // Further than the largest window (RFC 7323, 2.3) nobody can be.
        if position > self.acknowledged && position.saturating_sub(self.next) <= MAX_WINDOW {
            self.acknowledged = position;
            if self.has_ended {
                return;
            }
            if self.end != u64::MAX || self.queue.is_some() {
                self.acknowledged_what_waits(now, around, to);
            }
            if position > self.next && !self.has_ended {
                self.judge_acknowledgement(now, around.limits);
            }
        }
    }

    /// An acknowledgement says whether a FIN was one, and lets doubtful segments count.
    #[cold]
    fn acknowledged_what_waits(
        &mut self,
        now: Timestamp,
        around: &mut ReassemblyContext<'_>,
        to: &mut impl Sink,
    ) {
        if self.end != u64::MAX && self.acknowledged > self.end + 1 {
            self.end = u64::MAX;
        }
        self.release(Timestamp::from_nanos(i64::MIN), now, around, to);
        self.note_end(to);
        if self.has_ended {
            self.drop_held(around);
        }
    }

    /// Lets go of what lies behind the end.
    fn drop_held(&mut self, around: &mut ReassemblyContext<'_>) {
        if let Some(queue) = self.queue.take() {
            *around.held_in_all = around.held_in_all.saturating_sub(queue.bytes());
        }
    }

    /// Begins to wait for what was acknowledged but not seen. One byte may as well be a FIN.
    #[cold]
    fn judge_acknowledgement(&mut self, time: Timestamp, limits: &Limits) {
        let reached = self.acknowledged.min(self.end);
        let Some(first) = self.queue.as_ref().map(|queue| queue.first()) else {
            if reached > self.next + 1 || (reached > self.next && self.end != u64::MAX) {
                self.queue = Some(Box::new(OutOfOrderQueue::new(time)));
                self.wait(time, limits);
            }
            return;
        };
        let is_known_missing = match first {
            Some(first) => reached > self.next && first > self.next,
            None => reached > self.next,
        };
        if is_known_missing {
            self.wait(time, limits);
        }
    }

    fn wait(&mut self, time: Timestamp, limits: &Limits) {
        if let Some(queue) = &mut self.queue {
            queue.due.get_or_insert(time + limits.stream_acknowledged_wait);
        }
    }

    /// Whether [`Self::expire`] may have something to do.
    #[must_use]
    #[inline]
    pub const fn is_waiting(&self) -> bool {
        self.queue.is_some()
    }

    /// Whether acknowledged bytes are waited for.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.due.is_some())
    }

    /// Notes that a RST ended the connection. What comes all the same counts once it is acknowledged,
    /// which shows that the RST did not reach its receiver; and what stands behind a hole that the
    /// receiver never acknowledged, no application had.
    pub const fn reset(&mut self) {
        self.is_reset = true;
    }

    /// Whether the receiver is known to lack what it did not acknowledge.
    const fn is_heard(&self) -> bool {
        self.acknowledged > 0
    }

    /// Gives up the holes that were waited for long enough at `now`.
    pub fn expire(
        &mut self,
        now: Timestamp,
        around: &mut ReassemblyContext<'_>,
        to: &mut impl Sink,
    ) {
        let Limits { stream_hole_timeout, stream_lack_timeout, .. } = *around.limits;
        let patience = if self.is_heard() { stream_lack_timeout } else { stream_hole_timeout };
        while let Some(queue) = &self.queue {
            if let Some(due) = queue.due
                && due <= now
            {
                let acknowledged_at = due.offset(-nanos(around.limits.stream_acknowledged_wait));
                self.give_up(acknowledged_at, GapCause::Capture, around, to);
            } else if queue.since + patience <= now
                && queue.due.is_none()
                && !(self.is_reset && self.is_heard())
                && queue.first().is_some()
            {
                self.give_up(now, GapCause::Time, around, to);
            } else {
                return;
            }
        }
    }

    /// Gives up the first hole, and hands on what lies behind it; or lets the first segment count,
    /// where that stands in no hole.
    fn give_up(
        &mut self,
        time: Timestamp,
        cause: GapCause,
        around: &mut ReassemblyContext<'_>,
        to: &mut impl Sink,
    ) {
        if self.next >= self.end {
            self.drop_held(around);
            return;
        }
        if let Some(queue) = &mut self.queue
            && queue.is_tentative_at(self.next)
        {
            queue.accept_first();
            self.release(Timestamp::from_nanos(i64::MIN), time, around, to);
            self.judge_acknowledgement(time, around.limits);
            return;
        }
        let first = self.queue.as_ref().and_then(|queue| queue.first());
        let reached = self.acknowledged.min(self.end);
        let until = match (first.map(|first| first.min(self.end)), cause) {
            (Some(first), GapCause::Capture) => first.min(reached),
            (Some(first), _) => first,
            (None, _) => reached,
        };
        if until > self.next {
            self.gap(time, until, cause, around.endings, to);
        }
        if let Some(queue) = &mut self.queue {
            queue.due = None;
        }
        self.release(time, time, around, to);
        // The next hole is as old as what lies behind it: if each were given the whole time anew, a
        // stream that gets them faster would hold ever more.
        if let Some(queue) = &mut self.queue {
            queue.since = queue.first_time().unwrap_or(queue.since);
        }
        // A part of the hole may be left that was not acknowledged yet.
        self.judge_acknowledgement(time, around.limits);
        if first.is_none() {
            self.queue = None;
        }
        if self.end != u64::MAX {
            self.end_time = self.end_time.max(time);
            self.note_end(to);
        }
    }

    /// Hands on what continues the stream out of what was held, which could not be told before
    /// `told`. What follows then is waited for from `now` on.
    fn release(
        &mut self,
        told: Timestamp,
        now: Timestamp,
        around: &mut ReassemblyContext<'_>,
        to: &mut impl Sink,
    ) {
        let Some(mut queue) = self.queue.take() else { return };
        let before = queue.bytes();
        if self.urgent != u64::MAX {
            queue.mark_urgent(self.urgent, false);
        }
        let mut has_moved = false;
        // What was doubtful came before what was told meanwhile.
        let mut time = told.max(queue.told);
        while let Some(segment) = queue.pop_at(self.next, self.acknowledged, self.end) {
            time = time.max(segment.time);
            let high = segment.high();
            let Segment { position, ref data, missing, .. } = segment;
            let urgent = None;
            let arrival =
                ArrivedSegment { time, position, data, missing, is_doubtful: false, urgent };
            if segment.is_urgent {
                self.pass_over(&arrival, around.keys, to);
            } else {
                self.hand_on(&arrival, high, around, to);
            }
            has_moved = true;
        }
        if self.urgent < self.next {
            self.urgent = u64::MAX;
        }
        *around.held_in_all = (*around.held_in_all + queue.bytes()).saturating_sub(before);
        if has_moved {
            queue.due = None;
            queue.since = now;
            queue.told = time;
        }
        if queue.first().is_some() || queue.due.is_some() {
            self.queue = Some(queue);
        }
    }

    fn gap(
        &mut self,
        time: Timestamp,
        until: u64,
        cause: GapCause,
        endings: &mut HoleEndings,
        to: &mut impl Sink,
    ) {
        let len = until - self.next;
        self.recent.note(len, None, self.next, self.acknowledged);
        self.next = until;
        endings.gaps[cause as usize] += 1;
        to.piece(time, until, Piece::Gap(len, cause));
    }
}

fn nanos(of: core::time::Duration) -> i64 {
    i64::try_from(of.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
