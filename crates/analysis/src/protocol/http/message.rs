//! One message in progress: header, body, trailer.

use super::ambiguity;
use super::body::{Body, Sink};
use super::framing::{Expected, Extent, Framing, FramingContext, number};
use super::line::{self, Next};
use crate::protocol::mime::Field;
use crate::weird::Weirds;

/// A message whose start line was seen.
#[derive(Debug)]
pub(super) struct HttpMessage {
    stage: MessageStage,
    framing: Framing,
    filename: Option<Vec<u8>>,
    body: Option<Box<Body>>,
    expected: Expected,
}

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageStage {
    Header,
    /// So many bytes of the body are to come.
    Length(u64),
    ChunkSize,
    /// So many bytes of a chunk are to come.
    Chunk(u64),
    ChunkEnd,
    Trailer,
    /// The body extends to its last boundary.
    Boundary,
    /// The body extends to the end of the stream.
    Close,
}

/// What became of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consumed {
    /// Nothing as long as no more comes.
    None,
    /// So many were taken.
    Some(usize),
    /// So many were taken, and the message is complete.
    Last(usize),
}

impl HttpMessage {
    /// A message of which only the start line was seen.
    pub(super) fn begun(expected: Expected) -> Self {
        Self {
            stage: MessageStage::Header,
            framing: Framing::default(),
            filename: None,
            body: None,
            expected,
        }
    }

    /// Learns that its side says nothing else any more.
    pub(super) const fn is_last_of_side(&mut self) {
        self.expected = Expected::Always;
    }

    /// Whether header fields come.
    pub(super) const fn is_in_header(&self) -> bool {
        matches!(self.stage, MessageStage::Header | MessageStage::Trailer)
    }

    /// Takes a header field.
    pub(super) fn field(&mut self, field: &Field<'_>, around: FramingContext, weirds: &mut Weirds) {
        self.framing.field(field, around, weirds);
        if let Some(name) = field.filename() {
            self.filename = Some(name);
        }
    }

    /// Ends the header, or the trailer. Returns whether the message is complete.
    pub(super) fn end_header(&mut self, is_partial: bool, weirds: &mut Weirds) -> bool {
        if self.stage == MessageStage::Trailer {
            return true;
        }
        self.stage = match self.framing.extent(self.expected, weirds) {
            Extent::Empty => return true,
            Extent::Length(len) => MessageStage::Length(len),
            Extent::Chunks => MessageStage::ChunkSize,
            Extent::Boundary => MessageStage::Boundary,
            Extent::Close => MessageStage::Close,
        };
        self.body = Some(Box::new(Body::new(&self.framing, self.filename.take(), is_partial)));
        false
    }

    /// Takes bytes of the body.
    pub(super) fn bytes(
        &mut self,
        data: &[u8],
        scanned: usize,
        next: Next,
        sink: &mut Sink<'_>,
    ) -> Consumed {
        match self.stage {
            MessageStage::Header | MessageStage::Trailer => Consumed::None,
            MessageStage::Length(left) | MessageStage::Chunk(left) => {
                let len = usize::try_from(left).unwrap_or(usize::MAX).min(data.len());
                self.give(&data[..len], sink);
                self.advance(len as u64);
                if self.stage == MessageStage::Length(0) {
                    Consumed::Last(len)
                } else {
                    Consumed::Some(len)
                }
            }
            MessageStage::ChunkSize => {
                let Some(line) = line::line(data, scanned, next) else { return Consumed::None };
                ambiguity::of_line(data, &line, &mut sink.found.weirds);
                self.chunk_size(line.text, &mut sink.found.weirds);
                Consumed::Some(line.len)
            }
            MessageStage::ChunkEnd => {
                let Some(line) = line::line(data, scanned, next) else { return Consumed::None };
                if !line.text.is_empty() {
                    sink.found.weirds.add("HTTP_bad_chunk_end");
                }
                self.stage = MessageStage::ChunkSize;
                Consumed::Some(line.len)
            }
            MessageStage::Boundary => {
                let len = self.give(data, sink);
                let is_over = self.body.as_ref().is_none_or(|body| body.is_over());
                if is_over { Consumed::Last(len) } else { Consumed::Some(len) }
            }
            MessageStage::Close => Consumed::Some(self.give(data, sink)),
        }
    }

    fn give(&mut self, data: &[u8], sink: &mut Sink<'_>) -> usize {
        self.body.as_mut().map_or(data.len(), |body| body.bytes(data, sink))
    }

    fn chunk_size(&mut self, line: &[u8], weirds: &mut Weirds) {
        // It begins with a digit, as Zeek (`atoi_n`) and the grammar have it.
        let size = number(line, 16);
        // Behind the digits there may be extensions (RFC 9112, 7.1.1), and blanks, which servers fill up with.
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let rest = line.get(digits..).unwrap_or_default().trim_ascii_start();
        if size.is_none() || rest.first().is_some_and(|&byte| byte != b';') {
            weirds.add("HTTP_bad_chunk_size");
        }
        self.stage = match size {
            None | Some(0) => MessageStage::Trailer,
            Some(size) => MessageStage::Chunk(size),
        };
    }

    /// So many bytes less are to come.
    fn advance(&mut self, len: u64) {
        self.stage = match self.stage {
            MessageStage::Chunk(left) if left <= len => MessageStage::ChunkEnd,
            MessageStage::Chunk(left) => MessageStage::Chunk(left - len),
            MessageStage::Length(left) => MessageStage::Length(left.saturating_sub(len)),
            other => other,
        };
    }

    /// Learns that so many bytes are missing. Where they are all of the body, it goes on, wherever they
    /// are in it; `None` where it cannot.
    pub(super) fn gap(&mut self, len: u64, sink: &mut Sink<'_>) -> Option<Consumed> {
        let body = self.body.as_mut()?;
        let is_within = match self.stage {
            MessageStage::Length(left) | MessageStage::Chunk(left) => left >= len,
            MessageStage::Close => true,
            _ => false,
        };
        body.settle(sink);
        if is_within || body.has_begun() {
            body.gap(len, sink);
        }
        if !is_within {
            return None;
        }
        self.advance(len);
        Some(if self.stage == MessageStage::Length(0) {
            Consumed::Last(0)
        } else {
            Consumed::Some(0)
        })
    }

    /// Ends the message, and tells the length of its body where that is known.
    pub(super) fn end(mut self, sink: &mut Sink<'_>) -> Option<u64> {
        match &mut self.body {
            Some(body) => {
                let is_whole =
                    matches!(self.stage, MessageStage::Length(0) | MessageStage::Trailer);
                body.end(is_whole, sink);
                body.len()
            }
            None => Some(0),
        }
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.framing.heap_bytes()
            + self.filename.as_ref().map_or(0, Vec::capacity)
            + self.body.as_ref().map_or(0, |body| body.bytes_held())
    }
}
