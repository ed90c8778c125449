//! Header fields of messages (RFC 5322, section 2.2) and their parameters (RFC 2045, section 5), as
//! tolerant as Zeek reads them.

use super::encoding::hex;
use super::token::{skip_blanks, token};
use crate::protocol::syntax::base64;

/// A header field (RFC 5322, 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol) struct Field<'a> {
    /// Its name as it was written.
    pub(in crate::protocol) name: &'a [u8],
    /// What it says: folded lines are joined with their blanks, as Zeek has them.
    pub(in crate::protocol) value: &'a [u8],
}

impl<'a> Field<'a> {
    /// A field from its lines, joined; `None` where there is no name or no colon behind it.
    pub(in crate::protocol) fn parse(text: &'a [u8]) -> Option<Self> {
        let is_name = |byte: &u8| byte.is_ascii_graphic() && *byte != b':';
        // What no name has may stand before it, as for Zeek (`MIME_get_field_name`).
        let mut text = skip_blanks(text);
        while text.first().is_some_and(|byte| !is_name(byte)) {
            text = skip_blanks(text.get(1..)?);
        }
        let len = text.iter().position(|byte| !is_name(byte))?;
        let (name, rest) = text.split_at(len);
        let value = skip_blanks(rest).strip_prefix(b":")?;
        (!name.is_empty()).then(|| Self { name, value: value.trim_ascii_start() })
    }

    /// Whether it has this name.
    pub(in crate::protocol) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// The first token of its value, and what follows.
    pub(in crate::protocol) fn token(&self) -> Option<(&'a [u8], &'a [u8])> {
        token(self.value)
    }

    /// Whether the first token of its value is this word.
    pub(in crate::protocol) fn says(&self, word: &str) -> bool {
        self.token().is_some_and(|(token, _)| token.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// What stands before its parameters, without comments.
    pub(super) fn main_value(&self) -> &'a [u8] {
        let end = self.value.iter().position(|byte| matches!(byte, b';' | b'(' | b'\r' | b'\n'));
        self.value[..end.unwrap_or(self.value.len())].trim_ascii()
    }

    /// What stands between the parts of a multipart, if the field says that one follows. Without it, or
    /// with one that is too long, there are no parts.
    pub(in crate::protocol) fn boundary(&self) -> Option<Vec<u8>> {
        let kind = self.main_value().split(|&byte| byte == b'/').next().unwrap_or_default();
        let is_multipart = kind.trim_ascii().eq_ignore_ascii_case(b"multipart");
        let boundary = is_multipart.then(|| self.parameter("boundary")).flatten();
        boundary.filter(|text| (1..=MAX_BOUNDARY).contains(&text.len()))
    }

    /// The name that it gives to the file behind it: the parameter `filename` of `Content-Disposition`
    /// (RFC 2183, RFC 6266), or `name` of `Content-Type`. Some write percent signs as in URIs, which
    /// Zeek undoes, too.
    pub(in crate::protocol) fn filename(&self) -> Option<Vec<u8>> {
        let name = if self.is("content-disposition") {
            "filename"
        } else if self.is("content-type") {
            "name"
        } else {
            return None;
        };
        Some(match self.find(name)? {
            WrittenParameter::Plain(text) => {
                let mut all = Vec::new();
                unescape(&decode_words(&text), b'%', &mut all);
                all
            }
            WrittenParameter::Sections(sections) => join(&sections),
        })
    }

    /// The parameter of this name, its parts put together and decoded (RFC 2231, RFC 2047).
    fn parameter(&self, name: &str) -> Option<Vec<u8>> {
        Some(match self.find(name)? {
            WrittenParameter::Plain(text) => decode_words(&text),
            WrittenParameter::Sections(sections) => join(&sections),
        })
    }

    fn find(&self, name: &str) -> Option<WrittenParameter> {
        let mut sections: Vec<Section> = Vec::new();
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
            return plain.map(WrittenParameter::Plain);
        }
        sections.sort_by_key(|(number, ..)| *number);
        Some(WrittenParameter::Sections(sections))
    }
}

/// A parameter as it is written.
enum WrittenParameter {
    /// Without any encoding.
    Plain(Vec<u8>),
    /// In sections, in order (RFC 2231).
    Sections(Vec<Section>),
}

/// A section's number, whether it is encoded, and its text.
type Section = (u32, bool, Vec<u8>);

/// The longest boundary that is looked for; RFC 2046 (5.1.1) allows 70 characters.
const MAX_BOUNDARY: usize = 1_000;

/// Joins the sections of a parameter; the first one tells the character set.
fn join(sections: &[Section]) -> Vec<u8> {
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

/// The parameters behind a value, which may be missing: names and values, without quotes. A name is the
/// last word before the sign, as some write no semicolon.
fn parameters(value: &[u8]) -> Vec<(&[u8], Vec<u8>)> {
    let mut found = Vec::new();
    let begin = value.iter().find(|byte| matches!(byte, b'=' | b';' | b'(' | b'"'));
    let mut rest = if begin == Some(&b'=') { Some(value) } else { behind_semicolon(value) };
    while let Some(parameter) = rest {
        let end = |byte: &u8| matches!(byte, b'=' | b';');
        let Some(at) = parameter.iter().position(end) else { break };
        if parameter[at] == b';' {
            rest = Some(&parameter[at + 1..]);
            continue;
        }
        let (text, behind) = parameter_value(parameter[at + 1..].trim_ascii_start());
        let name = parameter[..at].trim_ascii();
        let word = name.iter().rposition(u8::is_ascii_whitespace).map_or(0, |blank| blank + 1);
        found.push((&name[word..], text));
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
        let header = Field { name: b"Content-Type", value: value.as_bytes() };
        header.parameter(name).map(|value| String::from_utf8(value).unwrap())
    }

    #[test]
    fn fields_have_a_name_and_a_value() {
        let header = Field::parse(b"Subject :  Hello, \tworld ").unwrap();
        assert_eq!(header, Field { name: b"Subject", value: b"Hello, \tworld " });
        assert!(header.is("SUBJECT"));
        let parsed = |text: &'static str| Field::parse(text.as_bytes()).map(|f| (f.name, f.value));
        assert_eq!(parsed(" Host \t:\t x"), Some((&b"Host"[..], &b"x"[..])));
        assert_eq!(parsed("\u{feff}:Host: x"), Some((&b"Host"[..], &b"x"[..])));
        assert_eq!(parsed("A(comment (nested) \\) ): x"), None);
        assert_eq!(parsed("A (comment (nested) \\) ): x"), Some((&b"A"[..], &b"x"[..])));
        for bad in ["", "no colon", ": nothing", "two words: x", "\u{e4}: x"] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }

    #[test]
    fn boundaries_are_those_of_multiparts() {
        let of = |value: &str| Field { name: b"Content-Type", value: value.as_bytes() }.boundary();
        let value = "Multipart/form-data; charset=\"a;b\\\"c\"; Boundary = x-y ; z=1";
        assert_eq!(of(value).as_deref(), Some(&b"x-y"[..]));
        let long = format!("multipart/x; boundary={}", "x".repeat(MAX_BOUNDARY + 1));
        for none in ["text/plain; boundary=x", "multipart/x; boundary=", "multipart/x", &long] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn names_are_plain_quoted_or_encoded() {
        let name = |name: &str, value: &str| {
            let field = Field { name: name.as_bytes(), value: value.as_bytes() };
            field.filename().map(|name| String::from_utf8(name).unwrap())
        };
        for (value, expected) in [
            ("attachment; filename=\"a b.txt\"; x=1", Some("a b.txt")),
            ("attachment; FileName = a.txt", Some("a.txt")),
            ("attachment; filename=a%20b.txt", Some("a b.txt")),
            ("attachment; filename*=UTF-8'en'%41%20b%2520", Some("A b%20")),
            ("attachment; filename*=UTF-8''b; filename=a", Some("b")),
            ("form-data; name=\"file1\"; filename=\"hello.txt\"", Some("hello.txt")),
            ("filename=a.txt", Some("a.txt")),
            ("attachment filename=\"a;b\"; x=1", Some("a;b")),
            ("form-data; name=\"msg\"", None),
            ("attachment", None),
        ] {
            assert_eq!(name("Content-Disposition", value).as_deref(), expected, "{value}");
        }
        assert_eq!(name("Content-Type", "a/b; name=x.zip").as_deref(), Some("x.zip"));
        assert_eq!(name("Content-Type", "a/b; charset=x"), None);
        assert_eq!(name("Other", "filename=x"), None);
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
