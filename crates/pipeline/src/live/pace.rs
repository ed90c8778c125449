//! How many packets are analysed in one go, and how long at the end, where some of them cost far more than others.

use std::time::Duration;

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

/// Measures what packets cost: only the time of their analysis counts, not that of a filter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    slice: usize,
    /// Whether nothing more comes into the ring.
    is_stopped: bool,
    /// Packets that were analysed since then, and how long that took.
    packets: u32,
    spent: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { slice: SLICE, is_stopped: false, packets: 0, spent: Duration::ZERO }
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
        if self.is_stopped {
            self.packets = self.packets.saturating_add(u32::try_from(packets).unwrap_or(u32::MAX));
            self.spent = self.spent.saturating_add(time);
        }
    }

    /// Nothing more comes into the ring.
    pub(super) const fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Whether there is no time for what is left in the ring.
    pub(super) fn is_over(&self) -> bool {
        self.spent > AT_STOP.saturating_add(EACH.saturating_mul(self.packets))
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
        let mut usual = Pace::default();
        let mut dear = usual;
        usual.took(1, 10 * AT_STOP);
        assert!(!usual.is_over(), "it goes on");
        usual.stop();
        dear.stop();
        for _ in 1..100_u32 {
            usual.took(SLICE, Duration::from_millis(50));
            assert!(!usual.is_over());
        }
        (0..9).for_each(|_| dear.took(1, Duration::from_millis(33)));
        assert!(!dear.is_over());
        dear.took(1, Duration::from_millis(33));
        dear.stop();
        assert!(dear.is_over(), "stopped once");
    }
}
