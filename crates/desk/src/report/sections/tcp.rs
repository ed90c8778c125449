//! How well TCP goes, by server.

use netsniff_analysis::record::Unit;

use super::{About, Extent, Gather, endpoint, ranked};
use crate::logs::Row;
use crate::page::sum::{Sum, Times};
use crate::page::table::{Cell, Column, Table};
use crate::page::{Part, Section};
use crate::report::top::{Tally, Top};

/// Servers, by address and port.
pub(super) struct Servers {
    rows: usize,
    servers: Top<String, Server>,
}

/// What is known of a server.
#[derive(Debug, Default)]
struct Server {
    connections: u64,
    unanswered: u64,
    rejected: u64,
    handshake: Times,
    rtt: Times,
    data_segments: Sum,
    sent_again: Sum,
    /// Bytes lost between tap and server, between tap and clients, and by the capture.
    lost: [Sum; 3],
    /// Windows of 0 that servers and clients told.
    zero_windows: [Sum; 2],
}

impl Tally for Server {
    fn merge(&mut self, other: Self) {
        self.connections += other.connections;
        self.unanswered += other.unanswered;
        self.rejected += other.rejected;
        self.handshake.merge(&other.handshake);
        self.rtt.merge(&other.rtt);
        self.data_segments.merge(other.data_segments);
        self.sent_again.merge(other.sent_again);
        for (one, other) in self.lost.iter_mut().zip(other.lost) {
            one.merge(other);
        }
        for (one, other) in self.zero_windows.iter_mut().zip(other.zero_windows) {
            one.merge(other);
        }
    }

    /// What hurts: attempts that failed, segments that were sent again, and windows of 0.
    fn rank(&self) -> u128 {
        let failed = u128::from(self.unanswered) + u128::from(self.rejected);
        let [server, client] = self.zero_windows;
        failed + self.sent_again.rank() + server.rank() + client.rank()
    }
}

impl Servers {
    pub(super) fn new(extent: Extent) -> Self {
        Self { rows: extent.rows, servers: Top::default() }
    }

    fn connection(&mut self, row: &Row<'_>, name: String) {
        let server = self.servers.of(name);
        server.connections += 1;
        match row.text("conn_state").as_deref() {
            Some("S0") => server.unanswered += 1,
            Some("REJ") => server.rejected += 1,
            _ => {}
        }
        server.lost[2].add(row.count("capture_missed_bytes"));
    }

    fn metrics(&mut self, row: &Row<'_>, name: String) {
        let server = self.servers.of(name);
        server.handshake.add(row.nanos("resp_handshake_rtt"));
        for end in ["orig_rtt_min", "orig_rtt_max"] {
            server.rtt.add(row.nanos(end));
        }
        for (side, other) in [("orig", "resp"), ("resp", "orig")] {
            let count = |name: &str| row.count(&format!("{side}_{name}"));
            server.data_segments.add(count("data_segments"));
            for kind in ["retx_rto", "retx_fast", "retx_spurious"] {
                server.sent_again.add(count(kind));
            }
            // What the responder sent and lost before the tap was lost on the server's side, and so was what the
            // originator sent and lost behind it.
            let place = usize::from(side == "orig");
            server.lost[place].add(count("lost_before"));
            server.lost[1 - place].add(count("lost_behind"));
            server.zero_windows[usize::from(other == "resp")].add(count("zero_windows"));
        }
    }

    fn table() -> Table {
        let number = Column::number;
        Table {
            id: "tcp".to_owned(),
            caption: "TCP servers, what hurts most first: attempts that failed, segments sent again, and windows of 0, \
                      counted together"
                .to_owned(),
            columns: vec![
                Column::text("server", "address and port of the responder"),
                number("connections", "rows of conn with TCP"),
                number("unanswered", "attempts without an answer: conn_state S0"),
                number("rejected", "attempts that a reset rejected: conn_state REJ"),
                number("handshake", "mean time from SYN to SYN-ACK, between tap and server: resp_handshake_rtt"),
                number("shortest RTT", "from data to its acknowledgement by the server: the least orig_rtt_min"),
                number("longest RTT", "the most orig_rtt_max"),
                number("data segments", "of both sides, those sent again included"),
                number("sent again", "retx_rto, retx_fast and retx_spurious of both sides"),
                number("lost at server", "bytes that the network lost between tap and server: resp_lost_before and orig_lost_behind"),
                number("lost at clients", "bytes that the network lost between tap and clients: orig_lost_before and resp_lost_behind"),
                number("lost by capture", "bytes that only the capture lost: capture_missed_bytes of conn"),
                number("server full", "windows of 0 that the server told: resp_zero_windows"),
                number("client full", "windows of 0 that clients told: orig_zero_windows"),
            ],
            ..Table::default()
        }
    }
}

impl Gather for Servers {
    fn logs(&self) -> &'static [&'static str] {
        &["conn", "tcp"]
    }

    fn row(&mut self, log: &str, row: &Row<'_>) {
        if log == "conn" && row.text("proto").as_deref() != Some("tcp") {
            return;
        }
        let server = endpoint(row, "id.resp_h", "id.resp_p");
        let server = server.unwrap_or_else(|| "not told".to_owned());
        match log {
            "conn" => self.connection(row, server),
            _ => self.metrics(row, server),
        }
    }

    fn section(self: Box<Self>, about: &About<'_>) -> Option<Section> {
        let servers = self.servers.ranked(self.rows);
        if servers.shown.is_empty() {
            return None;
        }
        let mut table = Self::table();
        if about.reading.rows("tcp") == 0 {
            table.notes.push(
                "There is no log tcp: nobody measured, and what only it has is not set.".to_owned(),
            );
        }
        let part = ranked(table, &servers, ("server", "servers"), |name, server| {
            let [at_server, at_client, by_capture] = server.lost;
            let [server_full, client_full] = server.zero_windows;
            vec![
                Cell::text(name.map_or("", String::as_str)),
                Cell::count(server.connections),
                Cell::count(server.unanswered).alarming("warn"),
                Cell::count(server.rejected).alarming("warn"),
                Cell::mean(&server.handshake),
                Cell::span(server.rtt.least()),
                Cell::span(server.rtt.most()),
                measured(&server.data_segments, Unit::Segments),
                measured(&server.sent_again, Unit::Segments).alarming("warn"),
                measured(&at_server, Unit::Bytes).alarming("warn"),
                measured(&at_client, Unit::Bytes).alarming("warn"),
                Cell::sum(&by_capture, Unit::Bytes).alarming("bad"),
                measured(&server_full, Unit::Segments).alarming("warn"),
                measured(&client_full, Unit::Segments).alarming("warn"),
            ]
        });
        Some(Section {
            id: "tcp",
            title: "How well TCP goes".to_owned(),
            lead: Vec::new(),
            parts: vec![Part::Table(part)],
        })
    }
}

/// A sum over rows of `tcp`: where there are none, nobody measured.
fn measured(sum: &Sum, unit: Unit) -> Cell {
    if sum.rows() == 0 { Cell::unset("it has no row in tcp") } else { Cell::sum(sum, unit) }
}
