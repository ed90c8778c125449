//! More flows than the limits allow: memory stays within them, and every early end is told.

use crate::support;
use core::net::{IpAddr, Ipv4Addr};

use crate::support::analyse;
use netsniff_analysis::flow::report::statistics::Ending;
use netsniff_analysis::record::{FieldInfo, Value, Visitor};
use netsniff_analysis::{Engine, Limits, Observer, Options, Record, SortKey};
use netsniff_packet::wire::tcp::TcpHeader;
use netsniff_packet::{Packet, Timestamp};
use netsniff_traffic::frame::{Host, tcp_frame};

const SYN: u16 = 0x02;
const ACK: u16 = 0x10;
/// What one packet may add to a flow before another one ends for it.
const ONE_PACKET: usize = 16_384;

/// Counts the connections, and those whose history tells of an early end.
#[derive(Default)]
struct Marks {
    rows: u64,
    early: u64,
    packets: u64,
}

impl Observer for Marks {
    fn record<R: Record>(&mut self, _: &SortKey, record: &R) {
        if record.log().path == "conn" {
            self.rows += 1;
            record.visit(self);
        }
    }
}

impl Visitor for Marks {
    fn field(&mut self, _: usize, info: &'static FieldInfo, value: Value<'_>) {
        match (info.name, value) {
            ("history", Value::Str(history)) => self.early += u64::from(history.ends_with('X')),
            ("orig_pkts" | "resp_pkts", Value::Count(count)) => self.packets += count,
            _ => {}
        }
    }
}

/// Client and server of a flow.
fn ends(flow: u32, port: u16) -> (Host, Host) {
    let [_, a, b, c] = flow.to_be_bytes();
    let client = Host::new(IpAddr::V4(Ipv4Addr::new(10, a, b, c)), 40_000);
    (client, Host::new(IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1)), port))
}

fn segment(flow: u32, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let (client, server) = ends(flow, 80);
    between(&client, &server, flags, sequence, payload)
}

fn between(from: &Host, to: &Host, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let header = TcpHeader {
        source_port: 0,
        destination_port: 0,
        sequence,
        acknowledgement: if flags & ACK == 0 { 0 } else { 2 },
        flags,
        window: 1024,
        checksum: 0,
        urgent_pointer: 0,
        options: &[],
    };
    tcp_frame(from, to, 0, &header, payload).unwrap()
}

fn packet(data: &[u8], nanos: i64) -> Packet<'_> {
    support::packet(Timestamp::from_secs_nanos(1_000, nanos), data)
}

fn ended(engine: &Engine, wanted: Ending) -> u64 {
    let mut endings = engine.tracker().statistics().endings();
    endings.find(|(ending, _)| *ending == wanted).map_or(0, |(_, count)| count)
}

/// Everything that began ended once, as a row, and every packet is in one.
fn books_close(engine: &Engine, marks: &Marks, packets: u64) {
    let statistics = engine.tracker().statistics();
    let begun: u64 = statistics.flows_begun().map(|(_, count)| count).sum();
    let all: u64 = statistics.endings().map(|(_, count)| count).sum();
    assert_eq!((begun, all, marks.packets), (marks.rows, marks.rows, packets));
    assert_eq!(ended(engine, Ending::Evicted), marks.early, "early ends counted and marked");
}

/// The time of the last `conn` row.
struct Last(Timestamp);

impl Observer for Last {
    fn record<R: Record>(&mut self, key: &SortKey, record: &R) {
        if record.log().path == "conn" {
            self.0 = key.time;
        }
    }
}

#[test]
fn a_syn_without_an_answer_ends_as_an_attempt_at_its_deadline() {
    let mut engine = Engine::new(Limits::default(), Options::default(), 7);
    let mut last = Last(Timestamp::MIN);
    let frame = segment(1, SYN, 1, &[]);
    // The third one comes late, but the wait is counted from the first.
    for nanos in [0, 1_000_000_000, 3_000_000_000] {
        engine.packet(&packet(&frame, nanos), &mut last);
    }
    engine.advance(Timestamp::from_secs_nanos(1_010, 0), &mut last);
    assert_eq!(ended(&engine, Ending::Attempt), 1);
    assert_eq!(last.0, Timestamp::from_secs_nanos(1_000, 0) + Limits::default().tcp_attempt);
}

#[test]
fn a_flood_of_syns_stays_inside_the_memory_it_was_given() {
    const FLOWS: u32 = 200_000;
    let limits = Limits { flow_bytes: 4 << 20, ..Limits::default() };
    let mut engine = Engine::new(limits, Options::default(), 7);
    let mut marks = Marks::default();
    for flow in 0..FLOWS {
        // All within two seconds: no attempt is given up for its age.
        let frame = segment(flow, SYN, 1, &[]);
        engine.packet(&packet(&frame, i64::from(flow) * 10_000), &mut marks);
    }
    engine.finish(&mut marks);
    let statistics = engine.tracker().statistics();
    let (peak, limit) = (statistics.peak_bytes, limits.flow_bytes);
    assert!(peak <= limit, "{peak} bytes of {limit}");
    assert!(peak > limit / 10 * 9, "{peak} of {limit} bytes: the room is used");
    assert_eq!(marks.rows, u64::from(FLOWS));
    let early = ended(&engine, Ending::Evicted);
    assert_eq!(
        early + statistics.peak_flows as u64,
        u64::from(FLOWS),
        "the others stay to the end"
    );
    assert_eq!(ended(&engine, Ending::Finished), statistics.peak_flows as u64);
    books_close(&engine, &marks, u64::from(FLOWS));
}

#[test]
fn flows_that_grow_stay_inside_as_well() {
    const FLOWS: u32 = 100;
    let limits = Limits { flow_bytes: 1 << 20, ..Limits::default() };
    let mut engine = Engine::new(limits, Options::default(), 7);
    let mut marks = Marks::default();
    let opening = (0..FLOWS).map(|flow| segment(flow, SYN, 1, &[]));
    // Every other byte is missing, so that each segment is a range to remember.
    let turn = |turn: u32| (0..FLOWS).map(move |flow| segment(flow, ACK, 4 + turn * 2, b"a"));
    let mut packets = 0;
    for frame in opening.chain((0..900).flat_map(turn)) {
        packets += 1;
        engine.packet(&packet(&frame, packets * 1_000), &mut marks);
    }
    engine.finish(&mut marks);
    let peak = engine.tracker().statistics().peak_bytes;
    assert!(peak <= limits.flow_bytes + ONE_PACKET, "{peak} of {} bytes", limits.flow_bytes);
    assert!(ended(&engine, Ending::Evicted) > 0, "no flow ended early");
    books_close(&engine, &marks, packets as u64);
}

/// A connection whose time is over ends by its timer, also when room is needed at that moment.
#[test]
fn what_is_over_does_not_end_early() {
    let limits = Limits { flows: 2, ..Limits::default() };
    let frames: Vec<_> = (0..3).map(|flow| segment(flow, SYN, 1, &[])).collect();
    let times = [0, 1_000, 3_600_000_000_000];
    let packets = frames.iter().zip(times).map(|(frame, nanos)| packet(frame, nanos));
    let rows = analyse(packets, limits);
    let histories: Vec<_> = rows.log("conn").iter().map(|row| row["history"].clone()).collect();
    assert_eq!(histories, ["S", "S", "S"]);
}

/// People at a terminal may pause for longer than the ring of deadlines reaches.
#[test]
fn connections_with_far_deadlines_make_room() {
    let limits = Limits { flows: 4, ..Limits::default() };
    let mut engine = Engine::new(limits, Options::default(), 7);
    let mut marks = Marks::default();
    let mut packets = 0;
    for flow in 0..10 {
        let (client, server) = ends(flow, 22);
        for frame in [
            between(&client, &server, SYN, 1, &[]),
            between(&server, &client, SYN | ACK, 1, &[]),
            between(&client, &server, ACK, 2, &[]),
        ] {
            packets += 1;
            engine.packet(&packet(&frame, packets * 1_000), &mut marks);
        }
    }
    engine.finish(&mut marks);
    assert_eq!((ended(&engine, Ending::Evicted), ended(&engine, Ending::Finished)), (6, 4));
    books_close(&engine, &marks, packets as u64);
}
