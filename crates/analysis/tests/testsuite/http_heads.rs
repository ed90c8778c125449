//! Bodies of which only the begin is decoded (`--bodies head`), held against the same bodies decoded as a whole.

use netsniff_analysis::file::Bodies;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use netsniff_traffic::Random;

use crate::support::web::*;

const HEADS: Flow = Flow { bodies: Bodies::Head, ..PROXY };

/// Bytes that cannot be made smaller than half.
fn noise(len: usize) -> Vec<u8> {
    let mut random = Random::new(len as u64);
    (0..len).map(|_| b'a' + random.below(16) as u8).collect()
}

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
    zlib.write_all(text).unwrap();
    zlib.finish().unwrap()
}

fn by_length(coding: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn in_chunks(body: &[u8]) -> Vec<u8> {
    let mut reply =
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in body.chunks(777) {
        reply.extend(format!("{:x}\r\n", chunk.len()).bytes());
        reply.extend(chunk);
        reply.extend(b"\r\n");
    }
    reply.extend(b"0\r\n\r\n");
    reply
}

fn found(reply: &[u8], flow: Flow) -> Vec<String> {
    found_in(&[client("GET / HTTP/1.1\r\n\r\n"), server(reply), end(Role::Responder)], flow)
}

/// The value of a column of the rows that begin with a name.
fn column<'a>(found: &'a [String], row: &str, column: &str) -> Option<&'a str> {
    let line = found.iter().find(|line| line.starts_with(row))?;
    line.split(' ').find_map(|word| word.strip_prefix(column)?.strip_prefix('='))
}

#[test]
fn the_trailer_of_gzip_tells_how_long_a_body_is() {
    for len in [4_096, 4_097, 5_000, 70_000] {
        for text in [noise(len), b"0123456789".repeat(len / 10 + 1)] {
            let body = gzipped(&text);
            for reply in [by_length("gzip", &body), in_chunks(&body)] {
                let (whole, head) = (found(&reply, PROXY), found(&reply, HEADS));
                let len = text.len().to_string();
                for found in [&whole, &head] {
                    assert_eq!(
                        column(found, "http", "response_body_len"),
                        Some(&*len),
                        "{found:?}"
                    );
                    assert_eq!(column(found, "files", "mime_type"), Some("text/plain"));
                }
                assert_eq!(column(&whole, "files", "seen_bytes"), Some(&*len));
                assert_eq!(column(&whole, "http", "partly_decoded"), None);
                assert_eq!(column(&head, "files", "seen_bytes"), Some("4096"), "{head:?}");
                assert_eq!(column(&head, "files", "total_bytes"), Some(&*len));
                assert_eq!(column(&head, "files", "partly_decoded"), Some("true"));
                assert_eq!(column(&head, "http", "partly_decoded"), Some("resp,"));
            }
        }
    }
}

#[test]
fn a_short_body_is_decoded_as_a_whole() {
    for text in [noise(1), noise(4_095)] {
        let reply = by_length("gzip", &gzipped(&text));
        assert_eq!(found(&reply, HEADS), found(&reply, PROXY));
    }
    // What is not compressed is as long as it is.
    let reply = by_length("identity", &noise(9_000));
    assert_eq!(found(&reply, HEADS), found(&reply, PROXY));
}

#[test]
fn a_length_that_nothing_tells_is_unset() {
    let text = noise(9_000);
    let body = gzipped(&text);
    let mut forged = body.clone();
    // A content of 3 GB cannot be made so small.
    let at = forged.len() - 1;
    forged[at] = 0xb0;
    let cut = {
        let whole = by_length("gzip", &body);
        whole[..whole.len() - 1].to_vec()
    };
    for reply in [
        by_length("deflate", &zlib(&text)),
        by_length("gzip, gzip", &gzipped(&body)),
        by_length("gzip", &forged),
        cut,
    ] {
        let found = found(&reply, HEADS);
        assert_eq!(column(&found, "http", "response_body_len"), None, "{found:?}");
        assert_eq!(column(&found, "http", "partly_decoded"), Some("resp,"), "{found:?}");
        assert_eq!(column(&found, "files", "total_bytes"), None, "{found:?}");
        assert_eq!(column(&found, "files", "seen_bytes"), Some("4096"), "{found:?}");
    }
}

#[test]
fn what_is_taken_as_it_is_is_as_long_as_it_is() {
    // A window larger than RFC 7932 allows.
    let body = [&[0x11], noise(8_999).as_slice()].concat();
    let found = found(&by_length("br", &body), HEADS);
    assert_eq!(found[0], "HTTP: HTTP_window_too_large_to_decode");
    assert_eq!(column(&found, "http", "response_body_len"), Some("9000"), "{found:?}");
}

#[test]
fn nobody_looks_at_what_is_broken_behind_the_head() {
    let mut body = gzipped(&noise(40_000));
    let at = body.len() / 2;
    body[at] ^= 0xff;
    body[at + 1] ^= 0xff;
    let reply = by_length("gzip", &body);
    assert_eq!(found(&reply, PROXY)[0], "HTTP: inflate_failed");
    let found = found(&reply, HEADS);
    assert!(found[0].starts_with("files"), "{found:?}");
    assert_eq!(column(&found, "http", "response_body_len"), Some("40000"));
}

#[test]
fn behind_a_gap_nothing_tells_the_length() {
    let body = gzipped(&noise(40_000));
    let reply = by_length("gzip", &body);
    let (first, rest) = reply.split_at(15_000);
    let turns = [
        client("GET / HTTP/1.1\r\n\r\n"),
        server(first),
        gap(Role::Responder, 100),
        server(&rest[100..]),
    ];
    let found = found_in(&turns, HEADS);
    assert_eq!(column(&found, "http", "response_body_len"), None, "{found:?}");
    assert_eq!(column(&found, "http", "partly_decoded"), Some("resp,"), "{found:?}");
}

/// A page that makes a gigabyte of a megabyte costs no more than its head.
#[test]
fn heads_of_bombs_cost_little() {
    let bomb = gzipped(&vec![0; 30 << 20]);
    let many: Vec<u8> = (0..8).flat_map(|_| by_length("gzip", &bomb)).collect();
    let turns = [client("GET / HTTP/1.1\r\n\r\n".repeat(8)), server(many)];
    for cuts in [Cuts::None, Cuts::Seeded(Random::new(1)), Cuts::Seeded(Random::new(2))] {
        let outcome = play(&turns, HEADS, cuts);
        assert!(outcome.oddities.is_empty(), "{:?}", outcome.oddities);
        let lengths =
            outcome.lines.iter().filter(|line| line.contains(" response_body_len=31457280 "));
        assert_eq!(lengths.count(), 8, "{:?}", outcome.lines);
    }
}
