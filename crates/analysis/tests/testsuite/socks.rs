//! SOCKS: which rows come of which dialogues, and what the proxy then carries.

use crate::support;
use std::time::Duration;

use crate::support::scripted::Script;
use netsniff_analysis::Limits;
use netsniff_analysis::protocol::Role;
use netsniff_traffic::dialogue::{Dialogue, Setup, Side};
use netsniff_traffic::frame::Host;

const COLUMNS: [&str; 11] = [
    "version",
    "user",
    "password",
    "status",
    "request.host",
    "request.name",
    "request_p",
    "bound.host",
    "bound.name",
    "bound_p",
    "command",
];

/// Granted: the proxy's end is 192.0.2.1, port 4096.
const GRANTED_5: &[u8] = b"\x05\x00\x00\x01\xc0\x00\x02\x01\x10\x00";

/// What goes through a proxy, and how the server answers.
fn http(turns: &mut Script) {
    turns.client("GET /inside HTTP/1.1\r\nHost: a.example\r\n\r\n");
    turns.server("HTTP/1.1 204 None\r\n\r\n");
}

#[test]
fn what_is_carried_is_read_behind_version_5() {
    let mut turns = Script::default();
    turns.client(b"\x05\x02\x00\x02").server(b"\x05\x00");
    turns.client(b"\x05\x01\x00\x03\x09a.example\x00\x50").server(GRANTED_5);
    http(&mut turns);
    for port in [1_080, 4_000] {
        let heard = turns.heard(port);
        let row = [
            "5",
            "-",
            "-",
            "succeeded",
            "-",
            "a.example",
            "80",
            "192.0.2.1",
            "-",
            "4096",
            "CONNECT",
        ];
        assert_eq!(heard.cells("socks", &COLUMNS), [row]);
        assert_eq!(heard.cells("http", &["uri"]), [["/inside"]]);
        assert_eq!(heard.services(), Some("socks,http"));
        assert_eq!(heard.oddities(), [""; 0]);
    }
}

#[test]
fn users_are_told_and_passwords_are_not() {
    let mut turns = Script::default();
    // All at once, without a wait for the server.
    turns.client(b"\x05\x01\x02\x01\x03bob\x05alice\x05\x01\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x16");
    turns.server(b"\x05\x02").server(b"\x01\x00");
    turns.server(b"\x05\x00\x00\x03\x05proxy\x10\x00");
    http(&mut turns);
    let heard = turns.heard(4_000);
    let row =
        ["5", "bob", "-", "succeeded", "2001:db8::1", "-", "22", "-", "proxy", "4096", "CONNECT"];
    assert_eq!(heard.cells("socks", &COLUMNS), [row]);
    assert_eq!(heard.services(), Some("socks,http"));
}

#[test]
fn users_that_are_refused_have_a_row() {
    let mut turns = Script::default();
    turns.client(b"\x05\x01\x02").server(b"\x05\x02");
    turns.client(b"\x01\x03bob\x05wrong").server(b"\x01\x01");
    let heard = turns.heard(1_080);
    let row = ["5", "bob", "-", "general SOCKS server failure", "-", "-", "-", "-", "-", "-", "-"];
    assert_eq!(heard.cells("socks", &COLUMNS), [row]);
    assert_eq!(heard.services(), Some("socks"));
}

#[test]
fn version_4_has_names_in_4a() {
    for (request, host, name, user) in [
        (&b"\x04\x01\x00\x50\xc6\x33\x64\x07\x00"[..], "198.51.100.7", "-", "-"),
        (b"\x04\x01\x00\x50\x00\x00\x00\x01me\x00a.example\x00", "0.0.0.1", "a.example", "me"),
    ] {
        let mut turns = Script::default();
        turns.client(request).server(b"\x00\x5a\x10\x00\xc0\x00\x02\x01");
        http(&mut turns);
        let heard = turns.heard(4_000);
        let row =
            ["4", user, "-", "succeeded", host, name, "80", "192.0.2.1", "-", "4096", "CONNECT"];
        assert_eq!(heard.cells("socks", &COLUMNS), [row]);
        assert_eq!(heard.services(), Some("socks,http"));
    }
}

#[test]
fn what_is_refused_is_told_and_nothing_follows() {
    let mut turns = Script::default();
    turns.client(b"\x05\x01\x00").server(b"\x05\x00");
    turns.client(b"\x05\x01\x00\x01\xc6\x33\x64\x07\x00\x50");
    turns.server(b"\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00");
    http(&mut turns);
    let heard = turns.heard(4_000);
    assert_eq!(heard.cells("socks", &["status"]), [["Connection refused"]]);
    assert_eq!(heard.services(), Some("socks"));
    let mut turns = Script::default();
    turns.client(b"\x04\x02\x00\x50\xc6\x33\x64\x07\x00").server(b"\x00\x5b\0\0\0\0\0\0");
    let cells = turns.heard(4_000).cells("socks", &["status", "command"]);
    assert_eq!(cells, [["general SOCKS server failure", "BIND"]]);
}

#[test]
fn a_port_that_waits_is_told_twice() {
    let mut turns = Script::default();
    turns.client(b"\x05\x01\x00").server(b"\x05\x00");
    turns.client(b"\x05\x02\x00\x01\xc6\x33\x64\x07\x00\x50").server(GRANTED_5);
    turns.server(b"\x05\x00\x00\x01\xc6\x33\x64\x07\x20\x00");
    http(&mut turns);
    let heard = turns.heard(4_000);
    let cells = heard.cells("socks", &["command", "bound.host", "bound_p"]);
    assert_eq!(cells, [["BIND", "192.0.2.1", "4096"]]);
    assert_eq!(heard.services(), Some("socks,http"));
}

#[test]
fn datagrams_are_relayed_elsewhere() {
    let mut turns = Script::default();
    turns.client(b"\x05\x01\x00").server(b"\x05\x00");
    turns.client(b"\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00").server(GRANTED_5);
    let heard = turns.heard(4_000);
    let cells = heard.cells("socks", &["command", "status", "bound_p"]);
    assert_eq!(cells, [["UDP ASSOCIATE", "succeeded", "4096"]]);
}

#[test]
fn without_an_answer_there_is_no_row() {
    let mut turns = Script::default();
    turns.client(b"\x05\x01\x00").server(b"\x05\x00");
    turns.client(b"\x05\x01\x00\x01\xc6\x33\x64\x07\x00\x50");
    let heard = turns.heard(1_080);
    assert!(heard.cells("socks", &["version"]).is_empty());
    assert_eq!(heard.services(), None);
}

#[test]
fn behind_a_gap_nothing_is_believed() {
    let mut turns = Script::default();
    turns.client(b"\x05\x01\x00").server(b"\x05\x00").gap(Role::Originator, 10);
    turns.server(GRANTED_5);
    http(&mut turns);
    let heard = turns.heard(4_000);
    assert!(heard.cells("socks", &["version"]).is_empty());
    assert_eq!(heard.services(), None);
}

#[test]
fn what_is_odd_has_a_name() {
    for (client, server, more, oddity) in [
        (
            &b"\x05\x01\x01"[..],
            &b"\x05\x01"[..],
            &b"\x01\x01"[..],
            "SOCKS: socks5_unsupported_authentication_method 1",
        ),
        (
            b"\x05\x01\x02",
            b"\x05\x02",
            b"\x02\x01a\x01b",
            "SOCKS: socks5_unsupported_authentication",
        ),
        (b"\x05\x01\x00", b"\x05\x00", b"\x05\x04\x00\x01", "SOCKS: socks_bad_request"),
        (b"\x05\x01\x00", b"\x05\x00", b"\x05\x01\x00\x02", "SOCKS: socks_bad_request"),
    ] {
        let mut turns = Script::default();
        turns.client(client).server(server).client(more);
        let heard = turns.heard(4_000);
        assert_eq!(heard.oddities(), [oddity]);
        assert_eq!(heard.services(), None);
    }
    let mut turns = Script::default();
    turns.client(b"\x04\x01\x00\x50\xc6\x33\x64\x07\x00").server(b"\x00\x5a\0\0\0\0\0\0");
    turns.client("?").server("?");
    assert_eq!(turns.heard(4_000).services(), Some("socks"));
}

#[test]
fn spoiled_dialogues_fail_nothing_and_cuts_change_nothing() {
    let mut turns = Script::default();
    turns.client(b"\x05\x02\x00\x02").server(b"\x05\x02");
    turns.client(b"\x01\x03bob\x05alice").server(b"\x01\x00");
    turns.client(b"\x05\x01\x00\x03\x09a.example\x00\x50").server(GRANTED_5);
    http(&mut turns);
    turns.spoil(4_000, 300);
    let mut turns = Script::default();
    turns.client(b"\x04\x02\x00\x50\x00\x00\x00\x01me\x00a.example\x00");
    turns.server(b"\x00\x5a\x10\x00\xc0\x00\x02\x01").server(b"\x00\x5a\x10\x00\xc0\x00\x02\x01");
    http(&mut turns);
    turns.spoil(4_000, 300);
}

/// Seconds from the request to the row of the tunnel, where the proxy takes three to answer.
fn seconds_to_the_row(port: u16, request: &[u8], answer: &[u8]) -> f64 {
    let (client, server) =
        (Host::new([192, 0, 2, 1].into(), 40_000), Host::new([192, 0, 2, 2].into(), port));
    let mut dialogue = Dialogue::new(Setup { client, server, ..Setup::default() });
    dialogue.connect();
    let asked = dialogue.now();
    dialogue.say(Side::Client, request).pause(Duration::from_secs(3)).say(Side::Server, answer);
    let seen = dialogue.finish().seen;
    let packets = seen.iter().map(|seen| support::packet(seen.timestamp, &seen.frame));
    let rows = support::analyse(packets, Limits::default());
    let told: f64 = rows.log("tunnel")[0]["ts"].parse().unwrap();
    told - asked.nanos() as f64 / 1e9
}

#[test]
fn a_request_of_version_4_is_known_by_the_port_or_by_the_reply() {
    let (request, granted) = (b"\x04\x01\x00\x50\xc0\x00\x02\x07\x00", b"\0\x5a\0\0\0\0\0\0");
    assert!(seconds_to_the_row(1_080, request, granted) < 1.0);
    assert!((3.0..4.0).contains(&seconds_to_the_row(9_901, request, granted)));
}
