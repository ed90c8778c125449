//! What HTTP becomes, in dialogues by hand: tunnels behind CONNECT, WebSocket, HTTP/2. Each is played whole, byte by
//! byte and cut at every position.

use crate::support::web::*;

#[test]
fn a_tunnel_is_found_out_anew() {
    let turns = [
        client("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\nGET /early HTTP/1.1\r\n\r\n"),
        server("HTTP/1.1 200 Connection established\r\n\r\n"),
        server("HTTP/1.1 404 Not here\r\nContent-Length: 0\r\n\r\n"),
    ];
    assert_eq!(
        found_in(&turns, PROXY),
        [
            "http trans_depth=1 method=CONNECT host=a:80 uri=a:80 version=1.1 status_code=200 \
             status_msg=Connection established",
            "http trans_depth=2 method=GET uri=/early version=1.1 status_code=404 \
             status_msg=Not here",
            "tunnel tunnel_type=Tunnel::HTTP action=Tunnel::DISCOVER",
            "service http",
        ]
    );
}

/// In `suri-http-connect-http-connect-simple.pcap` both sides end a line too many.
#[test]
fn blank_lines_before_a_tunnel_hide_nothing() {
    let turns = [
        client("CONNECT a:80 HTTP/1.1\r\n\r\n\n"),
        server("HTTP/1.1 200 OK\r\n\r\n\n"),
        client("GET /b HTTP/1.1\r\n\r\n"),
        server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ];
    let found = found_in(&turns, ELSEWHERE);
    let row = "http trans_depth=2 method=GET uri=/b version=1.1 status_code=200 status_msg=OK";
    assert!(found.contains(&row.to_owned()), "{found:#?}");
}

#[test]
fn files_behind_a_tunnel_have_names_of_their_own() {
    let body = "Content-Length: 2\r\n\r\n";
    let turns = [
        client("GET /a HTTP/1.1\r\n\r\n"),
        server(format!("HTTP/1.1 200 OK\r\n{body}ab")),
        client("CONNECT a:80 HTTP/1.1\r\n\r\n"),
        server("HTTP/1.1 200 OK\r\n\r\n"),
        client("GET /b HTTP/1.1\r\n\r\n"),
        server(format!("HTTP/1.1 200 OK\r\n{body}cd")),
    ];
    let outcome = play(&turns, PROXY, Cuts::None);
    let names: std::collections::BTreeSet<_> = outcome
        .lines
        .iter()
        .filter(|line| line.starts_with("files "))
        .filter_map(|line| line.split(' ').find(|word| word.starts_with("fuid=")))
        .collect();
    assert_eq!(names.len(), 2, "{:#?}", outcome.lines);
}

/// Whoever sends a CONNECT behind another request hides nothing of that one's response.
#[test]
fn only_the_response_to_a_connect_opens_its_tunnel() {
    let body = "Content-Length: 2\r\n\r\n";
    let turns = [
        client("GET /a HTTP/1.1\r\n\r\nCONNECT a:80 HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n"),
        server(format!("HTTP/1.1 200 OK\r\n{body}abHTTP/1.1 200 OK\r\n\r\n")),
        server(format!("HTTP/1.1 200 OK\r\n{body}cd")),
    ];
    let row = |depth: u8, method: &str, uri: &str, len: &str| {
        format!(
            "http trans_depth={depth} method={method} uri={uri} version=1.1{len} status_code=200 \
             status_msg=OK"
        )
    };
    assert_eq!(
        found_in(&turns, PROXY)[2..5],
        [
            row(1, "GET", "/a", " response_body_len=2"),
            row(2, "CONNECT", "a:80", ""),
            row(3, "GET", "/b", " response_body_len=2"),
        ]
    );
}

#[test]
fn a_tunnel_that_is_refused_is_none() {
    let turns = [
        client("CONNECT a:80 HTTP/1.1\r\n\r\nGET /next HTTP/1.1\r\n\r\n"),
        server(
            "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nnoHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        ),
    ];
    let found = found_in(&turns, PROXY);
    assert_eq!(
        found[2],
        "http trans_depth=2 method=GET uri=/next version=1.1 status_code=200 status_msg=OK"
    );
}

#[test]
fn an_upgrade_to_websocket_is_counted() {
    let mut reply = switched("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    reply.extend([0x81, 2, b'h', b'i', 0x82, 126, 1, 0]);
    reply.extend([7; 256]);
    let turns = [
        client(UPGRADE),
        server(reply),
        client([0x81, 0x83, 1, 2, 3, 4, 9, 9, 9, 0x88, 0x80, 0, 0, 0, 0]),
        gap(Role::Responder, 9),
        server("nothing that is a frame"),
    ];
    assert_eq!(
        found_in(&turns, PROXY),
        [
            "http trans_depth=1 method=GET host=h uri=/chat version=1.1 user_agent=ua \
             status_code=101 status_msg=Switching info_code=101 info_msg=Switching",
            "websocket host=h uri=/chat user_agent=ua subprotocol=chat \
             client_protocols=chat,superchat, orig_frames=2 orig_frame_bytes=3",
            "service http,websocket",
        ]
    );
}

/// A frame of the client, whose payload is masked (RFC 6455, section 5.3).
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [7, 0, 255, 65];
    let mut frame = vec![first, 0x80 | u8::try_from(payload.len()).unwrap()];
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, octet)| byte ^ octet));
    frame
}

fn plain(first: u8, payload: &[u8]) -> Vec<u8> {
    [&[first, u8::try_from(payload.len()).unwrap()][..], payload].concat()
}

fn web_socket(turns: impl IntoIterator<Item = Turn>) -> Vec<String> {
    let reply = switched("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    let turns: Vec<_> = [client(UPGRADE), server(reply)].into_iter().chain(turns).collect();
    found_in(&turns, PROXY)
}

#[test]
fn what_a_websocket_carries_is_read() {
    let (begin, rest) = b"GET /b HTTP/1.1\r\nHost: i\r\n\r\n".split_at(9);
    // In two frames of one message, with a ping between them.
    let inner = |first: u8, next: u8| {
        [
            client([masked(first, begin), masked(0x89, b"ping"), masked(next, rest)].concat()),
            server(plain(0x82, b"HTTP/1.1 204 None\r\n\r\n")),
        ]
    };
    let row =
        "http trans_depth=2 method=GET host=i uri=/b version=1.1 status_code=204 status_msg=None";
    let found = web_socket(inner(2, 0x80));
    assert!(found.contains(&row.to_owned()), "{found:#?}");
    // Not what an extension has compressed.
    let found = web_socket(inner(0x42, 0x80));
    assert!(!found.contains(&row.to_owned()), "{found:#?}");
    let found = web_socket([
        client(masked(0x81, b"NICK me\r\nUSER me 0 * :Me\r\n")),
        server(plain(0x81, b":irc.example 001 me :Welcome\r\n")),
    ]);
    assert_eq!(found.last().unwrap(), "service http,websocket,irc");
    // SSH shows itself to both sides.
    let found = web_socket([
        client(masked(0x82, b"SSH-2.0-client\r\n")),
        server(plain(0x82, b"SSH-2.0-server\r\n")),
        gap(Role::Responder, 1),
        server(plain(0x82, b"more")),
    ]);
    let row = "ssh version=2 auth_attempts=0 client=SSH-2.0-client server=SSH-2.0-server";
    assert!(found.contains(&row.to_owned()), "{found:#?}");
}

#[test]
fn missing_bytes_of_a_frame_are_missing_in_what_it_carries() {
    let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\nabc";
    let frame = [&[0x82, reply.len() as u8 + 27][..], reply].concat();
    let found = web_socket([
        client(masked(0x82, b"GET /b HTTP/1.1\r\n\r\n")),
        server(frame),
        gap(Role::Responder, 20),
        server([&[b'x'; 7][..], &[0x81, 0]].concat()),
    ]);
    let file = "files is_orig=false seen_bytes=10 total_bytes=30 missing_bytes=20";
    assert!(found.contains(&file.to_owned()), "{found:#?}");
    assert!(
        found.iter().any(|line| line.contains("resp_frames=2 resp_frame_bytes=")),
        "{found:#?}"
    );
}

#[test]
fn control_frames_may_be_too_long() {
    let mut frame = vec![0x88, 127, 0, 0, 0, 0, 0, 0, 1, 2];
    frame.extend([b'C'; 258]);
    let found = web_socket([server(frame)]);
    assert_eq!(found[0], "WEBSOCKET: websocket_control_frame_size_exceeded 258 > 125");
    assert_eq!(found.last().unwrap(), "service http,websocket");
}

#[test]
fn a_websocket_within_another_ends_somewhere() {
    let upgrade = |text: &[u8]| [text, UPGRADE.as_bytes()].concat();
    let reply = switched("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    let wrap = |first: u8, payload: &[u8]| {
        let len = u16::try_from(payload.len()).unwrap().to_be_bytes();
        [&[first, 126][..], &len, payload].concat()
    };
    let mut turns = Vec::new();
    for depth in 0..12 {
        let nested = |payload: &[u8]| (0..depth).fold(payload.to_vec(), |it, _| wrap(0x82, &it));
        turns.extend([client(nested(&upgrade(b""))), server(nested(&reply))]);
    }
    let found = play(&turns, PROXY, Cuts::None);
    let told = |name: &str| found.oddities.iter().filter(|line| line.ends_with(name)).count();
    assert_eq!(told("too_many_protocol_changes"), 1, "{:?}", found.oddities);
}

#[test]
fn a_wrong_handshake_of_websocket_is_told() {
    let turns = [client(UPGRADE), server(switched("wrong")), server([0x81, 0])];
    let found = found_in(&turns, PROXY);
    assert!(found.contains(&"WEBSOCKET: websocket_wrong_accept_header".to_owned()), "{found:?}");
    assert!(found.iter().any(|line| line.ends_with("resp_frames=1 resp_frame_bytes=0")));
}

#[test]
fn an_upgrade_to_http_2_hands_over() {
    let request = "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\n\
                   Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n";
    let turns = [
        client(request),
        server("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"),
        // SETTINGS of both sides, RFC 9113, 3.4 and 6.5; the client's behind the preface.
        server([0, 0, 0, 4, 0, 0, 0, 0, 0]),
        client([&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &[0, 0, 0, 4, 0, 0, 0, 0, 0]].concat()),
    ];
    // Zeek tells a status of 1xx in `info_code`, too.
    let row = "http trans_depth=1 method=GET host=h uri=/ version=1.1 status_code=101 \
               status_msg=Switching info_code=101 info_msg=Switching";
    // A port of HTTP does not make a request of the preface.
    for port in [ELSEWHERE, PROXY] {
        assert_eq!(found_in(&turns, port), [row, "service http"], "{port:?}");
    }
}
