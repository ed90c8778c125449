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
//! | [`log`] | the log |
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
mod log;
mod message;
mod multipart;
mod session;
mod start_line;
mod undecoded;
mod uri;

use super::{Detection, Heads, Protocol, Role, Session, SessionContext};
use crate::file;
use crate::record::LogType;
use crate::weird::Weirds;
use session::HttpSession;

/// Who says this, if it begins a message of HTTP/1.
pub(crate) fn speaker(bytes: &[u8]) -> Option<Role> {
    let begins = |role: &Role| detect::begins_message(*role, bytes) == Some(true);
    [Role::Responder, Role::Originator].into_iter().find(begins)
}

/// Commands of other protocols that have a password behind them.
const SECRETS: [&[u8]; 3] = [b"PASS", b"AUTH", b"LOGIN"];

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

    fn logs(&self) -> &'static [&'static LogType] {
        &[log::Http::LOG, file::FILES, file::PE]
    }

    /// The ports where Zeek looks for it (`HTTP::ports`).
    fn tcp_ports(&self) -> &'static [u16] {
        &[80, 81, 631, 1080, 3128, 8000, 8080, 8888]
    }

    fn detect(&self, heads: &Heads<'_>) -> Detection {
        detect::detect(heads, self.tcp_ports().contains(&heads.port))
    }

    /// Other than in Zeek not lines by which clients of other protocols log in: a password is no URI.
    fn begins_by_port(&self, line: &[u8]) -> bool {
        start_line::request(line, &mut Weirds::default()).is_ok_and(|request| {
            !SECRETS.iter().any(|word| request.method.eq_ignore_ascii_case(word))
        })
    }

    fn session(&self, context: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(HttpSession::new(context))
    }
}
