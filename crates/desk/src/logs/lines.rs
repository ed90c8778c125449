//! Lines of a file, each of bounded length.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;

use super::open::open_log;

/// Bytes of the longest line. The logs' own bounds on text keep their rows far below it.
const LONGEST: usize = 1 << 20;
/// Bytes read at once.
const READ_SIZE: usize = 128 << 10;
/// What files begin with that gzip packed (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Lines of a file, which gzip may have packed.
pub(super) struct Lines {
    input: Box<dyn BufRead>,
    /// Bytes of the file so far.
    bytes: Arc<AtomicU64>,
}

/// Counts what is read of a file.
struct Counted {
    file: File,
    bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A whole line.
    Whole,
    /// A line that does not end: whoever writes it has not done so, or was interrupted.
    Cut,
    /// More than a line may have; it was passed over.
    TooLong,
    /// There are no more.
    End,
}

impl Lines {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let bytes = Arc::new(AtomicU64::new(0));
        let file = Counted { file: open_log(path)?, bytes: Arc::clone(&bytes) };
        let mut file = BufReader::with_capacity(READ_SIZE, file);
        let is_packed = file.fill_buf()?.starts_with(&GZIP);
        let input: Box<dyn BufRead> = if is_packed {
            Box::new(BufReader::with_capacity(READ_SIZE, MultiGzDecoder::new(file)))
        } else {
            Box::new(file)
        };
        Ok(Self { input, bytes })
    }

    #[cfg(test)]
    pub(super) fn of(bytes: &'static [u8]) -> Self {
        Self { input: Box::new(bytes), bytes: Arc::default() }
    }

    /// Bytes of the file that were read, as packed as they are.
    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Reads the next line, without its end, in place of what `line` has.
    pub(super) fn next(&mut self, line: &mut Vec<u8>) -> io::Result<Line> {
        line.clear();
        let read = self.input.by_ref().take(LONGEST as u64).read_until(b'\n', line)?;
        if read == 0 {
            return Ok(Line::End);
        }
        if line.pop_if(|byte| *byte == b'\n').is_some() {
            line.pop_if(|byte| *byte == b'\r');
            return Ok(Line::Whole);
        }
        if read < LONGEST {
            return Ok(Line::Cut);
        }
        self.input.skip_until(b'\n')?;
        Ok(Line::TooLong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_or_told() {
        let mut lines = Lines::of(b"one\r\n\nlast");
        let (mut line, mut seen) = (Vec::new(), Vec::new());
        while let kind = lines.next(&mut line).unwrap()
            && kind != Line::End
        {
            seen.push((kind, String::from_utf8(line.clone()).unwrap()));
        }
        let line = |kind, text: &str| (kind, text.to_owned());
        assert_eq!(
            seen,
            [line(Line::Whole, "one"), line(Line::Whole, ""), line(Line::Cut, "last")]
        );
    }

    #[test]
    fn a_line_without_end_takes_no_more_memory_than_one_may() {
        let input = io::repeat(b'x').take(LONGEST as u64 * 3).chain(&b"\nnext\n"[..]);
        let mut lines = Lines { input: Box::new(BufReader::new(input)), bytes: Arc::default() };
        let mut line = Vec::new();
        assert_eq!(lines.next(&mut line).unwrap(), Line::TooLong);
        assert!(line.capacity() <= 2 * LONGEST, "{}", line.capacity());
        assert_eq!(lines.next(&mut line).unwrap(), Line::Whole);
        assert_eq!(line, b"next");
    }
}
