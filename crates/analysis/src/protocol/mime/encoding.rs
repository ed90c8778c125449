//! Encodings that make bytes text: base64 and quoted-printable (RFC 2045, section 6).

use super::LineEnd;

/// Base64 on its way, in pieces of any length. What is no digit is skipped (RFC 2045, 6.8).
#[derive(Clone, Debug, Default)]
pub(in crate::protocol) struct Base64 {
    group: u32,
    digits: u8,
    is_over: bool,
}

impl Base64 {
    /// Decodes more of it into `out`. Nothing counts behind the padding.
    pub(in crate::protocol) fn decode(&mut self, text: &[u8], out: &mut Vec<u8>) {
        for &byte in text {
            if self.is_over {
                return;
            }
            if byte == b'=' {
                if self.digits > 0 {
                    self.finish(out);
                    self.is_over = true;
                }
            } else if let Some(value) = value(byte) {
                self.group = self.group << 6 | u32::from(value);
                self.digits += 1;
                if self.digits == 4 {
                    let [_, bytes @ ..] = self.group.to_be_bytes();
                    out.extend_from_slice(&bytes);
                    (self.group, self.digits) = (0, 0);
                }
            }
        }
    }

    /// Decodes what is left where the padding is missing.
    pub(in crate::protocol) fn finish(&mut self, out: &mut Vec<u8>) {
        let digits = core::mem::take(&mut self.digits);
        let group = core::mem::take(&mut self.group);
        let [_, first, second, _] = (group << (6 * (4 - u32::from(digits)))).to_be_bytes();
        match digits {
            2 => out.push(first),
            3 => out.extend_from_slice(&[first, second]),
            _ => {}
        }
    }
}

/// Decodes base64 that is all there.
pub(in crate::protocol) fn base64(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let mut decoder = Base64::default();
    decoder.decode(text, &mut out);
    decoder.finish(&mut out);
    out
}

const fn value(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

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

    #[test]
    fn base64_is_that_of_rfc_4648() {
        let vectors = [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ];
        for (text, expected) in vectors {
            assert_eq!(base64(text.as_bytes()), expected.as_bytes(), "{text}");
            assert_eq!(base64(text.trim_end_matches('=').as_bytes()), expected.as_bytes());
        }
        assert_eq!(base64(b"+/+/"), [0xfb, 0xff, 0xbf]);
    }

    #[test]
    fn base64_skips_what_is_no_digit_and_stops_at_the_padding() {
        assert_eq!(base64(b"Z\r\nm 9!v"), b"foo");
        assert_eq!(base64(b"Zg==Zg=="), b"f");
        assert_eq!(base64(b"Z"), b"");
    }

    #[test]
    fn base64_may_be_cut_anywhere() {
        let text = b"Zm9vYmFyYmF6Cg==";
        for at in 0..=text.len() {
            let (mut out, mut decoder) = (Vec::new(), Base64::default());
            decoder.decode(&text[..at], &mut out);
            decoder.decode(&text[at..], &mut out);
            decoder.finish(&mut out);
            assert_eq!(out, b"foobarbaz\n", "{at}");
        }
    }

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
