//! What packets and sessions showed besides the flows themselves, on its way to the logs.

use netsniff_packet::Timestamp;

use super::{FlowTracker, Lookup, packet_key};
use crate::flow::history::UNKNOWN;
use crate::flow::report::proto;
use crate::flow::tcp::TcpConnection;
use crate::flow::{Flow, TransportState};
use crate::key::Side;
use crate::key::uid::Uid;
use crate::log::weird::Weird;
use crate::protocol::Finding;
use crate::record::{Connection, Observer, Port, Proto, SortKey};
use crate::weird::Oddity;

/// Findings that are handed over together: what makes rows of them stays in the first cache.
const TOGETHER: usize = 64;

/// What a session found, with what tells its flow and its place.
#[derive(Debug)]
pub(super) struct Report {
    connection: Connection,
    key: SortKey,
    finding: Finding,
}

impl FlowTracker {
    /// Tells what a datagram of the flow at `place` showed.
    #[cold]
    pub(super) fn report_findings<O: Observer>(
        &mut self,
        lookup: &Lookup<'_>,
        place: u32,
        observer: &mut O,
    ) {
        let unit = lookup.unit;
        self.note_beyond(place);
        if !self.weirds.is_empty() {
            self.count_oddities(lookup.side, place);
        }
        let Some(flow) = self.table.flow(place) else { return };
        let mut key = packet_key(unit, flow);
        let connection = flow.connection(key.uid);
        self.tell_failures(place, &key, observer);
        let transport = match connection.proto {
            Proto::Tcp => Some("TCP"),
            Proto::Udp => Some("UDP"),
            Proto::Icmp => Some("ICMP"),
            Proto::Unknown => None,
        };
        for oddity in self.weirds.drain() {
            key.number += 1;
            report_oddity(&connection, unit.time, &oddity, transport, &key, observer);
        }
        self.talking.expect(&mut self.findings, &connection, unit.now, &self.limits);
        self.collect(&connection, unit.time, key, observer);
        if self.reports.len() >= TOGETHER {
            self.hand_over(observer);
        }
    }

    /// Tells the oddities that sessions found at `time`, numbered behind `key`, and collects the rest.
    pub(super) fn collect<O: Observer>(
        &mut self,
        connection: &Connection,
        time: Timestamp,
        mut key: SortKey,
        observer: &mut O,
    ) {
        let Self { findings, statistics, reports, .. } = self;
        statistics.failed_sessions += core::mem::take(&mut findings.panics);
        for (oddity, analyzer) in findings.drain_oddities() {
            statistics.weird(oddity.name);
            key.number += 1;
            report_oddity(connection, time, &oddity, Some(analyzer), &key, observer);
        }
        for finding in findings.records.drain(..) {
            key.number += 1;
            reports.push(Report { connection: *connection, key, finding });
        }
    }

    /// Hands over what was collected.
    pub(super) fn hand_over<O: Observer>(&mut self, observer: &mut O) {
        for Report { connection, key, finding } in self.reports.drain(..) {
            finding.report(&connection, &key, observer);
        }
    }

    /// Counts the oddities of a packet, and leaves those that this side of its flow did not show before.
    fn count_oddities(&mut self, side: Side, place: u32) {
        for oddity in self.weirds.iter() {
            self.statistics.weird(oddity.name);
        }
        let Some(flow) = self.table.flow_mut(place) else { return };
        if flow.attached.is_none() && matches!(flow.exchange, TransportState::Held(_)) {
            // Each is told once; this is noted where there is more of the flow.
            return;
        }
        let before = flow.attached_bytes();
        flow.attached.get_or_insert_default().reported[side as usize].filter(&mut self.weirds);
        let grown = flow.attached_bytes() - before;
        self.note_change(grown as isize);
    }

    /// Writes an X into the history of the flow at `place` where a session met one of its bounds.
    pub(super) fn note_beyond(&mut self, place: u32) {
        if self.findings.take_beyond()
            && let Some(flow) = self.table.flow_mut(place)
        {
            let mut history = flow.history();
            history.once(UNKNOWN, b'X');
            let grown = history.grown;
            self.note_change(grown as isize);
        }
    }
}

impl Flow {
    /// What records of protocols tell of this flow, whose name is `uid`.
    pub(super) fn connection(&self, uid: Uid) -> Connection {
        let (originator, responder) = self.ends();
        let is_older = self.tcp().is_some_and(TcpConnection::is_partial);
        let start = (!is_older).then_some(self.start);
        Connection {
            uid,
            originator,
            responder,
            proto: proto(self.key.protocol),
            start,
            local: self.local_by_role(),
        }
    }
}

fn report_oddity<O: Observer>(
    connection: &Connection,
    ts: Timestamp,
    oddity: &Oddity,
    source: Option<&str>,
    key: &SortKey,
    observer: &mut O,
) {
    let detail = oddity.detail.text();
    let row = Weird {
        ts,
        uid: Some(connection.uid),
        id_orig_h: Some(connection.originator.address),
        id_orig_p: Some(Port(connection.originator.port)),
        id_resp_h: Some(connection.responder.address),
        id_resp_p: Some(Port(connection.responder.port)),
        name: oddity.name,
        addl: detail.as_deref(),
        notice: false,
        peer: "netsniff",
        source,
    };
    observer.record(key, &row);
}
