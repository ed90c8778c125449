//! Lines of text, as protocols of people have them.

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
}
