//! Telnet, RFC 854: recognised, and no more. Who types what is not looked at.

use super::{
    Bytes, Detection, Findings, GapAction, Heads, MissingBytes, Progress, Protocol, Session,
    SessionContext,
};
use crate::record::LogType;

/// A terminal with a host.
#[derive(Debug)]
pub(super) struct Telnet;

/// The port of telnet.
const PORT: u16 = 23;

/// "Interpret as command".
const IAC: u8 = 255;
/// WILL, WONT, DO and DONT, behind which an option follows.
const NEGOTIATIONS: core::ops::RangeInclusive<u8> = 251..=254;
/// Options that have a meaning: those of IANA's registry below 50, and the last one, by which its
/// list may be extended (RFC 861).
const EXTENDED_OPTIONS: u8 = 255;
const LAST_OPTION: u8 = 49;

impl Protocol for Telnet {
    fn name(&self) -> &'static str {
        "telnet"
    }

    fn analyzer(&self) -> &'static str {
        "TELNET"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[]
    }

    fn tcp_ports(&self) -> &'static [u16] {
        &[PORT]
    }

    /// One side that begins by negotiating an option is enough on the port of telnet. On others it
    /// must be the server, with two that follow each other.
    fn detect(&self, heads: &Heads<'_>) -> Detection {
        if heads.port == PORT {
            let sides = [heads.originator, heads.responder].map(|head| negotiates(head, 1));
            return match sides {
                [Detection::Yes, _] | [_, Detection::Yes] => Detection::Yes,
                [Detection::No, Detection::No] => Detection::No,
                _ => Detection::Undecided,
            };
        }
        if heads.is_midstream { Detection::No } else { negotiates(heads.responder, 2) }
    }

    fn session(&self, _: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(TelnetSession)
    }
}

/// Whether a stream begins with so many negotiations.
fn negotiates(head: &[u8], wanted: usize) -> Detection {
    let mut commands = head.chunks(3);
    for _ in 0..wanted {
        let is_sound = match commands.next() {
            None => return Detection::Undecided,
            Some(command) => command.iter().enumerate().all(|(at, byte)| match at {
                0 => *byte == IAC,
                1 => NEGOTIATIONS.contains(byte),
                _ => *byte <= LAST_OPTION || *byte == EXTENDED_OPTIONS,
            }),
        };
        if !is_sound {
            return Detection::No;
        }
    }
    if head.len() < 3 * wanted { Detection::Undecided } else { Detection::Yes }
}

/// A connection, of which nothing more is looked at.
#[derive(Debug)]
struct TelnetSession;

impl Session for TelnetSession {
    fn bytes(&mut self, _: &Bytes<'_>, _: &mut Findings) -> Progress {
        Progress::Done
    }

    fn gap(&mut self, _: &MissingBytes<'_>, _: &mut Findings) -> GapAction {
        GapAction::Abort
    }

    fn end(&mut self, _: &mut Findings) {}

    fn is_confirmed(&self) -> bool {
        true
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(responder: &[u8], port: u16) -> Detection {
        Telnet.detect(&Heads { originator: b"", responder, port, is_midstream: false })
    }

    #[test]
    fn options_tell() {
        assert_eq!(detect(b"\xff\xfd\x18", 23), Detection::Yes);
        assert_eq!(detect(b"\xff\xfd", 23), Detection::Undecided);
        assert_eq!(detect(b"\xff\xd8\xff", 2323), Detection::No);
        assert_eq!(detect(b"login: ", 23), Detection::Undecided);
        assert_eq!(detect(b"\xff\xfd\x18", 2323), Detection::Undecided);
        assert_eq!(detect(b"\xff\xfd\x18\xff\xfb\x01", 2323), Detection::Yes);
        assert_eq!(detect(b"\xff\xfd\x18login", 2323), Detection::No);
        assert_eq!(detect(b"\xff\xfb\x90", 2323), Detection::No);
        let both = |originator, responder| {
            Telnet.detect(&Heads { originator, responder, port: PORT, is_midstream: true })
        };
        assert_eq!(both(b"\xff\xfd\x03", b""), Detection::Yes);
        assert_eq!(both(b"root\r\n", b"login: "), Detection::No);
    }
}
