//! XMPP, RFC 6120: how its sides agree on TLS (section 5), to which it hands over. What follows otherwise is
//! not looked at.

use super::{Bytes, Detection, Findings, Heads, Progress, Protocol, Role, Session, SessionContext};
use crate::record::LogType;

/// Messages between clients and servers, or between servers.
#[derive(Debug)]
pub(super) struct Xmpp;

/// Ports of servers for clients, and for servers (section 14.7).
const PORTS: [u16; 2] = [5222, 5269];

/// What a stream begins with (section 4.2), behind an XML declaration.
const STREAM: &[u8] = b"<stream:stream";
const DECLARATION: &[u8] = b"<?xml";
/// The namespaces of streams begin so (section 4.8).
const NAMESPACE: &[u8] = b"jabber:";

/// Octets of the longest tag that is read.
const MAX_TAG: usize = 4096;

impl Protocol for Xmpp {
    fn name(&self) -> &'static str {
        "xmpp"
    }

    fn analyzer(&self) -> &'static str {
        "XMPP"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[]
    }

    fn tcp_ports(&self) -> &'static [u16] {
        &PORTS
    }

    /// The originator begins with the head of a stream that names a namespace of XMPP.
    fn detect(&self, heads: &Heads<'_>) -> Detection {
        if heads.is_midstream {
            return Detection::No;
        }
        let answer = heads.responder.trim_ascii_start();
        if answer.first().is_some_and(|&octet| octet != b'<') {
            return Detection::No;
        }
        let mut rest = heads.originator;
        loop {
            rest = rest.trim_ascii_start();
            let begins = |word: &[u8]| rest.iter().zip(word).all(|(octet, it)| octet == it);
            if rest.is_empty() || !(begins(STREAM) || begins(DECLARATION)) {
                return if rest.is_empty() { Detection::Undecided } else { Detection::No };
            }
            let Some(len) = tag_len(rest) else {
                let is_long = rest.len() > MAX_TAG;
                return if is_long { Detection::No } else { Detection::Undecided };
            };
            let (tag, behind) = rest.split_at(len);
            if tag.starts_with(STREAM) {
                let is_xmpp = tag.windows(NAMESPACE.len()).any(|it| it == NAMESPACE);
                return if is_xmpp { Detection::Yes } else { Detection::No };
            }
            rest = behind;
        }
    }

    fn session(&self, _: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(XmppSession::default())
    }
}

/// The negotiation of streams and of TLS (RFC 6120).
#[derive(Debug, Default)]
struct XmppSession {
    is_confirmed: bool,
    /// Whether the client has asked for TLS.
    has_asked: bool,
    /// Whether the server agrees, and has still to close the element that says so.
    is_agreed: bool,
}

impl XmppSession {
    /// Takes a tag of so many octets.
    fn tag(&mut self, from: Role, tag: &[u8]) -> Progress {
        let len = tag.len();
        match (from, name(tag)) {
            (Role::Originator, b"stream:stream") => self.is_confirmed = true,
            (Role::Originator, b"starttls") => self.has_asked = true,
            (Role::Originator, b"?xml" | b"/starttls") => {}
            // Whoever goes on without TLS does not change to it any more.
            (Role::Originator, _) => return Progress::Done,
            (Role::Responder, b"proceed") if self.has_asked => {
                if tag.ends_with(b"/>") {
                    return Progress::Handover(len);
                }
                self.is_agreed = true;
            }
            (Role::Responder, b"/proceed") if self.is_agreed => return Progress::Handover(len),
            (Role::Responder, b"failure") => return Progress::Done,
            (Role::Responder, _) => {}
        }
        Progress::Consumed(len)
    }
}

impl Session for XmppSession {
    fn bytes(&mut self, input: &Bytes<'_>, _: &mut Findings) -> Progress {
        let data = input.data;
        match data.iter().position(|&octet| octet == b'<') {
            None => return Progress::Consumed(data.len()),
            Some(0) => {}
            Some(text) => return Progress::Consumed(text),
        }
        match tag_len(data) {
            None if data.len() > MAX_TAG => Progress::Done,
            None => Progress::Need(data.len() + 1),
            // What the client says behind its wish is of TLS once the server agrees.
            Some(len) if input.from == Role::Originator && self.has_asked => {
                if name(&data[..len]) == b"/starttls" {
                    Progress::Consumed(len)
                } else {
                    Progress::Wait
                }
            }
            Some(len) => self.tag(input.from, &data[..len]),
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

/// Length of the tag that `data` begins with; `None` where its end did not come yet.
fn tag_len(data: &[u8]) -> Option<usize> {
    let mut quote = None;
    for (at, &octet) in data.iter().take(MAX_TAG).enumerate() {
        match (quote, octet) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(octet),
            (Some(open), octet) if open == octet => quote = None,
            _ => {}
        }
    }
    None
}

/// The name within a tag, with the slash of one that ends an element.
fn name(tag: &[u8]) -> &[u8] {
    let inside = tag.get(1..).unwrap_or_default();
    let is_end = |at: usize, octet: u8| {
        octet.is_ascii_whitespace() || octet == b'>' || (at > 0 && octet == b'/')
    };
    let len = inside.iter().enumerate().position(|(at, &octet)| is_end(at, octet));
    &inside[..len.unwrap_or(inside.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(originator: &[u8]) -> Detection {
        Xmpp.detect(&Heads { originator, responder: b"", port: 5222, is_midstream: false })
    }

    #[test]
    fn the_head_of_a_stream_is_found_however_much_of_it_is_there() {
        let head = b"<?xml version='1.0'?>\n<stream:stream to=\"a>b\" xmlns='jabber:client'>";
        for end in 0..head.len() {
            assert_eq!(detect(&head[..end]), Detection::Undecided, "{end}");
        }
        assert_eq!(detect(head), Detection::Yes);
        assert_eq!(detect(b"<stream:stream xmlns='urn:other'>"), Detection::No);
        assert_eq!(detect(b"<html>"), Detection::No);
        assert_eq!(detect(b"GET /"), Detection::No);
        let greeted =
            Heads { originator: b"", responder: b"SSH-2.0", port: 1, is_midstream: false };
        assert_eq!(Xmpp.detect(&greeted), Detection::No);
        assert_eq!(detect(&[STREAM, &[b' '; MAX_TAG]].concat()), Detection::No);
    }

    #[test]
    fn names_are_what_stands_before_attributes_and_slashes() {
        for (tag, expected) in [
            (&b"<starttls xmlns='a'/>"[..], &b"starttls"[..]),
            (b"<proceed/>", b"proceed"),
            (b"</proceed>", b"/proceed"),
            (b"<?xml version='1.0'?>", b"?xml"),
            (b"<>", b""),
        ] {
            assert_eq!(name(tag), expected);
        }
    }
}
