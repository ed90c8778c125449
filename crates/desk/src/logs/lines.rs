//! Lines of a file or pipe, each of bounded length. What is not whole yet is read on when more of it came.

use std::io::{self, Read};
use std::ops::Range;

use memchr::memchr;

use super::unpack::Unpacked;

/// Bytes of the longest line. The logs' own bounds on text keep their rows far below it.
const LONGEST: usize = 1 << 20;
/// Bytes read at once.
const READ_SIZE: usize = 64 << 10;

/// Lines of an input, which may be packed.
pub(super) struct Lines {
    input: Unpacked,
    text: Vec<u8>,
    /// Where in `text` that begins which is not read yet.
    begin: usize,
    /// Up to where it has no end of a line.
    searched: usize,
    /// Whether it begins within a line that is too long.
    is_within: bool,
    /// Whether nothing more was there when it was looked at last.
    is_at_end: bool,
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A whole line, and where it is.
    Whole(Range<usize>),
    /// More than a line may have; it was passed over.
    TooLong,
    /// More of one that is too long; it was passed over. Whoever reads may give up: such a line need not end.
    Within,
    /// There are no more by now.
    End,
}

impl Lines {
    pub(super) fn of(input: impl Read + Send + 'static) -> Self {
        Self {
            input: Unpacked::new(input),
            text: Vec::new(),
            begin: 0,
            searched: 0,
            is_within: false,
            is_at_end: false,
        }
    }

    /// Bytes of the file that were read, as packed as they are.
    pub(super) const fn bytes_read(&self) -> u64 {
        self.input.taken()
    }

    /// The first bytes of the file, as packed as they are.
    pub(super) fn head(&self) -> &[u8] {
        self.input.head()
    }

    /// What stands there, until the next line is read.
    pub(super) fn at(&self, place: &Range<usize>) -> &[u8] {
        self.text.get(place.clone()).unwrap_or_default()
    }

    /// Whether the end of another line was read already.
    pub(super) fn has_more(&self) -> bool {
        self.text.get(self.searched..).is_some_and(|text| memchr(b'\n', text).is_some())
    }

    /// Whether the last line does not end: whoever writes it has not done so, or was interrupted.
    pub(super) fn ends_within(&self) -> bool {
        self.is_at_end && !self.is_within && self.begin < self.text.len()
    }

    /// Ends the reading.
    ///
    /// # Errors
    ///
    /// When a part of what is packed is missing, or has changed.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.input.end()
    }

    /// Reads the next line, without its end.
    pub(super) fn next(&mut self) -> io::Result<Line> {
        loop {
            let text = self.text.get(self.searched..).unwrap_or_default();
            let Some(length) = memchr(b'\n', text) else {
                self.searched = self.text.len();
                if self.searched - self.begin > LONGEST {
                    self.begin = self.searched;
                    if !std::mem::replace(&mut self.is_within, true) {
                        return Ok(Line::TooLong);
                    }
                }
                if !self.read_on()? {
                    return Ok(Line::End);
                }
                if self.is_within {
                    return Ok(Line::Within);
                }
                continue;
            };
            let end = self.searched + length;
            let line = self.begin..end;
            (self.begin, self.searched) = (end + 1, end + 1);
            if std::mem::take(&mut self.is_within) {
                continue;
            }
            if line.len() > LONGEST {
                return Ok(Line::TooLong);
            }
            let has_return = self.at(&line).ends_with(b"\r");
            return Ok(Line::Whole(line.start..end - usize::from(has_return)));
        }
    }

    /// Reads more. Returns whether there was any.
    fn read_on(&mut self) -> io::Result<bool> {
        // Of a line that is too long nothing is kept.
        let kept = if self.is_within { self.searched } else { self.begin };
        self.text.drain(..kept);
        (self.begin, self.searched) = (0, self.text.len());
        let before = self.text.len();
        self.text.resize(before + READ_SIZE, 0);
        let read = self.input.read(self.text.get_mut(before..).unwrap_or_default());
        self.text.truncate(before + *read.as_ref().unwrap_or(&0));
        self.is_at_end = read? == 0;
        Ok(!self.is_at_end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(lines: &mut Lines) -> Vec<Option<String>> {
        let mut seen = Vec::new();
        loop {
            match lines.next().unwrap() {
                Line::End => return seen,
                Line::Within => {}
                Line::TooLong => seen.push(None),
                Line::Whole(place) => {
                    seen.push(Some(String::from_utf8(lines.at(&place).to_vec()).unwrap()));
                }
            }
        }
    }

    #[test]
    fn lines_are_whole_or_told() {
        let mut lines = Lines::of(&b"one\r\n\nlast"[..]);
        let line = |text: &str| Some(text.to_owned());
        assert_eq!(all(&mut lines), [line("one"), line("")]);
        assert!(lines.ends_within());
        let mut lines = Lines::of(&b"one\n"[..]);
        assert!(!lines.has_more());
        assert_eq!(all(&mut lines), [line("one")]);
        assert!(!lines.ends_within());
    }

    #[test]
    fn a_line_without_end_takes_no_more_memory_than_one_may() {
        let long = || io::repeat(b'x').take(LONGEST as u64 * 3);
        let mut lines = Lines::of(long().chain(&b"\nnext\n"[..]).chain(long()));
        assert_eq!(all(&mut lines), [None, Some("next".to_owned()), None]);
        assert!(lines.text.capacity() <= 3 * LONGEST, "{}", lines.text.capacity());
        assert!(!lines.ends_within(), "it was told");
    }

    #[test]
    fn the_longest_line_is_one_and_one_more_byte_is_none() {
        let of = |length: usize| {
            all(&mut Lines::of(io::Cursor::new(["x".repeat(length), "\n".into()].concat())))
        };
        assert_eq!(of(LONGEST)[0].as_ref().unwrap().len(), LONGEST);
        assert_eq!(of(LONGEST + 1), [None]);
    }
}
