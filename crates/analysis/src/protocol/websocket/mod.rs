//! WebSocket, RFC 6455: what an HTTP connection becomes by an upgrade.
//!
//! | module | concern |
//! |---|---|
//! | [`frame`] | frames as they lie in a stream |
//! | [`handshake`] | the header fields of the upgrade |
//! | [`log`] | the log |
//! | [`session`] | frames, counted, and what they carry |

mod frame;
mod handshake;
mod log;
mod session;

pub(super) use handshake::Handshake;

use super::{Protocol, Session, SessionContext};
use crate::record::LogType;
use session::WebSocketSession;

/// Frames over TCP behind an HTTP upgrade: only that tells it, so nothing is looked for.
#[derive(Debug)]
pub(super) struct WebSocket;

impl Protocol for WebSocket {
    fn name(&self) -> &'static str {
        "websocket"
    }

    fn analyzer(&self) -> &'static str {
        "WEBSOCKET"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[log::WebSocket::LOG]
    }

    fn session(&self, _: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(WebSocketSession::default())
    }
}
