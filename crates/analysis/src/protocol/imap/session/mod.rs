//! One connection in IMAP: which reply belongs to which command, and where literals lie.

mod literals;
mod replies;

use std::collections::VecDeque;

use netsniff_packet::Timestamp;

use super::command::{ImapCommand, argument, literal};
use super::mailboxes::Mailboxes;
use crate::protocol::file_transfer::Carrier;
use crate::protocol::mime::mail::Numbers;
use crate::protocol::syntax::line::{self, Line, LineEnd, Pieces};
use crate::protocol::syntax::sasl::Sasl;
use crate::protocol::{
    Bytes, Findings, GapAction, MissingBytes, Progress, Role, Session, SessionContext, SideEnd,
};
use crate::weird::Once;
use literals::{Into, Literal};

/// Commands that may wait for replies. Clients send few ahead.
const MAX_PENDING: usize = 256;

/// The longest tag and the longest argument that is remembered.
const MAX_TEXT: usize = 512;

/// Lines that are no commands beyond which it is not believed to be IMAP.
const MAX_UNKNOWN: u32 = 10;

/// Both sides of an IMAP connection (RFC 9051).
#[derive(Debug)]
pub(super) struct ImapSession {
    carrier: Carrier,
    numbers: Numbers,
    /// The command that is being sent.
    current: Option<Asked>,
    /// Commands without a final reply.
    pending: VecDeque<Asked>,
    literals: [Option<Literal>; 2],
    /// What the server says goes on behind a literal.
    is_in_response: bool,
    /// What is being sent is an answer to FETCH.
    is_in_fetch: bool,
    /// Mails in the mailbox that is being selected.
    exists: Option<u64>,
    is_prompted: bool,
    awaits_tls: bool,
    has_greeted: bool,
    /// Something is missing, so that lines may belong to what nobody knows.
    is_lenient: bool,
    pieces: Pieces,
    unknown: u32,
    told: Once,
    mailboxes: Mailboxes,
    last: Timestamp,
    is_confirmed: bool,
    /// It was something else after all, of which nothing is told.
    is_contradicted: bool,
}

/// A command that was not answered yet.
#[derive(Debug)]
struct Asked {
    tag: Box<[u8]>,
    command: ImapCommand,
    /// The first argument: mailbox or user.
    first: Option<Box<[u8]>>,
}

impl ImapSession {
    /// Nothing was said yet.
    pub(super) fn new(context: &SessionContext<'_>) -> Self {
        Self {
            carrier: context.into(),
            numbers: Numbers::default(),
            current: None,
            pending: VecDeque::new(),
            literals: [None, None],
            is_in_response: false,
            is_in_fetch: false,
            exists: None,
            is_prompted: false,
            awaits_tls: false,
            has_greeted: false,
            is_lenient: false,
            pieces: Pieces::default(),
            unknown: 0,
            told: Once::default(),
            mailboxes: Mailboxes::new(),
            last: Timestamp::EPOCH,
            is_confirmed: false,
            is_contradicted: false,
        }
    }

    fn step(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        if input.from == Role::Originator && self.awaits_tls {
            return Progress::Wait;
        }
        if self.literals[input.from.index()].is_some() {
            return self.literal(input, found);
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
            Role::Originator => self.command(time, line, is_start, found),
            Role::Responder => self.reply(time, line, is_start, found),
        }
    }

    /// Takes a line of the client: a command, or the rest of one behind a literal.
    fn command(
        &mut self,
        time: Timestamp,
        line: &Line<'_>,
        is_start: bool,
        found: &mut Findings,
    ) -> Progress {
        let done = Progress::Consumed(line.len);
        if is_start && core::mem::take(&mut self.is_prompted) {
            self.mailboxes.account.log_in.answer(line.text);
            return done;
        }
        if is_start && self.current.is_none() {
            let Some(asked) = self.begin_command(line.text) else {
                return self.unknown_line(line, found);
            };
            self.current = Some(asked);
        }
        if line.end == LineEnd::None {
            return done;
        }
        let Some(asked) = self.current.take() else { return done };
        match literal(line.text) {
            Some(mark) => {
                let into = match (asked.command, &asked.first) {
                    (ImapCommand::Append, Some(_)) => self.begin_mail(Role::Originator),
                    (_, None) => Into::Argument(Vec::new()),
                    _ => Into::Nothing,
                };
                self.current = Some(asked);
                self.begin_literal(time, Role::Originator, mark.len, into, found);
            }
            None => self.end_command(asked, found),
        }
        done
    }

    /// Reads tag, command and first argument.
    fn begin_command(&mut self, text: &[u8]) -> Option<Asked> {
        let (tag, rest) = line::word(text);
        let (mut word, mut rest) = line::word(rest);
        if word.eq_ignore_ascii_case(b"UID") {
            (word, rest) = line::word(rest);
        }
        let command = ImapCommand::named(word).filter(|_| tag.len() <= MAX_TEXT)?;
        let first = argument(rest);
        if command == ImapCommand::Authenticate {
            let (mechanism, initial) = line::word(rest);
            self.mailboxes.account.log_in.begin(Sasl::begin(mechanism, initial));
        }
        let first = first.map(|mut first| {
            first.truncate(MAX_TEXT);
            first.into_boxed_slice()
        });
        Some(Asked { tag: tag.into(), command, first })
    }

    fn unknown_line(&mut self, line: &Line<'_>, found: &mut Findings) -> Progress {
        // IDLE ends so (RFC 2177), and an answer may come before it is asked for.
        let is_answer = !line.text.contains(&b' ');
        if line.text.is_empty() || is_answer || self.is_lenient {
            return Progress::Consumed(line.len);
        }
        found.weirds.add("imap_client_command_unknown");
        self.unknown += 1;
        if self.unknown > MAX_UNKNOWN {
            return Progress::Contradicts("imap_client_too_many_bad_commands");
        }
        Progress::Consumed(line.len)
    }

    fn end_command(&mut self, asked: Asked, found: &mut Findings) {
        match asked.command {
            ImapCommand::Login => {
                let user = asked.first.as_deref().unwrap_or_default();
                self.mailboxes.account.log_in.begin(Sasl::plain(b"LOGIN", user));
            }
            ImapCommand::StartTls => self.awaits_tls = true,
            _ => {}
        }
        if self.pending.len() >= MAX_PENDING {
            found.weirds.add("imap_client_too_many_pending_commands");
            self.pending.clear();
            self.is_lenient = true;
        }
        self.pending.push_back(asked);
    }
}

impl Session for ImapSession {
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
        if self.literals[from.index()].is_some()
            && self.gap_in_literal(time, from, (unread, len), found)
        {
            return GapAction::Continue;
        }
        self.pieces.lose(from);
        self.is_lenient = true;
        match from {
            Role::Originator => {
                self.current = None;
                self.is_prompted = false;
            }
            Role::Responder => {
                (self.is_in_response, self.is_in_fetch) = (false, false);
                self.awaits_tls = false;
            }
        }
        GapAction::Continue
    }

    fn side_end(&mut self, end: &SideEnd<'_>, found: &mut Findings) {
        let SideEnd { time, from, unread } = *end;
        self.last = time;
        let is_waiting = from == Role::Originator && self.awaits_tls;
        if self.literals[from.index()].is_some() {
            self.end_literal(time, from, unread, found);
        } else if !unread.is_empty() && !is_waiting {
            let text = unread.strip_suffix(b"\r").unwrap_or(unread);
            self.line(time, from, &Line { text, end: LineEnd::Crlf, len: unread.len() }, found);
        }
        self.told.filter(&mut found.weirds);
    }

    fn end(&mut self, found: &mut Findings) {
        for from in [Role::Originator, Role::Responder] {
            self.end_literal(self.last, from, &[], found);
        }
        if self.has_greeted && !self.is_contradicted {
            self.mailboxes.finish(found);
        }
    }

    fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    fn heap_bytes(&self) -> usize {
        let of = |asked: &Asked| asked.tag.len() + asked.first.as_ref().map_or(0, |it| it.len());
        size_of::<Self>()
            + self.pending.capacity() * size_of::<Asked>()
            + self.pending.iter().chain(&self.current).map(of).sum::<usize>()
            + self.literals.iter().flatten().map(Literal::heap_bytes).sum::<usize>()
            + self.told.heap_bytes()
            + self.mailboxes.heap_bytes()
    }
}
