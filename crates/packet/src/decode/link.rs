//! Link layers up to the IP header.

use super::walk::Frame;
use super::{Decoded, Layer, Oddity, cooked, network, tag, wlan};
use crate::LinkType;
use crate::wire::arp::ArpView;
use crate::wire::ethernet::{EthernetView, ethertype};
use crate::wire::ipv4::Ipv4View;
use crate::wire::llc::{LlcView, SnapView};
use crate::wire::mpls::MplsView;
use crate::wire::pppoe::{PppoeView, ppp_protocol};
use crate::wire::vlan::VlanView;

/// Length of the header of Cisco FabricPath: addresses, EtherType and a tag.
pub(crate) const FABRIC_PATH_LEN: usize = 16;
/// The greatest payload of an IEEE 802.3 frame, and so the greatest value of its length field.
const MAX_LENGTH_FIELD: u16 = 1500;

/// What comes next in a walk, and at which offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// An Ethernet frame.
    Ethernet(usize),
    /// What an EtherType tells.
    EtherType(u16, usize),
    /// IEEE 802.2, up to where the length field of the frame says that it ends.
    Llc(usize, usize),
    /// An MPLS label.
    Mpls(usize),
    /// A PPP frame, with or without address and control field.
    Ppp(usize),
    /// IEEE 802.11, with its header padded to a whole number of words or not.
    Wlan(usize, bool),
    /// IP of the version that its first nibble tells.
    Ip(usize),
    /// A protocol that is not decoded.
    Other,
    /// Nothing: the walk has ended.
    End,
}

pub(super) const fn supported(link_type: LinkType) -> bool {
    !matches!(start(link_type), Start::Unsupported)
}

/// How the walk of a link type begins.
enum Start {
    At(Next),
    Header(fn(&mut Decoded, Frame<'_>, usize) -> Next),
    Unsupported,
}

const fn start(link_type: LinkType) -> Start {
    match link_type {
        LinkType::ETHERNET => Start::At(Next::Ethernet(0)),
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 => Start::At(Next::Ip(0)),
        LinkType::PPP | LinkType::PPP_HDLC => Start::At(Next::Ppp(0)),
        LinkType::PPP_ETHER => Start::At(Next::EtherType(ethertype::PPPOE_SESSION, 0)),
        LinkType::IEEE802_11 => Start::At(Next::Wlan(0, false)),
        LinkType::IEEE802_11_RADIOTAP => Start::Header(wlan::radiotap),
        LinkType::LINUX_SLL => Start::Header(cooked::version_1),
        LinkType::LINUX_SLL2 => Start::Header(cooked::version_2),
        LinkType::NULL | LinkType::LOOP => Start::Header(cooked::loopback),
        LinkType::NFLOG => Start::Header(cooked::nflog),
        _ => Start::Unsupported,
    }
}

/// Walks from the first header of a packet.
pub(super) fn walk(decoded: &mut Decoded, frame: Frame<'_>, link_type: LinkType) {
    walk_traced(decoded, frame, link_type, |_| {});
}

/// As [`walk`], and tells each step before it is taken.
pub(super) fn walk_traced(
    decoded: &mut Decoded,
    frame: Frame<'_>,
    link_type: LinkType,
    emit: impl FnMut(Next),
) {
    let next = match start(link_type) {
        Start::At(next) => next,
        Start::Header(read) => read(decoded, frame, 0),
        Start::Unsupported => return,
    };
    run(decoded, frame, next, emit);
}

/// Walks on from a step, and tells each one before it is taken. Every step but those that end moves the offset on, so
/// that the data bound their number.
pub(super) fn run(
    decoded: &mut Decoded,
    mut frame: Frame<'_>,
    mut next: Next,
    mut emit: impl FnMut(Next),
) {
    loop {
        emit(next);
        next = match next {
            Next::Ethernet(offset) => ethernet_header(decoded, frame, offset),
            Next::EtherType(kind, offset) => ether_type(decoded, frame, kind, offset),
            Next::Llc(offset, end) => {
                frame = frame.until(end);
                llc(decoded, frame, offset)
            }
            Next::Mpls(offset) => mpls(decoded, frame, offset),
            Next::Ppp(offset) => ppp(decoded, frame, offset),
            Next::Wlan(offset, is_padded) => wlan::frame(decoded, frame, offset, is_padded),
            Next::Ip(offset) => return network::ip(decoded, frame, offset),
            Next::Other => return decoded.layers.insert(Layer::OtherNetwork),
            Next::End => return,
        };
    }
}

/// Ends the walk at a header that needs more bytes than there are.
#[cold]
pub(super) fn cut(
    decoded: &mut Decoded,
    frame: Frame<'_>,
    weird: &'static str,
    layer: Layer,
    (offset, needed): (usize, usize),
) -> Next {
    decoded.stop = Some(frame.short(weird, layer, offset, needed));
    Next::End
}

/// Ends the walk at a header whose content is at fault.
#[cold]
pub(super) fn bad(
    decoded: &mut Decoded,
    frame: Frame<'_>,
    weird: &'static str,
    layer: Layer,
    offset: usize,
) -> Next {
    decoded.stop = Some(frame.bad(weird, layer, offset));
    Next::End
}

fn ethernet_header(decoded: &mut Decoded, frame: Frame<'_>, offset: usize) -> Next {
    const LEN: usize = EthernetView::LEN;
    decoded.layers.insert(Layer::Ethernet);
    let Some(view) = EthernetView::parse(frame.from(offset)) else {
        return cut(decoded, frame, "truncated_ethernet_frame", Layer::Ethernet, (offset, LEN));
    };
    match view.ethertype() {
        ethertype::FABRIC_PATH => Next::Ethernet(offset + FABRIC_PATH_LEN),
        length @ 0..=MAX_LENGTH_FIELD => {
            let length = usize::from(length);
            if frame.wire_from(offset + LEN) < length {
                let weird = "truncated_ethernet_frame";
                return cut(decoded, frame, weird, Layer::Ethernet, (offset, LEN + length));
            }
            Next::Llc(offset + LEN, offset + LEN + length)
        }
        kind if kind < ethertype::LEAST => {
            bad(decoded, frame, "undefined_ether_type", Layer::Ethernet, offset)
        }
        kind => Next::EtherType(kind, offset + LEN),
    }
}

fn ether_type(decoded: &mut Decoded, frame: Frame<'_>, kind: u16, offset: usize) -> Next {
    match kind {
        ethertype::IPV4 | ethertype::IPV6 => Next::Ip(offset),
        ethertype::VLAN | ethertype::SERVICE_VLAN | ethertype::QINQ => vlan(decoded, frame, offset),
        ethertype::MPLS | ethertype::MPLS_MULTICAST => Next::Mpls(offset),
        ethertype::PPPOE_SESSION => pppoe(decoded, frame, offset),
        ethertype::PPPOE_DISCOVERY => {
            decoded.layers.insert(Layer::PppoeDiscovery);
            Next::End
        }
        ethertype::ARP | ethertype::RARP => arp(decoded, frame, offset),
        ethertype::BRIDGING => Next::Ethernet(offset),
        _ => tag::follow(decoded, frame, kind, offset),
    }
}

fn vlan(decoded: &mut Decoded, frame: Frame<'_>, offset: usize) -> Next {
    const LEN: usize = VlanView::LEN;
    decoded.layers.insert(Layer::Vlan);
    let Some(view) = VlanView::parse(frame.from(offset)) else {
        return cut(decoded, frame, "truncated_VLAN_header", Layer::Vlan, (offset, LEN));
    };
    if decoded.vlan.is_none() {
        decoded.vlan = Some(view.id());
    } else if decoded.inner_vlan.is_none() {
        decoded.inner_vlan = Some(view.id());
    }
    match view.ethertype() {
        length @ 0..=MAX_LENGTH_FIELD => {
            Next::Llc(offset + LEN, offset + LEN + usize::from(length))
        }
        kind if kind < ethertype::LEAST => {
            bad(decoded, frame, "undefined_vlan_protocol", Layer::Vlan, offset)
        }
        kind => Next::EtherType(kind, offset + LEN),
    }
}

fn llc(decoded: &mut Decoded, frame: Frame<'_>, offset: usize) -> Next {
    decoded.layers.insert(Layer::Llc);
    let data = frame.from(offset);
    if data.starts_with(&[0xff, 0xff]) {
        // Novell's raw frames have no LLC header: IPX follows at once.
        return Next::Other;
    }
    let Some(view) = LlcView::parse(data) else {
        let weird = "truncated_llc_header";
        return cut(decoded, frame, weird, Layer::Llc, (offset, LlcView::LEN));
    };
    if !view.is_snap() {
        const IP: u8 = 0x06;
        let is_ip = view.destination() == IP && view.source() == IP;
        return if is_ip { Next::Ip(offset + view.header_len()) } else { Next::Other };
    }
    let snap = offset + view.header_len();
    let Some(view) = SnapView::parse(frame.from(snap)) else {
        return cut(decoded, frame, "truncated_snap_header", Layer::Llc, (snap, SnapView::LEN));
    };
    match view.organisation() {
        // EtherTypes, also as IEEE 802.1H tunnels them.
        0 | 0xf8 => Next::EtherType(view.protocol(), snap + SnapView::LEN),
        _ => Next::Other,
    }
}

fn arp(decoded: &mut Decoded, frame: Frame<'_>, offset: usize) -> Next {
    decoded.layers.insert(Layer::Arp);
    let data = frame.from(offset);
    let needed = ArpView::parse(data).map_or(ArpView::MIN_LEN, ArpView::packet_len);
    if data.len() < needed {
        return cut(decoded, frame, "truncated_ARP", Layer::Arp, (offset, needed));
    }
    Next::End
}

fn mpls(decoded: &mut Decoded, frame: Frame<'_>, offset: usize) -> Next {
    decoded.layers.insert(Layer::Mpls);
    let Some(view) = MplsView::parse(frame.from(offset)) else {
        let weird = "truncated_link_header";
        return cut(decoded, frame, weird, Layer::Mpls, (offset, MplsView::LEN));
    };
    let above = offset + MplsView::LEN;
    if view.bottom_of_stack() { above_mpls(frame, above) } else { Next::Mpls(above) }
}

/// Nothing in a label says what it carries; the first nibble tells IP from a pseudo-wire's control
/// word (RFC 4385), and an Ethernet pseudo-wire without one is told by its EtherType.
fn above_mpls(frame: Frame<'_>, offset: usize) -> Next {
    const CONTROL_WORD: usize = 4;
    let data = frame.from(offset);
    match data.first().map(|byte| byte >> 4) {
        Some(4) if is_ipv4(frame, offset) => Next::Ip(offset),
        Some(6) => Next::Ip(offset),
        Some(0) if is_ethernet(frame.from(offset + CONTROL_WORD)) => {
            Next::Ethernet(offset + CONTROL_WORD)
        }
        Some(1) => Next::Other,
        _ if is_ethernet(data) => Next::Ethernet(offset),
        Some(4) | None => Next::Ip(offset),
        _ => Next::Other,
    }
}

/// Whether an IPv4 header at `offset` agrees with itself and with the length of the frame.
fn is_ipv4(frame: Frame<'_>, offset: usize) -> bool {
    Ipv4View::parse(frame.from(offset)).is_some_and(|view| {
        let total_len = usize::from(view.total_len());
        view.header_len() >= Ipv4View::LEN
            && (total_len == 0 || total_len >= view.header_len())
            && total_len <= frame.wire_from(offset)
    })
}

/// Whether bytes look like an Ethernet frame: its EtherType is one that is decoded here, or its
/// length field fits.
pub(super) fn is_ethernet(data: &[u8]) -> bool {
    EthernetView::parse(data).is_some_and(|view| match view.ethertype() {
        ethertype::IPV4
        | ethertype::IPV6
        | ethertype::ARP
        | ethertype::VLAN
        | ethertype::SERVICE_VLAN
        | ethertype::QINQ
        | ethertype::MPLS
        | ethertype::MPLS_MULTICAST
        | ethertype::SERVICE_INSTANCE
        | ethertype::NSH
        | ethertype::PPPOE_DISCOVERY
        | ethertype::PPPOE_SESSION => true,
        length => {
            let rest = data.len() - EthernetView::LEN;
            (3..=MAX_LENGTH_FIELD).contains(&length) && usize::from(length) <= rest
        }
    })
}

fn pppoe(decoded: &mut Decoded, frame: Frame<'_>, offset: usize) -> Next {
    const LEN: usize = PppoeView::LEN;
    decoded.layers.insert(Layer::Pppoe);
    let Some(view) = PppoeView::parse(frame.from(offset)) else {
        return cut(decoded, frame, "truncated_pppoe_header", Layer::Pppoe, (offset, LEN));
    };
    if frame.wire_from(offset + LEN) > usize::from(view.payload_len()) {
        decoded.oddities.insert(Oddity::PppoeExtraData);
    }
    Next::Ppp(offset + LEN)
}

/// Address and control field may be left out, and the upper byte of the protocol (RFC 1661, 6.5
/// and 6.6).
fn ppp(decoded: &mut Decoded, frame: Frame<'_>, offset: usize) -> Next {
    decoded.layers.insert(Layer::Ppp);
    let data = frame.from(offset);
    let start = match data {
        [0xff, 0x03, ..] => 2,
        // Cisco's HDLC: an address, a zero byte and an EtherType.
        &[0x0f | 0x8f, 0, a, b, ..] => {
            return Next::EtherType(u16::from_be_bytes([a, b]), offset + 4);
        }
        _ => 0,
    };
    let (number, len) = match data.get(start..) {
        Some(&[low, ..]) if low & 1 != 0 => (u16::from(low), 1),
        Some(&[high, low, ..]) => (u16::from_be_bytes([high, low]), 2),
        _ => return cut(decoded, frame, "truncated_ppp_header", Layer::Ppp, (offset, start + 2)),
    };
    let above = offset + start + len;
    match number {
        ppp_protocol::IPV4 | ppp_protocol::IPV6 => Next::Ip(above),
        ppp_protocol::MPLS => Next::Mpls(above),
        _ => Next::Other,
    }
}
