//! NetBIOS names within DNS names, RFC 1001 section 14.1.

/// Octets of a NetBIOS name; the last one tells what kind of service has it.
const LEN: usize = 16;

/// The NetBIOS name in the first label of a DNS `name`, without its last octet and the spaces that
/// fill it up, and only as far as it can be read; `None` where it is none.
pub(super) fn decode(name: &[u8]) -> Option<Vec<u8>> {
    let letters: &[u8; 2 * LEN] = name.first_chunk()?;
    let mut octets = [0; LEN];
    for (octet, pair) in octets.iter_mut().zip(letters.chunks_exact(2)) {
        *octet = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    let text = &octets[..LEN - 1];
    let end = text.iter().position(|&octet| !is_readable(octet)).unwrap_or(text.len());
    Some(text[..end].trim_ascii_end().to_vec())
}

/// The four bits that a letter from A to P stands for.
const fn nibble(letter: u8) -> Option<u8> {
    match letter.to_ascii_uppercase() {
        letter @ b'A'..=b'P' => Some(letter - b'A'),
        _ => None,
    }
}

/// What stands in names: Microsoft's browsers put 1 and 2 before and behind some, and the name that
/// asks for the state of a node is filled up with zeros.
const fn is_readable(octet: u8) -> bool {
    octet < 3 || octet == b' ' || octet.is_ascii_graphic()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_before_what_fills_them_up() {
        for (name, expected) in [
            (&b"EFEDEJFPEEEPENEBEJEOCACACACACABM"[..], Some(&b"ECI_DOMAIN"[..])),
            (b"efedejfpeeepenebejeocacacacacabm", Some(b"ECI_DOMAIN")),
            (b"abacfpfpenfdecfcepfhfdeffpfpacab", Some(b"\x01\x02__MSBROWSE__\x02")),
            // Lower case is in the name itself, and what cannot be read ends it.
            (b"efedejfpeeepengbejeocacacacacabm", Some(b"ECI_DOMaIN")),
            (b"efedejfpeejpenebejeocacacacacabm", Some(b"ECI_D")),
            (b"feeieffccaeccacacacacacacacacaaa", Some(b"THER B")),
            // A letter beyond P, also in the octet that is not told, and a name cut short.
            (b"efedejfpeeepenebejeosacacacacabm", None),
            (b"efedejfpeeepenebejeocacacacacabs", None),
            (b"efedejfpeeepenebejeocacacacacab", None),
            (b"", None),
        ] {
            assert_eq!(decode(name).as_deref(), expected, "{}", String::from_utf8_lossy(name));
        }
        let any = [&b"ck"[..], &[b'a'; 30]].concat();
        assert_eq!(decode(&any).unwrap(), [&b"*"[..], &[0; 14]].concat());
    }
}
