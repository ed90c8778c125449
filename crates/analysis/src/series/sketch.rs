//! Quantiles of times: a histogram with logarithmic buckets, which can be added to another.

use core::ops::AddAssign;

/// Buckets of each power of two. A value is told as the middle of its bucket, which is off by 1/64 of it at most.
const BUCKETS: u64 = 32;
/// Bits that tell the bucket within a power of two.
const BITS: u32 = BUCKETS.ilog2();

/// How often values came. What any order of values and of additions gives is the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sketch {
    /// The buckets that have values, in order, with how many.
    buckets: Vec<(u16, u64)>,
    count: u64,
    min: u64,
    max: u64,
}

impl Sketch {
    /// Adds a value `times` times.
    pub(super) fn add(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        self.note_extremes(value, value);
        self.count += times;
        self.bucket(bucket_of(value), times);
    }

    fn note_extremes(&mut self, min: u64, max: u64) {
        let is_first = self.count == 0;
        self.min = if is_first { min } else { self.min.min(min) };
        self.max = self.max.max(max);
    }

    fn bucket(&mut self, bucket: u16, times: u64) {
        match self.buckets.binary_search_by_key(&bucket, |&(bucket, _)| bucket) {
            Ok(at) => self.buckets[at].1 += times,
            Err(at) => self.buckets.insert(at, (bucket, times)),
        }
    }

    /// How many values there are.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// The least and the greatest value; `None` without any.
    pub(super) fn extremes(&self) -> Option<(u64, u64)> {
        (self.count > 0).then_some((self.min, self.max))
    }

    /// The value that `percent` of all do not exceed, by the nearest rank; `None` without values.
    pub(super) fn percentile(&self, percent: u64) -> Option<u64> {
        let rank = (self.count * percent).div_ceil(100).max(1);
        let mut below = 0;
        for &(bucket, times) in &self.buckets {
            below += times;
            if below >= rank {
                return Some(middle_of(bucket).clamp(self.min, self.max));
            }
        }
        None
    }

    /// Bytes that it holds outside itself.
    pub(super) const fn heap_bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<(u16, u64)>()
    }
}

impl AddAssign<&Self> for Sketch {
    fn add_assign(&mut self, other: &Self) {
        if let Some((min, max)) = other.extremes() {
            self.note_extremes(min, max);
            self.count += other.count;
            other.buckets.iter().for_each(|&(bucket, times)| self.bucket(bucket, times));
        }
    }
}

/// The bucket of a value: below twice as many values as buckets each has its own.
const fn bucket_of(value: u64) -> u16 {
    if value < 2 * BUCKETS {
        return value as u16;
    }
    let shift = value.ilog2() - BITS;
    (shift as u64 * BUCKETS + (value >> shift)) as u16
}

/// The middle of the values of a bucket.
const fn middle_of(bucket: u16) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * BUCKETS {
        return bucket;
    }
    let shift = bucket / BUCKETS - 1;
    let low = (bucket % BUCKETS + BUCKETS) << shift;
    low + ((1 << shift) - 1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_off_by_a_64th_at_most() {
        let mut value = 1_u64;
        let mut last = 0;
        while value < u64::MAX / 2 {
            for value in [value - 1, value, value + value / 3] {
                let told = middle_of(bucket_of(value));
                assert!(told.abs_diff(value) <= value / 64, "{value} is told as {told}");
                assert!(bucket_of(value) >= last, "{value}");
                last = bucket_of(value);
            }
            value = value * 2 + 1;
        }
        assert_eq!(bucket_of(u64::MAX), 58 * 32 + 63 + 32 - 32);
    }

    #[test]
    fn percentiles_are_those_of_sorted_values_within_the_error() {
        let mut state = 7_u64;
        let mut values: Vec<u64> = Vec::new();
        let (mut whole, mut halves) = (Sketch::default(), [Sketch::default(), Sketch::default()]);
        for number in 0..5_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let value = (state >> 33) % 300_000_000;
            values.push(value);
            whole.add(value, 1);
            halves[number % 2].add(value, 1);
        }
        values.sort_unstable();
        let [mut sum, other] = halves;
        sum += &other;
        assert_eq!(sum, whole);
        assert_eq!(whole.extremes(), Some((values[0], values[4_999])));
        for percent in [1, 50, 90, 99, 100] {
            let exact = values[(5_000 * percent as usize).div_ceil(100) - 1];
            let told = whole.percentile(percent).unwrap();
            assert!(told.abs_diff(exact) <= exact / 64, "{percent}: {exact} is told as {told}");
        }
        assert_eq!(Sketch::default().percentile(50), None);
    }
}
