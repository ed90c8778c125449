//! Connections that begin with the addresses and ports of another.

use crate::support::wire::{ACK, Client, FIN_ACK, Part, RST_ACK, SYN, SYN_ACK, Server, Wire};
use crate::support::{Rows, analyse, packet};
use netsniff_analysis::Limits;
use netsniff_packet::Timestamp;
use netsniff_traffic::dialogue::{Dialogue, Setup};

/// How far a connection comes before the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    Syn,
    Data,
    OneFin,
    BothFins,
    Reset,
}

/// Frames with their times in nanoseconds.
fn connection(sequence: u32, until: Until) -> Vec<(i64, Vec<u8>)> {
    let mut dialogue =
        Dialogue::new(Setup { initial_sequence: (sequence, sequence / 2), ..Setup::default() });
    dialogue.connect();
    dialogue.say(Client, b"a question").say(Server, b"an answer");
    match until {
        Until::Syn | Until::Data => {}
        Until::OneFin => {
            dialogue.close(Client);
        }
        Until::BothFins => {
            dialogue.close(Client).close(Server);
        }
        Until::Reset => {
            dialogue.reset(Client);
        }
    }
    let seen = dialogue.finish().seen;
    let frames = seen.into_iter().map(|seen| (seen.timestamp.nanos(), seen.frame));
    frames.take(if until == Until::Syn { 1 } else { usize::MAX }).collect()
}

/// The rows of a connection, and of the next one that begins `after` nanoseconds later.
fn run(until: Until, after: i64) -> Rows {
    let mut frames = connection(5_000, until);
    let last = frames.last().unwrap().0;
    let next = connection(90_000, Until::BothFins);
    let first = next[0].0;
    frames.extend(next.into_iter().map(|(nanos, frame)| (last + after + nanos - first, frame)));
    let packets = frames.iter().map(|(nanos, data)| packet(Timestamp::from_nanos(*nanos), data));
    analyse(packets, Limits::default())
}

const SECOND: i64 = 1_000_000_000;

#[test]
fn reuse_is_told_of_the_connection_that_ends() {
    for (until, after, expected) in [
        (Until::Syn, SECOND, Some("SYN_seq_jump")),
        (Until::Data, SECOND, Some("active_connection_reuse")),
        (Until::OneFin, SECOND, Some("active_connection_reuse")),
        (Until::BothFins, SECOND, Some("premature_connection_reuse")),
        (Until::BothFins, 9 * SECOND, None),
        (Until::Reset, SECOND, None),
    ] {
        let rows = run(until, after);
        let connections = rows.log("conn");
        assert_eq!(connections.len(), 2, "{until:?}");
        let told = rows.log("weird");
        let names: Vec<&str> = told.iter().map(|row| row["name"].as_str()).collect();
        assert_eq!(names, expected.as_slice(), "{until:?} {after}");
        let first = connections.iter().min_by_key(|row| row["ts"].clone()).unwrap();
        for row in told {
            assert_eq!(row["uid"], first["uid"], "{until:?}");
            assert_eq!(row["source"], "TCP");
        }
    }
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Both sides have said something and ended, or the client has broken off.
fn ended(mut wire: Wire, is_reset: bool) -> Wire {
    wire.open().says(Client, REQUEST).says(Server, RESPONSE);
    if is_reset {
        wire.put(Client, &Part { flags: RST_ACK, ..wire.part(Client) });
    } else {
        wire.ends(Client).ends(Server);
    }
    wire
}

const SIZES: [&str; 4] = ["orig_bytes", "resp_bytes", "capture_missed_bytes", "quality"];

/// The network doubled it, and the copy took longer than all that was said.
#[test]
fn a_late_copy_of_the_syn_begins_nothing_behind_the_end() {
    for over in [Wire::new(80), Wire::over_v6(80)] {
        for (is_reset, weird) in [(false, "SYN_after_close"), (true, "SYN_after_reset")] {
            let mut wire = ended(over.clone(), is_reset);
            wire.put(Client, &Part { flags: SYN, position: 0, ..wire.part(Client) });
            // What else comes late is of the same connection.
            wire.acks(Server).data_at(Client, 1, &REQUEST[..10]).acks(Server);
            wire.put(Client, &Part { flags: SYN, position: 0, ..wire.part(Client) });
            let logs = wire.logs();
            assert_eq!(logs.lines("conn", &SIZES), ["27 43 0 clean"], "{weird}");
            assert_eq!(logs.lines("gaps", &["cause"]), [""; 0]);
            let told = logs.lines("weird", &["name"]);
            assert_eq!(told.iter().filter(|name| *name == weird).count(), 1, "{told:?}");
        }
    }
}

/// Who makes captures by hand likes the same numbers, and a capture is played again and again.
#[test]
fn a_syn_with_the_number_of_the_last_one_begins_another_if_it_is_answered() {
    for is_reset in [false, true] {
        for (client, server) in [(1_000, 5_000_000), (1_000, 900_000), (70_000, 900_000)] {
            let mut wire = ended(Wire::new(80), is_reset);
            wire.anew(client, server).open().says(Client, REQUEST).says(Server, RESPONSE);
            wire.ends(Server).ends(Client);
            let logs = wire.logs();
            let sizes = ["27 43 0 clean"; 2];
            assert_eq!(logs.lines("conn", &SIZES), sizes, "{is_reset} {client} {server}");
            assert_eq!(logs.http().len(), 2);
        }
    }
}

/// One side has ended when somebody sends a SYN in the name of the other, which goes on.
#[test]
fn a_syn_between_two_fins_has_not_the_bytes_of_what_follows() {
    for far in [0x5555_5555, 0x2aaa_aaaa, 77_777_777, -77_777_777] {
        let mut wire = Wire::over_v6(80);
        wire.open().says(Client, REQUEST).says(Server, RESPONSE).ends(Server);
        wire.put(Client, &Part { flags: SYN, position: far, ..wire.part(Client) });
        wire.ends(Client);
        let logs = wire.logs();
        let bytes = logs.lines("conn", &["orig_bytes"]);
        assert!(bytes.iter().all(|bytes| ["27", "0", "-"].contains(&bytes.as_str())), "{bytes:?}");
    }
}

#[test]
fn a_fin_is_no_further_behind_its_syn_than_a_connection_can_carry() {
    const GIB: i64 = 1 << 30;
    for (is_late, gib, expected) in
        [(false, 3, "0"), (true, 3, "3221225472"), (true, 1, "1073741824")]
    {
        for (is_answered, seconds) in [(false, 4), (true, 200)] {
            let mut wire = Wire::new(80);
            wire.syn(Client, SYN, b"");
            if is_answered {
                wire.syn(Server, SYN_ACK, b"").acks(Client);
            }
            let fin = Part { flags: FIN_ACK, position: 1 + gib * GIB, ..wire.part(Client) };
            wire.pass(if is_late { seconds * 1_000 } else { 0 }).put(Client, &fin);
            let bytes = wire.logs().lines("conn", &["orig_bytes"]);
            let is_unset = !is_late && !is_answered;
            assert_eq!(bytes, [if is_unset { "-" } else { expected }], "{is_answered} {gib}");
        }
    }
}

/// Nothing tells the scale of its windows.
#[test]
fn a_connection_without_a_begin_has_no_bytes_that_one_side_alone_claims() {
    for far in [0x5555_5555, 0x7fff_0000, 200_000_000] {
        for over in [Wire::new(80), Wire::over_v6(80)] {
            for forged in 0..3 {
                let mut wire = over.clone();
                wire.hides(Client, &[0; 500]).hides(Server, &[0; 500]);
                wire.says(Client, REQUEST).says(Server, RESPONSE);
                let part = wire.part(Client);
                let (position, acknowledged) = (part.position + far, part.acknowledged + far);
                let data = RESPONSE;
                let far = match forged {
                    0 => Part { acknowledged, ..part },
                    1 => Part { position, data, ..part },
                    _ => Part { position, acknowledged, data, ..part },
                };
                wire.put(Client, &far).says(Client, REQUEST).says(Server, RESPONSE);
                wire.ends(Client).ends(Server);
                let bytes = wire.logs().lines("conn", &["orig_bytes", "resp_bytes"]);
                assert_eq!(bytes, ["54 86"], "{far:?}");
            }
        }
    }
    // What both say is where they go on. How much was missed is not known.
    let mut wire = Wire::new(80);
    wire.hides(Client, &[0; 500]).hides(Server, &[0; 500]);
    wire.says(Client, REQUEST).says(Server, RESPONSE);
    let next = wire.next(Server) + 0x5555_5555;
    let jumped = Part { flags: ACK, position: next, data: RESPONSE, ..wire.part(Server) };
    wire.put(Server, &jumped);
    let acknowledged = next + RESPONSE.len() as i64;
    wire.put(Client, &Part { acknowledged, ..wire.part(Client) });
    wire.put(Server, &Part { flags: FIN_ACK, position: acknowledged, ..wire.part(Server) });
    let bytes = wire.logs().lines("conn", &["resp_bytes", "quality"]);
    assert_eq!(bytes, ["43 suspect"]);
}

/// The capture began behind the first request, and the network doubled the SYN.
#[test]
fn a_late_copy_of_a_syn_that_was_missed_begins_nothing() {
    for place in 0..4 {
        let mut wire = Wire::over_v6(80);
        wire.hides(Client, &[0; 500]).hides(Server, &[0; 500]);
        let copy = |wire: &mut Wire, at: usize| {
            if at == place {
                wire.put(Client, &Part { flags: SYN, position: 0, ..wire.part(Client) });
            }
        };
        wire.says(Client, REQUEST);
        copy(&mut wire, 0);
        wire.says(Server, RESPONSE);
        copy(&mut wire, 1);
        wire.ends(Client);
        copy(&mut wire, 2);
        wire.ends(Server);
        copy(&mut wire, 3);
        let bytes = wire.logs().lines("conn", &SIZES);
        assert_eq!(bytes, ["27 43 0 unknown"], "{place}");
    }
}
