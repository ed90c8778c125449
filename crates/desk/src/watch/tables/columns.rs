//! The columns of each table, and the rows of what is known.

use std::collections::{BTreeMap, HashSet};

use super::cell::Cell;
use super::filter::Filter;
use super::{Subject, TableRow};
use crate::watch::data::connections::Seat;
use crate::watch::data::figures::Figures;
use crate::watch::data::row::LogRow;
use crate::watch::data::subjects::{Span, Subjects};
use crate::watch::data::{Data, UNKNOWN_SERVICE};

/// What the row of connections is found by of which no process is known. A process has its number behind its name.
pub(crate) const UNKNOWN_PROCESS: &str = "-";

/// Intervals of a trend.
const TREND: usize = 10;

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// What its figures are of, where the title leaves that open.
    pub(crate) unit: Option<Unit>,
    pub(crate) width: u16,
    pub(crate) is_number: bool,
}

/// What figures are of, in the words of the logs. It stands over the columns that it is about: the first of these texts that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit(pub(crate) &'static [&'static str]);

/// `sent_bytes` and `received_bytes` of `series`.
const WIRE: Unit = Unit(&["bytes on the wire", "on wire", "wire"]);
/// `orig_ip_bytes` and `resp_ip_bytes` of `series`, `series_conn` and `conn`.
const IP: Unit = Unit(&["bytes of IP", "of IP", "IP"]);
/// `network_lost`, `capture_lost` and `unknown_lost` of `series` and `series_conn`, and `network_missed_bytes` and
/// `capture_missed_bytes` of `conn`.
const LOST: Unit = Unit(&["TCP payload lost", "TCP lost"]);
/// `rtt_p50` of `series` and `series_conn`.
const MEDIAN: Unit = Unit(&["median"]);

const fn text(title: &'static str, width: u16) -> Column {
    Column { title, unit: None, width, is_number: false }
}

const fn number(title: &'static str, width: u16) -> Column {
    Column { title, unit: None, width, is_number: true }
}

impl Unit {
    /// The first text, which says most.
    pub(crate) fn in_full(self) -> &'static str {
        self.0.first().copied().unwrap_or_default()
    }
}

impl Column {
    const fn of(self, unit: Unit) -> Self {
        Self { unit: Some(unit), ..self }
    }
}

const PACKETS: Column = number("PACKETS", 8);
const RTT: Column = number("RTT", 7).of(MEDIAN);
const RETX: Column = number("RETX", 6);
const NETWORK: Column = number("NETWORK", 8).of(LOST);
const CAPTURE: Column = number("CAPTURE", 8).of(LOST);
const UNKNOWN: Column = number("UNKNOWN", 8).of(LOST);
const ORIG: Column = number("ORIG", 9).of(IP);
const RESP: Column = number("RESP", 9).of(IP);

/// The first column takes what room is left. Those behind the last one that fits are left out.
const HOSTS: &[Column] =
    &named_columns("HOST", number("SENT", 9).of(WIRE), number("RECEIVED", 9).of(WIRE));

const SERVICES: &[Column] = &named_columns("SERVICE", ORIG, RESP);

/// Those of what `series` has rows of by name, as [`named`] fills them.
const fn named_columns(name: &'static str, sent: Column, received: Column) -> [Column; 12] {
    [
        text(name, 15),
        sent,
        received,
        PACKETS,
        RTT,
        RETX,
        NETWORK,
        CAPTURE,
        UNKNOWN,
        number("NEW CONNS", 9),
        number("FAILURES", 8),
        text("TREND", TREND as u16),
    ]
}

const CONNECTIONS: &[Column] = &[
    text("ORIGINATOR", 22),
    text("RESPONDER", 22),
    text("SERVICE", 8),
    text("STATE", 5),
    number("BYTES", 9).of(IP),
    RTT,
    text("PROTO", 5),
    PACKETS,
    RETX,
    NETWORK,
    CAPTURE,
    text("QUALITY", 10),
    number("DURATION", 8),
    text("UID", 18),
    text("PROCESS", 20),
];

const PROCESSES: &[Column] =
    &[text("PROCESS", 19), number("CONNS", 6), ORIG, RESP, PACKETS, RETX, NETWORK, CAPTURE];

const ROWS: &[Column] = &[text("WHAT", 20), text("TIME", 12), text("LOG", 8)];

/// The columns of a table.
pub(crate) const fn of(subject: &Subject) -> &'static [Column] {
    match subject {
        Subject::Hosts => HOSTS,
        Subject::Services => SERVICES,
        Subject::Connections | Subject::ConnectionsOf(_) => CONNECTIONS,
        Subject::Processes => PROCESSES,
        Subject::Rows(_) => ROWS,
    }
}

/// The place of the column that a table is in order by at first.
pub(crate) fn first_sort(subject: &Subject) -> usize {
    let title = match subject {
        Subject::Hosts => "SENT",
        Subject::Services | Subject::Processes => "RESP",
        Subject::Connections | Subject::ConnectionsOf(_) => "BYTES",
        Subject::Rows(_) => "TIME",
    };
    of(subject).iter().position(|column| column.title == title).unwrap_or(0)
}

/// The rows for which a condition holds, and how many there are without it.
pub(crate) fn rows(
    data: &Data,
    subject: &Subject,
    span: Span,
    filter: Option<&Filter>,
) -> (Vec<TableRow>, usize) {
    match subject {
        Subject::Hosts => named(data, &data.hosts, subject, span, filter),
        Subject::Services => named(data, &data.services, subject, span, filter),
        Subject::Connections => connections(data, span, filter, |_| true),
        Subject::ConnectionsOf(process) => {
            connections(data, span, filter, |seat| seat.process.as_deref() == process.as_deref())
        }
        Subject::Processes => processes(data, span, filter),
        Subject::Rows(uid) => {
            let rows: Vec<_> =
                data.kept.of(uid).iter().enumerate().map(|(at, row)| told(at, row)).collect();
            let all = rows.len();
            (rows, all)
        }
    }
}

fn named(
    data: &Data,
    subjects: &Subjects,
    subject: &Subject,
    span: Span,
    filter: Option<&Filter>,
) -> (Vec<TableRow>, usize) {
    let found = subjects.over(span, data.last());
    let all = found.len();
    let wanted = found.into_iter().filter(|one| {
        let name = Some(&*one.name).filter(|name| *name != UNKNOWN_SERVICE);
        filter.is_none_or(|filter| filter.holds_for(subject, name, &one.figures, one.is_exact))
    });
    let rows = wanted.map(|one| {
        let figures = &one.figures;
        let cells = vec![
            Cell::Text(one.name.to_string()),
            Cell::bytes(figures.sent.bytes.0, one.is_exact),
            Cell::bytes(figures.received.bytes.0, one.is_exact),
            Cell::count(figures.packets(), one.is_exact),
            Cell::duration(figures.rtt.median),
            Cell::count(figures.retransmitted.0, true),
            Cell::bytes(figures.network_lost.0, true),
            Cell::bytes(figures.capture_lost.0, true),
            Cell::bytes(figures.unknown_lost.0, true),
            Cell::count(figures.new_flows.0, true),
            Cell::count(figures.failures.0, true),
            Cell::Trend(subjects.trend(&one.name, TREND, data.last())),
        ];
        TableRow { name: one.name, cells }
    });
    (rows.collect(), all)
}

/// Processes with the sums of their connections, and those of which no process is known as one.
fn processes(data: &Data, span: Span, filter: Option<&Filter>) -> (Vec<TableRow>, usize) {
    let mut sums: BTreeMap<Option<String>, (i64, bool, Figures)> = BTreeMap::new();
    let is_partial = data.connections.is_partial(span, data.last());
    let mut all = HashSet::new();
    for Seat { row, process, figures, is_exact, .. } in data.connections.over(span, data.last()) {
        all.insert(process.clone());
        if filter.is_none_or(|filter| filter.holds(&row)) {
            let sum = sums.entry(process).or_insert_with(|| (0, !is_partial, Figures::default()));
            sum.0 += 1;
            sum.1 &= is_exact;
            sum.2 += &figures;
        }
    }
    let rows = sums.into_iter().map(|(process, (connections, is_exact, figures))| {
        let cells = vec![
            Cell::text(process.as_deref()),
            Cell::count(Some(connections), !is_partial),
            Cell::bytes(figures.sent.bytes.0, is_exact),
            Cell::bytes(figures.received.bytes.0, is_exact),
            Cell::count(figures.packets(), is_exact),
            Cell::count(figures.retransmitted.0, is_exact),
            Cell::bytes(figures.network_lost.0, is_exact),
            Cell::bytes(figures.capture_lost.0, is_exact),
        ];
        TableRow { name: process.as_deref().unwrap_or(UNKNOWN_PROCESS).into(), cells }
    });
    (rows.collect(), all.len())
}

/// The connections that belong here, and meet the condition.
fn connections(
    data: &Data,
    span: Span,
    filter: Option<&Filter>,
    belongs: impl Fn(&Seat) -> bool,
) -> (Vec<TableRow>, usize) {
    let mut seats = data.connections.over(span, data.last());
    seats.retain(belongs);
    let all = seats.len();
    let wanted = |seat: &&Seat| filter.is_none_or(|filter| filter.holds(&seat.row));
    (seats.iter().filter(wanted).filter_map(connection).collect(), all)
}

fn connection(seat: &Seat) -> Option<TableRow> {
    let Seat { row, has_ended, process, figures, is_exact } = seat;
    let state = match (has_ended, row.text("conn_state")) {
        (false, _) => Some("open"),
        (true, state) => state,
    };
    let Figures { rtt, retransmitted, network_lost, capture_lost, .. } = figures;
    let cells = vec![
        Cell::text(end(row, "id.orig_h", "id.orig_p").as_deref()),
        Cell::text(end(row, "id.resp_h", "id.resp_p").as_deref()),
        Cell::text(row.text("service")),
        Cell::text(state),
        Cell::bytes(figures.bytes(), *is_exact),
        Cell::duration(rtt.median),
        Cell::text(row.text("proto")),
        Cell::count(figures.packets(), *is_exact),
        Cell::count(retransmitted.0, true),
        Cell::bytes(network_lost.0, true),
        Cell::bytes(capture_lost.0, true),
        Cell::text(row.text("quality")),
        Cell::duration(row.nanos("duration")),
        Cell::text(row.text("uid")),
        Cell::text(process.as_deref()),
    ];
    Some(TableRow { name: row.text("uid")?.into(), cells })
}

/// One end of a connection.
fn end(row: &LogRow, host: &str, port: &str) -> Option<String> {
    let (host, port) = (row.text(host)?, row.count(port)?);
    Some(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

/// What a row of a log tells besides its connection.
fn told(at: usize, row: &LogRow) -> TableRow {
    const KNOWN: [&str; 7] =
        ["ts", "uid", "uids", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"];
    let parts = row.shown().filter(|(name, _)| !KNOWN.contains(name));
    let parts: Vec<_> = parts.map(|(name, value)| format!("{name}={value}")).collect();
    let cells = vec![
        Cell::Text(parts.join(" ")),
        row.nanos("ts").map_or(Cell::Unknown, Cell::Time),
        Cell::Text(row.log().path.to_owned()),
    ];
    TableRow { name: format!("{at:08}").into(), cells }
}
