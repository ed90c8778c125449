//! What a connection amounts to, mailbox by mailbox: rows of the log.

use netsniff_packet::Timestamp;

use crate::log;
use crate::protocol::mime::mail::Parts;
use crate::protocol::sasl::Sasl;
use crate::protocol::{Connection, Findings, ProtocolRecord};
use crate::record::Port;
use crate::uid::Uid;

/// Mailboxes of one connection that are told apart. What is done in more of them counts for the
/// connection.
const MAX_MAILBOXES: usize = 64;

/// The longest greeting and name that is told.
const MAX_TEXT: usize = 512;

/// Files that are told of one mailbox. More are rows of `files` only.
const MAX_FUIDS: usize = 1_000;

/// What all rows of a connection tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    pub(super) greeting: Option<Box<[u8]>>,
    pub(super) auth: Option<Sasl>,
    pub(super) auth_failures: u32,
    pub(super) tls: bool,
}

/// What was done in one mailbox, or in none.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    start: Timestamp,
    name: Option<Box<[u8]>>,
    pub(super) read_only: Option<bool>,
    pub(super) exists: Option<u64>,
    pub(super) commands: u32,
    pub(super) errors: u32,
    pub(super) fetches: u32,
    pub(super) stores: u32,
    pub(super) searches: u32,
    pub(super) copies: u32,
    pub(super) appends: u32,
    pub(super) expunged: u32,
    pub(super) fetched_bytes: u64,
    fuids: Vec<Uid>,
}

/// The mailboxes of a connection.
#[derive(Debug)]
pub(super) struct Mailboxes {
    pub(super) account: Account,
    /// The first is none: the connection itself.
    all: Vec<Mailbox>,
    selected: usize,
}

/// A row of the log.
#[derive(Debug)]
pub struct Row {
    account: Account,
    mailbox: Mailbox,
}

impl Mailboxes {
    /// A connection that begins.
    pub(super) fn new() -> Self {
        Self { account: Account::default(), all: vec![Mailbox::default()], selected: 0 }
    }

    /// Takes what the server says first.
    pub(super) fn greet(&mut self, time: Timestamp, text: &[u8]) {
        self.account.greeting = Some(text.get(..MAX_TEXT).unwrap_or(text).into());
        if let Some(connection) = self.all.first_mut() {
            connection.start = time;
        }
    }

    /// Takes whether the server believed the client.
    pub(super) const fn judge(&mut self, is_successful: bool) {
        let account = &mut self.account;
        if let Some(auth) = &mut account.auth {
            auth.finish(is_successful);
        }
        if !is_successful {
            account.auth_failures = account.auth_failures.saturating_add(1);
        }
    }

    /// The mailbox that is selected, or the connection itself.
    pub(super) fn selected(&mut self) -> &mut Mailbox {
        if self.selected >= self.all.len() {
            self.selected = 0;
        }
        let at = self.selected;
        if self.all.is_empty() {
            self.all.push(Mailbox::default());
        }
        &mut self.all[at]
    }

    /// Selects a mailbox.
    pub(super) fn select(&mut self, time: Timestamp, name: &[u8]) -> &mut Mailbox {
        self.selected = self.place(time, name);
        self.selected()
    }

    /// Selects none.
    pub(super) const fn close(&mut self) {
        self.selected = 0;
    }

    /// The mailbox of this name.
    pub(super) fn named(&mut self, time: Timestamp, name: &[u8]) -> &mut Mailbox {
        let at = self.place(time, name);
        &mut self.all[at]
    }

    fn place(&mut self, time: Timestamp, name: &[u8]) -> usize {
        let name = name.get(..MAX_TEXT).unwrap_or(name);
        // RFC 9051, 5.1: this name is the same in any case of letters.
        let name: Box<[u8]> = if name.eq_ignore_ascii_case(b"INBOX") {
            b"INBOX".as_slice().into()
        } else {
            name.into()
        };
        if let Some(at) = self.all.iter().position(|it| it.name.as_ref() == Some(&name)) {
            return at;
        }
        if self.all.len() > MAX_MAILBOXES {
            return 0;
        }
        self.all.push(Mailbox { start: time, name: Some(name), ..Mailbox::default() });
        self.all.len() - 1
    }

    /// Tells all.
    pub(super) fn finish(&mut self, found: &mut Findings) {
        self.selected = 0;
        for mailbox in self.all.drain(..) {
            let row = Row { account: self.account.clone(), mailbox };
            found.records.push(ProtocolRecord::Imap(Box::new(row)));
        }
    }

    /// Bytes that they hold outside this.
    pub(super) fn heap_bytes(&self) -> usize {
        let text = |text: &Option<Box<[u8]>>| text.as_ref().map_or(0, |text| text.len());
        let of = |it: &Mailbox| text(&it.name) + it.fuids.capacity() * size_of::<Uid>();
        self.all.iter().map(of).sum::<usize>()
            + self.all.capacity() * size_of::<Mailbox>()
            + text(&self.account.greeting)
            + self.account.auth.as_ref().map_or(0, Sasl::heap_bytes)
    }
}

impl Mailbox {
    /// Takes what a mail in it consisted of.
    pub(super) fn mail(&mut self, parts: Parts) {
        let room = MAX_FUIDS.saturating_sub(self.fuids.len());
        self.fuids.extend(parts.fuids.into_iter().take(room));
    }
}

impl Row {
    /// Hands the row of the log to `take`.
    pub fn report<T>(&self, connection: &Connection, take: impl FnOnce(&log::Imap<'_>) -> T) -> T {
        let Self { account, mailbox } = self;
        take(&log::Imap {
            ts: mailbox.start,
            uid: connection.uid,
            id_orig_h: connection.originator.address,
            id_orig_p: Port(connection.originator.port),
            id_resp_h: connection.responder.address,
            id_resp_p: Port(connection.responder.port),
            greeting: account.greeting.as_deref(),
            user: account.auth.as_ref().and_then(Sasl::user),
            auth_mechanism: account.auth.as_ref().and_then(Sasl::mechanism),
            auth_success: account.auth.as_ref().and_then(Sasl::is_successful),
            auth_failures: account.auth_failures,
            tls: account.tls,
            mailbox: mailbox.name.as_deref(),
            read_only: mailbox.read_only,
            exists: mailbox.exists,
            commands: mailbox.commands,
            errors: mailbox.errors,
            fetches: mailbox.fetches,
            stores: mailbox.stores,
            searches: mailbox.searches,
            copies: mailbox.copies,
            appends: mailbox.appends,
            expunged: mailbox.expunged,
            fetched_bytes: mailbox.fetched_bytes,
            fuids: &mailbox.fuids,
        })
    }
}
