//! What exporters told, as rows.

use netsniff_analysis::Depth;
use netsniff_analysis::Uid;
use netsniff_analysis::flow::report::proto;
use netsniff_analysis::key::community_id::CommunityId;
use netsniff_analysis::key::{TCP, UDP};
use netsniff_analysis::locality::LocalNets;
use netsniff_analysis::log::conn::{ConnState, Quality};
use netsniff_analysis::log::exported::{ExportProtocol, FlowEndReason};
use netsniff_analysis::log::exporters::ExportTransport;
use netsniff_analysis::log::{Conn, Exported, Exporters};
use netsniff_analysis::record::{Interval, Port};
use netsniff_ipfix::sampling::Sampling;
use netsniff_ipfix::{EndReason, Protocol, Sent, StreamBooks, StreamKey, Transport};
use netsniff_packet::Timestamp;

use super::pairing::{Known, Oriented};

const FIN: u16 = 1;
const SYN: u16 = 2;
const RST: u16 = 4;
const ACK: u16 = 16;

/// The rows of a connection.
pub(super) struct ConnectionRows {
    pub(super) conn: Conn<'static>,
    pub(super) exported: Exported,
}

/// Makes the rows of a connection, the one with this `number` of the run.
pub(super) fn connection(known: &Known, number: u64, local: &LocalNets) -> Option<ConnectionRows> {
    let oriented = known.oriented();
    let Oriented { key, originator, responder, orig, resp, direction, .. } = &oriented;
    let halves = || [Some(&known.first), known.second.as_ref()].into_iter().flatten();
    let start = halves().filter_map(|half| half.flow.start()).min()?;
    let end = halves().filter_map(|half| half.flow.end()).max();
    let sampling = sampling(known);
    // Counts of a sample are not those of the connection.
    let is_whole = !sampling.is_sampled();
    let whole = |side: &Option<Sent>, of: fn(&Sent) -> Option<u64>| {
        side.as_ref().and_then(of).filter(|_| is_whole)
    };
    let duration = end.map(|end| end.nanos_since(start)).filter(|nanos| *nanos > 0);
    let stream = &known.first.stream;
    let uid = Uid::new(key.name(context(stream), start.nanos(), number));
    let is_touched = halves().any(|half| half.flow.is_touched);
    let conn = Conn {
        ts: start,
        uid,
        id_orig_h: originator.address,
        id_orig_p: Port(originator.port),
        id_resp_h: responder.address,
        id_resp_p: Port(responder.port),
        proto: proto(key.protocol),
        service: None,
        duration: duration.map(Interval::from_nanos),
        orig_bytes: whole(orig, |sent| sent.payload_octets),
        resp_bytes: whole(resp, |sent| sent.payload_octets),
        conn_state: state(key.protocol, orig.as_ref(), resp.as_ref(), is_whole),
        local_orig: Some(local.has(originator.address)),
        local_resp: Some(local.has(responder.address)),
        missed_bytes: None,
        history: None,
        orig_pkts: whole(orig, |sent| sent.packets),
        orig_ip_bytes: whole(orig, |sent| sent.octets),
        resp_pkts: whole(resp, |sent| sent.packets),
        resp_ip_bytes: whole(resp, |sent| sent.octets),
        tunnel_parents: None,
        ip_proto: Some(key.protocol),
        community_id: Some(CommunityId::of(key)),
        vlan: halves().find_map(|half| half.flow.vlan).map(i32::from),
        inner_vlan: None,
        quality: if is_touched { Quality::Touched } else { Quality::Unknown },
        capture_missed_bytes: None,
        network_missed_bytes: None,
        depth: Depth::Flows,
        bad_checksums: None,
        depth_begin: Depth::Flows,
        sampling: None,
    };
    let last = known.second.as_ref().unwrap_or(&known.first);
    let flow = &known.first.flow;
    let ways = [flow.ingress, flow.egress];
    let [ingress, egress] = if oriented.is_forward { ways } else { ways_back(known) };
    let exported = Exported {
        ts: start,
        uid,
        exporter: stream.exporter.address,
        exporter_p: Port(stream.exporter.port),
        domain: stream.domain,
        protocol: protocol(stream.protocol),
        arrived: last.arrived,
        records: halves().count() as u64,
        direction: *direction,
        sampling: one_of(sampling),
        is_sampled: (sampling != Sampling::Untold).then(|| sampling.is_sampled()),
        orig_pkts: orig.and_then(|sent| sent.packets),
        orig_octets: orig.and_then(|sent| sent.octets),
        resp_pkts: resp.and_then(|sent| sent.packets),
        resp_octets: resp.and_then(|sent| sent.octets),
        orig_tcp_flags: orig.and_then(|sent| sent.tcp_flags),
        resp_tcp_flags: resp.and_then(|sent| sent.tcp_flags),
        end_reason: last.flow.end_reason.map(end_reason),
        ingress,
        egress,
        template: flow.template,
    };
    Some(ConnectionRows { conn, exported })
}

/// Where packets of the originator came in and went out, where the first record is of the responder.
fn ways_back(known: &Known) -> [Option<u32>; 2] {
    known.second.as_ref().map_or([None; 2], |half| [half.flow.ingress, half.flow.egress])
}

/// The share of packets that both records have; where they differ, that there is one.
fn sampling(known: &Known) -> Sampling {
    let first = known.first.flow.sampling;
    let second = known.second.as_ref().map_or(first, |half| half.flow.sampling);
    match (first, second) {
        (first, second) if first == second => first,
        (first, second) if first.is_sampled() || second.is_sampled() => Sampling::Some,
        _ => Sampling::Untold,
    }
}

/// What names the exporter among others, in the names of its connections.
fn context(stream: &StreamKey) -> u64 {
    let [high, low] = stream.exporter.address.words();
    let port = u64::from(stream.exporter.port);
    high.rotate_left(17) ^ low ^ port.rotate_left(40) ^ u64::from(stream.domain).rotate_left(8)
}

/// How it began and ended, as far as flags of both sides tell without their order. Packets that a sample left out may
/// have had others.
fn state(
    protocol: u8,
    orig: Option<&Sent>,
    resp: Option<&Sent>,
    is_whole: bool,
) -> Option<ConnState> {
    let (orig, resp) = (orig?, resp?);
    if !is_whole {
        return None;
    }
    let is_silent = resp.packets == Some(0);
    if protocol == UDP {
        let answered = resp.packets.filter(|_| orig.packets.is_some_and(|packets| packets > 0))?;
        return Some(if answered > 0 { ConnState::Sf } else { ConnState::S0 });
    }
    if protocol != TCP {
        return None;
    }
    let from = orig.tcp_flags?;
    let has = |flags: u16, flag: u16| flags & flag != 0;
    if is_silent {
        return (from & (SYN | ACK | FIN | RST) == SYN).then_some(ConnState::S0);
    }
    let to = resp.tcp_flags?;
    if !has(from, SYN) {
        return None;
    }
    if !has(to, SYN) {
        return (has(to, RST) && !has(from, FIN | RST)).then_some(ConnState::Rej);
    }
    match (has(from, RST), has(to, RST), has(from, FIN), has(to, FIN)) {
        (false, false, true, true) => Some(ConnState::Sf),
        (false, false, true, false) => Some(ConnState::S2),
        (false, false, false, true) => Some(ConnState::S3),
        (false, false, false, false) => Some(ConnState::S1),
        (true, false, _, false) => Some(ConnState::Rsto),
        (false, true, false, _) => Some(ConnState::Rstr),
        // Which came first is not told.
        _ => None,
    }
}

/// The row of an exporter's books.
pub(super) fn exporter(
    key: &StreamKey,
    books: &StreamBooks,
    ts: Timestamp,
    is_final: bool,
) -> Exporters {
    let numbers_messages = key.protocol == Protocol::Netflow9;
    Exporters {
        ts,
        is_final,
        exporter: key.exporter.address,
        exporter_p: Port(key.exporter.port),
        transport: match key.exporter.transport {
            Transport::Udp => ExportTransport::Udp,
            Transport::Tcp => ExportTransport::Tcp,
        },
        protocol: protocol(key.protocol),
        domain: key.domain,
        first: books.first,
        last: books.last,
        messages: books.messages,
        duplicates: books.duplicates,
        late: books.late,
        bytes: books.bytes,
        damaged: books.damaged,
        sets: books.sets,
        decoded_sets: books.decoded_sets,
        waiting_sets: books.waiting_sets,
        undecoded_sets: books.undecoded_sets,
        records: books.records,
        flows: books.flows,
        options: books.options,
        others: books.others,
        templates: books.templates,
        templates_refused: books.templates_refused,
        templates_ended: books.templates_ended,
        restarts: books.restarts,
        lost_records: books.lost.filter(|_| !numbers_messages),
        lost_messages: books.lost.filter(|_| numbers_messages),
        sampling: one_of(books.sampling),
        told_exported: books.own.exported_flows,
        told_not_sent: books.own.not_sent_flows,
        told_ignored: books.own.ignored_packets,
        told_dropped: books.own.dropped_packets,
    }
}

const fn one_of(sampling: Sampling) -> Option<u64> {
    match sampling {
        Sampling::OneOf(interval) => Some(interval),
        Sampling::Untold | Sampling::All | Sampling::Some => None,
    }
}

const fn protocol(protocol: Protocol) -> ExportProtocol {
    match protocol {
        Protocol::Netflow5 => ExportProtocol::Netflow5,
        Protocol::Netflow9 => ExportProtocol::Netflow9,
        Protocol::Ipfix => ExportProtocol::Ipfix,
    }
}

const fn end_reason(reason: EndReason) -> FlowEndReason {
    match reason {
        EndReason::Idle => FlowEndReason::Idle,
        EndReason::Active => FlowEndReason::Active,
        EndReason::Ended => FlowEndReason::End,
        EndReason::Forced => FlowEndReason::Forced,
        EndReason::Resources => FlowEndReason::Lack,
    }
}
