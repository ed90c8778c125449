//! Conversations of which every packet is built and protected here.

use netsniff_packet::Timestamp;

use super::protection::Keys;
use super::protection::tests::seal;
use super::*;
use crate::protocol::session::findings::Findings;
use crate::protocol::session::{Datagram, Role};
use crate::protocol::tls::hello::tests::{alpn, client, server, server_name};
use crate::protocol::tls::tests::{Row, message, mutate, rows};

const C: Role = Role::Originator;
const S: Role = Role::Responder;
const FIRST: &[u8] = &[1, 2, 3, 4, 5, 6, 7, 8];

/// Version, first octets of an Initial, a Handshake and a Retry packet.
const V1: (u32, [u8; 3]) = (1, [0xc0, 0xe0, 0xf0]);
const V2: (u32, [u8; 3]) = (version::V2, [0xd0, 0xf0, 0xc0]);

/// A long header up to its identifiers.
fn header(first: u8, version: u32, destination: &[u8], source: &[u8]) -> Vec<u8> {
    let identifier = |it: &[u8]| [&[it.len() as u8][..], it].concat();
    let version = version.to_be_bytes();
    [&[first][..], &version, &identifier(destination), &identifier(source)].concat()
}

/// An Initial packet with these frames, and keys that follow from `key`.
fn initial(
    (version, [first, ..]): (u32, [u8; 3]),
    from: Role,
    key: &[u8],
    number: u8,
    frames: &[u8],
) -> Vec<u8> {
    let keys = Keys::of(Version::of(version).unwrap(), key).unwrap();
    let mut frames = frames.to_vec();
    frames.resize(frames.len().max(20), 0);
    let (destination, source): (&[u8], &[u8]) =
        if from == C { (key, &[0xc1]) } else { (&[0xc1], &[0x51, 0x52]) };
    let mut packet = header(first, version, destination, source);
    let len = u16::try_from(1 + frames.len() + 16).unwrap() | 0x4000;
    packet.push(0);
    packet.extend(len.to_be_bytes());
    let number_at = packet.len();
    packet.push(number);
    seal(&keys[from.index()], &packet, number_at, &frames)
}

fn crypto(offset: u16, data: &[u8]) -> Vec<u8> {
    let len = u16::try_from(data.len()).unwrap() | 0x4000;
    [&[6][..], &(offset | 0x4000).to_be_bytes(), &len.to_be_bytes(), data].concat()
}

fn handshake((version, [_, first, _]): (u32, [u8; 3]), from: Role) -> Vec<u8> {
    let (destination, source): (&[u8], &[u8]) =
        if from == C { (FIRST, &[0xc1]) } else { (&[0xc1], FIRST) };
    [header(first, version, destination, source), vec![3, 7, 7, 7]].concat()
}

fn short() -> Vec<u8> {
    vec![0x40, 0xc1, 1, 2, 3]
}

fn client_hello() -> Vec<u8> {
    let names = alpn(&["h3", "h3-29"]);
    message(
        1,
        &client(
            0x0303,
            &[],
            &[0x1301],
            &[(0, server_name("a.example")), (16, names), (43, vec![2, 3, 4])],
        ),
    )
}

fn server_hello() -> Vec<u8> {
    message(2, &server(0x0303, &[], 0x1301, &[(43, vec![3, 4]), (51, vec![0, 29, 0, 1, 9])]))
}

fn findings(datagrams: &[(Role, Vec<u8>)]) -> Findings {
    let mut found = Findings::default();
    let mut session = QuicSession::new();
    for (at, (from, payload)) in datagrams.iter().enumerate() {
        let time = Timestamp::from_nanos(at as i64);
        session.datagram(&Datagram { time, from: *from, port: 443, payload }, &mut found);
        assert!(session.heap_bytes() < 64 << 10);
    }
    session.end(&mut found);
    found
}

/// The rows of a log.
fn log(name: &str, datagrams: &[(Role, Vec<u8>)]) -> Vec<Row> {
    let (rows, _) = rows(findings(datagrams));
    rows.into_iter().filter(|(log, _)| *log == name).map(|(_, row)| row).collect()
}

fn histories(datagrams: &[(Role, Vec<u8>)]) -> Vec<String> {
    log("quic", datagrams).into_iter().map(|row| row["history"].clone()).collect()
}

fn whole(version: (u32, [u8; 3])) -> Vec<(Role, Vec<u8>)> {
    let answer =
        initial(version, S, FIRST, 0, &[vec![2, 0, 0, 0, 0], crypto(0, &server_hello())].concat());
    vec![
        (C, [initial(version, C, FIRST, 0, &crypto(0, &client_hello())), vec![0; 20]].concat()),
        (S, [answer, handshake(version, S)].concat()),
        (C, handshake(version, C)),
        (C, short()),
        (S, short()),
        (C, short()),
        (C, short()),
    ]
}

#[test]
fn both_versions_are_told() {
    for (version, name) in [(V1, "1"), (V2, "quicv2")] {
        let rows = log("quic", &whole(version));
        let expected = [
            ("version", name),
            ("client_initial_dcid", "0102030405060708"),
            ("client_scid", "c1"),
            ("server_scid", "0102030405060708"),
            ("server_name", "a.example"),
            ("client_protocol", "h3"),
            ("history", "ISXishHOoO"),
            ("ts", "0"),
        ];
        assert_eq!(rows.len(), 1);
        for (column, cell) in expected {
            assert_eq!(rows[0][column], cell, "{column}");
        }
        assert!(rows[0]["ja4"].starts_with("q13d0103h3_"), "{}", rows[0]["ja4"]);
        let rows = log("ssl", &whole(version));
        assert_eq!(rows.len(), 1);
        for (column, cell) in [
            ("version", "TLSv13"),
            ("cipher", "TLS_AES_128_GCM_SHA256"),
            ("curve", "x25519"),
            ("server_name", "a.example"),
            ("established", "F"),
            ("ssl_history", "Cs"),
        ] {
            assert_eq!(rows[0][column], cell, "{column}");
        }
    }
}

#[test]
fn a_hello_in_several_packets_in_any_order_is_told() {
    let hello = client_hello();
    let (head, tail) = hello.split_at(30);
    let packets = [
        (C, initial(V1, C, FIRST, 0, &crypto(30, tail))),
        (C, initial(V1, C, FIRST, 1, &crypto(0, head))),
    ];
    assert_eq!(histories(&packets), ["IIS"]);
    assert_eq!(log("quic", &packets)[0]["server_name"], "a.example");
}

#[test]
fn a_retry_begins_a_row_and_other_keys() {
    let retry = [header(0xf0, 1, &[0xc1], &[0x99; 4]), vec![7; 20]].concat();
    let hello = crypto(0, &client_hello());
    let mut datagrams = vec![(C, initial(V1, C, FIRST, 0, &hello)), (S, retry)];
    datagrams.push((C, initial(V1, C, &[0x99; 4], 1, &hello)));
    assert_eq!(histories(&datagrams), ["ISr", "IS"]);
    assert_eq!(log("quic", &datagrams)[1]["client_initial_dcid"], "99999999");
    assert_eq!(log("ssl", &datagrams)[0]["ssl_history"], "CC");
}

#[test]
fn a_close_and_a_version_that_is_not_read_end_rows() {
    let close = [0x1c, 2, 6, 2, b'n', b'o'];
    let datagrams = [
        (C, initial(V1, C, FIRST, 0, &crypto(0, &client_hello()))),
        (S, initial(V1, S, FIRST, 0, &close)),
        (C, handshake(V1, C)),
    ];
    assert_eq!(histories(&datagrams), ["ISic", "H"]);

    let mut unknown = header(0xc0, 0x1a2a_3a4a, FIRST, &[0xc1]);
    unknown.resize(1200, 0);
    let negotiation = [header(0xc0, 0, &[0xc1], FIRST), vec![0, 0, 0, 1]].concat();
    let rows = log("quic", &[(C, unknown), (S, negotiation.clone())]);
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0]["version"].as_str(), rows[0]["history"].as_str()),
        ("unknown-1a2a3a4a", "U")
    );
    let datagrams = [datagrams[0].clone(), (S, negotiation)];
    assert_eq!(histories(&datagrams), ["ISu"]);
}

/// A first packet of a version that nobody knows.
fn unknown(version: u32) -> (Role, Vec<u8>) {
    let mut unknown = header(0xc0, version, FIRST, &[0xc1]);
    unknown.resize(1200, 0);
    (C, unknown)
}

fn negotiation(first: u8) -> (Role, Vec<u8>) {
    let offered = [0x1a2a_3a4a_u32, 1, version::V2].map(u32::to_be_bytes).concat();
    (S, [header(first, 0, &[0xc1], FIRST), offered].concat())
}

const RESERVED: u32 = 0xbaba_baba;
const OTHER: u32 = 0x5130_3530;

#[test]
fn another_version_follows_a_version_negotiation() {
    for (version, name) in [(V1, "1"), (V2, "quicv2")] {
        for (first, has_row) in [(RESERVED, true), (OTHER, true)] {
            // The server's packet may have any bits but the first, and may not be captured.
            for answer in [Some(0xc0), Some(0x80), None] {
                let mut datagrams = vec![unknown(first), unknown(first)];
                datagrams.extend(answer.map(negotiation));
                datagrams.extend(whole(version));
                let rows = log("quic", &datagrams);
                assert_eq!(rows.len(), 1 + usize::from(has_row), "{first:x} {answer:?}");
                assert_eq!(rows[0]["history"], "U");
                let row = &rows[rows.len() - 1];
                assert_eq!(
                    (row["version"].as_str(), row["history"].as_str()),
                    (name, "ISXishHOoO")
                );
                assert!(row["ja4"].starts_with("q13d0103h3_"));
                assert_eq!(log("ssl", &datagrams)[0]["version"], "TLSv13");
            }
        }
    }
}

#[test]
fn a_known_version_may_be_refused() {
    let hello = crypto(0, &client_hello());
    let other = [9; 8];
    let mut datagrams = vec![(C, initial(V1, C, FIRST, 0, &hello)), negotiation(0xc0)];
    datagrams.push((C, initial(V2, C, &other, 0, &hello)));
    datagrams.push((S, initial(V2, S, &other, 0, &crypto(0, &server_hello()))));
    let rows = log("quic", &datagrams);
    assert_eq!(histories(&datagrams), ["ISu", "ISis"]);
    assert_eq!(
        (rows[1]["version"].as_str(), rows[1]["client_initial_dcid"].as_str()),
        ("quicv2", "0909090909090909")
    );
    let histories: Vec<_> =
        log("ssl", &datagrams).iter().map(|row| row["ssl_history"].clone()).collect();
    assert_eq!(histories, ["C", "Cs"]);
}

#[test]
fn a_forged_negotiation_changes_nothing() {
    let mut datagrams = whole(V1);
    datagrams.insert(1, negotiation(0xc0));
    datagrams.insert(4, negotiation(0xc0));
    assert_eq!(histories(&datagrams), ["ISXuishHuOoO"]);
    assert_eq!(log("ssl", &datagrams)[0]["ssl_history"], "Cs");
}

#[test]
fn a_server_may_go_on_in_another_version() {
    // RFC 9368, 2.3: the keys follow from the client's first identifier, and from the new version.
    let mut datagrams = vec![whole(V1)[0].clone()];
    datagrams.push((S, initial(V2, S, FIRST, 0, &crypto(0, &server_hello()))));
    datagrams.push((C, handshake(V2, C)));
    assert_eq!(histories(&datagrams), ["ISXisH"]);
    assert_eq!(log("ssl", &datagrams)[0]["ssl_history"], "Cs");
}

#[test]
fn versions_that_nobody_knows_are_no_evidence() {
    let datagrams: Vec<_> = (0..5).map(|number| unknown(OTHER + number)).collect();
    assert_eq!(histories(&datagrams), [""; 0]);
}

#[test]
fn attempts_are_bounded() {
    let datagrams: Vec<_> = (0..40)
        .map(|number| unknown(if number % 2 == 0 { RESERVED } else { 0x1a2a_3a4a }))
        .collect();
    let (rows, weirds) = rows(findings(&datagrams));
    assert_eq!((rows.len(), weirds), (8, vec!["QUIC_too_many_versions"]));
}

#[test]
fn what_cannot_be_opened_ends_it() {
    let mut changed = initial(V1, C, FIRST, 0, &crypto(0, &client_hello()));
    *changed.last_mut().unwrap() ^= 1;
    let datagrams = [(C, changed), (C, initial(V1, C, FIRST, 1, &crypto(0, &client_hello())))];
    assert_eq!(histories(&datagrams), ["I"]);
    assert!(log("ssl", &datagrams).is_empty());
    let mut session = QuicSession::new();
    let (_, payload) = &datagrams[0];
    let datagram = Datagram { time: Timestamp::EPOCH, from: C, port: 443, payload };
    session.datagram(&datagram, &mut Findings::default());
    assert!(!session.is_confirmed());
}

#[test]
fn the_begin_of_a_connection_is_detected() {
    let first = &whole(V1)[0].1;
    assert!(Quic.detect_datagram(first) && Quic.detect_datagram(&whole(V2)[0].1));
    assert!(Quic.detect_datagram(&header(0xc3, 0xff00_001d, FIRST, &[])));
    let mut unknown = header(0xc0, 0x1a2a_3a4a, FIRST, &[]);
    assert!(!Quic.detect_datagram(&unknown));
    unknown.resize(1200, 0);
    assert!(Quic.detect_datagram(&unknown));
    assert!(Quic.detect_datagram(&negotiation(0x80).1));
    let long = header(0xc0, 1, &[0; 21], &[]);
    for other in [&[][..], &[0x40, 1, 2], &[0xc0, 0, 0, 0, 1], &[0x80, 0, 0, 0, 1, 0, 0], &long] {
        assert!(!Quic.detect_datagram(other), "{other:?}");
    }
}

#[test]
fn mutated_conversations_do_no_harm() {
    let datagrams = whole(V1);
    for seed in 0..1000 {
        let mut datagrams = datagrams.clone();
        let at = (seed % 3) as usize;
        mutate(&mut datagrams[at].1, seed);
        rows(findings(&datagrams));
        let cut = usize::try_from(seed).unwrap() % datagrams[at].1.len();
        datagrams[at].1.truncate(cut);
        rows(findings(&datagrams));
    }
    // What the keys protect, too.
    for seed in 0..1000 {
        let mut frames = crypto(0, &client_hello());
        mutate(&mut frames, seed);
        rows(findings(&[(C, initial(V1, C, FIRST, 0, &frames))]));
    }
}
