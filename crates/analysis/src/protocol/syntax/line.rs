//! Lines of protocols that are text.

use memchr::{memchr, memchr2};

use crate::protocol::{Detection, Role};

/// The longest line that is handed on in one piece. RFC 5321 allows 1,000 octets and RFC 9051
/// advises 8,192; longer ones come in pieces of this length.
pub(in crate::protocol) const LONGEST: usize = 16 << 10;

/// A line, or a piece of one that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol) struct Line<'a> {
    /// What it says, without its end.
    pub(in crate::protocol) text: &'a [u8],
    pub(in crate::protocol) end: LineEnd,
    /// Bytes that it takes in the stream, with its end.
    pub(in crate::protocol) len: usize,
}

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol) enum LineEnd {
    /// With CR LF, or with one of them alone where either ends lines.
    Crlf,
    /// With LF alone, where that is not the same.
    Lf,
    /// It does not: more of the line follows.
    None,
}

/// Which sides are within a line, of which a piece was handed on.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::protocol) struct Pieces([bool; 2]);

impl Pieces {
    /// Notes the next piece of a side, which ends so: whether a line begins with it.
    pub(in crate::protocol) const fn begins(&mut self, from: Role, end: LineEnd) -> bool {
        let is_more = matches!(end, LineEnd::None);
        !core::mem::replace(&mut self.0[from.index()], is_more)
    }

    /// Notes that bytes of a side were lost: what comes next begins a line.
    pub(in crate::protocol) const fn lose(&mut self, from: Role) {
        self.0[from.index()] = false;
    }
}

/// The first line of `data`. CR LF ends it and either alone, as in Zeek.
///
/// # Errors
///
/// How many bytes there must be to tell.
pub(in crate::protocol) fn next(data: &[u8]) -> Result<Line<'_>, usize> {
    next_within(data, LONGEST)
}

/// The same where pieces have another length.
///
/// # Errors
///
/// How many bytes there must be to tell.
pub(super) fn next_within(data: &[u8], longest: usize) -> Result<Line<'_>, usize> {
    next_behind(data, 0, longest)
}

/// The same where the first `scanned` bytes are known to have no end of a line, so that what comes byte by
/// byte is looked at once.
///
/// # Errors
///
/// How many bytes there must be to tell.
pub(in crate::protocol) fn next_behind(
    data: &[u8],
    scanned: usize,
    longest: usize,
) -> Result<Line<'_>, usize> {
    let head = data.get(..longest).unwrap_or(data);
    let found = head.get(scanned..).and_then(|rest| memchr2(b'\r', b'\n', rest));
    let Some(at) = found.map(|at| at + scanned) else {
        return piece(data, longest);
    };
    let (text, rest) = data.split_at(at);
    let len = match rest {
        [b'\r', b'\n', ..] => at + 2,
        [b'\r'] => return Err(at + 2),
        _ => at + 1,
    };
    Ok(Line { text, end: LineEnd::Crlf, len })
}

/// The first line of `data` where only LF ends lines, mostly behind CR.
///
/// # Errors
///
/// How many bytes there must be to tell.
pub(in crate::protocol) fn next_by_lf(data: &[u8]) -> Result<Line<'_>, usize> {
    let head = data.get(..LONGEST).unwrap_or(data);
    let Some(at) = memchr(b'\n', head) else {
        return piece(data, LONGEST);
    };
    let text = &data[..at];
    let (text, end) = match text.strip_suffix(b"\r") {
        Some(text) => (text, LineEnd::Crlf),
        None => (text, LineEnd::Lf),
    };
    Ok(Line { text, end, len: at + 1 })
}

/// A piece of a line that has no end in sight.
fn piece(data: &[u8], longest: usize) -> Result<Line<'_>, usize> {
    match data.get(..longest) {
        Some(text) => Ok(Line { text, end: LineEnd::None, len: longest }),
        None => Err(data.len() + 1),
    }
}

/// A line of a protocol whose lines are short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol) enum Bounded<'a> {
    /// The line without its end, and its length with that.
    Found(&'a [u8], usize),
    /// There is no end of a line yet.
    Unfinished,
    /// There is none where it had to be.
    TooLong,
}

/// The first line, which ends in LF or CR LF and has at most so many bytes with that.
pub(in crate::protocol) fn bounded(data: &[u8], most: usize) -> Bounded<'_> {
    let head = data.get(..most).unwrap_or(data);
    match memchr(b'\n', head) {
        Some(end) => {
            let line = &head[..end];
            Bounded::Found(line.strip_suffix(b"\r").unwrap_or(line), end + 1)
        }
        None if data.len() >= most => Bounded::TooLong,
        None => Bounded::Unfinished,
    }
}

/// The first word of a line, and what follows the blanks behind it.
pub(in crate::protocol) fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|&byte| is_blank(byte)).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (word, trim_start(rest))
}

/// The first word of a stream and what follows it, without the white space around, line ends
/// among it.
pub(in crate::protocol) fn first_word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (word, rest.trim_ascii_start())
}

/// The number that all of some digits are; `None` for other bytes, none, and more than 64 bits.
pub(in crate::protocol) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// Whether a stream begins with one of some words, in any case of letters.
pub(in crate::protocol) fn begins_with(head: &[u8], words: &[&[u8]]) -> Detection {
    let mut answer = Detection::No;
    for word in words {
        let begin = head.get(..word.len()).unwrap_or(head);
        if !word.get(..begin.len()).is_some_and(|it| it.eq_ignore_ascii_case(begin)) {
            continue;
        }
        match head.get(word.len()) {
            Some(b' ' | b'\t' | b'\r' | b'\n') => return Detection::Yes,
            Some(_) => {}
            None => answer = Detection::Undecided,
        }
    }
    answer
}

/// Without the blanks before it.
pub(in crate::protocol) fn trim_start(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&byte| !is_blank(byte)).unwrap_or(text.len());
    &text[start..]
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(text: &[u8], len: usize) -> Result<Line<'_>, usize> {
        Ok(Line { text, end: LineEnd::Crlf, len })
    }

    #[test]
    fn lines_end_with_either_or_both() {
        assert_eq!(next(b"QUIT\r\nx"), ended(b"QUIT", 6));
        assert_eq!(next(b"QUIT\nx"), ended(b"QUIT", 5));
        assert_eq!(next(b"QUIT\rx"), ended(b"QUIT", 5));
        assert_eq!(next(b"\r\n"), ended(b"", 2));
        assert_eq!(next(b"QUIT\r"), Err(6), "an LF may follow");
        assert_eq!(next(b"QUI"), Err(4));
        assert_eq!(next(b""), Err(1));
    }

    #[test]
    fn where_only_lf_counts_cr_is_text() {
        assert_eq!(next_by_lf(b"a\rb\r\nx"), ended(b"a\rb", 5));
        assert_eq!(next_by_lf(b"ab\nx"), Ok(Line { text: b"ab", end: LineEnd::Lf, len: 3 }));
        assert_eq!(next_by_lf(b"ab\r"), Err(4));
    }

    #[test]
    fn long_lines_come_in_pieces() {
        let mut data = vec![b'a'; LONGEST];
        let piece = Line { text: &data.clone(), end: LineEnd::None, len: LONGEST };
        assert_eq!(next(&data), Ok(piece));
        data.extend_from_slice(b"b\r\n");
        assert_eq!(next(&data), Ok(piece));
        assert_eq!(next(&data[LONGEST..]), ended(b"b", 3));
        assert_eq!(next(&data[1..LONGEST]), Err(LONGEST));
    }

    #[test]
    fn streams_begin_with_words() {
        let words: [&[u8]; 2] = [b"+OK", b"-ERR"];
        for (head, expected) in [
            ("", Detection::Undecided),
            ("+o", Detection::Undecided),
            ("+OK", Detection::Undecided),
            ("+OK ready", Detection::Yes),
            ("-err\r", Detection::Yes),
            ("+OKAY ", Detection::No),
            ("-OK", Detection::No),
        ] {
            assert_eq!(begins_with(head.as_bytes(), &words), expected, "{head}");
        }
    }

    #[test]
    fn words_end_at_blanks() {
        assert_eq!(word(b"MAIL \t FROM: x"), (&b"MAIL"[..], &b"FROM: x"[..]));
        assert_eq!(word(b"QUIT"), (&b"QUIT"[..], &b""[..]));
    }

    #[test]
    fn short_lines_end_in_time() {
        assert_eq!(bounded(b"220 x\r\nrest", 100), Bounded::Found(b"220 x", 7));
        assert_eq!(bounded(b"220 x\nrest", 100), Bounded::Found(b"220 x", 6));
        assert_eq!(bounded(b"220 x", 100), Bounded::Unfinished);
        assert_eq!(bounded(b"220 x\r\n", 7), Bounded::Found(b"220 x", 7));
        assert_eq!(bounded(b"220 x\r\n", 6), Bounded::TooLong);
        assert_eq!(bounded(b"220 x\r", 6), Bounded::TooLong);
    }

    #[test]
    fn words_and_numbers() {
        assert_eq!(first_word(b"  USER  me too "), (&b"USER"[..], &b"me too "[..]));
        assert_eq!(first_word(b"PASV"), (&b"PASV"[..], &b""[..]));
        assert_eq!(first_word(b"PASV\r\nLIST"), (&b"PASV"[..], &b"LIST"[..]));
        assert_eq!(number(b"065"), Some(65));
        assert_eq!(number(b""), None);
        assert_eq!(number(b"6x"), None);
        assert_eq!(number(b"18446744073709551616"), None);
    }
}
