//! What a server replies, and to which command.

use netsniff_packet::Timestamp;

use super::super::command::{LastChunk, SmtpCommand};
use super::{CONTRADICTED_WITHIN, LineKind, SmtpSession};
use crate::protocol::syntax::line::{self, Line};
use crate::protocol::{Findings, Progress};

impl SmtpSession {
    /// Takes a line of a reply.
    pub(super) fn reply(
        &mut self,
        time: Timestamp,
        line: &Line<'_>,
        found: &mut Findings,
    ) -> Progress {
        self.has_server_spoken = true;
        let is_resuming = core::mem::take(&mut self.is_resuming);
        let Some(code) = reply_code(line.text) else {
            return if is_resuming || self.seen > CONTRADICTED_WITHIN {
                Progress::Consumed(line.len)
            } else {
                Progress::Contradicts("smtp_reply_code_out_of_range")
            };
        };
        if self.continued != Some(code) {
            self.begin_reply(time, code, found);
        }
        let is_last = line.text.get(3) != Some(&b'-');
        self.continued = (!is_last).then_some(code);
        if self.is_hinted || self.is_confirmed {
            let text = line.text.get(3..).unwrap_or_default();
            let text = line::trim_start(text.strip_prefix(b"-").unwrap_or(text));
            self.transactions.reply(time, code, text);
        }
        match (self.replied, code) {
            (SmtpCommand::EndOfData | SmtpCommand::Chunk(LastChunk(true)), _) if is_last => {
                self.transactions.finished(time, found);
            }
            (SmtpCommand::StartTls, 220) if is_last => {
                self.transactions.current(time).start_tls();
                return Progress::Handover(line.len);
            }
            _ => {}
        }
        Progress::Consumed(line.len)
    }

    /// Takes the code of a reply that begins.
    fn begin_reply(&mut self, time: Timestamp, code: u16, found: &mut Findings) {
        if self.stage == LineKind::AfterGap {
            self.stage = LineKind::Recovering;
            self.is_confirmed = true;
            self.transactions.current(time);
        }
        self.replied = self.pending.pop_front().unwrap_or(SmtpCommand::Unknown);
        let is_in_data = self.stage == LineKind::Data;
        match (self.replied, code) {
            (SmtpCommand::Data, code) if code != 354 && is_in_data => {
                self.end_mail(time, found);
                self.stage = LineKind::Commands;
            }
            (SmtpCommand::Authenticate | SmtpCommand::AuthAnswer, code) => self.judge(time, code),
            (SmtpCommand::StartTls, code) if code != 220 => self.awaits_tls = false,
            (SmtpCommand::Turn, 250) => self.client = self.client.peer(),
            (SmtpCommand::Other | SmtpCommand::Unknown, 354)
                if self.stage == LineKind::Recovering =>
            {
                self.body.begin(self.client);
                self.stage = LineKind::Data;
            }
            _ => {}
        }
    }

    /// Takes a reply within AUTH: the server asks for more, or has decided.
    fn judge(&mut self, time: Timestamp, code: u16) {
        if code == 334 {
            if self.stage != LineKind::Data {
                self.stage = LineKind::Auth;
            }
            return;
        }
        if self.stage == LineKind::Auth {
            self.stage = LineKind::Commands;
        }
        self.transactions.log_in(time, |log_in| log_in.judge(code == 235));
    }
}

/// The code that a line of a reply begins with (RFC 5321, 4.2), of 100 to 599.
pub(in super::super) fn reply_code(text: &[u8]) -> Option<u16> {
    let digits = text.first_chunk::<3>().filter(|code| code.iter().all(u8::is_ascii_digit))?;
    let code = digits.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
    (100..600).contains(&code).then_some(code)
}
