//! Connections: those that go on, as `series_conn` has them, and those that have ended, as `conn` has them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use netsniff_analysis::record::LogType;

use super::figures::{Figures, Known};
use super::row::{LogRow, log_named};
use super::sockets::{Ends, Owners, SocketTable};
use super::subjects::{Span, Subjects};

/// Connections that are kept.
const MOST: usize = 50_000;
/// Bytes of their rows.
const BYTES: usize = 256 << 20;

/// What is known of a connection before it ends, by the names that both logs have for it.
const KNOWN_WHILE_OPEN: [&str; 7] =
    ["uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "proto", "service"];

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
    /// Whether sockets were looked at, and whether there are processes that may not be.
    hides_processes: Option<bool>,
}

/// The last row of a connection.
#[derive(Clone, Debug)]
struct Seen {
    /// A row of `conn`, or while it is open what of it is known.
    row: Arc<LogRow>,
    has_ended: bool,
    /// The processes that had its sockets while it was open.
    owners: Owners,
}

/// A connection with its figures.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    /// As a row of `conn`.
    pub(crate) row: Arc<LogRow>,
    pub(crate) has_ended: bool,
    /// The process of this host that had its socket, where that was seen, or all that had.
    pub(crate) process: Option<String>,
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
            let known = |name| KNOWN_WHILE_OPEN.contains(&name).then(|| row.text(name)).flatten();
            let row = Arc::new(LogRow::with(conn, |name| known(name).map(Cow::Borrowed)));
            self.put(uid, Seen { row, has_ended: false, owners: Owners::default() });
        }
    }

    /// Takes a row of `conn`.
    pub(crate) fn take_end(&mut self, row: Arc<LogRow>) {
        if let Some(uid) = row.text("uid").map(Box::<str>::from) {
            self.put(&uid, Seen { row, has_ended: true, owners: Owners::default() });
        }
    }

    /// Takes who has which sockets now. Of several connections that go on between the same ends, all but one have ended
    /// without that anybody knows yet: none of them gets a process.
    pub(crate) fn take_sockets(&mut self, table: &SocketTable) {
        self.hides_processes = Some(table.hides_processes);
        let mut open: HashMap<Ends, Vec<&mut Seen>> = HashMap::new();
        for seen in self.rows.values_mut().filter(|seen| !seen.has_ended) {
            if let Some(ends) = Ends::of(&seen.row).filter(|ends| table.owners.contains_key(ends)) {
                open.entry(ends).or_default().push(seen);
            }
        }
        for (ends, seen) in &mut open {
            if let ([seen], Some(now)) = (seen.as_mut_slice(), table.owners.get(ends)) {
                seen.owners.add_all(now);
            }
        }
    }

    /// Whether there are processes that may not be looked at; `None` where nobody looked.
    pub(crate) const fn hides_processes(&self) -> Option<bool> {
        self.hides_processes
    }

    /// Whether connections had something in the last intervals up to number `last` that is in no row of their own, or that
    /// was given up.
    pub(crate) fn is_partial(&self, span: Span, last: i64) -> bool {
        self.given_up > 0 || self.by_interval.has_rests(span, last)
    }

    fn put(&mut self, uid: &str, mut seen: Seen) {
        if let Some(before) = self.rows.get_mut(uid) {
            seen.owners = std::mem::take(&mut before.owners);
        }
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
            let Seen { row, has_ended, owners } = seen;
            let (row, process) = (Arc::clone(row), owners.told());
            seats.push(Seat { row, has_ended: *has_ended, process, figures, is_exact });
            told.insert(subject.name);
        }
        if span == Span::Whole {
            let others = self.rows.iter().filter(|(uid, _)| !told.contains(*uid));
            seats.extend(others.map(|(_, Seen { row, has_ended, owners })| Seat {
                figures: ended(row, Figures::default().partial()),
                row: Arc::clone(row),
                has_ended: *has_ended,
                process: owners.told(),
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

    fn row(log: &str, uid: &str, port: u16) -> LogRow {
        LogRow::read(&format!(
            "{{\"_path\":\"{log}\",\"uid\":\"{uid}\",\"proto\":\"tcp\",\"id.orig_h\":\"192.0.2.1\",\
             \"id.orig_p\":{port},\"id.resp_h\":\"192.0.2.2\",\"id.resp_p\":80}}"
        ))
        .unwrap()
    }

    /// Who has the socket from that port on.
    fn table(port: u16, owner: Option<&str>) -> SocketTable {
        let ends = ["192.0.2.2:80".to_owned(), format!("192.0.2.1:{port}")];
        let [local, remote] = ends.map(|end| end.parse().unwrap());
        let mut owners = Owners::default();
        owner.iter().for_each(|owner| owners.add(&Arc::from(*owner)));
        let owners = [(Ends::new(true, local, remote), owners)].into();
        SocketTable { owners, hides_processes: false }
    }

    fn process(connections: &Connections, uid: &str) -> Option<String> {
        let seats = connections.over(Span::Whole, 0);
        let seat = seats.iter().find(|seat| seat.row.text("uid") == Some(uid)).unwrap();
        seat.process.clone()
    }

    #[test]
    fn a_process_stays_with_the_connection_during_which_it_was_seen() {
        let mut connections = Connections::default();
        assert_eq!(connections.hides_processes(), None);
        connections.take_interval(0, &row("series_conn", "C1", 4000));
        connections.take_sockets(&table(4001, Some("other 7")));
        connections.take_sockets(&table(4000, None));
        assert_eq!(process(&connections, "C1"), None);
        connections.take_sockets(&table(4000, Some("curl 8")));
        connections.take_interval(1, &row("series_conn", "C1", 4000));
        connections.take_end(row("conn", "C1", 4000).into());
        // The port is used again by somebody else: each has its own, and both have the one that was there first.
        connections.take_interval(2, &row("series_conn", "C2", 4000));
        connections.take_sockets(&table(4000, Some("wget 9")));
        let of = |uid: &str| process(&connections, uid);
        assert_eq!((of("C1").unwrap(), of("C2").unwrap()), ("curl 8".into(), "wget 9".into()));
        connections.take_sockets(&table(4000, Some("late 10")));
        assert_eq!(process(&connections, "C2").unwrap(), "late 10, wget 9");
    }

    #[test]
    fn of_two_connections_between_the_same_ends_none_gets_a_process() {
        let mut connections = Connections::default();
        connections.take_interval(0, &row("series_conn", "C1", 4000));
        connections.take_interval(0, &row("series_conn", "C2", 4000));
        connections.take_sockets(&table(4000, Some("curl 8")));
        assert_eq!((process(&connections, "C1"), process(&connections, "C2")), (None, None));
        connections.take_end(row("conn", "C1", 4000).into());
        connections.take_sockets(&table(4000, Some("curl 8")));
        assert_eq!(process(&connections, "C1"), None);
        assert_eq!(process(&connections, "C2").unwrap(), "curl 8");
    }

    #[test]
    fn memory_is_bounded_and_the_last_rows_are_kept() {
        let mut connections = Connections::default();
        let long = "x".repeat(1_000_000);
        for at in 0..320 {
            let row = format!("{{\"_path\":\"conn\",\"uid\":\"C{at}\",\"service\":\"{long}\"}}");
            connections.take_end(LogRow::read(&row).unwrap().into());
        }
        assert!(connections.bytes <= BYTES && connections.rows.len() > 200);
        let size: usize = connections.rows.iter().map(|(uid, seen)| seen.size(uid)).sum();
        assert_eq!((size, connections.order.len()), (connections.bytes, connections.rows.len()));
        assert!(connections.given_up() > 40 && connections.row("C319").is_some());
    }
}
