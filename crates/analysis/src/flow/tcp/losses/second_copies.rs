//! Data that came a second time: whether it had to.

use netsniff_packet::Timestamp;

use super::gap::Gap;
use super::stream::{Lacking, StreamLosses};
use super::{Again, Path, is_past};
use crate::flow::tcp::metrics::classify::Class;
use crate::limits::Limits;
use crate::log::gaps::{Cause, Ended, Missing};

/// How late packets are that another way, a queue or a radio delays, as Wireshark has it; nanoseconds.
const REORDER: u64 = 3_000_000;

/// A second copy of what the receiver seemed to lack.
#[derive(Clone, Copy, Debug)]
pub(super) struct SecondCopy {
    low: i64,
    high: i64,
    at: Timestamp,
    /// Up to where its sender had sent before.
    next: i64,
}

impl StreamLosses {
    /// Numbers that were seen came a second time.
    pub(super) fn second(
        &mut self,
        low: i64,
        high: i64,
        time: Timestamp,
        again: &Again,
        limits: &Limits,
    ) {
        let is_double = self.is_copied_again(low, high, time, again);
        if is_double || !matches!(again.class, Class::Timeout | Class::Fast) {
            self.expect_report(low, high, limits);
            return;
        }
        let is_lacked = again.class == Class::Fast
            || self.lacking.is_some_and(|lacking| low <= lacking.low && lacking.low < high);
        if again.may_be_doubled && !is_lacked {
            return;
        }
        let cause = if is_lacked { Cause::NetworkBehind } else { Cause::Unknown };
        let (what, ended) = (Missing::Data, Ended::Filled);
        if is_lacked && self.copies.len() < limits.open_gaps {
            let next = high + i64::from(again.sent_beyond);
            self.copies.push(SecondCopy { low, high, at: time, next });
        }
        let (since, until) = (time, time);
        self.push(Gap { what, low, high, since, until, ended, cause, is_proven: false }, limits);
    }

    /// Whether what was sent again comes once more, sooner than its sender can have sent that, too. If
    /// it filled a hole sooner than it can have been sent for that, both are the late packet and the one
    /// that was sent in its place: nothing was lost before the tap.
    fn is_copied_again(&mut self, low: i64, high: i64, time: Timestamp, again: &Again) -> bool {
        let least = again.repair.asked_for.max(REORDER);
        let is_it = |gap: &Gap| {
            gap.ended == Ended::Filled
                && (gap.cause == Cause::NetworkBefore || gap.is_second_copy())
                && gap.overlaps(low, high)
                && !is_past(gap.until, time, least)
        };
        let Some(at) = self.gaps.iter().rposition(is_it) else { return false };
        let gap = self.gaps[at];
        let soon = again.repair.behind_a_hole.max(REORDER);
        if gap.cause == Cause::NetworkBefore && !is_past(gap.since, gap.until, soon) {
            self.gaps.remove(at);
        }
        true
    }

    /// The receiver will report that this came twice, which tells nothing of losses.
    pub(super) fn expect_report(&mut self, low: i64, high: i64, limits: &Limits) {
        if self.unneeded.len() >= limits.open_gaps.max(1) {
            self.unneeded.remove(0);
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
        let is_it = |gap: &&mut Gap| {
            gap.is_second_copy()
                && gap.overlaps(lacking.low, lacking.low + 1)
                && is_past(gap.until, lacking.last, path.least_answer.saturating_mul(2))
        };
        self.gaps.iter_mut().filter(is_it).for_each(|gap| gap.is_proven = true);
    }

    /// Second copies that are acknowledged sooner than they can have been, by their time or because the
    /// receiver has not got yet what was sent before them: the receiver had the first ones, and lacked
    /// them only because they came late.
    pub(super) fn take_back_late(&mut self, position: i64, time: Timestamp, path: &Path) {
        let mut copies = core::mem::take(&mut self.copies);
        copies.retain(|copy| {
            if copy.high > position {
                return true;
            }
            let is_behind = path.has_nothing_beyond && position < copy.next;
            if is_behind || !is_past(copy.at, time, path.least_answer) {
                let is_it = |gap: &Gap| {
                    gap.is_second_copy()
                        && gap.until == copy.at
                        && gap.overlaps(copy.low, copy.high)
                };
                if let Some(at) = self.gaps.iter().rposition(is_it) {
                    self.gaps.remove(at);
                }
            }
            false
        });
        self.copies = copies;
    }

    /// The receiver says that what lies from `low` up to `high` came to it twice.
    pub(super) fn came_twice(&mut self, low: i64, high: i64, limits: &Limits) {
        if let Some(at) = self.unneeded.iter().position(|&(l, h)| l < high && low < h) {
            self.unneeded.remove(at);
            return;
        }
        let is_it = |gap: &Gap| gap.overlaps(low, high);
        if let Some(at) = self.late.iter().rposition(is_it) {
            // It was no late packet: the one that was sent first is missing.
            let gap = self.late.remove(at);
            self.saved.holes = self.saved.holes.saturating_sub(1);
            let bytes = (gap.high - gap.low).max(0).unsigned_abs();
            self.saved.bytes = self.saved.bytes.saturating_sub(bytes);
            self.push(gap, limits);
            return;
        }
        let is_copy = |gap: &Gap| gap.is_second_copy() && !gap.is_proven && is_it(gap);
        if let Some(at) = self.gaps.iter().rposition(is_copy) {
            self.gaps.remove(at);
            return;
        }
        let is_fill = |gap: &&mut Gap| {
            gap.cause == Cause::NetworkBefore
                && gap.ended == Ended::Filled
                && !gap.is_proven
                && is_it(gap)
        };
        if let Some(gap) = self.gaps.iter_mut().rev().find(is_fill) {
            // The receiver had it without having shown that it lacks it: the one that was sent first came
            // to it, too.
            (gap.cause, gap.ended) = (Cause::Capture, Ended::Acknowledged);
        }
    }
}
