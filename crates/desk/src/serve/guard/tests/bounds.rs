//! Slow, silent, endless and many clients.

use std::io::ErrorKind;
use std::time::Instant;

use super::super::connections::{BODY, GRACE, HEAD, MOST};
use super::*;

const PATIENCE: Duration = Duration::from_millis(600);

fn impatient() -> Server {
    let mut guard = open(&[]).unwrap();
    guard.patience = PATIENCE;
    Server::start(guard)
}

fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    stream.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn heads_and_bodies_have_a_length() {
    let server = Server::with(&[]);
    let long = "a".repeat(HEAD);
    assert_eq!(server.status(&format!("GET / HTTP/1.1\r\nX: {long}")), 431);
    let post = |length: usize| {
        let mut stream = server.connect();
        let head = format!("POST /act HTTP/1.1\r\nContent-Length: {length}");
        stream.write_all(request(&head).as_bytes()).unwrap();
        let _ = stream.write_all(&vec![b'x'; length.min(BODY)]);
        Answer::read(&mut stream)
    };
    assert_eq!(post(BODY).body, format!("{BODY} bytes"));
    assert_eq!(server.ask("POST /act HTTP/1.1\r\nContent-Length: 99999999999").status, 413);
    // In chunks, whose sum nobody tells before.
    let mut stream = server.connect();
    stream
        .write_all(request("POST /act HTTP/1.1\r\nTransfer-Encoding: chunked").as_bytes())
        .unwrap();
    let chunk = format!("{BODY:x}\r\n{}\r\n", "x".repeat(BODY));
    stream.write_all(chunk.as_bytes()).unwrap();
    stream.write_all(b"1\r\nx\r\n").unwrap();
    assert_eq!(Answer::read(&mut stream).status, 413);
}

#[test]
fn heads_bodies_and_idle_connections_have_their_time() {
    let server = impatient();
    for sent in [
        "",
        "GET / HT",
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        "POST /act HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nhalf",
    ] {
        let begin = Instant::now();
        let mut stream = server.connect();
        stream.write_all(sent.as_bytes()).unwrap();
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        let took = begin.elapsed();
        assert!((PATIENCE..5 * PATIENCE).contains(&took), "{sent:?}: {took:?}");
        let said = String::from_utf8(said).unwrap();
        let is_whole = sent.starts_with("GET") && sent.ends_with("\r\n\r\n");
        assert_eq!(said.contains(" 200 "), is_whole, "{sent:?}: {said}");
        assert_eq!(said.contains(" 408 "), sent.contains("half"), "{sent:?}: {said}");
    }
}

#[test]
fn strangers_go_before_those_whom_pages_answer() {
    let server = Server::with(&[]);
    let mut watching = server.connect();
    begin_reading(&mut watching, "/events");
    let mut slow = server.connect();
    begin_reading(&mut slow, "/big");
    let idle: Vec<_> = (0..3 * MOST).map(|_| server.connect()).collect();
    let begin = Instant::now();
    assert_eq!(server.status("GET / HTTP/1.1"), 200);
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    let open = idle.iter().filter(|stream| is_open(stream)).count();
    assert!((1..MOST).contains(&open), "{open}");
    let mut some = [0; 64];
    for _ in 0..8 {
        watching.read_exact(&mut some).unwrap();
    }
    slow.read_exact(&mut some).unwrap();
}

#[test]
fn the_oldest_goes_where_all_are_answered() {
    let server = Server::with(&[]);
    let mut watching: Vec<_> = (0..MOST)
        .map(|_| {
            let mut stream = server.connect();
            begin_reading(&mut stream, "/events");
            stream
        })
        .collect();
    assert_eq!(server.status("GET / HTTP/1.1"), 200);
    let mut rest = Vec::new();
    let _ = watching[0].read_to_end(&mut rest);
    let mut some = [0; 64];
    watching[MOST - 1].read_exact(&mut some).unwrap();
}

#[test]
fn the_end_closes_streams_and_idle_connections() {
    let server = Server::with(&[]);
    let (mut watching, mut slow, mut idle) = (server.connect(), server.connect(), server.connect());
    begin_reading(&mut watching, "/events");
    begin_reading(&mut slow, "/big");
    let address = server.address;
    let begin = Instant::now();
    server.stop();
    assert!(begin.elapsed() < 4 * GRACE, "{:?}", begin.elapsed());
    let mut rest = Vec::new();
    for stream in [&mut watching, &mut slow, &mut idle] {
        let _ = stream.read_to_end(&mut rest);
    }
    assert!(TcpStream::connect(address).is_err());
}
