//! The name of a flow: a hash as Zeek prints its connection identifiers.

use core::cmp::Ordering;
use core::fmt;

/// `C` and seventeen digits of base 62, which tell 96 bits of a hash.
///
/// Ordered as the hashes are. Zeek's identifiers have 16 to 18 characters of the same alphabet.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Uid([u8; Self::LEN]);

/// In the order of ASCII, so that the text sorts as the number does.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// 62 to the ninth power: 2^96 is below its square.
const HALF: u128 = 62u128.pow(9);

impl Uid {
    /// Length of the text in bytes.
    pub const LEN: usize = 18;

    /// For what belongs to no flow; sorts before every other.
    pub const NONE: Self = Self(*b"C00000000000000000");

    /// The name for the lower 96 bits of `hash`.
    #[must_use]
    pub const fn new(hash: u128) -> Self {
        let hash = hash & ((1 << 96) - 1);
        let mut text = Self::NONE.0;
        // Two halves of nine and eight digits, since 128-bit divisions are slow.
        let mut low = (hash % HALF) as u64;
        let mut high = (hash / HALF) as u64;
        let mut at = Self::LEN;
        while at > 9 {
            at -= 1;
            text[at] = DIGITS[(low % 62) as usize];
            low /= 62;
        }
        while at > 1 {
            at -= 1;
            text[at] = DIGITS[(high % 62) as usize];
            high /= 62;
        }
        Self(text)
    }

    /// The name of a file for the lower 96 bits of `hash`: it begins with `F`, as in Zeek.
    #[must_use]
    pub const fn of_file(hash: u128) -> Self {
        let mut uid = Self::new(hash);
        uid.0[0] = b'F';
        uid
    }

    /// A word made of the name, to mix into other hashes.
    #[must_use]
    pub const fn word(&self) -> u64 {
        let mut word: u64 = 0xcbf2_9ce4_8422_2325;
        let mut i = 0;
        while i < Self::LEN {
            word = (word ^ self.0[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            i += 1;
        }
        word
    }

    /// The name as ASCII.
    #[must_use]
    #[inline]
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The name as text.
    #[must_use]
    #[inline]
    pub const fn as_str(&self) -> &str {
        match core::str::from_utf8(&self.0) {
            Ok(text) => text,
            // The bytes are digits of base 62, hence ASCII.
            Err(_) => "",
        }
    }
}

/// As the bytes sort; written out, since sorting a million records spends its time here.
impl Ord for Uid {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let words = |uid: &Self| {
            let [a @ .., h, i, j, k, l, m, n, o, p, q] = uid.0;
            (u64::from_be_bytes(a), u64::from_be_bytes([h, i, j, k, l, m, n, o]), [p, q])
        };
        words(self).cmp(&words(other))
    }
}

impl PartialOrd for Uid {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_96_bits_in_base_62() {
        assert_eq!(Uid::new(0).as_str(), "C00000000000000000");
        assert_eq!(Uid::new(61).as_str(), "C0000000000000000z");
        assert_eq!(Uid::new(62).as_str(), "C00000000000000010");
        assert_eq!(Uid::new(HALF).as_str(), "C00000001000000000");
        let largest = Uid::new(u128::MAX);
        assert_eq!(largest, Uid::new((1 << 96) - 1), "only 96 bits count");
        let mut value = 0u128;
        for digit in largest.as_str().bytes().skip(1) {
            let digit = DIGITS.iter().position(|&d| d == digit).unwrap();
            value = value * 62 + digit as u128;
        }
        assert_eq!(value, (1 << 96) - 1);
    }

    #[test]
    fn sorts_as_the_hashes_do() {
        let mut hash = 1u128;
        let mut last = Uid::new(0);
        while hash < 1 << 96 {
            let next = Uid::new(hash);
            assert!(last < next, "{last} < {next}");
            last = next;
            hash = hash * 7 / 3 + 1;
        }
    }
}
