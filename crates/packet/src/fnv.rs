//! FNV-1a, a hash of 64 bits: it finds damage, and is no protection from who wants to deceive.
//! (G. Fowler, L. C. Noll, K.-P. Vo: draft-eastlake-fnv).

/// What hashing begins with.
pub const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// Adds bytes to a hash.
#[must_use]
pub const fn add(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_draft() {
        assert_eq!(add(BASIS, b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(add(BASIS, b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(add(BASIS, b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(add(add(BASIS, b"foo"), b"bar"), add(BASIS, b"foobar"));
    }
}
