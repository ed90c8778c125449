//! Lines and header fields as they lie in a stream: where they end, however they end.

use std::borrow::Cow;

use crate::protocol::line::{self, Line, LineEnd};

/// The longest line that is read in one piece, with which Zeek has a bound, too
/// (`contentline_size_exceeded`). Servers allow 8 to 16 KiB.
pub(super) const MAX_LINE: usize = 24 << 10;

/// From so many bytes on no further line continues a header field. With the last line it is less than
/// a session may have waiting.
const MAX_FIELD: usize = MAX_LINE;

/// What is known of the bytes that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// They will come.
    Open,
    /// They are missing: what is incomplete will stay so.
    Missing,
    /// There are none: what is there is the last line, whether it has an end or not.
    Nothing,
}

/// The first line of `data`, which CR LF, LF alone or CR alone may end; `None` where more bytes must
/// come. A CR at the end of `data` waits, since a LF may follow it. A longer one comes in pieces.
pub(super) fn line(data: &[u8], next: Next) -> Option<Line<'_>> {
    if let Ok(line) = line::next_within(data, MAX_LINE) {
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

/// Whether a line was longer than [`MAX_LINE`].
pub(super) fn is_cut(line: &Line<'_>) -> bool {
    line.end == LineEnd::None
}

/// A header field or what ends the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Header<'a> {
    /// A field.
    Field {
        /// Its text, continuations included.
        text: Cow<'a, [u8]>,
        /// Of how many lines it is.
        lines: usize,
        /// Bytes that it takes.
        len: usize,
        /// Whether a line was longer than [`MAX_LINE`].
        is_cut: bool,
    },
    /// The empty line.
    End {
        /// Bytes that it takes.
        len: usize,
    },
}

/// The first header field of `data`, or the end of the header. A field is complete when the line
/// behind it does not continue it (obsolete line folding, RFC 9112 section 5.2).
pub(super) fn header(data: &[u8], next: Next) -> Option<Header<'_>> {
    let first = line(data, next)?;
    // A line that begins with a NUL ends the header for Zeek, too.
    if first.text.first().is_none_or(|&byte| byte == 0) {
        return Some(Header::End { len: first.len });
    }
    let (mut text, mut lines) = (Cow::Borrowed(first.text), 1);
    let (mut len, mut is_cut) = (first.len, is_cut(&first));
    while len < MAX_FIELD {
        match data.get(len) {
            Some(b' ' | b'\t') => {
                let more = line(&data[len..], next)?;
                text.to_mut().extend_from_slice(more.text);
                (len, lines, is_cut) = (len + more.len, lines + 1, is_cut || self::is_cut(&more));
            }
            None if next == Next::Open => return None,
            _ => break,
        }
    }
    Some(Header::Field { text, lines, len, is_cut })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_three_ways() {
        let text = |data: &'static str| line(data.as_bytes(), Next::Open).map(|l| (l.text, l.len));
        assert_eq!(text("ab\r\nc"), Some((&b"ab"[..], 4)));
        assert_eq!(text("ab\nc"), Some((&b"ab"[..], 3)));
        assert_eq!(text("ab\rc"), Some((&b"ab"[..], 3)));
        assert_eq!(text("\n\nc"), Some((&b""[..], 1)));
        assert_eq!(text("ab\r"), None);
        assert_eq!(text("ab"), None);
    }

    #[test]
    fn the_end_completes_a_line_and_a_gap_does_not() {
        let len = |data: &'static str, next| line(data.as_bytes(), next).map(|line| line.len);
        assert_eq!((len("ab", Next::Nothing), len("ab", Next::Missing)), (Some(2), None));
        assert_eq!((len("ab\r", Next::Nothing), len("ab\r", Next::Missing)), (Some(3), Some(3)));
        assert_eq!(len("", Next::Nothing), None);
    }

    #[test]
    fn a_line_is_cut_at_the_bound_and_not_before() {
        let mut data = vec![b'a'; MAX_LINE - 1];
        assert_eq!(line(&data, Next::Open), None);
        data.push(b'\n');
        assert_eq!(line(&data, Next::Open).map(|line| is_cut(&line)), Some(false));
        data[MAX_LINE - 1] = b'a';
        let cut = line(&data, Next::Open).unwrap();
        assert_eq!((cut.len, is_cut(&cut)), (MAX_LINE, true));
    }

    #[test]
    fn a_field_waits_for_the_line_behind_it() {
        assert_eq!(header(b"A: b\r\n", Next::Open), None);
        let Some(Header::Field { text, lines, len, .. }) = header(b"A: b\r\n c\nB", Next::Open)
        else {
            panic!()
        };
        assert_eq!((&*text, lines, len), (&b"A: b c"[..], 2, 9));
        assert_eq!(header(b"\r\nx", Next::Open), Some(Header::End { len: 2 }));
        assert!(matches!(header(b"A: b\r\n", Next::Nothing), Some(Header::Field { len: 6, .. })));
    }

    #[test]
    fn folding_is_bounded() {
        let data = "A:\r\n".to_owned() + &" x\r\n".repeat(MAX_FIELD);
        let Some(Header::Field { len, .. }) = header(data.as_bytes(), Next::Open) else { panic!() };
        assert!((MAX_FIELD..MAX_FIELD + 8).contains(&len));
    }
}
