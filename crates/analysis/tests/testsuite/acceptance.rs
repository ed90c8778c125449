//! Segments that no host of a connection took: forged, of an older connection, or beside the
//! handshake. The rows are those of what was said, and the oddity is told.

use crate::support::wire::{ACK, Client, FIN_ACK, Logs, Part, RST_ACK, SYN, SYN_ACK, Server, Wire};
use netsniff_packet::decode::TcpFlags;

const REQUEST: &[u8] = b"GET /evil HTTP/1.1\r\nHost: evil.example\r\n\r\n";
const DECOY: &[u8] = b"GET /good HTTP/1.1\r\nHost: good.example\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const RST: TcpFlags = TcpFlags::RST;
/// Distances of numbers that have nothing to do with those of the connection.
const FAR: [i64; 6] = [77_777, 777_777, 1_612_364_734, 0x7fff_ffff, -77_777, -1_000_000_000];

/// Connections over both versions of IP, to ports that are known and that are not, whose numbers begin
/// at several places.
fn wires() -> Vec<Wire> {
    let mut wires = Vec::new();
    for port in [80, 8081, 50_001] {
        for wire in [Wire::new(port), Wire::over_v6(port)] {
            for (client, server) in [(1_000, 5_000), (u32::MAX - 20, u32::MAX - 50), (1 << 31, 7)] {
                let mut wire = wire.clone();
                wire.initial(client, server);
                wires.push(wire);
            }
        }
    }
    wires
}

fn exchange(wire: &mut Wire) -> &mut Wire {
    wire.says(Client, REQUEST).says(Server, RESPONSE).ends(Client).ends(Server)
}

/// The one connection has the exchange with its bytes, and these oddities among others.
#[track_caller]
fn expect(wire: &Wire, weirds: &[&str]) -> Logs {
    let logs = wire.logs();
    assert_eq!(logs.http(), ["GET /evil 0 200 OK 5"]);
    let conn = ["service", "conn_state", "orig_bytes", "resp_bytes", "capture_missed_bytes"];
    assert_eq!(logs.lines("conn", &conn), ["http SF 42 43 0"]);
    assert_eq!(logs.lines("conn", &["network_missed_bytes", "quality"]), ["0 clean"]);
    let told = logs.lines("weird", &["name"]);
    for weird in weirds {
        assert!(told.iter().any(|name| name == weird), "{weird} in {told:?}");
    }
    logs
}

#[test]
fn answers_with_other_numbers_are_none_once_the_client_has_chosen() {
    for wire in wires() {
        for far in FAR {
            let stray = |wire: &Wire| Part { flags: SYN_ACK, position: far, ..wire.part(Server) };
            // The wrong one comes first, second, behind the handshake, or within the exchange.
            for place in 0..4 {
                let mut wire = wire.clone();
                wire.syn(Client, SYN, b"");
                if place == 0 {
                    wire.put(Server, &Part { acknowledged: 1, ..stray(&wire) });
                }
                wire.syn(Server, SYN_ACK, b"");
                if place == 1 {
                    wire.put(Server, &Part { acknowledged: 1, ..stray(&wire) });
                }
                wire.acks(Client);
                if place == 2 {
                    wire.put(Server, &stray(&wire));
                }
                wire.says(Client, REQUEST);
                if place == 3 {
                    wire.put(Server, &stray(&wire));
                }
                wire.says(Server, RESPONSE).ends(Client).ends(Server);
                expect(&wire, &["SYN_seq_jump"]);
            }
        }
    }
}

#[test]
fn segments_before_the_answer_count_for_nothing() {
    for wire in wires() {
        for far in FAR {
            for (flags, acknowledged, data) in [
                (ACK, far, &b""[..]),
                (ACK, far, b"old data"),
                (RST, 0, b""),
                (RST_ACK, far, b""),
                (RST_ACK, 1, b""),
                (FIN_ACK, 1, b""),
                (FIN_ACK, far, b""),
            ] {
                let mut wire = wire.clone();
                wire.syn(Client, SYN, b"");
                let stray = Part { flags, position: far, acknowledged, data, ..wire.part(Server) };
                wire.put(Server, &stray);
                if !flags.any(RST) {
                    // What the client answers (RFC 9293, 3.10.7.3) has the number of the stray segment.
                    wire.put(
                        Client,
                        &Part { flags: RST, position: acknowledged, ..wire.part(Client) },
                    );
                }
                wire.syn(Server, SYN_ACK, b"").acks(Client);
                expect(exchange(&mut wire), &[]);
                assert!(!wire.logs().weirds().is_empty(), "{flags:?} {acknowledged}");
            }
        }
    }
}

#[test]
fn what_is_far_out_of_the_window_changes_nothing() {
    for wire in wires() {
        for side in [Client, Server] {
            for far in [1_612_364_734, 0x3fff_ffff, -1_000_000_000] {
                for (flags, is_number, weird) in [
                    (RST, true, "RST_outside_window"),
                    (RST_ACK, true, "RST_outside_window"),
                    (ACK, false, "ack_of_unsent_data"),
                    (FIN_ACK, false, "ack_of_unsent_data"),
                ] {
                    if far < 0 && !is_number {
                        continue;
                    }
                    let mut wire = wire.clone();
                    wire.open().says(Client, REQUEST);
                    let own = wire.part(side);
                    let stray = if is_number {
                        Part { flags, position: own.position + far, ..own }
                    } else {
                        Part { flags, acknowledged: own.acknowledged + far, ..own }
                    };
                    wire.put(side, &stray).says(Server, RESPONSE).ends(Client).ends(Server);
                    expect(&wire, &[weird]);
                }
                if far > 0 {
                    let mut wire = wire.clone();
                    wire.open().says(Client, REQUEST);
                    let position = wire.next(side) + far;
                    wire.data_at(side, position, b"far out").says(Server, RESPONSE);
                    expect(wire.ends(Client).ends(Server), &["segment_outside_window"]);
                }
            }
        }
    }
}

/// Somebody who forges both sides makes other numbers that agree.
#[test]
fn what_ends_before_its_senders_acknowledged_numbers_acknowledges_nothing_unseen() {
    for wire in wires() {
        for beyond in [2, 300, 65_535] {
            let mut wire = wire.clone();
            wire.open();
            let acknowledged = wire.part(Client).acknowledged + beyond;
            for flags in [ACK, FIN_ACK] {
                let part = Part { flags, position: 0, acknowledged, ..wire.part(Client) };
                wire.put(Client, &part).pass(20);
            }
            expect(exchange(&mut wire), &["ack_of_unsent_data"]);
        }
    }
    // A keep-alive of a connection whose server says that it has sent something.
    let mut wire = Wire::new(50_001);
    wire.open().hides(Server, &[1; 300]);
    wire.put(Client, &Part { position: 0, ..wire.part(Client) }).acks(Server);
    wire.ends(Client).ends(Server);
    assert_eq!(wire.logs().lines("conn", &["capture_missed_bytes", "quality"]), ["300 touched"]);
}

/// A SYN that somebody forged behind the end, and the rest of what it does not begin. What both sides say
/// is believed, where it lies ahead.
#[test]
fn numbers_of_an_older_connection_leave_none_clean() {
    for (distance, is_believed) in [(0x5555_5555_i64, false), (-0x5555_5555, true)] {
        let mut wire = Wire::new(50_001);
        wire.open().sends(Client, REQUEST).acks(Server);
        wire.put(Client, &Part { flags: RST, ..wire.part(Client) });
        let position = wire.next(Client) + distance;
        wire.put(Client, &Part { flags: SYN, position, acknowledged: 0, ..wire.part(Client) });
        wire.acks(Client).pass(400).ends(Client).ends(Server);
        let told = wire.logs().lines("conn", &["orig_bytes", "quality"]);
        let is_right =
            |line: &String| ["-", "0", "42"].contains(&line.split(' ').next().unwrap_or_default());
        assert!(
            told.iter().all(|line| is_right(line) || is_believed && !line.ends_with(" clean")),
            "{told:?}"
        );
    }
}

/// A forged SYN behind both ends begins a connection of which the FIN that is sent once more seems to be the end. What
/// lies between them would be gigabytes, of which nothing was seen.
#[test]
fn a_size_that_only_a_far_fin_tells_of_leaves_no_record_clean() {
    for distance in [0x5555_5555_i64, -0x5555_5555, 0x7000_0000, -0x3000_0000] {
        let mut wire = Wire::new(50_001);
        wire.open().says(Client, REQUEST).ends(Server);
        let fin = Part { flags: FIN_ACK, ..wire.part(Client) };
        let acknowledged = fin.position + 1;
        let position = fin.position + distance;
        wire.put(Client, &fin);
        wire.put(Client, &Part { flags: SYN, position, acknowledged: 0, ..fin });
        wire.pass(400).put(Client, &fin);
        wire.put(Server, &Part { acknowledged, ..wire.part(Server) });
        let told = wire.logs().lines("conn", &["orig_bytes", "quality"]);
        let is_right = |line: &str| {
            line.starts_with("42 ") || line.starts_with("0 ") || !line.ends_with(" clean")
        };
        assert!(told.iter().all(|line| is_right(line)), "{distance}: {told:?}");
        assert_eq!(told.len(), 2, "{distance}: {told:?}");
    }
}

#[test]
fn far_numbers_of_both_sides_make_a_record_suspect() {
    for wire in wires() {
        for side in [Client, Server] {
            for far in [1_612_364_734, 77_777_777] {
                let mut wire = wire.clone();
                wire.open().says(Client, REQUEST).says(Server, RESPONSE);
                let own = wire.part(side);
                let ahead = Part { data: b"far out", position: own.position + far, ..own };
                let peer = wire.part(side.other());
                let agreed = Part { acknowledged: peer.acknowledged + far + 7, ..peer };
                wire.put(side, &ahead).put(side.other(), &agreed).put(side, &ahead);
                wire.ends(Client).ends(Server);
                let sums = ["orig_bytes", "resp_bytes", "missed_bytes", "capture_missed_bytes"];
                let told = wire.logs().lines("conn", &[&sums[..], &["quality"]].concat());
                let [request, response] = [REQUEST.len(), RESPONSE.len()];
                assert_eq!(told, [format!("{request} {response} 0 0 suspect")], "{far}");
                assert!(wire.logs().lines("gaps", &["bytes"]).is_empty());
            }
        }
    }
}

#[test]
fn a_second_fin_behind_the_first_counts_for_nothing() {
    for wire in wires() {
        for side in [Client, Server] {
            for is_acknowledged in [true, false] {
                let mut wire = wire.clone();
                wire.open().says(Client, REQUEST).says(Server, RESPONSE);
                let fin = Part { flags: FIN_ACK, ..wire.part(side) };
                if is_acknowledged {
                    wire.ends(side);
                } else {
                    wire.put(side, &fin).hides(side, b"F");
                }
                let next = Part { flags: FIN_ACK, ..wire.part(side) };
                wire.put(side, &next).ends(side.other());
                expect(&wire, &["FIN_advanced_last_seq"]);
            }
        }
    }
}

/// The one answer to the SYN that was seen is not the one that the client took, which the capture missed.
#[test]
fn an_answer_behind_the_data_of_its_side_leaves_no_record_clean() {
    for wire in &mut wires() {
        wire.syn(Client, SYN, b"").hides(Server, b"#");
        wire.put(Server, &Part { flags: SYN_ACK, position: 500, ..wire.part(Server) });
        wire.acks(Client).says(Client, [1; 50]).says(Server, [2; 100]).says(Server, [3; 100]);
        let logs = wire.logs();
        assert_eq!(logs.lines("conn", &["orig_bytes", "quality"]), ["50 suspect"]);
        assert!(logs.lines("gaps", &["bytes"]).is_empty());
    }
}

/// It has the number of the one that was taken, but answers another SYN.
#[test]
fn a_copy_of_the_answer_acknowledges_nothing_far() {
    for wire in wires() {
        for far in [1_431_655_765, 77_777, 0x3fff_ffff] {
            for place in 0..2 {
                let mut wire = wire.clone();
                wire.open();
                if place == 1 {
                    wire.says(Client, REQUEST);
                }
                let acknowledged = wire.part(Server).acknowledged + far;
                wire.put(
                    Server,
                    &Part { flags: SYN_ACK, position: 0, acknowledged, ..wire.part(Server) },
                );
                if place == 0 {
                    wire.says(Client, REQUEST);
                }
                wire.says(Server, RESPONSE).ends(Client).ends(Server);
                expect(&wire, &["ack_of_unsent_data"]);
            }
        }
    }
}

/// As whoever has seen the FIN may forge it, to make its side a byte longer.
#[test]
fn an_answer_behind_a_fin_counts_for_nothing() {
    for wire in wires() {
        for (far, acknowledged) in [(0, 0), (1, 0), (7, 0), (0, 1)] {
            let mut wire = wire.clone();
            wire.open().says(Client, REQUEST).says(Server, RESPONSE).ends(Server);
            let own = wire.part(Server);
            let stray = Part {
                flags: SYN_ACK,
                position: own.position + far,
                acknowledged: own.acknowledged + acknowledged,
                ..own
            };
            wire.put(Server, &stray).ends(Client);
            expect(&wire, &["SYN_after_close"]);
        }
    }
}

#[test]
fn an_answer_of_the_side_that_asked_renumbers_nothing() {
    for wire in wires() {
        for far in FAR {
            for place in 0..3 {
                let mut wire = wire.clone();
                let stray =
                    |wire: &Wire| Part { flags: SYN_ACK, position: far, ..wire.part(Client) };
                wire.syn(Client, SYN, b"").syn(Server, SYN_ACK, b"");
                wire.acks(Client);
                if place == 0 {
                    wire.put(Client, &stray(&wire));
                }
                wire.says(Client, REQUEST);
                if place == 1 {
                    wire.put(Client, &stray(&wire));
                }
                wire.says(Server, RESPONSE);
                if place == 2 {
                    wire.put(Client, &stray(&wire));
                }
                wire.ends(Client).ends(Server);
                expect(&wire, &["SYN_seq_jump"]);
            }
        }
    }
}

/// The numbers wrap between a SYN and the first byte, or near there, and each SYN comes again.
#[test]
fn a_handshake_that_comes_twice_begins_one_stream() {
    for initial in [u32::MAX, u32::MAX - 1, u32::MAX - 60, 0] {
        for over in [Wire::new(80), Wire::over_v6(80)] {
            let mut wire = over.clone();
            wire.initial(initial, initial.wrapping_add(1));
            wire.syn(Client, SYN, b"").syn(Server, SYN_ACK, b"");
            for (side, flags) in [(Client, SYN), (Server, SYN_ACK)] {
                wire.put(side, &Part { flags, position: 0, ..wire.part(side) });
            }
            wire.acks(Client);
            exchange(&mut wire);
            expect(&wire, &[]);
        }
    }
}

/// The capture began behind the SYN, and its copy took longer than the request.
#[test]
fn a_late_copy_of_the_syn_leaves_nothing_unseen() {
    for wire in wires() {
        for place in 0..3 {
            let mut wire = wire.clone();
            wire.open().drop_first();
            let copy = |wire: &mut Wire, at: usize| {
                if at == place {
                    wire.put(Client, &Part { flags: SYN, position: 0, ..wire.part(Client) });
                }
            };
            copy(&mut wire, 0);
            wire.says(Client, REQUEST);
            copy(&mut wire, 1);
            wire.says(Server, RESPONSE);
            copy(&mut wire, 2);
            wire.ends(Client).ends(Server);
            let logs = wire.logs();
            assert_eq!(logs.http(), ["GET /evil 0 200 OK 5"]);
            let bytes = ["orig_bytes", "resp_bytes", "capture_missed_bytes", "missed_bytes"];
            assert_eq!(logs.lines("conn", &bytes), ["42 43 0 0"], "{place}");
            assert!(logs.lines("gaps", &["what"]).iter().all(|what| what != "data"), "{place}");
        }
    }
}

/// The network doubled it, and the copy took longer than the whole exchange.
#[test]
fn a_late_copy_of_the_syn_begins_nothing_while_one_side_speaks() {
    for wire in wires() {
        for first in [Client, Server] {
            let mut wire = wire.clone();
            wire.open().says(Client, REQUEST).says(Server, RESPONSE).ends(first);
            wire.put(Client, &Part { flags: SYN, position: 0, ..wire.part(Client) });
            wire.ends(first.other());
            expect(&wire, &[]);
        }
    }
}

#[test]
fn a_syn_within_a_connection_is_none_until_it_is_answered() {
    for wire in wires() {
        for side in [Client, Server] {
            for far in FAR {
                let mut wire = wire.clone();
                wire.open();
                let syn = Part { flags: SYN, position: far, ..wire.part(side) };
                wire.put(side, &syn).pass(100).put(side, &syn);
                let logs = expect(exchange(&mut wire), &["active_connection_reuse"]);
                assert_eq!(logs.weirds().len(), 1, "told once");
            }
        }
    }
}

#[test]
fn a_connection_begins_with_the_syn_that_was_answered() {
    for wire in wires() {
        let mut wire = wire;
        wire.open().says(Client, REQUEST).says(Server, RESPONSE);
        wire.anew(3_000_000_000, 2_000_000_000).open();
        let logs = exchange(&mut wire).logs();
        assert_eq!(logs.http(), ["GET /evil 0 200 OK 5"; 2]);
        let columns =
            ["conn_state", "history", "orig_pkts", "resp_pkts", "orig_bytes", "resp_bytes"];
        let mut rows = logs.lines("conn", &columns);
        rows.sort();
        assert_eq!(rows, ["S1 ShADad 4 3 42 43", "SF ShADadFf 6 5 42 43"]);
        assert_eq!(logs.lines("weird", &["name"]), ["active_connection_reuse"]);
    }
}

#[test]
fn decoys_that_expire_or_are_damaged_are_not_what_was_read() {
    let pieces: [&[(usize, usize)]; 5] = [
        &[(0, 42)],
        &[(0, 20), (20, 42)],
        &[(5, 9), (0, 5), (9, 42)],
        &[(9, 42), (5, 9), (0, 5)],
        &[(0, 1), (1, 6), (6, 7), (7, 42)],
    ];
    for wire in wires() {
        for pieces in pieces {
            for mark in ["damaged", "expired", "old acknowledgement"] {
                let mut wire = wire.clone();
                wire.open();
                match mark {
                    "damaged" => wire.damaged().data_at(Client, 1, DECOY),
                    "expired" => wire.expired(Client).data_at(Client, 1, DECOY).arrives(Client),
                    _ => {
                        let old = wire.part(Client).acknowledged - 77_777;
                        let decoy = Part { acknowledged: old, data: DECOY, ..wire.part(Client) };
                        wire.put(Client, &decoy)
                    }
                };
                for &(from, to) in pieces {
                    wire.data_at(Client, 1 + from as i64, &REQUEST[from..to]);
                }
                wire.hides(Client, REQUEST).acks(Server).says(Server, RESPONSE);
                expect(wire.ends(Client).ends(Server), &["retransmission_inconsistency"]);
            }
        }
    }
}

#[test]
fn other_bytes_in_other_pieces_are_told() {
    let pieces: [&[(usize, usize)]; 4] = [
        &[(0, 20), (20, 42)],
        &[(20, 42), (0, 20)],
        &[(30, 42), (5, 30), (0, 7)],
        &[(0, 1), (1, 2), (2, 41), (40, 42)],
    ];
    for wire in wires() {
        for pieces in pieces {
            for (copy, weirds) in
                [(DECOY, &["retransmission_inconsistency"][..]), (REQUEST, &[][..])]
            {
                let mut wire = wire.clone();
                wire.open().data_at(Client, 1, REQUEST);
                for &(from, to) in pieces {
                    wire.data_at(Client, 1 + from as i64, &copy[from..to]);
                }
                wire.hides(Client, REQUEST).acks(Server).says(Server, RESPONSE);
                expect(wire.ends(Client).ends(Server), weirds);
            }
        }
    }
}

#[test]
fn a_fin_that_never_arrived_ends_nothing() {
    for wire in wires() {
        for side in [Client, Server] {
            for is_expired in [false, true] {
                let mut wire = wire.clone();
                wire.open();
                if is_expired {
                    wire.expired(side);
                }
                let fin = Part { flags: FIN_ACK, ..wire.part(side) };
                wire.put(side, &fin).arrives(side);
                expect(exchange(&mut wire), &["data_after_FIN"]);
            }
        }
    }
}

#[test]
fn whoever_gets_a_syn_ack_that_is_taken_has_begun() {
    for wire in wires() {
        for second in 0..4 {
            let mut wire = wire.clone();
            wire.syn(Client, SYN, b"").syn(Server, SYN_ACK, b"");
            if second == 3 {
                // Repeated.
                wire.put(Server, &Part { flags: SYN_ACK, position: 0, ..wire.part(Server) });
            }
            match second {
                0 | 3 => wire.acks(Client),
                1 => wire.sends(Server, b"220 hello\r\n"),
                _ => wire.sends(Client, b"hello\r\n"),
            };
            wire.drop_first();
            let logs = wire.logs();
            let columns = ["id.orig_p", "orig_bytes", "resp_bytes", "history"];
            let expected = match second {
                0 | 3 => "40000 0 0 ^hA",
                1 => "40000 0 11 ^hd",
                _ => "40000 7 0 ^hD",
            };
            assert_eq!(logs.lines("conn", &columns), [expected]);
        }
        // A RST, or nothing, makes the sender a scanner where the ports do not tell.
        let mut wire = wire.clone();
        wire.syn(Client, SYN, b"").syn(Server, SYN_ACK, b"");
        wire.put(Client, &Part { flags: RST, ..wire.part(Client) });
        wire.drop_first();
        let row = &wire.logs().lines("conn", &["id.resp_p", "id.orig_p"])[0];
        let known = row == "80 40000";
        assert!(known || row.starts_with("40000 "), "{row}");
    }
}

#[test]
fn two_syns_make_one_connection() {
    for wire in wires() {
        for is_acknowledged_first in [false, true] {
            let mut wire = wire.clone();
            wire.syn(Client, SYN, b"");
            if is_acknowledged_first {
                wire.acks(Server);
            }
            wire.syn(Server, SYN, b"");
            // The client answers the SYN of the server (RFC 9293, 3.5, figure 7).
            wire.put(Client, &Part { flags: SYN_ACK, position: 0, ..wire.part(Client) });
            wire.acks(Server);
            expect(exchange(&mut wire), &["simultaneous_open"]);
        }
    }
}

#[test]
fn stamps_are_older_or_newer_around_the_wrap() {
    // Values of RFC 7323 are compared modulo 2^32, and the first may be any.
    for first in [1_u32, 0x7fff_ffff, 0x8000_0001, 0xffff_fff8] {
        let mut wire = Wire::new(80);
        wire.stamped(first).open();
        // What was sent in order counts, whatever comes in its place.
        wire.data_at(Client, 1, REQUEST).data_at(Client, 1, DECOY).hides(Client, REQUEST);
        wire.acks(Server).says(Server, RESPONSE).ends(Client).ends(Server);
        expect(&wire, &["retransmission_inconsistency"]);
        // What has an older stamp is dropped by its receiver.
        let mut wire = Wire::new(80);
        wire.stamped(first).open().stamped(first.wrapping_sub(1_000));
        wire.data_at(Client, 1, DECOY).stamped(first.wrapping_add(10));
        wire.data_at(Client, 1, &REQUEST[..7]).data_at(Client, 8, &REQUEST[7..]);
        wire.hides(Client, REQUEST).acks(Server).says(Server, RESPONSE).ends(Client).ends(Server);
        expect(&wire, &["retransmission_inconsistency"]);
    }
}

/// Whoever knows one copy can make another with the same Internet checksum, and nobody sees which of both
/// the receiver took.
#[test]
fn copies_with_the_same_internet_checksum_are_told() {
    let texts = [b"GET /ab/cdef/ HTTP/1.1\r\n\r\n", b"GET /cd/abef/ HTTP/1.1\r\n\r\n"];
    let len = texts[0].len();
    for wire in wires() {
        // Whole, in pieces of which either copy has others, and byte by byte.
        for sizes in [[len, len], [len, 7], [6, len], [5, 8], [2, 2], [1, 1], [len, 1]] {
            let mut wire = wire.clone();
            wire.open();
            for (text, size) in texts.iter().zip(sizes) {
                for (at, piece) in text.chunks(size).enumerate() {
                    wire.data_at(Client, 1 + (at * size) as i64, piece);
                }
            }
            wire.hides(Client, texts[0]).acks(Server);
            let logs = wire.says(Server, RESPONSE).ends(Client).ends(Server).logs();
            assert_eq!(logs.http(), ["GET /ab/cdef/ 0 200 OK 5"], "{sizes:?}");
            let told = logs.lines("weird", &["name"]);
            assert_eq!(told, ["retransmission_inconsistency"], "{sizes:?}");
        }
    }
}

/// Puts a stray segment in front of one of the steps of a connection.
fn strayed<const N: usize>(
    wire: &mut Wire,
    place: usize,
    stray: impl Fn(&mut Wire),
    steps: [fn(&mut Wire); N],
) {
    for (at, step) in steps.into_iter().enumerate() {
        if at == place {
            stray(wire);
        }
        step(wire);
    }
}

/// What a connection says and how it ends, behind its handshake.
const STEPS: [fn(&mut Wire); 3] = [
    |wire| {
        wire.says(Client, REQUEST);
    },
    |wire| {
        wire.says(Server, RESPONSE);
    },
    |wire| {
        wire.ends(Client).ends(Server);
    },
];

/// Flags that no TCP takes: a SYN that ends or resets what it begins, and a segment without ACK once the
/// handshake is done.
#[test]
fn flags_that_no_host_takes_change_nothing() {
    let odd = [
        (SYN.with(TcpFlags::FIN), "TCP_christmas"),
        (SYN.with(RST), "TCP_christmas"),
        (SYN_ACK.with(TcpFlags::FIN), "TCP_christmas"),
        (TcpFlags::PSH, "segment_without_ACK"),
        (TcpFlags::FIN, "segment_without_ACK"),
        (TcpFlags(0), "segment_without_ACK"),
    ];
    for wire in wires() {
        for (flags, weird) in odd {
            for (side, far) in [(Client, 0), (Server, 0), (Client, 77_777), (Server, -77_777)] {
                // Behind the handshake, within the exchange, and behind it.
                for place in 0..3 {
                    let mut wire = wire.clone();
                    let stray = |wire: &mut Wire| {
                        let position = wire.next(side) + far;
                        let data = if flags.any(SYN) { b"" } else { DECOY };
                        wire.put(side, &Part { flags, position, data, ..wire.part(side) });
                    };
                    strayed(wire.open(), place, stray, STEPS);
                    expect(&wire, &[weird]);
                }
            }
        }
    }
}

/// A FIN of an older connection, or one that was made up.
#[test]
fn a_fin_before_what_was_acknowledged_ends_nothing() {
    for wire in wires() {
        for side in [Client, Server] {
            for far in [-2, -77_777, -1_000_000_000] {
                for place in 0..3 {
                    let mut wire = wire.clone();
                    let stray = |wire: &mut Wire| {
                        let part = wire.part(side);
                        wire.put(side, &Part { flags: FIN_ACK, position: far, ..part });
                    };
                    strayed(wire.open(), place, stray, STEPS);
                    let logs = expect(&wire, &["segment_outside_window"]);
                    assert_eq!(logs.lines("conn", &["missed_bytes"]), ["0"]);
                }
            }
        }
    }
}

/// A RST says nothing of how much was sent: its number may be a guess.
#[test]
fn a_reset_within_the_window_adds_no_byte() {
    for wire in wires() {
        for side in [Client, Server] {
            let mut wire = wire.clone();
            exchange(wire.open());
            let position = wire.next(side) + 3_000;
            wire.put(side, &Part { flags: RST, position, ..wire.part(side) });
            expect(&wire, &[]);
        }
    }
}

/// The answer tells which of several SYNs has begun the connection.
#[test]
fn the_syn_that_was_answered_counts_of_several() {
    for wire in wires() {
        for far in FAR {
            for count in [1, 2, 4] {
                let mut wire = wire.clone();
                wire.syn(Client, SYN, b"");
                for at in 0..count {
                    let position = far + at;
                    wire.put(Client, &Part { flags: SYN, position, ..wire.part(Client) });
                }
                wire.syn(Server, SYN_ACK, b"").acks(Client);
                let logs = exchange(&mut wire).logs();
                assert_eq!(logs.http(), ["GET /evil 0 200 OK 5"], "{far} {count}");
                let mut rows = logs.lines("conn", &["conn_state", "orig_bytes", "resp_bytes"]);
                rows.sort();
                rows.dedup();
                assert_eq!(rows, ["S0 - -", "SF 42 43"], "{far} {count}");
                // A millisecond from each segment to the next; the round trip is that of the SYN that was
                // answered.
                let rtt = logs.lines("tcp", &["resp_handshake_rtt"]);
                let expected = format!("0.00{}000", count + 1);
                assert!(rtt.contains(&expected), "{expected} in {rtt:?}");
                assert!(!logs.weirds().is_empty());
            }
        }
    }
}

/// A SYN of the server that nobody answers, before the client's or before the server's true answer.
#[test]
fn a_syn_that_nobody_answers_numbers_nothing() {
    for wire in wires() {
        for far in FAR {
            for place in 0..3 {
                let mut wire = wire.clone();
                let stray = |wire: &mut Wire| {
                    let part = wire.part(Server);
                    wire.put(Server, &Part { flags: SYN, position: far, ..part });
                };
                let steps: [fn(&mut Wire); 3] = [
                    |wire| {
                        wire.syn(Client, SYN, b"");
                    },
                    |wire| {
                        wire.syn(Server, SYN_ACK, b"");
                    },
                    |wire| {
                        wire.acks(Client);
                    },
                ];
                strayed(&mut wire, place, stray, steps);
                let logs = exchange(&mut wire).logs();
                assert_eq!(logs.http(), ["GET /evil 0 200 OK 5"], "{far} {place}");
                let columns = ["id.orig_p", "conn_state", "orig_bytes", "resp_bytes"];
                assert_eq!(logs.lines("conn", &columns), ["40000 SF 42 43"], "{far} {place}");
                assert!(!logs.weirds().is_empty());
            }
        }
    }
}

/// A SYN of the client with another number, between the server's answer and its acknowledgement, and
/// while one side has ended.
#[test]
fn a_syn_within_a_handshake_or_an_end_is_none() {
    for wire in wires() {
        for far in FAR {
            for place in 0..2 {
                let mut wire = wire.clone();
                let syn = Part { flags: SYN, position: far, ..wire.part(Client) };
                wire.syn(Client, SYN, b"").syn(Server, SYN_ACK, b"");
                if place == 0 {
                    wire.put(Client, &syn);
                }
                wire.acks(Client).says(Client, REQUEST).says(Server, RESPONSE).ends(Client);
                if place == 1 {
                    wire.put(Client, &syn);
                }
                expect(wire.ends(Server), &["active_connection_reuse"]);
            }
        }
    }
}

/// The capture begins with a response: what is said tells who the server is, on any port, however the
/// response is cut behind its status.
#[test]
fn a_response_that_comes_first_is_the_servers() {
    for wire in wires() {
        for size in [12, 20, RESPONSE.len()] {
            for is_acknowledged in [false, true] {
                let mut wire = wire.clone();
                for piece in RESPONSE.chunks(size) {
                    wire.sends(Server, piece);
                    if is_acknowledged {
                        wire.acks(Client);
                    }
                }
                let logs = exchange(&mut wire).logs();
                let expected = ["- 0 200 OK 5", "GET /evil 0 200 OK 5"];
                let http: Vec<String> =
                    logs.http().iter().map(|row| row.replace("- - ", "- ")).collect();
                assert_eq!(http, expected, "{size}");
                let columns = ["id.orig_p", "service", "orig_pkts"];
                let conn = logs.lines("conn", &columns);
                assert!(conn[0].starts_with("40000 http "), "{conn:?}");
            }
        }
    }
}
