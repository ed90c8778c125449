//! What bytes that are missing change, and what they do not.

use super::super::command::SmtpCommand;
use super::{LineKind, SmtpSession};
use crate::protocol::syntax::line::{self, LineEnd};
use crate::protocol::{Findings, MissingBytes};

impl SmtpSession {
    /// Goes on behind bytes that are missing.
    pub(super) fn pass_gap(&mut self, gap: &MissingBytes<'_>, found: &mut Findings) {
        let MissingBytes { time, from, unread, len, .. } = *gap;
        self.pieces.lose(from);
        if from == self.client && self.body.is_in_chunk() {
            // The length of the chunk tells where it ends all the same.
            let is_within =
                self.body.gap_in_chunk(time, (unread, len), &mut self.transactions, found);
            if self.body.is_chunk_last_and_over() {
                self.end_mail(time, found);
                self.transactions.sent(time);
            }
            if is_within {
                return;
            }
        }
        let is_of_client = from == self.client;
        let is_mail_cut = self.stage == LineKind::Data && is_of_client;
        if is_mail_cut {
            let rest = (unread, LineEnd::None);
            self.body.line(time, rest, &mut self.transactions, found);
            self.body.gap(time, len);
        }
        let stage = if is_of_client { LineKind::AfterGap } else { self.stage_behind_reply() };
        if self.stage == LineKind::Data && stage != LineKind::Data {
            self.end_mail(time, found);
        }
        if !is_of_client {
            self.is_resuming = true;
            // The rest of a reply of several lines may be among what is missing: the next line begins one.
            self.continued = None;
        }
        self.is_unsure = stage == LineKind::Data && !self.pending.is_empty();
        self.awaits_tls = false;
        self.stage = stage;
        self.pending.clear();
        self.transactions.give_up_waiting(found);
        if is_mail_cut {
            // Nothing is replied within a mail (RFC 5321, 4.1.1.4): what comes next is about all of it.
            self.pending.push_back(SmtpCommand::EndOfData);
        }
    }

    /// What lines of the client are behind replies that are missing. What one reply changes nothing of, or is
    /// told by the client's next line, they are as they were.
    fn stage_behind_reply(&self) -> LineKind {
        let is_plain = |command: &SmtpCommand| {
            matches!(
                command,
                SmtpCommand::Hello
                    | SmtpCommand::Mail
                    | SmtpCommand::Recipient
                    | SmtpCommand::Data
                    | SmtpCommand::EndOfData
                    | SmtpCommand::Chunk(_)
                    | SmtpCommand::Reset
                    | SmtpCommand::Quit
            )
        };
        let is_known = self.pending.len() <= 1 && self.pending.iter().all(is_plain);
        match self.stage {
            LineKind::Commands | LineKind::Recovering | LineKind::Data if is_known => self.stage,
            _ => LineKind::AfterGap,
        }
    }
}

/// Whether a client that may not send its mail says this, and no mail begins so.
pub(super) fn begins_anew(line: &[u8]) -> bool {
    let (word, argument) = line::word(line);
    match SmtpCommand::named(word) {
        SmtpCommand::Reset | SmtpCommand::Quit => argument.is_empty(),
        SmtpCommand::Mail => line::trim_start(argument).contains(&b':'),
        _ => false,
    }
}
