//! Commands of IMAP and how they are written (RFC 9051, RFC 3501).

/// What a client asks for, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImapCommand {
    Login,
    /// AUTHENTICATE, by SASL.
    Authenticate,
    StartTls,
    /// COMPRESS (RFC 4978), behind which nothing can be read.
    Compress,
    Select,
    /// EXAMINE: select to read only.
    Examine,
    /// CLOSE and UNSELECT.
    Close,
    Append,
    Fetch,
    Store,
    Search,
    /// COPY and MOVE.
    Copy,
    /// One of which only the number counts.
    Other,
}

const WORDS: &[(&[u8], ImapCommand)] = &[
    (b"LOGIN", ImapCommand::Login),
    (b"AUTHENTICATE", ImapCommand::Authenticate),
    (b"STARTTLS", ImapCommand::StartTls),
    (b"COMPRESS", ImapCommand::Compress),
    (b"SELECT", ImapCommand::Select),
    (b"EXAMINE", ImapCommand::Examine),
    (b"CLOSE", ImapCommand::Close),
    (b"UNSELECT", ImapCommand::Close),
    (b"APPEND", ImapCommand::Append),
    (b"FETCH", ImapCommand::Fetch),
    (b"STORE", ImapCommand::Store),
    (b"SEARCH", ImapCommand::Search),
    (b"SORT", ImapCommand::Search),
    (b"THREAD", ImapCommand::Search),
    (b"COPY", ImapCommand::Copy),
    (b"MOVE", ImapCommand::Copy),
    (b"UID", ImapCommand::Other),
    (b"CAPABILITY", ImapCommand::Other),
    (b"NOOP", ImapCommand::Other),
    (b"LOGOUT", ImapCommand::Other),
    (b"ENABLE", ImapCommand::Other),
    (b"CREATE", ImapCommand::Other),
    (b"DELETE", ImapCommand::Other),
    (b"RENAME", ImapCommand::Other),
    (b"SUBSCRIBE", ImapCommand::Other),
    (b"UNSUBSCRIBE", ImapCommand::Other),
    (b"LIST", ImapCommand::Other),
    (b"LSUB", ImapCommand::Other),
    (b"XLIST", ImapCommand::Other),
    (b"NAMESPACE", ImapCommand::Other),
    (b"STATUS", ImapCommand::Other),
    (b"IDLE", ImapCommand::Other),
    (b"CHECK", ImapCommand::Other),
    (b"EXPUNGE", ImapCommand::Other),
    (b"ID", ImapCommand::Other),
    (b"NOTIFY", ImapCommand::Other),
    (b"GETQUOTA", ImapCommand::Other),
    (b"GETQUOTAROOT", ImapCommand::Other),
    (b"SETQUOTA", ImapCommand::Other),
    (b"GETACL", ImapCommand::Other),
    (b"SETACL", ImapCommand::Other),
    (b"DELETEACL", ImapCommand::Other),
    (b"MYRIGHTS", ImapCommand::Other),
    (b"GETMETADATA", ImapCommand::Other),
    (b"SETMETADATA", ImapCommand::Other),
    (b"XAPPLEPUSHSERVICE", ImapCommand::Other),
];

impl ImapCommand {
    /// The command of this word, in any case of letters.
    pub(super) fn named(word: &[u8]) -> Option<Self> {
        let found = WORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        found.map(|(_, command)| *command)
    }
}

/// A literal that follows a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LiteralMark<'a> {
    /// What stands before its length.
    pub(super) before: &'a [u8],
    pub(super) len: u64,
}

/// The literal that a line announces at its end: `{310}`, or `{310+}` where nobody waits
/// (RFC 7888), or `~{310}` for binary content (RFC 3516).
pub(super) fn literal(text: &[u8]) -> Option<LiteralMark<'_>> {
    let inner = text.strip_suffix(b"}")?;
    let open = inner.iter().rposition(|&byte| byte == b'{')?;
    let digits = inner.get(open + 1..)?;
    let digits = digits.strip_suffix(b"+").unwrap_or(digits);
    if !digits.first().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let len = core::str::from_utf8(digits).ok()?.parse().ok()?;
    let before = inner.get(..open)?;
    Some(LiteralMark { before: before.strip_suffix(b"~").unwrap_or(before).trim_ascii_end(), len })
}

/// The argument that a text begins with: quoted, or up to a blank (`astring`). `None` where it is a
/// literal that follows, or nothing.
pub(super) fn argument(text: &[u8]) -> Option<Vec<u8>> {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end = text.iter().position(|&byte| byte == b' ').unwrap_or(text.len());
        let atom = text.get(..end)?;
        return (!atom.is_empty() && literal(atom).is_none()).then(|| atom.to_vec());
    };
    let mut argument = Vec::new();
    let mut bytes = quoted.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'"' => break,
            b'\\' => argument.extend(bytes.next()),
            _ => argument.push(byte),
        }
    }
    Some(argument)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_announced_at_the_end() {
        let found = |text: &'static str| literal(text.as_bytes());
        let mark = |before: &'static str, len| Some(LiteralMark { before: before.as_bytes(), len });
        assert_eq!(found("* 2 FETCH (BODY[] {649}"), mark("* 2 FETCH (BODY[]", 649));
        assert_eq!(found("A APPEND x {3+}"), mark("A APPEND x", 3));
        assert_eq!(found("A APPEND x ~{3}"), mark("A APPEND x", 3));
        for wrong in ["{}", "{x}", "{3", "3}", "{-1}", "{99999999999999999999}", "{+}", ""] {
            assert_eq!(literal(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn arguments_are_atoms_or_quoted() {
        assert_eq!(argument(b"INBOX (FLAGS)").unwrap(), b"INBOX");
        assert_eq!(argument(b"\"a \\\"b\\\\\" c").unwrap(), b"a \"b\\");
        assert_eq!(argument(b"{5}"), None);
        assert_eq!(argument(b""), None);
    }
}
