//! ICMP and ICMPv6: what errors quote, and the addresses that messages tell.

use super::network::UpperLayer;
use super::{Cut, PacketAnonymizer, Reach, be16, blank};
use crate::decode::Layer;

/// What is not known is cut, where there is any.
fn unknown(at: usize, end: usize, layer: Layer) -> Reach {
    if at >= end { Reach::Whole } else { Reach::Until(at, Cut::Unknown(layer)) }
}

/// Length of the header that all messages have.
const HEADER: usize = 8;

impl PacketAnonymizer {
    /// RFC 792, RFC 1256.
    pub(super) fn icmp(&mut self, data: &mut [u8], above: &UpperLayer) -> Reach {
        const ADVERTISEMENT: u8 = 9;
        const REDIRECT: u8 = 5;
        let UpperLayer { start, end, .. } = *above;
        let body = (start + HEADER).min(end);
        if above.is_fragment {
            return self.payload(data, body..end, true);
        }
        match data.get(start) {
            Some(&(3 | 4 | REDIRECT | 11 | 12)) => {
                if data[start] == REDIRECT {
                    self.v4(data, start + 4);
                }
                self.quotation(data, above, body)
            }
            // Each router has 4 bytes of address and 4 of preference.
            Some(&ADVERTISEMENT) => {
                let routers = data.get(start + 4).map_or(0, |count| usize::from(*count));
                let behind = (body + 8 * routers).min(end);
                (body..behind).step_by(8).for_each(|at| self.v4(data, at));
                self.payload(data, behind..end, false)
            }
            // Echo, time stamps, information and masks.
            Some(0 | 8 | 13..=18) => self.payload(data, body..end, false),
            _ => unknown(body, end, Layer::Icmp),
        }
    }

    /// RFC 4443, neighbour discovery of RFC 4861, multicast listeners of RFC 2710 and RFC 3810.
    pub(super) fn icmpv6(&mut self, data: &mut [u8], above: &UpperLayer) -> Reach {
        let UpperLayer { start, end, .. } = *above;
        let body = (start + HEADER).min(end);
        if above.is_fragment {
            return self.payload(data, body..end, true);
        }
        match data.get(start) {
            Some(1..=4) => self.quotation(data, above, body),
            Some(128 | 129) => self.payload(data, body..end, false),
            // Behind the group of a query of version 2, four bytes tell how many sources follow.
            Some(130) => {
                let group = self.several_v6(data, body, 1, end);
                let sources = be16(data, group + 2).map_or(0, usize::from);
                let behind = self.several_v6(data, (group + 4).min(end), sources, end);
                unknown(behind, end, Layer::Icmpv6)
            }
            Some(131 | 132) => {
                let behind = self.several_v6(data, body, 1, end);
                unknown(behind, end, Layer::Icmpv6)
            }
            Some(133) => self.neighbour_options(data, body, end),
            Some(134) => self.neighbour_options(data, (body + 8).min(end), end),
            Some(135..=137) => {
                let addresses = if data[start] == 137 { 2 } else { 1 };
                let behind = self.several_v6(data, body, addresses, end);
                self.neighbour_options(data, behind, end)
            }
            Some(143) => self.listener_report(data, body, end),
            _ => unknown(body, end, Layer::Icmpv6),
        }
    }

    /// Records of groups with their sources (RFC 3810, section 5.2).
    fn listener_report(&mut self, data: &mut [u8], mut at: usize, end: usize) -> Reach {
        while let Some(&[_, auxiliary, a, b]) =
            data.get(at..end).and_then(|data| data.first_chunk())
        {
            let addresses = 1 + usize::from(u16::from_be_bytes([a, b]));
            let behind = self.several_v6(data, at + 4, addresses, end);
            at = (behind + 4 * usize::from(auxiliary)).min(end);
            blank(data, behind, at);
        }
        unknown(at, end, Layer::Icmpv6)
    }

    /// Changes so many addresses, and tells where they end.
    fn several_v6(&mut self, data: &mut [u8], at: usize, count: usize, end: usize) -> usize {
        let behind = (at + 16 * count).min(end);
        let whole = behind.saturating_sub(at) / 16;
        (0..whole).for_each(|number| self.v6(data, at + 16 * number));
        // The capture may have cut the last one.
        blank(data, at + 16 * whole, behind);
        behind
    }

    /// Bytes behind the quoted packet are extensions (RFC 4884), which are no part of it.
    fn quotation(&mut self, data: &mut [u8], above: &UpperLayer, body: usize) -> Reach {
        if body == above.end {
            return Reach::Whole;
        }
        self.quoted(data, body, above.end, above.depth)
    }

    /// MAC addresses and prefixes stay as pseudonyms, all other values are blanked. All of them is
    /// header, since none is anybody's payload.
    fn neighbour_options(&mut self, data: &mut [u8], mut at: usize, end: usize) -> Reach {
        const PREFIX: u8 = 3;
        const MTU: u8 = 5;
        while at < end {
            let (kind, len) = (data[at], data.get(at + 1).map_or(0, |len| usize::from(*len) * 8));
            let next = at + len;
            if len == 0 || next > end {
                blank(data, at, end);
                break;
            }
            match kind {
                1 | 2 if len == 8 => self.sender_mac(data, at + 2),
                PREFIX if len == 32 => self.v6(data, at + 16),
                MTU => {}
                _ => blank(data, at + 2, next),
            }
            at = next;
        }
        Reach::Whole
    }
}
