//! Sorting more packets than fit into memory: sorted runs on the disk, which are merged.
//!
//! Packets of equal times stay in the order in which they were pushed. Runs are made in that order,
//! and of equal times the earlier run goes first.

use core::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use netsniff_console::unlinked;
use netsniff_packet::{LinkType, Packet, Timestamp};

/// Bytes of the pieces in which packets are kept, unless one alone is longer.
const PIECE: usize = 1 << 20;
/// Bytes that a run is read in at least when it is merged: less would make the disk seek.
const LEAST_READ: usize = 64 << 10;
/// Bytes that a run is read in at most: more gains nothing.
const MOST_READ: usize = 1 << 20;
/// The least memory that sorting can work with.
pub(super) const LEAST_MEMORY: usize = 2 * PIECE;

/// A packet on its way through the sorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item<'a> {
    pub(super) time: Timestamp,
    pub(super) interface: u32,
    pub(super) wire_len: u32,
    /// Packets that were lost before it.
    pub(super) lost: u64,
    pub(super) data: &'a [u8],
}

/// Bytes of a packet's fields before its data: time, interface, length on the wire, losses, length.
const HEAD: usize = 8 + 4 + 4 + 8 + 4;

impl<'a> Item<'a> {
    /// The packet of an interface of this link type.
    pub(super) const fn packet(&self, link_type: LinkType) -> Packet<'a> {
        Packet {
            timestamp: self.time,
            data: self.data,
            wire_len: self.wire_len,
            link_type,
            interface: self.interface,
        }
    }

    fn append(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.time.nanos().to_le_bytes());
        out.extend_from_slice(&self.interface.to_le_bytes());
        out.extend_from_slice(&self.wire_len.to_le_bytes());
        out.extend_from_slice(&self.lost.to_le_bytes());
        out.extend_from_slice(&(self.data.len() as u32).to_le_bytes());
        out.extend_from_slice(self.data);
    }

    /// The packet at the begin of some bytes, and its length with all fields; without data where
    /// that is not there.
    fn parse(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let (time, rest) = bytes.split_first_chunk()?;
        let (interface, rest) = rest.split_first_chunk()?;
        let (wire_len, rest) = rest.split_first_chunk()?;
        let (lost, rest) = rest.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let len = u32::from_le_bytes(*len) as usize;
        let item = Self {
            time: Timestamp::from_nanos(i64::from_le_bytes(*time)),
            interface: u32::from_le_bytes(*interface),
            wire_len: u32::from_le_bytes(*wire_len),
            lost: u64::from_le_bytes(*lost),
            data: rest.get(..len).unwrap_or_default(),
        };
        Some((item, HEAD + len))
    }
}

/// Where a packet lies in memory. In this order ties are resolved as packets came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    time: Timestamp,
    piece: u32,
    offset: u32,
}

/// Takes packets in any order and gives them by time.
#[derive(Debug)]
pub(super) struct Sorter {
    memory: usize,
    /// Where runs are written.
    scratch_name: PathBuf,
    scratch: Option<Scratch>,
    runs: Vec<Run>,
    pieces: Vec<Vec<u8>>,
    /// The piece that is filled.
    current: usize,
    places: Vec<Place>,
}

/// A sorted run: where it lies in the scratch file.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: u64,
    end: u64,
}

impl Sorter {
    /// With this much memory; what exceeds it goes to a file of this name, which is removed.
    pub(super) fn new(memory: usize, scratch_name: PathBuf) -> Self {
        Self {
            memory: memory.max(LEAST_MEMORY),
            scratch_name,
            scratch: None,
            runs: Vec::new(),
            pieces: Vec::new(),
            current: 0,
            places: Vec::new(),
        }
    }

    /// Adds a packet.
    ///
    /// # Errors
    ///
    /// Those of the scratch file.
    pub(super) fn push(&mut self, item: &Item<'_>) -> io::Result<()> {
        let needed = HEAD + item.data.len();
        if !self.places.is_empty() && self.used_with(needed) > self.memory {
            self.spill()?;
        }
        let has_room = |piece: &Vec<u8>| piece.capacity() - piece.len() >= needed;
        while self.pieces.get(self.current).is_some_and(|piece| !has_room(piece)) {
            self.current += 1;
        }
        if self.current >= self.pieces.len() {
            self.pieces.push(Vec::with_capacity(needed.max(PIECE)));
        }
        let Some(piece) = self.pieces.get_mut(self.current) else { return Ok(()) };
        let offset = piece.len() as u32;
        self.places.push(Place { time: item.time, piece: self.current as u32, offset });
        item.append(piece);
        Ok(())
    }

    /// Bytes in use once a packet of so many is added.
    fn used_with(&self, needed: usize) -> usize {
        let rest = self.pieces.iter().skip(self.current);
        let fits = rest.clone().any(|piece| piece.capacity() - piece.len() >= needed);
        let pieces: usize = self.pieces.iter().map(Vec::capacity).sum();
        let more = if fits { 0 } else { needed.max(PIECE) };
        // A full list is copied to one of twice its length.
        let grows = self.places.len() == self.places.capacity();
        let lists = self.places.capacity() * if grows { 3 } else { 1 };
        pieces + more + lists * size_of::<Place>()
    }

    /// Writes what is in memory as a run.
    fn spill(&mut self) -> io::Result<()> {
        let mut scratch = match self.scratch.take() {
            Some(scratch) => scratch,
            None => Scratch::create(&self.scratch_name)?,
        };
        let start = scratch.end;
        self.places.sort_unstable();
        for place in &self.places {
            scratch.output.write_all(raw(&self.pieces, *place))?;
            scratch.end += raw(&self.pieces, *place).len() as u64;
        }
        self.runs.push(Run { start, end: scratch.end });
        self.scratch = Some(scratch);
        self.places.clear();
        // A giant packet's piece is given back.
        self.pieces.retain(|piece| piece.capacity() <= PIECE);
        self.pieces.iter_mut().for_each(Vec::clear);
        self.current = 0;
        Ok(())
    }

    /// Gives all packets by time.
    ///
    /// # Errors
    ///
    /// Those of the scratch file and of `take`.
    pub(super) fn finish(
        mut self,
        mut take: impl FnMut(&Item<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.scratch.is_some() {
            self.spill()?;
        }
        let Some(mut scratch) = self.scratch.take() else {
            self.places.sort_unstable();
            for place in &self.places {
                if let Some((item, _)) = Item::parse(raw(&self.pieces, *place)) {
                    take(&item)?;
                }
            }
            return Ok(());
        };
        (self.pieces, self.places) = (Vec::new(), Vec::new());
        // Half of the memory is for the buffers of a pass, so that single long packets may exceed.
        let fan_in = (self.memory / 2 / LEAST_READ).max(2);
        let mut runs = self.runs;
        while runs.len() > fan_in {
            let mut merged = Scratch::create(&self.scratch_name)?;
            let mut longer = Vec::new();
            for some in runs.chunks(fan_in) {
                let start = merged.end;
                let mut bytes = Vec::new();
                scratch.merge(some, self.memory / 2, |item| {
                    bytes.clear();
                    item.append(&mut bytes);
                    merged.end += bytes.len() as u64;
                    merged.output.write_all(&bytes)
                })?;
                longer.push(Run { start, end: merged.end });
            }
            (scratch, runs) = (merged, longer);
        }
        scratch.merge(&runs, self.memory / 2, take)
    }
}

/// A packet in memory, with its fields.
fn raw(pieces: &[Vec<u8>], place: Place) -> &[u8] {
    let piece = pieces.get(place.piece as usize);
    let rest = piece.and_then(|piece| piece.get(place.offset as usize..)).unwrap_or_default();
    let len = Item::parse(rest).map_or(0, |(_, len)| len);
    rest.get(..len).unwrap_or_default()
}

/// A file that is gone as soon as nobody has it open.
#[derive(Debug)]
struct Scratch {
    output: BufWriter<File>,
    end: u64,
    /// Set where the system does not let go of the name of an open file.
    name: Option<PathBuf>,
}

impl Scratch {
    fn create(name: &Path) -> io::Result<Self> {
        let file = unlinked::create_new_private(name)?;
        let name = std::fs::remove_file(name).err().map(|_| name.to_owned());
        Ok(Self { output: BufWriter::with_capacity(PIECE, file), end: 0, name })
    }

    /// Gives the packets of some runs by time.
    fn merge(
        &mut self,
        runs: &[Run],
        memory: usize,
        mut take: impl FnMut(&Item<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.output.flush()?;
        let file = self.output.get_mut();
        let read_size = (memory / runs.len().max(1)).clamp(LEAST_READ, MOST_READ);
        let mut heads = BinaryHeap::new();
        let mut readers: Vec<_> = runs.iter().map(|run| RunReader::new(*run, read_size)).collect();
        for (index, reader) in readers.iter_mut().enumerate() {
            if let Some((item, _)) = reader.head(file)? {
                heads.push(Reverse((item.time, index)));
            }
        }
        while let Some(mut first) = heads.peek_mut() {
            let Reverse((time, index)) = &mut *first;
            let Some(reader) = readers.get_mut(*index) else { return Ok(()) };
            if let Some((item, len)) = reader.head(file)? {
                take(&item)?;
                reader.taken += len;
            }
            match reader.head(file)? {
                Some((item, _)) => *time = item.time,
                None => {
                    std::collections::binary_heap::PeekMut::pop(first);
                }
            }
        }
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = std::fs::remove_file(name);
        }
    }
}

/// Reads a run piece by piece.
struct RunReader {
    /// What was not read yet.
    rest: Run,
    read_size: usize,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were given out.
    taken: usize,
}

impl RunReader {
    const fn new(rest: Run, read_size: usize) -> Self {
        Self { rest, read_size, buffer: Vec::new(), taken: 0 }
    }

    /// The first packet that was not taken, with its length; `None` at the end.
    fn head(&mut self, file: &mut File) -> io::Result<Option<(Item<'_>, usize)>> {
        loop {
            let rest = self.buffer.len() - self.taken;
            let needed = match Item::parse(self.buffer.get(self.taken..).unwrap_or_default()) {
                Some((_, len)) if len <= rest => break,
                Some((_, len)) => len,
                None => HEAD,
            };
            if self.rest.start == self.rest.end {
                if rest == 0 {
                    return Ok(None);
                }
                return Err(io::Error::new(ErrorKind::InvalidData, "a scratch file was changed"));
            }
            self.read(file, needed)?;
        }
        Ok(Item::parse(self.buffer.get(self.taken..).unwrap_or_default()))
    }

    /// Reads on, so that so many bytes are there if the run has them.
    fn read(&mut self, file: &mut File, needed: usize) -> io::Result<()> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let wanted = self.read_size.max(needed).saturating_sub(self.buffer.len()) as u64;
        let wanted = wanted.min(self.rest.end - self.rest.start);
        file.seek(SeekFrom::Start(self.rest.start))?;
        let read = file.take(wanted).read_to_end(&mut self.buffer)? as u64;
        if read < wanted {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.rest.start += read;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("netsniff-runs-{name}-{}", std::process::id()))
    }

    /// Packets of times and lengths without pattern: number, time, length.
    fn packets(count: u64, longest: u64) -> Vec<(u64, i64, usize)> {
        let mut seed = 7_u64;
        let mut random = move |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        (0..count)
            .map(|number| (number, random(count / 4) as i64, random(longest) as usize))
            .collect()
    }

    fn sorted(
        memory: usize,
        name: &str,
        packets: &[(u64, i64, usize)],
    ) -> (Vec<u64>, usize, usize) {
        let mut sorter = Sorter::new(memory, scratch(name));
        let data = vec![7; packets.iter().map(|packet| packet.2).max().unwrap_or(0)];
        let mut most = 0;
        for (number, time, len) in packets {
            let time = Timestamp::from_nanos(*time);
            let data = &data[..*len];
            sorter.push(&Item { time, interface: 3, wire_len: 9, lost: *number, data }).unwrap();
            let pieces: usize = sorter.pieces.iter().map(Vec::capacity).sum();
            most = most.max(pieces + sorter.places.capacity() * size_of::<Place>());
        }
        let (runs, mut found) = (sorter.runs.len(), Vec::new());
        sorter
            .finish(|item| {
                let (_, time, len) = packets[item.lost as usize];
                assert_eq!((item.time.nanos(), item.data.len()), (time, len));
                assert_eq!((item.interface, item.wire_len), (3, 9));
                found.push(item.lost);
                Ok(())
            })
            .unwrap();
        assert!(!scratch(name).exists());
        (found, runs, most)
    }

    #[test]
    fn sorting_is_stable_within_its_memory_and_on_the_disk() {
        let packets = packets(60_000, 1500);
        let mut expected = packets.clone();
        expected.sort_by_key(|packet| packet.1);
        let expected: Vec<u64> = expected.iter().map(|packet| packet.0).collect();
        let (in_memory, runs, _) = sorted(1 << 30, "memory", &packets);
        assert_eq!(runs, 0);
        assert!(in_memory == expected);
        // 47 MB in 2 MB: more runs than are merged at once.
        let (on_disk, runs, most) = sorted(LEAST_MEMORY, "disk", &packets);
        assert!(runs > LEAST_MEMORY / 2 / LEAST_READ, "{runs} runs");
        assert!(most <= LEAST_MEMORY, "{most} bytes");
        assert!(on_disk == expected);
    }

    #[test]
    fn a_packet_longer_than_the_memory_is_sorted_too() {
        let packets = [(0, 5, 10), (1, 9, 5 << 20), (2, 1, 20), (3, 5, 3 << 20), (4, 0, 0)];
        assert_eq!(sorted(LEAST_MEMORY, "long", &packets).0, [4, 2, 0, 3, 1]);
        assert_eq!(sorted(LEAST_MEMORY, "none", &[]).0, [0_u64; 0]);
    }
}
