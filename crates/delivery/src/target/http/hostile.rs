//! Receivers that answer so that a client waits forever, grows, or believes what was not said.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::super::open;
use super::*;
use crate::Identity;

/// Sends a row to a receiver that answers by `act`, and returns what came of it.
fn send(query: &str, act: impl FnOnce(TcpStream, String) + Send + 'static) -> Answer {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/?timeout=1s{query}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut text, mut piece) = (String::new(), [0; 4096]);
        while !text.ends_with("}\n") {
            let length = stream.read(&mut piece).unwrap();
            text.push_str(core::str::from_utf8(&piece[..length]).unwrap());
        }
        act(stream, text);
    });
    let identity = Identity::new("s", "r").unwrap();
    let row = Row { identity: &identity, log: "dns", seq: 0, time: 0, json: b"{}" };
    let mut opened = open(Address::parse(&url).unwrap()).unwrap();
    let begun = Instant::now();
    let answer = opened.receiver.send(&[row]);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    answer
}

/// Says `head` and then `again` for ever.
fn endless(head: &'static str, again: &'static str, pause: Duration) -> Answer {
    send("", move |mut stream, _| {
        let again = if pause.is_zero() { again.repeat(1000) } else { again.to_owned() };
        let mut result = stream.write_all(head.as_bytes());
        while result.is_ok() {
            std::thread::sleep(pause);
            result = stream.write_all(again.as_bytes());
        }
    })
}

#[test]
fn an_answer_without_an_end_is_none_and_takes_neither_time_nor_memory() {
    let ok = "HTTP/1.1 200 OK\r\n";
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let now = Duration::ZERO;
    for (what, answer) in [
        ("a header", endless(ok, "a: b\r\n", now)),
        ("a line of a header", endless("HTTP/1.1 200 OK\r\na: ", "b", now)),
        ("a body", endless(chunked, "1\r\nx\r\n", now)),
        ("preliminary answers", endless("", "HTTP/1.1 100 Continue\r\n\r\n", now)),
        ("a body in drips", endless(chunked, "1\r\nx\r\n", Duration::from_millis(100))),
        ("a header in drips", endless(ok, "a: b\r\n", Duration::from_millis(100))),
    ] {
        assert!(matches!(answer, Answer::Later { .. }), "{what}: {answer:?}");
    }
}

#[test]
fn an_answer_that_is_cut_or_leads_elsewhere_takes_no_row() {
    for text in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabc",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\ncontent-le",
        "HTTP/1.1 307 x\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n",
        "200 OK\r\n\r\n",
    ] {
        let answer = send("", |mut stream, _| stream.write_all(text.as_bytes()).unwrap());
        assert!(matches!(answer, Answer::Later { .. }), "{text:?}: {answer:?}");
    }
}

#[test]
fn a_receiver_that_repeats_a_secret_does_not_make_us_say_it() {
    let path = std::env::temp_dir().join(format!("netsniff-echo-{}", std::process::id()));
    for (secret, query) in [("Bearer t0ken", "authorization"), ("t0ken", "user=me&password")] {
        std::fs::write(&path, secret).unwrap();
        for status in [400, 500] {
            let answer =
                send(&format!("&{query}=file:{}", path.display()), move |mut stream, text| {
                    let body = format!("who is t0ken? {text}");
                    let length = body.len();
                    write!(stream, "HTTP/1.1 {status} x\r\ncontent-length: {length}\r\n\r\n{body}")
                        .unwrap();
                });
            let (Answer::Later { why, .. } | Answer::Unfit { why }) = answer else { panic!() };
            // Basic has it in its own form.
            assert!(!why.contains("t0ken") && !why.contains("bWU6dDBrZW4"), "{why}");
            assert!(why.contains("who is ***?"), "{why}");
        }
    }
    std::fs::remove_file(path).unwrap();
}
