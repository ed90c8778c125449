//! What lines of the control connection say: telnet's commands taken out (RFC 959, section 5.3.1),
//! commands with their arguments, and replies (section 4.2).

use std::borrow::Cow;

/// "Interpret as command", RFC 854.
const IAC: u8 = 255;
/// From here on a command of telnet takes an option: WILL, WONT, DO, DONT.
const WILL: u8 = 251;

/// A line without the commands of telnet in it, as ABOR is sent behind some.
pub(super) fn without_telnet(line: &[u8]) -> Cow<'_, [u8]> {
    if !line.contains(&IAC) {
        return Cow::Borrowed(line);
    }
    let mut text = Vec::with_capacity(line.len());
    let mut bytes = line.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != IAC {
            text.push(byte);
            continue;
        }
        match bytes.next() {
            Some(IAC) => text.push(IAC),
            Some(WILL..) => drop(bytes.next()),
            _ => {}
        }
    }
    Cow::Owned(text)
}

/// Whether a word can be a command, as Zeek has it.
pub(super) fn is_command(word: &[u8]) -> bool {
    word.len() >= 3 && word.iter().all(u8::is_ascii_graphic)
}

/// A line of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply<'a> {
    /// The last line, or the only one.
    Last(u16, &'a [u8]),
    /// The first of several.
    First(u16, &'a [u8]),
    /// One between the first and the last.
    Between,
    /// No reply at all.
    Malformed,
}

/// Reads a line of the server, where `open` is the code of a reply whose last line did not come yet.
pub(super) fn reply(line: &[u8], open: Option<u16>) -> Reply<'_> {
    let start = line.first_chunk::<3>().filter(|digits| digits.iter().all(u8::is_ascii_digit));
    let code = start.map_or(0, |digits| {
        digits.iter().fold(0, |code, &digit| code * 10 + u16::from(digit - b'0'))
    });
    let text = line.get(4..).unwrap_or_default().trim_ascii_start();
    match (line.get(3), open) {
        (_, None) if code < 100 => Reply::Malformed,
        (Some(b'-'), None) => Reply::First(code, text),
        (Some(b' ') | None, None) => Reply::Last(code, text),
        (Some(_), None) => Reply::Malformed,
        (Some(b' ') | None, Some(open)) if open == code => Reply::Last(code, text),
        // RFC 959 wants lines that begin like a reply to be indented within another one. Where such
        // a line says as much as a reply does, the server has forgotten to end the other one.
        (Some(b' '), Some(_)) if code >= 100 && is_told(text) => Reply::Last(code, text),
        (_, Some(_)) => Reply::Between,
    }
}

/// Whether a text has ten letters to begin with.
fn is_told(text: &[u8]) -> bool {
    text.get(..10).is_some_and(|start| start.iter().all(|b| b.is_ascii_graphic() || *b == b' '))
}

/// The last number in a text.
pub(super) fn last_number(text: &[u8]) -> Option<u64> {
    let mut runs = text.split(|byte| !byte.is_ascii_digit());
    runs.rfind(|digits| !digits.is_empty()).and_then(crate::protocol::syntax::line::number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn telnet_is_taken_out() {
        assert_eq!(&*without_telnet(b"\xff\xf4\xff\xf2ABOR"), b"ABOR");
        assert_eq!(&*without_telnet(b"A\xff\xfb\x01B\xff\xffC\xff"), b"AB\xffC");
    }

    #[test]
    fn replies_have_lines() {
        assert_eq!(reply(b"220 Welcome", None), Reply::Last(220, b"Welcome"));
        assert_eq!(reply(b"220", None), Reply::Last(220, b""));
        assert_eq!(reply(b"211-Features:", None), Reply::First(211, b"Features:"));
        assert_eq!(reply(b" EPSV", Some(211)), Reply::Between);
        assert_eq!(reply(b"211-more", Some(211)), Reply::Between);
        assert_eq!(reply(b"211 End", Some(211)), Reply::Last(211, b"End"));
        assert_eq!(reply(b"226 5", Some(211)), Reply::Between);
        assert_eq!(reply(b"226 Transfer complete.", Some(230)), {
            Reply::Last(226, b"Transfer complete.")
        });
        for line in [&b"HTTP/1.1 200 OK"[..], b"", b"22", b"099 x", b"220x", b"2 0 x"] {
            assert_eq!(reply(line, None), Reply::Malformed);
        }
    }

    #[test]
    fn the_last_number_counts() {
        assert_eq!(last_number(b"Opening connection for 'a1' (77 bytes)."), Some(77));
        assert_eq!(last_number(b"no"), None);
    }
}
