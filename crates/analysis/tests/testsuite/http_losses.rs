//! HTTP behind holes in headers and of whole messages. Each dialogue is played whole, byte by byte and cut
//! at every position.

use crate::support::web::*;

fn get(number: u32) -> Turn {
    client(format!("GET /{number} HTTP/1.1\r\n\r\n"))
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// URI, status and length of the response of each exchange.
fn exchanges(turns: &[Turn]) -> Vec<String> {
    let field = |line: &str, name: &str| {
        let value = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        value.unwrap_or("-").to_owned()
    };
    let found = found_in(turns, PROXY);
    let lines = found.iter().filter(|line| line.starts_with("http "));
    let names = ["uri", "status_code", "response_body_len"];
    lines.map(|line| names.map(|name| field(line, name)).join(" ")).collect()
}

#[test]
fn behind_lost_requests_responses_and_requests_are_read() {
    // Before the first response, between it and the next request, and while the response comes.
    let lost = gap(Role::Originator, 22);
    let rest = [server(ok("abc")), get(2), server(ok("de")), get(3), server(ok("f"))];
    let before = [&[lost.clone()][..], &rest].concat();
    assert_eq!(exchanges(&before), ["- 200 3", "/2 200 2", "/3 200 1"]);
    let [begin, end] = [server("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na"), server("bc")];
    let while_answered = [&[begin, lost.clone(), end][..], &rest[1..]].concat();
    assert_eq!(exchanges(&while_answered), ["- 200 3", "/2 200 2", "/3 200 1"]);
    let between = [&[get(0), server(ok("0123")), lost][..], &rest].concat();
    assert_eq!(exchanges(&between), ["/0 200 4", "- 200 3", "/2 200 2", "/3 200 1"]);
    // Within a header, of which something came.
    let half = [client("GET /1 HTTP/1.1\r\nHo"), gap(Role::Originator, 5), client("t\r\n\r\n")];
    let within = [&half[..], &rest].concat();
    assert_eq!(exchanges(&within), ["/1 200 3", "/2 200 2", "/3 200 1"]);
}

#[test]
fn behind_lost_responses_the_next_one_answers_the_last_request() {
    let rest = [get(2), server(ok("de")), get(3), server(ok("f"))];
    let expected = ["/1 - -", "/2 200 2", "/3 200 1"];
    for lost in [
        // All of it; its begin, with what follows; and its header from the middle on.
        vec![gap(Role::Responder, 41)],
        vec![gap(Role::Responder, 10), server("gth: 3\r\n\r\nHTTP/1.1 404 is said\r\n")],
        vec![gap(Role::Responder, 39), server("c")],
    ] {
        let turns = [&[get(1)][..], &lost, &rest].concat();
        assert_eq!(exchanges(&turns), expected, "{lost:?}");
    }
    let header = server("HTTP/1.1 200 OK\r\nContent-Le");
    let turns = [&[get(1), header, gap(Role::Responder, 8), server("abc")][..], &rest].concat();
    assert_eq!(exchanges(&turns), ["/1 200 -", "/2 200 2", "/3 200 1"]);
    // Requests that were answered in what is missing have no response.
    let many = [
        get(1),
        gap(Role::Responder, 41),
        server("xyz"),
        client("GET /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\n\r\n"),
    ];
    let turns = [&many[..], &[server(ok("de") + &ok("f"))]].concat();
    assert_eq!(exchanges(&turns), expected);
}

#[test]
fn what_begins_no_message_is_left_out() {
    let lost = [get(1), gap(Role::Responder, 41)];
    let other = ["HTTP/1.1 2", "HTTP/2 200 OK\r\n\r\n", "<html>", "\r\n\r\n"];
    for text in other {
        let turns = [&lost[..], &[get(2), server(text), get(3), server(ok("f"))]].concat();
        let expected: &[&str] = match text {
            // The rest of a status line that did not come whole is one with what follows.
            "HTTP/1.1 2" => continue,
            _ => &["/1 - -", "/2 - -", "/3 200 1"],
        };
        assert_eq!(exchanges(&turns), expected, "{text}");
    }
    // A tunnel is read by nobody here.
    let tunnel = [
        client("CONNECT a:1 HTTP/1.1\r\n\r\n"),
        gap(Role::Responder, 19),
        get(2),
        server(ok("de")),
    ];
    assert!(exchanges(&tunnel).len() <= 1);
}
