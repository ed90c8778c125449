//! How many losses of the capture there had been, and when.

use netsniff_packet::Timestamp;

use super::table::wheel::tick_of;

/// Losses of the capture, by which flows compare where they begin and end. Timers come up by their ticks, so that a loss may
/// be told before the flows are looked at that ended earlier in its tick.
#[derive(Debug, Default)]
pub struct CaptureLosses {
    count: u32,
    /// The times of losses in the tick of the last one, each with how many losses came before it.
    recent: Vec<(Timestamp, u32)>,
}

/// Times that are kept of one tick.
const RECENT: usize = 1024;

impl CaptureLosses {
    /// All of them so far; it wraps.
    #[must_use]
    #[inline]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Engine time of the last one.
    #[must_use]
    pub fn last(&self) -> Option<Timestamp> {
        self.recent.last().map(|(at, _)| *at)
    }

    /// Whether no more times of the tick of `now` can be kept: where all is over that ends until now, none is needed.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.recent.len() >= RECENT
    }

    /// Forgets when they were, but for the last one.
    pub fn settle(&mut self) {
        let before_last = self.recent.len().saturating_sub(1);
        self.recent.drain(..before_last);
    }

    /// Notes one at engine time `now`. All that ended in earlier ticks is told.
    pub fn note(&mut self, now: Timestamp) {
        let last = self.last();
        if last.is_none_or(|last| tick_of(last) != tick_of(now)) {
            self.recent.clear();
        }
        if last != Some(now) {
            self.recent.push((now, self.count));
        }
        self.count = self.count.wrapping_add(1);
    }

    /// How many there had been when something ended by a timer.
    #[must_use]
    pub fn before(&self, end: Timestamp) -> u32 {
        let at = self.recent.partition_point(|(at, _)| *at < end);
        self.recent.get(at).map_or(self.count, |(_, before)| *before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_before_a_loss_in_its_tick_is_told_apart() {
        let at = Timestamp::from_nanos;
        let mut losses = CaptureLosses::default();
        for nanos in [5, 30_000_003, 30_000_003, 30_000_007] {
            losses.note(at(nanos));
        }
        assert_eq!((losses.count(), losses.last()), (4, Some(at(30_000_007))));
        let before = |nanos| losses.before(at(nanos));
        assert_eq!([3, 4, 7, 8].map(|nanos| before(30_000_000 + nanos)), [1, 3, 3, 4]);
        losses.settle();
        assert_eq!((losses.count(), losses.last()), (4, Some(at(30_000_007))));
    }

    #[test]
    fn times_within_one_tick_are_bounded() {
        let mut losses = CaptureLosses::default();
        for nanos in 0..9_000_000 {
            if losses.is_full() {
                losses.settle();
            }
            losses.note(Timestamp::from_nanos(nanos));
        }
        assert!(losses.recent.len() <= RECENT && losses.count() == 9_000_000);
    }
}
