//! How deep flows are analysed: what each depth tells and leaves unset, and what a change in the midst of
//! a run does to new flows and to those in progress.

use crate::support;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::support::wire::{ACK, Client, Part, SYN, Server, Wire};
use crate::support::{Row, Rows, columns};
use netsniff_analysis::protocol::ProtocolSet;
use netsniff_analysis::{ChecksumMode, Depth, Engine, Limits, Options};
use netsniff_packet::checksum::ChecksumVerdict;
use netsniff_packet::{Batch, Packet};

fn at(depth: Depth) -> Options {
    Options { depth, ..Options::default() }
}

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded").join(name)
}

/// What a recorded capture comes to at a depth.
fn office(options: Options) -> (Rows, Engine) {
    let batches = support::read(&recorded("office.pcapng"));
    support::analyse_with(batches.iter().flat_map(Batch::iter), Limits::default(), options)
}

/// The logs that have rows.
fn logs(rows: &Rows) -> BTreeSet<&'static str> {
    rows.logs.keys().copied().filter(|log| *log != "weird").collect()
}

/// What all connections of a log have in some columns.
fn all(rows: &Rows, names: &[&str]) -> BTreeSet<String> {
    columns(&rows.log("conn"), names).into_iter().collect()
}

#[test]
fn each_depth_has_its_logs_and_counts_every_packet() {
    let mut layers = BTreeSet::new();
    let mut found = Vec::new();
    for &depth in Depth::ALL {
        let (rows, engine) = office(at(depth));
        let packets = engine.ingress().statistics();
        assert_eq!(engine.packets_by_depth().of(depth), packets.decoded, "{depth:?}");
        assert_eq!(engine.packets_by_depth().total(), packets.decoded, "{depth:?}");
        assert!(packets.decoded > 4_000);
        layers.insert(format!("{:?}", packets.layers()));
        let conn = columns(&rows.log("conn"), &["depth", "depth_begin"]);
        let name = depth.name();
        assert!(conn.iter().all(|row| *row == format!("{name} {name}")), "{conn:?}");
        found.push((conn.len(), logs(&rows)));
    }
    assert_eq!(layers.len(), 1, "the layers do not depend on the depth");
    let [(none, no_logs), (flows, one_log), (tcp, tcp_logs), (all, all_logs)] = &found[..] else {
        panic!()
    };
    assert_eq!((*none, no_logs.len()), (0, 0));
    assert_eq!((one_log, flows), (&BTreeSet::from(["conn"]), tcp));
    assert_eq!(*tcp_logs, BTreeSet::from(["conn", "gaps", "tcp"]));
    assert!(
        *all > 150
            && all_logs.is_superset(&BTreeSet::from(["conn", "dns", "files", "http", "tcp"]))
    );
}

#[test]
fn tcp_is_what_is_left_without_protocols() {
    let none = Options { protocols: ProtocolSet::NONE, ..Options::default() };
    let ((tcp, _), (without, engine)) = (office(at(Depth::Tcp)), office(none));
    assert_eq!(tcp.logs, without.logs);
    assert_eq!(engine.tracker().depth(), Depth::Tcp);
    assert!(
        all(&tcp, &["quality"]).contains("touched") || all(&tcp, &["quality"]).contains("clean")
    );
}

/// Counters, states and histories do not need the streams; what does is unset, not 0.
#[test]
fn flows_have_counters_and_leave_the_rest_unset() {
    let ((tcp, _), (flows, engine)) = (office(at(Depth::Tcp)), office(at(Depth::Flows)));
    let counted = [
        "ts",
        "uid",
        "id.orig_h",
        "id.orig_p",
        "id.resp_h",
        "id.resp_p",
        "proto",
        "duration",
        "orig_bytes",
        "resp_bytes",
        "orig_pkts",
        "orig_ip_bytes",
        "resp_pkts",
        "resp_ip_bytes",
    ];
    assert_eq!(columns(&flows.log("conn"), &counted), columns(&tcp.log("conn"), &counted));
    let unset =
        ["service", "capture_missed_bytes", "network_missed_bytes", "bad_checksums", "quality"];
    assert_eq!(all(&flows, &unset), BTreeSet::from(["- - - - unknown".to_owned()]));
    let missed = BTreeSet::from(["icmp 0", "tcp -", "udp 0"].map(str::to_owned));
    let found = all(&flows, &["proto", "missed_bytes"]);
    assert!(found.is_subset(&missed) && found.contains("tcp -"), "{found:?}");
    // Nobody looked at a checksum, and each is counted as such.
    let looked = |statistics: &netsniff_analysis::flow::report::statistics::FlowStatistics| {
        let all =
            ChecksumVerdict::ALL.iter().filter(|verdict| **verdict != ChecksumVerdict::Unknown);
        let sum = |verdict: &ChecksumVerdict| {
            statistics.checksums().map(|(_, all)| all.of(*verdict)).sum::<u64>()
        };
        all.map(sum).sum::<u64>()
    };
    let unknown: u64 = engine
        .tracker()
        .statistics()
        .checksums()
        .map(|(_, all)| all.of(ChecksumVerdict::Unknown))
        .sum();
    assert!(looked(engine.tracker().statistics()) == 0 && unknown > 4_000, "{unknown}");
}

/// The states of connections and their letters, but for those of gaps, which nobody looks for.
#[test]
fn flows_have_the_states_and_histories_of_connections() {
    let without_gaps = |rows: &Rows| -> Vec<String> {
        let mut all: Vec<_> = rows
            .log("conn")
            .iter()
            .map(|row| format!("{} {}", row["uid"], row["history"].replace(['G', 'g'], "")))
            .collect();
        all.sort();
        all
    };
    let ((tcp, _), (flows, _)) = (office(at(Depth::Tcp)), office(at(Depth::Flows)));
    assert_eq!(without_gaps(&flows), without_gaps(&tcp));
    let states = |rows| columns(&Rows::log(rows, "conn"), &["uid", "conn_state"]);
    assert_eq!(states(&flows), states(&tcp));
}

#[test]
fn less_depth_takes_less_memory() {
    let bytes = |depth| office(at(depth)).1.tracker().statistics().peak_bytes;
    let [packets, flows, tcp, protocols] =
        [Depth::Packets, Depth::Flows, Depth::Tcp, Depth::Protocols].map(bytes);
    assert_eq!(packets, 0);
    assert!(0 < flows && flows < tcp && tcp < protocols, "{flows} {tcp} {protocols}");
}

/// Checksums tell what is to be left out at any depth that has flows.
#[test]
fn wrong_checksums_are_left_out_of_counters_too() {
    let mut wire = Wire::new(80);
    wire.open().says(Client, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").ends(Client).ends(Server);
    let mut frames: Vec<_> = wire.packets().map(|p| (p.timestamp, p.data.to_vec())).collect();
    *frames[3].1.last_mut().unwrap() ^= 1;
    let conn = |depth, checksums| {
        let options = Options { checksums, ..at(depth) };
        let packets = frames.iter().map(|(time, data)| support::packet(*time, data));
        let (rows, _) = support::analyse_with(packets, Limits::default(), options);
        columns(&rows.log("conn"), &["orig_pkts", "bad_checksums"])
    };
    assert_eq!(conn(Depth::Tcp, ChecksumMode::Count), ["5 1"]);
    assert_eq!(conn(Depth::Flows, ChecksumMode::Count), ["5 -"]);
    assert_eq!(conn(Depth::Tcp, ChecksumMode::Discard), ["4 1"]);
    assert_eq!(conn(Depth::Flows, ChecksumMode::Discard), ["4 1"]);
    assert_eq!(conn(Depth::Flows, ChecksumMode::Ignore), ["5 -"]);
}

/// What is said on a connection, and the depths in force from some of its segments on.
fn change<'a>(
    packets: impl IntoIterator<Item = Packet<'a>>,
    changes: &[(usize, Depth)],
) -> (Rows, Engine) {
    let (mut rows, mut batched) = (Rows::default(), Rows::default());
    let [mut engine, mut in_batches] =
        [7, 8].map(|seed| Engine::new(Limits::default(), Options::default(), seed));
    let mut batch = Batch::default();
    for (at, packet) in packets.into_iter().enumerate() {
        if let Some((_, depth)) = changes.iter().find(|(from, _)| *from == at) {
            engine.set_depth(*depth);
            in_batches.batch(&batch, &mut batched);
            batch.clear();
            in_batches.set_depth(*depth);
        }
        engine.packet(&packet, &mut rows);
        assert!(batch.push(&packet));
    }
    in_batches.batch(&batch, &mut batched);
    for (engine, rows) in [(&mut engine, &mut rows), (&mut in_batches, &mut batched)] {
        engine.finish(rows);
        rows.sort();
    }
    assert_eq!(rows.logs, batched.logs, "one by one and in batches");
    assert_eq!(engine.packets_by_depth(), in_batches.packets_by_depth());
    let decoded = engine.ingress().statistics().decoded;
    assert_eq!(engine.packets_by_depth().total(), decoded);
    (rows, engine)
}

const REQUEST: &[u8] = b"GET /a HTTP/1.1\r\nHost: example.org\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody";

/// Two requests with their responses on one connection, and where the second begins.
fn two_requests() -> (Wire, usize) {
    let mut wire = Wire::new(80);
    wire.open().says(Client, REQUEST).says(Server, RESPONSE);
    let second = wire.len();
    wire.says(Client, REQUEST).says(Server, RESPONSE).ends(Client).ends(Server);
    (wire, second)
}

fn depths(rows: &Rows) -> Vec<String> {
    columns(&rows.log("conn"), &["service", "depth", "depth_begin"])
}

#[test]
fn a_conversation_goes_on_while_new_flows_get_less() {
    let (wire, second) = two_requests();
    let (rows, engine) = change(wire.packets(), &[(second, Depth::Tcp)]);
    assert_eq!(depths(&rows), ["http protocols protocols"]);
    assert_eq!(rows.log("http").len(), 2);
    assert_eq!(engine.packets_by_depth().of(Depth::Protocols), wire.len() as u64);
}

/// With the depth `flows`, what is said is no longer looked at, and what was found so far is told. A depth
/// that comes back changes nothing for it.
#[test]
fn a_conversation_is_cut_where_more_must_be_shed() {
    for depth in [Depth::Flows, Depth::Packets] {
        let (wire, second) = two_requests();
        // Behind the second request, whose response nobody reads.
        let changes = [(second + 1, depth), (second + 2, Depth::Protocols)];
        let (rows, engine) = change(wire.packets(), &changes);
        assert_eq!(depths(&rows), ["http tcp protocols"]);
        assert_eq!(columns(&rows.log("http"), &["trans_depth", "status_code"]), ["1 200", "2 -"]);
        // The state of TCP goes on to the end.
        let tcp =
            columns(&rows.log("conn"), &["conn_state", "resp_bytes", "missed_bytes", "quality"]);
        let whole = support::analyse(wire.packets(), Limits::default());
        assert_eq!(
            tcp,
            columns(&whole.log("conn"), &["conn_state", "resp_bytes", "missed_bytes", "quality"])
        );
        let packets = |depth| engine.packets_by_depth().of(depth) as usize;
        assert_eq!(packets(Depth::Protocols), second + 1);
        assert_eq!(packets(Depth::Tcp), wire.len() - second - 1);
    }
}

/// A flow that no packet comes for while less is wanted stays as it is.
#[test]
fn a_pause_of_a_flow_may_outlast_the_shedding() {
    let (wire, second) = two_requests();
    let (rows, _) = change(wire.packets(), &[(second, Depth::Packets), (second, Depth::Protocols)]);
    assert_eq!(rows.log("conn").len(), 1);
    let (mut engine, mut rows) =
        (Engine::new(Limits::default(), Options::default(), 1), Rows::default());
    for (at, packet) in wire.packets().enumerate() {
        if at == second {
            engine.set_depth(Depth::Flows);
            engine.advance(packet.timestamp, &mut rows);
            engine.set_depth(Depth::Protocols);
        }
        engine.packet(&packet, &mut rows);
    }
    engine.finish(&mut rows);
    rows.sort();
    assert_eq!(
        (depths(&rows), rows.log("http").len()),
        (vec!["http protocols protocols".to_owned()], 2)
    );
}

#[test]
fn a_flow_never_deepens() {
    for depth in [Depth::Flows, Depth::Tcp] {
        let (wire, second) = two_requests();
        let (rows, engine) = change(wire.packets(), &[(0, depth), (second, Depth::Protocols)]);
        assert_eq!(depths(&rows), [format!("- {0} {0}", depth.name())]);
        assert!(rows.log("http").is_empty());
        assert_eq!(rows.log("tcp").len(), usize::from(depth == Depth::Tcp));
        assert_eq!(engine.packets_by_depth().of(depth), wire.len() as u64);
    }
}

/// Nothing begins while packets are counted only; what comes later of a connection is picked up in its
/// middle, as at the begin of a capture.
#[test]
fn packets_begin_no_flow_but_belong_to_those_that_are_there() {
    let (wire, second) = two_requests();
    let (rows, engine) = change(wire.packets(), &[(0, Depth::Packets), (second, Depth::Flows)]);
    assert_eq!(depths(&rows), ["- flows flows"]);
    let [row] = rows.log("conn")[..] else { panic!() };
    let pkts = |row: &Row, of: &str| row[of].parse::<usize>().unwrap();
    assert_eq!(pkts(row, "orig_pkts") + pkts(row, "resp_pkts"), wire.len() - second);
    assert_eq!(engine.packets_by_depth().of(Depth::Packets), second as u64);

    let (rows, engine) = change(wire.packets(), &[(second, Depth::Packets)]);
    let [row] = rows.log("conn")[..] else { panic!() };
    assert_eq!(pkts(row, "orig_pkts") + pkts(row, "resp_pkts"), wire.len());
    assert_eq!((row["depth"].as_str(), row["conn_state"].as_str()), ("tcp", "SF"));
    assert_eq!(engine.packets_by_depth().of(Depth::Packets), 0);
}

/// A new connection between the ports of one that is over is a new flow, which packets do not begin.
#[test]
fn a_flow_that_is_over_makes_no_room_for_another_at_packets() {
    let (mut wire, _) = two_requests();
    let first = wire.len();
    wire.pass(1).anew(70_000, 80_000).open();
    let (rows, engine) = change(wire.packets(), &[(first, Depth::Packets)]);
    assert_eq!(rows.log("conn").len(), 1);
    assert_eq!(engine.packets_by_depth().of(Depth::Packets), 3);
}

/// A connection of which only the middle is seen, at each depth that has flows.
#[test]
fn a_connection_picked_up_in_its_middle_has_counters() {
    let mut wire = Wire::new(80);
    let late =
        Part { position: 5_000, acknowledged: 7_000, data: b"some data", ..wire.part(Client) };
    let answer = Part { position: 7_000, acknowledged: 5_009, flags: ACK, ..wire.part(Server) };
    wire.put(Client, &late).put(Server, &answer);
    let conn = |depth| {
        let rows = support::analyse_with(wire.packets(), Limits::default(), at(depth)).0;
        columns(&rows.log("conn"), &["conn_state", "history", "orig_bytes", "resp_pkts", "quality"])
    };
    assert_eq!(conn(Depth::Flows), ["OTH Da 9 1 unknown"]);
    assert_eq!(conn(Depth::Tcp), conn(Depth::Flows));
}

/// An attempt is told from few bytes at each depth, and its answer makes it a connection of that depth.
#[test]
fn an_opening_keeps_its_depth() {
    let mut wire = Wire::new(80);
    wire.syn(Client, SYN, b"");
    let opening = change(wire.packets(), &[(0, Depth::Flows)]).0;
    assert_eq!(
        columns(&opening.log("conn"), &["conn_state", "history", "missed_bytes", "depth"]),
        ["S0 S - flows"]
    );
    wire.syn(Server, SYN.with(ACK), b"")
        .acks(Client)
        .hides(Client, &[0; 500])
        .says(Client, b"late");
    let rows = change(wire.packets(), &[(0, Depth::Flows), (1, Depth::Protocols)]).0;
    let conn = columns(
        &rows.log("conn"),
        &["conn_state", "history", "orig_bytes", "missed_bytes", "depth"],
    );
    assert_eq!(conn, ["S1 ShADa 504 - flows"]);
    assert!(rows.log("tcp").is_empty() && rows.log("gaps").is_empty());
}

/// Losses that the capture tells of touch flows of any depth: that needs no look at them.
#[test]
fn a_loss_that_the_capture_tells_of_touches_flows() {
    let (wire, second) = two_requests();
    let mut engine = Engine::new(Limits::default(), at(Depth::Flows), 1);
    let mut rows = Rows::default();
    for (at, packet) in wire.packets().enumerate() {
        if at == second {
            let stage = netsniff_packet::Stage::Unknown;
            let after = packet.timestamp;
            engine
                .loss(&netsniff_packet::Loss { before: None, after, packets: 3, stage }, &mut rows);
        }
        engine.packet(&packet, &mut rows);
    }
    engine.finish(&mut rows);
    rows.sort();
    assert_eq!(columns(&rows.log("conn"), &["quality"]), ["touched"]);
}

/// What several rings or workers counted adds up, packets of no flow included.
#[test]
fn counts_of_two_engines_add_up() {
    let ((_, whole), (_, flows)) = (office(at(Depth::Protocols)), office(at(Depth::Flows)));
    let (mut packets, mut of_flows) =
        (whole.ingress().statistics().clone(), whole.tracker().statistics().clone());
    packets.merge(flows.ingress().statistics());
    of_flows.merge(flows.tracker().statistics());
    let all = packets.without_flow.with(&of_flows.packets);
    let each = whole.ingress().statistics().decoded;
    assert_eq!([all.of(Depth::Protocols), all.of(Depth::Flows)], [each, each]);
    assert!(packets.without_flow.total() > 0 && all.total() == packets.decoded);
    assert_eq!(of_flows.unwatched, 82);
}

/// Whoever sheds and recovers does not know what was asked for.
#[test]
fn no_depth_is_set_that_the_options_do_not_want() {
    let none = Options { protocols: ProtocolSet::NONE, ..Options::default() };
    for (options, most) in [(at(Depth::Flows), Depth::Flows), (none, Depth::Tcp)] {
        let (wire, second) = two_requests();
        let (mut engine, mut rows) =
            (Engine::new(Limits::default(), options.clone(), 1), Rows::default());
        assert_eq!(options.deepest(), most);
        for (at, packet) in wire.packets().enumerate() {
            if at == 0 || at == second {
                engine.set_depth(Depth::Protocols);
            }
            engine.packet(&packet, &mut rows);
        }
        engine.finish(&mut rows);
        rows.sort();
        assert_eq!(depths(&rows), [format!("- {0} {0}", most.name())]);
        assert_eq!(engine.packets_by_depth().of(most), wire.len() as u64);
    }
}
