//! Packets as an input says: few hosts and ports, so that flows form, with headers that are right
//! until the input spoils them, and times that may go anywhere.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netsniff_packet::wire::ipv4::{Ipv4Header, Ipv4View, protocol};
use netsniff_packet::wire::tcp::TcpHeader;
use netsniff_packet::{LinkType, Packet, Timestamp};
use netsniff_traffic::frame::{Host, tcp_frame, udp_frame};

/// A packet, or what a source has to tell besides.
#[derive(Clone, Debug)]
pub enum Event {
    /// A packet.
    Packet(Made),
    /// The capture lost packets.
    Loss,
}

/// A packet with its own bytes.
#[derive(Clone, Debug)]
pub struct Made {
    time: Timestamp,
    link_type: LinkType,
    cut: u32,
    data: Vec<u8>,
}

impl Made {
    /// As whoever captured it would lend it.
    pub fn packet(&self) -> Packet<'_> {
        Packet {
            timestamp: self.time,
            data: &self.data,
            wire_len: self.data.len() as u32 + self.cut,
            link_type: self.link_type,
            interface: 0,
        }
    }
}

/// Packets of one input at most: a second of fuzzing shall see many inputs.
const MOST: usize = 512;

/// Everything that `input` says.
pub fn events(input: &[u8]) -> Vec<Event> {
    let mut maker = Maker { input: Input(input), time: Timestamp::from_secs_nanos(1_000, 0) };
    let mut events = Vec::new();
    while let Some(kind) = maker.input.next()
        && events.len() < MOST
    {
        maker.event(kind, &mut events);
    }
    events
}

/// Bytes one by one; zeros past the end.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn byte(&mut self) -> u8 {
        self.next().unwrap_or_default()
    }

    fn short(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        bytes
    }
}

struct Maker<'a> {
    input: Input<'a>,
    time: Timestamp,
}

const TCP_PORTS: [u16; 8] = [80, 443, 22, 21, 5000, 40_000, 40_001, 0];
const UDP_PORTS: [u16; 16] =
    [53, 5353, 123, 4789, 6081, 2152, 2123, 3544, 5072, 137, 1900, 40_000, 40_001, 7, 0, 65_535];
/// SYN, SYN-ACK, ACK, data, FIN, RST and what makes no sense.
const FLAGS: [u16; 8] = [0x02, 0x12, 0x10, 0x18, 0x11, 0x04, 0x14, 0x1ff];
const MILLISECOND: i64 = 1_000_000;

impl Maker<'_> {
    fn event(&mut self, kind: u8, events: &mut Vec<Event>) {
        self.pass();
        let frame = match kind % 16 {
            0..6 => self.tcp(),
            6..9 => self.udp(),
            9 | 10 => self.tunnel(),
            11 => {
                for frame in self.fragments() {
                    self.finish(kind, frame, events);
                }
                return;
            }
            12 => self.above_ip(),
            13 => {
                events.push(Event::Loss);
                return;
            }
            14 => {
                let link_type = LinkType(self.short() % 300);
                let len = usize::from(self.byte());
                let data = self.input.bytes(len).to_vec();
                let (time, cut) = (self.time, u32::from(self.byte()));
                events.push(Event::Packet(Made { time, link_type, cut, data }));
                return;
            }
            _ => self.icmp_error(),
        };
        self.finish(kind, frame, events);
    }

    fn short(&mut self) -> u16 {
        self.input.short()
    }

    fn byte(&mut self) -> u8 {
        self.input.byte()
    }

    /// Time goes on, or back, or somewhere else.
    fn pass(&mut self) {
        let how = self.byte();
        let amount = i64::from(how >> 3);
        let step = match how % 8 {
            0..3 => amount * 1_000,
            3 => amount * MILLISECOND,
            4 => amount * 250 * MILLISECOND,
            5 => amount * 20_000 * MILLISECOND,
            6 => -amount * 500 * MILLISECOND,
            _ => {
                if amount == 31 {
                    let eight: [u8; 8] = core::array::from_fn(|_| self.byte());
                    self.time = Timestamp::from_nanos(i64::from_be_bytes(eight));
                }
                0
            }
        };
        self.time = self.time.offset(step);
    }

    /// Spoils a frame as the input says, and takes the link layer away where it says so.
    fn finish(&mut self, kind: u8, mut frame: Vec<u8>, events: &mut Vec<Event>) {
        let mut link_type = LinkType::ETHERNET;
        let mut cut = 0;
        if kind & 0x10 != 0 && frame.len() > 14 {
            frame.drain(..14);
            link_type = LinkType::RAW;
        }
        if kind & 0x20 != 0 {
            let (at, change) = (usize::from(self.byte()), self.byte());
            if let Some(byte) = frame.get_mut(at) {
                *byte ^= change;
            }
        }
        if kind & 0x40 != 0 {
            let keep = usize::from(self.byte()).min(frame.len());
            cut = (frame.len() - keep) as u32;
            frame.truncate(keep);
            if kind & 0x80 != 0 {
                cut = 0;
            }
        }
        let made = Made { time: self.time, link_type, cut, data: frame };
        events.push(Event::Packet(made));
    }

    /// Two ends; `number` says which and in which direction.
    fn ends(&mut self, number: u8, ports: &[u16]) -> (Host, Host) {
        let port = self.byte();
        let pick = |nibble: u8| ports[usize::from(nibble) % ports.len()];
        let address = |last: u8| match number & 0x20 {
            0 => IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)),
            // The prefix of Teredo.
            _ => IpAddr::V6(Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, last.into())),
        };
        let low = Host::new(address(number & 3), pick(port & 15));
        let high = Host::new(address(4 + (number >> 2 & 7)), pick(port >> 4));
        if number & 0x40 == 0 { (low, high) } else { (high, low) }
    }

    fn tcp(&mut self) -> Vec<u8> {
        let number = self.byte();
        let (from, to) = self.ends(number, &TCP_PORTS);
        let (sequence, shape, acknowledgement) = (self.short(), self.byte(), self.short());
        // Streams begin shortly before their numbers wrap.
        let base = 0xffff_8000_u32;
        let options: &[u8] = match shape >> 3 & 3 {
            0 => &[],
            1 => &[2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7],
            2 => &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
            _ => &[1, 1, 5, 10, 0xff, 0xff, 0x90, 0, 0xff, 0xff, 0xa0, 0],
        };
        let header = TcpHeader {
            source_port: 0,
            destination_port: 0,
            sequence: base.wrapping_add(sequence.into()),
            acknowledgement: base.wrapping_add(acknowledgement.into()),
            flags: FLAGS[usize::from(shape & 7)],
            window: acknowledgement,
            checksum: 0,
            urgent_pointer: 0,
            options,
        };
        let len = match shape >> 5 {
            0..3 => 0,
            3 => 1,
            4 => 100,
            5 => 536,
            6 => 1448,
            _ => 30_000,
        };
        let identification = sequence;
        tcp_frame(&from, &to, identification, &header, &vec![0x61; len]).unwrap_or_default()
    }

    fn udp(&mut self) -> Vec<u8> {
        let number = self.byte();
        let (from, to) = self.ends(number, &UDP_PORTS);
        let len = usize::from(self.byte() % 64);
        let payload = self.input.bytes(len);
        udp_frame(&from, &to, 1, payload).unwrap_or_default()
    }

    /// TCP or UDP that something else may carry.
    fn inside(&mut self) -> Vec<u8> {
        if self.byte().is_multiple_of(2) { self.tcp() } else { self.udp() }
    }

    /// A frame in UDP, behind the header that the port asks for or that the input wants.
    fn tunnel(&mut self) -> Vec<u8> {
        let number = self.byte();
        let (from, mut to) = self.ends(number, &UDP_PORTS);
        let shape = self.byte();
        let inner = self.inside();
        let ip = inner.get(14..).unwrap_or_default();
        let (port, payload) = match shape % 6 {
            0 => (4789, [&[8, 0, 0, 0, 0, 0, 7, 0], &*inner].concat()),
            1 => (6081, [&[0, 0, 0x65, 0x58, 0, 0, 7, 0], &*inner].concat()),
            2 => {
                let len = (ip.len() as u16).to_be_bytes();
                (2152, [&[0x30, 255, len[0], len[1], 0, 0, 0, 9], ip].concat())
            }
            3 => (3544, ip.to_vec()),
            4 => (3544, [&[0, 0, 1, 2, 3, 4, 5, 6], ip].concat()),
            _ => (5072, {
                let next = if ip.first().is_some_and(|byte| byte >> 4 == 6) { 41 } else { 4 };
                [&[0x40, 0x50, 0x11, next, 0, 0, 0, 0], &[0; 16][..], &[0; 20], ip].concat()
            }),
        };
        if shape & 0x80 == 0 {
            to.port = port;
        }
        udp_frame(&from, &to, 2, &payload).unwrap_or_default()
    }

    /// A frame around an IPv4 packet between the usual hosts.
    fn around(&mut self, number: u8, header: &Ipv4Header<'_>, payload: &[u8]) -> Vec<u8> {
        let total_len = (Ipv4View::LEN + payload.len()).min(65_535) as u16;
        let source = [192, 0, 2, number & 3];
        let destination = [192, 0, 2, 4 + (number >> 2 & 7)];
        let header = Ipv4Header { total_len, source, destination, ..*header };
        let mut frame = vec![0; 14 + Ipv4View::LEN];
        frame[12..14].copy_from_slice(&[8, 0]);
        let written = header.emit(&mut frame[14..]);
        assert_eq!(written, Some(Ipv4View::LEN), "a header without options");
        frame.extend(payload);
        frame
    }

    /// IP in IP, GRE, a header that nothing follows, or a protocol that is not decoded.
    fn above_ip(&mut self) -> Vec<u8> {
        let (number, shape) = (self.byte(), self.byte());
        let inner = match shape >> 4 & 3 {
            0 | 1 => self.inside(),
            2 => self.tunnel(),
            _ if shape & 0x80 == 0 => self.inside(),
            _ => self.above_ip(),
        };
        let ip = inner.get(14..).unwrap_or_default();
        let is_v6 = ip.first().is_some_and(|byte| byte >> 4 == 6);
        let (number_above, payload) = match shape % 8 {
            0..3 => (if is_v6 { protocol::IPV6 } else { protocol::IPV4 }, ip.to_vec()),
            3..5 => {
                let ethertype = if is_v6 { [0x86, 0xdd] } else { [8, 0] };
                (protocol::GRE, [&[0, 0], &ethertype[..], ip].concat())
            }
            5 => (protocol::GRE, [&[0x20, 0, 0x65, 0x58, 0, 0, 0, 1], &*inner].concat()),
            6 => (protocol::NO_NEXT_HEADER, Vec::new()),
            _ => (shape, ip.to_vec()),
        };
        self.around(number, &header(number_above), &payload)
    }

    /// The fragments of an IPv4 packet in the order that the input says, some of them left out.
    fn fragments(&mut self) -> Vec<Vec<u8>> {
        let (number, shape, identification) = (self.byte(), self.byte(), self.byte());
        let inner = match shape & 3 {
            0 => self.udp(),
            1 => self.tunnel(),
            2 => self.tcp(),
            _ => self.above_ip(),
        };
        let ip = inner.get(14..).unwrap_or_default();
        let Some(view) = Ipv4View::parse(ip).filter(|view| view.version() == 4) else {
            return Vec::new();
        };
        let payload = ip.get(Ipv4View::LEN..).unwrap_or_default();
        let step = 8 * (1 + usize::from(shape >> 5) * 20);
        let pieces = payload.chunks(step).take(8).enumerate();
        let mut frames: Vec<_> = pieces
            .map(|(at, piece)| {
                let header = Ipv4Header {
                    identification: u16::from(identification & 15),
                    more_fragments: (at + 1) * step < payload.len(),
                    fragment_offset: (at * step) as u16,
                    ..header(view.protocol())
                };
                self.around(number, &header, piece)
            })
            .collect();
        if shape & 4 != 0 {
            frames.reverse();
        }
        if shape & 8 != 0 {
            frames.pop();
        }
        if shape & 16 != 0
            && let Some(first) = frames.first().cloned()
        {
            frames.push(first);
        }
        frames
    }

    /// Destination unreachable about another packet.
    fn icmp_error(&mut self) -> Vec<u8> {
        let (number, kind, code) = (self.byte(), self.byte(), self.byte());
        let inner = self.inside();
        let payload = [&[kind, code, 0, 0, 0, 0, 0, 0], inner.get(14..).unwrap_or_default()];
        self.around(number, &header(protocol::ICMP), &payload.concat())
    }
}

const fn header(number: u8) -> Ipv4Header<'static> {
    Ipv4Header {
        traffic_class: 0,
        total_len: 0,
        identification: 1,
        reserved_flag: false,
        dont_fragment: false,
        more_fragments: false,
        fragment_offset: 0,
        ttl: 64,
        protocol: number,
        checksum: 0,
        source: [0; 4],
        destination: [0; 4],
        options: &[],
    }
}
