//! IPv6, RFC 8200: the fixed header.

/// A view of the 40 bytes of the header.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6View<'a>(&'a [u8; 40]);

impl<'a> Ipv6View<'a> {
    /// Length of the header in bytes.
    pub const LEN: usize = 40;

    /// Views the start of `data`, or `None` where it is too short.
    #[must_use]
    #[inline]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        data.first_chunk().map(Self)
    }

    /// Version, 6 where this is IPv6.
    #[must_use]
    #[inline]
    pub const fn version(self) -> u8 {
        self.0[0] >> 4
    }

    /// DSCP and ECN.
    #[must_use]
    #[inline]
    pub const fn traffic_class(self) -> u8 {
        self.0[0] << 4 | self.0[1] >> 4
    }

    /// Flow label, 20 bits.
    #[must_use]
    #[inline]
    pub const fn flow_label(self) -> u32 {
        u32::from_be_bytes([0, self.0[1] & 0x0f, self.0[2], self.0[3]])
    }

    /// Length of what follows this header in bytes; 0 in jumbograms (RFC 2675).
    #[must_use]
    #[inline]
    pub const fn payload_len(self) -> u16 {
        u16::from_be_bytes([self.0[4], self.0[5]])
    }

    /// Protocol of what follows.
    #[must_use]
    #[inline]
    pub const fn next_header(self) -> u8 {
        self.0[6]
    }

    /// Hop limit.
    #[must_use]
    #[inline]
    pub const fn hop_limit(self) -> u8 {
        self.0[7]
    }

    /// Source address.
    #[must_use]
    #[inline]
    pub fn source(self) -> [u8; 16] {
        self.address::<8>()
    }

    /// Destination address.
    #[must_use]
    #[inline]
    pub fn destination(self) -> [u8; 16] {
        self.address::<24>()
    }

    #[inline]
    fn address<const AT: usize>(self) -> [u8; 16] {
        self.0[AT..].first_chunk().copied().unwrap_or_default()
    }
}

/// The fixed IPv6 header (RFC 8200, 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Header {
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Length of what follows this header in bytes.
    pub payload_len: u16,
    /// Protocol of what follows.
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source address.
    pub source: [u8; 16],
    /// Destination address.
    pub destination: [u8; 16],
}

impl Ipv6Header {
    /// Length of the header in bytes.
    pub const LEN: usize = Ipv6View::LEN;

    /// Reads a header, or `None` where `data` is too short or the version is not 6.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Self> {
        let view = Ipv6View::parse(data)?;
        (view.version() == 6).then(|| Self {
            traffic_class: view.traffic_class(),
            flow_label: view.flow_label(),
            payload_len: view.payload_len(),
            next_header: view.next_header(),
            hop_limit: view.hop_limit(),
            source: view.source(),
            destination: view.destination(),
        })
    }

    /// Writes the header and returns its length, or `None` where `buffer` is too short or the flow
    /// label exceeds 20 bits.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let out = buffer.first_chunk_mut::<{ Self::LEN }>()?;
        if self.flow_label >> 20 != 0 {
            return None;
        }
        let word = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label;
        out[..4].copy_from_slice(&word.to_be_bytes());
        out[4..6].copy_from_slice(&self.payload_len.to_be_bytes());
        out[6] = self.next_header;
        out[7] = self.hop_limit;
        out[8..24].copy_from_slice(&self.source);
        out[24..].copy_from_slice(&self.destination);
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
            let header = Ipv6Header {
                traffic_class: random.byte(),
                flow_label: random.long() >> 12,
                payload_len: random.word(),
                next_header: random.byte(),
                hop_limit: random.byte(),
                source: random.array(),
                destination: random.array(),
            };
            assert_round_trip!(header, Ipv6Header::parse);
        });
    }
}
