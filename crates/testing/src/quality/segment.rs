//! TCP segments as they stand in a capture.

use std::fs::File;
use std::net::IpAddr;
use std::path::Path;

use netsniff_packet::decode::{self, TcpFlags, Transport};
use netsniff_packet::{Batch, Packet, Progress, Source as _, Timestamp};
use netsniff_pcapfile::Reader;

/// Address and port.
pub type End = (IpAddr, u16);

/// A connection: its two ends, the lesser first.
pub type Flow = [End; 2];

/// What takes room in the sequence space, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// SYN, with or without ACK.
    Syn,
    /// Payload, without SYN and FIN.
    Data,
    /// FIN, with or without payload.
    Fin,
    /// An acknowledgement and nothing else.
    PureAck,
    /// A segment with RST.
    Reset,
}

impl Kind {
    pub const ALL: [Self; 5] = [Self::Syn, Self::Data, Self::Fin, Self::PureAck, Self::Reset];

    /// As tables name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Syn => "SYN",
            Self::Data => "data",
            Self::Fin => "FIN",
            Self::PureAck => "pure ACK",
            Self::Reset => "RST",
        }
    }

    /// Whether the receiver must acknowledge it.
    pub const fn is_acknowledged(self) -> bool {
        matches!(self, Self::Syn | Self::Data | Self::Fin)
    }
}

/// A TCP segment that passed, or should have passed, the tap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub time: Timestamp,
    pub flow: Flow,
    /// Which end of the flow sent it.
    pub from: usize,
    pub sequence: u32,
    /// Bytes of payload.
    pub payload: u32,
    pub flags: TcpFlags,
    pub acknowledgement: u32,
    /// SACK blocks.
    pub sack: Vec<(u32, u32)>,
    pub identification: u32,
    /// Time-stamp value and echo, RFC 7323.
    pub stamps: Option<(u32, u32)>,
}

impl Segment {
    /// The segment in a packet, if there is one.
    pub fn of(packet: &Packet<'_>) -> Option<Self> {
        let decoded = decode::packet(packet.link_type, packet.data, packet.wire_len);
        let (Some(ip), Transport::Tcp(tcp)) = (decoded.ip, decoded.transport) else { return None };
        let source = (ip.source.to_ip(), tcp.source_port);
        let destination = (ip.destination.to_ip(), tcp.destination_port);
        let blocks = tcp.options.sack.iter().take(tcp.options.sack_count.into());
        Some(Self {
            time: packet.timestamp,
            flow: [source.min(destination), source.max(destination)],
            from: usize::from(source > destination),
            sequence: tcp.sequence,
            payload: tcp.payload_len,
            flags: tcp.flags,
            acknowledgement: tcp.acknowledgement,
            sack: blocks.copied().collect(),
            identification: ip.identification,
            stamps: tcp.options.timestamps,
        })
    }

    pub fn kind(&self) -> Kind {
        if self.flags.any(TcpFlags::RST) {
            Kind::Reset
        } else if self.flags.any(TcpFlags::SYN) {
            Kind::Syn
        } else if self.flags.any(TcpFlags::FIN) {
            Kind::Fin
        } else if self.payload > 0 {
            Kind::Data
        } else {
            Kind::PureAck
        }
    }

    /// How much room it takes in the sequence space.
    pub fn sequence_length(&self) -> u32 {
        let control = |flag| u32::from(self.flags.any(flag));
        self.payload + control(TcpFlags::SYN) + control(TcpFlags::FIN)
    }

    /// Who sent it and who should get it.
    pub const fn ends(&self) -> [End; 2] {
        [self.flow[self.from], self.flow[1 - self.from]]
    }

    /// How far apart in time the same frame was seen at another place; `None` for another frame.
    pub fn apart(&self, other: &Self) -> Option<i64> {
        /// The kernel stamps a frame at each interface, and between the tap and its dead ends it may have to wait for
        /// its turn. No frame is that long on its way twice.
        const MOST: i64 = 100_000_000;
        let apart = self.time.nanos_since(other.time).abs();
        (apart < MOST && *self == Self { time: self.time, ..other.clone() }).then_some(apart)
    }
}

/// The TCP segments of a capture file, in its order.
pub fn read(path: &Path) -> Vec<Segment> {
    let name = path.display();
    let file = File::open(path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut reader = Reader::new(file).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (mut batch, mut segments) = (Batch::default(), Vec::new());
    let mut progress = Progress::More;
    while progress == Progress::More {
        progress = reader.read_batch(&mut batch).unwrap_or_else(|error| panic!("{name}: {error}"));
        segments.extend(batch.iter().filter_map(|packet| Segment::of(&packet)));
    }
    segments
}
