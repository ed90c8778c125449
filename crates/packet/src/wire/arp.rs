//! ARP, RFC 826.

/// A view of the 8 fixed bytes and of the addresses behind them.
#[derive(Clone, Copy, Debug)]
pub struct ArpView<'a> {
    fixed: &'a [u8; 8],
    rest: &'a [u8],
}

impl<'a> ArpView<'a> {
    /// Length of the part without addresses in bytes.
    pub const MIN_LEN: usize = 8;

    /// Views the start of `data`, or `None` where it holds no 8 bytes.
    #[must_use]
    #[inline]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let (fixed, rest) = data.split_first_chunk()?;
        Some(Self { fixed, rest })
    }

    /// Hardware type, 1 for Ethernet.
    #[must_use]
    pub const fn hardware(self) -> u16 {
        u16::from_be_bytes([self.fixed[0], self.fixed[1]])
    }

    /// Protocol as an EtherType.
    #[must_use]
    pub const fn protocol(self) -> u16 {
        u16::from_be_bytes([self.fixed[2], self.fixed[3]])
    }

    /// Length of the whole packet in bytes, as the lengths of the addresses say.
    #[must_use]
    pub const fn packet_len(self) -> usize {
        Self::MIN_LEN + 2 * (self.fixed[4] as usize + self.fixed[5] as usize)
    }

    /// Operation: 1 request, 2 reply.
    #[must_use]
    pub const fn operation(self) -> u16 {
        u16::from_be_bytes([self.fixed[6], self.fixed[7]])
    }

    /// Sender's hardware and protocol address, then the target's, or `None` where they are cut.
    #[must_use]
    pub fn addresses(self) -> Option<[&'a [u8]; 4]> {
        let (hardware, protocol) = (usize::from(self.fixed[4]), usize::from(self.fixed[5]));
        let (sender_hardware, rest) = self.rest.split_at_checked(hardware)?;
        let (sender_protocol, rest) = rest.split_at_checked(protocol)?;
        let (target_hardware, rest) = rest.split_at_checked(hardware)?;
        Some([sender_hardware, sender_protocol, target_hardware, rest.get(..protocol)?])
    }
}

/// An ARP packet (RFC 826).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpPacket<'a> {
    /// Hardware type, 1 for Ethernet.
    pub hardware: u16,
    /// Protocol as an EtherType.
    pub protocol: u16,
    /// Operation: 1 request, 2 reply.
    pub operation: u16,
    /// The sender's hardware address; at most 255 bytes.
    pub sender_hardware: &'a [u8],
    /// The sender's protocol address; at most 255 bytes.
    pub sender_protocol: &'a [u8],
    /// The target's hardware address, as long as the sender's.
    pub target_hardware: &'a [u8],
    /// The target's protocol address, as long as the sender's.
    pub target_protocol: &'a [u8],
}

impl<'a> ArpPacket<'a> {
    /// Reads a packet, or `None` where `data` is too short.
    #[must_use]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let view = ArpView::parse(data)?;
        let [sender_hardware, sender_protocol, target_hardware, target_protocol] =
            view.addresses()?;
        Some(Self {
            hardware: view.hardware(),
            protocol: view.protocol(),
            operation: view.operation(),
            sender_hardware,
            sender_protocol,
            target_hardware,
            target_protocol,
        })
    }

    /// Writes the packet and returns its length, or `None` where `buffer` is too short or the
    /// addresses of sender and target differ in length.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let (hardware, protocol) = (self.sender_hardware.len(), self.sender_protocol.len());
        if self.target_hardware.len() != hardware || self.target_protocol.len() != protocol {
            return None;
        }
        let (out, mut rest) = buffer.split_first_chunk_mut::<{ ArpView::MIN_LEN }>()?;
        out[..2].copy_from_slice(&self.hardware.to_be_bytes());
        out[2..4].copy_from_slice(&self.protocol.to_be_bytes());
        out[4] = u8::try_from(hardware).ok()?;
        out[5] = u8::try_from(protocol).ok()?;
        out[6..].copy_from_slice(&self.operation.to_be_bytes());
        let addresses = [
            self.sender_hardware,
            self.sender_protocol,
            self.target_hardware,
            self.target_protocol,
        ];
        for address in addresses {
            let (head, tail) = rest.split_at_mut_checked(address.len())?;
            head.copy_from_slice(address);
            rest = tail;
        }
        Some(ArpView::MIN_LEN + 2 * (hardware + protocol))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::random::{assert_round_trip, cases};

    #[test]
    fn round_trips() {
        cases(|random| {
            let (hardware, protocol) = (random.below(9), random.below(17));
            let lens = [hardware, protocol, hardware, protocol];
            let [a, b, c, d] = lens.map(|len| random.bytes(len));
            let header = ArpPacket {
                hardware: random.word(),
                protocol: random.word(),
                operation: random.word(),
                sender_hardware: &a,
                sender_protocol: &b,
                target_hardware: &c,
                target_protocol: &d,
            };
            assert_round_trip!(header, ArpPacket::parse);
        });
    }
}
