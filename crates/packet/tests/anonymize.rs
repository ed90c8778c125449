//! Packets before and after anonymisation: addresses are mapped at every level, all else is the same.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests read the corpus"
)]

mod packets;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use netsniff_packet::anonymize::frame::{Cut, PacketAnonymizer, PayloadMode, Remainder};
use netsniff_packet::anonymize::{Anonymizer, Keep, Key, Method};
use netsniff_packet::checksum::{self, ChecksumVerdict};
use netsniff_packet::decode::{self, Decoded, Layer, Transport, TunnelPorts, tunnel};
use netsniff_packet::wire::ethernet::ethertype;
use netsniff_packet::wire::ipv4::protocol;
use netsniff_packet::{Address, Batch, LinkType, Packet, Progress, Source};
use netsniff_pcapfile::Reader;
use netsniff_testing::{Need, folder};
use packets::{ethernet, ipv4, ipv6, udp};

const MODES: [PayloadMode; 3] = [PayloadMode::Keep, PayloadMode::Hash, PayloadMode::Cut];

fn anonymizer() -> Arc<Anonymizer> {
    let key = Key::new(core::array::from_fn(|at| at as u8 * 3));
    Arc::new(Anonymizer::new(Method::CryptoPan, &key, &Keep::default()))
}

/// What the headers of a packet say at every level of its tunnels, with the verdicts of its checksums.
fn levels(link_type: LinkType, data: &[u8], wire_len: u32) -> Vec<(Decoded, [ChecksumVerdict; 2])> {
    let mut levels = Vec::new();
    let mut decoded = decode::packet(link_type, data, wire_len);
    loop {
        let header = decoded.ip.map(|ip| checksum::ip_header(&data[ip.offset as usize..]));
        let verdicts = [header.unwrap_or_default(), checksum::transport(&decoded, data)];
        levels.push((decoded, verdicts));
        match tunnel::find(&decoded, data, TunnelPorts::KNOWN) {
            Some(Ok(tunnel)) if levels.len() < 8 => decoded = tunnel.decode(data),
            _ => return levels,
        }
    }
}

/// A level as it should be afterwards, without the checksum fields that have to change.
fn expected(anonymizer: &Anonymizer, decoded: &Decoded) -> Decoded {
    let mut decoded = *decoded;
    if let Some(ip) = &mut decoded.ip {
        ip.source = anonymizer.address(ip.source);
        ip.destination = anonymizer.address(ip.destination);
    }
    without_checksum(&mut decoded);
    decoded
}

fn without_checksum(decoded: &mut Decoded) {
    if let Transport::Udp(udp) = &mut decoded.transport {
        udp.checksum = u16::from(udp.checksum != 0);
    }
    if let Transport::Icmp(icmp) = &mut decoded.transport
        && !matches!(icmp.kind, 0 | 8 | 128 | 129)
    {
        // In redirects an address stands there.
        (icmp.identifier, icmp.sequence) = (0, 0);
    }
}

/// Lengths of what the anonymised capture lacks count by the headers alone.
fn without_captured(decoded: &Decoded) -> Decoded {
    let mut decoded = *decoded;
    if let Some(ip) = &mut decoded.ip {
        ip.payload_captured = 0;
    }
    match &mut decoded.transport {
        Transport::Tcp(tcp) => tcp.payload_captured = 0,
        Transport::Udp(udp) => udp.payload_captured = 0,
        Transport::Icmp(icmp) => icmp.payload_captured = 0,
        Transport::Sctp(sctp) => sctp.payload_captured = 0,
        Transport::Other | Transport::None => {}
    }
    decoded
}

/// Anonymises a packet and complains of what is not as it should be.
fn check(
    anonymizer: &mut PacketAnonymizer,
    map: &Anonymizer,
    packet: &Packet<'_>,
) -> Result<Remainder, String> {
    let mut data = packet.data.to_vec();
    let left = anonymizer.packet(packet.link_type, &mut data, packet.wire_len);
    if left.len > packet.data.len() || left.cut.is_some() != (left.len < packet.data.len()) {
        return Err(format!("{left:?} of {} bytes", packet.data.len()));
    }
    data.truncate(left.len);
    if left.cut == Some(Cut::LinkType) {
        return Ok(left);
    }
    let before = levels(packet.link_type, packet.data, packet.wire_len);
    let after = levels(packet.link_type, &data, packet.wire_len);
    if after.len() != before.len() {
        return Err(format!("{} levels became {}: {left:?}", before.len(), after.len()));
    }
    for ((before, judged), (after, judged_after)) in before.iter().zip(&after) {
        let mut after = *after;
        without_checksum(&mut after);
        let wanted = expected(map, before);
        let same = if left.cut.is_none() {
            after == wanted && judged == judged_after
        } else if before.stop.is_some() || before.ip.is_none() {
            // What was malformed, cut or not understood is cut there, or before it.
            after.ip.map(|ip| ip.source) == wanted.ip.map(|ip| ip.source)
        } else {
            without_captured(&after) == without_captured(&wanted) && judged[0] == judged_after[0]
        };
        if !same {
            return Err(format!("{left:?}\n{wanted:?} {judged:?}\n{after:?} {judged_after:?}"));
        }
    }
    Ok(left)
}

fn packet(link_type: LinkType, data: &[u8]) -> Packet<'_> {
    Packet {
        timestamp: netsniff_packet::Timestamp::EPOCH,
        data,
        wire_len: data.len() as u32,
        link_type,
        interface: 0,
    }
}

#[test]
fn packets_of_every_kind_keep_all_but_their_addresses() {
    let mut kinds: Vec<(&str, LinkType, Vec<u8>)> = packets::links();
    let others = packets::uppers().into_iter().chain(packets::tunnels());
    kinds.extend(others.map(|(name, data)| (name, LinkType::ETHERNET, data)));
    assert!(kinds.len() > 30);
    let map = anonymizer();
    for mode in MODES {
        let mut anonymizer = PacketAnonymizer::new(Arc::clone(&map), mode);
        for (name, link_type, data) in &kinds {
            // At every length at which the capture may have cut it, nothing is read beyond.
            for len in 0..=data.len() {
                let cut =
                    Packet { wire_len: data.len() as u32, ..packet(*link_type, &data[..len]) };
                let result = check(&mut anonymizer, &map, &cut);
                assert!(result.is_ok() || len < data.len(), "{name}, {mode:?}: {result:?}");
            }
            let padded = [&data[..], b"padding that tells"].concat();
            let mut changed = padded.clone();
            let left = anonymizer.packet(*link_type, &mut changed, padded.len() as u32);
            let tells = changed[..left.len].windows(5).any(|bytes| bytes == b"tells");
            assert!(!tells, "{name}, {mode:?}: what follows the packet stays");
        }
    }
}

/// An address that no other field of the packets below has, and what it becomes.
const V4: [u8; 4] = [203, 0, 113, 77];
const V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0xaa, 0xbb, 0xcc, 0xdd, 1, 2, 3, 4, 5, 6, 7, 8];
const MAC: [u8; 6] = [0, 0x1b, 0x21, 0xaa, 0xbb, 0xcc];

/// Anonymises a frame with payloads kept. Asserts that the bytes are gone and what they became is there.
fn replaced(data: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut changed = data.to_vec();
    let mut anonymizer = PacketAnonymizer::new(anonymizer(), PayloadMode::Keep);
    let left = anonymizer.packet(LinkType::ETHERNET, &mut changed, data.len() as u32);
    changed.truncate(left.len);
    let has = |bytes: &[u8]| changed.windows(bytes.len()).any(|window| window == bytes);
    assert!(!has(from), "{from:02x?} is still in {changed:02x?}");
    assert!(has(to), "{to:02x?} is not in {changed:02x?}");
    changed
}

/// The bit of groups in the address of whoever sends makes it no group.
#[test]
fn who_sends_is_mapped_with_the_bit_of_groups() {
    let [_, rest @ ..] = MAC;
    let host = [&[1][..], &rest].concat();
    let others = [0x01, 0x80, 0xc2, 0, 0, 0];
    let ip = ipv4(protocol::UDP, &[], &udp(53, b""));
    let framed = [&others[..], &host, &[8, 0], &ip].concat();
    let wlan = |control: u8, flags: u8, addresses: [&[u8]; 3], behind: &[u8]| {
        let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
        let head = [&[control, flags, 0, 0][..], &addresses.concat(), &[0, 0], behind].concat();
        [&head[..], &snap, &ip].concat()
    };
    let aggregate = [&[0x80, 0][..], &others, &host, &[0, 60]].concat();
    let arp = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &host, &[192, 0, 2, 1], &[0; 6], &[192, 0, 2, 2]];
    let cooked = [&[0, 0, 0, 1, 0, 6][..], &host, &[0, 0, 8, 0], &ip].concat();
    let all = [
        (LinkType::ETHERNET, framed),
        (LinkType::ETHERNET, ethernet(ethertype::ARP, &arp.concat())),
        (LinkType::LINUX_SLL, cooked),
        (LinkType::IEEE802_11, wlan(8, 0, [&others, &host, &others], &[])),
        (LinkType::IEEE802_11, wlan(8, 2, [&others, &others, &host], &[])),
        (LinkType::IEEE802_11, wlan(8, 3, [&others, &others, &others], &host)),
        (LinkType::IEEE802_11, wlan(0x88, 2, [&others, &others, &others], &aggregate)),
    ];
    for (link_type, data) in all {
        let mut changed = data.clone();
        let mut anonymizer = PacketAnonymizer::new(anonymizer(), PayloadMode::Keep);
        let left = anonymizer.packet(link_type, &mut changed, data.len() as u32);
        assert_eq!(left.cut, None, "{link_type}: {data:02x?}");
        assert!(!changed.windows(5).any(|window| window == rest), "{link_type}: {changed:02x?}");
    }
}

/// A tunnel on a port that the user names is changed inside like one on a known port; where it is in
/// pieces or cut, nothing of it is told.
#[test]
fn tunnels_are_looked_for_on_the_users_ports() {
    let inner = ethernet(ethertype::IPV4, &ipv4(protocol::UDP, &[], &udp(53, b"said")));
    let carrier = |port| {
        let body = [&[8, 0, 0, 0, 0, 0, 7, 0][..], &inner].concat();
        ethernet(ethertype::IPV4, &ipv4(protocol::UDP, &[], &udp(port, &body)))
    };
    let ports: TunnelPorts = "vxlan=9999".parse().unwrap();
    let (data, known) = (carrier(9999), carrier(4789));
    let addresses = 14 + 20 + 8 + 8 + 14 + 12;
    let changed = |data: &[u8], wire_len, ports: Option<&TunnelPorts>| {
        let mut changed = data.to_vec();
        let anonymizer = PacketAnonymizer::new(anonymizer(), PayloadMode::Keep);
        let mut anonymizer = match ports {
            Some(ports) => anonymizer.with_tunnel_ports(Arc::new(ports.clone())),
            None => anonymizer,
        };
        let left = anonymizer.packet(LinkType::ETHERNET, &mut changed, wire_len);
        changed[..left.len].to_vec()
    };
    let wire_len = data.len() as u32;
    let inside = |changed: &[u8]| changed.get(addresses..addresses + 8).map(<[u8]>::to_vec);
    let mapped = inside(&changed(&known, wire_len, None));
    assert_eq!(inside(&changed(&data, wire_len, Some(&ports))), mapped);
    assert_ne!(inside(&data), mapped);
    // Without the port it is payload, which was to stay.
    assert_eq!(inside(&changed(&data, wire_len, None)), inside(&data));
    // So cut that the inner header or that of the tunnel is not whole.
    assert_eq!(changed(&data[..addresses + 6], wire_len, Some(&ports)).len(), addresses - 12);
    assert_eq!(changed(&data[..14 + 20 + 8 + 4], wire_len, Some(&ports)).len(), 14 + 20 + 8);
    // The first one of several fragments, of which two bytes keep the checksum right.
    let mut fragment = data;
    fragment[20] = 0x20;
    let left = changed(&fragment, wire_len, Some(&ports));
    assert!(left[14 + 20 + 8 + 2..].iter().all(|byte| *byte == 0), "{left:02x?}");
}

/// What a header of another version holds is known to nobody.
#[test]
fn headers_of_other_versions_are_not_told() {
    let versions = [(0x8864_u16, 0x21), (0x8864, 0xf0), (0x894f, 0x40), (0x894f, 0xf0)];
    for (kind, version) in versions.into_iter().chain([(0x88e5, 0x80), (0x88e5, 0xf0)]) {
        let behind = [&[version][..], &MAC, &MAC].concat();
        let data = ethernet(kind, &behind);
        let mut changed = data.clone();
        let mut anonymizer = PacketAnonymizer::new(anonymizer(), PayloadMode::Keep);
        let left = anonymizer.packet(LinkType::ETHERNET, &mut changed, data.len() as u32);
        assert_eq!(left.len, 14, "{kind:#06x}, {version:#04x}");
    }
}

/// The head of a field that no netfilter log has may be a part of an address.
#[test]
fn fields_that_no_netfilter_log_has_end_what_is_told() {
    let data = [&[2, 0, 0, 0, 8, 0, 8, 0][..], &MAC[..4], &[8, 0, 0xaa, 0xbb], &MAC].concat();
    let mut changed = data.clone();
    let mut anonymizer = PacketAnonymizer::new(anonymizer(), PayloadMode::Keep);
    let left = anonymizer.packet(LinkType::NFLOG, &mut changed, data.len() as u32);
    assert_eq!(left.len, 12);
    assert_eq!(changed[8..12], [0; 4]);
}

#[test]
fn addresses_in_messages_are_mapped() {
    let map = anonymizer();
    let [_, low] = map.address(Address::from_v4(V4)).words();
    let v4 = (low as u32).to_be_bytes();
    let [high, low] = map.address(Address::from_v6(V6)).words();
    let v6 = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
    let mac = map.mac(MAC);
    let over = |number, payload: &[u8]| ethernet(ethertype::IPV4, &ipv4(number, &[], payload));
    let over_v6 = |number, payload: &[u8]| ethernet(ethertype::IPV6, &ipv6(number, payload));

    let mut quoted = ipv4(protocol::UDP, &[], &udp(53, b"payload"));
    quoted[12..16].copy_from_slice(&V4);
    for message in [3, 4, 11, 12] {
        let icmp = [&[message, 1, 0, 0, 0, 0, 0, 0], &quoted[..28]].concat();
        replaced(&over(protocol::ICMP, &icmp), &V4, &v4);
    }
    let redirect = [&[5, 1, 0, 0][..], &V4, &ipv4(protocol::UDP, &[], &udp(53, b""))].concat();
    replaced(&over(protocol::ICMP, &redirect), &V4, &v4);
    let routers = [&[9, 0, 0, 0, 1, 2, 0, 60][..], &V4, &[0; 4]].concat();
    replaced(&over(protocol::ICMP, &routers), &V4, &v4);

    let solicitation = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &V6, &[1, 1], &MAC].concat();
    replaced(&over_v6(protocol::ICMPV6, &solicitation), &V6, &v6);
    replaced(&over_v6(protocol::ICMPV6, &solicitation), &MAC, &mac);
    let prefix = [&[134; 16][..], &[3, 4, 64, 0, 0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 0], &V6].concat();
    replaced(&over_v6(protocol::ICMPV6, &prefix), &V6, &v6);
    let report = [&[143, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1][..], &[0xff; 16], &V6].concat();
    replaced(&over_v6(protocol::ICMPV6, &report), &V6, &v6);
    let mut inner = ipv6(protocol::UDP, &udp(53, b""));
    inner[8..24].copy_from_slice(&V6);
    replaced(
        &over_v6(protocol::ICMPV6, &[&[1, 0, 0, 0, 0, 0, 0, 0][..], &inner].concat()),
        &V6,
        &v6,
    );

    let route = [&[7, 7, 8][..], &V4, &[0]].concat();
    let data = ethernet(ethertype::IPV4, &ipv4(protocol::UDP, &route, &udp(9, b"")));
    replaced(&data, &V4, &v4);
    let segments = [&[0, 4, 1, 0, 0, 0][..], &V6].concat();
    replaced(
        &over_v6(protocol::ROUTING, &packets::extension(protocol::UDP, &segments, &udp(9, b""))),
        &V6,
        &v6,
    );
    let home = [&[0xc9, 16][..], &V6, &[1, 2, 0, 0]].concat();
    let home = packets::extension(protocol::UDP, &home, &udp(9, b""));
    replaced(&over_v6(protocol::DESTINATION_OPTIONS, &home), &V6, &v6);
}

/// Every packet of the fixtures, and some that carry no IP.
fn all_kinds() -> Vec<(&'static str, LinkType, Vec<u8>)> {
    const EAPOL: u16 = 0x888e;
    let others = packets::uppers().into_iter().chain(packets::tunnels());
    let others = others.map(|(name, data)| (name, LinkType::ETHERNET, data));
    let [first, second, third, fourth] = packets::HOSTS;
    let eapol = packets::snap(EAPOL, &[&[2, 3, 0, 95][..], &first, &second].concat());
    let radiotap = |frame: &[u8]| packets::radiotap(&[0], &[], frame);
    let plain = |payload: &[u8]| packets::wlan([0x08, 0x02], 3, &[], payload);
    let two = [&fourth[..], &third, &[0, 8], &packets::snap(0x1234, &[]), &[0; 2]].concat();
    let two = packets::wlan([0x88, 2], 3, &[0x80, 0], &[&two[..], &two].concat());
    let air = [
        ("EAPOL", plain(&eapol)),
        ("beacon", packets::wlan([0x80, 0], 3, &[], &[&[0; 12][..], &[0, 6], &fourth].concat())),
        ("request to send", [&[0xb4, 0, 0, 0][..], &first, &second, &third[..4]].concat()),
        ("acknowledgement", [&[0xd4, 0, 0, 0][..], &first, &second[..4]].concat()),
        ("encrypted", packets::wlan([0x08, 0x41], 3, &[], &fourth)),
        ("null data with four addresses", packets::wlan([0x48, 3], 4, &[], &third[..4])),
        ("two frames in one", two),
    ];
    let wired = [
        ("EAPOL on a wire", ethernet(EAPOL, &third)),
        ("802.3 without LLC", ethernet(0, &third)),
        ("encrypted MACsec", ethernet(0x88e5, &[&[0x2c, 0, 0, 0, 0, 1][..], &third].concat())),
    ];
    let untapped = air.clone().map(|(name, data)| (name, LinkType::IEEE802_11, data));
    let tapped = air.map(|(name, data)| (name, LinkType::IEEE802_11_RADIOTAP, radiotap(&data)));
    let wired = wired.map(|(name, data)| (name, LinkType::ETHERNET, data));
    packets::links().into_iter().chain(others).chain(untapped).chain(tapped).chain(wired).collect()
}

/// Three bytes of an address in a row, which is its vendor or its number.
fn remains(data: &[u8]) -> Option<&[u8]> {
    let parts =
        packets::HOSTS.map(|host| [[host[0], host[1], host[2]], [host[3], host[4], host[5]]]);
    data.windows(3).find(|window| parts.as_flattened().iter().any(|part| part == window))
}

#[test]
fn no_hardware_address_is_left_of_any_link_type() {
    let map = anonymizer();
    for mode in MODES {
        let mut anonymizer = PacketAnonymizer::new(Arc::clone(&map), mode);
        for (name, link_type, data) in all_kinds() {
            for len in 0..=data.len() {
                let mut changed = data[..len].to_vec();
                let left = anonymizer.packet(link_type, &mut changed, data.len() as u32);
                let told = remains(&changed[..left.len]);
                assert_eq!(told, None, "{name}, {mode:?}, {len} of {} bytes", data.len());
            }
        }
    }
}

/// Whoever adds a link type adds a packet of it, and so what becomes of its addresses.
#[test]
fn every_link_type_that_is_decoded_has_a_packet_with_addresses() {
    let packets = packets::links();
    let bare = [
        LinkType::NULL,
        LinkType::LOOP,
        LinkType::PPP,
        LinkType::PPP_HDLC,
        LinkType::PPP_ETHER,
        LinkType::RAW,
        LinkType::IPV4,
        LinkType::IPV6,
    ];
    for link_type in (0..=u16::MAX).map(LinkType).filter(|&it| decode::supported(it)) {
        let mut of_type = packets.iter().filter(|(_, of, _)| *of == link_type).peekable();
        assert!(of_type.peek().is_some(), "{link_type} has no packet in tests/packets");
        let has_address = of_type.any(|(.., data)| remains(data).is_some());
        assert_eq!(has_address, !bare.contains(&link_type), "{link_type}");
    }
}

#[test]
fn options_that_nobody_knows_are_blanked() {
    const SECRET: &[u8] = b"secret!!";
    let option = [&[253, 10][..], SECRET, &[1, 1]].concat();
    let segment = packets::tcp(&option, b"data");
    let data = ethernet(ethertype::IPV4, &ipv4(protocol::TCP, &[], &segment));
    replaced(&data, SECRET, &[253, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
    let option = [&[130, 12][..], SECRET, &[0; 2]].concat();
    let data = ethernet(ethertype::IPV4, &ipv4(protocol::UDP, &option, &udp(9, b"")));
    replaced(&data, SECRET, &[130, 12, 0, 0, 0, 0]);
}

#[test]
fn what_is_not_understood_is_cut_and_named() {
    let mut anonymizer = PacketAnonymizer::new(anonymizer(), PayloadMode::Keep);
    for (data, len, layer) in [
        (ethernet(0x88cc, b"a switch and its name"), 14, Layer::Ethernet),
        (ethernet(ethertype::PPPOE_DISCOVERY, b"an access concentrator"), 14, Layer::Ethernet),
        (ethernet(ethertype::IPV4, &ipv4(89, &[], &[1; 40])), 34, Layer::OtherTransport),
        (ethernet(ethertype::IPV4, &ipv4(protocol::SCTP, &[], &[1; 40])), 46, Layer::Sctp),
        (ethernet(ethertype::IPV4, &ipv4(protocol::ICMP, &[], &[99; 40])), 42, Layer::Icmp),
        (ethernet(ethertype::ARP, &[9; 40]), 22, Layer::Arp),
    ] {
        let mut changed = data.clone();
        let left = anonymizer.packet(LinkType::ETHERNET, &mut changed, data.len() as u32);
        assert_eq!(left, Remainder { len, cut: Some(Cut::Unknown(layer)) });
    }
    let left = anonymizer.packet(LinkType(147), &mut [1; 40], 40);
    assert_eq!(left, Remainder { len: 0, cut: Some(Cut::LinkType) });
}

#[test]
fn payloads_are_kept_cut_or_hashed() {
    let data =
        ethernet(ethertype::IPV4, &ipv4(protocol::UDP, &[], &udp(9999, b"known plain text")));
    let changed = |mode| {
        let mut changed = data.clone();
        let mut anonymizer = PacketAnonymizer::new(anonymizer(), mode);
        let left = anonymizer.packet(LinkType::ETHERNET, &mut changed, data.len() as u32);
        changed.truncate(left.len);
        changed
    };
    assert_eq!(changed(PayloadMode::Keep)[42..], *b"known plain text");
    assert_eq!(changed(PayloadMode::Cut).len(), 42);
    let hashed = changed(PayloadMode::Hash);
    assert_eq!(hashed.len(), data.len());
    assert_ne!(hashed[42..], *b"known plain text");
    assert_eq!(hashed, changed(PayloadMode::Hash), "the same for the same");
}

/// The corpus, or `None` with a line that says that the test did not run.
fn corpus(test: &str) -> Option<PathBuf> {
    folder(Need::Corpus, test)
}

fn captures(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.extension().is_none_or(|extension| extension != "oracle") {
                captures(&path, found);
            }
        } else if path.extension().is_some_and(|e| e == "pcap" || e == "pcapng" || e == "trace") {
            found.push(path);
        }
    }
    found.sort();
}

/// Packets of one capture that are looked at; the others are like them.
const PACKETS: usize = 3000;

#[test]
fn captures_keep_all_but_their_addresses() {
    let office =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded/office.pcapng");
    let mut paths = vec![office];
    if let Some(root) = corpus("captures_keep_all_but_their_addresses") {
        captures(&root, &mut paths);
    }
    let map = anonymizer();
    let (mut checked, mut failures, mut cuts) = (0, Vec::new(), BTreeMap::<_, u32>::new());
    for path in &paths {
        let Ok(mut reader) = Reader::new(File::open(path).unwrap()) else { continue };
        let mut batch = Batch::default();
        let (mut number, mut secrets) = (0, Secrets::default());
        let mut anonymizers =
            MODES.map(|mode| (mode, PacketAnonymizer::new(Arc::clone(&map), mode)));
        while let Ok(progress) = reader.read_batch(&mut batch) {
            for packet in batch.iter().take(PACKETS.saturating_sub(number)) {
                number += 1;
                secrets.note(&map, &packet);
                for (mode, anonymizer) in &mut anonymizers {
                    match check(anonymizer, &map, &packet) {
                        Ok(left) => *cuts.entry((*mode as u8, left.cut)).or_default() += 1,
                        Err(why) => {
                            failures.push(format!("{}, {number}, {mode:?}: {why}", path.display()));
                        }
                    }
                    if *mode == PayloadMode::Hash {
                        let mut data = packet.data.to_vec();
                        let left = anonymizer.packet(packet.link_type, &mut data, packet.wire_len);
                        if let Some(found) = secrets.find(&data[..left.len]) {
                            failures.push(format!("{}, {number}: {found}", path.display()));
                        }
                    }
                }
                checked += 1;
            }
            if progress == Progress::End || number >= PACKETS {
                break;
            }
        }
    }
    eprintln!("{checked} packets of {} captures; {cuts:?}", paths.len());
    // The project's own capture has 400 at least, and the corpus has the rest.
    assert!(checked > if paths.len() > 1 { 3000 } else { 400 }, "{checked} packets");
    let shown = failures.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} packets:\n{shown}", failures.len());
}

/// Addresses long enough that no other bytes look like them.
#[derive(Default)]
struct Secrets {
    macs: BTreeSet<[u8; 6]>,
    ipv6: BTreeSet<[u8; 16]>,
}

impl Secrets {
    fn note(&mut self, map: &Anonymizer, packet: &Packet<'_>) {
        for (decoded, _) in levels(packet.link_type, packet.data, packet.wire_len) {
            let Some(ip) = decoded.ip.filter(|ip| !ip.source.is_v4()) else { continue };
            for address in [ip.source, ip.destination] {
                let [high, low] = address.words();
                // Those with few bits set stand in runs of zeros.
                let is_told = (high.count_ones() + low.count_ones()) > 12;
                if is_told && map.address(address) != address {
                    self.ipv6.insert((u128::from(high) << 64 | u128::from(low)).to_be_bytes());
                }
            }
        }
        if packet.link_type == LinkType::ETHERNET
            && let Some(macs) = packet.data.first_chunk::<12>()
        {
            for mac in macs.as_chunks::<6>().0 {
                // Nor does anything else look like bytes of which most differ.
                let different = mac.iter().collect::<BTreeSet<_>>().len();
                if map.mac(*mac) != *mac && different >= 4 {
                    self.macs.insert(*mac);
                }
            }
        }
    }

    fn find(&self, data: &[u8]) -> Option<String> {
        let mac = data.array_windows::<6>().find(|mac| self.macs.contains(*mac));
        let ipv6 = data.array_windows::<16>().find(|bytes| self.ipv6.contains(*bytes));
        mac.map(|mac| format!("MAC {mac:02x?}")).or(ipv6.map(|bytes| format!("IPv6 {bytes:02x?}")))
    }
}
