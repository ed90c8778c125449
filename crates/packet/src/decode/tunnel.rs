//! Whether what follows a decoded header is a tunnel, and where the inner packet starts.
//!
//! A port alone never makes a tunnel: the header and the inner packet must agree with the lengths
//! around them, so that other traffic on the same port stays what it is.

pub use super::in_udp::may_be_in_udp;
use super::ports::TunnelPorts;
use super::{Decoded, Ip, Layer, Stop, Transport, gre, in_udp, walk};
use crate::wire::arp::ArpView;
use crate::wire::ethernet::{EthernetView, ethertype};
use crate::wire::ipv4::{Ipv4View, protocol};
use crate::wire::ipv6::Ipv6View;
use crate::wire::vlan::VlanView;

/// The kinds of tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TunnelKind {
    /// IPv4 or IPv6 directly in either, RFC 2003, RFC 2473, RFC 4213.
    Ip,
    /// GRE, RFC 2784, RFC 2637.
    Gre,
    /// VXLAN, RFC 7348.
    Vxlan,
    /// Geneve, RFC 8926.
    Geneve,
    /// GTP-U version 1, 3GPP TS 29.281.
    Gtpu,
    /// Teredo, RFC 4380.
    Teredo,
    /// AYIYA, draft-massar-v6ops-ayiya.
    Ayiya,
    /// MPLS in UDP, RFC 7510.
    Mpls,
}

impl TunnelKind {
    /// The name in the `tunnel` log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ip => "Tunnel::IP",
            Self::Gre => "Tunnel::GRE",
            Self::Vxlan => "Tunnel::VXLAN",
            Self::Geneve => "Tunnel::GENEVE",
            Self::Gtpu => "Tunnel::GTPv1",
            Self::Teredo => "Tunnel::TEREDO",
            Self::Ayiya => "Tunnel::AYIYA",
            Self::Mpls => "Tunnel::MPLS",
        }
    }

    /// The layer that statistics count.
    #[must_use]
    pub const fn layer(self) -> Layer {
        match self {
            Self::Ip => Layer::IpInIp,
            Self::Gre => Layer::Gre,
            Self::Vxlan => Layer::Vxlan,
            Self::Geneve => Layer::Geneve,
            Self::Gtpu => Layer::Gtpu,
            Self::Teredo => Layer::Teredo,
            Self::Ayiya => Layer::Ayiya,
            Self::Mpls => Layer::Mpls,
        }
    }
}

/// What a tunnel carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    /// An IP header of either version.
    Ip,
    /// An Ethernet frame.
    Ethernet,
    /// A stack of MPLS labels.
    Mpls,
    /// A frame of IEEE 802.11.
    Wlan,
}

/// A tunnel that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// The kind of tunnel.
    pub kind: TunnelKind,
    /// What the inner packet begins with.
    pub inner: Inner,
    /// Offset of the inner packet.
    pub offset: u32,
    /// Offset at which the inner packet ends by the outer headers; beyond the data where the
    /// capture cut the packet.
    pub end: u32,
    /// What tells tunnels between the same ends apart: VNI, TEID or GRE key.
    pub identifier: Option<u32>,
}

impl Tunnel {
    /// Walks the inner packet in the bytes that the outer one was decoded from.
    #[must_use]
    pub fn decode(&self, data: &[u8]) -> Decoded {
        let data = data.get(..self.end as usize).unwrap_or(data);
        match self.inner {
            Inner::Ip => walk::ip(data, self.offset, self.end),
            Inner::Ethernet => walk::ethernet(data, self.offset, self.end),
            Inner::Mpls => walk::mpls(data, self.offset, self.end),
            Inner::Wlan => walk::wlan(data, self.offset, self.end),
        }
    }
}

/// Looks for a tunnel above the headers that were decoded from `data`.
///
/// `None` means that there is none. A tunnel directly above IP whose header is malformed or whose
/// inner packet disagrees with it is an error, named as in Zeek's `weird` log; above UDP it counts
/// as something else on that port. `ports` are those on which tunnels above UDP are looked for.
#[must_use]
#[inline]
pub fn find(decoded: &Decoded, data: &[u8], ports: &TunnelPorts) -> Option<Result<Tunnel, Stop>> {
    let ip = decoded.ip.as_ref()?;
    match decoded.transport {
        Transport::Udp(udp) => in_udp::find(&udp, data, ports).map(Ok),
        Transport::Other => above_ip(ip, data),
        _ => None,
    }
}

#[inline(never)]
fn above_ip(ip: &Ip, data: &[u8]) -> Option<Result<Tunnel, Stop>> {
    let above = UpperBytes::new(data, ip.payload_offset, ip.payload_len, ip.payload_captured);
    match ip.protocol {
        protocol::IPV4 => Some(above.inner_ip(0, Some(4), TunnelKind::Ip, None)),
        protocol::IPV6 => Some(above.inner_ip(0, Some(6), TunnelKind::Ip, None)),
        protocol::GRE => gre::find(&above),
        _ => None,
    }
}

/// The bytes above a header.
pub(super) struct UpperBytes<'a> {
    /// What was captured of them.
    pub(super) data: &'a [u8],
    /// How many there were.
    pub(super) len: usize,
    /// Offset of the first.
    pub(super) offset: u32,
}

impl<'a> UpperBytes<'a> {
    pub(super) fn new(data: &'a [u8], offset: u32, len: u32, captured: u32) -> Self {
        let (start, end) = (offset as usize, offset.saturating_add(captured) as usize);
        Self { data: data.get(start..end).unwrap_or_default(), len: len as usize, offset }
    }

    /// The tunnel whose inner packet starts `at` bytes from here.
    pub(super) fn tunnel(
        &self,
        at: usize,
        inner: Inner,
        kind: TunnelKind,
        identifier: Option<u32>,
    ) -> Tunnel {
        let offset = self.offset.saturating_add(at as u32);
        let end = self.offset.saturating_add(self.len as u32);
        Tunnel { kind, inner, offset, end, identifier }
    }

    /// The stop of a header at `at` that needs more bytes than there are, or is at fault (0).
    pub(super) fn stop(&self, weird: &'static str, layer: Layer, at: usize, needed: usize) -> Stop {
        Stop {
            weird,
            layer,
            offset: self.offset.saturating_add(at as u32),
            needed: needed as u32,
            had: self.data.len().saturating_sub(at) as u32,
            cut: needed > 0 && self.len >= at.saturating_add(needed),
        }
    }

    /// Whether an Ethernet frame with IP, whose lengths agree, or with ARP is at an offset.
    pub(super) fn has_ip_in_ethernet(&self, at: usize) -> bool {
        let Some(view) = self.data.get(at..).and_then(EthernetView::parse) else { return false };
        let (mut kind, mut at) = (view.ethertype(), at + EthernetView::LEN);
        while matches!(kind, ethertype::VLAN | ethertype::SERVICE_VLAN | ethertype::QINQ) {
            let Some(tag) = self.data.get(at..).and_then(VlanView::parse) else { return false };
            (kind, at) = (tag.ethertype(), at + VlanView::LEN);
        }
        let data = self.data.get(at..).unwrap_or_default();
        let version = match kind {
            ethertype::ARP => {
                return ArpView::parse(data).is_some_and(|arp| {
                    data.len() >= arp.packet_len() && matches!(arp.operation(), 1..=4)
                });
            }
            ethertype::IPV4 => 4,
            ethertype::IPV6 => 6,
            _ => return false,
        };
        // Short frames are padded.
        let left = self.len.saturating_sub(at);
        ip_version_and_len(data, left).is_some_and(|(found, len)| found == version && len <= left)
    }

    /// A tunnel with an IP packet at `at` that has the version and fills what is left.
    pub(super) fn inner_ip(
        &self,
        at: usize,
        version: Option<u8>,
        kind: TunnelKind,
        identifier: Option<u32>,
    ) -> Result<Tunnel, Stop> {
        let layer = kind.layer();
        let data = self.data.get(at..).unwrap_or_default();
        let left = self.len.saturating_sub(at);
        let Some((found, len)) = ip_version_and_len(data, left) else {
            let header_len = match data.first().map(|byte| byte >> 4) {
                None | Some(4) => Ipv4View::LEN,
                Some(6) => Ipv6View::LEN,
                Some(_) => return Err(self.stop("invalid_inner_IP_version", layer, at, 0)),
            };
            // A whole header whose own length is less than that is at fault itself.
            let needed = if data.len() < header_len { header_len } else { 0 };
            return Err(self.stop("truncated_inner_IP", layer, at, needed));
        };
        if version.is_some_and(|version| version != found) {
            return Err(self.stop("invalid_inner_IP_version", layer, at, 0));
        }
        match len.cmp(&left) {
            core::cmp::Ordering::Equal => Ok(self.tunnel(at, Inner::Ip, kind, identifier)),
            core::cmp::Ordering::Greater => Err(self.stop("truncated_inner_IP", layer, at, len)),
            core::cmp::Ordering::Less => {
                Err(self.stop("inner_IP_payload_length_mismatch", layer, at, 0))
            }
        }
    }
}

/// Version and length of an IP packet by its header. A length of 0 stands for one that does not fit
/// into its field (segmentation offload, jumbograms of RFC 2675): it is all that is `left`.
fn ip_version_and_len(data: &[u8], left: usize) -> Option<(u8, usize)> {
    let is_big = left > usize::from(u16::MAX);
    let or_left = |len: u16, header_len: usize| match len {
        0 if is_big => left,
        len => header_len + usize::from(len),
    };
    match data.first()? >> 4 {
        4 => Ipv4View::parse(data)
            .filter(|view| view.header_len() >= Ipv4View::LEN)
            .map(|view| (4, or_left(view.total_len(), 0))),
        6 => Ipv6View::parse(data).map(|view| (6, or_left(view.payload_len(), Ipv6View::LEN))),
        _ => None,
    }
}
