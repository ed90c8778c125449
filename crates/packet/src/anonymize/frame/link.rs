//! Link layers: MAC addresses, ARP, and what captures put before a packet.

use super::{Cut, PacketAnonymizer, Reach, be16, blank, radiotap};
use crate::LinkType;
use crate::decode::{self, Decoded, FABRIC_PATH_LEN, Layer, Next};
use crate::wire::arp::ArpView;
use crate::wire::ethernet::{EthernetView, ethertype};
use crate::wire::llc::{LlcView, SnapView};
use crate::wire::pppoe::PppoeView;
use crate::wire::vlan::VlanView;

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

/// How far headers were changed, one behind the other from the first byte on.
///
/// What lies between the end of one and the begin of the next was looked at by nobody, and may be an
/// address: nothing is told from there on.
struct Visited {
    /// Where the last header ends that was changed.
    end: usize,
    layer: Layer,
    has_hole: bool,
}

impl Visited {
    const fn until(end: usize) -> Self {
        Self { end, layer: Layer::Ethernet, has_hole: false }
    }

    /// A header begins at an offset. Returns whether all before it was changed.
    const fn begins(&mut self, at: usize) -> bool {
        self.has_hole |= at > self.end;
        !self.has_hole
    }

    const fn ends(&mut self, end: usize, layer: Layer) {
        (self.end, self.layer) = (end, layer);
    }

    const fn reach(&self) -> Reach {
        Reach::Until(self.end, Cut::Unknown(self.layer))
    }
}

impl PacketAnonymizer {
    /// Changes a packet from its first header on.
    pub(super) fn link(&mut self, link_type: LinkType, data: &mut [u8], wire_len: u32) -> Reach {
        let mut steps = Steps::new();
        let decoded = decode::packet_traced(link_type, data, wire_len, |step| steps.push(step));
        // Of a link type whose own header is not known here, nothing behind it is told.
        let end = match link_type {
            LinkType::LINUX_SLL => self.cooked(data, 6, be16(data, 4), 16),
            LinkType::LINUX_SLL2 => {
                self.cooked(data, 12, data.get(11).map(|len| u16::from(*len)), 20)
            }
            LinkType::NFLOG => nflog(data),
            LinkType::NULL | LinkType::LOOP => 4,
            LinkType::IEEE802_11_RADIOTAP => radiotap::fields(data),
            _ => 0,
        };
        self.steps(data, &decoded, &steps, Visited::until(end), 0)
    }

    /// Changes what stands at a step of the link layer inside a tunnel, from `at` on: a frame, or labels and what
    /// they carry.
    pub(super) fn inside(
        &mut self,
        data: &mut [u8],
        next: fn(usize) -> Next,
        at: usize,
        end: usize,
        depth: u8,
    ) -> Reach {
        let mut steps = Steps::new();
        let inside = data.get(..end).unwrap_or(data);
        let decoded = decode::traced_from(next(at), inside, end as u32, |step| steps.push(step));
        self.steps(data, &decoded, &steps, Visited::until(at), depth)
    }

    fn steps(
        &mut self,
        data: &mut [u8],
        decoded: &Decoded,
        steps: &Steps,
        mut visited: Visited,
        depth: u8,
    ) -> Reach {
        let (mut is_arp, mut mpls_end) = (false, None);
        for step in steps.0.iter().flatten() {
            let Some(at) = begin(*step) else { break };
            if mpls_end.take() == Some(visited.end) && at == visited.end + CONTROL_WORD {
                // The control word of a pseudo-wire (RFC 4385) has no address.
                visited.end = at;
            }
            if !visited.begins(at) {
                return visited.reach();
            }
            is_arp = false;
            match *step {
                Next::Ethernet(at) => {
                    let len = self.ethernet_header(data, at);
                    visited.ends(at + len, Layer::Ethernet);
                }
                Next::EtherType(kind, at) => {
                    is_arp = matches!(kind, ethertype::ARP | ethertype::RARP);
                    let len = self.tag(data, kind, at);
                    visited.ends(at + len, visited.layer);
                }
                Next::Wlan(at, is_padded) => {
                    visited.ends(self.wlan(data, at, is_padded), Layer::Wlan);
                }
                Next::Llc(at, end) => {
                    let inside = data.get(..end).unwrap_or(data);
                    visited.ends(at + llc_len(inside, at), Layer::Llc);
                }
                Next::Mpls(at) => {
                    visited.ends(at + 4, Layer::Mpls);
                    mpls_end = Some(visited.end);
                }
                Next::Ppp(at) => visited.ends(at + ppp_len(data, at), Layer::Ppp),
                Next::Ip(_) | Next::Other | Next::End => {}
            }
        }
        if steps.1 > MAX_STEPS {
            return visited.reach();
        }
        match decoded.ip {
            Some(ip) if visited.begins(ip.offset as usize) => {
                self.datagram(data, decoded, &ip, depth)
            }
            None if is_arp => self.arp(data, visited.end),
            _ => visited.reach(),
        }
    }

    /// The addresses of an Ethernet header. Returns its length, with the tag of FabricPath.
    fn ethernet_header(&self, data: &mut [u8], at: usize) -> usize {
        self.mac(data, at);
        self.sender_mac(data, at + 6);
        match be16(data, at + 12) {
            Some(ethertype::FABRIC_PATH) => FABRIC_PATH_LEN,
            _ => EthernetView::LEN,
        }
    }

    /// Changes the header that an EtherType announces, where it is one that stands before another.
    /// Returns its length; what is not known has none.
    fn tag(&self, data: &mut [u8], kind: u16, at: usize) -> usize {
        /// Tag, short length and packet number, before the channel.
        const MACSEC_CHANNEL: usize = 6;
        const PPPOE_VERSION_AND_TYPE: u8 = 0x11;
        let tag = data.get(at..).and_then(|data| decode::tag_len(kind, data));
        match kind {
            ethertype::VLAN | ethertype::SERVICE_VLAN | ethertype::QINQ => VlanView::LEN,
            // Of another version nobody knows what the header holds (RFC 2516, 4).
            ethertype::PPPOE_SESSION if data.get(at) != Some(&PPPOE_VERSION_AND_TYPE) => 0,
            ethertype::PPPOE_SESSION => PppoeView::LEN,
            // Likewise (IEEE 802.1AE, 9.5).
            ethertype::MACSEC if data.get(at).is_none_or(|first| first & 0x80 != 0) => 0,
            ethertype::MACSEC => {
                let len = tag.unwrap_or_default();
                if len >= MACSEC_CHANNEL + 8 {
                    self.sender_mac(data, at + MACSEC_CHANNEL);
                }
                len
            }
            // Likewise (RFC 8300, 2.2).
            ethertype::NSH if data.get(at).is_none_or(|first| first >> 6 != 0) => 0,
            ethertype::NSH => {
                let len = tag.unwrap_or_default();
                // Metadata behind the path may be anything.
                blank(data, at + 8, at + len);
                len
            }
            _ => tag.unwrap_or_default(),
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
        self.sender_mac(data, body);
        self.v4(data, body + 6);
        // Whoever asks may have filled it with that of all.
        self.mac(data, body + 10);
        self.v4(data, body + 16);
        blank(data, end, data.len());
        Reach::Whole
    }

    /// The addresses of an IEEE 802.11 header, and where it ends. Of what is not a data frame only the
    /// part that all frames have is told; of an aggregate, the header of its first frame as well.
    fn wlan(&self, data: &mut [u8], at: usize, is_padded: bool) -> usize {
        const MIN_LEN: usize = 24;
        const RECEIVER: usize = 4;
        const TRANSMITTER: usize = 10;
        const THIRD: usize = 16;
        const TYPE: u8 = 0x0c;
        const CONTROL: u8 = 0x04;
        const DATA: u8 = 0x08;
        const EXTENSION: u8 = 0x0c;
        const NULL: u8 = 0x40;
        const QOS: u8 = 0x80;
        const PROTECTED: u8 = 0x40;
        const ORDER: u8 = 0x80;
        let Some(&[control, flags, ..]) = data.get(at..) else { return at };
        self.mac(data, at + RECEIVER);
        if matches!(control & TYPE, CONTROL | EXTENSION) {
            // Who sends is told by some; a check sequence follows that of the others.
            return at + RECEIVER + 6;
        }
        self.sender_mac(data, at + TRANSMITTER);
        // From the access point alone, the third one is who sent the frame.
        if flags & 3 == 2 && control & TYPE == DATA {
            self.sender_mac(data, at + THIRD);
        } else {
            self.mac(data, at + THIRD);
        }
        let mut len = MIN_LEN;
        if control & TYPE != DATA {
            return at + len;
        }
        if flags & 3 == 3 {
            self.sender_mac(data, at + len);
            len += 6;
        }
        let mut is_aggregate = false;
        if control & QOS != 0 {
            // Without data, or encrypted, there is no frame in it.
            is_aggregate = control & NULL == 0
                && flags & PROTECTED == 0
                && data.get(at + len).is_some_and(|byte| byte & 0x80 != 0);
            len += if flags & ORDER == 0 { 2 } else { 6 };
        }
        if is_padded {
            let padded = len.next_multiple_of(4);
            blank(data, at + len, at + padded);
            len = padded;
        }
        if is_aggregate {
            self.mac(data, at + len);
            self.sender_mac(data, at + len + 6);
            len += EthernetView::LEN;
        }
        at + len
    }

    /// The address in a header of a Linux cooked capture: 8 bytes, of which `len` count. Returns the
    /// header's length.
    fn cooked(&self, data: &mut [u8], at: usize, len: Option<u16>, header_len: usize) -> usize {
        if len == Some(6) {
            self.sender_mac(data, at);
            blank(data, at + 6, at + 8);
        } else {
            blank(data, at, at + 8);
        }
        header_len
    }
}

/// Length of the control word that may stand behind MPLS labels.
const CONTROL_WORD: usize = 4;

/// Where a step begins; those that end a walk begin nowhere.
const fn begin(step: Next) -> Option<usize> {
    match step {
        Next::Ethernet(at)
        | Next::EtherType(_, at)
        | Next::Llc(at, _)
        | Next::Mpls(at)
        | Next::Ppp(at)
        | Next::Wlan(at, _)
        | Next::Ip(at) => Some(at),
        Next::Other | Next::End => None,
    }
}

/// Length of the header of IEEE 802.2, with that of SNAP; of Novell's raw frames none.
fn llc_len(data: &[u8], at: usize) -> usize {
    match data.get(at..) {
        Some([0xff, 0xff, ..]) | None => 0,
        Some(rest) => match LlcView::parse(rest) {
            Some(view) if view.is_snap() => view.header_len() + SnapView::LEN,
            Some(view) => view.header_len(),
            None => 0,
        },
    }
}

/// Length of address, control and protocol field of PPP, each of which may be shorter (RFC 1661, 6.5
/// and 6.6).
fn ppp_len(data: &[u8], at: usize) -> usize {
    let start = match data.get(at..) {
        Some([0xff, 0x03, ..]) => 2,
        // Cisco's HDLC: an address, a zero byte and an EtherType.
        Some([0x0f | 0x8f, 0, ..]) => return 4,
        _ => 0,
    };
    start + if data.get(at + start).is_some_and(|low| low & 1 != 0) { 1 } else { 2 }
}

/// The fields of a netfilter log before the packet, which have MAC addresses, users and prefixes of
/// rules in them: only their lengths and types stay. Returns where the packet begins.
fn nflog(data: &mut [u8]) -> usize {
    const PAYLOAD: u8 = 9;
    /// The last type that there is, of Linux 6: the header of the link layer.
    const LAST: u8 = 20;
    let mut at = 4;
    while let Some(&[a, b, c, d]) = data.get(at..).and_then(|data| data.first_chunk()) {
        let (len, kind) =
            if d == 0 { (u16::from_le_bytes([a, b]), c) } else { (u16::from_be_bytes([a, b]), d) };
        if kind == PAYLOAD {
            return at + 4;
        }
        if len < 4 || kind > LAST {
            break;
        }
        let next = at + usize::from(len).next_multiple_of(4);
        blank(data, at + 4, next);
        at = next;
    }
    at.min(data.len())
}
