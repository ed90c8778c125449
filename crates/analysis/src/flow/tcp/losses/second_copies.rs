//! Data that came a second time: whether it had to.

use netsniff_packet::Timestamp;

use super::gap::Gap;
use super::stream::StreamLosses;
use super::{Again, is_past};
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
        self.take_back_early(low, high, time);
        if !matches!(again.class, Class::Timeout | Class::Fast) {
            if self.unneeded.len() >= limits.open_gaps.max(1) {
                self.unneeded.remove(0);
            }
            self.unneeded.push((low, high));
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
            self.copies.push(SecondCopy { low, high, at: time });
        }
        self.push(Gap { what, low, high, since: time, until: time, ended, cause }, limits);
    }

    /// What filled a hole came once more, so soon that both are the late packet and the one that was
    /// sent in its place: nothing was lost before the tap.
    fn take_back_early(&mut self, low: i64, high: i64, time: Timestamp) {
        let is_it = |gap: &Gap| {
            gap.cause == Cause::NetworkBefore
                && gap.ended == Ended::Filled
                && gap.overlaps(low, high)
                && !is_past(gap.until, time, REORDER)
        };
        if let Some(at) = self.gaps.iter().rposition(is_it) {
            self.gaps.remove(at);
        }
    }

    /// Second copies that are acknowledged sooner than they can have been, `least` nanoseconds after
    /// they came: the receiver had the first ones, and lacked them only because they came late.
    pub(super) fn take_back_late(&mut self, position: i64, time: Timestamp, least: u64) {
        let mut copies = core::mem::take(&mut self.copies);
        copies.retain(|copy| {
            if copy.high > position {
                return true;
            }
            if !is_past(copy.at, time, least) {
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
    pub(super) fn came_twice(&mut self, low: i64, high: i64) {
        if let Some(at) = self.unneeded.iter().position(|&(l, h)| l < high && low < h) {
            self.unneeded.remove(at);
            return;
        }
        let is_copy = |gap: &Gap| gap.is_second_copy() && gap.overlaps(low, high);
        if let Some(at) = self.gaps.iter().rposition(is_copy) {
            self.gaps.remove(at);
        }
    }
}
