//! The header that ICMP (RFC 792) and ICMPv6 (RFC 4443) share.

/// A view of the 8 bytes of the header.
#[derive(Clone, Copy, Debug)]
pub struct IcmpView<'a>(&'a [u8; 8]);

impl<'a> IcmpView<'a> {
    /// Length of the header in bytes.
    pub const LEN: usize = 8;

    /// Views the start of `data`, or `None` where it is too short.
    #[must_use]
    #[inline]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        data.first_chunk().map(Self)
    }

    /// Type of the message.
    #[must_use]
    #[inline]
    pub const fn kind(self) -> u8 {
        self.0[0]
    }

    /// Code, which tells messages of a type apart.
    #[must_use]
    #[inline]
    pub const fn code(self) -> u8 {
        self.0[1]
    }

    /// Checksum.
    #[must_use]
    #[inline]
    pub const fn checksum(self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// The four bytes whose meaning depends on the type.
    #[must_use]
    #[inline]
    pub const fn rest(self) -> [u8; 4] {
        let b = self.0;
        [b[4], b[5], b[6], b[7]]
    }
}

/// The header that all ICMP messages share (RFC 792).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpHeader {
    /// Type of the message.
    pub kind: u8,
    /// Code, which tells messages of a type apart.
    pub code: u8,
    /// Checksum; for ICMPv6 it covers a pseudo-header.
    pub checksum: u16,
    /// The four bytes whose meaning depends on the type: of echo messages identifier and sequence
    /// number.
    pub rest: [u8; 4],
}

impl IcmpHeader {
    /// Length of the header in bytes.
    pub const LEN: usize = IcmpView::LEN;

    /// Reads a header, or `None` where `data` is too short.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Self> {
        let view = IcmpView::parse(data)?;
        Some(Self {
            kind: view.kind(),
            code: view.code(),
            checksum: view.checksum(),
            rest: view.rest(),
        })
    }

    /// Writes the header and returns its length, or `None` where `buffer` is too short.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let out = buffer.first_chunk_mut::<{ Self::LEN }>()?;
        out[0] = self.kind;
        out[1] = self.code;
        out[2..4].copy_from_slice(&self.checksum.to_be_bytes());
        out[4..].copy_from_slice(&self.rest);
        Some(Self::LEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::random::{assert_round_trip, cases};

    #[test]
    fn round_trips() {
        cases(|random| {
            let header = IcmpHeader {
                kind: random.byte(),
                code: random.byte(),
                checksum: random.word(),
                rest: random.array(),
            };
            assert_round_trip!(header, IcmpHeader::parse);
        });
    }
}
