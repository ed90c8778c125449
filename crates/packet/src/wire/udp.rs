//! UDP, RFC 768.

/// A view of the 8 bytes of the header.
#[derive(Clone, Copy, Debug)]
pub struct UdpView<'a>(&'a [u8; 8]);

impl<'a> UdpView<'a> {
    /// Length of the header in bytes.
    pub const LEN: usize = 8;

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

    /// Length of header and payload in bytes; 0 in jumbograms (RFC 2675).
    #[must_use]
    #[inline]
    pub const fn datagram_len(self) -> u16 {
        u16::from_be_bytes([self.0[4], self.0[5]])
    }

    /// Checksum; 0 where the sender computed none.
    #[must_use]
    #[inline]
    pub const fn checksum(self) -> u16 {
        u16::from_be_bytes([self.0[6], self.0[7]])
    }
}

/// A UDP header (RFC 768).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpHeader {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Length of header and payload in bytes.
    pub datagram_len: u16,
    /// Checksum; 0 where there is none.
    pub checksum: u16,
}

impl UdpHeader {
    /// Length of the header in bytes.
    pub const LEN: usize = UdpView::LEN;

    /// Reads a header, or `None` where `data` is too short.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Self> {
        let view = UdpView::parse(data)?;
        Some(Self {
            source_port: view.source_port(),
            destination_port: view.destination_port(),
            datagram_len: view.datagram_len(),
            checksum: view.checksum(),
        })
    }

    /// Writes the header and returns its length, or `None` where `buffer` is too short.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let out = buffer.first_chunk_mut::<{ Self::LEN }>()?;
        out[..2].copy_from_slice(&self.source_port.to_be_bytes());
        out[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        out[4..6].copy_from_slice(&self.datagram_len.to_be_bytes());
        out[6..].copy_from_slice(&self.checksum.to_be_bytes());
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
            let header = UdpHeader {
                source_port: random.word(),
                destination_port: random.word(),
                datagram_len: random.word(),
                checksum: random.word(),
            };
            assert_round_trip!(header, UdpHeader::parse);
        });
    }
}
