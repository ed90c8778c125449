//! MySQL, "Connection Phase" of its client/server protocol: how the sides agree on TLS, to which it hands
//! over. What follows otherwise is not looked at.

use super::{Bytes, Detection, Findings, Heads, Progress, Protocol, Role, Session, SessionContext};
use crate::record::LogType;

/// A client of a database.
#[derive(Debug)]
pub(super) struct MySql;

const PORTS: [u16; 2] = [3306, 1434];

/// Octets of the header of a packet: length in three octets, the lowest first, and number.
const HEADER_LEN: usize = 4;
/// Version of the greeting (`Protocol::HandshakeV10`).
const VERSION: u8 = 10;
/// Octets of the longest greeting and answer that are read.
const MAX_PACKET: usize = 4096;
/// Octets of a greeting behind the text of the server's version: thread, first eight octets of the challenge, nothing,
/// lower capabilities.
const MIN_BEHIND_VERSION: usize = 4 + 8 + 1 + 2;
/// `CLIENT_SSL` among the capabilities.
const CLIENT_SSL: u32 = 0x0800;
/// Octets of an answer up to the name of the user: capabilities, length, character set, nothing. A wish for TLS ends
/// there (`Protocol::SSLRequest`).
const SSL_REQUEST_LEN: usize = 4 + 4 + 1 + 23;

impl Protocol for MySql {
    fn name(&self) -> &'static str {
        "mysql"
    }

    fn analyzer(&self) -> &'static str {
        "MYSQL"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[]
    }

    fn tcp_ports(&self) -> &'static [u16] {
        &PORTS
    }

    /// The server begins with a greeting.
    fn detect(&self, heads: &Heads<'_>) -> Detection {
        if heads.is_midstream {
            return Detection::No;
        }
        let head = heads.responder;
        let begin = [None, None, Some(0), Some(0), Some(VERSION)];
        if !head.iter().zip(begin).all(|(octet, it)| it.is_none_or(|it| it == *octet)) {
            return Detection::No;
        }
        // Only a client that waits for the server can speak it.
        let is_packet = |head: &[u8]| head.get(3).is_none_or(|number| *number == 1);
        if !is_packet(heads.originator) {
            return Detection::No;
        }
        let Some(len) = packet_len(head).filter(|_| head.len() > HEADER_LEN) else {
            return Detection::Undecided;
        };
        let text = head.get(HEADER_LEN + 1..).unwrap_or_default();
        let version = text.split(|&octet| octet == 0).next().unwrap_or_default();
        let is_text = version.iter().all(u8::is_ascii_graphic)
            && version.first().is_none_or(u8::is_ascii_digit);
        let fits = HEADER_LEN + 1 + version.len() + 1 + MIN_BEHIND_VERSION <= len;
        match is_text && len <= MAX_PACKET && fits {
            true if version.len() < text.len() && !version.is_empty() => Detection::Yes,
            true if version.len() == text.len() => Detection::Undecided,
            _ => Detection::No,
        }
    }

    fn session(&self, _: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(MySqlSession::default())
    }
}

/// How a connection begins.
#[derive(Debug, Default)]
struct MySqlSession {
    is_greeted: bool,
    is_confirmed: bool,
}

impl Session for MySqlSession {
    fn bytes(&mut self, input: &Bytes<'_>, _: &mut Findings) -> Progress {
        if self.is_greeted == (input.from == Role::Responder) {
            return Progress::Wait;
        }
        let Some(len) = packet_len(input.data) else { return Progress::Need(HEADER_LEN) };
        if len > MAX_PACKET {
            return Progress::Done;
        }
        let Some(packet) = input.data.get(..len) else { return Progress::Need(len) };
        if !self.is_greeted {
            self.is_greeted = true;
            return Progress::Consumed(len);
        }
        let Some(capabilities) = packet.get(HEADER_LEN..).and_then(<[u8]>::first_chunk) else {
            return Progress::Done;
        };
        self.is_confirmed = packet[3] == 1;
        let wants_tls = u32::from_le_bytes(*capabilities) & CLIENT_SSL != 0;
        if self.is_confirmed && wants_tls && len == HEADER_LEN + SSL_REQUEST_LEN {
            Progress::Handover(len)
        } else {
            Progress::Done
        }
    }

    fn end(&mut self, _: &mut Findings) {}

    fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// Octets of a packet with its header; `None` where the header did not come yet.
fn packet_len(data: &[u8]) -> Option<usize> {
    let &[a, b, c, _] = data.first_chunk()?;
    Some(HEADER_LEN + u32::from_le_bytes([a, b, c, 0]) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(responder: &[u8], originator: &[u8]) -> Detection {
        MySql.detect(&Heads { originator, responder, port: 3306, is_midstream: false })
    }

    fn greeting(version: &[u8], behind: usize) -> Vec<u8> {
        let len = 1 + version.len() + 1 + behind;
        [&[len as u8, 0, 0, 0, VERSION], version, &vec![0; behind + 1]].concat()
    }

    #[test]
    fn a_greeting_is_found_however_much_of_it_is_there() {
        let whole = greeting(b"8.0.28", 40);
        for end in 0..whole.len() {
            let expected = if end < 12 { Detection::Undecided } else { Detection::Yes };
            assert_eq!(detect(&whole[..end], b""), expected, "{end}");
        }
        assert_eq!(detect(&whole, &[32, 0, 0, 1]), Detection::Yes);
        assert_eq!(detect(&whole, b"GET "), Detection::No);
        assert_eq!(detect(&greeting(b"8.0.28", 3), b""), Detection::No);
        assert_eq!(detect(&greeting(b"eight", 40), b""), Detection::No);
        assert_eq!(detect(&greeting(b"", 40), b""), Detection::No);
        assert_eq!(detect(b"SSH-2.0", b""), Detection::No);
        assert_eq!(detect(b"\x48\0\0\0\xff\x6a\x04Host", b""), Detection::No);
    }
}
