//! Tunnels above UDP: told by the port, the header and what is inside; Teredo by the latter alone.

use super::link::is_ethernet;
use super::ports::{Encapsulation, TunnelPorts};
use super::tunnel::{Inner, Tunnel, TunnelKind, UpperBytes};
use super::{Udp, gre};
use crate::wire::ethernet::ethertype;
use crate::wire::geneve::GeneveView;
use crate::wire::gtpu::{GtpuView, T_PDU};
use crate::wire::ipv4::protocol;
use crate::wire::ipv6::Ipv6View;
use crate::wire::mpls::MplsView;
use crate::wire::vxlan::VxlanView;

/// Whether a tunnel may follow a UDP header in a packet, which is worth a call of [`tunnel::find`](super::tunnel::find). Nearly
/// every datagram is told to carry none by its ports and the first bytes of its payload.
#[must_use]
#[inline]
pub fn may_be_in_udp(udp: &Udp, data: &[u8], ports: &TunnelPorts) -> bool {
    ports.has(udp.source_port)
        || ports.has(udp.destination_port)
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
pub(super) fn find(udp: &Udp, data: &[u8], ports: &TunnelPorts) -> Option<Tunnel> {
    if ports.has(udp.source_port) || ports.has(udp.destination_port) {
        return on_tunnel_port(udp, data, ports);
    }
    // Teredo clients talk to each other from any port: behind an indication, or directly in IPv6.
    if may_be_in_udp(udp, data, ports) { teredo(&above_udp(udp, data), false) } else { None }
}

fn above_udp<'a>(udp: &Udp, data: &'a [u8]) -> UpperBytes<'a> {
    UpperBytes::new(data, udp.payload_offset, udp.payload_len, udp.payload_captured)
}

#[inline(never)]
fn on_tunnel_port(udp: &Udp, data: &[u8], ports: &TunnelPorts) -> Option<Tunnel> {
    let above = above_udp(udp, data);
    let by_port = |port| {
        ports.of(port).find_map(|kind| match kind {
            Encapsulation::Vxlan => vxlan(&above),
            Encapsulation::Geneve => geneve(&above),
            Encapsulation::Gtpu => gtpu(&above),
            Encapsulation::Teredo => teredo(&above, true),
            Encapsulation::Ayiya => ayiya(&above),
            Encapsulation::Gre => gre_in_udp(&above),
            Encapsulation::Mpls => mpls(&above),
        })
    };
    by_port(udp.destination_port)
        .or_else(|| by_port(udp.source_port))
        .or_else(|| teredo(&above, false))
}

/// Reserved bits are ignored on receipt (RFC 7348, section 5), but only where the frame inside is
/// beyond doubt.
fn vxlan(above: &UpperBytes<'_>) -> Option<Tunnel> {
    let view = VxlanView::parse(above.data)?;
    let (after_flags, last) = view.reserved();
    let flags_fit = match view.flags() {
        VxlanView::VALID_VNI => after_flags == 0,
        flags => flags == VxlanView::VALID_VNI | VxlanView::GROUP_POLICY,
    };
    let fits = if flags_fit && last == 0 {
        is_ethernet(above.data.get(VxlanView::LEN..)?)
    } else {
        view.flags() & VxlanView::VALID_VNI != 0 && above.has_ip_in_ethernet(VxlanView::LEN)
    };
    fits.then(|| above.tunnel(VxlanView::LEN, Inner::Ethernet, TunnelKind::Vxlan, Some(view.vni())))
}

/// GRE in UDP (RFC 8086), of version 0 only. What carries no known type is told by its header alone,
/// which is too little.
fn gre_in_udp(above: &UpperBytes<'_>) -> Option<Tunnel> {
    let found = gre::find(above)?.ok()?;
    let at = found.offset.saturating_sub(above.offset) as usize;
    let fits = match found.inner {
        Inner::Ip => above.inner_ip(at, None, TunnelKind::Gre, None).is_ok(),
        Inner::Ethernet => is_ethernet(above.data.get(at..)?),
        Inner::Mpls | Inner::Wlan => false,
    };
    fits.then_some(found)
}

/// MPLS in UDP (RFC 7510): labels, the last of which says so, and IP or Ethernet behind them.
fn mpls(above: &UpperBytes<'_>) -> Option<Tunnel> {
    const MAX_LABELS: usize = 8;
    const CONTROL_WORD: usize = 4;
    let label = |at| above.data.get(at..).and_then(MplsView::parse);
    let last = (0..MAX_LABELS).map(|number| number * MplsView::LEN);
    let last = last.take_while(|&at| label(at).is_some());
    let last = last.into_iter().find(|&at| label(at).is_some_and(MplsView::bottom_of_stack))?;
    let at = last + MplsView::LEN;
    let is_ip = above.inner_ip(at, None, TunnelKind::Mpls, None).is_ok();
    let has_control = above.data.get(at).is_some_and(|byte| byte >> 4 == 0);
    let fits = is_ip
        || above.has_ip_in_ethernet(at)
        || has_control && above.has_ip_in_ethernet(at + CONTROL_WORD);
    let outer = label(0)?.label();
    fits.then(|| above.tunnel(0, Inner::Mpls, TunnelKind::Mpls, Some(outer)))
}

fn geneve(above: &UpperBytes<'_>) -> Option<Tunnel> {
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

fn gtpu(above: &UpperBytes<'_>) -> Option<Tunnel> {
    let view = GtpuView::parse(above.data)?;
    let is_user_packet =
        view.version() == 1 && view.protocol_type() && view.message_type() == T_PDU;
    if !is_user_packet || GtpuView::MIN_LEN + usize::from(view.payload_len()) > above.len {
        return None;
    }
    above.inner_ip(view.header_len()?, None, TunnelKind::Gtpu, Some(view.teid())).ok()
}

/// Where the port does not tell, an address with the prefix of Teredo must.
fn teredo(above: &UpperBytes<'_>, is_port: bool) -> Option<Tunnel> {
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

fn ayiya(above: &UpperBytes<'_>) -> Option<Tunnel> {
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
