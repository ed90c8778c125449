//! The network and transport layers: addresses, protocol numbers, ports.

use core::ops::RangeInclusive;

use super::link::{ether_type, lsap};
use super::{Binder, Id, Refusal};
use crate::filter::program::{Comparison, Field};
use crate::filter::tree::{Direction, Network, Protocol, Transport};

/// The IPv6 fragment header, RFC 8200, 4.5.
const FRAGMENT_HEADER: u32 = 44;
/// Length of an IPv6 header.
const IPV6_HEADER: u32 = 40;

impl Binder {
    /// An address in an IP header or in an ARP or RARP packet.
    pub(super) fn host(
        &mut self,
        protocol: Option<Protocol>,
        direction: Direction,
        network: Network,
    ) -> Result<Id, Refusal> {
        let (address, mask) = match network {
            Network::V4 { address, mask } => (address, mask),
            Network::V6 { address, mask } => {
                return self.either_end(direction, &mut |binder, source| {
                    binder.ipv6_address(address, mask, if source { 8 } else { 24 })
                });
            }
        };
        let carried = |binder: &mut Self, carrier, source_at, destination_at| {
            binder.either_end(direction, &mut |binder, source| {
                let at = if source { source_at } else { destination_at };
                binder.ipv4_address(carrier, address, mask, at)
            })
        };
        match protocol {
            Some(Protocol::Arp) => carried(self, ether_type::ARP, 14, 24),
            Some(Protocol::Rarp) => carried(self, ether_type::RARP, 14, 24),
            None if !self.layout.is_labelled() => {
                let ip = carried(self, ether_type::IPV4, 12, 16)?;
                let arp = carried(self, ether_type::ARP, 14, 24)?;
                let rarp = carried(self, ether_type::RARP, 14, 24)?;
                let either = self.or(ip, arp);
                Ok(self.or(either, rarp))
            }
            _ => carried(self, ether_type::IPV4, 12, 16),
        }
    }

    /// What `end` says of the source, the destination, either or both; its flag is `true` for the
    /// source.
    fn either_end(
        &mut self,
        direction: Direction,
        end: &mut dyn FnMut(&mut Self, bool) -> Result<Id, Refusal>,
    ) -> Result<Id, Refusal> {
        match direction {
            Direction::Source => end(self, true),
            Direction::Destination => end(self, false),
            Direction::Both => {
                let (source, destination) = (end(self, true)?, end(self, false)?);
                Ok(self.and(source, destination))
            }
            Direction::Any | Direction::Either => {
                let (source, destination) = (end(self, true)?, end(self, false)?);
                Ok(self.or(source, destination))
            }
        }
    }

    fn ipv4_address(
        &mut self,
        carrier: u32,
        address: u32,
        mask: u32,
        offset: u32,
    ) -> Result<Id, Refusal> {
        let carried = self.link_type(carrier)?;
        let same = self.masked(self.layout.network()?.wrapping_add(offset), 4, address, mask);
        Ok(self.and(carried, same))
    }

    fn ipv6_address(&mut self, address: u128, mask: u128, offset: u32) -> Result<Id, Refusal> {
        let mut all = self.link_type(ether_type::IPV6)?;
        let start = self.layout.network()?.wrapping_add(offset);
        for word in 0..4 {
            let shift = 96 - 32 * word;
            let (address, mask) = ((address >> shift) as u32, (mask >> shift) as u32);
            let same = self.masked(start.wrapping_add(4 * word), 4, address, mask);
            all = self.and(all, same);
        }
        Ok(all)
    }

    /// A protocol number in the header of `layer`; without one, in an IPv4 or IPv6 header.
    pub(super) fn protocol_number(
        &mut self,
        layer: Option<Protocol>,
        number: u32,
    ) -> Result<Id, Refusal> {
        match layer {
            None => {
                let ip = self.protocol_number(Some(Protocol::Ip), number)?;
                let ip6 = self.protocol_number(Some(Protocol::Ip6), number)?;
                Ok(self.or(ip, ip6))
            }
            Some(Protocol::Link) => self.link_type(number),
            Some(Protocol::Ip6) => self.next_header(number),
            Some(Protocol::Iso) => {
                let iso = self.link_type(lsap::ISO)?;
                let same = self.equal(self.layout.network_after_llc()?, 1, number);
                Ok(self.and(iso, same))
            }
            Some(Protocol::Isis) => {
                let isis = self.protocol_number(Some(Protocol::Iso), 0x83)?;
                let at = self.layout.network_after_llc()?.wrapping_add(4);
                let same = self.equal(at, 1, number);
                Ok(self.and(isis, same))
            }
            Some(_) => {
                let ip = self.link_type(ether_type::IPV4)?;
                let same = self.equal(self.layout.network()?.wrapping_add(9), 1, number);
                Ok(self.and(ip, same))
            }
        }
    }

    /// A next header of the IPv6 header, or of a fragment header right after it. Other extension
    /// headers are not looked through, as in libpcap.
    fn next_header(&mut self, number: u32) -> Result<Id, Refusal> {
        let ip6 = self.link_type(ether_type::IPV6)?;
        let network = self.layout.network()?;
        let same = self.equal(network.wrapping_add(6), 1, number);
        let fragment = self.equal(network.wrapping_add(6), 1, FRAGMENT_HEADER);
        let in_fragment = self.equal(network.wrapping_add(IPV6_HEADER), 1, number);
        let fragment = self.and(fragment, in_fragment);
        let either = self.or(same, fragment);
        Ok(self.and(ip6, either))
    }

    /// An IPv4 packet that is whole or a first fragment: only there is a transport header.
    pub(super) fn not_later_fragment(&mut self) -> Result<Id, Refusal> {
        let at = self.layout.network()?.wrapping_add(6);
        let later = self.compare(at, 2, Comparison::AnyBit, 0x1fff);
        Ok(self.not(later))
    }

    /// Ports of TCP, UDP and SCTP, or of one of them, over IPv6 and IPv4.
    pub(super) fn ports(
        &mut self,
        transport: Option<Transport>,
        direction: Direction,
        ports: RangeInclusive<u16>,
    ) -> Result<Id, Refusal> {
        let ip6 = self.ports_of(transport, direction, &ports, false)?;
        let ip = self.ports_of(transport, direction, &ports, true)?;
        Ok(self.or(ip6, ip))
    }

    fn ports_of(
        &mut self,
        transport: Option<Transport>,
        direction: Direction,
        ports: &RangeInclusive<u16>,
        ipv4: bool,
    ) -> Result<Id, Refusal> {
        let network = self.layout.network()?;
        let version = self.link_type(if ipv4 { ether_type::IPV4 } else { ether_type::IPV6 })?;
        let mut any = None;
        for (one, number) in [(Transport::Sctp, 132), (Transport::Tcp, 6), (Transport::Udp, 17)] {
            if transport.is_some_and(|transport| transport != one) {
                continue;
            }
            let mut carried = self.equal(network.wrapping_add(if ipv4 { 9 } else { 6 }), 1, number);
            if ipv4 {
                let first = self.not_later_fragment()?;
                carried = self.and(carried, first);
            }
            let header = if ipv4 { network } else { network.wrapping_add(IPV6_HEADER) };
            let same = self.either_end(direction, &mut |binder, source| {
                let field = Field {
                    offset: header.wrapping_add(if source { 0 } else { 2 }),
                    size: 2,
                    after_ipv4: ipv4.then_some(network),
                };
                Ok(binder.port(field, ports))
            })?;
            let both = self.and(carried, same);
            any = Some(any.map_or(both, |before| self.or(before, both)));
        }
        let any = any.unwrap_or_else(|| self.constant(false));
        Ok(self.and(version, any))
    }

    fn port(&mut self, field: Field, ports: &RangeInclusive<u16>) -> Id {
        let (first, last) = (u32::from(*ports.start()), u32::from(*ports.end()));
        if first == last {
            return self.field(field, u32::MAX, Comparison::Equal, first);
        }
        let from = self.field(field, u32::MAX, Comparison::AtLeast, first);
        let above = self.field(field, u32::MAX, Comparison::Greater, last);
        let to = self.not(above);
        self.and(from, to)
    }
}
