//! Whether a stream is one of TLS, by the records that it begins with, or one of SSL 2.

use super::reader::Reader;
use super::record::{ALERT, CHANGE_CIPHER_SPEC, HANDSHAKE, HEADER_LEN, MAX_LEN};
use super::{CLIENT_HELLO, SERVER_HELLO};
use crate::protocol::heads::Detection;

/// Records that are looked at. No other protocol begins with so many in a row, and servers take no
/// more that are empty.
const MAX_RECORDS: usize = 32;

/// Octets of a handshake message that tell a hello: type, length and version.
const HELLO_LEN: usize = 6;

/// Whether a stream begins with a hello, which may be cut into records anywhere (RFC 8446, 5.1), or
/// with one of SSL 2. Alerts, a ChangeCipherSpec and empty records may stand before it.
pub(super) fn hello(head: &[u8]) -> Detection {
    if head.first().is_some_and(|first| first & 0x80 != 0) {
        return ssl2_hello(head);
    }
    let (mut hello, mut rest) = (Hello::default(), head);
    for _ in 0..MAX_RECORDS {
        if !begins_record(rest) {
            return Detection::No;
        }
        let Some((&[kind, _, _, high, low], body)) = rest.split_first_chunk::<HEADER_LEN>() else {
            return Detection::Undecided;
        };
        let len = usize::from(u16::from_be_bytes([high, low]));
        let found = match kind {
            _ if len > MAX_LEN => Detection::No,
            HANDSHAKE => hello.push(body.get(..len).unwrap_or(body)),
            _ if hello.len > 0 => Detection::No,
            ALERT if [0, 2].contains(&len) => Detection::Undecided,
            CHANGE_CIPHER_SPEC if len <= 1 => Detection::Undecided,
            _ => Detection::No,
        };
        if found != Detection::Undecided {
            return found;
        }
        let Some(next) = body.get(len..) else { return Detection::Undecided };
        rest = next;
    }
    Detection::Yes
}

/// Whether a stream can go on with a record that comes before or with a hello.
fn begins_record(rest: &[u8]) -> bool {
    rest.iter().zip(0..3).all(|(&octet, at)| match at {
        0 => [CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE].contains(&octet),
        1 => octet == 3,
        _ => octet <= 3,
    })
}

/// The begin of the first handshake message.
#[derive(Default)]
struct Hello {
    octets: [u8; HELLO_LEN],
    len: usize,
}

impl Hello {
    /// Takes a fragment, and tells whether the message is a hello, as Zeek's `dpd.sig` finds it.
    fn push(&mut self, fragment: &[u8]) -> Detection {
        for (to, octet) in self.octets.iter_mut().skip(self.len).zip(fragment) {
            *to = *octet;
            self.len += 1;
        }
        let [kind, _, _, _, major, minor] = self.octets;
        let is_version = match kind {
            // Drafts of TLS 1.3 had its version, or some of their own.
            CLIENT_HELLO => major == 3 && minor <= 4,
            SERVER_HELLO => major == 3 && minor <= 4 || major == 0x7f && minor <= 0x50,
            _ => false,
        };
        match self.len {
            HELLO_LEN if is_version => Detection::Yes,
            1..HELLO_LEN if ![CLIENT_HELLO, SERVER_HELLO].contains(&kind) => Detection::No,
            HELLO_LEN => Detection::No,
            _ => Detection::Undecided,
        }
    }
}

/// Whether a stream begins with a ClientHello of SSL 2: two octets of length, its type, a version,
/// and how long suites, identifier and challenge are.
fn ssl2_hello(head: &[u8]) -> Detection {
    let mut reader = Reader::new(head);
    let Some(len) = reader.u16() else { return Detection::Undecided };
    let is_known =
        |value: Option<u8>, known: &[u8]| value.is_none_or(|value| known.contains(&value));
    let (kind, major, minor) = (reader.u8(), reader.u8(), reader.u8());
    if !is_known(kind, &[CLIENT_HELLO])
        || !is_known(major, &[0, 3])
        || !is_known(minor, &[0, 1, 2, 3])
    {
        return Detection::No;
    }
    let lengths = [reader.u16(), reader.u16(), reader.u16()];
    let [Some(ciphers), Some(session), Some(challenge)] = lengths else {
        return Detection::Undecided;
    };
    let fields = [9, ciphers, session, challenge].map(usize::from).iter().sum::<usize>();
    let is_version = matches!((major, minor), (Some(0), Some(2)) | (Some(3), _));
    let is_hello = is_version
        && fields == usize::from(len & 0x7fff)
        && ciphers > 0
        && ciphers % 3 == 0
        && [0, 16].contains(&session)
        && (16..=32).contains(&challenge);
    if is_hello { Detection::Yes } else { Detection::No }
}
