//! One connection in SMTP: which reply belongs to which command, and where mails begin and end.
//!
//! It is guessed as Zeek does: commands are believed to succeed until a reply tells otherwise, since
//! some clients do not wait for replies.

mod gap;
mod replies;

pub(super) use replies::reply_code;

use std::collections::VecDeque;

use netsniff_packet::Timestamp;

use super::body::Body;
use super::command::{LastChunk, SmtpCommand, chunk};
use super::transactions::Transactions;
use crate::protocol::syntax::line::{self, Line, LineEnd, Pieces};
use crate::protocol::syntax::sasl::Sasl;
use crate::protocol::{
    Bytes, Findings, GapAction, MissingBytes, Progress, Role, Session, SessionContext, SideEnd,
};
use crate::weird::{Detail, Once};

/// Commands that may wait for replies, as in Zeek.
const MAX_PENDING: usize = 1_000;

/// Commands out of order beyond which it is not believed to be SMTP, Zeek's
/// `max_invalid_mail_transactions`.
const MAX_MISTAKES: u32 = 25;

/// Bytes of both sides up to which a line that is no reply contradicts, Zeek's
/// `DPD::ignore_violations_after`.
const CONTRADICTED_WITHIN: usize = 10 << 10;

/// The first byte of a record of TLS that is part of a handshake (RFC 8446, 5.1).
const TLS_HANDSHAKE: u8 = 22;

/// Both sides of an SMTP connection (RFC 5321).
#[derive(Debug)]
pub(super) struct SmtpSession {
    /// The side that sends mails.
    client: Role,
    /// Whether the port tells the protocol, too.
    is_hinted: bool,
    stage: LineKind,
    /// Commands without a reply.
    pending: VecDeque<SmtpCommand>,
    /// The command that the last reply belongs to.
    replied: SmtpCommand,
    /// The code of a reply of which more lines come.
    continued: Option<u16>,
    transactions: Transactions,
    body: Body,
    /// What follows from the client depends on the reply to STARTTLS.
    awaits_tls: bool,
    has_server_spoken: bool,
    /// The next line of the server may be the end of one that is missing.
    is_resuming: bool,
    /// The reply to DATA is missing, so that the client's next line tells whether a mail comes.
    is_unsure: bool,
    pieces: Pieces,
    told: Once,
    order: CommandOrder,
    seen: usize,
    last: Timestamp,
    is_confirmed: bool,
    is_over: bool,
}

/// What lines of the client are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineKind {
    /// Lines with commands.
    Commands,
    /// A mail, up to a dot.
    Data,
    /// Answers of the client within AUTH.
    Auth,
    /// Unknown, since something is missing. The next reply of the server tells.
    AfterGap,
    /// Commands, as it seems.
    Recovering,
}

/// Whether commands come in their order.
#[derive(Debug, Default)]
struct CommandOrder {
    has_sender: bool,
    has_recipient: bool,
    mistakes: u32,
}

impl SmtpSession {
    /// Nothing was said yet.
    pub(super) fn new(context: &SessionContext<'_>, is_hinted: bool) -> Self {
        Self {
            client: Role::Originator,
            is_hinted,
            stage: LineKind::Commands,
            pending: VecDeque::from([SmtpCommand::Connection]),
            replied: SmtpCommand::Unknown,
            continued: None,
            transactions: Transactions::default(),
            body: Body::new(context),
            awaits_tls: false,
            has_server_spoken: false,
            is_resuming: false,
            is_unsure: false,
            pieces: Pieces::default(),
            told: Once::default(),
            order: CommandOrder::default(),
            seen: 0,
            last: Timestamp::EPOCH,
            is_confirmed: false,
            is_over: false,
        }
    }

    /// Takes the first line of what one side says, or the first of a chunk.
    fn step(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        if input.from == self.client {
            if self.awaits_tls {
                return self.while_tls_awaits(input);
            }
            if self.body.is_in_chunk() {
                return self.chunk(input, found);
            }
        }
        match line::next(input.data) {
            Ok(line) => self.line(input.time, input.from, &line, found),
            Err(needed) => Progress::Need(needed),
        }
    }

    /// Where the server's side is missing altogether, what follows STARTTLS tells the reply.
    fn while_tls_awaits(&mut self, input: &Bytes<'_>) -> Progress {
        if self.has_server_spoken || input.data.first() != Some(&TLS_HANDSHAKE) {
            return Progress::Wait;
        }
        self.transactions.current(input.time).start_tls();
        Progress::Handover(0)
    }

    fn chunk(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        let progress = self.body.chunk(input.time, input.data, &mut self.transactions, found);
        if self.body.is_chunk_last_and_over() {
            self.end_mail(input.time, found);
            self.transactions.sent(input.time);
        }
        progress
    }

    fn line(
        &mut self,
        time: Timestamp,
        from: Role,
        line: &Line<'_>,
        found: &mut Findings,
    ) -> Progress {
        if line.text.contains(&0) {
            found.weirds.add("NUL_in_line");
        }
        let is_start = self.pieces.begins(from, line.end);
        if from != self.client {
            return if is_start {
                self.reply(time, line, found)
            } else {
                Progress::Consumed(line.len)
            };
        }
        if core::mem::take(&mut self.is_unsure) && gap::begins_anew(line.text) {
            self.end_mail(time, found);
            self.stage = LineKind::Commands;
        }
        match self.stage {
            LineKind::Data => self.data(time, line, is_start, found),
            LineKind::Auth if is_start => self.answer(time, line.text, found),
            LineKind::Commands | LineKind::Recovering if is_start => {
                self.command(time, line.text, found);
            }
            _ => {}
        }
        if self.is_over { Progress::Done } else { Progress::Consumed(line.len) }
    }

    /// Takes a line of a mail. A dot alone ends it, and one more at the begin of a line does not
    /// count (RFC 5321, 4.5.2).
    fn data(&mut self, time: Timestamp, line: &Line<'_>, is_start: bool, found: &mut Findings) {
        if is_start && line.text == b"." && line.end != LineEnd::None {
            self.ask(SmtpCommand::EndOfData, found);
            self.end_mail(time, found);
            self.transactions.sent(time);
            self.stage = LineKind::Commands;
            (self.order.has_sender, self.order.has_recipient) = (false, false);
            return;
        }
        let text =
            if is_start { line.text.strip_prefix(b".").unwrap_or(line.text) } else { line.text };
        self.body.line(time, (text, line.end), &mut self.transactions, found);
    }

    /// Takes an answer within AUTH.
    fn answer(&mut self, time: Timestamp, text: &[u8], found: &mut Findings) {
        self.ask(SmtpCommand::AuthAnswer, found);
        self.transactions.log_in(time, |log_in| log_in.answer(text));
    }

    fn command(&mut self, time: Timestamp, text: &[u8], found: &mut Findings) {
        let (word, argument) = line::word(text);
        let mut command = SmtpCommand::named(word);
        if command == SmtpCommand::Unknown {
            if !text.is_empty() {
                self.ask(command, found);
            }
            return;
        }
        let chunk = chunk(argument);
        if let (SmtpCommand::Chunk(_), Some((_, last))) = (command, chunk) {
            command = SmtpCommand::Chunk(last);
        }
        self.ask(command, found);
        self.is_confirmed = true;
        self.transactions.current(time);
        if !matches!(command, SmtpCommand::Chunk(_)) && self.body.is_chunked() {
            found.weirds.add("smtp_missing_bdat_last_chunk");
            self.end_mail(time, found);
        }
        match command {
            SmtpCommand::Hello => self.transactions.hello(time, argument),
            SmtpCommand::Mail => self.mail(time, argument, found),
            SmtpCommand::Recipient => self.recipient(time, argument, found),
            SmtpCommand::Data => self.begin_mail(time, found),
            SmtpCommand::Chunk(last) => return self.begin_chunk(time, chunk, last, found),
            SmtpCommand::Authenticate => {
                let (mechanism, initial) = line::word(argument);
                let exchange = Sasl::begin(mechanism, initial);
                self.transactions.log_in(time, |log_in| log_in.begin(exchange));
                return;
            }
            SmtpCommand::StartTls => {
                self.awaits_tls = true;
                return;
            }
            SmtpCommand::Reset | SmtpCommand::Quit => {}
            _ => return,
        }
        self.stage = if command == SmtpCommand::Data { LineKind::Data } else { LineKind::Commands };
    }

    /// Notes that a reply is to come.
    fn ask(&mut self, command: SmtpCommand, found: &mut Findings) {
        if self.pending.len() > MAX_PENDING {
            found.weirds.add("smtp_excessive_pending_cmds");
            self.pending.clear();
            self.transactions.give_up_waiting(found);
            self.awaits_tls = false;
        }
        self.pending.push_back(command);
    }

    fn mail(&mut self, time: Timestamp, argument: &[u8], found: &mut Findings) {
        if argument.get(..5).is_some_and(|from| from.eq_ignore_ascii_case(b"FROM:")) {
            self.transactions.mail(time, argument, found);
            (self.order.has_sender, self.order.has_recipient) = (true, false);
        }
    }

    fn recipient(&mut self, time: Timestamp, argument: &[u8], found: &mut Findings) {
        if argument.get(..3).is_some_and(|to| to.eq_ignore_ascii_case(b"TO:")) {
            self.transactions.current(time).recipient(argument, found);
            self.order.has_recipient = true;
            if !self.order.has_sender {
                self.mistake(found);
            }
        }
    }

    fn begin_mail(&mut self, time: Timestamp, found: &mut Findings) {
        if !self.order.has_recipient {
            self.mistake(found);
        }
        if self.body.is_begun() {
            found.weirds.add("smtp_nested_mail_transaction");
            self.end_mail(time, found);
        }
        self.body.begin(self.client);
    }

    fn begin_chunk(
        &mut self,
        time: Timestamp,
        chunk: Option<(u64, LastChunk)>,
        last: LastChunk,
        found: &mut Findings,
    ) {
        if !self.order.has_recipient {
            self.mistake(found);
        }
        let Some((len, _)) = chunk else {
            found.weirds.add("smtp_invalid_bdat_command");
            return;
        };
        self.body.begin_chunk(self.client, len, last);
        if last.0 {
            (self.order.has_sender, self.order.has_recipient) = (false, false);
            if len == 0 {
                self.end_mail(time, found);
                self.transactions.sent(time);
            }
        }
        self.stage = LineKind::Commands;
    }

    fn end_mail(&mut self, time: Timestamp, found: &mut Findings) {
        if !self.body.finish(time, &mut self.transactions, found) {
            found.weirds.add("smtp_unmatched_end_of_data");
        }
    }

    fn mistake(&mut self, found: &mut Findings) {
        found.weirds.add("smtp_mail_transaction_invalid");
        self.order.mistakes += 1;
        if self.order.mistakes > MAX_MISTAKES {
            let detail = Detail::Above(self.order.mistakes.into(), MAX_MISTAKES.into());
            found.exceed("smtp_excessive_invalid_mail_transactions", detail);
            self.is_over = true;
        }
    }
}

impl Session for SmtpSession {
    fn bytes(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        self.last = input.time;
        let progress = self.step(input, found);
        self.told.filter(&mut found.weirds);
        if let Progress::Consumed(len) = progress {
            self.seen = self.seen.saturating_add(len);
        }
        progress
    }

    fn gap(&mut self, gap: &MissingBytes<'_>, found: &mut Findings) -> GapAction {
        self.last = gap.time;
        self.pass_gap(gap, found);
        self.told.filter(&mut found.weirds);
        GapAction::Continue
    }

    /// What is left is a line all the same, as in Zeek.
    fn side_end(&mut self, end: &SideEnd<'_>, found: &mut Findings) {
        let SideEnd { time, from, unread } = *end;
        self.last = time;
        if unread.is_empty() || (from == self.client && self.awaits_tls) {
            return;
        }
        if from == self.client && self.body.is_in_chunk() {
            let rest = (unread, LineEnd::None);
            self.body.line(time, rest, &mut self.transactions, found);
            return;
        }
        let text = unread.strip_suffix(b"\r").unwrap_or(unread);
        let line = Line { text, end: LineEnd::Crlf, len: unread.len() };
        self.line(time, from, &line, found);
        self.told.filter(&mut found.weirds);
    }

    fn end(&mut self, found: &mut Findings) {
        self.body.finish(self.last, &mut self.transactions, found);
        self.transactions.finish(found);
    }

    fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + self.pending.capacity() * size_of::<SmtpCommand>()
            + self.transactions.heap_bytes()
            + self.told.heap_bytes()
            + self.body.heap_bytes()
    }
}
