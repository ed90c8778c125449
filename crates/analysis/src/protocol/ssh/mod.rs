//! SSH, RFC 4253, up to the login; SSH 1 as far as its key exchange.
//!
//! | module | concern |
//! |---|---|
//! | [`version`] | identification strings, and the version that both sides speak |
//! | [`packet`] | packets before they are encrypted |
//! | [`algorithms`] | what the sides offer, what is agreed, HASSH |
//! | [`authentication`] | whether the login succeeded, by the sizes of what is encrypted |
//! | [`framing`] | how long what is encrypted is |
//! | [`log`] | the log |
//! | [`login`] | a connection up to its login: a row of the log |
//! | [`session`] | the order of it all |

mod algorithms;
mod authentication;
mod framing;
mod log;
mod login;
mod packet;
mod session;
mod version;

use super::{Detection, Heads, Protocol, Session, SessionContext};
use crate::record::LogType;
use session::SshSession;

/// A client with a server.
#[derive(Debug)]
pub(super) struct Ssh;

/// The port of SSH.
const PORT: u16 = 22;

impl Protocol for Ssh {
    fn name(&self) -> &'static str {
        "ssh"
    }

    fn analyzer(&self) -> &'static str {
        "SSH"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[log::Ssh::LOG]
    }

    fn tcp_ports(&self) -> &'static [u16] {
        &[PORT]
    }

    /// Both sides begin with an identification string. On the port of SSH one is enough, since a
    /// server may say other lines before, and one direction may be all that was captured.
    fn detect(&self, heads: &Heads<'_>) -> Detection {
        if heads.is_midstream {
            return Detection::No;
        }
        let sides = [heads.originator, heads.responder].map(version::begins);
        let (any, all) = (sides.contains(&Detection::Yes), sides[0] == sides[1]);
        match heads.port {
            PORT if any => Detection::Yes,
            PORT if all => sides[0],
            // A client that says a whole line of something else will hardly go on in SSH, unless the server has begun
            // to say what may become an identification string.
            PORT if sides[0] == Detection::No
                && heads.originator.contains(&b'\n')
                && heads.responder.is_empty() =>
            {
                Detection::No
            }
            PORT => Detection::Undecided,
            _ if sides.contains(&Detection::No) => Detection::No,
            _ if all => sides[0],
            _ => Detection::Undecided,
        }
    }

    fn session(&self, context: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(SshSession::new(context.port == PORT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(originator: &[u8], responder: &[u8], port: u16) -> Detection {
        Ssh.detect(&Heads { originator, responder, port, is_midstream: false })
    }

    #[test]
    fn both_sides_must_say_it_on_ports_of_others() {
        let (ssh, http) = (b"SSH-2.0-x\r\n", b"HTTP/1.1 200");
        assert_eq!(detect(ssh, ssh, 2222), Detection::Yes);
        assert_eq!(detect(ssh, b"", 2222), Detection::Undecided);
        assert_eq!(detect(ssh, http, 2222), Detection::No);
        assert_eq!(detect(b"", http, 2222), Detection::No);
        assert_eq!(detect(b"ssh-1.", b"SSH-1.99", 2222), Detection::Yes);
        assert_eq!(detect(b"SSH-3.0", ssh, 2222), Detection::No);
    }

    #[test]
    fn one_side_is_enough_on_its_port() {
        assert_eq!(detect(b"", b"SSH-2.0-x\r\n", PORT), Detection::Yes);
        assert_eq!(detect(b"SSH-2.0-x\r\n", b"Welcome\r\n", PORT), Detection::Yes);
        assert_eq!(detect(b"", b"Welcome\r\n", PORT), Detection::Undecided);
        assert_eq!(detect(b"GET /", b"HTTP/1.1 200", PORT), Detection::No);
        assert_eq!(detect(b"GET /", b"", PORT), Detection::Undecided);
        assert_eq!(detect(b"GET / HTTP/1.1\r\n", b"", PORT), Detection::No);
        assert_eq!(detect(b"GET /\r\n", b"SSH", PORT), Detection::Undecided);
        assert_eq!(detect(b"GET /\r\n", b"SSH-2.0-x", PORT), Detection::Yes);
        let heads =
            Heads { originator: b"SSH-2.0-x", responder: b"", port: PORT, is_midstream: true };
        assert_eq!(Ssh.detect(&heads), Detection::No);
    }
}
