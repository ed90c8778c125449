//! What is told, as our own collector reads it, and what cannot be told.

use netsniff_packet::{Address, Timestamp};

use super::*;
use crate::{Collector, EndReason, Flow, Limits, StreamBooks, StreamKey, Transport};

const SENT: u32 = 1_700_000_100;
const SETTINGS: Settings =
    Settings { enterprise: 32473, is_nanoseconds: true, longest: Settings::LEAST };

fn connection(seq: u64) -> Connection<'static> {
    Connection {
        sensor: "sensor",
        run: "run",
        seq,
        uid: "CHhAvVGS1DHFjwGM9",
        start: Timestamp::from_nanos(1_700_000_000_123_456_789),
        end: Some(Timestamp::from_nanos(1_700_000_002_999_999_999)),
        originator: Address::from_v4([192, 0, 2, 1]),
        responder: Address::from_v4([192, 0, 2, 2]),
        ports: [40_000 + seq as u16, 443],
        icmp: None,
        protocol: 6,
        sent: [
            Side { packets: 7, octets: 1 << 40, payload_octets: Some(3) },
            Side { packets: 0, octets: 0, payload_octets: None },
        ],
        tcp_flags: Some([2, 0]),
        is_ended: true,
        service: "ssl",
        state: "S0",
        history: "S",
        vlan: Some(4094),
        inner_vlan: None,
        quality: "clean",
        depth: "protocols",
        missed: Some(0),
        capture_missed: None,
        network_missed: None,
        bad_checksums: None,
        sampling: None,
    }
}

/// Reads messages as a collector does.
fn read(collector: &mut Collector, messages: &[u8]) -> Vec<Flow> {
    let exporter = crate::Exporter {
        address: Address::from_v4([127, 0, 0, 1]),
        port: 1,
        transport: Transport::Tcp,
    };
    let (mut flows, now) = (Vec::new(), Timestamp::from_secs_nanos(SENT.into(), 0));
    let mut framer = crate::framing::Framer::default();
    let take = |message: &[u8]| {
        let flow = |_: &StreamKey, flow| flows.push(flow);
        collector.message(exporter, now, message, flow).unwrap();
    };
    framer.push(messages, take).unwrap();
    assert!(framer.is_between_messages());
    flows
}

/// Sends all records, and returns the messages with how many there are.
fn send(exporter: &mut Exporter, mut records: &[Told<'_>]) -> (Vec<u8>, usize) {
    let (mut out, mut messages) = (Vec::new(), 0);
    while !records.is_empty() {
        let before = out.len();
        let built = exporter.build(9, SENT, records, &mut out).unwrap();
        assert!(out.len() - before <= exporter.settings.longest);
        exporter.sent(&built);
        records = &records[built.records..];
        messages += 1;
    }
    (out, messages)
}

fn books(collector: &Collector) -> StreamBooks {
    collector.books().next().unwrap().1
}

#[test]
fn a_collector_reads_what_was_told() {
    let mut exporter = Exporter::new(SETTINGS);
    let all: Vec<_> = (0..20).map(|seq| Told::from(connection(seq))).collect();
    let (messages, number) = send(&mut exporter, &all);
    assert!(number > 5, "{number}");
    let mut collector = Collector::new(Limits::default());
    let flows = read(&mut collector, &messages);
    assert_eq!(flows.len(), 20);
    for (seq, flow) in flows.iter().enumerate() {
        let told = connection(seq as u64);
        assert_eq!((flow.start(), flow.end()), (Some(told.start), told.end));
        assert_eq!((flow.source, flow.destination), (told.originator, told.responder));
        assert_eq!([flow.source_port, flow.destination_port], told.ports);
        assert_eq!((flow.forward.packets, flow.forward.octets), (Some(7), Some(1 << 40)));
        assert_eq!((flow.forward.payload_octets, flow.forward.tcp_flags), (Some(3), Some(2)));
        let back = flow.reverse.unwrap();
        assert_eq!((back.packets, back.octets, back.payload_octets), (Some(0), Some(0), None));
        assert_eq!((flow.end_reason, flow.vlan), (Some(EndReason::Ended), Some(4094)));
        assert_eq!(flow.direction, Some(crate::Direction::Initiator));
    }
    let books = books(&collector);
    assert_eq!((books.lost, books.restarts, books.undecoded_sets), (Some(0), 0, 0));
    assert_eq!((books.messages, books.templates_told), (number as u64, 1));
}

#[test]
fn each_group_is_a_template_and_all_of_them_are_read() {
    let mut exporter = Exporter::new(Settings { longest: LONGEST, ..SETTINGS });
    let v6 = Address::from_v6([0x20; 16]);
    let icmp = Connection { icmp: Some((8, 0)), protocol: 1, ports: [0; 2], ..connection(0) };
    let bare = Connection {
        end: None,
        tcp_flags: None,
        is_ended: false,
        vlan: None,
        missed: None,
        sent: [Side { packets: 1, octets: 60, payload_octets: None }; 2],
        ..connection(0)
    };
    let full = Connection {
        inner_vlan: Some(1),
        capture_missed: Some(1),
        network_missed: Some(2),
        bad_checksums: Some(3),
        sampling: Some(8),
        sent: [Side { packets: 1, octets: 60, payload_octets: Some(1) }; 2],
        ..connection(0)
    };
    let mut all = vec![bare, full, icmp];
    all.extend([bare, full].map(|it| Connection { originator: v6, responder: v6, ..it }));
    all.push(Connection {
        originator: v6,
        responder: v6,
        icmp: Some((128, 0)),
        protocol: 58,
        ..connection(0)
    });
    all.push(Connection { originator: v6, ..bare });
    all.push(Connection { responder: v6, ..full });
    let told: Vec<_> = all.iter().copied().map(Told::from).collect();
    let mut collector = Collector::new(Limits::default());
    let (messages, number) = send(&mut exporter, &told);
    let flows = read(&mut collector, &messages);
    assert_eq!((number, flows.len(), books(&collector).templates_told), (1, 8, 6));
    for (flow, told) in flows.iter().zip(&all) {
        let groups = Groups::of(told, true);
        assert_eq!(flow.template, Some(FIRST_TEMPLATE + groups.0));
        let hosts = (told.originator, told.responder);
        assert_eq!(((flow.source, flow.destination), flow.icmp), (hosts, told.icmp));
        assert_eq!(flow.end(), told.end);
        assert_eq!(flow.vlan, told.vlan);
    }
    let widest: Vec<_> = Group::ALL.iter().filter(|(of, _)| *of != Group::Icmp).collect();
    let groups = Groups(widest.iter().map(|(of, _)| of.weight()).sum());
    let mut template = Vec::new();
    encode::template(256, Some(groups), 1, &mut template);
    assert!(template.len() + HEADER <= Settings::LEAST, "{}", template.len());
}

#[test]
fn the_end_of_a_run_tells_how_much_was_sent() {
    let mut exporter = Exporter::new(SETTINGS);
    let mut all: Vec<_> = (0..3).map(|seq| Told::from(connection(seq))).collect();
    all.push(Told::End(RunEnd { sensor: "sensor", run: "run", rows: 3 }));
    let (messages, _) = send(&mut exporter, &all);
    let mut collector = Collector::new(Limits::default());
    assert_eq!(read(&mut collector, &messages).len(), 3);
    let books = books(&collector);
    assert_eq!((books.own.exported_flows, books.options, books.lost), (Some(3), 1, Some(0)));
    let mut next = Vec::new();
    exporter.build(9, SENT, &all[..1], &mut next).unwrap();
    assert_eq!(next[8..12], [0, 0, 0, 4], "it is a record as well");
}

#[test]
fn what_was_not_sent_does_not_count_and_a_session_begins_anew() {
    let mut exporter = Exporter::new(SETTINGS);
    let all = [Told::from(connection(0))];
    let mut out = Vec::new();
    let first = exporter.build(9, SENT, &all, &mut out).unwrap();
    let mut again = Vec::new();
    exporter.build(9, SENT, &all, &mut again).unwrap();
    assert_eq!(out, again);
    assert!(first.has_news);
    exporter.sent(&first);
    again.clear();
    exporter.build(9, SENT, &all, &mut again).unwrap();
    assert!(again.len() < out.len(), "the template is known");
    assert_eq!(again[8..12], [0, 0, 0, 1], "the sequence");
    let mut other = Vec::new();
    exporter.build(8, SENT, &all, &mut other).unwrap();
    assert_eq!((other.len(), &other[8..12]), (out.len(), &[0; 4][..]), "of another domain");
    exporter.tell_templates_again();
    let mut told = Vec::new();
    assert!(!exporter.build(9, SENT, &all, &mut told).unwrap().has_news);
    assert_eq!((told.len(), &told[8..12]), (out.len(), &[0, 0, 0, 1][..]));
    exporter.forget_templates();
    assert!(exporter.build(9, SENT, &all, &mut Vec::new()).unwrap().has_news);
    exporter.begin();
    told.clear();
    exporter.build(9, SENT, &all, &mut told).unwrap();
    assert_eq!(told, out);
}

#[test]
fn what_cannot_be_told_is_an_error_and_not_a_lie() {
    let exporter = Exporter::new(SETTINGS);
    let failed = |told: Connection<'_>, exporter: &Exporter| {
        let mut out = vec![1];
        let why = exporter.build(9, SENT, &[Told::from(told)], &mut out).unwrap_err();
        assert_eq!(out, [1]);
        why
    };
    let long = "d".repeat(500);
    assert_eq!(failed(Connection { history: &long, ..connection(0) }, &exporter), Untellable::Long);
    let late = Timestamp::from_secs_nanos(2_085_978_496, 0);
    assert_eq!(failed(Connection { start: late, ..connection(0) }, &exporter), Untellable::Time);
    let millis = Exporter::new(Settings { is_nanoseconds: false, ..SETTINGS });
    let early = Timestamp::from_nanos(-1);
    assert_eq!(failed(Connection { start: early, ..connection(0) }, &millis), Untellable::Time);
    let huge = "d".repeat(70_000);
    let wide = Exporter::new(Settings { longest: LONGEST, ..SETTINGS });
    assert_eq!(failed(Connection { history: &huge, ..connection(0) }, &wide), Untellable::Long);
    // One that follows others stops the message before it.
    let both = [connection(0), Connection { start: late, ..connection(1) }].map(Told::from);
    assert_eq!(wide.build(9, SENT, &both, &mut Vec::new()).unwrap().records, 1);
}

#[test]
fn text_of_any_length_is_passed_over() {
    let mut exporter = Exporter::new(Settings { longest: LONGEST, ..SETTINGS });
    for length in [0, 1, 254, 255, 256, 40_000] {
        let history = "d".repeat(length);
        let told =
            [0, 1].map(|seq| Told::from(Connection { history: &history, ..connection(seq) }));
        exporter.begin();
        let (messages, _) = send(&mut exporter, &told);
        let flows = read(&mut Collector::new(Limits::default()), &messages);
        assert_eq!(flows[1].source_port, 40_001, "{length}");
    }
}

#[test]
fn elements_are_told_once_and_have_values_where_records_have_them() {
    for bits in 0..1 << Group::ALL.len() {
        let mut numbers: Vec<_> = Groups(bits).elements().map(|it| it.number).collect();
        let all = numbers.len();
        numbers.sort();
        numbers.dedup();
        assert_eq!(numbers.len(), all, "{bits:x}");
    }
    for (at, (group, _)) in Group::ALL.iter().enumerate() {
        assert_eq!(group.weight(), 1 << at);
    }
    for told in [connection(0), Connection { icmp: Some((3, 1)), ..connection(0) }] {
        for is_nanoseconds in [false, true] {
            let groups = Groups::of(&told, is_nanoseconds);
            assert!(groups.elements().all(|element| (element.value)(&told).is_some()));
        }
    }
}
