//! A capture of which only some blocks are read, one behind the other: to a reader it is a shorter capture.

use std::io::{self, Read, Seek, SeekFrom};

use super::blocks::Block;

/// Reads the header of a capture and chosen blocks.
#[derive(Debug)]
pub struct Excerpt<R> {
    file: R,
    /// Where the pieces begin and end that are still to be read, the next one last.
    pieces: Vec<(u64, u64)>,
    /// Offset up to which the piece at hand is to be read.
    left: u64,
}

/// Which packets an excerpt has, by their numbers in the whole.
#[derive(Debug)]
pub struct Numbers {
    /// The first packet of each piece, and how many it has; the next one last.
    pieces: Vec<(u64, u64)>,
}

impl Iterator for Numbers {
    type Item = u64;

    /// The number of the next packet, from 1.
    fn next(&mut self) -> Option<u64> {
        loop {
            let (first, left) = self.pieces.last_mut()?;
            if *left == 0 {
                self.pieces.pop();
                continue;
            }
            let number = *first;
            (*first, *left) = (number.saturating_add(1), *left - 1);
            return Some(number);
        }
    }
}

/// The blocks of a file of `size` bytes that tell more than packets or have one of `wanted`, sorted numbers: as an
/// excerpt, and as the numbers of its packets.
pub fn excerpt<R: Read + Seek>(
    file: R,
    size: u64,
    blocks: &[Block],
    wanted: &[u64],
) -> (Excerpt<R>, Numbers) {
    let mut wanted = wanted.iter().copied().peekable();
    let header = blocks.first().map_or(size, |block| block.at);
    let (mut pieces, mut numbers) = (vec![(0, header)], Vec::new());
    for (place, block) in blocks.iter().enumerate() {
        let next = blocks.get(place + 1);
        let last = next.map_or(u64::MAX, |next| next.packets);
        let has_one = wanted.next_if(|number| *number <= last).is_some();
        while wanted.next_if(|number| *number <= last).is_some() {}
        if has_one || block.tells {
            pieces.push((block.at, next.map_or(size, |next| next.at)));
            numbers.push((block.packets.saturating_add(1), last.saturating_sub(block.packets)));
        }
    }
    pieces.reverse();
    numbers.reverse();
    (Excerpt { file, pieces, left: 0 }, Numbers { pieces: numbers })
}

impl<R: Read + Seek> Read for Excerpt<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.left == 0 {
            let Some((begin, end)) = self.pieces.pop() else { return Ok(0) };
            self.file.seek(SeekFrom::Start(begin))?;
            self.left = end.saturating_sub(begin);
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.file.read(buffer.get_mut(..most).unwrap_or_default())?;
        // A file that was cut meanwhile ends here.
        self.left = if read == 0 { 0 } else { self.left - read as u64 };
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    const fn block(at: u64, packets: u64, tells: bool) -> Block {
        Block { at, packets, tells }
    }

    /// A file of 60 bytes, each of which is its offset, in blocks of 10 bytes with 2 packets behind a header of 10.
    fn read(wanted: &[u64], telling: &[usize]) -> (Vec<u8>, Vec<u64>) {
        let file: Vec<u8> = (0..60).collect();
        let blocks = (0..5).map(|it| block(10 + it * 10, it * 2, telling.contains(&(it as usize))));
        let blocks: Vec<_> = blocks.collect();
        let (mut excerpt, numbers) = excerpt(Cursor::new(file), 60, &blocks, wanted);
        let mut bytes = Vec::new();
        excerpt.read_to_end(&mut bytes).unwrap();
        (bytes, numbers.take(10).collect())
    }

    #[test]
    fn header_wanted_blocks_and_those_that_tell_are_read() {
        let ranges =
            |ranges: &[(u8, u8)]| ranges.iter().flat_map(|&(a, b)| a..b).collect::<Vec<_>>();
        assert_eq!(read(&[], &[]), (ranges(&[(0, 10)]), vec![]));
        assert_eq!(read(&[1, 2], &[]), (ranges(&[(0, 20)]), vec![1, 2]));
        let (bytes, numbers) = read(&[3, 3, 6], &[0]);
        assert_eq!(bytes, ranges(&[(0, 40)]));
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
        let (bytes, numbers) = read(&[10], &[1]);
        assert_eq!(bytes, ranges(&[(0, 10), (20, 30), (50, 60)]));
        assert_eq!(numbers[..4], [3, 4, 9, 10]);
    }

    /// Whatever a table says, reading ends.
    #[test]
    fn tables_that_make_no_sense_do_no_harm() {
        for blocks in [
            vec![],
            vec![block(u64::MAX, u64::MAX, true)],
            vec![block(70, 5, true), block(10, 1, true), block(10, u64::MAX, true)],
        ] {
            let file: Vec<u8> = (0..60).collect();
            let (mut excerpt, numbers) = excerpt(Cursor::new(file), 60, &blocks, &[0, 1, 99]);
            let mut bytes = Vec::new();
            excerpt.read_to_end(&mut bytes).unwrap();
            assert!(bytes.len() <= 120 && numbers.take(100).count() <= 100);
        }
    }
}
