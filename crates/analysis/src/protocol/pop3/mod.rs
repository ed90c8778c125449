//! POP3, RFC 1939, with its extensions (RFC 2449, RFC 2595, RFC 5034).
//!
//! | module | concern |
//! |---|---|
//! | [`command`] | commands |
//! | [`session`] | which reply belongs to which command |
//! | [`log`] | the log |
//! | [`summary`] | what a connection amounts to: a row of the log |

mod command;
mod log;
mod session;
mod summary;

use super::syntax::line;
use super::{Detection, Heads, Protocol, Session, SessionContext};
use crate::file;
use crate::record::LogType;
use command::Pop3Command;
use session::Pop3Session;

/// Mails that clients fetch.
#[derive(Debug)]
pub(super) struct Pop3;

/// The port of servers.
const PORT: u16 = 110;

impl Protocol for Pop3 {
    fn name(&self) -> &'static str {
        "pop3"
    }

    fn analyzer(&self) -> &'static str {
        "POP3"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[log::Pop3::LOG, file::FILES, file::PE]
    }

    fn tcp_ports(&self) -> &'static [u16] {
        &[PORT]
    }

    /// The server greets, and the client's first line is a command: on other ports one of those that
    /// come before all others, as in Zeek. Nothing is told of connections whose begin is missing.
    fn detect(&self, heads: &Heads<'_>) -> Detection {
        if heads.is_midstream {
            return Detection::No;
        }
        let server = line::begins_with(heads.responder, &[b"+OK", b"-ERR"]);
        match (server, asks(heads.originator, heads.port == PORT)) {
            (Detection::No, _) | (_, Detection::No) => Detection::No,
            (Detection::Yes, Detection::Yes) => Detection::Yes,
            _ => Detection::Undecided,
        }
    }

    fn session(&self, context: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(Pop3Session::new(context))
    }
}

/// Whether a client begins with a command.
fn asks(head: &[u8], is_hinted: bool) -> Detection {
    let end = head.iter().position(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
    let Some(end) = end else {
        let is_begin = Pop3Command::has_begin(head);
        return if is_begin { Detection::Undecided } else { Detection::No };
    };
    match Pop3Command::named(&head[..end]) {
        Pop3Command::Unknown => Detection::No,
        Pop3Command::User
        | Pop3Command::Apop
        | Pop3Command::Auth
        | Pop3Command::Capabilities
        | Pop3Command::StartTls => Detection::Yes,
        _ if is_hinted => Detection::Yes,
        _ => Detection::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_bytes_never_change_what_is_decided() {
        for (head, expected) in [
            (&b"CAPA\t\r\n"[..], Detection::Yes),
            (b"USER me", Detection::Yes),
            (b"capa\n", Detection::Yes),
            (b"CAPAX\r\n", Detection::No),
            (b"\tCAPA\r\n", Detection::No),
        ] {
            let decided = (1..=head.len()).map(|len| asks(&head[..len], true));
            let mut decided = decided.skip_while(|it| *it == Detection::Undecided);
            assert!(decided.all(|it| it == expected), "{}", head.escape_ascii());
            assert_eq!(asks(head, true), expected);
        }
    }
}
