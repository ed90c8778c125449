//! Lines, words and numbers of protocols whose lines are short.

/// A line that was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// The line without its end, and its length with that.
    Found(&'a [u8], usize),
    /// There is no end of a line yet.
    Unfinished,
    /// There is none where it had to be.
    TooLong,
}

/// The first line, which ends in LF or CR LF and has at most so many bytes with that.
pub(super) fn line(data: &[u8], most: usize) -> Line<'_> {
    let head = data.get(..most).unwrap_or(data);
    match head.iter().position(|&byte| byte == b'\n') {
        Some(end) => {
            let line = &head[..end];
            Line::Found(line.strip_suffix(b"\r").unwrap_or(line), end + 1)
        }
        None if data.len() >= most => Line::TooLong,
        None => Line::Unfinished,
    }
}

/// The first word of a line and what follows it, without the white space around.
pub(super) fn first_word(line: &[u8]) -> (&[u8], &[u8]) {
    let line = line.trim_ascii_start();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    (word, rest.trim_ascii_start())
}

/// The number that all of some digits are; `None` for other bytes, none, and more than 64 bits.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_time() {
        assert_eq!(line(b"220 x\r\nrest", 100), Line::Found(b"220 x", 7));
        assert_eq!(line(b"220 x\nrest", 100), Line::Found(b"220 x", 6));
        assert_eq!(line(b"220 x", 100), Line::Unfinished);
        assert_eq!(line(b"220 x\r\n", 7), Line::Found(b"220 x", 7));
        assert_eq!(line(b"220 x\r\n", 6), Line::TooLong);
        assert_eq!(line(b"220 x\r", 6), Line::TooLong);
    }

    #[test]
    fn words_and_numbers() {
        assert_eq!(first_word(b"  USER  me too "), (&b"USER"[..], &b"me too "[..]));
        assert_eq!(first_word(b"PASV"), (&b"PASV"[..], &b""[..]));
        assert_eq!(number(b"065"), Some(65));
        assert_eq!(number(b""), None);
        assert_eq!(number(b"6x"), None);
        assert_eq!(number(b"18446744073709551616"), None);
    }
}
