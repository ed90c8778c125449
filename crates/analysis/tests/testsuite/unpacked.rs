//! What is behind a compression: its bytes and its parts are bounded by what was carried.

use crate::support::web::*;
use netsniff_traffic::Random;

const ONE_PART: &str = "--x\n\na\n";

fn head(len: usize, rest: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n{rest}\r\n")
}

fn reply(body: &[u8], rest: &str) -> Vec<u8> {
    [head(body.len(), rest).as_bytes(), body].concat()
}

fn get() -> Turn {
    client("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
}

const PARTS: &str = "Content-Type: multipart/mixed; boundary=x\r\nContent-Encoding: gzip\r\n";

/// Files with rows and, as far as it was told, without.
fn rows_and_rest(turns: &[Turn], flow: Flow, cuts: Cuts) -> (u64, Vec<String>) {
    let outcome = play(turns, flow, cuts);
    let rows = outcome.lines.iter().filter(|line| line.starts_with("files ")).count() as u64;
    (rows, outcome.oddities)
}

#[test]
fn parts_behind_a_compression_have_rows_by_what_was_carried() {
    let parts = 8_000;
    let body = gzipped(ONE_PART.repeat(parts).as_bytes());
    let doubled = gzipped(&body);
    let chunks: Vec<u8> =
        body.iter().flat_map(|byte| [b"1\r\n", &[*byte][..], b"\r\n"].concat()).collect();
    let chunked = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{PARTS}\r\n");
    let twice = PARTS.replace("gzip", "gzip, gzip");
    let post = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n{PARTS}\r\n", body.len());
    for (name, turns, bodies) in [
        ("response", vec![get(), server(reply(&body, PARTS))], 1),
        ("request", vec![client([post.as_bytes(), &body].concat())], 1),
        ("chunks", vec![get(), server([chunked.as_bytes(), &chunks, b"0\r\n\r\n"].concat())], 1),
        ("codings", vec![get(), server(reply(&doubled, &twice))], 1),
        ("bodies", vec![get(), server(reply(&body, PARTS)), get(), server(reply(&body, PARTS))], 2),
    ] {
        let whole = rows_and_rest(&turns, PROXY, Cuts::None);
        let left_out = bodies * parts as u64 - whole.0;
        assert!((1_000..2_000).contains(&whole.0), "{name}: {}", whole.0);
        let told = format!("HTTP: HTTP_too_many_parts {left_out}");
        assert_eq!(whole.1.iter().filter(|name| **name == told).count(), 1, "{name} {:?}", whole.1);
        let cut = rows_and_rest(&turns, PROXY, Cuts::Seeded(Random::new(7)));
        assert_eq!(cut, whole, "{name}");
    }
}

#[test]
fn no_connection_has_more_than_ten_thousand_rows_of_files() {
    let body = format!("--x\r\n\r\n{}\r\n", "a".repeat(20)).repeat(10_100);
    let turns = [get(), server(reply(body.as_bytes(), &PARTS.replace("gzip", "identity")))];
    let (rows, oddities) = rows_and_rest(&turns, PROXY, Cuts::None);
    assert_eq!((rows, oddities), (10_000, vec!["HTTP: HTTP_too_many_parts 100".to_owned()]));

    let mail = "--x\r\n\r\na\r\n".repeat(10_100);
    let data = format!("Content-Type: multipart/mixed; boundary=x\r\n\r\n{mail}--x--\r\n.\r\n");
    let mail = [
        server("220 x ESMTP\r\n"),
        client("EHLO a\r\n"),
        server("250 x\r\n"),
        client("MAIL FROM:<a@b.example>\r\n"),
        server("250 ok\r\n"),
        client("RCPT TO:<c@d.example>\r\n"),
        server("250 ok\r\n"),
        client("DATA\r\n"),
        server("354 go\r\n"),
        client(data),
        server("250 ok\r\n"),
    ];
    let smtp = Flow::at(25);
    let (rows, oddities) = rows_and_rest(&mail, smtp, Cuts::None);
    assert_eq!((rows, oddities), (10_000, vec!["SMTP: MIME_too_many_parts 100".to_owned()]));
}

/// A form behind a compression.
#[test]
fn three_hundred_parts_have_three_hundred_rows() {
    let part = format!("--x\r\n\r\n{}\r\n", "text ".repeat(400));
    let body = gzipped((part.repeat(300) + "--x--\r\n").as_bytes());
    let turns = [get(), server(reply(&body, PARTS))];
    let found = rows_and_rest(&turns, PROXY, Cuts::None);
    assert_eq!(found, (300, Vec::new()));
    assert_eq!(rows_and_rest(&turns, PROXY, Cuts::Everywhere), found);
}

/// The lengths of the responses' bodies, and what is odd.
fn lengths(turns: &[Turn], cuts: Cuts) -> (Vec<Option<u64>>, Vec<String>) {
    let outcome = play(turns, PROXY, cuts);
    let rows = outcome.lines.iter().filter(|line| line.starts_with("http "));
    let length = |row: &String| {
        let mut words = row.split(' ').filter_map(|word| word.strip_prefix("response_body_len="));
        words.next().map(|len| len.parse().unwrap())
    };
    (rows.map(length).collect(), outcome.oddities)
}

const GZIP: &str = "Content-Encoding: gzip\r\n";

#[test]
fn a_connection_decodes_by_what_it_carried() {
    let (small, large) = (gzipped(&vec![0; 7 << 20]), gzipped(&vec![0; 24 << 20]));
    let too_much = vec!["HTTP: HTTP_body_too_large_to_decode".to_owned()];
    let one = [get(), server(reply(&large, GZIP))];
    let whole = lengths(&one, Cuts::None);
    assert_eq!(whole, (vec![None], too_much.clone()));
    assert_eq!(lengths(&one, Cuts::Seeded(Random::new(1))), whole);
    // All bodies count together, and behind the bound no other is looked into.
    let page = || server(reply(&gzipped(b"a small page"), GZIP));
    let many = [
        [get(), server(reply(&small, GZIP))],
        [get(), server(reply(&small, GZIP))],
        [get(), page()],
        [get(), server(reply(&small, GZIP))],
        [get(), page()],
    ];
    let found = lengths(&many.concat(), Cuts::None);
    let len = Some(7 << 20);
    assert_eq!(found, (vec![len, len, Some(12), None, None], too_much.clone()));
    // Codings count together: this is 6 kB, which become 24 kB, which become 24 MB.
    let twice = reply(&gzipped(&large), "Content-Encoding: gzip, gzip\r\n");
    assert_eq!(lengths(&[get(), server(twice)], Cuts::None), (vec![None], too_much));
}

/// Text of which one in so many bytes is new.
fn page(ratio: usize) -> Vec<u8> {
    let mut random = Random::new(3);
    let mut page = Vec::new();
    while page.len() < 2 << 20 {
        page.extend((0..40).map(|_| random.below(256) as u8));
        page.resize(page.len() + 40 * (ratio - 1), b' ');
    }
    page
}

#[test]
fn pages_of_fifty_to_one_are_whole() {
    for ratio in [30, 60] {
        let page = page(ratio);
        let body = gzipped(&page);
        assert!((25..=60).contains(&(page.len() / body.len())), "{}", page.len() / body.len());
        let turns: Vec<Turn> = (0..12).flat_map(|_| [get(), server(reply(&body, GZIP))]).collect();
        assert_eq!(lengths(&turns, Cuts::None), (vec![Some(page.len() as u64); 12], Vec::new()));
    }
}
