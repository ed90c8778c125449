//! What GRE carries: IP, bridged Ethernet, ERSPAN, MPLS, frames of 802.11, or PPP of PPTP.

use super::tunnel::{Inner, Tunnel, TunnelKind, UpperBytes};
use super::{Layer, Stop};
use crate::wire::ethernet::{EthernetView, ethertype};
use crate::wire::gre::GreView;
use crate::wire::pppoe::ppp_protocol;

/// Looks behind a GRE header. `None` where it carries a protocol that is not decoded.
pub(super) fn find(above: &UpperBytes<'_>) -> Option<Result<Tunnel, Stop>> {
    let fault = |weird| Some(Err(above.stop(weird, Layer::Gre, 0, 0)));
    let short = |needed| Some(Err(above.stop("truncated_GRE", Layer::Gre, 0, needed)));
    let Some(view) = GreView::parse(above.data) else { return short(GreView::MIN_LEN) };
    let (version, at) = (view.version(), view.header_len());
    if version > 1 {
        return fault("unknown_gre_version");
    }
    if version == 1 && view.protocol() != ethertype::PPP {
        return fault("egre_protocol_type");
    }
    if view.flags() & GreView::ROUTING != 0 {
        return fault("gre_routing");
    }
    if view.flags() & 0x0078 != 0 {
        return fault("unknown_gre_flags");
    }
    if above.data.len() < at {
        return short(at);
    }
    if version == 1 {
        return pptp(above, &view);
    }
    let key = view.field(GreView::KEY);
    let frame_at = match view.protocol() {
        ethertype::IPV4 | ethertype::IPV6 => {
            return Some(Ok(above.tunnel(at, Inner::Ip, TunnelKind::Gre, key)));
        }
        ethertype::MPLS | ethertype::MPLS_MULTICAST => {
            return Some(Ok(above.tunnel(at, Inner::Mpls, TunnelKind::Gre, key)));
        }
        kind if is_of_access_point(kind) => {
            return Some(Ok(above.tunnel(at, Inner::Wlan, TunnelKind::Gre, key)));
        }
        ethertype::BRIDGING => at,
        ethertype::ERSPAN => at + erspan_len(&view),
        ethertype::ERSPAN_III => at + erspan_iii_len(above.data.get(at..).unwrap_or_default()),
        _ => return None,
    };
    let needed = frame_at + EthernetView::LEN;
    if above.data.len() < needed {
        return short(needed);
    }
    Some(Ok(above.tunnel(frame_at, Inner::Ethernet, TunnelKind::Gre, key)))
}

/// Whether a protocol is one by which access points of Aruba hand frames on to their controller: Zeek's
/// `packet-protocols/gre/main.zeek` lists them.
const fn is_of_access_point(kind: u16) -> bool {
    matches!(kind, 0x8200..=0x8370) && kind.is_multiple_of(16) || kind == 0x9000
}

/// Type II has a sequence number in the GRE header and a header of its own; type I has neither.
const fn erspan_len(view: &GreView<'_>) -> usize {
    if view.flags() & GreView::SEQUENCE == 0 { 0 } else { 8 }
}

/// The last bit of the 12 bytes announces a subheader of 8 bytes.
fn erspan_iii_len(header: &[u8]) -> usize {
    if header.get(11).is_some_and(|byte| byte & 1 != 0) { 20 } else { 12 }
}

/// Enhanced GRE without a payload only acknowledges; with one it holds a PPP frame.
fn pptp(above: &UpperBytes<'_>, view: &GreView<'_>) -> Option<Result<Tunnel, Stop>> {
    let at = view.header_len();
    if above.len <= at {
        return None;
    }
    let data = above.data.get(at..).unwrap_or_default();
    let framing = if data.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
    let (number, len) = match data.get(framing..) {
        Some(&[low, ..]) if low & 1 != 0 => (u16::from(low), 1),
        Some(&[high, low, ..]) => (u16::from_be_bytes([high, low]), 2),
        _ => return Some(Err(above.stop("truncated_GRE", Layer::Gre, 0, at + framing + 2))),
    };
    let version = match number {
        ppp_protocol::IPV4 => 4,
        ppp_protocol::IPV6 => 6,
        _ => return Some(Err(above.stop("non_ip_packet_in_encap", Layer::Gre, at, 0))),
    };
    let key = view.field(GreView::KEY);
    Some(above.inner_ip(at + framing + len, Some(version), TunnelKind::Gre, key))
}
