//! DTLS, RFC 4347, RFC 6347 and RFC 9147: TLS over datagrams. The messages are those of
//! [`tls`](super::tls), in records and fragments of their own.
//!
//! | module | concern |
//! |---|---|
//! | [`fragments`] | messages out of their fragments |
//! | [`session`] | the datagrams of a conversation |

mod fragments;
mod session;

use core::ops::RangeInclusive;

use super::Protocol;
use super::session::{Session, SessionContext};
use super::tls::names::{DTLS10, DTLS12};
use super::tls::reader::Reader;
use super::tls::{OCSP, SSL, X509};
use crate::file;
use crate::record::LogType;
use session::DtlsSession;

/// DTLS over UDP (RFC 6347, RFC 9147).
#[derive(Debug)]
pub(super) struct Dtls;

/// `handshake`, RFC 8446 section 5.1.
const HANDSHAKE: u8 = 22;
/// `client_hello`, RFC 8446 section 4.
const CLIENT_HELLO: u8 = 1;

impl Protocol for Dtls {
    fn name(&self) -> &'static str {
        "dtls"
    }

    fn analyzer(&self) -> &'static str {
        "DTLS"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[SSL, X509, OCSP, file::FILES]
    }

    fn datagram_heads(&self) -> &'static [RangeInclusive<u8>] {
        &[HANDSHAKE..=HANDSHAKE]
    }

    /// A ClientHello, as Zeek's `dpd.sig` finds it.
    fn detect_datagram(&self, payload: &[u8]) -> bool {
        is_client_hello(payload).unwrap_or(false)
    }

    fn session(&self, context: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(DtlsSession::new(Some(context.into())))
    }
}

/// Whether a datagram begins with a ClientHello; `None` where it is too short for one.
fn is_client_hello(payload: &[u8]) -> Option<bool> {
    let is_version = |version| [DTLS10, DTLS12].contains(&version);
    let mut reader = Reader::new(payload);
    if reader.u8()? != HANDSHAKE || !is_version(reader.u16()?) {
        return Some(false);
    }
    // Nothing is encrypted yet, and few records came before.
    let [epoch_and_number @ .., _] = reader.array::<8>()?;
    let _length = reader.u16()?;
    let is_hello = epoch_and_number == [0; 7] && reader.u8()? == CLIENT_HELLO;
    // Lengths, number and offset of the message.
    reader.take(11)?;
    Some(is_hello && is_version(reader.u16()?))
}

#[cfg(test)]
mod tests;
