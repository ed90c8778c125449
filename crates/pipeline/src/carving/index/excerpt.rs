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

/// The most pieces of an excerpt: each takes a seek, so that reading everything is sooner done.
const MOST_PIECES: usize = 4_000_000;

/// Chooses blocks, one after the other: those that tell more than packets or have a wanted one. What lies side by side
/// becomes one piece, so that memory follows what is chosen.
#[derive(Debug)]
pub struct Chooser<W: Iterator<Item = u64>> {
    /// Sorted numbers of packets.
    wanted: core::iter::Peekable<W>,
    /// The block that is told next to last, since the last one tells where it ends.
    block: Option<Block>,
    pieces: Vec<(u64, u64)>,
    numbers: Vec<(u64, u64)>,
}

impl<W: Iterator<Item = u64>> Chooser<W> {
    /// For these packets, whose numbers are sorted.
    #[must_use]
    pub fn new(wanted: W) -> Self {
        let (pieces, numbers) = (Vec::new(), Vec::new());
        Self { wanted: wanted.peekable(), block: None, pieces, numbers }
    }

    /// Takes the block that comes next.
    ///
    /// # Errors
    ///
    /// Where there are too many pieces.
    pub fn block(&mut self, block: Block) -> Result<(), String> {
        match self.block.replace(block) {
            // What is before the first block is always read.
            None => self.pieces.push((0, block.at)),
            Some(before) => self.choose(before, block.at, block.packets),
        }
        if self.pieces.len() > MOST_PIECES {
            return Err("wanted packets lie in too many places".to_owned());
        }
        Ok(())
    }

    /// Chooses a block, or not, that ends here, before the packet behind that of this number.
    fn choose(&mut self, block: Block, end: u64, last: u64) {
        let has_one = self.wanted.next_if(|number| *number <= last).is_some();
        while self.wanted.next_if(|number| *number <= last).is_some() {}
        if !has_one && !block.tells {
            return;
        }
        let packets = last.saturating_sub(block.packets);
        match (self.pieces.last_mut(), self.numbers.last_mut()) {
            (Some(piece), Some(numbers)) if piece.1 == block.at && piece.0 < block.at => {
                piece.1 = end;
                numbers.1 = numbers.1.saturating_add(packets);
            }
            _ => {
                self.pieces.push((block.at, end));
                self.numbers.push((block.packets.saturating_add(1), packets));
            }
        }
    }

    /// The chosen blocks of a file of `size` bytes, as an excerpt, and the numbers of their packets.
    pub fn finish<R: Read + Seek>(mut self, file: R, size: u64) -> (Excerpt<R>, Numbers) {
        match self.block.take() {
            None => self.pieces.push((0, size)),
            Some(last) => self.choose(last, size, u64::MAX),
        }
        let Self { mut pieces, mut numbers, .. } = self;
        pieces.reverse();
        numbers.reverse();
        (Excerpt { file, pieces, left: 0 }, Numbers { pieces: numbers })
    }
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

    fn excerpt(
        file: Vec<u8>,
        blocks: &[Block],
        wanted: &[u64],
    ) -> (Excerpt<Cursor<Vec<u8>>>, Numbers) {
        let mut chooser = Chooser::new(wanted.iter().copied());
        blocks.iter().for_each(|block| chooser.block(*block).unwrap());
        chooser.finish(Cursor::new(file), 60)
    }

    /// Blocks side by side are one piece.
    #[test]
    fn pieces_are_as_few_as_can_be() {
        let blocks: Vec<_> = (0..9).map(|it| block(10 + it * 5, it, it != 4)).collect();
        let (excerpt, numbers) = excerpt(vec![0; 60], &blocks, &[]);
        assert_eq!(excerpt.pieces, [(35, 60), (10, 30), (0, 10)]);
        assert_eq!(numbers.pieces, [(6, u64::MAX - 5), (1, 4)]);
    }

    /// A file of 60 bytes, each of which is its offset, in blocks of 10 bytes with 2 packets behind a header of 10.
    fn read(wanted: &[u64], telling: &[usize]) -> (Vec<u8>, Vec<u64>) {
        let file: Vec<u8> = (0..60).collect();
        let blocks = (0..5).map(|it| block(10 + it * 10, it * 2, telling.contains(&(it as usize))));
        let blocks: Vec<_> = blocks.collect();
        let (mut excerpt, numbers) = excerpt(file, &blocks, wanted);
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
            let (mut excerpt, numbers) = excerpt(file, &blocks, &[0, 1, 99]);
            let mut bytes = Vec::new();
            excerpt.read_to_end(&mut bytes).unwrap();
            assert!(bytes.len() <= 120 && numbers.take(100).count() <= 100);
        }
    }
}
