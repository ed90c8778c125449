//! The encoding that makes bytes text and lets text be read: quoted-printable (RFC 2045, section 6.7).

use super::LineEnd;

/// Quoted-printable on its way, line by line.
#[derive(Clone, Debug, Default)]
pub(super) struct QuotedPrintable {
    /// The begin of an escape at the end of a piece of a line.
    carry: Vec<u8>,
}

impl QuotedPrintable {
    /// Decodes a line into `out`, with its end unless that is a soft one.
    pub(super) fn decode(&mut self, text: &[u8], end: LineEnd, out: &mut Vec<u8>) {
        if self.carry.is_empty() {
            self.decode_all(text, end, out);
        } else {
            let mut all = core::mem::take(&mut self.carry);
            all.extend_from_slice(text);
            self.decode_all(&all, end, out);
        }
    }

    fn decode_all(&mut self, text: &[u8], end: LineEnd, out: &mut Vec<u8>) {
        // Blanks at the end were added on the way (RFC 2045, 6.7, rule 3).
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let mut rest = match end {
            LineEnd::None => text,
            _ => &text[..text.iter().rposition(|byte| !blank(byte)).map_or(0, |last| last + 1)],
        };
        let mut is_soft = false;
        while let Some(at) = rest.iter().position(|&byte| byte == b'=') {
            out.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            match *rest {
                [_, high, low, ..] => match (hex(high), hex(low)) {
                    (Some(high), Some(low)) => {
                        out.push(high << 4 | low);
                        rest = &rest[3..];
                    }
                    _ => {
                        out.push(b'=');
                        rest = &rest[1..];
                    }
                },
                _ if end == LineEnd::None => {
                    self.carry = rest.to_vec();
                    return;
                }
                [_] => {
                    is_soft = true;
                    rest = &[];
                }
                _ => {
                    out.push(b'=');
                    rest = &rest[1..];
                }
            }
        }
        out.extend_from_slice(rest);
        if !is_soft && end != LineEnd::None {
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// The value of a hexadecimal digit.
pub(super) const fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted_printable(lines: &[(&str, LineEnd)]) -> String {
        let (mut out, mut decoder) = (Vec::new(), QuotedPrintable::default());
        for (text, end) in lines {
            decoder.decode(text.as_bytes(), *end, &mut out);
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn quoted_printable_is_that_of_rfc_2045() {
        let crlf = LineEnd::Crlf;
        let lines = [("Now's the time =", crlf), ("for all folk to come=", crlf)];
        let text = quoted_printable(&[lines[0], lines[1], (" to the aid.", crlf)]);
        assert_eq!(text, "Now's the time for all folk to come to the aid.\r\n");
        assert_eq!(quoted_printable(&[("1=3D1  \t", crlf)]), "1=1\r\n");
        assert_eq!(quoted_printable(&[("=c3=A4=", crlf)]), "ä");
        assert_eq!(quoted_printable(&[("a=zz =1", crlf)]), "a=zz =1\r\n");
    }

    #[test]
    fn escapes_may_be_cut_where_a_line_is() {
        let line = "a=3Db=3Dc";
        for at in 0..=line.len() {
            let pieces = [(&line[..at], LineEnd::None), (&line[at..], LineEnd::Crlf)];
            assert_eq!(quoted_printable(&pieces), "a=b=c\r\n", "{at}");
        }
    }
}
