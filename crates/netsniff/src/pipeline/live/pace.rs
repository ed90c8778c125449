//! How many packets are analysed in one go, and how long at the end, where some of them cost far more than others.

use std::time::{Duration, Instant};

/// Packets of one go, at most: what is dear is not noticed before its end, and a connection that is made to be dear has some
/// five packets.
const SLICE: usize = 64;

/// How long the packets of one go are to take: whoever rules the run acts in between.
const GO: Duration = Duration::from_millis(20);

/// How long what the ring holds at the stop is analysed, whatever it costs.
const AT_STOP: Duration = Duration::from_millis(300);

/// How much longer for each packet of it: a thousand times what a usual one costs, so that what is usual is analysed
/// to its end, and what somebody made to be dear is not.
const EACH: Duration = Duration::from_millis(1);

/// Measures what packets cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    slice: usize,
    /// Since when nothing more comes into the ring.
    stopped: Option<Instant>,
    /// Packets that were analysed since then.
    packets: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { slice: SLICE, stopped: None, packets: 0 }
    }
}

impl Pace {
    /// How many packets are analysed next.
    pub(super) const fn slice(&self) -> usize {
        self.slice
    }

    /// So many took so long.
    pub(super) fn took(&mut self, packets: usize, time: Duration) {
        if time > GO {
            self.slice = (packets / 4).max(1);
        } else if time < GO / 4 {
            self.slice = self.slice.saturating_mul(2).min(SLICE);
        }
        if self.stopped.is_some() {
            self.packets = self.packets.saturating_add(u32::try_from(packets).unwrap_or(u32::MAX));
        }
    }

    /// Nothing more comes into the ring.
    pub(super) fn stop(&mut self, now: Instant) {
        self.stopped.get_or_insert(now);
    }

    /// Whether there is no time for what is left in the ring.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        let time = AT_STOP.saturating_add(EACH.saturating_mul(self.packets));
        self.stopped.is_some_and(|stopped| now.saturating_duration_since(stopped) > time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dear_packets_are_taken_one_by_one_and_usual_ones_together() {
        let mut pace = Pace::default();
        assert_eq!(pace.slice(), SLICE);
        pace.took(SLICE, Duration::from_secs(3));
        for left in [SLICE / 4, SLICE / 16, SLICE / 64, 1] {
            assert_eq!(pace.slice(), left);
            pace.took(left, Duration::from_millis(33));
        }
        for _ in 0..9 {
            pace.took(1, Duration::from_micros(1));
        }
        assert_eq!(pace.slice(), SLICE);
        pace.took(SLICE, Duration::from_millis(10));
        assert_eq!(pace.slice(), SLICE, "neither dear nor cheap");
    }

    #[test]
    fn at_the_stop_usual_packets_are_analysed_to_their_end_and_dear_ones_are_not() {
        let (begin, mut usual) = (Instant::now(), Pace::default());
        let mut dear = usual;
        assert!(!usual.is_over(begin + 10 * AT_STOP), "it goes on");
        usual.stop(begin);
        dear.stop(begin);
        for number in 1..100_u32 {
            usual.took(SLICE, Duration::from_micros(64));
            assert!(!usual.is_over(begin + number * Duration::from_millis(50)));
        }
        assert!(!dear.is_over(begin + AT_STOP));
        (0..10).for_each(|_| dear.took(1, Duration::from_millis(33)));
        assert!(dear.is_over(begin + Duration::from_millis(330)));
        dear.stop(begin + AT_STOP);
        assert!(dear.is_over(begin + Duration::from_millis(330)), "stopped once");
    }
}
