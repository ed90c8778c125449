//! Whether octets are surely a message: all of it reads as one, to its last octet.
//!
//! Small numbers prove nothing, so all of this must hold: flags that messages of their kind have, counts
//! that fit what follows, names of readable labels, classes that exist, and no octet left.

use super::message::{Header, MAX_LABEL, MAX_POINTERS};
use super::{HEADER_LEN, OPCODES, UPDATE};

/// Questions of the longest message that is sure: one by unicast (RFC 9619), a few by multicast
/// (RFC 6762, section 5.3).
const MAX_SURE_QUESTIONS: u16 = 16;

/// Octets of a name (RFC 1035, 2.3.4).
const MAX_NAME: usize = 255;

/// QCLASS ANY, and above it the bit that multicast DNS uses (RFC 6762, sections 5.4 and 10.2).
const CLASSES: [u16; 5] = [1, 3, 4, 254, 255];

/// Whether a datagram, or what follows a length over TCP, is surely a message.
pub(super) fn is_message(payload: &[u8]) -> bool {
    let Some(header) = Header::of(payload).filter(|header| is_header(*header)) else {
        return false;
    };
    let mut reader = Reader { payload, at: HEADER_LEN };
    let questions = (0..header.questions).all(|_| reader.question().is_some());
    questions
        && (0..header.records()).all(|_| reader.record().is_some())
        && reader.at == payload.len()
}

/// Whether a header alone is an answer that repeats no question, as servers refuse what they cannot
/// read.
pub(super) fn is_bare_reply(payload: &[u8]) -> bool {
    payload.len() == HEADER_LEN
        && Header::of(payload).is_some_and(|header| {
            header.is_response() && header.questions == 0 && header.records() == 0
        })
}

/// Whether the octets of a header that are there may be of a sure message.
pub(super) fn may_begin(payload: &[u8]) -> bool {
    let mut header = [0; HEADER_LEN];
    let len = payload.len().min(HEADER_LEN);
    header[..len].copy_from_slice(&payload[..len]);
    match Header::of(&header) {
        Some(header) if len >= HEADER_LEN => is_header(header),
        Some(header) if len >= 4 => has_flags(header),
        _ => true,
    }
}

fn has_flags(header: Header) -> bool {
    let is_query_right =
        header.is_response() || (header.rcode() == 0 && !header.offers_recursion());
    // The bit that no RFC uses; RFC 4035 took the other two.
    OPCODES.contains(&header.opcode())
        && header.z() & 4 == 0
        && header.rcode() <= 10
        && is_query_right
}

fn is_header(header: Header) -> bool {
    let asks = header.is_response() || header.opcode() != 0 || header.answers == 0;
    has_flags(header)
        && asks
        && (1..=MAX_SURE_QUESTIONS).contains(&header.questions)
        && (header.opcode() != UPDATE || header.questions == 1)
}

/// A position in a message that is only checked.
struct Reader<'a> {
    payload: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn short(&mut self) -> Option<u16> {
        let bytes = *self.payload.get(self.at..)?.first_chunk()?;
        self.at += 2;
        Some(u16::from_be_bytes(bytes))
    }

    fn question(&mut self) -> Option<()> {
        self.name()?;
        let (kind, class) = (self.short()?, self.short()?);
        (kind != 0 && CLASSES.contains(&(class & 0x7fff))).then_some(())
    }

    fn record(&mut self) -> Option<()> {
        self.name()?;
        let (kind, _class) = (self.short()?, self.short()?);
        let _ttl = (self.short()?, self.short()?);
        let len = self.short()?;
        self.at = self.at.checked_add(len.into()).filter(|end| *end <= self.payload.len())?;
        (kind != 0).then_some(())
    }

    /// Goes behind a name of readable labels. Where it leads to by a pointer is read, too.
    fn name(&mut self) -> Option<()> {
        let (mut at, mut behind, mut len, mut pointers) = (self.at, None, 0, 0);
        loop {
            let octet = usize::from(*self.payload.get(at)?);
            if octet == 0 {
                self.at = behind.unwrap_or(at + 1);
                return Some(());
            }
            if octet & 0xc0 == 0xc0 {
                let low = usize::from(*self.payload.get(at + 1)?);
                behind.get_or_insert(at + 2);
                let target = (octet & 0x3f) << 8 | low;
                pointers += 1;
                if target >= at || target < HEADER_LEN || pointers > MAX_POINTERS {
                    return None;
                }
                at = target;
                continue;
            }
            let label = self.payload.get(at + 1..at + 1 + octet)?;
            len += octet + 1;
            let is_readable = |byte: &u8| matches!(byte, b' '..=b'~' | 0x80..);
            if octet > MAX_LABEL || len > MAX_NAME || !label.iter().all(is_readable) {
                return None;
            }
            at += octet + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query() -> Vec<u8> {
        let mut message = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1];
        message.extend(b"\x03www\x07example\x00\x00\x01\x00\x01");
        message.extend(b"\x00\x00\x29\x10\x00\x00\x00\x00\x00\x00\x00");
        message
    }

    #[test]
    fn whole_messages_are_sure_and_parts_are_not() {
        let query = query();
        assert!(is_message(&query));
        for len in 0..query.len() {
            assert!(!is_message(&query[..len]), "{len}");
            assert!(may_begin(&query[..len]), "{len}");
        }
        assert!(!is_message(&[&query[..], b"x"].concat()), "an octet is left");
        let mut reply = query;
        (reply[2], reply[3]) = (0x81, 0x83);
        assert!(is_message(&reply));
    }

    #[test]
    fn one_thing_that_messages_never_have_is_enough() {
        // Opcode, code and RA of a query, Z, no question, too many, an answer to nothing, a label
        // that nobody can read, no type, a class that does not exist.
        for (at, value) in [
            (2, 0x09),
            (3, 1),
            (3, 0x80),
            (3, 0x40),
            (5, 0),
            (5, 17),
            (7, 1),
            (13, 7),
            (26, 0),
            (28, 9),
        ] {
            let mut message = query();
            message[at] = value;
            assert!(!is_message(&message), "{at}: {value}");
        }
        assert!(!may_begin(b"\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50\x00\x00"));
    }
}
