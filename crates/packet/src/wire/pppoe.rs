//! PPPoE, RFC 2516: the header of both stages, and protocol numbers of PPP.

/// Protocol numbers of PPP, as registered with IANA.
pub mod ppp_protocol {
    /// IPv4.
    pub const IPV4: u16 = 0x0021;
    /// IPv6.
    pub const IPV6: u16 = 0x0057;
    /// MPLS unicast.
    pub const MPLS: u16 = 0x0281;
}

/// A view of the 6 bytes of the header.
#[derive(Clone, Copy, Debug)]
pub struct PppoeView<'a>(&'a [u8; 6]);

impl<'a> PppoeView<'a> {
    /// Length of the header in bytes.
    pub const LEN: usize = 6;

    /// Views the start of `data`, or `None` where it is too short.
    #[must_use]
    #[inline]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        data.first_chunk().map(Self)
    }

    /// Version in the upper and type in the lower four bits, both 1.
    #[must_use]
    #[inline]
    pub const fn version_and_type(self) -> u8 {
        self.0[0]
    }

    /// Code: 0 in a session, else the kind of discovery packet.
    #[must_use]
    #[inline]
    pub const fn code(self) -> u8 {
        self.0[1]
    }

    /// Session identifier (RFC 2516, 4).
    #[must_use]
    #[inline]
    pub const fn session(self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// Length of the payload in bytes.
    #[must_use]
    #[inline]
    pub const fn payload_len(self) -> u16 {
        u16::from_be_bytes([self.0[4], self.0[5]])
    }
}

/// The header, of version 1 and type 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PppoeHeader {
    /// Code: 0 in a session, else the kind of discovery packet.
    pub code: u8,
    /// Session identifier (RFC 2516, 4).
    pub session: u16,
    /// Length of the payload in bytes.
    pub payload_len: u16,
}

impl PppoeHeader {
    /// Length of the header in bytes.
    pub const LEN: usize = PppoeView::LEN;

    /// Reads a header, or `None` where `data` is too short or version or type is not 1.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Self> {
        let view = PppoeView::parse(data)?;
        (view.version_and_type() == 0x11).then(|| Self {
            code: view.code(),
            session: view.session(),
            payload_len: view.payload_len(),
        })
    }

    /// Writes the header and returns its length, or `None` where `buffer` is too short.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let out = buffer.first_chunk_mut::<{ Self::LEN }>()?;
        out[0] = 0x11;
        out[1] = self.code;
        out[2..4].copy_from_slice(&self.session.to_be_bytes());
        out[4..].copy_from_slice(&self.payload_len.to_be_bytes());
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
            let header = PppoeHeader {
                code: random.byte(),
                session: random.word(),
                payload_len: random.word(),
            };
            assert_round_trip!(header, PppoeHeader::parse);
        });
    }
}
