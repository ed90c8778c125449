//! Lines and header fields as they lie in a stream: where they end, however they end.

use crate::protocol::syntax::line::{self, Line, LineEnd};

/// The longest line that is read in one piece, with which Zeek has a bound, too
/// (`contentline_size_exceeded`). Servers allow 8 to 16 KiB.
pub(super) const MAX_LINE: usize = 24 << 10;

/// From so many bytes on no further line continues a header field. With the last line it is less than
/// a session may have waiting.
const MAX_FIELD: usize = MAX_LINE;

/// What is known of the bytes that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The rest of the line will come.
    Open,
    /// They are missing: what is incomplete will stay so.
    Missing,
    /// There are none: what is there is the last line, whether it has an end or not.
    Nothing,
}

/// The first line of `data`, which CR LF, LF alone or CR alone may end; `None` where more bytes must
/// come. A CR at the end of `data` waits, since a LF may follow it. A longer one comes in pieces. The
/// first `scanned` bytes are known to have no end.
pub(super) fn line(data: &[u8], scanned: usize, next: Next) -> Option<Line<'_>> {
    if let Ok(line) = line::next_behind(data, scanned, MAX_LINE) {
        return Some(line);
    }
    let (text, len) = (data.strip_suffix(b"\r"), data.len());
    let text = match next {
        Next::Open => None,
        Next::Missing => text,
        Next::Nothing => text.or(Some(data)).filter(|_| len > 0),
    };
    Some(Line { text: text?, end: LineEnd::Crlf, len })
}

/// How many of the bytes in which [`line`] found no line need not be looked at again.
pub(super) fn scanned(data: &[u8]) -> usize {
    data.strip_suffix(b"\r").unwrap_or(data).len()
}

/// Whether a line was longer than [`MAX_LINE`].
pub(super) fn is_cut(line: &Line<'_>) -> bool {
    line.end == LineEnd::None
}

/// A header field whose last line may not have come yet: a line that begins with a blank continues it
/// (obsolete line folding, RFC 9112 section 5.2).
#[derive(Debug)]
pub(super) struct Folded {
    /// Its text so far, continuations included.
    pub(super) text: Vec<u8>,
    /// Of how many lines it is.
    pub(super) lines: usize,
    /// Bytes that it takes.
    pub(super) len: usize,
}

impl Folded {
    /// A field of which the first line came.
    pub(super) fn begun(line: &Line<'_>) -> Self {
        Self { text: line.text.to_vec(), lines: 1, len: line.len }
    }

    /// Takes a line that continues it; returns whether it does.
    pub(super) fn goes_on(&mut self, line: &Line<'_>) -> bool {
        let goes_on = self.len < MAX_FIELD && is_continuation(line.text.first());
        if goes_on {
            self.text.extend_from_slice(line.text);
            (self.lines, self.len) = (self.lines + 1, self.len + line.len);
        }
        goes_on
    }
}

/// Whether a line that begins with this byte continues a field.
pub(super) const fn is_continuation(first: Option<&u8>) -> bool {
    matches!(first, Some(b' ' | b'\t'))
}

/// Whether a line ends the header: an empty one, and for Zeek one that begins with a NUL, too.
pub(super) fn is_end(line: &Line<'_>) -> bool {
    line.text.first().is_none_or(|&byte| byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_three_ways() {
        let text =
            |data: &'static str| line(data.as_bytes(), 0, Next::Open).map(|l| (l.text, l.len));
        assert_eq!(text("ab\r\nc"), Some((&b"ab"[..], 4)));
        assert_eq!(text("ab\nc"), Some((&b"ab"[..], 3)));
        assert_eq!(text("ab\rc"), Some((&b"ab"[..], 3)));
        assert_eq!(text("\n\nc"), Some((&b""[..], 1)));
        assert_eq!(text("ab\r"), None);
        assert_eq!(text("ab"), None);
    }

    #[test]
    fn the_end_completes_a_line_and_a_gap_does_not() {
        let len = |data: &'static str, next| line(data.as_bytes(), 0, next).map(|line| line.len);
        assert_eq!((len("ab", Next::Nothing), len("ab", Next::Missing)), (Some(2), None));
        assert_eq!((len("ab\r", Next::Nothing), len("ab\r", Next::Missing)), (Some(3), Some(3)));
        assert_eq!(len("", Next::Nothing), None);
    }

    #[test]
    fn a_line_is_cut_at_the_bound_and_not_before() {
        let mut data = vec![b'a'; MAX_LINE - 1];
        assert_eq!(line(&data, 0, Next::Open), None);
        data.push(b'\n');
        assert_eq!(line(&data, 0, Next::Open).map(|line| is_cut(&line)), Some(false));
        data[MAX_LINE - 1] = b'a';
        let cut = line(&data, 0, Next::Open).unwrap();
        assert_eq!((cut.len, is_cut(&cut)), (MAX_LINE, true));
    }

    #[test]
    fn what_was_looked_at_is_not_looked_at_again() {
        let data = b"ab\r\ncd\r";
        assert_eq!(scanned(b"ab\r"), 2, "a LF may follow");
        assert_eq!(line(data, 2, Next::Open).map(|line| line.len), Some(4));
        assert_eq!(line(data, 4, Next::Open).map(|line| line.len), None);
    }

    #[test]
    fn folding_is_bounded() {
        let data = b" x\r\n";
        let more = line(data, 0, Next::Open).unwrap();
        let mut field = Folded::begun(&line(b"A:\n", 0, Next::Open).unwrap());
        while field.goes_on(&more) {}
        assert!((MAX_FIELD..MAX_FIELD + 8).contains(&field.len), "{}", field.len);
        assert_eq!(field.lines, 1 + (field.len - 3) / 4);
        assert!(!field.goes_on(&line(b"B: c\n", 0, Next::Open).unwrap()));
    }
}
