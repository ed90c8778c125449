//! The bytes of an index.
//!
//! ```text
//! magic, version
//! identity of the capture: size, time of change, hash of its first bytes
//! hash of all captures that were analysed together, or 0; number of the recording, or 0; hash of the choices that name
//! connections
//! blocks: how many; each: bytes since the one before, packets since the one before and the flag `tells` as lowest bit
//! connections: each 12 bytes of name, 8 bytes that are a hash of its Community ID, length of its numbers in bytes, its
//! numbers, each as distance from the one before
//! hash of all bytes before
//! ```
//!
//! Numbers without a fixed size are LEB128, others little-endian. A connection may stand there several times: its
//! numbers are in order. Whatever the size of an index, it is read in little memory ([`super::read::Index`]).

use std::io::{self, Write};

use netsniff_packet::fnv;

use super::Identity;
use super::blocks::Block;

/// What an index begins with: a name and the version of the format.
pub(super) const MAGIC: &[u8; 8] = b"NSINDEX\x02";
/// Bytes of a name.
pub(super) const NAME: usize = 12;

/// What an index is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The capture.
    pub capture: Identity,
    /// The captures that were analysed with it.
    pub together: Together,
    /// The choices by which connections are named, as a hash.
    pub choices: u64,
}

/// The captures that were analysed as one traffic, which names connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// All of these, by their hash ([`Identity::of_all`]).
    Captures(u64),
    /// All files of one recording, by its number, which is not 0.
    Recording(u64),
}

impl Together {
    /// As two words, one of which is 0.
    const fn words(self) -> [u64; 2] {
        match self {
            Self::Captures(hash) => [hash, 0],
            Self::Recording(number) => [0, number],
        }
    }

    pub(super) const fn of_words([hash, number]: [u64; 2]) -> Self {
        if number == 0 { Self::Captures(hash) } else { Self::Recording(number) }
    }
}

/// A hash of a text that tells choices.
#[must_use]
pub fn choices(text: &str) -> u64 {
    fnv::add(fnv::BASIS, text.as_bytes())
}

/// Numbers of packets in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Postings {
    bytes: Vec<u8>,
    last: u64,
}

impl Postings {
    /// Adds a number, which is not below the last one.
    pub fn push(&mut self, number: u64) {
        put(number.saturating_sub(self.last), &mut self.bytes);
        self.last = number;
    }

    /// The same with further numbers among them.
    #[must_use]
    pub fn with(&self, more: &mut [u64]) -> Self {
        more.sort_unstable();
        let mut more = more.iter().copied().peekable();
        let mut all = Self::default();
        for number in self.iter() {
            while let Some(before) = more.next_if(|it| *it <= number) {
                all.push(before);
            }
            all.push(number);
        }
        more.for_each(|number| all.push(number));
        all
    }

    /// The numbers.
    fn iter(&self) -> impl Iterator<Item = u64> {
        let (mut at, mut last) = (0, 0);
        core::iter::from_fn(move || {
            last += take(&self.bytes, &mut at)?;
            Some(last)
        })
    }

    /// The last number; 0 where there is none.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.last
    }

    /// Bytes that they take.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Writes an index.
#[derive(Debug)]
pub struct Writer<W: Write> {
    output: W,
    sum: u64,
    scratch: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins an index.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn new(output: W, header: &Header, blocks: &[Block]) -> io::Result<Self> {
        let mut bytes = MAGIC.to_vec();
        let Header { capture, together, choices } = header;
        let words = [capture.size, capture.modified.cast_unsigned(), capture.head];
        for word in words.into_iter().chain(together.words()).chain([*choices]) {
            bytes.extend(word.to_le_bytes());
        }
        put(blocks.len() as u64, &mut bytes);
        let (mut at, mut packets) = (0, 0);
        for block in blocks {
            put(block.at - at, &mut bytes);
            put((block.packets - packets) << 1 | u64::from(block.tells), &mut bytes);
            (at, packets) = (block.at, block.packets);
        }
        let mut writer = Self { output, sum: fnv::BASIS, scratch: Vec::new() };
        writer.write(&bytes)?;
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum = fnv::add(self.sum, bytes);
        self.output.write_all(bytes)
    }

    /// Adds packets of a connection with a hash of its Community ID ([`community`](crate::carving::choice::community)).
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn flow(&mut self, name: u128, community: u64, postings: &Postings) -> io::Result<()> {
        let mut bytes = core::mem::take(&mut self.scratch);
        bytes.clear();
        bytes.extend(&name.to_le_bytes()[..NAME]);
        bytes.extend(community.to_le_bytes());
        put(postings.bytes.len() as u64, &mut bytes);
        bytes.extend(&postings.bytes);
        let written = self.write(&bytes);
        self.scratch = bytes;
        written
    }

    /// Hands on what the output has gathered.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// Ends the index, and returns the output.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.write_all(&self.sum.to_le_bytes())?;
        self.output.flush()?;
        Ok(self.output)
    }
}

/// Adds a number in LEB128.
pub(super) fn put(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads a number that [`put`] has written at a place, which moves behind it; `None` at the end.
pub(super) fn take(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(number)
}
