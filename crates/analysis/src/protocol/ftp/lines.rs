//! Lines of the control connection, however long: what is kept of them is bounded.

use memchr::memchr;

use crate::protocol::Role;
use crate::protocol::syntax::line::{Bounded, bounded};

/// Bytes of a line that are kept; what follows them counts for nothing. RFC 959 has no bound; paths have
/// 4 KiB at most.
const MAX_LINE: usize = 8_192;

/// Lines of both sides, one begun in each at most.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// By [`Role`]: the begin of a line that is longer than what is kept, until its end comes.
    begun: [Vec<u8>; 2],
    /// Whether what comes may be the rest of a line whose begin is missing.
    is_astray: [bool; 2],
}

/// What a stream goes on with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamMode<'a> {
    /// A line, or what is kept of it, and how many bytes of the stream are over then.
    Line(&'a [u8], usize),
    /// The rest of a line that was longer than what is kept of it, which ends in so many bytes.
    Rest(Vec<u8>, usize),
    /// So many bytes that begin a line which is longer than what is kept of it.
    Begin(usize),
    /// So many bytes that are no line.
    Nothing(usize),
    /// There must be so many bytes first.
    Needs(usize),
}

impl Lines {
    /// What one side says next.
    pub(super) fn next<'a>(&mut self, from: Role, data: &'a [u8]) -> StreamMode<'a> {
        let side = from.index();
        let end = || memchr(b'\n', data).map(|at| at + 1);
        if self.is_astray[side] {
            self.is_astray[side] = end().is_none();
            return StreamMode::Nothing(end().unwrap_or(data.len()));
        }
        if !self.begun[side].is_empty() {
            return match end() {
                Some(len) => StreamMode::Rest(core::mem::take(&mut self.begun[side]), len),
                None => StreamMode::Nothing(data.len()),
            };
        }
        match bounded(data, MAX_LINE) {
            Bounded::Found(line, len) => StreamMode::Line(line, len),
            Bounded::Unfinished => StreamMode::Needs(data.len() + 1),
            Bounded::TooLong => {
                self.begun[side].extend_from_slice(&data[..MAX_LINE]);
                StreamMode::Begin(MAX_LINE)
            }
        }
    }

    /// Learns that bytes of a side are missing: the next line may be the rest of one.
    pub(super) fn gap(&mut self, from: Role) {
        self.begun[from.index()] = Vec::new();
        self.is_astray[from.index()] = true;
    }

    /// Bytes that they hold outside themselves.
    pub(super) fn heap_bytes(&self) -> usize {
        self.begun.iter().map(Vec::capacity).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: Role = Role::Originator;

    /// What is kept of the lines of a stream that comes in pieces of `piece` bytes.
    fn lines(stream: &[u8], piece: usize) -> Vec<Vec<u8>> {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        let (mut at, mut seen) = (0, 0);
        while seen < stream.len() {
            seen = stream.len().min(seen + piece);
            while at < seen {
                match lines.next(FROM, &stream[at..seen]) {
                    StreamMode::Line(line, len) => (found.push(line.to_vec()), at += len).1,
                    StreamMode::Rest(line, len) => (found.push(line), at += len).1,
                    StreamMode::Begin(len) | StreamMode::Nothing(len) => at += len,
                    StreamMode::Needs(_) => break,
                }
            }
        }
        found
    }

    #[test]
    fn long_lines_are_kept_in_part_however_they_are_cut() {
        for len in [1, MAX_LINE - 1, MAX_LINE, MAX_LINE + 1, 3 * MAX_LINE] {
            let stream = [&vec![b'x'; len][..], b"\nNOOP\r\n"].concat();
            let whole = lines(&stream, stream.len());
            assert_eq!(whole, [vec![b'x'; len.min(MAX_LINE)], b"NOOP".to_vec()], "{len}");
            for piece in [1, 7, MAX_LINE] {
                assert_eq!(lines(&stream, piece), whole, "{len} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn lines_go_on_behind_a_gap() {
        let mut lines = Lines::default();
        assert_eq!(lines.next(FROM, &[b'x'; MAX_LINE]), StreamMode::Begin(MAX_LINE));
        lines.gap(FROM);
        assert_eq!(lines.heap_bytes(), 0);
        assert_eq!(lines.next(FROM, b"rest"), StreamMode::Nothing(4));
        let long = [&[b'x'; 2 * MAX_LINE][..], b"\nNOOP\n"].concat();
        assert_eq!(lines.next(FROM, &long), StreamMode::Nothing(2 * MAX_LINE + 1));
        assert_eq!(lines.next(FROM, b"NOOP\n"), StreamMode::Line(b"NOOP", 5));
    }
}
