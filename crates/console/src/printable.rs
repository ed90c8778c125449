//! Text from outside on its way to a terminal, a log or JSON: no sign in it may control, hide, turn or separate.
//!
//! THE escaping of all outputs. Each writes what is escaped in its own way.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;

/// A piece of text from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Signs that only show themselves.
    Text(&'a str),
    /// The bytes of one sign that does more ([`is_active`]), or bytes beyond ASCII in what is no UTF-8.
    Active(&'a [u8]),
}

/// Whether a sign does more than to show itself: the controls C0, DEL and C1 (ECMA-48), signs that turn the direction of
/// what follows (Unicode UAX 9: U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069), and those that begin a line
/// (U+2028, U+2029; NEL is among C1).
#[must_use]
pub const fn is_active(sign: char) -> bool {
    matches!(
        sign,
        '\0'..='\x1f'
            | '\x7f'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

/// Hands over bytes from outside piece by piece, in order. What is no UTF-8 as a whole is no text in any language: then each
/// byte beyond ASCII is active, as in Zeek, and not only those that are no UTF-8 where they stand.
pub fn each_piece<'a>(bytes: &'a [u8], mut take: impl FnMut(Piece<'a>)) {
    if let Ok(text) = str::from_utf8(bytes) {
        return each_sign(text, &mut take);
    }
    for run in bytes.chunk_by(|a, b| a.is_ascii() == b.is_ascii()) {
        match str::from_utf8(run) {
            Ok(text) if run.is_ascii() => each_sign(text, &mut take),
            _ => take(Piece::Active(run)),
        }
    }
}

fn each_sign<'a>(mut rest: &'a str, take: &mut impl FnMut(Piece<'a>)) {
    while let Some((at, sign)) = rest.char_indices().find(|(_, sign)| is_active(*sign)) {
        let (text, behind) = rest.split_at(at);
        if !text.is_empty() {
            take(Piece::Text(text));
        }
        let (sign, behind) = behind.split_at(sign.len_utf8());
        take(Piece::Active(sign.as_bytes()));
        rest = behind;
    }
    if !rest.is_empty() {
        take(Piece::Text(rest));
    }
}

/// Text for people: each byte of an active sign as `\xNN`.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_active) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    each_piece(text.as_bytes(), |piece| match piece {
        Piece::Text(text) => out.push_str(text),
        Piece::Active(bytes) => {
            for byte in bytes {
                // Writing to a `String` cannot fail.
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    });
    Cow::Owned(out)
}

/// The same of text in lines, whose ends stay.
#[must_use]
pub fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

/// A JSON document as it was written, with active signs as `\u00NN`: they can only be in strings.
///
/// A serializer escapes C0 alone, as RFC 8259 demands; what is left are signs that it need not escape, and the white
/// space between values.
#[must_use]
pub fn printable_json(document: &str) -> Cow<'_, str> {
    let is_raw = |sign: char| is_active(sign) && sign != '\n';
    if !document.contains(is_raw) {
        return Cow::Borrowed(document);
    }
    let mut out = String::with_capacity(document.len() + 16);
    for sign in document.chars() {
        if is_raw(sign) {
            // All of them are in the basic plane.
            let _ = write!(out, "\\u{:04x}", u32::from(sign));
        } else {
            out.push(sign);
        }
    }
    Cow::Owned(out)
}

/// A value as one line of JSON, with its end.
///
/// # Errors
///
/// When the value cannot be serialized.
pub fn json_line(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(printable_json(&serde_json::to_string(value)?).into_owned() + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each sign that is active, by the ranges of the standards and not by the code.
    fn active() -> Vec<char> {
        let ranges: [(u32, u32); 8] = [
            (0, 0x1f),
            (0x7f, 0x7f),
            (0x80, 0x9f),
            (0x61c, 0x61c),
            (0x200e, 0x200f),
            (0x2028, 0x2029),
            (0x202a, 0x202e),
            (0x2066, 0x2069),
        ];
        ranges.iter().flat_map(|&(first, last)| first..=last).filter_map(char::from_u32).collect()
    }

    #[test]
    fn every_active_sign_is_escaped_and_no_other_one() {
        let active = active();
        for sign in '\0'..='\u{ffff}' {
            let text = format!("a{sign}b");
            assert_eq!(printable(&text) != text, active.contains(&sign), "{:04x}", u32::from(sign));
        }
        assert_eq!(printable("a\u{9b}31m\u{202e}b\x7f"), r"a\xc2\x9b31m\xe2\x80\xaeb\x7f");
    }

    #[test]
    fn words_of_other_languages_stay() {
        for text in ["ynet חדשות", "می‌خواهم", "日本語", "नमस्ते", "Zürich", "👩‍🚀", ""]
        {
            assert_eq!(printable(text), text);
            assert_eq!(printable_json(text), text);
        }
    }

    #[test]
    fn a_document_reads_back_as_it_was() {
        let text: String = active().into_iter().chain("é\\\"".chars()).collect();
        let document = serde_json::to_string_pretty(&vec![text.clone()]).unwrap();
        let printed = printable_json(&document);
        assert!(!printed.contains(|sign: char| is_active(sign) && sign != '\n'), "{printed}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&printed).unwrap(), [text]);
    }

    #[test]
    fn pieces_are_all_of_the_bytes_in_order() {
        let bytes = b"a\xc2\x9b\xff\xe2\x82b\x1b";
        let (mut found, mut pieces) = (Vec::new(), 0);
        each_piece(bytes, |piece| {
            pieces += 1;
            match piece {
                Piece::Text(text) => found.extend_from_slice(text.as_bytes()),
                Piece::Active(bytes) => found.extend_from_slice(bytes),
            }
        });
        assert_eq!((found.as_slice(), pieces), (&bytes[..], 4));
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(printable_lines("a\x1b\nb\r\n"), "a\\x1b\nb\\x0d\n");
    }
}
