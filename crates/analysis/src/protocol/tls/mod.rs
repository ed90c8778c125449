//! SSL and TLS, RFC 6101, RFC 5246 and RFC 8446: handshakes and certificates.
//!
//! | module | concern |
//! |---|---|
//! | [`record`] | the record layer |
//! | [`handshake`] | messages out of the fragments that records carry |
//! | [`hello`] | ClientHello and ServerHello |
//! | [`certificate`] | certificates: rows of the log `x509` |
//! | [`fingerprint`] | JA3, JA3S and JA4 |
//! | [`names`], [`ciphers`] | words for versions, alerts, groups and cipher suites |
//! | [`negotiation`] | what is agreed on, for TLS, DTLS and QUIC |
//! | [`handshake_row`] | a handshake as a row of the log `ssl` |
//! | [`session`] | two streams of TLS |
//! | [`reader`] | fields and vectors |

mod certificate;
mod ciphers;
pub(super) mod fingerprint;
pub(super) mod handshake;
mod handshake_row;
pub(super) mod hello;
mod known;
pub(super) mod names;
pub(super) mod negotiation;
pub(super) mod reader;
pub(super) mod record;
mod session;

pub use certificate::{Certificate, Presented};
pub use handshake_row::TlsHandshake;
pub(super) use known::Known;

use super::Protocol;
use super::detection::{Detection, Heads};
use super::session::{Context, Session};
use reader::Reader;
use record::{ALERT, HANDSHAKE, HEADER_LEN};
use session::TlsSession;

/// TLS over TCP.
#[derive(Debug)]
pub(super) struct Tls;

/// `client_hello`, RFC 8446 section 4.
const CLIENT_HELLO: u8 = 1;
/// `server_hello`.
const SERVER_HELLO: u8 = 2;

impl Protocol for Tls {
    fn name(&self) -> &'static str {
        "ssl"
    }

    fn analyzer(&self) -> &'static str {
        "SSL"
    }

    fn logs(&self) -> &'static [&'static str] {
        &["ssl", "x509"]
    }

    fn tcp_ports(&self) -> &'static [u16] {
        &[443, 563, 585, 614, 636, 989, 990, 992, 993, 995, 5223]
    }

    /// A hello tells, of either side. The client's decides; before it says anything, the server's.
    fn detect(&self, heads: &Heads<'_>) -> Detection {
        match heads.originator {
            [] => hello(heads.responder),
            head => hello(head),
        }
    }

    fn session(&self, _: &Context<'_>) -> Box<dyn Session> {
        Box::new(TlsSession::new())
    }
}

/// Whether a stream begins with a hello, as Zeek's `dpd.sig` finds it, or one of SSL 2.
fn hello(head: &[u8]) -> Detection {
    if head.first().is_some_and(|first| first & 0x80 != 0) {
        return ssl2_hello(head);
    }
    let mut reader = Reader::new(head);
    let found = tls_hello(&mut reader);
    found.unwrap_or(if head.is_empty() { Detection::Undecided } else { partial(head) })
}

/// Whether a hello of TLS follows, which an alert may precede; `None` where the bytes end before
/// that is known.
fn tls_hello(reader: &mut Reader<'_>) -> Option<Detection> {
    let mut kind = reader.u8()?;
    if kind == ALERT {
        let [major, minor, _, _, _, _] = reader.array()?;
        if major != 3 || minor > 3 {
            return Some(Detection::No);
        }
        kind = reader.u8()?;
    }
    if kind != HANDSHAKE || reader.u8()? != 3 || reader.u8()? > 3 {
        return Some(Detection::No);
    }
    reader.u16()?;
    let message = reader.u8()?;
    if ![CLIENT_HELLO, SERVER_HELLO].contains(&message) {
        return Some(Detection::No);
    }
    reader.u24()?;
    let [major, minor] = reader.array()?;
    let is_version = match message {
        CLIENT_HELLO => major == 3 && minor <= 3,
        // Drafts of TLS 1.3 had versions of their own.
        _ => major == 3 && minor <= 4 || major == 0x7f && minor <= 0x50,
    };
    Some(if is_version { Detection::Yes } else { Detection::No })
}

/// Whether the few bytes of a head can be the begin of a hello.
fn partial(head: &[u8]) -> Detection {
    const ALERT_LEN: usize = HEADER_LEN + 2;
    let record = if head.first() == Some(&ALERT) && head.len() > ALERT_LEN {
        head.get(ALERT_LEN..).unwrap_or_default()
    } else {
        head
    };
    let is_begin = record.iter().zip(0..).all(|(&octet, at)| match at {
        0 => [HANDSHAKE, ALERT].contains(&octet),
        1 => octet == 3,
        2 => octet <= 3,
        5 if record.first() == Some(&HANDSHAKE) => [CLIENT_HELLO, SERVER_HELLO].contains(&octet),
        _ => true,
    });
    if is_begin { Detection::Undecided } else { Detection::No }
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

#[cfg(test)]
pub(crate) use certificate::tests::presented;
#[cfg(test)]
pub(super) use certificate::tests::unhex;

#[cfg(test)]
pub(super) mod tests;
