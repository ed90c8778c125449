//! Detection, and conversations of which every record is built here.

use std::collections::BTreeMap;

use netsniff_packet::{Address, Timestamp};

use super::hello::tests::{alpn, client, retry, server, server_name, vector16};
use super::record::HANDSHAKE;
use super::*;
use crate::key::Endpoint;
use crate::key::uid::Uid;
use crate::limits::Limits;
use crate::protocol::session::findings::{Finding, Findings};
use crate::protocol::session::{Bytes, Progress, Role};
use crate::protocol::x509::Presented;
use crate::record::{Connection, FieldInfo, Proto, Record, Value, Visitor, WholeRow};

pub(in crate::protocol) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[kind][..], &len[1..], body].concat()
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    [vec![kind, 3, 3], vector16(content.to_vec())].concat()
}

fn handshake(kind: u8, body: &[u8]) -> Vec<u8> {
    record(HANDSHAKE, &message(kind, body))
}

fn client_hello() -> Vec<u8> {
    let extensions = [(0, server_name("a.example")), (16, alpn(&["h2"]))];
    client(0x0303, &[], &[0xc02f, 0x009c], &extensions)
}

const C: Role = Role::Originator;
const S: Role = Role::Responder;

/// The cells of a row by the names of its columns.
pub(in crate::protocol) type Row = BTreeMap<&'static str, String>;

#[derive(Default)]
struct Cells(Row);

impl Visitor for Cells {
    fn field(&mut self, _: usize, info: &'static FieldInfo, value: Value<'_>) {
        self.0.insert(info.name, text(value));
    }
}

fn text(value: Value<'_>) -> String {
    match value {
        Value::Unset => "-".to_owned(),
        Value::Bool(value) => if value { "T" } else { "F" }.to_owned(),
        Value::Count(value) => value.to_string(),
        Value::Time(value) => value.nanos().to_string(),
        Value::Seconds(value) => value.0.to_string(),
        Value::Addr(value) => value.to_string(),
        Value::Str(value) => value.to_owned(),
        Value::Bytes(value) => String::from_utf8_lossy(value).into_owned(),
        Value::List(list) => {
            let values: Vec<String> = (0..list.count()).map(|at| text(list.element(at))).collect();
            values.join(",")
        }
        _ => String::new(),
    }
}

/// Rows by their logs, and oddities.
pub(in crate::protocol) fn rows(
    mut found: Findings,
) -> (Vec<(&'static str, Row)>, Vec<&'static str>) {
    let end = Endpoint { address: Address::default(), port: 443 };
    let connection = Connection {
        uid: Uid::NONE,
        originator: end,
        responder: end,
        proto: Proto::Tcp,
        start: None,
        local: [false; 2],
    };
    let row = |finding: &Finding| match finding {
        Finding::Row(row) | Finding::RowWith(row, _) | Finding::Unwritten(row) => {
            (row.log().path, cells(&WholeRow::new(&connection, &**row)))
        }
        Finding::Fact(fact) => {
            let presented = fact.downcast_ref::<Presented>().expect("a fact of TLS");
            ("x509", cells(&presented.row()))
        }
    };
    (
        found.records.iter().map(row).collect(),
        found.weirds.drain().map(|oddity| oddity.name).collect(),
    )
}

pub(in crate::protocol) fn cells(row: &impl Record) -> Row {
    let mut cells = Cells::default();
    row.visit(&mut cells);
    cells.0
}

/// What a session makes of turns, each of which is cut at these places.
fn findings(turns: &[(Role, Vec<u8>)], cut: impl Fn(&[u8]) -> Vec<usize>) -> Findings {
    let mut found = Findings::default();
    let mut session = TlsSession::new(None);
    let (mut unread, mut skip) = ([vec![], vec![]], [0_u64; 2]);
    'all: for (at, (from, bytes)) in turns.iter().enumerate() {
        let mut ends = cut(bytes);
        ends.push(bytes.len());
        let mut begin = 0;
        for end in ends {
            unread[from.index()].extend_from_slice(&bytes[begin..end]);
            begin = end;
            let unread = &mut unread[from.index()];
            loop {
                let skipped = unread.len().min(usize::try_from(skip[from.index()]).unwrap());
                unread.drain(..skipped);
                skip[from.index()] -= skipped as u64;
                if unread.is_empty() {
                    break;
                }
                let time = Timestamp::from_nanos(at as i64);
                match session.bytes(&Bytes { time, from: *from, data: unread }, &mut found) {
                    Progress::Consumed(len) => drop(unread.drain(..len)),
                    Progress::Skip(len) => skip[from.index()] = len,
                    Progress::Need(len) => {
                        assert!(len > unread.len());
                        break;
                    }
                    Progress::Done => break 'all,
                    Progress::Contradicts(name) => {
                        found.weirds.add(name);
                        break 'all;
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    session.end(&mut found);
    assert!(session.heap_bytes() > 0);
    found
}

/// The rows of turns, which are the same for each place at which the turns are cut.
fn rows_of(turns: &[(Role, Vec<u8>)]) -> (Vec<(&'static str, Row)>, Vec<&'static str>) {
    let whole = rows(findings(turns, |_| vec![]));
    let longest = turns.iter().map(|turn| turn.1.len()).max().unwrap();
    for place in 1..longest {
        let cut =
            rows(findings(turns, |bytes| if place < bytes.len() { vec![place] } else { vec![] }));
        assert_eq!(cut, whole, "cut at {place}");
    }
    assert_eq!(rows(findings(turns, |bytes| (1..bytes.len()).collect())), whole, "octet by octet");
    whole
}

/// The row of the log `ssl` of turns that find nothing else.
fn ssl(turns: &[(Role, Vec<u8>)]) -> Row {
    let (rows, weirds) = rows_of(turns);
    assert!(weirds.is_empty(), "{weirds:?}");
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows[0].1.clone()
}

fn columns<'a>(row: &'a Row, names: &[&str]) -> Vec<&'a str> {
    names.iter().map(|name| row[*name].as_str()).collect()
}

fn finish(from: Role) -> (Role, Vec<u8>) {
    (from, [record(20, &[1]), record(HANDSHAKE, &[0x55; 40])].concat())
}

#[test]
fn tls_1_2_is_told_once_both_sides_encrypt() {
    let exchange = [&[3, 0, 23, 65][..], &[4; 65]].concat();
    let hello = server(0x0303, &[], 0xc02f, &[(16, alpn(&["h2"]))]);
    let server = [handshake(2, &hello), handshake(12, &exchange), handshake(14, &[])].concat();
    let turns = [
        (C, handshake(1, &client_hello())),
        (S, server),
        (C, [handshake(16, &[9; 66]), finish(C).1].concat()),
        finish(S),
        (C, record(23, &[1; 500])),
    ];
    let row = ssl(&turns);
    let names = ["version", "cipher", "curve", "server_name", "resumed", "next_protocol"];
    let cipher = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
    let expected = ["TLSv12", cipher, "secp256r1", "a.example", "F", "h2"];
    assert_eq!(columns(&row, &names), expected);
    let names = ["established", "ssl_history", "cert_chain_fps", "sni_matches_cert", "ts"];
    assert_eq!(columns(&row, &names), ["T", "CsknGIi", "-", "-", "0"]);
    assert_eq!((row["ja3"].len(), row["ja3s"].len(), row["ja4"].len()), (32, 32, 36));
}

#[test]
fn tls_1_3_encrypts_without_telling() {
    let share = [29_u16.to_be_bytes().to_vec(), vector16(vec![1; 32])].concat();
    let hello = server(0x0303, &[7; 32], 0x1301, &[(43, vec![3, 4]), (51, share)]);
    let mut offer = client_hello();
    offer[34] = 32;
    offer.splice(35..35, [7; 32]);
    let turns = [
        (C, handshake(1, &offer)),
        (S, [handshake(2, &hello), record(23, &[1; 900])].concat()),
        (C, record(23, &[1; 60])),
    ];
    let row = ssl(&turns);
    let names = ["version", "curve", "resumed", "established", "ssl_history"];
    assert_eq!(columns(&row, &names), ["TLSv13", "x25519", "F", "T", "Cs"]);
    // With ChangeCipherSpecs for the sake of middleboxes.
    let turns = [
        (C, handshake(1, &offer)),
        (S, [handshake(2, &hello), record(20, &[1]), record(23, &[1; 900])].concat()),
        (C, [record(20, &[1]), record(23, &[1; 60])].concat()),
    ];
    assert_eq!(columns(&ssl(&turns), &["established", "ssl_history"]), ["T", "CsiI"]);
}

#[test]
fn a_retry_has_a_letter_of_its_own() {
    let hello = client_hello();
    let turns =
        [(C, handshake(1, &hello)), (S, handshake(2, &retry(24))), (C, handshake(1, &hello))];
    let row = ssl(&turns);
    assert_eq!(columns(&row, &["ssl_history", "curve", "version"]), ["CjC", "secp384r1", "TLSv13"]);
}

#[test]
fn sessions_are_resumed_by_identifier_ticket_or_key() {
    let offer = client(0x0303, &[5; 8], &[0x2f], &[]);
    let turns = [(C, handshake(1, &offer)), (S, handshake(2, &server(0x0303, &[5; 8], 0x2f, &[])))];
    assert_eq!(ssl(&turns)["resumed"], "T");
    let turns = [turns[0].clone(), (S, handshake(2, &server(0x0303, &[6; 8], 0x2f, &[])))];
    assert_eq!(ssl(&turns)["resumed"], "F");

    let offer = client(0x0303, &[], &[0x2f], &[(35, vec![1; 100])]);
    let answer = server(0x0303, &[], 0x2f, &[]);
    let hellos = [(C, handshake(1, &offer)), (S, handshake(2, &answer))];
    let turns = [&hellos[..], &[finish(S), finish(C)]].concat();
    assert_eq!(ssl(&turns)["resumed"], "T");
    let full = [&hellos[..], &[(C, handshake(16, &[1])), finish(C), finish(S)]].concat();
    assert_eq!(ssl(&full)["resumed"], "F");

    let offer = client(0x0303, &[], &[0x1301], &[(41, vec![0; 4])]);
    let answer = server(0x0303, &[], 0x1301, &[(43, vec![3, 4]), (41, vec![0, 0])]);
    let turns = [(C, handshake(1, &offer)), (S, handshake(2, &answer))];
    assert_eq!(ssl(&turns)["resumed"], "T");
}

#[test]
fn messages_may_be_cut_by_records_and_records_hold_several() {
    let hello = message(1, &client_hello());
    let (head, tail) = hello.split_at(20);
    let answers = [message(2, &server(0x0301, &[], 0x2f, &[])), message(14, &[])].concat();
    let turns = [
        (C, [record(HANDSHAKE, head), record(HANDSHAKE, tail)].concat()),
        (S, record(HANDSHAKE, &answers)),
    ];
    assert_eq!(columns(&ssl(&turns), &["ssl_history", "version"]), ["Csn", "TLSv10"]);
}

#[test]
fn the_last_alert_in_the_clear_is_told() {
    let turns = [(C, handshake(1, &client_hello())), (S, record(21, &[2, 40]))];
    let row = ssl(&turns);
    let names = ["last_alert", "ssl_history", "established", "version"];
    assert_eq!(columns(&row, &names), ["handshake_failure", "Cl", "F", "-"]);
}

#[test]
fn ssl_2_goes_on_or_turns_to_tls() {
    let hello = [&[0x80, 28, 1, 3, 1, 0, 3, 0, 0, 0, 16, 1, 0, 0x80][..], &[7; 16]].concat();
    let turns = [(C, hello.clone()), (S, handshake(2, &server(0x0301, &[], 5, &[])))];
    let row = ssl(&turns);
    assert_eq!(columns(&row, &["ssl_history", "version", "ja3"]), ["Cs", "TLSv10", "-"]);

    let answer = [&[0x80, 30, 4, 0, 1, 0, 2, 0, 0, 0, 3, 0, 16, 1, 0, 0x80][..], &[8; 16]].concat();
    let key = [&[0x80, 4, 2, 1, 0, 0x80][..]].concat();
    let turns = [(C, hello.clone()), (S, answer), (C, key)];
    let (rows, weirds) = rows_of(&turns);
    assert_eq!(weirds, ["zero_length_certificate"]);
    let names = ["ssl_history", "version", "cipher", "established"];
    let expected = ["Cs", "SSLv2", "SSLv20_CK_RC4_128_WITH_MD5", "T"];
    assert_eq!(columns(&rows[0].1, &names), expected);
    let turns = [(C, hello), (S, vec![0x80, 3, 0, 0, 1])];
    assert_eq!(rows_of(&turns).1, ["SSL_invalid_record"]);
}

#[test]
fn a_staple_is_a_file_and_tells_a_status() {
    let context = SessionContext {
        limits: &Limits::default(),
        name: 1,
        port: 443,
        hashes: file::HashKinds::default(),
        bodies: file::Bodies::default(),
        is_midstream: false,
        is_multicast: false,
        crossing_port: None,
    };
    let staple = |kind: u8, reply: &[u8]| {
        let len = u32::try_from(reply.len()).unwrap().to_be_bytes();
        handshake(22, &[&[kind], &len[1..], reply].concat())
    };
    let reply = x509::ocsp::tests::reply();
    let hello = handshake(2, &server(0x0303, &[], 0x2f, &[]));
    let played = |staples: &[u8]| {
        let (mut found, mut session) =
            (Findings::default(), TlsSession::new(Some((&context).into())));
        let client = handshake(1, &client_hello());
        for (from, bytes) in [(C, client.as_slice()), (S, &hello), (S, staples)] {
            let mut rest = bytes;
            while !rest.is_empty() {
                let time = Timestamp::from_nanos(5);
                match session.bytes(&Bytes { time, from, data: rest }, &mut found) {
                    Progress::Consumed(len) => rest = &rest[len..],
                    other => panic!("{other:?}"),
                }
            }
        }
        session.end(&mut found);
        let is_of = |it: &Finding, log| matches!(it, Finding::Row(row) if row.log().path == log);
        let counts =
            ["ocsp", "files"].map(|log| found.records.iter().filter(|it| is_of(it, log)).count());
        (counts, found.weirds.drain().map(|it| it.name).collect::<Vec<_>>())
    };
    assert_eq!(played(&staple(1, &reply)), ([1, 1], vec![]));
    // Other kinds, none, and what is no reply.
    assert_eq!(played(&staple(2, &reply)), ([0, 0], vec![]));
    assert_eq!(played(&staple(1, &[])), ([0, 0], vec![]));
    assert_eq!(played(&staple(1, &reply[1..])), ([0, 1], vec!["OCSP_invalid_reply"]));
    let (counts, weirds) = played(&staple(1, &reply).repeat(40));
    assert_eq!((counts, weirds[0]), ([20, 20], "SSL_too_many_staples"));
}

#[test]
fn what_is_no_tls_lets_go() {
    let (rows, weirds) = rows_of(&[(C, b"GET / HTTP/1.1\r\n".to_vec())]);
    assert_eq!((rows.len(), weirds), (0, vec!["SSL_invalid_record"]));
    // Once a hello was seen, it was TLS.
    let turns =
        [(C, handshake(1, &client_hello())), (S, b"\x16\x03\x01\0\0\x03\0\x80\x01\0".to_vec())];
    let (rows, weirds) = rows_of(&turns);
    assert_eq!((rows.len(), weirds), (1, vec!["SSL_empty_record", "SSL_invalid_record"]));
    assert_eq!(columns(&rows[0].1, &["ssl_history", "established"]), ["C", "F"]);
    let too_long = [&[22, 3, 1, 0xff, 0xff][..], &[0; 100]].concat();
    assert_eq!(rows_of(&[(C, too_long)]).1, ["SSL_record_too_long"]);
    let unknown = [(C, handshake(1, &client_hello())), (S, handshake(99, &[]))];
    assert_eq!(rows_of(&unknown).1, ["SSL_unknown_handshake_message"]);
}

#[test]
fn hellos_are_detected_and_nothing_else() {
    let detect = |originator: &[u8], responder: &[u8]| {
        Tls.detect(&Heads { originator, responder, port: 443, is_midstream: false })
    };
    let hello = handshake(1, &client_hello());
    let answer = [record(21, &[1, 0]), handshake(2, &server(0x0303, &[], 5, &[]))].concat();
    let ssl2 = [&[0x80, 28, 1, 3, 1, 0, 3, 0, 0, 0, 16, 1, 0, 0x80][..], &[7; 16]].concat();
    for stream in [&hello, &answer, &ssl2] {
        let told: Vec<_> = (0..=stream.len()).map(|len| detect(&stream[..len], &[])).collect();
        let sure = told.iter().position(|it| *it == Detection::Yes).unwrap();
        assert!(told[..sure].iter().all(|it| *it == Detection::Undecided), "{told:?}");
        assert!(told[sure..].iter().all(|it| *it == Detection::Yes), "{told:?}");
    }
    assert_eq!(detect(&[], &answer), Detection::Yes);
    for other in
        [&b"GET /"[..], b"\x16\x03\x04\0", b"\x16\x03\x01\0\0\x03", b"\x80\x40\x02", &[0x15, 2]]
    {
        assert_eq!(detect(other, &[]), Detection::No, "{other:?}");
    }
    assert_eq!(detect(&[], b"220 ready"), Detection::No);
    let mut unknown = hello;
    unknown[10] = 5;
    assert_eq!(detect(&unknown, &[]), Detection::No);
}

/// Octets that are changed in turn by a generator that anybody can repeat.
pub(in crate::protocol) fn mutate(bytes: &mut [u8], seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for _ in 0..=seed % 6 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let at = usize::try_from(state >> 8).unwrap() % bytes.len();
        bytes[at] = (state >> 40) as u8;
    }
}

#[test]
fn mutated_conversations_do_no_harm() {
    let certificate = x509::tests::example();
    let sized = |bytes: &[u8]| {
        let len = (bytes.len() as u32).to_be_bytes();
        [&len[1..], bytes].concat()
    };
    let chain = handshake(11, &sized(&sized(&certificate)));
    let hello = server(0x0303, &[], 0xc02f, &[(16, alpn(&["h2"]))]);
    let exchange = [&[3, 0, 23, 65][..], &[4; 65]].concat();
    let turns = [
        (C, handshake(1, &client_hello())),
        (S, [handshake(2, &hello), chain, handshake(12, &exchange)].concat()),
        (C, [handshake(16, &[9; 66]), finish(C).1].concat()),
        finish(S),
    ];
    assert_eq!(rows(findings(&turns, |_| vec![])).0.len(), 2);
    for seed in 0..1000 {
        let mut turns = turns.clone();
        let turn = (seed % 4) as usize;
        mutate(&mut turns[turn].1, seed);
        let whole = rows(findings(&turns, |_| vec![]));
        let cut = rows(findings(&turns, |bytes| (1..bytes.len()).step_by(7).collect()));
        assert_eq!(whole, cut, "{seed}");
    }
}
