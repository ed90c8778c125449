//! Packets of every kind that the decoder knows, built from the header values.

use netsniff_packet::LinkType;
use netsniff_packet::wire::arp::ArpPacket;
use netsniff_packet::wire::ethernet::{EthernetHeader, ethertype};
use netsniff_packet::wire::geneve::GeneveHeader;
use netsniff_packet::wire::gre::GreHeader;
use netsniff_packet::wire::gtpu::{GtpuHeader, T_PDU};
use netsniff_packet::wire::icmp::IcmpHeader;
use netsniff_packet::wire::ipv4::{Ipv4Header, protocol};
use netsniff_packet::wire::ipv6::Ipv6Header;
use netsniff_packet::wire::ipv6_extension::{
    AuthenticationHeader, ExtensionHeader, FragmentHeader,
};
use netsniff_packet::wire::llc::LlcHeader;
use netsniff_packet::wire::mpls::MplsEntry;
use netsniff_packet::wire::pppoe::PppoeHeader;
use netsniff_packet::wire::sctp::SctpHeader;
use netsniff_packet::wire::tcp::TcpHeader;
use netsniff_packet::wire::udp::UdpHeader;
use netsniff_packet::wire::vlan::VlanTag;
use netsniff_packet::wire::vxlan::VxlanHeader;

/// What `emit` wrote, and `payload` behind it.
pub(crate) fn header(emit: impl FnOnce(&mut [u8]) -> Option<usize>, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    let len = emit(&mut bytes).expect("a header fits into 512 bytes");
    bytes.truncate(len);
    bytes.extend(payload);
    bytes
}

pub(crate) fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let value = EthernetHeader { destination: [2; 6], source: [4; 6], ethertype };
    header(|buffer| value.emit(buffer), payload)
}

pub(crate) fn ipv4(number: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let value = Ipv4Header {
        traffic_class: 0,
        total_len: (20 + options.len() + payload.len()) as u16,
        identification: 1,
        reserved_flag: false,
        dont_fragment: false,
        more_fragments: false,
        fragment_offset: 0,
        ttl: 64,
        protocol: number,
        checksum: 0,
        source: [192, 0, 2, 1],
        destination: [192, 0, 2, 2],
        options,
    };
    header(|buffer| value.emit(buffer), payload)
}

pub(crate) fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let value = Ipv6Header {
        traffic_class: 1,
        flow_label: 2,
        payload_len: payload.len() as u16,
        next_header,
        hop_limit: 64,
        source: [0x20; 16],
        destination: [0x21; 16],
    };
    header(|buffer| value.emit(buffer), payload)
}

pub(crate) fn extension(next_header: u8, data: &[u8], payload: &[u8]) -> Vec<u8> {
    header(|buffer| ExtensionHeader { next_header, data }.emit(buffer), payload)
}

pub(crate) fn fragment(
    next_header: u8,
    offset: u16,
    more_fragments: bool,
    payload: &[u8],
) -> Vec<u8> {
    let value = FragmentHeader { next_header, offset, more_fragments, identification: 77 };
    header(|buffer| value.emit(buffer), payload)
}

pub(crate) fn tcp(options: &[u8], payload: &[u8]) -> Vec<u8> {
    let value = TcpHeader {
        source_port: 1000,
        destination_port: 80,
        sequence: 5,
        acknowledgement: 6,
        flags: 0x18,
        window: 100,
        checksum: 0,
        urgent_pointer: 0,
        options,
    };
    header(|buffer| value.emit(buffer), payload)
}

pub(crate) fn udp(destination_port: u16, payload: &[u8]) -> Vec<u8> {
    let datagram_len = (8 + payload.len()) as u16;
    let value = UdpHeader { source_port: 1000, destination_port, datagram_len, checksum: 0 };
    header(|buffer| value.emit(buffer), payload)
}

pub(crate) fn vlan(id: u16, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let value = VlanTag { priority: 0, drop_eligible: false, id, ethertype };
    header(|buffer| value.emit(buffer), payload)
}

pub(crate) fn mpls(bottom_of_stack: bool, payload: &[u8]) -> Vec<u8> {
    let value = MplsEntry { label: 16, traffic_class: 0, bottom_of_stack, ttl: 64 };
    header(|buffer| value.emit(buffer), payload)
}

pub(crate) fn pppoe(payload: &[u8]) -> Vec<u8> {
    let value = PppoeHeader { code: 0, session: 1, payload_len: payload.len() as u16 };
    header(|buffer| value.emit(buffer), payload)
}

pub(crate) fn snap(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    header(|buffer| LlcHeader::for_ethertype(ethertype).emit(buffer), payload)
}

pub(crate) fn gre(value: GreHeader, payload: &[u8]) -> Vec<u8> {
    header(|buffer| value.emit(buffer), payload)
}

pub(crate) fn vxlan(vni: u32, payload: &[u8]) -> Vec<u8> {
    header(|buffer| VxlanHeader { vni }.emit(buffer), payload)
}

pub(crate) fn geneve(protocol: u16, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let value = GeneveHeader { control: false, critical: false, protocol, vni: 9, options };
    header(|buffer| value.emit(buffer), payload)
}

pub(crate) fn gtpu(extensions: Option<(u8, &[u8])>, payload: &[u8]) -> Vec<u8> {
    let optional = extensions.map_or(0, |(_, bytes)| 4 + bytes.len());
    let value = GtpuHeader {
        message_type: T_PDU,
        payload_len: (optional + payload.len()) as u16,
        teid: 3,
        sequence: None,
        npdu: None,
        extensions,
    };
    header(|buffer| value.emit(buffer), payload)
}

/// A segment with addresses of version 4.
pub(crate) fn segment() -> Vec<u8> {
    ipv4(protocol::TCP, &[], &tcp(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2], b"payload"))
}

/// A datagram with addresses of version 6.
pub(crate) fn datagram() -> Vec<u8> {
    ipv6(protocol::UDP, &udp(9, b"payload"))
}

/// Teredo's indications of authentication and origin before a datagram.
pub(crate) fn teredo() -> Vec<u8> {
    let mut bytes = vec![0, 1, 2, 3];
    bytes.extend([7; 2 + 3 + 9]);
    bytes.extend([0, 0, 1, 2, 3, 4, 5, 6]);
    bytes.extend(datagram());
    bytes
}

/// A header of AYIYA with 16 bytes of identity and 20 of signature.
pub(crate) fn ayiya(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x42, 0x52, 0x11, next_header];
    bytes.extend([7; 4 + 16 + 20]);
    bytes.extend(payload);
    bytes
}

fn prefixed(prefix: &[u8], payload: &[u8]) -> Vec<u8> {
    [prefix, payload].concat()
}

/// One packet for each way through the link layer; all carry [`segment`].
pub(crate) fn links() -> Vec<(&'static str, LinkType, Vec<u8>)> {
    let ip = segment();
    let snapped = snap(ethertype::IPV4, &ip);
    let tagged = vlan(7, ethertype::VLAN, &vlan(8, ethertype::IPV4, &ip));
    let ppp = prefixed(&[0xff, 0x03, 0x00, 0x21], &ip);
    let wire = |kind, payload: &[u8]| (LinkType::ETHERNET, ethernet(kind, payload));
    let pseudo_wire = prefixed(&[0; 4], &ethernet(ethertype::IPV4, &ip));
    let mut sll = vec![0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0];
    sll.extend(&ip);
    let mut sll2 = vec![8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0];
    sll2.extend(&ip);
    let nflog = [&[2, 0, 0, 0, 5, 0, 10, 0, 9, 0, 0, 0, 4, 0, 9, 0][..], &ip].concat();
    let nflog_big = [&[2, 0, 0, 0, 0, 5, 0, 10, 9, 0, 0, 0, 0, 4, 0, 9][..], &ip].concat();
    let mut four_addresses_qos = vec![0x88, 0x83];
    four_addresses_qos.extend([0; 28 + 2 + 4]);
    four_addresses_qos.extend(&snapped);
    let mut data_frame = vec![0x08, 0x01];
    data_frame.extend([0; 22]);
    data_frame.extend(&snapped);
    // Time stamp and flags, which say that the header is padded to a multiple of 4.
    let mut radiotap = vec![0, 0, 17, 0, 3, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x20, 0x88, 0x01];
    radiotap.extend([0; 22 + 2 + 2]);
    radiotap.extend(&snapped);
    let packets = [
        ("Ethernet", wire(ethertype::IPV4, &ip)),
        ("QinQ", wire(ethertype::SERVICE_VLAN, &tagged)),
        ("802.3", wire(snapped.len() as u16, &snapped)),
        ("MPLS", wire(ethertype::MPLS, &mpls(false, &mpls(true, &ip)))),
        ("pseudo-wire", wire(ethertype::MPLS, &mpls(true, &pseudo_wire))),
        (
            "pseudo-wire without control word",
            wire(ethertype::MPLS, &mpls(true, &ethernet(ethertype::IPV4, &ip))),
        ),
        ("PPPoE", wire(ethertype::PPPOE_SESSION, &pppoe(&prefixed(&[0x00, 0x21], &ip)))),
        ("PPPoE, short", wire(ethertype::PPPOE_SESSION, &pppoe(&prefixed(&[0x21], &ip)))),
        ("PPP", (LinkType::PPP, ppp.clone())),
        ("PPP without framing", (LinkType::PPP, ppp[2..].to_vec())),
        ("PPP in HDLC", (LinkType::PPP_HDLC, ppp)),
        ("Cisco HDLC", (LinkType::PPP_HDLC, prefixed(&[0x0f, 0, 8, 0], &ip))),
        ("PPP_ETHER", (LinkType::PPP_ETHER, pppoe(&prefixed(&[0x00, 0x21], &ip)))),
        ("SLL", (LinkType::LINUX_SLL, sll)),
        ("SLL2", (LinkType::LINUX_SLL2, sll2)),
        ("NULL, little", (LinkType::NULL, prefixed(&[2, 0, 0, 0], &ip))),
        ("NULL, big", (LinkType::NULL, prefixed(&[0, 0, 0, 2], &ip))),
        ("LOOP", (LinkType::LOOP, prefixed(&[0, 0, 0, 30], &ip))),
        ("NFLOG, little", (LinkType::NFLOG, nflog)),
        ("NFLOG, big", (LinkType::NFLOG, nflog_big)),
        ("802.11", (LinkType::IEEE802_11, data_frame)),
        ("802.11, four addresses, QoS, HT", (LinkType::IEEE802_11, four_addresses_qos)),
        ("radiotap", (LinkType::IEEE802_11_RADIOTAP, radiotap)),
        ("RAW", (LinkType::RAW, ip.clone())),
        ("IPV4", (LinkType::IPV4, ip)),
    ];
    packets.into_iter().map(|(name, (link_type, bytes))| (name, link_type, bytes)).collect()
}

/// Packets above IP, in Ethernet frames.
pub(crate) fn uppers() -> Vec<(&'static str, Vec<u8>)> {
    let icmp = header(
        |buffer| IcmpHeader { kind: 8, code: 0, checksum: 0, rest: [0, 1, 0, 2] }.emit(buffer),
        b"ping",
    );
    let sctp = SctpHeader { source_port: 1, destination_port: 2, verification_tag: 3, checksum: 4 };
    let sctp = header(|buffer| sctp.emit(buffer), &[0; 16]);
    let segment_above = tcp(&[2, 4, 5, 180, 4, 2, 1, 3, 3, 7, 0, 0], b"x");
    let authentication = header(
        |buffer| {
            let (next_header, data) = (protocol::TCP, &[0; 16]);
            AuthenticationHeader { next_header, security_parameters_index: 1, data }.emit(buffer)
        },
        &segment_above,
    );
    let chain = extension(
        protocol::DESTINATION_OPTIONS,
        &[1, 4, 0, 0, 0, 0],
        &extension(
            protocol::FRAGMENT,
            &[1, 4, 0, 0, 0, 0],
            &fragment(protocol::AUTHENTICATION, 0, false, &authentication),
        ),
    );
    let arp = ArpPacket {
        hardware: 1,
        protocol: ethertype::IPV4,
        operation: 1,
        sender_hardware: &[1; 6],
        sender_protocol: &[2; 4],
        target_hardware: &[0; 6],
        target_protocol: &[3; 4],
    };
    let over_ipv4 = |number, payload: &[u8]| ethernet(ethertype::IPV4, &ipv4(number, &[], payload));
    let over_ipv6 = |number, payload: &[u8]| ethernet(ethertype::IPV6, &ipv6(number, payload));
    vec![
        ("ARP", ethernet(ethertype::ARP, &header(|buffer| arp.emit(buffer), &[]))),
        ("ICMP", over_ipv4(protocol::ICMP, &icmp)),
        ("ICMPv6", over_ipv6(protocol::ICMPV6, &icmp)),
        ("SCTP", over_ipv4(protocol::SCTP, &sctp)),
        ("IPv4 options", ethernet(ethertype::IPV4, &ipv4(protocol::TCP, &[1; 8], &segment_above))),
        ("IPv6 extension headers", over_ipv6(protocol::HOP_BY_HOP, &chain)),
        (
            "IPv6 fragment",
            over_ipv6(protocol::FRAGMENT, &fragment(protocol::UDP, 8, true, &[5; 24])),
        ),
        ("ESP", over_ipv6(protocol::ESP, &[9; 40])),
    ]
}

/// Tunnels in Ethernet frames; all carry [`segment`] or [`datagram`].
pub(crate) fn tunnels() -> Vec<(&'static str, Vec<u8>)> {
    let (ip, ip6) = (segment(), datagram());
    let frame = ethernet(ethertype::IPV4, &ip);
    let keyed = |version, protocol| GreHeader {
        version,
        protocol,
        checksum: None,
        key: Some(5),
        sequence: Some(6),
        acknowledgement: None,
    };
    let plain = |protocol| GreHeader { protocol, ..GreHeader::default() };
    let over = |number, payload: &[u8]| ethernet(ethertype::IPV4, &ipv4(number, &[], payload));
    let over_udp = |port, payload: &[u8]| over(protocol::UDP, &udp(port, payload));
    let in_gre = |value, payload: &[u8]| over(protocol::GRE, &gre(value, payload));
    let erspan_iii = [&[0; 11][..], &[1], &[0; 8], &frame].concat();
    vec![
        ("IP in IP", over(protocol::IPV4, &ip)),
        ("6in4", over(protocol::IPV6, &ip6)),
        ("4in6", ethernet(ethertype::IPV6, &ipv6(protocol::IPV4, &ip))),
        ("GRE", in_gre(plain(ethertype::IPV4), &ip)),
        ("GRE with key", in_gre(keyed(0, ethertype::IPV6), &ip6)),
        ("GRE bridging", in_gre(plain(ethertype::BRIDGING), &frame)),
        ("ERSPAN I", in_gre(plain(ethertype::ERSPAN), &frame)),
        ("ERSPAN II", in_gre(keyed(0, ethertype::ERSPAN), &prefixed(&[0; 8], &frame))),
        ("ERSPAN III", in_gre(plain(ethertype::ERSPAN_III), &erspan_iii)),
        ("PPTP", in_gre(keyed(1, ethertype::PPP), &prefixed(&[0xff, 3, 0, 0x21], &ip))),
        ("PPTP, short", in_gre(keyed(1, ethertype::PPP), &prefixed(&[0x57], &ip6))),
        ("VXLAN", over_udp(4789, &vxlan(9, &frame))),
        ("Geneve", over_udp(6081, &geneve(ethertype::BRIDGING, &[0; 8], &frame))),
        ("Geneve with IP", over_udp(6081, &geneve(ethertype::IPV6, &[], &ip6))),
        ("GTP-U", over_udp(2152, &gtpu(None, &ip))),
        ("GTP-U with extension", over_udp(2152, &gtpu(Some((0x85, &[1, 0, 9, 0])), &ip6))),
        ("Teredo", over_udp(3544, &teredo())),
        ("Teredo, bare", over_udp(3544, &ip6)),
        ("AYIYA", over_udp(5072, &ayiya(protocol::IPV6, &ip6))),
    ]
}
