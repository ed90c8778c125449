//! Connections: those that go on, as `series_conn` has them, and those that have ended, as `conn` has them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use netsniff_analysis::record::LogType;

use super::figures::{Figures, Known};
use super::row::{LogRow, log_named};
use super::subjects::{Span, Subjects};

/// Connections that are kept.
const MOST: usize = 50_000;
/// Bytes of their rows.
const BYTES: usize = 256 << 20;

/// What identifies a connection, in both logs.
const IDENTITY: [&str; 6] = ["uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "proto"];

/// The connections that were seen last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connections {
    by_interval: Subjects,
    rows: HashMap<Box<str>, Seen>,
    order: VecDeque<Box<str>>,
    /// Bytes of the rows.
    bytes: usize,
    /// How many were given up.
    given_up: u64,
}

/// The last row of a connection.
#[derive(Clone, Debug)]
struct Seen {
    /// A row of `conn`, or while it is open what of it is known.
    row: Arc<LogRow>,
    has_ended: bool,
}

/// A connection with its figures.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    /// As a row of `conn`.
    pub(crate) row: Arc<LogRow>,
    pub(crate) has_ended: bool,
    pub(crate) figures: Figures,
    pub(crate) is_exact: bool,
}

impl Seen {
    fn size(&self, uid: &str) -> usize {
        2 * uid.len() + self.row.size()
    }
}

impl Connections {
    /// Ends the rows that belong together.
    pub(crate) fn end_batch(&mut self) {
        self.by_interval.end_batch();
    }

    /// Takes a row of `series_conn`.
    pub(crate) fn take_interval(&mut self, number: i64, row: &LogRow) {
        let (sent, received) = (["orig_pkts", "orig_ip_bytes"], ["resp_pkts", "resp_ip_bytes"]);
        let figures = Figures::of(row, sent, received);
        let Some(uid) = row.text("uid") else {
            return self.by_interval.take(number, None, row, &figures);
        };
        self.by_interval.take(number, Some(uid), row, &figures);
        if self.rows.get(uid).is_none_or(|seen| !seen.has_ended)
            && let Some(conn) = conn_log()
        {
            let cells = IDENTITY.iter().chain(&["service"]);
            let cells =
                cells.filter_map(|name| Some(((*name).to_owned(), row.cell(name)?.clone())));
            let row = Arc::new(LogRow::of(conn, cells.collect()));
            self.put(uid, Seen { row, has_ended: false });
        }
    }

    /// Takes a row of `conn`.
    pub(crate) fn take_end(&mut self, row: LogRow) {
        if let Some(uid) = row.text("uid").map(Box::<str>::from) {
            self.put(&uid, Seen { row: Arc::new(row), has_ended: true });
        }
    }

    fn put(&mut self, uid: &str, seen: Seen) {
        self.bytes += seen.size(uid);
        match self.rows.insert(uid.into(), seen) {
            Some(before) => self.bytes -= before.size(uid),
            None => self.order.push_back(uid.into()),
        }
        while self.order.len() > MOST || self.bytes > BYTES {
            let Some(first) = self.order.pop_front() else { return };
            self.bytes -= self.rows.remove(&first).map_or(0, |seen| seen.size(&first));
            self.given_up += 1;
        }
    }

    /// The connections of the last intervals up to number `last`. Of all time those that have ended have the figures of
    /// their row in `conn`.
    pub(crate) fn over(&self, span: Span, last: i64) -> Vec<Seat> {
        let mut seats = Vec::new();
        let mut told = HashSet::new();
        for subject in self.by_interval.over(span, last) {
            let Some(seen) = self.rows.get(&subject.name) else { continue };
            let (mut figures, mut is_exact) = (subject.figures, subject.is_exact);
            if span == Span::Whole && seen.has_ended {
                figures = ended(&seen.row, figures);
                is_exact = true;
            }
            let Seen { row, has_ended } = seen.clone();
            seats.push(Seat { row, has_ended, figures, is_exact });
            told.insert(subject.name);
        }
        if span == Span::Whole {
            let others = self.rows.iter().filter(|(uid, _)| !told.contains(*uid));
            seats.extend(others.map(|(_, Seen { row, has_ended })| Seat {
                figures: ended(row, Figures::default().partial()),
                row: Arc::clone(row),
                has_ended: *has_ended,
                is_exact: true,
            }));
        }
        seats
    }

    /// How many connections were given up for later ones.
    pub(crate) const fn given_up(&self) -> u64 {
        self.given_up
    }

    /// The row of a connection.
    pub(crate) fn row(&self, uid: &str) -> Option<&LogRow> {
        self.rows.get(uid).map(|seen| &*seen.row)
    }
}

/// The log whose rows are connections.
pub(crate) fn conn_log() -> Option<&'static LogType> {
    log_named("conn")
}

/// The figures of a connection that has ended: packets and bytes are those of its row.
fn ended(row: &LogRow, mut figures: Figures) -> Figures {
    figures.sent.packets = Known(row.int("orig_pkts"));
    figures.sent.bytes = Known(row.int("orig_ip_bytes"));
    figures.received.packets = Known(row.int("resp_pkts"));
    figures.received.bytes = Known(row.int("resp_ip_bytes"));
    figures.network_lost = Known(row.int("network_missed_bytes"));
    figures.capture_lost = Known(row.int("capture_missed_bytes"));
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_the_last_rows_are_kept() {
        let mut connections = Connections::default();
        let long = "x".repeat(1 << 20);
        for at in 0..300 {
            let row = format!("{{\"_path\":\"conn\",\"uid\":\"C{at}\",\"service\":\"{long}\"}}");
            connections.take_end(LogRow::read(&row).unwrap());
        }
        assert!(connections.bytes <= BYTES && connections.rows.len() > 200);
        let size: usize = connections.rows.iter().map(|(uid, seen)| seen.size(uid)).sum();
        assert_eq!((size, connections.order.len()), (connections.bytes, connections.rows.len()));
        assert!(connections.given_up() > 40 && connections.row("C299").is_some());
    }
}
