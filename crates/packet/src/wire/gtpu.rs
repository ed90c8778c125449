//! GTP-U version 1, 3GPP TS 29.281.

/// Message type of a T-PDU, which carries a user's packet.
pub const T_PDU: u8 = 255;

/// A view of the 8 fixed bytes and of the optional fields behind them.
#[derive(Clone, Copy, Debug)]
pub struct GtpuView<'a> {
    fixed: &'a [u8; 8],
    rest: &'a [u8],
}

impl<'a> GtpuView<'a> {
    /// Length of the header without optional fields in bytes.
    pub const MIN_LEN: usize = 8;

    /// Views the start of `data`, or `None` where it holds no 8 bytes.
    #[must_use]
    #[inline]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let (fixed, rest) = data.split_first_chunk()?;
        Some(Self { fixed, rest })
    }

    /// Version, 1.
    #[must_use]
    #[inline]
    pub const fn version(self) -> u8 {
        self.fixed[0] >> 5
    }

    /// Whether this is GTP, not GTP' (charging).
    #[must_use]
    #[inline]
    pub const fn protocol_type(self) -> bool {
        self.fixed[0] & 0x10 != 0
    }

    /// Whether extension headers follow the optional fields.
    #[must_use]
    #[inline]
    pub const fn has_extensions(self) -> bool {
        self.fixed[0] & 0x04 != 0
    }

    /// Whether the sequence number counts.
    #[must_use]
    #[inline]
    pub const fn has_sequence(self) -> bool {
        self.fixed[0] & 0x02 != 0
    }

    /// Whether the N-PDU number counts.
    #[must_use]
    #[inline]
    pub const fn has_npdu(self) -> bool {
        self.fixed[0] & 0x01 != 0
    }

    /// Message type.
    #[must_use]
    #[inline]
    pub const fn message_type(self) -> u8 {
        self.fixed[1]
    }

    /// Length in bytes of all that follows the 8 fixed bytes.
    #[must_use]
    #[inline]
    pub const fn payload_len(self) -> u16 {
        u16::from_be_bytes([self.fixed[2], self.fixed[3]])
    }

    /// Tunnel endpoint identifier.
    #[must_use]
    #[inline]
    pub const fn teid(self) -> u32 {
        u32::from_be_bytes([self.fixed[4], self.fixed[5], self.fixed[6], self.fixed[7]])
    }

    /// The four optional bytes: sequence number, N-PDU number and type of the next extension. They
    /// are there if one of three flags is set.
    #[must_use]
    #[inline]
    pub fn optional(self) -> Option<&'a [u8; 4]> {
        if self.fixed[0] & 7 == 0 { None } else { self.rest.first_chunk() }
    }

    /// Length of the header with optional fields and extension headers in bytes, or `None` where
    /// they are cut or an extension header has length 0.
    #[must_use]
    pub fn header_len(self) -> Option<usize> {
        if self.fixed[0] & 7 == 0 {
            return Some(Self::MIN_LEN);
        }
        let mut next = self.optional()?[3];
        let mut at = 4;
        while self.has_extensions() && next != 0 {
            let len = usize::from(*self.rest.get(at)?) * 4;
            next = *self.rest.get(at..at + len)?.last()?;
            at += len;
        }
        Some(Self::MIN_LEN + at)
    }
}

/// A GTP-U header (3GPP TS 29.281, 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GtpuHeader<'a> {
    /// Message type, [`T_PDU`] for a user's packet.
    pub message_type: u8,
    /// Length in bytes of all that follows the 8 fixed bytes.
    pub payload_len: u16,
    /// Tunnel endpoint identifier.
    pub teid: u32,
    /// Sequence number.
    pub sequence: Option<u16>,
    /// N-PDU number.
    pub npdu: Option<u8>,
    /// Type of the first extension header and all of them as they stand on the wire.
    pub extensions: Option<(u8, &'a [u8])>,
}

impl<'a> GtpuHeader<'a> {
    /// Reads a header, or `None` where `data` is too short, the version is not 1 or this is GTP'.
    #[must_use]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let view = GtpuView::parse(data)?;
        if view.version() != 1 || !view.protocol_type() {
            return None;
        }
        let header_len = view.header_len()?;
        let [a, b, npdu, next] = view.optional().copied().unwrap_or_default();
        let extensions =
            if view.has_extensions() { Some((next, data.get(12..header_len)?)) } else { None };
        Some(Self {
            message_type: view.message_type(),
            payload_len: view.payload_len(),
            teid: view.teid(),
            sequence: view.has_sequence().then(|| u16::from_be_bytes([a, b])),
            npdu: view.has_npdu().then_some(npdu),
            extensions,
        })
    }

    /// Writes the header and returns its length, or `None` where `buffer` is too short.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let flags = u8::from(self.extensions.is_some()) << 2
            | u8::from(self.sequence.is_some()) << 1
            | u8::from(self.npdu.is_some());
        let (out, rest) = buffer.split_first_chunk_mut::<{ GtpuView::MIN_LEN }>()?;
        out[0] = 0x30 | flags;
        out[1] = self.message_type;
        out[2..4].copy_from_slice(&self.payload_len.to_be_bytes());
        out[4..].copy_from_slice(&self.teid.to_be_bytes());
        if flags == 0 {
            return Some(GtpuView::MIN_LEN);
        }
        let (optional, rest) = rest.split_first_chunk_mut::<4>()?;
        let (next, extensions) = self.extensions.unwrap_or_default();
        optional[..2].copy_from_slice(&self.sequence.unwrap_or_default().to_be_bytes());
        optional[2] = self.npdu.unwrap_or_default();
        optional[3] = next;
        rest.get_mut(..extensions.len())?.copy_from_slice(extensions);
        Some(GtpuView::MIN_LEN + 4 + extensions.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::random::{Random, assert_round_trip, cases};

    #[test]
    fn round_trips() {
        cases(|random| {
            // Two extension headers, the second of 8 bytes; the last byte of each is the next type.
            let mut extensions = random.bytes(12);
            extensions[0] = 1;
            extensions[3] = 0x85;
            extensions[4] = 2;
            extensions[11] = 0;
            let header = GtpuHeader {
                message_type: random.byte(),
                payload_len: random.word(),
                teid: random.long(),
                sequence: random.maybe(Random::word),
                npdu: random.maybe(Random::byte),
                extensions: random.maybe(|random| (random.byte() | 1, extensions.as_slice())),
            };
            assert_round_trip!(header, GtpuHeader::parse);
        });
    }

    #[test]
    fn an_extension_of_length_0_is_refused() {
        let bytes = [0x34, T_PDU, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0x85, 0, 1, 1, 0];
        assert_eq!(GtpuView::parse(&bytes).unwrap().header_len(), None);
    }
}
