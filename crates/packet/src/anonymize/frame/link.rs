//! Link layers: MAC addresses, ARP, and what captures put before a packet.

use super::{Cut, PacketAnonymizer, Reach, be16, blank};
use crate::LinkType;
use crate::decode::{self, Decoded, Layer, Next};
use crate::wire::arp::ArpView;
use crate::wire::ethernet::{EthernetView, ethertype};

/// The steps of a walk through link headers, of which few are many: more than these are cut.
const MAX_STEPS: usize = 32;

/// The steps of a walk, and how many.
struct Steps([Option<Next>; MAX_STEPS], usize);

impl Steps {
    const fn new() -> Self {
        Self([None; MAX_STEPS], 0)
    }

    fn push(&mut self, step: Next) {
        if let Some(place) = self.0.get_mut(self.1) {
            *place = Some(step);
        }
        self.1 += 1;
    }
}

impl PacketAnonymizer {
    /// Changes a packet from its first header on.
    pub(super) fn link(&mut self, link_type: LinkType, data: &mut [u8], wire_len: u32) -> Reach {
        let mut steps = Steps::new();
        let decoded = decode::packet_told(link_type, data, wire_len, |step| steps.push(step));
        match link_type {
            LinkType::LINUX_SLL => self.cooked(data, 6, be16(data, 4)),
            LinkType::LINUX_SLL2 => {
                self.cooked(data, 12, data.get(11).map(|len| u16::from(*len)));
            }
            LinkType::NFLOG => nflog(data),
            _ => {}
        }
        self.steps(data, &decoded, &steps, 0)
    }

    /// Changes an Ethernet frame inside a tunnel.
    pub(super) fn ethernet(&mut self, data: &mut [u8], at: usize, end: usize, depth: u8) -> Reach {
        let mut steps = Steps::new();
        let (inside, wire_len) = (data.get(..end).unwrap_or(data), end as u32);
        let decoded = decode::ethernet_told(inside, at as u32, wire_len, |step| steps.push(step));
        self.steps(data, &decoded, &steps, depth)
    }

    fn steps(&mut self, data: &mut [u8], decoded: &Decoded, steps: &Steps, depth: u8) -> Reach {
        let mut end = 0;
        let mut layer = Layer::Ethernet;
        let (mut is_arp, mut wlan) = (false, None);
        for step in steps.0.iter().flatten() {
            match *step {
                Next::Ethernet(at) => {
                    self.mac(data, at);
                    self.mac(data, at + 6);
                    (end, layer) = (at + EthernetView::LEN, Layer::Ethernet);
                }
                Next::EtherType(kind, at) => {
                    end = at;
                    is_arp = matches!(kind, ethertype::ARP | ethertype::RARP);
                }
                Next::Wlan(at) => {
                    (end, layer) = (self.wlan(data, at), Layer::Wlan);
                    wlan = Some((at, end));
                }
                Next::Llc(at, _) => {
                    if let Some((frame, header_end)) = wlan.take()
                        && is_aggregate(data, frame, header_end)
                    {
                        // Destination, source and length of the first frame in it.
                        self.mac(data, at.saturating_sub(14));
                        self.mac(data, at.saturating_sub(8));
                    }
                    (end, layer) = (at + llc_len(data, at), Layer::Llc);
                }
                Next::Mpls(at) => (end, layer) = (at + 4, Layer::Mpls),
                Next::Ppp(at) => (end, layer) = (at + ppp_len(data, at), Layer::Ppp),
                Next::Ip(at) => end = at,
                Next::Other | Next::End => {}
            }
        }
        if steps.1 > MAX_STEPS {
            return Reach::Until(end, Cut::Unknown(layer));
        }
        match decoded.ip {
            Some(ip) => self.datagram(data, decoded, &ip, depth),
            None if is_arp => self.arp(data, end),
            None => Reach::Until(end, Cut::Unknown(layer)),
        }
    }

    /// ARP for IPv4 over anything with MAC addresses (RFC 826); padding behind it is blanked.
    fn arp(&mut self, data: &mut [u8], at: usize) -> Reach {
        const MAC_AND_IPV4: (Option<u16>, Option<u16>) = (Some(0x0800), Some(0x0604));
        let body = at + ArpView::MIN_LEN;
        let end = body + 20;
        if (be16(data, at + 2), be16(data, at + 4)) != MAC_AND_IPV4 || data.len() < end {
            return Reach::Until(body, Cut::Unknown(Layer::Arp));
        }
        for at in [body, body + 10] {
            self.mac(data, at);
            self.v4(data, at + 6);
        }
        blank(data, end, data.len());
        Reach::Whole
    }

    /// The addresses of an IEEE 802.11 header, and where it ends. What is not a plain data frame tells
    /// nothing else.
    fn wlan(&self, data: &mut [u8], at: usize) -> usize {
        const MIN_LEN: usize = 24;
        let both_ways = data.get(at + 1).is_some_and(|flags| flags & 3 == 3);
        for offset in [4, 10, 16] {
            self.mac(data, at + offset);
        }
        if both_ways {
            self.mac(data, at + MIN_LEN);
        }
        at + MIN_LEN + if both_ways { 6 } else { 0 }
    }

    /// The address in a header of a Linux cooked capture: 8 bytes, of which `len` count.
    fn cooked(&self, data: &mut [u8], at: usize, len: Option<u16>) {
        if len == Some(6) {
            self.mac(data, at);
            blank(data, at + 6, at + 8);
        } else {
            blank(data, at, at + 8);
        }
    }
}

/// Length of the header of IEEE 802.2, with that of SNAP; of Novell's raw frames none.
fn llc_len(data: &[u8], at: usize) -> usize {
    match data.get(at..) {
        Some([0xff, 0xff, ..]) => 0,
        Some([0xaa, 0xaa, 3, ..]) => 8,
        _ => 3,
    }
}

/// Length of address, control and protocol field of PPP, each of which may be shorter (RFC 1661, 6.5
/// and 6.6).
fn ppp_len(data: &[u8], at: usize) -> usize {
    let start = if be16(data, at) == Some(0xff03) { 2 } else { 0 };
    start + if data.get(at + start).is_some_and(|low| low & 1 != 0) { 1 } else { 2 }
}

/// Whether the IEEE 802.11 frame at an offset, whose addresses end at another, has frames in it, as the
/// QoS control field says that follows.
fn is_aggregate(data: &[u8], at: usize, header_end: usize) -> bool {
    let bit = |at: usize| data.get(at).is_some_and(|byte| byte & 0x80 != 0);
    bit(at) && bit(header_end)
}

/// The fields of a netfilter log before the packet, which have MAC addresses, users and prefixes of
/// rules in them: only their lengths and types stay.
fn nflog(data: &mut [u8]) {
    const PAYLOAD: u8 = 9;
    let mut at = 4;
    while let Some(&[a, b, c, d]) = data.get(at..).and_then(|data| data.first_chunk()) {
        let (len, kind) =
            if d == 0 { (u16::from_le_bytes([a, b]), c) } else { (u16::from_be_bytes([a, b]), d) };
        if kind == PAYLOAD || len < 4 {
            return;
        }
        let next = at + usize::from(len).next_multiple_of(4);
        blank(data, at + 4, next);
        at = next;
    }
}
