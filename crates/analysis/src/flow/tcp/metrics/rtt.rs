//! Round-trip times: sums from which mean and deviation follow, extremes, and jitter.

/// The samples of one direction, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RttStatistics {
    /// Number of samples.
    pub count: u32,
    /// The shortest sample; nanoseconds.
    pub min: u64,
    /// The longest sample; nanoseconds.
    pub max: u64,
    sum: u64,
    /// Sum of squares, low and high half: a `u128` would pad whatever holds this.
    squares: [u64; 2],
    jitter: Jitter,
}

impl RttStatistics {
    /// Adds a round-trip time in nanoseconds.
    #[inline]
    pub fn add(&mut self, rtt: u64) {
        if self.count == 0 {
            self.min = rtt;
        }
        self.count = self.count.saturating_add(1);
        self.min = self.min.min(rtt);
        self.max = self.max.max(rtt);
        self.sum = self.sum.saturating_add(rtt);
        let square = u128::from(rtt) * u128::from(rtt);
        let squares = self.squares().saturating_add(square);
        self.squares = [squares as u64, (squares >> 64) as u64];
        self.jitter.add(rtt);
    }

    /// The sum of all samples; nanoseconds.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// The mean; `None` without samples.
    #[must_use]
    pub fn average(&self) -> Option<u64> {
        self.sum.checked_div(self.count.into())
    }

    /// The standard deviation of all samples (divided by their number); `None` without samples.
    #[must_use]
    pub fn deviation(&self) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let count = f64::from(self.count);
        let mean = self.sum as f64 / count;
        let variance = self.squares() as f64 / count - mean * mean;
        // A conversion from a float saturates, and a tiny negative variance is rounding.
        Some(variance.max(0.0).sqrt() as u64)
    }

    /// The jitter after the last sample; `None` before the second.
    #[must_use]
    pub fn jitter(&self) -> Option<u64> {
        (self.count > 1).then(|| self.jitter.value())
    }

    const fn squares(&self) -> u128 {
        (self.squares[1] as u128) << 64 | self.squares[0] as u128
    }
}

/// Smoothed difference of consecutive samples, as RFC 3550, 6.4.1 and A.8 have it: each step takes
/// a sixteenth of what the new difference deviates by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Jitter {
    /// The last sample, plus one; 0 before the first.
    last: u64,
    /// The estimate in sixteenths.
    scaled: u64,
}

impl Jitter {
    /// Adds a sample in nanoseconds.
    #[inline]
    pub const fn add(&mut self, sample: u64) {
        if self.last > 0 {
            let difference = sample.abs_diff(self.last - 1);
            let decay = self.scaled.saturating_add(8) >> 4;
            self.scaled = self.scaled.saturating_sub(decay).saturating_add(difference);
        }
        self.last = sample.saturating_add(1);
    }

    /// The estimate in nanoseconds; 0 before two samples.
    #[must_use]
    pub const fn value(&self) -> u64 {
        self.scaled >> 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation_of_known_samples() {
        let mut rtt = RttStatistics::default();
        for sample in [2, 4, 4, 4, 5, 5, 7, 9] {
            rtt.add(sample * 1_000_000);
        }
        assert_eq!((rtt.count, rtt.min, rtt.max), (8, 2_000_000, 9_000_000));
        assert_eq!(rtt.average(), Some(5_000_000));
        assert_eq!(rtt.deviation(), Some(2_000_000));
    }

    #[test]
    fn extremes_neither_overflow_nor_divide_by_zero() {
        let mut rtt = RttStatistics::default();
        assert_eq!((rtt.average(), rtt.deviation(), rtt.jitter()), (None, None, None));
        for _ in 0..10 {
            rtt.add(i64::MAX.unsigned_abs());
            rtt.add(0);
        }
        assert_eq!((rtt.min, rtt.max), (0, i64::MAX.unsigned_abs()));
        assert!(rtt.deviation().is_some());
    }

    #[test]
    fn jitter_follows_rfc_3550() {
        let mut jitter = Jitter::default();
        jitter.add(1_000);
        assert_eq!(jitter.value(), 0);
        jitter.add(1_160);
        assert_eq!(jitter.value(), 10);
        // 160/16 = 10, then 10 + (0 - 10)/16, rounded as RFC 3550 A.8 rounds.
        jitter.add(1_160);
        assert_eq!(jitter.value(), 9);
    }
}
