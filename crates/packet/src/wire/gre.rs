//! GRE, RFC 2784 with key and sequence number of RFC 2890, and the enhanced version 1 of RFC 2637.

/// A view of the 4 fixed bytes and of the optional fields behind them.
#[derive(Clone, Copy, Debug)]
pub struct GreView<'a> {
    fixed: &'a [u8; 4],
    rest: &'a [u8],
}

impl<'a> GreView<'a> {
    /// Checksum present.
    pub const CHECKSUM: u16 = 0x8000;
    /// Routing present, of RFC 1701 only.
    pub const ROUTING: u16 = 0x4000;
    /// Key present.
    pub const KEY: u16 = 0x2000;
    /// Sequence number present.
    pub const SEQUENCE: u16 = 0x1000;
    /// Acknowledgement number present, version 1 only.
    pub const ACKNOWLEDGEMENT: u16 = 0x0080;

    /// Length of the header without optional fields in bytes.
    pub const MIN_LEN: usize = 4;

    /// Views the start of `data`, or `None` where it holds no 4 bytes.
    #[must_use]
    #[inline]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let (fixed, rest) = data.split_first_chunk()?;
        Some(Self { fixed, rest })
    }

    /// Flags and version, 16 bits.
    #[must_use]
    #[inline]
    pub const fn flags(self) -> u16 {
        u16::from_be_bytes([self.fixed[0], self.fixed[1]])
    }

    /// Version, 0 or 1.
    #[must_use]
    #[inline]
    pub const fn version(self) -> u8 {
        self.fixed[1] & 7
    }

    /// EtherType of the payload.
    #[must_use]
    #[inline]
    pub const fn protocol(self) -> u16 {
        u16::from_be_bytes([self.fixed[2], self.fixed[3]])
    }

    /// Length of the header with the fields that the flags announce (without routing), in bytes.
    #[must_use]
    #[inline]
    pub const fn header_len(self) -> usize {
        let fields =
            self.flags() & (Self::CHECKSUM | Self::KEY | Self::SEQUENCE | Self::ACKNOWLEDGEMENT);
        Self::MIN_LEN + 4 * fields.count_ones() as usize
    }

    /// The optional field that `flag` announces, or `None` where it is absent or cut.
    #[must_use]
    #[inline]
    pub fn field(self, flag: u16) -> Option<u32> {
        // Fields stand in the order of their flags, from the highest bit on.
        let fields =
            self.flags() & (Self::CHECKSUM | Self::KEY | Self::SEQUENCE | Self::ACKNOWLEDGEMENT);
        if fields & flag == 0 {
            return None;
        }
        let before = (fields & !(flag | (flag - 1))).count_ones() as usize * 4;
        self.rest.get(before..)?.first_chunk().copied().map(u32::from_be_bytes)
    }
}

/// A GRE header (RFC 2784, RFC 2890).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GreHeader {
    /// Version: 0, or 1 for the enhanced GRE of PPTP.
    pub version: u8,
    /// EtherType of the payload.
    pub protocol: u16,
    /// Checksum, with the 16 reserved bits behind it in the lower half.
    pub checksum: Option<u32>,
    /// Key; in version 1 payload length and call id.
    pub key: Option<u32>,
    /// Sequence number.
    pub sequence: Option<u32>,
    /// Acknowledgement number, version 1.
    pub acknowledgement: Option<u32>,
}

impl GreHeader {
    const ORDER: [u16; 4] =
        [GreView::CHECKSUM, GreView::KEY, GreView::SEQUENCE, GreView::ACKNOWLEDGEMENT];

    const fn fields(&self) -> [Option<u32>; 4] {
        [self.checksum, self.key, self.sequence, self.acknowledgement]
    }

    /// Reads a header, or `None` where `data` is too short or reserved or routing flags are set.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Self> {
        let view = GreView::parse(data)?;
        let known = Self::ORDER.iter().fold(7, |all, flag| all | flag);
        if view.flags() & !known != 0 || data.len() < view.header_len() {
            return None;
        }
        let [checksum, key, sequence, acknowledgement] = Self::ORDER.map(|flag| view.field(flag));
        let (version, protocol) = (view.version(), view.protocol());
        Some(Self { version, protocol, checksum, key, sequence, acknowledgement })
    }

    /// Length of the header in bytes.
    #[must_use]
    pub fn header_len(&self) -> usize {
        GreView::MIN_LEN + 4 * self.fields().iter().flatten().count()
    }

    /// Writes the header and returns its length, or `None` where `buffer` is too short or the
    /// version exceeds 3 bits.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        if self.version > 7 {
            return None;
        }
        let (out, mut rest) = buffer.split_first_chunk_mut::<{ GreView::MIN_LEN }>()?;
        let mut flags = u16::from(self.version);
        for (field, flag) in self.fields().into_iter().zip(Self::ORDER) {
            let Some(value) = field else { continue };
            let (slot, behind) = rest.split_first_chunk_mut()?;
            *slot = value.to_be_bytes();
            flags |= flag;
            rest = behind;
        }
        out[..2].copy_from_slice(&flags.to_be_bytes());
        out[2..].copy_from_slice(&self.protocol.to_be_bytes());
        Some(self.header_len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::random::{Random, assert_round_trip, cases};

    #[test]
    fn round_trips() {
        cases(|random| {
            let header = GreHeader {
                version: random.byte() & 1,
                protocol: random.word(),
                checksum: random.maybe(Random::long),
                key: random.maybe(Random::long),
                sequence: random.maybe(Random::long),
                acknowledgement: random.maybe(Random::long),
            };
            assert_round_trip!(header, GreHeader::parse);
        });
    }
}
