//! HTTP with losses, with several meanings, in tiny pieces, and begun before the capture.

use crate::support::web::*;

const MIDDLE: Flow = Flow { is_midstream: true, ..Flow::at(4_000) };

/// Two messages of one connection, of which the first lost bytes `lost` of its body of digits, which is
/// `sent` as it stands in the stream.
fn lossy(sent: &str, head: &str, lost: std::ops::Range<usize>) -> [Vec<Turn>; 2] {
    let begin = [head.as_bytes(), &sent.as_bytes()[..lost.start]].concat();
    let rest = &sent.as_bytes()[lost.end..];
    let len = lost.len() as u64;
    let last = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let gets = "GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n";
    let response = vec![
        client(gets),
        server(format!("HTTP/1.1 200 OK\r\n{}", String::from_utf8(begin.clone()).unwrap())),
        gap(Role::Responder, len),
        server([rest, last.as_bytes()].concat()),
    ];
    let empty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let request = vec![
        client([b"POST /1 HTTP/1.1\r\n", &begin[..]].concat()),
        gap(Role::Originator, len),
        client([rest, b"GET /2 HTTP/1.1\r\n\r\n"].concat()),
        server(format!("{empty}{last}")),
    ];
    [response, request]
}

#[test]
fn a_loss_may_be_anywhere_in_a_body() {
    let body = "0123456789".repeat(10);
    let chunks = format!("64;x\r\n{body}\r\n0\r\n\r\n");
    for (sent, head, begin) in [
        (&body, "Content-Length: 100\r\n\r\n", 0),
        (&chunks, "Transfer-Encoding: chunked\r\n\r\n", 6),
    ] {
        for lost in [0..1, 0..60, 0..100, 10..60, 60..100, 99..100] {
            let lost = lost.start + begin..lost.end + begin;
            for turns in lossy(sent, head, lost.clone()) {
                let found = found_in(&turns, PROXY);
                let missing = format!("missing_bytes={}", lost.len());
                let seen = format!("seen_bytes={}", 100 - lost.len());
                let is_whole = |row: &&String| {
                    row.starts_with("files ") && row.contains(&missing) && row.contains(&seen)
                };
                assert_eq!(found.iter().filter(is_whole).count(), 1, "{lost:?} {found:#?}");
                let len = |row: &&String| row.contains("uri=/1") && row.contains("_body_len=100 ");
                assert_eq!(found.iter().filter(len).count(), 1, "{lost:?} {found:#?}");
                let next =
                    |row: &&String| row.contains("uri=/2") && row.contains("response_body_len=5 ");
                assert_eq!(found.iter().filter(next).count(), 1, "{lost:?} {found:#?}");
            }
        }
    }
}

#[test]
fn several_losses_and_one_that_reaches_beyond_the_body() {
    let turns = [
        client("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n"),
        server("HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n"),
        gap(Role::Responder, 10),
        server("0123456789"),
        gap(Role::Responder, 5),
        server("01234"),
        gap(Role::Responder, 10),
        server("HTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\nabc"),
    ];
    let found = found_in(&turns, PROXY);
    assert!(
        found.iter().any(|row| row.contains("seen_bytes=15") && row.contains("missing_bytes=25"))
    );
    assert!(found.iter().any(|row| row.contains("uri=/2") && row.contains("status_code=404")));
    let turns = [
        client("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n"),
        server("HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n"),
        gap(Role::Responder, 41),
        server("TP/1.1 404 No\r\nContent-Length: 3\r\n\r\nabc"),
    ];
    let found = found_in(&turns, PROXY);
    assert!(!found.iter().any(|row| row.contains("404")), "{found:#?}");
}

#[test]
fn parts_and_bodies_up_to_the_end_go_on_behind_a_loss() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: multipart/mixed; boundary=x\r\nContent-Length: 51\r\n\r\n";
    let turns = [
        client("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n"),
        server(format!("{head}--x\r\n\r\nfirst part")),
        gap(Role::Responder, 10),
        server("\r\n--x\r\n\r\nsecond\r\n--x--\r\nHTTP/1.1 204 No\r\n\r\n"),
    ];
    let found = found_in(&turns, PROXY);
    assert!(
        found.iter().any(|row| row.contains("seen_bytes=10") && row.contains("missing_bytes=10"))
    );
    assert!(found.iter().any(|row| row.contains("seen_bytes=6")), "{found:#?}");
    assert!(found.iter().any(|row| row.contains("uri=/2") && row.contains("status_code=204")));
    let turns = [
        client("GET / HTTP/1.0\r\n\r\n"),
        server("HTTP/1.0 200 OK\r\n\r\nbegin"),
        gap(Role::Responder, 100),
        server("and the end"),
        end(Role::Responder),
    ];
    let found = found_in(&turns, PROXY);
    assert!(found.iter().any(|row| row.contains("response_body_len=116 ")), "{found:#?}");
}

#[test]
fn codings_are_undone_in_their_order() {
    let text = b"one two three four five six seven eight nine ten".repeat(20);
    let twice = gzipped(&gzipped(&text));
    let chunk =
        |body: &[u8]| [format!("{:x}\r\n", body.len()).as_bytes(), body, b"\r\n0\r\n\r\n"].concat();
    let length = format!("Content-Length: {}\r\n", twice.len());
    for (fields, body) in [
        ("Content-Encoding: gzip,gzip\r\n".to_owned() + &length, twice.clone()),
        ("Content-Encoding: GZip , identity,x-gzip\r\n".to_owned() + &length, twice.clone()),
        (
            "Content-Encoding: gzip\r\ncontent-encoding: gzip\r\n".to_owned() + &length,
            twice.clone(),
        ),
        ("Transfer-Encoding: gzip, chunked\r\n".to_owned(), chunk(&gzipped(&text))),
        (
            "Content-Encoding: gzip\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"
                .to_owned(),
            chunk(&twice),
        ),
    ] {
        let response = [b"HTTP/1.1 200 OK\r\n", fields.as_bytes(), b"\r\n", &body].concat();
        let found = found_in(&[client("GET / HTTP/1.1\r\n\r\n"), server(response)], PROXY);
        let row = format!("files mime_type=text/plain is_orig=false seen_bytes={}", text.len());
        assert_eq!(found[0], row, "{fields}");
        let request = [b"POST / HTTP/1.1\r\n", fields.as_bytes(), b"\r\n", &body].concat();
        let found = found_in(&[client(request)], PROXY);
        assert_eq!(found[0], row.replace("false", "true"), "{fields}");
    }
    let five = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip,gzip,gzip,gzip,gzip\r\n\r\nabc";
    let found = found_in(&[client("GET / HTTP/1.1\r\n\r\n"), server(five)], PROXY);
    assert_eq!(found[0], "HTTP: HTTP_too_many_codings");
}

/// The oddities of a request with a response, and of the same fields and body in the response.
fn oddities(fields: &str, body: &str) -> [Vec<String>; 2] {
    let empty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let request = [client(format!("POST / HTTP/1.1\r\n{fields}\r\n{body}")), server(empty)];
    let response = [
        client("GET / HTTP/1.1\r\n\r\n"),
        server(format!("HTTP/1.1 200 OK\r\n{fields}\r\n{body}")),
    ];
    [&request, &response].map(|turns| {
        let found = found_in(turns, PROXY);
        found.iter().filter_map(|row| row.strip_prefix("HTTP: ").map(str::to_owned)).collect()
    })
}

#[test]
fn what_two_servers_may_take_differently_is_told() {
    for (fields, body, expected) in [
        ("Content-Length: 0\r\nContent-Length: 3\r\n", "abc", vec!["HTTP_repeated_content_length"]),
        ("Content-Length: 3, 3\r\n", "abc", vec!["HTTP_repeated_content_length"]),
        ("Content-Length: 3g\r\n", "abc", vec!["HTTP_bad_content_length"]),
        ("Host: a\r\nHost: b\r\nContent-Length: 0\r\n", "", vec!["HTTP_repeated_host"]),
        ("Host: a/b\r\nContent-Length: 0\r\n", "", vec!["HTTP_bad_host"]),
        (
            "Transfer-Encoding: xchunked\r\nContent-Length: 3\r\n",
            "abc",
            vec!["HTTP_unknown_transfer_encoding"],
        ),
        ("Transfer-Encoding: chunked\r\n", "3x\r\nabc\r\n0\r\n\r\n", vec!["HTTP_bad_chunk_size"]),
        ("Transfer-Encoding: chunked\r\n", "0_3\r\n\r\n", vec!["HTTP_bad_chunk_size"]),
        ("Transfer-Encoding: chunked\r\n", "3\r\nabcx\r\n0\r\n\r\n", vec!["HTTP_bad_chunk_end"]),
        ("A: b\rC: d\r\nContent-Length: 0\r\n", "", vec!["HTTP_bare_CR"]),
        ("A: b\0\r\nContent-Length: 0\r\n", "", vec!["HTTP_control_character"]),
        ("Content-Length : 3\r\n", "abc", vec!["HTTP_blank_before_colon"]),
        ("no colon\r\nContent-Length: 3\r\n", "abc", vec!["HTTP_bad_header_field"]),
        (" A: b\r\nContent-Length: 3\r\n", "abc", vec!["HTTP_bad_header_field"]),
        // What is no oddity.
        ("HOST:a:80\r\ncontent-length:3\r\n", "abc", vec![]),
        ("Transfer-Encoding: Chunked\r\n", "3;a=\"b\"\r\nabc\r\n0\r\n\r\n", vec![]),
        ("Transfer-Encoding: chunked\r\n", "3  \r\nabc\r\n0\r\nA: b\r\n\r\n", vec![]),
        ("A: \u{e9}\tb\r\nContent-Length: 3\r\n", "abc", vec![]),
    ] {
        let [request, response] = oddities(fields, body);
        assert_eq!(request, expected, "{fields:?} {body:?}");
        assert_eq!(response, expected, "{fields:?} {body:?}");
    }
}

/// A long header in segments of one byte, for which a scan from its begin at each would take minutes.
#[test]
fn folded_fields_are_put_together_once() {
    let field = format!("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n{}\r\n", " c\r\n".repeat(15_000));
    let outcome = play(&[client(field)], PROXY, Cuts::Everywhere);
    assert_eq!(outcome.lines.len(), 1);
}

#[test]
fn a_capture_may_begin_with_a_response_of_any_length() {
    let get = "GET /2 HTTP/1.1\r\nHost: h\r\n\r\n";
    let last = "HTTP/1.1 204 No\r\n\r\n";
    let long = format!("X: {}\r\n", "y".repeat(3_000));
    for (fields, len) in
        [("A: b\r\n", 10_usize), ("A: b\r\n", 5_000), (&*long, 10), (&*long, 5_000)]
    {
        let body = "a".repeat(len);
        let plain = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {len}\r\n\r\n{body}");
        let chunked = format!(
            "HTTP/1.1 200 OK\r\n{fields}Transfer-Encoding: chunked\r\n\r\n{len:x}\r\n{body}\r\n0\r\n\r\n"
        );
        for first in [plain, chunked] {
            let turns = [server(first), client(get), server(last)];
            for cuts in [Cuts::None, Cuts::Everywhere, Cuts::At(Role::Responder, 1_460)] {
                let outcome = play(&turns, MIDDLE, cuts);
                let rows: Vec<_> =
                    outcome.lines.iter().filter(|row| row.starts_with("http ")).collect();
                assert_eq!(rows.len(), 2, "{:#?}", outcome.lines);
                assert!(rows[0].contains(&format!("response_body_len={len} ")), "{}", rows[0]);
                assert!(rows[1].contains("status_code=204"), "{}", rows[1]);
                assert_eq!(outcome.services.as_deref(), Some("http"));
            }
        }
    }
    let turns = [server("of a body\r\n".repeat(500)), client(get), server(last)];
    assert!(play(&turns, MIDDLE, Cuts::None).lines.is_empty());
}

#[test]
fn blank_lines_and_long_lines_hide_no_request() {
    let (host, ok) = ("Host: h\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    for begin in [
        "\r\n".repeat(1_200),
        "\n".repeat(9_000),
        format!("GET /{} HTTP/1.1\r\n{host}", "a".repeat(8_000)),
    ] {
        let turns = [client(format!("{begin}GET /evil HTTP/1.1\r\n{host}")), server(ok.repeat(2))];
        for cuts in [Cuts::None, Cuts::Everywhere, Cuts::At(Role::Originator, 1_000)] {
            let outcome = play(&turns, ELSEWHERE, cuts);
            let is_there =
                |row: &String| row.contains("uri=/evil") && row.contains("status_code=200");
            assert!(outcome.lines.iter().any(is_there), "{:#?}", outcome.lines);
            assert!(outcome.oddities.len() <= 1, "{:?}", outcome.oddities);
        }
    }
}

/// What `HTTP_Entity::SubmitHeader` and `atoi_n` of Zeek make of it, but for the length that chunks override.
#[test]
fn bodies_are_found_behind_odd_fields() {
    let (text, chunks) = ("a".repeat(20), format!("14\r\n{}\r\n0\r\n\r\n", "a".repeat(20)));
    let length = format!("Content-Length: {}\r\n", text.len());
    for (fields, body, expected) in [
        // A length that holds is told, though chunks override it; one that does not hold is not.
        (format!("Transfer-Encoding: chunked\r\n{length}"), &chunks, Some(" total_bytes=20")),
        ("Transfer-Encoding: chunked\r\nContent-Length: 9\r\n".to_owned(), &chunks, Some("")),
        // What stands around the name of a coding hides nothing.
        ("Transfer-Encoding: \"chunked\" x\r\n".to_owned(), &chunks, Some("")),
        ("\u{feff}Transfer-Encoding: chunked\r\n".to_owned(), &chunks, Some("")),
        // Nobody undoes codings of the transfer, nor applies them.
        (format!("Transfer-Encoding: gzip\r\n{length}"), &text, Some(" total_bytes=20")),
        // A size begins with a digit.
        ("Transfer-Encoding: chunked\r\n".to_owned(), &format!(" {chunks}"), None),
    ] {
        let response = format!("HTTP/1.1 200 OK\r\n{fields}\r\n{body}");
        let found = found_in(&[client("GET / HTTP/1.1\r\n\r\n"), server(response)], PROXY);
        let files = found.into_iter().filter(|row| row.starts_with("files "));
        let file = |total| format!("files mime_type=text/plain is_orig=false seen_bytes=20{total}");
        assert!(files.eq(expected.map(file)), "{fields:?} {body:?}");
    }
}
