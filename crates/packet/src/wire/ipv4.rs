//! IPv4, RFC 791, with its options.

/// Protocol numbers as registered with IANA, shared with IPv6.
pub mod protocol {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: u8 = 0;
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// IPv4 in IP.
    pub const IPV4: u8 = 4;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// IPv6 in IP.
    pub const IPV6: u8 = 41;
    /// IPv6 routing header.
    pub const ROUTING: u8 = 43;
    /// IPv6 fragment header.
    pub const FRAGMENT: u8 = 44;
    /// GRE.
    pub const GRE: u8 = 47;
    /// Encapsulating security payload.
    pub const ESP: u8 = 50;
    /// Authentication header.
    pub const AUTHENTICATION: u8 = 51;
    /// ICMPv6.
    pub const ICMPV6: u8 = 58;
    /// No next header.
    pub const NO_NEXT_HEADER: u8 = 59;
    /// IPv6 destination options.
    pub const DESTINATION_OPTIONS: u8 = 60;
    /// SCTP.
    pub const SCTP: u8 = 132;
    /// Mobility header.
    pub const MOBILITY: u8 = 135;
    /// Host identity protocol.
    pub const HIP: u8 = 139;
    /// Shim6.
    pub const SHIM6: u8 = 140;
}

/// A view of the 20 fixed bytes of the header and what follows them.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4View<'a> {
    fixed: &'a [u8; 20],
    rest: &'a [u8],
}

impl<'a> Ipv4View<'a> {
    /// Length of the header without options in bytes.
    pub const LEN: usize = 20;

    /// Views the start of `data`, or `None` where it holds no 20 bytes.
    #[must_use]
    #[inline]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let (fixed, rest) = data.split_first_chunk()?;
        Some(Self { fixed, rest })
    }

    /// Version, 4 where this is IPv4.
    #[must_use]
    #[inline]
    pub const fn version(self) -> u8 {
        self.fixed[0] >> 4
    }

    /// Length of the header with options in bytes as the header says; less than 20 is a fault.
    #[must_use]
    #[inline]
    pub const fn header_len(self) -> usize {
        (self.fixed[0] & 0x0f) as usize * 4
    }

    /// DSCP and ECN.
    #[must_use]
    #[inline]
    pub const fn traffic_class(self) -> u8 {
        self.fixed[1]
    }

    /// Length of header and payload in bytes.
    #[must_use]
    #[inline]
    pub const fn total_len(self) -> u16 {
        u16::from_be_bytes([self.fixed[2], self.fixed[3]])
    }

    /// Identification.
    #[must_use]
    #[inline]
    pub const fn identification(self) -> u16 {
        u16::from_be_bytes([self.fixed[4], self.fixed[5]])
    }

    /// The 16 bits that hold three flags and the fragment offset.
    #[must_use]
    #[inline]
    pub const fn fragment_word(self) -> u16 {
        u16::from_be_bytes([self.fixed[6], self.fixed[7]])
    }

    /// Don't fragment.
    #[must_use]
    #[inline]
    pub const fn dont_fragment(self) -> bool {
        self.fixed[6] & 0x40 != 0
    }

    /// More fragments follow.
    #[must_use]
    #[inline]
    pub const fn more_fragments(self) -> bool {
        self.fixed[6] & 0x20 != 0
    }

    /// Fragment offset in bytes.
    #[must_use]
    #[inline]
    pub const fn fragment_offset(self) -> u16 {
        (self.fragment_word() & 0x1fff) << 3
    }

    /// Time to live.
    #[must_use]
    #[inline]
    pub const fn ttl(self) -> u8 {
        self.fixed[8]
    }

    /// Protocol of the payload.
    #[must_use]
    #[inline]
    pub const fn protocol(self) -> u8 {
        self.fixed[9]
    }

    /// Checksum of the header.
    #[must_use]
    #[inline]
    pub const fn checksum(self) -> u16 {
        u16::from_be_bytes([self.fixed[10], self.fixed[11]])
    }

    /// Source address.
    #[must_use]
    #[inline]
    pub const fn source(self) -> [u8; 4] {
        let b = self.fixed;
        [b[12], b[13], b[14], b[15]]
    }

    /// Destination address.
    #[must_use]
    #[inline]
    pub const fn destination(self) -> [u8; 4] {
        let b = self.fixed;
        [b[16], b[17], b[18], b[19]]
    }

    /// The bytes of the options, or `None` where the header length is below 20 or beyond the data.
    #[must_use]
    #[inline]
    pub fn options(self) -> Option<&'a [u8]> {
        self.rest.get(..self.header_len().checked_sub(Self::LEN)?)
    }
}

/// An IPv4 header (RFC 791, 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Header<'a> {
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Length of header and payload in bytes.
    pub total_len: u16,
    /// Identification.
    pub identification: u16,
    /// The reserved flag, called evil in RFC 3514.
    pub reserved_flag: bool,
    /// Don't fragment.
    pub dont_fragment: bool,
    /// More fragments follow.
    pub more_fragments: bool,
    /// Fragment offset in bytes, a multiple of 8.
    pub fragment_offset: u16,
    /// Time to live.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Checksum of the header.
    pub checksum: u16,
    /// Source address.
    pub source: [u8; 4],
    /// Destination address.
    pub destination: [u8; 4],
    /// The options as they stand on the wire: at most 40 bytes, a multiple of 4.
    pub options: &'a [u8],
}

impl<'a> Ipv4Header<'a> {
    /// Length of the header without options in bytes.
    pub const MIN_LEN: usize = Ipv4View::LEN;

    /// Reads a header, or `None` where `data` is too short, the version is not 4 or the header
    /// length is impossible.
    #[must_use]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let view = Ipv4View::parse(data)?;
        if view.version() != 4 {
            return None;
        }
        Some(Self {
            traffic_class: view.traffic_class(),
            total_len: view.total_len(),
            identification: view.identification(),
            reserved_flag: view.fragment_word() & 0x8000 != 0,
            dont_fragment: view.dont_fragment(),
            more_fragments: view.more_fragments(),
            fragment_offset: view.fragment_offset(),
            ttl: view.ttl(),
            protocol: view.protocol(),
            checksum: view.checksum(),
            source: view.source(),
            destination: view.destination(),
            options: view.options()?,
        })
    }

    /// Length of the header with its options in bytes.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        Self::MIN_LEN + self.options.len()
    }

    /// Writes the header and returns its length, or `None` where `buffer` is too short, the options
    /// are no multiple of 4 up to 40 bytes, or the fragment offset is no multiple of 8.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let (len, options) = (self.header_len(), self.options.len());
        if !options.is_multiple_of(4) || options > 40 || !self.fragment_offset.is_multiple_of(8) {
            return None;
        }
        let out = buffer.get_mut(..len)?;
        let flags = u16::from(self.reserved_flag) << 15
            | u16::from(self.dont_fragment) << 14
            | u16::from(self.more_fragments) << 13;
        out[0] = 0x40 | (len / 4) as u8;
        out[1] = self.traffic_class;
        out[2..4].copy_from_slice(&self.total_len.to_be_bytes());
        out[4..6].copy_from_slice(&self.identification.to_be_bytes());
        out[6..8].copy_from_slice(&(flags | self.fragment_offset >> 3).to_be_bytes());
        out[8] = self.ttl;
        out[9] = self.protocol;
        out[10..12].copy_from_slice(&self.checksum.to_be_bytes());
        out[12..16].copy_from_slice(&self.source);
        out[16..20].copy_from_slice(&self.destination);
        out[20..].copy_from_slice(self.options);
        Some(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::random::{assert_round_trip, cases};

    #[test]
    fn round_trips() {
        cases(|random| {
            let len = 4 * random.below(11);
            let options = random.bytes(len);
            let header = Ipv4Header {
                traffic_class: random.byte(),
                total_len: random.word(),
                identification: random.word(),
                reserved_flag: random.flag(),
                dont_fragment: random.flag(),
                more_fragments: random.flag(),
                fragment_offset: random.word() & 0xfff8,
                ttl: random.byte(),
                protocol: random.byte(),
                checksum: random.word(),
                source: random.array(),
                destination: random.array(),
                options: &options,
            };
            assert_round_trip!(header, Ipv4Header::parse);
        });
    }
}
