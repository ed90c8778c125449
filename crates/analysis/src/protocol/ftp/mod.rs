//! FTP, RFC 959, with its extensions: the control connection.
//!
//! | module | concern |
//! |---|---|
//! | [`lines`] | lines, of which long ones are kept in part |
//! | [`control`] | lines of telnet, commands and replies |
//! | [`codes`] | which commands there are, and which replies they have |
//! | [`channel`] | where data connections go |
//! | [`path`] | directories and files |
//! | [`log`] | the log: a row for each command with its reply |
//! | [`transfer`] | files on data connections |
//! | [`session`] | which reply belongs to which command |

mod channel;
mod codes;
mod control;
mod gssapi;
mod lines;
mod log;
mod path;
mod session;
mod transfer;

use super::syntax::line::first_word;
use super::tls::{OCSP, SSL, X509};
use super::{Detection, Heads, Protocol, Session, SessionContext};
use crate::file;
use crate::record::LogType;
use session::FtpSession;

/// A client with a server.
#[derive(Debug)]
pub(super) struct Ftp;

/// The ports of FTP and of GridFTP.
const PORTS: [u16; 2] = [21, 2811];

/// Bytes of a client's first line within which it must end.
const MAX_FIRST_LINE: usize = 512;

impl Protocol for Ftp {
    fn name(&self) -> &'static str {
        "ftp"
    }

    fn analyzer(&self) -> &'static str {
        "FTP"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[log::Ftp::LOG, SSL, X509, OCSP, file::FILES]
    }

    fn tcp_ports(&self) -> &'static [u16] {
        &PORTS
    }

    /// On its ports the client's first command tells, in the middle of a connection, too; the
    /// server must greet besides on others, since SMTP greets alike and POP3 has users, too.
    fn detect(&self, heads: &Heads<'_>) -> Detection {
        let client = begins_as_client(heads.originator);
        let greeting = begins_as_server(heads.responder);
        if PORTS.contains(&heads.port) {
            return match (client, greeting) {
                // Behind the greeting of a server any word of text is a command, as for Zeek.
                (Detection::No, Detection::Yes) if is_text(heads.originator) => Detection::Yes,
                (Detection::No, Detection::Undecided)
                    if !heads.responder.is_empty() && is_text(heads.originator) =>
                {
                    Detection::Undecided
                }
                _ => client,
            };
        }
        if heads.is_midstream {
            return Detection::No;
        }
        match (client, greeting) {
            (Detection::No, _) | (_, Detection::No) => Detection::No,
            (Detection::Yes, Detection::Yes) => Detection::Yes,
            _ => Detection::Undecided,
        }
    }

    fn session(&self, context: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(FtpSession::new(context))
    }
}

/// Whether a stream begins with a command that a client of FTP would send first.
fn begins_as_client(head: &[u8]) -> Detection {
    let line = head.get(..MAX_FIRST_LINE).unwrap_or(head);
    let is_whole = line.trim_ascii_start().iter().any(u8::is_ascii_whitespace);
    let (word, _) = first_word(line);
    if word.len() > codes::MAX_NAME || !word.iter().all(u8::is_ascii_alphabetic) {
        Detection::No
    } else if !is_whole || word.is_empty() {
        // White space alone, or a word that goes on.
        if head.len() < MAX_FIRST_LINE { Detection::Undecided } else { Detection::No }
    } else if codes::is_of_ftp_alone(word) {
        Detection::Yes
    } else {
        Detection::No
    }
}

/// Whether a stream begins with a server's greeting.
fn begins_as_server(head: &[u8]) -> Detection {
    let head = head.trim_ascii_start();
    for code in [b"220", b"120"] {
        match head.strip_prefix(code) {
            Some([b' ' | b'-' | b'\r' | b'\n', ..]) => return Detection::Yes,
            Some([_, ..]) => return Detection::No,
            Some([]) => return Detection::Undecided,
            None if code.starts_with(head) => return Detection::Undecided,
            None => {}
        }
    }
    Detection::No
}

/// Whether the first byte may begin a line of text.
fn is_text(head: &[u8]) -> bool {
    let first = head.trim_ascii_start().first();
    first.is_some_and(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(originator: &[u8], responder: &[u8], port: u16) -> Detection {
        Ftp.detect(&Heads { originator, responder, port, is_midstream: false })
    }

    #[test]
    fn both_sides_tell_on_ports_of_others() {
        let (user, greeting) = (b"USER anonymous\r\n", b"220 Welcome\r\n");
        assert_eq!(detect(user, greeting, 2121), Detection::Yes);
        assert_eq!(detect(b"", greeting, 2121), Detection::Undecided);
        assert_eq!(detect(b"US", b"22", 2121), Detection::Undecided);
        assert_eq!(detect(b"EHLO x\r\n", greeting, 2525), Detection::No);
        assert_eq!(detect(user, b"+OK\r\n", 1110), Detection::No);
        assert_eq!(detect(b"", b"2200", 2121), Detection::No);
    }

    #[test]
    fn the_client_tells_on_its_port() {
        assert_eq!(detect(b"user x\r\n", b"", 21), Detection::Yes);
        assert_eq!(detect(b"PASV\r\n", b"", 21), Detection::Yes);
        assert_eq!(detect(b"PAS", b"220 x\r\n", 21), Detection::Undecided);
        assert_eq!(detect(b"GET / HTTP/1.1\r\n", b"", 21), Detection::No);
        assert_eq!(detect(b"SSH-2.0-x\r\n", b"", 21), Detection::No);
        assert_eq!(detect(b"\x16\x03\x01", b"", 21), Detection::No);
        assert_eq!(detect(b"\r\nPAS", b"", 21), Detection::Undecided);
        assert_eq!(detect(b"\r\nPASV\r\n", b"", 21), Detection::Yes);
    }

    /// `FTP_Analyzer::DeliverStream` confirms with any word of three letters and more.
    #[test]
    fn behind_a_greeting_any_command_tells_on_its_port() {
        for first in
            [&b"QUIT\r\n"[..], b"HELP\r\n", b"XYZZY\r\n", b"GET / HTTP/1.1\r\n", b"\r\nQUIT\r\n"]
        {
            assert_eq!(detect(first, b"220 Welcome\r\n", 21), Detection::Yes);
            assert_eq!(detect(first, b"SSH-2.0-x\r\n", 21), Detection::No);
            assert_eq!(detect(first, b"220 Welcome\r\n", 2121), Detection::No);
        }
        assert_eq!(detect(b"\x16\x03\x01", b"220 Welcome\r\n", 21), Detection::No);
    }
}
