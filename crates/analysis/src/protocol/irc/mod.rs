//! IRC, RFC 1459 and RFC 2812.
//!
//! | module | concern |
//! |---|---|
//! | [`message`] | a line: prefix, command, parameters |
//! | [`dcc`] | files that clients offer each other over connections of their own |
//! | [`log`] | the log |
//! | [`offered`] | files whose rows wait for what comes of them |
//! | [`session`] | who speaks where |

mod dcc;
mod log;
mod message;
mod offered;
mod session;

use super::syntax::line::{Bounded, bounded, first_word};
use super::{Detection, Heads, Protocol, Session, SessionContext};
use crate::record::LogType;
use message::IrcMessage;
use session::IrcSession;

/// A client with a server.
#[derive(Debug)]
pub(super) struct Irc;

/// The ports that Zeek takes for those of IRC.
const PORTS: [u16; 4] = [6666, 6667, 6668, 6669];

/// Bytes of the first lines: RFC 2812 has 512.
const MAX_FIRST_LINE: usize = 512;

/// What a client may say before it is registered.
const FIRST: [&[u8]; 13] = [
    b"CAP",
    b"PASS",
    b"NICK",
    b"USER",
    b"SERVICE",
    b"SERVER",
    b"PROTOCTL",
    b"STARTTLS",
    b"AUTHENTICATE",
    b"WEBIRC",
    b"PONG",
    b"PING",
    b"JOIN",
];

/// What else a client says, where the port says so, too: also first, where it came back.
const LATER: [&[u8]; 14] = [
    b"PRIVMSG", b"NOTICE", b"MODE", b"QUIT", b"PART", b"WHO", b"WHOIS", b"LIST", b"TOPIC",
    b"NAMES", b"INVITE", b"KICK", b"MOTD", b"AWAY",
];

/// What a server says first, where that is no number.
const GREETINGS: [&[u8]; 4] = [b"NOTICE", b"PING", b"CAP", b"ERROR"];

impl Protocol for Irc {
    fn name(&self) -> &'static str {
        "irc"
    }

    fn analyzer(&self) -> &'static str {
        "IRC"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[log::Irc::LOG]
    }

    fn tcp_ports(&self) -> &'static [u16] {
        &PORTS
    }

    /// On its ports the client's first line tells; on others the client must say both its nickname
    /// and its user, and the server answer as one.
    fn detect(&self, heads: &Heads<'_>) -> Detection {
        if heads.is_midstream {
            return Detection::No;
        }
        if PORTS.contains(&heads.port) {
            return first_command(heads.originator);
        }
        match (registers(heads.originator), answers(heads.responder)) {
            (Detection::No, _) | (_, Detection::No) => Detection::No,
            (Detection::Yes, Detection::Yes) => Detection::Yes,
            _ => Detection::Undecided,
        }
    }

    fn session(&self, _: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(IrcSession::default())
    }
}

/// Whether a client's first line is one of IRC.
fn first_command(head: &[u8]) -> Detection {
    match bounded(head, MAX_FIRST_LINE) {
        Bounded::Found(text, _) if is_first(text) || is_one_of(text, &LATER) => Detection::Yes,
        Bounded::Unfinished => match (may_begin(head, &FIRST), may_begin(head, &LATER)) {
            (Detection::No, Detection::No) => Detection::No,
            _ => Detection::Undecided,
        },
        Bounded::Found(..) | Bounded::TooLong => Detection::No,
    }
}

/// Whether the begin of a line may become a message with one of these commands.
fn may_begin(head: &[u8], commands: &[&[u8]]) -> Detection {
    let (word, _) = first_word(head);
    let is_begin = |command: &&[u8]| {
        command.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    // Tags and a prefix may stand before the command.
    if matches!(word, [b'@' | b':', ..]) || commands.iter().any(is_begin) {
        Detection::Undecided
    } else {
        Detection::No
    }
}

fn is_first(text: &[u8]) -> bool {
    is_one_of(text, &FIRST)
}

fn is_one_of(text: &[u8], commands: &[&[u8]]) -> bool {
    IrcMessage::read(text).is_some_and(|message| commands.iter().any(|command| message.is(command)))
}

/// Whether a client says its nickname and its user, and nothing that is not IRC before.
fn registers(mut head: &[u8]) -> Detection {
    let (mut has_nick, mut has_user) = (false, false);
    loop {
        match bounded(head, MAX_FIRST_LINE) {
            Bounded::Found(text, len) => {
                if !is_first(text) {
                    return Detection::No;
                }
                let Some(message) = IrcMessage::read(text) else { return Detection::No };
                has_nick |= message.is(b"NICK") && !message.params.is_empty();
                has_user |= message.is(b"USER") && !message.params.is_empty();
                if has_nick && has_user {
                    return Detection::Yes;
                }
                head = &head[len..];
            }
            Bounded::Unfinished => return may_begin(head, &FIRST),
            Bounded::TooLong => return Detection::No,
        }
    }
}

/// Whether a server's first line is one of IRC: a number behind a prefix, or words that servers
/// begin with.
fn answers(head: &[u8]) -> Detection {
    match bounded(head, MAX_FIRST_LINE) {
        Bounded::Found(text, _) => {
            let told = IrcMessage::read(text).is_some_and(|message| match message.number() {
                Some(_) => message.prefix.is_some(),
                None => GREETINGS.iter().any(|greeting| message.is(greeting)),
            });
            if told { Detection::Yes } else { Detection::No }
        }
        Bounded::Unfinished => may_begin(head, &GREETINGS),
        Bounded::TooLong => Detection::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(originator: &[u8], responder: &[u8], port: u16) -> Detection {
        Irc.detect(&Heads { originator, responder, port, is_midstream: false })
    }

    #[test]
    fn the_first_line_tells_on_its_ports() {
        assert_eq!(detect(b"CAP LS 302\r\n", b"", 6667), Detection::Yes);
        assert_eq!(detect(b"CAP LS", b"", 6667), Detection::Undecided);
        assert_eq!(detect(b"PRIVMSG me :\x01DCC SEND", b"", 6667), Detection::Undecided);
        assert_eq!(detect(b"PRIVMSG me :hello\r\n", b"", 6667), Detection::Yes);
        assert_eq!(detect(b"PRIVMSG me :hello\r\n", b"", 7000), Detection::No);
        assert_eq!(detect(b"GET / HTTP/1.1\r\n", b"", 6667), Detection::No);
    }

    #[test]
    fn both_sides_tell_on_other_ports() {
        let client = b"PASS x\r\nNICK me\r\nUSER me 0 * :Me\r\n";
        assert_eq!(detect(client, b":irc.example 001 me :Welcome\r\n", 7000), Detection::Yes);
        assert_eq!(detect(client, b"NOTICE AUTH :*** Hello\r\n", 7000), Detection::Yes);
        assert_eq!(detect(client, b"", 7000), Detection::Undecided);
        assert_eq!(detect(b"USER me\r\nPASS x\r\n", b"", 2121), Detection::Undecided);
        assert_eq!(detect(b"USER me\r\n", b"220 Welcome\r\n", 2121), Detection::No);
        assert_eq!(detect(b"USER me\r\nTYPE I\r\n", b"", 2121), Detection::No);
        // What cannot become a message is known for that at once.
        assert_eq!(detect(b"\x16\x03", b"", 7000), Detection::No);
        assert_eq!(detect(b"G", b"", 7000), Detection::No);
        assert_eq!(detect(b"ni", b":", 7000), Detection::Undecided);
        assert_eq!(detect(b"", b"2", 7000), Detection::No);
    }
}
