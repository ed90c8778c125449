//! Base64, RFC 4648 section 4.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 on its way, in pieces of any length. What is no digit is skipped (RFC 2045, 6.8).
#[derive(Clone, Debug, Default)]
pub(in crate::protocol) struct Decoder {
    group: u32,
    digits: u8,
    /// Signs of padding in the group, which fill it up as digits do.
    padding: u8,
    is_over: bool,
}

impl Decoder {
    /// Decodes more of it into `out`. Nothing counts behind the padding.
    pub(in crate::protocol) fn decode(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let mut rest = text;
        while !self.is_over {
            if self.digits == 0 && self.padding == 0 {
                rest = decode_groups(rest, out);
            }
            let Some((&byte, behind)) = rest.split_first() else { return };
            self.byte(byte, out);
            rest = behind;
        }
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        if byte == b'=' {
            if self.digits > 0 {
                self.padding += 1;
                if self.digits + self.padding >= 4 {
                    self.finish(out);
                    self.is_over = true;
                }
            }
            return;
        }
        let value = VALUES[usize::from(byte)];
        if value == NONE {
            return;
        }
        if self.padding > 0 {
            self.finish(out);
            self.is_over = true;
            return;
        }
        self.group = self.group << 6 | u32::from(value);
        self.digits += 1;
        if self.digits == 4 {
            let [_, bytes @ ..] = self.group.to_be_bytes();
            out.extend_from_slice(&bytes);
            (self.group, self.digits) = (0, 0);
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
pub(in crate::protocol) fn decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let mut decoder = Decoder::default();
    decoder.decode(text, &mut out);
    decoder.finish(&mut out);
    out
}

/// Encodes bytes, with padding.
pub(in crate::protocol) fn encode(data: &[u8]) -> String {
    let mut text = String::with_capacity(data.len().div_ceil(3) * 4);
    for chunk in data.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at) & 0x3f) as usize];
            text.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// Decodes groups of four digits as long as there is nothing else, and returns what follows.
fn decode_groups<'a>(text: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let (groups, _) = text.as_chunks::<4>();
    out.reserve(groups.len() * 3);
    let mut at = 0;
    for group in groups {
        let [a, b, c, d] = group.map(|digit| VALUES[usize::from(digit)]);
        if (a | b | c | d) & NONE != 0 {
            break;
        }
        out.extend_from_slice(&[a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d]);
        at += group.len();
    }
    text.get(at..).unwrap_or_default()
}

/// What stands for no digit. No value has its bit.
const NONE: u8 = 0x80;

/// The value of each digit.
static VALUES: [u8; 256] = {
    let mut values = [NONE; 256];
    let mut value = 0;
    while value < DIGITS.len() {
        values[DIGITS[value] as usize] = value as u8;
        value += 1;
    }
    values
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_that_of_rfc_4648() {
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
            assert_eq!(encode(expected.as_bytes()), text);
            assert_eq!(decode(text.as_bytes()), expected.as_bytes(), "{text}");
            assert_eq!(decode(text.trim_end_matches('=').as_bytes()), expected.as_bytes());
        }
        assert_eq!(decode(b"+/+/"), [0xfb, 0xff, 0xbf]);
    }

    #[test]
    fn it_skips_what_is_no_digit_and_stops_at_the_padding() {
        assert_eq!(decode(b"Z\r\nm 9!v"), b"foo");
        assert_eq!(decode(b"Zg==Zg=="), b"f");
        assert_eq!(decode(b"Z"), b"");
    }

    #[test]
    fn each_byte_is_a_digit_or_is_skipped_at_each_place_of_a_group() {
        for byte in (0..=u8::MAX).filter(|&byte| byte != b'=') {
            let value = DIGITS.iter().position(|&digit| digit == byte);
            for at in 0..4 {
                let mut text = b"AAAAAAAA".to_vec();
                text[at] = byte;
                let bits = value.map_or(0, |value| (value as u32) << (18 - 6 * at));
                let mut expected = bits.to_be_bytes()[1..].to_vec();
                // Without a digit seven are left, which are five bytes.
                expected.resize(if value.is_some() { 6 } else { 5 }, 0);
                assert_eq!(decode(&text), expected, "{byte:#x} {at}");
            }
        }
    }

    #[test]
    fn padding_that_is_not_complete_waits() {
        let (mut out, mut decoder) = (Vec::new(), Decoder::default());
        decoder.decode(b"Zg=\r\n", &mut out);
        assert_eq!(out, b"");
        decoder.decode(b"=Zg==", &mut out);
        assert_eq!(out, b"f");
        assert_eq!(decode(b"Zg="), b"f");
        assert_eq!(decode(b"Zg=Zg=="), b"f");
    }

    #[test]
    fn it_may_be_cut_anywhere() {
        let text = b"Zm9vYmFyYmF6Cg==";
        for at in 0..=text.len() {
            let (mut out, mut decoder) = (Vec::new(), Decoder::default());
            decoder.decode(&text[..at], &mut out);
            decoder.decode(&text[at..], &mut out);
            decoder.finish(&mut out);
            assert_eq!(out, b"foobarbaz\n", "{at}");
        }
    }
}
