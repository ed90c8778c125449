//! Distinguished names as text, RFC 2253, in the form of OpenSSL's `XN_FLAG_RFC2253`, which Zeek
//! writes: the last part first, short names of attributes, and `\` before what needs it.

use crate::file::digest::hex;
use crate::protocol::syntax::der::{self, Elements, OBJECT, SEQUENCE, SET};

/// Octets of a name's text, beyond which Zeek cuts it.
const MAX_TEXT: usize = 2047;

/// `commonName` (2.5.4.3).
const COMMON_NAME: &[u8] = &[0x55, 4, 3];

/// Types of strings, X.680 section 8.
const UTF8_STRING: u8 = 12;
const NUMERIC_STRING: u8 = 18;
const PRINTABLE_STRING: u8 = 19;
const T61_STRING: u8 = 20;
const IA5_STRING: u8 = 22;
const VISIBLE_STRING: u8 = 26;
const UNIVERSAL_STRING: u8 = 28;
const BMP_STRING: u8 = 30;

/// The text of the name with this content.
pub(super) fn text(name: &[u8]) -> Option<Box<[u8]>> {
    let mut parts = Vec::new();
    for part in Elements::new(name) {
        if part.tag != SET {
            return None;
        }
        let mut text = Vec::new();
        for attribute in Elements::new(part.content) {
            if !text.is_empty() {
                text.push(b'+');
            }
            let (kind, value) = pair(attribute)?;
            write(&mut text, kind, value)?;
        }
        parts.push(text);
    }
    parts.reverse();
    let mut text = parts.join(&b","[..]);
    text.truncate(MAX_TEXT);
    Some(text.into_boxed_slice())
}

/// The `commonName`s in the name with this content, as they are encoded.
pub(super) fn common_names(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let attributes = Elements::new(name).flat_map(|part| Elements::new(part.content));
    let pairs = attributes.filter_map(pair);
    pairs.filter(|(kind, _)| *kind == COMMON_NAME).map(|(_, value)| value.content)
}

/// Type and value of an attribute.
fn pair(attribute: der::Element<'_>) -> Option<(&[u8], der::Element<'_>)> {
    if attribute.tag != SEQUENCE {
        return None;
    }
    let mut fields = Elements::new(attribute.content);
    Some((fields.content(OBJECT)?, fields.next()?))
}

fn write(text: &mut Vec<u8>, kind: &[u8], value: der::Element<'_>) -> Option<()> {
    let name = short_name(kind);
    match name {
        Some(name) => text.extend_from_slice(name.as_bytes()),
        None => text.extend_from_slice(der::dotted(kind)?.as_bytes()),
    }
    text.push(b'=');
    let characters = characters(value).filter(|_| name.is_some());
    match characters {
        Some(characters) => escape(text, &characters),
        None => {
            text.push(b'#');
            text.extend_from_slice(hex(value.whole).to_ascii_uppercase().as_bytes());
        }
    }
    Some(())
}

/// The characters of a string in UTF-8; `None` for what is no string.
fn characters(value: der::Element<'_>) -> Option<Vec<u8>> {
    let wide = |units: Vec<u32>| {
        let characters = units.into_iter().map(|unit| char::from_u32(unit).unwrap_or('\u{fffd}'));
        characters.collect::<String>().into_bytes()
    };
    Some(match value.tag {
        UTF8_STRING => value.content.to_vec(),
        // As in OpenSSL, T61 is read as Latin-1.
        NUMERIC_STRING | PRINTABLE_STRING | T61_STRING | IA5_STRING | VISIBLE_STRING
            if value.content.is_ascii() =>
        {
            value.content.to_vec()
        }
        NUMERIC_STRING | PRINTABLE_STRING | T61_STRING | IA5_STRING | VISIBLE_STRING => {
            wide(value.content.iter().copied().map(u32::from).collect())
        }
        BMP_STRING => {
            let units = value.content.as_chunks().0.iter();
            wide(units.map(|unit| u32::from(u16::from_be_bytes(*unit))).collect())
        }
        UNIVERSAL_STRING => {
            let units = value.content.as_chunks().0.iter();
            wide(units.map(|unit| u32::from_be_bytes(*unit)).collect())
        }
        _ => return None,
    })
}

/// Adds characters, RFC 2253 section 2.4; control characters and all beyond ASCII as digits.
fn escape(text: &mut Vec<u8>, characters: &[u8]) {
    let last = characters.len().saturating_sub(1);
    for (at, &octet) in characters.iter().enumerate() {
        let is_at_edge = at == 0 || at == last;
        match octet {
            b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => text.extend([b'\\', octet]),
            b'#' if at == 0 => text.extend([b'\\', octet]),
            b' ' if is_at_edge => text.extend([b'\\', octet]),
            0..0x20 | 0x7f.. => {
                text.push(b'\\');
                text.extend_from_slice(hex(&[octet]).to_ascii_uppercase().as_bytes());
            }
            _ => text.push(octet),
        }
    }
}

/// OpenSSL's short name of an attribute's type, a line for each.
fn short_name(kind: &[u8]) -> Option<&'static str> {
    Some(match kind {
        [0x55, 4, arc] => match arc {
            3 => "CN",
            4 => "SN",
            5 => "serialNumber",
            6 => "C",
            7 => "L",
            8 => "ST",
            9 => "street",
            10 => "O",
            11 => "OU",
            12 => "title",
            13 => "description",
            14 => "searchGuide",
            15 => "businessCategory",
            16 => "postalAddress",
            17 => "postalCode",
            18 => "postOfficeBox",
            19 => "physicalDeliveryOfficeName",
            20 => "telephoneNumber",
            23 => "facsimileTelephoneNumber",
            41 => "name",
            42 => "GN",
            43 => "initials",
            44 => "generationQualifier",
            45 => "x500UniqueIdentifier",
            46 => "dnQualifier",
            54 => "dmdName",
            65 => "pseudonym",
            72 => "role",
            97 => "organizationIdentifier",
            98 => "c3",
            99 => "n3",
            100 => "dnsName",
            _ => return None,
        },
        // 1.2.840.113549.1.9: PKCS #9.
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, arc] => match arc {
            1 => "emailAddress",
            2 => "unstructuredName",
            7 => "challengePassword",
            8 => "unstructuredAddress",
            _ => return None,
        },
        // 1.3.6.1.4.1.311.60.2.1: the jurisdictions of extended validation.
        [0x2b, 6, 1, 4, 1, 0x82, 0x37, 60, 2, 1, arc] => match arc {
            1 => "jurisdictionL",
            2 => "jurisdictionST",
            3 => "jurisdictionC",
            _ => return None,
        },
        // 0.9.2342.19200300.100.1: COSINE.
        [0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, arc] => match arc {
            1 => "UID",
            3 => "mail",
            25 => "DC",
            44 => "uid",
            _ => return None,
        },
        _ => return None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::protocol::syntax::der::tests::element;

    /// A name with one attribute in each part.
    pub(in super::super) fn name(parts: &[(&[u8], u8, &[u8])]) -> Vec<u8> {
        let part =
            |(kind, tag, value): &(&[u8], u8, &[u8])| element(SET, &attribute(kind, *tag, value));
        parts.iter().flat_map(part).collect()
    }

    fn attribute(kind: &[u8], tag: u8, value: &[u8]) -> Vec<u8> {
        element(SEQUENCE, &[element(OBJECT, kind), element(tag, value)].concat())
    }

    fn text_of(parts: &[(&[u8], u8, &[u8])]) -> String {
        String::from_utf8(text(&name(parts)).unwrap().into_vec()).unwrap()
    }

    #[test]
    fn the_last_part_comes_first() {
        let parts: [(&[u8], u8, &[u8]); 3] = [
            (&[0x55, 4, 6], 19, b"US"),
            (&[0x55, 4, 10], 12, b"Cloudflare, Inc."),
            (COMMON_NAME, 12, b"a.example"),
        ];
        assert_eq!(text_of(&parts), "CN=a.example,O=Cloudflare\\, Inc.,C=US");
        let all = name(&parts);
        assert_eq!(common_names(&all).collect::<Vec<_>>(), [b"a.example"]);
    }

    #[test]
    fn characters_are_escaped() {
        assert_eq!(
            text_of(&[(COMMON_NAME, 12, " a#\u{e9}\n ".as_bytes())]),
            "CN=\\ a#\\C3\\A9\\0A\\ "
        );
        assert_eq!(text_of(&[(COMMON_NAME, 20, b"#\xe9+")]), "CN=\\#\\C3\\A9\\+");
        assert_eq!(text_of(&[(COMMON_NAME, 30, &[0, b'a', 0x20, 0xac])]), "CN=a\\E2\\82\\AC");
    }

    #[test]
    fn unknown_attributes_and_types_are_dumped() {
        assert_eq!(text_of(&[(&[0x2a, 3], 12, b"x")]), "1.2.3=#0C0178");
        assert_eq!(text_of(&[(COMMON_NAME, 3, &[0, 1])]), "CN=#03020001");
    }

    #[test]
    fn several_attributes_of_a_part_are_joined() {
        let both = [attribute(&[0x55, 4, 10], 12, b"o"), attribute(COMMON_NAME, 12, b"c")].concat();
        assert_eq!(text(&element(SET, &both)).unwrap(), b"O=o+CN=c"[..].into());
        assert_eq!(text(&element(SEQUENCE, &both)), None);
        assert_eq!(text(&[]), Some(Box::default()));
    }

    #[test]
    fn a_long_name_is_cut() {
        assert_eq!(text_of(&[(COMMON_NAME, 12, &[b'a'; 3000])]).len(), MAX_TEXT);
    }
}
