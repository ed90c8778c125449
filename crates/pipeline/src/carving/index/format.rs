//! The bytes of an index.
//!
//! ```text
//! magic, version
//! identity of the capture: size, time of change, hash of its first bytes
//! hash of all captures that were analysed together, or 0; number of the recording, or 0; hash of the choices that name
//! connections
//! blocks: how many; each: bytes since the one before, packets since the one before and the flag `tells` as lowest bit
//! connections: each 12 bytes of name, length of its numbers in bytes, its numbers, each as distance from the one before
//! hash of all bytes before
//! ```
//!
//! Numbers without a fixed size are LEB128, others little-endian. A connection may stand there several times: its
//! numbers are in order.

use std::io::{self, Write};

use super::blocks::Block;
use super::{FIRST, Identity, hash};

/// What an index begins with: a name and the version of the format.
const MAGIC: &[u8; 8] = b"NSINDEX\x02";
/// Bytes of a name.
const NAME: usize = 12;

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

    const fn of_words([hash, number]: [u64; 2]) -> Self {
        if number == 0 { Self::Captures(hash) } else { Self::Recording(number) }
    }
}

/// A hash of a text that tells choices.
#[must_use]
pub fn choices(text: &str) -> u64 {
    hash(text.as_bytes(), FIRST)
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
        let mut writer = Self { output, sum: FIRST, scratch: Vec::new() };
        writer.write(&bytes)?;
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum = hash(bytes, self.sum);
        self.output.write_all(bytes)
    }

    /// Adds packets of a connection.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn flow(&mut self, name: u128, postings: &Postings) -> io::Result<()> {
        let mut bytes = core::mem::take(&mut self.scratch);
        bytes.clear();
        bytes.extend(&name.to_le_bytes()[..NAME]);
        put(postings.bytes.len() as u64, &mut bytes);
        bytes.extend(&postings.bytes);
        let written = self.write(&bytes);
        self.scratch = bytes;
        written
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

/// An index that was read.
#[derive(Debug)]
pub struct Index<'a> {
    /// What it is about.
    pub header: Header,
    /// Where the capture can be read from.
    pub blocks: Vec<Block>,
    flows: &'a [u8],
}

/// An index that is damaged or none.
const DAMAGED: &str = "the index is damaged";

impl<'a> Index<'a> {
    /// Reads an index.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let Some((content, sum)) = bytes.split_last_chunk::<8>() else { return Err(DAMAGED) };
        let Some(mut rest) = content.strip_prefix(MAGIC) else {
            return Err("it is no index of this version");
        };
        if hash(content, FIRST) != u64::from_le_bytes(*sum) {
            return Err(DAMAGED);
        }
        let mut word = || {
            let (word, behind) = rest.split_first_chunk::<8>().ok_or(DAMAGED)?;
            rest = behind;
            Ok::<_, &'static str>(u64::from_le_bytes(*word))
        };
        let capture = Identity { size: word()?, modified: word()?.cast_signed(), head: word()? };
        let together = Together::of_words([word()?, word()?]);
        let header = Header { capture, together, choices: word()? };
        let blocks = blocks(&mut rest, capture.size).ok_or(DAMAGED)?;
        Ok(Self { header, blocks, flows: rest })
    }

    /// The packets of flows that are `wanted`, with their names, sorted.
    ///
    /// # Errors
    ///
    /// Where it is damaged, or they are more than `most`.
    pub fn packets_of(
        &self,
        wanted: impl Fn(u128) -> bool,
        most: usize,
    ) -> Result<Vec<(u64, u128)>, &'static str> {
        let (mut rest, mut found) = (self.flows, Vec::new());
        while !rest.is_empty() {
            let (name, behind) = rest.split_first_chunk::<NAME>().ok_or(DAMAGED)?;
            rest = behind;
            let len = usize::try_from(take(&mut rest).ok_or(DAMAGED)?).map_err(|_| DAMAGED)?;
            let (mut numbers, behind) = rest.split_at_checked(len).ok_or(DAMAGED)?;
            rest = behind;
            let mut bytes = [0; 16];
            bytes[..NAME].copy_from_slice(name);
            let name = u128::from_le_bytes(bytes);
            if !wanted(name) {
                continue;
            }
            let mut number = 0_u64;
            while !numbers.is_empty() {
                let step = take(&mut numbers).ok_or(DAMAGED)?;
                number = number.checked_add(step).ok_or(DAMAGED)?;
                if found.len() >= most {
                    return Err("more packets are wanted than it serves");
                }
                found.push((number, name));
            }
        }
        found.sort_by_key(|(number, _)| *number);
        Ok(found)
    }
}

/// The table of blocks of a capture of `size` bytes: in order, and within it.
fn blocks(rest: &mut &[u8], size: u64) -> Option<Vec<Block>> {
    let count = take(rest)?;
    let (mut blocks, mut at, mut packets) = (Vec::new(), 0_u64, 0_u64);
    for _ in 0..count {
        at = at.checked_add(take(rest)?).filter(|at| *at < size)?;
        let word = take(rest)?;
        packets = packets.checked_add(word >> 1)?;
        blocks.push(Block { at, packets, tells: word & 1 == 1 });
    }
    Some(blocks)
}

/// Adds a number in LEB128.
fn put(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes such a number.
fn take(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> Vec<u8> {
        let capture = Identity { size: 1 << 40, modified: -5, head: 9 };
        let header = Header { capture, together: Together::Recording(3), choices: 4 };
        let block = |at, packets, tells| Block { at, packets, tells };
        let blocks = [block(24, 0, true), block(70_000, 900, false), block(1 << 39, 1 << 33, true)];
        let mut writer = Writer::new(Vec::new(), &header, &blocks).unwrap();
        for (name, numbers) in [(7, vec![1, 2, 300]), (1 << 95, vec![5]), (7, vec![301, 1 << 34])] {
            let mut postings = Postings::default();
            numbers.into_iter().for_each(|number| postings.push(number));
            writer.flow(name, &postings).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = written();
        let index = Index::parse(&bytes).unwrap();
        assert_eq!(index.header.capture.modified, -5);
        assert_eq!((index.header.together, index.header.choices), (Together::Recording(3), 4));
        let last = Block { at: 1 << 39, packets: 1 << 33, tells: true };
        assert_eq!((index.blocks.len(), index.blocks[2]), (3, last));
        let numbers = |name| {
            let packets = index.packets_of(|it| it == name, 5).unwrap();
            packets.into_iter().map(|(number, _)| number).collect::<Vec<_>>()
        };
        assert_eq!(numbers(7), [1, 2, 300, 301, 1 << 34]);
        assert_eq!(numbers(1 << 95), [5]);
        assert_eq!(numbers(8), [0; 0]);
        assert!(index.packets_of(|_| true, 5).unwrap_err().contains("more packets"));
    }

    /// Any changed or missing byte is noticed, and with a right hash nothing panics either.
    #[test]
    fn damage_is_noticed_and_does_no_harm() {
        let bytes = written();
        for at in 0..bytes.len() {
            assert!(Index::parse(&bytes[..at]).is_err(), "cut at {at}");
            let mut changed = bytes.clone();
            changed[at] ^= 0x81;
            assert!(Index::parse(&changed).is_err(), "changed at {at}");
            let end = changed.len() - 8;
            for bits in [0x81, 0x7f, 0x01, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= bits;
                let sum = hash(&changed[..end], FIRST).to_le_bytes();
                changed[end..].copy_from_slice(&sum);
                if let Ok(index) = Index::parse(&changed) {
                    let _ = index.packets_of(|_| true, 1000);
                }
            }
        }
    }
}
