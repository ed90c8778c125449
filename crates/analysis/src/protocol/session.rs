//! Sessions: what a protocol makes of one flow, from its first datagram to the flow's end.

use core::fmt::Debug;

use netsniff_packet::Timestamp;

use super::dns::Transaction;
use super::ntp;
use crate::flow::key::Endpoint;
use crate::log::conn::Proto;
use crate::record::{Observer, SortKey};
use crate::uid::Uid;
use crate::weird::Weirds;

/// One conversation in one protocol.
pub trait Session: Debug + Send {
    /// Takes a datagram.
    fn datagram(&mut self, datagram: &Datagram<'_>, found: &mut Findings);

    /// Tells what still waits, since the flow ends.
    fn end(&mut self, found: &mut Findings);

    /// Whether the content was that of the protocol so far.
    fn is_confirmed(&self) -> bool;

    /// Bytes that it takes, itself included.
    fn heap_bytes(&self) -> usize;
}

/// A datagram of a session.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// When it was seen.
    pub time: Timestamp,
    /// Port of the responder, for protocols whose messages differ by it.
    pub port: u16,
    /// Its payload as far as it was captured.
    pub payload: &'a [u8],
}

/// What sessions found: in memory that is used again and again.
#[derive(Debug, Default)]
pub struct Findings {
    /// Records, in the order in which they were found.
    pub records: Vec<ProtocolRecord>,
    /// Oddities.
    pub weirds: Weirds,
}

impl Findings {
    /// Whether there is nothing.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty() && self.weirds.is_empty()
    }
}

/// A record of any protocol, without what tells its flow.
#[derive(Debug)]
pub enum ProtocolRecord {
    /// A row of the `dns` log.
    Dns(Transaction),
    /// A row of the `ntp` log.
    Ntp(ntp::Message),
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
}

impl ProtocolRecord {
    /// Hands the record to the observer, as one of `connection`.
    pub fn report<O: Observer>(&self, connection: &Connection, key: &SortKey, observer: &mut O) {
        match self {
            Self::Dns(transaction) => {
                transaction.report(connection, |row| observer.record(key, row));
            }
            Self::Ntp(message) => message.report(connection, |row| observer.record(key, row)),
        }
    }
}
