//! Link layers up to the IP header.

use super::walk::Frame;
use super::{Decoded, Layer, network};
use crate::LinkType;
use crate::wire::ethernet::{EthernetView, ethertype};
use crate::wire::vlan::VlanView;

/// What comes next in a walk, and at which offset.
#[derive(Clone, Copy)]
pub(super) enum Next {
    /// An Ethernet frame.
    Ethernet(usize),
    /// What an EtherType tells.
    EtherType(u16, usize),
    /// IP of the version that its first nibble tells.
    Ip(usize),
    /// Nothing: the walk has ended.
    End,
}

pub(super) const fn supported(link_type: LinkType) -> bool {
    matches!(link_type, LinkType::ETHERNET | LinkType::RAW | LinkType::IPV4 | LinkType::IPV6)
}

/// Walks from the first header of a packet.
pub(super) fn walk(decoded: &mut Decoded, frame: Frame<'_>, link_type: LinkType) {
    let next = match link_type {
        LinkType::ETHERNET => Next::Ethernet(0),
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 => Next::Ip(0),
        _ => Next::End,
    };
    run(decoded, frame, next);
}

/// Walks from an Ethernet header.
pub(super) fn ethernet(decoded: &mut Decoded, frame: Frame<'_>, offset: usize) {
    run(decoded, frame, Next::Ethernet(offset));
}

/// Every step moves the offset on, so that the data bound the number of steps.
fn run(decoded: &mut Decoded, frame: Frame<'_>, mut next: Next) {
    loop {
        next = match next {
            Next::Ethernet(offset) => ethernet_header(decoded, frame, offset),
            Next::EtherType(kind, offset) => ether_type(decoded, frame, kind, offset),
            Next::Ip(offset) => return network::ip(decoded, frame, offset),
            Next::End => return,
        };
    }
}

fn ethernet_header(decoded: &mut Decoded, frame: Frame<'_>, offset: usize) -> Next {
    decoded.layers.insert(Layer::Ethernet);
    let Some(view) = EthernetView::parse(frame.from(offset)) else {
        let weird = "truncated_ethernet_frame";
        decoded.stop = Some(frame.short(weird, Layer::Ethernet, offset, EthernetView::LEN));
        return Next::End;
    };
    Next::EtherType(view.ethertype(), offset + EthernetView::LEN)
}

fn ether_type(decoded: &mut Decoded, frame: Frame<'_>, kind: u16, offset: usize) -> Next {
    match kind {
        ethertype::IPV4 | ethertype::IPV6 => Next::Ip(offset),
        ethertype::VLAN | ethertype::SERVICE_VLAN | ethertype::QINQ => vlan(decoded, frame, offset),
        _ => {
            decoded.layers.insert(Layer::OtherNetwork);
            Next::End
        }
    }
}

fn vlan(decoded: &mut Decoded, frame: Frame<'_>, offset: usize) -> Next {
    decoded.layers.insert(Layer::Vlan);
    let Some(view) = VlanView::parse(frame.from(offset)) else {
        decoded.stop =
            Some(frame.short("truncated_VLAN_frame", Layer::Vlan, offset, VlanView::LEN));
        return Next::End;
    };
    if decoded.vlan.is_none() {
        decoded.vlan = Some(view.id());
    } else if decoded.inner_vlan.is_none() {
        decoded.inner_vlan = Some(view.id());
    }
    Next::EtherType(view.ethertype(), offset + VlanView::LEN)
}
