//! Who talks, and to whom.

use netsniff_analysis::record::Unit;

use super::{About, Extent, Gather, ranked};
use crate::logs::Row;
use crate::page::matrix::Matrix;
use crate::page::sum::Sum;
use crate::page::table::{Cell, Column, Table};
use crate::page::{Part, Section};
use crate::report::top::{Ranked, Tally, Top};

/// Hosts and pairs of them.
pub(super) struct Hosts {
    rows: usize,
    hosts: Top<String, Host>,
    /// Originator and responder.
    pairs: Top<(String, String), Pair>,
}

/// What is known of a host.
#[derive(Debug, Default)]
struct Host {
    begun: u64,
    answered: u64,
    sent: Sum,
    received: Sum,
}

/// What is known of two.
#[derive(Debug, Default)]
struct Pair {
    connections: u64,
    bytes: Sum,
}

impl Tally for Host {
    fn merge(&mut self, other: Self) {
        self.begun += other.begun;
        self.answered += other.answered;
        self.sent.merge(other.sent);
        self.received.merge(other.received);
    }

    fn rank(&self) -> u128 {
        self.sent.rank() + self.received.rank()
    }
}

impl Tally for Pair {
    fn merge(&mut self, other: Self) {
        self.connections += other.connections;
        self.bytes.merge(other.bytes);
    }

    fn rank(&self) -> u128 {
        self.bytes.rank()
    }
}

impl Hosts {
    pub(super) fn new(extent: Extent) -> Self {
        Self { rows: extent.rows, hosts: Top::default(), pairs: Top::default() }
    }

    fn hosts(ranked_hosts: &Ranked<String, Host>) -> Table {
        let table = Table {
            id: "hosts".to_owned(),
            caption: "Hosts, the most bytes first".to_owned(),
            columns: vec![
                Column::text("host", "its address"),
                Column::number("begun", "connections of which it is the originator"),
                Column::number("answered", "connections of which it is the responder"),
                Column::number("sent", "bytes of IP that it sent"),
                Column::number("received", "bytes of IP that it was sent"),
            ],
            notes: vec!["Each connection counts for both of its hosts.".to_owned()],
            ..Table::default()
        };
        ranked(table, ranked_hosts, ("host", "hosts"), |name, host| {
            vec![
                Cell::text(name.map_or("", String::as_str)),
                Cell::count(host.begun),
                Cell::count(host.answered),
                Cell::sum(&host.sent, Unit::Bytes),
                Cell::sum(&host.received, Unit::Bytes),
            ]
        })
    }
}

impl Gather for Hosts {
    fn logs(&self) -> &'static [&'static str] {
        &["conn"]
    }

    fn row(&mut self, _: &str, row: &Row<'_>) {
        let told = |host: &str| row.text(host).map_or_else(|| "not told".to_owned(), Into::into);
        let (from, to) = (told("id.orig_h"), told("id.resp_h"));
        let (sent, received) = (row.count("orig_ip_bytes"), row.count("resp_ip_bytes"));
        let host = self.hosts.of(from.clone());
        host.begun += 1;
        host.sent.add(sent);
        host.received.add(received);
        let host = self.hosts.of(to.clone());
        host.answered += 1;
        host.sent.add(received);
        host.received.add(sent);
        let pair = self.pairs.of((from, to));
        pair.connections += 1;
        pair.bytes.add(sent);
        pair.bytes.add(received);
    }

    fn section(self: Box<Self>, _: &About<'_>) -> Option<Section> {
        let hosts = self.hosts.ranked(self.rows);
        if hosts.shown.is_empty() {
            return None;
        }
        let all = self.pairs.ranked(usize::MAX);
        let pairs =
            all.shown.iter().map(|((from, to), pair)| ((from.as_str(), to.as_str()), pair.bytes));
        let mut matrix = Matrix::new(&pairs.collect::<Vec<_>>(), all.rest.bytes);
        matrix.caption = "Bytes between originators (rows) and responders (columns), in both directions. Each shade is ten \
                          times the one before"
            .to_owned();
        let mut parts =
            vec![Part::Table(Self::hosts(&hosts).with_bars(3).with_bars(4)), Part::Matrix(matrix)];
        if all.is_partial {
            let said = "There are more pairs of hosts than are told apart: what is not known of whom is in the last row and column.";
            parts.push(Part::Text(said.to_owned()));
        }
        Some(Section {
            id: "hosts",
            title: "Who talks to whom".to_owned(),
            lead: Vec::new(),
            parts,
        })
    }
}
