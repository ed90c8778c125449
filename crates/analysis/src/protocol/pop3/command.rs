//! Commands of POP3.

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pop3Command {
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

const WORDS: &[(&[u8], Pop3Command)] = &[
    (b"USER", Pop3Command::User),
    (b"PASS", Pop3Command::Password),
    (b"APOP", Pop3Command::Apop),
    (b"AUTH", Pop3Command::Auth),
    (b"STAT", Pop3Command::Stat),
    (b"LIST", Pop3Command::List),
    (b"UIDL", Pop3Command::List),
    (b"RETR", Pop3Command::Retrieve),
    (b"TOP", Pop3Command::Top),
    (b"DELE", Pop3Command::Delete),
    (b"CAPA", Pop3Command::Capabilities),
    (b"STLS", Pop3Command::StartTls),
    (b"QUIT", Pop3Command::Quit),
    (b"NOOP", Pop3Command::Other),
    (b"RSET", Pop3Command::Other),
    (b"LAST", Pop3Command::Other),
    (b"LANG", Pop3Command::Other),
    (b"UTF8", Pop3Command::Other),
    (b"XSENDER", Pop3Command::Other),
];

impl Pop3Command {
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
