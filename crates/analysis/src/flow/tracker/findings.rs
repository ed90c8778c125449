//! What packets and sessions showed besides the flows themselves, on its way to the logs.

use netsniff_packet::Timestamp;

use super::{FlowTracker, packet_key};
use crate::flow::Flow;
use crate::flow::history::UNKNOWN;
use crate::flow::report::proto;
use crate::flow::report::statistics::FlowStatistics;
use crate::flow::tcp::TcpConnection;
use crate::key::uid::Uid;
use crate::log::weird::Weird;
use crate::protocol::Findings;
use crate::record::{Connection, Observer, Port, Proto, SortKey};
use crate::unit::DecodedDatagram;
use crate::weird::Oddity;

impl FlowTracker {
    /// Hands over what a datagram of the flow at `place` showed.
    #[cold]
    pub(super) fn report_findings<O: Observer>(
        &mut self,
        unit: &DecodedDatagram,
        place: u32,
        observer: &mut O,
    ) {
        self.note_beyond(place);
        let Some(flow) = self.table.flow(place) else { return };
        let mut key = packet_key(unit, flow);
        let connection = flow.connection(key.uid);
        let transport = match connection.proto {
            Proto::Tcp => Some("TCP"),
            Proto::Udp => Some("UDP"),
            Proto::Icmp => Some("ICMP"),
            Proto::Unknown => None,
        };
        for oddity in self.weirds.drain() {
            self.statistics.weird(oddity.name);
            key.number += 1;
            report_oddity(&connection, unit.time, &oddity, transport, &key, observer);
        }
        self.talking.expect(&mut self.findings, &connection, unit.now, &self.limits);
        report(&mut self.findings, &mut self.statistics, &connection, unit.time, key, observer);
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

/// Hands over what sessions found at `time`, numbered behind `key`.
pub(super) fn report<O: Observer>(
    findings: &mut Findings,
    statistics: &mut FlowStatistics,
    connection: &Connection,
    time: Timestamp,
    mut key: SortKey,
    observer: &mut O,
) {
    statistics.failed_sessions += core::mem::take(&mut findings.panics);
    for (oddity, analyzer) in findings.drain_oddities() {
        statistics.weird(oddity.name);
        key.number += 1;
        report_oddity(connection, time, &oddity, Some(analyzer), &key, observer);
    }
    for record in findings.records.drain(..) {
        key.number += 1;
        record.report(connection, &key, observer);
    }
}

impl Flow {
    /// What records of protocols tell of this flow, whose name is `uid`.
    pub(super) fn connection(&self, uid: Uid) -> Connection {
        let (originator, responder) = self.ends();
        let is_older = self.tcp().is_some_and(TcpConnection::is_partial);
        let start = (!is_older).then_some(self.start);
        Connection { uid, originator, responder, proto: proto(self.key.protocol), start }
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
