//! DNS, RFC 1035, with its kin: NetBIOS names, multicast DNS and LLMNR.
//!
//! | module | concern |
//! |---|---|
//! | [`message`] | the octets of a message: header, names, questions, resource records |
//! | [`rdata`] | what a resource record says, as text |
//! | [`netbios`] | NetBIOS names within DNS names |
//! | [`names`] | words for types, classes and codes |
//! | [`transaction`] | a question with its answer: a row of the log |
//! | [`resolution`] | what an answer tells of addresses |
//! | [`session`] | which answer belongs to which question |

mod message;
mod names;
mod netbios;
mod rdata;
mod resolution;
mod session;
mod transaction;

pub use resolution::Resolution;
pub use transaction::Transaction;

use core::time::Duration;

use super::{Context, Detection, Exchange, Heads, Protocol, Session, Verdict};
use session::DnsSession;

/// Messages over UDP.
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

/// The port of NetBIOS names, whose messages have opcodes of their own (RFC 1002, 4.2.1.1).
const NETBIOS: u16 = 137;

impl Protocol for Dns {
    fn name(&self) -> &'static str {
        "dns"
    }

    fn analyzer(&self) -> &'static str {
        "DNS"
    }

    fn logs(&self) -> &'static [&'static str] {
        &["dns"]
    }

    fn udp_ports(&self) -> &'static [u16] {
        &[PORT, NETBIOS, 5353, 5355]
    }

    fn datagram(&self, port: u16, payload: &[u8]) -> Verdict {
        // Zeek waits for more after a datagram that is too short.
        let Some(header) = payload.first_chunk::<HEADER_LEN>() else { return Verdict::Unclear };
        let from_server = header[2] & 0x80 != 0;
        if u16::from_be_bytes([header[4], header[5]]) > MAX_QUESTIONS {
            Verdict::Contradicts { from_server }
        } else if port != NETBIOS && !OPCODES.contains(&(header[2] >> 3 & 0xf)) {
            Verdict::Unknown { from_server }
        } else if from_server {
            Verdict::FromServer
        } else {
            Verdict::FromClient
        }
    }

    fn tcp_ports(&self) -> &'static [u16] {
        &[PORT]
    }

    /// Lengths and small numbers are no proof, so the port must say so, too.
    fn detect(&self, heads: &Heads<'_>) -> Detection {
        if heads.port != PORT {
            return Detection::No;
        }
        let looks = [heads.originator, heads.responder].map(looks_like_a_message);
        match looks {
            [Detection::No, _] | [_, Detection::No] => Detection::No,
            [Detection::Yes, _] | [_, Detection::Yes] => Detection::Yes,
            [Detection::Undecided, Detection::Undecided] => Detection::Undecided,
        }
    }

    /// A resolver takes its port for one exchange. Zeek looks every `dns_session_timeout`, and
    /// takes a second less of silence for enough.
    fn exchange(&self) -> Option<Exchange> {
        Some(Exchange { interval: Duration::from_secs(10), silence: Duration::from_secs(9) })
    }

    fn session(&self, context: &Context<'_>) -> Box<dyn Session> {
        Box::new(DnsSession::new(context))
    }
}

/// Whether a stream begins with a message behind its length.
fn looks_like_a_message(head: &[u8]) -> Detection {
    let Some((length, message)) = head.split_first_chunk::<LENGTH_LEN>() else {
        return Detection::Undecided;
    };
    if usize::from(u16::from_be_bytes(*length)) < HEADER_LEN {
        return Detection::No;
    }
    match (Dns.datagram(PORT, message), message.len() < HEADER_LEN) {
        (_, true) => Detection::Undecided,
        (Verdict::FromClient | Verdict::FromServer, _) => Detection::Yes,
        _ => Detection::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_response_bit_tells_who_speaks() {
        let mut message = [0; HEADER_LEN];
        assert_eq!(Dns.datagram(53, &message), Verdict::FromClient);
        message[2] = 0x81;
        assert_eq!(Dns.datagram(53, &message), Verdict::FromServer);
        assert_eq!(Dns.datagram(53, &message[..11]), Verdict::Unclear);
    }

    #[test]
    fn more_questions_than_anybody_asks_are_no_dns() {
        let mut message = [0; HEADER_LEN];
        message[5] = 25;
        assert_eq!(Dns.datagram(53, &message), Verdict::FromClient);
        message[5] = 26;
        assert_eq!(Dns.datagram(53, &message), Verdict::Contradicts { from_server: false });
        message[2] = 0x80;
        assert_eq!(Dns.datagram(53, &message), Verdict::Contradicts { from_server: true });
    }

    #[test]
    fn opcodes_that_dns_does_not_have_are_unknown_except_for_netbios() {
        for opcode in 0..16 {
            let mut message = [0; HEADER_LEN];
            message[2] = opcode << 3;
            assert_eq!(Dns.datagram(NETBIOS, &message), Verdict::FromClient);
            let expected = match opcode {
                0 | 4 | 5 => Verdict::FromClient,
                _ => Verdict::Unknown { from_server: false },
            };
            assert_eq!(Dns.datagram(53, &message), expected, "{opcode}");
        }
    }
}
