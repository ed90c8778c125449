//! Joins: records that no flow can tell by itself.
//!
//! Flows are shared out to workers by their addresses, so what several of them tell together may
//! come from several workers. Each tells [`Fact`]s, which travel with the sort keys of records. The
//! correlator stands where these are merged, gets the facts in their order, and so finds the same for
//! any number of workers. A [`Join`] makes records of some kinds of facts; [`JOINS`] lists them.
//!
//! | module | concern |
//! |---|---|
//! | [`answers`] | DNS answers, and which of them a connection followed |
//! | [`certificates`] | certificates, each of them once a day |
//! | [`exchanges`] | exchanges in progress, bounded, with the looks that end them |
//! | [`extraction`] | which of the files that were extracted are kept |
//! | [`proxies`] | proxies that connections go through |

pub mod answers;
pub mod certificates;
pub mod exchanges;
pub mod extraction;
pub mod proxies;

use core::fmt::Debug;
use std::sync::Arc;

use netsniff_packet::{Address, Timestamp};

use crate::file::FileReport;
use crate::flow::key::Endpoint;
use crate::limits::Limits;
use crate::log::conn::Proto;
use crate::log::{self, index_of};
use crate::protocol::{
    Connection, DhcpExchange, DhcpMessage, Dhcpv6Exchange, Dhcpv6Message, HttpExchange, Presented,
    Resolution, TlsHandshake,
};
use crate::record::{Observer, SortKey};
use crate::uid::Uid;
pub use answers::Answer;
use answers::Answers;
use certificates::Certificates;
use exchanges::Exchanges;
use extraction::{Extraction, ExtractionStatistics, FileJoined};
pub use proxies::Proxied;
use proxies::Proxies;

/// Makes a join that has seen nothing, within some bounds.
pub type MakeJoin = fn(&Limits) -> Box<dyn Join>;

/// Every join.
pub const JOINS: &[MakeJoin] = &[
    Answers::join,
    Certificates::join,
    Exchanges::<DhcpExchange>::join,
    Exchanges::<Dhcpv6Exchange>::join,
    Extraction::join,
    Proxies::join,
];

/// What a flow tells that only makes a record together with what other flows tell.
#[derive(Debug)]
pub struct Fact {
    /// The flow.
    pub connection: Connection,
    /// What it tells.
    pub content: Content,
}

/// What a fact is.
#[derive(Debug)]
pub enum Content {
    /// A message of DHCP.
    Dhcp(Box<DhcpMessage>),
    /// A message of DHCPv6.
    Dhcpv6(Box<Dhcpv6Message>),
    /// Addresses that DNS told.
    Resolution(Box<Resolution>),
    /// An exchange of HTTP, whose connection may have followed a DNS answer.
    Http(Box<HttpExchange>),
    /// A handshake of TLS, whose connection may have followed a DNS answer.
    Ssl(Box<TlsHandshake>),
    /// A certificate of a handshake.
    Certificate(Presented),
    /// A file that ended, of which the content was to be extracted.
    File(Arc<FileReport>),
    /// A connection goes on through a proxy.
    Proxied(Proxied),
    /// It is time to look at what waits to be over, as Zeek looks at its tables.
    Look,
}

impl Fact {
    /// Nobody's fact: it is time for a look.
    #[must_use]
    pub fn look() -> Self {
        let nobody = Endpoint { address: Address::from_v4([0; 4]), port: 0 };
        let connection = Connection {
            uid: Uid::NONE,
            originator: nobody,
            responder: nobody,
            proto: Proto::Unknown,
            start: None,
        };
        Self { connection, content: Content::Look }
    }

    /// Whether it tells nothing but that it is time for a look.
    #[must_use]
    pub const fn is_look(&self) -> bool {
        matches!(self.content, Content::Look)
    }

    /// The log, counted in [`LOGS`](crate::log::LOGS), of which it makes one row whatever else is
    /// told. `None` where that depends: several messages make an exchange, a certificate has a row
    /// once a day, an answer of DNS has none here.
    #[must_use]
    pub const fn row(&self) -> Option<usize> {
        match self.content {
            Content::Http(_) => Some(const { index_of::<log::Http<'static>>() }),
            Content::Ssl(_) => Some(const { index_of::<log::Ssl<'static>>() }),
            Content::File(_) => Some(const { index_of::<log::Files<'static>>() }),
            Content::Dhcp(_)
            | Content::Dhcpv6(_)
            | Content::Resolution(_)
            | Content::Certificate(_)
            | Content::Proxied(_)
            | Content::Look => None,
        }
    }

    /// Bytes that it holds outside itself, for whoever bounds the memory of facts that wait.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match &self.content {
            Content::Dhcp(message) => size_of_val(&**message) + message.heap_bytes(),
            Content::Dhcpv6(message) => size_of_val(&**message) + message.heap_bytes(),
            Content::Resolution(it) => size_of_val(&**it) + it.heap_bytes(),
            Content::Http(exchange) => exchange.bytes(),
            Content::Ssl(handshake) => size_of_val(&**handshake) + handshake.heap_bytes(),
            Content::Certificate(presented) => presented.shared_bytes(),
            Content::File(report) => size_of_val(&**report) + report.heap_bytes(),
            Content::Proxied(_) | Content::Look => 0,
        }
    }
}

/// A record of a join.
#[derive(Debug)]
pub enum Joined {
    /// A row of the `dhcp` log.
    Dhcp(Box<DhcpExchange>),
    /// A row of the `dhcpv6` log.
    Dhcpv6(Box<Dhcpv6Exchange>),
    /// A row of the `http` log, with the answer that its connection followed.
    Http(Box<HttpExchange>, Connection, Option<Answer>),
    /// A row of the `ssl` log, with the answer that its connection followed.
    Ssl(Box<TlsHandshake>, Connection, Option<Answer>),
    /// A row of the `x509` log.
    X509(Presented),
    /// A row of the `files` log.
    File(Box<FileJoined>),
    /// A row of the `tunnel` log.
    Tunnel(log::tunnel::Tunnel),
}

/// Records with the keys where they belong.
pub type Told = Vec<(SortKey, Joined)>;

/// Makes records of facts.
///
/// What it holds is bounded by fields of [`Limits`].
pub trait Join: Debug + Send {
    /// Takes a fact that belongs at `key`, and gives back one that is not its business.
    fn fact(&mut self, key: &SortKey, fact: Fact, told: &mut Told) -> Option<Fact>;

    /// Tells all that waits, since the input ended at engine time `now`.
    fn finish(&mut self, _now: Timestamp, _told: &mut Told) {}

    /// Adds what it amounts to.
    fn count(&self, statistics: &mut JoinStatistics);
}

/// What joins amount to, and what their bounds made them give up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JoinStatistics {
    /// Exchanges of DHCP and DHCPv6 that were told early.
    pub exchanges_cut_short: u64,
    /// Addresses of DNS answers that connections could still have followed.
    pub answers_given_up: u64,
    /// How often the certificates of a day were forgotten.
    pub certificates_forgotten: u64,
    /// What became of the files that were to be extracted.
    pub extraction: ExtractionStatistics,
}

/// All joins.
#[derive(Debug)]
pub struct Correlator {
    joins: Vec<Box<dyn Join>>,
    told: Told,
}

impl Correlator {
    /// Nothing waits yet.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        let joins = JOINS.iter().map(|join| join(limits)).collect();
        Self { joins, told: Vec::new() }
    }

    /// Takes a fact that belongs at `key`. Facts come in the order of their keys.
    pub fn fact<O: Observer>(&mut self, key: &SortKey, fact: Fact, observer: &mut O) {
        let Self { joins, told } = self;
        joins.iter_mut().try_fold(fact, |fact, join| join.fact(key, fact, told));
        self.report(observer);
    }

    /// Tells all that waits, since the input ended at engine time `now`.
    pub fn finish<O: Observer>(&mut self, now: Timestamp, observer: &mut O) {
        for join in &mut self.joins {
            join.finish(now, &mut self.told);
        }
        self.told.sort_by_key(|(key, _)| *key);
        self.report(observer);
    }

    /// What it amounts to so far.
    #[must_use]
    pub fn statistics(&self) -> JoinStatistics {
        let mut statistics = JoinStatistics::default();
        self.joins.iter().for_each(|join| join.count(&mut statistics));
        statistics
    }

    fn report<O: Observer>(&mut self, observer: &mut O) {
        for (key, joined) in self.told.drain(..) {
            match joined {
                Joined::Dhcp(exchange) => exchange.report(|row| observer.record(&key, row)),
                Joined::Dhcpv6(exchange) => exchange.report(|row| observer.record(&key, row)),
                Joined::Http(exchange, connection, answer) => {
                    exchange.report(&connection, answer.as_ref(), |row| observer.record(&key, row));
                }
                Joined::Ssl(handshake, connection, answer) => {
                    handshake
                        .report(&connection, answer.as_ref(), |row| observer.record(&key, row));
                }
                Joined::X509(presented) => presented.report(|row| observer.record(&key, row)),
                Joined::File(file) => file.report(|row| observer.record(&key, row)),
                Joined::Tunnel(row) => observer.record(&key, &row),
            }
        }
    }
}
