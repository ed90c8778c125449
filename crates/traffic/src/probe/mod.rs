//! Stamped frames of many flows: what a generator sends, and a receiver counts.

mod find;
mod make;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netsniff_packet::wire::ethernet::EthernetHeader;
use netsniff_packet::wire::ipv4::Ipv4Header;
use netsniff_packet::wire::ipv6::Ipv6Header;
use netsniff_packet::wire::tcp::TcpHeader;
use netsniff_packet::wire::udp::UdpHeader;

pub use self::find::find;
pub use self::make::{Made, Probes, Unfit};
use crate::stamp;

/// Bytes of the frame check sequence, which the size of a frame includes (RFC 2544) and no capture shows.
pub const FCS_LEN: usize = 4;

/// The least size of an Ethernet frame.
const LEAST_ETHERNET: usize = 64;

/// The port that frames are sent to: discard (RFC 863), so that a host that gets them does not answer.
pub const PORT: u16 = 9;

/// The type of frames without IP: the first one for local experiments (IEEE 802, clause 9.2.3).
pub const ETHERTYPE: u16 = 0x88b5;

/// Where the stamp of a frame of UDP over IPv4 lies.
pub const STAMP_AT: usize = Shape::Udp4.stamp_at();

/// What a frame is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// Ethernet alone.
    Raw,
    /// UDP over IPv4.
    #[default]
    Udp4,
    /// TCP over IPv4: segments of connections that never began.
    Tcp4,
    /// UDP over IPv6.
    Udp6,
    /// TCP over IPv6.
    Tcp6,
}

impl Shape {
    /// Whether it is TCP.
    #[must_use]
    pub const fn is_tcp(self) -> bool {
        matches!(self, Self::Tcp4 | Self::Tcp6)
    }

    /// Where the stamp lies.
    #[must_use]
    pub const fn stamp_at(self) -> usize {
        let ip = match self {
            Self::Raw => 0,
            Self::Udp4 | Self::Tcp4 => Ipv4Header::MIN_LEN,
            Self::Udp6 | Self::Tcp6 => Ipv6Header::LEN,
        };
        let transport = match self {
            Self::Raw => 0,
            Self::Udp4 | Self::Udp6 => UdpHeader::LEN,
            Self::Tcp4 | Self::Tcp6 => TcpHeader::MIN_LEN,
        };
        EthernetHeader::LEN + ip + transport
    }

    /// The least size of a frame that has room for its stamp, with frame check sequence.
    #[must_use]
    pub const fn least_size(self) -> usize {
        let needed = self.stamp_at() + stamp::LEN + FCS_LEN;
        if needed < LEAST_ETHERNET { LEAST_ETHERNET } else { needed }
    }
}

/// What frames have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What they are made of.
    pub shape: Shape,
    /// Ethernet addresses of sender and receiver.
    pub macs: ([u8; 6], [u8; 6]),
    /// The first addresses of sender and receiver, of the version of the shape: flows count from here.
    pub addresses: (IpAddr, IpAddr),
    /// The port that they are sent to.
    pub port: u16,
    /// Flows, from 1, that they belong to in turn.
    pub flows: u32,
    /// What the payload behind the stamp depends on.
    pub seed: u64,
}

impl Settings {
    /// One flow of a shape between networks for benchmarks (RFC 2544, RFC 5180). As on a mirror port, the frames are
    /// for nobody who is there.
    #[must_use]
    pub const fn new(shape: Shape) -> Self {
        let addresses = match shape {
            Shape::Udp6 | Shape::Tcp6 => (
                IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0)),
                IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 0x8000, 0, 0, 0, 0)),
            ),
            _ => {
                (IpAddr::V4(Ipv4Addr::new(198, 18, 0, 0)), IpAddr::V4(Ipv4Addr::new(198, 19, 0, 0)))
            }
        };
        Self {
            shape,
            macs: ([2, 0, 0, 0, 0, 0x0a], [2, 0, 0, 0, 0, 0x99]),
            addresses,
            port: PORT,
            flows: 1,
            seed: 1,
        }
    }
}

/// A frame of UDP over IPv4 of `size` bytes, frame check sequence included but not made, of the flow `flow`, with a
/// UDP checksum of 0, which means none: who puts a stamp into it need not sum it.
///
/// `None` where no frame has this size.
#[must_use]
pub fn frame(size: usize, flow: u32) -> Option<Vec<u8>> {
    let settings = Settings { flows: u32::MAX, ..Settings::new(Shape::Udp4) };
    let probes = Probes::new(&settings, &[size]).ok()?;
    let mut frame = vec![0; size - FCS_LEN];
    let stamp = stamp::Stamp { run: 0, stream: 0, sequence: flow.into(), sent: 0 };
    probes.write(&mut None, &mut frame, &stamp)?;
    frame[STAMP_AT - 2..STAMP_AT].fill(0);
    frame[STAMP_AT..STAMP_AT + stamp::LEN].fill(0);
    Some(frame)
}
