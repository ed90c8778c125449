//! The tag of IEEE 802.1Q and 802.1ad, without the tag protocol identifier before it.

/// A view of the four bytes after the EtherType that announces a tag.
#[derive(Clone, Copy, Debug)]
pub struct VlanView<'a>(&'a [u8; 4]);

impl<'a> VlanView<'a> {
    /// Length in bytes: tag control information and the EtherType of what follows.
    pub const LEN: usize = 4;

    /// Views the start of `data`, or `None` where it is too short.
    #[must_use]
    #[inline]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        data.first_chunk().map(Self)
    }

    /// Priority code point, 3 bits.
    #[must_use]
    #[inline]
    pub const fn priority(self) -> u8 {
        self.0[0] >> 5
    }

    /// Drop eligible indicator.
    #[must_use]
    #[inline]
    pub const fn drop_eligible(self) -> bool {
        self.0[0] & 0x10 != 0
    }

    /// VLAN identifier, 12 bits.
    #[must_use]
    #[inline]
    pub const fn id(self) -> u16 {
        u16::from_be_bytes([self.0[0] & 0x0f, self.0[1]])
    }

    /// EtherType of what follows.
    #[must_use]
    #[inline]
    pub const fn ethertype(self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }
}

/// A VLAN tag (IEEE 802.1Q, 9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// Priority code point, 3 bits.
    pub priority: u8,
    /// Drop eligible indicator.
    pub drop_eligible: bool,
    /// VLAN identifier, 12 bits.
    pub id: u16,
    /// EtherType of what follows.
    pub ethertype: u16,
}

impl VlanTag {
    /// Length in bytes.
    pub const LEN: usize = VlanView::LEN;

    /// Reads a tag, or `None` where `data` is too short.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Self> {
        let view = VlanView::parse(data)?;
        Some(Self {
            priority: view.priority(),
            drop_eligible: view.drop_eligible(),
            id: view.id(),
            ethertype: view.ethertype(),
        })
    }

    /// Writes the tag and returns its length, or `None` where `buffer` is too short or a field
    /// exceeds its bits.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let out = buffer.first_chunk_mut::<{ Self::LEN }>()?;
        if self.priority > 7 || self.id > 0x0fff {
            return None;
        }
        let control =
            u16::from(self.priority) << 13 | u16::from(self.drop_eligible) << 12 | self.id;
        out[..2].copy_from_slice(&control.to_be_bytes());
        out[2..].copy_from_slice(&self.ethertype.to_be_bytes());
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
            let header = VlanTag {
                priority: random.byte() & 7,
                drop_eligible: random.flag(),
                id: random.word() & 0x0fff,
                ethertype: random.word(),
            };
            assert_round_trip!(header, VlanTag::parse);
        });
    }
}
