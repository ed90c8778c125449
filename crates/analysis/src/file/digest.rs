//! Hashes of content, by which files are recognised.

use md5::{Digest as _, Md5};
use sha1::Sha1;
use sha2::Sha256;

/// Which hashes are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashKinds {
    /// MD5, RFC 1321.
    pub md5: bool,
    /// SHA-1, FIPS 180-4.
    pub sha1: bool,
    /// SHA-256, FIPS 180-4.
    pub sha256: bool,
}

impl HashKinds {
    /// Whether there is none to compute.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        !(self.md5 || self.sha1 || self.sha256)
    }
}

/// Hashes being computed over the bytes that came so far.
#[derive(Clone, Debug)]
pub(crate) struct Hashing {
    md5: Option<Md5>,
    sha1: Option<Sha1>,
    sha256: Option<Sha256>,
}

/// Hashes in hexadecimal digits, as Zeek prints them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// MD5 of the content, in hexadecimal digits.
    pub md5: Option<String>,
    /// SHA-1 of the content, in hexadecimal digits.
    pub sha1: Option<String>,
    /// SHA-256 of the content, in hexadecimal digits.
    pub sha256: Option<String>,
}

impl Hashing {
    /// Hashes of nothing yet; `None` where none are wanted.
    pub(crate) fn new(kinds: HashKinds) -> Option<Box<Self>> {
        (!kinds.is_empty()).then(|| {
            Box::new(Self {
                md5: kinds.md5.then(Md5::new),
                sha1: kinds.sha1.then(Sha1::new),
                sha256: kinds.sha256.then(Sha256::new),
            })
        })
    }

    /// Goes on with more bytes.
    pub(crate) fn update(&mut self, data: &[u8]) {
        if let Some(md5) = &mut self.md5 {
            md5.update(data);
        }
        if let Some(sha1) = &mut self.sha1 {
            sha1.update(data);
        }
        if let Some(sha256) = &mut self.sha256 {
            sha256.update(data);
        }
    }

    /// The hashes of all that came.
    pub(crate) fn finish(self) -> Digests {
        Digests {
            md5: self.md5.map(|hash| hex(&hash.finalize())),
            sha1: self.sha1.map(|hash| hex(&hash.finalize())),
            sha256: self.sha256.map(|hash| hex(&hash.finalize())),
        }
    }
}

/// Octets as digits in lower case.
pub(crate) fn hex(octets: &[u8]) -> String {
    let mut text = String::with_capacity(octets.len() * 2);
    push_hex(&mut text, octets);
    text
}

/// Adds octets as digits in lower case.
pub(crate) fn push_hex(text: &mut String, octets: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for octet in octets {
        for nibble in [octet >> 4, octet & 0x0f] {
            text.push(char::from(DIGITS[usize::from(nibble)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_standards() {
        let all = HashKinds { md5: true, sha1: true, sha256: true };
        let mut hashing = Hashing::new(all).unwrap();
        hashing.update(b"a");
        hashing.update(b"bc");
        let digests = hashing.finish();
        assert_eq!(digests.md5.unwrap(), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(digests.sha1.unwrap(), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digests.sha256.unwrap(), sha256);
        assert!(Hashing::new(HashKinds::default()).is_none());
    }
}
