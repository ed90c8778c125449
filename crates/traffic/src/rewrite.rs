//! Gives a frame other IP addresses and ports: in its headers, in ARP, in what ICMP quotes and in tunnels, with right
//! checksums.
//!
//! Bytes of applications are not touched: an address written in an FTP `PORT` command stays what it was.

use core::net::IpAddr;

use netsniff_packet::{Address, checksum};

/// Where the addresses of a frame are looked up, one at a time, in the order in which they stand.
pub trait AddressMap {
    /// The address to write in place of an IPv4 address.
    fn map_v4(&mut self, address: [u8; 4]) -> [u8; 4];
    /// The address to write in place of an IPv6 address.
    fn map_v6(&mut self, address: [u8; 16]) -> [u8; 16];
    /// The port to write in place of a port of TCP or UDP.
    fn map_port(&mut self, port: u16) -> u16 {
        port
    }
}

/// What the outermost IP packet of a frame is, after rewriting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outer {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Protocol above IP and its extension headers.
    pub protocol: u8,
    /// Source and destination port of TCP, UDP and SCTP; 0 for others and for fragments.
    pub ports: (u16, u16),
    /// Bytes above the TCP or UDP header; above the IP header for other protocols and for fragments.
    pub payload_len: usize,
}

/// How deep tunnels are followed.
const MAX_DEPTH: u8 = 4;

/// Rewrites every IP address and port of an Ethernet frame and sets the checksums right that cover them.
///
/// Returns what the outermost IP packet is, or `None` where the frame carries none. Malformed headers end the walk;
/// what stands before them has been rewritten.
pub fn rewrite_addresses(frame: &mut [u8], map: &mut impl AddressMap) -> Option<Outer> {
    Rewrite { map, depth: 0 }.ethernet(frame)
}

struct Rewrite<'m, M> {
    map: &'m mut M,
    depth: u8,
}

/// What checksums above IP cover of the IP header, before and after.
struct Pseudo {
    /// Both addresses as they stood in the header, before and after; 8 or 32 bytes.
    old: [u8; 32],
    new: [u8; 32],
    len: usize,
    /// Both ports of the payload, before and after.
    ports: [[u8; 4]; 2],
    /// Whether the payload is whole: no fragment, nothing cut, no quotation.
    whole: bool,
}

impl Pseudo {
    const fn new(len: usize, whole: bool) -> Self {
        Self { old: [0; 32], new: [0; 32], len, ports: [[0; 4]; 2], whole }
    }

    fn address(&self, half: usize) -> Address {
        match self.new[..self.len].as_chunks::<16>().0.get(half) {
            Some(bytes) => Address::from_v6(*bytes),
            None => Address::from_v4(self.new[..8].as_chunks().0[half]),
        }
    }

    /// Computes the checksum at `at` anew over a whole payload, else updates it.
    fn set(&self, payload: &mut [u8], at: usize, protocol: u8) {
        let Some(field) = payload.get_mut(at..at + 2) else { return };
        let value = if self.whole {
            field.fill(0);
            let (source, destination) = (self.address(0), self.address(1));
            checksum::compute_with_pseudo_header(source, destination, protocol, payload)
        } else {
            let old = u16::from_be_bytes([field[0], field[1]]);
            let addressed = updated(old, &self.old[..self.len], &self.new[..self.len], protocol);
            updated(addressed, &self.ports[0], &self.ports[1], protocol)
        };
        payload[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }
}

/// The checksum that fits after the bytes `old` became `new`, RFC 1624, equation 3.
fn updated(checksum: u16, old: &[u8], new: &[u8], protocol: u8) -> u16 {
    let words = |bytes: &[u8], flip: u16| -> u32 {
        bytes.as_chunks().0.iter().map(|word| u32::from(u16::from_be_bytes(*word) ^ flip)).sum()
    };
    let mut sum = u32::from(!checksum) + words(old, 0xffff) + words(new, 0);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // In UDP a computed zero is sent as all ones, since zero says that there is none (RFC 768).
    if protocol == 17 && sum == 0xffff { 0xffff } else { !(sum as u16) }
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl<M: AddressMap> Rewrite<'_, M> {
    fn ethernet(&mut self, frame: &mut [u8]) -> Option<Outer> {
        let (mut ethertype, mut at) = (be16(frame, 12)?, 14);
        while matches!(ethertype, 0x8100 | 0x88a8 | 0x9100) {
            ethertype = be16(frame, at + 2)?;
            at += 4;
        }
        if ethertype < 0x600 && frame.get(at..at + 6)? == [0xaa, 0xaa, 0x03, 0, 0, 0] {
            ethertype = be16(frame, at + 6)?;
            at += 8;
        }
        self.ethertype(ethertype, frame.get_mut(at..)?)
    }

    fn ethertype(&mut self, ethertype: u16, bytes: &mut [u8]) -> Option<Outer> {
        match ethertype {
            0x0800 => self.ipv4(bytes, false),
            0x86dd => self.ipv6(bytes, false),
            0x0806 => self.arp(bytes),
            0x6558 => self.ethernet(bytes),
            // MPLS, RFC 3032: labels up to the one with the bottom bit.
            0x8847 | 0x8848 => {
                let bottom = bytes.chunks_exact(4).position(|label| label[2] & 1 != 0)?;
                self.ip(bytes.get_mut(4 * bottom + 4..)?)
            }
            // PPPoE session, RFC 2516: six bytes and the PPP protocol.
            0x8864 => match be16(bytes, 6)? {
                0x0021 | 0x0057 => self.ip(bytes.get_mut(8..)?),
                _ => None,
            },
            _ => None,
        }
    }

    fn ip(&mut self, bytes: &mut [u8]) -> Option<Outer> {
        match bytes.first()? >> 4 {
            4 => self.ipv4(bytes, false),
            6 => self.ipv6(bytes, false),
            _ => None,
        }
    }

    /// ARP for IPv4 over Ethernet, RFC 826.
    fn arp(&mut self, bytes: &mut [u8]) -> Option<Outer> {
        if bytes.get(..6)? == [0, 1, 8, 0, 6, 4] {
            for at in [14, 24] {
                self.replace_v4(bytes, at)?;
            }
        }
        None
    }

    fn replace_v4(&mut self, bytes: &mut [u8], at: usize) -> Option<()> {
        let field = bytes.get_mut(at..)?.first_chunk_mut()?;
        *field = self.map.map_v4(*field);
        Some(())
    }

    fn replace_v6(&mut self, bytes: &mut [u8], at: usize) -> Option<()> {
        let field = bytes.get_mut(at..)?.first_chunk_mut()?;
        *field = self.map.map_v6(*field);
        Some(())
    }

    /// IPv4, RFC 791; `quoted` inside an ICMP message, where the payload is cut.
    fn ipv4(&mut self, bytes: &mut [u8], quoted: bool) -> Option<Outer> {
        let header_len = usize::from(bytes.first()? & 15) * 4;
        if bytes[0] >> 4 != 4 || header_len < 20 || bytes.len() < header_len {
            return None;
        }
        let total = match usize::from(be16(bytes, 2)?) {
            0 => bytes.len(),
            total => total,
        };
        let (fragment, protocol) = (be16(bytes, 6)? & 0x3fff, bytes[9]);
        let mut pseudo = Pseudo::new(8, !quoted && fragment == 0);
        pseudo.old[..8].copy_from_slice(&bytes[12..20]);
        self.replace_v4(bytes, 12)?;
        self.replace_v4(bytes, 16)?;
        pseudo.new[..8].copy_from_slice(&bytes[12..20]);
        let (source, destination) =
            (<[u8; 4]>::try_from(&bytes[12..16]).ok()?, <[u8; 4]>::try_from(&bytes[16..20]).ok()?);
        bytes[10..12].fill(0);
        let header = checksum::compute(&bytes[..header_len]);
        bytes[10..12].copy_from_slice(&header.to_be_bytes());

        pseudo.whole &= total <= bytes.len();
        let end = total.clamp(header_len, bytes.len());
        let payload = bytes.get_mut(header_len..end)?;
        let (ports, payload_len) =
            self.payload(payload, protocol, &mut pseudo, fragment & 0x1fff == 0);
        Some(Outer {
            source: source.into(),
            destination: destination.into(),
            protocol,
            ports,
            payload_len,
        })
    }

    /// IPv6 and its extension headers, RFC 8200.
    fn ipv6(&mut self, bytes: &mut [u8], quoted: bool) -> Option<Outer> {
        if bytes.len() < 40 || bytes[0] >> 4 != 6 {
            return None;
        }
        let total = 40 + usize::from(be16(bytes, 4)?);
        let mut pseudo = Pseudo::new(32, !quoted && total <= bytes.len());
        pseudo.old.copy_from_slice(&bytes[8..40]);
        self.replace_v6(bytes, 8)?;
        self.replace_v6(bytes, 24)?;
        pseudo.new.copy_from_slice(&bytes[8..40]);
        let (source, destination) =
            (<[u8; 16]>::try_from(&bytes[8..24]).ok()?, <[u8; 16]>::try_from(&bytes[24..40]).ok()?);

        let bytes = bytes.get_mut(..total.min(bytes.len()))?;
        let (mut protocol, mut at, mut first) = (bytes[6], 40, true);
        while let (0 | 43 | 44 | 51 | 60, Some(&[next, len, high, low])) =
            (protocol, bytes.get(at..).and_then(|header| header.first_chunk::<4>()))
        {
            at += match protocol {
                44 => 8,
                51 => (usize::from(len) + 2) * 4,
                _ => (usize::from(len) + 1) * 8,
            };
            if protocol == 44 {
                let field = u16::from_be_bytes([high, low]);
                pseudo.whole &= field & 0xfff9 == 0;
                first = field & 0xfff8 == 0;
            }
            if protocol == 43 && low != 0 {
                // With segments left, checksums cover an address that stands in the routing header.
                return Some(Outer {
                    source: source.into(),
                    destination: destination.into(),
                    protocol,
                    ports: (0, 0),
                    payload_len: 0,
                });
            }
            protocol = next;
        }
        let at = at.min(bytes.len());
        let (ports, payload_len) = self.payload(bytes.get_mut(at..)?, protocol, &mut pseudo, first);
        Some(Outer {
            source: source.into(),
            destination: destination.into(),
            protocol,
            ports,
            payload_len,
        })
    }

    /// What follows IP: tunnels and quotations first, since the checksum outside covers them.
    fn payload(
        &mut self,
        payload: &mut [u8],
        protocol: u8,
        pseudo: &mut Pseudo,
        first: bool,
    ) -> ((u16, u16), usize) {
        if !first {
            return ((0, 0), payload.len());
        }
        if self.depth < MAX_DEPTH && pseudo.whole {
            self.depth += 1;
            // An inner packet that cannot be read stays as it is.
            let _: Option<()> = self.inside(payload, protocol);
            self.depth -= 1;
        }
        if matches!(protocol, 6 | 17) {
            self.replace_ports(payload, pseudo);
        }
        let ports = (be16(payload, 0).unwrap_or(0), be16(payload, 2).unwrap_or(0));
        match protocol {
            6 => {
                pseudo.set(payload, 16, 6);
                let header_len = payload.get(12).map_or(20, |byte| usize::from(byte >> 4) * 4);
                (ports, payload.len().saturating_sub(header_len))
            }
            17 => {
                let len = usize::from(be16(payload, 4).unwrap_or(0)).min(payload.len());
                if be16(payload, 6) != Some(0) && (len >= 8 || !pseudo.whole) {
                    pseudo.set(if pseudo.whole { &mut payload[..len] } else { payload }, 6, 17);
                }
                (ports, len.saturating_sub(8))
            }
            58 => {
                pseudo.set(payload, 2, 58);
                ((0, 0), payload.len())
            }
            132 => (ports, payload.len().saturating_sub(12)),
            _ => ((0, 0), payload.len()),
        }
    }

    fn replace_ports(&mut self, payload: &mut [u8], pseudo: &mut Pseudo) {
        let Some(place) = payload.first_chunk_mut::<4>() else { return };
        let [a, b, c, d] = *place;
        let ports = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
        let [source, destination] = ports.map(|port| self.map.map_port(port).to_be_bytes());
        pseudo.ports[0] = *place;
        *place = [source[0], source[1], destination[0], destination[1]];
        pseudo.ports[1] = *place;
    }

    fn inside(&mut self, payload: &mut [u8], protocol: u8) -> Option<()> {
        match protocol {
            1 => self.icmp(payload),
            58 => self.icmpv6(payload),
            4 | 41 => self.ip(payload).map(drop),
            47 => self.gre(payload),
            17 => {
                let (source, destination) = (be16(payload, 0)?, be16(payload, 2)?);
                let body = payload.get_mut(8..)?;
                match (source, destination) {
                    (_, 4789) => self.ethernet(body.get_mut(8..)?).map(drop),
                    (_, 2152) | (2152, _) => self.gtp_u(body),
                    (_, 3544) | (3544, _) => self.teredo(body),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// ICMP, RFC 792: errors quote the packet at fault; a redirect names a gateway.
    fn icmp(&mut self, payload: &mut [u8]) -> Option<()> {
        if matches!(payload.first()?, 3 | 4 | 5 | 11 | 12) {
            if payload[0] == 5 {
                self.replace_v4(payload, 4)?;
            }
            self.ipv4(payload.get_mut(8..)?, true);
        }
        payload.get_mut(2..4)?.fill(0);
        let value = checksum::compute(payload);
        payload[2..4].copy_from_slice(&value.to_be_bytes());
        Some(())
    }

    /// ICMPv6: errors, RFC 4443, and neighbour discovery, RFC 4861. The caller sets the checksum.
    fn icmpv6(&mut self, payload: &mut [u8]) -> Option<()> {
        match payload.first()? {
            1..=4 => self.ipv6(payload.get_mut(8..)?, true).map(drop),
            135 | 136 => self.replace_v6(payload, 8),
            137 => self.replace_v6(payload, 8).and_then(|()| self.replace_v6(payload, 24)),
            _ => None,
        }
    }

    /// GRE version 0, RFC 2784 and RFC 2890.
    fn gre(&mut self, payload: &mut [u8]) -> Option<()> {
        let (flags, ethertype) = (be16(payload, 0)?, be16(payload, 2)?);
        if flags & 7 != 0 {
            return None;
        }
        let optional =
            [0x8000, 0x2000, 0x1000].into_iter().filter(|flag| flags & flag != 0).count();
        self.ethertype(ethertype, payload.get_mut(4 + 4 * optional..)?);
        if flags & 0x8000 != 0 {
            payload[4..6].fill(0);
            let value = checksum::compute(payload);
            payload[4..6].copy_from_slice(&value.to_be_bytes());
        }
        Some(())
    }

    /// GTP-U without extension headers, 3GPP TS 29.281.
    fn gtp_u(&mut self, body: &mut [u8]) -> Option<()> {
        let flags = *body.first()?;
        if flags >> 5 != 1 || flags & 4 != 0 || *body.get(1)? != 255 {
            return None;
        }
        self.ip(body.get_mut(if flags & 3 != 0 { 12 } else { 8 }..)?).map(drop)
    }

    /// Teredo, RFC 4380: an authentication and an origin indication may stand before IPv6.
    fn teredo(&mut self, body: &mut [u8]) -> Option<()> {
        let mut at = 0;
        if be16(body, at)? == 1 {
            at += 13 + usize::from(*body.get(2)?) + usize::from(*body.get(3)?);
        }
        if be16(body, at)? == 0 {
            at += 8;
        }
        let inner = body.get_mut(at..)?;
        (inner.first()? >> 4 == 6).then(|| self.ipv6(inner, false)).flatten().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use netsniff_packet::checksum::ChecksumVerdict;

    use super::*;
    use crate::Random;

    /// Adds 1 to the second byte of each address, and 7000 to the port of discard.
    struct Shift;

    impl AddressMap for Shift {
        fn map_v4(&mut self, mut address: [u8; 4]) -> [u8; 4] {
            address[1] = address[1].wrapping_add(1);
            address
        }

        fn map_v6(&mut self, mut address: [u8; 16]) -> [u8; 16] {
            address[1] = address[1].wrapping_add(1);
            address
        }

        fn map_port(&mut self, port: u16) -> u16 {
            if port == 9 { 7009 } else { port }
        }
    }

    fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        frame.extend_from_slice(&ethertype.to_be_bytes());
        frame.extend_from_slice(payload);
        frame
    }

    fn ipv4(protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
        let mut packet =
            vec![0x45, 0, 0, 0, 0, 7, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 192, 0, 2, 9];
        packet[2..4].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
        packet[6..8].copy_from_slice(&fragment.to_be_bytes());
        packet.extend_from_slice(payload);
        packet
    }

    fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, protocol, 64];
        packet[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
        for last in [1, 2] {
            packet.extend_from_slice(&[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        packet.extend_from_slice(payload);
        packet
    }

    fn udp(destination: u16, payload: &[u8]) -> Vec<u8> {
        let mut datagram = vec![0x12, 0x34, 0, 0, 0, 0, 1, 1];
        datagram[2..4].copy_from_slice(&destination.to_be_bytes());
        datagram[4..6].copy_from_slice(&(8 + payload.len() as u16).to_be_bytes());
        datagram.extend_from_slice(payload);
        datagram
    }

    const TCP: [u8; 23] = [
        0, 80, 0x9c, 0x40, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0xab, 0xcd, 0, 0, b'a', b'b',
        b'c',
    ];

    /// Whether the checksum of a whole TCP, UDP or ICMPv6 payload fits its IP header.
    fn fits(ip: &[u8]) -> bool {
        let decoded = netsniff_packet::decode::ip(ip, 0, ip.len() as u32);
        checksum::transport(&decoded, ip) == ChecksumVerdict::Good
    }

    #[test]
    fn addresses_and_checksums_of_both_versions() {
        for payload in [(6, TCP.to_vec()), (17, udp(53, b"hello"))] {
            let mut frame = ethernet(0x0800, &ipv4(payload.0, 0, &payload.1));
            frame.extend_from_slice(&[0xff; 9]); // Link-layer padding is not covered.
            let outer = rewrite_addresses(&mut frame, &mut Shift).unwrap();
            assert_eq!(outer.source.to_string(), "10.1.0.1");
            assert_eq!(outer.destination.to_string(), "192.1.2.9");
            let ip = &frame[14..frame.len() - 9];
            assert_eq!(checksum::ip_header(ip), ChecksumVerdict::Good);
            assert!(fits(ip));
            let mut frame = ethernet(0x86dd, &ipv6(payload.0, &payload.1));
            assert_eq!(
                rewrite_addresses(&mut frame, &mut Shift).unwrap().source.to_string(),
                "2002:db8::1"
            );
            assert!(fits(&frame[14..]));
        }
    }

    #[test]
    fn the_outer_packet_is_told() {
        let mut frame = ethernet(0x0800, &ipv4(6, 0, &TCP));
        let outer = rewrite_addresses(&mut frame, &mut Shift).unwrap();
        assert_eq!((outer.protocol, outer.ports, outer.payload_len), (6, (80, 40000), 3));
        assert_eq!(rewrite_addresses(&mut ethernet(0x88cc, &[0; 40]), &mut Shift), None);
    }

    #[test]
    fn tags_and_labels_are_passed() {
        let packet = ipv4(6, 0, &TCP);
        let behind = |before: &[u8], ethertype| ethernet(ethertype, &[before, &packet].concat());
        for mut frame in [
            behind(&[0, 5, 0x81, 0, 0, 6, 8, 0], 0x88a8),
            behind(&[0, 1, 0, 64, 0, 2, 1, 64], 0x8847),
            behind(&[0x11, 0, 0, 1, 0, 45, 0, 0x21], 0x8864),
            behind(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], 60),
        ] {
            assert_eq!(rewrite_addresses(&mut frame, &mut Shift).unwrap().ports, (80, 40000));
            assert!(fits(&frame[22..]));
        }
    }

    #[test]
    fn tunnels_are_followed_and_the_outer_checksum_covers_them() {
        let inner = ipv4(6, 0, &TCP);
        let vxlan = [&[8, 0, 0, 0, 0, 0, 1, 0][..], &ethernet(0x0800, &inner)].concat();
        let gtp = [&[0x30, 255, 0, 43, 0, 0, 0, 1][..], &inner].concat();
        for (payload, protocol, offset) in [
            (inner.clone(), 4, 0),
            ([&[0, 0, 8, 0][..], &inner].concat(), 47, 4),
            (udp(4789, &vxlan), 17, 30),
            (udp(2152, &gtp), 17, 16),
        ] {
            let mut frame = ethernet(0x0800, &ipv4(protocol, 0, &payload));
            rewrite_addresses(&mut frame, &mut Shift).unwrap();
            let inner = &frame[34 + offset..];
            assert_eq!(inner[12..20], [10, 1, 0, 1, 192, 1, 2, 9]);
            assert!(fits(inner));
            assert!(protocol != 17 || fits(&frame[14..]));
        }
        let mut frame = ethernet(0x0800, &ipv4(17, 0, &udp(3544, &ipv6(6, &TCP))));
        rewrite_addresses(&mut frame, &mut Shift).unwrap();
        assert!(
            frame[42 + 8] == 0x20 && frame[42 + 9] == 2 && fits(&frame[42..]) && fits(&frame[14..])
        );
    }

    #[test]
    fn quotations_and_arp_change_too() {
        let mut icmp = vec![3, 1, 0, 0, 0, 0, 0, 0];
        icmp.extend_from_slice(&ipv4(6, 0, &TCP)[..28]);
        let mut frame = ethernet(0x0800, &ipv4(1, 0, &icmp));
        rewrite_addresses(&mut frame, &mut Shift).unwrap();
        assert_eq!(frame[42 + 12..42 + 20], [10, 1, 0, 1, 192, 1, 2, 9]);
        assert_eq!(checksum::compute(&frame[34..]), 0);

        let mut arp = vec![
            0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
        ];
        arp = ethernet(0x0806, &arp);
        rewrite_addresses(&mut arp, &mut Shift);
        assert_eq!((arp[29], arp[39]), (1, 1));
    }

    #[test]
    fn a_datagram_in_fragments_keeps_a_right_checksum() {
        let mut whole = ipv4(17, 0, &udp(9, &[7; 40]));
        whole[20 + 6..20 + 8].fill(0);
        let [source, destination] = [[10, 0, 0, 1], [192, 0, 2, 9]].map(Address::from_v4);
        let right = checksum::compute_with_pseudo_header(source, destination, 17, &whole[20..]);
        whole[26..28].copy_from_slice(&right.to_be_bytes());

        let mut first = ethernet(0x0800, &ipv4(17, 0x2000, &whole[20..44]));
        let mut second = ethernet(0x0800, &ipv4(17, 3, &whole[44..]));
        rewrite_addresses(&mut first, &mut Shift);
        assert_eq!(rewrite_addresses(&mut second, &mut Shift).unwrap().ports, (0, 0));
        assert_eq!(second[34..], whole[44..]);
        let mut joined = ipv4(17, 0, &[&first[34..], &second[34..]].concat());
        joined[12..20].copy_from_slice(&first[26..34]);
        assert_eq!(be16(&joined, 22), Some(7009));
        assert!(fits(&joined));
    }

    #[test]
    fn arbitrary_bytes_do_no_harm() {
        let mut random = Random::new(5);
        let samples = [
            ethernet(0x0800, &ipv4(17, 0, &udp(4789, &ethernet(0x86dd, &ipv6(58, &[135; 40]))))),
            ethernet(0x0800, &ipv4(1, 0, &[&[3; 8][..], &ipv4(47, 0, &[0; 30])].concat())),
            ethernet(0x86dd, &ipv6(44, &[43, 0, 0, 0, 0, 0, 0, 0, 6, 1, 1, 1])),
        ];
        for _ in 0..30_000 {
            let mut frame = samples[random.below(3) as usize].clone();
            for _ in 0..random.below(6) {
                let at = random.below(frame.len() as u64) as usize;
                frame[at] = random.next_u64() as u8;
            }
            frame.truncate(random.below(frame.len() as u64 + 1) as usize);
            let before = frame.len();
            rewrite_addresses(&mut frame, &mut Shift);
            assert_eq!(frame.len(), before);
        }
    }
}
