//! Which bytes of one direction were seen and acknowledged, as Zeek counts them.
//!
//! Positions are relative: the SYN is 0 and the first byte of data is 1.

use super::coverage::{Coverage, Hole};

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

/// Which bytes of one direction were seen, by the rules by which Zeek counts `missed_bytes`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembler {
    /// What was seen. A hole that is acknowledged is given up, and none any more.
    seen: Coverage<()>,
    /// Below this everything was acknowledged.
    trimmed: i64,
    /// Given up: nothing more is tracked.
    abandoned: bool,
}

impl Default for Assembler {
    fn default() -> Self {
        Self { seen: Coverage::up_to(1), trimmed: 1, abandoned: false }
    }
}

impl Assembler {
    /// The first position that is neither seen nor given up.
    #[must_use]
    #[inline]
    pub fn next(&self) -> u64 {
        self.seen.next().cast_unsigned()
    }

    /// The position up to which everything was acknowledged.
    #[must_use]
    pub const fn trimmed(&self) -> u64 {
        self.trimmed.cast_unsigned()
    }

    /// Whether the stream was given up.
    #[must_use]
    pub const fn is_abandoned(&self) -> bool {
        self.abandoned
    }

    /// Whether something was seen that was not acknowledged yet.
    #[must_use]
    pub const fn has_unacknowledged(&self) -> bool {
        !self.abandoned && self.seen.top() > self.trimmed
    }

    /// Bytes from the first hole to the highest byte seen.
    #[must_use]
    pub fn above_hole(&self) -> u64 {
        (self.seen.top() - self.seen.next()).unsigned_abs()
    }

    /// Bytes seen above the last acknowledgement.
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        let above = (self.seen.top() - self.trimmed).max(0).unsigned_abs();
        let of = |hole: &Hole<()>| (hole.high - hole.low.max(self.trimmed)).max(0).unsigned_abs();
        above - self.seen.holes().iter().map(of).sum::<u64>()
    }

    /// Whether anything below what was seen is missing.
    #[must_use]
    #[inline]
    pub fn has_holes(&self) -> bool {
        !self.seen.holes().is_empty()
    }

    /// Bytes that it holds outside itself.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.seen.heap_bytes()
    }

    /// Gives the stream up.
    pub fn abandon(&mut self) {
        self.seen.begin_at(self.seen.next());
        self.abandoned = true;
    }

    /// Notes that the positions from `low` up to `high` were seen. At most `limit` holes are
    /// remembered; for one more the oldest is given up, and told.
    #[inline]
    pub fn insert(&mut self, low: u64, high: u64, limit: usize) -> RevealedGaps {
        let (low, high) = (signed(low).max(self.trimmed), signed(high));
        if high <= low || self.abandoned {
            return RevealedGaps::default();
        }
        if self.seen.holes().is_empty() && low <= self.seen.top() {
            self.seen.extend(high);
            return RevealedGaps::default();
        }
        self.insert_beyond(low, high, limit)
    }

    /// Notes that the next positions up to `high` were seen, where nothing is missing before them.
    #[inline]
    pub(super) fn extend(&mut self, high: u64) {
        self.seen.extend(signed(high));
    }

    #[cold]
    fn insert_beyond(&mut self, low: i64, high: i64, limit: usize) -> RevealedGaps {
        let mut gaps = RevealedGaps::default();
        while self.seen.fill(low, high).is_some() {}
        self.seen.skip(self.seen.top(), low, ());
        self.seen.extend(high);
        while let Some(hole) = self.seen.surplus(limit, |hole| hole.low) {
            gaps.add(hole.size());
        }
        gaps
    }

    /// Notes that everything below `position` was acknowledged, and returns what of it was never
    /// seen. With `ignore_start`, a hole that ends at 2 or before is no gap: it comes from the
    /// invented start of a stream whose begin was not captured.
    #[inline]
    pub fn acknowledge(&mut self, position: u64, ignore_start: bool) -> RevealedGaps {
        let position = signed(position);
        let mut gaps = RevealedGaps::default();
        if position > self.seen.next() && !(position <= 2 && ignore_start) {
            gaps = self.give_up_to(position);
        }
        self.trimmed = self.trimmed.max(position);
        gaps
    }

    fn give_up_to(&mut self, position: i64) -> RevealedGaps {
        let mut gaps = RevealedGaps::default();
        while let Some(hole) = self.seen.fill(i64::MIN, position) {
            gaps.add(hole.size());
        }
        if !self.abandoned {
            gaps.add((position - self.seen.top()).max(0).unsigned_abs());
        }
        self.seen.extend(position);
        gaps
    }
}

/// A position as the interval set has it. No stream is so long that one would not fit.
fn signed(position: u64) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
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
        assert_eq!((a.next(), a.above_hole()), (1, 39));
        assert_eq!(a.unacknowledged(), 35);
    }
}
