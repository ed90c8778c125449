//! Flows of datagrams: when an exchange is over, who asked, and what is no flow.

use crate::support;
use crate::support::{Row, analyse};
use netsniff_analysis::Limits;
use netsniff_packet::{LinkType, Packet, Timestamp};

const SECOND: i64 = 1_000_000_000;

/// A UDP datagram from 192.0.2.`from` to the other of 192.0.2.1 and 192.0.2.2.
fn udp(from: u8, ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let len = (28 + payload.len() as u16).to_be_bytes();
    let mut bytes = vec![0x45, 0, len[0], len[1], 0, 0, 0, 0, 64, 17, 0, 0];
    bytes.extend([192, 0, 2, from, 192, 0, 2, 3 - from]);
    for word in [ports[0], ports[1], 8 + payload.len() as u16, 0] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.extend(payload);
    bytes
}

/// An IPv6 packet from 2001:db8::1 to 2001:db8::2.
fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u16).to_be_bytes();
    let mut bytes = vec![0x60, 0, 0, 0, len[0], len[1], next_header, 64];
    for last in [1, 2] {
        bytes.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    bytes.extend(payload);
    bytes
}

/// A DNS header with a number of questions.
fn message(response: bool, questions: u8) -> [u8; 12] {
    [0, 1, u8::from(response) << 7, 0, 0, questions, 0, 0, 0, 0, 0, 0]
}

/// The connections of packets at whole seconds.
fn conn(list: &[(i64, Vec<u8>)]) -> Vec<Row> {
    let list: Vec<_> = list.iter().map(|(at, data)| (at * SECOND, data.clone())).collect();
    conn_at_nanos(&list)
}

fn conn_at_nanos(list: &[(i64, Vec<u8>)]) -> Vec<Row> {
    let packets = list.iter().map(|(nanos, data)| Packet {
        timestamp: Timestamp::from_nanos(*nanos),
        data,
        wire_len: data.len() as u32,
        link_type: LinkType::RAW,
        interface: 0,
    });
    analyse(packets, Limits::default()).log("conn").into_iter().cloned().collect()
}

/// The packets of each row, originator and responder.
fn counts(rows: &[Row]) -> Vec<(&str, &str)> {
    rows.iter().map(|row| (row["orig_pkts"].as_str(), row["resp_pkts"].as_str())).collect()
}

#[test]
fn an_exchange_of_dns_is_over_after_ten_seconds_and_other_datagrams_after_a_minute() {
    let at = |seconds, port, payload: &[u8]| (seconds, udp(1, [4000, port], payload));
    let ask = message(false, 1);
    assert_eq!(conn(&[at(0, 53, &ask), at(30, 53, &ask)]).len(), 2);
    assert_eq!(conn(&[at(0, 54, &ask), at(30, 54, &ask)]).len(), 1);
    assert_eq!(conn(&[at(0, 54, &ask), at(70, 54, &ask)]).len(), 2);
}

#[test]
fn a_datagram_too_short_for_dns_does_not_end_the_watch_for_it() {
    let short = |seconds| (seconds, udp(1, [4000, 53], b"short"));
    assert_eq!(conn(&[short(0), short(1), short(30)]).len(), 2);
}

#[test]
fn what_is_no_dns_lives_as_long_as_other_datagrams_once_another_comes() {
    let other = |seconds| (seconds, udp(1, [4000, 53], &message(false, 26)));
    // Zeek removes its analyser when the next packet comes, and with it the shorter time-out.
    assert_eq!(counts(&conn(&[other(0), other(1), other(45)])), [("3", "0")]);
    assert_eq!(counts(&conn(&[other(0), other(45)])), [("1", "0"), ("1", "0")]);
}

#[test]
fn an_answer_that_comes_first_was_not_asked_by_its_sender() {
    let first = |questions| [(0, udp(1, [53, 53], &message(true, questions)))];
    for questions in [1, 26] {
        let rows = conn(&first(questions));
        assert_eq!(rows[0]["id.orig_h"], "192.0.2.2");
        assert_eq!((rows[0]["history"].as_str(), rows[0]["conn_state"].as_str()), ("D^", "SHR"));
        assert_eq!(counts(&rows), [("0", "1")]);
    }
}

#[test]
fn messages_of_unknown_kinds_are_told_once() {
    let mut unknown = message(false, 1);
    unknown[2] = 6 << 3;
    let list = [(0, udp(1, [4000, 53], &unknown)), (1, udp(1, [4000, 53], &unknown))];
    assert_eq!(conn(&list)[0]["history"], "DX");
    assert_eq!(conn(&[(0, udp(1, [4000, 137], &unknown))])[0]["history"], "D");
}

#[test]
fn times_and_duration_are_whole_microseconds_that_fit_each_other() {
    let datagram = || udp(1, [4000, 54], b"data");
    for (nanos, duration, bytes) in [
        (1999, "-", "-"),
        (2000, "0.000001", "8"),
        (2999, "0.000001", "8"),
        (3000, "0.000002", "8"),
    ] {
        let rows = conn_at_nanos(&[(1001, datagram()), (nanos, datagram())]);
        let cells = (rows[0]["duration"].as_str(), rows[0]["orig_bytes"].as_str());
        assert_eq!(cells, (duration, bytes), "{nanos}");
    }
}

#[test]
fn encrypted_payload_is_a_flow_in_ipv4_only() {
    let mut v4 = udp(1, [1, 2], &[0; 24]);
    v4[9] = 50;
    assert_eq!(conn(&[(0, v4)])[0]["ip_proto"], "50");
    assert!(conn(&[(0, ipv6(50, &[0; 32]))]).is_empty());
    assert_eq!(conn(&[(0, ipv6(89, &[0; 32]))])[0]["ip_proto"], "89");
}

/// All logs of packets at whole seconds.
fn logs(list: &[(i64, Vec<u8>)]) -> support::Rows {
    let packets = list.iter().map(|(second, data)| Packet {
        timestamp: Timestamp::from_nanos(*second * SECOND),
        data,
        wire_len: data.len() as u32,
        link_type: LinkType::RAW,
        interface: 0,
    });
    analyse(packets, Limits::default())
}

/// What is none of its messages, from either side and in any place, hides no other. All clients of a
/// network that have no address share one flow of DHCP.
#[test]
fn messages_of_a_port_are_read_beside_what_is_none() {
    let ntp = [&[0x23][..], &[1; 47]].concat();
    let mut dhcp =
        [&[1, 1, 6, 0, 0, 0, 0, 7][..], &[0; 20], &[2, 0, 0, 0, 0, 1], &[0; 202]].concat();
    dhcp.extend([0x63, 0x82, 0x53, 0x63, 53, 1, 1, 255]);
    let dhcpv6 = [1, 0, 0, 7, 0, 1, 0, 10, 0, 3, 0, 1, 2, 0, 0, 0, 0, 1];
    for (ports, log, good) in [
        ([40_000, 123], "ntp", &ntp[..]),
        ([68, 67], "dhcp", &dhcp),
        ([546, 547], "dhcpv6", &dhcpv6),
    ] {
        // Too short, and of a form that none has.
        for bad in [&[0xff; 9][..], &[0xff; 48]] {
            for places in [&[0][..], &[1], &[0, 1], &[0, 2, 3], &[0, 0, 0]] {
                let mut list = vec![good; 2];
                for &place in places {
                    list.insert(place, bad);
                }
                let at =
                    |(second, payload): (usize, &&[u8])| (second as i64, udp(1, ports, payload));
                let rows = logs(&list.iter().enumerate().map(at).collect::<Vec<_>>());
                let found = rows.log(log).len();
                assert_eq!(found, if log == "ntp" { 2 } else { 1 }, "{log} {places:?}");
                assert_ne!(rows.log("conn")[0]["service"], "-", "{log} {places:?}");
                assert_eq!(rows.log("weird").len(), 1, "told once");
            }
        }
    }
}

/// A message of SNMP that names sysDescr.0: a request of version 1, or the response to it.
fn snmp(tag: u8) -> Vec<u8> {
    let variable = [0x30, 12, 6, 8, 0x2b, 6, 1, 2, 1, 1, 1, 0, 5, 0];
    let head = [0x30, 38, 2, 1, 0, 4, 6, b'p', b'u', b'b', b'l', b'i', b'c', tag, 25];
    [&head[..], &[2, 1, 7, 2, 1, 0, 2, 1, 0, 0x30, 14], &variable].concat()
}

/// On their ports and on others, which their content tells; and neither junk before a message nor
/// junk behind it keeps one from being read.
#[test]
fn messages_of_syslog_and_snmp_are_read_on_any_port_beside_junk() {
    let junk = &[0xff; 48][..];
    let (ask, answer) = (snmp(0xa0), snmp(0xa2));
    let flow = |port, list: &[(u8, &[u8])]| {
        let at = |(second, (from, payload)): (usize, &(u8, &[u8]))| {
            let ports = if *from == 1 { [40_000, port] } else { [port, 40_000] };
            (second as i64, udp(*from, ports, payload))
        };
        logs(&list.iter().enumerate().map(at).collect::<Vec<_>>())
    };
    for port in [161, 162, 5000] {
        let list = [(1, junk), (1, &ask), (1, junk), (2, &answer), (1, junk), (1, &ask)];
        let rows = flow(port, &list);
        let [row] = rows.log("snmp")[..] else { panic!("one row of port {port}") };
        let cells =
            ["version", "community", "get_requests", "get_responses"].map(|name| &row[name]);
        assert_eq!(cells, ["1", "public", "2", "1"], "{port}");
        assert_eq!((rows.log("conn")[0]["service"].as_str(), rows.log("weird").len()), ("snmp", 1));
    }
    // Whatever comes to port 514 is a message.
    for (port, expected) in [(514, 4), (5000, 2)] {
        let rows = flow(port, &[(1, junk), (1, b"<13>x"), (1, junk), (1, b"<191>y")]);
        assert_eq!(rows.log("syslog").len(), expected, "{port}");
        let said: Vec<_> = rows.log("syslog").iter().map(|row| row["message"].clone()).collect();
        assert!(said.contains(&"x".to_owned()) && said.contains(&"y".to_owned()), "{said:?}");
        assert_eq!(
            (rows.log("conn")[0]["service"].as_str(), rows.log("weird").len()),
            ("syslog", 0)
        );
    }
}
