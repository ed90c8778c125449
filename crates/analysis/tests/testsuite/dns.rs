//! DNS over UDP: which rows come of which messages, and that no message does harm.

use crate::support;
use std::path::Path;

use crate::support::{Row, Rows, analyse};
use netsniff_analysis::file::{Bodies, HashKinds};
use netsniff_analysis::protocol::{
    Datagram, Finding, Findings, ProtocolId, Resolution, Role, Session, SessionContext,
};
use netsniff_analysis::record::Interval;
use netsniff_analysis::{Engine, Limits, Options};
use netsniff_packet::decode::{self, Transport};
use netsniff_packet::{LinkType, Packet, Timestamp};

const CLIENT: u8 = 1;
const SERVER: u8 = 2;

/// A UDP datagram of 192.0.2.1:4000 and the `port` of 192.0.2.2.
fn udp(from: u8, port: u16, payload: &[u8]) -> Vec<u8> {
    let len = (28 + payload.len() as u16).to_be_bytes();
    let mut bytes = vec![0x45, 0, len[0], len[1], 0, 0, 0, 0, 64, 17, 0, 0];
    bytes.extend([192, 0, 2, from, 192, 0, 2, 3 - from]);
    let ports = if from == CLIENT { [4000, port] } else { [port, 4000] };
    for word in [ports[0], ports[1], 8 + payload.len() as u16, 0] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.extend(payload);
    bytes
}

/// A message with one question for `example.org` and some answers.
fn message(id: u16, flags: u16, kind: u16, answers: &[Vec<u8>]) -> Vec<u8> {
    let words = [id, flags, 1, answers.len() as u16, 0, 0];
    let mut bytes: Vec<u8> = words.into_iter().flat_map(u16::to_be_bytes).collect();
    bytes.extend(b"\x07eXample\x03org\x00");
    bytes.extend([kind, 1].into_iter().flat_map(u16::to_be_bytes));
    bytes.extend(answers.concat());
    bytes
}

fn query(id: u16) -> Vec<u8> {
    message(id, 0x0100, 1, &[])
}

fn reply(id: u16) -> Vec<u8> {
    message(id, 0x8580, 1, &[record(1, &[192, 0, 2, 80])])
}

/// A resource record of the name in the question.
fn record(kind: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xc0, 12];
    bytes.extend([kind, 1, 0, 300, data.len() as u16].into_iter().flat_map(u16::to_be_bytes));
    bytes.extend(data);
    bytes
}

fn rows(log: &str, limits: Limits, list: &[(i64, Vec<u8>)]) -> Vec<Row> {
    let packets = list.iter().map(|(millis, data)| Packet {
        timestamp: Timestamp::from_nanos(millis * 1_000_000),
        data,
        wire_len: data.len() as u32,
        link_type: LinkType::RAW,
        interface: 0,
    });
    analyse(packets, limits).log(log).into_iter().cloned().collect()
}

fn dns(list: &[(i64, Vec<u8>)]) -> Vec<Row> {
    rows("dns", Limits::default(), list)
}

fn cells<'a>(row: &'a Row, names: &[&str]) -> Vec<&'a str> {
    names.iter().map(|name| row[*name].as_str()).collect()
}

#[test]
fn a_query_and_its_reply_are_one_row() {
    let list = [(1_000, udp(CLIENT, 53, &query(7))), (1_020, udp(SERVER, 53, &reply(7)))];
    let found = dns(&list);
    assert_eq!(found.len(), 1);
    let names = ["ts", "rtt", "query", "qclass_name", "qtype_name", "rcode_name", "answers"];
    let expected = ["1.000000", "0.020000", "example.org", "C_INTERNET", "A", "NOERROR"];
    assert_eq!(cells(&found[0], &names), [&expected[..], &["192.0.2.80"]].concat());
    let names = ["AA", "TC", "RD", "RA", "Z", "TTLs", "rejected", "opcode_name"];
    let expected = ["T", "F", "T", "T", "0", "300.000000", "F", "query"];
    assert_eq!(cells(&found[0], &names), expected);
    let conn = rows("conn", Limits::default(), &list);
    assert_eq!(cells(&conn[0], &["service", "depth"]), ["dns", "protocols"]);
}

#[test]
fn what_has_no_counterpart_is_told_at_the_end_of_its_flow() {
    let found = dns(&[(0, udp(CLIENT, 53, &query(7)))]);
    assert_eq!(cells(&found[0], &["rcode", "rtt", "answers"]), ["-", "-", "-"]);
    let found = dns(&[(0, udp(CLIENT, 53, &query(7))), (5, udp(SERVER, 53, &reply(8)))]);
    let ids: Vec<_> = found.iter().map(|row| cells(row, &["trans_id", "qtype", "rcode"])).collect();
    assert_eq!(ids, [["7", "1", "-"], ["8", "-", "0"]]);
}

#[test]
fn replies_go_to_the_first_query_with_their_identifier() {
    let from = |sender, message: &[u8]| udp(sender, 53, message);
    let found = dns(&[
        (0, from(CLIENT, &query(7))),
        (10, from(CLIENT, &query(8))),
        (20, from(CLIENT, &query(7))),
        (30, from(SERVER, &reply(7))),
        (40, from(SERVER, &reply(8))),
    ]);
    let told: Vec<_> = found.iter().map(|row| cells(row, &["ts", "trans_id", "rtt"])).collect();
    let expected =
        [["0.000000", "7", "0.030000"], ["0.010000", "8", "0.030000"], ["0.020000", "7", "-"]];
    assert_eq!(told, expected);
    // A reply that comes first has a query when that comes.
    let found = dns(&[(0, from(SERVER, &reply(7))), (10, from(CLIENT, &query(7)))]);
    assert_eq!(found.len(), 1);
    assert_eq!(cells(&found[0], &["rtt", "qtype", "rcode"]), ["-", "1", "0"]);
}

#[test]
fn every_kind_of_record_has_its_words() {
    let numbers = [0, 1, 0, 2, 0, 3];
    let name = b"\x02ns\xc0\x0c";
    let signed = [&[0, 1, 8, 2][..], &[0; 14], b"\xc0\x0c", b"signature"].concat();
    for (kind, data, expected) in [
        (28, [&[0x20, 1, 0x0d, 0xb8][..], &[0; 11], &[1]].concat(), "2001:db8::1"),
        (2, name.to_vec(), "ns.example.org"),
        (6, [&name[..], b"\x00", &[0; 20]].concat(), "ns.example.org"),
        (15, [&[0, 10][..], name].concat(), "ns.example.org"),
        (33, [&numbers[..], name].concat(), "ns.example.org"),
        (16, b"\x05v=one\x00\x01x".to_vec(), "TXT 5 v=one TXT 0  TXT 1 x"),
        (99, b"\x01s".to_vec(), "SPF 1 s"),
        (29, [&[0, 0x12, 0x16, 0x13][..], &[0; 12]].concat(), "LOC:  18 22 19"),
        (
            35,
            [&[0, 1, 0, 2][..], b"\x01s\x03SIP\x00", name].concat(),
            "NAPTR 1 2 s SIP ns.example.org",
        ),
        (43, vec![1, 2, 8, 2, 9, 9], "DS 8 2"),
        (44, vec![1, 1, 0xab, 0x0c], "SSHFP: ab0c"),
        (46, signed, "RRSIG 1 example.org"),
        (47, [&name[..], &[0, 1, 0x40]].concat(), "NSEC example.org ns.example.org"),
        (48, vec![1, 0, 3, 13, 5], "DNSKEY 13"),
        (50, vec![1, 0, 0, 0, 0, 0], "NSEC3"),
        (51, vec![1, 0, 0, 0, 0], "NSEC3PARAM"),
        (65534, vec![8, 0, 1, 0, 0], "BIND9 signing signal"),
        (4711, vec![1], "<unknown type=4711>"),
        // Known, but not told.
        (65, [&[0, 1][..], b"\x00"].concat(), "-"),
        (257, b"\x00\x05issueca".to_vec(), "-"),
        (41, Vec::new(), "-"),
        // Cut, or of a wrong length.
        (1, vec![1, 2, 3], "-"),
        (46, vec![0; 17], "-"),
        (43, vec![0; 3], "-"),
    ] {
        let reply = message(7, 0x8180, kind, &[record(kind, &data)]);
        let found = dns(&[
            (0, udp(CLIENT, 53, &message(7, 0x0100, kind, &[]))),
            (1, udp(SERVER, 53, &reply)),
        ]);
        assert_eq!(cells(&found[0], &["answers"]), [expected], "{kind}");
    }
}

#[test]
fn names_of_netbios_are_decoded() {
    let mut message = message(7, 0x0110, 33, &[]);
    message.splice(12..25, *b"\x20FHEPFCELEHFCEPFFFACACACACACACAAA\x00");
    let found = dns(&[(0, udp(CLIENT, 137, &message))]);
    let names = ["query", "qtype_name", "opcode_name", "Z"];
    assert_eq!(cells(&found[0], &names), ["WORKGROUP", "NBSTAT", "netbios-query", "1"]);
}

#[test]
fn what_cannot_be_read_shows_nothing_and_takes_nothing_back() {
    let conn = |list: &[(i64, Vec<u8>)]| rows("conn", Limits::default(), list);
    let first = (0, udp(CLIENT, 53, &query(7)));
    let cut = (1, udp(CLIENT, 53, &query(7)[..18]));
    assert_eq!(conn(&[first, cut.clone()])[0]["service"], "dns");
    assert_eq!(conn(core::slice::from_ref(&cut))[0]["service"], "-");
    let weird = rows("weird", Limits::default(), &[cut]);
    let names: Vec<_> = weird.iter().map(|row| cells(row, &["name", "source"])).collect();
    assert_eq!(names, [["DNS_label_len_gt_pkt", "DNS"], ["DNS_truncated_quest_too_short", "DNS"]]);
}

#[test]
fn queries_that_nobody_answers_stay_within_the_limits() {
    let limits = Limits { pending_messages: 20, ..Limits::default() };
    let peak = |queries: u16| {
        let mut engine = Engine::new(limits, Options::default(), 7);
        let mut rows = Rows::default();
        for id in 0..queries {
            let data = udp(CLIENT, 53, &query(id));
            let packet = Packet {
                timestamp: Timestamp::from_nanos(i64::from(id) * 1_000_000),
                data: &data,
                wire_len: data.len() as u32,
                link_type: LinkType::RAW,
                interface: 0,
            };
            engine.packet(&packet, &mut rows);
        }
        engine.finish(&mut rows);
        rows.sort();
        assert_eq!(rows.log("dns").len(), usize::from(queries), "each query is told");
        engine.tracker().statistics().peak_bytes
    };
    assert!(peak(1) < peak(10), "what waits is counted");
    assert_eq!(peak(100), peak(5_000));
}

#[test]
fn replies_that_nobody_asked_for_stay_within_the_limits() {
    let long = [&[63; 1][..], &[b'x'; 63]].concat().repeat(3);
    let mut answers = vec![record(2, &[&long[..], b"\xc0\x0c"].concat())];
    answers.extend((0..400).map(|_| record(2, &[0xc0, 41])));
    let big = message(7, 0x8180, 2, &answers);
    let limits = Limits::default();
    let mut session = session(&limits);
    let mut found = Findings::default();
    for _ in 0..100 {
        feed(&mut *session, &big, &mut found);
        let most = limits.pending_bytes + limits.pending_messages * 1_000;
        assert!(session.heap_bytes() < most, "{} bytes", session.heap_bytes());
    }
    session.end(&mut found);
    assert_eq!(found.records.len(), 100);
}

fn session(limits: &Limits) -> Box<dyn Session> {
    let context = SessionContext {
        limits,
        name: 0,
        port: 53,
        hashes: HashKinds::default(),
        bodies: Bodies::default(),
        is_midstream: false,
        is_multicast: false,
        crossing_port: None,
    };
    ProtocolId::named("dns").unwrap().protocol().session(&context)
}

fn feed(session: &mut dyn Session, payload: &[u8], found: &mut Findings) {
    let time = Timestamp::EPOCH;
    let from = Role::Originator;
    session.datagram(&Datagram { time, from, port: 53, payload }, found);
}

/// What the messages of a client and its server tell of addresses.
fn resolutions(messages: &[(Role, Vec<u8>)]) -> Vec<Resolution> {
    let (mut session, mut found) = (session(&Limits::default()), Findings::default());
    for (at, (from, payload)) in (0..).zip(messages) {
        let time = Timestamp::from_nanos(at * 2_000_000);
        session.datagram(&Datagram { time, from: *from, port: 53, payload }, &mut found);
    }
    session.end(&mut found);
    let resolution = |record| match record {
        Finding::Fact(fact) => fact.downcast_ref::<Resolution>().cloned(),
        _ => None,
    };
    found.records.drain(..).filter_map(resolution).collect()
}

#[test]
fn answers_tell_the_addresses_behind_aliases_for_as_long_as_all_of_them_are_good() {
    let alias = record(5, b"\x03www\xc0\x0c");
    let mut short_lived = record(1, &[192, 0, 2, 80]);
    short_lived[6..10].copy_from_slice(&20_u32.to_be_bytes());
    let v6 = [[0x20, 1, 0xd, 0xb8].as_slice(), &[0; 12]].concat();
    // An address of another length, and a text that looks like one, tell nothing.
    let text = record(16, b"\x07192.0.2");
    let answers = [alias, short_lived, record(28, &v6), text];
    let (asked, answered) = (Role::Originator, Role::Responder);
    let told = resolutions(&[(asked, query(1)), (answered, message(1, 0x8180, 1, &answers))]);
    let [told] = &told[..] else { panic!("{told:?}") };
    assert_eq!((&*told.name, told.client), (&b"example.org"[..], Role::Originator));
    let addresses: Vec<String> = told.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["192.0.2.80", "2001:db8::"]);
    assert_eq!((told.lifetime.nanos(), told.time.nanos()), (20_000_000_000, 2_000_000));
    assert_eq!(told.rtt.map(Interval::nanos), Some(2_000_000));
    // Without the query nobody knows how long it took.
    let alone = resolutions(&[(answered, reply(1))]);
    assert_eq!((alone.len(), alone[0].rtt), (1, None));
    // Neither questions, errors nor answers without addresses.
    let failed = message(1, 0x8183, 1, &[record(1, &[192, 0, 2, 80])]);
    let without = message(1, 0x8180, 5, &[record(5, b"\x03www\xc0\x0c")]);
    let brought_along = message(1, 0x0100, 1, &[record(1, &[192, 0, 2, 80])]);
    let nothing = [(answered, failed), (answered, without), (asked, brought_along)];
    assert!(resolutions(&nothing).is_empty());
}

/// The messages of the recorded capture, each once.
fn recorded() -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded/office.pcapng");
    let mut messages: Vec<Vec<u8>> = Vec::new();
    for batch in support::read(&path) {
        for packet in batch.iter() {
            let decoded = decode::packet(packet.link_type, packet.data, packet.wire_len);
            let Transport::Udp(header) = &decoded.transport else { continue };
            if ![header.source_port, header.destination_port].contains(&53) {
                continue;
            }
            let begin = header.payload_offset as usize;
            let end = begin + header.payload_captured as usize;
            let mut message = packet.data[begin..end].to_vec();
            message[..2].fill(0);
            messages.push(message);
        }
    }
    messages.sort();
    messages.dedup();
    messages
}

#[test]
fn no_message_does_harm_cut_or_changed_anywhere() {
    let messages = recorded();
    assert!(messages.len() >= 15, "{} messages", messages.len());
    let limits = Limits::default();
    let mut found = Findings::default();
    let (mut told, mut odd) = (0, 0);
    let mut try_one = |message: &[u8]| {
        let mut session = session(&limits);
        feed(&mut *session, message, &mut found);
        session.end(&mut found);
        let rows = found.records.iter().filter(|it| matches!(it, Finding::Row(_))).count();
        let facts = found.records.drain(..).count() - rows;
        assert!(rows <= 26 && facts <= rows);
        told += rows;
        odd += found.weirds.drain().count();
    };
    for message in &messages {
        (0..=message.len()).for_each(|len| try_one(&message[..len]));
        let mut changed = message.clone();
        for at in 0..message.len() {
            for value in 0..=255 {
                changed[at] = value;
                try_one(&changed);
            }
            changed[at] = message[at];
        }
    }
    assert!(told > 100_000 && odd > 10_000, "{told} rows, {odd} oddities");
}

#[test]
fn pointers_are_followed_so_far_and_never_in_circles() {
    // Each answer's name points to the name of the one before.
    let mut message = message(7, 0x8180, 1, &[]);
    let mut last: u16 = 12;
    for _ in 0..60_u16 {
        let at = message.len() as u16;
        message.extend((0xc000 | last).to_be_bytes());
        message.extend([0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 1]);
        last = at;
    }
    message[7] = 60;
    let list = [(0, udp(CLIENT, 53, &query(7))), (1, udp(SERVER, 53, &message))];
    assert_eq!(dns(&list)[0]["answers"].split(',').count(), 32);
    let weird = rows("weird", Limits::default(), &list);
    assert_eq!(weird[0]["name"], "DNS_too_many_pointers");
    let mut circle = query(7);
    circle[12..14].copy_from_slice(&[0xc0, 12]);
    let weird = rows("weird", Limits::default(), &[(0, udp(CLIENT, 53, &circle))]);
    assert_eq!(weird[0]["name"], "DNS_label_forward_compress_offset");
}

/// A name of labels with some lengths.
fn name(labels: &[usize]) -> Vec<u8> {
    let mut name: Vec<u8> =
        labels.iter().flat_map(|len| [vec![*len as u8], vec![b'A'; *len]].concat()).collect();
    name.push(0);
    name
}

/// What a query for a name shows: the name, and the oddities.
fn asked(name: &[u8]) -> (String, Vec<String>) {
    let whole = query(7);
    let message = [&whole[..12], name, &[0, 1, 0, 1]].concat();
    let list = [(0, udp(CLIENT, 53, &message))];
    let shown = dns(&list).first().map(|row| row["query"].clone()).unwrap_or_default();
    let weird = rows("weird", Limits::default(), &list);
    (shown, weird.iter().map(|row| row["name"].clone()).collect())
}

/// RFC 1035, 2.3.4: labels of 63 octets and names of 255 at most. Names are shown in lower case.
#[test]
fn labels_and_names_have_bounds() {
    assert_eq!(asked(&name(&[63, 1])), (format!("{}.a", "a".repeat(63)), vec![]));
    let (_, oddities) = asked(&name(&[1, 64]));
    assert_eq!(oddities[0], "DNS_label_too_long");
    let longest = name(&[63, 63, 63, 61]);
    assert_eq!((longest.len(), asked(&longest).1), (255, vec![]));
    let (shown, oddities) = asked(&name(&[63, 63, 63, 62]));
    assert_eq!((shown.len(), oddities), (254, vec!["DNS_NAME_too_long".to_owned()]));
    // What has no room is left out.
    let (shown, oddities) = asked(&name(&[63; 9]));
    assert_eq!(shown.len(), 8 * 64 - 1);
    assert!(oddities.contains(&"DNS_label_len_gt_name_len".to_owned()), "{oddities:?}");
}

/// RFC 1035, 4.1.3: a record ends with its RDATA, which lies in the message.
#[test]
fn records_have_bounds() {
    let address = record(1, &[192, 0, 2, 1]);
    let told = |answers: &[Vec<u8>]| {
        let list = [
            (0, udp(CLIENT, 53, &query(7))),
            (1, udp(SERVER, 53, &message(7, 0x8180, 1, answers))),
        ];
        let weird = rows("weird", Limits::default(), &list);
        let names: Vec<_> = weird.iter().map(|row| row["name"].clone()).collect();
        (dns(&list)[0]["answers"].clone(), names)
    };
    assert_eq!(told(&[address.clone(), address.clone()]).1, [""; 0]);
    let both = "192.0.2.1,192.0.2.1";
    assert_eq!(told(&[address.clone(), address.clone()]).0, both);
    // The second one says that it is one octet longer, and the message ends before that.
    let mut long = address.clone();
    let at = long.len() - 5;
    assert_eq!(long[at], 4);
    long[at] = 5;
    let oddity = vec!["DNS_truncated_RR_rdlength_lt_len".to_owned()];
    assert_eq!(told(&[address.clone(), long]), ("192.0.2.1".to_owned(), oddity));
    // Nothing but a name.
    let cut = address[..2].to_vec();
    let oddity = vec!["DNS_truncated_ans_too_short".to_owned()];
    assert_eq!(told(&[address, cut]), ("192.0.2.1".to_owned(), oddity));
}
