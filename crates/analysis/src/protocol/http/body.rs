//! The bytes of a body, on their way to the files of its message.

use netsniff_packet::Timestamp;

use super::coding::{BLOCK, Budget, Decoded, Decoder, Pace};
use super::exchanges::Exchanges;
use super::framing::{Framing, Range};
use super::multipart::Multipart;
use super::undecoded::Undecoded;
use crate::file::Bodies;
use crate::protocol::file_transfer::{Carrier, FileTransfer};
use crate::protocol::mime::{Field, Part, Visitor};
use crate::protocol::{Findings, Role, SessionContext};
use crate::weird::Detail;

/// A body in progress.
#[derive(Debug)]
pub(super) struct Body {
    decoder: Option<Box<Decoder>>,
    content: BodyContent,
    /// Bytes as they were sent, of a body that is decoded or has parts.
    sent: u64,
    len: u64,
    /// Whether that is the length: not where something could not be decoded.
    is_exact: bool,
    /// Where only its first bytes are to be decoded.
    undecoded: Option<Box<Undecoded>>,
}

#[derive(Debug)]
enum BodyContent {
    /// All of it is one file.
    Whole(Opening),
    /// Each part is one.
    Parts(Box<Multipart>, Opening),
}

/// A file, or what is known of it before its first byte.
#[derive(Debug, Default)]
struct Opening {
    filename: Option<Vec<u8>>,
    total: Option<u64>,
    /// How many bytes it has by what does not count.
    claimed: Option<u64>,
    has_begun: bool,
    /// Whether it is of a response with a part of something, or several (RFC 9110, 15.3.7).
    is_partial: bool,
    /// Where in the whole the next byte stands.
    at: Option<u64>,
    /// `None` also where there are too many.
    file: Option<Box<FileTransfer>>,
}

/// The files of a connection so far, and what it may decode.
#[derive(Debug)]
pub(super) struct Files {
    carrier: Carrier,
    count: u64,
    /// Those of which parts came, by what was asked for: more parts may come.
    ranges: Vec<(Target, Box<FileTransfer>)>,
    /// How many more there were, which have no row.
    left_out: u64,
    pub(super) budget: Budget,
    bodies: Bodies,
    /// Whether it was told that there was too much to decode.
    is_cut_told: bool,
}

/// Host and URI of what parts were asked for; `None` where nobody asked.
type Target = Option<[Option<Box<[u8]>>; 2]>;

/// Files of one connection of which more parts may come; of one more, the oldest ends. Players have two.
const MAX_RANGES: usize = 32;

/// Ends a file whose end did not come.
fn end_unseen(mut file: Box<FileTransfer>, found: &mut Findings) {
    file.set_timed_out();
    file.end(found);
}

pub(super) struct Sink<'a> {
    pub(super) time: Timestamp,
    pub(super) from: Role,
    pub(super) exchanges: &'a mut Exchanges,
    pub(super) files: &'a mut Files,
    pub(super) found: &'a mut Findings,
}

impl Sink<'_> {
    /// What the exchange in progress wants parts of.
    fn target(&mut self) -> Target {
        self.exchanges.current(self.from)?.wanted_range()
    }
}

impl Files {
    pub(super) fn new(context: &SessionContext<'_>) -> Self {
        Self {
            carrier: Carrier::from(context),
            count: 0,
            ranges: Vec::new(),
            left_out: 0,
            budget: Budget::from(context.limits),
            bodies: context.bodies,
            is_cut_told: false,
        }
    }

    /// How many there were.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Goes on counting behind so many.
    pub(super) const fn count_on(&mut self, count: u64) {
        self.count = count;
    }

    /// The next file of a side; `None` where there are too many.
    fn begin(&mut self, from: Role) -> Option<Box<FileTransfer>> {
        if self.count >= self.carrier.rows(self.budget.carried()) {
            self.left_out += 1;
            return None;
        }
        self.count += 1;
        Some(Box::new(FileTransfer::begin(self.carrier, self.count - 1, from, "HTTP")))
    }

    /// Takes out the file of which parts came for `target`.
    fn take_range(&mut self, target: &Target) -> Option<Box<FileTransfer>> {
        let place = self.ranges.iter().position(|(of, _)| of.is_some() && of == target)?;
        Some(self.ranges.remove(place).1)
    }

    /// Keeps a file of which parts came, unless it is complete.
    fn keep_range(&mut self, target: Target, file: Box<FileTransfer>, found: &mut Findings) {
        if file.is_complete() {
            return file.end(found);
        }
        if self.ranges.len() >= MAX_RANGES {
            end_unseen(self.ranges.remove(0).1, found);
        }
        self.ranges.push((target, file));
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let files =
            self.ranges.iter().map(|(_, file)| size_of::<FileTransfer>() + file.heap_bytes());
        self.ranges.capacity() * size_of::<(Target, Box<FileTransfer>)>() + files.sum::<usize>()
    }

    /// Ends files whose rest did not come, and tells how many have no row.
    pub(super) fn end(&mut self, found: &mut Findings) {
        for (_, file) in self.ranges.drain(..) {
            end_unseen(file, found);
        }
        if self.left_out > 0 {
            found.weirds.add_with("HTTP_too_many_parts", Detail::Number(self.left_out));
        }
    }
}

impl Body {
    /// A body of which the header is known.
    pub(super) fn new(framing: &Framing, filename: Option<Vec<u8>>, is_partial: bool) -> Self {
        let at = framing.range().filter(|_| is_partial).map(|range| range.first);
        let total = framing.file_len();
        let claimed = framing.claimed_len();
        let opening = Opening { filename, total, claimed, is_partial, at, ..Opening::default() };
        Self {
            decoder: Decoder::new(framing.codings()).map(Box::new),
            content: match framing.boundary() {
                Some(boundary) => {
                    let opening = Opening { is_partial, ..Opening::default() };
                    BodyContent::Parts(Box::new(Multipart::new(boundary)), opening)
                }
                None => BodyContent::Whole(opening),
            },
            sent: 0,
            len: 0,
            is_exact: true,
            undecoded: None,
        }
    }

    /// Whether something of it came.
    pub(super) const fn has_begun(&self) -> bool {
        self.len > 0
    }

    /// How long it is so far, where that can be told.
    pub(super) fn len(&self) -> Option<u64> {
        match self.undecoded.as_ref().filter(|rest| rest.is_cut()) {
            Some(rest) => rest.length(),
            None => self.is_exact.then_some(self.len),
        }
    }

    /// Whether it has several parts.
    pub(super) const fn has_parts(&self) -> bool {
        matches!(self.content, BodyContent::Parts(..))
    }

    /// Whether its last boundary was seen.
    pub(super) fn is_over(&self) -> bool {
        matches!(&self.content, BodyContent::Parts(parts, _) if parts.is_over())
    }

    /// Takes bytes as they were sent. Of a body that its last boundary ends it may take fewer than
    /// there are. Returns how many it took.
    pub(super) fn bytes(&mut self, data: &[u8], sink: &mut Sink<'_>) -> usize {
        if self.decoder.is_some() {
            self.decode(data, false, sink);
            return data.len();
        }
        if !self.has_parts() {
            sink.files.budget.carry(data.len() as u64);
            self.len = self.len.saturating_add(data.len() as u64);
            return self.content.bytes(data, sink);
        }
        let mut taken = 0;
        while taken < data.len() {
            let begun = self.sent % BLOCK;
            if begun == 0 {
                sink.files.budget.carry(BLOCK);
            }
            let block = data.len().min(taken + (BLOCK - begun) as usize);
            let len = self.content.bytes(&data[taken..block], sink);
            (taken, self.sent, self.len) =
                (taken + len, self.sent + len as u64, self.len.saturating_add(len as u64));
            if self.is_over() {
                break;
            }
        }
        taken
    }

    /// Decodes bytes, or what waited for more where none come.
    fn decode(&mut self, data: &[u8], is_last: bool, sink: &mut Sink<'_>) {
        if self.passes_over(data, sink) {
            return;
        }
        let Self { decoder, content, len, undecoded, .. } = self;
        let Some(decoder) = decoder else { return };
        // Each part asks what was carried, and so does who counts what is not decoded.
        let is_one = matches!(content, BodyContent::Whole(_)) && undecoded.is_none();
        let pace = if is_one { Pace::Together } else { Pace::Blocks };
        let turn = sink.found.decodable;
        let mut budget = sink.files.budget.at_turn(turn.unwrap_or(u64::MAX));
        let (before, begun) = (budget, *len);
        let mut take = |clear: &[u8], carried: u64| {
            let wanted = undecoded.as_mut().map_or(clear, |rest| rest.wanted(clear));
            *len = len.saturating_add(wanted.len() as u64);
            sink.files.budget.set_carried(carried);
            content.bytes(wanted, sink);
            undecoded.as_ref().is_none_or(|rest| !rest.is_cut())
        };
        let told = if is_last {
            decoder.finish(&mut budget, &mut take)
        } else {
            decoder.decode(data, pace, &mut budget, &mut take)
        };
        if let Some(rest) = undecoded.as_mut().filter(|_| matches!(told, Decoded::Enough(_))) {
            budget = rest.spent(before, *len - begun);
            rest.stop(decoder);
        }
        sink.files.budget = budget;
        sink.found.decodable = turn.map(|_| budget.turn());
        match told {
            Decoded::TooMuch => self.cut(sink),
            told => {
                if let Some(name) = told.oddity() {
                    sink.found.weirds.add(name);
                }
            }
        }
    }

    /// Whether enough of it was decoded before these bytes, of which only their number counts then.
    fn passes_over(&mut self, data: &[u8], sink: &mut Sink<'_>) -> bool {
        if sink.files.bodies == Bodies::Whole || self.decoder.is_none() {
            return false;
        }
        let BodyContent::Whole(opening) = &mut self.content else { return false };
        let begun = || Box::new(Undecoded::new(&sink.files.budget));
        let rest = self.undecoded.get_or_insert_with(begun);
        rest.note(data);
        if !rest.is_cut() {
            return false;
        }
        sink.files.budget.set_carried(rest.carried());
        if let Some(file) = opening.file.as_mut().filter(|_| !data.is_empty()) {
            file.goes_on(sink.time);
        }
        true
    }

    /// Learns that the rest of it is not decoded.
    fn cut(&mut self, sink: &mut Sink<'_>) {
        self.is_exact = false;
        let (BodyContent::Whole(opening) | BodyContent::Parts(_, opening)) = &mut self.content;
        if let Some(file) = &mut opening.file {
            file.cut();
        }
        if !core::mem::replace(&mut sink.files.is_cut_told, true) {
            sink.found.weirds.add("HTTP_body_too_large_to_decode");
        }
    }

    /// Decodes what waited for bytes that will not come.
    pub(super) fn settle(&mut self, sink: &mut Sink<'_>) {
        self.decode(&[], true, sink);
    }

    /// Learns that so many bytes are missing.
    pub(super) fn gap(&mut self, len: u64, sink: &mut Sink<'_>) {
        if self.decoder.as_mut().is_none_or(|decoder| decoder.gap()) {
            self.len = self.len.saturating_add(len);
        } else {
            self.is_exact = false;
        }
        match &mut self.content {
            BodyContent::Whole(opening) => {
                let time = sink.time;
                if opening.at.is_some() {
                    opening.at = opening.at.map(|at| at.saturating_add(len));
                } else if let Some(file) = opening.file(sink) {
                    file.gap(time, len);
                }
            }
            BodyContent::Parts(parts, opening) => {
                parts.settle(&mut Taker { opening, sink });
                if let Some(file) = &mut opening.file {
                    file.gap(sink.time, len);
                }
            }
        }
    }

    /// Ends it, and its files; `is_whole` where its framing tells that all of it has come.
    pub(super) fn end(&mut self, is_whole: bool, sink: &mut Sink<'_>) {
        self.settle(sink);
        if let Some(rest) = self.undecoded.as_mut().filter(|rest| rest.is_cut()) {
            if is_whole && self.is_exact {
                rest.end();
            }
            if let BodyContent::Whole(Opening { file: Some(file), .. }) = &mut self.content {
                file.set_partly_decoded(rest.length());
            }
            if let Some(exchange) = sink.exchanges.current(sink.from) {
                exchange.body_is_partly_decoded(sink.from);
            }
        }
        match &mut self.content {
            BodyContent::Whole(opening) => opening.end(sink),
            BodyContent::Parts(parts, opening) => {
                parts.end(&mut Taker { opening, sink });
            }
        }
    }

    /// Bytes that it takes.
    pub(super) fn bytes_held(&self) -> usize {
        let (BodyContent::Whole(opening) | BodyContent::Parts(_, opening)) = &self.content;
        let parts = match &self.content {
            BodyContent::Parts(parts, _) => size_of::<Multipart>() + parts.heap_bytes(),
            BodyContent::Whole(_) => 0,
        };
        size_of::<Self>()
            + self.decoder.as_ref().map_or(0, |decoder| decoder.bytes())
            + self.undecoded.as_ref().map_or(0, |_| size_of::<Undecoded>())
            + parts
            + opening.filename.as_ref().map_or(0, Vec::capacity)
            + opening.file.as_ref().map_or(0, |file| size_of::<FileTransfer>() + file.heap_bytes())
    }
}

impl BodyContent {
    fn bytes(&mut self, data: &[u8], sink: &mut Sink<'_>) -> usize {
        match self {
            Self::Whole(opening) => {
                opening.bytes(data, sink);
                data.len()
            }
            Self::Parts(parts, opening) => parts.bytes(data, &mut Taker { opening, sink }),
        }
    }
}

/// Makes a file of each part.
struct Taker<'a, 'b, 'c> {
    opening: &'a mut Opening,
    sink: &'b mut Sink<'c>,
}

impl Visitor for Taker<'_, '_, '_> {
    fn begin(&mut self) {
        let is_partial = self.opening.is_partial;
        *self.opening = Opening { is_partial, ..Opening::default() };
    }

    fn header(&mut self, field: &Field<'_>) {
        if self.opening.is_partial && field.is("content-range") {
            let range = Range::parse(field, &mut self.sink.found.weirds);
            self.opening.at = range.map(|range| range.first);
            self.opening.total = range.and_then(|range| range.total);
        }
    }

    fn content(&mut self, part: &Part, data: &[u8]) {
        if !self.opening.has_begun {
            self.opening.filename = part.filename.as_deref().map(Vec::from);
        }
        self.opening.bytes(data, self.sink);
    }

    fn end(&mut self, _: &Part) {
        self.opening.end(self.sink);
    }

    fn weird(&mut self, name: &'static str) {
        self.sink.found.weirds.add(name);
    }
}

impl Opening {
    /// Takes bytes of the file, which begins with the first of them.
    fn bytes(&mut self, data: &[u8], sink: &mut Sink<'_>) {
        let time = sink.time;
        if data.is_empty() {
            return;
        }
        let at = self.at;
        let Some(file) = self.file(sink) else { return };
        match at {
            Some(at) => file.bytes_at(time, at, data, sink.found),
            None => file.bytes(time, data, sink.found),
        }
        self.at = at.map(|at| at.saturating_add(data.len() as u64));
    }

    /// The file, which begins now if it did not before.
    fn file(&mut self, sink: &mut Sink<'_>) -> Option<&mut FileTransfer> {
        if core::mem::replace(&mut self.has_begun, true) {
            return self.file.as_deref_mut();
        }
        let target = self.at.and_then(|_| sink.target());
        let before = sink.files.take_range(&target);
        if before.is_some() {
            self.file = before;
        } else if let Some(mut file) = sink.files.begin(sink.from) {
            if let Some(name) = self.filename.take() {
                file.set_filename(&name);
            }
            if let Some(total) = self.total {
                file.set_total(total);
            }
            if let Some(exchange) = sink.exchanges.current(sink.from) {
                exchange.file_begins(sink.from, &file);
            }
            self.file = Some(file);
        }
        self.file.as_deref_mut()
    }

    fn end(&mut self, sink: &mut Sink<'_>) {
        let Some(mut file) = self.file.take() else { return };
        if let Some(claimed) = self.claimed {
            file.confirm_total(claimed);
        }
        if self.at.is_none() || file.is_complete() {
            file.report();
        }
        if let (Some(kind), Some(exchange)) = (file.mime_type(), sink.exchanges.current(sink.from))
        {
            exchange.file_is(sink.from, kind);
        }
        if self.at.is_some() {
            let target = sink.target();
            return sink.files.keep_range(target, file, sink.found);
        }
        file.end(sink.found);
    }
}
