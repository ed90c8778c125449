//! Reading an index, in little memory whatever its size: it goes by piece after piece, and only what is wanted is kept.

use std::io::{BufRead as _, BufReader, Read, Seek, SeekFrom};

use netsniff_packet::fnv;

use super::Identity;
use super::blocks::Block;
use super::format::{Header, MAGIC, NAME, Together};
use super::wanted::Wanted;

/// An index that is damaged or none.
const DAMAGED: &str = "the index is damaged";
/// Bytes that are read at once.
const READ_SIZE: usize = 64 << 10;

/// An index in a file.
#[derive(Debug)]
pub struct Index<R> {
    /// What it is about.
    pub header: Header,
    input: R,
    /// Where the table of blocks begins, and where connections end.
    blocks: u64,
    end: u64,
}

/// A stretch of the file that is read from its begin on.
struct Stretch<R> {
    input: BufReader<R>,
    left: u64,
}

impl<R: Read> Stretch<R> {
    fn byte(&mut self) -> Result<u8, String> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.left = self.left.checked_sub(N as u64).ok_or(DAMAGED)?;
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(|error| format!("cannot read: {error}"))?;
        Ok(bytes)
    }

    fn word(&mut self) -> Result<u64, String> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number in LEB128.
    fn number(&mut self) -> Result<u64, String> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(DAMAGED.to_owned())
    }

    fn skip(&mut self, bytes: u64) -> Result<(), String> {
        self.left = self.left.checked_sub(bytes).ok_or(DAMAGED)?;
        let skipped = std::io::copy(&mut self.input.by_ref().take(bytes), &mut std::io::sink());
        let skipped = skipped.map_err(|error| format!("cannot read: {error}"))?;
        if skipped == bytes { Ok(()) } else { Err(DAMAGED.to_owned()) }
    }
}

impl<R: Read + Seek> Index<R> {
    /// Checks an index of `len` bytes, and reads what it is about.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn open(input: R, len: u64) -> Result<Self, String> {
        let begin = MAGIC.len() as u64;
        let content = len.checked_sub(8).filter(|content| *content >= begin).ok_or(DAMAGED)?;
        let header = Header {
            capture: Identity { size: 0, modified: 0, head: 0 },
            together: Together::Captures(0),
            choices: 0,
        };
        let mut index = Self { header, input, blocks: begin, end: content };
        let mut whole = index.stretch(0, len)?;
        if whole.array()? != *MAGIC {
            return Err("it is no index of this version".to_owned());
        }
        let (mut sum, mut left) = (fnv::add(fnv::BASIS, MAGIC), content - begin);
        while left > 0 {
            let bytes = whole.input.fill_buf().map_err(|error| format!("cannot read: {error}"))?;
            let taken = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            sum = fnv::add(sum, bytes.get(..taken).filter(|it| !it.is_empty()).ok_or(DAMAGED)?);
            whole.input.consume(taken);
            left -= taken as u64;
        }
        whole.left = 8;
        if whole.word()? != sum {
            return Err(DAMAGED.to_owned());
        }
        index.read_header()?;
        Ok(index)
    }

    fn read_header(&mut self) -> Result<(), String> {
        let mut head = self.stretch(MAGIC.len() as u64, self.end)?;
        let [size, modified, hash] = [head.word()?, head.word()?, head.word()?];
        let capture = Identity { size, modified: modified.cast_signed(), head: hash };
        let together = Together::of_words([head.word()?, head.word()?]);
        let header = Header { capture, together, choices: head.word()? };
        let left = head.left;
        self.blocks = self.end - left;
        self.header = header;
        Ok(())
    }

    fn stretch(&mut self, from: u64, to: u64) -> Result<Stretch<&mut R>, String> {
        let place = self.input.seek(SeekFrom::Start(from));
        place.map_err(|error| format!("cannot read: {error}"))?;
        let input = BufReader::with_capacity(READ_SIZE, &mut self.input);
        Ok(Stretch { input, left: to.saturating_sub(from) })
    }

    /// Hands the blocks of the capture to `take`, in order: each lies within the capture.
    ///
    /// # Errors
    ///
    /// Where the index is damaged, and those of `take`.
    pub fn blocks(
        &mut self,
        mut take: impl FnMut(Block) -> Result<(), String>,
    ) -> Result<(), String> {
        let size = self.header.capture.size;
        let mut table = self.stretch(self.blocks, self.end)?;
        let (mut at, mut packets) = (0_u64, 0_u64);
        for _ in 0..table.number()? {
            at = at.checked_add(table.number()?).filter(|at| *at < size).ok_or(DAMAGED)?;
            let word = table.number()?;
            packets = packets.checked_add(word >> 1).ok_or(DAMAGED)?;
            take(Block { at, packets, tells: word & 1 == 1 })?;
        }
        Ok(())
    }

    /// The packets of connections that are `wanted` by their names and the hashes of their Community IDs.
    ///
    /// # Errors
    ///
    /// Where the index is damaged, or they take more than `most` bytes of memory.
    pub fn packets_of(
        &mut self,
        wanted: impl Fn(u128, u64) -> bool,
        most: usize,
    ) -> Result<Wanted, String> {
        let mut rest = self.stretch(self.blocks, self.end)?;
        for _ in 0..rest.number()? {
            rest.number()?;
            rest.number()?;
        }
        let mut found = Wanted::default();
        while rest.left > 0 {
            let mut bytes = [0; 16];
            bytes[..NAME].copy_from_slice(&rest.array::<NAME>()?);
            let (name, community) = (u128::from_le_bytes(bytes), rest.word()?);
            let len = rest.number()?;
            if !wanted(name, community) {
                rest.skip(len)?;
                continue;
            }
            let end = rest.left.checked_sub(len).ok_or(DAMAGED)?;
            found.begin(name);
            let mut number = 0_u64;
            while rest.left > end && found.memory() <= most {
                number = number.checked_add(rest.number()?).ok_or(DAMAGED)?;
                if !found.push(number) {
                    return Err(DAMAGED.to_owned());
                }
            }
            if found.memory() > most {
                return Err("more packets are wanted than it serves".to_owned());
            }
            if rest.left != end {
                return Err(DAMAGED.to_owned());
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::carving::index::format::{Postings, Writer};

    fn written() -> Vec<u8> {
        let capture = Identity { size: 1 << 40, modified: -5, head: 9 };
        let header = Header { capture, together: Together::Recording(3), choices: 4 };
        let block = |at, packets, tells| Block { at, packets, tells };
        let blocks = [block(24, 0, true), block(70_000, 900, false), block(1 << 39, 1 << 33, true)];
        let mut writer = Writer::new(Vec::new(), &header, &blocks).unwrap();
        for (name, numbers) in [(7, vec![1, 2, 300]), (1 << 95, vec![5]), (7, vec![301, 1 << 34])] {
            let mut postings = Postings::default();
            numbers.into_iter().for_each(|number| postings.push(number));
            writer.flow(name, name as u64 + 1, &postings).unwrap();
        }
        writer.finish().unwrap()
    }

    fn open(bytes: &[u8]) -> Result<Index<Cursor<&[u8]>>, String> {
        Index::open(Cursor::new(bytes), bytes.len() as u64)
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = written();
        let mut index = open(&bytes).unwrap();
        assert_eq!(index.header.capture.modified, -5);
        assert_eq!((index.header.together, index.header.choices), (Together::Recording(3), 4));
        let last = Block { at: 1 << 39, packets: 1 << 33, tells: true };
        let mut blocks = Vec::new();
        index
            .blocks(|block| {
                blocks.push(block);
                Ok(())
            })
            .unwrap();
        assert_eq!((blocks.len(), blocks[2]), (3, last));
        let mut numbers = |name, community| {
            let wanted = |it, id| it == name || id == community;
            let packets = index.packets_of(wanted, 1000).unwrap();
            let mut order = packets.in_order();
            let numbers = core::iter::from_fn(|| Some(order.next(&packets)?.0));
            numbers.collect::<Vec<_>>()
        };
        assert_eq!(numbers(7, 0), [1, 2, 300, 301, 1 << 34]);
        assert_eq!(numbers(0, 8), [1, 2, 300, 301, 1 << 34]);
        assert_eq!(numbers(1 << 95, 0), [5]);
        assert_eq!(numbers(8, 0), [0; 0]);
        assert!(index.packets_of(|_, _| true, 100).unwrap_err().contains("more packets"));
    }

    /// Any changed or missing byte is noticed, and with a right hash nothing panics either.
    #[test]
    fn damage_is_noticed_and_does_no_harm() {
        let bytes = written();
        for at in 0..bytes.len() {
            assert!(open(&bytes[..at]).is_err(), "cut at {at}");
            let mut changed = bytes.clone();
            changed[at] ^= 0x81;
            assert!(open(&changed).is_err(), "changed at {at}");
            let end = changed.len() - 8;
            for bits in [0x81, 0x7f, 0x01, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= bits;
                let sum = fnv::add(fnv::BASIS, &changed[..end]).to_le_bytes();
                changed[end..].copy_from_slice(&sum);
                if let Ok(mut index) = open(&changed) {
                    let _ = index.packets_of(|_, _| true, 1000);
                    let _ = index.blocks(|_| Ok(()));
                }
            }
        }
    }

    /// A table may tell any number of blocks and connections of any length: what is not wanted takes no memory.
    #[test]
    fn numbers_that_are_claimed_and_not_there_take_no_memory() {
        let capture = Identity { size: u64::MAX, modified: 0, head: 0 };
        let header = Header { capture, together: Together::Captures(1), choices: 4 };
        let mut bytes = Writer::new(Vec::new(), &header, &[]).unwrap().finish().unwrap();
        bytes.truncate(bytes.len() - 9);
        // 2^63 blocks.
        bytes.extend([0x80; 9].into_iter().chain([1]));
        bytes.extend(fnv::add(fnv::BASIS, &bytes).to_le_bytes());
        let mut index = open(&bytes).unwrap();
        assert_eq!(index.blocks(|_| Ok(())).unwrap_err(), DAMAGED);
        assert_eq!(index.packets_of(|_, _| true, 9).unwrap_err(), DAMAGED);
    }
}
