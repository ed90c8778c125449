//! What percent signs of a URI stand for, as Zeek decodes them (`unescape_URI`).

use crate::weird::Weirds;

/// Whether a byte may stand in a URI (RFC 3986, section 2), the percent sign included.
#[inline]
pub(super) const fn is_uri_byte(byte: u8) -> bool {
    URI[byte as usize]
}

static URI: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte.is_ascii() {
        table[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b":/?#[]@!$&'()*+,;=-_.~%";
    let mut at = 0;
    while at < others.len() {
        table[others[at] as usize] = true;
        at += 1;
    }
    table
};

/// Decodes the percent signs of `uri`. Those that stand for nothing stay, and are told.
pub(super) fn decode(uri: &[u8], weirds: &mut Weirds) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(uri.len());
    let mut rest = uri;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        match *behind {
            [] => {
                weirds.add("illegal_%_at_end_of_URI");
                decoded.push(b'%');
            }
            [last] => {
                weirds.add("partial_escape_at_end_of_URI");
                decoded.extend([b'%', last]);
                rest = &[];
            }
            // Two in a row are a mistake or an evasion: the first counts for nothing.
            [b'%', ..] => weirds.add("double_%_in_URI"),
            [high, low, ..] if let Some(octet) = octet(high, low) => {
                decoded.push(octet);
                rest = &behind[2..];
            }
            // %u00AE was never a standard, and is in use (ECMA-262, annex B).
            [b'u', a, b, c, d, ..] if let (Some(high), Some(low)) = (octet(a, b), octet(c, d)) => {
                if high != 0 {
                    decoded.push(high);
                }
                decoded.push(low);
                rest = &behind[5..];
            }
            [next, ..] => {
                weirds.add("unescaped_%_in_URI");
                decoded.extend([b'%', next]);
                rest = &behind[1..];
            }
        }
    }
    decoded
}

fn octet(high: u8, low: u8) -> Option<u8> {
    let digit = |byte| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(uri: &str) -> (String, Vec<&'static str>) {
        let mut weirds = Weirds::default();
        let decoded = decode(uri.as_bytes(), &mut weirds);
        (
            String::from_utf8_lossy(&decoded).into_owned(),
            weirds.drain().map(|oddity| oddity.name).collect(),
        )
    }

    #[test]
    fn percent_signs_are_decoded_or_told() {
        for (uri, decoded, weird) in [
            ("/a%20b%2fc", "/a b/c", None),
            ("/%u0041%u4142", "/AAB", None),
            ("/a%", "/a%", Some("illegal_%_at_end_of_URI")),
            ("/a%4", "/a%4", Some("partial_escape_at_end_of_URI")),
            ("/a%%41", "/aA", Some("double_%_in_URI")),
            ("/a%zz", "/a%zz", Some("unescaped_%_in_URI")),
            ("/a%u41", "/a%u41", Some("unescaped_%_in_URI")),
        ] {
            assert_eq!(of(uri), (decoded.to_owned(), weird.into_iter().collect()), "{uri}");
        }
    }
}
