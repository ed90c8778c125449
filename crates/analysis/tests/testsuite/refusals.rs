//! Segments that no host takes, each odd in its own way: what was told of one hides no other.

use crate::support::wire::{Client, FIN_ACK, Part, SYN, SYN_ACK, Server, Wire};
use netsniff_packet::decode::TcpFlags;

const RST: TcpFlags = TcpFlags::RST;

/// The names of the oddities, in the order in which they came.
fn weirds(wire: &Wire) -> Vec<String> {
    wire.logs().lines("weird", &["name"])
}

#[test]
fn each_kind_of_refusal_is_told_of_a_side() {
    let mut wire = Wire::new(80);
    wire.syn(Client, SYN, b"");
    // Both have no place before the answer.
    wire.put(Client, &Part { flags: SYN.with(TcpFlags::FIN), position: 0, ..wire.part(Client) });
    wire.put(Server, &Part { flags: RST, position: 500, ..wire.part(Server) });
    let bad = Part { flags: SYN_ACK, position: 0, acknowledged: 5_000, ..wire.part(Server) };
    wire.put(Server, &bad).put(Server, &bad);
    wire.syn(Server, SYN_ACK, b"").acks(Client);
    // Another answer, and a RST and a SYN that are outside the window.
    wire.put(Server, &Part { flags: SYN_ACK, position: 70_000, ..wire.part(Server) });
    wire.put(Server, &Part { flags: RST, position: 900_000, ..wire.part(Server) });
    wire.put(Client, &Part { flags: TcpFlags(0), data: b"x", ..wire.part(Client) });
    wire.says(Client, "GET / HTTP/1.0\r\n\r\n").ends(Client);
    // Its FIN again, further on.
    wire.put(Client, &Part { flags: FIN_ACK, ..wire.part(Client) });
    wire.ends(Server);
    assert_eq!(
        weirds(&wire),
        [
            "TCP_christmas",
            "unacceptable_RST",
            "bad_SYN_ack",
            "SYN_seq_jump",
            "RST_outside_window",
            "segment_without_ACK",
            "FIN_advanced_last_seq",
        ]
    );
}

/// What makes a connection odd.
type Goes = fn(&mut Wire);

/// Those that end or begin a connection anew need one each.
#[test]
fn what_may_be_of_another_connection_is_told() {
    let ways: [(&str, Goes); 5] = [
        ("segment_outside_window", |wire| {
            wire.open();
            wire.put(Client, &Part { position: 900_000, data: b"x", ..wire.part(Client) });
        }),
        ("ack_of_unsent_data", |wire| {
            wire.syn(Client, SYN, b"");
            wire.put(Server, &Part { acknowledged: 5_000, ..wire.part(Server) });
        }),
        ("active_connection_reuse", |wire| {
            wire.open();
            wire.put(Client, &Part { flags: SYN, position: 70_000, ..wire.part(Client) });
        }),
        ("SYN_after_close", |wire| {
            wire.open();
            wire.ends(Client).ends(Server);
            wire.put(Client, &Part { flags: SYN, position: 0, ..wire.part(Client) });
        }),
        ("SYN_after_reset", |wire| {
            wire.open();
            wire.put(Server, &Part { flags: RST, ..wire.part(Server) });
            wire.put(Client, &Part { flags: SYN, position: 0, ..wire.part(Client) });
        }),
    ];
    for (name, odd) in ways {
        let mut wire = Wire::new(80);
        odd(&mut wire);
        assert_eq!(weirds(&wire), [name]);
    }
}

#[test]
fn a_kind_of_refusal_is_told_once_of_each_side() {
    let mut wire = Wire::new(80);
    wire.open();
    for side in [Client, Server, Client, Server] {
        wire.put(side, &Part { flags: RST, position: 900_000, ..wire.part(side) });
    }
    wire.ends(Client).ends(Server);
    assert_eq!(weirds(&wire), ["RST_outside_window"; 2]);
}
