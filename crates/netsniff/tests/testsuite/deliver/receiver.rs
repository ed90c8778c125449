//! A receiver of HTTP that does as it is told: it takes rows, refuses, hangs, or goes in the middle.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request.
pub(super) struct Request {
    /// Its number, from 0 on.
    pub(super) number: usize,
    /// Its first line.
    pub(super) line: String,
    /// Its header, in lower letters.
    pub(super) header: String,
    pub(super) body: String,
}

impl Request {
    /// The rows of lines of JSON.
    pub(super) fn rows(&self) -> Vec<String> {
        self.body.lines().map(str::to_owned).collect()
    }
}

/// What a receiver does with a request.
pub(super) enum Act {
    /// Takes the rows, and says so.
    Take,
    /// Takes these rows, and answers a body with 200.
    TakeOnly(Vec<String>, String),
    /// Takes no row, and answers with a status, further lines of a header, and a body.
    Refuse(u16, &'static str, &'static str),
    /// Takes the rows, and goes in the middle of the answer.
    TakeAndCut,
    /// Goes without an answer.
    Cut,
    /// Says nothing for so long.
    Hang(Duration),
}

/// Listens on loopback until the test ends.
pub(super) struct Receiver {
    pub(super) port: u16,
    taken: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    pub(super) fn start(act: impl FnMut(&Request) -> Act + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self::listen(listener, act)
    }

    pub(super) fn listen(
        listener: TcpListener,
        act: impl FnMut(&Request) -> Act + Send + 'static,
    ) -> Self {
        let port = listener.local_addr().unwrap().port();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let (act, number) = (Arc::new(Mutex::new(act)), Arc::new(Mutex::new(0)));
        let into = Arc::clone(&taken);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (act, number, into) =
                    (Arc::clone(&act), Arc::clone(&number), Arc::clone(&into));
                thread::spawn(move || {
                    let mut reader = BufReader::new(stream);
                    while let Some(mut request) = read(&mut reader) {
                        let act = {
                            let mut number = number.lock().unwrap();
                            request.number = *number;
                            *number += 1;
                            (act.lock().unwrap())(&request)
                        };
                        if !answer(&act, &request, reader.get_mut(), &into) {
                            return;
                        }
                    }
                });
            }
        });
        Self { port, taken }
    }

    /// All rows that were taken, in their order, also those that came twice.
    pub(super) fn taken(&self) -> Vec<String> {
        self.taken.lock().unwrap().clone()
    }

    /// The rows without their identity, by log and number. A row that came twice is there once, and is the same.
    pub(super) fn logs(&self) -> Logs {
        let mut logs = Logs::new();
        for row in self.taken() {
            let (log, seq, json) = parts(&row);
            let before = logs.entry(log).or_default().insert(seq, json.clone());
            assert!(before.is_none_or(|before| before == json), "two rows have one name: {row}");
        }
        logs
    }
}

/// Rows by log and number.
pub(super) type Logs = BTreeMap<String, BTreeMap<u64, String>>;

/// The log of a row, its number, and the row without its identity.
pub(super) fn parts(row: &str) -> (String, u64, String) {
    let value: serde_json::Value =
        serde_json::from_str(row).unwrap_or_else(|_| panic!("{row} is no JSON"));
    let (log, seq) = (value["log"].as_str().unwrap(), value["seq"].as_u64().unwrap());
    let head = format!(
        "{{\"sensor\":{},\"run\":{},\"log\":\"{log}\",\"seq\":{seq}",
        value["sensor"], value["run"]
    );
    let rest =
        row.strip_prefix(&head).unwrap_or_else(|| panic!("{row} does not begin with {head}"));
    (log.to_owned(), seq, format!("{{{}", rest.trim_start_matches(',')))
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let (mut line, mut header) = (String::new(), String::new());
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    while !header.ends_with("\r\n\r\n") && header != "\r\n" {
        reader.read_line(&mut header).ok().filter(|length| *length > 0)?;
    }
    let header = header.to_lowercase();
    let length = header
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))?
        .trim()
        .parse()
        .ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { number: 0, line, header, body: String::from_utf8(body).unwrap() })
}

/// Returns whether the connection goes on.
fn answer(act: &Act, request: &Request, stream: &mut TcpStream, into: &Mutex<Vec<String>>) -> bool {
    let reply = |status: u16, header: &str, body: &str| {
        format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n{header}\r\n{body}", body.len())
    };
    let text = match act {
        Act::Take => {
            into.lock().unwrap().extend(request.rows());
            reply(200, "", "")
        }
        Act::TakeOnly(rows, body) => {
            into.lock().unwrap().extend(rows.iter().cloned());
            reply(200, "content-type: application/json\r\n", body)
        }
        Act::Refuse(status, header, body) => reply(*status, header, body),
        Act::TakeAndCut => {
            into.lock().unwrap().extend(request.rows());
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-le");
            return false;
        }
        Act::Cut => return false,
        Act::Hang(length) => {
            thread::sleep(*length);
            return false;
        }
    };
    stream.write_all(text.as_bytes()).is_ok()
}
