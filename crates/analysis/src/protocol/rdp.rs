//! RDP, [MS-RDPBCGR] section 2.2.1: how its sides agree on TLS, to which it hands over. What follows
//! otherwise is not looked at.

use super::{Bytes, Detection, Findings, Heads, Progress, Protocol, Role, Session, SessionContext};
use crate::record::LogType;

/// A terminal with a Windows host.
#[derive(Debug)]
pub(super) struct Rdp;

/// The port of RDP.
const PORT: u16 = 3389;

/// Octets of a TPKT header, RFC 1006 section 6: version, nothing, length.
const TPKT_LEN: usize = 4;
/// Octets of a connection request or confirm of X.224, section 13.3, without what is variable: length,
/// code, both references, class.
const X224_LEN: usize = 7;
/// Code of a connection request.
const REQUEST: u8 = 0xe0;
/// Code of a connection confirm.
const CONFIRM: u8 = 0xd0;
/// `TYPE_RDP_NEG_REQ`.
const NEGOTIATION_REQUEST: u8 = 1;
/// `TYPE_RDP_NEG_RSP`.
const NEGOTIATION_RESPONSE: u8 = 2;
/// Octets of the longest packet of a negotiation. The length of X.224 has one octet.
const MAX_PACKET: usize = TPKT_LEN + 1 + 255;

impl Protocol for Rdp {
    fn name(&self) -> &'static str {
        "rdp"
    }

    fn analyzer(&self) -> &'static str {
        "RDP"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[]
    }

    fn tcp_ports(&self) -> &'static [u16] {
        &[PORT]
    }

    /// The client begins with a connection request of X.224, which other protocols have, too (S7,
    /// MMS): what is variable tells, a cookie, a routing token or a negotiation.
    fn detect(&self, heads: &Heads<'_>) -> Detection {
        if heads.is_midstream {
            return Detection::No;
        }
        let head = heads.originator;
        let begin = [Some(3), Some(0), Some(0), None, None, Some(REQUEST), Some(0), Some(0)];
        let is_begin = head.iter().zip(begin).all(|(octet, it)| it.is_none_or(|it| it == *octet));
        if !is_begin {
            return Detection::No;
        }
        let Some(len) = head.get(3).map(|len| usize::from(*len)) else {
            return Detection::Undecided;
        };
        let variable = TPKT_LEN + X224_LEN;
        let fits = head.get(TPKT_LEN).is_none_or(|it| usize::from(*it) + TPKT_LEN + 1 == len);
        match head.get(variable) {
            _ if len < variable || !fits => Detection::No,
            None if len == variable && head.len() == len => match heads.port {
                PORT => Detection::Yes,
                _ => Detection::No,
            },
            None => Detection::Undecided,
            Some(b'C' | b'm' | b't' | &NEGOTIATION_REQUEST) => Detection::Yes,
            Some(_) => Detection::No,
        }
    }

    fn session(&self, _: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(RdpSession::default())
    }
}

/// The negotiation of security ([MS-RDPBCGR], 1.3.1.1).
#[derive(Debug, Default)]
struct RdpSession {
    has_asked: bool,
    is_confirmed: bool,
}

impl Session for RdpSession {
    fn bytes(&mut self, input: &Bytes<'_>, _: &mut Findings) -> Progress {
        if input.from == Role::Originator && self.has_asked {
            return Progress::Wait;
        }
        if input.from == Role::Responder && !self.has_asked {
            return Progress::Wait;
        }
        let Some(&[3, _, high, low]) = input.data.first_chunk::<TPKT_LEN>() else {
            return match input.data.first() {
                Some(3) if input.data.len() < TPKT_LEN => Progress::Need(TPKT_LEN),
                _ => Progress::Contradicts("malformed_RDP_packet"),
            };
        };
        let len = usize::from(u16::from_be_bytes([high, low]));
        if !(TPKT_LEN + X224_LEN..=MAX_PACKET).contains(&len) {
            return Progress::Contradicts("malformed_RDP_packet");
        }
        let Some(packet) = input.data.get(..len) else { return Progress::Need(len) };
        match (input.from, packet.get(TPKT_LEN + 1)) {
            (Role::Originator, Some(&REQUEST)) => {
                self.has_asked = true;
                Progress::Consumed(len)
            }
            (Role::Responder, Some(&CONFIRM)) => {
                self.is_confirmed = true;
                if has_chosen_tls(packet) { Progress::Handover(len) } else { Progress::Done }
            }
            _ => Progress::Contradicts("malformed_RDP_packet"),
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

/// Whether a connection confirm chooses TLS, or what is done within TLS: anything but the encryption of
/// RDP itself ([MS-RDPBCGR] section 2.2.1.2.1).
fn has_chosen_tls(packet: &[u8]) -> bool {
    match packet.get(TPKT_LEN + X224_LEN..) {
        Some(&[NEGOTIATION_RESPONSE, _, 8, 0, a, b, c, d, ..]) => [a, b, c, d] != [0; 4],
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(code: u8, variable: &[u8]) -> Vec<u8> {
        let len = (TPKT_LEN + X224_LEN + variable.len()) as u8;
        [&[3, 0, 0, len, len - 5, code, 0, 0, 0, 0, 0], variable].concat()
    }

    fn detect(originator: &[u8], port: u16) -> Detection {
        Rdp.detect(&Heads { originator, responder: b"", port, is_midstream: false })
    }

    #[test]
    fn a_request_of_rdp_is_told_from_others_of_x224() {
        let negotiation = [1, 0, 8, 0, 3, 0, 0, 0];
        for variable in [&b"Cookie: mstshash=user\r\n"[..], &negotiation] {
            let request = packet(REQUEST, variable);
            for len in 0..request.len() {
                let found = detect(&request[..len], 4000);
                let right = if len <= 11 { Detection::Undecided } else { Detection::Yes };
                assert_eq!(found, right, "{len}");
            }
        }
        // S7 names its ends.
        assert_eq!(detect(&packet(REQUEST, &[0xc1, 2, 1, 0]), 102), Detection::No);
        assert_eq!(detect(&packet(REQUEST, &[]), PORT), Detection::Yes);
        assert_eq!(detect(&packet(REQUEST, &[]), 102), Detection::No);
        assert_eq!(detect(&packet(0xf0, &negotiation), PORT), Detection::No);
    }
}
