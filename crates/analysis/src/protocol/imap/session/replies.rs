//! What a server says: greetings, data that nobody asked for, and final replies.

use netsniff_packet::Timestamp;

use super::super::command::{ImapCommand, literal};
use super::literals::Into;
use super::{Asked, ImapSession};
use crate::protocol::syntax::line::{self, Line, LineEnd};
use crate::protocol::{Findings, Progress, Role};

/// Names of FETCH items whose literal is a whole mail.
const WHOLE_MAILS: [&[u8]; 3] = [b"BODY[]", b"RFC822", b"BINARY[]"];

/// How a final reply decides.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FinalReply {
    Ok,
    /// NO and BAD.
    Refused,
}

impl ImapSession {
    /// Takes a line of the server: a response, or the rest of one behind a literal.
    pub(super) fn reply(
        &mut self,
        time: Timestamp,
        line: &Line<'_>,
        is_start: bool,
        found: &mut Findings,
    ) -> Progress {
        let mut progress = Progress::Consumed(line.len);
        if is_start && !core::mem::take(&mut self.is_in_response) {
            self.is_in_fetch = false;
            progress = self.response(time, line);
        }
        if line.end != LineEnd::None
            && let Some(mark) = literal(line.text).filter(|_| self.may_have_literal(line.text))
        {
            self.is_in_response = true;
            self.begin_literal_of_server(time, mark.before, mark.len, found);
        }
        progress
    }

    /// Whether a line may announce a literal: texts for people do not.
    fn may_have_literal(&self, text: &[u8]) -> bool {
        let (_, rest) = line::word(text);
        self.is_in_fetch || verdict(line::word(rest).0).is_none()
    }

    fn begin_literal_of_server(
        &mut self,
        time: Timestamp,
        before: &[u8],
        len: u64,
        found: &mut Findings,
    ) {
        let mut into = Into::Nothing;
        if self.is_in_fetch {
            let selected = self.mailboxes.selected();
            selected.fetched_bytes = selected.fetched_bytes.saturating_add(len);
            let item = before.rsplit(|byte| matches!(byte, b' ' | b'(')).next().unwrap_or_default();
            if WHOLE_MAILS.iter().any(|name| name.eq_ignore_ascii_case(item)) {
                into = self.begin_mail(Role::Responder);
            }
        }
        self.begin_literal(time, Role::Responder, len, into, found);
    }

    /// Takes the begin of a response.
    fn response(&mut self, time: Timestamp, line: &Line<'_>) -> Progress {
        let (tag, rest) = line::word(line.text);
        match tag {
            b"*" => self.untagged(time, rest),
            b"+" => {
                let command = self.current.iter().chain(&self.pending).next().map(|it| it.command);
                self.is_prompted = command == Some(ImapCommand::Authenticate);
            }
            _ => {
                let (word, _) = line::word(rest);
                let Some(verdict) = verdict(word) else {
                    let is_unknown = !self.is_lenient && !line.text.is_empty();
                    return if is_unknown {
                        Progress::Contradicts("imap_server_response_unknown")
                    } else {
                        Progress::Consumed(line.len)
                    };
                };
                self.is_prompted = false;
                return self.tagged(time, tag, verdict, line.len);
            }
        }
        Progress::Consumed(line.len)
    }

    /// Takes data, with or without anybody having asked.
    fn untagged(&mut self, time: Timestamp, text: &[u8]) {
        let (first, rest) = line::word(text);
        if !core::mem::replace(&mut self.has_greeted, true) {
            self.is_confirmed = verdict(first) == Some(FinalReply::Ok);
            self.mailboxes.greet(time, rest);
            return;
        }
        let Some(number) = core::str::from_utf8(first).ok().and_then(|it| it.parse().ok()) else {
            return;
        };
        let (word, _) = line::word(rest);
        if word.eq_ignore_ascii_case(b"EXISTS") {
            let is_selecting = self
                .pending
                .iter()
                .any(|it| matches!(it.command, ImapCommand::Select | ImapCommand::Examine));
            if is_selecting {
                self.exists = Some(number);
            } else {
                self.mailboxes.selected().exists = Some(number);
            }
        } else if word.eq_ignore_ascii_case(b"EXPUNGE") {
            let selected = self.mailboxes.selected();
            selected.expunged = selected.expunged.saturating_add(1);
            selected.exists = selected.exists.map(|exists| exists.saturating_sub(1));
        } else if word.eq_ignore_ascii_case(b"FETCH") {
            self.is_in_fetch = true;
        }
    }

    /// Takes the final reply to a command.
    fn tagged(&mut self, time: Timestamp, tag: &[u8], verdict: FinalReply, len: usize) -> Progress {
        if self.current.as_ref().is_some_and(|it| *it.tag == *tag) {
            // The server does not want the literal, so that the client will not send it.
            self.literals[Role::Originator.index()] = None;
            let asked = self.current.take();
            self.pending.extend(asked);
        }
        let Some(at) = self.pending.iter().position(|it| *it.tag == *tag) else {
            return Progress::Consumed(len);
        };
        let Some(asked) = self.pending.remove(at) else { return Progress::Consumed(len) };
        if verdict == FinalReply::Refused {
            self.refuse(&asked);
            return Progress::Consumed(len);
        }
        self.accept(time, &asked);
        match asked.command {
            ImapCommand::StartTls => Progress::Handover(len),
            ImapCommand::Compress => Progress::Done,
            _ => Progress::Consumed(len),
        }
    }

    fn accept(&mut self, time: Timestamp, asked: &Asked) {
        let name = asked.first.as_deref().unwrap_or_default();
        match asked.command {
            ImapCommand::Login | ImapCommand::Authenticate => {
                self.mailboxes.account.log_in.judge(true);
            }
            ImapCommand::StartTls => self.mailboxes.account.tls = true,
            ImapCommand::Select | ImapCommand::Examine => {
                let exists = self.exists.take();
                let mailbox = self.mailboxes.select(time, name);
                mailbox.read_only = Some(asked.command == ImapCommand::Examine);
                mailbox.exists = exists.or(mailbox.exists);
            }
            ImapCommand::Append => {
                let mailbox = self.mailboxes.named(time, name);
                mailbox.appends = mailbox.appends.saturating_add(1);
            }
            _ => {}
        }
        let mailbox = self.mailboxes.selected();
        mailbox.commands = mailbox.commands.saturating_add(1);
        let counter = match asked.command {
            ImapCommand::Fetch => &mut mailbox.fetches,
            ImapCommand::Store => &mut mailbox.stores,
            ImapCommand::Search => &mut mailbox.searches,
            ImapCommand::Copy => &mut mailbox.copies,
            ImapCommand::Close => return self.mailboxes.close(),
            _ => return,
        };
        *counter = counter.saturating_add(1);
    }

    fn refuse(&mut self, asked: &Asked) {
        match asked.command {
            ImapCommand::Login | ImapCommand::Authenticate => {
                self.mailboxes.account.log_in.judge(false);
            }
            ImapCommand::StartTls => self.awaits_tls = false,
            // RFC 9051, 6.3.2: then none is selected.
            ImapCommand::Select | ImapCommand::Examine => {
                self.exists = None;
                self.mailboxes.close();
            }
            _ => {}
        }
        let mailbox = self.mailboxes.selected();
        mailbox.errors = mailbox.errors.saturating_add(1);
    }
}

/// What a status response decides.
fn verdict(word: &[u8]) -> Option<FinalReply> {
    if word.eq_ignore_ascii_case(b"OK") || word.eq_ignore_ascii_case(b"PREAUTH") {
        Some(FinalReply::Ok)
    } else if [b"NO".as_slice(), b"BAD", b"BYE"].iter().any(|it| it.eq_ignore_ascii_case(word)) {
        Some(FinalReply::Refused)
    } else {
        None
    }
}
