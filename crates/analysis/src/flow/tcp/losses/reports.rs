//! What receivers say to have come to them twice (RFC 2883): which copies it was about.
//!
//! A report is about numbers, not about segments: of a copy that reached further than what the receiver had, it tells of
//! that part alone, and the rest was needed. So each number of a report accounts for one copy of that number.

use netsniff_packet::Timestamp;

use super::gap::{Proof, StreamGap};
use super::is_past;
use super::second_copies::REORDER;
use super::stream::StreamLosses;
use crate::limits::Limits;
use crate::log::gaps::Cause;

/// What a receiver says to have come to it twice (RFC 2883).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) low: i64,
    pub(super) high: i64,
    pub(super) at: Timestamp,
    /// What the segment acknowledges that says so, and its time stamps.
    pub(super) acknowledged: i64,
    pub(super) stamps: Option<(u32, u32)>,
    /// The low 16 bits of the IP identification of its packet; 0 where there is none.
    pub(super) identification: u16,
}

impl Report {
    /// Whether another one may be a double of it: it is the same and no later than packets are.
    fn may_be(&self, other: &Self) -> bool {
        Self { at: other.at, ..*self } == *other && !is_past(self.at, other.at, REORDER)
    }
}

/// Numbers of a report that no copy accounts for yet, in ranges apart from each other.
struct Unexplained(Vec<(i64, i64)>);

impl Unexplained {
    /// What some numbers have in common with the last range that has any of them.
    fn within(&self, low: i64, high: i64) -> Option<(i64, i64)> {
        let part = |&(l, h): &(i64, i64)| (l.max(low), h.min(high));
        self.0.iter().rev().map(part).find(|(low, high)| low < high)
    }

    /// A copy accounts for the numbers from `low` up to `high`.
    fn take(&mut self, low: i64, high: i64) {
        self.0 = self.0.iter().flat_map(|&range| rest(range, low, high)).collect();
    }
}

/// What a range has outside the numbers from `low` up to `high`.
pub(super) fn rest(
    (from, to): (i64, i64),
    low: i64,
    high: i64,
) -> impl Iterator<Item = (i64, i64)> {
    [(from, to.min(low)), (from.max(high), to)].into_iter().filter(|(low, high)| low < high)
}

impl StreamLosses {
    /// The receiver says that something came to it twice. It reports what passes the tap within `wait`
    /// nanoseconds.
    pub(super) fn came_twice(&mut self, report: &Report, wait: u64, limits: &Limits) {
        let is_again = self.is_told_again(report, limits);
        let mut open = Unexplained(vec![(report.low, report.high)]);
        self.explain_by_unneeded(&mut open, limits);
        if open.0.is_empty() {
            return;
        }
        if self.settled.within(report.low, report.high).is_some() {
            // It may be about what is not listed any more.
            self.doubt();
        }
        if !is_again {
            self.explain_by_late(&mut open, limits);
        }
        self.explain_by_copies(&mut open, limits);
        if !is_again {
            self.explain_by_fills(&mut open, (report.at, wait), limits);
        }
    }

    /// Takes out what copies account for that the receiver cannot have needed.
    fn explain_by_unneeded(&mut self, open: &mut Unexplained, limits: &Limits) {
        let mut at = 0;
        while let Some(&(low, high)) = self.unneeded.get(at) {
            let Some(part) = open.within(low, high) else {
                at += 1;
                continue;
            };
            open.take(part.0, part.1);
            self.unneeded.splice(at..=at, rest((low, high), part.0, part.1));
        }
        // A report from the middle makes two of one.
        while self.unneeded.len() > limits.open_gaps.max(1) {
            let (low, high) = self.unneeded.remove(0);
            self.settled.note(low, high, Timestamp::MIN);
        }
    }

    /// What seemed to be late packets were none: the ones that were sent first are missing.
    fn explain_by_late(&mut self, open: &mut Unexplained, limits: &Limits) {
        let found = |open: &Unexplained, late: &[StreamGap]| {
            late.iter()
                .enumerate()
                .rev()
                .find_map(|(at, gap)| Some((at, open.within(gap.low, gap.high)?)))
        };
        while let Some((at, (low, high))) = found(open, &self.late) {
            open.take(low, high);
            let gap = self.late[at];
            let rests = rest((gap.low, gap.high), low, high);
            let rests: Vec<_> = rests.map(|(low, high)| StreamGap { low, high, ..gap }).collect();
            self.saved.holes = self.saved.holes.saturating_sub(u64::from(rests.is_empty()));
            self.saved.bytes = self.saved.bytes.saturating_sub((high - low).unsigned_abs());
            self.late.splice(at..=at, rests);
            self.push(StreamGap { low, high, ..gap }, limits);
        }
        while self.late.len() > limits.open_gaps.max(1) {
            let gap = self.late.remove(0);
            self.settled.note(gap.low, gap.high, gap.until);
        }
    }

    /// What seemed to be lost first copies came as well: no loss.
    fn explain_by_copies(&mut self, open: &mut Unexplained, limits: &Limits) {
        let is_copy = |gap: &StreamGap| gap.is_second_copy() && gap.proof != Proof::Lacked;
        let found = |open: &Unexplained, gaps: &[StreamGap]| {
            let mut gaps = gaps.iter().enumerate().rev().filter(|(_, gap)| is_copy(gap));
            gaps.find_map(|(at, gap)| Some((at, open.within(gap.low, gap.high)?)))
        };
        while let Some((at, (low, high))) = found(open, &self.gaps) {
            open.take(low, high);
            let gap = self.gaps.remove(at);
            // Of further copies nobody knows any more whether one was lost, or a report of it, unless the
            // receiver had shown that it lacks it.
            let is_unsure = |gap: &&mut StreamGap| {
                is_copy(gap) && gap.overlaps(low, high) && gap.cause == Cause::Unknown
            };
            for gap in self.gaps.iter_mut().filter(is_unsure) {
                gap.proof = Proof::Unsure;
            }
            self.keep_rest(&gap, low, high, limits);
        }
    }

    /// The receiver had what filled holes without having shown that it lacks it: the ones that were sent first came
    /// to it, too.
    fn explain_by_fills(
        &mut self,
        open: &mut Unexplained,
        (time, wait): (Timestamp, u64),
        limits: &Limits,
    ) {
        let is_fill = |gap: &StreamGap| {
            gap.is_fill() && gap.proof != Proof::Lacked && !is_past(gap.until, time, wait)
        };
        let found = |open: &Unexplained, gaps: &[StreamGap]| {
            let mut gaps = gaps.iter().enumerate().rev().filter(|(_, gap)| is_fill(gap));
            gaps.find_map(|(at, gap)| Some((at, open.within(gap.low, gap.high)?)))
        };
        while let Some((at, (low, high))) = found(open, &self.gaps) {
            open.take(low, high);
            self.give_to_capture(at, low, high, limits);
        }
    }

    /// Whether a report may be an earlier one once more, which proves nothing of another copy: the network
    /// doubles packets, and a second one that comes late is known by nothing but what it says.
    fn is_told_again(&mut self, report: &Report, limits: &Limits) -> bool {
        if self.reports.iter().any(|known| known.may_be(report)) {
            return true;
        }
        self.reports.retain(|known| !is_past(known.at, report.at, REORDER));
        if self.reports.len() >= limits.open_gaps.max(1) {
            self.reports.remove(0);
            self.doubt();
        }
        self.reports.push(*report);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports of single bytes in the middle of what was not needed leave many ranges.
    #[test]
    fn ranges_that_wait_for_reports_are_bounded() {
        let limits = Limits::default();
        let mut stream = StreamLosses::default();
        let at = Timestamp::from_nanos(1);
        for round in 0..4 {
            stream.expect_report(0, 1_000_000, &limits);
            for position in (1..10_000).step_by(2) {
                let (low, high) = (position, position + 1);
                let identification = (position + round) as u16;
                let (acknowledged, stamps) = (1_000_000, None);
                let report = Report { low, high, at, acknowledged, stamps, identification };
                stream.came_twice(&report, 0, &limits);
                assert!(stream.unneeded.len() <= limits.open_gaps, "{}", stream.unneeded.len());
            }
        }
    }
}
