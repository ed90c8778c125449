//! Makes stamped frames: from templates, with only that written which differs from frame to frame.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netsniff_packet::wire::ethernet::EthernetHeader;
use netsniff_packet::wire::tcp::TcpHeader;

use super::{ETHERTYPE, FCS_LEN, Settings, Shape};
use crate::Random;
use crate::frame::{Host, tcp_frame, udp_frame};
use crate::stamp::{self, Stamp};

/// The most bytes of a frame without frame check sequence: what IP can say behind an Ethernet header.
const MOST: usize = EthernetHeader::LEN + 65_535;

/// Pairs of addresses that flows are over.
const PAIRS: u32 = 1 << 16;

/// Ports that the flows of one pair differ by, until all pairs are used.
const PORTS_PER_PAIR: u32 = 4;

/// The lowest port that frames are sent from.
const FIRST_PORT: u32 = 1024;

/// Offsets within an IPv4 and an IPv6 header, behind Ethernet.
const V4_CHECKSUM_AT: usize = EthernetHeader::LEN + 10;
const V4_ADDRESSES_AT: usize = EthernetHeader::LEN + 12;
const V6_ADDRESSES_AT: usize = EthernetHeader::LEN + 8;

/// Makes the frames of a run.
#[derive(Clone, Debug)]
pub struct Probes {
    settings: Settings,
    /// One for each size.
    templates: Vec<Template>,
}

/// The frame of a size, of flow 0, with a stamp of zeroes.
#[derive(Clone, Debug)]
struct Template {
    frame: Vec<u8>,
    /// One's complement sums of what the checksums of IPv4 and of the transport cover, without what differs from
    /// frame to frame: addresses, source port, sequence number, stamp.
    ip_sum: u32,
    sum: u32,
}

/// What a buffer holds, so that the next frame in it need not be written whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    template: u32,
    flow: u32,
    /// The template's sum with the addresses and the source port of the flow.
    sum: u32,
}

/// A size that no frame has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is below the least one, which this is.
    Small(usize),
    /// It is above the largest one, which this is.
    Large(usize),
}

impl Probes {
    /// Frames of these sizes in turn, frame check sequences included but not made.
    ///
    /// # Errors
    ///
    /// The first size that no frame has.
    pub fn new(settings: &Settings, sizes: &[usize]) -> Result<Self, Unfit> {
        let settings = Settings { flows: settings.flows.max(1), ..*settings };
        let template = |size: &usize| Template::new(&settings, *size);
        let templates = sizes.iter().map(template).collect::<Result<_, _>>()?;
        Ok(Self { settings, templates })
    }

    /// Bytes of the frame with this number, without frame check sequence.
    #[must_use]
    pub fn len_of(&self, number: u64) -> usize {
        self.template_of(number).map_or(0, |(_, template)| template.frame.len())
    }

    /// Writes the frame that a stamp belongs to: its sequence number decides size and flow. `made` is what is known of
    /// the room, which must hold what was written there last. Returns the length; `None` where the room is too small.
    #[must_use]
    pub fn write(&self, made: &mut Option<Made>, room: &mut [u8], stamp: &Stamp) -> Option<usize> {
        let (number, template) = self.template_of(stamp.sequence)?;
        let frame = room.get_mut(..template.frame.len())?;
        let flow = (stamp.sequence % u64::from(self.settings.flows)) as u32;
        let sum = match made {
            Some(known) if (known.template, known.flow) == (number, flow) => known.sum,
            known => {
                if known.is_none_or(|known| known.template != number) {
                    frame.copy_from_slice(&template.frame);
                }
                let sum = template.sum + self.write_flow(frame, template, flow);
                *known = Some(Made { template: number, flow, sum });
                sum
            }
        };
        self.write_stamp(frame, sum, stamp).then_some(frame.len())
    }

    fn template_of(&self, number: u64) -> Option<(u32, &Template)> {
        let at = number.checked_rem(self.templates.len() as u64)?;
        Some((at as u32, self.templates.get(at as usize)?))
    }

    /// Writes what tells flows apart, and returns the sum of it.
    fn write_flow(&self, frame: &mut [u8], template: &Template, flow: u32) -> u32 {
        let shape = self.settings.shape;
        if shape == Shape::Raw {
            frame[8..12].copy_from_slice(&flow.to_be_bytes());
            return 0;
        }
        let (source, destination, port) = place(&self.settings, flow);
        let addresses = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let at = &mut frame[V4_ADDRESSES_AT..V4_ADDRESSES_AT + 8];
                at[..4].copy_from_slice(&source.octets());
                at[4..].copy_from_slice(&destination.octets());
                let sum = words(at);
                let checksum = !fold(template.ip_sum + sum);
                frame[V4_CHECKSUM_AT..V4_CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
                sum
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let at = &mut frame[V6_ADDRESSES_AT..V6_ADDRESSES_AT + 32];
                at[..16].copy_from_slice(&source.octets());
                at[16..].copy_from_slice(&destination.octets());
                words(at)
            }
            _ => 0,
        };
        let at = shape.transport_at();
        frame[at..at + 2].copy_from_slice(&port.to_be_bytes());
        addresses + u32::from(port)
    }

    /// Writes what differs from frame to frame; `false` where there is no room.
    fn write_stamp(&self, frame: &mut [u8], mut sum: u32, stamp: &Stamp) -> bool {
        let shape = self.settings.shape;
        let at = shape.stamp_at();
        let len = frame.len();
        if !frame.get_mut(at..).is_some_and(|payload| stamp.emit(payload)) {
            return false;
        }
        let Some(checksum_at) = shape.checksum_at() else { return true };
        sum += words(&frame[at..at + stamp::LEN]);
        if shape.is_tcp() {
            // Each segment of a flow follows the one before, as far as all have the same size.
            let before = (stamp.sequence / u64::from(self.settings.flows)) as u32;
            let sequence = before.wrapping_mul((len - at) as u32).to_be_bytes();
            let at = shape.transport_at() + 4;
            frame[at..at + 4].copy_from_slice(&sequence);
            sum += words(&sequence);
        }
        let checksum = match !fold(sum) {
            // For UDP 0 means that there is none (RFC 768); both are the zero of one's complement.
            0 => 0xffff,
            checksum => checksum,
        };
        frame[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
        true
    }
}

impl Shape {
    /// Where the transport header lies.
    const fn transport_at(self) -> usize {
        self.stamp_at()
            - match self {
                Self::Raw => 0,
                Self::Udp4 | Self::Udp6 => 8,
                Self::Tcp4 | Self::Tcp6 => 20,
            }
    }

    /// Where its checksum lies, if it has one.
    const fn checksum_at(self) -> Option<usize> {
        match self {
            Self::Raw => None,
            Self::Udp4 | Self::Udp6 => Some(self.transport_at() + 6),
            Self::Tcp4 | Self::Tcp6 => Some(self.transport_at() + 16),
        }
    }
}

impl Template {
    fn new(settings: &Settings, size: usize) -> Result<Self, Unfit> {
        let shape = settings.shape;
        if size < shape.least_size() {
            return Err(Unfit::Small(shape.least_size()));
        }
        let most = MOST + FCS_LEN;
        let mut random = Random::new(settings.seed);
        let mut payload: Vec<u8> = Vec::new();
        let payload_len = (size - FCS_LEN - shape.stamp_at()).min(MOST);
        while payload.len() < payload_len {
            payload.extend(random.next_u64().to_be_bytes());
        }
        payload.truncate(payload_len);
        payload[..stamp::LEN].fill(0);
        let frame = whole(settings, &payload).filter(|_| size <= most);
        let frame = frame.ok_or(Unfit::Large(most))?;
        Ok(Self { ip_sum: ip_sum(shape, &frame), sum: transport_sum(shape, &frame), frame })
    }
}

/// The frame of flow 0.
fn whole(settings: &Settings, payload: &[u8]) -> Option<Vec<u8>> {
    let (source, destination, port) = place(settings, 0);
    let host = |mac, address, port| Host { mac, ..Host::new(address, port) };
    let from = host(settings.macs.0, source, port);
    let to = host(settings.macs.1, destination, settings.port);
    match settings.shape {
        Shape::Raw => {
            let mut frame = [to.mac, from.mac].concat();
            frame.extend(ETHERTYPE.to_be_bytes());
            frame.extend(payload);
            Some(frame)
        }
        Shape::Udp4 | Shape::Udp6 => udp_frame(&from, &to, 0, payload),
        Shape::Tcp4 | Shape::Tcp6 => {
            let header = TcpHeader {
                source_port: 0,
                destination_port: 0,
                sequence: 0,
                acknowledgement: 1,
                // ACK.
                flags: 0x10,
                window: 0xffff,
                checksum: 0,
                urgent_pointer: 0,
                options: &[],
            };
            tcp_frame(&from, &to, 0, &header, payload)
        }
    }
}

/// The addresses and the source port of a flow. Four flows differ in their ports alone, so that there are several
/// between two hosts.
fn place(settings: &Settings, flow: u32) -> (IpAddr, IpAddr, u16) {
    let pair = flow / PORTS_PER_PAIR % PAIRS;
    let round = flow / (PORTS_PER_PAIR * PAIRS);
    let port = FIRST_PORT + flow % PORTS_PER_PAIR + round * PORTS_PER_PAIR;
    let moved = |address| match address {
        IpAddr::V4(v4) => IpAddr::V4(Ipv4Addr::from_bits(u32::from(v4).wrapping_add(pair))),
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(u128::from(v6).wrapping_add(pair.into()))),
    };
    let (source, destination) = settings.addresses;
    (moved(source), moved(destination), port as u16)
}

/// What the checksum of the IPv4 header covers, without addresses.
fn ip_sum(shape: Shape, frame: &[u8]) -> u32 {
    match shape {
        Shape::Udp4 | Shape::Tcp4 => words(&frame[EthernetHeader::LEN..V4_CHECKSUM_AT]),
        _ => 0,
    }
}

/// What the checksum of the transport covers, without addresses, source port, sequence number and stamp: by
/// its own field, which is right for them.
fn transport_sum(shape: Shape, frame: &[u8]) -> u32 {
    let Some(checksum_at) = shape.checksum_at() else { return 0 };
    let at = shape.transport_at();
    let addresses = match shape {
        Shape::Udp4 | Shape::Tcp4 => &frame[V4_ADDRESSES_AT..V4_ADDRESSES_AT + 8],
        _ => &frame[V6_ADDRESSES_AT..V6_ADDRESSES_AT + 32],
    };
    let covered = !fold(words(&frame[checksum_at..checksum_at + 2]));
    let without = fold(words(addresses) + words(&frame[at..at + 2]));
    u32::from(covered) + u32::from(!without)
}

/// The sum of 16-bit words; an even number of bytes, at most 64 KiB.
fn words(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum()
}

const fn fold(sum: u32) -> u16 {
    let sum = (sum >> 16) + (sum & 0xffff);
    ((sum >> 16) + (sum & 0xffff)) as u16
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use netsniff_packet::checksum::{self, ChecksumVerdict};
    use netsniff_packet::decode::{self, Transport};
    use netsniff_packet::{LinkType, Packet, Timestamp};

    use super::*;
    use crate::probe::{PORT, find};

    const ALL: [Shape; 5] = [Shape::Raw, Shape::Udp4, Shape::Tcp4, Shape::Udp6, Shape::Tcp6];

    fn found(frame: &[u8]) -> Option<Stamp> {
        let packet = Packet {
            timestamp: Timestamp::EPOCH,
            data: frame,
            wire_len: frame.len() as u32,
            link_type: LinkType::ETHERNET,
            interface: 0,
        };
        find(&packet, PORT)
    }

    #[test]
    fn least_sizes_are_those_of_rfc_2544_or_have_room_for_a_stamp() {
        assert_eq!(ALL.map(Shape::least_size), [64, 64, 76, 84, 96]);
        for shape in ALL {
            let settings = Settings::new(shape);
            let least = shape.least_size();
            for size in [least, least + 1, 1518, 9018] {
                assert_eq!(Probes::new(&settings, &[size]).unwrap().len_of(7), size - 4);
            }
            let refused = |size| Probes::new(&settings, &[1518, size]).map(drop);
            assert_eq!(refused(least - 1), Err(Unfit::Small(least)));
            assert_eq!(refused(MOST + 5), Err(Unfit::Large(MOST + 4)), "{shape:?}");
            assert_eq!(refused(MOST + 4), Ok(()));
        }
    }

    #[test]
    fn frames_are_whole_whatever_was_in_the_buffer() {
        for shape in ALL {
            let settings = Settings { flows: 7, ..Settings::new(shape) };
            let probes = Probes::new(&settings, &[shape.least_size(), 1518, 201]).unwrap();
            // Three buffers in turn, so that every size and flow follows on every other.
            let mut buffers = vec![([0xee; 1600], None); 4];
            for sequence in 0..500 {
                let (room, made) = &mut buffers[sequence as usize % 4];
                let stamp = Stamp { run: 9, stream: 3, sequence, sent: sequence * 0x0123_4567 };
                let len = probes.write(made, room, &stamp).unwrap();
                assert_eq!(len, probes.len_of(sequence));
                let frame = &room[..len];
                assert_eq!(found(frame), Some(stamp), "{shape:?}");
                // The same frame where nothing was known.
                let mut other = vec![0; 1600];
                probes.write(&mut None, &mut other, &stamp).unwrap();
                assert_eq!(&other[..len], frame);
                if shape != Shape::Raw {
                    let decoded = decode::packet(LinkType::ETHERNET, frame, len as u32);
                    assert!(decoded.stop.is_none() && decoded.oddities.is_empty());
                    assert_eq!(
                        checksum::transport(&decoded, frame),
                        ChecksumVerdict::Good,
                        "{shape:?}"
                    );
                    let header = checksum::ip_header(&frame[EthernetHeader::LEN..]);
                    assert!(!header.is_wrong());
                }
            }
            let stamp = Stamp { run: 0, stream: 0, sequence: 1, sent: 0 };
            assert_eq!(probes.write(&mut None, &mut [0; 1513], &stamp), None, "no room");
        }
    }

    #[test]
    fn flows_differ() {
        for shape in ALL {
            let settings = Settings { flows: u32::MAX, ..Settings::new(shape) };
            let probes = Probes::new(&settings, &[100]).unwrap();
            let mut seen = HashSet::new();
            let flows = (0..300).chain([1 << 18, (1 << 18) + 1, 1 << 20, u32::MAX - 1]);
            for flow in flows {
                let mut frame = [0; 96];
                let stamp = Stamp { run: 0, stream: 0, sequence: flow.into(), sent: 0 };
                probes.write(&mut None, &mut frame, &stamp).unwrap();
                let decoded = decode::packet(LinkType::ETHERNET, &frame, 96);
                let ports = match decoded.transport {
                    Transport::Udp(udp) => udp.source_port,
                    Transport::Tcp(tcp) => tcp.source_port,
                    _ => 0,
                };
                let addresses = decoded.ip.map(|ip| (ip.source, ip.destination));
                let mac: [u8; 6] = frame[6..12].try_into().unwrap();
                assert!(seen.insert((mac, addresses, ports)), "{shape:?} {flow}");
            }
        }
    }

    #[test]
    fn segments_of_a_flow_follow_each_other() {
        let settings = Settings { flows: 2, ..Settings::new(Shape::Tcp4) };
        let probes = Probes::new(&settings, &[100]).unwrap();
        let sequence = |number| {
            let mut frame = [0; 96];
            let stamp = Stamp { run: 0, stream: 0, sequence: number, sent: 0 };
            probes.write(&mut None, &mut frame, &stamp).unwrap();
            u32::from_be_bytes(frame[38..42].try_into().unwrap())
        };
        assert_eq!([0, 1, 2, 3, 4].map(sequence), [0, 0, 42, 42, 84]);
    }

    #[test]
    fn the_seed_decides_the_payload() {
        let payload = |seed| {
            let settings = Settings { seed, ..Settings::new(Shape::Udp4) };
            let probes = Probes::new(&settings, &[200]).unwrap();
            let mut frame = vec![0; 196];
            let stamp = Stamp { run: 0, stream: 0, sequence: 0, sent: 0 };
            probes.write(&mut None, &mut frame, &stamp).unwrap();
            frame[60..].to_vec()
        };
        assert_eq!(payload(1), payload(1));
        assert_ne!(payload(1), payload(2));
    }
}
