//! What sessions find, on its way to the logs.

use std::sync::Arc;

use netsniff_packet::Timestamp;

use super::expected::Expected;
use super::recent::Caches;
use crate::file::Extract;
use crate::record::{Connection, Fact, Observer, Row, SortKey, WholeRow};
use crate::series::Failure;
use crate::weird::{Detail, Oddity, Weirds};

/// What sessions found: in memory that is used again and again.
#[derive(Debug, Default)]
pub struct Findings {
    /// Rows and facts, in the order in which they were found.
    pub records: Vec<Finding>,
    /// Connections that will come.
    pub expected: Vec<Expected>,
    /// What failed of what was asked for, at the times that its rows have.
    pub failures: Vec<(Timestamp, Failure)>,
    /// Oddities of the protocol that speaks.
    pub weirds: Weirds,
    /// What was made of content that comes again and again.
    pub(in crate::protocol) caches: Caches,
    /// Oddities, and the protocols that they are of.
    named: Vec<(Oddity, &'static str)>,
    /// What the message carries that a session just read.
    pub(in crate::protocol) carried: Carried,
    /// Sessions that failed by a fault of their own.
    pub panics: u64,
    /// Whether more came than a session looks at, which makes an X in the history.
    is_beyond: bool,
    /// Bytes that may still be decoded before somebody else gets a turn; `None` where nobody waits.
    pub(crate) decodable: Option<u64>,
    /// Whether somebody looks through records that no log has.
    is_watched: bool,
    /// Who wants the content of files, if anybody.
    pub(crate) extract: Option<Arc<dyn Extract>>,
}

/// What a message carries that is a conversation of its own, on its way there. It is of the side that the
/// session was called for.
#[derive(Debug, Default)]
pub(in crate::protocol) struct Carried {
    /// Whether anybody reads it.
    pub(in crate::protocol) is_wanted: bool,
    pub(in crate::protocol) bytes: Vec<u8>,
    /// Bytes of it that are missing.
    pub(in crate::protocol) missing: u64,
}

impl Carried {
    /// Whether there is nothing.
    #[inline]
    pub(in crate::protocol) const fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.missing == 0
    }
}

/// Oddities that one conversation, or one datagram, may show. More of them tell nothing new.
pub const MAX_ODDITIES: u8 = 64;

impl Findings {
    /// Nothing yet, of sessions whose files somebody may want, and whose unwritten records.
    #[must_use]
    pub fn new(extract: Option<Arc<dyn Extract>>, is_watched: bool) -> Self {
        Self { extract, is_watched, ..Self::default() }
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

    /// Whether the session that just read has shown nothing odd, which belongs to the place that it read.
    #[inline]
    pub(in crate::protocol) const fn is_silent(&self) -> bool {
        self.weirds.is_empty()
    }

    /// Adds a row of the connection.
    pub fn row(&mut self, row: impl Row + 'static) {
        self.boxed_row(Box::new(row));
    }

    /// Adds a row that lies in a box.
    pub fn boxed_row(&mut self, row: Box<dyn Row>) {
        self.records.push(Finding::Row(row));
    }

    /// Adds a fact, of which a join makes rows.
    pub fn fact(&mut self, fact: impl Fact) {
        self.records.push(Finding::Fact(Box::new(fact)));
    }

    /// Adds a record of the connection that no log has, where somebody looks through such.
    pub fn unwritten(&mut self, row: impl Row + 'static) {
        if self.is_watched {
            self.records.push(Finding::Unwritten(Box::new(row)));
        }
    }

    /// Adds a row whose last columns a join makes of a fact.
    pub fn row_with(&mut self, row: Box<dyn Row>, fact: impl Fact) {
        self.records.push(Finding::RowWith(row, Box::new(fact)));
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
    pub fn known_bytes(&self) -> usize {
        self.caches.heap_bytes()
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

    /// Puts down an oddity of what somebody announced. There is one for each announcement, whatever else its piece of the
    /// stream shows.
    #[cold]
    pub fn odd_announcement(&mut self, name: &'static str) {
        self.named.push((Oddity { name, detail: Detail::None }, "conversation"));
    }

    /// The oddities with their protocols, which empties them.
    pub fn drain_oddities(&mut self) -> impl Iterator<Item = (Oddity, &'static str)> {
        self.named.drain(..)
    }
}

/// What a session found, without what tells its flow.
#[derive(Debug)]
pub enum Finding {
    /// A row of one of the protocol's logs.
    Row(Box<dyn Row>),
    /// A fact, of which a join makes rows.
    Fact(Box<dyn Fact>),
    /// A row whose last columns a join makes of the fact.
    RowWith(Box<dyn Row>, Box<dyn Fact>),
    /// A record that no log has, for whoever looks through records.
    Unwritten(Box<dyn Row>),
}

impl Finding {
    /// Hands it to the observer, as one of `connection`.
    pub fn report<O: Observer>(self, connection: &Connection, key: &SortKey, observer: &mut O) {
        match self {
            Self::Row(mut row) => {
                row.complete(connection);
                observer.record(key, &WholeRow::new(connection, &*row));
            }
            Self::Fact(fact) => observer.fact(key, connection, fact),
            Self::Unwritten(row) => observer.unwritten(key, &WholeRow::new(connection, &*row)),
            Self::RowWith(mut row, fact) => {
                row.complete(connection);
                observer.begun_row(key, connection, &*row, fact);
            }
        }
    }
}
