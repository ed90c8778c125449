//! How far a spool was delivered: a small file with two places, which are written in turns, so that one is whole always.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::segment;

/// A place in a spool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The number of a segment.
    pub(super) segment: u64,
    /// Bytes from its begin.
    pub(super) offset: u64,
}

/// Bytes of one of both.
const SLOT: usize = 28;

/// The file.
#[derive(Debug)]
pub(super) struct Position {
    file: File,
    /// How often it was written.
    times: u64,
    place: Place,
}

impl Position {
    /// Opens the file, or makes it. Where it tells nothing, the place is before everything.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        let file = segment::open(path, options.read(true).write(true).create(true))?;
        let slot = |number: u64| {
            let mut bytes = [0; SLOT];
            file.read_exact_at(&mut bytes, number * SLOT as u64).ok()?;
            read(&bytes)
        };
        let newest = [slot(0), slot(1)].into_iter().flatten().max_by_key(|(times, _)| *times);
        let (times, place) = newest.unwrap_or_default();
        Ok(Self { file, times, place })
    }

    pub(super) const fn place(&self) -> Place {
        self.place
    }

    /// Writes a place down. It survives the process at once, and a loss of power once the system has written it.
    pub(super) fn set(&mut self, place: Place) -> io::Result<()> {
        let times = self.times + 1;
        let mut bytes = [0; SLOT];
        let numbers = [times, place.segment, place.offset];
        let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
        bytes.iter_mut().zip(numbers).for_each(|(to, from)| *to = from);
        let (content, sum) = bytes.split_at_mut(SLOT - 4);
        sum.copy_from_slice(&crc32fast::hash(content).to_le_bytes());
        self.file.write_all_at(&bytes, times % 2 * SLOT as u64)?;
        (self.times, self.place) = (times, place);
        Ok(())
    }
}

fn read(bytes: &[u8; SLOT]) -> Option<(u64, Place)> {
    let (content, sum) = bytes.split_last_chunk::<4>()?;
    if crc32fast::hash(content) != u32::from_le_bytes(*sum) {
        return None;
    }
    let (numbers, _) = content.as_chunks::<8>();
    let [times, segment, offset] = numbers else { return None };
    let number = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    Some((number(times), Place { segment: number(segment), offset: number(offset) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_was_written_half_leaves_the_one_before() {
        let path = std::env::temp_dir().join(format!("netsniff-position-{}", std::process::id()));
        let place = |offset| Place { segment: 3, offset };
        let mut position = Position::open(&path).unwrap();
        assert_eq!(position.place(), Place::default());
        position.set(place(1)).unwrap();
        position.set(place(2)).unwrap();
        position.set(place(3)).unwrap();
        assert_eq!(Position::open(&path).unwrap().place(), place(3));
        // The third time stands in the second place.
        position.file.write_all_at(b"x", SLOT as u64 + 9).unwrap();
        let mut again = Position::open(&path).unwrap();
        assert_eq!(again.place(), place(2));
        again.set(place(4)).unwrap();
        assert_eq!(Position::open(&path).unwrap().place(), place(4));
        std::fs::remove_file(&path).unwrap();
    }
}
