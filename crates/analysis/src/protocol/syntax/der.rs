//! ASN.1 in the encodings of certificates and SNMP: DER, ITU-T X.690 sections 8 and 10, of which lengths may have
//! more octets than they need, as in BER.

/// `BOOLEAN`.
pub(in crate::protocol) const BOOLEAN: u8 = 0x01;
/// `INTEGER`.
pub(in crate::protocol) const INTEGER: u8 = 0x02;
/// `BIT STRING`.
pub(in crate::protocol) const BIT_STRING: u8 = 0x03;
/// `OCTET STRING`.
pub(in crate::protocol) const OCTET_STRING: u8 = 0x04;
/// `OBJECT IDENTIFIER`.
pub(in crate::protocol) const OBJECT: u8 = 0x06;
/// `SEQUENCE` and `SEQUENCE OF`.
pub(in crate::protocol) const SEQUENCE: u8 = 0x30;
/// `SET` and `SET OF`.
pub(in crate::protocol) const SET: u8 = 0x31;

/// The tag `[number]` of a context, around a constructed value.
pub(in crate::protocol) const fn context(number: u8) -> u8 {
    0xa0 | number
}

/// A value with its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol) struct Element<'a> {
    /// Its tag. Tags of several octets are not read: nobody here has them.
    pub(in crate::protocol) tag: u8,
    /// The content octets (X.690, 8.1.4).
    pub(in crate::protocol) content: &'a [u8],
    /// All of it: tag, length and content.
    pub(in crate::protocol) whole: &'a [u8],
}

/// Elements one after another.
#[derive(Clone, Copy, Debug)]
pub(in crate::protocol) struct Elements<'a> {
    bytes: &'a [u8],
}

impl<'a> Elements<'a> {
    /// The elements in `bytes`.
    pub(in crate::protocol) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The next element if it has this tag; otherwise nothing is read.
    pub(in crate::protocol) fn next_if(&mut self, tag: u8) -> Option<Element<'a>> {
        let mut ahead = *self;
        let element = ahead.next().filter(|element| element.tag == tag)?;
        *self = ahead;
        Some(element)
    }

    /// The content of the next element, which must have this tag.
    pub(in crate::protocol) fn content(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next_if(tag).map(|element| element.content)
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    /// The next element; `None` at the end, and where one is cut.
    fn next(&mut self) -> Option<Element<'a>> {
        let (&[tag, first], rest) = self.bytes.split_first_chunk()?;
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (len, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            // The indefinite length is not of DER nor of SNMP (RFC 3417, section 8); nobody needs longer ones.
            0x81..=0x84 => {
                let (octets, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                let len = octets.iter().fold(0_u32, |len, octet| len << 8 | u32::from(*octet));
                (usize::try_from(len).ok()?, rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(len)?;
        let whole = self.bytes.get(..self.bytes.len().checked_sub(rest.len())?)?;
        self.bytes = rest;
        Some(Element { tag, content, whole })
    }
}

/// The octets of an unsigned number without leading zeros.
pub(in crate::protocol) fn magnitude(octets: &[u8]) -> &[u8] {
    let zeros = octets.iter().take_while(|octet| **octet == 0).count();
    octets.get(zeros..).unwrap_or_default()
}

/// An unsigned number; `None` beyond 128 bits.
pub(in crate::protocol) fn unsigned_wide(octets: &[u8]) -> Option<u128> {
    let octets = magnitude(octets);
    let fold = |number: u128, octet: &u8| number << 8 | u128::from(*octet);
    (octets.len() <= 16).then(|| octets.iter().fold(0, fold))
}

/// An unsigned number; `None` beyond 64 bits.
pub(in crate::protocol) fn unsigned(octets: &[u8]) -> Option<u64> {
    u64::try_from(unsigned_wide(octets)?).ok()
}

/// An object identifier in its dotted form; `None` where it is none.
pub(in crate::protocol) fn dotted(object: &[u8]) -> Option<String> {
    if object.last().is_none_or(|last| last & 0x80 != 0) {
        return None;
    }
    let mut text = String::new();
    let mut arc: u64 = 0;
    for octet in object {
        arc = arc.checked_mul(128)?.checked_add(u64::from(octet & 0x7f))?;
        if octet & 0x80 != 0 {
            continue;
        }
        if text.is_empty() {
            let first = (arc / 40).min(2);
            text = format!("{first}.{}", arc - first * 40);
        } else {
            text.push('.');
            text.push_str(&arc.to_string());
        }
        arc = 0;
    }
    Some(text)
}

#[cfg(test)]
pub(in crate::protocol) mod tests {
    use super::*;

    pub(in crate::protocol) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        let len = content.len();
        let length = match len {
            0..128 => vec![len as u8],
            128..256 => vec![0x81, len as u8],
            _ => vec![0x82, (len >> 8) as u8, len as u8],
        };
        [&[tag][..], &length, content].concat()
    }

    #[test]
    fn elements_are_read_one_after_another() {
        let long = element(OCTET_STRING, &[7; 300]);
        let bytes = [element(INTEGER, &[5]), long.clone(), element(SET, &[1; 200])].concat();
        let read: Vec<_> = Elements::new(&bytes).map(|e| (e.tag, e.content.len())).collect();
        assert_eq!(read, [(INTEGER, 1), (OCTET_STRING, 300), (SET, 200)]);
        let mut elements = Elements::new(&bytes);
        assert_eq!(elements.content(SET), None);
        assert_eq!(elements.content(INTEGER), Some(&[5][..]));
        assert_eq!(elements.next().map(|e| e.whole), Some(&long[..]));
        // Longer than it needs to be.
        let padded = [OCTET_STRING, 0x84, 0, 0, 0, 1, 7];
        assert_eq!(Elements::new(&padded).content(OCTET_STRING), Some(&[7][..]));
    }

    #[test]
    fn what_is_cut_or_not_der_is_no_element() {
        let whole = element(SEQUENCE, &[1; 300]);
        for cut in 0..whole.len() {
            assert_eq!(Elements::new(&whole[..cut]).next(), None, "{cut}");
        }
        for bytes in [&[0x30, 0x80, 0, 0][..], &[0x1f, 1, 1], &[0x30, 0x85, 0, 0, 0, 0, 1, 9]] {
            assert_eq!(Elements::new(bytes).next(), None, "{bytes:?}");
        }
    }

    #[test]
    fn identifiers_are_dotted() {
        assert_eq!(
            dotted(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11]).as_deref(),
            Some("1.2.840.113549.1.1.11")
        );
        assert_eq!(dotted(&[0x55, 4, 3]).as_deref(), Some("2.5.4.3"));
        assert_eq!(dotted(&[0x88, 0x37, 3]).as_deref(), Some("2.999.3"));
        assert_eq!((dotted(&[]), dotted(&[0x86]), dotted(&[0xff; 12])), (None, None, None));
    }

    #[test]
    fn numbers_may_have_leading_zeros() {
        assert_eq!((unsigned(&[0, 3]), unsigned(&[0]), unsigned(&[])), (Some(3), Some(0), Some(0)));
        assert_eq!(unsigned(&[[0].as_slice(), &[0xff; 8]].concat()), Some(u64::MAX));
        assert_eq!(unsigned(&[1; 9]), None);
        assert_eq!(unsigned_wide(&[0xff; 16]), Some(u128::MAX));
        assert_eq!(unsigned_wide(&[1; 17]), None);
    }
}
