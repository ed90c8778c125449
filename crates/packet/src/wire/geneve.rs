//! Geneve, RFC 8926.

/// A view of the 8 fixed bytes and of the options behind them.
#[derive(Clone, Copy, Debug)]
pub struct GeneveView<'a> {
    fixed: &'a [u8; 8],
    rest: &'a [u8],
}

impl<'a> GeneveView<'a> {
    /// Length of the header without options in bytes.
    pub const MIN_LEN: usize = 8;

    /// Views the start of `data`, or `None` where it holds no 8 bytes.
    #[must_use]
    #[inline]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let (fixed, rest) = data.split_first_chunk()?;
        Some(Self { fixed, rest })
    }

    /// Version, 0.
    #[must_use]
    #[inline]
    pub const fn version(self) -> u8 {
        self.fixed[0] >> 6
    }

    /// Length of the header with options in bytes.
    #[must_use]
    #[inline]
    pub const fn header_len(self) -> usize {
        Self::MIN_LEN + (self.fixed[0] & 0x3f) as usize * 4
    }

    /// Control packet.
    #[must_use]
    #[inline]
    pub const fn control(self) -> bool {
        self.fixed[1] & 0x80 != 0
    }

    /// Critical options present.
    #[must_use]
    #[inline]
    pub const fn critical(self) -> bool {
        self.fixed[1] & 0x40 != 0
    }

    /// Whether a reserved bit is set.
    #[must_use]
    #[inline]
    pub const fn reserved_set(self) -> bool {
        self.fixed[1] & 0x3f != 0 || self.fixed[7] != 0
    }

    /// EtherType of the payload.
    #[must_use]
    #[inline]
    pub const fn protocol(self) -> u16 {
        u16::from_be_bytes([self.fixed[2], self.fixed[3]])
    }

    /// Virtual network identifier, 24 bits.
    #[must_use]
    #[inline]
    pub const fn vni(self) -> u32 {
        u32::from_be_bytes([0, self.fixed[4], self.fixed[5], self.fixed[6]])
    }

    /// The options as they stand on the wire, or `None` where they are cut.
    #[must_use]
    #[inline]
    pub fn options(self) -> Option<&'a [u8]> {
        self.rest.get(..self.header_len() - Self::MIN_LEN)
    }
}

/// A Geneve header (RFC 8926, 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneveHeader<'a> {
    /// Control packet.
    pub control: bool,
    /// Critical options present.
    pub critical: bool,
    /// EtherType of the payload.
    pub protocol: u16,
    /// Virtual network identifier, 24 bits.
    pub vni: u32,
    /// The options as they stand on the wire: at most 252 bytes, a multiple of 4.
    pub options: &'a [u8],
}

impl<'a> GeneveHeader<'a> {
    /// Reads a header, or `None` where `data` is too short, the version is not 0 or reserved bits
    /// are set.
    #[must_use]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let view = GeneveView::parse(data)?;
        if view.version() != 0 || view.reserved_set() {
            return None;
        }
        Some(Self {
            control: view.control(),
            critical: view.critical(),
            protocol: view.protocol(),
            vni: view.vni(),
            options: view.options()?,
        })
    }

    /// Writes the header and returns its length, or `None` where `buffer` is too short, the VNI
    /// exceeds 24 bits or the options are no multiple of 4 up to 252 bytes.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let options = self.options.len();
        if !options.is_multiple_of(4) || options > 252 {
            return None;
        }
        let out = buffer.get_mut(..GeneveView::MIN_LEN + options)?;
        let [0, vni @ ..] = self.vni.to_be_bytes() else { return None };
        out[0] = (options / 4) as u8;
        out[1] = u8::from(self.control) << 7 | u8::from(self.critical) << 6;
        out[2..4].copy_from_slice(&self.protocol.to_be_bytes());
        out[4..7].copy_from_slice(&vni);
        out[7] = 0;
        out[8..].copy_from_slice(self.options);
        Some(out.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::random::{assert_round_trip, cases};

    #[test]
    fn round_trips() {
        cases(|random| {
            let len = 4 * random.below(64);
            let options = random.bytes(len);
            let header = GeneveHeader {
                control: random.flag(),
                critical: random.flag(),
                protocol: random.word(),
                vni: random.long() >> 8,
                options: &options,
            };
            assert_round_trip!(header, GeneveHeader::parse);
        });
    }
}
