//! Seeded chance: SplitMix64, which is the same on every machine and in every version.

/// Steps from 0 to 1 that a float tells apart.
const STEPS: u64 = 1 << 53;

/// A generator of pseudo-random numbers for traffic; never for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The generator of a seed; each seed has a sequence of its own.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number from 0 to `bound` - 1, or 0 where `bound` is 0.
    ///
    /// The bias is at most `bound` / 2^64, which no test can see.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// True in one of `1 / probability` calls; never for 0 and below, always for 1 and above.
    pub fn chance(&mut self, probability: f64) -> bool {
        (self.below(STEPS) as f64) < probability * STEPS as f64
    }

    /// A positive number or 0, exponentially distributed with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -((STEPS - self.below(STEPS)) as f64 / STEPS as f64).ln()
    }
}

/// Spreads the bits of a number over all 64 bits; a bijection (the finaliser of SplitMix64).
#[must_use]
pub const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A seeded order of the numbers 0 to `len` - 1 that needs no memory: a Feistel network over the next even number of
/// bits, walked until it falls inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shuffle {
    len: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Shuffle {
    /// The order of `len` numbers that belongs to `seed`. `len` is at most 2^62.
    #[must_use]
    pub const fn new(seed: u64, len: u64) -> Self {
        let len = if len > 1 << 62 { 1 << 62 } else { len };
        let bits = if len < 2 { 1 } else { u64::BITS - (len - 1).leading_zeros() };
        let mut random = Random::new(seed);
        let keys = [random.next_u64(), random.next_u64(), random.next_u64(), random.next_u64()];
        Self { len, half_bits: bits.div_ceil(2), keys }
    }

    /// The number at place `index`, which must be below the length; others give `index` itself.
    #[must_use]
    pub const fn at(&self, index: u64) -> u64 {
        if index >= self.len {
            return index;
        }
        let mut value = self.round_trip(index);
        // The network is a permutation of 4 * len numbers at most, so a walk from inside comes back inside.
        while value >= self.len {
            value = self.round_trip(value);
        }
        value
    }

    const fn round_trip(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        let mut round = 0;
        while round < self.keys.len() {
            (left, right) = (right, left ^ (mix(right ^ self.keys[round]) & mask));
            round += 1;
        }
        (left << self.half_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_splitmix64() {
        // Vigna's reference implementation, seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(random.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn chance_keeps_its_promise() {
        let mut random = Random::new(1);
        let hits = (0..100_000).filter(|_| random.chance(0.03)).count();
        assert!((2_800..3_200).contains(&hits), "{hits}");
        assert!((0..1000).all(|_| random.chance(1.0) && !random.chance(0.0)));
    }

    #[test]
    fn a_shuffle_holds_every_number_once() {
        for len in [0, 1, 2, 3, 100, 1000, 4097] {
            let shuffle = Shuffle::new(9, len);
            let mut seen: Vec<u64> = (0..len).map(|index| shuffle.at(index)).collect();
            assert!(
                len < 100 || seen.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count() < 10
            );
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..len), "{len}");
        }
    }
}
