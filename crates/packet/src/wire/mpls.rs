//! An entry of the MPLS label stack, RFC 3032.

/// A view of one entry.
#[derive(Clone, Copy, Debug)]
pub struct MplsView<'a>(&'a [u8; 4]);

impl<'a> MplsView<'a> {
    /// Length of an entry in bytes.
    pub const LEN: usize = 4;

    /// Views the start of `data`, or `None` where it is too short.
    #[must_use]
    #[inline]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        data.first_chunk().map(Self)
    }

    /// Label, 20 bits.
    #[must_use]
    #[inline]
    pub const fn label(self) -> u32 {
        u32::from_be_bytes([0, self.0[0], self.0[1], self.0[2]]) >> 4
    }

    /// Traffic class, 3 bits, RFC 5462.
    #[must_use]
    #[inline]
    pub const fn traffic_class(self) -> u8 {
        self.0[2] >> 1 & 7
    }

    /// Whether this is the last entry.
    #[must_use]
    #[inline]
    pub const fn bottom_of_stack(self) -> bool {
        self.0[2] & 1 != 0
    }

    /// Time to live.
    #[must_use]
    #[inline]
    pub const fn ttl(self) -> u8 {
        self.0[3]
    }
}

/// One entry of an MPLS label stack (RFC 3032, 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MplsEntry {
    /// Label, 20 bits.
    pub label: u32,
    /// Traffic class, 3 bits.
    pub traffic_class: u8,
    /// Whether this is the last entry.
    pub bottom_of_stack: bool,
    /// Time to live.
    pub ttl: u8,
}

impl MplsEntry {
    /// Length of an entry in bytes.
    pub const LEN: usize = MplsView::LEN;

    /// Reads an entry, or `None` where `data` is too short.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Self> {
        let view = MplsView::parse(data)?;
        Some(Self {
            label: view.label(),
            traffic_class: view.traffic_class(),
            bottom_of_stack: view.bottom_of_stack(),
            ttl: view.ttl(),
        })
    }

    /// Writes the entry and returns its length, or `None` where `buffer` is too short or a field
    /// exceeds its bits.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let out = buffer.first_chunk_mut::<{ Self::LEN }>()?;
        if self.label >> 20 != 0 || self.traffic_class > 7 {
            return None;
        }
        let word = self.label << 12
            | u32::from(self.traffic_class) << 9
            | u32::from(self.bottom_of_stack) << 8
            | u32::from(self.ttl);
        *out = word.to_be_bytes();
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
            let header = MplsEntry {
                label: random.long() >> 12,
                traffic_class: random.byte() & 7,
                bottom_of_stack: random.flag(),
                ttl: random.byte(),
            };
            assert_round_trip!(header, MplsEntry::parse);
        });
    }
}
