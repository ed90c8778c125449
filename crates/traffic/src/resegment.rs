//! The same streams of TCP in other segments: cut into smaller ones, or joined to larger ones.
//!
//! Times stay those of the segment that a piece was in, so that nothing changes but where segments end.

use std::collections::HashMap;

use netsniff_packet::checksum::{self, ChecksumVerdict};
use netsniff_packet::decode::{self, Layer, Layers, TcpFlags, Transport};
use netsniff_packet::wire::ipv4::protocol;
use netsniff_packet::wire::ipv6::Ipv6Header;
use netsniff_packet::{Address, Packet};

/// Layers of frames in which nothing but IP has the length of the segment.
const PLAIN: [Layer; 7] = [
    Layer::Ethernet,
    Layer::Cooked,
    Layer::Loopback,
    Layer::Vlan,
    Layer::Ipv4,
    Layer::Ipv6,
    Layer::Tcp,
];

/// Where parts of the IPv4, IPv6 and TCP headers stand.
const V4_LEN_AT: usize = 2;
const V4_CHECKSUM_AT: usize = 10;
const V6_LEN_AT: usize = 4;
const SEQUENCE_AT: usize = 4;
const FLAGS_AT: usize = 13;
const TCP_CHECKSUM_AT: usize = 16;

/// One direction of a connection: addresses and ports of sender and receiver, and the VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Direction {
    source: (Address, u16),
    destination: (Address, u16),
    vlan: (Option<u16>, Option<u16>),
}

impl Direction {
    /// The direction of a packet of TCP.
    #[must_use]
    pub fn of(packet: &Packet<'_>) -> Option<Self> {
        let decoded = decode::packet(packet.link_type, packet.data, packet.wire_len);
        Self::decoded(&decoded)
    }

    fn decoded(decoded: &decode::Decoded) -> Option<Self> {
        let (Some(ip), Transport::Tcp(tcp)) = (&decoded.ip, &decoded.transport) else {
            return None;
        };
        Some(Self {
            source: (ip.source, tcp.source_port),
            destination: (ip.destination, tcp.destination_port),
            vlan: (decoded.vlan, decoded.inner_vlan),
        })
    }

    /// The other direction of the connection.
    #[must_use]
    pub const fn reverse(self) -> Self {
        Self { source: self.destination, destination: self.source, vlan: self.vlan }
    }
}

/// A segment with data that can be cut and joined.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    packet: Packet<'a>,
    direction: Direction,
    /// Offsets of the IP header, the TCP header and the data, and where the data ends.
    ip: usize,
    tcp: usize,
    data: usize,
    end: usize,
    sequence: u32,
    acknowledgement: u32,
    flags: TcpFlags,
    ttl: u8,
}

impl<'a> Segment<'a> {
    /// The segment in a packet; `None` where there is no data, or other segments would not say the same: in packets that
    /// were cut, fragments, tunnels, with wrong checksums or lengths, with SYN, RST or urgent data.
    #[must_use]
    pub fn of(packet: &Packet<'a>) -> Option<Self> {
        let decoded = decode::packet(packet.link_type, packet.data, packet.wire_len);
        let (Some(ip), Transport::Tcp(tcp)) = (&decoded.ip, &decoded.transport) else {
            return None;
        };
        let plain = PLAIN.into_iter().fold(Layers::default(), Layers::with);
        let is_plain = decoded.layers.union(plain) == plain
            && decoded.stop.is_none()
            && decoded.oddities == decode::Oddities::default()
            && !packet.is_cut()
            && ip.fragment.is_none()
            && !tcp.flags.any(TcpFlags::SYN.with(TcpFlags::RST).with(TcpFlags::URG))
            && checksum::transport(&decoded, packet.data) == ChecksumVerdict::Good;
        let segment = Self {
            packet: *packet,
            direction: Direction::decoded(&decoded)?,
            ip: ip.offset as usize,
            tcp: ip.payload_offset as usize,
            data: tcp.payload_offset as usize,
            end: (tcp.payload_offset + tcp.payload_len) as usize,
            sequence: tcp.sequence,
            acknowledgement: tcp.acknowledgement,
            flags: tcp.flags,
            ttl: ip.ttl,
        };
        let is_whole = tcp.payload_len > 0 && tcp.payload_captured == tcp.payload_len;
        (is_plain && is_whole && segment.has_right_length()).then_some(segment)
    }

    /// Whether the header of IP has the length of the packet, and a right checksum.
    fn has_right_length(&self) -> bool {
        let header = &self.packet.data[self.ip..self.tcp];
        let (at, len) = if self.direction.source.0.is_v4() {
            (V4_LEN_AT, self.end - self.ip)
        } else {
            (V6_LEN_AT, self.end - self.tcp)
        };
        let field = usize::from(u16::from_be_bytes([header[at], header[at + 1]]));
        let is_sound = if self.direction.source.0.is_v4() {
            checksum::ip_header(header) == ChecksumVerdict::Good
        } else {
            header.len() == Ipv6Header::LEN
        };
        field == len && is_sound
    }

    /// The direction it goes in.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        self.direction
    }

    /// How many bytes of data it has.
    #[must_use]
    pub const fn data_len(&self) -> usize {
        self.end - self.data
    }

    /// Hands over the pieces of it in their order. `size` is asked for the size of each, and at least one byte is taken.
    pub fn cut(&self, mut size: impl FnMut() -> usize, mut take: impl FnMut(&Packet<'_>)) {
        let (all, mut at) = (self.data_len(), 0);
        while at < all {
            let end = at.saturating_add(size().max(1)).min(all);
            let mut flags = self.flags;
            if end < all {
                flags = TcpFlags(flags.0 & !(TcpFlags::FIN.0 | TcpFlags::PSH.0));
            }
            let data = &self.packet.data[self.data + at..self.data + end];
            let frame = self.frame(self.sequence.wrapping_add(at as u32), flags, &[data]);
            take(&self.packet(&frame));
            at = end;
        }
    }

    /// Whether another segment says what comes next, in headers that say the same.
    fn is_before(&self, next: &Self, len: usize) -> bool {
        let ends = |segment: &Self| segment.flags.0 & TcpFlags::FIN.0;
        let others = |segment: &Self| segment.flags.0 & !(TcpFlags::FIN.0 | TcpFlags::PSH.0);
        ends(self) == 0
            && others(self) == others(next)
            && self.sequence.wrapping_add(len as u32) == next.sequence
            && (self.acknowledgement, self.ttl) == (next.acknowledgement, next.ttl)
            && self.packet.interface == next.packet.interface
    }

    fn packet<'f>(&self, data: &'f [u8]) -> Packet<'f> {
        let Packet { timestamp, link_type, interface, .. } = self.packet;
        Packet { timestamp, data, wire_len: data.len() as u32, link_type, interface }
    }

    /// The frame with other data.
    fn frame(&self, sequence: u32, flags: TcpFlags, data: &[&[u8]]) -> Vec<u8> {
        let mut frame = self.packet.data[..self.data].to_vec();
        data.iter().for_each(|data| frame.extend_from_slice(data));
        let (ip, tcp) = (self.ip, self.tcp);
        let mut put = |at: usize, value: &[u8]| frame[at..at + value.len()].copy_from_slice(value);
        put(tcp + SEQUENCE_AT, &sequence.to_be_bytes());
        put(tcp + FLAGS_AT, &[flags.0 as u8]);
        put(tcp + TCP_CHECKSUM_AT, &[0; 2]);
        let (source, destination) = (self.direction.source.0, self.direction.destination.0);
        let start = if source.is_v4() { ip } else { tcp };
        let len = (frame.len() - start) as u16;
        if source.is_v4() {
            frame[ip + V4_LEN_AT..][..2].copy_from_slice(&len.to_be_bytes());
            frame[ip + V4_CHECKSUM_AT..][..2].fill(0);
            let sum = checksum::compute(&frame[ip..tcp]);
            frame[ip + V4_CHECKSUM_AT..][..2].copy_from_slice(&sum.to_be_bytes());
        } else {
            frame[ip + V6_LEN_AT..][..2].copy_from_slice(&len.to_be_bytes());
        }
        let (number, segment) = (protocol::TCP, &frame[tcp..]);
        let sum = checksum::compute_with_pseudo_header(source, destination, number, segment);
        frame[tcp + TCP_CHECKSUM_AT..][..2].copy_from_slice(&sum.to_be_bytes());
        frame
    }
}

/// What stands at one place of a capture after [`gather`].
#[derive(Clone, Debug)]
pub enum Gathered<'a> {
    /// A packet as it was.
    Packet(Packet<'a>),
    /// Segments of one direction, each of which goes on where the one before ends. Nothing of their connection lay
    /// between them.
    Segments(Vec<Segment<'a>>),
}

/// Finds segments that could have been one, with at most `most` bytes of data together, and brings them to the place of
/// the first.
#[must_use]
pub fn gather<'a>(packets: impl IntoIterator<Item = Packet<'a>>, most: usize) -> Vec<Gathered<'a>> {
    let mut gathered = Vec::new();
    // The group that may go on, by direction: its place, and the bytes in it.
    let mut open: HashMap<Direction, (usize, usize)> = HashMap::new();
    for packet in packets {
        let direction = Direction::of(&packet);
        if let Some(direction) = direction {
            open.remove(&direction.reverse());
        }
        let Some(segment) = Segment::of(&packet) else {
            direction.and_then(|direction| open.remove(&direction));
            gathered.push(Gathered::Packet(packet));
            continue;
        };
        let more = segment.data_len();
        if let Some((at, len)) = open.get_mut(&segment.direction)
            && *len + more <= most
            && let Some(Gathered::Segments(group)) = gathered.get_mut(*at)
            && group.last().is_some_and(|last| last.is_before(&segment, last.data_len()))
        {
            group.push(segment);
            *len += more;
            continue;
        }
        open.insert(segment.direction, (gathered.len(), more));
        gathered.push(Gathered::Segments(vec![segment]));
    }
    gathered
}

impl Gathered<'_> {
    /// Hands over each packet as it was, with the time of the first.
    pub fn apart(&self, mut take: impl FnMut(&Packet<'_>)) {
        match self {
            Self::Packet(packet) => take(packet),
            Self::Segments(group) => {
                for segment in group {
                    let timestamp = group[0].packet.timestamp;
                    take(&Packet { timestamp, ..segment.packet });
                }
            }
        }
    }

    /// Hands over one packet with all data.
    pub fn joined(&self, mut take: impl FnMut(&Packet<'_>)) {
        match self {
            Self::Packet(packet) => take(packet),
            Self::Segments(group) => {
                let flags = group.iter().fold(TcpFlags(0), |all, segment| all.with(segment.flags));
                let data: Vec<&[u8]> =
                    group.iter().map(|it| &it.packet.data[it.data..it.end]).collect();
                let first = &group[0];
                take(&first.packet(&first.frame(first.sequence, flags, &data)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use netsniff_packet::{LinkType, Timestamp};

    use super::*;
    use crate::dialogue::{Dialogue, Setup, Side};

    fn frames() -> Vec<(Timestamp, Vec<u8>)> {
        let mut dialogue = Dialogue::new(Setup::default());
        dialogue.connect().say(Side::Client, &(0..=255).cycle().take(9_000).collect::<Vec<u8>>());
        dialogue.close(Side::Client).close(Side::Server);
        dialogue.finish().seen.into_iter().map(|seen| (seen.timestamp, seen.frame)).collect()
    }

    fn packet((timestamp, data): &(Timestamp, Vec<u8>)) -> Packet<'_> {
        let (wire_len, link_type) = (data.len() as u32, LinkType::ETHERNET);
        Packet { timestamp: *timestamp, data, wire_len, link_type, interface: 0 }
    }

    /// Time, sequence number, FIN and data of all segments with data.
    fn data(packets: &[(Timestamp, Vec<u8>)]) -> Vec<(Timestamp, u32, bool, Vec<u8>)> {
        let packets: Vec<_> = packets.iter().map(packet).collect();
        let segments = packets.iter().filter_map(Segment::of);
        let told = segments.map(|it| {
            let data = it.packet.data[it.data..it.end].to_vec();
            (it.packet.timestamp, it.sequence, it.flags.any(TcpFlags::FIN), data)
        });
        told.collect()
    }

    #[test]
    fn pieces_are_sound_and_say_the_same() {
        let frames = frames();
        let whole = data(&frames);
        assert!(whole.len() > 5);
        for size in [1, 7, 100, 5_000] {
            let mut pieces = Vec::new();
            for packet in frames.iter().map(packet) {
                let mut take = |packet: &Packet<'_>| {
                    pieces.push((packet.timestamp, packet.data.to_vec()));
                };
                match Segment::of(&packet) {
                    Some(segment) => segment.cut(|| size, take),
                    None => take(&packet),
                }
            }
            let pieces = data(&pieces);
            let number: usize = whole.iter().map(|it| it.3.len().div_ceil(size)).sum();
            assert_eq!(pieces.len(), number, "every piece is a sound segment");
            let bytes = |told: &[(Timestamp, u32, bool, Vec<u8>)]| {
                let each = told.iter().flat_map(|(time, sequence, _, data)| {
                    let number = |at: usize| sequence.wrapping_add(at as u32);
                    data.iter().enumerate().map(move |(at, byte)| (*time, number(at), *byte))
                });
                each.collect::<Vec<_>>()
            };
            assert_eq!(bytes(&pieces), bytes(&whole));
        }
    }

    #[test]
    fn joined_segments_have_the_data_of_those_apart() {
        let frames = frames();
        let gathered = gather(frames.iter().map(packet), 4_000);
        let (mut apart, mut joined) = (Vec::new(), Vec::new());
        for place in &gathered {
            place.apart(|packet| apart.push((packet.timestamp, packet.data.to_vec())));
            place.joined(|packet| joined.push((packet.timestamp, packet.data.to_vec())));
        }
        assert_eq!(apart.len(), frames.len());
        let (apart, joined) = (data(&apart), data(&joined));
        assert!(joined.len() < apart.len() && joined.iter().all(|it| it.3.len() <= 4_000));
        let all = |told: &[(Timestamp, u32, bool, Vec<u8>)]| {
            told.iter().flat_map(|it| it.3.clone()).collect::<Vec<_>>()
        };
        assert_eq!(all(&joined), all(&apart));
    }

    #[test]
    fn what_other_segments_would_not_say_stays() {
        let frames = frames();
        let at = frames.iter().position(|frame| Segment::of(&packet(frame)).is_some()).unwrap();
        let sound = &frames[at];
        for (place, what) in [(24, "checksum of IP"), (17, "length"), (60, "data"), (47, "flags")] {
            let mut frame = sound.clone();
            frame.1[place] ^= 0x20;
            assert!(Segment::of(&packet(&frame)).is_none(), "{what}");
        }
        let cut = Packet { wire_len: 9_000, ..packet(sound) };
        assert!(Segment::of(&cut).is_none());
        for len in 0..sound.1.len() {
            let _ = Segment::of(&Packet { data: &sound.1[..len], ..packet(sound) });
        }
    }
}
