//! The key, and what a file must hold to be one.

use core::fmt;

/// 32 bytes, of which 16 are the key of Crypto-PAn's cipher and 16 its pad, as in its authors'
/// implementation. The keys of all other mappings are derived from the second half.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    pub(super) cipher: [u8; 16],
    pub(super) pad: [u8; 16],
}

/// Why bytes are no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// Neither 64 hexadecimal digits nor 32 bytes; how many bytes there are.
    Length(usize),
    /// 64 characters of which one is no hexadecimal digit; its place, from 1.
    Digit(usize),
    /// So few different bytes that nobody drew it at random.
    Weak,
}

impl Key {
    /// Bytes of a key.
    pub const LEN: usize = 32;

    /// Different bytes that 32 random ones have at least: fewer come in 1 of 10^15 keys.
    const LEAST_DISTINCT: usize = 16;

    /// A key of random bytes.
    #[must_use]
    pub fn new(bytes: [u8; Self::LEN]) -> Self {
        let (mut cipher, mut pad) = ([0; 16], [0; 16]);
        let all = cipher.iter_mut().chain(&mut pad);
        all.zip(bytes).for_each(|(to, from)| *to = from);
        Self { cipher, pad }
    }

    /// Reads what a key file holds: 64 hexadecimal digits, with white space around them, or 32
    /// bytes.
    ///
    /// # Errors
    ///
    /// [`KeyError`] says what is wrong.
    pub fn parse(content: &[u8]) -> Result<Self, KeyError> {
        let digits = content.trim_ascii();
        let bytes = if let Ok(bytes) = content.try_into() {
            bytes
        } else if digits.len() == 2 * Self::LEN {
            let mut bytes = [0; Self::LEN];
            for (at, (byte, pair)) in bytes.iter_mut().zip(digits.as_chunks::<2>().0).enumerate() {
                let digit = |nth: usize| {
                    let value = char::from(pair[nth]).to_digit(16);
                    value.map(|value| value as u8).ok_or(KeyError::Digit(2 * at + nth + 1))
                };
                *byte = digit(0)? << 4 | digit(1)?;
            }
            bytes
        } else {
            return Err(KeyError::Length(content.len()));
        };
        let mut sorted: [u8; Self::LEN] = bytes;
        sorted.sort_unstable();
        let distinct = 1 + sorted.windows(2).filter(|pair| pair[0] != pair[1]).count();
        if distinct < Self::LEAST_DISTINCT { Err(KeyError::Weak) } else { Ok(Self::new(bytes)) }
    }
}

/// Shows nothing of the key.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(len) => write!(
                f,
                "{len} bytes are no key, which has 64 hexadecimal digits or is 32 bytes of any value"
            ),
            Self::Digit(place) => write!(f, "character {place} is no hexadecimal digit"),
            Self::Weak => f.write_str("so few of its bytes differ that it is no random key"),
        }
    }
}

impl core::error::Error for KeyError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hexadecimal_or_raw() {
        let raw: [u8; 32] = core::array::from_fn(|i| i as u8 * 7 + 1);
        let hex: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(Key::parse(&raw), Ok(Key::new(raw)));
        assert_eq!(Key::parse(format!(" {}\n", hex.to_uppercase()).as_bytes()), Ok(Key::new(raw)));
        assert_eq!(Key::parse(b""), Err(KeyError::Length(0)));
        assert_eq!(Key::parse(&raw[1..]), Err(KeyError::Length(31)));
        assert_eq!(Key::parse(&hex.as_bytes()[1..]), Err(KeyError::Length(63)));
        assert_eq!(Key::parse(hex.replace("16", "1g").as_bytes()), Err(KeyError::Digit(8)));
        assert_eq!(Key::parse(&[7; 32]), Err(KeyError::Weak));
        assert_eq!(Key::parse(&b"ab".repeat(32)), Err(KeyError::Weak));
        assert_eq!(format!("{:?}", Key::new(raw)), "Key");
    }
}
