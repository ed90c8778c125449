//! Texts of rules as somebody may have encoded them.

use rsigma_parser::{Modifier, SigmaString};

/// Signs that programs take for the dash before an option.
const DASHES: [char; 5] = ['-', '/', '\u{2013}', '\u{2014}', '\u{2015}'];

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The texts that a text of a rule stands for.
pub(super) fn encoded(
    text: &SigmaString,
    modifiers: &[Modifier],
) -> Result<Vec<SigmaString>, String> {
    let has = |modifier| modifiers.contains(&modifier);
    let (whole, at_any_place) = (has(Modifier::Base64), has(Modifier::Base64Offset));
    let is_wide = [Modifier::Wide, Modifier::Utf16, Modifier::Utf16be].into_iter().any(has);
    if !whole && !at_any_place {
        return match () {
            () if is_wide => Err("UTF-16 is only known with base64".to_owned()),
            () if has(Modifier::WindAsh) => Ok(DASHES.map(|dash| with_dash(text, dash)).into()),
            () => Ok(vec![text.clone()]),
        };
    }
    let plain = text.as_plain().ok_or("a text for base64 has no wildcards")?;
    let bytes = bytes(&plain, modifiers);
    Ok(if whole {
        vec![SigmaString::from_raw(&base64(&bytes))]
    } else {
        (0..3).map(|offset| SigmaString::from_raw(&base64_at(&bytes, offset))).collect()
    })
}

/// The bytes of a text, of which UTF-16 without a byte order is told by a mark.
fn bytes(text: &str, modifiers: &[Modifier]) -> Vec<u8> {
    let has = |modifier| modifiers.contains(&modifier);
    let units = || text.encode_utf16();
    if has(Modifier::Utf16be) {
        units().flat_map(u16::to_be_bytes).collect()
    } else if has(Modifier::Utf16) {
        [0xfeff].into_iter().chain(units()).flat_map(u16::to_le_bytes).collect()
    } else if has(Modifier::Wide) {
        units().flat_map(u16::to_le_bytes).collect()
    } else {
        text.as_bytes().to_vec()
    }
}

/// A text with another sign before its options.
fn with_dash(text: &SigmaString, dash: char) -> SigmaString {
    let mut is_word = false;
    let changed = text.original.chars().map(|c| {
        let begins = !is_word && DASHES.contains(&c);
        is_word = c.is_alphanumeric() || c == '_';
        if begins { dash } else { c }
    });
    SigmaString::new(&changed.collect::<String>())
}

/// Base64 with its padding (RFC 4648).
fn base64(bytes: &[u8]) -> String {
    let mut text = letters(bytes);
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

/// What stands of some bytes in base64 for sure, where `offset` other bytes modulo 3 stand before them.
fn base64_at(bytes: &[u8], offset: usize) -> String {
    let padded = [&[0; 2][..offset], bytes].concat();
    let text = letters(&padded);
    let begin = [0, 2, 3][offset];
    let end = text.len() - usize::from(!padded.len().is_multiple_of(3));
    text.get(begin..end).unwrap_or_default().to_owned()
}

fn letters(bytes: &[u8]) -> String {
    let letters = bytes.chunks(3).flat_map(|chunk| {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let number = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        let letter = move |at: usize| LETTERS[(number >> (18 - 6 * at)) as usize & 63];
        (0..=chunk.len()).map(letter)
    });
    letters.map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc_at_any_place() {
        let all: Vec<_> = ["f", "fo", "foo", "foobar"].map(|text| base64(text.as_bytes())).into();
        assert_eq!(all, ["Zg==", "Zm8=", "Zm9v", "Zm9vYmFy"], "RFC 4648, section 10");
        for before in ["", "x", "xy"] {
            for behind in ["", "z", "zz", "zzz"] {
                let whole = base64(format!("{before}http://{behind}").as_bytes());
                let part = base64_at(b"http://", before.len());
                assert!(whole.contains(&part) && part.len() >= 8, "{whole} {part}");
            }
        }
    }

    #[test]
    fn dashes_are_those_before_words() {
        let text = SigmaString::new(" -a b-c");
        assert_eq!(with_dash(&text, '/').original, " /a b-c");
    }
}
