//! TLS: which rows come of records that are cut in every way.

use crate::support::scripted::{Heard, Script};
use netsniff_analysis::protocol::Role;

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3][..], &(content.len() as u16).to_be_bytes(), content].concat()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u32).to_be_bytes()[1..], body].concat()
}

fn vector16(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u16).to_be_bytes()[..], content].concat()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &vector16(content)].concat()
}

fn client_hello() -> Vec<u8> {
    let name = vector16(&[&[0][..], &vector16(b"evil.example")].concat());
    let extensions = [extension(0, &name), extension(10, &vector16(&[0, 29]))].concat();
    let ciphers = vector16(&[0xc0, 0x2f, 0x00, 0x9c]);
    let body = [&[3, 3][..], &[7; 32], &[0], &ciphers, &[1, 0], &vector16(&extensions)].concat();
    message(1, &body)
}

fn server_hello(extensions: &[u8]) -> Vec<u8> {
    let body = [&[3, 3][..], &[9; 32], &[0, 0xc0, 0x2f, 0], &vector16(extensions)].concat();
    message(2, &body)
}

/// A message in records that hold so many octets, one after another; the last goes on to the end.
fn cut(message: &[u8], sizes: &[usize]) -> Vec<u8> {
    let (mut rest, mut records) = (message, vec![]);
    for &size in sizes {
        if rest.is_empty() {
            break;
        }
        let (head, tail) = rest.split_at(size.min(rest.len()));
        records.extend(record(HANDSHAKE, head));
        rest = tail;
    }
    if !rest.is_empty() {
        records.extend(record(HANDSHAKE, rest));
    }
    records
}

const COLUMNS: [&str; 5] = ["server_name", "version", "established", "ssl_history", "cipher"];
const CIPHER: &str = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";

/// A whole handshake whose hellos are in records like these.
fn handshake(turns: &mut Script, client: &[u8], server: &[u8]) {
    turns.client(client);
    turns.server([server, &record(HANDSHAKE, &message(14, &[]))].concat());
    let finish = [record(CHANGE_CIPHER_SPEC, &[1]), record(HANDSHAKE, &[5; 40])].concat();
    turns.client([&record(HANDSHAKE, &message(16, &[9; 66]))[..], &finish].concat());
    turns.server(finish);
}

fn fingerprints(heard: &Heard) -> Vec<Vec<String>> {
    heard.cells("ssl", &["ja3", "ja3s", "ja4"])
}

#[test]
fn hellos_are_found_however_they_are_cut_into_records() {
    let (client, server) = (client_hello(), server_hello(&[]));
    let mut whole = Script::default();
    handshake(&mut whole, &record(HANDSHAKE, &client), &record(HANDSHAKE, &server));
    let whole = whole.heard(443);
    let row = ["evil.example", "TLSv12", "true", "CsnGIi", CIPHER];
    assert_eq!(whole.cells("ssl", &COLUMNS), [row]);
    let mut cuts: Vec<Vec<usize>> = (1..=9).map(|first| vec![first]).collect();
    cuts.extend([vec![1; 200], vec![2; 100], vec![3, 1, 1, 1], vec![1, 5, 1]]);
    for (sizes, port) in cuts.iter().zip([443, 40_001, 25, 8080].into_iter().cycle()) {
        let mut turns = Script::default();
        handshake(&mut turns, &cut(&client, sizes), &cut(&server, sizes));
        let heard = turns.heard(port);
        assert_eq!(heard.cells("ssl", &COLUMNS), [row], "{sizes:?}");
        assert_eq!(fingerprints(&heard), fingerprints(&whole), "{sizes:?}");
        assert_eq!(heard.services(), Some("ssl"), "{sizes:?}");
        assert_eq!(heard.oddities(), [""; 0], "{sizes:?}");
    }
}

#[test]
fn the_servers_hello_alone_is_found_however_it_is_cut() {
    for sizes in [vec![1], vec![2], vec![1; 60], vec![4, 1]] {
        let mut turns = Script::default();
        turns.server(cut(&server_hello(&[]), &sizes));
        let heard = turns.heard(40_001);
        assert_eq!(heard.cells("ssl", &["version", "ssl_history"]), [["TLSv12", "s"]]);
    }
}

#[test]
fn empty_records_and_an_early_change_are_told() {
    let hello = record(HANDSHAKE, &client_hello());
    let empty = record(HANDSHAKE, &[]);
    let early = record(CHANGE_CIPHER_SPEC, &[1]);
    let (head, tail) = (record(HANDSHAKE, &client_hello()[..1]), &client_hello()[1..]);
    let split = [head, early.clone(), record(HANDSHAKE, tail)].concat();
    let server = record(HANDSHAKE, &server_hello(&[]));
    for (opening, oddities, history) in [
        ([&empty.repeat(3)[..], &hello].concat(), &["SSL: SSL_empty_record"][..], "CsnGIi"),
        ([&empty.repeat(60)[..], &hello].concat(), &["SSL: SSL_empty_record"], "CsnGIi"),
        ([&early[..], &hello].concat(), &["SSL: SSL_early_change_cipher_spec"], "ICsnGIi"),
        ([&record(ALERT, &[1, 0])[..], &hello].concat(), &[], "LCsnGIi"),
    ] {
        let mut turns = Script::default();
        handshake(&mut turns, &opening, &server);
        let heard = turns.heard(40_001);
        let row = ["evil.example", "TLSv12", "true", history, CIPHER];
        assert_eq!(heard.cells("ssl", &COLUMNS), [row]);
        assert_eq!(heard.oddities(), oddities);
    }
    // Within a message it is told, too, though no protocol is found by that.
    let mut turns = Script::default();
    handshake(&mut turns, &hello, &[split.clone(), server].concat());
    assert!(turns.heard(443).oddities().contains(&"SSL: SSL_early_change_cipher_spec"));
}

#[test]
fn data_of_no_length_is_no_oddity() {
    let mut turns = Script::default();
    let server = record(HANDSHAKE, &server_hello(&[]));
    handshake(&mut turns, &record(HANDSHAKE, &client_hello()), &server);
    turns.client(record(APPLICATION_DATA, &[])).client(record(APPLICATION_DATA, &[1; 30]));
    assert_eq!(turns.heard(443).oddities(), [""; 0]);
}

#[test]
fn cut_hellos_are_found_behind_other_protocols() {
    let client = cut(&client_hello(), &[1, 1, 1]);
    let server = cut(&server_hello(&[]), &[2]);
    let mut smtp = Script::default();
    smtp.server("220 mail.example ESMTP\r\n").client("EHLO a.example\r\n");
    smtp.server("250-mail.example\r\n250 STARTTLS\r\n").client("STARTTLS\r\n");
    smtp.server("220 go ahead\r\n");
    let mut connect = Script::default();
    connect.client("CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    connect.server("HTTP/1.1 200 OK\r\n\r\n");
    let mut socks = Script::default();
    socks.client(b"\x05\x01\x00").server(b"\x05\x00");
    socks.client(b"\x05\x01\x00\x03\x09a.example\x01\xbb");
    socks.server(b"\x05\x00\x00\x01\xc0\x00\x02\x01\x10\x00");
    let mut rdp = Script::default();
    let x224 = |code: u8, variable: &[u8]| {
        let len = 11 + variable.len() as u8;
        [&[3, 0, 0, len, len - 5, code, 0, 0, 0, 0, 0], variable].concat()
    };
    rdp.client(x224(0xe0, b"Cookie: mstshash=user\r\n\x01\0\x08\0\x03\0\0\0"));
    rdp.server(x224(0xd0, &[2, 0, 8, 0, 2, 0, 0, 0]));
    let mut xmpp = Script::default();
    xmpp.client("<?xml version='1.0'?><stream:stream xmlns='jabber:client' to='a>b'>");
    xmpp.server(
        "<stream:stream xmlns='jabber:client'><stream:features><starttls/></stream:features>",
    );
    xmpp.client("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'></starttls>");
    xmpp.server("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'></proceed>");
    let mut mysql = Script::default();
    mysql.server([&b"\x4a\0\0\0\x0a8.0.28\0"[..], &[7; 66]].concat());
    mysql.client([&b"\x20\0\0\x01\x85\xae\xff\x20"[..], &[0; 28]].concat());
    let carriers =
        [(smtp, 25), (connect, 3128), (socks, 1080), (rdp, 4000), (xmpp, 5000), (mysql, 5001)];
    for (mut turns, port) in carriers {
        handshake(&mut turns, &client, &server);
        let row = ["evil.example", "TLSv12", "true", "CsnGIi", CIPHER];
        assert_eq!(turns.heard(port).cells("ssl", &COLUMNS), [row], "{port}");
    }
}

#[test]
fn rdp_without_tls_is_rdp_and_no_more() {
    for answer in [&[2, 0, 8, 0, 0, 0, 0, 0][..], &[3, 0, 8, 0, 5, 0, 0, 0], &[]] {
        let mut turns = Script::default();
        turns
            .client([&[3, 0, 0, 19, 14, 0xe0, 0, 0, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0, 0][..]].concat());
        let len = 11 + answer.len() as u8;
        turns.server([&[3, 0, 0, len, len - 5, 0xd0, 0, 0, 0, 0, 0], answer].concat());
        turns.client(record(HANDSHAKE, &client_hello()));
        let heard = turns.heard(3389);
        assert_eq!(heard.services(), Some("rdp"));
        assert_eq!(heard.cells("ssl", &["version"]).len(), 0);
        assert_eq!(heard.oddities(), [""; 0]);
    }
}

/// Octets in the letters of base64 (RFC 4648, section 4).
fn base64(octets: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |octets: &[u8]| {
        let mut bits = [0; 4];
        bits[1..=octets.len()].copy_from_slice(octets);
        let bits = u32::from_be_bytes(bits);
        let letter = move |at: usize| match at <= octets.len() {
            true => LETTERS[(bits >> (18 - 6 * at) & 63) as usize] as char,
            false => '=',
        };
        (0..4).map(letter).collect::<String>()
    };
    octets.chunks(3).map(group).collect()
}

#[test]
fn tls_in_tokens_of_ftp_is_read_and_commands_go_on() {
    let [client, server] = [client_hello(), server_hello(&[])].map(|it| record(HANDSHAKE, &it));
    let (begin, rest) = server.split_at(7);
    let hello = base64(&client);
    let other = base64(b"\x60\x82");
    for (token, history) in [(&*hello, Some("Cs")), (&other, None), ("FgM", None)] {
        let mut turns = Script::default();
        turns.server("220 a\r\n").client("AUTH GSSAPI\r\n").server("334 go on\r\n");
        turns.client(format!("ADAT {token}\r\n"));
        turns.server(format!("335 ADAT={}\r\n", base64(begin)));
        turns.client("STAT\r\n").server(format!("235 ADAT={}\r\n", base64(rest)));
        turns.client("RETR x\r\n").server("226 sent\r\n");
        let heard = turns.heard(21);
        let rows = heard.cells("ssl", &["ssl_history", "server_name"]);
        let expected: Vec<_> = history.iter().map(|it| [*it, "evil.example"]).collect();
        assert_eq!(rows, expected);
        assert_eq!(heard.cells("ftp", &["command"]), [["RETR"]]);
        assert_eq!(heard.services(), Some("ftp"));
        assert_eq!(heard.oddities(), [""; 0]);
    }
}

#[test]
fn xmpp_and_mysql_without_tls_are_that_and_no_more() {
    let mut refused = Script::default();
    refused.client("<stream:stream xmlns='jabber:client'><starttls/>");
    refused.server("<stream:stream xmlns='jabber:client'><failure/>");
    let mut plain = Script::default();
    plain.client("<stream:stream xmlns='jabber:client'><iq/><starttls/>").server("<proceed/>");
    let mut unasked = Script::default();
    unasked.client("<stream:stream xmlns='jabber:client'>");
    unasked.server("<stream:stream xmlns='jabber:client'><proceed/>");
    let mut mysql = Script::default();
    mysql.server([&b"\x4a\0\0\0\x0a8.0.28\0"[..], &[7; 66]].concat());
    mysql.client([&b"\x25\0\0\x01\x85\xa6\xff\x20"[..], &[0; 28], b"root\0"].concat());
    for (mut turns, port, service) in [
        (refused, 5222, "xmpp"),
        (plain, 5269, "xmpp"),
        (unasked, 5222, "xmpp"),
        (mysql, 3306, "mysql"),
    ] {
        turns.client(record(HANDSHAKE, &client_hello()));
        let heard = turns.heard(port);
        assert_eq!(heard.services(), Some(service));
        assert_eq!(heard.cells("ssl", &["version"]).len(), 0);
        assert_eq!(heard.oddities(), [""; 0]);
    }
}

#[test]
fn a_hello_in_the_clear_follows_a_change_in_tls_1_3() {
    let version = extension(43, &[3, 4]);
    let random = [
        0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8,
        0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8,
        0x33, 0x9c,
    ];
    let mut retry = server_hello(&version);
    retry[6..38].copy_from_slice(&random);
    let change = record(CHANGE_CIPHER_SPEC, &[1]);
    let mut turns = Script::default();
    turns.client(record(HANDSHAKE, &client_hello()));
    turns.server([&record(HANDSHAKE, &retry)[..], &change].concat());
    turns.client([&change[..], &record(HANDSHAKE, &client_hello())].concat());
    let hello = record(HANDSHAKE, &server_hello(&version));
    turns.server([&hello[..], &record(APPLICATION_DATA, &[1; 90])].concat());
    turns.client(record(APPLICATION_DATA, &[1; 60]));
    let heard = turns.heard(443);
    assert_eq!(heard.cells("ssl", &["ssl_history", "established"]), [["CjiICs", "true"]]);
    assert_eq!(heard.oddities(), [""; 0]);
}

#[test]
fn nothing_is_read_behind_a_gap() {
    for in_record in [0, 20] {
        let mut turns = Script::default();
        turns.client(record(HANDSHAKE, &client_hello()));
        let done = record(HANDSHAKE, &message(14, &[]));
        turns.server([record(HANDSHAKE, &server_hello(&[])), done].concat());
        let finish = [record(CHANGE_CIPHER_SPEC, &[1]), record(HANDSHAKE, &[5; 40])].concat();
        let key = record(HANDSHAKE, &message(16, &[9; 66]));
        let client = [&key[..], &finish].concat();
        turns.client(&client[..client.len() - in_record]);
        turns.gap(Role::Originator, 80);
        turns.server(finish);
        let heard = turns.heard(443);
        assert_eq!(heard.cells("ssl", &["ssl_history", "established"]), [["CsnGI", "false"]]);
        assert_eq!(heard.services(), Some("ssl"));
    }
}

#[test]
fn spoiled_handshakes_do_no_harm() {
    let mut turns = Script::default();
    handshake(&mut turns, &cut(&client_hello(), &[1, 0, 3]), &cut(&server_hello(&[]), &[2, 1]));
    turns.spoil(443, 300);
}
