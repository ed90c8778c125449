//! What sessions find, on its way to the logs.

use std::sync::Arc;

use netsniff_packet::Timestamp;

use super::dns::Transaction;
use super::expected::Expected;
use super::ftp::Command;
use super::irc::IrcEvent;
use super::ntp;
use super::quic::QuicConnection;
use super::socks::Proxying;
use super::ssh::Login;
use super::tls::{Known, OcspStatus};
use super::websocket::Talk;
use super::{imap, pop3, smtp};
use crate::correlator::{Content, Fact};
use crate::file::pe::Program;
use crate::file::{Extract, FileReport};
use crate::flow::key::Endpoint;
use crate::log::conn::Proto;
use crate::record::{Observer, SortKey};
use crate::uid::Uid;
use crate::weird::{Detail, Oddity, Weirds};

/// What sessions found: in memory that is used again and again.
#[derive(Debug, Default)]
pub struct Findings {
    /// Records, in the order in which they were found.
    pub records: Vec<ProtocolRecord>,
    /// Connections that will come.
    pub expected: Vec<Expected>,
    /// Oddities of the protocol that speaks.
    pub weirds: Weirds,
    /// What was made of content that comes again and again.
    pub(super) known: Known,
    /// Oddities, and the protocols that they are of.
    named: Vec<(Oddity, &'static str)>,
    /// What the message carries that a session just read.
    pub(super) carried: Carried,
    /// Sessions that failed by a fault of their own.
    pub panics: u64,
    /// Whether more came than a session looks at, which makes an X in the history.
    is_beyond: bool,
    /// Bytes that may still be decoded before somebody else gets a turn; `None` where nobody waits.
    pub(crate) decodable: Option<u64>,
    /// Who wants the content of files, if anybody.
    pub(crate) extract: Option<Arc<dyn Extract>>,
}

/// What a message carries that is a conversation of its own, on its way there. It is of the side that the
/// session was called for.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// Whether anybody reads it.
    pub(super) is_wanted: bool,
    pub(super) bytes: Vec<u8>,
    /// Bytes of it that are missing.
    pub(super) missing: u64,
}

impl Carried {
    /// Whether there is nothing.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.missing == 0
    }
}

/// Oddities that one conversation, or one datagram, may show. More of them tell nothing new.
pub const MAX_ODDITIES: u8 = 64;

impl Findings {
    /// Nothing yet, of sessions whose files somebody may want.
    #[must_use]
    pub fn new(extract: Option<Arc<dyn Extract>>) -> Self {
        Self { extract, ..Self::default() }
    }

    /// Whether there is nothing.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty()
            && self.expected.is_empty()
            && self.named.is_empty()
            && self.weirds.is_empty()
            && self.panics == 0
            && !self.is_beyond
    }

    /// Notes that more came than a session looks at (Zeek's `LimitReachedWeird`).
    pub(crate) fn exceed(&mut self, name: &'static str, detail: Detail) {
        self.weirds.add_with(name, detail);
        self.is_beyond = true;
    }

    /// Whether more came than a session looks at, once.
    pub(crate) const fn take_beyond(&mut self) -> bool {
        core::mem::replace(&mut self.is_beyond, false)
    }

    /// Bytes that what is known of earlier conversations takes.
    #[must_use]
    pub const fn known_bytes(&self) -> usize {
        self.known.heap_bytes()
    }

    /// Puts down whose the oddities are that were found last, as far as there is `room`, which
    /// shrinks by those. It belongs to what must not depend on how it was cut.
    #[inline]
    pub fn attribute(&mut self, analyzer: &'static str, room: &mut u8) {
        if !self.weirds.is_empty() {
            for oddity in self.weirds.drain().take(usize::from(*room)) {
                self.named.push((oddity, analyzer));
                *room -= 1;
            }
        }
    }

    /// The oddities with their protocols, which empties them.
    pub fn drain_oddities(&mut self) -> impl Iterator<Item = (Oddity, &'static str)> {
        self.named.drain(..)
    }
}

/// A record of any protocol, without what tells its flow.
#[derive(Debug)]
pub enum ProtocolRecord {
    /// A row of the `dns` log.
    Dns(Transaction),
    /// A row of the `ntp` log.
    Ntp(ntp::Message),
    /// What makes a record together with what other flows tell.
    Fact(Content),
    /// A row of the `websocket` log.
    WebSocket(Box<Talk>),
    /// A row of the `ftp` log.
    Ftp(Box<Command>),
    /// A row of the `socks` log.
    Socks(Box<Proxying>),
    /// A row of the `irc` log.
    Irc(Box<IrcEvent>),
    /// A row of the `ssh` log.
    Ssh(Box<Login>),
    /// A row of the `files` log.
    File(Box<FileReport>),
    /// A row of the `pe` log.
    Pe(Box<Program>),
    /// A row of the `smtp` log.
    Smtp(Box<smtp::Transaction>),
    /// A row of the `pop3` log.
    Pop3(Box<pop3::Summary>),
    /// A row of the `imap` log.
    Imap(Box<imap::Row>),
    /// A row of the `quic` log.
    Quic(Box<QuicConnection>),
    /// A row of the `ocsp` log.
    Ocsp(Box<OcspStatus>),
}

/// The flow that a record belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// Its identifier.
    pub uid: Uid,
    /// The originator.
    pub originator: Endpoint,
    /// The responder.
    pub responder: Endpoint,
    /// The transport protocol.
    pub proto: Proto,
    /// Time of its first packet; `None` where the connection is older than that.
    pub start: Option<Timestamp>,
}

impl ProtocolRecord {
    /// Hands the record to the observer, as one of `connection`.
    pub fn report<O: Observer>(self, connection: &Connection, key: &SortKey, observer: &mut O) {
        match self {
            Self::Dns(transaction) => {
                transaction.report(connection, |row| observer.record(key, row));
            }
            Self::Ntp(message) => message.report(connection, |row| observer.record(key, row)),
            Self::Fact(content) => observer.fact(key, Fact { connection: *connection, content }),
            Self::WebSocket(talk) => talk.report(connection, |row| observer.record(key, row)),
            Self::Ftp(command) => command.report(connection, |row| observer.record(key, row)),
            Self::Socks(proxying) => proxying.report(connection, |row| observer.record(key, row)),
            Self::Irc(event) => event.report(connection, |row| observer.record(key, row)),
            Self::Ssh(login) => login.report(connection, |row| observer.record(key, row)),
            Self::File(file) => file.report(connection, |row| observer.record(key, row)),
            Self::Pe(program) => program.report(|row| observer.record(key, row)),
            Self::Smtp(mail) => mail.report(connection, |row| observer.record(key, row)),
            Self::Pop3(summary) => summary.report(connection, |row| observer.record(key, row)),
            Self::Imap(mailbox) => mailbox.report(connection, |row| observer.record(key, row)),
            Self::Ocsp(status) => status.report(|row| observer.record(key, row)),
            Self::Quic(quic) => quic.report(connection, |row| observer.record(key, row)),
        }
    }
}
