//! How a batch of rows is sent, and what the receiver says.

mod http;
mod ipfix;
mod kafka;
mod lines;
mod stream;
mod syslog;
mod tls;

use core::fmt;
use std::io::Write as _;
use std::time::Duration;

use anyhow::anyhow;
use netsniff_console::calendar::Date;
use netsniff_console::printable::printable;
use netsniff_console::quantity::at_least_one;

use netsniff_packet::Timestamp;

use crate::Address;
use crate::identity::Row;
use crate::spool::BatchBounds;

/// What a receiver says of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It took all of them.
    Accepted,
    /// It says of each of them what became of it, in their order.
    Each(Vec<RowAnswer>),
    /// It did not take them, or said nothing: they are sent again.
    Later {
        /// What went wrong.
        why: String,
        /// How long it asks to wait.
        asked: Option<Duration>,
    },
    /// It will never take them together: they are sent in parts, and a single one is refused.
    Unfit {
        /// What it says.
        why: String,
    },
}

/// What a receiver says of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowAnswer {
    /// It took it, now or before.
    Accepted,
    /// It will never take it.
    Refused(String),
    /// It is sent again.
    Later(String),
}

/// Notes what became of the row at a place.
fn set(answers: &mut [RowAnswer], at: usize, answer: RowAnswer) {
    if let Some(of) = answers.get_mut(at) {
        *of = answer;
    }
}

impl Answer {
    /// They are sent again.
    pub(crate) fn later(why: impl fmt::Display) -> Self {
        Self::Later { why: said(&why.to_string()), asked: None }
    }
}

/// The begin of what a receiver says, as text that steers no terminal.
pub(crate) fn said(text: &str) -> String {
    const LONGEST: usize = 300;
    let line: Vec<_> = text.split_whitespace().collect();
    let short: String = line.join(" ").chars().take(LONGEST).collect();
    printable(&short).to_string()
}

/// Appends a time of RFC 3339 with so many decimals of a second.
fn stamp(time: Timestamp, decimals: u32, out: &mut Vec<u8>) {
    let Date { year, month, day, hour, minute, second, .. } = Date::of(time);
    let rest = time.nanos().rem_euclid(1_000_000_000) / 10_i64.pow(9 - decimals.min(9));
    let digits = decimals as usize;
    // Writing to a `Vec` cannot fail.
    let _ = write!(
        out,
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{rest:0digits$}Z"
    );
}

/// Takes rows.
pub trait Receiver: Send {
    /// Sends rows, of which there is at least one, and waits for what the receiver says.
    fn send(&mut self, rows: &[Row<'_>]) -> Answer;

    /// The logs whose rows it has a form for; all where there is no list.
    fn logs(&self) -> Option<&'static [&'static str]> {
        None
    }
}

/// A receiver that can be sent to: its name is found, its secrets are read.
pub struct Opened {
    /// Sends.
    pub receiver: Box<dyn Receiver>,
    /// The ports of TCP that are connected to.
    pub ports: Vec<u16>,
    /// How much is sent at once.
    pub bounds: BatchBounds,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("ports", &self.ports).finish_non_exhaustive()
    }
}

/// A way to send.
#[derive(Debug)]
pub struct Way {
    /// What stands before `://`.
    pub scheme: &'static str,
    /// What it is, in a sentence.
    pub doc: &'static str,
    open: fn(Address) -> anyhow::Result<Opened>,
}

// THE list: a way is a file here and an entry below.
/// Every way to send.
pub const WAYS: &[Way] = &[
    Way { scheme: "http", doc: "Requests of HTTP.", open: http::open },
    Way { scheme: "https", doc: "Requests of HTTP in TLS.", open: http::open },
    Way { scheme: "ipfix", doc: "Messages of IPFIX in a connection.", open: ipfix::open },
    Way { scheme: "ipfix+tls", doc: "Messages of IPFIX in TLS.", open: ipfix::open },
    Way { scheme: "ipfix+udp", doc: "Messages of IPFIX in datagrams of UDP.", open: ipfix::open },
    Way { scheme: "kafka", doc: "Records of Kafka.", open: kafka::open },
    Way { scheme: "kafka+tls", doc: "Records of Kafka in TLS.", open: kafka::open },
    Way {
        scheme: "syslog",
        doc: "Messages of syslog, each in a datagram of UDP.",
        open: syslog::open,
    },
    Way { scheme: "syslog+tcp", doc: "Messages of syslog in a connection.", open: syslog::open },
    Way { scheme: "syslog+tls", doc: "Messages of syslog in TLS.", open: syslog::open },
    Way { scheme: "tcp", doc: "Lines of JSON in a connection.", open: lines::open },
    Way { scheme: "tls", doc: "Lines of JSON in TLS.", open: lines::open },
    Way { scheme: "unix", doc: "Lines of JSON in a local socket.", open: lines::open },
];

/// Finds the receiver of an address, and reads what is needed to send to it.
///
/// # Errors
///
/// Where there is no such way, or the address makes no sense.
pub fn open(mut address: Address) -> anyhow::Result<Opened> {
    let way = WAYS.iter().find(|way| way.scheme == address.scheme);
    let way = way.ok_or_else(|| {
        let schemes: Vec<_> = WAYS.iter().map(|way| way.scheme).collect();
        anyhow!("{:?} is no way to send; there are {}", address.scheme, schemes.join(", "))
    })?;
    let batch = address.take("batch").map(|text| at_least_one(&text));
    let batch = batch.transpose().map_err(|why| anyhow!("batch: {why}"))?;
    let mut opened = (way.open)(address)?;
    opened.bounds.rows = batch.unwrap_or(opened.bounds.rows);
    Ok(opened)
}
