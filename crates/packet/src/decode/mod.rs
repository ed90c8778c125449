//! What a packet's headers say, found in one walk without allocation.
//!
//! Decoding never fails: it returns what it understood, and where and why it stopped. Offsets are
//! relative to the bytes that the walk was given.

use crate::address::Address;

mod cooked;
mod gre;
mod in_udp;
mod layer;
mod link;
mod network;
mod ports;
mod straight;
mod tag;
mod transport;
pub mod tunnel;
mod walk;
pub(crate) mod wlan;

pub use layer::{Layer, Layers, Oddities, Oddity};
pub(crate) use link::{FABRIC_PATH_LEN, Next};
pub use ports::{NoTunnelPorts, TunnelPorts};
pub(crate) use tag::len as tag_len;
pub use walk::{ethernet, ip, mpls, packet, packet_into, reassembled, supported, transport, wlan};
pub(crate) use walk::{packet_traced, traced_from};

/// What one walk found, from the first header to the transport header or to where it had to stop.
///
/// A walk ends at the first transport header or tunnel; the caller goes on inside the tunnel with
/// another walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Every layer passed, for statistics.
    pub layers: Layers,
    /// VLAN id of the outer 802.1Q or 802.1ad tag.
    pub vlan: Option<u16>,
    /// VLAN id of the second tag.
    pub inner_vlan: Option<u16>,
    /// The innermost IP header.
    pub ip: Option<Ip>,
    /// What follows the IP header.
    pub transport: Transport,
    /// What was strange on the way but did not end the walk.
    pub oddities: Oddities,
    /// Why the walk ended early.
    pub stop: Option<Stop>,
}

impl Decoded {
    /// Empties it. Only what tells that a part is absent is written, not the parts.
    #[inline]
    pub fn clear(&mut self) {
        self.layers = Layers::default();
        self.vlan = None;
        self.inner_vlan = None;
        self.ip = None;
        self.transport = Transport::None;
        self.oddities = Oddities::default();
        self.stop = None;
    }
}

/// An IP header of either version with its extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// Source address; with a home address option (RFC 6275), the home address.
    pub source: Address,
    /// Destination address; with a type 0 or type 2 routing header, the final one.
    pub destination: Address,
    /// Protocol number of the payload, after all extension headers.
    pub protocol: u8,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// Type of service or traffic class (DSCP and ECN).
    pub traffic_class: u8,
    /// The version of the header.
    pub version: IpVersion,
    /// IPv4 identification; for IPv6 of the fragment header, else 0.
    pub identification: u32,
    /// IPv6 flow label.
    pub flow_label: u32,
    /// Length of the whole IP datagram in bytes as its header says, from the first byte of the IP
    /// header. Where the header says 0 (segmentation offload, jumbograms), what the frame carried.
    /// Without the fragment header of an atomic fragment (RFC 6946).
    pub total_len: u32,
    /// Offset of the IP header.
    pub offset: u32,
    /// Offset of the payload, after all options and extension headers.
    pub payload_offset: u32,
    /// Length of the payload in bytes as the header says; more than was captured where the packet
    /// was cut.
    pub payload_len: u32,
    /// Bytes of the payload that were captured, without link-layer padding.
    pub payload_captured: u32,
    /// Set where this is a fragment (not an atomic one, RFC 6946).
    pub fragment: Option<Fragment>,
}

/// The version of an IP header. Addresses do not tell it: IPv6 headers may have IPv4-mapped ones (RFC 4291, 2.5.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4, RFC 791.
    V4 {
        /// The flag by which routers are not to fragment.
        dont_fragment: bool,
    },
    /// IPv6, RFC 8200.
    V6,
}

impl Ip {
    /// Whether the header is one of IPv4.
    #[must_use]
    #[inline]
    pub const fn is_v4(&self) -> bool {
        matches!(self.version, IpVersion::V4 { .. })
    }
}

/// Position of a fragment in its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Offset of the fragment's payload in the datagram's payload, in bytes.
    pub offset: u32,
    /// Whether more fragments follow.
    pub more: bool,
}

/// The header that follows IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Not IP, a fragment, or the walk stopped before it.
    #[default]
    None,
    /// TCP, RFC 9293.
    Tcp(Tcp),
    /// UDP, RFC 768.
    Udp(Udp),
    /// ICMP for IPv4, RFC 792, or ICMPv6, RFC 4443; [`Ip::protocol`] tells which.
    Icmp(Icmp),
    /// SCTP, RFC 9260: the common header.
    Sctp(Sctp),
    /// A protocol that is not decoded further, or a tunnel directly above IP (GRE, IP in IP).
    Other,
}

/// A TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number, whether or not the flag says that it counts.
    pub acknowledgement: u32,
    /// The flags, see [`TcpFlags`].
    pub flags: TcpFlags,
    /// The window as it stands in the header, unscaled.
    pub window: u16,
    /// The urgent pointer, whether or not the flag says that it counts: the offset from the sequence
    /// number of the byte behind urgent data (RFC 6093, 4).
    pub urgent_pointer: u16,
    /// Offset of the payload.
    pub payload_offset: u32,
    /// Length of the payload by the IP header.
    pub payload_len: u32,
    /// Bytes of the payload that were captured.
    pub payload_captured: u32,
    /// Options.
    pub options: TcpOptions,
}

/// The low nine bits of the TCP flags, RFC 9293 and RFC 3168.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFlags(pub u16);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x001);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x002);
    /// Reset the connection.
    pub const RST: Self = Self(0x004);
    /// Push.
    pub const PSH: Self = Self(0x008);
    /// The acknowledgement number counts.
    pub const ACK: Self = Self(0x010);
    /// The urgent pointer counts.
    pub const URG: Self = Self(0x020);
    /// ECN echo.
    pub const ECE: Self = Self(0x040);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x080);
    /// Accurate ECN.
    pub const AE: Self = Self(0x100);

    /// Whether any of `flags` is set.
    #[must_use]
    #[inline]
    pub const fn any(self, flags: Self) -> bool {
        self.0 & flags.0 != 0
    }

    /// Both sets together.
    #[must_use]
    #[inline]
    pub const fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }
}

/// TCP options that analysis uses.
// In this order no part that may be unset stands beside the blocks, which keeps the compiler from
// copying them together through the stack: a quarter of the time of decoding a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TcpOptions {
    /// SACK blocks, left and right edge, RFC 2018; the first may be a D-SACK, RFC 2883.
    pub sack: [(u32, u32); 4],
    /// How many of `sack` are set.
    pub sack_count: u8,
    /// SACK permitted, RFC 2018.
    pub sack_permitted: bool,
    /// Whether the segment is signed: MD5 signature (RFC 2385) or TCP-AO (RFC 5925). Nobody but the hosts can
    /// verify that.
    pub signed: bool,
    /// Whether the options were malformed; what stood before the fault is set.
    pub malformed: bool,
    /// Whether the capture has only a part of the options, or none: nothing of them is set.
    pub cut: bool,
    /// Window scale shift as sent (RFC 7323 allows at most 14).
    pub window_scale: Option<u8>,
    /// Maximum segment size, RFC 9293.
    pub mss: Option<u16>,
    /// Timestamp value and echo reply, RFC 7323.
    pub timestamps: Option<(u32, u32)>,
}

/// A UDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Length of header and payload by the length field. Where the field is 0 since the length does
    /// not fit into it (segmentation offload, jumbograms of RFC 2675), that by the IP header.
    pub len: u32,
    /// Checksum field; 0 where the sender computed none.
    pub checksum: u16,
    /// Offset of the payload.
    pub payload_offset: u32,
    /// Length of the payload by the IP header.
    pub payload_len: u32,
    /// Bytes of the payload that were captured.
    pub payload_captured: u32,
}

/// An ICMP or ICMPv6 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// Type of the message.
    pub kind: u8,
    /// Code, which tells messages of a type apart.
    pub code: u8,
    /// Identifier of echo messages, else the first half of the rest of the header.
    pub identifier: u16,
    /// Sequence number of echo messages, else the second half of the rest of the header.
    pub sequence: u16,
    /// Offset of what follows the 8-byte header.
    pub payload_offset: u32,
    /// Length of what follows by the IP header.
    pub payload_len: u32,
    /// Bytes of it that were captured.
    pub payload_captured: u32,
}

/// The common header of SCTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sctp {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Verification tag.
    pub verification_tag: u32,
    /// Offset of the chunks.
    pub payload_offset: u32,
    /// Length of the chunks by the IP header.
    pub payload_len: u32,
    /// Bytes of them that were captured.
    pub payload_captured: u32,
}

/// Why and where a walk ended before its natural end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// What is wrong, as a name for the `weird` log.
    pub weird: &'static str,
    /// The layer that could not be read.
    pub layer: Layer,
    /// Offset of the header at fault.
    pub offset: u32,
    /// Bytes that it needs from there, where a length is at fault, else 0.
    pub needed: u32,
    /// Bytes that were there.
    pub had: u32,
    /// Whether the capture's snaplen is the cause, not the sender.
    pub cut: bool,
}
