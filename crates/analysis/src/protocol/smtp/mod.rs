//! SMTP, RFC 5321, with its extensions.
//!
//! | module | concern |
//! |---|---|
//! | [`command`] | commands and their arguments |
//! | [`session`] | which reply belongs to which command, where mails begin and end |
//! | [`body`] | the content of mails |
//! | [`transactions`] | the mails of a connection whose rows are not written yet |
//! | [`log`] | the log |
//! | [`transaction`] | a mail: a row of the log |
//! | [`address`] | addresses in texts |

mod address;
mod body;
mod command;
mod log;
mod session;
mod transaction;
mod transactions;

use super::syntax::line;
use super::{Detection, Heads, Protocol, Session, SessionContext};
use crate::file;
use crate::record::LogType;
use command::SmtpCommand;
use session::{SmtpSession, reply_code};

/// Mail on its way to servers.
#[derive(Debug)]
pub(super) struct Smtp;

/// Ports of servers: between servers, and for clients (RFC 6409).
const PORTS: &[u16] = &[25, 587];

impl Protocol for Smtp {
    fn name(&self) -> &'static str {
        "smtp"
    }

    fn analyzer(&self) -> &'static str {
        "SMTP"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[log::Smtp::LOG, file::FILES, file::PE]
    }

    fn tcp_ports(&self) -> &'static [u16] {
        PORTS
    }

    /// On its ports a known command is enough. On others the server must greet with 220 and the
    /// client begin with HELO or EHLO. Nothing is told of connections whose begin is missing.
    fn detect(&self, heads: &Heads<'_>) -> Detection {
        if heads.is_midstream {
            return Detection::No;
        }
        let is_hinted = PORTS.contains(&heads.port);
        let sides = if is_hinted {
            (greets(heads.responder), asks(heads.originator))
        } else {
            let hello = line::begins_with(heads.originator, &[b"EHLO", b"HELO", b"LHLO"]);
            (greets_with_220(heads.responder), hello)
        };
        match sides {
            (Detection::No, _) | (_, Detection::No) => Detection::No,
            (Detection::Yes, Detection::Yes) => Detection::Yes,
            // One side may be all that was captured.
            (Detection::Undecided, Detection::Yes) if is_hinted => Detection::Yes,
            _ => Detection::Undecided,
        }
    }

    fn session(&self, context: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(SmtpSession::new(context, PORTS.contains(&context.port)))
    }
}

/// Whether a server begins with a reply.
fn greets(head: &[u8]) -> Detection {
    let digits = head.iter().take(3).take_while(|byte| byte.is_ascii_digit()).count();
    match (head.len(), reply_code(head)) {
        (3.., Some(_)) => Detection::Yes,
        (0..3, _) if digits == head.len() => Detection::Undecided,
        _ => Detection::No,
    }
}

/// Whether a server begins with the reply 220.
fn greets_with_220(head: &[u8]) -> Detection {
    let head = head.trim_ascii_start();
    let begins = head.get(..3).unwrap_or(head);
    match head.get(3) {
        _ if !b"220".starts_with(begins) => Detection::No,
        None => Detection::Undecided,
        Some(b' ' | b'-' | b'\t' | b'\r' | b'\n') => Detection::Yes,
        Some(_) => Detection::No,
    }
}

/// Whether a client asks for something in SMTP, where the port says so, too: any command will do.
fn asks(head: &[u8]) -> Detection {
    // Bytes that no text has tell of something else, as a record of TLS does.
    let is_text = |byte: &u8| !matches!(byte, 0..=8 | 14..=31);
    if !head.first().is_none_or(is_text) {
        return Detection::No;
    }
    let mut rest = head;
    while let Ok(line) = line::next(rest) {
        if SmtpCommand::named(line::word(line.text).0) != SmtpCommand::Unknown {
            return Detection::Yes;
        }
        rest = rest.get(line.len..).unwrap_or_default();
    }
    Detection::Undecided
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_bytes_never_change_what_is_decided() {
        let heads = [&b"\x17EHLO a\r\nEHLO b\r\n"[..], b"x\r\nEHLO a\r\n", b"EHLO a\r\n\x01"];
        for (head, expected) in
            heads.into_iter().zip([Detection::No, Detection::Yes, Detection::Yes])
        {
            let decided = (1..=head.len()).map(|len| asks(&head[..len]));
            let mut decided = decided.skip_while(|it| *it == Detection::Undecided);
            assert!(decided.all(|it| it == expected), "{}", head.escape_ascii());
            assert_eq!(asks(head), expected);
        }
    }
}
