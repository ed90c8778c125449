//! HTTP/1, RFC 9110 and 9112, with HTTP/0.9 and HTTP/1.0: as tolerant as Zeek.
//!
//! | module | concern |
//! |---|---|
//! | [`detect`] | whether two streams are HTTP |
//! | [`line`] | lines and header fields as they lie in a stream |
//! | [`start_line`] | request lines and status lines |
//! | [`uri`] | what percent signs of a URI stand for |
//! | [`ambiguity`] | what two readers may take differently |
//! | [`framing`] | what header fields tell of the body: its length, its coding |
//! | [`body`] | the bytes of a body, on their way to files |
//! | [`coding`] | compressed bodies |
//! | [`multipart`] | bodies of several parts |
//! | [`exchange`] | a request with its response: a row of the log |
//! | [`exchanges`] | which response belongs to which request |
//! | [`message`] | one message in progress |
//! | [`session`] | both streams of a connection |

mod ambiguity;
mod body;
mod coding;
mod detect;
mod exchange;
mod exchanges;
mod framing;
mod line;
mod message;
mod multipart;
mod session;
mod start_line;
mod uri;

pub use exchange::Exchange;

use super::{Context, Detection, Heads, Protocol, Session};
use session::HttpSession;

/// Requests and responses over TCP.
#[derive(Debug)]
pub(super) struct Http;

impl Protocol for Http {
    fn name(&self) -> &'static str {
        "http"
    }

    fn analyzer(&self) -> &'static str {
        "HTTP"
    }

    fn logs(&self) -> &'static [&'static str] {
        &["http", "files", "pe"]
    }

    /// The ports where Zeek looks for it (`HTTP::ports`).
    fn tcp_ports(&self) -> &'static [u16] {
        &[80, 81, 631, 1080, 3128, 8000, 8080, 8888]
    }

    fn detect(&self, heads: &Heads<'_>) -> Detection {
        detect::detect(heads, self.tcp_ports().contains(&heads.port))
    }

    fn session(&self, context: &Context<'_>) -> Box<dyn Session> {
        Box::new(HttpSession::new(context))
    }
}
