//! IP headers with what follows them, and the checksums that cover both.

use core::ops::Range;

use super::mend::{add, addresses, mend, mend_partial, mend_udp, sum};
use super::{Cut, PacketAnonymizer, Reach, be16, blank};
use crate::checksum::{self, ChecksumVerdict};
use crate::decode::{self, Decoded, Ip, Layer, TunnelPorts};
use crate::wire::ipv4::{Ipv4View, protocol};
use crate::wire::ipv4_option::kind as ipv4_option;
use crate::wire::ipv6::Ipv6View;
use crate::wire::tcp::TcpView;
use crate::wire::udp::UdpView;

/// What follows an IP header.
#[derive(Clone, Copy, Debug)]
pub(super) struct UpperLayer {
    /// Protocol number.
    pub(super) protocol: u8,
    /// Offset of the first byte.
    pub(super) start: usize,
    /// Offset behind the last one that was captured.
    pub(super) end: usize,
    /// Whether the datagram is in pieces.
    pub(super) is_fragment: bool,
    /// How many tunnels are around.
    pub(super) depth: u8,
}

impl UpperLayer {
    /// What the checksum covers: UDP says so itself.
    fn covered(&self, data: &[u8]) -> Range<usize> {
        let len = be16(data, self.start + 4).map_or(0, usize::from);
        let is_udp = self.protocol == protocol::UDP && len >= UdpView::LEN;
        let end = if is_udp { self.end.min(self.start + len) } else { self.end };
        self.start..end
    }
}

impl PacketAnonymizer {
    /// Changes the datagram that was decoded from `data`, and blanks what follows it.
    pub(super) fn datagram(
        &mut self,
        data: &mut [u8],
        decoded: &Decoded,
        ip: &Ip,
        depth: u8,
    ) -> Reach {
        let start = ip.payload_offset as usize;
        let end = start.saturating_add(ip.payload_captured as usize).min(data.len());
        let is_whole = decoded.stop.is_none() && ip.fragment.is_none();
        let is_partial = is_whole && checksum::transport(decoded, data) == ChecksumVerdict::Partial;
        let is_first = ip.fragment.is_none_or(|fragment| fragment.offset == 0);
        let above = UpperLayer {
            protocol: ip.protocol,
            start: start.min(end),
            end,
            is_fragment: ip.fragment.is_some(),
            depth,
        };
        let covered = above.covered(data);
        let before = sum(&data[covered.clone()]);
        let reach = match decoded.stop {
            // An IP header that contradicts the frame, or extension headers that do.
            Some(stop) if matches!(stop.layer, Layer::Ipv4 | Layer::Ipv6) => {
                Reach::Until(above.start, Cut::Unknown(stop.layer))
            }
            _ if is_first => self.transport(data, decoded, &above),
            _ => self.payload(data, above.start..end, true),
        };
        let after = sum(&data[covered]);
        let pseudo = self.header(data, ip);
        if is_first {
            mend_transport(data, &above, is_partial, (before, after), pseudo);
        }
        if reach == Reach::Whole {
            blank(data, end, data.len());
        }
        reach
    }

    /// Changes the packet that an ICMP error quotes from an offset on, which mostly is cut.
    pub(super) fn quoted(&mut self, data: &mut [u8], at: usize, end: usize, depth: u8) -> Reach {
        let decoded = decode::ip(data.get(..end).unwrap_or(data), at as u32, end as u32);
        let Some(ip) = decoded.ip else {
            return Reach::Until(at, Cut::Unknown(Layer::Icmp));
        };
        let start = (ip.payload_offset as usize).min(end);
        let above = UpperLayer { protocol: ip.protocol, start, end, is_fragment: false, depth };
        let is_first = ip.fragment.is_none_or(|fragment| fragment.offset == 0);
        let covered = above.covered(data);
        let before = sum(&data[covered.clone()]);
        let reach = if is_first {
            self.quoted_transport(data, &above)
        } else {
            self.payload(data, start..end, false)
        };
        let after = sum(&data[covered]);
        let pseudo = self.header(data, &ip);
        if is_first {
            mend_transport(data, &above, false, (before, after), pseudo);
        }
        reach
    }

    /// Changes an IP header with options and extension headers, and its checksum. Returns the sum of
    /// the addresses that checksums above cover, before and after.
    fn header(&mut self, data: &mut [u8], ip: &Ip) -> (u16, u16) {
        let (at, end) = (ip.offset as usize, ip.payload_offset as usize);
        let end = end.min(data.len());
        let is_v4 = data.get(at).is_some_and(|byte| byte >> 4 == 4);
        if is_v4 {
            let before = sum(&data[at..end]);
            self.v4(data, at + 12);
            self.v4(data, at + 16);
            self.ipv4_options(data, at + Ipv4View::LEN, end);
            let after = sum(&data[at..end]);
            mend(data, at + 10, before, after);
        } else {
            self.v6(data, at + 8);
            self.v6(data, at + 24);
            self.extensions(data, at + Ipv6View::LEN, end);
        }
        // What the pseudo-header has may stand in an extension header.
        let changed = decode::ip(data, ip.offset, u32::MAX).ip;
        let (source, destination) =
            changed.map_or((ip.source, ip.destination), |ip| (ip.source, ip.destination));
        (addresses(ip.source, ip.destination), addresses(source, destination))
    }

    /// Routes and time stamps name routers; what else may be in an option is not known.
    fn ipv4_options(&mut self, data: &mut [u8], mut at: usize, end: usize) {
        while at < end {
            let kind = data[at];
            if kind == ipv4_option::NO_OPERATION {
                at += 1;
                continue;
            }
            let len = data.get(at + 1).map_or(0, |len| usize::from(*len));
            let next = at + len;
            if kind == ipv4_option::END_OF_LIST || len < 2 || next > end {
                return blank(data, at, end);
            }
            match kind {
                ipv4_option::RECORD_ROUTE
                | ipv4_option::LOOSE_SOURCE_ROUTE
                | ipv4_option::STRICT_SOURCE_ROUTE => {
                    (at + 3..next.saturating_sub(3)).step_by(4).for_each(|at| self.v4(data, at));
                }
                ipv4_option::ROUTER_ALERT => {}
                _ => blank(data, at + 2, next),
            }
            at = next;
        }
    }

    /// Addresses in routing headers and home addresses are mapped; what is not known is blanked.
    fn extensions(&mut self, data: &mut [u8], mut at: usize, end: usize) {
        let mut next = data.get(at.wrapping_sub(34)).copied().unwrap_or_default();
        while let Some(&[following, len, kind]) =
            data.get(at..end).and_then(|data| data.first_chunk())
        {
            let len = match next {
                protocol::FRAGMENT => 8,
                protocol::AUTHENTICATION => (usize::from(len) + 2) * 4,
                _ => (usize::from(len) + 1) * 8,
            };
            let until = (at + len).min(end);
            match next {
                protocol::FRAGMENT | protocol::AUTHENTICATION => {}
                protocol::HOP_BY_HOP | protocol::DESTINATION_OPTIONS => {
                    self.ipv6_options(data, at + 2, until);
                }
                protocol::ROUTING if matches!(kind, 0 | 2) => {
                    let places = (at + 8..until.saturating_sub(15)).step_by(16);
                    places.for_each(|at| self.v6(data, at));
                }
                // Segment routing (RFC 8754) tells how many addresses it has; TLVs follow.
                protocol::ROUTING if kind == 4 => {
                    let last_entry = data.get(at + 4).map_or(0, |last| usize::from(*last));
                    let behind = (at + 8 + 16 * (last_entry + 1)).min(until);
                    let places = (at + 8..behind.saturating_sub(15)).step_by(16);
                    places.for_each(|at| self.v6(data, at));
                    blank(data, behind, until);
                }
                protocol::ROUTING => blank(data, at + 4, until),
                // Mobility, HIP and Shim6 name hosts.
                _ => blank(data, at + 4, until),
            }
            (next, at) = (following, at + len);
        }
    }

    fn ipv6_options(&mut self, data: &mut [u8], mut at: usize, end: usize) {
        const PAD1: u8 = 0;
        const PADN: u8 = 1;
        const ROUTER_ALERT: u8 = 5;
        const JUMBO: u8 = 0xc2;
        const HOME_ADDRESS: u8 = 0xc9;
        while at < end {
            if data[at] == PAD1 {
                at += 1;
                continue;
            }
            let len = data.get(at + 1).map_or(0, |len| usize::from(*len));
            let next = at + 2 + len;
            if next > end {
                return blank(data, at, end);
            }
            match data[at] {
                ROUTER_ALERT | JUMBO => {}
                HOME_ADDRESS if len == 16 => self.v6(data, at + 2),
                PADN => blank(data, at + 2, next),
                _ => blank(data, at + 2, next),
            }
            at = next;
        }
    }

    /// Changes what follows a whole IP header.
    fn transport(&mut self, data: &mut [u8], decoded: &Decoded, above: &UpperLayer) -> Reach {
        let UpperLayer { protocol, start, end, .. } = *above;
        match protocol {
            protocol::TCP => {
                let header_end = start + tcp_options(data, start, end);
                self.payload(data, header_end.min(end)..end, above.is_fragment)
            }
            protocol::UDP => {
                if let Some(reach) = self.tunnel(data, decoded, above) {
                    return reach;
                }
                let payload = (start + UdpView::LEN).min(end);
                let is_cut = decoded.ip.is_some_and(|ip| ip.payload_captured < ip.payload_len);
                if is_cut && !above.is_fragment && may_be_tunnel(data, start, &self.tunnel_ports) {
                    // Too little is there to tell a tunnel from payload.
                    return Reach::Until(payload, Cut::Unknown(Layer::Udp));
                }
                if above.is_fragment && may_be_tunnel(data, start, &self.tunnel_ports) {
                    return Self::tunnel_in_fragment(data, payload..end);
                }
                self.payload(data, payload..end, above.is_fragment)
            }
            protocol::ICMP => self.icmp(data, above),
            protocol::ICMPV6 => self.icmpv6(data, above),
            protocol::SCTP => self.sctp(data, above),
            // Nothing follows, as the header says.
            protocol::NO_NEXT_HEADER if start == end => Reach::Whole,
            // A tunnel, or what is not understood.
            _ if above.is_fragment => Self::tunnel_in_fragment(data, start..end),
            _ => match self.tunnel(data, decoded, above) {
                Some(reach) => reach,
                None => Reach::Until(start, Cut::Unknown(Layer::OtherTransport)),
            },
        }
    }

    /// Changes the header that a quotation has at least the first 8 bytes of.
    fn quoted_transport(&mut self, data: &mut [u8], above: &UpperLayer) -> Reach {
        let UpperLayer { protocol, start, end, .. } = *above;
        let header_len = match protocol {
            protocol::TCP => tcp_options(data, start, end),
            protocol::UDP => UdpView::LEN,
            protocol::ICMP | protocol::ICMPV6 => 8,
            _ => return Reach::Until(start, Cut::Unknown(Layer::Icmp)),
        };
        self.payload(data, (start + header_len).min(end)..end, false)
    }

    /// SCTP (RFC 9260) tells addresses in its chunks, which are not understood here.
    fn sctp(&self, data: &mut [u8], above: &UpperLayer) -> Reach {
        const COMMON_HEADER: usize = 12;
        let chunks = (above.start + COMMON_HEADER).min(above.end);
        if above.is_fragment {
            return self.payload(data, chunks..above.end, true);
        }
        if chunks == above.end {
            Reach::Whole
        } else {
            Reach::Until(chunks, Cut::Unknown(Layer::Sctp))
        }
    }
}

/// Whether a UDP header whose datagram is in fragments has a tunnel's port, or what follows begins as
/// Teredo does.
fn may_be_tunnel(data: &[u8], start: usize, ports: &TunnelPorts) -> bool {
    let is_port = |at| be16(data, at).is_some_and(|port| ports.has(port));
    let begins = match data.get(start + UdpView::LEN..) {
        Some([first, second, ..]) => first >> 4 == 6 || *first == 0 && *second <= 1,
        _ => false,
    };
    is_port(start) || is_port(start + 2) || begins
}

/// Blanks the TCP options that are not known to be harmless, and returns the header's length.
fn tcp_options(data: &mut [u8], start: usize, end: usize) -> usize {
    // End of list, no-operation, MSS, window scale, SACK permitted, SACK, timestamps.
    const HARMLESS: [u8; 5] = [2, 3, 4, 5, 8];
    let len = data.get(start + 12).map_or(0, |byte| usize::from(byte >> 4) * 4);
    if len < TcpView::LEN || start + len > end {
        return TcpView::LEN;
    }
    let (mut at, end) = (start + TcpView::LEN, start + len);
    while at < end {
        match data[at] {
            0 => break,
            1 => at += 1,
            kind => {
                let len = data.get(at + 1).map_or(0, |len| usize::from(*len));
                if len < 2 || at + len > end {
                    break;
                }
                if !HARMLESS.contains(&kind) {
                    blank(data, at + 2, at + len);
                }
                at += len;
            }
        }
    }
    // What is malformed stays so by its first two bytes.
    let behind = if data.get(at) == Some(&0) { at + 1 } else { at + 2 };
    if at < end {
        blank(data, behind, end);
    }
    len
}

/// Moves the checksum of a transport header as the addresses and the bytes that it covers changed.
fn mend_transport(
    data: &mut [u8],
    above: &UpperLayer,
    is_partial: bool,
    (before, after): (u16, u16),
    pseudo: (u16, u16),
) {
    let with_pseudo = (add(before, pseudo.0), add(after, pseudo.1));
    let end = above.end.min(data.len());
    let Some(data) = data.get_mut(above.start..end) else { return };
    let field = match above.protocol {
        protocol::TCP => 16,
        protocol::UDP => 6,
        protocol::ICMP | protocol::ICMPV6 => 2,
        _ => return,
    };
    match above.protocol {
        // The card adds the rest.
        _ if is_partial => mend_partial(data, field, pseudo.0, pseudo.1),
        protocol::UDP => mend_udp(data, field, with_pseudo.0, with_pseudo.1),
        protocol::ICMP => mend(data, field, before, after),
        _ => mend(data, field, with_pseudo.0, with_pseudo.1),
    }
}
