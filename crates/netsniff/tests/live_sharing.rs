//! Traffic of every kind that is shared out over rings: all packets of a flow come to one of them, and the logs
//! are those of the recording. Needs root; says so where it is missing.

mod live_bed;

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::Command;

use live_bed::{Bed, Last, Log, Run};
use netsniff_packet::checksum;
use netsniff_packet::wire::gre::GreHeader;
use netsniff_packet::wire::ipv4::Ipv4Header;
use netsniff_packet::wire::tcp::TcpHeader;
use netsniff_packet::wire::vxlan::VxlanHeader;
use netsniff_traffic::frame::{Host, tcp_frame, udp_frame};

const ETHERNET: usize = 14;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// What a conversation travels in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    PlainV4,
    PlainV6,
    Vlan,
    QinQ,
    Gre,
    GreV6,
    Vxlan,
    SixInFour,
    Fragments,
    FragmentsInVlan,
}

const SHAPES: [Shape; 10] = [
    Shape::PlainV4,
    Shape::PlainV6,
    Shape::Vlan,
    Shape::QinQ,
    Shape::Gre,
    Shape::GreV6,
    Shape::Vxlan,
    Shape::SixInFour,
    Shape::Fragments,
    Shape::FragmentsInVlan,
];

/// Conversations of each shape.
const EACH: u8 = 12;

/// One conversation between two hosts.
struct Talk {
    shape: Shape,
    hosts: [Host; 2],
    /// The ends of its tunnel, if it has one.
    gates: [Host; 2],
}

impl Talk {
    fn new(shape: Shape, number: u8) -> Self {
        let kind = SHAPES.iter().position(|it| *it == shape).unwrap() as u8;
        let v4 = |net, last| IpAddr::V4(Ipv4Addr::new(10, net, kind, last));
        let v6 = |net: u8, last: u8| {
            let groups = [0x2001, 0xdb8, net.into(), kind.into(), 0, 0, 0, last.into()];
            IpAddr::V6(Ipv6Addr::from(groups))
        };
        let is_v6 = matches!(shape, Shape::PlainV6 | Shape::GreV6 | Shape::SixInFour);
        let address = |net, last| if is_v6 { v6(net, last) } else { v4(net, last) };
        let host = |net, port| Host::new(address(net, number), port);
        // Other hosts carry, which is what the kernel shares out by.
        let gate = |net| Host::new(v4(net, number.wrapping_mul(5)), 4789);
        Self {
            shape,
            hosts: [host(1, 40_000 + u16::from(number)), host(2, 80)],
            gates: [gate(3), gate(4)],
        }
    }

    /// The frames of each of its steps, in order: a request of HTTP, or datagrams in fragments.
    fn steps(&self) -> Vec<Vec<Vec<u8>>> {
        let is_cut = matches!(self.shape, Shape::Fragments | Shape::FragmentsInVlan);
        let steps: Vec<(usize, Vec<Vec<u8>>)> =
            if is_cut { self.datagrams() } else { self.request() };
        steps
            .into_iter()
            .map(|(from, frames)| frames.iter().map(|frame| self.wrapped(from, frame)).collect())
            .collect()
    }

    /// The frames of a request, with other gates for each direction.
    fn asymmetric(&self) -> Vec<Vec<u8>> {
        let back = Self { gates: Self::new(self.shape, 200 - self.last()).gates, ..*self };
        let steps = self.request().into_iter();
        steps
            .map(|(from, frames)| if from == 0 { self } else { &back }.wrapped(from, &frames[0]))
            .collect()
    }

    /// The last byte of its addresses.
    fn last(&self) -> u8 {
        match self.hosts[0].address {
            IpAddr::V4(address) => address.octets()[3],
            IpAddr::V6(address) => address.octets()[15],
        }
    }

    fn request(&self) -> Vec<(usize, Vec<Vec<u8>>)> {
        const FIN: u16 = 1;
        const SYN: u16 = 2;
        const PSH: u16 = 8;
        const ACK: u16 = 16;
        let question = b"GET /page HTTP/1.1\r\nHost: example.com\r\n\r\n".as_slice();
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".as_slice();
        let (asked, told) = (1 + question.len() as u32, 1 + answer.len() as u32);
        let segments = [
            (0, SYN, 0, 0, &b""[..]),
            (1, SYN | ACK, 0, 1, b""),
            (0, ACK, 1, 1, b""),
            (0, PSH | ACK, 1, 1, question),
            (1, PSH | ACK, 1, asked, answer),
            (0, FIN | ACK, asked, told, b""),
            (1, FIN | ACK, told, asked + 1, b""),
            (0, ACK, asked + 1, told + 1, b""),
        ];
        let segments = segments.iter().map(|(from, flags, sequence, acknowledgement, payload)| {
            let header = TcpHeader {
                source_port: 0,
                destination_port: 0,
                sequence: 1000 * (1 + *from as u32) + sequence,
                acknowledgement: if flags & ACK == 0 {
                    0
                } else {
                    1000 * (2 - *from as u32) + acknowledgement
                },
                flags: *flags,
                window: 65_535,
                checksum: 0,
                urgent_pointer: 0,
                options: &[],
            };
            let (one, other) = (&self.hosts[*from], &self.hosts[1 - *from]);
            (*from, vec![tcp_frame(one, other, 0, &header, payload).unwrap()])
        });
        segments.collect()
    }

    fn datagrams(&self) -> Vec<(usize, Vec<Vec<u8>>)> {
        let datagram = |from: usize, identification| {
            let (one, other) = (&self.hosts[from], &self.hosts[1 - from]);
            let whole = udp_frame(one, other, identification, &[7; 3000]).unwrap();
            (from, fragments(&whole))
        };
        (0..8).map(|number| datagram(usize::from(number % 2), number)).collect()
    }

    fn wrapped(&self, from: usize, frame: &[u8]) -> Vec<u8> {
        let (one, other) = (&self.gates[from], &self.gates[1 - from]);
        let gre = |protocol| {
            let header = GreHeader {
                version: 0,
                protocol,
                checksum: None,
                key: None,
                sequence: None,
                acknowledgement: None,
            };
            let mut payload = vec![0; header.header_len()];
            header.emit(&mut payload).unwrap();
            payload.extend_from_slice(&frame[ETHERNET..]);
            carried(one, other, 47, &payload)
        };
        match self.shape {
            Shape::PlainV4 | Shape::PlainV6 | Shape::Fragments => frame.to_vec(),
            Shape::Vlan | Shape::FragmentsInVlan => tagged(frame, 0x8100, 5),
            Shape::QinQ => tagged(&tagged(frame, 0x8100, 6), 0x88a8, 7),
            Shape::Gre => gre(IPV4),
            Shape::GreV6 => gre(IPV6),
            Shape::SixInFour => carried(one, other, 41, &frame[ETHERNET..]),
            Shape::Vxlan => {
                let mut payload = vec![0; VxlanHeader::LEN];
                VxlanHeader { vni: 9 }.emit(&mut payload).unwrap();
                payload.extend_from_slice(frame);
                udp_frame(one, other, 0, &payload).unwrap()
            }
        }
    }
}

/// The frame with a tag behind its addresses.
fn tagged(frame: &[u8], kind: u16, id: u16) -> Vec<u8> {
    [&frame[..12], &kind.to_be_bytes(), &id.to_be_bytes(), &frame[12..]].concat()
}

/// A frame of IPv4 with this payload.
fn carried(from: &Host, to: &Host, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let (IpAddr::V4(source), IpAddr::V4(destination)) = (from.address, to.address) else {
        panic!("tunnels are carried by IPv4");
    };
    let header = Ipv4Header {
        traffic_class: 0,
        total_len: (Ipv4Header::MIN_LEN + payload.len()) as u16,
        identification: 0,
        reserved_flag: false,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
        ttl: 64,
        protocol,
        checksum: 0,
        source: source.octets(),
        destination: destination.octets(),
        options: &[],
    };
    let ethernet = [&to.mac[..], &from.mac, &IPV4.to_be_bytes()].concat();
    [ethernet, summed(&header), payload.to_vec()].concat()
}

/// The header with its checksum.
fn summed(header: &Ipv4Header<'_>) -> Vec<u8> {
    let mut bytes = vec![0; header.header_len()];
    header.emit(&mut bytes).unwrap();
    let sum = checksum::compute(&bytes);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// The frame of IPv4 in pieces of 1400 bytes, of which only the first has ports.
fn fragments(frame: &[u8]) -> Vec<Vec<u8>> {
    let (ethernet, ip) = frame.split_at(ETHERNET);
    let header = Ipv4Header::parse(ip).unwrap();
    let payload = &ip[header.header_len()..];
    let pieces = payload.chunks(1400).enumerate().map(|(number, piece)| {
        let header = Ipv4Header {
            total_len: (Ipv4Header::MIN_LEN + piece.len()) as u16,
            dont_fragment: false,
            more_fragments: (number + 1) * 1400 < payload.len(),
            fragment_offset: (number * 1400) as u16,
            checksum: 0,
            ..header
        };
        [ethernet, &summed(&header), piece].concat()
    });
    pieces.collect()
}

/// All frames, step by step, so that all conversations go on at once.
fn traffic() -> Vec<Vec<u8>> {
    let talks = (0..EACH).flat_map(|number| SHAPES.map(|shape| Talk::new(shape, number)));
    let steps: Vec<_> = talks.map(|talk| talk.steps()).collect();
    (0..8).flat_map(|step| steps.iter().flat_map(move |talk| talk[step].clone())).collect()
}

/// The rows of every log but `capture`, sorted. Tunnels that are open at the end close at that time, which live is
/// when the ring was empty last, and not that of the last packet.
fn logs(directory: &Path) -> BTreeMap<String, Vec<String>> {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let logs = files.filter(|path| path.extension().is_some_and(|it| it == "log"));
    let logs = logs.map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        let rows = text.lines().filter(|line| !line.starts_with('#'));
        let timeless = |row: &str| match row.split_once('\t') {
            Some((_, rest)) if rest.ends_with("Tunnel::CLOSE") => rest.to_owned(),
            _ => row.to_owned(),
        };
        let mut rows: Vec<_> = rows.map(timeless).collect();
        rows.sort_unstable();
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), rows)
    });
    logs.filter(|(name, _)| name != "capture").collect()
}

#[test]
fn the_logs_of_several_rings_are_those_of_their_recording() {
    let Some(bed) = Bed::up("sharing") else { return };
    let run = Run::start(&bed, "sharing", &["--workers", "3", "--record", "RECORDING"]);
    let frames = traffic();
    bed.send_frames(&frames);
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    let last = Last::read(&done.logs, "interface");
    last.closes();
    let sent = frames.len() as u64;
    assert_eq!((last.number("arrived"), last.number("recorded")), (sent, sent));
    assert_eq!(last.number("late"), 0, "names of late flows may differ");
    assert_eq!(last.number("flow_split"), 0);
    let books = Log::read(&done.logs.join("capture.log"));
    let rings = books.of(&[("final", "T"), ("scope", "ring")]);
    let shares = rings.iter().map(|row| books.value(*row, "delivered").parse::<u64>().unwrap());
    let shares: Vec<_> = shares.collect();
    assert!(shares.len() == 3 && shares.iter().all(|share| *share > sent / 10), "{shares:?}");

    let again = done.file("again");
    let out = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args(["analyze", "--quiet", "--workers", "2", "-o"])
        .args([&again, &done.file("RECORDING")])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let (live, file) = (logs(&done.logs), logs(&again));
    let names = |logs: &BTreeMap<String, Vec<String>>| logs.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&live), names(&file));
    for (name, rows) in &file {
        assert_eq!(&live[name], rows, "{name}");
    }
    // Each conversation is one flow, and so is the carrier of each VXLAN.
    let talks = usize::from(EACH) * SHAPES.len();
    assert_eq!(live["conn"].len(), talks + usize::from(EACH));
    assert_eq!(live["http"].len(), talks - 2 * usize::from(EACH));
    assert_eq!(live["tunnel"].len(), 4 * usize::from(EACH) + usize::from(EACH));
}

/// The directions of each conversation travel in tunnels between different gates, which the kernel takes for
/// different traffic: it is counted how many conversations that tears apart.
#[test]
fn flows_whose_directions_come_to_different_rings_are_counted() {
    let Some(bed) = Bed::up("split") else { return };
    let run = Run::start(&bed, "split", &["--workers", "3", "--record", "RECORDING"]);
    let talks: Vec<_> = (0..40).map(|number| Talk::new(Shape::Gre, number)).collect();
    let steps: Vec<_> = talks.iter().map(Talk::asymmetric).collect();
    let frames: Vec<_> =
        (0..8).flat_map(|step| steps.iter().map(move |talk| talk[step].clone())).collect();
    bed.send_frames(&frames);
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    let again = done.file("again");
    let status = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args(["analyze", "--quiet", "-o"])
        .args([&again, &done.file("RECORDING")])
        .status();
    assert!(status.unwrap().success());
    let [live, file] = [&done.logs, &again].map(|logs| Log::read(&logs.join("conn.log")).len());
    assert_eq!(file, talks.len(), "one table has each of them once");
    let last = Last::read(&done.logs, "interface");
    last.closes();
    assert_eq!(last.number("flow_split"), (live - file) as u64, "a row more for each");
    // By chance two of three conversations; the shares of pairs are fixed.
    assert!((10..40).contains(&last.number("flow_split")), "{}", last.text("flow_split"));
    assert!(done.output.contains("flows came to two rings"), "{}", done.output);
}
