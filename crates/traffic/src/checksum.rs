//! The Internet checksum, RFC 1071, and its update when a field changes, RFC 1624.

/// The sum of `bytes` as big-endian 16-bit words, carried on from `sum`; an odd last byte is padded with zero.
#[must_use]
pub fn add(sum: u64, bytes: &[u8]) -> u64 {
    // Words of 32 bits sum to the same value modulo 0xffff and halve the work; a frame cannot overflow 64 bits.
    let (words, rest) = bytes.as_chunks::<4>();
    let mut sum = words.iter().fold(sum, |sum, word| sum + u64::from(u32::from_be_bytes(*word)));
    let (pairs, odd) = rest.as_chunks::<2>();
    sum += pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum::<u64>();
    sum + odd.iter().map(|byte| u64::from(*byte) << 8).sum::<u64>()
}

/// Folds a sum to 16 bits and complements it: the value for a header's checksum field.
#[must_use]
pub const fn finish(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The checksum that fits after the bytes `old` became `new`, both of the same even length (RFC 1624, equation 3).
#[must_use]
pub fn update(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    let removed = u64::from(finish(add(0, old)));
    finish(add(u64::from(!checksum) + removed, new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        assert_eq!(finish(add(0, &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])), !0xddf2);
        assert_eq!(finish(add(0, &[0x01])), !0x0100);
    }

    #[test]
    fn an_update_equals_a_new_sum() {
        let mut bytes = [0x45, 0, 0, 40, 1, 2, 3, 4, 64, 6, 9, 9];
        let before = finish(add(0, &bytes));
        let (old, new) = ([bytes[4], bytes[5]], [0xfe, 0xdc]);
        bytes[4..6].copy_from_slice(&new);
        assert_eq!(update(before, &old, &new), finish(add(0, &bytes)));
    }
}
