//! Which bytes of one direction were seen: interval arithmetic, without the bytes.
//!
//! Positions are relative: the SYN is 0 and the first byte of data is 1.

/// What one acknowledgement or segment revealed to be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RevealedGaps {
    /// Number of gaps.
    pub count: u32,
    /// Sum of their bytes.
    pub bytes: u64,
}

impl RevealedGaps {
    fn add(&mut self, bytes: u64) {
        if bytes > 0 {
            self.count += 1;
            self.bytes = self.bytes.saturating_add(bytes);
        }
    }
}

/// Coverage of one direction of a stream.
///
/// Invariants: `ranges` is sorted, its ranges are not empty and neither touch nor overlap, and all
/// begin above `next`.
#[derive(Clone, Debug)]
pub struct Assembler {
    /// The first position not yet seen or given up.
    next: u64,
    /// Below this everything was acknowledged.
    trimmed: u64,
    /// Ranges beyond holes. Most streams never have one, so they take one word until then.
    #[expect(clippy::box_collection, reason = "three words less in every connection")]
    ranges: Option<Box<Vec<(u64, u64)>>>,
    /// Given up: nothing more is tracked.
    abandoned: bool,
}

impl Default for Assembler {
    fn default() -> Self {
        Self { next: 1, trimmed: 1, ranges: None, abandoned: false }
    }
}

impl Assembler {
    /// The first position that is neither seen nor given up.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// The position up to which everything was acknowledged.
    #[must_use]
    pub const fn trimmed(&self) -> u64 {
        self.trimmed
    }

    /// Whether the stream was given up.
    #[must_use]
    pub const fn is_abandoned(&self) -> bool {
        self.abandoned
    }

    /// Whether something was seen that was not acknowledged yet.
    #[must_use]
    pub fn has_unacknowledged(&self) -> bool {
        !self.abandoned && self.top() > self.trimmed
    }

    /// Bytes from the first hole to the highest byte seen.
    #[must_use]
    pub fn above_hole(&self) -> u64 {
        if self.abandoned { 0 } else { self.top().saturating_sub(self.next) }
    }

    /// Bytes seen above the last acknowledgement.
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        let contiguous = self.next.saturating_sub(self.trimmed);
        self.ranges().iter().fold(contiguous, |sum, (low, high)| sum.saturating_add(high - low))
    }

    /// Bytes that it holds outside itself.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let of = |ranges: &Vec<(u64, u64)>| {
            size_of::<Vec<(u64, u64)>>() + ranges.capacity() * size_of::<(u64, u64)>()
        };
        self.ranges.as_deref().map_or(0, of)
    }

    /// Gives the stream up.
    pub fn abandon(&mut self) {
        self.ranges = None;
        self.abandoned = true;
    }

    /// Notes that the positions from `low` up to `high` were seen. At most `limit` ranges beyond
    /// holes are remembered; for one more the oldest hole is given up, and told.
    #[inline]
    pub fn insert(&mut self, low: u64, high: u64, limit: usize) -> RevealedGaps {
        let low = low.max(self.trimmed);
        if high <= low || self.abandoned {
            return RevealedGaps::default();
        }
        if low <= self.next {
            if high > self.next {
                self.next = high;
                self.join();
            }
            return RevealedGaps::default();
        }
        let ranges = self.ranges.get_or_insert_default();
        insert_range(ranges, low, high);
        let mut gaps = RevealedGaps::default();
        if ranges.len() > limit
            && let Some(&(first, _)) = ranges.first()
        {
            gaps.add(first - self.next);
            self.next = first;
            self.join();
        }
        gaps
    }

    /// Notes that everything below `position` was acknowledged, and returns what of it was never
    /// seen. With `ignore_start`, a hole that ends at 2 or before is no gap: it comes from the
    /// invented start of a stream whose begin was not captured.
    #[inline]
    pub fn acknowledge(&mut self, position: u64, ignore_start: bool) -> RevealedGaps {
        let mut gaps = RevealedGaps::default();
        if position > self.next {
            gaps = self.give_up_to(position, ignore_start);
        }
        if let Some(ranges) = &mut self.ranges {
            ranges.retain(|&(_, high)| high > position);
            self.join();
        }
        self.trimmed = self.trimmed.max(position);
        gaps
    }

    fn give_up_to(&mut self, position: u64, ignore_start: bool) -> RevealedGaps {
        let mut gaps = RevealedGaps::default();
        if position <= 2 && ignore_start {
            return gaps;
        }
        if !self.abandoned {
            let ranges = self.ranges.as_deref_mut();
            let below =
                ranges.as_ref().map_or(0, |r| r.partition_point(|&(low, _)| low < position));
            for (low, high) in ranges.into_iter().flat_map(|ranges| ranges.drain(..below)) {
                gaps.add(low - self.next);
                self.next = high;
            }
            gaps.add(position.saturating_sub(self.next));
        }
        self.next = self.next.max(position);
        gaps
    }

    /// Takes the ranges that `next` has reached.
    fn join(&mut self) {
        let Some(ranges) = &mut self.ranges else { return };
        let mut taken = 0;
        for &(low, high) in ranges.iter() {
            if low > self.next {
                break;
            }
            self.next = self.next.max(high);
            taken += 1;
        }
        ranges.drain(..taken);
        if ranges.is_empty() {
            self.ranges = None;
        }
    }

    fn ranges(&self) -> &[(u64, u64)] {
        self.ranges.as_ref().map_or(&[], |ranges| ranges.as_slice())
    }

    /// One past the highest position seen or given up.
    fn top(&self) -> u64 {
        self.ranges().last().map_or(self.next, |&(_, high)| high)
    }
}

fn insert_range(ranges: &mut Vec<(u64, u64)>, low: u64, high: u64) {
    let from = ranges.partition_point(|&(_, end)| end < low);
    let to = ranges.partition_point(|&(start, _)| start <= high);
    if from == to {
        ranges.insert(from, (low, high));
        return;
    }
    let low = low.min(ranges[from].0);
    let high = high.max(ranges[to - 1].1);
    ranges[from] = (low, high);
    ranges.drain(from + 1..to);
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: RevealedGaps = RevealedGaps { count: 0, bytes: 0 };

    #[test]
    fn data_in_order_leaves_nothing_behind() {
        let mut a = Assembler::default();
        assert_eq!(a.insert(1, 101, 8), NONE);
        assert_eq!(a.insert(101, 201, 8), NONE);
        assert!(a.has_unacknowledged());
        assert_eq!(a.acknowledge(201, false), NONE);
        assert!(!a.has_unacknowledged());
        assert_eq!(a.next(), 201);
    }

    #[test]
    fn a_filled_hole_is_no_gap() {
        let mut a = Assembler::default();
        a.insert(101, 201, 8);
        a.insert(301, 401, 8);
        assert_eq!((a.next(), a.above_hole()), (1, 400));
        a.insert(1, 101, 8);
        assert_eq!(a.next(), 201);
        a.insert(150, 350, 8);
        assert_eq!(a.next(), 401);
        assert_eq!(a.acknowledge(401, false), NONE);
    }

    #[test]
    fn an_acknowledged_hole_is_a_gap() {
        let mut a = Assembler::default();
        a.insert(101, 201, 8);
        a.insert(301, 401, 8);
        assert_eq!(a.acknowledge(501, false), RevealedGaps { count: 3, bytes: 300 });
        assert_eq!(a.next(), 501);
    }

    #[test]
    fn an_acknowledgement_may_end_inside_a_range() {
        let mut a = Assembler::default();
        a.insert(101, 201, 8);
        assert_eq!(a.acknowledge(151, false), RevealedGaps { count: 1, bytes: 100 });
        assert_eq!(a.next(), 201);
        assert!(a.has_unacknowledged());
    }

    #[test]
    fn the_invented_start_is_no_gap() {
        let mut a = Assembler::default();
        assert_eq!(a.acknowledge(2, true), NONE);
        assert_eq!(Assembler::default().acknowledge(2, false), RevealedGaps { count: 1, bytes: 1 });
    }

    #[test]
    fn the_oldest_hole_pays_for_too_many_ranges() {
        let mut a = Assembler::default();
        assert_eq!(a.insert(10, 20, 2), NONE);
        assert_eq!(a.insert(30, 40, 2), NONE);
        assert_eq!(a.insert(50, 60, 2), RevealedGaps { count: 1, bytes: 9 });
        assert_eq!(a.next(), 20);
    }

    #[test]
    fn touching_ranges_become_one() {
        let mut a = Assembler::default();
        for (low, high) in [(10, 20), (30, 40), (20, 30), (5, 12)] {
            a.insert(low, high, 8);
        }
        assert_eq!(a.ranges(), [(5, 40)]);
        assert_eq!(a.unacknowledged(), 35);
    }
}
