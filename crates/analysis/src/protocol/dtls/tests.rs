//! Conversations of which every record is built here.

use netsniff_packet::Timestamp;

use super::*;
use crate::protocol::session::findings::Findings;
use crate::protocol::session::{Datagram, Role};
use crate::protocol::tls::hello::tests::{alpn, client, server, server_name, vector16};
use crate::protocol::tls::tests::{Row, mutate, rows};

const C: Role = Role::Originator;
const S: Role = Role::Responder;

fn record(kind: u8, epoch: u8, content: &[u8]) -> Vec<u8> {
    [vec![kind, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0, 0, 1], vector16(content.to_vec())].concat()
}

fn u24(value: usize) -> Vec<u8> {
    (value as u32).to_be_bytes()[1..].to_vec()
}

/// Octets of a message from `begin` to `end`, as a fragment.
fn fragment(kind: u8, number: u8, body: &[u8], begin: usize, end: usize) -> Vec<u8> {
    let place = [u24(body.len()), vec![0, number], u24(begin), u24(end - begin)].concat();
    [vec![kind], place, body[begin..end].to_vec()].concat()
}

fn message(kind: u8, number: u8, body: &[u8]) -> Vec<u8> {
    record(HANDSHAKE, 0, &fragment(kind, number, body, 0, body.len()))
}

fn client_hello() -> Vec<u8> {
    let extensions = [(0, server_name("a.example")), (16, alpn(&["webrtc"]))];
    let mut body = client(0xfefd, &[], &[0xc02b], &extensions);
    // The cookie, behind the identifier of the session.
    body.splice(35..35, [2, 7, 7]);
    body
}

fn findings(datagrams: &[(Role, Vec<u8>)]) -> Findings {
    let mut found = Findings::default();
    let mut session = DtlsSession::new(None);
    for (at, (from, payload)) in datagrams.iter().enumerate() {
        let time = Timestamp::from_nanos(at as i64);
        session.datagram(&Datagram { time, from: *from, port: 4433, payload }, &mut found);
        assert!(session.heap_bytes() < 64 << 10);
    }
    session.end(&mut found);
    found
}

fn ssl(datagrams: &[(Role, Vec<u8>)]) -> Row {
    let (rows, weirds) = rows(findings(datagrams));
    assert_eq!((rows.len(), weirds), (1, vec![]));
    rows[0].1.clone()
}

fn hellos() -> [(Role, Vec<u8>); 2] {
    let exchange = [&[3, 0, 23, 65][..], &[4; 65]].concat();
    let answer = server(0xfefd, &[], 0xc02b, &[]);
    let flight = [message(2, 1, &answer), message(12, 2, &exchange), message(14, 3, &[])].concat();
    [(C, message(1, 1, &client_hello())), (S, flight)]
}

fn finish(from: Role) -> (Role, Vec<u8>) {
    (from, [record(20, 0, &[1]), record(HANDSHAKE, 1, &[9; 40])].concat())
}

#[test]
fn a_handshake_is_told_once_both_sides_encrypt() {
    let [hello, flight] = hellos();
    let verify = (S, message(3, 0, &[0xfe, 0xff, 2, 7, 7]));
    let key = (C, message(16, 2, &[1; 66]));
    let row = ssl(&[hello.clone(), verify, hello, flight, key, finish(C), finish(S)]);
    let expected = [
        ("version", "DTLSv12"),
        ("cipher", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
        ("curve", "secp256r1"),
        ("server_name", "a.example"),
        ("established", "T"),
        ("ssl_history", "CvCsknGIi"),
    ];
    for (column, cell) in expected {
        assert_eq!(row[column], cell, "{column}");
    }
    assert!(row["ja4"].starts_with("dd2d0102wc_"), "{}", row["ja4"]);
}

#[test]
fn dtls_1_3_encrypts_without_telling() {
    let answer = server(0xfefd, &[], 0x1301, &[(43, vec![0xfe, 0xfc]), (51, vec![0, 29, 0, 0])]);
    let [hello, _] = hellos();
    let row =
        ssl(&[hello, (S, [message(2, 0, &answer), vec![0x2e; 90]].concat()), (C, vec![0x2d; 50])]);
    let cells = ["version", "established", "ssl_history"].map(|name| row[name].as_str());
    assert_eq!(cells, ["DTLSv13", "T", "Cs"]);
}

#[test]
fn fragments_make_messages() {
    let body = client_hello();
    let cut = |begin, end| (C, record(HANDSHAKE, 0, &fragment(1, 0, &body, begin, end)));
    let len = body.len();
    for order in [[cut(0, 20), cut(20, 50), cut(50, len)], [cut(50, len), cut(0, 20), cut(20, 50)]]
    {
        assert_eq!(ssl(&order)["server_name"], "a.example");
    }
}

#[test]
fn the_one_that_says_hello_is_the_client() {
    let [(_, hello), (_, flight)] = hellos();
    let row = ssl(&[(S, hello), (C, flight)]);
    assert_eq!((row["ssl_history"].as_str(), row["server_name"].as_str()), ("^Cskn", "a.example"));
}

#[test]
fn stun_is_passed_over_and_much_else_ends_it() {
    let stun = [&[0, 1, 0, 0][..], &[0x21, 0x12, 0xa4, 0x42], &[5; 13]].concat();
    let [hello, flight] = hellos();
    let mut datagrams = vec![hello.clone()];
    datagrams.extend((0..50).map(|_| (S, stun.clone())));
    datagrams.push(flight.clone());
    assert_eq!(ssl(&datagrams)["ssl_history"], "Cskn");
    let mut datagrams = vec![hello];
    datagrams.extend((0..10).map(|_| (S, vec![0x80; 30])));
    datagrams.push(flight);
    assert_eq!(ssl(&datagrams)["ssl_history"], "C");
}

#[test]
fn a_client_hello_is_detected() {
    let [(_, hello), (_, flight)] = hellos();
    assert!(Dtls.detect_datagram(&hello));
    assert!(!Dtls.detect_datagram(&flight) && !Dtls.detect_datagram(&[]));
    for cut in 0..27 {
        assert!(!Dtls.detect_datagram(&hello[..cut]), "{cut}");
    }
}

#[test]
fn mutated_conversations_do_no_harm() {
    let [hello, flight] = hellos();
    let body = client_hello();
    let cut = |begin, end| (C, record(HANDSHAKE, 0, &fragment(1, 0, &body, begin, end)));
    let datagrams = [hello, flight, cut(0, 20), cut(20, body.len()), finish(C), finish(S)];
    for seed in 0..2000 {
        let mut datagrams = datagrams.clone();
        let at = (seed % 6) as usize;
        mutate(&mut datagrams[at].1, seed);
        rows(findings(&datagrams));
    }
}
