//! Packets of every kind are decoded as they were built, whole, cut and damaged.

mod packets;

use netsniff_packet::decode::tunnel::{self, Tunnel};
use netsniff_packet::decode::{self, Decoded, Layer, Oddity, Transport, TunnelPorts};
use netsniff_packet::wire::ethernet::ethertype;
use netsniff_packet::wire::ipv4::protocol;
use netsniff_packet::{LinkType, checksum};
use packets::{
    ethernet, extension, fragment, geneve, ipv4, ipv6, segment, tcp, timed_segment, udp, vlan,
    vxlan,
};

fn frame(data: &[u8]) -> Decoded {
    decode::packet(LinkType::ETHERNET, data, data.len() as u32)
}

/// Source and destination port, or 0 where there is none.
fn ports(decoded: &Decoded) -> (u16, u16) {
    match decoded.transport {
        Transport::Tcp(tcp) => (tcp.source_port, tcp.destination_port),
        Transport::Udp(udp) => (udp.source_port, udp.destination_port),
        _ => (0, 0),
    }
}

#[test]
fn every_link_type_leads_to_the_segment() {
    for (name, link_type, data) in packets::links() {
        assert!(decode::supported(link_type), "{name}");
        let decoded = decode::packet(link_type, &data, data.len() as u32);
        assert_eq!(decoded.stop, None, "{name}");
        assert!(decoded.oddities.is_empty(), "{name}");
        assert_eq!(ports(&decoded), (1000, 80), "{name}: {decoded:?}");
        let Transport::Tcp(tcp) = decoded.transport else { unreachable!() };
        let start = tcp.payload_offset as usize;
        assert_eq!(&data[start..start + tcp.payload_len as usize], b"payload", "{name}");
        assert_eq!(tcp.options.timestamps, Some((1, 2)), "{name}");
    }
    assert!(!decode::supported(LinkType::USB_LINUX));
    let decoded = decode::packet(LinkType::USB_LINUX, &[0x45; 100], 100);
    assert_eq!(decoded, Decoded::default());
}

#[test]
fn both_tags_of_qinq_are_kept() {
    let (_, link_type, data) = packets::links().into_iter().find(|link| link.0 == "QinQ").unwrap();
    let data = [&data[..12], &[0x91, 0, 0, 6], &data[12..]].concat();
    let decoded = decode::packet(link_type, &data, data.len() as u32);
    assert_eq!((decoded.vlan, decoded.inner_vlan), (Some(6), Some(7)));
}

#[test]
fn protocols_above_ip_are_told_apart() {
    let found: Vec<_> = packets::uppers()
        .into_iter()
        .map(|(name, data)| {
            let decoded = frame(&data);
            assert_eq!(decoded.stop, None, "{name}");
            let kind = match decoded.transport {
                Transport::None => "none",
                Transport::Tcp(tcp) => {
                    assert_eq!((tcp.options.mss, tcp.options.window_scale), (Some(1460), Some(7)));
                    assert!(tcp.options.sack_permitted && tcp.payload_len == 1, "{name}");
                    "tcp"
                }
                Transport::Udp(_) => "udp",
                Transport::Icmp(icmp) => {
                    assert_eq!((icmp.kind, icmp.identifier, icmp.sequence), (8, 1, 2), "{name}");
                    "icmp"
                }
                Transport::Sctp(_) => "sctp",
                Transport::Other => "other",
            };
            (name, kind)
        })
        .collect();
    let expected = [
        ("ARP", "none"),
        ("ICMP", "icmp"),
        ("ICMPv6", "icmp"),
        ("SCTP", "sctp"),
        ("IPv4 options", "tcp"),
        ("IPv6 extension headers", "tcp"),
        ("IPv6 fragment", "none"),
        ("ESP", "other"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_fragment_has_its_place_and_an_atomic_one_is_whole() {
    let parts = |offset, more| {
        let data = ipv6(protocol::FRAGMENT, &fragment(protocol::UDP, offset, more, &udp(9, b"x")));
        frame(&ethernet(ethertype::IPV6, &data))
    };
    let decoded = parts(16, false);
    let place = decoded.ip.unwrap().fragment.unwrap();
    assert_eq!((place.offset, place.more, decoded.transport), (16, false, Transport::None));
    assert!(decoded.layers.contains(Layer::Fragment));
    let decoded = parts(0, false);
    assert_eq!((decoded.ip.unwrap().fragment, ports(&decoded)), (None, (1000, 9)));
    assert_eq!(decoded.ip.unwrap().identification, 77);
}

#[test]
fn a_reassembled_payload_is_decoded_behind_its_extension_headers() {
    let payload = extension(protocol::UDP, &[1, 4, 0, 0, 0, 0], &udp(9, b"whole"));
    let number = protocol::DESTINATION_OPTIONS;
    let first = ipv6(protocol::FRAGMENT, &fragment(number, 0, true, &payload[..16]));
    let ip = frame(&ethernet(ethertype::IPV6, &first)).ip.unwrap();
    let decoded = decode::reassembled(&ip, &payload);
    assert_eq!((decoded.stop, ports(&decoded)), (None, (1000, 9)));
    let Transport::Udp(udp) = decoded.transport else { unreachable!() };
    assert_eq!(&payload[udp.payload_offset as usize..], b"whole");
    assert_eq!(decoded.ip.unwrap().fragment, None);
    // The first fragment alone holds the ports as well.
    let (transport, layers, stop) = decode::transport(protocol::UDP, &payload[8..16], 13);
    assert!(
        matches!(transport, Transport::Udp(udp) if udp.payload_len == 5 && udp.source_port == 1000)
    );
    assert!(layers.contains(Layer::Udp) && stop.is_none());
}

/// The version is that of the header, whatever addresses it has.
#[test]
fn ipv4_mapped_addresses_do_not_make_a_header_one_of_ipv4() {
    let mapped = |mut packet: Vec<u8>| {
        for at in [8, 24] {
            packet[at..at + 12].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]);
        }
        frame(&ethernet(ethertype::IPV6, &packet))
    };
    let options = extension(protocol::UDP, &[1, 4, 0, 0, 0, 0], &udp(9, b"whole"));
    let decoded = mapped(ipv6(protocol::HOP_BY_HOP, &options));
    assert!(decoded.ip.unwrap().source.is_v4() && !decoded.ip.unwrap().is_v4());
    assert_eq!((decoded.stop, ports(&decoded)), (None, (1000, 9)));

    let number = protocol::DESTINATION_OPTIONS;
    let first = mapped(ipv6(protocol::FRAGMENT, &fragment(number, 0, true, &options[..16])));
    let ip = first.ip.unwrap();
    assert_eq!((ip.protocol, ip.fragment.is_some()), (number, true));
    let whole = decode::reassembled(&ip, &options);
    assert_eq!((whole.stop, ports(&whole)), (None, (1000, 9)));
    assert!(whole.layers.contains(Layer::Ipv6) && !whole.layers.contains(Layer::Ipv4));
}

#[test]
fn a_routing_header_of_type_0_gives_the_final_destination() {
    let mut data = [0; 38];
    data[..2].copy_from_slice(&[0, 1]);
    data[22..].fill(0x77);
    let packet = ipv6(protocol::ROUTING, &extension(protocol::UDP, &data, &udp(9, b"x")));
    let decoded = frame(&ethernet(ethertype::IPV6, &packet));
    assert!(decoded.oddities.contains(Oddity::RoutingType0));
    let last = "7777:7777:7777:7777:7777:7777:7777:7777";
    assert_eq!(decoded.ip.unwrap().destination.to_string(), last);
    assert_eq!(ports(&decoded), (1000, 9));
}

#[test]
fn length_0_means_what_the_frame_carried() {
    let mut data = ethernet(ethertype::IPV4, &segment());
    data[16..18].fill(0);
    let decoded = frame(&data);
    assert!(decoded.oddities.contains(Oddity::ZeroLength));
    assert!(matches!(decoded.transport, Transport::Tcp(tcp) if tcp.payload_len == 7));
}

/// The tunnel in a frame, which must be a whole one.
fn the_tunnel(name: &str, data: &[u8]) -> Tunnel {
    match tunnel::find(&frame(data), data, TunnelPorts::KNOWN) {
        Some(Ok(tunnel)) => tunnel,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn every_tunnel_leads_to_the_inner_packet() {
    for (name, data) in packets::tunnels() {
        // Padding of the outer frame belongs to no inner packet.
        for padding in [0, 5] {
            let data = [&data[..], &[0; 5][..padding]].concat();
            let tunnel = the_tunnel(name, &data);
            let inner = tunnel.decode(&data);
            assert_eq!(inner.stop, None, "{name}");
            assert!(matches!(ports(&inner), (1000, 80 | 9)), "{name}: {inner:?}");
            let end = tunnel.end as usize;
            assert!(data[..end].ends_with(b"payload"), "{name}");
        }
    }
    let identifiers: Vec<_> = packets::tunnels()
        .iter()
        .filter_map(|(name, data)| Some((*name, the_tunnel(name, data).identifier?)))
        .collect();
    let expected = [
        ("GRE with key", 5),
        ("ERSPAN II", 5),
        ("PPTP", 5),
        ("PPTP, short", 5),
        ("VXLAN", 9),
        ("VXLAN of Linux", 9),
        ("VXLAN, reserved bits", 9),
        ("Geneve", 9),
        ("Geneve with IP", 9),
        ("GTP-U", 3),
        ("GTP-U with extension", 3),
        ("GRE in UDP, bridging", 5),
        ("MPLS in UDP", 16),
        ("MPLS in UDP, Ethernet", 16),
    ];
    assert_eq!(identifiers, expected);
}

/// A query as resolvers send it, which any of the ports may carry as its source port.
#[test]
fn other_traffic_on_the_ports_of_tunnels_is_no_tunnel() {
    let query = b"\x08\x00\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x07example\x03com\x00\x00\x01\x00\x01";
    for first in 0..=255 {
        let mut query = query.to_vec();
        query[0] = first;
        for port in [4789, 8472, 6081, 2152, 2123, 3544, 5072, 4754, 6635, 53] {
            let data = ethernet(ethertype::IPV4, &ipv4(protocol::UDP, &[], &udp(port, &query)));
            let found = tunnel::find(&frame(&data), &data, TunnelPorts::KNOWN);
            assert_eq!(found, None, "port {port}, id {first:#04x}");
        }
    }
}

#[test]
fn a_tunnel_that_disagrees_with_its_content_is_named() {
    let named = |number, payload: &[u8]| {
        let data = ethernet(ethertype::IPV4, &ipv4(number, &[], payload));
        match tunnel::find(&frame(&data), &data, TunnelPorts::KNOWN) {
            Some(Err(stop)) => stop.weird,
            other => panic!("{other:?}"),
        }
    };
    let ip = segment();
    assert_eq!(named(protocol::IPV6, &ip), "invalid_inner_IP_version");
    assert_eq!(named(protocol::IPV4, &ip[..30]), "truncated_inner_IP");
    let longer = [&ip[..], &[0]].concat();
    assert_eq!(named(protocol::IPV4, &longer), "inner_IP_payload_length_mismatch");
    assert_eq!(named(protocol::GRE, &[0, 2, 8, 0]), "unknown_gre_version");
    assert_eq!(named(protocol::GRE, &[0, 1, 8, 0]), "egre_protocol_type");
    assert_eq!(named(protocol::GRE, &[0x40, 0, 8, 0]), "gre_routing");
    assert_eq!(named(protocol::GRE, &[0x20, 0, 8, 0, 1]), "truncated_GRE");
    let lcp = [0x10, 1, 0x88, 0x0b, 0, 0, 0, 1, 0xff, 3, 0xc0, 0x21];
    assert_eq!(named(protocol::GRE, &lcp), "non_ip_packet_in_encap");
}

/// Every packet of this file.
fn all() -> Vec<(&'static str, LinkType, Vec<u8>)> {
    let above = packets::uppers().into_iter().chain(packets::tunnels());
    let above = above.map(|(name, data)| (name, LinkType::ETHERNET, data));
    packets::links().into_iter().chain(above).collect()
}

#[test]
fn a_packet_that_the_capture_cut_stops_as_cut_and_keeps_its_lengths() {
    for (name, link_type, data) in all() {
        let wire_len = data.len() as u32;
        let whole = decode::packet(link_type, &data, wire_len);
        for kept in 0..data.len() {
            let decoded = decode::packet(link_type, &data[..kept], wire_len);
            if let Some(stop) = decoded.stop {
                assert!(stop.cut, "{name} at {kept}: {stop:?}");
                assert!(stop.needed > stop.had, "{name} at {kept}: {stop:?}");
            }
            if let (Some(cut), Some(whole)) = (decoded.ip, whole.ip)
                && cut.payload_offset == whole.payload_offset
            {
                assert_eq!(cut.payload_len, whole.payload_len, "{name} at {kept}");
            }
        }
    }
}

/// Everything that is offered for a packet, on bytes that may be anything.
fn exercise(link_type: LinkType, data: &[u8], wire_len: u32) -> usize {
    let mut decoded = decode::packet(link_type, data, wire_len);
    let mut depth = 0;
    loop {
        let (offset, captured) = match decoded.transport {
            Transport::Tcp(tcp) => (tcp.payload_offset, tcp.payload_captured),
            Transport::Udp(udp) => (udp.payload_offset, udp.payload_captured),
            Transport::Icmp(icmp) => (icmp.payload_offset, icmp.payload_captured),
            Transport::Sctp(sctp) => (sctp.payload_offset, sctp.payload_captured),
            Transport::None | Transport::Other => (0, 0),
        };
        assert!(captured == 0 || (offset + captured) as usize <= data.len(), "{decoded:?}");
        if let Some(ip) = decoded.ip {
            assert!(ip.payload_captured <= ip.payload_len, "{decoded:?}");
            assert!(ip.payload_len <= ip.total_len, "{decoded:?}");
            let end = ip.payload_offset + ip.payload_captured;
            assert!(ip.payload_captured == 0 || end as usize <= data.len(), "{decoded:?}");
            let payload = data.get(ip.payload_offset as usize..end as usize).unwrap_or_default();
            let _ = decode::reassembled(&ip, payload);
            let _ = checksum::ip_header(data.get(ip.offset as usize..).unwrap_or_default());
        }
        let _ = checksum::transport(&decoded, data);
        match tunnel::find(&decoded, data, TunnelPorts::KNOWN) {
            Some(Ok(tunnel)) if depth < 8 => decoded = tunnel.decode(data),
            _ => return depth,
        }
        depth += 1;
    }
}

/// The generator `xorshift64*` of Vigna, 2016.
fn random(state: &mut u64) -> usize {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize
}

#[test]
fn no_mutation_makes_the_decoder_panic_or_reach_outside() {
    let packets = all();
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut tunnels = 0;
    for _ in 0..100_000 {
        let (_, link_type, data) = &packets[random(&mut state) % packets.len()];
        let mut data = data.clone();
        for _ in 0..=random(&mut state) % 4 {
            let at = random(&mut state) % data.len();
            match random(&mut state) % 4 {
                0 => data[at] ^= 1 << (random(&mut state) % 8),
                1 => data[at] = random(&mut state) as u8,
                2 => data.truncate(at.max(1)),
                _ => {
                    let other = &packets[random(&mut state) % packets.len()].2;
                    data.truncate(at.max(1));
                    data.extend(&other[random(&mut state) % other.len()..]);
                }
            }
        }
        let wire_len = match random(&mut state) % 3 {
            0 => 0,
            1 => data.len() as u32,
            _ => random(&mut state) as u32,
        };
        tunnels += exercise(*link_type, &data, wire_len);
        exercise(LinkType(random(&mut state) as u16 % 300), &data, wire_len);
    }
    assert!(tunnels > 1000, "too few mutations left a tunnel whole: {tunnels}");
}

#[test]
fn tcp_options_are_read_in_any_order() {
    let sack = [1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4];
    let data = ethernet(ethertype::IPV4, &ipv4(protocol::TCP, &[], &tcp(&sack, b"")));
    let Transport::Tcp(tcp_header) = frame(&data).transport else { panic!() };
    assert_eq!(tcp_header.options.sack_count, 2);
    assert_eq!(tcp_header.options.sack[..2], [(1, 2), (3, 4)]);
    let bad = [2, 4, 5, 180, 8, 4, 0, 0];
    let data = ethernet(ethertype::IPV4, &ipv4(protocol::TCP, &[], &tcp(&bad, b"")));
    let Transport::Tcp(tcp_header) = frame(&data).transport else { panic!() };
    assert!(tcp_header.options.malformed && tcp_header.options.mss == Some(1460));
}

/// From the end of the fixed header on, what a snap length leaves of a segment is one.
#[test]
fn a_segment_whose_options_the_capture_cut_has_all_but_them() {
    let options = [2, 4, 5, 180, 4, 2, 1, 3, 3, 7, 0, 0];
    for (name, data, header) in [
        ("IPv4", ethernet(ethertype::IPV4, &ipv4(protocol::TCP, &[], &tcp(&options, b"x"))), 54),
        ("IPv6", ethernet(ethertype::IPV6, &ipv6(protocol::TCP, &tcp(&options, b"x"))), 74),
        (
            "VLAN",
            ethernet(
                ethertype::VLAN,
                &vlan(7, ethertype::IPV6, &ipv6(protocol::TCP, &tcp(&options, b"x"))),
            ),
            78,
        ),
    ] {
        for kept in 0..data.len() {
            let decoded = decode::packet(LinkType::ETHERNET, &data[..kept], data.len() as u32);
            let Transport::Tcp(tcp) = decoded.transport else {
                assert!(kept < header, "{name} at {kept}");
                continue;
            };
            assert!(kept >= header && decoded.stop.is_none(), "{name} at {kept}");
            assert_eq!((tcp.payload_len, tcp.payload_captured), (1, 0), "{name} at {kept}");
            let is_cut = kept < header + options.len();
            assert_eq!((tcp.options.cut, tcp.options.mss.is_some()), (is_cut, !is_cut));
        }
        // What the sender left out was not cut.
        let short = decode::packet(LinkType::ETHERNET, &data[..header], header as u32);
        assert!(short.stop.is_some(), "{name}");
    }
}

/// A length of 0 stands for one that does not fit into 16 bits, at every level.
#[test]
fn big_datagrams_have_the_length_of_their_frame() {
    let big = vec![7; 70_000];
    let zeroed = |mut data: Vec<u8>, at: usize| {
        data[at..at + 2].fill(0);
        data
    };
    let outer = |payload: &[u8]| {
        let udp = zeroed(udp(payload[0].into(), &payload[1..]), 4);
        [
            zeroed(ethernet(ethertype::IPV4, &ipv4(protocol::UDP, &[], &udp)), 16),
            zeroed(ethernet(ethertype::IPV6, &ipv6(protocol::UDP, &udp)), 18),
        ]
    };
    for data in outer(&[&[9][..], &big].concat()) {
        for kept in [70, 1000, data.len()] {
            let decoded = decode::packet(LinkType::ETHERNET, &data[..kept], data.len() as u32);
            let Transport::Udp(udp) = decoded.transport else { panic!("{decoded:?}") };
            assert_eq!((udp.len, udp.payload_len), (70_008, 70_000), "{kept} bytes captured");
        }
    }
    let mut small = ethernet(ethertype::IPV4, &ipv4(protocol::UDP, &[], &udp(9, b"small")));
    small[38..40].fill(0);
    assert!(matches!(frame(&small).transport, Transport::Udp(udp) if udp.len == 0));
}

#[test]
fn a_big_packet_is_found_in_every_tunnel() {
    let big = [&timed_segment()[..], &vec![7; 70_000]].concat();
    let mut v4 = ipv4(protocol::TCP, &[], &big);
    v4[2..4].fill(0);
    let mut v6 = ipv6(protocol::TCP, &big);
    v6[4..6].fill(0);
    for (name, port, payload) in [
        ("VXLAN", 4789, vxlan(9, &ethernet(ethertype::IPV4, &v4))),
        ("VXLAN, IPv6", 8472, vxlan(9, &ethernet(ethertype::IPV6, &v6))),
        ("Geneve", 6081, geneve(ethertype::IPV4, &[], &v4)),
        ("Geneve, IPv6", 6081, geneve(ethertype::IPV6, &[], &v6)),
    ] {
        let mut datagram = udp(port, &payload);
        datagram[4..6].fill(0);
        let mut data = ethernet(ethertype::IPV4, &ipv4(protocol::UDP, &[], &datagram));
        data[16..18].fill(0);
        for kept in [200, data.len()] {
            let outer = decode::packet(LinkType::ETHERNET, &data[..kept], data.len() as u32);
            let found = tunnel::find(&outer, &data[..kept], TunnelPorts::KNOWN);
            let inner = found.expect(name).expect(name).decode(&data[..kept]);
            let Transport::Tcp(tcp) = inner.transport else { panic!("{name}: {inner:?}") };
            assert_eq!(tcp.payload_len, 70_007, "{name}");
        }
    }
}

#[test]
fn tunnels_are_found_on_further_ports_where_these_are_told() {
    let ports: TunnelPorts = "vxlan=9999,geneve=9998".parse().unwrap();
    let inner = ethernet(ethertype::IPV4, &segment());
    for (port, payload) in
        [(9999, vxlan(9, &inner)), (9998, geneve(ethertype::IPV4, &[], &segment()))]
    {
        let data = ethernet(ethertype::IPV6, &ipv6(protocol::UDP, &udp(port, &payload)));
        assert_eq!(tunnel::find(&frame(&data), &data, TunnelPorts::KNOWN), None);
        let found = tunnel::find(&frame(&data), &data, &ports).unwrap().unwrap();
        assert_eq!(self::ports(&found.decode(&data)), (1000, 80));
    }
}
