//! Dialogues of HTTP by hand: what is said, and what is found, however it is cut.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
pub(crate) use netsniff_analysis::protocol::Role;

pub(crate) use crate::conversations::{Cuts, Flow, Outcome, Turn, What, play};

pub(crate) const PROXY: Flow = Flow::at(3_128);
pub(crate) const ELSEWHERE: Flow = Flow::at(4_000);

pub(crate) fn says(from: Role, bytes: impl Into<Vec<u8>>) -> Turn {
    Turn { from, what: What::Bytes(bytes.into()) }
}

pub(crate) fn client(bytes: impl Into<Vec<u8>>) -> Turn {
    says(Role::Originator, bytes)
}

pub(crate) fn server(bytes: impl Into<Vec<u8>>) -> Turn {
    says(Role::Responder, bytes)
}

pub(crate) fn gap(from: Role, len: u64) -> Turn {
    Turn { from, what: What::Gap(len) }
}

pub(crate) fn end(from: Role) -> Turn {
    Turn { from, what: What::End }
}

/// What is found, in order of the text, without the columns that say nothing here; the same however
/// the streams are cut.
pub(crate) fn found_in(turns: &[Turn], flow: Flow) -> Vec<String> {
    let sorted = |cuts| {
        let outcome = play(turns, flow, cuts);
        let mut lines: Vec<String> = all(&outcome).map(|line| short(line)).collect();
        lines.sort();
        lines.extend(outcome.services.map(|services| format!("service {services}")));
        lines
    };
    let whole = sorted(Cuts::None);
    assert_eq!(sorted(Cuts::Everywhere), whole, "byte by byte");
    for role in [Role::Originator, Role::Responder] {
        let bytes = turns.iter().filter(|turn| turn.from == role).map(|turn| match &turn.what {
            What::Bytes(bytes) => bytes.len(),
            What::Gap(_) | What::End => 0,
        });
        for at in 1..bytes.sum::<usize>().min(3_000) {
            assert_eq!(sorted(Cuts::At(role, at)), whole, "cut at {at} of the {role:?}");
        }
    }
    whole
}

/// Rows and oddities.
pub(crate) fn all(outcome: &Outcome) -> impl Iterator<Item = &String> {
    outcome.oddities.iter().chain(&outcome.lines)
}

pub(crate) fn short(line: &str) -> String {
    let boring = [
        "ts=",
        "uid=",
        "id.",
        "tags=",
        "request_body_len=0",
        "response_body_len=0",
        "fuid=",
        "orig_fuids=",
        "resp_fuids=",
        "source=",
        "depth=",
        "analyzers=",
        "duration=",
        "local_orig=",
        "missing_bytes=0",
        "overflow_bytes=0",
        "timedout=false",
        "partly_decoded=false",
    ];
    let words = line.split(' ').filter(|word| !boring.iter().any(|begin| word.starts_with(begin)));
    words.collect::<Vec<_>>().join(" ")
}

pub(crate) fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(text).unwrap();
    gzip.finish().unwrap()
}

/// An upgrade to WebSocket, RFC 6455 section 1.3.
pub(crate) const UPGRADE: &str = "GET /chat HTTP/1.1\r\nHost: h\r\nUser-Agent: ua\r\nConnection: Upgrade\r\n\
                       Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                       Sec-WebSocket-Protocol: chat, superchat\r\n\r\n";

/// The response to it.
pub(crate) fn switched(accept: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 101 Switching\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    )
    .into_bytes()
}
