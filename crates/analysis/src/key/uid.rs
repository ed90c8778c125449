//! The name of a flow: a hash as Zeek prints its connection identifiers.

use core::cmp::Ordering;
use core::fmt;
use core::str::FromStr;

use netsniff_packet::fnv;

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

    /// The 96 bits that it tells: [`Self::new`] makes the same of them.
    #[must_use]
    pub fn bits(&self) -> u128 {
        let digit = |byte: &u8| DIGITS.binary_search(byte).unwrap_or(0) as u128;
        self.0.iter().skip(1).fold(0, |bits, byte| bits * 62 + digit(byte))
    }

    /// A word made of the name, to mix into other hashes.
    #[must_use]
    pub const fn word(&self) -> u64 {
        fnv::add(fnv::BASIS, &self.0)
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

/// A text that names no flow and no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoUid;

impl core::error::Error for NoUid {}

impl fmt::Display for NoUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "it is not an identifier of netsniff, which has C (connections) or F (files) and 17 letters or digits",
        )
    }
}

impl FromStr for Uid {
    type Err = NoUid;

    fn from_str(text: &str) -> Result<Self, NoUid> {
        let bytes: [u8; Self::LEN] = text.as_bytes().try_into().map_err(|_| NoUid)?;
        let uid = Self(bytes);
        let [kind, digits @ ..] = bytes;
        let is_known = matches!(kind, b'C' | b'F') && digits.iter().all(|it| DIGITS.contains(it));
        // More than 96 bits are no name either.
        (is_known && uid.bits() < 1 << 96).then_some(uid).ok_or(NoUid)
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
        assert_eq!(largest.bits(), value);
    }

    #[test]
    fn what_was_printed_is_read_and_nothing_else() {
        let mut hash = 1u128;
        while hash < 1 << 96 {
            let uid = Uid::new(hash);
            assert_eq!(uid.as_str().parse(), Ok(uid));
            assert_eq!((uid.bits(), Uid::new(uid.bits())), (hash, uid));
            hash = hash * 5 + 3;
        }
        let file = Uid::of_file(77);
        assert_eq!(file.as_str().parse(), Ok(file));
        for text in ["", "C", "CHhAvVGS1DHFjwGM9", "D00000000000000000", "C0000000000000000-"] {
            assert_eq!(text.parse::<Uid>(), Err(NoUid), "{text}");
        }
        assert_eq!("Czzzzzzzzzzzzzzzzz".parse::<Uid>(), Err(NoUid), "more than 96 bits");
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
