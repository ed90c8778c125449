//! What to do while a ring has nothing: the decision alone, without a clock or a call.

use std::time::Duration;

use crate::options::Wait;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitStep {
    /// Look again at once.
    Look,
    /// Sleep so long, then look.
    Sleep(Duration),
    /// Let the kernel wake us, or the time end.
    Poll(Duration),
}

/// How long to look again and again before sleeping. Longer does not pay where the kernel needs the same
/// processor to fill the ring.
const SPIN: Duration = Duration::from_micros(5);

/// The shortest sleep that is worth a call, and the longest after which a ring should be looked at.
const SHORTEST: Duration = Duration::from_micros(100);
const LONGEST: Duration = Duration::from_millis(10);

/// The part of the room in the ring that may fill during a sleep.
const SHARE: u32 = 8;

/// Decides for one ring.
#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    wait: Wait,
    /// Nanoseconds that a unit of the ring (block or frame) takes to fill, by the last ones; `None` while
    /// there were none.
    per_unit: Option<u64>,
    /// Since when there was nothing, in nanoseconds.
    idle_since: Option<u64>,
    last_found: Option<u64>,
    /// Units that were found since then.
    found: u64,
    has_slept: bool,
}

impl Waiter {
    pub(crate) const fn new(wait: Wait) -> Self {
        Self {
            wait,
            per_unit: None,
            idle_since: None,
            last_found: None,
            found: 0,
            has_slept: false,
        }
    }

    /// Tells that so many units were found at `now`.
    pub(crate) fn found(&mut self, units: u32, now: u64) {
        self.idle_since = None;
        self.has_slept = false;
        self.found += u64::from(units);
        let Some(last) = self.last_found else {
            (self.last_found, self.found) = (Some(now), 0);
            return;
        };
        // Over stretches of some length, since units that were found together arrived one by one.
        let elapsed = now.saturating_sub(last);
        if elapsed >= 1_000_000 && self.found > 0 {
            let per_unit = elapsed / self.found;
            self.per_unit = Some(self.per_unit.map_or(per_unit, |old| old / 2 + per_unit / 2));
            (self.last_found, self.found) = (Some(now), 0);
        }
    }

    /// What to do at `now`, where nothing is there, `room` units of the ring are free, and the caller wants
    /// to hear within `patience`. `None` where that time is over.
    pub(crate) fn next(&mut self, now: u64, room: u32, patience: Duration) -> Option<WaitStep> {
        let since = *self.idle_since.get_or_insert(now);
        let idle = Duration::from_nanos(now.saturating_sub(since));
        let Some(left) = patience.checked_sub(idle).filter(|left| !left.is_zero()) else {
            self.idle_since = None;
            return None;
        };
        match self.wait {
            Wait::Poll => Some(WaitStep::Poll(left)),
            Wait::Busy => Some(WaitStep::Look),
            Wait::Adaptive if idle < SPIN => Some(WaitStep::Look),
            Wait::Adaptive => Some(self.sleep(room, left)),
        }
    }

    /// Sleeps once, as long as a part of the free ring takes to fill. Then the rate has fallen, and the
    /// kernel knows better when something comes; as it does where the ring has so few units that one of them
    /// is more than this part: a burst would fill the others meanwhile.
    fn sleep(&mut self, room: u32, left: Duration) -> WaitStep {
        let nap = self.per_unit.map(|per_unit| {
            let units = u64::from(room / SHARE);
            Duration::from_nanos(per_unit.saturating_mul(units)).min(LONGEST)
        });
        match nap.filter(|nap| *nap >= SHORTEST && *nap < left && !self.has_slept) {
            // A unit that takes longer than the longest sleep is worth waiting for.
            Some(nap) if self.per_unit.is_some_and(|unit| unit < LONGEST.as_nanos() as u64) => {
                self.has_slept = true;
                WaitStep::Sleep(nap)
            }
            _ => WaitStep::Poll(left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const PATIENCE: Duration = Duration::from_millis(100);

    #[test]
    fn polling_sleeps_until_woken_and_no_longer_than_asked() {
        let mut waiter = Waiter::new(Wait::Poll);
        assert_eq!(waiter.next(0, 8, PATIENCE), Some(WaitStep::Poll(PATIENCE)));
        let left = Duration::from_millis(60);
        assert_eq!(waiter.next(40 * MS, 8, PATIENCE), Some(WaitStep::Poll(left)));
        assert_eq!(waiter.next(100 * MS, 8, PATIENCE), None);
        assert_eq!(
            waiter.next(101 * MS, 8, PATIENCE),
            Some(WaitStep::Poll(PATIENCE)),
            "a new wait"
        );
    }

    #[test]
    fn busy_waiting_never_sleeps() {
        let mut waiter = Waiter::new(Wait::Busy);
        for now in 0..100 {
            assert_eq!(waiter.next(now * MS, 8, PATIENCE), Some(WaitStep::Look));
        }
        assert_eq!(waiter.next(100 * MS, 8, PATIENCE), None);
    }

    #[test]
    fn adaptive_waiting_looks_sleeps_and_polls() {
        let mut waiter = Waiter::new(Wait::Adaptive);
        assert_eq!(waiter.next(0, 64, PATIENCE), Some(WaitStep::Look));
        assert!(
            matches!(waiter.next(10_000, 64, PATIENCE), Some(WaitStep::Poll(_))),
            "no rate yet"
        );
        // A block each millisecond, with room for 64 of them.
        for number in 0..20 {
            waiter.found(1, MS * number);
        }
        assert_eq!(waiter.next(20 * MS, 64, PATIENCE), Some(WaitStep::Look));
        let after = 20 * MS + 6_000;
        assert_eq!(
            waiter.next(after, 64, PATIENCE),
            Some(WaitStep::Sleep(Duration::from_millis(8)))
        );
        let again = waiter.next(after + 8 * MS, 64, PATIENCE);
        assert!(matches!(again, Some(WaitStep::Poll(_))), "{again:?}: the rate has fallen");
        // Where the ring has less room there is no time to sleep long.
        waiter.found(1, 21 * MS);
        waiter.next(21 * MS, 16, PATIENCE);
        let near = waiter.next(21 * MS + 6_000, 16, PATIENCE);
        assert_eq!(near, Some(WaitStep::Sleep(Duration::from_millis(3))), "two of 1.5 ms");
    }

    #[test]
    fn a_ring_of_few_units_is_left_to_the_kernel() {
        let mut waiter = Waiter::new(Wait::Adaptive);
        for number in 0..20 {
            waiter.found(1, MS * number);
        }
        waiter.next(20 * MS, 4, PATIENCE);
        let step = waiter.next(20 * MS + 6_000, 4, PATIENCE);
        assert!(matches!(step, Some(WaitStep::Poll(_))), "{step:?}");
    }

    #[test]
    fn a_slow_link_is_left_to_the_kernel() {
        let mut waiter = Waiter::new(Wait::Adaptive);
        for number in 0..10 {
            waiter.found(1, 50 * MS * number);
        }
        waiter.next(500 * MS, 64, PATIENCE);
        let step = waiter.next(500 * MS + 6_000, 64, PATIENCE);
        assert!(matches!(step, Some(WaitStep::Poll(_))), "{step:?}");
    }
}
