//! Real sockets: who is served, who is refused, and who holds up nobody.

mod admission;
mod bounds;
mod secrets;
mod tls;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::{get, post};
use clap::Parser;
use tokio::sync::oneshot;

use super::admission::Door;
use super::{Guard, Listening};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    listening: Listening,
}

/// What arguments amount to; port 0 of loopback where they name no other.
fn open(arguments: &[&str]) -> anyhow::Result<Guard> {
    let mut words = vec!["serve"];
    if !arguments.contains(&"--listen") {
        words.extend(["--listen", "127.0.0.1:0"]);
    }
    words.extend(arguments);
    Command::try_parse_from(words).unwrap().listening.open()
}

/// A server in a thread of its own.
struct Server {
    address: SocketAddr,
    /// What it is opened by, with the token.
    url: String,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(guard: Guard) -> Self {
        let address = guard.listener.local_addr().unwrap();
        let url = guard.address();
        let (end, ended) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let end = async { ended.await.unwrap_or(()) };
            runtime.block_on(guard.serve(pages(), end)).unwrap();
        });
        Self { address, url, end: Some(end), thread: Some(thread) }
    }

    fn with(arguments: &[&str]) -> Self {
        Self::start(open(arguments).unwrap())
    }

    /// The token in the address that it tells.
    fn token(&self) -> &str {
        self.url.split_once("?token=").expect("a token in the address").1
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends a head without its end, with a host unless it has one, and reads the answer.
    fn ask(&self, head: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request(head).as_bytes()).unwrap();
        Answer::read(&mut stream)
    }

    fn status(&self, head: &str) -> u16 {
        self.ask(head).status
    }

    fn stop(mut self) {
        self.end.take().unwrap().send(()).unwrap();
        self.thread.take().unwrap().join().unwrap();
    }
}

/// A request whose connection ends with its answer.
fn request(head: &str) -> String {
    let host = if head.contains("Host:") { "" } else { "\r\nHost: 127.0.0.1" };
    format!("{head}{host}\r\nConnection: close\r\n\r\n")
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn read(stream: &mut impl std::io::Read) -> Self {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let named = |line: &&str| {
            line.split_once(':').is_some_and(|(its, _)| its.eq_ignore_ascii_case(name))
        };
        self.head.lines().find(named).map(|line| line.split_once(':').unwrap().1.trim())
    }
}

/// A page, an action that counts the bytes it was sent, events without an end, and more than any buffer holds.
fn pages() -> Router {
    Router::new()
        .route("/", get(|| async { "the page" }))
        .route("/act", post(|body: Bytes| async move { format!("{} bytes", body.len()) }))
        .route("/events", get(|| async { endless(Duration::from_millis(20), 8) }))
        .route("/big", get(|| async { endless(Duration::ZERO, 1 << 16) }))
}

fn endless(pause: Duration, length: usize) -> Body {
    let (send, receive) = tokio::sync::mpsc::channel::<std::io::Result<Bytes>>(1);
    tokio::spawn(async move {
        while send.send(Ok(vec![b'x'; length].into())).await.is_ok() {
            tokio::time::sleep(pause).await;
        }
    });
    Body::from_stream(tokio_stream::wrappers::ReceiverStream::new(receive))
}

/// Reads some of an endless answer.
fn begin_reading(stream: &mut TcpStream, path: &str) {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
    let mut some = [0; 64];
    stream.read_exact(&mut some).unwrap();
    assert!(some.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&some));
}

/// Serves these users alone.
fn for_users(users: &[u32]) -> Server {
    let mut guard = open(&[]).unwrap();
    guard.rules.door = Door::Users(super::users::Users::these(users));
    Server::start(guard)
}
