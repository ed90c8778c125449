//! What two readers of one message may take differently, or may refuse (RFC 9112): whoever stands between
//! client and server, as an analysis does, may have seen another message than they did.
//!
//! | what is told | where the standard has it |
//! |---|---|
//! | `HTTP_bare_CR` | 2.2: a CR without a LF |
//! | `HTTP_control_character` | 2.2 and RFC 9110, 5.5: a NUL, say, which ends strings for some |
//! | `HTTP_blank_before_colon` | 5.1: servers must refuse it, proxies remove it |
//! | `HTTP_bad_header_field` | 5.1: a name that is none, or no colon |

use memchr::memchr;

use crate::protocol::mime::is_token_byte;
use crate::protocol::syntax::line::Line;
use crate::weird::Weirds;

/// Looks at the first line of `data`.
pub(super) fn of_line(data: &[u8], line: &Line<'_>, weirds: &mut Weirds) {
    let is_bare = line.len == line.text.len() + 1 && data.get(line.text.len()) == Some(&b'\r');
    // At the end of a stream nobody knows what would have followed.
    if is_bare && data.len() > line.len {
        weirds.add("HTTP_bare_CR");
    }
    let is_control = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f;
    // Without an early end, so that many bytes are looked at together.
    if line.text.iter().fold(false, |found, byte| found | is_control(byte)) {
        weirds.add("HTTP_control_character");
    }
}

/// Looks at the name of a header field with all of its lines.
pub(super) fn of_field(text: &[u8], weirds: &mut Weirds) {
    let colon = memchr(b':', text);
    let name = colon.and_then(|colon| text.get(..colon)).unwrap_or_default();
    let bare = name.trim_ascii_end();
    if bare.is_empty() || !bare.iter().copied().all(is_token_byte) {
        weirds.add("HTTP_bad_header_field");
    } else if bare.len() < name.len() {
        weirds.add("HTTP_blank_before_colon");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::http::line::{Next, line};

    fn weirds_of(look: impl FnOnce(&mut Weirds)) -> Vec<&'static str> {
        let mut weirds = Weirds::default();
        look(&mut weirds);
        weirds.drain().map(|oddity| oddity.name).collect()
    }

    #[test]
    fn lines_with_controls() {
        for (data, expected) in [
            (&b"A: b\r\nC"[..], vec![]),
            (b"A:\tb\xe9\nC", vec![]),
            (b"A: b\rC", vec!["HTTP_bare_CR"]),
            (b"A: b\0c\r\n", vec!["HTTP_control_character"]),
            (b"A: \x7f\r\r\n", vec!["HTTP_bare_CR", "HTTP_control_character"]),
        ] {
            let line = line(data, 0, Next::Open).unwrap();
            assert_eq!(weirds_of(|weirds| of_line(data, &line, weirds)), expected, "{data:?}");
        }
    }

    #[test]
    fn names_of_fields() {
        for (text, expected) in [
            ("Host:x", None),
            ("x-A_b: c:d", None),
            ("Host : x", Some("HTTP_blank_before_colon")),
            (" Host: x", Some("HTTP_bad_header_field")),
            ("Ho st: x", Some("HTTP_bad_header_field")),
            ("Host", Some("HTTP_bad_header_field")),
            (": x", Some("HTTP_bad_header_field")),
            ("H\u{e9}: x", Some("HTTP_bad_header_field")),
        ] {
            let told = weirds_of(|weirds| of_field(text.as_bytes(), weirds));
            assert_eq!(told, Vec::from_iter(expected), "{text}");
        }
    }
}
