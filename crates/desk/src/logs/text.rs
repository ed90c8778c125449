//! Values as the formats write them, to text and numbers.

use std::borrow::Cow;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Bytes of a text that are kept: no name of DNS is longer, and many texts are kept at once.
const KEPT: usize = 256;
/// Bytes of a hash that tell cut texts apart.
const HASHED: usize = 12;
/// The largest exponent of a number: doubles have none beyond it.
const FURTHEST: i64 = 400;

/// A text of bounded length. A longer one is cut, with a hash of the whole behind it: two that differ stay two.
pub(super) fn bounded(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.len() <= KEPT {
        return text;
    }
    let mut cut = text.get(..text.floor_char_boundary(KEPT)).unwrap_or_default().to_owned();
    cut.push_str("\u{2026} (SHA-256 ");
    for byte in Sha256::digest(text.as_bytes()).iter().take(HASHED) {
        // A String takes everything.
        let _ = write!(cut, "{byte:02x}");
    }
    cut.push_str("\u{2026})");
    Cow::Owned(cut)
}

/// What Zeek's escapes stand for, `\xNN` and `\\`, as text; what is no UTF-8 shows as its escapes.
pub(super) fn unescaped(text: &[u8]) -> Cow<'_, str> {
    shown(unescaped_bytes(text))
}

/// The bytes that Zeek's escapes stand for.
pub(super) fn unescaped_bytes(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\\') {
        return Cow::Borrowed(text);
    }
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        let hex = behind.get(1..3).filter(|_| first == b'\\' && behind.first() == Some(&b'x'));
        if let Some(byte) = hex.and_then(byte_of) {
            bytes.push(byte);
            rest = behind.get(3..).unwrap_or_default();
        } else {
            bytes.push(first);
            if first == b'\\' && behind.first() == Some(&b'\\') {
                rest = behind.get(1..).unwrap_or_default();
            }
        }
    }
    Cow::Owned(bytes)
}

fn byte_of(digits: &[u8]) -> Option<u8> {
    // `from_str_radix` would take a sign.
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

pub(super) fn shown(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => match str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => Cow::Owned(bytes.escape_ascii().to_string()),
        },
        Cow::Owned(bytes) => Cow::Owned(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => error.as_bytes().escape_ascii().to_string(),
        }),
    }
}

/// Seconds as logs have them, in nanoseconds: every digit that is there counts, and the last one is rounded.
pub(crate) fn nanos(text: &str) -> Option<i64> {
    let (is_negative, number) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    // JSON has an exponent for very small ones.
    let (digits, exponent) = match number.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i64>().ok()?),
        None => (number, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_plain(whole) || !is_plain(fraction) || exponent.abs() > FURTHEST {
        return None;
    }
    let digit = |at: i64| {
        let at = usize::try_from(at).ok()?;
        let digit = whole.as_bytes().get(at);
        let digit = digit.or_else(|| fraction.as_bytes().get(at.checked_sub(whole.len())?));
        digit.map(|digit| i64::from(digit - b'0'))
    };
    // So many digits are whole nanoseconds.
    let places = i64::try_from(whole.len()).ok()? + exponent + 9;
    let append = |nanos: i64, at| nanos.checked_mul(10)?.checked_add(digit(at).unwrap_or(0));
    let nanos = (0..places).try_fold(0, append)?;
    let is_up = digit(places).is_some_and(|digit| digit >= 5);
    let nanos = nanos.checked_add(i64::from(is_up))?;
    Some(if is_negative { -nanos } else { nanos })
}

/// Nanoseconds as seconds, with all of their digits.
pub(crate) fn seconds(nanos: i64) -> String {
    let (sign, nanos) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    format!("{sign}{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_what_they_stand_for() {
        for (text, expected) in [
            (&br"a\x09b"[..], "a\tb"),
            (br"O=VeriSign\\, Inc.", r"O=VeriSign\, Inc."),
            (br"\\x41", r"\x41"),
            (br"\x2d", "-"),
            (br"cyber\xf2ity", r"cyber\xf2ity"),
            (br"\x4", r"\x4"),
            (br"\x+4", r"\x+4"),
            (b"\\", "\\"),
            ("ynet חדשות".as_bytes(), "ynet חדשות"),
            (b"", ""),
        ] {
            assert_eq!(unescaped(text), expected);
        }
    }

    #[test]
    fn long_texts_are_cut_and_stay_apart() {
        let short = "x".repeat(KEPT);
        assert_eq!(bounded(Cow::Borrowed(&short)), short);
        let long = |end: &str| bounded(Cow::Owned("ש".repeat(KEPT) + end)).into_owned();
        assert_eq!(long("a"), long("a"));
        assert_ne!(long("a"), long("b"));
        assert!(long("a").starts_with(&"ש".repeat(KEPT / 2)));
        assert!(long("a").len() < KEPT + 64 && long("a").contains("\u{2026} (SHA-256 "));
    }

    #[test]
    fn seconds_keep_their_digits() {
        for (text, expected) in [
            ("1795298940.058525", Some(1_795_298_940_058_525_000)),
            ("-0.5", Some(-500_000_000)),
            ("7", Some(7_000_000_000)),
            ("1767225600.123456789", Some(1_767_225_600_123_456_789)),
            ("1.767225600123456789E+09", Some(1_767_225_600_123_456_789)),
            ("9223372036.854775807", Some(i64::MAX)),
            ("9223372036.8547758075", None),
            ("0.0000000019", Some(2)),
            ("0.0000000014", Some(1)),
            ("1e-6", Some(1000)),
            ("-9.5367431640625e-07", Some(-954)),
            ("5e-10", Some(1)),
            ("12e-400", Some(0)),
            ("0e400", Some(0)),
            ("1e-9999999999999999999", None),
            ("1e", None),
            ("e5", None),
            ("99999999999999999999", None),
            ("1e300", None),
            ("nan", None),
            ("", None),
            ("1.2.3", None),
        ] {
            assert_eq!(nanos(text), expected, "{text}");
        }
        for number in [0, 1, -1, 1_500_000_000, -500_000_000, i64::MAX] {
            assert_eq!(nanos(&seconds(number)), Some(number));
        }
    }
}
