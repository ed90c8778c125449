//! Link layers: which protocol a frame carries, MAC addresses, and the headers between link and
//! network layer.

use super::{Binder, Id, Refusal};
use crate::LinkType;
use crate::filter::program::Comparison;
use crate::filter::tree::{Direction, Protocol};

/// EtherType values, <https://www.iana.org/assignments/ieee-802-numbers>.
pub(super) mod ether_type {
    pub(in crate::filter) const IPV4: u32 = 0x0800;
    pub(in crate::filter) const ARP: u32 = 0x0806;
    pub(in crate::filter) const MOP_DL: u32 = 0x6001;
    pub(in crate::filter) const MOP_RC: u32 = 0x6002;
    pub(in crate::filter) const DECNET: u32 = 0x6003;
    pub(in crate::filter) const LAT: u32 = 0x6004;
    pub(in crate::filter) const SCA: u32 = 0x6007;
    pub(in crate::filter) const RARP: u32 = 0x8035;
    pub(in crate::filter) const ATALK: u32 = 0x809b;
    pub(in crate::filter) const AARP: u32 = 0x80f3;
    pub(in crate::filter) const VLAN: u32 = 0x8100;
    pub(in crate::filter) const IPX: u32 = 0x8137;
    pub(in crate::filter) const IPV6: u32 = 0x86dd;
    pub(in crate::filter) const MPLS: u32 = 0x8847;
    pub(in crate::filter) const PPPOE_DISCOVERY: u32 = 0x8863;
    pub(in crate::filter) const PPPOE_SESSION: u32 = 0x8864;
    pub(in crate::filter) const SERVICE_VLAN: u32 = 0x88a8;
    pub(in crate::filter) const OLD_QINQ: u32 = 0x9100;
    /// XNS as PPP maps it; 3Com and Novell used the same value.
    pub(in crate::filter) const NS: u32 = 0x0600;
    /// A value up to this one is the length of an IEEE 802.3 frame.
    pub(in crate::filter) const LONGEST: u32 = 1500;
}

/// IEEE 802.2 service access points.
pub(super) mod lsap {
    pub(in crate::filter) const IP: u32 = 0x06;
    pub(in crate::filter) const STP: u32 = 0x42;
    pub(in crate::filter) const IPX: u32 = 0xe0;
    pub(in crate::filter) const NETBEUI: u32 = 0xf0;
    pub(in crate::filter) const ISO: u32 = 0xfe;
}

/// Types of frame in a Linux cooked header that are not EtherTypes.
mod cooked {
    pub(super) const IEEE_802_3: u32 = 1;
    pub(super) const IEEE_802_2: u32 = 4;
    /// The packet type of what this host sent.
    pub(super) const OUTGOING: u32 = 4;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ethernet,
    Ppp,
    /// PPP where MPLS is not looked for, as in libpcap.
    PppOther,
    Raw,
    Ipv4,
    Ipv6,
    Null,
    Loop,
    Cooked,
    Cooked2,
    /// Only lengths and bytes at fixed offsets.
    Opaque,
    /// Only lengths: the link-layer header has no fixed place.
    Radio,
}

/// Where the headers lie in what is being bound now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) name: LinkType,
    pub(super) kind: Kind,
    pub(super) link_header: u32,
    pub(super) type_field: u32,
    pub(super) payload: u32,
    /// From the payload to the network layer, without LLC and SNAP.
    pub(super) network: u32,
    /// The same after an LLC header.
    pub(super) network_after_llc: u32,
    pub(super) labels: u32,
}

impl Layout {
    pub(super) fn new(link_type: LinkType) -> Self {
        let (kind, type_field, payload) = match link_type {
            LinkType::ETHERNET => (Kind::Ethernet, 12, 14),
            LinkType::PPP => (Kind::Ppp, 2, 4),
            LinkType::PPP_HDLC => (Kind::PppOther, 2, 4),
            LinkType::PPP_ETHER => (Kind::PppOther, 6, 8),
            LinkType::RAW => (Kind::Raw, 0, 0),
            LinkType::IPV4 => (Kind::Ipv4, 0, 0),
            LinkType::IPV6 => (Kind::Ipv6, 0, 0),
            LinkType::NULL => (Kind::Null, 0, 4),
            LinkType::LOOP => (Kind::Loop, 0, 4),
            LinkType::LINUX_SLL => (Kind::Cooked, 14, 16),
            LinkType::LINUX_SLL2 => (Kind::Cooked2, 0, 20),
            LinkType::IEEE802_11 | LinkType::IEEE802_11_RADIOTAP => (Kind::Radio, 0, 0),
            _ => (Kind::Opaque, 0, 0),
        };
        let network_after_llc = if kind == Kind::Ethernet { 3 } else { 0 };
        Self {
            name: link_type,
            kind,
            link_header: 0,
            type_field,
            payload,
            network: 0,
            network_after_llc,
            labels: 0,
        }
    }

    pub(super) fn refuse(&self, what: &str) -> Refusal {
        format!("{what} has no meaning for packets of link type {}", self.name)
    }

    /// Offset of the link-layer header.
    pub(super) fn link_header(&self) -> Result<u32, Refusal> {
        match self.kind {
            Kind::Radio => Err(self.refuse("an offset from the link-layer header")),
            _ => Ok(self.link_header),
        }
    }

    /// Offset of what follows the link-layer header, LLC or network layer.
    pub(super) fn payload(&self) -> Result<u32, Refusal> {
        match self.kind {
            Kind::Radio | Kind::Opaque => Err(self.refuse("this condition")),
            _ => Ok(self.payload),
        }
    }

    /// Offset of the network layer.
    pub(super) fn network(&self) -> Result<u32, Refusal> {
        Ok(self.payload()?.wrapping_add(self.network))
    }

    /// Offset of the network layer of an IEEE 802.2 frame.
    pub(super) fn network_after_llc(&self) -> Result<u32, Refusal> {
        Ok(self.payload()?.wrapping_add(self.network_after_llc))
    }

    /// Whether MPLS labels precede what is being bound.
    pub(super) const fn is_labelled(&self) -> bool {
        self.labels > 0
    }
}

impl Binder {
    /// A frame that carries `protocol`: an EtherType above 1500, an LSAP below.
    pub(super) fn link_type(&mut self, protocol: u32) -> Result<Id, Refusal> {
        if self.layout.is_labelled() {
            return self.labelled_type(protocol);
        }
        let Layout { kind, type_field, link_header, .. } = self.layout;
        Ok(match (kind, protocol) {
            (Kind::Ethernet, _) => self.ethernet_type(protocol),
            (Kind::Cooked, _) => self.cooked_type(protocol),
            (Kind::Cooked2, _) => self.equal(type_field, 2, protocol),
            (Kind::Ppp | Kind::PppOther, _) => self.equal(type_field, 2, ppp_protocol(protocol)),
            (Kind::Raw, ether_type::IPV4) => self.masked(link_header, 1, 0x40, 0xf0),
            (Kind::Raw, ether_type::IPV6) => self.masked(link_header, 1, 0x60, 0xf0),
            (Kind::Ipv4, ether_type::IPV4) | (Kind::Ipv6, ether_type::IPV6) => self.constant(true),
            (Kind::Null | Kind::Loop, ether_type::IPV4) => self.address_family(2),
            (Kind::Null | Kind::Loop, ether_type::IPV6) => {
                // NetBSD and OpenBSD, FreeBSD, macOS.
                let families = [24, 28, 30].map(|family| self.address_family(family));
                let two = self.or(families[0], families[1]);
                self.or(two, families[2])
            }
            (Kind::Raw | Kind::Ipv4 | Kind::Ipv6 | Kind::Null | Kind::Loop, _) => {
                self.constant(false)
            }
            (Kind::Opaque | Kind::Radio, _) => return Err(self.layout.refuse("this condition")),
        })
    }

    /// A BSD address family: in network byte order for LOOP, in either order for NULL, whose
    /// packets do not tell in which order their host wrote.
    fn address_family(&mut self, family: u32) -> Id {
        let at = self.layout.link_header;
        if self.layout.kind == Kind::Loop {
            return self.equal(at, 4, family);
        }
        let little = self.equal(at, 4, family.swap_bytes());
        let big = self.equal(at, 4, family);
        self.or(little, big)
    }

    fn ethernet_type(&mut self, protocol: u32) -> Id {
        let Layout { type_field, payload, .. } = self.layout;
        match protocol {
            lsap::ISO | lsap::IP | lsap::NETBEUI => {
                let length = self.is_length();
                let both = self.equal(payload, 2, protocol << 8 | protocol);
                self.and(length, both)
            }
            lsap::IPX => {
                let by_type = self.equal(type_field, 2, ether_type::IPX);
                let length = self.is_length();
                let snap = self.snap(0, ether_type::IPX);
                let by_lsap = self.equal(payload, 1, lsap::IPX);
                let netware = self.equal(payload, 2, 0xffff);
                let inner = self.or(by_lsap, netware);
                let inner = self.or(snap, inner);
                let framed = self.and(length, inner);
                self.or(by_type, framed)
            }
            ether_type::ATALK | ether_type::AARP => {
                let by_type = self.equal(type_field, 2, protocol);
                let length = self.is_length();
                let snap = self.appletalk_snap(protocol);
                let framed = self.and(length, snap);
                self.or(by_type, framed)
            }
            0..=ether_type::LONGEST => {
                let length = self.is_length();
                let by_lsap = self.equal(type_field.wrapping_add(2), 1, protocol);
                self.and(length, by_lsap)
            }
            _ => self.equal(type_field, 2, protocol),
        }
    }

    fn cooked_type(&mut self, protocol: u32) -> Id {
        let Layout { type_field, payload, .. } = self.layout;
        match protocol {
            lsap::ISO | lsap::IP | lsap::NETBEUI => {
                let framed = self.equal(type_field, 2, cooked::IEEE_802_2);
                let both = self.equal(payload, 2, protocol << 8 | protocol);
                self.and(framed, both)
            }
            lsap::IPX => {
                let by_type = self.equal(type_field, 2, ether_type::IPX);
                let netware = self.equal(type_field, 2, cooked::IEEE_802_3);
                let framed = self.equal(type_field, 2, cooked::IEEE_802_2);
                let by_lsap = self.equal(payload, 1, lsap::IPX);
                let snap = self.snap(0, ether_type::IPX);
                let inner = self.or(by_lsap, snap);
                let framed = self.and(framed, inner);
                let other = self.or(netware, framed);
                self.or(by_type, other)
            }
            ether_type::ATALK | ether_type::AARP => {
                let by_type = self.equal(type_field, 2, protocol);
                let framed = self.equal(type_field, 2, cooked::IEEE_802_2);
                let snap = self.appletalk_snap(protocol);
                let framed = self.and(framed, snap);
                self.or(by_type, framed)
            }
            0..=ether_type::LONGEST => {
                let framed = self.equal(type_field, 2, cooked::IEEE_802_2);
                let by_lsap = self.equal(payload, 1, protocol);
                self.and(framed, by_lsap)
            }
            _ => self.equal(type_field, 2, protocol),
        }
    }

    /// Under MPLS only the version of IP tells: the last label, then the first nibble.
    fn labelled_type(&mut self, protocol: u32) -> Result<Id, Refusal> {
        let version = match protocol {
            ether_type::IPV4 => 0x40,
            ether_type::IPV6 => 0x60,
            _ => return Err("after \"mpls\" only IPv4 and IPv6 can be told".to_owned()),
        };
        let network = self.layout.network()?;
        let last = self.masked(network.wrapping_sub(2), 1, 1, 1);
        let version = self.masked(network, 1, version, 0xf0);
        Ok(self.and(last, version))
    }

    /// The type field holds the length of an IEEE 802.3 frame.
    fn is_length(&mut self) -> Id {
        let at = self.layout.type_field;
        let above = self.compare(at, 2, Comparison::Greater, ether_type::LONGEST);
        self.not(above)
    }

    pub(super) fn is_llc(&mut self) -> Result<Id, Refusal> {
        if self.layout.kind != Kind::Ethernet {
            return Err(self.layout.refuse("\"llc\""));
        }
        let length = self.is_length();
        let netware = self.equal(self.layout.payload, 2, 0xffff);
        let other = self.not(netware);
        Ok(self.and(length, other))
    }

    fn appletalk_snap(&mut self, protocol: u32) -> Id {
        let organization = if protocol == ether_type::ATALK { 0x08_0007 } else { 0 };
        self.snap(organization, protocol)
    }

    /// An LLC header with SNAP, RFC 1042, of this organization and protocol.
    fn snap(&mut self, organization: u32, protocol: u32) -> Id {
        let payload = self.layout.payload;
        let low = self.equal(payload.wrapping_add(4), 4, organization << 16 | protocol);
        let high = self.equal(payload, 4, 0xaaaa_0300 | organization >> 16);
        self.and(low, high)
    }

    pub(super) fn ether_host(
        &mut self,
        direction: Direction,
        address: [u8; 6],
    ) -> Result<Id, Refusal> {
        if self.layout.kind != Kind::Ethernet {
            return Err(self.layout.refuse("a MAC address"));
        }
        let header = self.layout.link_header;
        let [a, b, c, d, e, f] = address.map(u32::from);
        let mut at = |offset: u32| {
            let low =
                self.equal(header.wrapping_add(offset + 2), 4, c << 24 | d << 16 | e << 8 | f);
            let high = self.equal(header.wrapping_add(offset), 2, a << 8 | b);
            self.and(low, high)
        };
        Ok(match direction {
            Direction::Source => at(6),
            Direction::Destination => at(0),
            Direction::Both => {
                let (source, destination) = (at(6), at(0));
                self.and(source, destination)
            }
            Direction::Any | Direction::Either => {
                let (source, destination) = (at(6), at(0));
                self.or(source, destination)
            }
        })
    }

    pub(super) fn broadcast(&mut self, protocol: Option<Protocol>) -> Result<Id, Refusal> {
        match protocol {
            None | Some(Protocol::Link) if self.layout.kind == Kind::Ethernet => {
                self.ether_host(Direction::Destination, [0xff; 6])
            }
            None | Some(Protocol::Link) => Err(self.layout.refuse("\"broadcast\"")),
            Some(Protocol::Ip) => {
                // The netmask of the network is not known, so only these two are certain.
                let ip = self.link_type(ether_type::IPV4)?;
                let at = self.layout.network()?.wrapping_add(16);
                let zeros = self.equal(at, 4, 0);
                let ones = self.equal(at, 4, u32::MAX);
                let either = self.or(zeros, ones);
                Ok(self.and(ip, either))
            }
            Some(other) => Err(format!("\"{} broadcast\" has no meaning", other.name())),
        }
    }

    pub(super) fn multicast(&mut self, protocol: Option<Protocol>) -> Result<Id, Refusal> {
        match protocol {
            None | Some(Protocol::Link) if self.layout.kind == Kind::Ethernet => {
                Ok(self.compare(self.layout.link_header, 1, Comparison::AnyBit, 1))
            }
            None | Some(Protocol::Link) => Err(self.layout.refuse("\"multicast\"")),
            Some(Protocol::Ip) => {
                let ip = self.link_type(ether_type::IPV4)?;
                let at = self.layout.network()?.wrapping_add(16);
                // 224.0.0.0/4 and, as in libpcap, everything above it.
                let group = self.compare(at, 1, Comparison::AtLeast, 224);
                Ok(self.and(ip, group))
            }
            Some(Protocol::Ip6) => {
                let ip6 = self.link_type(ether_type::IPV6)?;
                let at = self.layout.network()?.wrapping_add(24);
                let group = self.equal(at, 1, 255);
                Ok(self.and(ip6, group))
            }
            Some(other) => Err(format!("\"{} multicast\" has no meaning", other.name())),
        }
    }

    /// A packet that this host sent, as a Linux cooked header says.
    pub(super) fn outbound(&mut self) -> Result<Id, Refusal> {
        let header = self.layout.link_header;
        match self.layout.kind {
            Kind::Cooked => Ok(self.equal(header, 2, cooked::OUTGOING)),
            Kind::Cooked2 => Ok(self.equal(header.wrapping_add(10), 1, cooked::OUTGOING)),
            _ => Err(self.layout.refuse("a direction relative to the host")),
        }
    }

    pub(super) fn interface_index(&mut self, index: u32) -> Result<Id, Refusal> {
        match self.layout.kind {
            Kind::Cooked2 => Ok(self.equal(self.layout.link_header.wrapping_add(4), 4, index)),
            _ => Err(self.layout.refuse("\"ifindex\"")),
        }
    }
}

/// The PPP protocol number for what is an EtherType or an LSAP elsewhere.
const fn ppp_protocol(protocol: u32) -> u32 {
    match protocol {
        ether_type::IPV4 => 0x0021,
        ether_type::IPV6 => 0x0057,
        ether_type::DECNET => 0x0027,
        ether_type::ATALK => 0x0029,
        ether_type::NS => 0x0025,
        lsap::ISO => 0x0023,
        lsap::STP => 0x0031,
        lsap::IPX => 0x002b,
        other => other,
    }
}
