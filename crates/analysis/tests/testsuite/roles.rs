//! Whoever speaks first, and however it is found out who asked: each column of a record belongs to the
//! side that it names.

use std::collections::BTreeMap;

use crate::support::wire::{Client, Part, RST_ACK, SYN, SYN_ACK, Server, Wire};
use crate::support::{Row, Rows, analyse, packet};
use netsniff_analysis::Limits;
use netsniff_packet::decode::{self, TcpFlags, Transport};
use netsniff_packet::{LinkType, Packet, Timestamp};
use netsniff_traffic::frame::{Host, udp_frame};

const REQUEST: &[u8] = b"GET /evil HTTP/1.1\r\nHost: evil.example\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// What a host sent, by its packets.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sent {
    packets: u64,
    ip_bytes: u64,
    payload: u64,
    letters: BTreeMap<char, bool>,
}

/// What each host sent, by address and port.
fn sent<'a>(packets: impl Iterator<Item = Packet<'a>>) -> BTreeMap<String, Sent> {
    let mut hosts: BTreeMap<String, Sent> = BTreeMap::new();
    for packet in packets {
        let decoded = decode::packet(LinkType::ETHERNET, packet.data, packet.data.len() as u32);
        let ip = decoded.ip.unwrap();
        let (port, payload, flags) = match decoded.transport {
            Transport::Udp(udp) => (udp.source_port, udp.payload_len, None),
            Transport::Tcp(tcp) => (tcp.source_port, tcp.payload_len, Some(tcp.flags)),
            other => panic!("{other:?}"),
        };
        let host = hosts.entry(format!("{} {port}", ip.source)).or_default();
        host.packets += 1;
        host.ip_bytes += u64::from(ip.total_len);
        host.payload += u64::from(payload);
        let is = |flag| flags.is_some_and(|flags| flags.any(flag));
        let letter = match () {
            () if is(TcpFlags::SYN) && is(TcpFlags::ACK) => 'h',
            () if is(TcpFlags::SYN) => 's',
            () if is(TcpFlags::FIN) => 'f',
            () if is(TcpFlags::RST) => 'r',
            () if payload > 0 => 'd',
            () => 'a',
        };
        host.letters.insert(letter, true);
    }
    hosts
}

/// The letters of originator and responder. Those before a `^` were noted when the sides had each
/// other's place.
fn letters(history: &str) -> [BTreeMap<char, bool>; 2] {
    let mut sides = [BTreeMap::new(), BTreeMap::new()];
    for letter in history.chars() {
        if letter == '^' {
            sides.swap(0, 1);
        } else if "shfrda".contains(letter.to_ascii_lowercase()) {
            let side = usize::from(letter.is_lowercase());
            sides[side].insert(letter.to_ascii_lowercase(), true);
        }
    }
    sides
}

/// The columns of a row by the host that they are of.
fn by_host(row: &Row) -> BTreeMap<String, BTreeMap<&str, &str>> {
    let host =
        |side: &str| format!("{} {}", row[&format!("id.{side}_h")], row[&format!("id.{side}_p")]);
    let of_side = |side: &str| {
        let prefix = format!("{side}_");
        row.iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(&prefix)?, value.as_str())))
            .collect()
    };
    ["orig", "resp"].map(|side| (host(side), of_side(side))).into()
}

/// Packets, bytes and letters of each connection are those of its hosts, and all of its rows have its
/// sides.
#[track_caller]
fn expect_sides(rows: &Rows, hosts: &BTreeMap<String, Sent>, has_payload: bool) {
    let conns = rows.log("conn");
    assert_eq!(conns.len(), 1, "{conns:?}");
    let conn = conns[0];
    for (host, columns) in by_host(conn) {
        let nothing = Sent::default();
        let sent = hosts.get(&host).unwrap_or(&nothing);
        assert_eq!(columns["pkts"], sent.packets.to_string(), "{host}: {conn:?}");
        assert_eq!(columns["ip_bytes"], sent.ip_bytes.to_string(), "{host}: {conn:?}");
        let bytes = columns["bytes"];
        if has_payload && bytes != "-" {
            assert_eq!(bytes, sent.payload.to_string(), "{host}: {conn:?}");
        }
    }
    let told = letters(&conn["history"]);
    for (side, told) in ["orig", "resp"].into_iter().zip(told) {
        let host = format!("{} {}", conn[&format!("id.{side}_h")], conn[&format!("id.{side}_p")]);
        let said = hosts.get(&host).map(|sent| sent.letters.clone()).unwrap_or_default();
        assert_eq!(told, said, "{side} of {conn:?}");
    }
    // An oddity has the sides that were known when it came.
    for (log, of_log) in rows.logs.iter().filter(|(log, _)| **log != "weird") {
        for (_, row) in of_log.iter().filter(|(_, row)| row.get("uid") == conn.get("uid")) {
            for column in ["id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"] {
                assert_eq!(row.get(column), conn.get(column), "{log}: {row:?}");
            }
        }
    }
}

/// A question for an address, or its answer.
fn dns(id: u16, name: &[u8], is_answer: bool) -> Vec<u8> {
    let (flags, answers) = if is_answer { ([0x81, 0x80], 1) } else { ([1, 0], 0) };
    let mut message = [&id.to_be_bytes()[..], &flags, &[0, 1, 0, answers, 0, 0, 0, 0]].concat();
    message.push(name.len() as u8);
    message.extend(name);
    message.extend([0, 0, 1, 0, 1]);
    if is_answer {
        message.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 99]);
    }
    message
}

/// The same of NetBIOS (RFC 1002, 4.2).
fn netbios(id: u16, is_answer: bool) -> Vec<u8> {
    let (flags, counts) = if is_answer {
        ([0x85, 0], [0, 0, 0, 1, 0, 0, 0, 0])
    } else {
        ([1, 0x10], [0, 1, 0, 0, 0, 0, 0, 0])
    };
    let mut message = [&id.to_be_bytes()[..], &flags, &counts].concat();
    message.push(32);
    message.extend(b"EGFCEFEECACACACACACACACACACACAAA");
    message.extend([0, 0, 0x20, 0, 1]);
    if is_answer {
        message.extend([0, 0, 0, 60, 0, 6, 0, 0, 192, 0, 2, 99]);
    }
    message
}

#[test]
fn datagrams_belong_to_who_sent_them() {
    let addresses = [[192, 0, 2, 1], [192, 0, 2, 200]];
    // Which host has the lower address tells nothing.
    for [asker, server] in [addresses, [addresses[1], addresses[0]]] {
        for (ports, is_netbios, service) in [
            ([40_000, 53], false, "dns"),
            ([53, 53], false, "dns"),
            ([137, 137], true, "dns"),
            ([40_000, 137], true, "dns"),
            ([5353, 5353], false, "dns"),
            ([40_000, 5353], false, "dns"),
        ] {
            let hosts = [Host::new(asker.into(), ports[0]), Host::new(server.into(), ports[1])];
            let message = |id, is_answer| {
                let data = if is_netbios {
                    netbios(id, is_answer)
                } else {
                    dns(id, b"example", is_answer)
                };
                let [from, to] = if is_answer { [1, 0] } else { [0, 1] };
                udp_frame(&hosts[from], &hosts[to], id * 2 + u16::from(is_answer), &data).unwrap()
            };
            let whole: Vec<_> =
                (1..4).flat_map(|id| [message(id, false), message(id, true)]).collect();
            // All that was captured, from each packet on, and answers or questions alone.
            let mut captures: Vec<Vec<_>> =
                (0..whole.len()).map(|at| whole[at..].to_vec()).collect();
            captures.push(whole.iter().skip(1).step_by(2).cloned().collect());
            captures.push(whole.iter().step_by(2).cloned().collect());
            for frames in captures {
                let start = Timestamp::from_secs_nanos(1_767_225_600, 0);
                let packets = || {
                    let times = (0..).map(|at| start.offset(at * 1_000_000));
                    times.zip(&frames).map(|(time, frame)| packet(time, frame))
                };
                let rows = analyse(packets(), Limits::default());
                expect_sides(&rows, &sent(packets()), true);
                let conn = rows.log("conn")[0];
                assert_eq!(conn["service"], service, "{conn:?}");
                let [orig, resp] = ["orig_pkts", "resp_pkts"].map(|column| conn[column] != "0");
                let state = match (orig, resp) {
                    (true, true) => "SF",
                    (true, false) => "S0",
                    _ => "SHR",
                };
                assert_eq!(conn["conn_state"], state, "{conn:?}");
                assert_eq!(conn["id.orig_h"], hosts[0].address.to_string(), "{ports:?}: {conn:?}");
            }
        }
    }
}

/// The connection as it is cut by the begin of the capture and by what that lost, to a port that is known
/// for a server's and to one that is not.
fn wires() -> impl Iterator<Item = [Wire; 2]> {
    let kinds = (0..5).flat_map(|end| (0..4).map(move |lost| (end, lost)));
    kinds.flat_map(|(end, lost)| {
        let both = [80, 50_001].map(|port| {
            let mut wire = Wire::new(port);
            if lost & 1 == 0 {
                wire.stamped(7_000);
            }
            // SYN and SYN-ACK may be captured in the wrong order.
            wire.open();
            if lost == 3 {
                wire.swap_first();
            }
            for turn in 0..3 {
                wire.says(Client, REQUEST);
                if lost > 1 && turn == 1 {
                    wire.hides(Client, REQUEST);
                }
                wire.sends(Server, &RESPONSE[..20]).says(Server, &RESPONSE[20..]);
                if lost > 0 && turn == 1 {
                    wire.hides(Server, RESPONSE);
                }
                // Once more, and a window that closes.
                let again = wire.next(Server) - 10;
                wire.data_at(Server, again, &RESPONSE[RESPONSE.len() - 10..]).acks(Client);
                wire.put(Client, &Part { window: 0, ..wire.part(Client) }).acks(Client);
            }
            match end {
                0 => wire.ends(Client).ends(Server),
                1 => wire.ends(Server).ends(Client),
                2 => wire.ends(Server),
                3 => wire.put(Server, &Part { flags: RST_ACK, ..wire.part(Server) }),
                _ => wire.put(Client, &Part { flags: RST_ACK, ..wire.part(Client) }),
            };
            wire
        });
        let len = both[0].len();
        (0..len.min(9)).map(move |cut| {
            let mut both = both.clone();
            (0..cut).for_each(|_| both.iter_mut().for_each(|wire| _ = wire.drop_first()));
            both
        })
    })
}

/// The state where the sides have each other's place; `None` where there is none, since Zeek tells
/// connections without a begin by the responder alone.
fn mirrored(state: &str) -> Option<&str> {
    Some(match state {
        "RSTO" => "RSTR",
        "RSTR" => "RSTO",
        "S2" => "S3",
        "S3" => "S2",
        "SF" | "S1" => state,
        _ => return None,
    })
}

#[test]
fn segments_belong_to_who_sent_them() {
    let (mut flipped, mut states) = (0, 0);
    for both in wires() {
        let told = both.clone().map(|wire| wire.logs().0);
        for (rows, wire) in told.iter().zip(&both) {
            expect_sides(rows, &sent(wire.packets()), false);
        }
        // By the port alone it differs who is the originator; the rest is of the same hosts.
        let values = |rows: &Rows, log: &str| -> Vec<_> {
            let of_hosts = |row: &&Row| {
                let hosts = by_host(row).into_iter().map(|(host, columns)| {
                    let host = host.replace("50001", "80");
                    let columns = columns.into_iter().filter(|(name, _)| *name != "l2_addr");
                    let columns = columns.map(|(name, value)| (name.to_owned(), value.to_owned()));
                    (host, columns.collect::<BTreeMap<_, _>>())
                });
                hosts.collect::<BTreeMap<_, _>>()
            };
            rows.log(log).iter().map(of_hosts).collect()
        };
        for log in ["conn", "tcp"] {
            assert_eq!(values(&told[0], log), values(&told[1], log), "{log}");
        }
        let gaps = |rows: &Rows| {
            let gap = |row: &&Row| {
                let side = if row["is_orig"] == "T" { "id.orig_p" } else { "id.resp_p" };
                let from = row[side].replace("50001", "80");
                let columns = ["what", "start", "end", "bytes", "cause", "ended"];
                format!("{from} {}", columns.map(|column| row[column].as_str()).join(" "))
            };
            let mut gaps: Vec<_> = rows.log("gaps").iter().map(gap).collect();
            gaps.sort();
            gaps
        };
        assert_eq!(gaps(&told[0]), gaps(&told[1]));
        let [known, other] = [&told[0], &told[1]].map(|rows| rows.log("conn")[0]);
        // Zeek does not count what is missing where the SYN came behind its answer.
        if !known["history"].starts_with("^hS") {
            assert_eq!(known["missed_bytes"], other["missed_bytes"], "{known:?} {other:?}");
        }
        for column in ["capture_missed_bytes", "network_missed_bytes", "quality"] {
            assert_eq!(known[column], other[column], "{column}: {known:?} {other:?}");
        }
        let is_flipped = known["id.orig_h"] != other["id.orig_h"];
        let state = other["conn_state"].as_str();
        let state = if is_flipped { mirrored(state) } else { Some(state) };
        if let (Some(state), Some(_)) = (state, mirrored(&known["conn_state"])) {
            assert_eq!(known["conn_state"], state, "{known:?} {other:?}");
            states += usize::from(is_flipped);
        }
        flipped += usize::from(is_flipped);
    }
    assert!(flipped > 40 && states > 0, "{flipped} with other sides, {states} with a state");
}

/// Maximum segment size, window scale, and whether SACK is permitted (RFC 9293, 3.2; 7323, 2.2; 2018, 2).
fn syn_options(mss: u16, scale: u8, sack: bool) -> Vec<u8> {
    let sack = if sack { [4, 2] } else { [1, 1] };
    [&[2, 4][..], &mss.to_be_bytes(), &[3, 3, scale, 1], &sack, &[1, 1]].concat()
}

/// The columns of the row of a log.
fn row(rows: &Rows, log: &str, columns: &[&str]) -> Vec<String> {
    let all = rows.log(log);
    let [row] = all[..] else { panic!("{log}: {all:?}") };
    columns.iter().map(|name| row[*name].clone()).collect()
}

#[test]
fn what_was_known_before_the_sides_changed_places_stays_with_its_side() {
    const LOST: &[u8] = b"lost by the capture.";
    // By a port that is no server's, the host of the first packet is the originator until the SYN comes.
    let wire = |(late, port)| {
        let mut wire = Wire::new(port);
        wire.options(&syn_options(1460, 7, true)).syn(Client, SYN, b"");
        wire.options(&syn_options(536, 3, false)).syn(Server, SYN_ACK, b"");
        wire.sends(Server, &RESPONSE[..20]).hides(Server, LOST).sends(Server, &RESPONSE[20..]);
        wire.late_first(late).acks(Client).ends(Client).ends(Server);
        wire.logs().0
    };
    let orders = [(0, 80), (1, 80), (3, 80), (1, 50_001), (3, 50_001)].map(wire);
    for rows in &orders {
        assert_eq!(row(rows, "conn", &["id.orig_p", "capture_missed_bytes"]), ["40000", "20"]);
        let gap = row(rows, "gaps", &["is_orig", "what", "start", "end", "cause"]);
        assert_eq!(gap, ["F", "data", "20", "40", "capture"]);
        let told = ["mss", "window_scale", "sack_permitted", "data_segments"];
        let of = |side: &str| {
            let columns = told.map(|name| format!("{side}_{name}"));
            row(rows, "tcp", &columns.each_ref().map(String::as_str))
        };
        assert_eq!(of("orig"), ["1460", "7", "T", "0"], "{:?}", rows.log("tcp"));
        assert_eq!(of("resp"), ["536", "3", "F", "2"], "{:?}", rows.log("tcp"));
    }
    let history: Vec<_> = orders.iter().map(|rows| row(rows, "conn", &["history"])).collect();
    assert!(history[1..].iter().all(|history| history[0].contains('^')), "{history:?}");
}

#[test]
fn the_round_trips_of_a_handshake_stay_with_their_sides() {
    for (late, port) in [(0, 80), (1, 80), (0, 50_001), (1, 50_001)] {
        let mut wire = Wire::new(port);
        wire.syn(Client, SYN, b"").pass(30).syn(Server, SYN_ACK, b"").late_first(late);
        wire.pass(7).acks(Client).ends(Client).ends(Server);
        let rows = wire.logs().0;
        let parts = row(&rows, "tcp", &["orig_handshake_rtt", "resp_handshake_rtt"]);
        // Behind its answer, the SYN tells nothing of how soon it was answered.
        let expected = [["0.008000", "0.031000"], ["0.039000", "-"]];
        assert_eq!(parts, expected[late], "{:?}", rows.log("conn"));
    }
}

/// Data in a SYN-ACK (RFC 7413) is measured at once, so that more than its opening is known of a side that then changes
/// places.
#[test]
fn what_an_answer_with_data_told_stays_with_its_side() {
    const DATA: &[u8] = b"welcome";
    for (late, port) in [(false, 80), (true, 80), (true, 50_001)] {
        for copies in 1..3 {
            let mut wire = Wire::new(port);
            wire.options(&syn_options(1460, 7, true)).syn(Client, SYN, b"").pass(30);
            wire.options(&syn_options(536, 3, true)).syn(Server, SYN_ACK, DATA).pass(1_020);
            if copies > 1 {
                let again = Part { flags: SYN_ACK, position: 0, data: DATA, ..wire.part(Server) };
                wire.options(&syn_options(536, 3, true)).put(Server, &again).pass(5);
            }
            wire.late_first(if late { copies } else { 0 });
            wire.pass(7).acks(Client).ends(Client).ends(Server);
            let rows = wire.logs().0;
            let told = ["mss", "window_scale", "data_segments", "retx_rto"];
            let of = |side: &str| {
                let columns = told.map(|name| format!("{side}_{name}"));
                row(&rows, "tcp", &columns.each_ref().map(String::as_str))
            };
            let again = (copies - 1).to_string();
            assert_eq!(of("orig"), ["1460", "7", "0", "0"], "{late} {port} {copies}");
            assert_eq!(of("resp"), ["536", "3", &copies.to_string(), &again], "{late} {port}");
            let gaps: Vec<_> = rows.log("gaps").iter().map(|row| row["is_orig"].clone()).collect();
            assert_eq!(gaps, vec!["F"; copies - 1], "{late} {port}: {:?}", rows.log("gaps"));
        }
    }
}

/// Two SYNs that cross, the server's first or not, in either way in which hosts answer them.
fn crossing(port: u16, is_server_first: bool, with_answer: bool) -> Wire {
    let mut wire = Wire::new(port);
    let both = if is_server_first { [Server, Client] } else { [Client, Server] };
    both.into_iter().for_each(|side| _ = wire.syn(side, SYN, b""));
    for side in both {
        if with_answer {
            wire.put(side, &Part { flags: SYN_ACK, position: 0, ..wire.part(side) });
        } else {
            wire.acks(side);
        }
    }
    wire
}

#[test]
fn where_syns_cross_the_client_is_who_asks() {
    let greeting = "220 mail ESMTP\r\n";
    for at in 0..24 {
        let (is_server_first, with_answer, size) = (at & 1 > 0, at & 2 > 0, [1, 9, 999][at / 8]);
        let port = if at & 4 > 0 { 80 } else { 50_001 };
        let mut wire = crossing(port, is_server_first, with_answer);
        for (side, message) in [(Client, REQUEST), (Server, RESPONSE)].repeat(2) {
            message.chunks(size).for_each(|chunk| _ = wire.says(side, chunk));
        }
        wire.ends(Client).ends(Server);
        let rows = wire.logs().0;
        let http: Vec<_> = rows.log("http").iter().map(|row| row["status_code"].clone()).collect();
        assert_eq!(http, ["200"; 2], "{at}: {:?}", rows.log("conn"));
        let conn = row(&rows, "conn", &["id.orig_p", "service", "conn_state", "quality"]);
        assert_eq!(conn, ["40000", "http", "SF", "clean"], "{at}");
        // A SYN that comes again with an acknowledgement has no letter of its own.
        if !with_answer {
            expect_sides(&rows, &sent(wire.packets()), true);
        }
        let is_turned = row(&rows, "conn", &["history"])[0].contains('^');
        assert_eq!(is_turned, is_server_first, "{at}");
    }
    // A server that speaks first.
    for is_server_first in [false, true] {
        let mut wire = crossing(25, is_server_first, false);
        wire.says(Server, greeting).says(Client, "EHLO x\r\n").says(Server, "250 mail\r\n");
        wire.says(Client, "MAIL FROM:<a@example.com>\r\n").says(Server, "250 ok\r\n");
        wire.ends(Client).ends(Server);
        let rows = wire.logs().0;
        assert_eq!(row(&rows, "smtp", &["mailfrom"]), ["a@example.com"], "{is_server_first}");
        assert_eq!(row(&rows, "conn", &["id.orig_p", "service"]), ["40000", "smtp"]);
        expect_sides(&rows, &sent(wire.packets()), true);
    }
}

#[test]
fn where_syns_cross_and_nothing_tells_the_first_is_the_originator() {
    for is_server_first in [false, true] {
        let mut wire = crossing(80, is_server_first, false);
        wire.says(Client, b"\x00\x01\x02").says(Server, b"\x03").ends(Client).ends(Server);
        let rows = wire.logs().0;
        let first = if is_server_first { "80" } else { "40000" };
        assert_eq!(row(&rows, "conn", &["id.orig_p"]), [first]);
        expect_sides(&rows, &sent(wire.packets()), true);
    }
}
