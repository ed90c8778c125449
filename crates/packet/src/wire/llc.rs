//! IEEE 802.2 LLC and its SNAP extension (RFC 1042).

/// A view of an LLC header: two service access points and the control field.
#[derive(Clone, Copy, Debug)]
pub struct LlcView<'a>(&'a [u8; 3]);

impl<'a> LlcView<'a> {
    /// Length in bytes of a header with a one-byte control field.
    pub const LEN: usize = 3;

    /// Views the start of `data`, or `None` where it is too short.
    #[must_use]
    #[inline]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        data.first_chunk().map(Self)
    }

    /// Destination service access point.
    #[must_use]
    #[inline]
    pub const fn destination(self) -> u8 {
        self.0[0]
    }

    /// Source service access point.
    #[must_use]
    #[inline]
    pub const fn source(self) -> u8 {
        self.0[1]
    }

    /// The first byte of the control field.
    #[must_use]
    #[inline]
    pub const fn control(self) -> u8 {
        self.0[2]
    }

    /// Length of the header in bytes: the control field has two bytes unless it is unnumbered.
    #[must_use]
    #[inline]
    pub const fn header_len(self) -> usize {
        if self.control() & 3 == 3 { 3 } else { 4 }
    }

    /// Whether a SNAP extension follows.
    #[must_use]
    #[inline]
    pub const fn is_snap(self) -> bool {
        self.destination() == 0xaa && self.source() == 0xaa
    }
}

/// A view of the SNAP extension.
#[derive(Clone, Copy, Debug)]
pub struct SnapView<'a>(&'a [u8; 5]);

impl<'a> SnapView<'a> {
    /// Length of the extension in bytes.
    pub const LEN: usize = 5;

    /// Views the start of `data`, or `None` where it is too short.
    #[must_use]
    #[inline]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        data.first_chunk().map(Self)
    }

    /// Organisation that defines the protocol, 24 bits; 0 for EtherTypes.
    #[must_use]
    #[inline]
    pub const fn organisation(self) -> u32 {
        u32::from_be_bytes([0, self.0[0], self.0[1], self.0[2]])
    }

    /// Protocol; an EtherType where the organisation is 0.
    #[must_use]
    #[inline]
    pub const fn protocol(self) -> u16 {
        u16::from_be_bytes([self.0[3], self.0[4]])
    }
}

/// An LLC header with a one-byte control field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LlcHeader {
    /// Destination service access point.
    pub destination: u8,
    /// Source service access point.
    pub source: u8,
    /// Control field, unnumbered: the low two bits are set.
    pub control: u8,
    /// SNAP extension: organisation (24 bits) and protocol.
    pub snap: Option<(u32, u16)>,
}

impl LlcHeader {
    /// The header before an EtherType in an IEEE 802.3 or 802.11 frame.
    #[must_use]
    pub const fn for_ethertype(ethertype: u16) -> Self {
        Self { destination: 0xaa, source: 0xaa, control: 3, snap: Some((0, ethertype)) }
    }

    /// Reads a header, or `None` where `data` is too short or the control field is numbered.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Self> {
        let view = LlcView::parse(data)?;
        if view.header_len() != LlcView::LEN {
            return None;
        }
        let snap = if view.is_snap() {
            let snap = SnapView::parse(data.get(LlcView::LEN..)?)?;
            Some((snap.organisation(), snap.protocol()))
        } else {
            None
        };
        let (destination, source) = (view.destination(), view.source());
        Some(Self { destination, source, control: view.control(), snap })
    }

    /// Writes the header and returns its length, or `None` where `buffer` is too short, the control
    /// field is numbered, the organisation exceeds 24 bits, or access points and extension disagree.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let is_snap = self.destination == 0xaa && self.source == 0xaa;
        if self.control & 3 != 3 || is_snap != self.snap.is_some() {
            return None;
        }
        let (out, rest) = buffer.split_first_chunk_mut::<{ LlcView::LEN }>()?;
        *out = [self.destination, self.source, self.control];
        let Some((organisation, protocol)) = self.snap else { return Some(LlcView::LEN) };
        let [0, organisation @ ..] = organisation.to_be_bytes() else { return None };
        let out = rest.first_chunk_mut::<{ SnapView::LEN }>()?;
        out[..3].copy_from_slice(&organisation);
        out[3..].copy_from_slice(&protocol.to_be_bytes());
        Some(LlcView::LEN + SnapView::LEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::random::{assert_round_trip, cases};

    #[test]
    fn round_trips() {
        cases(|random| {
            let header = if random.flag() {
                let snap = Some((random.long() >> 8, random.word()));
                LlcHeader { snap, ..LlcHeader::for_ethertype(0) }
            } else {
                let (destination, control) = (random.byte() & 0x7f, random.byte() | 3);
                LlcHeader { destination, source: random.byte(), control, snap: None }
            };
            assert_round_trip!(header, LlcHeader::parse);
        });
    }
}
