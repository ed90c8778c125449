//! DNS: which messages belong together, and what is DNS at all.

use std::net::IpAddr;

use crate::support::{Row, Rows, analyse};
use netsniff_analysis::Limits;
use netsniff_packet::{LinkType, Packet, Timestamp};

type Host = (IpAddr, u16);

fn host(address: &str, port: u16) -> Host {
    (address.parse().unwrap(), port)
}

/// A UDP datagram of IPv4 or IPv6.
fn udp(from: Host, to: Host, payload: &[u8]) -> Vec<u8> {
    let len = 8 + payload.len() as u16;
    let mut bytes = match (from.0, to.0) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let total = (20 + len).to_be_bytes();
            let mut bytes = vec![0x45, 0, total[0], total[1], 0, 0, 0, 0, 64, 17, 0, 0];
            bytes.extend(from.octets());
            bytes.extend(to.octets());
            bytes
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut bytes = vec![0x60, 0, 0, 0, (len >> 8) as u8, len as u8, 17, 64];
            bytes.extend(from.octets());
            bytes.extend(to.octets());
            bytes
        }
        _ => panic!("two versions"),
    };
    for word in [from.1, to.1, len, 0] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.extend(payload);
    bytes
}

fn name(text: &str) -> Vec<u8> {
    let labels =
        text.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
    labels.chain([0]).collect()
}

/// A message with questions and answers.
fn message(
    id: u16,
    flags: u16,
    questions: &[(&str, u16)],
    answers: &[(&str, u16, &[u8])],
) -> Vec<u8> {
    let words = [id, flags, questions.len() as u16, answers.len() as u16, 0, 0];
    let mut bytes: Vec<u8> = words.into_iter().flat_map(u16::to_be_bytes).collect();
    for (text, kind) in questions {
        bytes.extend(name(text));
        bytes.extend([*kind, 1].into_iter().flat_map(u16::to_be_bytes));
    }
    for (text, kind, data) in answers {
        bytes.extend(name(text));
        bytes.extend([*kind, 1, 0, 60, data.len() as u16].into_iter().flat_map(u16::to_be_bytes));
        bytes.extend(*data);
    }
    bytes
}

const A: u16 = 1;
const AAAA: u16 = 28;
const QUERY: u16 = 0x0100;
const REPLY: u16 = 0x8180;

fn all(list: &[Vec<u8>]) -> Rows {
    let packets = (0..).zip(list).map(|(at, data)| Packet {
        timestamp: Timestamp::from_nanos(at * 1_000_000),
        data,
        wire_len: data.len() as u32,
        link_type: LinkType::RAW,
        interface: 0,
    });
    analyse(packets, Limits::default())
}

/// Query, type, code, answers and rtt of each row.
fn dns(list: &[Vec<u8>]) -> Vec<String> {
    let line = |row: &&Row| {
        let cells =
            ["query", "qtype_name", "rcode_name", "answers", "rtt"].map(|name| row[name].as_str());
        cells.join(" ")
    };
    let mut rows: Vec<_> = all(list).log("dns").iter().map(line).collect();
    rows.sort();
    rows
}

/// A client and its server of either version of IP.
fn pairs(port: u16) -> [[Host; 2]; 2] {
    [
        [host("192.0.2.1", 4000), host("192.0.2.2", port)],
        [host("2001:db8::1", 4000), host("2001:db8::2", port)],
    ]
}

#[test]
fn what_goes_to_a_group_answers_nobody() {
    for (from, to) in [
        (host("192.0.2.1", 5353), host("224.0.0.251", 5353)),
        (host("fe80::1", 5353), host("ff02::fb", 5353)),
        (host("192.0.2.1", 50000), host("224.0.0.252", 5355)),
        (host("fe80::1", 50000), host("ff02::1:3", 5355)),
    ] {
        let asked = |text| udp(from, to, &message(0, 0, &[(text, A)], &[]));
        let told = |text| udp(from, to, &message(0, 0x8400, &[], &[(text, A, &[192, 0, 2, 9])]));
        let rows = dns(&[asked("a.local"), told("b.local"), asked("c.local"), told("c.local")]);
        let expected =
            ["a.local A - - -", "b.local - NOERROR 192.0.2.9 -", "c.local - NOERROR 192.0.2.9 -"];
        assert_eq!(rows, [&expected[..2], &[expected[2], "c.local A - - -"]].concat(), "{to:?}");
    }
}

#[test]
fn a_reply_to_another_question_is_no_answer() {
    for [client, server] in pairs(53) {
        let query = udp(client, server, &message(7, QUERY, &[("a.example", A)], &[]));
        let other = |text, kind| {
            udp(server, client, &message(7, REPLY, &[(text, kind)], &[(text, A, &[192, 0, 2, 66])]))
        };
        let right = udp(
            server,
            client,
            &message(7, REPLY, &[("A.Example", A)], &[("a.example", A, &[192, 0, 2, 9])]),
        );
        for wrong in [other("evil.example", A), other("a.example", AAAA)] {
            let rows = dns(&[query.clone(), wrong, right.clone()]);
            assert_eq!(rows.len(), 2, "{rows:?}");
            assert!(
                rows.contains(&"a.example A NOERROR 192.0.2.9 0.002000".to_owned()),
                "{rows:?}"
            );
        }
        // Without a question the identifier must do.
        let refused = udp(server, client, &message(7, 0x8181, &[], &[]));
        assert_eq!(dns(&[query, refused]), ["a.example A FORMERR - -"]);
    }
}

#[test]
fn a_reply_alone_tells_its_question() {
    for [client, server] in pairs(53) {
        for (code, word) in [(0, "NOERROR"), (2, "SERVFAIL"), (3, "NXDOMAIN"), (5, "REFUSED")] {
            for (kind, kind_name) in [(A, "A"), (16, "TXT"), (255, "*")] {
                let mut reply = message(7, 0x8180 | code, &[("gone.example", kind)], &[]);
                let alone = udp(server, client, &reply);
                assert_eq!(dns(&[alone]), [format!("gone.example {kind_name} {word} - -")]);
                // The owner of what stands in the authority section is not what was asked for.
                reply[9] = 1;
                reply.extend(name("example"));
                reply.extend([0, 2, 0, 1, 0, 0, 0, 60, 0, 1, 0]);
                let alone = udp(server, client, &reply);
                assert_eq!(dns(&[alone]), [format!("gone.example {kind_name} {word} - -")]);
            }
        }
        let told = message(7, REPLY, &[("a.example", A)], &[("a.example", A, &[192, 0, 2, 9])]);
        assert_eq!(dns(&[udp(server, client, &told)]), ["a.example - NOERROR 192.0.2.9 -"]);
    }
}

#[test]
fn each_question_of_a_message_has_a_row() {
    for [client, server] in pairs(53) {
        let questions =
            [("foo.example", A), ("bar.example", A), ("baz.example", AAAA), ("baz.example", A)];
        let query = udp(client, server, &message(7, QUERY, &questions, &[]));
        let alias = name("real.example");
        let answers: [(&str, u16, &[u8]); 4] = [
            ("bar.example", A, &[192, 0, 2, 1]),
            ("baz.example", 5, &alias),
            ("real.example", A, &[192, 0, 2, 2]),
            ("else.example", A, &[192, 0, 2, 3]),
        ];
        let reply = udp(server, client, &message(7, REPLY, &questions, &answers));
        assert_eq!(
            dns(&[query.clone(), reply.clone()]),
            [
                "bar.example A NOERROR 192.0.2.1 0.001000",
                "baz.example A NOERROR real.example,192.0.2.2 0.001000",
                "baz.example AAAA NOERROR real.example 0.001000",
                "else.example - NOERROR 192.0.2.3 -",
                "foo.example A NOERROR - -",
            ]
        );
        assert_eq!(dns(&[reply]).len(), 5);
        // A server that answers one of them, and one that refuses all.
        let one = udp(server, client, &message(7, REPLY, &questions[..1], &[]));
        let rows = dns(&[query.clone(), one]);
        assert_eq!(rows.iter().filter(|row| row.contains("NOERROR")).count(), 1, "{rows:?}");
        let refused = udp(server, client, &message(7, 0x8181, &[], &[]));
        let rows = dns(&[query, refused]);
        assert!(rows.len() == 4 && rows.iter().all(|row| row.contains("FORMERR")), "{rows:?}");
    }
    // By multicast as well.
    let asked = message(0, 0, &[("a.local", A), ("b.local", AAAA)], &[]);
    let asked = udp(host("192.0.2.1", 5353), host("224.0.0.251", 5353), &asked);
    assert_eq!(dns(&[asked]), ["a.local A - - -", "b.local AAAA - - -"]);
}

#[test]
fn a_message_with_thousands_of_names_has_few_rows() {
    let names: Vec<String> = (0..900).map(|number| format!("n{number}.example")).collect();
    let answers: Vec<_> =
        names.iter().map(|name| (name.as_str(), A, &[192, 0, 2, 1][..])).collect();
    let reply = message(7, REPLY, &[("a.example", A), ("b.example", A)], &answers);
    let [client, server] = pairs(53)[0];
    assert!(dns(&[udp(server, client, &reply)]).len() <= 64);
}

/// What is no DNS: too many questions.
fn junk(first: u8) -> Vec<u8> {
    [&[first, 0x26, 2, 1, 1, 4, 6], &b"public\xa0\x19\x02\x04 and so on"[..]].concat()
}

#[test]
fn what_comes_before_and_behind_junk_is_read() {
    for [client, server] in pairs(53) {
        let query = udp(client, server, &message(7, QUERY, &[("a.example", A)], &[]));
        let reply = message(7, REPLY, &[("a.example", A)], &[("a.example", A, &[192, 0, 2, 9])]);
        let reply = udp(server, client, &reply);
        let bad = [udp(client, server, &junk(0x30)), udp(server, client, &junk(0x31))];
        for list in [
            vec![&bad[0], &query, &reply],
            vec![&bad[1], &query, &reply],
            vec![&query, &bad[1], &reply],
            vec![&query, &reply, &bad[0], &bad[1]],
            vec![&bad[0], &bad[0], &bad[1], &bad[0], &query, &reply],
        ] {
            let list: Vec<_> = list.into_iter().cloned().collect();
            let rows = all(&list);
            let dns = rows.log("dns");
            assert_eq!(dns.len(), 1);
            assert_eq!((dns[0]["query"].as_str(), &*dns[0]["answers"]), ("a.example", "192.0.2.9"));
            // The question was read, and not only what the reply repeats of it.
            assert_eq!(dns[0]["qtype_name"], "A");
            assert_ne!(dns[0]["rtt"], "-");
            assert_eq!(rows.log("conn")[0]["service"], "dns");
            let weirds = rows.log("weird");
            assert_eq!(weirds.len(), 1, "told once: {weirds:?}");
            assert_eq!(weirds[0]["name"], "DNS_Conn_count_too_large");
        }
        let rows = all(&[bad[0].clone(), bad[1].clone()]);
        assert_eq!((rows.log("dns").len(), &*rows.log("conn")[0]["service"]), (0, "-"));
        // Where something else is said, what is not surely DNS is none.
        let mut half = message(7, QUERY, &[("a.example", A)], &[]);
        half.extend(b"more");
        assert!(dns(&[bad[0].clone(), udp(client, server, &half)]).is_empty());
    }
}

#[test]
fn a_message_is_known_on_any_port() {
    for port in [8053, 9, 40_000] {
        for [client, server] in pairs(port) {
            let query = |id, text| udp(client, server, &message(id, QUERY, &[(text, A)], &[]));
            let reply = |id, text| {
                udp(
                    server,
                    client,
                    &message(id, REPLY, &[(text, A)], &[(text, A, &[192, 0, 2, 9])]),
                )
            };
            let list = [
                query(1, "a.example"),
                reply(1, "a.example"),
                query(2, "b.example"),
                reply(2, "b.example"),
            ];
            assert_eq!(
                dns(&list),
                [
                    "a.example A NOERROR 192.0.2.9 0.001000",
                    "b.example A NOERROR 192.0.2.9 0.001000"
                ]
            );
            assert_eq!(all(&list).log("conn")[0]["service"], "dns");
            let gone = udp(server, client, &message(3, 0x8183, &[("gone.example", A)], &[]));
            let rows = all(&[gone]);
            assert_eq!(
                (&*rows.log("dns")[0]["query"], &*rows.log("dns")[0]["id.resp_p"]),
                ("gone.example", &*port.to_string())
            );
        }
    }
}

/// What comes first tells who asks; the port of NetBIOS names is then the one that asked.
#[test]
fn answers_to_the_port_of_netbios_names_are_of_netbios() {
    let [other, names] = pairs(137)[0];
    let answer = |id| udp(other, names, &message(id, 0x8500, &[], &[]));
    let rows = all(&[answer(1), answer(2)]);
    let told: Vec<_> =
        rows.log("dns").iter().map(|row| (&*row["id.orig_p"], &*row["opcode_name"])).collect();
    assert_eq!(told, [("137", "netbios-query"); 2]);
}

#[test]
fn what_merely_looks_like_dns_is_none() {
    let [client, server] = pairs(8053)[0];
    let mut state = 1_u64;
    for _ in 0..2_000 {
        let mut payload: Vec<u8> = (0..40)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        // A header as of a query, and noise behind it.
        payload[2..12].copy_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert!(dns(&[udp(client, server, &payload)]).is_empty(), "{payload:?}");
    }
    // Speech: RTP has a version where DNS has its identifier, and noise behind.
    let speech = [&[0x80, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], &[0xd5; 160]].concat();
    assert!(dns(&[udp(client, server, &speech)]).is_empty());
}

#[test]
fn an_update_is_told_with_what_it_changes() {
    let [client, server] = pairs(53)[0];
    let mut update = message(7, 0x2800, &[("example.org", 6)], &[]);
    (update[7], update[9]) = (1, 3);
    for (kind, class, data) in
        [(5, 254, &b""[..]), (28, 255, b""), (1, 255, b""), (1, 1, &[192, 0, 2, 9])]
    {
        update.extend(name("win.example.org"));
        update
            .extend([kind, class, 0, 60, data.len() as u16].into_iter().flat_map(u16::to_be_bytes));
        update.extend(data);
    }
    let mut repeated = update.clone();
    (repeated[2], repeated[3]) = (0xa8, 5);
    let short = message(7, 0xa805, &[("example.org", 6)], &[]);
    let changes = "pre: NoRRSet CNAME win.example.org,del: RRSet AAAA,del: RRSet A,add: A win.example.org 192.0.2.9";
    for reply in [repeated, short] {
        let rows = dns(&[udp(client, server, &update), udp(server, client, &reply)]);
        assert_eq!(rows, [format!("win.example.org - REFUSED {changes} 0.001000")]);
    }
}
