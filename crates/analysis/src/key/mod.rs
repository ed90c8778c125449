//! Which packets belong to one flow, and in which direction each goes.
//!
//! | module | concern |
//! |---|---|
//! | [`uid`] | the name of a flow |
//! | [`community_id`] | a hash of a flow that is equal in other tools |

pub mod community_id;
pub mod uid;

use netsniff_packet::Address;
use netsniff_packet::decode::{Ip, Transport};

/// ICMP's protocol number.
pub const ICMP: u8 = 1;
/// TCP's protocol number.
pub const TCP: u8 = 6;
/// UDP's protocol number.
pub const UDP: u8 = 17;
/// ICMPv6's protocol number.
pub const ICMPV6: u8 = 58;

/// One end of a flow: an address with its port. For ICMP the "port" is the type, or the type of
/// the answer, or the code, as Zeek has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// IP address of the host.
    pub address: Address,
    /// Port; of ICMP the type and code, as in Zeek.
    pub port: u16,
}

/// Which end of its key a packet comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From [`FlowKey::low`] to [`FlowKey::high`].
    Low,
    /// From [`FlowKey::high`] to [`FlowKey::low`].
    High,
}

/// The identity of a flow, the same for both directions.
///
/// As in Zeek, neither VLAN nor tunnel is part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey {
    low_address: Address,
    high_address: Address,
    low_port: u16,
    high_port: u16,
    /// Protocol number of the IP header.
    pub protocol: u8,
    one_way: bool,
}

impl FlowKey {
    /// The key of a packet and the side that sent it, or `None` where the packet has no transport
    /// header to tell.
    #[must_use]
    #[inline]
    pub fn of(ip: &Ip, transport: &Transport) -> Option<(Self, Side)> {
        let (source, destination, one_way) = match transport {
            Transport::Tcp(tcp) => (tcp.source_port, tcp.destination_port, false),
            Transport::Udp(udp) => (udp.source_port, udp.destination_port, false),
            Transport::Icmp(icmp) => icmp_ports(icmp.kind, icmp.code, ip.protocol),
            // Zeek knows no SCTP: such flows are told apart by their addresses alone.
            Transport::Sctp(_) | Transport::Other => (0, 0, false),
            Transport::None => return None,
        };
        Some(Self::new(
            Endpoint { address: ip.source, port: source },
            Endpoint { address: ip.destination, port: destination },
            ip.protocol,
            one_way,
        ))
    }

    /// The key of messages of ICMP, or of ICMPv6, of this type and code, and the side that sends them.
    #[must_use]
    pub fn icmp(
        source: Address,
        destination: Address,
        protocol: u8,
        kind: u8,
        code: u8,
    ) -> (Self, Side) {
        let (from, to, one_way) = icmp_ports(kind, code, protocol);
        let end = |address, port| Endpoint { address, port };
        Self::new(end(source, from), end(destination, to), protocol, one_way)
    }

    /// The key of a flow from `source` to `destination`, and the side that `source` is. Flows that
    /// go `one_way` (ICMP errors) are kept apart from their opposite.
    #[must_use]
    #[inline]
    pub fn new(
        source: Endpoint,
        destination: Endpoint,
        protocol: u8,
        one_way: bool,
    ) -> (Self, Side) {
        let [from_high, from_low] = source.address.words();
        let [to_high, to_low] = destination.address.words();
        let from = (from_high, from_low, source.port);
        let (low, high, side) = if one_way || from <= (to_high, to_low, destination.port) {
            (source, destination, Side::Low)
        } else {
            (destination, source, Side::High)
        };
        let key = Self {
            low_address: low.address,
            high_address: high.address,
            low_port: low.port,
            high_port: high.port,
            protocol,
            one_way,
        };
        (key, side)
    }

    /// The same flow between other addresses.
    #[must_use]
    pub fn mapped(&self, mut map: impl FnMut(Address) -> Address) -> Self {
        let mut end = |end: Endpoint| Endpoint { address: map(end.address), ..end };
        Self::new(end(self.low()), end(self.high()), self.protocol, self.one_way).0
    }

    /// The ends of a flow whose first packet came from `side`, the sender first.
    #[must_use]
    pub const fn ends_from(&self, side: Side) -> (Endpoint, Endpoint) {
        match side {
            Side::Low => (self.low(), self.high()),
            Side::High => (self.high(), self.low()),
        }
    }

    /// The smaller end, or the sender of a one-way flow.
    #[must_use]
    pub const fn low(&self) -> Endpoint {
        Endpoint { address: self.low_address, port: self.low_port }
    }

    /// The greater end, or the receiver of a one-way flow.
    #[must_use]
    pub const fn high(&self) -> Endpoint {
        Endpoint { address: self.high_address, port: self.high_port }
    }

    /// All of it: both addresses, and the rest in one word.
    #[inline]
    const fn words(&self) -> [u64; 5] {
        let [a, b] = self.low_address.words();
        let [c, d] = self.high_address.words();
        let ports = (self.low_port as u64) << 32
            | (self.high_port as u64) << 16
            | (self.protocol as u64) << 8
            | self.one_way as u64;
        [a, b, c, d, ports]
    }

    /// A hash for tables; an attacker who does not know `seed` cannot aim at one bucket.
    #[must_use]
    #[inline]
    pub const fn hash(&self, seed: u64) -> u32 {
        let [a, b, c, d, ports] = self.words();
        let first = fold(a ^ seed, b ^ 0x9e37_79b9_7f4a_7c15);
        let second = fold(c ^ seed.rotate_left(32), d ^ 0xbf58_476d_1ce4_e5b9);
        let mixed = fold(first ^ ports, second ^ 0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 32)) as u32
    }

    /// A hash of two addresses, the same in both directions. Not seeded, but without influence on any record.
    #[must_use]
    #[inline]
    pub const fn pair(source: Address, destination: Address) -> u64 {
        let [a, b] = source.words();
        let [c, d] = destination.words();
        // Sums do not care which address is the source.
        fold(
            fold(a, 0x9e37_79b9_7f4a_7c15).wrapping_add(fold(c, 0x9e37_79b9_7f4a_7c15)),
            fold(b, 0xbf58_476d_1ce4_e5b9).wrapping_add(fold(d, 0xbf58_476d_1ce4_e5b9)),
        )
    }

    /// The hash of its own two addresses: [`Self::pair`].
    #[must_use]
    pub const fn own_pair(&self) -> u64 {
        Self::pair(self.low_address, self.high_address)
    }

    /// Which of `workers` analyses the packets between two addresses: both directions, all ports
    /// and all fragments go to the same one.
    #[must_use]
    #[inline]
    pub const fn worker(source: Address, destination: Address, workers: usize) -> usize {
        (((Self::pair(source, destination) >> 32) * workers as u64) >> 32) as usize
    }

    /// 128 bits that name this flow among all flows, for its uid; the same in every run. `context` tells its
    /// VLANs and tunnel, `time` and `tie` are those of its first packet.
    #[must_use]
    pub const fn name(&self, context: u64, time: i64, tie: u64) -> u128 {
        let [a, b, c, d, ports] = self.words();
        let words = [a, b, c, d, ports, context, time as u64, tie];
        let (mut left, mut right) = (0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344);
        let mut i = 0;
        while i < words.len() {
            left = fold(left ^ words[i], 0xa409_3822_299f_31d1 ^ right);
            right = fold(right ^ words[i], 0x082e_fa98_ec4e_6c89).rotate_left(23) ^ left;
            i += 1;
        }
        ((left as u128) << 64) | right as u128
    }
}

/// Multiplies to 128 bits and folds the halves, so that every input bit reaches every output bit.
#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let product = (a as u128).wrapping_mul(b as u128);
    // The operand keeps a zero factor from wiping out the other.
    (product as u64) ^ ((product >> 64) as u64) ^ a.rotate_left(29) ^ b
}

/// Type and counterpart of an ICMP message as the ports of its flow, and whether it has no
/// counterpart (then the second is its code). RFC 792, RFC 4443, RFC 4861, RFC 2710; Zeek's
/// `ICMP4_counterpart` and `ICMP6_counterpart`.
fn icmp_ports(kind: u8, code: u8, protocol: u8) -> (u16, u16, bool) {
    let counterpart = if protocol == ICMP {
        match kind {
            8 => Some(0),
            0 => Some(8),
            13 => Some(14),
            14 => Some(13),
            15 => Some(16),
            16 => Some(15),
            10 => Some(9),
            9 => Some(10),
            17 => Some(18),
            18 => Some(17),
            _ => None,
        }
    } else {
        match kind {
            128 => Some(129),
            129 => Some(128),
            133 => Some(134),
            134 => Some(133),
            135 => Some(136),
            136 => Some(135),
            130 => Some(131),
            131 => Some(130),
            139 => Some(140),
            140 => Some(139),
            144 => Some(145),
            145 => Some(144),
            _ => None,
        }
    };
    match counterpart {
        Some(other) => (kind.into(), other, false),
        None => (kind.into(), code.into(), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{IpAddr, Ipv4Addr};

    fn endpoint(last: u8, port: u16) -> Endpoint {
        Endpoint { address: Address::from(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))), port }
    }

    #[test]
    fn both_directions_share_a_key() {
        let (there, from) = FlowKey::new(endpoint(1, 5000), endpoint(2, 80), TCP, false);
        let (back, to) = FlowKey::new(endpoint(2, 80), endpoint(1, 5000), TCP, false);
        assert_eq!(there, back);
        assert_eq!((from, to), (Side::Low, Side::High));
        assert_eq!(there.hash(7), back.hash(7));
        assert_ne!(there.hash(7), there.hash(8));
    }

    #[test]
    fn one_way_flows_do_not() {
        let (there, _) = FlowKey::new(endpoint(1, 3), endpoint(2, 1), ICMP, true);
        let (back, _) = FlowKey::new(endpoint(2, 3), endpoint(1, 1), ICMP, true);
        assert_ne!(there, back);
    }

    #[test]
    fn steering_ignores_direction_and_spreads() {
        let mut load = [0_usize; 4];
        for last in 0..=255 {
            let (a, b) = (endpoint(last, 0).address, endpoint(255 - last / 2, 0).address);
            assert_eq!(FlowKey::worker(a, b, 4), FlowKey::worker(b, a, 4));
            load[FlowKey::worker(a, b, 4)] += 1;
        }
        assert!(load.iter().all(|n| (32..128).contains(n)), "{load:?}");
    }

    #[test]
    fn names_differ_in_every_part() {
        let (key, _) = FlowKey::new(endpoint(1, 5000), endpoint(2, 80), TCP, false);
        let name = key.name(0, 1, 1);
        assert_ne!(name, key.name(1, 1, 1));
        assert_ne!(name, key.name(0, 2, 1));
        assert_ne!(name, key.name(0, 1, 2));
    }
}
