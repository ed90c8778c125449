//! Evidence of losses in one direction.
//!
//! A hole is judged by what ends it, in the order of `docs/losses.md`. Nothing here looks at a
//! clock: a wait is over when a packet of the same connection comes that is late enough, or with
//! the connection, so that no verdict depends on the packets of others.

use netsniff_packet::Timestamp;

use super::gap::{Proof, StreamGap};
use super::hole::{Coming, Evidence, Fills, Hole, Lacking, SentAgain, Shown, Why};
use super::reports::Report;
use super::second_copies::{REORDER, SecondCopy};
use super::surplus::{Ending, Forgotten, Surplus};
use super::{Again, Path, Revealed, Skipped, Unseen, is_past, nanos};
use crate::flow::tcp::coverage::Coverage;
use crate::flow::tcp::sequence::delta;
use crate::limits::Limits;
use crate::log::gaps::{Cause, Ended};

/// Holes that are remembered after they were given up, so that what fills them is not taken for data
/// that was sent again.
const REMEMBERED: usize = 8;

/// What is known of one direction's losses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamLosses {
    /// Numbers that were skipped and not seen since.
    pub(super) coverage: Coverage<Evidence>,
    /// What was found. Second copies stand here until a report of the receiver says that it had
    /// the first.
    pub(super) gaps: Vec<StreamGap>,
    /// Copies that the receiver cannot have needed, whose reports must not be taken for others'.
    pub(super) unneeded: Vec<(i64, i64)>,
    /// What the receiver said to have come to it twice.
    pub(super) reports: Vec<Report>,
    /// Copies of what the receiver seemed to lack, which are not acknowledged yet.
    pub(super) copies: Vec<SecondCopy>,
    /// What came after it was acknowledged, as the losses that they were if it was sent again.
    pub(super) late: Vec<StreamGap>,
    /// What filled holes last.
    fills: Fills,
    /// What the receiver showed last to have beyond what it acknowledges; ranges without a number are none.
    pub(super) held: [(i64, i64); 4],
    /// Data that was seen and that the receiver lacks.
    pub(super) lacking: Option<Lacking>,
    /// By how much the position of the first byte of data exceeds 1.
    pub(super) shift: i64,
    /// Losses beyond those that are listed and those that evidence may come for.
    pub(super) surplus: Surplus,
    /// Where losses, and copies that were not needed, were forgotten that reports of the receiver may still be about.
    pub(super) settled: Forgotten,
    /// Where holes were forgotten that may still be filled.
    pub(super) passed: Forgotten,
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

impl StreamLosses {
    /// What was found so far.
    #[must_use]
    pub fn gaps(&self) -> &[StreamGap] {
        &self.gaps
    }

    /// Whether something is missing of which it is not known who lost it, or that may come in order yet.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let is_open = |hole: &Hole| !hole.known.is_given_up || hole.known.is_ahead;
        self.coverage.holes().iter().any(is_open)
            || self.lacking.is_some()
            || !self.copies.is_empty()
    }

    /// Bytes that it holds outside itself.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.coverage.heap_bytes()
            + self.gaps.capacity() * size_of::<StreamGap>()
            + self.unneeded.capacity() * size_of::<(i64, i64)>()
            + self.reports.capacity() * size_of::<Report>()
            + self.copies.capacity() * size_of::<SecondCopy>()
            + self.late.capacity() * size_of::<StreamGap>()
    }

    /// Forgets what is open, since the numbers begin anew.
    pub(super) fn begin_anew(&mut self) {
        self.coverage = Coverage::default();
        self.unneeded.clear();
        self.reports.clear();
        self.copies.clear();
        self.late.clear();
        (self.lacking, self.held) = (None, Default::default());
        (self.settled, self.passed) = (Forgotten::default(), Forgotten::default());
        self.shift = 0;
    }

    /// The first byte of data stands at `position`.
    pub(super) fn begin_at(&mut self, position: i64) {
        self.shift = position - 1;
        self.coverage.begin_at(position);
    }

    /// By how much the position of the first byte of data exceeds 1.
    pub(in crate::flow::tcp) const fn shift(&self) -> i64 {
        self.shift
    }

    /// The numbers from `low` up to `high` were skipped. What an acknowledgement alone told of before is
    /// known. What lies before the begin is no loss, and not seen either.
    pub(super) fn skip(&mut self, low: i64, high: i64, known: Evidence, limits: &Limits) {
        let begin = self.shift.min(0);
        self.coverage.skip(low, high.min(begin), Evidence { is_given_up: true, ..known });
        self.coverage.skip(low.max(begin), high, known);
        self.keep_within(known.revealed.at, limits);
    }

    /// The sender passed over the numbers from `low` up to `high`.
    pub(super) fn pass(&mut self, low: i64, high: i64, revealed: Revealed, limits: &Limits) {
        self.coverage.split(high, |known| known.is_ahead);
        for hole in self.coverage.holes_mut().filter(|hole| hole.overlaps(low, high)) {
            hole.known.is_ahead = false;
        }
        self.skip(low, high, Evidence::new(revealed), limits);
    }

    /// Gives up the oldest holes where there are too many. Parts of one hole are equally old: the
    /// smallest goes, so that little is forgotten of what was not seen.
    fn keep_within(&mut self, time: Timestamp, limits: &Limits) {
        let worth = |hole: &Hole| (!hole.known.is_given_up, hole.known.revealed.at, hole.size());
        while let Some(hole) = self.coverage.surplus(limits.open_gaps.max(1), worth) {
            self.passed.note(hole.low, hole.high, time);
            if !hole.known.is_given_up {
                self.give_up(hole, time, limits);
            }
        }
    }

    /// Holes of which it is not known yet who lost them.
    pub(super) fn open_holes(&self) -> impl Iterator<Item = &Hole> {
        self.coverage.holes().iter().filter(|hole| !hole.known.is_given_up)
    }

    /// What is known of the first hole that has a number in common with those from `low` up to
    /// `high`.
    pub(super) fn hole(&self, low: i64, high: i64) -> Option<Skipped> {
        let known = self.coverage.within(low, high).find(|hole| !hole.known.is_given_up)?.known;
        let lacked = known.lacked.map(|shown| shown.since);
        Some(Skipped { revealed: known.revealed, lacked })
    }

    /// How many numbers from `low` up to `high` were not seen yet, and since when that is known.
    pub(super) fn unseen(&self, low: i64, high: i64) -> Unseen {
        let mut unseen = Unseen::default();
        for hole in self.coverage.within(low, high) {
            let since = hole.known.revealed.at;
            unseen.since = if unseen.len == 0 { since } else { unseen.since.min(since) };
            unseen.len += (high.min(hole.high) - low.max(hole.low)).unsigned_abs();
        }
        unseen
    }

    /// Whether a number below `position` was skipped and not seen since.
    pub(super) fn has_unseen_below(&self, position: i64) -> bool {
        self.coverage.next() < self.coverage.top().min(position)
    }

    /// A hole for which there is no more room. Whoever has acknowledged it, what was in it may have come within the wait.
    fn give_up(&mut self, hole: Hole, time: Timestamp, limits: &Limits) {
        self.surplus.is_doubtful = true;
        let gap = hole.gap(Cause::Unknown, Ended::Bound, time);
        let gap = match hole.known.acknowledged {
            Some(_) => StreamGap { cause: Cause::Capture, is_assumed: true, ..gap },
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
        while let Some(part) = self.coverage.fill(low, high) {
            self.keep_within(time, limits);
            if !part.known.is_given_up {
                self.fills.note(part.low, part.high, time);
                self.filled(part, time, coming, limits);
            }
        }
    }

    fn filled(&mut self, part: Hole, time: Timestamp, coming: &Coming, limits: &Limits) {
        if let Some(at) = part.known.acknowledged {
            self.filled_late(&part, at, coming, limits);
            return;
        }
        let is_loss = match coming.why {
            Why::Reordered(answer) => {
                let answered = |at| answer.is_some_and(|answer| is_past(at, time, answer));
                part.known.lacked.is_some_and(|shown| answered(shown.since))
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
            let is_long = part.known.lacked.is_some_and(|shown| shown.is_long(soon));
            let proof = if is_long { Proof::Lacked } else { Proof::None };
            let is_proven = coming.why == Why::SentLater;
            let is_soon = coming.is_hasty || !is_past(part.known.revealed.at, time, REORDER);
            let is_assumed = !is_proven && is_soon;
            self.push(StreamGap { proof, is_assumed, ..gap }, limits);
            if part.known.lacked.is_none() {
                self.watch_fill(&part, time, coming, limits);
            }
        }
    }

    /// What was acknowledged `at` some time came within the wait after that: the capture has it late,
    /// unless it was surely sent again. A D-SACK may still tell that it was.
    fn filled_late(&mut self, part: &Hole, at: Timestamp, coming: &Coming, limits: &Limits) {
        let lost = part.gap(Cause::Capture, Ended::Acknowledged, at);
        let stamp = coming.sent.and_then(|sent| sent.stamp);
        let is_newer = stamp.zip(part.known.echo).is_some_and(|(it, echo)| delta(it, echo) > 0);
        if coming.why == Why::SentLater || is_newer {
            self.push(lost, limits);
            self.expect_report(part.low, part.high, limits);
            return;
        }
        self.saved.holes = self.saved.holes.saturating_add(1);
        self.saved.bytes = self.saved.bytes.saturating_add(part.size());
        if self.late.len() < limits.open_gaps {
            self.late.push(lost);
        } else {
            self.settled.note(part.low, part.high, at);
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
        while from < high {
            let next = self.coverage.within(from, high).find(|hole| !hole.known.is_given_up);
            let (hole_low, hole_high) = next.map_or((high, high), |hole| (hole.low, hole.high));
            let to = hole_low.min(high);
            if from < to {
                self.second_of_lacked(from, to, time, (again, &sent), limits);
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
        self.coverage.split(position, |known| known.acknowledged.is_none());
        self.keep_within(time, limits);
        self.acknowledge_holes(position, time, path, limits);
        if let Some(lacking) = self.lacking.take_if(|lacking| lacking.low < position) {
            self.prove_copies(&lacking, path);
            self.repaired_unseen(&lacking, position, time, path, limits);
        }
    }

    /// Notes at the holes below `position` that the receiver has them.
    fn acknowledge_holes(&mut self, position: i64, time: Timestamp, path: &Path, limits: &Limits) {
        let least = path.rtt.unwrap_or(path.reorder);
        let mut lost = Vec::new();
        let below = self.coverage.holes_mut().take_while(|hole| hole.low < position);
        for hole in below.filter(|hole| hole.known.acknowledged.is_none()) {
            let Evidence { lacked, got, revealed, .. } = hole.known;
            hole.known.acknowledged = Some(time);
            hole.known.echo = path.echo.filter(|_| hole.low == position - path.advance);
            let until = got.unwrap_or(time);
            if lacked.is_some_and(|lacked| is_past(lacked.since, until, least))
                && is_past(revealed.at, until, path.reorder)
            {
                // It was lost and sent again, and the capture lost what was sent again.
                lost.push(hole.gap(Cause::NetworkBefore, Ended::Filled, until));
            }
        }
        for gap in lost {
            self.push(gap, limits);
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
        self.held = Default::default();
        self.held.iter_mut().zip(blocks).for_each(|(held, block)| *held = *block);
        let highest = blocks.iter().map(|&(_, high)| high).max();
        let edge = blocks.iter().map(|&(low, _)| low).filter(|&low| low > position).min();
        let has = |hole: &Hole| blocks.iter().any(|&(l, h)| l < hole.high && hole.low < h);
        let end = highest.filter(|_| is_complete).unwrap_or(position + 1);
        let has_all = |hole: &Hole| blocks.iter().any(|&(l, h)| l <= hole.low && hole.high <= h);
        for hole in self.coverage.holes_mut().filter(|hole| !hole.known.is_given_up) {
            if has_all(hole) {
                hole.known.got.get_or_insert(time);
            } else if hole.overlaps(position, end)
                && hole.known.acknowledged.is_none()
                && !has(hole)
            {
                hole.known.lacked.get_or_insert(Shown::at(time)).last = time;
            }
        }
        let top = highest.unwrap_or(next);
        let is_seen = self.hole(position, position + 1).is_none();
        if let Some(lacking) = self.lacking.as_mut().filter(|lacking| lacking.low == position) {
            lacking.shown.last = time;
            lacking.top = lacking.top.max(top);
        } else if is_seen {
            let came = self.gaps.iter().rev().find(|gap| gap.overlaps(position, position + 1));
            let unneeded = self.unneeded.iter().any(|&(l, h)| l <= position && position < h);
            // Of what is forgotten nobody knows whether it was repaired: that proves no loss.
            let came = came.map(|gap| gap.until).or(self.settled.within(position, position + 1));
            self.lacking = Some(Lacking {
                low: position,
                high: edge.unwrap_or(position),
                top,
                shown: Shown::at(time),
                passed: self.fills.last(position),
                is_repaired: unneeded || came.is_some(),
                repaired: came.unwrap_or(Timestamp::MIN),
            });
        }
    }

    /// Ends the waits that are over at `time`.
    fn settle(&mut self, time: Timestamp, limits: &Limits) {
        let wait = nanos(limits.stream_acknowledged_wait);
        let mut lost = Vec::new();
        let mut given_up = 0;
        for hole in self.coverage.holes_mut() {
            if let Some(at) = hole.known.acknowledged
                && !hole.known.is_given_up
                && is_past(at, time, wait)
            {
                hole.known.is_given_up = true;
                lost.push(hole.gap(Cause::Capture, Ended::Acknowledged, at));
            }
            given_up += usize::from(hole.known.is_given_up);
        }
        if given_up > REMEMBERED {
            let passed = &mut self.passed;
            self.coverage.retain(|hole| {
                let is_forgotten = hole.known.is_given_up && given_up > REMEMBERED;
                given_up -= usize::from(is_forgotten);
                if is_forgotten {
                    passed.note(hole.low, hole.high, time);
                }
                !is_forgotten
            });
        }
        for gap in lost {
            self.push(gap, limits);
        }
    }

    /// Everything at the end: what was found, and what is open.
    pub(in crate::flow::tcp) fn finish(&self, ending: &Ending, take: &mut dyn FnMut(StreamGap)) {
        let &Ending { acknowledged, last, .. } = ending;
        for gap in &self.gaps {
            let mut gap = *gap;
            if gap.is_second_copy()
                && ending.would_tell(gap.high, gap.until)
                && gap.proof != Proof::Unsure
            {
                // It reported no second copy, so the first one was lost.
                gap.cause = Cause::NetworkBehind;
            }
            take(gap);
        }
        for hole in self.open_holes() {
            let parts = [
                (hole.low, hole.high.min(acknowledged), true),
                (hole.low.max(acknowledged), hole.high, false),
            ];
            for (low, high, is_acknowledged) in parts {
                if low >= high {
                    continue;
                }
                let part = Hole { low, high, ..*hole };
                take(match hole.known.acknowledged {
                    Some(at) => part.gap(Cause::Capture, Ended::Acknowledged, at),
                    None if is_acknowledged => part.gap(Cause::Capture, Ended::Acknowledged, last),
                    // The receiver lacked it, so the capture missed nothing.
                    None if hole.known.lacked.is_some() => {
                        part.gap(Cause::NetworkBefore, Ended::EndOfFlow, last)
                    }
                    None => part.gap(Cause::Unknown, Ended::EndOfFlow, last),
                });
            }
        }
    }

    /// The sums of what was found and is not listed.
    pub(in crate::flow::tcp) fn surplus(&self, ending: &Ending) -> Surplus {
        self.surplus.at(ending)
    }

    /// Adds a loss to the list. Behind those that will have rows stand as many that evidence may come for yet; where these are
    /// too many, the older half goes to the sums.
    pub(super) fn push(&mut self, gap: StreamGap, limits: &Limits) {
        if let Some(last) = self.gaps.last_mut()
            && last.is_continued_by(&gap)
        {
            (last.high, last.until) = (gap.high, gap.until);
            last.is_assumed |= gap.is_assumed;
            return;
        }
        let (listed, open) = (limits.listed_gaps, limits.open_gaps.max(1));
        if self.gaps.len() >= listed + open {
            for gap in self.gaps.drain(listed..listed + open.div_ceil(2)) {
                self.surplus.add(&gap, self.shift);
                self.settled.note(gap.low, gap.high, gap.until);
            }
        }
        self.gaps.push(gap);
    }

    /// More came at once than there is room for, so that sums may be wrong.
    pub(super) const fn doubt(&mut self) {
        self.surplus.is_doubtful = true;
    }
}
