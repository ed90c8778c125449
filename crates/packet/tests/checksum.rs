//! What is judged of a checksum: the headers that it covers, and those that are left to the card.

// Other tests need the other packets.
#[allow(dead_code)]
mod packets;

use netsniff_packet::checksum::{self, ChecksumVerdict};
use netsniff_packet::decode;
use netsniff_packet::wire::ipv4::protocol;
use netsniff_packet::{Address, LinkType};
use packets::{extension, fragment, ipv4, ipv6, tcp, udp, vxlan};

const V4: [[u8; 4]; 2] = [[192, 0, 2, 1], [192, 0, 2, 2]];

fn v4() -> [Address; 2] {
    V4.map(Address::from_v4)
}

fn v6() -> [Address; 2] {
    [Address::from_v6([0x20; 16]), Address::from_v6([0x21; 16])]
}

/// The sum of the pseudo-header as 16-bit words, RFC 9293 and RFC 8200, section 8.1.
fn pseudo_header(bytes: &[&[u8]], number: u8, len: usize) -> u16 {
    let words = bytes.concat();
    let words = words.as_chunks::<2>().0.iter().map(|word| u32::from(u16::from_be_bytes(*word)));
    let mut sum: u32 = words.sum::<u32>() + u32::from(number) + len as u32;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The segment with a right checksum at an offset.
fn summed(mut segment: Vec<u8>, at: usize, ends: [Address; 2], number: u8) -> Vec<u8> {
    segment[at..at + 2].fill(0);
    let sum = match number {
        protocol::ICMP => checksum::compute(&segment),
        _ => checksum::compute_with_pseudo_header(ends[0], ends[1], number, &segment),
    };
    segment[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    segment
}

fn judged(packet: &[u8]) -> ChecksumVerdict {
    let decoded = decode::packet(LinkType::RAW, packet, packet.len() as u32);
    assert_eq!(decoded.stop, None, "{decoded:?}");
    checksum::transport(&decoded, packet)
}

/// Judges it as it is, and with each of its bytes from `from` on changed.
fn assert_covers(packet: &[u8], from: usize) {
    assert_eq!(judged(packet), ChecksumVerdict::Good);
    for at in from..packet.len() {
        // The data offset of TCP and the length of UDP would make it another packet.
        let mut damaged = packet.to_vec();
        damaged[at] ^= 0x10;
        let decoded = decode::packet(LinkType::RAW, &damaged, damaged.len() as u32);
        if decoded.stop.is_none() {
            let verdict = checksum::transport(&decoded, &damaged);
            assert!(
                matches!(verdict, ChecksumVerdict::Bad | ChecksumVerdict::Unknown),
                "{at}: {verdict:?}"
            );
        }
    }
}

#[test]
fn every_byte_of_segments_and_messages_is_covered() {
    for payload in [&b"payload"[..], b"", b"even"] {
        let segment = tcp(&[], payload);
        let over_v4 = summed(segment.clone(), 16, v4(), protocol::TCP);
        assert_covers(&ipv4(protocol::TCP, &[], &over_v4), 20);
        assert_covers(&ipv6(protocol::TCP, &summed(segment, 16, v6(), protocol::TCP)), 40);
        let datagram = udp(9, payload);
        let over_v4 = summed(datagram.clone(), 6, v4(), protocol::UDP);
        assert_covers(&ipv4(protocol::UDP, &[], &over_v4), 20);
        assert_covers(&ipv6(protocol::UDP, &summed(datagram, 6, v6(), protocol::UDP)), 40);
        let message = [&[8, 0, 0, 0, 0, 1, 0, 2], payload].concat();
        let over_v4 = summed(message.clone(), 2, v4(), protocol::ICMP);
        assert_covers(&ipv4(protocol::ICMP, &[], &over_v4), 20);
        assert_covers(&ipv6(protocol::ICMPV6, &summed(message, 2, v6(), protocol::ICMPV6)), 40);
    }
}

#[test]
fn the_sum_of_the_pseudo_header_alone_was_left_to_the_card() {
    let ends = V4.concat();
    for (number, at, segment) in
        [(protocol::TCP, 16, tcp(&[], b"to be sent")), (protocol::UDP, 6, udp(9, b"to be sent"))]
    {
        let over_v4 = pseudo_header(&[&ends], number, segment.len());
        let over_v6 = pseudo_header(&[&[0x20; 16], &[0x21; 16]], number, segment.len());
        let with = |sum: u16| {
            let mut segment = segment.clone();
            segment[at..at + 2].copy_from_slice(&sum.to_be_bytes());
            segment
        };
        assert_eq!(judged(&ipv4(number, &[], &with(over_v4))), ChecksumVerdict::Partial);
        assert_eq!(judged(&ipv6(number, &with(over_v6))), ChecksumVerdict::Partial);
        assert_eq!(judged(&ipv4(number, &[], &with(over_v4 ^ 1))), ChecksumVerdict::Bad);
        // What the card would send is not the sum, but its complement with all the rest.
        assert_eq!(judged(&ipv4(number, &[], &with(!over_v4))), ChecksumVerdict::Bad);
    }
}

#[test]
fn udp_may_have_none_over_ipv4_and_in_tunnels() {
    let plain = udp(9, b"payload");
    assert_eq!(judged(&ipv4(protocol::UDP, &[], &plain)), ChecksumVerdict::Absent);
    assert_eq!(judged(&ipv6(protocol::UDP, &plain)), ChecksumVerdict::Bad);
    let inner = packets::ethernet(0x0800, &packets::segment());
    let tunnel = udp(4789, &vxlan(7, &inner));
    assert_eq!(judged(&ipv6(protocol::UDP, &tunnel)), ChecksumVerdict::Absent);
    let other = udp(4789, &[0xff; 60]);
    assert_eq!(judged(&ipv6(protocol::UDP, &other)), ChecksumVerdict::Bad);
}

#[test]
fn udp_tells_itself_how_much_is_covered() {
    let datagram = summed(udp(9, b"payload"), 6, v4(), protocol::UDP);
    let longer = [&datagram[..], b"and more"].concat();
    assert_eq!(judged(&ipv4(protocol::UDP, &[], &longer)), ChecksumVerdict::Good);
    for len in [0, 7, 200] {
        let mut odd = datagram.clone();
        odd[4..6].copy_from_slice(&u16::to_be_bytes(len));
        assert_eq!(
            judged(&ipv4(protocol::UDP, &[], &odd)),
            ChecksumVerdict::Unknown,
            "length {len}"
        );
    }
    let mut jumbo = udp(9, b"payload");
    jumbo[4..6].fill(0);
    let jumbo = summed(jumbo, 6, v6(), protocol::UDP);
    assert_eq!(judged(&ipv6(protocol::UDP, &jumbo)), ChecksumVerdict::Good);
}

#[test]
fn a_routing_header_names_the_destination_that_is_covered() {
    let last = [0x2a; 16];
    let segment = tcp(&[], b"payload");
    let routing = |left: u8, segment: &[u8]| {
        // Type 0, with one address.
        let data = [&[0, left, 0, 0, 0, 0], &last[..]].concat();
        ipv6(protocol::ROUTING, &extension(protocol::TCP, &data, segment))
    };
    let [source, destination] = v6();
    let to_last = summed(segment.clone(), 16, [source, Address::from_v6(last)], protocol::TCP);
    let to_first = summed(segment, 16, [source, destination], protocol::TCP);
    assert_eq!(judged(&routing(1, &to_last)), ChecksumVerdict::Good);
    assert_eq!(judged(&routing(1, &to_first)), ChecksumVerdict::Bad);
    assert_eq!(judged(&routing(0, &to_first)), ChecksumVerdict::Good);
}

#[test]
fn what_is_not_whole_is_not_judged() {
    let segment = summed(tcp(&[], b"payload"), 16, v4(), protocol::TCP);
    let packet = ipv4(protocol::TCP, &[], &segment);
    let cut = &packet[..packet.len() - 1];
    let decoded = decode::packet(LinkType::RAW, cut, packet.len() as u32);
    assert_eq!(checksum::transport(&decoded, cut), ChecksumVerdict::Unknown);
    // Padding of the link layer is no part of it.
    assert_eq!(judged(&[&packet[..], &[0xaa; 9]].concat()), ChecksumVerdict::Good);
    let piece = ipv6(protocol::FRAGMENT, &fragment(protocol::TCP, 0, true, &segment));
    assert_eq!(judged(&piece), ChecksumVerdict::Unknown);
    let other = ipv4(protocol::SCTP, &[], &[0; 40]);
    assert_eq!(judged(&other), ChecksumVerdict::Unknown);
}

#[test]
fn headers_of_ipv4_are_judged_with_their_options() {
    for options in [&[][..], &[1, 1, 1, 0]] {
        let mut packet = ipv4(protocol::TCP, options, b"payload");
        let len = 20 + options.len();
        packet[10..12].fill(0);
        let sum = checksum::compute(&packet[..len]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(checksum::ip_header(&packet), ChecksumVerdict::Good);
        for at in 1..len {
            let mut damaged = packet.clone();
            damaged[at] ^= 2;
            assert_eq!(checksum::ip_header(&damaged), ChecksumVerdict::Bad, "{at}");
        }
        assert_eq!(checksum::ip_header(&packet[..len - 1]), ChecksumVerdict::Unknown);
    }
    assert_eq!(checksum::ip_header(&ipv6(protocol::TCP, b"payload")), ChecksumVerdict::Absent);
}
