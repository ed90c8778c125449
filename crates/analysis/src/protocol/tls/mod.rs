//! SSL and TLS, RFC 6101, RFC 5246 and RFC 8446: handshakes and certificates.
//!
//! | module | concern |
//! |---|---|
//! | [`detection`] | whether a stream is one of TLS |
//! | [`record`] | the record layer |
//! | [`handshake`] | messages out of the fragments that records carry |
//! | [`hello`] | ClientHello and ServerHello |
//! | [`fingerprint`] | JA3, JA3S and JA4 |
//! | [`names`], [`ciphers`] | words for versions, alerts, groups and cipher suites |
//! | [`negotiation`] | what is agreed on, for TLS, DTLS and QUIC |
//! | [`ssl_log`] | the log |
//! | [`certificates`] | the join that tells each certificate once a day |
//! | [`session`] | two streams of TLS |
//! | [`reader`] | fields and vectors |

mod certificates;
mod ciphers;
mod detection;
pub(super) mod fingerprint;
pub(super) mod handshake;
pub(super) mod hello;
mod known;
pub(super) mod names;
pub(super) mod negotiation;
pub(super) mod reader;
pub(super) mod record;
mod session;
mod ssl_log;

use super::Protocol;
use super::heads::{Detection, Heads};
use super::session::{Session, SessionContext};
use crate::correlator::MakeJoin;
use crate::file;
use crate::protocol::{file_transfer, x509};
use crate::record::LogType;
use certificates::Certificates;
use session::TlsSession;

/// The logs of handshakes, whatever carries them.
pub(super) const SSL: &LogType = ssl_log::Ssl::LOG;
pub(super) const X509: &LogType = x509::X509::LOG;
pub(super) const OCSP: &LogType = x509::ocsp::Ocsp::LOG;

/// TLS over TCP (RFC 5246, RFC 8446), and SSL 2 and 3.
#[derive(Debug)]
pub(super) struct Tls;

/// `client_hello`, RFC 8446 section 4.
const CLIENT_HELLO: u8 = 1;
/// `server_hello`.
const SERVER_HELLO: u8 = 2;

/// A session within another protocol, in a flow that carries these files.
pub(super) fn session(files: file_transfer::Carrier) -> Box<dyn Session> {
    Box::new(TlsSession::new(Some(files)))
}

impl Protocol for Tls {
    fn name(&self) -> &'static str {
        "ssl"
    }

    fn analyzer(&self) -> &'static str {
        "SSL"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[SSL, X509, OCSP, file::FILES]
    }

    fn joins(&self) -> &'static [MakeJoin] {
        &[Certificates::join]
    }

    fn tcp_ports(&self) -> &'static [u16] {
        &[443, 563, 585, 614, 636, 989, 990, 992, 993, 995, 5223]
    }

    /// A hello tells, of either side. The client's decides; before it says anything, the server's.
    fn detect(&self, heads: &Heads<'_>) -> Detection {
        match heads.originator {
            [] => detection::hello(heads.responder),
            head => detection::hello(head),
        }
    }

    fn session(&self, context: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(TlsSession::new(Some(context.into())))
    }
}

#[cfg(test)]
pub(super) mod tests;
