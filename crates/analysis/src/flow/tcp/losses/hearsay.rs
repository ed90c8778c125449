//! Holes that one acknowledgement alone tells of.

use netsniff_packet::Timestamp;

use super::hole::Hole;
use super::stream::StreamLosses;
use crate::limits::Limits;

impl StreamLosses {
    /// The receiver has everything below `position`, as more than one segment tells `at` some time.
    pub(super) fn bear_out(&mut self, position: i64, at: Timestamp, limits: &Limits) {
        let mut index = 0;
        while let Some(hole) = self.holes.get_mut(index).filter(|hole| hole.low < position) {
            index += 1;
            if !hole.is_alone {
                continue;
            }
            let above = Hole { low: position, ..*hole };
            hole.high = hole.high.min(position);
            hole.is_alone = false;
            if above.low < above.high {
                index = self.add(index, above, at, limits);
            }
        }
    }

    /// Nothing is missing where one segment alone told so, beyond all that was seen.
    pub(super) fn retract(&mut self) {
        while self.holes.pop_if(|last| last.is_alone && last.high == self.top).is_some() {
            self.top = self.holes.last().map_or(0, |hole| hole.high);
        }
    }
}
