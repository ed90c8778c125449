//! Bodies of several parts, RFC 2046 section 5.1, in pieces of any size.

use memchr::memchr;

use crate::protocol::mime::{MimeMessage, Visitor};
use crate::protocol::syntax::line::{LONGEST, LineEnd, next_by_lf};

/// A body that is read, line by line. LF ends a line, mostly behind CR: so all bytes of the parts are
/// told as they are.
#[derive(Debug)]
pub(super) struct Multipart {
    message: MimeMessage,
    /// The begin of a line whose end did not come yet.
    line: Vec<u8>,
}

impl Multipart {
    /// A body of which nothing came yet.
    pub(super) fn new(boundary: &[u8]) -> Self {
        Self { message: MimeMessage::multipart(boundary), line: Vec::new() }
    }

    /// Whether the last boundary was met.
    pub(super) fn is_over(&self) -> bool {
        self.message.is_over()
    }

    /// Takes bytes up to the end of the last boundary's line, and returns how many.
    pub(super) fn bytes(&mut self, data: &[u8], visitor: &mut impl Visitor) -> usize {
        let mut at = 0;
        while !self.is_over()
            && let Some(rest) = data.get(at..).filter(|rest| !rest.is_empty())
        {
            at += self.step(rest, visitor);
        }
        at
    }

    /// Takes bytes up to the end of a line, or as many as one may hold.
    fn step(&mut self, data: &[u8], visitor: &mut impl Visitor) -> usize {
        let Self { message, line } = self;
        let window = data.get(..LONGEST.saturating_sub(line.len())).unwrap_or(data);
        let end = memchr(b'\n', window).map(|end| end + 1);
        let taken = &window[..end.unwrap_or(window.len())];
        if end.is_some() && line.is_empty() {
            emit_line(message, taken, visitor);
            return taken.len();
        }
        line.extend_from_slice(taken);
        if end.is_some() {
            emit_line(message, line, visitor);
            line.clear();
        } else if line.len() >= LONGEST {
            // A CR belongs to the LF that may follow it.
            let piece = line.strip_suffix(b"\r").unwrap_or(line);
            message.line(piece, LineEnd::None, visitor);
            line.drain(..piece.len());
        }
        taken.len()
    }

    /// Tells the begin of a line whose end will not come.
    pub(super) fn settle(&mut self, visitor: &mut impl Visitor) {
        if !self.line.is_empty() {
            self.message.line(&self.line, LineEnd::None, visitor);
            self.line.clear();
        }
    }

    /// Ends the body where no more comes.
    pub(super) fn end(&mut self, visitor: &mut impl Visitor) {
        self.settle(visitor);
        self.message.finish(visitor);
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.message.heap_bytes() + self.line.capacity()
    }
}

/// Tells a line with its end.
fn emit_line(message: &mut MimeMessage, data: &[u8], visitor: &mut impl Visitor) {
    if let Ok(line) = next_by_lf(data) {
        message.line(line.text, line.end, visitor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::mime::{Field, Part};

    /// What is found, with the content of each part in one piece.
    #[derive(Default)]
    struct Told(Vec<String>);

    impl Visitor for Told {
        fn begin(&mut self) {
            self.0.push("part:".to_owned());
        }

        fn header(&mut self, field: &Field<'_>) {
            self.0.push(format!("field {:?}", field.value.escape_ascii().to_string()));
        }

        fn content(&mut self, _: &Part, data: &[u8]) {
            self.0.last_mut().unwrap().push_str(&data.escape_ascii().to_string());
        }

        fn end(&mut self, _: &Part) {
            self.0.push("end:".to_owned());
        }

        fn weird(&mut self, name: &'static str) {
            self.0.push(name.to_owned());
        }
    }

    /// What is found, and how many bytes were taken.
    fn read(data: &[u8], len: usize) -> (Vec<String>, usize) {
        let (mut parts, mut told, mut taken) = (Multipart::new(b"xx"), Told::default(), 0);
        for piece in data.chunks(len) {
            taken += parts.bytes(piece, &mut told);
        }
        parts.end(&mut told);
        (told.0, taken)
    }

    #[test]
    fn parts_are_found_however_the_body_is_cut() {
        let body =
            b"preamble\r\n--xx\r\nA: 1\r\n 2\r\n\r\nab\r\n--x\r\r\n-\r\n--xx \r\n\r\n--xx\r\n\r\n\
                     --\r\n--xx--\r\nepilogue";
        let expected = [
            "part:",
            "field \"1 2\"ab\\r\\n--x\\r\\r\\n-",
            "end:",
            "part:",
            "end:",
            "part:--",
            "end:",
        ];
        for len in 1..=body.len() {
            let (told, taken) = read(body, len);
            assert_eq!(told, expected, "{len}");
            assert_eq!(taken, body.len() - b"epilogue".len(), "{len}");
        }
    }

    #[test]
    fn what_is_not_complete_ends_with_the_body() {
        let (told, _) = read(b"--xx\nA: 1\n\nab\r\n--x", 3);
        assert_eq!(told, ["part:", "field \"1\"ab\\r\\n--x", "end:"]);
        let (told, _) = read(b"--xx\r\nA: 1\r\n", 100);
        assert_eq!(told, ["part:", "field \"1\"", "end:"]);
        assert_eq!(read(b"nothing", 2).0, Vec::<String>::new());
    }

    #[test]
    fn long_lines_are_not_held_and_nothing_of_them_is_lost() {
        for len in [LONGEST - 2, LONGEST - 1, LONGEST, LONGEST + 1, 3 * LONGEST] {
            for fill in [&b"a"[..], b"\r", b"-"] {
                let content = fill.repeat(len);
                let body = [b"--xx\r\n\r\n", &content[..], b"\n\r\n--xx--\r\n"].concat();
                for cut in [1, 1_000, body.len()] {
                    let (told, taken) = read(&body, cut);
                    let expected = format!("part:{}\\n", content.escape_ascii());
                    assert!(told == [expected, "end:".to_owned()], "{len} {fill:?} {cut}");
                    assert_eq!(taken, body.len());
                }
            }
        }
        let mut parts = Multipart::new(b"xx");
        parts.bytes(&[b'a'; 10 * LONGEST], &mut Told::default());
        assert!(parts.heap_bytes() < 3 * LONGEST, "{}", parts.heap_bytes());
    }
}
