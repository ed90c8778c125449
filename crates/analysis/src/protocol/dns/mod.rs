//! DNS, RFC 1035, with its kin: NetBIOS names, multicast DNS and LLMNR.
//!
//! | module | concern |
//! |---|---|
//! | [`message`] | the octets of a message: header, names, questions, resource records |
//! | [`answers`] | the join that finds which answer a connection followed |
//! | [`framing`] | where messages of a stream begin, also behind what is missing |
//! | [`rdata`] | what a resource record says, as text |
//! | [`netbios`] | NetBIOS names within DNS names |
//! | [`names`] | words for types, classes and codes |
//! | [`recognition`] | whether octets are surely a message, on any port |
//! | [`transaction`] | a question with its answer: a row of the log |
//! | [`allotment`] | which question of a message a record answers |
//! | [`update`] | what an update changes, as text |
//! | [`resolution`] | what an answer tells of addresses |
//! | [`log`] | the log |
//! | [`session`] | which answer belongs to which question |

mod allotment;
pub(super) mod answers;
mod framing;
mod log;
mod message;
mod names;
mod netbios;
mod rdata;
mod recognition;
mod resolution;
mod session;
mod transaction;
mod update;

pub use resolution::Resolution;

use core::ops::RangeInclusive;
use core::time::Duration;

use super::{
    DatagramVerdict, Detection, ExchangeTiming, Heads, Protocol, Role, Session, SessionContext,
};
use crate::correlator::MakeJoin;
use crate::record::LogType;
use answers::Answers;
use message::Header;
use session::DnsSession;

/// DNS over UDP (RFC 1035, 4.2.1).
#[derive(Debug)]
pub(super) struct Dns;

/// Length of the header, RFC 1035 section 4.1.1.
const HEADER_LEN: usize = 12;

/// Length of the length before each message over TCP, RFC 1035 section 4.2.2.
const LENGTH_LEN: usize = 2;

/// Questions beyond which Zeek takes a datagram for something else (`dns_max_queries`): much that is
/// no DNS runs on port 53.
const MAX_QUESTIONS: u16 = 25;

/// What Zeek reads: queries, notifications (RFC 1996) and updates (RFC 2136).
const OPCODES: [u8; 3] = [0, 4, UPDATE];

/// The opcode of updates, whose sections have other meanings.
const UPDATE: u8 = 5;

/// The port of DNS.
const PORT: u16 = 53;

/// The port of link-local multicast name resolution (RFC 4795).
const LLMNR: u16 = 5355;

/// The port of NetBIOS names, whose messages have opcodes of their own (RFC 1002, 4.2.1.1).
const NETBIOS: u16 = 137;

impl Protocol for Dns {
    fn name(&self) -> &'static str {
        "dns"
    }

    fn analyzer(&self) -> &'static str {
        "DNS"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[log::Dns::LOG]
    }

    fn joins(&self) -> &'static [MakeJoin] {
        &[Answers::join]
    }

    fn udp_ports(&self) -> &'static [u16] {
        &[PORT, NETBIOS, 5353, LLMNR]
    }

    /// As in Zeek the header is believed, also where the rest is no message.
    fn sender(&self, _port: u16, payload: &[u8]) -> Option<Role> {
        let is_response = Header::of(payload)?.is_response();
        Some(if is_response { Role::Responder } else { Role::Originator })
    }

    fn is_datagram_alone(&self) -> bool {
        true
    }

    fn datagram_heads(&self) -> &'static [RangeInclusive<u8>] {
        &[0..=u8::MAX]
    }

    fn detect_datagram(&self, payload: &[u8]) -> bool {
        recognition::is_message(payload)
    }

    fn tcp_ports(&self) -> &'static [u16] {
        &[PORT, LLMNR]
    }

    /// On its ports a header tells; on others a whole message must be there that is surely one.
    fn detect(&self, heads: &Heads<'_>) -> Detection {
        let is_known = self.tcp_ports().contains(&heads.port);
        let look = if is_known {
            looks_like_a_message
        } else if heads.is_midstream {
            return Detection::No;
        } else {
            begins_surely
        };
        match [heads.originator, heads.responder].map(look) {
            [Detection::No, _] | [_, Detection::No] => Detection::No,
            [Detection::Yes, _] | [_, Detection::Yes] => Detection::Yes,
            [Detection::Undecided, Detection::Undecided] => Detection::Undecided,
        }
    }

    /// A resolver takes its port for one exchange. Zeek looks every `dns_session_timeout`, and
    /// takes a second less of silence for enough.
    fn exchange(&self) -> Option<ExchangeTiming> {
        Some(ExchangeTiming { interval: Duration::from_secs(10), silence: Duration::from_secs(9) })
    }

    fn session(&self, context: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(DnsSession::new(context))
    }
}

/// Octets of a message for which one that is no DNS is waited for, to see what comes behind it.
const MAX_JUNK: usize = 1_024;

/// Whether a stream begins with messages behind their lengths. Those that are no DNS may come before.
fn looks_like_a_message(mut head: &[u8]) -> Detection {
    loop {
        let Some((length, rest)) = head.split_first_chunk::<LENGTH_LEN>() else {
            return Detection::Undecided;
        };
        let len = usize::from(u16::from_be_bytes(*length));
        let message = rest.get(..len).unwrap_or(rest);
        if len >= HEADER_LEN {
            match Header::of(message) {
                None => return Detection::Undecided,
                Some(header) if header.verdict(PORT) == DatagramVerdict::Fits => {
                    return Detection::Yes;
                }
                Some(_) if len > MAX_JUNK => return Detection::No,
                Some(_) => {}
            }
        }
        let Some(behind) = rest.get(len..) else { return Detection::Undecided };
        head = behind;
    }
}

/// Octets of the longest message by which a stream is known on any port.
const MAX_FIRST: usize = 1_024;

/// Whether a stream begins with what is surely a message behind its length.
fn begins_surely(head: &[u8]) -> Detection {
    let Some((length, rest)) = head.split_first_chunk::<LENGTH_LEN>() else {
        let is_short = head.first().is_none_or(|high| usize::from(*high) <= MAX_FIRST >> 8);
        return if is_short { Detection::Undecided } else { Detection::No };
    };
    let len = usize::from(u16::from_be_bytes(*length));
    let message = rest.get(..len).unwrap_or(rest);
    if !(HEADER_LEN..=MAX_FIRST).contains(&len) || !recognition::may_begin(message) {
        Detection::No
    } else if message.len() < len {
        Detection::Undecided
    } else if recognition::is_message(message) {
        Detection::Yes
    } else {
        Detection::No
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_response_bit_tells_who_speaks() {
        let mut message = [0; HEADER_LEN];
        assert_eq!(Dns.sender(53, &message), Some(Role::Originator));
        message[2] = 0x81;
        assert_eq!(Dns.sender(53, &message), Some(Role::Responder));
        assert_eq!(Dns.sender(53, &message[..11]), None);
    }

    fn verdict(port: u16, message: &[u8; HEADER_LEN]) -> DatagramVerdict {
        Header::of(message).unwrap().verdict(port)
    }

    #[test]
    fn more_questions_than_anybody_asks_are_no_dns() {
        let mut message = [0; HEADER_LEN];
        message[5] = 25;
        assert_eq!(verdict(53, &message), DatagramVerdict::Fits);
        message[5] = 26;
        assert_eq!(verdict(53, &message), DatagramVerdict::Contradicts);
        message[2] = 0x80;
        assert_eq!(verdict(53, &message), DatagramVerdict::Contradicts);
        assert_eq!(Dns.sender(53, &message), Some(Role::Responder), "believed all the same");
    }

    #[test]
    fn a_stream_is_known_by_a_message_behind_its_length() {
        let mut query = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        query.extend(b"\x03www\x07example\x00\x00\x01\x00\x01");
        let framed = |message: &[u8]| [&(message.len() as u16).to_be_bytes()[..], message].concat();
        let detect = |originator: &[u8], responder: &[u8], port| {
            Dns.detect(&Heads { originator, responder, port, is_midstream: false })
        };
        let stream = framed(&query);
        for port in [53, 5355, 8053] {
            assert_eq!(detect(&stream, b"", port), Detection::Yes, "{port}");
            assert_eq!(detect(&stream[..10], b"", port), Detection::Undecided, "{port}");
        }
        assert_eq!(detect(&framed(&[0xff; 20]), b"", 8053), Detection::No);
        assert_eq!(detect(&framed(&[0xff; 20]), b"", 53), Detection::Undecided);
        let behind_junk = [framed(&[0xff; 20]), framed(b"x"), stream.clone()].concat();
        assert_eq!(detect(&behind_junk, b"", 53), Detection::Yes);
        for text in [&b"GET / HTTP/1.1\r\n"[..], b"\x16\x03\x01\x02\x00", b"SSH-2.0-x"] {
            assert_eq!(detect(text, b"", 8053), Detection::No);
            assert_eq!(detect(&stream, text, 8053), Detection::No);
        }
        assert_eq!(detect(&b"GET / HTTP/1.1\r\n\r\n".repeat(9), b"", 53), Detection::No);
    }

    #[test]
    fn opcodes_that_dns_does_not_have_are_unknown_except_for_netbios() {
        for opcode in 0..16 {
            let mut message = [0; HEADER_LEN];
            message[2] = opcode << 3;
            assert_eq!(verdict(NETBIOS, &message), DatagramVerdict::Fits);
            let expected = match opcode {
                0 | 4 | 5 => DatagramVerdict::Fits,
                _ => DatagramVerdict::Unknown,
            };
            assert_eq!(verdict(53, &message), expected, "{opcode}");
        }
    }
}
