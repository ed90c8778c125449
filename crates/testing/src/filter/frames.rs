//! Packets made here, whole and cut, so that every branch of the filter meets its yes and its no.

use netsniff_packet::LinkType;

use super::capture::Frame;

const MAC: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
const BROADCAST: [u8; 6] = [0xff; 6];

/// The frames of every link type that the filter knows.
pub fn all() -> Vec<(LinkType, Vec<Frame>)> {
    let packets = packets();
    let with = |header: &dyn Fn(&[u8]) -> Vec<u8>| -> Vec<Vec<u8>> {
        packets.iter().map(|packet| [header(packet), packet.clone()].concat()).collect()
    };
    let is_v4 = |packet: &[u8]| packet[0] >> 4 == 4;
    let family = |packet: &[u8]| if is_v4(packet) { 2u32 } else { 24 + 2 * (packet[6] as u32 % 4) };
    let cooked = |packet: &[u8], kind: u8| {
        let ether_type = if is_v4(packet) { [8, 0] } else { [0x86, 0xdd] };
        [&[0, kind, 0, 1, 0, 6][..], &MAC[0], &[0, 0], &ether_type].concat()
    };
    let cooked2 = |packet: &[u8], kind: u8| {
        let ether_type = if is_v4(packet) { [8, 0] } else { [0x86, 0xdd] };
        [&ether_type[..], &[0, 0, 0, 0, 0, kind % 4, 0, 1, kind, 6], &MAC[0], &[0, 0]].concat()
    };
    let ppp = |packet: &[u8]| vec![0xff, 3, 0, if is_v4(packet) { 0x21 } else { 0x57 }];
    let pppoe = |packet: &[u8]| {
        let length = (packet.len() as u16 + 2).to_be_bytes();
        [&[0x11, 0, 0, 1][..], &length, &ppp(packet)[2..]].concat()
    };
    let mut cooked_frames = with(&|packet| cooked(packet, packet[8] % 5));
    cooked_frames.extend(
        arps().map(|arp| [&[0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 6], &arp[..]].concat()),
    );
    cooked_frames.push(
        [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0, 4, 0x42, 0x42, 3][..], &[0; 40]].concat(),
    );
    cooked_frames.push(
        [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0, 4, 0xfe, 0xfe, 3, 0x83][..], &[0; 40]]
            .concat(),
    );
    cooked_frames.push(
        [&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0xff, 0xff][..], &[0; 40]].concat(),
    );
    vec![
        (LinkType::ETHERNET, whole_and_cut(ethernet(&packets))),
        (LinkType::RAW, whole_and_cut(packets.clone())),
        (LinkType::IPV4, whole(packets.clone())),
        (LinkType::IPV6, whole(packets.clone())),
        (LinkType::NULL, whole(with(&|packet| family(packet).to_le_bytes().to_vec()))),
        (LinkType::LOOP, whole(with(&|packet| family(packet).to_be_bytes().to_vec()))),
        (LinkType::LINUX_SLL, whole_and_cut(cooked_frames)),
        (LinkType::LINUX_SLL2, whole(with(&|packet| cooked2(packet, packet[8] % 5)))),
        (
            LinkType::PPP,
            whole_and_cut(with(&ppp).into_iter().chain([mpls_over_ppp(&packets[0])]).collect()),
        ),
        (LinkType::PPP_HDLC, whole(with(&ppp))),
        (LinkType::PPP_ETHER, whole(with(&pppoe))),
        (LinkType::NFLOG, whole(packets.clone())),
    ]
}

fn whole(frames: Vec<Vec<u8>>) -> Vec<Frame> {
    frames.into_iter().map(Frame::whole).collect()
}

/// Each frame whole, then each cut at three places within its headers.
fn whole_and_cut(frames: Vec<Vec<u8>>) -> Vec<Frame> {
    let mut finished = whole(frames);
    for number in 0..finished.len() {
        for step in 0..3 {
            let cut = finished[number].cut((number * 7 + step * 23) % 73);
            finished.push(cut);
        }
    }
    finished
}

fn mpls_over_ppp(packet: &[u8]) -> Vec<u8> {
    [&[0xff, 3, 0x02, 0x81][..], &label(100, true), packet].concat()
}

fn label(number: u32, last: bool) -> [u8; 4] {
    (number << 12 | u32::from(last) << 8 | 64).to_be_bytes()
}

fn ether(destination: [u8; 6], ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [&destination[..], &MAC[0], &ether_type.to_be_bytes(), payload].concat();
    if frame.len() < 60 {
        frame.resize(60, 0);
    }
    frame
}

/// An IEEE 802.3 frame.
fn llc(payload: &[u8]) -> Vec<u8> {
    ether([1, 0x80, 0xc2, 0, 0, 0], payload.len() as u16, payload)
}

/// One frame for each way in which Ethernet carries packets.
fn ethernet(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for (number, packet) in packets.iter().enumerate() {
        let ether_type = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
        let carried = [&u16::to_be_bytes(ether_type)[..], packet].concat();
        let ppp = if packet[0] >> 4 == 4 { [0, 0x21] } else { [0, 0x57] };
        let destination = match packet.get(16) {
            Some(255) => BROADCAST,
            Some(224..) => [1, 0, 0x5e, 0, 0, 1],
            _ => MAC[1],
        };
        frames.push(ether(destination, ether_type, packet));
        if number % 3 == 0 {
            frames.push(ether(destination, 0x8100, &[&[0x20, 100], &carried[..]].concat()));
        }
        if number % 4 == 1 {
            frames.push(ether(
                destination,
                0x88a8,
                &[&[0, 100, 0x81, 0, 0, 200], &carried[..]].concat(),
            ));
        }
        if number % 5 == 2 {
            frames.push(ether(destination, 0x8847, &[&label(100, true), &packet[..]].concat()));
            frames.push(ether(
                destination,
                0x8847,
                &[&label(100, false), &label(200, true), &packet[..]].concat(),
            ));
        }
        if number % 4 == 2 {
            let session = [&[0x11, 0, 0, 1, 0, 99][..], &ppp, packet].concat();
            frames.push(ether(destination, 0x8864, &session));
            frames.push(ether(
                destination,
                0x8100,
                &[&[0, 100, 0x88, 0x64], &session[..]].concat(),
            ));
        }
    }
    let packet = &packets[0];
    frames.push(ether(MAC[1], 0x9100, &[&[0, 20, 8, 0], &packet[..]].concat()));
    frames.push(ether(
        MAC[1],
        0x8100,
        &[&[0, 10, 0x88, 0x47], &label(5, true)[..], packet].concat(),
    ));
    frames.push(ether(MAC[1], 0x8847, &[&label(0xf_ffff, true), &packet[..]].concat()));
    frames.extend(arps().map(|arp| ether(BROADCAST, 0x0806, &arp)));
    frames.extend(arps().map(|arp| ether(BROADCAST, 0x8035, &arp)));
    frames
        .extend(arps().map(|arp| ether(BROADCAST, 0x8100, &[&[0, 100, 8, 6], &arp[..]].concat())));
    frames.push(ether(BROADCAST, 0x8863, &[0x11, 9, 0, 0, 0, 0]));
    frames.push(ether(BROADCAST, 0x8100, &[0, 100, 0x88, 0x63, 0x11, 9, 0, 0, 0, 0]));
    for other in [
        0x6001, 0x6002, 0x6003, 0x6004, 0x6007, 0x809b, 0x80f3, 0x8137, 0x88cc, 0x9000, 1501,
        0xffff,
    ] {
        frames.push(ether(MAC[1], other, &[0; 46]));
    }
    frames.push(llc(&[&[0x42, 0x42, 3][..], &[0; 35]].concat()));
    for protocol in [0x81, 0x82] {
        frames.push(llc(&[&[0xfe, 0xfe, 3, protocol][..], &[0; 35]].concat()));
    }
    for kind in [15, 20] {
        frames.push(llc(&[&[0xfe, 0xfe, 3, 0x83, 27, 1, 0, kind][..], &[0; 35]].concat()));
    }
    frames.push(llc(&[&[0xe0, 0xe0, 3][..], &[0; 35]].concat()));
    frames.push(llc(&[&[0xff, 0xff][..], &[0; 35]].concat()));
    frames.push(llc(&[&[6, 6, 3, 0x45][..], &[0; 35]].concat()));
    for control in [0, 1, 5, 9, 3, 0x0f, 0x43, 0x63, 0x6f, 0x87, 0xaf, 0xe3, 0x13] {
        frames.push(llc(&[&[0xf0, 0xf0, control][..], &[0; 35]].concat()));
    }
    for snap in
        [[0, 0, 0, 0x81, 0x37], [8, 0, 7, 0x80, 0x9b], [0, 0, 0, 0x80, 0xf3], [0, 0, 0, 8, 0]]
    {
        frames.push(llc(&[&[0xaa, 0xaa, 3][..], &snap, packet].concat()));
    }
    frames
}

/// A request, and a reply between other addresses.
fn arps() -> impl Iterator<Item = Vec<u8>> {
    [
        (1, [10, 0, 0, 1], [10, 0, 0, 2]),
        (2, [192, 0, 2, 1], [10, 0, 0, 1]),
        (3, [192, 0, 2, 9], [192, 0, 2, 1]),
    ]
    .into_iter()
    .map(|(operation, sender, target)| {
        let head = [0, 1, 8, 0, 6, 4, 0, operation];
        [&head[..], &MAC[0], &sender, &MAC[1], &target].concat()
    })
}

/// IPv4 and IPv6 packets. One for each shape of header that filters look at.
fn packets() -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let get = segment(40000, 80, 0x18, b"GET / HTTP/1.1\r\n\r\n");
    let hosts = [
        ([192, 0, 2, 1], [192, 0, 2, 2]),
        ([10, 0, 0, 1], [192, 0, 2, 1]),
        ([10, 0, 0, 1], [10, 1, 2, 3]),
        ([192, 168, 1, 2], [224, 0, 0, 1]),
        ([127, 0, 0, 1], [127, 0, 0, 1]),
        ([0, 0, 0, 0], [255, 255, 255, 255]),
    ];
    let bodies: [(u8, Vec<u8>); 20] = [
        (6, get.clone()),
        (17, datagram(33333, 53, &[0x12, 0x34, 1, 0, 0, 1])),
        (6, segment(80, 40000, 0x12, &[])),
        (17, datagram(53, 53, &[0x12, 0x34, 0x81, 0x80, 0, 1])),
        (6, segment(1024, 443, 0x02, &[])),
        (132, [&[0, 80, 4, 0][..], &[0; 8], &[1, 0, 0, 20], &[0; 16]].concat()),
        (1, vec![8, 0, 0, 0, 0, 1, 0, 1, 9, 9]),
        (1, vec![0, 0, 0, 0, 0, 1, 0, 1]),
        (1, vec![3, 3, 0, 0, 0, 0, 0, 0]),
        (1, vec![11, 0, 0, 0, 0, 0, 0, 0]),
        (2, vec![0x11, 0, 0, 0, 224, 0, 0, 1]),
        (103, vec![0x20, 0, 0, 0]),
        (112, vec![0x21, 1, 100, 1]),
        (47, vec![0, 0, 8, 0, 0x45]),
        (50, vec![1; 30]),
        (51, vec![6, 4, 0, 0, 0, 0, 0, 1]),
        (9, vec![0; 12]),
        (6, segment(80, 80, 0x14, &[0; 600])),
        (17, datagram(1024, 80, &[7; 60])),
        (6, segment(22, 25, 0xc0, &[1; 3])),
    ];
    for (number, (protocol, body)) in bodies.iter().enumerate() {
        let (source, destination) = hosts[number % hosts.len()];
        packets.push(ipv4(source, destination, *protocol, 0x4000, 64, &[], body));
        if number % 3 == 0 {
            packets.push(ipv4(destination, source, *protocol, 0, 1, &[1, 1, 1, 0], body));
        }
    }
    packets.push(ipv4([192, 0, 2, 1], [192, 0, 2, 2], 6, 0x2000, 64, &[], &get));
    packets.push(ipv4([192, 0, 2, 1], [192, 0, 2, 2], 6, 0x2003, 64, &[], &get));
    packets.push(ipv4(
        [192, 0, 2, 1],
        [192, 0, 2, 2],
        17,
        0x0010,
        255,
        &[],
        &datagram(53, 53, &[0; 6]),
    ));
    packets.push(ipv4([192, 0, 2, 1], [192, 0, 2, 2], 6, 0, 33, &[1; 40], &get));
    packets.push(ipv4([192, 0, 2, 1], [192, 0, 2, 2], 6, 0x1000, 64, &[], &get));
    for flags in [0x01, 0x04, 0x20, 0x40, 0x80] {
        let flagged = segment(9, 99, flags, &[]);
        packets.push(ipv4([192, 0, 2, 3], [192, 0, 2, 4], 6, 0, 64, &[], &flagged));
    }
    // A header length below 20, as only hostile packets have it.
    let mut short = ipv4([192, 0, 2, 1], [192, 0, 2, 2], 6, 0, 31, &[], &get);
    short[0] = 0x42;
    packets.push(short);
    packets.extend(ipv6_packets(&bodies, &get));
    packets
}

fn ipv6_packets(bodies: &[(u8, Vec<u8>)], get: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let one = address6([0x2001, 0xdb8, 0, 1]);
    let two = address6([0x2001, 0xdb8, 0, 2]);
    let hosts = [
        (one, two),
        (two, one),
        (one, address6([0xff02, 0, 0, 1])),
        (address6([0xfe80, 0, 0, 1]), address6([0xff02, 0, 0, 0xfb])),
        (address6([0, 0, 0, 1]), address6([0, 0, 0, 1])),
    ];
    let bodies =
        bodies.iter().filter(|body| matches!(body.0, 6 | 17 | 132 | 103 | 50 | 51)).cloned();
    let icmp6 =
        [128u8, 129, 133, 134, 135, 136, 143, 1].map(|kind| (58, vec![kind, 0, 0, 0, 0, 1, 0, 1]));
    for (number, (protocol, body)) in bodies.chain(icmp6).enumerate() {
        let (source, destination) = hosts[number % hosts.len()];
        packets.push(ipv6(source, destination, protocol, &body));
    }
    let fragment = |next: u8, body: &[u8]| [&[next, 0, 0, 1, 0, 0, 0, 9][..], body].concat();
    packets.push(ipv6(one, two, 44, &fragment(6, get)));
    packets.push(ipv6(one, two, 44, &fragment(17, &datagram(53, 53, &[0; 6]))));
    packets.push(ipv6(one, two, 44, &fragment(58, &[128, 0, 0, 0, 0, 1, 0, 1])));
    packets.push(ipv6(one, two, 0, &[&[6, 0, 1, 4, 0, 0, 0, 0][..], get].concat()));
    packets.push(ipv6(one, two, 59, &[]));
    packets
}

fn segment(source: u16, destination: u16, flags: u8, payload: &[u8]) -> Vec<u8> {
    let offset = if flags & 2 != 0 { 0x60 } else { 0x50 };
    let mut segment = [&source.to_be_bytes()[..], &destination.to_be_bytes()].concat();
    segment.extend([0, 0, 0, 9, 0, 0, 0, 5, offset, flags, 0xff, 0xff, 0, 0, 0, 0]);
    if flags & 2 != 0 {
        segment.extend([2, 4, 5, 0xb4]);
    }
    segment.extend(payload);
    segment
}

fn datagram(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u16 + 8;
    let words = [source, destination, length, 0].map(u16::to_be_bytes);
    [&words.concat()[..], payload].concat()
}

fn ipv4(
    source: [u8; 4],
    destination: [u8; 4],
    protocol: u8,
    fragment: u16,
    hops: u8,
    options: &[u8],
    body: &[u8],
) -> Vec<u8> {
    let header = 20 + options.len();
    let length = ((header + body.len()) as u16).to_be_bytes();
    let fragment = fragment.to_be_bytes();
    let start = [
        0x40 | (header / 4) as u8,
        0,
        length[0],
        length[1],
        0,
        1,
        fragment[0],
        fragment[1],
        hops,
        protocol,
        0,
        0,
    ];
    [&start[..], &source, &destination, options, body].concat()
}

fn ipv6(source: [u8; 16], destination: [u8; 16], next: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u16).to_be_bytes();
    [&[0x60, 0, 0, 0, length[0], length[1], next, 64][..], &source, &destination, body].concat()
}

/// The first two, the third and the last 16-bit groups of an address.
fn address6([first, second, third, last]: [u16; 4]) -> [u8; 16] {
    let mut address = [0; 16];
    for (at, group) in [(0, first), (2, second), (4, third), (14, last)] {
        address[at..at + 2].copy_from_slice(&group.to_be_bytes());
    }
    address
}
