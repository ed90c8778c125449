//! VXLAN, RFC 7348.

/// A view of the 8 bytes of the header.
#[derive(Clone, Copy, Debug)]
pub struct VxlanView<'a>(&'a [u8; 8]);

impl<'a> VxlanView<'a> {
    /// The flag that says that the VNI is valid.
    pub const VALID_VNI: u8 = 0x08;
    /// A group policy id stands in the second half of the first word (draft-smith-vxlan-group-policy).
    pub const GROUP_POLICY: u8 = 0x80;

    /// Length of the header in bytes.
    pub const LEN: usize = 8;

    /// Views the start of `data`, or `None` where it is too short.
    #[must_use]
    #[inline]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        data.first_chunk().map(Self)
    }

    /// The first byte, which holds the flags.
    #[must_use]
    #[inline]
    pub const fn flags(self) -> u8 {
        self.0[0]
    }

    /// VXLAN network identifier, 24 bits.
    #[must_use]
    #[inline]
    pub const fn vni(self) -> u32 {
        u32::from_be_bytes([0, self.0[4], self.0[5], self.0[6]])
    }

    /// The 24 reserved bits behind the flags, and the last 8.
    #[must_use]
    #[inline]
    pub const fn reserved(self) -> (u32, u8) {
        (u32::from_be_bytes([0, self.0[1], self.0[2], self.0[3]]), self.0[7])
    }
}

/// The header, with nothing but the flag that the VNI counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VxlanHeader {
    /// VXLAN network identifier, 24 bits.
    pub vni: u32,
}

impl VxlanHeader {
    /// Length of the header in bytes.
    pub const LEN: usize = VxlanView::LEN;

    /// Reads a header, or `None` where `data` is too short, the VNI does not count or reserved bits
    /// are set.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Self> {
        let view = VxlanView::parse(data)?;
        (view.flags() == VxlanView::VALID_VNI && view.reserved() == (0, 0))
            .then(|| Self { vni: view.vni() })
    }

    /// Writes the header and returns its length, or `None` where `buffer` is too short or the VNI
    /// exceeds 24 bits.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let out = buffer.first_chunk_mut::<{ Self::LEN }>()?;
        let [0, a, b, c] = self.vni.to_be_bytes() else { return None };
        *out = [VxlanView::VALID_VNI, 0, 0, 0, a, b, c, 0];
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
            let header = VxlanHeader { vni: random.long() >> 8 };
            assert_round_trip!(header, VxlanHeader::parse);
        });
    }
}
