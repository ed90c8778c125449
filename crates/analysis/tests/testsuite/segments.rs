//! What TCP allows, what hosts do and what attackers do, under an exchange of HTTP: segments go in,
//! and the rows that come out must be those of the exchange.

use crate::support::wire::{ACK, Client, FIN_ACK, Logs, Part, RST_ACK, SYN, SYN_ACK, Server, Wire};
use netsniff_analysis::options::Urgent;
use netsniff_analysis::reassembly::piece::Overlap;
use netsniff_packet::decode::TcpFlags;

const REQUEST: &[u8] =
    b"POST /in HTTP/1.1\r\nHost: h\r\nContent-Length: 26\r\n\r\nabcdefghijklmnopqrstuvwxyz";
const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n012345678901234567890123456789";
const EXCHANGE: &str = "POST /in 26 200 OK 30";
/// The hashes of the letters and of the digits.
const BODIES: [&str; 2] = [
    "T 26 0 32d10c7b8cf96570ca04ce37f2a19d84240d3a89",
    "F 30 0 8d3a014000038725d6daf8771b42a0784253688f",
];
/// Where the body of the request begins.
const BODY: i64 = 51;

fn opened() -> Wire {
    let mut wire = Wire::new(80);
    wire.open();
    wire
}

/// The rows are those of the exchange and nothing else, with this connection and these oddities.
#[track_caller]
fn expect(wire: &Wire, conn: &str, weirds: &[&str]) -> Logs {
    let logs = wire.logs();
    assert_eq!(logs.http(), [EXCHANGE]);
    assert_eq!(logs.files(), BODIES);
    assert_eq!(logs.conn(), [conn]);
    assert_eq!(logs.weirds(), weirds);
    logs
}

#[test]
fn sequence_numbers_wrap_anywhere() {
    let [request, response] = [REQUEST, RESPONSE].map(|bytes| bytes.len() as u32);
    for back in 0..=response + 2 {
        let mut wire = Wire::new(80);
        wire.anew(0_u32.wrapping_sub(back.min(request + 2)), 0_u32.wrapping_sub(back));
        wire.open();
        // The middle of both comes late, and once more.
        for (side, bytes) in [(Client, REQUEST), (Server, RESPONSE)] {
            wire.sends(side, &bytes[..20]).data_at(side, 41, &bytes[40..]);
            wire.data_at(side, 21, &bytes[20..40]).hides(side, &bytes[20..]);
            wire.acks(if side == Client { Server } else { Client });
            wire.data_at(side, 11, &bytes[10..30]);
        }
        wire.ends(Server).ends(Client);
        expect(&wire, "http SF 76 69 0 ShADTadtfF clean 0", &[]);
    }
}

/// Where the acknowledgements take another way, nobody waits for them behind the first window.
#[test]
fn data_of_which_nothing_is_acknowledged_is_taken() {
    let mut wire = opened();
    wire.says(Client, REQUEST);
    wire.sends(Server, b"HTTP/1.1 200 OK\r\nContent-Length: 28000\r\n\r\n");
    for _ in 0..20 {
        wire.sends(Server, [b'x'; 1_400]);
    }
    wire.ends(Server).ends(Client);
    assert_eq!(wire.logs().http(), ["POST /in 26 200 OK 28000"]);
}

/// Floods repeat such a SYN as often as they can.
#[test]
fn a_syn_with_data_that_comes_again_says_nothing_new() {
    for copies in [1, 2, 9, 16, 17, 40] {
        let mut wire = Wire::new(80);
        for _ in 0..copies {
            wire.put(Client, &Part { flags: SYN, position: 0, data: REQUEST, ..wire.part(Client) });
            wire.pass(100);
        }
        let rows = wire.logs().0;
        let names: Vec<_> = rows.log("weird").iter().map(|row| row["name"].clone()).collect();
        let expected = ["SYN_with_data", "data_before_established"];
        assert_eq!(names, expected[..copies.min(2)], "each once, {copies} copies");
        assert_eq!(rows.log("gaps").len(), 0, "the SYN was lost, or its answer, {copies} copies");
        let conn = &rows.log("conn")[0];
        assert_eq!(
            (conn["orig_pkts"].as_str(), conn["conn_state"].as_str()),
            (copies.to_string().as_str(), "S0")
        );
        assert_eq!(rows.log("tcp")[0]["orig_data_segments"], copies.to_string());
    }
}

#[test]
fn a_syn_may_carry_data() {
    let mut wire = Wire::new(80);
    wire.syn(Client, SYN, REQUEST).syn(Server, SYN_ACK, b"").acks(Client);
    wire.says(Server, RESPONSE).ends(Server).ends(Client);
    // A T, as Zeek has it: the SYN alone took the numbers.
    expect(&wire, "http SF 76 69 0 SThAdfFa clean 0", &["TCP SYN_with_data"]);

    // A server without fast open (RFC 7413) acknowledges the SYN alone, and data comes again.
    let mut wire = Wire::new(80);
    wire.syn(Client, SYN, REQUEST);
    wire.put(Server, &Part { flags: SYN_ACK, acknowledged: 1, ..wire.part(Server) });
    wire.hides(Server, b"?").data_at(Client, 1, REQUEST).acks(Server);
    wire.says(Server, RESPONSE).ends(Server).ends(Client);
    expect(&wire, "http SF 76 69 0 SThDadAfF clean 0", &["TCP SYN_with_data"]);

    // It came twice before there was an answer.
    let mut wire = Wire::new(80);
    wire.syn(Client, SYN, REQUEST).pass(1000);
    wire.put(Client, &Part { flags: SYN, position: 0, data: REQUEST, ..wire.part(Client) });
    wire.syn(Server, SYN_ACK, b"").acks(Client).says(Server, RESPONSE).ends(Server).ends(Client);
    let odd = ["TCP SYN_with_data", "TCP data_before_established"];
    expect(&wire, "http SF 76 69 0 SThAdfFa clean 0", &odd);

    let mut wire = Wire::new(80);
    wire.syn(Client, SYN, REQUEST).syn(Server, SYN_ACK, RESPONSE).acks(Client);
    wire.ends(Server).ends(Client);
    let odd = ["TCP SYN_with_data", "TCP SYN_with_data"];
    expect(&wire, "http SF 76 69 0 SThtAfFa clean 0", &odd);

    let mut wire = Wire::new(25);
    wire.syn(Client, SYN, b"").syn(Server, SYN_ACK, b"220 mail ready\r\n").acks(Client);
    wire.says(Client, b"HELO desk\r\n").says(Server, b"250 mail\r\n");
    wire.says(Client, b"MAIL FROM:<a@b.test>\r\n").says(Server, b"250 ok\r\n");
    wire.says(Client, b"QUIT\r\n").says(Server, b"221 bye\r\n").ends(Server).ends(Client);
    let logs = wire.logs();
    let rows = logs.lines("smtp", &["helo", "mailfrom", "last_reply"]);
    assert_eq!(rows, ["desk a@b.test 221 bye"]);
    assert_eq!(logs.conn(), ["smtp SF 39 43 0 ShtADadfF clean 0"]);
}

#[test]
fn keep_alives_are_no_data() {
    for (garbage, history) in [(&b"\0"[..], "ShADTadtfF"), (b"", "ShAaDdfF")] {
        let mut wire = opened();
        let alive = |wire: &mut Wire, side, other| {
            let last = wire.next(side) - 1;
            wire.pass(60_000).data_at(side, last, garbage).acks(other);
        };
        alive(&mut wire, Client, Server);
        wire.says(Client, &REQUEST[..30]);
        alive(&mut wire, Client, Server);
        alive(&mut wire, Server, Client);
        // One letter that was read is what the garbage stands for.
        wire.says(Client, &REQUEST[30..60]).says(Client, &REQUEST[60..61]);
        alive(&mut wire, Client, Server);
        wire.says(Client, &REQUEST[61..]).says(Server, &RESPONSE[..50]);
        alive(&mut wire, Server, Client);
        wire.says(Server, &RESPONSE[50..]).ends(Server);
        // In the place of the FIN.
        alive(&mut wire, Server, Client);
        wire.ends(Client);
        expect(&wire, &format!("http SF 76 69 0 {history} clean 0"), &[]);
    }
}

#[test]
fn probes_of_a_closed_window_are_read_once() {
    let mut wire = Wire::new(80);
    let read = REQUEST[..60].len() as u16;
    wire.syn(Client, SYN, b"");
    wire.put(Server, &Part { flags: SYN_ACK, window: read, ..wire.part(Server) });
    wire.hides(Server, b"?").acks(Client).sends(Client, &REQUEST[..60]);
    let closed = Part { window: 0, ..wire.part(Server) };
    wire.put(Server, &closed);
    for _ in 0..3 {
        // RFC 9293, 3.8.6.1: one byte of new data, which is not taken.
        wire.pass(5_000).data_at(Client, 61, &REQUEST[60..61]).put(Server, &closed);
    }
    wire.acks(Server).says(Client, &REQUEST[60..]).says(Server, RESPONSE).ends(Server).ends(Client);
    expect(&wire, "http SF 76 69 0 ShADawTdfF clean 0", &[]);
}

/// A client that sends an urgent byte at a position of its request.
fn says_urgently(wire: &mut Wire, at: usize) {
    let (before, behind) = REQUEST.split_at(at);
    let (flags, data) = (ACK.with(TcpFlags::URG), [before, b"X", behind].concat());
    wire.put(Client, &Part { flags, urgent: at as u16 + 1, data: &data, ..wire.part(Client) });
    wire.hides(Client, &data).acks(Server);
    wire.says(Server, RESPONSE).ends(Server).ends(Client);
}

#[test]
fn an_urgent_byte_is_no_part_of_what_is_read() {
    for at in 0..=REQUEST.len() {
        let mut wire = opened();
        says_urgently(&mut wire, at);
        expect(&wire, "http SF 77 69 0 ShADadfF clean 0", &["TCP urgent_data"]);
    }
}

#[test]
fn an_urgent_byte_is_read_in_its_place_where_that_is_asked_for() {
    // Within the address, and within the body, whose last letter is then behind its end.
    for (at, uri, letters) in [(8, "/inX", BODIES[0]), (BODY as usize, "/in", "T 26 0 ")] {
        let mut wire = opened();
        wire.urgent(Urgent::Inline);
        says_urgently(&mut wire, at);
        let logs = wire.logs();
        assert_eq!(logs.lines("http", &["uri"])[0], uri);
        assert!(logs.files().iter().any(|row| row.starts_with(letters)), "{:?}", logs.files());
        assert!(logs.weirds().contains(&"TCP urgent_data".to_owned()));
        assert_eq!(logs.files().iter().any(|row| row == BODIES[0]), letters == BODIES[0]);
    }
}

#[test]
fn urgent_data_is_told_once_however_it_is_announced() {
    let flags = ACK.with(TcpFlags::URG);
    // By many segments, and by one without data before the byte comes.
    let mut wire = opened();
    let mut data = Vec::new();
    for bytes in REQUEST.chunks(10) {
        data.clear();
        data.extend_from_slice(bytes);
        data.push(b'X');
        wire.put(
            Client,
            &Part { flags, urgent: data.len() as u16, data: &data, ..wire.part(Client) },
        );
        wire.hides(Client, &data).acks(Server);
    }
    wire.says(Server, RESPONSE).ends(Server).ends(Client);
    expect(&wire, "http SF 84 69 0 ShADadfF clean 0", &["TCP urgent_data"]);

    let mut wire = opened();
    wire.put(Client, &Part { flags, urgent: 31, ..wire.part(Client) });
    wire.says(Client, &REQUEST[..20]).says(Client, [&REQUEST[20..30], b"X"].concat());
    wire.says(Client, &REQUEST[30..]).says(Server, RESPONSE).ends(Server).ends(Client);
    expect(&wire, "http SF 77 69 0 ShADadfF clean 0", &["TCP urgent_data"]);
}

#[test]
fn an_urgent_byte_may_be_lost_and_sent_again_with_and_without_its_flag() {
    let flags = ACK.with(TcpFlags::URG);
    let data = [&REQUEST[..60], b"X", &REQUEST[60..]].concat();
    for is_again in [true, false] {
        for is_first in [true, false] {
            let mut wire = opened();
            // Begin and end came out of order; either copy of the end may have the flag.
            let tail = Part { position: 41, data: &data[40..], ..wire.part(Client) };
            let urgent = Part { flags, urgent: 21, ..tail };
            wire.put(Client, if is_first { &urgent } else { &tail });
            wire.put(Client, if is_again { &urgent } else { &tail });
            wire.data_at(Client, 1, &data[..40]).hides(Client, &data).acks(Server);
            wire.put(Client, &urgent);
            wire.says(Server, RESPONSE).ends(Server).ends(Client);
            let logs = wire.logs();
            if is_first || is_again {
                assert_eq!(logs.http(), [EXCHANGE]);
                assert_eq!(logs.files(), BODIES);
                assert_eq!(logs.weirds(), ["TCP urgent_data"]);
            } else {
                // Whoever had it before it was urgent has read it.
                assert_ne!(logs.files(), BODIES);
                assert_eq!(logs.weirds(), ["TCP urgent_data", "HTTP bad_HTTP_request"]);
            }
        }
    }
}

#[test]
fn nothing_is_read_behind_a_fin() {
    let more = b"GET /more HTTP/1.1\r\n\r\n";
    // Behind the FIN, in its place, and before it was seen.
    let mut wire = opened();
    wire.says(Client, REQUEST).says(Server, RESPONSE).ends(Client).says(Client, more).ends(Server);
    expect(&wire, "http SF 98 69 0 ShADadFf clean 0", &["TCP data_after_FIN"]);

    let mut wire = opened();
    wire.says(Client, REQUEST).says(Server, RESPONSE);
    let end = wire.next(Client);
    wire.put(Client, &Part { flags: FIN_ACK, ..wire.part(Client) });
    wire.data_at(Client, end, more).hides(Client, b"?").acks(Server).ends(Server);
    expect(&wire, "http SF 97 69 0 ShADadFf clean 0", &["TCP data_after_FIN"]);

    let mut wire = opened();
    wire.says(Client, REQUEST).says(Server, RESPONSE);
    let end = wire.next(Client);
    wire.data_at(Client, end + 5, more);
    wire.put(Client, &Part { flags: FIN_ACK, ..wire.part(Client) }).hides(Client, b"?");
    wire.acks(Server).ends(Server);
    expect(&wire, "http SF 102 69 0 ShADadFf suspect 0", &["TCP data_after_FIN"]);

    // The FIN comes before the data that it ends, and data comes again behind it.
    let mut wire = opened();
    wire.put(Client, &Part { flags: FIN_ACK, position: 77, ..wire.part(Client) });
    wire.says(Client, REQUEST).hides(Client, b"?").acks(Server);
    wire.data_at(Client, 1, REQUEST).says(Server, RESPONSE).ends(Server);
    expect(&wire, "http SF 76 69 0 ShAFDTadf clean 0", &[]);
    let mut wire = opened();
    wire.says(Client, &REQUEST[..20]);
    wire.put(Client, &Part { flags: FIN_ACK, position: 77, ..wire.part(Client) });
    wire.data_at(Client, 21, &[&REQUEST[20..], more].concat());
    wire.hides(Client, &REQUEST[20..]).hides(Client, b"?");
    wire.acks(Server).says(Server, RESPONSE).ends(Server);
    expect(&wire, "http SF 97 69 0 ShADaFdf clean 0", &["TCP data_after_FIN"]);

    // The FIN comes before any data, and what comes then goes on behind it.
    let mut wire = opened();
    wire.put(Client, &Part { flags: FIN_ACK, position: 77, ..wire.part(Client) });
    wire.data_at(Client, 1, &[REQUEST, more].concat());
    wire.hides(Client, REQUEST).hides(Client, b"?");
    wire.acks(Server).says(Server, RESPONSE).ends(Server);
    expect(&wire, "http SF 97 69 0 ShAFDadf clean 0", &["TCP data_after_FIN"]);
}

#[test]
fn the_next_connection_of_the_same_ports_is_another_one() {
    let mut wire = opened();
    wire.says(Client, REQUEST).sends(Server, &RESPONSE[..50]);
    wire.anew(5_000_000, 7_000_000).open();
    wire.says(Client, b"GET /two HTTP/1.1\r\n\r\n").says(Server, RESPONSE);
    wire.ends(Server).ends(Client);
    let logs = wire.logs();
    assert_eq!(logs.http(), ["POST /in 26 200 OK 11", "GET /two 0 200 OK 30"]);
    let cut = "F 11 0 -";
    assert_eq!(logs.files(), [BODIES[0], cut, BODIES[1]]);
    let conns = ["http S1 76 50 0 ShADad clean 0", "http SF 21 69 0 ShADadfF clean 0"];
    assert_eq!(logs.conn(), conns);
    assert_eq!(logs.weirds(), ["TCP active_connection_reuse"]);
    let uids = logs.lines("conn", &["uid"]);
    assert_ne!(uids[0], uids[1]);
    assert_eq!(logs.lines("http", &["uid"]), uids);
    assert_eq!(logs.lines("weird", &["uid"]), uids[..1]);
}

#[test]
fn what_is_picked_up_in_the_middle_makes_no_row_unless_it_is_sure() {
    let midstream = |port| {
        let mut wire = Wire::new(port);
        wire.hides(Client, &[0; 500]).hides(Server, &[0; 500]);
        wire
    };
    // The rest of a body, and in another the rest of a request.
    let mut wire = midstream(80);
    wire.says(Server, b"the rest\r\n\r\n").says(Client, REQUEST).says(Server, RESPONSE);
    let mut other = midstream(80);
    other
        .says(Client, b"Content-Length: 3\r\n\r\nabc")
        .says(Server, RESPONSE)
        .says(Client, REQUEST);
    for (wire, conn) in
        [(&wire, "- OTH 76 81 0 ^dADa unknown 0"), (&other, "- OTH 100 69 0 DadA unknown 0")]
    {
        let logs = wire.logs();
        assert_eq!((logs.http(), logs.files()), (vec![], vec![]));
        assert_eq!(logs.conn(), [conn]);
        assert!(logs.weirds().is_empty());
    }
    // Which begins with a whole request is sure.
    let mut wire = midstream(80);
    wire.says(Client, REQUEST).says(Server, RESPONSE);
    expect(&wire, "http OTH 76 69 0 DadA unknown 0", &[]);

    let mut wire = midstream(25);
    wire.says(Client, b"RCPT TO:<a@b.test>\r\n").says(Server, b"250 ok\r\n");
    wire.says(Client, b"DATA\r\n").says(Server, b"354 go\r\n");
    wire.says(Client, b"Subject: x\r\n\r\nhi\r\n.\r\n").says(Server, b"250 queued\r\n");
    wire.says(Client, b"QUIT\r\n").says(Server, b"221 bye\r\n");
    let logs = wire.logs();
    assert_eq!(logs.lines("smtp", &["uid"]), [""; 0]);
    assert_eq!(logs.conn(), ["- OTH 53 37 0 DadA unknown 0"]);
}

#[test]
fn what_comes_again_with_more_is_read_from_the_edge_on() {
    for edge in 1..REQUEST.len() {
        for from in [0, edge - 1] {
            let mut wire = opened();
            wire.says(Client, &REQUEST[..edge]).data_at(Client, 1 + from as i64, &REQUEST[from..]);
            wire.hides(Client, &REQUEST[edge..]).acks(Server).data_at(Client, 1, REQUEST);
            wire.says(Server, RESPONSE).ends(Server).ends(Client);
            expect(&wire, "http SF 76 69 0 ShADaTdfF clean 0", &[]);
        }
    }
}

#[test]
fn what_contradicts_bytes_that_wait_counts_as_asked_for() {
    let last = [
        "T 26 0 22de1851031dd97d9e26651333fc2fcfac52f3d0",
        "F 30 0 e614cd70f42afc50ce63d6f1f29c7b3950ff950b",
    ];
    for (overlap, bodies) in [(Overlap::First, BODIES), (Overlap::Last, last)] {
        // The tail waits beyond a hole; another copy of a part of it comes, and then what lacked.
        let mut wire = opened();
        wire.overlap(overlap).says(Client, &REQUEST[..60]).data_at(Client, 71, &REQUEST[70..]);
        wire.data_at(Client, 66, b"pqrstXY").data_at(Client, 61, &REQUEST[60..66]);
        wire.hides(Client, &REQUEST[60..]).acks(Server);
        wire.says(Server, &RESPONSE[..40]).data_at(Server, 51, &RESPONSE[50..]);
        wire.data_at(Server, 46, &[&RESPONSE[45..50], b"XY"].concat()).data_at(
            Server,
            41,
            &RESPONSE[40..46],
        );
        wire.hides(Server, &RESPONSE[40..]).acks(Client);
        wire.ends(Server).ends(Client);
        let logs = wire.logs();
        assert_eq!(logs.http(), [EXCHANGE]);
        assert_eq!(logs.files(), bodies);
        assert_eq!(logs.conn(), ["http SF 76 69 0 ShADaTdtfF clean 0"]);
        assert_eq!(logs.weirds(), ["TCP retransmission_inconsistency"; 2]);
    }
}

#[test]
fn what_contradicts_bytes_that_were_read_is_told_and_changes_nothing() {
    for overlap in [Overlap::First, Overlap::Last] {
        for is_acknowledged in [false, true] {
            let mut wire = opened();
            wire.overlap(overlap).sends(Client, &REQUEST[..BODY as usize]);
            if is_acknowledged {
                wire.acks(Server);
            }
            // What was injected is shorter than what it stands in for.
            wire.data_at(Client, 1, &[&b"GET"[..], &REQUEST[3..60]].concat());
            wire.hides(Client, &REQUEST[BODY as usize..60]).says(Client, &REQUEST[60..]);
            wire.says(Server, RESPONSE).ends(Server).ends(Client);
            let odd = ["TCP retransmission_inconsistency"];
            expect(&wire, "http SF 76 69 0 ShADadfF clean 0", &odd);
        }
    }
}

#[test]
fn data_in_a_reset_is_an_explanation() {
    let mut wire = opened();
    wire.says(Client, REQUEST).says(Server, &RESPONSE[..20]);
    wire.put(Server, &Part { flags: RST_ACK, data: &RESPONSE[20..], ..wire.part(Server) });
    let logs = wire.logs();
    assert_eq!(logs.http(), ["POST /in 26 200 OK 0"]);
    assert_eq!(logs.files(), BODIES[..1]);
    assert_eq!(logs.conn(), ["http RSTR 76 20 0 ShADadrt clean 0"]);
    assert!(logs.weirds().is_empty());
}

#[test]
fn a_simultaneous_open_is_the_first_ones_connection() {
    let mut wire = Wire::new(80);
    wire.syn(Client, SYN, b"").syn(Server, SYN, b"");
    for side in [Client, Server] {
        wire.put(side, &Part { flags: SYN_ACK, position: 0, ..wire.part(side) });
    }
    wire.says(Client, REQUEST).says(Server, RESPONSE).ends(Server).ends(Client);
    let logs = wire.logs();
    assert_eq!(logs.lines("conn", &["id.orig_p", "id.resp_p"]), ["40000 80"]);
    let columns = ["service", "conn_state", "orig_bytes", "resp_bytes", "quality"];
    assert_eq!(logs.lines("conn", &columns), ["http SF 76 69 clean"]);
    assert_eq!(logs.weirds(), ["TCP simultaneous_open"]);
    assert_eq!(
        (logs.http(), logs.files()),
        (vec![EXCHANGE.to_owned()], BODIES.map(str::to_owned).to_vec())
    );
}

#[test]
fn one_side_may_speak_long_after_the_other_has_ended() {
    let mut wire = opened();
    wire.says(Client, REQUEST).ends(Client);
    for byte in RESPONSE {
        wire.pass(290_000).says(Server, [*byte]);
    }
    wire.ends(Server);
    let logs = expect(&wire, "http SF 76 69 0 ShADaFdf clean 0", &[]);
    let seconds: f64 = logs.lines("conn", &["duration"])[0].parse().unwrap();
    assert!(seconds > 20_000.0, "{seconds}");
}
