//! SCTP, RFC 9260: the common header.

/// A view of the 12 bytes of the common header.
#[derive(Clone, Copy, Debug)]
pub struct SctpView<'a>(&'a [u8; 12]);

impl<'a> SctpView<'a> {
    /// Length of the header in bytes.
    pub const LEN: usize = 12;

    /// Views the start of `data`, or `None` where it is too short.
    #[must_use]
    #[inline]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        data.first_chunk().map(Self)
    }

    /// Source port.
    #[must_use]
    #[inline]
    pub const fn source_port(self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }

    /// Destination port.
    #[must_use]
    #[inline]
    pub const fn destination_port(self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// Verification tag.
    #[must_use]
    #[inline]
    pub const fn verification_tag(self) -> u32 {
        u32::from_be_bytes([self.0[4], self.0[5], self.0[6], self.0[7]])
    }

    /// CRC32c over the packet, in network byte order as read (RFC 9260, appendix A).
    #[must_use]
    #[inline]
    pub const fn checksum(self) -> u32 {
        u32::from_be_bytes([self.0[8], self.0[9], self.0[10], self.0[11]])
    }
}

/// The common header of SCTP packets (RFC 9260, 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SctpHeader {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Verification tag.
    pub verification_tag: u32,
    /// CRC32c over the packet.
    pub checksum: u32,
}

impl SctpHeader {
    /// Length of the header in bytes.
    pub const LEN: usize = SctpView::LEN;

    /// Reads a header, or `None` where `data` is too short.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Self> {
        let view = SctpView::parse(data)?;
        Some(Self {
            source_port: view.source_port(),
            destination_port: view.destination_port(),
            verification_tag: view.verification_tag(),
            checksum: view.checksum(),
        })
    }

    /// Writes the header and returns its length, or `None` where `buffer` is too short.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let out = buffer.first_chunk_mut::<{ Self::LEN }>()?;
        out[..2].copy_from_slice(&self.source_port.to_be_bytes());
        out[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        out[4..8].copy_from_slice(&self.verification_tag.to_be_bytes());
        out[8..].copy_from_slice(&self.checksum.to_be_bytes());
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
            let header = SctpHeader {
                source_port: random.word(),
                destination_port: random.word(),
                verification_tag: random.long(),
                checksum: random.long(),
            };
            assert_round_trip!(header, SctpHeader::parse);
        });
    }
}
