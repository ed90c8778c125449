//! What a connection amounts to: a row of the log.

use netsniff_packet::Timestamp;

use crate::log;
use crate::protocol::Connection;
use crate::protocol::mime::mail::Parts;
use crate::protocol::sasl::Sasl;
use crate::record::Port;
use crate::uid::Uid;

/// The longest greeting that is told.
const MAX_GREETING: usize = 512;

/// Files that are told of one connection. More are rows of `files` only.
const MAX_FUIDS: usize = 1_000;

/// A connection in POP3.
#[derive(Debug, Default)]
pub struct Summary {
    pub(super) start: Option<Timestamp>,
    greeting: Option<Box<[u8]>>,
    pub(super) auth: Option<Sasl>,
    pub(super) auth_failures: u32,
    pub(super) tls: bool,
    mailbox: Option<(u64, u64)>,
    pub(super) retrieved: u32,
    pub(super) retrieved_bytes: u64,
    pub(super) deleted: u32,
    pub(super) errors: u32,
    pub(super) quit: bool,
    fuids: Vec<Uid>,
}

impl Summary {
    /// Takes what the server says first.
    pub(super) fn greet(&mut self, time: Timestamp, text: &[u8]) {
        self.start = Some(time);
        self.greeting = Some(text.get(..MAX_GREETING).unwrap_or(text).into());
    }

    /// Takes the reply to STAT: how many mails, and their bytes.
    pub(super) fn stat(&mut self, text: &[u8]) {
        let mut numbers = text.split(|&byte| byte == b' ').map(|digits| {
            core::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u64>().ok())
        });
        if let (Some(Some(count)), Some(Some(bytes))) = (numbers.next(), numbers.next()) {
            self.mailbox = Some((count, bytes));
        }
    }

    /// Takes whether the server believed the client.
    pub(super) const fn judge(&mut self, is_successful: bool) {
        if let Some(auth) = &mut self.auth {
            auth.finish(is_successful);
        }
        if !is_successful {
            self.auth_failures = self.auth_failures.saturating_add(1);
        }
    }

    /// Takes what a mail consisted of.
    pub(super) fn mail(&mut self, parts: Parts) {
        let room = MAX_FUIDS.saturating_sub(self.fuids.len());
        self.fuids.extend(parts.fuids.into_iter().take(room));
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.greeting.as_ref().map_or(0, |text| text.len())
            + self.auth.as_ref().map_or(0, Sasl::heap_bytes)
            + self.fuids.capacity() * size_of::<Uid>()
    }

    /// Hands the row of the log to `take`.
    pub fn report<T>(&self, connection: &Connection, take: impl FnOnce(&log::Pop3<'_>) -> T) -> T {
        take(&log::Pop3 {
            ts: self.start.unwrap_or(Timestamp::EPOCH),
            uid: connection.uid,
            id_orig_h: connection.originator.address,
            id_orig_p: Port(connection.originator.port),
            id_resp_h: connection.responder.address,
            id_resp_p: Port(connection.responder.port),
            greeting: self.greeting.as_deref(),
            user: self.auth.as_ref().and_then(Sasl::user),
            auth_mechanism: self.auth.as_ref().and_then(Sasl::mechanism),
            auth_success: self.auth.as_ref().and_then(Sasl::is_successful),
            auth_failures: self.auth_failures,
            tls: self.tls,
            mailbox_messages: self.mailbox.map(|(count, _)| count),
            mailbox_bytes: self.mailbox.map(|(_, bytes)| bytes),
            retrieved: self.retrieved,
            retrieved_bytes: self.retrieved_bytes,
            deleted: self.deleted,
            errors: self.errors,
            quit: self.quit,
            fuids: &self.fuids,
        })
    }
}
