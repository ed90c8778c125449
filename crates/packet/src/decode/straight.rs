//! The straight way: headers of which nothing is odd, at places that are known beforehand.
//!
//! Nearly every packet is Ethernet, with a tag of 802.1Q or without, then IPv4 without options or IPv6 without extensions,
//! then TCP or UDP. Whoever is anything else takes the walk. Builds
//! with `debug_assertions`, as tests and fuzz targets are, take the walk as well and compare what comes of both.

use super::network::{ipv4_value, ipv6_value};
use super::transport::{udp_value, whole_tcp};
use super::walk::{Extent, Frame};
use super::{Decoded, Layer, Layers, Transport};
use crate::wire::ethernet::{EthernetView, ethertype};
use crate::wire::ipv4::{Ipv4View, protocol};
use crate::wire::ipv6::Ipv6View;
use crate::wire::tcp::TcpView;
use crate::wire::udp::UdpView;
use crate::wire::vlan::VlanView;

/// The first byte of a header of IPv4 without options: version and length.
const IPV4_WITHOUT_OPTIONS: u8 = 0x45;
/// More fragments, and the offset of this one.
const FRAGMENT_BITS: u16 = 0x3fff;

/// Decodes a frame of Ethernet if it goes the straight way, and tells whether it does. If not, what `decoded` holds
/// has no meaning. It need not be clear.
#[inline(always)]
pub(super) fn decode(decoded: &mut Decoded, frame: Frame<'_>) -> bool {
    let Some(ethernet) = EthernetView::parse(frame.data) else { return false };
    decoded.inner_vlan = None;
    decoded.oddities = Default::default();
    decoded.stop = None;
    let layers = Layers::default().with(Layer::Ethernet);
    if ethernet.ethertype() != ethertype::VLAN {
        decoded.vlan = None;
        return network(decoded, frame, layers, ethernet.ethertype(), EthernetView::LEN);
    }
    let Some(tag) = VlanView::parse(frame.from(EthernetView::LEN)) else { return false };
    decoded.vlan = Some(tag.id());
    let offset = EthernetView::LEN + VlanView::LEN;
    network(decoded, frame, layers.with(Layer::Vlan), tag.ethertype(), offset)
}

#[inline(always)]
fn network(
    decoded: &mut Decoded,
    frame: Frame<'_>,
    layers: Layers,
    kind: u16,
    offset: usize,
) -> bool {
    let (data, wire_len) = (frame.from(offset), frame.wire_from(offset));
    let (header_len, above, layer, number) = match kind {
        ethertype::IPV4 => {
            let Some(view) = Ipv4View::parse(data) else { return false };
            let total_len = usize::from(view.total_len());
            let is_plain = data.first() == Some(&IPV4_WITHOUT_OPTIONS)
                && view.fragment_word() & FRAGMENT_BITS == 0
                && (Ipv4View::LEN..=wire_len).contains(&total_len);
            if !is_plain {
                return false;
            }
            let above = Extent::within(data, offset, Ipv4View::LEN, total_len);
            decoded.ip = Some(ipv4_value(view, offset, total_len, above));
            (Ipv4View::LEN, above, Layer::Ipv4, view.protocol())
        }
        ethertype::IPV6 => {
            let Some(view) = Ipv6View::parse(data) else { return false };
            let total_len = Ipv6View::LEN + usize::from(view.payload_len());
            if view.version() != 6 || view.payload_len() == 0 || total_len > wire_len {
                return false;
            }
            let above = Extent::within(data, offset, Ipv6View::LEN, total_len);
            decoded.ip = Some(ipv6_value(view, offset, total_len, above));
            (Ipv6View::LEN, above, Layer::Ipv6, view.next_header())
        }
        _ => return false,
    };
    transport(decoded, data, header_len, above, (layers.with(layer), number))
}

/// Decodes what follows an IP header of a length, at the begin of `data`.
#[inline(always)]
fn transport(
    decoded: &mut Decoded,
    data: &[u8],
    header_len: usize,
    payload: Extent,
    (layers, number): (Layers, u8),
) -> bool {
    let Some(bytes) = data.get(header_len..header_len + payload.captured) else { return false };
    match number {
        protocol::TCP => {
            let Some(view) = TcpView::parse(bytes) else { return false };
            let Some(options) = view.options() else { return false };
            decoded.layers = layers.with(Layer::Tcp);
            whole_tcp(decoded, view, options, payload);
        }
        protocol::UDP => {
            let Some(view) = UdpView::parse(bytes) else { return false };
            decoded.layers = layers.with(Layer::Udp);
            decoded.transport = Transport::Udp(udp_value(view, payload));
        }
        _ => return false,
    }
    true
}
