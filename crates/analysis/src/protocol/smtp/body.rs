//! The content of mails, behind DATA or in chunks.

use memchr::memchr;
use netsniff_packet::Timestamp;

use super::command::LastChunk;
use super::transactions::Transactions;
use crate::protocol::file_transfer::Carrier;
use crate::protocol::mime::mail::{Numbers, Origin};
use crate::protocol::mime::{Field, Mail};
use crate::protocol::syntax::line::{self, LONGEST, LineEnd};
use crate::protocol::{Findings, Progress, Role, SessionContext};

/// The mail that is being sent, if any.
#[derive(Debug)]
pub(super) struct Body {
    carrier: Carrier,
    numbers: Numbers,
    mail: Option<Box<Mail>>,
    is_chunked: bool,
    chunk: Option<Chunk>,
    is_last_over: bool,
    /// The begin of a line that goes on in the next chunk.
    line_begin: Vec<u8>,
}

/// A chunk that is being sent.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    /// Bytes that are still to come.
    left: u64,
    last: LastChunk,
}

impl Body {
    pub(super) fn new(context: &SessionContext<'_>) -> Self {
        Self {
            carrier: context.into(),
            numbers: Numbers::default(),
            mail: None,
            is_chunked: false,
            chunk: None,
            is_last_over: false,
            line_begin: Vec::new(),
        }
    }

    /// Whether a mail is being sent.
    pub(super) const fn is_begun(&self) -> bool {
        self.mail.is_some()
    }

    /// Whether a mail is being sent in chunks.
    pub(super) const fn is_chunked(&self) -> bool {
        self.mail.is_some() && self.is_chunked
    }

    /// Whether bytes of a chunk are to come.
    pub(super) const fn is_in_chunk(&self) -> bool {
        self.chunk.is_some()
    }

    /// Whether the last chunk of a mail ended just now.
    pub(super) const fn is_chunk_last_and_over(&mut self) -> bool {
        core::mem::replace(&mut self.is_last_over, false)
    }

    /// Begins a mail that one side sends.
    pub(super) fn begin(&mut self, from: Role) {
        let Self { carrier, numbers, .. } = *self;
        let origin = Origin { carrier, source: "SMTP", from, tells_depth: true };
        self.mail = Some(Box::new(Mail::new(origin, numbers)));
        self.is_chunked = false;
    }

    /// Begins a chunk, with the mail unless it has begun.
    pub(super) fn begin_chunk(&mut self, from: Role, len: u64, last: LastChunk) {
        if self.mail.is_none() {
            self.begin(from);
            self.is_chunked = true;
        }
        self.chunk = (len > 0).then_some(Chunk { left: len, last });
    }

    pub(super) fn line(
        &mut self,
        time: Timestamp,
        line: (&[u8], LineEnd),
        transactions: &mut Transactions,
        found: &mut Findings,
    ) {
        if let Some(mail) = &mut self.mail {
            let transaction = transactions.current(time);
            let mut take = |header: &Field<'_>, found: &mut Findings| {
                transaction.header(header, found);
            };
            mail.line(time, line, &mut take, found);
        }
    }

    /// Learns that bytes are missing.
    pub(super) fn gap(&mut self, time: Timestamp, len: u64) {
        if let Some(mail) = &mut self.mail {
            mail.gap(time, len);
        }
    }

    /// Takes the next line of a chunk.
    pub(super) fn chunk(
        &mut self,
        time: Timestamp,
        data: &[u8],
        transactions: &mut Transactions,
        found: &mut Findings,
    ) -> Progress {
        let Some(Chunk { left, .. }) = self.chunk else { return Progress::Need(1) };
        let all = usize::try_from(left).unwrap_or(usize::MAX);
        let part = data.get(..all).unwrap_or(data);
        let len = if self.line_begin.is_empty() {
            match line::next_by_lf(part) {
                Ok(line) => {
                    self.line(time, (line.text, line.end), transactions, found);
                    line.len
                }
                Err(_) if part.len() == all => {
                    self.line_begin = part.to_vec();
                    part.len()
                }
                Err(needed) => return Progress::Need(needed),
            }
        } else {
            self.rest_of_line(time, part, transactions, found)
        };
        self.pass(time, len as u64, transactions, found);
        Progress::Consumed(len)
    }

    /// Takes the rest of a line that began in another chunk, as far as it is there.
    fn rest_of_line(
        &mut self,
        time: Timestamp,
        part: &[u8],
        transactions: &mut Transactions,
        found: &mut Findings,
    ) -> usize {
        let room = LONGEST.saturating_sub(self.line_begin.len()).max(1);
        let part = part.get(..room).unwrap_or(part);
        let end = memchr(b'\n', part);
        let len = end.map_or(part.len(), |at| at + 1);
        let mut all = core::mem::take(&mut self.line_begin);
        all.extend_from_slice(&part[..len]);
        match line::next_by_lf(&all) {
            Ok(line) => self.line(time, (line.text, line.end), transactions, found),
            Err(_) => self.line_begin = all,
        }
        len
    }

    /// Notes that so many bytes of the chunk are over.
    fn pass(
        &mut self,
        time: Timestamp,
        len: u64,
        transactions: &mut Transactions,
        found: &mut Findings,
    ) {
        let Some(chunk) = &mut self.chunk else { return };
        chunk.left = chunk.left.saturating_sub(len);
        if chunk.left > 0 {
            return;
        }
        let is_last = chunk.last.0;
        self.chunk = None;
        if is_last {
            let rest = core::mem::take(&mut self.line_begin);
            if !rest.is_empty() {
                self.line(time, (&rest, LineEnd::None), transactions, found);
            }
            self.is_last_over = true;
        }
    }

    /// Learns that bytes are missing behind some of a chunk. Returns whether the chunk goes on
    /// behind them, or ends just there.
    pub(super) fn gap_in_chunk(
        &mut self,
        time: Timestamp,
        (unread, missing): (&[u8], u64),
        transactions: &mut Transactions,
        found: &mut Findings,
    ) -> bool {
        let mut rest = core::mem::take(&mut self.line_begin);
        rest.extend_from_slice(unread);
        if !rest.is_empty() {
            self.line(time, (&rest, LineEnd::None), transactions, found);
        }
        let left = self.chunk.map_or(0, |chunk| chunk.left).saturating_sub(unread.len() as u64);
        self.gap(time, missing.min(left));
        self.pass(time, (unread.len() as u64).saturating_add(missing), transactions, found);
        missing <= left
    }

    /// Ends the mail. Returns whether there was one.
    pub(super) fn finish(
        &mut self,
        time: Timestamp,
        transactions: &mut Transactions,
        found: &mut Findings,
    ) -> bool {
        self.chunk = None;
        self.line_begin = Vec::new();
        let Some(mail) = self.mail.take() else { return false };
        let transaction = transactions.current(time);
        let mut take = |header: &Field<'_>, found: &mut Findings| transaction.header(header, found);
        let (parts, numbers) = mail.finish(time, &mut take, found);
        transaction.content(parts);
        self.numbers = numbers;
        true
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let mail = self.mail.as_ref().map_or(0, |mail| size_of::<Mail>() + mail.heap_bytes());
        mail + self.line_begin.capacity()
    }
}
