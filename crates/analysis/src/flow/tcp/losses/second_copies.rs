//! Data that came a second time: whether it had to.

use netsniff_packet::Timestamp;

use super::gap::{Proof, StreamGap};
use super::hole::{Coming, Hole, Lacking, SentAgain, Shown};
use super::reports::rest;
use super::stream::StreamLosses;
use super::{Again, Class, Path, is_past};
use crate::flow::tcp::sequence::delta;
use crate::limits::Limits;
use crate::log::gaps::{Cause, Ended, Missing};

/// How late packets are that another way, a queue or a radio delays, as Wireshark has it; nanoseconds.
pub(super) const REORDER: u64 = 3_000_000;

/// Data that was sent again: a second copy of what the receiver seemed to lack, or what filled a hole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SecondCopy {
    low: i64,
    high: i64,
    at: Timestamp,
    sent: SentAgain,
    /// Whether it filled a hole, and sooner than it can have been sent for that.
    fills: bool,
    is_soon: bool,
    /// Whether it was acknowledged, and nothing beyond it.
    has_step: bool,
}

impl SecondCopy {
    /// Whether the receiver had an earlier copy, since it acknowledges this one sooner than it can: by the
    /// stamp that it echoes (RFC 3522), by what it has not got yet though it was sent well before the
    /// copy, or by the time.
    fn before(&self, position: i64, time: Timestamp, path: &Path) -> Before {
        let is_exact = self.low == position - path.advance;
        if let Some((stamp, echo)) = self.sent.stamp.zip(path.echo).filter(|_| is_exact) {
            if delta(echo, stamp) < 0 {
                return Before::Another;
            }
            // With a stamp that nothing before it had, this one advanced the receiver.
            if self.sent.is_newest && echo == stamp && path.reports_nothing {
                return Before::Nothing;
            }
        }
        let len = self.high - self.low;
        let is_well_before = self.sent.next - position > len * OVERTAKEN;
        if is_well_before && path.has_nothing_beyond {
            return Before::Another;
        }
        // Without SACK the next hole may lie there. If the receiver goes on step by step, none does.
        let is_before = self.sent.next - position >= len;
        if self.is_soon && is_before && !path.has_sack {
            if position == self.high {
                return Before::NotYetKnown;
            }
            if self.has_step {
                return Before::another_if(position - self.high <= 2 * len);
            }
        }
        let least = path.least_measured.unwrap_or(0);
        match !self.has_step && !is_past(self.at, time, least) {
            true if path.is_least_sure => Before::Another,
            true => Before::Perhaps,
            false => Before::Nothing,
        }
    }
}

/// What the receiver had of the same data before a copy came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// It had an earlier copy.
    Another,
    /// It had one, unless its answers are sooner than those that were measured so far.
    Perhaps,
    /// Nothing, as far as it told.
    Nothing,
    /// The next acknowledgement tells.
    NotYetKnown,
}

impl Before {
    const fn another_if(is_another: bool) -> Self {
        if is_another { Self::Another } else { Self::Nothing }
    }
}

/// More segments in a row are not late (RFC 5681, 3.2).
const OVERTAKEN: i64 = 3;

impl StreamLosses {
    /// Numbers that were seen came a second time. Those that the receiver had shown to have were not needed, so that
    /// it reports them.
    pub(super) fn second_of_lacked(
        &mut self,
        low: i64,
        high: i64,
        time: Timestamp,
        (again, sent): (&Again, &SentAgain),
        limits: &Limits,
    ) {
        let mut lacked = vec![(low, high)];
        for (from, to) in self.held {
            let (from, to) = (from.max(low), to.min(high));
            if from < to {
                lacked = lacked.into_iter().flat_map(|range| rest(range, from, to)).collect();
                self.expect_report(from, to, limits);
            }
        }
        for (low, high) in lacked {
            self.second(low, high, time, again, sent, limits);
        }
    }

    /// Numbers that were seen came a second time.
    fn second(
        &mut self,
        low: i64,
        high: i64,
        time: Timestamp,
        again: &Again,
        sent: &SentAgain,
        limits: &Limits,
    ) {
        let is_double = self.is_copied_again(low, high, time, again, limits);
        if is_double || !matches!(again.class, Class::Timeout | Class::Fast) {
            self.expect_report(low, high, limits);
            return;
        }
        // What was shown before the last copy came says nothing of that one, and what was hardly shown nothing for sure.
        let is_asked_for = again.class == Class::Fast && !again.is_hasty;
        let is_covered = |lacking: &Lacking| low <= lacking.low && lacking.low < high;
        let is_lacked = match self.lacking.filter(is_covered) {
            Some(lacking) if lacking.is_shown_since(again) => true,
            Some(lacking) => is_asked_for && !lacking.is_repaired,
            None => is_asked_for,
        };
        if again.may_be_doubled && !is_lacked {
            return;
        }
        if self.passed.within(low, high).is_some() {
            // It may fill a hole that was forgotten.
            self.doubt();
        }
        let cause = if is_lacked { Cause::NetworkBehind } else { Cause::Unknown };
        let (what, ended) = (Missing::Data, Ended::Filled);
        if is_lacked {
            let (fills, is_soon, has_step) = (false, false, false);
            let sent = *sent;
            self.watch(SecondCopy { low, high, at: time, sent, fills, is_soon, has_step }, limits);
        }
        let (since, until) = (time, time);
        let proof = Proof::None;
        let is_assumed = false;
        self.push(
            StreamGap { what, low, high, since, until, ended, cause, proof, is_assumed },
            limits,
        );
    }

    /// Waits for the acknowledgement of what filled a hole, which may be one of an earlier copy.
    pub(super) fn watch_fill(
        &mut self,
        part: &Hole,
        time: Timestamp,
        coming: &Coming,
        limits: &Limits,
    ) {
        let Some(sent) = coming.sent else { return };
        let is_soon = !is_past(part.known.revealed.at, time, sent.soon);
        let Hole { low, high, .. } = *part;
        let (fills, has_step) = (true, false);
        self.watch(SecondCopy { low, high, at: time, sent, fills, is_soon, has_step }, limits);
    }

    fn watch(&mut self, copy: SecondCopy, limits: &Limits) {
        if self.copies.len() < limits.open_gaps {
            self.copies.push(copy);
        } else {
            self.doubt();
        }
    }

    /// Whether what was sent again comes once more, sooner than its sender can have sent that, too. If
    /// it filled a hole sooner than it can have been sent for that, both are the late packet and the one
    /// that was sent in its place: nothing was lost before the tap.
    fn is_copied_again(
        &mut self,
        low: i64,
        high: i64,
        time: Timestamp,
        again: &Again,
        limits: &Limits,
    ) -> bool {
        let least = again.repair.asked_for.max(REORDER);
        let is_it = |gap: &StreamGap| {
            gap.ended == Ended::Filled
                && (gap.cause == Cause::NetworkBefore || gap.is_second_copy())
                && gap.overlaps(low, high)
                && !is_past(gap.until, time, least)
        };
        let Some(at) = self.gaps.iter().rposition(is_it) else {
            let settled = self.settled.within(low, high);
            if settled.is_some_and(|until| !is_past(until, time, least)) {
                self.doubt();
            }
            return false;
        };
        let gap = self.gaps[at];
        let soon = again.repair.behind_a_hole.max(REORDER);
        if gap.cause == Cause::NetworkBefore && !is_past(gap.since, gap.until, soon) {
            self.gaps.remove(at);
            self.keep_rest(&gap, low, high, limits);
        }
        true
    }

    /// The receiver will report that this came twice, which tells nothing of losses.
    pub(super) fn expect_report(&mut self, low: i64, high: i64, limits: &Limits) {
        if self.unneeded.len() >= limits.open_gaps.max(1) {
            let (low, high) = self.unneeded.remove(0);
            self.settled.note(low, high, Timestamp::MIN);
        }
        self.unneeded.push((low, high));
    }

    /// A packet came once more, with the numbers from `low` up to `high`.
    pub(super) fn doubled(&mut self, low: i64, high: i64, limits: &Limits) {
        if self.gaps.iter().chain(&self.late).any(|gap| gap.overlaps(low, high)) {
            self.expect_report(low, high, limits);
        }
    }

    /// The receiver showed that it lacks something still when it should have had the second copy, too:
    /// no first one brought it later.
    pub(super) fn prove_copies(&mut self, lacking: &Lacking, path: &Path) {
        // Nor is any packet late by about a round trip.
        let answer = path.least_answer.map_or(u64::MAX, |least| least.saturating_mul(2));
        let least = if lacking.shown.is_long(path.repair.behind_a_hole) { 0 } else { answer };
        let long = path.repair.behind_a_hole.max(REORDER);
        let is_it = |gap: &&mut StreamGap| {
            let is_shown = if gap.is_second_copy() {
                is_past(gap.until, lacking.shown.last, least)
            } else {
                gap.is_fill() && is_past(gap.since, lacking.shown.last, long)
            };
            is_shown && gap.overlaps(lacking.low, lacking.low + 1)
        };
        self.gaps.iter_mut().filter(is_it).for_each(|gap| gap.proof = Proof::Lacked);
    }

    /// The receiver got what it lacked. Whatever brought it was sent at least a round trip after
    /// the receiver showed the lack; if no copy was seen, the capture lost it.
    pub(super) fn repaired_unseen(
        &mut self,
        lacking: &Lacking,
        position: i64,
        time: Timestamp,
        path: &Path,
        limits: &Limits,
    ) {
        let Some(rtt) = path.rtt else { return };
        let Shown { since, last } = lacking.shown;
        // If it has more than it had, it may have got both before, and what told that is not seen.
        let until = if position > lacking.top { last } else { time };
        // The first copy may have been late on its way behind the tap, which it passed at most an answer before the lack
        // was shown: `least_answer` is half of that.
        let answer = path.least_answer.unwrap_or(rtt).saturating_mul(2).min(rtt);
        let is_late = !is_past(since, until, rtt.max(REORDER))
            || lacking.passed.is_some_and(|at| !is_past(at, until, answer + REORDER));
        if lacking.is_repaired || is_late {
            return;
        }
        // The data may have been late, and the acknowledgement that tells of it, too.
        let is_assumed = !is_past(since, until, rtt.max(2 * REORDER));
        let gap = StreamGap {
            what: Missing::Data,
            low: lacking.low,
            high: lacking.high.min(position),
            since,
            until: time,
            ended: Ended::Filled,
            cause: Cause::NetworkBehind,
            proof: Proof::Lacked,
            is_assumed,
        };
        self.push(gap, limits);
        let ended = Ended::Acknowledged;
        let again =
            StreamGap { what: Missing::Retransmission, cause: Cause::Capture, ended, ..gap };
        self.push(again, limits);
    }

    /// Copies that are acknowledged sooner than they can have been: the receiver had the first ones, and
    /// lacked them only because they came late. If those were not seen, the capture lost them.
    pub(super) fn take_back_late(
        &mut self,
        position: i64,
        time: Timestamp,
        path: &Path,
        limits: &Limits,
    ) {
        let mut copies = core::mem::take(&mut self.copies);
        copies.retain_mut(|copy| {
            if copy.high > position {
                return true;
            }
            // A step to what was sent again since tells of that.
            let is_told_apart = copy.has_step && self.came_since(copy, position);
            let before =
                if is_told_apart { Before::Nothing } else { copy.before(position, time, path) };
            match before {
                Before::Another | Before::Perhaps => {}
                Before::Nothing => return false,
                Before::NotYetKnown => {
                    copy.has_step = true;
                    return true;
                }
            }
            let is_it = |gap: &StreamGap| {
                (gap.since..=gap.until).contains(&copy.at)
                    && gap.overlaps(copy.low, copy.high)
                    && if copy.fills {
                        gap.cause == Cause::NetworkBefore
                    } else {
                        gap.is_second_copy()
                    }
            };
            let Some(at) = self.gaps.iter().rposition(is_it) else {
                let settled = self.settled.within(copy.low, copy.high);
                self.surplus.is_doubtful |= settled.is_some_and(|until| until >= copy.at);
                return false;
            };
            match (copy.fills, before) {
                (true, Before::Perhaps) => self.gaps[at].is_assumed = true,
                (true, _) => self.give_to_capture(at, copy.low, copy.high, limits),
                // Where nothing may have been lost, nothing is told.
                (false, _) => drop(self.gaps.remove(at)),
            }
            false
        });
        self.copies = copies;
    }

    /// Whether what lies behind a copy, up to `position`, came again since.
    fn came_since(&self, copy: &SecondCopy, position: i64) -> bool {
        let is_later = |gap: &StreamGap| gap.ended == Ended::Filled && gap.until > copy.at;
        let is_needed = |gap: &StreamGap| is_later(gap) && gap.overlaps(copy.high, position);
        let is_unneeded = |&(low, high): &(i64, i64)| low < position && copy.high < high;
        self.gaps.iter().any(is_needed) || self.unneeded.iter().any(is_unneeded)
    }

    /// What a loss has from `low` up to `high` turns out to be lost by the capture, since the receiver had it. Where
    /// the capture has not got what was sent again either, that is its second loss of the same numbers.
    pub(super) fn give_to_capture(&mut self, at: usize, low: i64, high: i64, limits: &Limits) {
        let Some(whole) = self.gaps.get(at).copied() else { return };
        let (low, high) = (whole.low.max(low), whole.high.min(high));
        let is_same = |other: &StreamGap| {
            other.cause == Cause::Capture
                && other.what == Missing::Data
                && other.overlaps(low, high)
        };
        let is_open = |hole: &Hole| hole.known.acknowledged.is_some() && hole.overlaps(low, high);
        if self.settled.within(low, high).is_some() {
            self.doubt();
        }
        let is_second = self.gaps.iter().any(is_same) || self.open_holes().any(is_open);
        let what = if is_second { Missing::Retransmission } else { whole.what };
        let Some(gap) = self.gaps.get_mut(at) else { return };
        *gap = StreamGap { what, low, high, ..whole };
        gap.lost_by_capture();
        self.keep_rest(&whole, low, high, limits);
    }

    /// Of a loss that many segments ended, what lies outside `low` to `high` stays as it was.
    pub(super) fn keep_rest(&mut self, whole: &StreamGap, low: i64, high: i64, limits: &Limits) {
        let below = StreamGap { high: whole.high.min(low), ..*whole };
        let above = StreamGap { low: whole.low.max(high), ..*whole };
        for rest in [below, above] {
            if rest.low < rest.high {
                self.push(rest, limits);
            }
        }
    }
}
