//! Orders for frames over UDP, and the answers to them.
//!
//! Four datagrams: who asks says hello, and gets a ticket with the name of the listener, which is random and new each time
//! that it starts, and the number that the next order must have. The order carries both, and so does the answer. So an
//! order that somebody recorded is of no use: not again, not at another listener, and not after a restart.
//!
//! A datagram is a line: a word such as `netsniff-order/1`, a number, the code of the two and of what follows
//! (HMAC-SHA256 in hexadecimal, or `-` where there is no key), and what follows: JSON.

use std::path::Path;

use anyhow::Context as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use netsniff_console::keyfile;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// Bytes of a key at least.
const LEAST_KEY: usize = 16;

/// Bytes of a datagram at most.
pub(super) const MOST: usize = 8192;

/// What a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Somebody wants to ask.
    Hello,
    /// What an order needs.
    Ticket,
    Order,
    /// What came of it.
    Answer,
}

/// Somebody wants to ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    /// Random, to tell the ticket from earlier ones.
    pub(super) asker: String,
}

/// What an order needs; the number of its datagram is the one that the order must have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ticket {
    /// The number that the asker chose in its hello.
    pub(super) asker: String,
    pub(super) listener: String,
}

/// What frames are wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GenerateRequest {
    /// The number that the listener chose in its ticket.
    pub(super) listener: String,
    /// The options of `netsniff generate` that describe frames.
    pub(super) options: Vec<String>,
}

/// What came of an order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) listener: String,
    /// As an exit code.
    pub(super) code: u8,
    /// Why nothing or less was sent.
    #[serde(default)]
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) report: Option<serde_json::Value>,
}

/// Puts datagrams together and takes them apart, with a key or without.
#[derive(Clone)]
pub(super) struct DatagramCodec(Option<Hmac<Sha256>>);

impl DatagramCodec {
    /// With the key of a file, or without.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or has less than [`LEAST_KEY`] bytes.
    pub(super) fn open(key: Option<&Path>) -> anyhow::Result<Self> {
        let key = key.map(keyfile::read).transpose()?;
        Self::new(key.as_deref()).with_context(|| {
            format!("the key has less than {LEAST_KEY} bytes. {}", keyfile::MAKE_ONE)
        })
    }

    /// With a key, or none; `None` where the key is too short.
    fn new(key: Option<&[u8]>) -> Option<Self> {
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

    pub(super) fn put(&self, word: Word, number: u64, json: &str) -> String {
        let code = match &self.0 {
            None => "-".to_owned(),
            Some(mac) => hexadecimal(&covered(mac, word, number, json).finalize().into_bytes()),
        };
        format!("{} {number} {code} {json}", word.name())
    }

    /// The number and the JSON of a datagram; `None` where it is none, or its code is wrong.
    pub(super) fn take<'d>(&self, word: Word, datagram: &'d [u8]) -> Option<(u64, &'d str)> {
        let mut parts = str::from_utf8(datagram).ok()?.trim_end().splitn(4, ' ');
        let (name, number) = (parts.next()?, parts.next()?.parse().ok()?);
        let (code, json) = (parts.next()?, parts.next()?);
        if name != word.name() {
            return None;
        }
        if let Some(mac) = &self.0 {
            // In a time that does not depend on where they differ.
            covered(mac, word, number, json).verify_slice(&bytes(code)?).ok()?;
        }
        Some((number, json))
    }
}

impl Word {
    const fn name(self) -> &'static str {
        match self {
            Self::Hello => "netsniff-hello/1",
            Self::Ticket => "netsniff-ticket/1",
            Self::Order => "netsniff-order/1",
            Self::Answer => "netsniff-answer/1",
        }
    }
}

/// A name that nobody has had before: 128 random bits in hexadecimal.
///
/// # Errors
///
/// A system without random bytes.
pub(super) fn name() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).context("the system gives no random bytes for a name")?;
    Ok(hexadecimal(&bytes))
}

fn covered(mac: &Hmac<Sha256>, word: Word, number: u64, json: &str) -> Hmac<Sha256> {
    let head = format!("{} {number} ", word.name());
    mac.clone().chain_update(head.as_bytes()).chain_update(json.as_bytes())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
        let seal = DatagramCodec::new(Some(b"sixteen bytes...")).unwrap();
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
        let other = DatagramCodec::new(Some(b"another key of 16")).unwrap();
        assert_eq!(other.take(Word::Order, datagram.as_bytes()), None);
        let open = DatagramCodec::new(None).unwrap();
        let unsealed = open.put(Word::Order, 7, "{}");
        assert_eq!(seal.take(Word::Order, unsealed.as_bytes()), None, "no code");
        assert_eq!(open.take(Word::Order, unsealed.as_bytes()), Some((7, "{}")));
        assert!(DatagramCodec::new(Some(b"short")).is_none());
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
