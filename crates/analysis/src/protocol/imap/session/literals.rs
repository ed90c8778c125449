//! Literals: bytes in the middle of a command or a response, whose number is told before them
//! (RFC 9051, section 4.3).

use netsniff_packet::Timestamp;

use super::super::command::ImapCommand;
use super::{ImapSession, MAX_TEXT};
use crate::protocol::mime::Mail;
use crate::protocol::mime::mail::Origin;
use crate::protocol::syntax::line::{self, LineEnd};
use crate::protocol::{Bytes, Findings, Progress, Role};

/// A literal that is being sent.
#[derive(Debug)]
pub(super) struct Literal {
    /// Bytes that are still to come.
    left: u64,
    into: Into,
}

/// What a literal is.
#[derive(Debug)]
pub(super) enum Into {
    /// A mail from its first header field to its end.
    Mail(Box<Mail>),
    /// The first argument of a command.
    Argument(Vec<u8>),
    /// Neither mail nor command.
    Nothing,
}

impl Literal {
    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        match &self.into {
            Into::Mail(mail) => size_of::<Mail>() + mail.heap_bytes(),
            Into::Argument(text) => text.capacity(),
            Into::Nothing => 0,
        }
    }
}

impl ImapSession {
    /// A mail that one side sends.
    pub(super) fn begin_mail(&self, from: Role) -> Into {
        let origin = Origin { carrier: self.carrier, source: "IMAP", from, tells_depth: false };
        Into::Mail(Box::new(Mail::new(origin, self.numbers)))
    }

    /// Begins a literal, whose length stood at the end of the line.
    pub(super) fn begin_literal(
        &mut self,
        time: Timestamp,
        from: Role,
        len: u64,
        into: Into,
        found: &mut Findings,
    ) {
        if let (Into::Mail(_), Some(Literal { into: Into::Mail(_), .. })) =
            (&into, &self.literals[from.peer().index()])
        {
            // Files are numbered one after another, so only one side's mails are taken apart at a
            // time.
            self.literals[from.index()] = Some(Literal { left: len, into: Into::Nothing });
        } else {
            self.literals[from.index()] = Some(Literal { left: len, into });
        }
        if len == 0 {
            self.end_literal(time, from, &[], found);
        }
    }

    /// Takes bytes of a literal: of a mail a line, of anything else all that is there.
    pub(super) fn literal(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        let Bytes { time, from, data } = *input;
        let Some(literal) = &mut self.literals[from.index()] else { return Progress::Need(1) };
        let all = usize::try_from(literal.left).unwrap_or(usize::MAX);
        let part = data.get(..all).unwrap_or(data);
        let len = match &mut literal.into {
            Into::Mail(mail) => match line::next_by_lf(part) {
                Ok(line) => {
                    mail.line(time, (line.text, line.end), &mut |_, _| {}, found);
                    line.len
                }
                Err(_) if part.len() == all => {
                    mail.line(time, (part, LineEnd::None), &mut |_, _| {}, found);
                    part.len()
                }
                Err(needed) => return Progress::Need(needed),
            },
            Into::Argument(text) => {
                let room = MAX_TEXT.saturating_sub(text.len());
                text.extend_from_slice(part.get(..room).unwrap_or(part));
                part.len()
            }
            Into::Nothing => part.len(),
        };
        literal.left = literal.left.saturating_sub(len as u64);
        if literal.left == 0 {
            self.end_literal(time, from, &[], found);
        }
        Progress::Consumed(len)
    }

    /// Learns that bytes are missing behind some of a literal. Returns whether the literal goes on
    /// behind them, or ends just there.
    pub(super) fn gap_in_literal(
        &mut self,
        time: Timestamp,
        from: Role,
        (unread, missing): (&[u8], u64),
        found: &mut Findings,
    ) -> bool {
        let Some(literal) = &mut self.literals[from.index()] else { return false };
        let left = literal.left.saturating_sub(unread.len() as u64);
        if let Into::Mail(mail) = &mut literal.into {
            mail.line(time, (unread, LineEnd::None), &mut |_, _| {}, found);
            mail.gap(time, missing.min(left));
        }
        literal.left = left.saturating_sub(missing);
        if literal.left == 0 {
            self.end_literal(time, from, &[], found);
        }
        missing <= left
    }

    /// Ends a literal, whose last bytes are `rest`.
    pub(super) fn end_literal(
        &mut self,
        time: Timestamp,
        from: Role,
        rest: &[u8],
        found: &mut Findings,
    ) {
        let Some(literal) = self.literals[from.index()].take() else { return };
        match literal.into {
            Into::Mail(mut mail) => {
                if !rest.is_empty() {
                    mail.line(time, (rest, LineEnd::None), &mut |_, _| {}, found);
                }
                let (parts, numbers) = mail.finish(time, &mut |_, _| {}, found);
                self.numbers = numbers;
                let target = match (from, &self.current) {
                    (Role::Originator, Some(asked)) if asked.command == ImapCommand::Append => {
                        let name = asked.first.as_deref().unwrap_or_default();
                        self.mailboxes.named(time, name)
                    }
                    _ => self.mailboxes.selected(),
                };
                target.mail(parts);
            }
            Into::Argument(text) => {
                if let Some(asked) = &mut self.current {
                    asked.first = Some(text.into());
                }
            }
            Into::Nothing => {}
        }
    }
}
