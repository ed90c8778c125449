//! Packets with pseudonyms in place of addresses: in every header that is understood, in tunnels and in
//! what ICMP quotes. What is not understood is cut.
//!
//! Lengths stay, so that flows and their statistics are the same. Checksums are changed by the
//! difference, so that what was right is right and what was wrong is wrong.

mod icmp;
mod link;
mod mend;
mod network;
mod payload;
mod radiotap;
mod tunnels;

use std::sync::Arc;

pub use payload::PayloadMode;

use super::{AddressCache, Anonymizer};
use crate::decode::{self, Layer, TunnelPorts};
use crate::{Address, LinkType};

/// Anonymises packets in place.
#[derive(Clone, Debug)]
pub struct PacketAnonymizer {
    addresses: AddressCache,
    payload: PayloadMode,
    tunnel_ports: Arc<TunnelPorts>,
}

/// What is left of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remainder {
    /// How many of its bytes, from the first.
    pub len: usize,
    /// Why the others were cut.
    pub cut: Option<Cut>,
}

/// Why bytes of a packet were cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cut {
    /// The bytes are payload.
    Payload,
    /// A header is cut or malformed, or a protocol is not understood; the layer before it.
    Unknown(Layer),
    /// The link type is not supported.
    LinkType,
}

/// How far the bytes of a part may be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// The packet was read to its end.
    Whole,
    /// To an offset in the packet.
    Until(usize, Cut),
}

/// Tunnels in tunnels that are followed; what is in more of them is cut.
const MAX_DEPTH: u8 = 8;

impl PacketAnonymizer {
    /// Changes addresses by `anonymizer`, and payloads as told.
    #[must_use]
    pub fn new(anonymizer: Arc<Anonymizer>, payload: PayloadMode) -> Self {
        Self { addresses: AddressCache::new(anonymizer), payload, tunnel_ports: Arc::default() }
    }

    /// Looks for tunnels on these UDP ports, instead of those that are known.
    #[must_use]
    pub fn with_tunnel_ports(self, tunnel_ports: Arc<TunnelPorts>) -> Self {
        Self { tunnel_ports, ..self }
    }

    /// Changes a packet in its place, and tells how much of it is left. `wire_len` is its length on the
    /// wire, which stays.
    pub fn packet(&mut self, link_type: LinkType, data: &mut [u8], wire_len: u32) -> Remainder {
        if !decode::supported(link_type) {
            return Remainder { len: 0, cut: (!data.is_empty()).then_some(Cut::LinkType) };
        }
        match self.link(link_type, data, wire_len) {
            Reach::Whole => Remainder { len: data.len(), cut: None },
            Reach::Until(end, cut) if end < data.len() => Remainder { len: end, cut: Some(cut) },
            Reach::Until(..) => Remainder { len: data.len(), cut: None },
        }
    }

    /// Replaces the IPv4 address at an offset; one that the capture cut is blanked.
    fn v4(&mut self, data: &mut [u8], at: usize) {
        if let Some(field) = whole_field::<4>(data, at) {
            *field = self.mapped_v4(*field);
        }
    }

    fn mapped_v4(&mut self, bytes: [u8; 4]) -> [u8; 4] {
        let [_, low] = self.addresses.address(Address::from_v4(bytes)).words();
        (low as u32).to_be_bytes()
    }

    /// Replaces the IPv6 address at an offset; one that the capture cut is blanked.
    fn v6(&mut self, data: &mut [u8], at: usize) {
        let Some(field) = whole_field::<16>(data, at) else { return };
        let address = Address::from_v6(*field);
        let [high, low] = self.addresses.address(address).words();
        // An address of IPv4 in the shape of IPv6 stays in that shape.
        *field = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
    }

    /// Replaces the MAC address at an offset; one that the capture cut is blanked.
    fn mac(&self, data: &mut [u8], at: usize) {
        if let Some(field) = whole_field::<6>(data, at) {
            *field = self.addresses.anonymizer().mac(*field);
        }
    }

    /// Likewise where the address is that of whoever sends, which is no group.
    fn sender_mac(&self, data: &mut [u8], at: usize) {
        if let Some(field) = whole_field::<6>(data, at) {
            *field = self.addresses.anonymizer().sender_mac(*field);
        }
    }
}

/// The address at an offset. Where only a part of it was captured, that is blanked.
fn whole_field<const N: usize>(data: &mut [u8], at: usize) -> Option<&mut [u8; N]> {
    let rest = data.get_mut(at..)?;
    if rest.len() < N {
        rest.fill(0);
    }
    rest.first_chunk_mut()
}

/// Sets a range to zero, as far as it is there.
fn blank(data: &mut [u8], start: usize, end: usize) {
    let end = end.min(data.len());
    if let Some(part) = data.get_mut(start..end) {
        part.fill(0);
    }
}

/// The 16 bits at an offset.
fn be16(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}
