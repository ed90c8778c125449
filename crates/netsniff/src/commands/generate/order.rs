//! Orders for frames over UDP, and the answers to them.
//!
//! A datagram is a line: `netsniff-order/1` or `netsniff-answer/1`, a counter, the code of the two and of what follows
//! (HMAC-SHA256 in hexadecimal, or `-` where there is no key), and what follows: JSON. The counter of an order must be
//! higher than that of every one before; an answer has that of its order.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// Bytes of a key at least.
pub(super) const LEAST_KEY: usize = 16;

/// Bytes of a datagram at most.
pub(super) const MOST: usize = 8192;

/// What a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Frames are wanted.
    Order,
    /// What came of it.
    Answer,
}

/// What frames are wanted: the options of `netsniff generate` that describe frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    pub(super) options: Vec<String>,
}

/// What came of an order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    /// As an exit code.
    pub(super) code: u8,
    /// Why nothing or less was sent.
    #[serde(default)]
    pub(super) error: Option<String>,
    /// The report.
    #[serde(default)]
    pub(super) report: Option<serde_json::Value>,
}

/// Puts datagrams together and takes them apart, with a key or without.
#[derive(Clone)]
pub(super) struct Seal(Option<Hmac<Sha256>>);

impl Seal {
    /// With a key, or none; `None` where the key is too short.
    pub(super) fn new(key: Option<&[u8]>) -> Option<Self> {
        let Some(key) = key else { return Some(Self(None)) };
        if key.len() < LEAST_KEY {
            return None;
        }
        Hmac::new_from_slice(key).ok().map(|mac| Self(Some(mac)))
    }

    /// Whether there is a key.
    pub(super) const fn has_key(&self) -> bool {
        self.0.is_some()
    }

    /// A datagram.
    pub(super) fn put(&self, word: Word, counter: u64, json: &str) -> String {
        let code = match &self.0 {
            None => "-".to_owned(),
            Some(mac) => {
                let code = covered(mac, word, counter, json).finalize().into_bytes();
                code.iter().map(|byte| format!("{byte:02x}")).collect()
            }
        };
        format!("{} {counter} {code} {json}", word.name())
    }

    /// The counter and the JSON of a datagram; `None` where it is none, or its code is wrong.
    pub(super) fn take<'d>(&self, word: Word, datagram: &'d [u8]) -> Option<(u64, &'d str)> {
        let mut parts = str::from_utf8(datagram).ok()?.trim_end().splitn(4, ' ');
        let (name, counter) = (parts.next()?, parts.next()?.parse().ok()?);
        let (code, json) = (parts.next()?, parts.next()?);
        if name != word.name() {
            return None;
        }
        if let Some(mac) = &self.0 {
            // In a time that does not depend on where they differ.
            covered(mac, word, counter, json).verify_slice(&bytes(code)?).ok()?;
        }
        Some((counter, json))
    }
}

impl Word {
    const fn name(self) -> &'static str {
        match self {
            Self::Order => "netsniff-order/1",
            Self::Answer => "netsniff-answer/1",
        }
    }
}

fn covered(mac: &Hmac<Sha256>, word: Word, counter: u64, json: &str) -> Hmac<Sha256> {
    let head = format!("{} {counter} ", word.name());
    mac.clone().chain_update(head.as_bytes()).chain_update(json.as_bytes())
}

fn bytes(hexadecimal: &str) -> Option<Vec<u8>> {
    let pairs = hexadecimal.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_is_refused() {
        let seal = Seal::new(Some(b"sixteen bytes...")).unwrap();
        let datagram = seal.put(Word::Order, 7, r#"{"options":[]}"#);
        assert_eq!(seal.take(Word::Order, datagram.as_bytes()), Some((7, r#"{"options":[]}"#)));
        assert_eq!(seal.take(Word::Answer, datagram.as_bytes()), None, "no answer");
        for at in 0..datagram.len() {
            let mut changed = datagram.clone().into_bytes();
            changed[at] ^= 1;
            assert_eq!(seal.take(Word::Order, &changed), None, "byte {at}");
        }
        for len in 0..datagram.len() {
            assert_eq!(seal.take(Word::Order, &datagram.as_bytes()[..len]), None, "{len} bytes");
        }
        let other = Seal::new(Some(b"another key of 16")).unwrap();
        assert_eq!(other.take(Word::Order, datagram.as_bytes()), None);
        let open = Seal::new(None).unwrap();
        let unsealed = open.put(Word::Order, 7, "{}");
        assert_eq!(seal.take(Word::Order, unsealed.as_bytes()), None, "no code");
        assert_eq!(open.take(Word::Order, unsealed.as_bytes()), Some((7, "{}")));
        assert!(Seal::new(Some(b"short")).is_none());
    }

    /// RFC 4231, test case 2, shows that it is HMAC-SHA256 that covers the line.
    #[test]
    fn codes_are_those_of_rfc_4231() {
        let mac: Hmac<Sha256> = Hmac::new_from_slice(b"Jefe").unwrap();
        let code = mac.chain_update(b"what do ya want for nothing?").finalize().into_bytes();
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(code.to_vec(), bytes(expected).unwrap());
    }
}
