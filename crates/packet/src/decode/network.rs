//! IPv4 and IPv6 with everything up to the transport header.

use super::walk::{Extent, Frame};
use super::{Decoded, Fragment, Ip, IpVersion, Layer, Oddity, Stop, transport};
use crate::Address;
use crate::wire::ipv4::{Ipv4View, protocol};
use crate::wire::ipv6::Ipv6View;
use crate::wire::ipv6_extension::{
    AuthenticationView, ExtensionView, FragmentView, HomeAddress, RoutingView,
};

/// More extension headers than this in one packet are taken for an attack on the walker.
const MAX_EXTENSIONS: usize = 32;

/// Walks from an IP header; its first nibble tells the version.
#[inline]
pub(super) fn ip(decoded: &mut Decoded, frame: Frame<'_>, offset: usize) {
    match frame.from(offset).first().map(|byte| byte >> 4) {
        Some(4) => ipv4(decoded, frame, offset),
        Some(6) => ipv6(decoded, frame, offset),
        Some(_) => {
            decoded.stop = Some(frame.bad("unknown_ip_version", Layer::Ipv4, offset));
        }
        None => {
            decoded.stop = Some(frame.short("truncated_IP", Layer::Ipv4, offset, Ipv4View::LEN));
        }
    }
}

/// Goes on above the IP header in `decoded`: extension headers if there are any, then transport.
/// Apart from the common path, where the header is written once, into its place.
#[inline(never)]
pub(super) fn above_extensions(decoded: &mut Decoded, frame: Frame<'_>) {
    let Some(mut ip) = decoded.ip else { return };
    if is_extension(ip.protocol) && !ip.is_v4() {
        decoded.stop = extensions(decoded, frame, &mut ip);
        decoded.ip = Some(ip);
    }
    if ip.fragment.is_some() {
        decoded.layers.insert(Layer::Fragment);
    } else if decoded.stop.is_none() {
        let above = Extent {
            offset: ip.payload_offset as usize,
            len: ip.payload_len as usize,
            captured: ip.payload_captured as usize,
        };
        transport::decode(decoded, frame, decoded.layers, ip.protocol, above);
    }
}

#[inline]
fn ipv4(decoded: &mut Decoded, frame: Frame<'_>, offset: usize) {
    let layers = decoded.layers.with(Layer::Ipv4);
    let Some(view) = Ipv4View::parse(frame.from(offset)) else {
        decoded.layers = layers;
        decoded.stop = Some(frame.short("truncated_IP", Layer::Ipv4, offset, Ipv4View::LEN));
        return;
    };
    let header_len = view.header_len();
    let mut total_len = usize::from(view.total_len());
    if total_len == 0 {
        decoded.oddities.insert(Oddity::ZeroLength);
        total_len = frame.wire_from(offset);
    }
    if header_len < Ipv4View::LEN || header_len > total_len || view.options().is_none() {
        decoded.layers = layers;
        decoded.stop = Some(bad_ipv4(frame, offset, header_len, total_len));
        return;
    }
    let word = view.fragment_word();
    let above = Extent::within(frame.from(offset), offset, header_len, total_len);
    let is_fragment = word & 0x3fff != 0;
    decoded.ip = Some(Ip {
        fragment: is_fragment.then(|| Fragment {
            offset: u32::from(view.fragment_offset()),
            more: view.more_fragments(),
        }),
        ..ipv4_value(view, offset, total_len, above)
    });
    if total_len > frame.wire_from(offset) {
        decoded.layers = layers;
        decoded.stop = Some(overlong(frame, Layer::Ipv4, offset, total_len));
    } else if is_fragment {
        decoded.layers = layers.with(Layer::Fragment);
    } else {
        transport::decode(decoded, frame, layers, view.protocol(), above);
    }
}

/// A header of IPv4 at `offset`, of a datagram that is whole.
#[inline(always)]
pub(super) fn ipv4_value(view: Ipv4View<'_>, offset: usize, total_len: usize, above: Extent) -> Ip {
    Ip {
        source: Address::from_v4(view.source()),
        destination: Address::from_v4(view.destination()),
        protocol: view.protocol(),
        ttl: view.ttl(),
        traffic_class: view.traffic_class(),
        version: IpVersion::V4 { dont_fragment: view.dont_fragment() },
        identification: u32::from(view.identification()),
        flow_label: 0,
        total_len: total_len as u32,
        offset: offset as u32,
        payload_offset: above.offset as u32,
        payload_len: above.len as u32,
        payload_captured: above.captured as u32,
        fragment: None,
    }
}

/// A header of IPv6 at `offset`, without what follows it.
#[inline(always)]
pub(super) fn ipv6_value(view: Ipv6View<'_>, offset: usize, total_len: usize, above: Extent) -> Ip {
    Ip {
        source: Address::from_v6(view.source()),
        destination: Address::from_v6(view.destination()),
        protocol: view.next_header(),
        ttl: view.hop_limit(),
        traffic_class: view.traffic_class(),
        version: IpVersion::V6,
        identification: 0,
        flow_label: view.flow_label(),
        total_len: total_len as u32,
        offset: offset as u32,
        payload_offset: above.offset as u32,
        payload_len: above.len as u32,
        payload_captured: above.captured as u32,
        fragment: None,
    }
}

#[cold]
fn bad_ipv4(frame: Frame<'_>, offset: usize, header_len: usize, total_len: usize) -> Stop {
    if header_len > total_len {
        frame.bad("invalid_IP_header_size", Layer::Ipv4, offset)
    } else if header_len < Ipv4View::LEN {
        frame.bad("IPv4_min_header_size", Layer::Ipv4, offset)
    } else {
        frame.short("internally_truncated_header", Layer::Ipv4, offset, header_len)
    }
}

/// The header promises more than the wire carried.
#[cold]
fn overlong(frame: Frame<'_>, layer: Layer, offset: usize, total_len: usize) -> Stop {
    Stop {
        needed: total_len as u32,
        had: frame.wire_from(offset) as u32,
        ..frame.bad("truncated_IP_len", layer, offset)
    }
}

fn ipv6(decoded: &mut Decoded, frame: Frame<'_>, offset: usize) {
    let layers = decoded.layers.with(Layer::Ipv6);
    let Some(view) = Ipv6View::parse(frame.from(offset)) else {
        decoded.layers = layers;
        decoded.stop = Some(frame.short("truncated_IP", Layer::Ipv6, offset, Ipv6View::LEN));
        return;
    };
    let mut total_len = Ipv6View::LEN + usize::from(view.payload_len());
    let next_header = view.next_header();
    if view.payload_len() == 0 && next_header != protocol::NO_NEXT_HEADER {
        // Segmentation offload and jumbograms (RFC 2675) leave the field empty.
        total_len = total_len.max(frame.wire_from(offset));
    }
    let above = Extent::within(frame.from(offset), offset, Ipv6View::LEN, total_len);
    decoded.ip = Some(ipv6_value(view, offset, total_len, above));
    if total_len > frame.wire_from(offset) {
        decoded.layers = layers;
        decoded.stop = Some(overlong(frame, Layer::Ipv6, offset, total_len));
    } else if is_extension(next_header) {
        decoded.layers = layers;
        above_extensions(decoded, frame);
    } else {
        transport::decode(decoded, frame, layers, next_header, above);
    }
}

/// Whether a protocol number is an extension header that can be passed.
#[inline]
const fn is_extension(number: u8) -> bool {
    matches!(
        number,
        protocol::HOP_BY_HOP
            | protocol::ROUTING
            | protocol::FRAGMENT
            | protocol::AUTHENTICATION
            | protocol::DESTINATION_OPTIONS
            | protocol::MOBILITY
            | protocol::HIP
            | protocol::SHIM6
    )
}

/// Passes the extension headers before the payload of `ip`, and adjusts it.
fn extensions(decoded: &mut Decoded, frame: Frame<'_>, ip: &mut Ip) -> Option<Stop> {
    for _ in 0..MAX_EXTENSIONS {
        let offset = ip.payload_offset as usize;
        let all = frame.from(offset);
        let data = all.get(..ip.payload_captured as usize).unwrap_or(all);
        let passed = match ip.protocol {
            protocol::FRAGMENT => fragment(ip, data),
            protocol::AUTHENTICATION => {
                AuthenticationView::parse(data).map(|view| (view.next_header(), view.len()))
            }
            number if is_extension(number) => {
                ExtensionView::parse(data).map(|view| (view.next_header(), view.len()))
            }
            _ => return None,
        };
        let Some((next_header, len)) = passed.filter(|(_, len)| *len <= data.len()) else {
            let needed = passed.map_or(8, |(_, len)| len);
            return Some(cut_extension(frame, ip, needed));
        };
        special(decoded, ip, data);
        ip.protocol = next_header;
        ip.payload_offset += len as u32;
        ip.payload_len -= len as u32;
        ip.payload_captured -= len as u32;
        if ip.fragment.is_some() {
            return None;
        }
    }
    Some(frame.bad("excessive_ipv6_extension_headers", Layer::Ipv6, ip.offset as usize))
}

#[cold]
fn cut_extension(frame: Frame<'_>, ip: &Ip, needed: usize) -> Stop {
    let weird = "internally_truncated_header";
    Stop {
        had: ip.payload_captured,
        cut: ip.payload_len as usize >= needed,
        ..frame.short(weird, Layer::Ipv6, ip.payload_offset as usize, needed)
    }
}

/// Reads a fragment header. An atomic fragment (RFC 6946) is a whole datagram, which counts without
/// that header, as other datagrams do once they are put together.
fn fragment(ip: &mut Ip, data: &[u8]) -> Option<(u8, usize)> {
    let view = FragmentView::parse(data)?;
    ip.identification = view.identification();
    if view.offset() != 0 || view.more_fragments() {
        let offset = u32::from(view.offset());
        ip.fragment = Some(Fragment { offset, more: view.more_fragments() });
    } else {
        ip.total_len = ip.total_len.saturating_sub(FragmentView::LEN as u32);
    }
    Some((view.next_header(), FragmentView::LEN))
}

/// Headers that change whom the packet is from or to.
fn special(decoded: &mut Decoded, ip: &mut Ip, data: &[u8]) {
    match ip.protocol {
        protocol::ROUTING => {
            let Some(view) = RoutingView::parse(data) else { return };
            match view.kind() {
                0 => {
                    decoded.oddities.insert(Oddity::RoutingType0);
                    if !view.data().len().saturating_sub(4).is_multiple_of(16) {
                        decoded.oddities.insert(Oddity::OddRoutingLength);
                        return;
                    }
                }
                2 => {}
                3 | 4 => return,
                _ => return decoded.oddities.insert(Oddity::RoutingTypeUnknown),
            }
            if view.segments_left() > 0
                && let Some(last) = view.last_address()
            {
                ip.destination = Address::from_v6(last);
            }
        }
        protocol::DESTINATION_OPTIONS => {
            if let Some(home) = ExtensionView::parse(data).and_then(HomeAddress::find) {
                ip.source = Address::from_v6(home.0);
            }
        }
        _ => {}
    }
}
