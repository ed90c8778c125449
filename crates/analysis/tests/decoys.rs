//! Segments that were sent to be seen, or that are of an older connection: what they say counts for
//! nothing unless something else bears it out.

mod support;

use support::wire::{Client, FIN_ACK, Part, RST_ACK, SYN, SYN_ACK, Server, Side, Wire};

const REQUEST: &[u8] = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody";
const ALONE: &str = "TCP unconfirmed_ack_of_unseen_data";

fn opened() -> Wire {
    let mut wire = Wire::new(80);
    wire.open();
    wire
}

/// An acknowledgement of so many bytes more than were sent.
fn claims(wire: &mut Wire, side: Side, more: i64) {
    let part = wire.part(side);
    wire.put(side, &Part { acknowledged: part.acknowledged + more, ..part });
}

/// Sizes, what is missing, and what can be believed.
fn sums(wire: &Wire) -> Vec<String> {
    let columns = ["orig_bytes", "resp_bytes", "missed_bytes", "capture_missed_bytes", "quality"];
    wire.logs().lines("conn", &columns)
}

#[test]
fn a_stray_acknowledgement_proves_no_bytes() {
    for more in [2, 1_448, 60_000, 120_000] {
        // At the end of all: nothing bears it out.
        let mut wire = opened();
        wire.says(Client, REQUEST).says(Server, RESPONSE).pass(100);
        claims(&mut wire, Client, more);
        assert_eq!(sums(&wire), ["28 42 0 0 suspect"], "{more}");
        let logs = wire.logs();
        assert_eq!(logs.weirds(), [ALONE], "{more}");
        assert!(logs.lines("gaps", &["cause"]).is_empty(), "{more}");
        assert_eq!(logs.http(), ["GET /a 0 200 OK 4"]);

        // Within the connection, which goes on without it.
        for wait in [0, 100] {
            let mut wire = opened();
            wire.says(Client, REQUEST);
            claims(&mut wire, Client, more);
            wire.pass(wait).says(Server, RESPONSE).says(Client, REQUEST).says(Server, RESPONSE);
            wire.ends(Client).ends(Server);
            let logs = wire.logs();
            assert_eq!(logs.http(), ["GET /a 0 200 OK 4"; 2], "{more} {wait}");
            // What comes at once may have been captured behind its acknowledgement.
            if more > 2 || wait > 0 {
                assert_eq!(sums(&wire), ["56 84 0 0 suspect"], "{more} {wait}");
                assert_eq!(logs.weirds(), [ALONE], "{more} {wait}");
            }
        }
    }
}

#[test]
fn a_doubled_acknowledgement_bears_itself_not_out() {
    let mut wire = opened();
    wire.says(Client, REQUEST).says(Server, RESPONSE);
    claims(&mut wire, Client, 5_000);
    wire.double_last();
    assert_eq!(sums(&wire), ["28 42 0 0 suspect"]);
}

/// What a capture lost is shown by more than one segment.
#[test]
fn what_bears_an_acknowledgement_out_makes_a_loss_of_it() {
    let lost = [b'x'; 3_000];
    type Witness = fn(&mut Wire);
    let witnesses: [(&str, Witness); 6] = [
        ("a second one", |wire| {
            wire.acks(Client);
        }),
        ("one of more", |wire| {
            wire.sends(Server, RESPONSE).acks(Client);
        }),
        ("data above", |wire| {
            wire.sends(Server, RESPONSE);
        }),
        ("its own numbers", |wire| {
            wire.acks(Server);
        }),
        ("a FIN above", |wire| {
            let fin = Part { flags: FIN_ACK, ..wire.part(Server) };
            wire.put(Server, &fin);
        }),
        ("a RST that acknowledges", |wire| {
            let reset = Part { flags: RST_ACK, ..wire.part(Client) };
            wire.put(Client, &reset);
        }),
    ];
    for (name, witness) in witnesses {
        let mut wire = opened();
        wire.says(Client, REQUEST).says(Server, RESPONSE).hides(Server, &lost).acks(Client);
        witness(&mut wire);
        let logs = wire.logs();
        let conn = logs.lines("conn", &["missed_bytes", "capture_missed_bytes", "quality"]);
        assert_eq!(conn, ["3000 3000 touched"], "{name}");
        assert!(logs.weirds().is_empty(), "{name}");
    }
}

#[test]
fn data_that_is_captured_behind_its_acknowledgement_is_not_missing() {
    let mut wire = opened();
    wire.says(Client, REQUEST);
    let next = wire.next(Server);
    wire.hides(Server, RESPONSE).acks(Client).data_at(Server, next, RESPONSE).ends(Client);
    wire.ends(Server);
    let logs = wire.logs();
    assert_eq!(sums(&wire), ["28 42 42 0 clean"]);
    assert_eq!(logs.http(), ["GET /a 0 200 OK 4"]);
    assert!(logs.weirds().is_empty());
}

/// What may never have reached its receiver is of no stream unless that acknowledges it.
#[test]
fn what_is_damaged_or_expires_adds_no_bytes() {
    type Mark = fn(&mut Wire);
    let marks: [(&str, Mark); 2] = [
        ("damaged", |wire| {
            wire.damaged();
        }),
        ("expired", |wire| {
            wire.expired(Client);
        }),
    ];
    for (name, mark) in marks {
        for more in [1, 7, 1_000] {
            let mut wire = opened();
            wire.says(Client, REQUEST).says(Server, RESPONSE);
            mark(&mut wire);
            let (data, next) = (vec![b'x'; more], wire.next(Client));
            wire.data_at(Client, next, &data).arrives(Client);
            assert_eq!(sums(&wire), ["28 42 0 0 suspect"], "{name} {more}");
            let weirds = wire.logs().weirds();
            assert!(weirds.contains(&"TCP unconfirmed_data".to_owned()), "{name} {more}");

            // The connection goes on with other bytes, or ends there.
            let mut goes_on = wire.clone();
            goes_on.says(Client, REQUEST).says(Server, RESPONSE);
            assert_eq!(goes_on.logs().http(), ["GET /a 0 200 OK 4"; 2], "{name} {more}");
            let quality = if more > REQUEST.len() { "suspect" } else { "clean" };
            assert_eq!(sums(&goes_on), [format!("56 84 0 0 {quality}")], "{name} {more}");
            assert!(!goes_on.logs().weirds().is_empty(), "{name} {more}");
            wire.ends(Client).ends(Server);
            let sizes = wire.logs().lines("conn", &["orig_bytes", "resp_bytes"]);
            assert_eq!(sizes, ["28 42"], "{name} {more}");
        }
    }
}

#[test]
fn an_acknowledgement_lets_what_is_damaged_count() {
    let mut wire = opened();
    wire.says(Client, REQUEST).says(Server, RESPONSE).damaged().says(Client, REQUEST);
    wire.says(Server, RESPONSE).ends(Client).ends(Server);
    assert_eq!(sums(&wire), ["56 84 0 0 clean"]);
    assert_eq!(wire.logs().http(), ["GET /a 0 200 OK 4"; 2]);
}

/// Hosts that sign segments drop those that are not signed (RFC 2385, 2.0; RFC 5925, 7.3), and the other
/// way round.
#[test]
fn what_is_not_signed_as_the_others_is_not_received() {
    const GOOD: &[u8] = b"GET /good HTTP/1.1\r\nHost: h\r\n\r\n";
    const EVIL: &[u8] = b"GET /evil HTTP/1.1\r\nHost: h\r\n\r\n";
    let md5 = [&[1, 1, 19, 18][..], &[7; 16]].concat();
    let authentication = [&[29, 16][..], &[7; 14]].concat();
    for option in [md5, authentication] {
        for is_signed in [true, false] {
            let own: &[u8] = if is_signed { &option } else { &[] };
            let other: &[u8] = if is_signed { &[] } else { &option };
            let mut wire = Wire::new(80);
            wire.options(own).syn(Client, SYN, b"").options(own).syn(Server, SYN_ACK, b"");
            wire.options(own).acks(Client);
            wire.options(other).data_at(Client, 1, GOOD);
            for part in [&EVIL[..5], &EVIL[5..]] {
                wire.options(own).sends(Client, part).options(own).acks(Server);
            }
            wire.options(own).sends(Server, RESPONSE).options(own).acks(Client);
            let logs = wire.logs();
            assert_eq!(logs.http(), ["GET /evil 0 200 OK 4"], "{is_signed}");
            assert_eq!(logs.weirds(), ["TCP retransmission_inconsistency"], "{is_signed}");
        }
    }
}
