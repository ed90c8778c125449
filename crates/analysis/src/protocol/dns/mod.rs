//! DNS, RFC 1035, with its kin: NetBIOS names, multicast DNS and LLMNR.
//!
//! | module | concern |
//! |---|---|
//! | [`message`] | the octets of a message: header, names, questions, resource records |
//! | [`rdata`] | what a resource record says, as text |
//! | [`netbios`] | NetBIOS names within DNS names |
//! | [`names`] | words for types, classes and codes |
//! | [`transaction`] | a question with its answer: a row of the log |
//! | [`session`] | which answer belongs to which question |

mod message;
mod names;
mod netbios;
mod rdata;
mod session;
mod transaction;

pub use transaction::Transaction;

use core::time::Duration;

use super::{Exchange, Protocol, Session, Verdict};
use crate::limits::Limits;
use session::DnsSession;

/// Messages over UDP.
#[derive(Debug)]
pub(super) struct Dns;

/// Length of the header, RFC 1035 section 4.1.1.
const HEADER_LEN: usize = 12;

/// Questions beyond which Zeek takes a datagram for something else (`dns_max_queries`): much that is
/// no DNS runs on port 53.
const MAX_QUESTIONS: u16 = 25;

/// What Zeek reads: queries, notifications (RFC 1996) and updates (RFC 2136).
const OPCODES: [u8; 3] = [0, 4, UPDATE];

/// The opcode of updates, whose sections have other meanings.
const UPDATE: u8 = 5;

/// The port of NetBIOS names, whose messages have opcodes of their own (RFC 1002, 4.2.1.1).
const NETBIOS: u16 = 137;

impl Protocol for Dns {
    fn name(&self) -> &'static str {
        "dns"
    }

    fn analyzer(&self) -> &'static str {
        "DNS"
    }

    fn udp_ports(&self) -> &'static [u16] {
        &[53, NETBIOS, 5353, 5355]
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

    /// A resolver takes its port for one exchange. Zeek looks every `dns_session_timeout`, and
    /// takes a second less of silence for enough.
    fn exchange(&self) -> Option<Exchange> {
        Some(Exchange { interval: Duration::from_secs(10), silence: Duration::from_secs(9) })
    }

    fn session(&self, limits: &Limits) -> Box<dyn Session> {
        Box::new(DnsSession::new(limits.pending_messages, limits.pending_bytes))
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
