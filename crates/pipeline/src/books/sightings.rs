//! What had arrived at an interface when the counters of its rings were read, as well as that can be known.
//!
//! No call reads the counters of an interface and of a ring at one moment, and between the two packets arrive. Some
//! have been counted by the interface and wait for the stack; some drivers count what they have handed over only
//! behind a group of packets. So the interface is read again and again, before and after: what it had counted some
//! time before, less what waited then, is surely in the ring's counters, and nothing that it had not counted some time
//! after.

use std::collections::VecDeque;
use std::time::Duration;

use netsniff_capture::host::Backlog;

use crate::live::{LAG, Moment};

/// The same where what waits between them is not known.
pub(super) const BLIND_LAG: Duration = Duration::from_millis(10);

/// Readings that are kept, at most: those of seconds.
const MOST: usize = 512;

/// Of those, the oldest ones, for a ring that does not answer for long.
const OLDEST: usize = 16;

/// How long readings are kept though no ring was read so long ago, in nanoseconds.
const KEPT: u64 = 500_000_000;

/// A reading of an interface's counters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sighting {
    pub(super) moment: Moment,
    /// Packets that it had handed over.
    pub(super) came: u64,
    /// What waited between interfaces and rings, read after that; `None` where it is not known.
    pub(super) backlog: Option<Backlog>,
}

/// How many packets had come at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrived {
    /// No fewer of them had passed the rings.
    pub(super) least: u64,
    /// As the interface told at once behind the moment.
    pub(super) likely: u64,
    /// No more of them had passed the rings.
    pub(super) most: u64,
}

impl Arrived {
    /// What came between an earlier moment and this one.
    pub(super) const fn since(self, earlier: Self) -> Self {
        Self {
            least: self.least.saturating_sub(earlier.most),
            likely: self.likely.saturating_sub(earlier.likely),
            most: self.most.saturating_sub(earlier.least),
        }
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self {
            least: self.least.saturating_add(other.least),
            likely: self.likely.saturating_add(other.likely),
            most: self.most.saturating_add(other.most),
        }
    }

    /// How far from `likely` the truth may be.
    pub(super) fn bound(self) -> u64 {
        let below = self.likely.saturating_sub(self.least);
        below.max(self.most.saturating_sub(self.likely))
    }
}

/// Readings of the counters of one interface, in the order of time.
#[derive(Debug, Default)]
pub(super) struct Sightings(VecDeque<Sighting>);

impl Sightings {
    pub(super) fn note(&mut self, sighting: Sighting) {
        if self.0.len() >= MOST {
            self.0.remove(OLDEST);
        }
        self.0.push_back(sighting);
    }

    /// How many packets had come at a moment; `None` where nothing was read after it.
    pub(super) fn around(&self, moment: Moment) -> Option<Arrived> {
        let from = |time: u64| self.0.iter().find(|of| of.moment.begin >= time);
        let after = from(moment.end)?;
        let settled = self.settled(moment)?;
        let least = self.least_before(moment.begin);
        Some(Arrived { least, likely: after.came, most: settled.came }.or_on_the_way(after))
    }

    /// How many are kept.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// By how much longer than they had to be the readings around a moment lie apart, in nanoseconds.
    pub(super) fn excess(&self, moment: Moment) -> u64 {
        let is_before = |of: &&Sighting| of.is_settled(moment.begin);
        let Some(before) = self.0.iter().rfind(is_before) else { return u64::MAX };
        let Some(settled) = self.settled(moment) else { return u64::MAX };
        let apart = settled.moment.begin.saturating_sub(before.moment.end);
        apart.saturating_sub(nanos(before.lag() + LAG))
    }

    /// The first reading, or the last one, of all that had come at a moment.
    fn settled(&self, moment: Moment) -> Option<&Sighting> {
        let settled = moment.end.saturating_add(nanos(LAG));
        self.0.iter().find(|of| of.moment.begin >= settled).or(self.0.back())
    }

    /// How many had come when the interface was removed with this last count; `None` where it cannot be believed: some
    /// drivers have forgotten by then what they counted.
    pub(super) fn at_end(&self, came: u64) -> Option<Arrived> {
        let (seen, before) = self.0.back().map_or((0, 0), |last| (last.moment.begin, last.came));
        let least = self.least_before(seen);
        (came >= before).then_some(Arrived { least, likely: came, most: came })
    }

    /// Packets that surely had passed the rings at a time.
    fn least_before(&self, time: u64) -> u64 {
        let is_settled = |of: &&Sighting| of.is_settled(time);
        let passed =
            |of: &Sighting| of.came.saturating_sub(of.backlog.map_or(0, |backlog| backlog.waiting));
        self.0.iter().filter(is_settled).map(passed).max().unwrap_or_default()
    }

    /// Lets go what was read long before a moment, but for the last of it.
    pub(super) fn forget_before(&mut self, time: u64) {
        let old = time.saturating_sub(KEPT);
        while self.0.get(1).is_some_and(|next| next.moment.end < old) {
            self.0.pop_front();
        }
    }
}

impl Sighting {
    const fn lag(&self) -> Duration {
        if self.backlog.is_some() { LAG } else { BLIND_LAG }
    }

    /// Whether what it counted has passed the rings at a time.
    fn is_settled(&self, time: u64) -> bool {
        self.moment.end.saturating_add(nanos(self.lag())) <= time
    }
}

impl Arrived {
    /// Where packets are coming, each processor may have one in hand that no queue holds.
    fn or_on_the_way(self, after: &Sighting) -> Self {
        let in_hand = after.backlog.map_or(0, |backlog| backlog.processors);
        let is_quiet = self.least == self.most;
        Self { least: self.least.saturating_sub(if is_quiet { 0 } else { in_hand }), ..self }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    fn moment(millis: u64) -> Moment {
        Moment { begin: millis * MILLI, end: millis * MILLI + 1000 }
    }

    /// A packet each millisecond, seen each millisecond.
    fn steady(waiting: Option<u64>) -> Sightings {
        let mut sightings = Sightings::default();
        for millis in 0..100 {
            sightings.note(Sighting {
                moment: moment(millis),
                came: 1000 + millis,
                backlog: waiting.map(|waiting| Backlog { waiting, processors: 2 }),
            });
        }
        sightings
    }

    #[test]
    fn what_came_some_time_before_and_after_are_the_bounds() {
        let around = steady(Some(0)).around(moment(60)).unwrap();
        // The reading of the 58th millisecond has ended a microsecond too late.
        assert_eq!(around, Arrived { least: 1057 - 2, likely: 1061, most: 1063 });
        assert_eq!(around.bound(), 6);
    }

    #[test]
    fn readings_that_lie_further_apart_than_they_must_are_known() {
        let sightings = steady(Some(0));
        // They lie 57 and 63 milliseconds from the begin, all but a microsecond.
        assert_eq!(sightings.excess(moment(60)), 2 * MILLI - 1000);
        let late = Moment { begin: 60 * MILLI, end: 70 * MILLI };
        assert_eq!(sightings.excess(late), 11 * MILLI - 1000);
        assert_eq!(sightings.excess(moment(0)), u64::MAX, "none lies before it");
    }

    #[test]
    fn what_waits_for_the_stack_need_not_be_in_the_ring() {
        let around = steady(Some(5)).around(moment(60)).unwrap();
        assert_eq!((around.least, around.most), (1057 - 5 - 2, 1063));
        let blind = steady(None).around(moment(60)).unwrap();
        assert_eq!((blind.least, blind.most), (1049, 1063));
    }

    #[test]
    fn where_nothing_comes_all_is_known() {
        let mut sightings = Sightings::default();
        for millis in 0..20 {
            // Others make the queue long now and then.
            let waiting = if millis == 3 { 0 } else { 50 };
            let backlog = Some(Backlog { waiting, processors: 2 });
            sightings.note(Sighting { moment: moment(millis), came: 7, backlog });
        }
        let around = sightings.around(moment(10)).unwrap();
        assert_eq!((around.least, around.likely, around.most, around.bound()), (7, 7, 7, 0));
    }

    #[test]
    fn between_two_moments_bounds_add_up() {
        let sightings = steady(Some(0));
        let [first, last] = [20, 60].map(|at| sightings.around(moment(at)).unwrap());
        let between = last.since(first);
        assert_eq!(between, Arrived { least: 32, likely: 40, most: 48 });
        assert_eq!(between.with(between).bound(), 16);
        assert_eq!(first.since(last).least, 0);
    }

    #[test]
    fn a_moment_behind_the_last_reading_is_not_known() {
        assert_eq!(steady(Some(0)).around(moment(100)), None);
        let last = steady(Some(0)).around(moment(98)).unwrap();
        assert_eq!((last.likely, last.most), (1099, 1099));
    }

    #[test]
    fn the_end_of_an_interface_is_known_up_to_what_was_on_the_way() {
        let end = steady(None).at_end(1105);
        assert_eq!(end, Some(Arrived { least: 1088, likely: 1105, most: 1105 }));
        assert_eq!(steady(None).at_end(1098), None, "more had come before");
    }

    #[test]
    fn readings_are_bounded_and_those_of_a_stalled_ring_stay() {
        let mut sightings = Sightings::default();
        for millis in 0..10_000 {
            let backlog = None;
            sightings.note(Sighting { moment: moment(millis), came: millis, backlog });
        }
        assert_eq!(sightings.0.len(), MOST);
        assert_eq!(sightings.around(moment(14)).unwrap().least, 3);
        sightings.forget_before(9_900 * MILLI);
        assert!(sightings.0.len() < MOST);
        assert_eq!(sightings.around(moment(9_900)).unwrap().least, 9_889);
    }
}
