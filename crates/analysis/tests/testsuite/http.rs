//! HTTP in dialogues by hand: what recorded captures lack. Each is played whole, byte by
//! byte and cut at every position.

use netsniff_traffic::Random;

use crate::support::web::*;

#[test]
fn pipelined_requests_find_their_responses() {
    let turns = [
        client(
            "GET /a HTTP/1.1\r\nHost: h\r\n\r\nPOST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n\
             abcHEAD /c HTTP/1.1\r\n\r\nGET /d HTTP/1.1\r\n\r\n",
        ),
        server(
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 204 None\r\n\r\n\
             HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nHTTP/1.1 304 Same\r\nContent-Length: 7\r\n\r\n",
        ),
    ];
    assert_eq!(
        found_in(&turns, PROXY),
        [
            "files is_orig=false seen_bytes=5 total_bytes=5",
            "files is_orig=true seen_bytes=3 total_bytes=3",
            "http trans_depth=1 method=GET host=h uri=/a version=1.1 response_body_len=5 \
             status_code=200 status_msg=OK",
            "http trans_depth=2 method=POST host=h uri=/b version=1.1 request_body_len=3 \
             status_code=204 status_msg=None",
            "http trans_depth=3 method=HEAD uri=/c version=1.1 status_code=200 status_msg=OK",
            "http trans_depth=4 method=GET uri=/d version=1.1 status_code=304 status_msg=Same",
            "service http",
        ]
    );
}

#[test]
fn chunks_have_extensions_and_trailers() {
    let turns = [
        client("GET / HTTP/1.1\r\n\r\n"),
        server(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=\"y\"\r\nhello\r\n6 \r\n world\r\n\
             000\r\nX-Trailer: 1\r\n more\r\n\r\nHTTP/1.1 200 again\r\nContent-Length: 0\r\n\r\n",
        ),
        client("GET /2 HTTP/1.1\r\n\r\n"),
    ];
    assert_eq!(
        found_in(&turns, PROXY),
        [
            "HTTP: HTTP_obsolete_line_folding",
            "HTTP: HTTP_response_before_request",
            "files mime_type=text/plain is_orig=false seen_bytes=11",
            "http trans_depth=1 method=GET uri=/ version=1.1 response_body_len=11 status_code=200 \
             status_msg=OK resp_mime_types=text/plain,",
            "http trans_depth=2 version=1.1 status_code=200 status_msg=again",
            "http trans_depth=3 method=GET uri=/2",
            "service http",
        ]
    );
}

#[test]
fn a_bad_chunk_size_ends_the_body() {
    let turns = [
        client("GET / HTTP/1.1\r\n\r\n"),
        server("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n"),
    ];
    let found = found_in(&turns, PROXY);
    assert_eq!(found[0], "HTTP: HTTP_bad_chunk_size");
    assert_eq!(found.len(), 3);
}

#[test]
fn a_preliminary_response_belongs_to_the_final_one() {
    let turns = [
        client("PUT /f HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"),
        server("HTTP/1.1 100 Continue\r\n\r\n"),
        client("data"),
        server("HTTP/1.1 201 Created\r\nConnection: close\r\n\r\ndone"),
        end(Role::Responder),
    ];
    let found = found_in(&turns, PROXY);
    assert_eq!(
        found[2],
        "http trans_depth=1 method=PUT uri=/f version=1.1 request_body_len=4 response_body_len=4 \
         status_code=201 status_msg=Created info_code=100 info_msg=Continue"
    );
}

#[test]
fn a_response_may_come_before_the_request_is_complete() {
    let turns = [
        client("POST /a HTTP/1.1\r\nContent-Length: 20\r\n\r\n0123456789"),
        server("HTTP/1.1 204 Enough\r\n\r\n"),
        client("0123456789GET /b HTTP/1.1\r\n\r\n"),
        server("HTTP/1.1 204 None\r\n\r\n"),
    ];
    assert_eq!(
        found_in(&turns, PROXY),
        [
            "files mime_type=text/plain is_orig=true seen_bytes=20 total_bytes=20",
            "http trans_depth=1 method=POST uri=/a version=1.1 request_body_len=20 \
             status_code=204 status_msg=Enough orig_mime_types=text/plain,",
            "http trans_depth=2 method=GET uri=/b version=1.1 status_code=204 status_msg=None",
            "service http",
        ]
    );
}

#[test]
fn what_begins_like_a_request_on_a_port_of_http_is_read_as_one_too() {
    let ssh = "SSH-2.0-OpenSSH_9.6 Ubuntu\r\n";
    let irc = [
        client("USER me 0 * :My\r\nNICK me\r\n"),
        server(":irc.example 001 me :Welcome\r\n"),
        client("\r\nPING x\r\n"),
    ];
    // Behind what would be the header comes its body, since a server of version 0.9 answers once.
    let row = "http trans_depth=1 method=USER uri=me 0 * :My version=0.9 request_body_len=8 \
               response_body_len=30 status_code=0 status_msg=<empty> \
               resp_mime_types=text/plain,";
    let turns = [irc.as_slice(), &[end(Role::Originator), end(Role::Responder)]].concat();
    let found = found_in(&turns, PROXY);
    assert!(found.contains(&row.to_owned()), "{found:#?}");
    assert_eq!(found.last().unwrap(), "service http,irc");
    // Elsewhere it is what it is.
    let found = found_in(&turns, ELSEWHERE);
    assert!(!found.iter().any(|line| line.starts_with("http ")), "{found:#?}");
    // Also where nothing is known of it, and the server never answers.
    let row = "http trans_depth=1 method=FOO uri=bar".to_owned();
    let turns = [client("\r\nFOO bar\r\n"), end(Role::Originator), end(Role::Responder)];
    let found = found_in(&turns, PROXY);
    assert_eq!(found[3..], [row, "service http".to_owned()], "{found:#?}");
    // Not where the server speaks first, or the line is no request.
    for turns in [
        [server("SSH-2.0-other\r\n"), client(ssh)],
        [client("FOO\r\n"), server("bar\r\n")],
        [client("pass secret\r\n"), server("OK\r\n")],
        [client(b"\x16\x03\x01 a b\r\n"), server("x\r\n")],
    ] {
        let found = found_in(&turns, PROXY);
        assert!(!found.iter().any(|line| line.starts_with("http ")), "{found:#?}");
    }
}

#[test]
fn a_request_that_another_server_answers_is_told() {
    let turns = [client("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), server("SSH-2.0-x\r\nInvalid\r\n")];
    let found = found_in(&turns, Flow::at(22));
    let row = "http trans_depth=1 method=GET host=h uri=/";
    assert_eq!(found, ["HTTP: bad_HTTP_reply", row]);
}

#[test]
fn junk_behind_the_last_response_counts_as_its_line_does() {
    for end_of_line in ["", "\r\n"] {
        let turns = [
            client("GET / HTTP/1.1\r\n\r\n"),
            server(format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokXXXX{end_of_line}")),
            end(Role::Responder),
        ];
        let found = found_in(&turns, PROXY);
        assert_eq!(found[0], "HTTP: bad_HTTP_reply");
        assert!(!found.iter().any(|line| line.starts_with("service")), "{found:#?}");
    }
}

#[test]
fn a_gap_in_a_body_of_known_length_is_part_of_it() {
    let turns = [
        client("GET / HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n"),
        server("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789"),
        gap(Role::Responder, 80),
        server("0123456789HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
    ];
    assert_eq!(
        found_in(&turns, PROXY),
        [
            "files is_orig=false seen_bytes=1 total_bytes=1",
            "files mime_type=text/plain is_orig=false seen_bytes=20 total_bytes=100 \
             missing_bytes=80",
            "http trans_depth=1 method=GET uri=/ version=1.1 response_body_len=100 \
             status_code=200 status_msg=OK resp_mime_types=text/plain,",
            "http trans_depth=2 method=GET uri=/2 version=1.1 response_body_len=1 \
             status_code=200 status_msg=OK",
            "service http",
        ]
    );
}

#[test]
fn a_gap_counts_into_the_duration_of_its_file() {
    let turns = [
        client("GET / HTTP/1.1\r\n\r\n"),
        server("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789"),
        gap(Role::Responder, 80),
    ];
    let found = play(&turns, PROXY, Cuts::None);
    let file = found.lines.iter().find(|line| line.starts_with("files ")).unwrap();
    assert!(file.contains(" duration=1000000 "), "{file}");
}

#[test]
fn a_gap_in_a_chunk_is_part_of_it() {
    let turns = [
        client("GET / HTTP/1.1\r\n\r\n"),
        server("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nab"),
        gap(Role::Responder, 14),
        server("\r\n3\r\ncde\r\n0\r\n\r\n"),
    ];
    let found = found_in(&turns, PROXY);
    assert_eq!(found[0], "files is_orig=false seen_bytes=5 missing_bytes=14");
    assert!(found[1].contains("response_body_len=19 "), "{found:?}");
}

#[test]
fn behind_a_gap_elsewhere_a_side_is_not_understood() {
    let turns = [
        client("GET / HTTP/1.1\r\n\r\n"),
        server("HTTP/1.1 200 OK\r\nContent-Le"),
        gap(Role::Responder, 5),
        server("HTTP/1.1 500 Never seen\r\n\r\n"),
        client("GET /2 HTTP/1.1\r\n\r\n"),
    ];
    assert_eq!(
        found_in(&turns, PROXY),
        [
            "http trans_depth=1 method=GET uri=/ version=1.1 status_code=200 status_msg=OK",
            "http trans_depth=2 method=GET uri=/2",
            "service http",
        ]
    );
    let turns = [
        client("GET / HTTP/1.1\r\nHo"),
        gap(Role::Originator, 5),
        client("GET /2 HTTP/1.1\r\n\r\n"),
        server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ];
    assert_eq!(
        found_in(&turns, PROXY),
        [
            "http trans_depth=1 method=GET uri=/ version=1.1 status_code=200 status_msg=OK",
            "service http",
        ]
    );
}

#[test]
fn version_0_9_has_no_header() {
    let turns = [
        client("GET /old\r\n"),
        server("HTTP/1.0 200 is all body"),
        end(Role::Responder),
        end(Role::Originator),
    ];
    assert_eq!(
        found_in(&turns, PROXY),
        [
            "files mime_type=text/plain is_orig=false seen_bytes=24",
            "http trans_depth=1 method=GET uri=/old version=0.9 response_body_len=24 \
             status_code=0 status_msg=<empty> resp_mime_types=text/plain,",
            "service http",
        ]
    );
}

#[test]
fn lines_end_as_they_like() {
    for eol in ["\n", "\r", "\r\n"] {
        let turns = [
            client(format!("GET / HTTP/1.0{eol}Host: h{eol} x{eol}{eol}")),
            server(format!("HTTP/1.0 200{eol}Content-Length: 1{eol}{eol}x{eol}{eol}")),
        ];
        let found = found_in(&turns, PROXY);
        let row = found.iter().find(|row| row.starts_with("http ")).unwrap();
        assert!(row.contains("host=h x uri=/ version=1.0 response_body_len=1"), "{found:?}");
        assert!(row.contains("status_msg=<empty>"), "{found:?}");
    }
}

#[test]
fn two_lengths_are_an_attack_and_chunks_count() {
    let turns = [
        client(
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 50\r\n\r\n0\r\n\r\n\
             GET /smuggled HTTP/1.1\r\n\r\n",
        ),
        server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ];
    let found = found_in(&turns, PROXY);
    assert_eq!(found[0], "HTTP: HTTP_content_length_and_chunked");
    assert_eq!(found[2], "http trans_depth=2 method=GET uri=/smuggled");
}

#[test]
fn compressed_bodies_are_measured_without_their_compression() {
    let body = gzipped(&b"0123456789".repeat(300));
    let mut reply = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    reply.extend(&body);
    let mut broken = reply.clone();
    let at = broken.len() - body.len() / 2;
    broken[at] ^= 0xff;
    broken[at + 1] ^= 0xff;
    let request = || client("GET / HTTP/1.1\r\n\r\n");
    let found = found_in(&[request(), server(reply)], PROXY);
    assert_eq!(found[0], "files mime_type=text/plain is_orig=false seen_bytes=3000");
    assert!(found[1].contains("response_body_len=3000 "), "{found:?}");
    let found = found_in(&[request(), server(broken)], PROXY);
    assert_eq!(found[0], "HTTP: inflate_failed");
}

#[test]
fn behind_a_gap_a_compressed_body_has_no_length() {
    let body = gzipped(&(0..4_000_u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>());
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let (first, rest) = body.split_at(1_500);
    let turns = [
        client("GET / HTTP/1.1\r\n\r\n"),
        server([head.as_bytes(), first].concat()),
        gap(Role::Responder, 100),
        server(&rest[100..]),
    ];
    let found = found_in(&turns, PROXY);
    assert!(!found.concat().contains("response_body_len"), "{found:?}");
}

/// `for i in $(seq 300); do printf 0123456789; done | brotli -q 11`, brotli 1.0.9.
const DIGITS_BR: &str = "1fb70bf8c50dc6e6258d383014006d000094d3d97b";

/// `seq 1 100 | brotli -q 11 -w 10`.
const NUMBERS_BR: &str = "a11809c06fa4649d5ba463c36e4bee02a50053922817ade4e2f1e9f9e5f5cddb770f1f0004812150185838fc\
    08240a8dc1e2e0e2d1271049640a9586968e3f83c96273b83cbc7cf20542915822959195d3af50aad41aad8e\
    ae9ef9068646c626a666cc9ab3dfc2d2cadac6d68e5d7bee3b383a39bbb8ba71eb2c";

fn unhex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

#[test]
fn br_is_undone_as_gzip_is() {
    let request = || client("GET / HTTP/1.1\r\n\r\n");
    let reply = |body: &[u8]| {
        let len = body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: {len}\r\n\r\n");
        server([head.as_bytes(), body].concat())
    };
    let mut body = unhex(DIGITS_BR);
    let found = found_in(&[request(), reply(&body)], PROXY);
    assert_eq!(found[0], "files mime_type=text/plain is_orig=false seen_bytes=3000");
    assert!(found[1].contains("response_body_len=3000 "), "{found:?}");
    // A block of metadata whose reserved bit is set (RFC 7932, section 9.2).
    body[0] = 0b1110_1011;
    let found = found_in(&[request(), reply(&body)], PROXY);
    assert_eq!(found[0], "HTTP: brotli_failed");
    // A window larger than RFC 7932 allows.
    body[0] = 0x11;
    let found = found_in(&[request(), reply(&body)], PROXY);
    assert_eq!(found[0], "HTTP: HTTP_window_too_large_to_decode");
    assert!(found[2].contains(&format!("response_body_len={} ", body.len())), "{found:?}");
}

#[test]
fn behind_a_gap_br_has_no_length() {
    let body = unhex(NUMBERS_BR);
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let (first, rest) = body.split_at(body.len() - 30);
    let turns = [
        client("GET / HTTP/1.1\r\n\r\n"),
        server([head.as_bytes(), first].concat()),
        gap(Role::Responder, 10),
        server(&rest[10..]),
        server("HTTP/1.1 204 No\r\n\r\n"),
    ];
    let found = found_in(&turns, PROXY);
    assert!(
        found[0].contains("seen_bytes=2") && found[0].contains("missing_bytes=10"),
        "{found:?}"
    );
    assert!(!found.concat().contains("response_body_len"), "{found:?}");
}

#[test]
fn parts_are_those_of_mime() {
    let body = "--b\r\nContent-Type: text/plain; name*=utf-8''%C3%A4.txt\r\n\
                Content-Transfer-Encoding: base64\r\n\r\nYWxwaGEgYmV0YSBnYW1tYQ==\r\n\
                --b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n\
                --c\r\nContent-Disposition: file; filename=i.txt\r\n\r\none\ntwo\rthree\r\n--c--\r\n\
                --b--\r\n";
    let head = "POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b\r\n";
    let turns = [
        client(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())),
        server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ];
    let found = found_in(&turns, PROXY);
    assert_eq!(
        found[..2],
        [
            "files mime_type=text/plain filename=\\xc3\\xa4.txt is_orig=true seen_bytes=16",
            "files mime_type=text/plain filename=i.txt is_orig=true seen_bytes=13",
        ]
    );
    assert!(found[2].contains(&format!("request_body_len={} ", body.len())), "{found:?}");
}

#[test]
fn parts_are_files_with_names() {
    let body = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\nalpha beta gamma\r\n\
                --b\r\nContent-Disposition: form-data; name=\"g\"\r\n\r\nbeta\r\n--b--\r\n";
    let head = "POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b\r\n";
    let lengths = [format!("Content-Length: {}\r\n", body.len()), String::new()];
    for length in lengths {
        // Without a length the last boundary is the end of a response.
        let turns = if length.is_empty() {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: multipart/mixed; boundary=b\r\n";
            [client("GET / HTTP/1.1\r\n\r\n"), server(format!("{head}\r\n{body}"))]
        } else {
            let request = format!("{head}{length}\r\n{body}");
            [client(request), server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")]
        };
        let found = found_in(&turns, PROXY);
        let is_orig = !length.is_empty();
        let side = if is_orig { "orig" } else { "resp" };
        assert_eq!(found[0], format!("files is_orig={is_orig} seen_bytes=4"));
        assert_eq!(
            found[1],
            format!("files mime_type=text/plain filename=a.txt is_orig={is_orig} seen_bytes=16")
        );
        let names = format!("{side}_filenames=a.txt, {side}_mime_types=text/plain,");
        assert!(found[2].ends_with(&names), "{found:?}");
        assert!(found[2].contains(&format!("_body_len={} ", body.len())), "{found:?}");
    }
}

#[test]
fn what_turns_out_to_be_something_else_is_let_go() {
    let turns = [
        client("GET / HTTP/1.1\r\n\r\n"),
        server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n*1\r\n$4\r\n"),
        client("GET /2 HTTP/1.1\r\n\r\n"),
    ];
    assert_eq!(
        found_in(&turns, PROXY),
        [
            "HTTP: bad_HTTP_reply",
            "http trans_depth=1 method=GET uri=/ version=1.1 status_code=200 status_msg=OK",
        ]
    );
}

#[test]
fn responses_without_requests_have_rows() {
    let turns = [
        server("HTTP/1.1 408 Late\r\nContent-Length: 0\r\n\r\n"),
        client("GET / HTTP/1.1\r\n\r\n"),
        server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ];
    assert_eq!(
        found_in(&turns, PROXY),
        [
            "HTTP: HTTP_response_before_request",
            "http trans_depth=1 version=1.1 status_code=408 status_msg=Late",
            "http trans_depth=2 method=GET uri=/ version=1.1 status_code=200 status_msg=OK",
            "service http",
        ]
    );
}

#[test]
fn what_waits_is_bounded() {
    let many = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n".repeat(250);
    let outcome = play(&[client(many)], PROXY, Cuts::None);
    let excessive = outcome.oddities.iter().filter(|name| name.ends_with("excessive_pipelining"));
    assert_eq!(excessive.count(), 2);
    assert_eq!(outcome.lines.iter().filter(|line| line.starts_with("http ")).count(), 250);
    let large = format!("GET / HTTP/1.1\r\nA: {}\r\nHost: last\r\n\r\n", "x".repeat(30_000));
    let found = play(&[client(large)], PROXY, Cuts::None);
    assert!(found.oddities[0].ends_with("contentline_size_exceeded"), "{:?}", found.oddities);
    let endless = "GET / HTTP/1.1\r\n".to_owned() + &"A: b\r\n".repeat(20_000) + "Host: h\r\n\r\n";
    let found = play(&[client(endless)], PROXY, Cuts::None);
    assert!(!found.lines.concat().contains("host="), "{:?}", found.lines);
}

#[test]
fn elsewhere_either_side_tells_that_it_is_http() {
    let request = || client("GET / HTTP/1.1\r\n\r\n");
    let row = "http trans_depth=1 method=GET uri=/".to_owned();
    assert_eq!(found_in(&[request()], ELSEWHERE), [row.clone(), "service http".to_owned()]);
    let found = found_in(&[request(), server("-ERR unknown command\r\n")], ELSEWHERE);
    assert_eq!(found, ["HTTP: bad_HTTP_reply".to_owned(), row]);
    let found = found_in(&[request(), server("HTTP/1.1 204 OK\r\n\r\n")], ELSEWHERE);
    assert_eq!(found.len(), 2);
    assert!(found_in(&[client("GET key\r\n")], ELSEWHERE).is_empty());
    assert!(found_in(&[server("220 mail\r\n"), request()], ELSEWHERE).is_empty());
}

#[test]
fn spoiled_dialogues_fail_nothing_and_cuts_change_nothing() {
    let body = gzipped(&b"some text ".repeat(40));
    let mut reply =
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    reply.extend(format!("{:x}\r\n", body.len()).bytes());
    reply.extend(body);
    reply.extend(b"\r\n0\r\n\r\nHTTP/1.1 206 Part\r\nContent-Range: bytes 0-4/9\r\n\r\nabcde");
    reply.extend(switched("x"));
    let request = "POST / HTTP/1.1\r\nContent-Type: multipart/x; boundary=b\r\nContent-Length: 30\r\n\r\n\
                   --b\r\nA: b\r\n\r\nxy\r\n--b--\r\n1234\r\nGET /%41%zz HTTP/1.1\r\nAuthorization: \
                   Basic QTpi\r\n\r\n";
    let mut random = Random::new(7);
    for round in 0..400 {
        let mut texts = [request.as_bytes().to_vec(), UPGRADE.as_bytes().to_vec(), reply.clone()];
        for _ in 0..1 + random.below(4) {
            let text = &mut texts[random.below(3) as usize];
            let at = random.below(text.len() as u64) as usize;
            match random.below(3) {
                0 => text[at] = random.below(256) as u8,
                1 => drop(text.drain(at..(at + 9).min(text.len()))),
                _ => text.insert(at, b"\r\n :-0"[random.below(6) as usize]),
            }
        }
        let [first, second, third] = texts;
        let middle = random.below(third.len() as u64) as usize;
        let (begin, rest) = third.split_at(middle);
        let mut turns = vec![client(first), server(begin), client(second)];
        if random.below(3) == 0 {
            turns.push(gap(Role::Responder, 1 + random.below(300)));
        }
        turns.extend([server(rest), end(Role::Responder), end(Role::Originator)]);
        let sorted = |cuts| {
            let mut outcome = play(&turns, PROXY, cuts);
            outcome.lines.sort();
            outcome
        };
        let whole = sorted(Cuts::None);
        assert_eq!(sorted(Cuts::Everywhere), whole, "round {round}, byte by byte");
        for seed in 0..4 {
            let cut = sorted(Cuts::Seeded(Random::new(seed)));
            assert_eq!(cut, whole, "round {round}, seed {seed}");
        }
    }
}

#[test]
fn one_connection_shows_a_bounded_number_of_oddities() {
    let nonsense = "nonsense\r\n".repeat(200);
    let turns = [
        client("DELETE /HTTP/1.1\nHost: a.example\n\n"),
        server("HTTP/1.0 400 Bad Request\r\n"),
        client(nonsense.clone()),
        client(nonsense),
    ];
    let found = found_in(&turns, PROXY);
    let oddities = found.iter().filter(|line| line.starts_with("HTTP: ")).count();
    assert_eq!(oddities, usize::from(netsniff_analysis::protocol::MAX_ODDITIES), "{found:#?}");
}

/// A request for a part, and the response with it.
fn part(first: usize, body: &str) -> [Turn; 2] {
    let last = first + body.len() - 1;
    let get = format!("GET /v HTTP/1.1\r\nHost: h\r\nRange: bytes={first}-{last}\r\n\r\n");
    let head = format!(
        "HTTP/1.1 206 Part\r\nContent-Range: bytes {first}-{last}/30\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [client(get), server(head + body)]
}

fn files_of(turns: &[Turn]) -> Vec<String> {
    let mut found = found_in(turns, PROXY);
    found.retain(|row| row.starts_with("files "));
    found
}

#[test]
fn parts_of_a_file_are_one_file() {
    let whole = [part(10, "0123456789"), part(0, "0123456789"), part(20, "0123456789")].concat();
    assert_eq!(files_of(&whole), ["files is_orig=false seen_bytes=30 total_bytes=30"]);
    let gap = |first| [part(0, "01234"), part(first, "0123456789")].concat();
    let row = |seen: u8, missing: u8| {
        format!(
            "files is_orig=false seen_bytes={seen} total_bytes=30 missing_bytes={missing} timedout=true"
        )
    };
    assert_eq!(files_of(&gap(10)), [row(15, 5)]);
    let overlapping = row(12, 0).replace(" missing_bytes=0", "");
    assert_eq!(files_of(&gap(2)), [overlapping.replace("files ", "files mime_type=text/plain ")]);
    // Nobody asked for what the second one has.
    let mut other = gap(10);
    other[2] = client("GET /w HTTP/1.1\r\nHost: h\r\nRange: bytes=10-19\r\n\r\n");
    assert_eq!(files_of(&other).len(), 2);
    // Several parts in one response.
    let several = "--x\r\nContent-Range: bytes 5-9/30\r\n\r\n01234\r\n\
                   --x\r\nContent-Range: bytes 20-24/30\r\n\r\n01234\r\n--x--\r\n";
    let turns = [
        client("GET /v HTTP/1.1\r\nHost: h\r\nRange: bytes=5-9,20-24\r\n\r\n"),
        server(format!(
            "HTTP/1.1 206 Part\r\nContent-Type: multipart/byteranges; boundary=x\r\n\
             Content-Length: {}\r\n\r\n{several}",
            several.len()
        )),
    ];
    assert_eq!(files_of(&turns), [row(10, 15)]);
}
