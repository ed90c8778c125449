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

/// Addresses of hosts, none of which another field has: what stays of one is seen.
pub(crate) const HOSTS: [[u8; 6]; 4] = [
    [0x38, 0x94, 0xed, 0x12, 0x34, 0x56],
    [0x3c, 0x22, 0xfb, 0x65, 0x43, 0x21],
    [0xf4, 0xf5, 0xe8, 0xaa, 0xbb, 0xcc],
    [0xb8, 0x27, 0xeb, 0xdd, 0xee, 0xff],
];

/// What `emit` wrote, and `payload` behind it.
pub(crate) fn header(emit: impl FnOnce(&mut [u8]) -> Option<usize>, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    let len = emit(&mut bytes).expect("a header fits into 512 bytes");
    bytes.truncate(len);
    bytes.extend(payload);
    bytes
}

pub(crate) fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let [destination, source, ..] = HOSTS;
    let value = EthernetHeader { destination, source, ethertype };
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
    ipv4(protocol::TCP, &[], &timed_segment())
}

/// A segment with time stamps.
pub(crate) fn timed_segment() -> Vec<u8> {
    tcp(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2], b"payload")
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
    let host = &HOSTS[0][..];
    let sll = [&[0, 0, 0, 1, 0, 6][..], host, &[0, 0, 8, 0], &ip].concat();
    let sll2 = [&[8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6][..], host, &[0, 0], &ip].concat();
    // Field 8 is the hardware address: length, padding, address.
    let nflog = [&[2, 0, 0, 0, 16, 0, 8, 0, 0, 6, 0, 0][..], host, &[0; 2], &[4, 0, 9, 0], &ip];
    let nflog = nflog.concat();
    let nflog_big = [&[2, 0, 0, 0, 0, 16, 0, 8, 0, 6, 0, 0][..], host, &[0; 2], &[0, 4, 0, 9], &ip];
    let nflog_big = nflog_big.concat();
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
        ("RAW", (LinkType::RAW, ip.clone())),
        ("IPV4", (LinkType::IPV4, ip)),
        ("IPV6", (LinkType::IPV6, ipv6(protocol::TCP, &timed_segment()))),
    ];
    let packets = packets.into_iter().map(|(name, (link_type, bytes))| (name, link_type, bytes));
    let tags = tags().into_iter().map(|(name, bytes)| (name, LinkType::ETHERNET, bytes));
    packets.chain(wireless()).chain(tags).collect()
}

/// An IEEE 802.11 header: frame control, so many addresses of hosts, and what follows them.
pub(crate) fn wlan(control: [u8; 2], addresses: usize, behind: &[u8], payload: &[u8]) -> Vec<u8> {
    let [first, second, third, fourth] = HOSTS;
    let mut bytes = [&control[..], &[0; 2], &first, &second, &third, &[0; 2]].concat();
    if addresses > 3 {
        bytes.extend(fourth);
    }
    bytes.extend(behind);
    bytes.extend(payload);
    bytes
}

/// A radiotap header with presence words and fields.
pub(crate) fn radiotap(words: &[u32], fields: &[u8], payload: &[u8]) -> Vec<u8> {
    let len = 4 + 4 * words.len() + fields.len();
    let mut bytes = vec![0, 0, len as u8, 0];
    words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    bytes.extend(fields);
    bytes.extend(payload);
    bytes
}

/// Packets that went over the air; all carry [`segment`].
fn wireless() -> Vec<(&'static str, LinkType, Vec<u8>)> {
    const TIME_AND_FLAGS: u32 = 3;
    const MORE: u32 = 1 << 31;
    const OWN: u32 = 1 << 29;
    const VENDOR: u32 = 1 << 30;
    let snapped = snap(ethertype::IPV4, &segment());
    let plain = |payload: &[u8]| wlan([0x08, 0x01], 3, &[], payload);
    let four = wlan([0x88, 0x83], 4, &[0; 2 + 4], &snapped);
    let len = (snapped.len() as u16).to_be_bytes();
    let subframe = [&HOSTS[3][..], &HOSTS[2], &len, &snapped].concat();
    let aggregate = wlan([0x88, 0x02], 3, &[0x80, 0], &subframe);
    let aggregate_ht = wlan([0x88, 0x83], 4, &[0x80, 0, 1, 2, 3, 4], &subframe);
    let padded = wlan([0x88, 0x01], 3, &[0, 0, 9, 9], &snapped);
    let time = [1, 2, 3, 4, 5, 6, 7, 8];
    let with = |flags: u8, frame: &[u8]| {
        radiotap(&[TIME_AND_FLAGS], &[&time[..], &[flags]].concat(), frame)
    };
    let several = [&[0; 4][..], &time, &[0], &[0; 7]].concat();
    let vendor = [&time[..], &[0], &[0; 3], &HOSTS[3]].concat();
    let air = [
        ("802.11", plain(&snapped)),
        ("802.11, four addresses, QoS, HT", four.clone()),
        ("802.11, aggregate", aggregate.clone()),
        ("802.11, aggregate, four addresses, HT", aggregate_ht),
        ("802.11, check sequence", [&plain(&snapped)[..], &HOSTS[0][..4]].concat()),
    ];
    let tapped = [
        ("radiotap", with(0x20, &padded)),
        ("radiotap, four addresses", with(0, &four)),
        ("radiotap, aggregate", with(0, &aggregate)),
        ("radiotap, check sequence", with(0x10, &[&plain(&snapped)[..], &HOSTS[1][..4]].concat())),
        (
            "radiotap, several words",
            radiotap(
                &[TIME_AND_FLAGS | OWN | MORE, 0x20 | OWN | MORE, 0x20],
                &several,
                &plain(&snapped),
            ),
        ),
        ("radiotap, vendor", radiotap(&[TIME_AND_FLAGS | VENDOR], &vendor, &plain(&snapped))),
    ];
    let air = air.into_iter().map(|(name, bytes)| (name, LinkType::IEEE802_11, bytes));
    let tapped =
        tapped.into_iter().map(|(name, bytes)| (name, LinkType::IEEE802_11_RADIOTAP, bytes));
    air.chain(tapped).collect()
}

/// A network service header with metadata behind its path.
pub(crate) fn nsh(metadata_type: u8, next: u8, metadata: &[u8], payload: &[u8]) -> Vec<u8> {
    let words = 2 + metadata.len() as u8 / 4;
    [&[0x0f, 0xc0 | words, metadata_type, next, 0, 0, 1, 255][..], metadata, payload].concat()
}

/// Ethernet frames with tags of switches; all carry [`segment`].
pub(crate) fn tags() -> Vec<(&'static str, Vec<u8>)> {
    let ip = segment();
    let inner = ethernet(ethertype::IPV4, &ip);
    let tagged =
        |tag: &[u8], kind: u16, payload: &[u8]| [tag, &kind.to_be_bytes(), payload].concat();
    let behind_vlan = |payload: &[u8]| tagged(&[0x80, 9, 0, 1], ethertype::VLAN, payload);
    let vlan_ip = vlan(11, ethertype::IPV4, &ip);
    let e_tag = [0x20, 5, 0, 7, 0, 0];
    let service = prefixed(&[0, 0, 0, 99], &inner);
    let channel = [&[0x20, 0, 0, 0, 0, 1][..], &HOSTS[2], &[0, 1]].concat();
    let context = [&HOSTS[3][..], &HOSTS[2], &[0; 4]].concat();
    let fabric_path = [&HOSTS[3][..], &HOSTS[2], &[0x89, 0x03, 0, 1], &inner].concat();
    vec![
        ("VN-Tag", ethernet(ethertype::VN_TAG, &behind_vlan(&vlan_ip))),
        ("VN-Tag, no VLAN", ethernet(ethertype::VN_TAG, &tagged(&[0; 4], ethertype::IPV4, &ip))),
        (
            "VN-Tag behind VLAN",
            ethernet(ethertype::VLAN, &vlan(3, ethertype::VN_TAG, &behind_vlan(&vlan_ip))),
        ),
        ("E-TAG", ethernet(ethertype::E_TAG, &tagged(&e_tag, ethertype::IPV4, &ip))),
        ("E-TAG and VLAN", ethernet(ethertype::E_TAG, &tagged(&e_tag, ethertype::VLAN, &vlan_ip))),
        ("PBB", ethernet(ethertype::SERVICE_INSTANCE, &service)),
        (
            "PBB behind a B-TAG",
            ethernet(ethertype::SERVICE_VLAN, &vlan(5, ethertype::SERVICE_INSTANCE, &service)),
        ),
        ("HSR", ethernet(ethertype::HSR, &tagged(&[0, 60, 0, 1], ethertype::IPV4, &ip))),
        (
            "Cisco metadata",
            ethernet(ethertype::CISCO_METADATA, &tagged(&[1, 1, 0, 1, 0, 9], ethertype::IPV4, &ip)),
        ),
        ("MACsec", ethernet(ethertype::MACSEC, &tagged(&[0, 0, 0, 0, 0, 1], ethertype::IPV4, &ip))),
        ("MACsec, channel", ethernet(ethertype::MACSEC, &tagged(&channel, ethertype::IPV4, &ip))),
        ("NSH, IP", ethernet(ethertype::NSH, &nsh(1, 1, &context, &ip))),
        ("NSH, Ethernet", ethernet(ethertype::NSH, &nsh(2, 3, &context, &inner))),
        ("NSH in NSH", ethernet(ethertype::NSH, &nsh(2, 4, &[], &nsh(2, 1, &context, &ip)))),
        ("NSH, MPLS", ethernet(ethertype::NSH, &nsh(2, 5, &[], &mpls(true, &ip)))),
        ("FabricPath", fabric_path),
    ]
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
        sender_hardware: &HOSTS[0],
        sender_protocol: &[2; 4],
        target_hardware: &HOSTS[1],
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
        ("VXLAN of Linux", over_udp(8472, &vxlan(9, &frame))),
        ("VXLAN, reserved bits", over_udp(4789, &prefixed(&[0x0f, 1, 2, 3, 0, 0, 9, 7], &frame))),
        ("Geneve", over_udp(6081, &geneve(ethertype::BRIDGING, &[0; 8], &frame))),
        ("Geneve with IP", over_udp(6081, &geneve(ethertype::IPV6, &[], &ip6))),
        ("GTP-U", over_udp(2152, &gtpu(None, &ip))),
        ("GTP-U with extension", over_udp(2152, &gtpu(Some((0x85, &[1, 0, 9, 0])), &ip6))),
        ("GRE in UDP", over_udp(4754, &gre(plain(ethertype::IPV6), &ip6))),
        ("GRE in UDP, bridging", over_udp(4754, &gre(keyed(0, ethertype::BRIDGING), &frame))),
        ("MPLS in UDP", over_udp(6635, &mpls(false, &mpls(true, &ip)))),
        ("MPLS in UDP, Ethernet", over_udp(6635, &mpls(true, &prefixed(&[0; 4], &frame)))),
        ("Teredo", over_udp(3544, &teredo())),
        ("Teredo, bare", over_udp(3544, &ip6)),
        ("AYIYA", over_udp(5072, &ayiya(protocol::IPV6, &ip6))),
    ]
}
