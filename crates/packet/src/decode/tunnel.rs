//! Whether what follows a decoded header is a tunnel, and where the inner packet starts.
//!
//! A port alone never makes a tunnel: the header and the inner packet must agree with the lengths
//! around them, so that other traffic on the same port stays what it is.

use super::link::is_ethernet;
use super::{Decoded, Ip, Layer, Stop, Transport, Udp, gre, walk};
use crate::wire::ethernet::ethertype;
use crate::wire::geneve::GeneveView;
use crate::wire::gtpu::{GtpuView, T_PDU};
use crate::wire::ipv4::{Ipv4View, protocol};
use crate::wire::ipv6::Ipv6View;
use crate::wire::vxlan::VxlanView;

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
}

/// A tunnel that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// Its kind.
    pub kind: TunnelKind,
    /// What it carries.
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
        }
    }
}

/// Looks for a tunnel above the headers that were decoded from `data`.
///
/// `None` means that there is none. A tunnel directly above IP whose header is malformed or whose
/// inner packet disagrees with it is an error, named as in Zeek's `weird` log; above UDP it counts
/// as something else on that port.
#[must_use]
#[inline]
pub fn find(decoded: &Decoded, data: &[u8]) -> Option<Result<Tunnel, Stop>> {
    let ip = decoded.ip.as_ref()?;
    match decoded.transport {
        Transport::Udp(udp) => in_udp(&udp, data).map(Ok),
        Transport::Other => above_ip(ip, data),
        _ => None,
    }
}

#[inline(never)]
fn above_ip(ip: &Ip, data: &[u8]) -> Option<Result<Tunnel, Stop>> {
    let above = Above::new(data, ip.payload_offset, ip.payload_len, ip.payload_captured);
    match ip.protocol {
        protocol::IPV4 => Some(above.inner_ip(0, Some(4), TunnelKind::Ip, None)),
        protocol::IPV6 => Some(above.inner_ip(0, Some(6), TunnelKind::Ip, None)),
        protocol::GRE => gre::find(&above),
        _ => None,
    }
}

/// The bytes above a header.
pub(super) struct Above<'a> {
    /// What was captured of them.
    pub(super) data: &'a [u8],
    /// How many there were.
    pub(super) len: usize,
    /// Offset of the first.
    offset: u32,
}

impl<'a> Above<'a> {
    fn new(data: &'a [u8], offset: u32, len: u32, captured: u32) -> Self {
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
        let Some((found, len)) = ip_version_and_len(data) else {
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

/// Version and length of an IP packet by its header.
fn ip_version_and_len(data: &[u8]) -> Option<(u8, usize)> {
    match data.first()? >> 4 {
        4 => Ipv4View::parse(data)
            .filter(|view| view.header_len() >= Ipv4View::LEN)
            .map(|view| (4, usize::from(view.total_len()))),
        6 => Ipv6View::parse(data).map(|view| (6, Ipv6View::LEN + usize::from(view.payload_len()))),
        _ => None,
    }
}

/// Whether tunnels are expected on a UDP port.
#[must_use]
#[inline]
pub const fn is_tunnel_port(port: u16) -> bool {
    matches!(port, VXLAN_PORT | GENEVE_PORT | GTPU_PORT | GTPC_PORT | TEREDO_PORT | AYIYA_PORT)
}

const VXLAN_PORT: u16 = 4789;
const GENEVE_PORT: u16 = 6081;
const GTPU_PORT: u16 = 2152;
/// The control plane's, on which user packets are seen as well.
const GTPC_PORT: u16 = 2123;
const TEREDO_PORT: u16 = 3544;
const AYIYA_PORT: u16 = 5072;

/// Whether a tunnel may follow a UDP header in a packet, which is worth a call of [`find`]. Nearly
/// every datagram is told to carry none by its ports and the first bytes of its payload.
#[must_use]
#[inline]
pub fn may_be_in_udp(udp: &Udp, data: &[u8]) -> bool {
    is_tunnel_port(udp.source_port)
        || is_tunnel_port(udp.destination_port)
        || may_be_teredo(data.get(udp.payload_offset as usize..).unwrap_or_default())
}

/// Whether a payload begins like Teredo, RFC 4380 section 5.1.1: with an IPv6 header, with an
/// origin indication before one, or with an authentication header.
#[inline]
fn may_be_teredo(payload: &[u8]) -> bool {
    match payload {
        [0, 0, ..] => payload.get(8).is_some_and(|byte| byte >> 4 == 6),
        [0, 1, ..] => true,
        [first, ..] => first >> 4 == 6,
        [] => false,
    }
}

#[inline]
fn in_udp(udp: &Udp, data: &[u8]) -> Option<Tunnel> {
    if is_tunnel_port(udp.source_port) || is_tunnel_port(udp.destination_port) {
        return on_tunnel_port(udp, data);
    }
    // Teredo clients talk to each other from any port: behind an indication, or directly in IPv6.
    if may_be_in_udp(udp, data) { teredo(&above_udp(udp, data), false) } else { None }
}

fn above_udp<'a>(udp: &Udp, data: &'a [u8]) -> Above<'a> {
    Above::new(data, udp.payload_offset, udp.payload_len, udp.payload_captured)
}

#[inline(never)]
fn on_tunnel_port(udp: &Udp, data: &[u8]) -> Option<Tunnel> {
    let above = above_udp(udp, data);
    let by_port = |port| match port {
        VXLAN_PORT => vxlan(&above),
        GENEVE_PORT => geneve(&above),
        GTPU_PORT | GTPC_PORT => gtpu(&above),
        TEREDO_PORT => teredo(&above, true),
        AYIYA_PORT => ayiya(&above),
        _ => None,
    };
    by_port(udp.destination_port)
        .or_else(|| by_port(udp.source_port))
        .or_else(|| teredo(&above, false))
}

fn vxlan(above: &Above<'_>) -> Option<Tunnel> {
    let view = VxlanView::parse(above.data)?;
    let (after_flags, last) = view.reserved();
    let flags_fit = match view.flags() {
        VxlanView::VALID_VNI => after_flags == 0,
        flags => flags == VxlanView::VALID_VNI | VxlanView::GROUP_POLICY,
    };
    let fits = flags_fit && last == 0 && is_ethernet(above.data.get(VxlanView::LEN..)?);
    fits.then(|| above.tunnel(VxlanView::LEN, Inner::Ethernet, TunnelKind::Vxlan, Some(view.vni())))
}

fn geneve(above: &Above<'_>) -> Option<Tunnel> {
    let view = GeneveView::parse(above.data)?;
    if view.version() != 0 || view.reserved_set() {
        return None;
    }
    let (at, vni) = (view.header_len(), Some(view.vni()));
    match view.protocol() {
        ethertype::BRIDGING if is_ethernet(above.data.get(at..)?) => {
            Some(above.tunnel(at, Inner::Ethernet, TunnelKind::Geneve, vni))
        }
        ethertype::IPV4 => above.inner_ip(at, Some(4), TunnelKind::Geneve, vni).ok(),
        ethertype::IPV6 => above.inner_ip(at, Some(6), TunnelKind::Geneve, vni).ok(),
        _ => None,
    }
}

fn gtpu(above: &Above<'_>) -> Option<Tunnel> {
    let view = GtpuView::parse(above.data)?;
    let is_user_packet =
        view.version() == 1 && view.protocol_type() && view.message_type() == T_PDU;
    if !is_user_packet || GtpuView::MIN_LEN + usize::from(view.payload_len()) > above.len {
        return None;
    }
    above.inner_ip(view.header_len()?, None, TunnelKind::Gtpu, Some(view.teid())).ok()
}

/// Where the port does not tell, an address with the prefix of Teredo must.
fn teredo(above: &Above<'_>, is_port: bool) -> Option<Tunnel> {
    const PREFIX: [u8; 4] = [0x20, 0x01, 0, 0];
    let at = teredo_indications(above.data)?;
    let data = above.data.get(at..)?;
    let view = Ipv6View::parse(data).filter(|view| view.version() == 6)?;
    let has_prefix = view.source().starts_with(&PREFIX) || view.destination().starts_with(&PREFIX);
    let left = above.len.checked_sub(at)?;
    let len = Ipv6View::LEN + usize::from(view.payload_len());
    // A bubble may have bytes behind it that belong to no packet.
    let is_bubble = view.next_header() == protocol::NO_NEXT_HEADER && view.payload_len() == 0;
    let fits = len == left || len < left && is_bubble;
    (fits && (is_port || has_prefix)).then(|| above.tunnel(at, Inner::Ip, TunnelKind::Teredo, None))
}

/// Length of the authentication and origin indications (RFC 4380, 5.1.1) before the packet.
fn teredo_indications(data: &[u8]) -> Option<usize> {
    const ORIGIN: usize = 8;
    const NONCE_AND_CONFIRMATION: usize = 9;
    let mut at = 0;
    if let &[0, 1, id_len, auth_len, ..] = data {
        at = 4 + usize::from(id_len) + usize::from(auth_len) + NONCE_AND_CONFIRMATION;
    }
    match *data.get(at..)? {
        [0, 0, ..] => Some(at + ORIGIN),
        [first, ..] if first >> 4 == 6 => Some(at),
        _ => None,
    }
}

fn ayiya(above: &Above<'_>) -> Option<Tunnel> {
    const MIN_LEN: usize = 8;
    const FORWARD: u8 = 1;
    let &[lens, signature, operation, next_header, ..] = above.data.first_chunk::<MIN_LEN>()?;
    let identity_len = 1usize << (lens >> 4);
    let at = MIN_LEN + identity_len + usize::from(signature >> 4) * 4;
    let version = match next_header {
        protocol::IPV4 => 4,
        protocol::IPV6 => 6,
        _ => return None,
    };
    if operation & 0x0f != FORWARD {
        return None;
    }
    above.inner_ip(at, Some(version), TunnelKind::Ayiya, None).ok()
}
