//! Commands of SMTP (RFC 5321, section 4.1) and its extensions.

/// What a client asks for, and what else a server replies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SmtpCommand {
    /// The connection itself, which the greeting replies to.
    Connection,
    /// EHLO, HELO, and LHLO of LMTP (RFC 2033).
    Hello,
    /// MAIL and its forerunners SEND, SOML and SAML (RFC 821).
    Mail,
    Recipient,
    Data,
    /// The end of what follows DATA.
    EndOfData,
    /// A chunk of a mail, maybe the last one (RFC 3030).
    Chunk(LastChunk),
    Reset,
    Quit,
    /// AUTH (RFC 4954).
    Authenticate,
    /// What the client sends within AUTH.
    AuthAnswer,
    /// STARTTLS (RFC 3207), and what Microsoft calls X-ANONYMOUSTLS.
    StartTls,
    /// TURN, by which client and server change roles (RFC 821).
    Turn,
    /// One that changes nothing.
    Other,
    /// One that is not known.
    Unknown,
}

/// Whether a chunk ends its mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastChunk(pub(super) bool);

/// The words of commands.
const WORDS: &[(&[u8], SmtpCommand)] = &[
    (b"EHLO", SmtpCommand::Hello),
    (b"HELO", SmtpCommand::Hello),
    (b"LHLO", SmtpCommand::Hello),
    (b"MAIL", SmtpCommand::Mail),
    (b"SEND", SmtpCommand::Mail),
    (b"SOML", SmtpCommand::Mail),
    (b"SAML", SmtpCommand::Mail),
    (b"RCPT", SmtpCommand::Recipient),
    (b"DATA", SmtpCommand::Data),
    (b"BDAT", SmtpCommand::Chunk(LastChunk(false))),
    (b"RSET", SmtpCommand::Reset),
    (b"QUIT", SmtpCommand::Quit),
    (b"AUTH", SmtpCommand::Authenticate),
    (b"STARTTLS", SmtpCommand::StartTls),
    (b"X-ANONYMOUSTLS", SmtpCommand::StartTls),
    (b"TURN", SmtpCommand::Turn),
    (b"VRFY", SmtpCommand::Other),
    (b"EXPN", SmtpCommand::Other),
    (b"HELP", SmtpCommand::Other),
    (b"NOOP", SmtpCommand::Other),
    (b"ETRN", SmtpCommand::Other),
];

impl SmtpCommand {
    /// The command of this word, in any case of letters.
    pub(super) fn named(word: &[u8]) -> Self {
        let found = WORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        found.map_or(Self::Unknown, |(_, command)| *command)
    }
}

/// The argument of BDAT: the length of the chunk, and whether it is the last (RFC 3030, section 2).
pub(super) fn chunk(argument: &[u8]) -> Option<(u64, LastChunk)> {
    let mut words = argument.split(|&byte| byte == b' ');
    let digits = words.next().filter(|digits| digits.first().is_some_and(u8::is_ascii_digit))?;
    let len = core::str::from_utf8(digits).ok()?.parse().ok()?;
    match (words.next(), words.next()) {
        (None, None) => Some((len, LastChunk(false))),
        (Some(last), None) if last.eq_ignore_ascii_case(b"LAST") => Some((len, LastChunk(true))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_commands_in_any_case() {
        assert_eq!(SmtpCommand::named(b"ehlo"), SmtpCommand::Hello);
        assert_eq!(SmtpCommand::named(b"X-AnonymousTLS"), SmtpCommand::StartTls);
        assert_eq!(SmtpCommand::named(b"X"), SmtpCommand::Unknown);
        assert_eq!(SmtpCommand::named(b""), SmtpCommand::Unknown);
    }

    #[test]
    fn chunks_have_a_length() {
        assert_eq!(chunk(b"86"), Some((86, LastChunk(false))));
        assert_eq!(chunk(b"86 last"), Some((86, LastChunk(true))));
        assert_eq!(chunk(b"18446744073709551615 LAST"), Some((u64::MAX, LastChunk(true))));
        let wrong = [" 86 LAST", "x LAST", "86LAST", "86 x", "86 LASTx", "-42 LAST", "+1", ""];
        for wrong in wrong.into_iter().chain(["184467440737095516150", "1 LAST x"]) {
            assert_eq!(chunk(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
