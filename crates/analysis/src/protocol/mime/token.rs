//! Tokens of header fields and what stands between them (RFC 2045, RFC 5322), as tolerant as Zeek reads
//! them.

/// The first token of `text` (RFC 2045, section 5.1), and what follows.
pub(in crate::protocol) fn token(text: &[u8]) -> Option<(&[u8], &[u8])> {
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
#[inline]
pub(in crate::protocol) const fn is_token_byte(byte: u8) -> bool {
    TOKEN[byte as usize]
}

/// The bytes of tokens: what is visible, but for the special ones.
static TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = b'!';
    while byte <= b'~' {
        table[byte as usize] = true;
        byte += 1;
    }
    let special = b"()<>@,;:\\\"/[]?=";
    let mut at = 0;
    while at < special.len() {
        table[special[at] as usize] = false;
        at += 1;
    }
    table
};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_token_counts() {
        let of = |text: &'static str| token(text.as_bytes());
        assert_eq!(of(" (x) gzip, br"), Some((&b"gzip"[..], &b", br"[..])));
        assert_eq!(of("\"chunked\""), Some((&b"chunked"[..], &b"\""[..])));
        assert_eq!(of(";,("), None);
    }
}
