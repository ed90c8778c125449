//! Names that files come with, in the header fields of their message.

use super::field::Field;
use super::uri;
use crate::weird::Weirds;

/// The name that a field gives to the file behind it: the parameter `filename` of
/// `Content-Disposition` (RFC 6266), or `name` of `Content-Type`. As Zeek reads it, which takes the
/// last one of several.
pub(super) fn of(field: &Field<'_>) -> Option<Vec<u8>> {
    let is_named = (field.is("content-disposition")
        && last_value(field.value, b"filename").is_some())
        || field.is("content-type");
    let value = last_value(field.value, b"name").filter(|_| is_named)?;
    let name = match value.strip_prefix(b"\"") {
        Some(quoted) => quoted.split(|&byte| byte == b'"').next().unwrap_or_default(),
        None => without_charset(value),
    };
    // What is wrong with its percent signs is no oddity of the protocol.
    Some(uri::decode(name, &mut Weirds::default()))
}

/// What stands behind the last `name` with `=` or `*=`.
fn last_value<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    (0..text.len()).rev().find_map(|at| {
        let rest = text.get(at..)?;
        let (begin, rest) = rest.split_at_checked(name.len())?;
        let rest = rest.trim_ascii_start();
        let rest = rest.strip_prefix(b"*").unwrap_or(rest).strip_prefix(b"=")?;
        begin.eq_ignore_ascii_case(name).then(|| rest.trim_ascii_start())
    })
}

/// A value without the character set and language before it (RFC 8187, section 3.2).
fn without_charset(value: &[u8]) -> &[u8] {
    let mut parts = value.splitn(3, |&byte| byte == b'\'');
    let is_plain = |part: &[u8]| part.iter().all(|byte| byte.is_ascii_graphic());
    match (parts.next(), parts.next(), parts.next()) {
        (Some(charset), Some(language), Some(name))
            if !charset.is_empty() && is_plain(charset) && is_plain(language) =>
        {
            name
        }
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str, value: &str) -> Option<String> {
        let field = Field { name: name.as_bytes(), value: value.as_bytes() };
        of(&field).map(|name| String::from_utf8(name).unwrap())
    }

    #[test]
    fn names_are_plain_quoted_or_encoded() {
        for (value, expected) in [
            ("attachment; filename=\"a b.txt\"; x=1", Some("a b.txt")),
            ("attachment; FileName = a.txt", Some("a.txt")),
            ("attachment; filename*=UTF-8'en'%41%20b", Some("A b")),
            ("form-data; name=\"file1\"; filename=\"hello.txt\"", Some("hello.txt")),
            ("form-data; name=\"msg\"", None),
            ("attachment", None),
        ] {
            assert_eq!(name("Content-Disposition", value).as_deref(), expected, "{value}");
        }
        assert_eq!(name("Content-Type", "a/b; name=x.zip").as_deref(), Some("x.zip"));
        assert_eq!(name("Content-Type", "a/b; charset=x"), None);
        assert_eq!(name("Other", "filename=x"), None);
    }
}
