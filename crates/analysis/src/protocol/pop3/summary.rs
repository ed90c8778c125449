//! What a connection amounts to: a row of the log.

use netsniff_packet::Timestamp;

use super::log::Pop3;
use crate::key::uid::Uid;
use crate::protocol::mime::mail::Parts;
use crate::protocol::syntax::sasl::{LogIn, LoggedIn};

/// The longest greeting that is told.
const MAX_GREETING: usize = 512;

/// Files that are told of one connection. More are rows of `files` only.
const MAX_FUIDS: usize = 1_000;

/// A connection in POP3.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// The row of the log, as far as it is known.
    pub(super) row: Pop3,
    pub(super) is_greeted: bool,
    pub(super) log_in: LogIn,
}

impl Summary {
    /// Takes what the server says first.
    pub(super) fn greet(&mut self, time: Timestamp, text: &[u8]) {
        (self.row.ts, self.is_greeted) = (time, true);
        self.row.greeting = Some(text.get(..MAX_GREETING).unwrap_or(text).into());
    }

    /// Takes the reply to STAT: how many mails, and their bytes.
    pub(super) fn stat(&mut self, text: &[u8]) {
        let mut numbers = text.split(|&byte| byte == b' ').map(|digits| {
            core::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u64>().ok())
        });
        if let (Some(Some(count)), Some(Some(bytes))) = (numbers.next(), numbers.next()) {
            (self.row.mailbox_messages, self.row.mailbox_bytes) = (Some(count), Some(bytes));
        }
    }

    /// Takes what a mail consisted of.
    pub(super) fn mail(&mut self, parts: Parts) {
        let room = MAX_FUIDS.saturating_sub(self.row.fuids.len());
        self.row.fuids.extend(parts.fuids.into_iter().take(room));
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.row.greeting.as_ref().map_or(0, |text| text.len())
            + self.log_in.heap_bytes()
            + self.row.fuids.capacity() * size_of::<Uid>()
    }

    /// The row of the log.
    pub(super) fn into_row(self) -> Pop3 {
        let Self { mut row, log_in, .. } = self;
        let LoggedIn { user, mechanism, is_successful, failures } = log_in.logged_in();
        (row.user, row.auth_mechanism, row.auth_success) = (user, mechanism, is_successful);
        row.auth_failures = failures;
        row
    }
}
