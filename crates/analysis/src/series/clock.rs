//! Intervals of one length, counted from the epoch, and when they are over.

use core::time::Duration;

use netsniff_packet::Timestamp;

use super::SeriesOptions;
use crate::record::SortKey;

/// The longest that an interval waits for packets which come late, in nanoseconds.
const PATIENCE: i64 = 1_000_000_000;

/// Intervals of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Intervals {
    length: i64,
}

impl Intervals {
    /// Intervals of this length, but not below the shortest.
    pub(crate) fn new(length: Duration) -> Self {
        let length = length.max(SeriesOptions::SHORTEST);
        Self { length: i64::try_from(length.as_nanos()).unwrap_or(i64::MAX) }
    }

    /// The number of the interval that a time lies in.
    #[inline]
    pub(crate) const fn number(self, time: Timestamp) -> i64 {
        time.nanos().div_euclid(self.length)
    }

    /// When the interval with this number begins.
    pub(crate) const fn start(self, number: i64) -> Timestamp {
        Timestamp::from_nanos(number.saturating_mul(self.length))
    }

    /// Length of an interval in nanoseconds.
    pub(crate) const fn length(self) -> i64 {
        self.length
    }

    /// How long an interval waits behind its end for packets that come late: as long as it lasts, and a second at most.
    const fn patience(self) -> i64 {
        if self.length < PATIENCE { self.length } else { PATIENCE }
    }
}

/// A place among packets at which intervals are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalEnd {
    /// Where what is told of them belongs.
    pub key: SortKey,
    /// The first interval that goes on.
    pub open: i64,
}

/// Tells when intervals are over, by engine time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntervalClock {
    intervals: Intervals,
    /// All intervals before this one were told; `None` before the first packet.
    open: Option<i64>,
    /// When the next one is to be told.
    deadline: Timestamp,
}

impl IntervalClock {
    pub(crate) const fn new(intervals: Intervals) -> Self {
        Self { intervals, open: None, deadline: Timestamp::MIN }
    }

    /// Goes on to engine time `now`. Returns up to which interval all are over, and at which time they were, where one
    /// has ended since.
    #[inline]
    pub(crate) fn advance(&mut self, now: Timestamp) -> Option<(i64, Timestamp)> {
        if now < self.deadline { None } else { self.pass(now) }
    }

    #[cold]
    fn pass(&mut self, now: Timestamp) -> Option<(i64, Timestamp)> {
        let patience = self.intervals.patience();
        let open = self.intervals.number(now.offset(-patience));
        let before = self.open.replace(open);
        self.deadline = self.intervals.start(open.saturating_add(1)).offset(patience);
        // The last interval of all never ends, since time does before.
        before.filter(|&before| before < open)?;
        // However far time jumped, what is over is told at once, at the last of the ends.
        Some((open, self.intervals.start(open).offset(patience).min(now)))
    }

    /// The first interval that waits for more packets.
    pub(crate) fn open(&self) -> i64 {
        self.open.unwrap_or(i64::MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn stamps_lie_in_the_interval_that_begins_at_or_before_them() {
        let intervals = Intervals::new(Duration::from_secs(1));
        assert_eq!(intervals.number(at(1_999)), 1);
        assert_eq!(intervals.number(at(2_000)), 2);
        assert_eq!(intervals.number(at(-1)), -1);
        assert_eq!(intervals.start(-1), at(-1_000));
        for time in [Timestamp::MIN, Timestamp::MAX] {
            assert!(intervals.start(intervals.number(time)) <= Timestamp::MAX);
        }
        assert_eq!(Intervals::new(Duration::ZERO).length(), 1_000_000);
    }

    #[test]
    fn an_interval_is_over_once_its_patience_has_passed() {
        let mut clock = IntervalClock::new(Intervals::new(Duration::from_secs(10)));
        assert_eq!(clock.advance(at(5_000)), None);
        assert_eq!(clock.advance(at(10_999)), None);
        assert_eq!(clock.advance(at(11_000)), Some((1, at(11_000))));
        assert_eq!(clock.advance(at(11_000)), None);
        assert_eq!(clock.advance(at(21_500)), Some((2, at(21_000))));
        assert_eq!(clock.open(), 2);
    }

    #[test]
    fn a_jump_of_years_ends_all_intervals_at_once() {
        let mut clock = IntervalClock::new(Intervals::new(Duration::from_millis(1)));
        assert_eq!(clock.advance(at(0)), None);
        let year = 365 * 86_400_000;
        assert_eq!(clock.advance(at(year)), Some((year - 1, at(year))));
        assert_eq!(
            clock.advance(Timestamp::MAX).map(|(_, time)| time <= Timestamp::MAX),
            Some(true)
        );
        assert_eq!(clock.advance(Timestamp::MAX), None);
    }
}
