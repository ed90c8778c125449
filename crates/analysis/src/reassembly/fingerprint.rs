//! Fingerprints of bytes that are gone, by a key that no sender knows: other bytes with the same one are
//! found by chance alone.

use core::num::NonZeroU32;

/// Words of the key, and of a block: a segment over Ethernet is one block.
const WORDS: usize = 256;

/// Bytes of a block.
const BLOCK: usize = 8 * WORDS;

/// The key of a process.
#[derive(Debug)]
pub struct Fingerprints {
    words: Box<[u64]>,
    /// What sets blocks apart; odd.
    step: u64,
}

impl Fingerprints {
    /// A key from a seed that nobody else knows.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        let mut words: Vec<u64> =
            core::iter::repeat_with(|| next(&mut state)).take(WORDS).collect();
        let step = words.iter_mut().fold(next(&mut state), |all, word| all.wrapping_add(*word)) | 1;
        Self { words: words.into(), step }
    }

    /// The fingerprint of some bytes. It is NH, the universal hash of UMAC (RFC 4418, 5.2.2): each half of
    /// a word is hidden by one of the key, and their products are added up. Two texts of the same
    /// length are taken for equal once in 2^31.
    #[must_use]
    pub fn of(&self, bytes: &[u8]) -> NonZeroU32 {
        let mut all = 0_u64;
        for block in bytes.chunks(BLOCK) {
            // As arrays of one length, which the compiler takes two and more at a time.
            let (words, rest) = block.as_chunks::<8>();
            let products = words.iter().zip(&self.words[..words.len()]);
            let mut sum = products.fold(0_u64, |sum, (word, key)| {
                sum.wrapping_add(product(u64::from_le_bytes(*word), *key))
            });
            if !rest.is_empty() {
                let mut last = [0; 8];
                last[..rest.len()].copy_from_slice(rest);
                let key = self.words.last().copied().unwrap_or_default();
                sum = sum.wrapping_add(product(u64::from_le_bytes(last), key));
            }
            all = all.wrapping_mul(self.step).wrapping_add(sum);
        }
        let mixed = (all ^ all >> 32).wrapping_mul(self.step) >> 32;
        NonZeroU32::new(mixed as u32).unwrap_or(NonZeroU32::MIN)
    }
}

/// Both halves of a word, each hidden by one of the key, multiplied.
#[inline]
const fn product(word: u64, key: u64) -> u64 {
    let low = (word as u32).wrapping_add(key as u32);
    let high = ((word >> 32) as u32).wrapping_add((key >> 32) as u32);
    low as u64 * high as u64
}

/// The next word of `SplitMix64`.
const fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use netsniff_traffic::Random;

    use super::*;

    /// What the Internet checksum does not see: words that change places, and what one takes and another gets.
    #[test]
    fn changes_that_keep_the_internet_checksum_are_seen() {
        let keys = Fingerprints::new(7);
        let mut random = Random::new(3);
        for len in [4, 7, 8, 9, 64, 1_448, 2_047, 2_048, 2_049, 9_000, 70_000_u64] {
            let bytes: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
            let known = keys.of(&bytes);
            assert_eq!(keys.of(&bytes), known);
            for _ in 0..200 {
                let (one, other) = (2 * random.below(len / 2), 2 * random.below(len / 2));
                let (one, other) = (one as usize, other as usize);
                let mut changed = bytes.clone();
                changed.swap(one, other);
                changed.swap(one + 1, other + 1);
                assert_eq!(keys.of(&changed) == known, changed == bytes, "{len} {one} {other}");
                changed.clone_from(&bytes);
                changed[one] = changed[one].wrapping_add(1);
                assert_ne!(keys.of(&changed), known, "{len} {one}");
            }
        }
    }

    /// Whoever knows the algorithm and not the key cannot aim: with another key other texts would agree.
    #[test]
    fn every_key_has_other_fingerprints() {
        let texts: [&[u8]; 3] = [b"GET /ab/cdef/ HTTP/1.1", b"a", b""];
        for text in &texts[..2] {
            assert_ne!(Fingerprints::new(1).of(text), Fingerprints::new(2).of(text));
        }
    }
}
