//! Evidence of losses in one direction.
//!
//! A hole is judged by what ends it, in the order of `docs/losses.md`. Nothing here looks at a
//! clock: a wait is over when a packet of the same connection comes that is late enough, or with
//! the connection, so that no verdict depends on the packets of others.

use netsniff_packet::Timestamp;

use super::gap::{Proof, StreamGap};
use super::hole::{Coming, Fills, Hole, Lacking, SentAgain, Shown, Why};
use super::second_copies::{REORDER, Report, SecondCopy};
use super::{Again, Path, Revealed, Skipped, is_past, nanos};
use crate::flow::tcp::sequence::delta;
use crate::limits::Limits;
use crate::log::gaps::{Cause, Ended, Missing};

/// What is known of one direction's losses.
#[derive(Clone, Debug, Default)]
pub struct StreamLosses {
    /// Numbers that were skipped and not seen since, in order and apart.
    pub(super) holes: Vec<Hole>,
    /// What was found. Second copies stand here until a report of the receiver says that it had
    /// the first.
    pub(super) gaps: Vec<StreamGap>,
    /// Copies that the receiver cannot have needed, whose reports must not be taken for others'.
    pub(super) unneeded: Vec<(i64, i64)>,
    /// What the receiver said to have come to it twice, with packets that have no number.
    pub(super) reports: Vec<Report>,
    /// Copies of what the receiver seemed to lack, which are not acknowledged yet.
    pub(super) copies: Vec<SecondCopy>,
    /// What came after it was acknowledged, as the losses that they were if it was sent again.
    pub(super) late: Vec<StreamGap>,
    /// What filled holes last.
    fills: Fills,
    /// Data that was seen and that the receiver lacks.
    pub(super) lacking: Option<Lacking>,
    /// Where the highest hole so far ended.
    pub(super) top: i64,
    /// By how much the position of the first byte of data exceeds 1.
    shift: i64,
    /// Losses beyond those that are listed.
    pub surplus: Surplus,
    /// What came late, but within the wait.
    pub saved: RecoveredHoles,
}

/// Holes that an acknowledgement came for before their data, which then came after all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveredHoles {
    /// How many, each part of one that came by itself counted.
    pub holes: u64,
    /// Bytes of these holes.
    pub bytes: u64,
}

/// Losses for which the list has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Surplus {
    /// Number of losses.
    pub gaps: u64,
    /// Bytes that the capture lost.
    pub capture: u64,
    /// Bytes that the network lost.
    pub network: u64,
    /// Losses whose cause is unknown.
    pub unknown: u64,
    /// Losses of the capture that are proven.
    pub captures: u64,
    /// Losses that may have been late packets.
    pub assumed: u64,
}

impl StreamLosses {
    /// What was found so far.
    #[must_use]
    pub fn gaps(&self) -> &[StreamGap] {
        &self.gaps
    }

    /// Whether something is missing of which it is not known who lost it.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        !self.holes.is_empty() || self.lacking.is_some() || !self.copies.is_empty()
    }

    /// Bytes that it holds outside itself.
    #[must_use]
    pub const fn heap_bytes(&self) -> usize {
        self.holes.capacity() * size_of::<Hole>()
            + self.gaps.capacity() * size_of::<StreamGap>()
            + self.unneeded.capacity() * size_of::<(i64, i64)>()
            + self.reports.capacity() * size_of::<Report>()
            + self.copies.capacity() * size_of::<SecondCopy>()
            + self.late.capacity() * size_of::<StreamGap>()
    }

    /// Forgets what is open, since the numbers begin anew.
    pub(super) fn begin_anew(&mut self) {
        self.holes.clear();
        self.unneeded.clear();
        self.reports.clear();
        self.copies.clear();
        self.late.clear();
        self.lacking = None;
        (self.top, self.shift) = (0, 0);
    }

    /// The first byte of data stands at `position`.
    pub(super) const fn begin_at(&mut self, position: i64) {
        self.shift = position - 1;
        self.top = position;
    }

    /// By how much the position of the first byte of data exceeds 1.
    pub(super) const fn shift(&self) -> i64 {
        self.shift
    }

    /// The numbers from `low` up to `high` were skipped.
    pub(super) fn skip(&mut self, low: i64, high: i64, revealed: Revealed, limits: &Limits) {
        // What an acknowledgement alone told of before is known.
        let low = low.max(self.top);
        self.top = self.top.max(high);
        if low >= high {
            return;
        }
        let (acknowledged, echo, lacked, got) = (None, None, None, None);
        let hole = Hole { low, high, revealed, acknowledged, echo, lacked, got };
        self.add(self.holes.len(), hole, revealed.at, limits);
    }

    /// Adds a hole before the one at `index`, however it came about: skipped, or split from another.
    /// Where there are too many, the oldest is given up. Returns the index behind it.
    fn add(&mut self, index: usize, hole: Hole, time: Timestamp, limits: &Limits) -> usize {
        let mut index = index;
        if self.holes.len() >= limits.open_gaps.max(1) {
            if index == 0 {
                self.give_up(hole, time, limits);
                return 0;
            }
            let oldest = self.holes.remove(0);
            self.give_up(oldest, time, limits);
            index -= 1;
        }
        self.holes.insert(index, hole);
        index + 1
    }

    /// What is known of the first hole that has a number in common with those from `low` up to
    /// `high`.
    pub(super) fn hole(&self, low: i64, high: i64) -> Option<Skipped> {
        let at = self.holes.partition_point(|hole| hole.high <= low);
        let hole = self.holes.get(at).filter(|hole| hole.low < high)?;
        let lacked = hole.lacked.map(|shown| shown.since);
        Some(Skipped { revealed: hole.revealed, lacked })
    }

    /// A hole for which there is no more room.
    fn give_up(&mut self, hole: Hole, time: Timestamp, limits: &Limits) {
        let gap = hole.gap(Cause::Unknown, Ended::Bound, time);
        let gap = match hole.acknowledged {
            Some(at) => {
                StreamGap { cause: Cause::Capture, ended: Ended::Acknowledged, until: at, ..gap }
            }
            None => gap,
        };
        self.push(gap, limits);
    }

    /// The numbers from `low` up to `high` came.
    pub(super) fn fill(
        &mut self,
        low: i64,
        high: i64,
        time: Timestamp,
        coming: &Coming,
        limits: &Limits,
    ) {
        self.settle(time, limits);
        let mut index = 0;
        while let Some(hole) = self.holes.get(index).copied() {
            let (from, to) = (low.max(hole.low), high.min(hole.high));
            if from >= to {
                index += 1;
                continue;
            }
            self.holes.remove(index);
            self.fills.note(from, to, time);
            for part in [Hole { high: from, ..hole }, Hole { low: to, ..hole }] {
                if part.low < part.high {
                    index = self.add(index, part, time, limits);
                }
            }
            self.filled(Hole { low: from, high: to, ..hole }, time, coming, limits);
        }
    }

    fn filled(&mut self, part: Hole, time: Timestamp, coming: &Coming, limits: &Limits) {
        if let Some(at) = part.acknowledged {
            self.filled_late(&part, at, coming, limits);
            return;
        }
        let is_loss = match coming.why {
            Why::Reordered(answer) => {
                let answered = |at| answer.is_some_and(|answer| is_past(at, time, answer));
                part.lacked.is_some_and(|shown| answered(shown.since))
            }
            Why::SentAgain | Why::SentLater => true,
            Why::Unneeded => {
                self.push(part.gap(Cause::Capture, Ended::Acknowledged, time), limits);
                false
            }
        };
        if is_loss {
            let gap = part.gap(Cause::NetworkBefore, Ended::Filled, time);
            // One that was late may have come since.
            let soon = coming.sent.map_or(0, |sent| sent.soon);
            let is_long = part.lacked.is_some_and(|shown| shown.is_long(soon));
            let proof = if is_long { Proof::Lacked } else { Proof::None };
            let is_proven = coming.why == Why::SentLater;
            let is_soon = coming.is_hasty || !is_past(part.revealed.at, time, REORDER);
            let is_assumed = !is_proven && is_soon;
            self.push(StreamGap { proof, is_assumed, ..gap }, limits);
            if part.lacked.is_none() {
                self.watch_fill(&part, time, coming, limits);
            }
        }
    }

    /// What was acknowledged `at` some time came within the wait after that: the capture has it late,
    /// unless it was surely sent again. A D-SACK may still tell that it was.
    fn filled_late(&mut self, part: &Hole, at: Timestamp, coming: &Coming, limits: &Limits) {
        let lost = part.gap(Cause::Capture, Ended::Acknowledged, at);
        let stamp = coming.sent.and_then(|sent| sent.stamp);
        let is_newer = stamp.zip(part.echo).is_some_and(|(it, echo)| delta(it, echo) > 0);
        if coming.why == Why::SentLater || is_newer {
            self.push(lost, limits);
            self.expect_report(part.low, part.high, limits);
            return;
        }
        let bytes = (part.high - part.low).max(0).unsigned_abs();
        self.saved.holes = self.saved.holes.saturating_add(1);
        self.saved.bytes = self.saved.bytes.saturating_add(bytes);
        if self.late.len() < limits.open_gaps {
            self.late.push(lost);
        }
    }

    /// The numbers from `low` up to `high`, or parts of them, came again.
    pub(super) fn copy(
        &mut self,
        low: i64,
        high: i64,
        time: Timestamp,
        again: &Again,
        limits: &Limits,
    ) {
        let sent = SentAgain::of(again, high);
        let coming = Coming::of(again, high);
        // What lies between holes was seen before.
        let mut from = low;
        let mut index = 0;
        while from < high {
            while self.holes.get(index).is_some_and(|hole| hole.high <= from) {
                index += 1;
            }
            let (hole_low, hole_high) =
                self.holes.get(index).map_or((high, high), |hole| (hole.low, hole.high));
            let to = hole_low.min(high);
            if from < to {
                self.second(from, to, time, again, &sent, limits);
            }
            from = to.max(hole_high).max(from + 1);
        }
        if let Some(lacking) = &mut self.lacking
            && low <= lacking.low
            && lacking.low < high
        {
            lacking.is_repaired = true;
            lacking.repaired = time;
        }
        self.fill(low, high, time, &coming, limits);
    }

    /// The receiver has everything below `position`.
    pub(super) fn acknowledge(
        &mut self,
        position: i64,
        time: Timestamp,
        path: &Path,
        limits: &Limits,
    ) {
        self.settle(time, limits);
        if !self.copies.is_empty() {
            self.take_back_late(position, time, path, limits);
        }
        let mut index = 0;
        while let Some(hole) = self.holes.get_mut(index).filter(|hole| hole.low < position) {
            index += 1;
            if hole.acknowledged.is_some() {
                continue;
            }
            let above = Hole { low: position, ..*hole };
            hole.high = hole.high.min(position);
            hole.acknowledged = Some(time);
            hole.echo = path.echo.filter(|_| hole.low == position - path.advance);
            let below = *hole;
            if above.low < above.high {
                index = self.add(index, above, time, limits);
            }
            let least = path.rtt.unwrap_or(path.reorder);
            let until = below.got.unwrap_or(time);
            if below.lacked.is_some_and(|lacked| is_past(lacked.since, until, least))
                && is_past(below.revealed.at, until, path.reorder)
            {
                // It was lost and sent again, and the capture lost what was sent again.
                self.push(below.gap(Cause::NetworkBefore, Ended::Filled, until), limits);
            }
        }
        if let Some(lacking) = self.lacking.take_if(|lacking| lacking.low < position) {
            self.prove_copies(&lacking, path);
            self.repaired_unseen(&lacking, position, time, path, limits);
        }
    }

    /// The receiver has nothing at `position`, but has `blocks` of what comes later, which was sent up to
    /// `next`: all of them, if the list is complete.
    pub(super) fn lacks(
        &mut self,
        position: i64,
        blocks: &[(i64, i64)],
        is_complete: bool,
        next: i64,
        time: Timestamp,
    ) {
        let highest = blocks.iter().map(|&(_, high)| high).max();
        let edge = blocks.iter().map(|&(low, _)| low).filter(|&low| low > position).min();
        let has = |hole: &Hole| blocks.iter().any(|&(l, h)| l < hole.high && hole.low < h);
        let end = highest.filter(|_| is_complete).unwrap_or(position + 1);
        let has_all = |hole: &Hole| blocks.iter().any(|&(l, h)| l <= hole.low && hole.high <= h);
        for hole in &mut self.holes {
            if has_all(hole) {
                hole.got.get_or_insert(time);
            } else if hole.low < end
                && position < hole.high
                && hole.acknowledged.is_none()
                && !has(hole)
            {
                hole.lacked.get_or_insert(Shown::at(time)).last = time;
            }
        }
        let top = highest.unwrap_or(next);
        let is_seen = !self.holes.iter().any(|hole| hole.low <= position && position < hole.high);
        if let Some(lacking) = self.lacking.as_mut().filter(|lacking| lacking.low == position) {
            lacking.shown.last = time;
            lacking.top = lacking.top.max(top);
        } else if is_seen {
            let came = self.gaps.iter().rev().find(|gap| gap.overlaps(position, position + 1));
            let unneeded = self.unneeded.iter().any(|&(l, h)| l <= position && position < h);
            self.lacking = Some(Lacking {
                low: position,
                high: edge.unwrap_or(position),
                top,
                shown: Shown::at(time),
                passed: self.fills.last(position),
                is_repaired: unneeded || came.is_some(),
                repaired: came.map_or(Timestamp::MIN, |gap| gap.until),
            });
        }
    }

    /// Ends the waits that are over at `time`.
    fn settle(&mut self, time: Timestamp, limits: &Limits) {
        let wait = nanos(limits.stream_acknowledged_wait);
        let mut index = 0;
        while let Some(hole) = self.holes.get(index).copied() {
            match hole.acknowledged {
                Some(at) if is_past(at, time, wait) => {
                    self.holes.remove(index);
                    self.push(hole.gap(Cause::Capture, Ended::Acknowledged, at), limits);
                }
                _ => index += 1,
            }
        }
    }

    /// Everything at the end: what was found, and what is open. Below `acknowledged` the receiver
    /// has everything; `reports` tells in how many nanoseconds it would have reported what came to it twice
    /// (RFC 2883), if it does; `last` is the time of the last packet.
    pub(super) fn finish(
        &self,
        acknowledged: i64,
        reports: Option<u64>,
        last: Timestamp,
        take: &mut dyn FnMut(StreamGap),
    ) {
        for gap in &self.gaps {
            let mut gap = *gap;
            if gap.is_second_copy()
                && reports.is_some_and(|wait| is_past(gap.until, last, wait.saturating_sub(1)))
                && gap.high <= acknowledged
                && gap.proof != Proof::Unsure
            {
                // It reported no second copy, so the first one was lost.
                gap.cause = Cause::NetworkBehind;
            }
            take(gap);
        }
        for hole in &self.holes {
            let parts = [
                (hole.low, hole.high.min(acknowledged), true),
                (hole.low.max(acknowledged), hole.high, false),
            ];
            for (low, high, is_acknowledged) in parts {
                if low >= high {
                    continue;
                }
                let part = Hole { low, high, ..*hole };
                take(match hole.acknowledged {
                    Some(at) => part.gap(Cause::Capture, Ended::Acknowledged, at),
                    None if is_acknowledged => part.gap(Cause::Capture, Ended::Acknowledged, last),
                    // The receiver lacked it, so the capture missed nothing.
                    None if hole.lacked.is_some() => {
                        part.gap(Cause::NetworkBefore, Ended::EndOfFlow, last)
                    }
                    None => part.gap(Cause::Unknown, Ended::EndOfFlow, last),
                });
            }
        }
    }

    /// Adds a loss to the list, or to the sums where that is full.
    pub(super) fn push(&mut self, gap: StreamGap, limits: &Limits) {
        if let Some(last) = self.gaps.last_mut()
            && last.is_continued_by(&gap)
        {
            (last.high, last.until) = (gap.high, gap.until);
            last.is_assumed |= gap.is_assumed;
            return;
        }
        if self.gaps.len() < limits.listed_gaps {
            self.gaps.push(gap);
            return;
        }
        let bytes = if gap.what == Missing::Data { gap.bytes(self.shift) } else { 0 };
        let Surplus { gaps, capture, network, unknown, captures, assumed } = &mut self.surplus;
        *gaps = gaps.saturating_add(1);
        *assumed = assumed.saturating_add(gap.is_assumed.into());
        match gap.cause {
            Cause::Capture => {
                *capture = capture.saturating_add(bytes);
                *captures = captures.saturating_add((!gap.is_assumed).into());
            }
            Cause::NetworkBefore | Cause::NetworkBehind => {
                *network = network.saturating_add(bytes);
            }
            Cause::Unknown => *unknown += u64::from(!gap.is_second_copy()),
        }
    }
}
