//! The summary's two printed forms, against golden files, and with hostile values.

use std::fs;
use std::path::Path;

use netsniff::summary::{
    Books, CaptureInterface, ChecksumCounts, Checksums, Connection, Count, Extracted, Flows, Holes,
    Input, InputSource, Layer, Part, Style, Summary, Talker, TcpHealth,
};
use netsniff_console::terminal::signs::Signs;
use netsniff_packet::Timestamp;

fn counts(items: &[(&str, u64)]) -> Vec<Count> {
    items.iter().map(|&(name, count)| Count { name: name.to_owned(), count }).collect()
}

fn verdicts(good: u64, bad: u64, partial: u64, unknown: u64) -> ChecksumCounts {
    ChecksumCounts { good, bad, partial, absent: 0, unknown }
}

fn sample() -> Summary {
    let layer =
        |name: &str, depth, packets, bytes| Layer { name: name.to_owned(), depth, packets, bytes };
    let talker = |address: &str, sent_bytes, received_bytes, flows| Talker {
        address: address.to_owned(),
        sent_bytes,
        received_bytes,
        flows,
    };
    let connection = |originator: &str, responder: &str, service: Option<&str>, bytes| Connection {
        uid: "C00000000000000001".to_owned(),
        originator: originator.to_owned(),
        responder: responder.to_owned(),
        proto: "tcp".to_owned(),
        service: service.map(str::to_owned),
        state: "SF".to_owned(),
        duration_nanos: Some(12_345_678_900),
        packets: bytes / 700,
        bytes,
    };
    Summary {
        input: Input {
            jobs: None,
            sources: vec![
                InputSource {
                    name: "morning.pcapng".to_owned(),
                    format: "pcapng".to_owned(),
                    compression: vec!["zstd".to_owned()],
                    bytes: Some(600_000_000),
                    packets: 1_000_000,
                    interfaces: vec![CaptureInterface {
                        name: Some("eth0".to_owned()),
                        link_type: "ETHERNET".to_owned(),
                        dropped_by_interface: Some(0),
                        dropped_by_os: Some(12),
                        dropped_between_packets: None,
                    }],
                    damage_count: 0,
                    damage: Vec::new(),
                },
                InputSource {
                    name: "noon.pcap".to_owned(),
                    format: "pcap, microseconds".to_owned(),
                    compression: Vec::new(),
                    bytes: Some(490_000_000),
                    packets: 730_112,
                    interfaces: Vec::new(),
                    damage_count: 1,
                    damage: vec![
                        "packet 81342 at byte 489999001 is cut off: the file has 17 of 1514 bytes"
                            .to_owned(),
                    ],
                },
            ],
            filters: vec!["ip or ip6 or arp".to_owned()],
            packets: 1_730_112,
            wanted_packets: 1_730_112,
            wire_bytes: 1_020_000_000,
            wanted_bytes: 1_020_000_000,
            captured_bytes: 1_019_000_000,
            first: Some(Timestamp::from_secs_nanos(1_329_843_175, 736_107_000)),
            last: Some(Timestamp::from_secs_nanos(1_329_843_541, 102_334_000)),
            order: "merged by time",
            is_live: false,
            elapsed_nanos: Some(540_000_000),
        },
        layers: vec![
            layer("Ethernet", 0, 1_730_112, 1_020_000_000),
            layer("IPv4", 1, 1_700_000, 1_010_000_000),
            layer("TCP", 2, 1_500_000, 990_000_000),
            layer("UDP", 2, 199_000, 19_900_000),
            layer("ICMP", 2, 1_000, 100_000),
            layer("IPv6", 1, 30_100, 9_999_000),
            layer("ARP", 1, 12, 720),
        ],
        talkers: vec![
            talker("10.0.0.22", 812_000_000, 41_000_000, 1203),
            talker("192.0.2.200", 41_000_000, 600_000_000, 77),
            talker("2001:db8:85a3::8a2e:370:7334", 3_000_000, 6_000_000, 3),
        ],
        connections: vec![
            connection("10.0.0.22:43614", "192.0.2.200:443", Some("ssl"), 400_000_000),
            connection("255.255.255.255:65535", "255.255.255.255:65535", None, 1_000_000),
            connection(
                "[2001:db8:85a3:1:2:8a2e:370:7334]:50000",
                "[2001:db8:85a3:1:2:8a2e:370:7335]:443",
                Some("http"),
                9_000_000,
            ),
        ],
        tcp: Some(TcpHealth {
            connections: 101_300,
            established: 93_000,
            rejected: 1200,
            unanswered: 7000,
            reset: 2100,
            data_segments: Some(800_000),
            retransmitted: Some(1234),
            out_of_order: Some(12),
            duplicates: Some(0),
            with_gaps: Some(3),
            missed_bytes: Some(4380),
            acknowledged_early: Some(7),
            rtt_median_nanos: Some(12_345_000),
            rtt_p95_nanos: Some(180_100_000),
        }),
        oddities: counts(&[
            ("truncated_tcp_payload", 31_000),
            ("window_recision", 120),
            ("data_before_established", 1),
        ]),
        flows: Some(Flows {
            total: 120_000,
            by_protocol: counts(&[("tcp", 101_300), ("udp", 18_700)]),
            by_state: counts(&[("SF", 90_000), ("S0", 20_000), ("OTH", 9000), ("REJ", 1000)]),
            by_end: counts(&[
                ("end of connection", 93_000),
                ("time-out", 20_000),
                ("end of input", 7000),
            ]),
            by_service: counts(&[("http", 60_000), ("ssl", 30_000), ("dns", 18_000)]),
            by_quality: counts(&[("clean", 119_000), ("suspect", 1000)]),
            holes: counts(&[("filled", 2_000), ("lost_by_the_capture", 1_200)]),
            failed_sessions: 1,
            peak: 40_000,
            peak_bytes: 20_000_000,
            peak_held_bytes: 65_536,
        }),
        extracted: Some(Extracted {
            files: 1204,
            bytes: 98_765_432,
            cut_off: 3,
            refused: 0,
            overrun: 2,
            failed: 1,
        }),
        checksums: Checksums {
            mode: "count".to_owned(),
            discarded: 0,
            ip: Some(verdicts(1_700_000, 0, 0, 0)),
            tcp: Some(verdicts(1_499_000, 120, 204, 676)),
            udp: Some(verdicts(198_999, 1, 0, 0)),
            icmp: Some(verdicts(1000, 0, 0, 0)),
            sctp: Some(verdicts(0, 0, 0, 12)),
        },
        delivery: Vec::new(),
        capture: Vec::new(),
        books: Books {
            read: 1_730_112,
            parts: [("analysed", 1_730_100), ("filtered out", 0), ("link type not supported", 12)]
                .map(|(name, packets)| Part { name: name.to_owned(), packets: Some(packets) })
                .to_vec(),
            lost: vec![
                Part { name: "lost by the interface".to_owned(), packets: Some(12) },
                Part { name: "lost by the system".to_owned(), packets: None },
            ],
            holes: Holes { places: 2, packets: 12 },
        },
        notes: vec!["the bound of 1000000 flows was reached: 17 flows ended early".to_owned()],
    }
}

fn check_golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "the summary does not print as tests/golden/{name} has it; if that is meant, write it anew \
         with: UPDATE_GOLDEN=1 cargo test -p netsniff --test testsuite summary\n{found}"
    );
}

#[test]
fn text_is_as_agreed() {
    check_golden("summary.txt", &sample().text(Style { colour: false, signs: Signs::Unicode }));
}

#[test]
fn json_is_as_agreed() {
    let json = sample().json().unwrap();
    check_golden("summary.json", &json);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["books"]["unexplained"], 0);
    assert_eq!(value["tcp"]["rtt_median_seconds"], 0.012345);
}

#[test]
fn colours_change_nothing_but_colours() {
    let plain = sample().text(Style { colour: false, signs: Signs::Ascii });
    assert!(plain.is_ascii(), "{plain}");
    let coloured = sample().text(Style { colour: true, signs: Signs::Ascii });
    let mut stripped = String::new();
    for piece in coloured.split('\x1b') {
        stripped.push_str(piece.strip_prefix('[').map_or(piece, |p| p.split_once('m').unwrap().1));
    }
    let trimmed: Vec<_> = stripped.lines().map(str::trim_end).collect();
    assert_eq!(trimmed, plain.lines().collect::<Vec<_>>());
}

#[test]
fn nothing_is_wider_than_80_columns() {
    let mut summary = sample();
    let long = "x".repeat(300);
    summary.input.sources.truncate(1);
    summary.input.sources[0] = InputSource {
        name: format!("{long}\x1b[2J"),
        format: long.clone(),
        bytes: Some(u64::MAX),
        packets: u64::MAX,
        damage_count: u64::MAX,
        damage: vec![long.clone(), "a b ".repeat(100)],
        ..InputSource::default()
    };
    summary.input.packets = u64::MAX;
    summary.input.wanted_packets = u64::MAX;
    summary.input.wire_bytes = u64::MAX;
    summary.input.wanted_bytes = u64::MAX;
    summary.input.filters = vec![long.clone(); 5];
    summary.input.captured_bytes = u64::MAX - 1;
    summary.input.first = Some(Timestamp::MIN);
    summary.input.last = Some(Timestamp::MAX);
    summary.input.elapsed_nanos = Some(u64::MAX);
    summary.layers.push(Layer {
        name: long.clone(),
        depth: 99,
        packets: u64::MAX,
        bytes: u64::MAX,
    });
    summary.talkers[0] = Talker {
        address: "2001:0db8:85a3:0001:0002:8a2e:0370:7334".to_owned(),
        sent_bytes: u64::MAX,
        received_bytes: u64::MAX,
        flows: u64::MAX,
    };
    summary.connections[0] = Connection {
        uid: long.clone(),
        originator: long.clone(),
        responder: long.clone(),
        proto: long.clone(),
        service: Some(long.clone()),
        state: long.clone(),
        duration_nanos: Some(u64::MAX),
        packets: u64::MAX,
        bytes: u64::MAX,
    };
    summary.tcp = Some(TcpHealth {
        connections: u64::MAX,
        established: u64::MAX - 1,
        rejected: u64::MAX / 2,
        unanswered: u64::MAX / 2,
        reset: u64::MAX / 2,
        data_segments: Some(u64::MAX),
        retransmitted: Some(u64::MAX - 1),
        out_of_order: Some(u64::MAX - 1),
        duplicates: Some(u64::MAX - 1),
        with_gaps: Some(u64::MAX - 1),
        missed_bytes: Some(u64::MAX),
        acknowledged_early: Some(u64::MAX),
        rtt_median_nanos: Some(u64::MAX),
        rtt_p95_nanos: Some(u64::MAX),
    });
    summary.oddities.push(Count { name: long.clone(), count: u64::MAX });
    summary.flows.as_mut().unwrap().total = u64::MAX;
    summary.flows.as_mut().unwrap().by_state =
        vec![Count { name: long.clone(), count: u64::MAX }; 5];
    let most = Some(verdicts(u64::MAX, u64::MAX, u64::MAX, u64::MAX));
    summary.checksums = Checksums {
        mode: "discard".to_owned(),
        discarded: u64::MAX,
        ip: most,
        tcp: most,
        udp: most,
        icmp: most,
        sctp: most,
    };
    summary.books.read = u64::MAX;
    summary.books.parts[0] = Part { name: long.clone(), packets: Some(u64::MAX) };
    summary.books.parts[1] = Part { name: long, packets: None };
    summary.books.lost[0] = Part { name: "y".repeat(300), packets: Some(u64::MAX) };
    for signs in [Signs::Ascii, Signs::Unicode] {
        let text = summary.text(Style { colour: false, signs });
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
            assert!(!line.chars().any(char::is_control), "{line:?}");
        }
    }
}

#[test]
fn an_empty_summary_still_closes_its_books() {
    let text = Summary::default().text(Style::default());
    let lines: Vec<_> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    assert_eq!(lines.last().unwrap(), &["unexplained", "0"]);
    assert!(text.contains("0 packets, 0 B on the wire"), "{text}");
}

#[test]
fn checksums_are_told_only_where_there_is_something_to_tell() {
    let text = |checksums: Checksums| {
        let text = Summary { checksums, ..Summary::default() }.text(Style::default());
        let at = text.find("CHECKSUMS");
        at.map(|at| text[at..].split("\n\n").next().unwrap().to_owned())
    };
    let good = Checksums {
        mode: "count".to_owned(),
        ip: Some(verdicts(9, 0, 0, 0)),
        tcp: Some(ChecksumCounts { absent: 3, ..verdicts(9, 0, 0, 0) }),
        ..Checksums::default()
    };
    assert_eq!(text(good.clone()), None);
    let wrong = Checksums { tcp: Some(verdicts(0, 1204, 0, 0)), discarded: 1204, ..good.clone() };
    let told = "CHECKSUMS\n  wrong: TCP 1,204\n  left out: datagrams 1,204";
    assert_eq!(text(wrong).as_deref(), Some(told));
    let ignored = Checksums { mode: "ignore".to_owned(), ..Checksums::default() };
    assert_eq!(
        text(ignored.clone()).as_deref(),
        Some("CHECKSUMS\n  unavailable (--checksums ignore)")
    );
    let json = Summary { checksums: ignored, ..Summary::default() }.json().unwrap();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(value["checksums"]["tcp"].is_null(), "unavailable, not 0: {json}");
}
