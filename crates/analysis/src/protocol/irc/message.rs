//! A line of IRC: RFC 2812 section 2.3.1, with the tags of IRCv3 before it.

use crate::protocol::syntax::line::first_word;

/// A message (RFC 2812, 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IrcMessage<'a> {
    /// Who says it, where that is told.
    pub(super) prefix: Option<&'a [u8]>,
    /// Its command or number, in letters of any case.
    pub(super) command: &'a [u8],
    /// The parameters, not yet parted.
    pub(super) params: &'a [u8],
}

impl<'a> IrcMessage<'a> {
    /// Reads a line; `None` for one without a command.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        let mut rest = line.trim_ascii_start();
        if rest.starts_with(b"@") {
            (_, rest) = first_word(rest);
        }
        let mut prefix = None;
        if let Some(behind) = rest.strip_prefix(b":") {
            let end = behind.iter().position(|&byte| byte == b' ')?;
            prefix = Some(&behind[..end]);
            rest = &behind[end..];
        }
        let (command, params) = first_word(rest);
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric();
        let is_command = !command.is_empty() && command.iter().all(is_word);
        is_command.then_some(Self { prefix, command, params })
    }

    /// Whether it has this command.
    pub(super) fn is(&self, command: &[u8]) -> bool {
        self.command.eq_ignore_ascii_case(command)
    }

    /// The number of a server's reply.
    pub(super) fn number(&self) -> Option<u16> {
        let digits = self.command.first_chunk::<3>().filter(|_| self.command.len() == 3)?;
        digits.iter().try_fold(0, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + u16::from(digit - b'0'))
        })
    }

    /// The parameters one by one; the last may have spaces in it, and a colon before it.
    pub(super) fn each(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.params.trim_ascii_end();
        core::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            if let Some(last) = rest.strip_prefix(b":") {
                rest = b"";
                return Some(last);
            }
            let word;
            (word, rest) = first_word(rest);
            Some(word)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_parts() {
        let line = b"@time=1 :tim!t@h  PRIVMSG #x :how are you ";
        let message = IrcMessage::read(line).unwrap();
        assert_eq!(message.prefix, Some(&b"tim!t@h"[..]));
        assert!(message.is(b"privmsg") && message.number().is_none());
        assert!(message.each().eq([&b"#x"[..], b"how are you"]));
        let message = IrcMessage::read(b":irc.example 001 me :Welcome").unwrap();
        assert_eq!(message.number(), Some(1));
        assert!(IrcMessage::read(b"JOIN :").unwrap().each().eq([b""; 1]));
        for line in [&b""[..], b"  ", b":prefix", b"\x16\x03\x01", b":a ", b"@tags"] {
            assert_eq!(IrcMessage::read(line), None);
        }
    }
}
