//! Numbers that were said to have been sent, and that cannot have been.

use netsniff_packet::Timestamp;

use super::Revealed;
use super::gap::StreamGap;
use super::hole::{Evidence, Hole};
use super::stream::StreamLosses;
use crate::log::gaps::{Cause, Ended, Missing};

impl StreamLosses {
    /// All positions are higher by so many numbers. Only segments without data came before, so that there are no
    /// copies of any.
    pub(super) fn move_positions(&mut self, by: i64) {
        let (mut coverage, shift) = (core::mem::take(&mut self.coverage), self.shift);
        self.begin_anew();
        coverage.move_by(by);
        self.coverage = coverage;
        // Where nothing tells of another begin, the data begins at the first segment.
        self.shift = if shift == 0 { 0 } else { shift + by };
    }

    /// What lies from `low` up to `high` was not seen, and is no loss.
    pub(super) fn pass_over(&mut self, [low, high]: [i64; 2], at: Timestamp) {
        let known = Evidence { is_given_up: true, ..Evidence::ahead(at) };
        self.coverage.skip(low, high, known);
    }

    /// What was acknowledged `at` some time, up to `high`, was never sent from `low` on.
    pub(super) fn take_back(&mut self, [low, high]: [i64; 2], at: Timestamp) {
        let is_of_it = |gap: &StreamGap| {
            gap.cause == Cause::Capture
                && gap.ended == Ended::Acknowledged
                && gap.until == at
                && gap.high <= high
        };
        if self.settled.within(low, high).is_some_and(|until| until >= at) {
            self.doubt();
        }
        // What was missing before is so still.
        let is_before =
            |gap: &&StreamGap| is_of_it(gap) && gap.what == Missing::Data && gap.low < low;
        let before: Vec<StreamGap> = self.gaps.iter().filter(is_before).copied().collect();
        self.gaps.retain(|gap| !is_of_it(gap));
        self.late.retain(|gap| !is_of_it(gap));
        self.coverage.retain(|Hole { low: begin, known, .. }| {
            known.acknowledged != Some(at) || (*begin < low && !known.is_given_up)
        });
        for Hole { known, .. } in self.coverage.holes_mut() {
            if known.acknowledged == Some(at) {
                (known.acknowledged, known.echo) = (None, None);
            }
        }
        for gap in before {
            let known = Evidence::new(Revealed::at(gap.since));
            self.coverage.reopen(gap.low, gap.high.min(low), known);
        }
        if self.coverage.top() == high {
            self.coverage.shrink(low);
        }
    }
}
