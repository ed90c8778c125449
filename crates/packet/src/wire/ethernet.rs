//! Ethernet II and IEEE 802.3 frame headers, IEEE 802.3 section 3.

/// Values of the EtherType field, as registered with the IEEE.
pub mod ethertype {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// Ethernet frames carried in GRE, Geneve and the like (transparent Ethernet bridging).
    pub const BRIDGING: u16 = 0x6558;
    /// RARP.
    pub const RARP: u16 = 0x8035;
    /// IEEE 802.1Q customer tag.
    pub const VLAN: u16 = 0x8100;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// PPP in GRE (PPTP, RFC 2637).
    pub const PPP: u16 = 0x880b;
    /// MPLS unicast.
    pub const MPLS: u16 = 0x8847;
    /// MPLS multicast.
    pub const MPLS_MULTICAST: u16 = 0x8848;
    /// PPPoE discovery stage.
    pub const PPPOE_DISCOVERY: u16 = 0x8863;
    /// PPPoE session stage.
    pub const PPPOE_SESSION: u16 = 0x8864;
    /// IEEE 802.1ad service tag.
    pub const SERVICE_VLAN: u16 = 0x88a8;
    /// ERSPAN type I and II, carried in GRE.
    pub const ERSPAN: u16 = 0x88be;
    /// ERSPAN type III, carried in GRE.
    pub const ERSPAN_III: u16 = 0x22eb;
    /// Provider backbone bridging (IEEE 802.1ah): the service instance tag.
    pub const SERVICE_INSTANCE: u16 = 0x88e7;
    /// MACsec, IEEE 802.1AE.
    pub const MACSEC: u16 = 0x88e5;
    /// Cisco FabricPath.
    pub const FABRIC_PATH: u16 = 0x8903;
    /// Cisco metadata, which has the tag of a security group.
    pub const CISCO_METADATA: u16 = 0x8909;
    /// VN-Tag of port extenders, before its standard.
    pub const VN_TAG: u16 = 0x8926;
    /// High-availability seamless redundancy, IEC 62439-3.
    pub const HSR: u16 = 0x892f;
    /// E-TAG of port extenders, IEEE 802.1BR.
    pub const E_TAG: u16 = 0x893f;
    /// Network service header, RFC 8300.
    pub const NSH: u16 = 0x894f;
    /// The tag that switches used for QinQ before 802.1ad.
    pub const QINQ: u16 = 0x9100;
    /// Values below this one are lengths of an IEEE 802.3 frame, not types.
    pub const LEAST: u16 = 0x0600;
}

/// A view of the 14 bytes before the payload of a frame.
#[derive(Clone, Copy, Debug)]
pub struct EthernetView<'a>(&'a [u8; 14]);

impl<'a> EthernetView<'a> {
    /// Length of the header in bytes.
    pub const LEN: usize = 14;

    /// Views the start of `data`, or `None` where it is too short.
    #[must_use]
    #[inline]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        data.first_chunk().map(Self)
    }

    /// Destination address.
    #[must_use]
    #[inline]
    pub const fn destination(self) -> [u8; 6] {
        let b = self.0;
        [b[0], b[1], b[2], b[3], b[4], b[5]]
    }

    /// Source address.
    #[must_use]
    #[inline]
    pub const fn source(self) -> [u8; 6] {
        let b = self.0;
        [b[6], b[7], b[8], b[9], b[10], b[11]]
    }

    /// EtherType, or the length of the payload where it is below [`ethertype::LEAST`].
    #[must_use]
    #[inline]
    pub const fn ethertype(self) -> u16 {
        u16::from_be_bytes([self.0[12], self.0[13]])
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetHeader {
    /// Destination address.
    pub destination: [u8; 6],
    /// Source address.
    pub source: [u8; 6],
    /// EtherType, or the length of the payload where it is below [`ethertype::LEAST`].
    pub ethertype: u16,
}

impl EthernetHeader {
    /// Length of the header in bytes.
    pub const LEN: usize = EthernetView::LEN;

    /// Reads a header, or `None` where `data` is too short.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Self> {
        let view = EthernetView::parse(data)?;
        Some(Self {
            destination: view.destination(),
            source: view.source(),
            ethertype: view.ethertype(),
        })
    }

    /// Writes the header and returns its length, or `None` where `buffer` is too short.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let out = buffer.first_chunk_mut::<{ Self::LEN }>()?;
        out[..6].copy_from_slice(&self.destination);
        out[6..12].copy_from_slice(&self.source);
        out[12..].copy_from_slice(&self.ethertype.to_be_bytes());
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
            let header = EthernetHeader {
                destination: random.array(),
                source: random.array(),
                ethertype: random.word(),
            };
            assert_round_trip!(header, EthernetHeader::parse);
        });
    }
}
