//! Bodies of several parts, RFC 2046 section 5.1, in pieces of any size.

use super::field::Field;

/// What is found in a body, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// A part begins with its header.
    Part,
    /// A field of its header.
    Field(Field<'a>),
    /// Bytes of its content.
    Content(&'a [u8]),
    /// The part is complete.
    PartEnd,
}

/// A body that is read.
#[derive(Debug)]
pub(super) struct Multipart {
    /// CR LF, two hyphens and the boundary.
    delimiter: Box<[u8]>,
    /// How many bytes of the delimiter were seen in a row.
    matched: usize,
    /// Whether its CR LF only counts as seen: at the begin of a body or a part.
    is_at_begin: bool,
    state: State,
    /// The line of a header that is not complete yet.
    line: Vec<u8>,
    /// The field that the next line may continue.
    field: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first delimiter.
    Preamble,
    /// Behind a delimiter, on its line: how many hyphens followed, and whether something else did.
    Delimiter {
        hyphens: u8,
        is_over: bool,
    },
    Header,
    Content,
    /// Behind the last delimiter.
    Epilogue,
}

/// The longest header field of a part that is read. More of it is left out.
const MAX_FIELD: usize = 8 << 10;

impl Multipart {
    pub(super) fn new(boundary: &[u8]) -> Self {
        Self {
            delimiter: [b"\r\n--", boundary].concat().into_boxed_slice(),
            matched: 2,
            is_at_begin: true,
            state: State::Preamble,
            line: Vec::new(),
            field: Vec::new(),
        }
    }

    /// Whether the last delimiter was seen.
    pub(super) fn is_over(&self) -> bool {
        self.state == State::Epilogue
    }

    /// Takes bytes up to the end of the last delimiter's line, and returns how many.
    pub(super) fn bytes(&mut self, data: &[u8], take: &mut impl FnMut(Found<'_>)) -> usize {
        let mut at = 0;
        while let Some(rest) = data.get(at..).filter(|rest| !rest.is_empty()) {
            at += match self.state {
                State::Preamble | State::Content => self.content(rest, take),
                State::Delimiter { .. } => self.delimiter_line(rest, take),
                State::Header => self.header(rest, take),
                State::Epilogue => break,
            };
        }
        at
    }

    /// Ends the body where no more comes.
    pub(super) fn end(&mut self, take: &mut impl FnMut(Found<'_>)) {
        match self.state {
            State::Header => {
                self.finish_field(take);
                take(Found::PartEnd);
            }
            State::Content => {
                self.flush(take);
                take(Found::PartEnd);
            }
            State::Preamble | State::Delimiter { .. } | State::Epilogue => {}
        }
        self.state = State::Epilogue;
    }

    fn content(&mut self, data: &[u8], take: &mut impl FnMut(Found<'_>)) -> usize {
        if self.matched == 0 {
            let end = data.iter().position(|&byte| byte == b'\r').unwrap_or(data.len());
            if end > 0 {
                self.give(&data[..end], take);
                return end;
            }
        }
        let mut at = 0;
        while let (Some(byte), Some(next)) = (data.get(at), self.delimiter.get(self.matched)) {
            if byte != next {
                self.flush(take);
                // A delimiter has a CR only at its begin, so nothing but that can begin here.
                return at;
            }
            (at, self.matched) = (at + 1, self.matched + 1);
        }
        if self.matched == self.delimiter.len() {
            if self.state == State::Content {
                take(Found::PartEnd);
            }
            self.matched = 0;
            self.state = State::Delimiter { hyphens: 0, is_over: false };
        }
        at
    }

    /// Gives away what looked like a delimiter.
    fn flush(&mut self, take: &mut impl FnMut(Found<'_>)) {
        let from = if self.is_at_begin { 2 } else { 0 };
        let matched = core::mem::take(&mut self.matched);
        if let (State::Content, Some(seen)) = (self.state, self.delimiter.get(from..matched))
            && !seen.is_empty()
        {
            take(Found::Content(seen));
        }
        self.is_at_begin = false;
    }

    fn give(&self, data: &[u8], take: &mut impl FnMut(Found<'_>)) {
        if self.state == State::Content {
            take(Found::Content(data));
        }
    }

    fn delimiter_line(&mut self, data: &[u8], take: &mut impl FnMut(Found<'_>)) -> usize {
        for (at, &byte) in data.iter().enumerate() {
            let State::Delimiter { hyphens, is_over } = &mut self.state else { return at };
            match byte {
                b'\n' => {
                    self.state = if *hyphens == 2 { State::Epilogue } else { State::Header };
                    if self.state == State::Header {
                        take(Found::Part);
                    }
                    return at + 1;
                }
                b'-' if !*is_over && *hyphens < 2 => *hyphens += 1,
                _ => *is_over = true,
            }
        }
        data.len()
    }

    fn header(&mut self, data: &[u8], take: &mut impl FnMut(Found<'_>)) -> usize {
        let end = data.iter().position(|&byte| byte == b'\n');
        let text = data.get(..end.unwrap_or(data.len())).unwrap_or_default();
        let room = MAX_FIELD.saturating_sub(self.line.len());
        self.line.extend_from_slice(text.get(..room).unwrap_or(text));
        let Some(end) = end else { return data.len() };
        let line = core::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        match line.first() {
            None => {
                self.finish_field(take);
                self.state = State::Content;
                (self.matched, self.is_at_begin) = (2, true);
            }
            Some(b' ' | b'\t') => {
                let room = MAX_FIELD.saturating_sub(self.field.len());
                self.field.extend_from_slice(line.get(..room).unwrap_or(line));
            }
            Some(_) => {
                self.finish_field(take);
                self.field.extend_from_slice(line);
            }
        }
        end + 1
    }

    fn finish_field(&mut self, take: &mut impl FnMut(Found<'_>)) {
        let field = core::mem::take(&mut self.field);
        if let Some(field) = Field::parse(&field) {
            take(Found::Field(field));
        }
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.delimiter.len() + self.line.capacity() + self.field.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found, with the content of each part in one piece, and how many bytes were taken.
    fn read(data: &[u8], len: usize) -> (Vec<String>, usize) {
        let (mut parts, mut told, mut taken) = (Multipart::new(b"xx"), Vec::new(), 0);
        let mut take = |found: Found<'_>| match found {
            Found::Part => told.push("part:".to_owned()),
            Found::Field(field) => {
                told.push(format!("field {:?}", field.value.escape_ascii().to_string()))
            }
            Found::Content(content) => {
                told.last_mut().unwrap().push_str(&content.escape_ascii().to_string());
            }
            Found::PartEnd => told.push("end:".to_owned()),
        };
        for piece in data.chunks(len) {
            taken += parts.bytes(piece, &mut take);
        }
        parts.end(&mut take);
        (told, taken)
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
}
