//! TCP, RFC 9293: the header; its options are in [`super::tcp_option`].

/// A view of the 20 fixed bytes of the header and what follows them.
#[derive(Clone, Copy, Debug)]
pub struct TcpView<'a> {
    fixed: &'a [u8; 20],
    rest: &'a [u8],
}

impl<'a> TcpView<'a> {
    /// Length of the header without options in bytes.
    pub const LEN: usize = 20;

    /// Views the start of `data`, or `None` where it holds no 20 bytes.
    #[must_use]
    #[inline]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let (fixed, rest) = data.split_first_chunk()?;
        Some(Self { fixed, rest })
    }

    /// Source port.
    #[must_use]
    #[inline]
    pub const fn source_port(self) -> u16 {
        u16::from_be_bytes([self.fixed[0], self.fixed[1]])
    }

    /// Destination port.
    #[must_use]
    #[inline]
    pub const fn destination_port(self) -> u16 {
        u16::from_be_bytes([self.fixed[2], self.fixed[3]])
    }

    /// Sequence number.
    #[must_use]
    #[inline]
    pub const fn sequence(self) -> u32 {
        u32::from_be_bytes([self.fixed[4], self.fixed[5], self.fixed[6], self.fixed[7]])
    }

    /// Acknowledgement number.
    #[must_use]
    #[inline]
    pub const fn acknowledgement(self) -> u32 {
        u32::from_be_bytes([self.fixed[8], self.fixed[9], self.fixed[10], self.fixed[11]])
    }

    /// Length of the header with options in bytes as the header says; less than 20 is a fault.
    #[must_use]
    #[inline]
    pub const fn header_len(self) -> usize {
        (self.fixed[12] >> 4) as usize * 4
    }

    /// The three reserved bits and the nine flags.
    #[must_use]
    #[inline]
    pub const fn flags(self) -> u16 {
        u16::from_be_bytes([self.fixed[12] & 0x0f, self.fixed[13]])
    }

    /// Window, unscaled.
    #[must_use]
    #[inline]
    pub const fn window(self) -> u16 {
        u16::from_be_bytes([self.fixed[14], self.fixed[15]])
    }

    /// Checksum.
    #[must_use]
    #[inline]
    pub const fn checksum(self) -> u16 {
        u16::from_be_bytes([self.fixed[16], self.fixed[17]])
    }

    /// Urgent pointer.
    #[must_use]
    #[inline]
    pub const fn urgent_pointer(self) -> u16 {
        u16::from_be_bytes([self.fixed[18], self.fixed[19]])
    }

    /// The bytes of the options, or `None` where the header length is below 20 or beyond the data.
    #[must_use]
    #[inline]
    pub fn options(self) -> Option<&'a [u8]> {
        self.rest.get(..self.header_len().checked_sub(Self::LEN)?)
    }
}

/// A TCP header (RFC 9293, 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpHeader<'a> {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// The three reserved bits and the nine flags, see [`crate::decode::TcpFlags`].
    pub flags: u16,
    /// Window, unscaled.
    pub window: u16,
    /// Checksum.
    pub checksum: u16,
    /// Urgent pointer.
    pub urgent_pointer: u16,
    /// The options as they stand on the wire: at most 40 bytes, a multiple of 4.
    pub options: &'a [u8],
}

impl<'a> TcpHeader<'a> {
    /// Length of the header without options in bytes.
    pub const MIN_LEN: usize = TcpView::LEN;

    /// Reads a header, or `None` where `data` is too short or the header length is impossible.
    #[must_use]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let view = TcpView::parse(data)?;
        Some(Self {
            source_port: view.source_port(),
            destination_port: view.destination_port(),
            sequence: view.sequence(),
            acknowledgement: view.acknowledgement(),
            flags: view.flags(),
            window: view.window(),
            checksum: view.checksum(),
            urgent_pointer: view.urgent_pointer(),
            options: view.options()?,
        })
    }

    /// Length of the header with its options in bytes.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        Self::MIN_LEN + self.options.len()
    }

    /// Writes the header and returns its length, or `None` where `buffer` is too short, the options
    /// are no multiple of 4 up to 40 bytes, or the flags exceed 12 bits.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let (len, options) = (self.header_len(), self.options.len());
        if !options.is_multiple_of(4) || options > 40 || self.flags >> 12 != 0 {
            return None;
        }
        let out = buffer.get_mut(..len)?;
        out[..2].copy_from_slice(&self.source_port.to_be_bytes());
        out[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        out[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        out[8..12].copy_from_slice(&self.acknowledgement.to_be_bytes());
        let word = ((len / 4) as u16) << 12 | self.flags;
        out[12..14].copy_from_slice(&word.to_be_bytes());
        out[14..16].copy_from_slice(&self.window.to_be_bytes());
        out[16..18].copy_from_slice(&self.checksum.to_be_bytes());
        out[18..20].copy_from_slice(&self.urgent_pointer.to_be_bytes());
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
            let header = TcpHeader {
                source_port: random.word(),
                destination_port: random.word(),
                sequence: random.long(),
                acknowledgement: random.long(),
                flags: random.word() >> 4,
                window: random.word(),
                checksum: random.word(),
                urgent_pointer: random.word(),
                options: &options,
            };
            assert_round_trip!(header, TcpHeader::parse);
        });
    }
}
