//! Packets with the stamp of the packet before them: how many, and whether the resolution of the clock explains them.

use netsniff_packet::Timestamp;

/// The coarsest resolution that is told apart, in nanoseconds.
const SECOND: i64 = 1_000_000_000;

/// Of this share of all packets, chance puts at most half into groups of even size that have one stamp: if a group
/// has a random number of packets, its odd and even sizes mix, whatever the rate. Trace files that are merged
/// with a copy of themselves have nothing but even groups.
const BY_CHANCE: f64 = 0.6;

/// Stamps of packets that follow each other.
#[derive(Clone, Debug)]
pub struct EqualStamps {
    last: Timestamp,
    /// Packets that have the last stamp.
    group: u64,
    equal: u64,
    /// Packets in groups of even size, without the last group.
    even: u64,
    packets: u64,
    resolution: i64,
}

impl Default for EqualStamps {
    fn default() -> Self {
        Self { last: Timestamp::MIN, group: 0, equal: 0, even: 0, packets: 0, resolution: SECOND }
    }
}

impl EqualStamps {
    /// Takes the stamp of the packet that comes next.
    #[inline]
    pub fn note(&mut self, stamp: Timestamp) {
        self.packets += 1;
        if stamp == self.last && self.group > 0 {
            self.group += 1;
            self.equal += 1;
            return;
        }
        self.even = self.in_even_groups();
        (self.last, self.group) = (stamp, 1);
        while self.resolution > 1 && stamp.nanos() % self.resolution != 0 {
            self.resolution /= 10;
        }
    }

    /// Packets whose stamps were taken.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Packets with the stamp of the packet before them.
    #[must_use]
    pub const fn equal(&self) -> u64 {
        self.equal
    }

    /// The largest power of ten, in nanoseconds, of which all stamps are multiples; a second at most.
    #[must_use]
    pub const fn resolution_nanos(&self) -> u64 {
        self.resolution.unsigned_abs()
    }

    /// Packets that stand in groups of two, four, six … with one stamp.
    #[must_use]
    pub const fn in_even_groups(&self) -> u64 {
        self.even + if self.group.is_multiple_of(2) { self.group } else { 0 }
    }

    /// Whether more packets stand in groups of even size than chance explains.
    #[must_use]
    pub fn are_doubled(&self) -> bool {
        self.in_even_groups() as f64 > BY_CHANCE * self.packets as f64
    }

    /// Adds those of another ring.
    pub(super) fn merge(&mut self, other: &Self) {
        self.even = self.in_even_groups() + other.in_even_groups();
        self.group = 0;
        self.equal += other.equal;
        self.packets += other.packets;
        self.resolution = self.resolution.min(other.resolution);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps(nanos: impl IntoIterator<Item = i64>) -> EqualStamps {
        let mut stamps = EqualStamps::default();
        nanos.into_iter().for_each(|nanos| stamps.note(Timestamp::from_nanos(nanos)));
        stamps
    }

    #[test]
    fn equal_stamps_are_counted_with_their_groups() {
        let of = stamps([1_000, 1_000, 5_000, 7_000, 7_000, 7_000, 9_000, 9_000]);
        assert_eq!((of.equal(), of.in_even_groups(), of.resolution_nanos()), (4, 4, 1_000));
        assert!(!of.are_doubled());
        let none = stamps([]);
        assert_eq!((none.equal(), none.in_even_groups()), (0, 0));
        assert!(!none.are_doubled());
        let mut both = stamps([10, 10]);
        both.merge(&stamps([10, 10, 20]));
        assert_eq!((both.equal(), both.in_even_groups(), both.resolution_nanos()), (2, 4, 10));
    }

    #[test]
    fn a_copy_is_told_from_a_coarse_clock() {
        // Times that are as good as random, at rates from one to thousands in a tick of the clock.
        let mut state = 1_u64;
        let mut time = 0_i64;
        let mut random = |mean: f64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let unit = ((state >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
            time += (-unit.ln() * mean) as i64 + 1;
            time
        };
        for mean in [1e7, 1e6, 1e5, 1e4] {
            let times: Vec<i64> = (0..20_000).map(|_| random(mean)).collect();
            let coarse = stamps(times.iter().map(|time| time / 1_000_000 * 1_000_000));
            assert!(!coarse.are_doubled() && coarse.equal() > 500, "{mean} {coarse:?}");
            assert_eq!(coarse.resolution_nanos(), 1_000_000);
            let doubled = stamps(times.iter().flat_map(|&time| [time; 2]));
            assert!(doubled.are_doubled() && doubled.equal() >= 20_000, "{mean}");
        }
    }
}
