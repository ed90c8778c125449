//! Data that was skipped in one direction, of which little is remembered.

use netsniff_packet::Timestamp;

use crate::flow::tcp::sequence::delta;

/// Holes that one direction remembers. Where there are more, the oldest is forgotten, and data
/// that fills it later counts as sent again.
const MAX: usize = 3;

/// Ranges of sequence numbers that were skipped, oldest first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Holes {
    len: u8,
    ranges: [Hole; MAX],
}

#[derive(Clone, Copy, Debug, Default)]
struct Hole {
    low: u32,
    high: u32,
    since: Timestamp,
}

/// What a segment filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    /// Sequence numbers that had not been seen.
    pub len: u32,
    /// When the oldest of the holes that it filled was noticed.
    pub since: Timestamp,
}

impl Holes {
    /// Whether there are none.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets all ranges, since the numbers begin anew.
    pub const fn clear(&mut self) {
        self.len = 0;
    }

    /// Notes that the numbers from `low` up to `high` were skipped.
    pub fn add(&mut self, low: u32, high: u32, since: Timestamp) {
        if usize::from(self.len) == MAX {
            self.remove(0);
        }
        if let Some(slot) = self.ranges.get_mut(usize::from(self.len)) {
            *slot = Hole { low, high, since };
            self.len += 1;
        }
    }

    /// Notes that the numbers from `low` up to `high` were seen.
    pub fn fill(&mut self, low: u32, high: u32) -> Filled {
        let mut filled = Filled::default();
        let mut index = 0;
        while index < usize::from(self.len) {
            let Some(hole) = self.ranges.get(index).copied() else { break };
            let from = if delta(low, hole.low) > 0 { low } else { hole.low };
            let to = if delta(high, hole.high) < 0 { high } else { hole.high };
            if delta(to, from) <= 0 {
                index += 1;
                continue;
            }
            if filled.len == 0 || hole.since < filled.since {
                filled.since = hole.since;
            }
            filled.len = filled.len.wrapping_add(to.wrapping_sub(from));
            index += self.cut(index, hole, from, to);
        }
        filled
    }

    /// Takes a part out of a hole, and returns how many ranges are left of it.
    fn cut(&mut self, index: usize, hole: Hole, from: u32, to: u32) -> usize {
        let below = (from != hole.low).then_some(Hole { high: from, ..hole });
        let above = (to != hole.high).then_some(Hole { low: to, ..hole });
        match (below, above) {
            (None, None) => {
                self.remove(index);
                0
            }
            (Some(part), None) | (None, Some(part)) => {
                self.ranges[index] = part;
                1
            }
            (Some(below), Some(above)) => {
                self.ranges[index] = below;
                // Without room the upper part is forgotten.
                if usize::from(self.len) < MAX {
                    self.ranges.copy_within(index + 1..MAX - 1, index + 2);
                    self.ranges[index + 1] = above;
                    self.len += 1;
                    return 2;
                }
                1
            }
        }
    }

    fn remove(&mut self, index: usize) {
        self.ranges.copy_within(index + 1.., index);
        self.len = self.len.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holes(ranges: &[(u32, u32)]) -> Holes {
        let mut holes = Holes::default();
        for (at, &(low, high)) in ranges.iter().enumerate() {
            holes.add(low, high, Timestamp::from_nanos(at as i64));
        }
        holes
    }

    fn ranges(holes: &Holes) -> Vec<(u32, u32)> {
        holes.ranges[..usize::from(holes.len)].iter().map(|hole| (hole.low, hole.high)).collect()
    }

    #[test]
    fn a_hole_is_filled_from_either_end_and_in_the_middle() {
        let mut h = holes(&[(100, 200)]);
        assert_eq!(h.fill(50, 120).len, 20);
        assert_eq!(h.fill(180, 300).len, 20);
        assert_eq!(h.fill(140, 150).len, 10);
        assert_eq!(ranges(&h), [(120, 140), (150, 180)]);
        assert_eq!(h.fill(140, 150).len, 0);
        assert_eq!(h.fill(0, 1000).len, 50);
        assert!(h.is_empty());
    }

    #[test]
    fn the_wrap_is_no_end() {
        let mut h = holes(&[(u32::MAX - 9, 10)]);
        assert_eq!(h.fill(u32::MAX - 4, 5).len, 10);
        assert_eq!(ranges(&h), [(u32::MAX - 9, u32::MAX - 4), (5, 10)]);
        let mut h = holes(&[(u32::MAX - 9, 10)]);
        assert_eq!(h.fill(2, 20).len, 8);
        assert_eq!(ranges(&h), [(u32::MAX - 9, 2)]);
    }

    #[test]
    fn the_oldest_hole_pays_for_too_many() {
        let mut h = holes(&[(10, 20), (30, 40), (50, 60), (70, 80)]);
        assert_eq!(ranges(&h), [(30, 40), (50, 60), (70, 80)]);
        assert_eq!(h.fill(52, 55), Filled { len: 3, since: Timestamp::from_nanos(2) });
        assert_eq!(ranges(&h), [(30, 40), (50, 52), (70, 80)]);
    }
}
