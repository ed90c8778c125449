//! IPv6 extension headers, RFC 8200 section 4, RFC 4302, RFC 6275.

/// A view of an extension header in the general form: next header, length in units of 8 bytes
/// beyond the first 8, content. Hop-by-hop, destination options, routing, mobility, HIP and Shim6
/// headers have it.
#[derive(Clone, Copy, Debug)]
pub struct ExtensionView<'a> {
    fixed: &'a [u8; 8],
    all: &'a [u8],
}

impl<'a> ExtensionView<'a> {
    /// Views the start of `data`, or `None` where it holds no 8 bytes. The header may be longer
    /// than `data`, see [`len`](Self::len).
    #[must_use]
    #[inline]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        Some(Self { fixed: data.first_chunk()?, all: data })
    }

    /// Protocol of what follows.
    #[must_use]
    #[inline]
    pub const fn next_header(self) -> u8 {
        self.fixed[0]
    }

    /// Length of the header in bytes, at least 8.
    #[must_use]
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "a header is never empty")]
    pub const fn len(self) -> usize {
        8 + self.fixed[1] as usize * 8
    }

    /// What follows the first two bytes, as far as it is there.
    #[must_use]
    #[inline]
    pub fn data(self) -> &'a [u8] {
        let end = self.len().min(self.all.len());
        self.all.get(2..end).unwrap_or_default()
    }
}

/// A view of an authentication header, RFC 4302, whose length counts units of 4 bytes.
#[derive(Clone, Copy, Debug)]
pub struct AuthenticationView<'a>(&'a [u8; 8]);

impl<'a> AuthenticationView<'a> {
    /// Views the start of `data`, or `None` where it holds no 8 bytes.
    #[must_use]
    #[inline]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        data.first_chunk().map(Self)
    }

    /// Protocol of what follows.
    #[must_use]
    #[inline]
    pub const fn next_header(self) -> u8 {
        self.0[0]
    }

    /// Length of the header in bytes, at least 8.
    #[must_use]
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "a header is never empty")]
    pub const fn len(self) -> usize {
        8 + self.0[1] as usize * 4
    }

    /// Security parameters index.
    #[must_use]
    #[inline]
    pub const fn security_parameters_index(self) -> u32 {
        u32::from_be_bytes([self.0[4], self.0[5], self.0[6], self.0[7]])
    }
}

/// A view of a fragment header, RFC 8200 section 4.5.
#[derive(Clone, Copy, Debug)]
pub struct FragmentView<'a>(&'a [u8; 8]);

impl<'a> FragmentView<'a> {
    /// Length of the header in bytes.
    pub const LEN: usize = 8;

    /// Views the start of `data`, or `None` where it is too short.
    #[must_use]
    #[inline]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        data.first_chunk().map(Self)
    }

    /// Protocol of the fragmented part.
    #[must_use]
    #[inline]
    pub const fn next_header(self) -> u8 {
        self.0[0]
    }

    /// Offset of this fragment in bytes, a multiple of 8.
    #[must_use]
    #[inline]
    pub const fn offset(self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]]) & 0xfff8
    }

    /// Whether more fragments follow.
    #[must_use]
    #[inline]
    pub const fn more_fragments(self) -> bool {
        self.0[3] & 1 != 0
    }

    /// Identification.
    #[must_use]
    #[inline]
    pub const fn identification(self) -> u32 {
        u32::from_be_bytes([self.0[4], self.0[5], self.0[6], self.0[7]])
    }
}

/// A view of a routing header, RFC 8200 section 4.4.
#[derive(Clone, Copy, Debug)]
pub struct RoutingView<'a>(ExtensionView<'a>);

impl<'a> RoutingView<'a> {
    /// Views the start of `data`, or `None` where it holds no 8 bytes.
    #[must_use]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        ExtensionView::parse(data).map(Self)
    }

    /// Routing type.
    #[must_use]
    pub const fn kind(self) -> u8 {
        self.0.fixed[2]
    }

    /// Nodes still to be visited.
    #[must_use]
    pub const fn segments_left(self) -> u8 {
        self.0.fixed[3]
    }

    /// What follows the first four bytes, as far as it is there.
    #[must_use]
    pub fn data(self) -> &'a [u8] {
        self.0.data().get(2..).unwrap_or_default()
    }

    /// The last address of a type 0 or type 2 header: four reserved bytes, then addresses.
    #[must_use]
    pub fn last_address(self) -> Option<[u8; 16]> {
        self.data().get(4..)?.as_chunks::<16>().0.last().copied()
    }
}

/// The home address option in destination options, RFC 6275 section 6.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomeAddress(pub [u8; 16]);

impl HomeAddress {
    /// Finds the option in a destination options header.
    #[must_use]
    pub fn find(header: ExtensionView<'_>) -> Option<Self> {
        OptionIter::new(header.data())
            .find(|option| option.kind == 0xc9)
            .and_then(|option| option.data.try_into().ok())
            .map(Self)
    }
}

/// One option of a hop-by-hop or destination options header, RFC 8200 section 4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensionOption<'a> {
    /// Type; 1 is padding.
    pub kind: u8,
    /// Content.
    pub data: &'a [u8],
}

/// The options of a header without single-byte padding, up to the first that does not fit.
#[derive(Clone, Debug)]
pub struct OptionIter<'a>(&'a [u8]);

impl<'a> OptionIter<'a> {
    /// Reads the content of a header after its first two bytes.
    #[must_use]
    pub const fn new(data: &'a [u8]) -> Self {
        Self(data)
    }
}

impl<'a> Iterator for OptionIter<'a> {
    type Item = ExtensionOption<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        while let [0, rest @ ..] = self.0 {
            self.0 = rest;
        }
        let [kind, len, rest @ ..] = self.0 else { return None };
        let (data, rest) = rest.split_at_checked(usize::from(*len))?;
        self.0 = rest;
        Some(ExtensionOption { kind: *kind, data })
    }
}

/// A header in the general form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensionHeader<'a> {
    /// Protocol of what follows.
    pub next_header: u8,
    /// What follows the first two bytes: 6 bytes or a multiple of 8 more, at most 2046.
    pub data: &'a [u8],
}

impl<'a> ExtensionHeader<'a> {
    /// Reads a header, or `None` where `data` is too short.
    #[must_use]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let view = ExtensionView::parse(data)?;
        Some(Self { next_header: view.next_header(), data: data.get(2..view.len())? })
    }

    /// Writes the header and returns its length, or `None` where `buffer` is too short or the
    /// length of the content impossible.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let len = self.data.len() + 2;
        if !len.is_multiple_of(8) {
            return None;
        }
        let units = u8::try_from((len / 8).checked_sub(1)?).ok()?;
        let out = buffer.get_mut(..len)?;
        out[0] = self.next_header;
        out[1] = units;
        out[2..].copy_from_slice(self.data);
        Some(len)
    }
}

/// A fragment header (RFC 8200, 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentHeader {
    /// Protocol of the fragmented part.
    pub next_header: u8,
    /// Offset of this fragment in bytes, a multiple of 8.
    pub offset: u16,
    /// Whether more fragments follow.
    pub more_fragments: bool,
    /// Identification.
    pub identification: u32,
}

impl FragmentHeader {
    /// Length of the header in bytes.
    pub const LEN: usize = FragmentView::LEN;

    /// Reads a header, or `None` where `data` is too short.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Self> {
        let view = FragmentView::parse(data)?;
        Some(Self {
            next_header: view.next_header(),
            offset: view.offset(),
            more_fragments: view.more_fragments(),
            identification: view.identification(),
        })
    }

    /// Writes the header and returns its length, or `None` where `buffer` is too short or the
    /// offset no multiple of 8.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let out = buffer.first_chunk_mut::<{ Self::LEN }>()?;
        if !self.offset.is_multiple_of(8) {
            return None;
        }
        out[0] = self.next_header;
        out[1] = 0;
        out[2..4].copy_from_slice(&(self.offset | u16::from(self.more_fragments)).to_be_bytes());
        out[4..].copy_from_slice(&self.identification.to_be_bytes());
        Some(Self::LEN)
    }
}

/// An authentication header (RFC 4302, 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthenticationHeader<'a> {
    /// Protocol of what follows.
    pub next_header: u8,
    /// Security parameters index.
    pub security_parameters_index: u32,
    /// Sequence number and integrity check value: a multiple of 4 bytes, at most 1020.
    pub data: &'a [u8],
}

impl<'a> AuthenticationHeader<'a> {
    /// Reads a header, or `None` where `data` is too short.
    #[must_use]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let view = AuthenticationView::parse(data)?;
        Some(Self {
            next_header: view.next_header(),
            security_parameters_index: view.security_parameters_index(),
            data: data.get(8..view.len())?,
        })
    }

    /// Writes the header and returns its length, or `None` where `buffer` is too short or the
    /// length of the content impossible.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        if !self.data.len().is_multiple_of(4) {
            return None;
        }
        let units = u8::try_from(self.data.len() / 4).ok()?;
        let len = 8 + self.data.len();
        let out = buffer.get_mut(..len)?;
        out[..4].copy_from_slice(&[self.next_header, units, 0, 0]);
        out[4..8].copy_from_slice(&self.security_parameters_index.to_be_bytes());
        out[8..].copy_from_slice(self.data);
        Some(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::random::{assert_round_trip, cases};

    #[test]
    fn general_headers_round_trip() {
        cases(|random| {
            let len = 6 + 8 * random.below(8);
            let data = random.bytes(len);
            let header = ExtensionHeader { next_header: random.byte(), data: &data };
            assert_round_trip!(header, ExtensionHeader::parse);
        });
    }

    #[test]
    fn fragment_headers_round_trip() {
        cases(|random| {
            let header = FragmentHeader {
                next_header: random.byte(),
                offset: random.word() & 0xfff8,
                more_fragments: random.flag(),
                identification: random.long(),
            };
            assert_round_trip!(header, FragmentHeader::parse);
        });
    }

    #[test]
    fn authentication_headers_round_trip() {
        cases(|random| {
            let len = 4 * random.below(16);
            let data = random.bytes(len);
            let header = AuthenticationHeader {
                next_header: random.byte(),
                security_parameters_index: random.long(),
                data: &data,
            };
            assert_round_trip!(header, AuthenticationHeader::parse);
        });
    }

    #[test]
    fn a_home_address_is_found_behind_padding() {
        let mut bytes = [0; 24];
        bytes[..2].copy_from_slice(&[59, 2]);
        bytes[2..6].copy_from_slice(&[0, 1, 1, 0xff]);
        bytes[6..8].copy_from_slice(&[0xc9, 16]);
        bytes[8..].fill(7);
        let found = |bytes: &[u8]| HomeAddress::find(ExtensionView::parse(bytes).unwrap());
        assert_eq!(found(&bytes), Some(HomeAddress([7; 16])));
        assert_eq!(found(&bytes[..23]), None);
        bytes[7] = 15;
        assert_eq!(found(&bytes), None);
    }
}
