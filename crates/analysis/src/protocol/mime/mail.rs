//! A mail on its way: its header fields for whoever wants them, its parts as files.

use netsniff_packet::Timestamp;

use super::{Field, LineEnd, MimeMessage, Part, Visitor};
use crate::key::uid::Uid;
use crate::protocol::file_transfer::{Carrier, FileTransfer};
use crate::protocol::{Findings, Role};
use crate::weird::Detail;

/// Parts whose types, names and files are told of one mail. More are counted only.
const MAX_LISTED: usize = 1_000;

/// The protocol that carries a mail, and in which flow.
#[derive(Clone, Copy, Debug)]
pub(in crate::protocol) struct Origin {
    /// The flow that carries the mail.
    pub(in crate::protocol) carrier: Carrier,
    /// The protocol, as the log `files` has it.
    pub(in crate::protocol) source: &'static str,
    /// Who sends the mail.
    pub(in crate::protocol) from: Role,
    /// Whether the column `depth` of `files` counts the entities of the session, as Zeek has it for
    /// some protocols.
    pub(in crate::protocol) tells_depth: bool,
}

/// A mail (RFC 5322), as its lines come.
#[derive(Debug)]
pub(in crate::protocol) struct Mail {
    message: MimeMessage,
    content: MailContent,
}

/// What was found in a mail so far.
#[derive(Debug)]
struct MailContent {
    origin: Origin,
    numbers: Numbers,
    /// Entities of the session before this mail.
    entities_before: u32,
    /// Files without a row before it.
    left_out_before: u64,
    /// Whether something of the part in progress came.
    has_begun: bool,
    /// The file that it is; `None` also where there are too many.
    file: Option<FileTransfer>,
    parts: Parts,
}

/// What a mail consists of.
#[derive(Debug, Default)]
pub(in crate::protocol) struct Parts {
    /// Parts that have no parts themselves.
    pub(in crate::protocol) count: u64,
    pub(in crate::protocol) types: Vec<Box<[u8]>>,
    /// Their names, of those that have one.
    pub(in crate::protocol) names: Vec<Box<[u8]>>,
    /// The files that they are, of those that are not empty.
    pub(in crate::protocol) fuids: Vec<Uid>,
}

/// What is numbered throughout a session.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::protocol) struct Numbers {
    files: u64,
    /// How many more there were, which have no row.
    left_out: u64,
    /// Entities so far: mails, parts, enclosed mails.
    entities: u32,
}

/// What takes a mail's header fields: those of the mail itself, none of its parts.
pub(in crate::protocol) type TakeHeader<'a> = &'a mut dyn FnMut(&Field<'_>, &mut Findings);

/// Where what is found in a mail goes.
struct MailSink<'a, 'b> {
    time: Timestamp,
    content: &'a mut MailContent,
    take: TakeHeader<'b>,
    found: &'a mut Findings,
}

impl Mail {
    /// A mail of which nothing came yet.
    pub(in crate::protocol) fn new(origin: Origin, numbers: Numbers) -> Self {
        let content = MailContent {
            origin,
            numbers,
            entities_before: numbers.entities,
            left_out_before: numbers.left_out,
            has_begun: false,
            file: None,
            parts: Parts::default(),
        };
        Self { message: MimeMessage::new(), content }
    }

    /// Takes the next line, or a piece of it.
    pub(in crate::protocol) fn line(
        &mut self,
        time: Timestamp,
        (text, end): (&[u8], LineEnd),
        take: TakeHeader<'_>,
        found: &mut Findings,
    ) {
        let mut delivery = MailSink { time, content: &mut self.content, take, found };
        self.message.line(text, end, &mut delivery);
    }

    /// Learns that bytes are missing.
    pub(in crate::protocol) fn gap(&mut self, time: Timestamp, len: u64) {
        if let Some(file) = &mut self.content.file {
            file.gap(time, len);
        }
    }

    /// Ends it, and tells what it consisted of and how far the numbers are.
    pub(in crate::protocol) fn finish(
        mut self,
        time: Timestamp,
        take: TakeHeader<'_>,
        found: &mut Findings,
    ) -> (Parts, Numbers) {
        let mut delivery = MailSink { time, content: &mut self.content, take, found };
        self.message.finish(&mut delivery);
        let (before, left_out) = (self.content.left_out_before, self.content.numbers.left_out);
        if before == 0 && left_out > 0 {
            found.weirds.add_with("MIME_too_many_parts", Detail::Number(left_out));
        }
        (self.content.parts, self.content.numbers)
    }

    /// Bytes that it holds outside itself.
    pub(in crate::protocol) fn heap_bytes(&self) -> usize {
        self.message.heap_bytes()
            + self.content.parts.heap_bytes()
            + self.content.file.as_ref().map_or(0, FileTransfer::heap_bytes)
    }
}

impl MailContent {
    fn begin_file(&mut self, part: &Part) {
        let Origin { carrier, source, from, tells_depth } = self.origin;
        if self.numbers.files >= carrier.rows(u64::MAX) {
            self.numbers.left_out += 1;
            return;
        }
        let mut file = FileTransfer::begin(carrier, self.numbers.files, from, source);
        self.numbers.files += 1;
        if tells_depth {
            file.set_depth(self.numbers.entities);
        }
        if let Some(name) = &part.filename {
            file.set_filename(name);
        }
        if self.parts.fuids.len() < MAX_LISTED {
            self.parts.fuids.push(file.fuid());
        }
        self.file = Some(file);
    }
}

impl Visitor for MailSink<'_, '_> {
    fn begin(&mut self) {
        let numbers = &mut self.content.numbers;
        numbers.entities = numbers.entities.saturating_add(1);
    }

    fn header(&mut self, header: &Field<'_>) {
        let MailContent { numbers, entities_before, .. } = self.content;
        if numbers.entities.saturating_sub(*entities_before) <= 1 {
            (self.take)(header, self.found);
        }
    }

    fn content(&mut self, part: &Part, data: &[u8]) {
        let time = self.time;
        let content = &mut *self.content;
        if !core::mem::replace(&mut content.has_begun, true) {
            content.begin_file(part);
        }
        if let Some(file) = &mut content.file {
            file.bytes(time, data, self.found);
        }
    }

    fn end(&mut self, part: &Part) {
        self.content.has_begun = false;
        if let Some(file) = self.content.file.take() {
            file.end(self.found);
        }
        self.content.parts.add(part);
    }

    fn weird(&mut self, name: &'static str) {
        self.found.weirds.add(name);
    }
}

impl Parts {
    fn add(&mut self, part: &Part) {
        self.count += 1;
        if self.types.len() < MAX_LISTED {
            // RFC 2045, 5.2: so it is where nothing is told.
            let default = || b"text/plain".as_slice().into();
            self.types.push(part.content_type.clone().unwrap_or_else(default));
            self.names.extend(part.filename.clone());
        }
    }

    /// Adds those of another mail, which belong to it.
    pub(in crate::protocol) fn append(&mut self, other: Self) {
        self.count += other.count;
        let room = MAX_LISTED.saturating_sub(self.types.len());
        self.types.extend(other.types.into_iter().take(room));
        let room = MAX_LISTED.saturating_sub(self.names.len());
        self.names.extend(other.names.into_iter().take(room));
        let room = MAX_LISTED.saturating_sub(self.fuids.len());
        self.fuids.extend(other.fuids.into_iter().take(room));
    }

    /// Bytes that it holds outside itself.
    pub(in crate::protocol) fn heap_bytes(&self) -> usize {
        let texts = self.types.iter().chain(&self.names).map(|text| text.len()).sum::<usize>();
        let boxes = self.types.capacity() + self.names.capacity();
        texts + boxes * size_of::<Box<[u8]>>() + self.fuids.capacity() * size_of::<Uid>()
    }
}
