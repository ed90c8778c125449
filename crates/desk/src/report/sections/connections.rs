//! The largest connections, and all others counted.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use netsniff_analysis::record::Unit;
use netsniff_console::number::exact;

use super::{About, Gather, endpoint};
use crate::logs::Row;
use crate::page::sum::Sum;
use crate::page::table::{Cell, Column, Table};
use crate::page::{Part, Section};

/// The connections with the most bytes.
pub(in crate::report) struct Connections {
    most: usize,
    /// By bytes, the most first; then by time and name, so that the same ones are told of the same logs in any order.
    kept: BTreeMap<(Reverse<u128>, Option<i64>, String, u64), Connection>,
    /// Rows so far.
    rows: u64,
    others: Tally,
}

/// All that have no row.
#[derive(Debug, Default)]
struct Tally {
    connections: u64,
    sent: Sum,
    received: Sum,
}

struct Connection {
    sent: Option<u64>,
    received: Option<u64>,
    cells: Vec<Cell>,
}

impl Connections {
    /// Gathers so many.
    pub(in crate::report) fn new(most: usize) -> Self {
        Self { most, kept: BTreeMap::new(), rows: 0, others: Tally::default() }
    }
}

impl Gather for Connections {
    fn logs(&self) -> &'static [&'static str] {
        &["conn"]
    }

    fn row(&mut self, _: &str, row: &Row<'_>) {
        let (sent, received) = (row.count("orig_ip_bytes"), row.count("resp_ip_bytes"));
        let bytes = u128::from(sent.unwrap_or(0)) + u128::from(received.unwrap_or(0));
        let ts = row.nanos("ts");
        let uid = row.text("uid").unwrap_or_default();
        self.rows += 1;
        let key = (Reverse(bytes), ts, uid.clone().into_owned(), self.rows);
        let is_full = self.kept.len() >= self.most;
        if is_full && self.kept.last_key_value().is_none_or(|(last, _)| *last < key) {
            self.others.connections += 1;
            self.others.sent.add(sent);
            self.others.received.add(received);
            return;
        }
        if is_full && let Some((_, least)) = self.kept.pop_last() {
            self.others.connections += 1;
            self.others.sent.add(least.sent);
            self.others.received.add(least.received);
        }
        let quality = row.text("quality");
        let look = match quality.as_deref() {
            Some("touched" | "suspect") => Some("warn"),
            _ => None,
        };
        let cells = vec![
            Cell::time(ts),
            Cell::maybe(endpoint(row, "id.orig_h", "id.orig_p")),
            Cell::maybe(endpoint(row, "id.resp_h", "id.resp_p")),
            Cell::maybe(row.text("proto")),
            Cell::maybe(row.text("service")),
            Cell::maybe(row.text("conn_state")),
            Cell::span(row.nanos("duration")),
            Cell::of(sent, Unit::Bytes),
            Cell::of(received, Unit::Bytes),
            Cell::maybe(quality).looking(look),
            Cell::maybe(Some(uid).filter(|uid| !uid.is_empty())),
        ];
        self.kept.insert(key, Connection { sent, received, cells });
    }

    fn section(self: Box<Self>, _: &About<'_>) -> Option<Section> {
        if self.rows == 0 {
            return None;
        }
        let columns = vec![
            Column::text("time", "time of the first packet, UTC"),
            Column::text("originator", "who began it"),
            Column::text("responder", "who was asked"),
            Column::text("proto", "transport protocol"),
            Column::text("service", "what the content showed"),
            Column::text("state", "how it began and ended, in Zeek's words"),
            Column::number("duration", "from the first packet to the last"),
            Column::number("sent", "bytes of IP that the originator sent"),
            Column::number("received", "bytes of IP that the responder sent"),
            Column::text("quality", "whether the capture lost anything of it"),
            Column::text("uid", "its identifier in every log"),
        ];
        let shown = self.kept.len();
        let mut table = Table {
            id: "connections".to_owned(),
            caption: "Connections, the most bytes first".to_owned(),
            columns,
            rows: self.kept.into_values().map(|it| it.cells).collect(),
            is_searched: true,
            ..Table::default()
        };
        if self.others.connections > 0 {
            let said = format!("{} other connections", exact(self.others.connections.into()));
            let mut foot = vec![Cell::text(said)];
            foot.extend((0..6).map(|_| Cell::default()));
            foot.push(Cell::sum(&self.others.sent, Unit::Bytes));
            foot.push(Cell::sum(&self.others.received, Unit::Bytes));
            foot.extend((0..2).map(|_| Cell::default()));
            table.foot.push(foot);
        }
        let lead = format!(
            "{} of {} connections, those with the most bytes.",
            exact(shown as i128),
            exact(self.rows.into())
        );
        Some(Section {
            id: "connections",
            title: "Connections".to_owned(),
            lead: vec![lead],
            parts: vec![Part::Table(table)],
        })
    }
}
