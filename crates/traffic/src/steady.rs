//! Times of a capture as those of a clock that never goes back.

use netsniff_packet::Timestamp;

/// Packets of several processors can be out of order by less than this, in nanoseconds.
const DISORDER: i64 = 1_000_000_000;

/// So many packets in succession that lie further back are those of a clock that was set back.
const ENOUGH: u32 = 8;

/// Makes times that never go back of those that were recorded.
///
/// A packet with a time before that of an earlier one gets the time of that one. Where packets go on to lie more than
/// a second back, the clock of the capture was set back: from the eighth on, gaps are those of the new time. A single
/// wrong time changes nothing for the packets behind it.
#[derive(Clone, Debug)]
pub struct Steady {
    /// The latest time as recorded.
    latest: Option<Timestamp>,
    /// What is added to recorded times, and the latest sum.
    shift: i64,
    told: Timestamp,
    behind: Option<Behind>,
    backwards: u64,
    set_back: u64,
}

/// Packets that lie far back, in succession.
#[derive(Clone, Copy, Debug)]
struct Behind {
    latest: Timestamp,
    packets: u32,
}

impl Default for Steady {
    fn default() -> Self {
        let (latest, behind) = (None, None);
        Self { latest, shift: 0, told: Timestamp::MIN, behind, backwards: 0, set_back: 0 }
    }
}

impl Steady {
    /// The time of the next packet.
    pub fn at(&mut self, time: Timestamp) -> Timestamp {
        let latest = match self.latest {
            Some(latest) if time < latest => self.earlier(time, latest),
            _ => {
                self.behind = None;
                time
            }
        };
        self.latest = Some(latest);
        // Sums of times beyond what a timestamp holds are no reason to go back.
        let steady = latest.offset(self.shift).max(self.told);
        self.told = steady;
        steady
    }

    /// Packets with a time before that of an earlier one.
    #[must_use]
    pub const fn backwards(&self) -> u64 {
        self.backwards
    }

    /// How often the clock of the capture was set back.
    #[must_use]
    pub const fn set_back(&self) -> u64 {
        self.set_back
    }

    /// Takes a packet with an earlier time than another one; returns the latest time as recorded now.
    fn earlier(&mut self, time: Timestamp, latest: Timestamp) -> Timestamp {
        self.backwards += 1;
        if latest.nanos_since(time) <= DISORDER {
            return latest;
        }
        let behind = match self.behind {
            Some(Behind { latest, packets }) if latest.nanos_since(time) <= DISORDER => {
                Behind { latest: latest.max(time), packets: packets + 1 }
            }
            _ => Behind { latest: time, packets: 1 },
        };
        if behind.packets < ENOUGH {
            self.behind = Some(behind);
            return latest;
        }
        self.behind = None;
        self.set_back += 1;
        self.shift = self.shift.saturating_add(latest.nanos_since(behind.latest));
        behind.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    const SECOND: i64 = 1_000_000_000;

    fn steady(times: &[i64]) -> (Steady, Vec<i64>) {
        let mut steady = Steady::default();
        let times = times.iter().map(|nanos| steady.at(Timestamp::from_nanos(*nanos)).nanos());
        let times = times.collect();
        (steady, times)
    }

    #[test]
    fn a_wrong_time_is_that_of_one_packet() {
        let (counts, times) = steady(&[100 * SECOND, 0, 101 * SECOND, 100 * SECOND, 102 * SECOND]);
        assert_eq!(times, [100, 100, 101, 101, 102].map(|seconds| seconds * SECOND));
        assert_eq!((counts.backwards(), counts.set_back()), (2, 0));
        // Every second one, from a capture beside it.
        let mixed: Vec<_> = (0..40).flat_map(|at| [(100 + at) * SECOND, at * SECOND]).collect();
        let (counts, times) = steady(&mixed);
        assert_eq!((counts.backwards(), counts.set_back()), (40, 0));
        assert_eq!(times.last(), Some(&(139 * SECOND)));
    }

    #[test]
    fn gaps_go_on_where_the_clock_was_set_back() {
        let recorded: Vec<_> = (1000..1010).chain(500..520).map(|at| at * SECOND).collect();
        let (counts, times) = steady(&recorded);
        assert_eq!((counts.backwards(), counts.set_back()), (8, 1));
        let gaps: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]) / SECOND).collect();
        assert_eq!(gaps, [&[1; 9][..], &[0; 8], &[1; 12]].concat());
    }

    #[test]
    fn no_time_goes_back_whatever_was_recorded() {
        let mut random = Random::new(3);
        for _ in 0..200 {
            let spread = 1 << random.below(62);
            let shift = random.below(spread) as i64;
            let recorded: Vec<_> = (0..200).map(|_| random.below(spread) as i64 - shift).collect();
            let (_, times) = steady(&recorded);
            assert!(times.is_sorted(), "{recorded:?}");
        }
        let extreme = [[i64::MAX; 9], [i64::MIN; 9], [0; 9], [i64::MAX; 9]].concat();
        assert!(steady(&extreme).1.is_sorted());
    }
}
