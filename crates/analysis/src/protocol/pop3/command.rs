//! Commands of POP3.

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Nothing: the server greets.
    Greeting,
    User,
    Password,
    /// APOP: user and digest.
    Apop,
    /// AUTH (RFC 5034).
    Auth,
    /// STAT: how many mails there are.
    Stat,
    /// LIST and UIDL: the mails one by one, or one of them.
    List,
    /// RETR: a mail.
    Retrieve,
    /// TOP: the begin of a mail.
    Top,
    Delete,
    /// CAPA (RFC 2449).
    Capabilities,
    /// STLS (RFC 2595).
    StartTls,
    Quit,
    /// One that changes nothing that is told.
    Other,
    Unknown,
}

const WORDS: &[(&[u8], Command)] = &[
    (b"USER", Command::User),
    (b"PASS", Command::Password),
    (b"APOP", Command::Apop),
    (b"AUTH", Command::Auth),
    (b"STAT", Command::Stat),
    (b"LIST", Command::List),
    (b"UIDL", Command::List),
    (b"RETR", Command::Retrieve),
    (b"TOP", Command::Top),
    (b"DELE", Command::Delete),
    (b"CAPA", Command::Capabilities),
    (b"STLS", Command::StartTls),
    (b"QUIT", Command::Quit),
    (b"NOOP", Command::Other),
    (b"RSET", Command::Other),
    (b"LAST", Command::Other),
    (b"LANG", Command::Other),
    (b"UTF8", Command::Other),
    (b"XSENDER", Command::Other),
];

impl Command {
    /// The command of this word, in any case of letters.
    pub(super) fn named(word: &[u8]) -> Self {
        let found = WORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        found.map_or(Self::Unknown, |(_, command)| *command)
    }

    /// Whether a command may begin so.
    pub(super) fn has_begin(begin: &[u8]) -> bool {
        WORDS.iter().any(|(name, _)| {
            name.get(..begin.len()).is_some_and(|name| name.eq_ignore_ascii_case(begin))
        })
    }

    /// Whether a positive reply to it has more lines, up to a dot.
    pub(super) const fn has_lines(self, argument: &[u8]) -> bool {
        match self {
            Self::Retrieve | Self::Top | Self::Capabilities => true,
            Self::List | Self::Auth => argument.is_empty(),
            _ => false,
        }
    }
}
