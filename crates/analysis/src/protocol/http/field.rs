//! Names, values and tokens of header fields, as tolerant as Zeek reads them (RFC 2045, 5322).

/// A header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field<'a> {
    pub(super) name: &'a [u8],
    /// Without blanks before it.
    pub(super) value: &'a [u8],
}

impl<'a> Field<'a> {
    /// Reads a field; `None` where there is no name or no colon behind it.
    pub(super) fn parse(text: &'a [u8]) -> Option<Self> {
        let text = skip_blanks(text);
        let len = text.iter().position(|&byte| !is_name_byte(byte))?;
        let (name, rest) = text.split_at(len);
        let value = skip_blanks(rest).strip_prefix(b":")?;
        (!name.is_empty()).then(|| Self { name, value: value.trim_ascii_start() })
    }

    /// Whether it has this name.
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// The first token of its value, and what follows.
    pub(super) fn token(&self) -> Option<(&'a [u8], &'a [u8])> {
        token(self.value)
    }

    /// Whether the first token of its value is this word.
    pub(super) fn says(&self, word: &str) -> bool {
        self.token().is_some_and(|(token, _)| token.eq_ignore_ascii_case(word.as_bytes()))
    }
}

const fn is_name_byte(byte: u8) -> bool {
    matches!(byte, 33..=126) && byte != b':'
}

/// The first token of `text` (RFC 2045, section 5.1), and what follows.
pub(super) fn token(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut text = skip_blanks(text);
    while let Some((&first, rest)) = text.split_first() {
        if is_token_byte(first) {
            let end = text.iter().position(|&byte| !is_token_byte(byte)).unwrap_or(text.len());
            return Some(text.split_at(end));
        }
        text = skip_blanks(rest);
    }
    None
}

/// Whether a byte may stand in a token of MIME (RFC 2045, section 5.1).
pub(super) const fn is_token_byte(byte: u8) -> bool {
    let is_special = matches!(
        byte,
        b'(' | b')'
            | b'<'
            | b'>'
            | b'@'
            | b','
            | b';'
            | b':'
            | b'\\'
            | b'"'
            | b'/'
            | b'['
            | b']'
            | b'?'
            | b'='
    );
    matches!(byte, 33..=126) && !is_special
}

/// Skips blanks and comments in parentheses (RFC 5322, section 3.2.2).
pub(super) fn skip_blanks(mut text: &[u8]) -> &[u8] {
    loop {
        text = match text.first() {
            Some(b' ' | b'\t') => &text[1..],
            Some(b'(') => skip_comment(text),
            _ => return text,
        };
    }
}

fn skip_comment(text: &[u8]) -> &[u8] {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b'\\' => at += 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    text.get(at..).unwrap_or_default()
}

/// The number that the digits at the begin of `text` make; `None` without any, or if it is too
/// large for a length.
pub(super) fn number(text: &[u8], radix: u32) -> Option<u64> {
    let digits = text.iter().map_while(|&byte| char::from(byte).to_digit(radix));
    let mut number = None;
    for digit in digits {
        let so_far: u64 = number.unwrap_or(0);
        number = Some(so_far.checked_mul(radix.into())?.checked_add(digit.into())?);
    }
    number.filter(|&number| i64::try_from(number).is_ok())
}

/// The value of a parameter of a field's value (`; name=value`, RFC 2045 section 5.1), whose value
/// is quoted or extends to the next semicolon.
pub(super) fn parameter(value: &[u8], name: &str) -> Option<Vec<u8>> {
    let mut rest = value;
    while let Some(at) = rest.iter().position(|&byte| byte == b';') {
        rest = rest.get(at + 1..).unwrap_or_default();
        let Some((attribute, behind)) = token(rest) else { continue };
        let Some(text) = skip_blanks(behind).strip_prefix(b"=") else { continue };
        let (text, behind) = quoted_or_plain(text.trim_ascii_start());
        if attribute.eq_ignore_ascii_case(name.as_bytes()) {
            return (!text.is_empty()).then_some(text);
        }
        rest = behind;
    }
    None
}

fn quoted_or_plain(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end = text.iter().position(|&byte| byte == b';' || byte <= b' ');
        let (plain, behind) = text.split_at(end.unwrap_or(text.len()));
        return (plain.to_vec(), behind);
    };
    let (mut value, mut at) = (Vec::new(), 0);
    while let Some(&byte) = quoted.get(at) {
        at += 1;
        match byte {
            b'"' => break,
            b'\\' => {
                value.extend(quoted.get(at));
                at += 1;
            }
            byte => value.push(byte),
        }
    }
    (value, quoted.get(at..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_a_name_a_colon_and_a_value() {
        let parsed = |text: &'static str| Field::parse(text.as_bytes()).map(|f| (f.name, f.value));
        assert_eq!(parsed("Host: a b "), Some((&b"Host"[..], &b"a b "[..])));
        assert_eq!(parsed(" Host \t:\t x"), Some((&b"Host"[..], &b"x"[..])));
        assert_eq!(parsed("A(comment (nested) \\) ): x"), None);
        assert_eq!(parsed("A (comment (nested) \\) ): x"), Some((&b"A"[..], &b"x"[..])));
        for bad in ["", "Host", ": x", "Ho st: x", "\u{e4}: x"] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_first_token_counts() {
        let of = |text: &'static str| token(text.as_bytes());
        assert_eq!(of(" (x) gzip, br"), Some((&b"gzip"[..], &b", br"[..])));
        assert_eq!(of("\"chunked\""), Some((&b"chunked"[..], &b"\""[..])));
        assert_eq!(of(";,("), None);
    }

    #[test]
    fn numbers_end_at_the_first_other_character() {
        assert_eq!(number(b"12x", 10), Some(12));
        assert_eq!(number(b"1A;ext=1", 16), Some(26));
        assert_eq!(number(b"-1", 10), None);
        assert_eq!(number(b"", 10), None);
        assert_eq!(number(b"9223372036854775807", 10), Some(i64::MAX as u64));
        assert_eq!(number(b"9223372036854775808", 10), None);
        assert_eq!(number(b"fffffffffffffffffffff", 16), None);
    }

    #[test]
    fn parameters_may_be_quoted() {
        let value = b"multipart/form-data; charset=\"a;b\\\"c\"; Boundary = x-y ; z=1";
        assert_eq!(parameter(value, "boundary").as_deref(), Some(&b"x-y"[..]));
        assert_eq!(parameter(value, "charset").as_deref(), Some(&b"a;b\"c"[..]));
        assert_eq!(parameter(value, "none"), None);
        assert_eq!(parameter(b"multipart/x; boundary=", "boundary"), None);
    }
}
