//! Header fields of messages (RFC 5322, section 2.2) and their parameters (RFC 2045, section 5).

use super::encoding::hex;
use crate::protocol::base64;

/// A header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol) struct Header<'a> {
    /// Its name as it was written.
    pub(in crate::protocol) name: &'a [u8],
    /// What it says: folded lines are joined with their blanks, as Zeek has them.
    pub(in crate::protocol) value: &'a [u8],
}

impl<'a> Header<'a> {
    /// A field from its lines, joined; `None` for what is none.
    pub(super) fn parse(text: &'a [u8]) -> Option<Self> {
        let colon = text.iter().position(|&byte| byte == b':')?;
        let (name, value) = (text[..colon].trim_ascii(), &text[colon + 1..]);
        let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
        is_name.then(|| Self { name, value: value.trim_ascii_start() })
    }

    /// Whether it has this name.
    pub(in crate::protocol) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// What stands before its parameters, without comments.
    pub(super) fn main_value(&self) -> &'a [u8] {
        let end = self.value.iter().position(|byte| matches!(byte, b';' | b'(' | b'\r' | b'\n'));
        self.value[..end.unwrap_or(self.value.len())].trim_ascii()
    }

    /// The parameter of this name, its parts put together and decoded (RFC 2231, RFC 2047).
    pub(super) fn parameter(&self, name: &str) -> Option<Vec<u8>> {
        let mut sections: Vec<(u32, bool, Vec<u8>)> = Vec::new();
        let mut plain = None;
        for (attribute, value) in parameters(self.value) {
            let (base, section) = match attribute.iter().position(|&byte| byte == b'*') {
                Some(star) => (&attribute[..star], Some(&attribute[star + 1..])),
                None => (attribute, None),
            };
            if !base.eq_ignore_ascii_case(name.as_bytes()) {
                continue;
            }
            let Some(section) = section else {
                plain.get_or_insert(value);
                continue;
            };
            let is_encoded = section.is_empty() || section.ends_with(b"*");
            let number = section.strip_suffix(b"*").unwrap_or(section);
            let number = if number.is_empty() { Some(0) } else { decimal(number) };
            sections.extend(number.map(|number| (number, is_encoded, value)));
        }
        if sections.is_empty() {
            return plain.map(|value| decode_words(&value));
        }
        sections.sort_by_key(|(number, ..)| *number);
        Some(join(&sections))
    }
}

/// Joins the sections of a parameter; the first one tells the character set.
fn join(sections: &[(u32, bool, Vec<u8>)]) -> Vec<u8> {
    let mut charset = Vec::new();
    let mut all = Vec::new();
    for (at, (_, is_encoded, value)) in sections.iter().enumerate() {
        if !is_encoded {
            all.extend_from_slice(value);
            continue;
        }
        let mut text = value.as_slice();
        let mut quotes = text.splitn(3, |&byte| byte == b'\'');
        if at == 0
            && let (Some(set), Some(_), Some(rest)) = (quotes.next(), quotes.next(), quotes.next())
        {
            charset = set.to_vec();
            text = rest;
        }
        unescape(text, b'%', &mut all);
    }
    to_utf8(&charset, all)
}

/// Adds text to `out` in which `mark` and two hexadecimal digits stand for a byte.
fn unescape(text: &[u8], mark: u8, out: &mut Vec<u8>) {
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        if *first == mark
            && let [high, low, ..] = *behind
            && let (Some(high), Some(low)) = (hex(high), hex(low))
        {
            out.push(high << 4 | low);
            rest = &behind[2..];
        } else {
            out.push(*first);
            rest = behind;
        }
    }
}

/// The parameters behind a value: names and values, without quotes.
fn parameters(value: &[u8]) -> Vec<(&[u8], Vec<u8>)> {
    let mut found = Vec::new();
    let mut rest = behind_semicolon(value);
    while let Some(parameter) = rest {
        let end = |byte: &u8| matches!(byte, b'=' | b';');
        let Some(at) = parameter.iter().position(end) else { break };
        if parameter[at] == b';' {
            rest = Some(&parameter[at + 1..]);
            continue;
        }
        let (text, behind) = parameter_value(parameter[at + 1..].trim_ascii_start());
        found.push((parameter[..at].trim_ascii(), text));
        rest = behind_semicolon(behind);
    }
    found
}

/// What follows the first semicolon that is neither quoted nor in a comment.
fn behind_semicolon(text: &[u8]) -> Option<&[u8]> {
    let (mut is_quoted, mut comments, mut is_escaped) = (false, 0u32, false);
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' if comments == 0 => is_quoted = !is_quoted,
            b'(' if !is_quoted => comments += 1,
            b')' if !is_quoted => comments = comments.saturating_sub(1),
            b';' if !is_quoted && comments == 0 => return Some(&text[at + 1..]),
            _ => {}
        }
    }
    None
}

/// A value with or without quotes, and what follows it. Without quotes blanks may be in it, since
/// many programs write names so.
fn parameter_value(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end = text.iter().position(|&byte| byte == b';').unwrap_or(text.len());
        return (text[..end].trim_ascii().to_vec(), &text[end..]);
    };
    let mut value = Vec::new();
    let mut bytes = quoted.iter().enumerate();
    while let Some((at, &byte)) = bytes.next() {
        match byte {
            b'"' => return (value, &quoted[at + 1..]),
            b'\\' => value.extend(bytes.next().map(|(_, &byte)| byte)),
            _ => value.push(byte),
        }
    }
    (value, &[])
}

/// Decodes the encoded words of RFC 2047 in a text. Blanks between two of them do not count.
pub(super) fn decode_words(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    let mut is_behind_word = false;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"=?") {
        let (before, word) = rest.split_at(at);
        let Some((decoded, len)) = encoded_word(word) else {
            out.extend_from_slice(&rest[..at + 2]);
            rest = &rest[at + 2..];
            is_behind_word = false;
            continue;
        };
        if !(is_behind_word && before.iter().all(u8::is_ascii_whitespace)) {
            out.extend_from_slice(before);
        }
        out.extend_from_slice(&decoded);
        rest = &word[len..];
        is_behind_word = true;
    }
    out.extend_from_slice(rest);
    out
}

/// Decodes `=?charset?encoding?text?=`, and tells its length.
fn encoded_word(word: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut parts = word.get(2..)?.splitn(3, |&byte| byte == b'?');
    let (charset, encoding, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let end = rest.windows(2).position(|pair| pair == b"?=")?;
    let text = &rest[..end];
    let bytes = match encoding {
        b"B" | b"b" => base64::decode(text),
        b"Q" | b"q" => {
            let mut bytes = Vec::new();
            let blanks = |&byte: &u8| if byte == b'_' { b' ' } else { byte };
            unescape(&text.iter().map(blanks).collect::<Vec<u8>>(), b'=', &mut bytes);
            bytes
        }
        _ => return None,
    };
    let len = 2 + charset.len() + 1 + encoding.len() + 1 + end + 2;
    // RFC 2231 allows a language behind the character set.
    let charset = charset.split(|&byte| byte == b'*').next().unwrap_or_default();
    Some((to_utf8(charset, bytes), len))
}

/// Text in UTF-8, where its character set is one that needs no tables; else as it is.
fn to_utf8(charset: &[u8], bytes: Vec<u8>) -> Vec<u8> {
    if charset.eq_ignore_ascii_case(b"iso-8859-1") {
        return bytes.iter().map(|&byte| char::from(byte)).collect::<String>().into_bytes();
    }
    bytes
}

fn decimal(digits: &[u8]) -> Option<u32> {
    core::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(value: &str, name: &str) -> Option<String> {
        let header = Header { name: b"Content-Type", value: value.as_bytes() };
        header.parameter(name).map(|value| String::from_utf8(value).unwrap())
    }

    #[test]
    fn fields_have_a_name_and_a_value() {
        let header = Header::parse(b"Subject :  Hello, \tworld ").unwrap();
        assert_eq!(header, Header { name: b"Subject", value: b"Hello, \tworld " });
        assert!(header.is("SUBJECT"));
        assert_eq!(Header::parse(b"no colon"), None);
        assert_eq!(Header::parse(b": nothing"), None);
        assert_eq!(Header::parse(b"two words: x"), None);
    }

    #[test]
    fn parameters_are_found_in_any_order_and_quoting() {
        let value = "multipart/mixed (a; boundary=no);\tcharset=x; BOUNDARY = \"a\\\"b;c\" ; z=1";
        assert_eq!(parameter(value, "boundary").unwrap(), "a\"b;c");
        assert_eq!(parameter(value, "z").unwrap(), "1");
        assert_eq!(parameter(value, "name"), None);
        assert_eq!(parameter("x/y; name=My file.pdf; a=b", "name").unwrap(), "My file.pdf");
        assert_eq!(parameter("x/y; flag; name=\"open", "name").unwrap(), "open");
    }

    #[test]
    fn parameters_are_decoded_as_in_rfc_2231() {
        let value = "message/external-body; access-type=URL;\
            URL*0=\"ftp://\"; URL*1=\"cs.utk.edu/pub/moore/bulk-mailer/bulk-mailer.tar\"";
        let expected = "ftp://cs.utk.edu/pub/moore/bulk-mailer/bulk-mailer.tar";
        assert_eq!(parameter(value, "url").unwrap(), expected);
        let value = "application/x-stuff; title*0*=us-ascii'en'This%20is%20even%20more%20;\
            title*1*=%2A%2A%2Afun%2A%2A%2A%20; title*2=\"isn't it!\"";
        assert_eq!(parameter(value, "title").unwrap(), "This is even more ***fun*** isn't it!");
        let value = "attachment; filename=\"x\"; filename*=iso-8859-1''%e4.txt";
        assert_eq!(parameter(value, "filename").unwrap(), "ä.txt");
    }

    #[test]
    fn words_are_decoded_as_in_rfc_2047() {
        let decoded = |text: &str| String::from_utf8(decode_words(text.as_bytes())).unwrap();
        assert_eq!(decoded("(=?ISO-8859-1?Q?a?= =?ISO-8859-1?Q?b?=)"), "(ab)");
        assert_eq!(decoded("=?ISO-8859-1?Q?a_b%41?= x"), "a b%41 x");
        assert_eq!(decoded("=?utf-8?B?w6QudHh0?="), "ä.txt");
        assert_eq!(decoded("=?ISO-8859-1?Q?Andr=E9?= =?x"), "André =?x");
        assert_eq!(decoded("=?utf-8?Z?x?="), "=?utf-8?Z?x?=");
    }
}
