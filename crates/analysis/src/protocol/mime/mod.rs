//! Messages: header fields, bodies, and bodies within bodies (RFC 5322, RFC 2045 to 2049).
//!
//! | module | concern |
//! |---|---|
//! | [`field`] | header fields and their parameters |
//! | [`token`] | the words of header fields |
//! | [`encoding`] | base64 and quoted-printable |
//! | [`mail`] | a mail whose parts become files |
//!
//! A message comes line by line. It goes on where something is not as it should be, as Zeek does:
//! a multipart without a boundary has no parts, what stands before the first boundary and behind the
//! last is nobody's.

pub(super) mod encoding;
mod field;
pub(super) mod mail;
mod token;

pub(super) use super::syntax::line::LineEnd;
pub(super) use field::Field;
pub(super) use mail::Mail;
pub(super) use token::{is_token_byte, token};

use super::syntax::base64;
use encoding::QuotedPrintable;

/// Levels of messages and multiparts within each other, Zeek's `MIME::max_depth`.
const MAX_DEPTH: usize = 100;

/// Bytes of one header field. Those of mailing lists with all addressees take some ten thousand.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// Whoever is told what a message consists of.
pub(super) trait Visitor {
    /// An entity begins: the message itself, a part, an enclosed message.
    fn begin(&mut self);
    /// A header field of the entity that began last.
    fn header(&mut self, header: &Field<'_>);
    /// Decoded bytes of a part that has no parts itself.
    fn content(&mut self, part: &Part, data: &[u8]);
    /// Such a part is over.
    fn end(&mut self, part: &Part);
    fn weird(&mut self, name: &'static str);
}

/// What the header of an entity tells.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Type and subtype in lower case, where they are told.
    pub(super) content_type: Option<Box<[u8]>>,
    /// The name of the file that it is.
    pub(super) filename: Option<Box<[u8]>>,
}

/// A message on its way.
#[derive(Debug)]
pub(super) struct MimeMessage {
    /// The message, the part of it that is being read, the part of that, and so on.
    entities: Vec<Entity>,
    is_within_line: bool,
    /// Room for what is decoded of a line.
    decoded: Vec<u8>,
    has_begun: bool,
}

#[derive(Debug, Default)]
struct Entity {
    part: Part,
    /// The lines of the header field that is being read, joined; `None` before the first.
    field: Option<Vec<u8>>,
    is_in_body: bool,
    kind: Kind,
    encoding: Encoding,
    /// The end of its last line, which may be a part of the boundary behind it.
    owed: Option<LineEnd>,
    /// Its last boundary was met: nothing more is in it.
    is_closed: bool,
}

#[derive(Debug, Default)]
enum Kind {
    #[default]
    Leaf,
    Multipart(Box<[u8]>),
    Message,
}

#[derive(Clone, Debug, Default)]
enum Encoding {
    #[default]
    Identity,
    Base64(base64::Decoder),
    QuotedPrintable(QuotedPrintable),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Boundary {
    Next,
    Last,
}

impl MimeMessage {
    /// A message of which nothing came yet.
    pub(super) fn new() -> Self {
        Self {
            entities: vec![Entity::default()],
            is_within_line: false,
            decoded: Vec::new(),
            has_begun: false,
        }
    }

    /// The body of a multipart whose header is known, of which nothing came yet.
    pub(super) fn multipart(boundary: &[u8]) -> Self {
        let kind = Kind::Multipart(boundary.into());
        let entity = Entity { kind, is_in_body: true, ..Entity::default() };
        Self { entities: vec![entity], has_begun: true, ..Self::new() }
    }

    /// Whether the last boundary of the outermost multipart was met.
    pub(super) fn is_over(&self) -> bool {
        self.entities.first().is_some_and(|entity| entity.is_closed)
    }

    /// Takes the next line.
    pub(super) fn line(&mut self, text: &[u8], end: LineEnd, visitor: &mut impl Visitor) {
        if !core::mem::replace(&mut self.has_begun, true) {
            visitor.begin();
        }
        let is_start = !core::mem::replace(&mut self.is_within_line, end == LineEnd::None);
        if is_start && text.starts_with(b"--") && self.boundary(text, visitor) {
            return;
        }
        let depth = self.entities.len();
        let is_in_multipart = match depth.checked_sub(2).and_then(|at| self.entities.get(at)) {
            Some(parent) => matches!(parent.kind, Kind::Multipart(_)),
            None => false,
        };
        let Some(entity) = self.entities.last_mut() else { return };
        if !entity.is_in_body {
            entity.header_line(text, is_start, end, visitor);
            if entity.is_in_body && matches!(entity.kind, Kind::Message) {
                self.begin_child(visitor);
            }
        } else if matches!(entity.kind, Kind::Leaf) && !entity.is_closed {
            entity.body_line(text, end, is_in_multipart, &mut self.decoded, visitor);
        }
    }

    pub(super) fn finish(&mut self, visitor: &mut impl Visitor) {
        self.close(0, visitor);
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.decoded.capacity()
            + self.entities.capacity() * size_of::<Entity>()
            + self.entities.iter().map(Entity::heap_bytes).sum::<usize>()
    }

    /// Looks whether a line is a boundary of one of the multiparts, the outermost first.
    fn boundary(&mut self, text: &[u8], visitor: &mut impl Visitor) -> bool {
        let met = self.entities.iter().enumerate();
        let Some((at, boundary)) = met.filter_map(|(at, e)| Some((at, e.boundary(text)?))).next()
        else {
            return false;
        };
        self.close(at + 1, visitor);
        let Some(entity) = self.entities.get_mut(at) else { return true };
        entity.is_closed |= boundary == Boundary::Last;
        if !entity.is_closed {
            self.begin_child(visitor);
        }
        true
    }

    fn begin_child(&mut self, visitor: &mut impl Visitor) {
        if self.entities.len() > MAX_DEPTH {
            visitor.weird("exceeded_mime_max_depth");
            return;
        }
        let encoding = self.entities.last().map(|parent| parent.encoding.anew());
        let encoding = encoding.unwrap_or_default();
        self.entities.push(Entity { encoding, ..Entity::default() });
        visitor.begin();
    }

    /// Ends the entities from this depth on, the innermost first.
    fn close(&mut self, depth: usize, visitor: &mut impl Visitor) {
        while self.entities.len() > depth
            && let Some(mut entity) = self.entities.pop()
        {
            entity.finish(&mut self.decoded, visitor);
        }
    }
}

impl Entity {
    fn heap_bytes(&self) -> usize {
        let boundary = match &self.kind {
            Kind::Multipart(boundary) => boundary.len(),
            Kind::Leaf | Kind::Message => 0,
        };
        let text = |text: &Option<Box<[u8]>>| text.as_ref().map_or(0, |text| text.len());
        self.field.as_ref().map_or(0, Vec::capacity)
            + text(&self.part.content_type)
            + text(&self.part.filename)
            + boundary
    }

    /// Takes a line of the header. A blank line ends it.
    fn header_line(
        &mut self,
        text: &[u8],
        is_start: bool,
        end: LineEnd,
        visitor: &mut impl Visitor,
    ) {
        if is_start && end != LineEnd::None && matches!(text, [] | [0, ..]) {
            self.finish_field(visitor);
            self.is_in_body = true;
            return;
        }
        let is_more = !is_start || matches!(text, [b' ' | b'\t', ..]);
        match &mut self.field {
            Some(field) if is_more => {
                let room = MAX_HEADER_BYTES.saturating_sub(field.len());
                if text.len() > room {
                    visitor.weird("exceeded_mime_max_header_bytes");
                }
                field.extend_from_slice(text.get(..room).unwrap_or(text));
            }
            _ => {
                self.finish_field(visitor);
                self.field = Some(text.trim_ascii_start().to_vec());
            }
        }
    }

    fn finish_field(&mut self, visitor: &mut impl Visitor) {
        let Some(field) = self.field.take() else { return };
        let Some(header) = Field::parse(&field) else { return };
        if header.is("content-type") {
            self.content_type(&header);
        } else if header.is("content-transfer-encoding") {
            self.encoding = Encoding::named(header.main_value());
        } else if header.is("content-disposition") {
            let name = header.filename();
            self.part.filename = name.map(Vec::into_boxed_slice).or(self.part.filename.take());
        }
        visitor.header(&header);
    }

    fn content_type(&mut self, header: &Field<'_>) {
        let value = header.main_value().to_ascii_lowercase();
        let mut words = value.splitn(2, |&byte| byte == b'/');
        let (Some(kind), Some(subkind)) = (words.next(), words.next()) else { return };
        let kind = kind.trim_ascii();
        self.kind = match kind {
            b"multipart" => header.boundary().map_or(Kind::Leaf, |it| Kind::Multipart(it.into())),
            b"message" => Kind::Message,
            _ => Kind::Leaf,
        };
        self.part.content_type = Some([kind, b"/", subkind.trim_ascii()].concat().into());
        if self.part.filename.is_none() {
            self.part.filename = header.filename().map(Vec::into_boxed_slice);
        }
    }

    fn body_line(
        &mut self,
        text: &[u8],
        end: LineEnd,
        is_in_multipart: bool,
        decoded: &mut Vec<u8>,
        visitor: &mut impl Visitor,
    ) {
        decoded.clear();
        match &mut self.encoding {
            Encoding::Base64(decoder) => decoder.decode(text, decoded),
            Encoding::QuotedPrintable(decoder) => decoder.decode(text, end, decoded),
            Encoding::Identity => {
                self.line_end(visitor);
                self.owed = Some(end);
                if !text.is_empty() {
                    visitor.content(&self.part, text);
                }
                if !is_in_multipart {
                    self.line_end(visitor);
                }
                return;
            }
        }
        if !decoded.is_empty() {
            visitor.content(&self.part, decoded);
        }
    }

    /// Hands on the end of the last line. In a multipart that is done only when more follows, since
    /// the last one belongs to the boundary (RFC 2046, 5.1.1).
    fn line_end(&mut self, visitor: &mut impl Visitor) {
        match self.owed.take() {
            Some(LineEnd::Crlf) => visitor.content(&self.part, b"\r\n"),
            Some(LineEnd::Lf) => visitor.content(&self.part, b"\n"),
            Some(LineEnd::None) | None => {}
        }
    }

    fn finish(&mut self, decoded: &mut Vec<u8>, visitor: &mut impl Visitor) {
        if !self.is_in_body {
            self.finish_field(visitor);
        }
        if let Encoding::Base64(decoder) = &mut self.encoding {
            decoded.clear();
            decoder.finish(decoded);
            if !decoded.is_empty() && matches!(self.kind, Kind::Leaf) {
                visitor.content(&self.part, decoded);
            }
        }
        if matches!(self.kind, Kind::Leaf) {
            visitor.end(&self.part);
        }
    }

    /// Whether a line is its boundary.
    fn boundary(&self, text: &[u8]) -> Option<Boundary> {
        let Kind::Multipart(boundary) = &self.kind else { return None };
        if !self.is_in_body {
            return None;
        }
        let behind = text.strip_prefix(b"--")?.strip_prefix(&**boundary)?;
        Some(if behind.starts_with(b"--") { Boundary::Last } else { Boundary::Next })
    }
}

impl Encoding {
    fn named(name: &[u8]) -> Self {
        if name.eq_ignore_ascii_case(b"base64") {
            Self::Base64(base64::Decoder::default())
        } else if name.eq_ignore_ascii_case(b"quoted-printable") {
            Self::QuotedPrintable(QuotedPrintable::default())
        } else {
            Self::Identity
        }
    }

    /// The same for an entity that begins.
    fn anew(&self) -> Self {
        match self {
            Self::Identity => Self::Identity,
            Self::Base64(_) => Self::Base64(base64::Decoder::default()),
            Self::QuotedPrintable(_) => Self::QuotedPrintable(QuotedPrintable::default()),
        }
    }
}

#[cfg(test)]
mod tests;
