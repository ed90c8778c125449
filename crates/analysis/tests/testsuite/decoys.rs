//! Segments that were sent to be seen, or that are of an older connection: what they say counts for
//! nothing once the hosts go on as though they had not been.

use crate::support::wire::{Client, FIN_ACK, Part, SYN, SYN_ACK, Server, Wire};

const REQUEST: &[u8] = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody";
const UNSENT: &str = "TCP ack_of_unsent_data";

fn opened() -> Wire {
    let mut wire = Wire::new(80);
    wire.open();
    wire
}

/// The client acknowledges so many bytes more than were sent.
fn claims(wire: &mut Wire, more: i64) {
    let part = wire.part(Client);
    wire.put(Client, &Part { acknowledged: part.acknowledged + more, ..part });
}

/// Sizes, what is missing, and what can be believed.
fn sums(wire: &Wire) -> Vec<String> {
    let columns = ["orig_bytes", "resp_bytes", "missed_bytes", "capture_missed_bytes", "quality"];
    wire.logs().lines("conn", &columns)
}

/// How a connection goes on that shows that an acknowledgement was none.
type Goes = fn(&mut Wire);

#[test]
fn a_stray_acknowledgement_is_taken_back() {
    let ways: [(&str, &str, Goes); 5] = [
        ("the client speaks", "56 42", |wire| {
            wire.says(Client, REQUEST);
        }),
        ("the client ends", "28 42", |wire| {
            wire.ends(Client);
        }),
        ("the server ends", "28 42", |wire| {
            wire.ends(Server);
        }),
        ("later data is acknowledged", "28 84", |wire| {
            wire.pass(20).says(Server, RESPONSE);
        }),
        ("in the midst", "56 84", |wire| {
            wire.says(Client, REQUEST).says(Server, RESPONSE).ends(Client).ends(Server);
        }),
    ];
    for (name, sizes, goes) in ways {
        for more in [60, 1_448, 60_000, 120_000] {
            for wait in [0, 100] {
                let mut wire = opened();
                wire.says(Client, REQUEST).says(Server, RESPONSE).pass(100);
                claims(&mut wire, more);
                goes(wire.pass(wait));
                let told = sums(&wire);
                assert_eq!(told, [format!("{sizes} 0 0 suspect")], "{name} {more} {wait}");
                let logs = wire.logs();
                assert!(logs.weirds().contains(&UNSENT.to_owned()), "{name} {more} {wait}");
                assert!(logs.lines("gaps", &["cause"]).is_empty(), "{name} {more} {wait}");
            }
        }
    }
}

/// What is said counts, whatever a stray acknowledgement said before, and however long it was believed.
#[test]
fn what_is_said_behind_a_stray_acknowledgement_is_read() {
    let ways: [(&str, Goes); 4] = [
        ("nothing", |_| {}),
        ("the server asks", |wire| {
            let part = wire.part(Server);
            wire.put(Server, &Part { position: part.position - 1, ..part });
        }),
        ("the client asks", |wire| {
            let part = wire.part(Client);
            wire.put(Client, &Part { position: part.position - 1, ..part });
        }),
        ("both ask", |wire| {
            for side in [Client, Server] {
                let part = wire.part(side);
                wire.put(side, &Part { position: part.position - 1, ..part });
            }
        }),
    ];
    for (name, between) in ways {
        for more in [2, 20, 60, 1_448, 60_000] {
            for wait in [0, 5, 100] {
                let mut wire = opened();
                wire.says(Client, REQUEST).says(Server, RESPONSE).pass(100);
                claims(&mut wire, more);
                between(wire.pass(wait));
                wire.pass(wait).says(Client, REQUEST).pass(5).says(Server, RESPONSE);
                wire.says(Client, REQUEST).says(Server, RESPONSE).ends(Client).ends(Server);
                let logs = wire.logs();
                let rows = logs.lines("http", &["status_code", "response_body_len", "uri"]);
                assert_eq!(rows, ["200 4 /a"; 3], "{name} {more} {wait}");
                assert_eq!(sums(&wire), ["84 126 0 0 suspect"], "{name} {more} {wait}");
            }
        }
    }
}

/// The server is acknowledged what it says a moment later, so that only the answer of its peer tells.
#[test]
fn data_in_the_place_of_what_was_acknowledged_is_read() {
    for more in [60, 1_448, 60_000] {
        for wait in [0, 5, 100, 1_000] {
            let mut wire = opened();
            wire.says(Client, REQUEST).pass(1);
            claims(&mut wire, more);
            wire.pass(wait).says(Server, RESPONSE);
            wire.says(Client, REQUEST).says(Server, RESPONSE).ends(Client).ends(Server);
            let rows = wire.logs().lines("http", &["status_code", "response_body_len", "uri"]);
            assert_eq!(rows, ["200 4 /a"; 2], "{more} {wait}");
        }
    }
}

/// Both sides go on as though nothing had been acknowledged, but without a sign of what came later.
#[test]
fn an_acknowledgement_that_was_overtaken_contradicts_none() {
    let lost = [b'x'; 3_000];
    let ways: [(&str, Goes); 5] = [
        ("nothing", |_| {}),
        ("an older one", |wire| {
            let part = wire.part(Client);
            wire.put(Client, &Part { acknowledged: part.acknowledged - 3_000, ..part });
        }),
        ("data again", |wire| {
            let next = wire.next(Server);
            wire.pass(300).data_at(Server, next - 3_000, &[b'x'; 1_000]).acks(Client);
        }),
        ("an answer", |wire| {
            wire.says(Client, REQUEST).says(Server, RESPONSE);
        }),
        ("the end", |wire| {
            wire.ends(Server).ends(Client);
        }),
    ];
    for (name, goes) in ways {
        let mut wire = opened();
        wire.says(Client, REQUEST).says(Server, RESPONSE).hides(Server, &lost).acks(Client);
        goes(&mut wire);
        let logs = wire.logs();
        let conn = logs.lines("conn", &["capture_missed_bytes", "quality"]);
        assert_eq!(conn, ["3000 touched"], "{name}");
        assert!(!logs.weirds().contains(&UNSENT.to_owned()), "{name}");
    }
}

#[test]
fn a_loss_before_a_stray_acknowledgement_stands() {
    for is_acknowledged in [true, false] {
        let mut wire = opened();
        wire.says(Client, REQUEST).hides(Server, &[b'x'; 700]).sends(Server, RESPONSE);
        if is_acknowledged {
            wire.acks(Client);
        }
        claims(wire.pass(20), 50_000);
        let data = Part { data: REQUEST, ..wire.part(Client) };
        if !is_acknowledged {
            // The hosts have not got it yet.
            wire.pass(20).put(Client, &Part { acknowledged: 1, ..data });
            wire.hides(Client, REQUEST).acks(Client);
        } else {
            wire.pass(20).says(Client, REQUEST);
        }
        wire.says(Server, RESPONSE).ends(Client);
        let fin = Part { flags: FIN_ACK, ..wire.part(Server) };
        wire.put(Server, &fin);
        assert_eq!(sums(&wire), ["56 784 700 700 touched"], "{is_acknowledged}");
        assert!(wire.logs().weirds().contains(&UNSENT.to_owned()));
    }
}

/// Nobody knows of what was damaged on its way before it is acknowledged, or sent again as it was.
#[test]
fn damaged_bytes_are_sure_once_something_else_tells_of_them() {
    let ways: [(&str, &str, Goes); 6] = [
        ("nothing", "38 suspect", |_| {}),
        ("both end before it", "28 suspect", |wire| {
            wire.ends(Server);
            let fin = Part { flags: FIN_ACK, ..wire.part(Client) };
            wire.put(Client, &fin);
        }),
        ("other bytes", "56 clean", |wire| {
            wire.says(Client, REQUEST);
        }),
        ("an acknowledgement", "38 clean", |wire| {
            wire.hides(Client, b"0123456789").acks(Server);
        }),
        ("of a part", "38 suspect", |wire| {
            wire.hides(Client, b"012345").acks(Server);
        }),
        ("its sender", "38 clean", |wire| {
            wire.hides(Client, b"0123456789").acks(Client);
        }),
    ];
    for (name, expected, goes) in ways {
        let mut wire = opened();
        wire.says(Client, REQUEST).says(Server, RESPONSE).damaged();
        let next = wire.next(Client);
        goes(wire.data_at(Client, next, b"0123456789"));
        let told = wire.logs().lines("conn", &["orig_bytes", "quality"]);
        assert_eq!(told, [expected], "{name}");
    }
}

/// A capture from before the network card has no right checksums of its own host.
#[test]
fn bytes_of_a_host_whose_card_makes_the_checksums_count() {
    let mut wire = Wire::new(80);
    wire.damaged().syn(Client, SYN, b"").syn(Server, SYN_ACK, b"").damaged().acks(Client);
    wire.damaged().sends(Client, REQUEST);
    assert_eq!(sums(&wire), ["28 0 0 0 clean"]);
}

/// Hosts that sign segments drop those that are not signed (RFC 2385, 2.0; RFC 5925, 7.3), and the other
/// way round; but not where they sign only some.
#[test]
fn what_is_not_signed_as_the_others_is_not_received() {
    const GOOD: &[u8] = b"GET /good HTTP/1.1\r\nHost: h\r\n\r\n";
    const EVIL: &[u8] = b"GET /evil HTTP/1.1\r\nHost: h\r\n\r\n";
    let md5 = [&[1, 1, 19, 18][..], &[7; 16]].concat();
    let authentication = [&[29, 16][..], &[7; 14]].concat();
    for option in [md5, authentication] {
        for (is_signed, is_mixed) in [(true, false), (false, false), (true, true), (false, true)] {
            let own: &[u8] = if is_signed { &option } else { &[] };
            let other: &[u8] = if is_signed { &[] } else { &option };
            let mut wire = Wire::new(80);
            wire.options(own).syn(Client, SYN, b"").options(own).syn(Server, SYN_ACK, b"");
            wire.options(if is_mixed { other } else { own }).acks(Client);
            wire.options(other).data_at(Client, 1, GOOD);
            for part in [&EVIL[..5], &EVIL[5..]] {
                wire.options(own).sends(Client, part).options(own).acks(Server);
            }
            wire.options(own).sends(Server, RESPONSE).options(own).acks(Client);
            let logs = wire.logs();
            let name = if is_mixed { "good" } else { "evil" };
            assert_eq!(logs.http(), [format!("GET /{name} 0 200 OK 4")], "{is_signed}");
            assert_eq!(logs.weirds(), ["TCP retransmission_inconsistency"], "{is_signed}");
        }
    }
}

/// What is signed as no other counts where nothing comes in its place.
#[test]
fn what_alone_is_signed_counts_once_it_is_acknowledged() {
    let option = [&[1, 1, 19, 18][..], &[7; 16]].concat();
    let mut wire = opened();
    wire.options(&option).says(Client, REQUEST).says(Server, RESPONSE);
    wire.ends(Client).ends(Server);
    assert_eq!(wire.logs().http(), ["GET /a 0 200 OK 4"]);
    assert_eq!(sums(&wire), ["28 42 0 0 clean"]);
}
