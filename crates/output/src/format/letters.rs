//! Text of values as formats have it that write its length: no sign in it stands for another one.

use std::borrow::Cow;

use netsniff_console::printable::{Piece, each_piece};

use super::digits;
use super::json::letter;

/// The letters of a text, which are those that JSON's text has: bytes that are no text and characters that control or turn a
/// terminal are `\xNN`.
pub(super) fn letters(value: &[u8]) -> Cow<'_, [u8]> {
    // Without a way out of the loop, several bytes are looked at by each instruction.
    if value.iter().fold(true, |all, byte| all & matches!(byte, b' '..=b'~')) {
        Cow::Borrowed(value)
    } else {
        Cow::Owned(escaped(value))
    }
}

#[cold]
fn escaped(value: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(value.len() + 16);
    each_piece(value, |piece| match piece {
        Piece::Text(text) => escaped.extend_from_slice(text.as_bytes()),
        // What JSON has a letter for is in its text.
        Piece::Active(&[sign]) if letter(sign).is_some() => escaped.push(sign),
        Piece::Active(bytes) => {
            bytes.iter().for_each(|&byte| digits::escaped_byte(&mut escaped, byte));
        }
    });
    escaped
}
