//! One connection in POP3: which reply belongs to which command.

use std::collections::VecDeque;

use netsniff_packet::Timestamp;

use super::command::Pop3Command;
use super::summary::Summary;
use crate::protocol::file_transfer::Carrier;
use crate::protocol::mime::Mail;
use crate::protocol::mime::mail::{Numbers, Origin};
use crate::protocol::syntax::line::{self, Line, LineEnd, Pieces};
use crate::protocol::syntax::sasl::Sasl;
use crate::protocol::{
    Bytes, Findings, GapAction, MissingBytes, Progress, Role, Session, SessionContext, SideEnd,
};
use crate::weird::Once;

/// Commands that may wait for replies.
const MAX_PENDING: usize = 1_000;

/// Unknown commands beyond which it is not believed to be POP3.
const MAX_UNKNOWN: u32 = 10;

/// Both sides of a POP3 connection (RFC 1939).
#[derive(Debug)]
pub(super) struct Pop3Session {
    carrier: Carrier,
    numbers: Numbers,
    /// Commands without a complete reply.
    pending: VecDeque<Asked>,
    /// What follows are lines of a reply, up to a dot.
    is_in_lines: bool,
    mail: Option<Box<Mail>>,
    /// The server asked for an answer within AUTH.
    is_prompted: bool,
    awaits_tls: bool,
    /// Something is missing, so that lines may belong to what nobody knows.
    is_lenient: bool,
    pieces: Pieces,
    unknown: u32,
    told: Once,
    summary: Box<Summary>,
    last: Timestamp,
    is_confirmed: bool,
    /// It was something else after all, of which nothing is told.
    is_contradicted: bool,
}

/// A command, and whether a positive reply to it has lines.
#[derive(Clone, Copy, Debug)]
struct Asked {
    command: Pop3Command,
    has_lines: bool,
}

impl Pop3Session {
    /// Nothing was said yet.
    pub(super) fn new(context: &SessionContext<'_>) -> Self {
        Self {
            carrier: context.into(),
            numbers: Numbers::default(),
            pending: VecDeque::from([Asked { command: Pop3Command::Greeting, has_lines: false }]),
            is_in_lines: false,
            mail: None,
            is_prompted: false,
            awaits_tls: false,
            is_lenient: false,
            pieces: Pieces::default(),
            unknown: 0,
            told: Once::default(),
            summary: Box::default(),
            last: Timestamp::EPOCH,
            is_confirmed: false,
            is_contradicted: false,
        }
    }

    fn step(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        if input.from == Role::Originator && self.awaits_tls {
            return Progress::Wait;
        }
        match line::next(input.data) {
            Ok(line) => self.line(input.time, input.from, &line, found),
            Err(needed) => Progress::Need(needed),
        }
    }

    fn line(
        &mut self,
        time: Timestamp,
        from: Role,
        line: &Line<'_>,
        found: &mut Findings,
    ) -> Progress {
        let is_start = self.pieces.begins(from, line.end);
        match from {
            Role::Originator if is_start => self.command(line, found),
            Role::Responder if self.is_in_lines => self.line_of_reply(time, line, is_start, found),
            Role::Responder if is_start => self.status(time, line),
            _ => Progress::Consumed(line.len),
        }
    }

    fn command(&mut self, line: &Line<'_>, found: &mut Findings) -> Progress {
        let (word, argument) = line::word(line.text);
        if core::mem::take(&mut self.is_prompted) {
            self.summary.log_in.answer(line.text);
            return Progress::Consumed(line.len);
        }
        if !self.summary.is_greeted && !self.is_lenient {
            // The server greets before anything else.
            return Progress::Contradicts("pop3_client_speaks_first");
        }
        if line.text.is_empty() {
            return Progress::Consumed(line.len);
        }
        let command = Pop3Command::named(word);
        match command {
            Pop3Command::Unknown => {
                let is_reply = [b"+OK".as_slice(), b"-ERR"].contains(&word);
                found.weirds.add(if is_reply {
                    "pop3_client_sending_server_commands"
                } else {
                    "pop3_client_command_unknown"
                });
                self.unknown += 1;
                if self.unknown > MAX_UNKNOWN {
                    return Progress::Contradicts("pop3_client_too_many_bad_commands");
                }
            }
            Pop3Command::User => self.summary.log_in.begin(Sasl::plain(b"USER", argument)),
            Pop3Command::Apop => {
                self.summary.log_in.begin(Sasl::plain(b"APOP", line::word(argument).0));
            }
            Pop3Command::Auth if !argument.is_empty() => {
                let (mechanism, initial) = line::word(argument);
                self.summary.log_in.begin(Sasl::begin(mechanism, initial));
            }
            Pop3Command::StartTls => self.awaits_tls = true,
            _ => {}
        }
        if self.pending.len() > MAX_PENDING {
            found.weirds.add("pop3_client_too_many_pending_commands");
            self.pending.clear();
            (self.is_lenient, self.awaits_tls) = (true, false);
        }
        self.pending.push_back(Asked { command, has_lines: command.has_lines(argument) });
        Progress::Consumed(line.len)
    }

    /// Takes the first line of a reply.
    fn status(&mut self, time: Timestamp, line: &Line<'_>) -> Progress {
        let (word, text) = line::word(line.text);
        let is_positive = word.eq_ignore_ascii_case(b"+OK");
        if word == b"+" && self.pending.front().is_some_and(|it| it.command == Pop3Command::Auth) {
            self.is_prompted = true;
            return Progress::Consumed(line.len);
        }
        if !is_positive && !word.eq_ignore_ascii_case(b"-ERR") {
            if self.is_lenient || line.text.is_empty() {
                return Progress::Consumed(line.len);
            }
            return Progress::Contradicts(if Pop3Command::named(word) == Pop3Command::Unknown {
                "pop3_server_command_unknown"
            } else {
                "pop3_server_sending_client_commands"
            });
        }
        self.is_prompted = false;
        let Some(asked) = self.pending.pop_front() else { return Progress::Consumed(line.len) };
        // A few commands are those of other protocols, too, and prove nothing.
        let is_telling = !matches!(
            asked.command,
            Pop3Command::Greeting | Pop3Command::Quit | Pop3Command::Other | Pop3Command::Unknown
        );
        self.is_confirmed |= is_positive && is_telling;
        if is_positive {
            self.accept(time, asked, text);
        } else {
            self.refuse(time, asked, text);
        }
        if asked.command == Pop3Command::StartTls && is_positive {
            return Progress::Handover(line.len);
        }
        Progress::Consumed(line.len)
    }

    fn accept(&mut self, time: Timestamp, asked: Asked, text: &[u8]) {
        let summary = &mut *self.summary;
        match asked.command {
            Pop3Command::Greeting => summary.greet(time, text),
            Pop3Command::Password | Pop3Command::Apop => summary.log_in.judge(true),
            Pop3Command::Auth if !asked.has_lines => summary.log_in.judge(true),
            Pop3Command::Stat => summary.stat(text),
            Pop3Command::Delete => summary.row.deleted = summary.row.deleted.saturating_add(1),
            Pop3Command::StartTls => summary.row.tls = true,
            Pop3Command::Quit => summary.row.quit = true,
            Pop3Command::Retrieve | Pop3Command::Top => {
                let carrier = self.carrier;
                let origin =
                    Origin { carrier, source: "POP3", from: Role::Responder, tells_depth: false };
                self.mail = Some(Box::new(Mail::new(origin, self.numbers)));
                summary.row.retrieved += u32::from(asked.command == Pop3Command::Retrieve);
            }
            _ => {}
        }
        self.is_in_lines = asked.has_lines;
    }

    fn refuse(&mut self, time: Timestamp, asked: Asked, text: &[u8]) {
        let summary = &mut *self.summary;
        match asked.command {
            Pop3Command::Greeting => summary.greet(time, text),
            Pop3Command::User | Pop3Command::Password | Pop3Command::Apop => {
                summary.log_in.judge(false);
            }
            // Without an argument it only asks for the mechanisms.
            Pop3Command::Auth if !asked.has_lines => summary.log_in.judge(false),
            Pop3Command::StartTls => self.awaits_tls = false,
            _ => {}
        }
        summary.row.errors = summary.row.errors.saturating_add(1);
    }

    /// Takes a line of a reply of several. A dot alone ends it, and one more at the begin of a line
    /// does not count (RFC 1939, section 3).
    fn line_of_reply(
        &mut self,
        time: Timestamp,
        line: &Line<'_>,
        is_start: bool,
        found: &mut Findings,
    ) -> Progress {
        if is_start && line.text == b"." && line.end != LineEnd::None {
            self.is_in_lines = false;
            self.end_mail(time, found);
            return Progress::Consumed(line.len);
        }
        if let Some(mail) = &mut self.mail {
            let text = line.text;
            let text = if is_start { text.strip_prefix(b".").unwrap_or(text) } else { text };
            let end = if line.end == LineEnd::None { 0 } else { 2 };
            let bytes = &mut self.summary.row.retrieved_bytes;
            *bytes = bytes.saturating_add(text.len() as u64 + end);
            mail.line(time, (text, line.end), &mut |_, _| {}, found);
        }
        Progress::Consumed(line.len)
    }

    fn end_mail(&mut self, time: Timestamp, found: &mut Findings) {
        if let Some(mail) = self.mail.take() {
            let (parts, numbers) = mail.finish(time, &mut |_, _| {}, found);
            self.numbers = numbers;
            self.summary.mail(parts);
        }
    }
}

impl Session for Pop3Session {
    fn bytes(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        self.last = input.time;
        let progress = self.step(input, found);
        self.told.filter(&mut found.weirds);
        self.is_contradicted |= matches!(progress, Progress::Contradicts(_));
        progress
    }

    fn gap(&mut self, gap: &MissingBytes<'_>, found: &mut Findings) -> GapAction {
        let MissingBytes { time, from, unread, len, .. } = *gap;
        self.last = time;
        self.pieces.lose(from);
        self.is_lenient = true;
        self.awaits_tls = false;
        if self.is_in_lines && from == Role::Responder {
            // Where the lines end can be seen behind the gap, too.
            if let Some(mail) = &mut self.mail {
                mail.line(time, (unread, LineEnd::None), &mut |_, _| {}, found);
                mail.gap(time, len);
            }
            return GapAction::Continue;
        }
        self.pending.clear();
        self.is_prompted = false;
        GapAction::Continue
    }

    fn side_end(&mut self, end: &SideEnd<'_>, found: &mut Findings) {
        let SideEnd { time, from, unread } = *end;
        self.last = time;
        let is_waiting = from == Role::Originator && self.awaits_tls;
        if !unread.is_empty() && !is_waiting {
            let text = unread.strip_suffix(b"\r").unwrap_or(unread);
            self.line(time, from, &Line { text, end: LineEnd::Crlf, len: unread.len() }, found);
            self.told.filter(&mut found.weirds);
        }
    }

    fn end(&mut self, found: &mut Findings) {
        self.end_mail(self.last, found);
        let is_told = self.is_confirmed || self.summary.log_in.failures() > 0;
        if is_told && !self.is_contradicted {
            found.row(core::mem::take(&mut *self.summary).into_row());
        }
    }

    fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    fn heap_bytes(&self) -> usize {
        let mail = self.mail.as_ref().map_or(0, |mail| size_of::<Mail>() + mail.heap_bytes());
        size_of::<Self>()
            + size_of::<Summary>()
            + self.pending.capacity() * size_of::<Asked>()
            + self.told.heap_bytes()
            + self.summary.heap_bytes()
            + mail
    }
}
