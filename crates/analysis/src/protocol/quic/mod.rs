//! QUIC, RFC 9000, RFC 9001 and RFC 9369: what the first packets of a connection say, which anybody
//! can read.
//!
//! | module | concern |
//! |---|---|
//! | [`version`] | versions, and what differs between them |
//! | [`packet`] | long headers, and the frames of Initial packets |
//! | [`protection`] | the protection of Initial packets |
//! | [`messages`] | the first message of a side out of CRYPTO frames |
//! | [`session`] | the datagrams of a conversation |
//! | [`log`] | the log: a row for each connection |

mod log;
mod messages;
mod packet;
mod protection;
mod session;
mod version;

use core::ops::RangeInclusive;

use super::Protocol;
use super::session::{Session, SessionContext};
use super::tls;
use crate::record::LogType;
use packet::{FIXED, Invariant, LONG};
use session::QuicSession;
use version::Version;

/// QUIC over UDP (RFC 9000).
#[derive(Debug)]
pub(super) struct Quic;

/// Octets of the longest connection identifier, RFC 9000 section 17.2.
const MAX_IDENTIFIER: usize = 20;

/// Octets of the shortest identifier that a client makes up for the server, RFC 9000 section 7.2.
const MIN_FIRST_IDENTIFIER: usize = 8;

/// Octets of the smallest datagram that may begin a connection, RFC 9000 section 14.1.
const MIN_DATAGRAM: usize = 1200;

impl Protocol for Quic {
    fn name(&self) -> &'static str {
        "quic"
    }

    fn analyzer(&self) -> &'static str {
        "QUIC"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[log::Quic::LOG, tls::SSL]
    }

    fn datagram_heads(&self) -> &'static [RangeInclusive<u8>] {
        &[LONG..=u8::MAX]
    }

    /// A packet with a long header of a known version; one that begins a connection in a version that
    /// nobody knows, so that the server tells its own; or what the server says to that. Ports tell
    /// nothing: DTLS uses 443, too.
    fn detect_datagram(&self, payload: &[u8]) -> bool {
        let Some(invariant) = Invariant::of(payload) else { return false };
        let identifiers = [invariant.destination, invariant.source];
        let has_all = |bits| invariant.first & bits == bits;
        identifiers.iter().all(|it| it.len() <= MAX_IDENTIFIER)
            && match invariant.version {
                version::NEGOTIATION => {
                    has_all(LONG) && invariant.offered().any(|it| Version::of(it).is_some())
                }
                version => {
                    has_all(LONG | FIXED)
                        && (Version::of(version).is_some()
                            || payload.len() >= MIN_DATAGRAM
                                && (version::is_reserved(version)
                                    || invariant.destination.len() >= MIN_FIRST_IDENTIFIER))
                }
            }
    }

    fn session(&self, _: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(QuicSession::new())
    }
}

#[cfg(test)]
mod tests;
