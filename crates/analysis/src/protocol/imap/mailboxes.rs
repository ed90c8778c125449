//! What a connection amounts to, mailbox by mailbox: rows of the log.

use netsniff_packet::Timestamp;

use super::log::Imap;
use crate::key::uid::Uid;
use crate::protocol::Findings;
use crate::protocol::mime::mail::Parts;
use crate::protocol::syntax::sasl::{LogIn, LoggedIn};

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
    pub(super) log_in: LogIn,
    pub(super) tls: bool,
}

/// The mailboxes of a connection.
#[derive(Debug)]
pub(super) struct Mailboxes {
    pub(super) account: Account,
    /// The first is none: the connection itself.
    all: Vec<Imap>,
    selected: usize,
}

impl Mailboxes {
    /// A connection that begins.
    pub(super) fn new() -> Self {
        Self { account: Account::default(), all: vec![Imap::default()], selected: 0 }
    }

    /// Takes what the server says first.
    pub(super) fn greet(&mut self, time: Timestamp, text: &[u8]) {
        self.account.greeting = Some(text.get(..MAX_TEXT).unwrap_or(text).into());
        if let Some(connection) = self.all.first_mut() {
            connection.ts = time;
        }
    }

    /// The mailbox that is selected, or the connection itself.
    pub(super) fn selected(&mut self) -> &mut Imap {
        if self.selected >= self.all.len() {
            self.selected = 0;
        }
        let at = self.selected;
        if self.all.is_empty() {
            self.all.push(Imap::default());
        }
        &mut self.all[at]
    }

    /// Takes note that a mailbox was selected.
    pub(super) fn select(&mut self, time: Timestamp, name: &[u8]) -> &mut Imap {
        self.selected = self.place(time, name);
        self.selected()
    }

    /// Takes note that no mailbox is selected any more.
    pub(super) const fn close(&mut self) {
        self.selected = 0;
    }

    /// The mailbox of this name.
    pub(super) fn named(&mut self, time: Timestamp, name: &[u8]) -> &mut Imap {
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
        if let Some(at) = self.all.iter().position(|it| it.mailbox.as_ref() == Some(&name)) {
            return at;
        }
        if self.all.len() > MAX_MAILBOXES {
            return 0;
        }
        self.all.push(Imap { ts: time, mailbox: Some(name), ..Imap::default() });
        self.all.len() - 1
    }

    /// Reports a row for each mailbox.
    pub(super) fn finish(&mut self, found: &mut Findings) {
        self.selected = 0;
        let Account { greeting, log_in, tls } = &self.account;
        for mut row in self.all.drain(..) {
            row.greeting.clone_from(greeting);
            let LoggedIn { user, mechanism, is_successful, failures } = log_in.logged_in();
            (row.user, row.auth_mechanism, row.auth_success) = (user, mechanism, is_successful);
            (row.auth_failures, row.tls) = (failures, *tls);
            found.row(row);
        }
    }

    /// Bytes that they hold outside this.
    pub(super) fn heap_bytes(&self) -> usize {
        let text = |text: &Option<Box<[u8]>>| text.as_ref().map_or(0, |text| text.len());
        let of = |it: &Imap| text(&it.mailbox) + it.fuids.capacity() * size_of::<Uid>();
        self.all.iter().map(of).sum::<usize>()
            + self.all.capacity() * size_of::<Imap>()
            + text(&self.account.greeting)
            + self.account.log_in.heap_bytes()
    }
}

impl Imap {
    /// Takes what a mail in it consisted of.
    pub(super) fn mail(&mut self, parts: Parts) {
        let room = MAX_FUIDS.saturating_sub(self.fuids.len());
        self.fuids.extend(parts.fuids.into_iter().take(room));
    }
}
