//! IMAP, RFC 9051 and RFC 3501.
//!
//! | module | concern |
//! |---|---|
//! | [`command`] | commands, arguments, literals |
//! | [`session`] | which reply belongs to which command, where literals lie |
//! | [`log`] | the log |
//! | [`mailboxes`] | what a connection amounts to: rows of the log |

mod command;
mod log;
mod mailboxes;
mod session;

use super::syntax::line;
use super::{Detection, Heads, Protocol, Session, SessionContext};
use crate::file;
use crate::record::LogType;
use command::ImapCommand;
use session::ImapSession;

/// Mails that clients keep on servers.
#[derive(Debug)]
pub(super) struct Imap;

/// The port of servers.
const PORT: u16 = 143;

/// How servers greet (RFC 9051, 7.1).
const GREETINGS: [&[u8]; 3] = [b"* OK", b"* PREAUTH", b"* BYE"];

/// The longest tag that a client may begin with.
const MAX_TAG: usize = 32;

impl Protocol for Imap {
    fn name(&self) -> &'static str {
        "imap"
    }

    fn analyzer(&self) -> &'static str {
        "IMAP"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[log::Imap::LOG, file::FILES, file::PE]
    }

    fn tcp_ports(&self) -> &'static [u16] {
        &[PORT]
    }

    /// On its port the greeting is enough, as for Zeek. On others a command must come, too. Nothing
    /// is told of connections whose begin is missing.
    fn detect(&self, heads: &Heads<'_>) -> Detection {
        if heads.is_midstream {
            return Detection::No;
        }
        let server = line::begins_with(heads.responder, &GREETINGS);
        if heads.port == PORT {
            return server;
        }
        match (server, asks(heads.originator)) {
            (Detection::No, _) | (_, Detection::No) => Detection::No,
            (Detection::Yes, Detection::Yes) => Detection::Yes,
            _ => Detection::Undecided,
        }
    }

    fn session(&self, context: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(ImapSession::new(context))
    }
}

/// Whether a client begins with a tag and a command.
fn asks(head: &[u8]) -> Detection {
    let tag = head.iter().position(|&byte| byte == b' ').unwrap_or(head.len());
    if tag > MAX_TAG || !head.iter().take(tag).all(u8::is_ascii_graphic) {
        return Detection::No;
    }
    match line::next(head) {
        Ok(line) => {
            let (_, rest) = line::word(line.text);
            let is_known = ImapCommand::named(line::word(rest).0).is_some();
            if is_known { Detection::Yes } else { Detection::No }
        }
        Err(_) => Detection::Undecided,
    }
}
