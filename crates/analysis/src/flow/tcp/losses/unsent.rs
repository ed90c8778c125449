//! Numbers that were said to have been sent, and that cannot have been.

use netsniff_packet::Timestamp;

use super::Revealed;
use super::gap::StreamGap;
use super::hole::Hole;
use super::stream::StreamLosses;
use crate::log::gaps::{Cause, Ended, Missing};

impl StreamLosses {
    /// Nothing below `position` that was not missing before is.
    pub(super) fn pass_over(&mut self, position: i64) {
        self.top = self.top.max(position);
    }

    /// What was acknowledged `at` some time, up to `high`, was never sent from `low` on.
    pub(super) fn take_back(&mut self, [low, high]: [i64; 2], at: Timestamp) {
        let is_of_it = |gap: &StreamGap| {
            gap.cause == Cause::Capture
                && gap.ended == Ended::Acknowledged
                && gap.until == at
                && gap.high <= high
        };
        // What was missing before is so still.
        let is_before =
            |gap: &&StreamGap| is_of_it(gap) && gap.what == Missing::Data && gap.low < low;
        let before: Vec<StreamGap> = self.gaps.iter().filter(is_before).copied().collect();
        self.gaps.retain(|gap| !is_of_it(gap));
        self.late.retain(|gap| !is_of_it(gap));
        self.holes.retain(|hole| hole.acknowledged != Some(at) || hole.low < low);
        for hole in self.holes.iter_mut().filter(|hole| hole.acknowledged == Some(at)) {
            (hole.acknowledged, hole.echo) = (None, None);
        }
        for gap in before {
            let (low, high, revealed) = (gap.low, gap.high.min(low), Revealed::at(gap.since));
            let (acknowledged, echo, lacked, got) = (None, None, None, None);
            let hole = Hole { low, high, revealed, acknowledged, echo, lacked, got };
            let at = self.holes.partition_point(|other| other.low < low);
            self.holes.insert(at, hole);
        }
        if self.top == high {
            self.top = low;
        }
    }
}
