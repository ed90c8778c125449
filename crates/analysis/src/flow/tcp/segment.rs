//! One segment, as it reaches its connection.

use netsniff_packet::Timestamp;
use netsniff_packet::decode::{Ip, Tcp, TcpFlags};

/// Index of the originator in [`TcpConnection::ends`](super::TcpConnection::ends).
pub const ORIGINATOR: usize = 0;
/// Index of the responder.
pub const RESPONDER: usize = 1;

/// What a segment needs besides the connection itself.
#[derive(Debug)]
pub struct Segment<'a> {
    /// The segment's own time.
    pub time: Timestamp,
    /// Index of its sender in [`TcpConnection::ends`](super::TcpConnection::ends).
    pub from: usize,
    /// Its TCP header.
    pub tcp: &'a Tcp,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// Type of service or traffic class.
    pub traffic_class: u8,
    /// The low 16 bits of the IP identification; 0 where there is none.
    pub identification: u16,
    /// Bytes of its packet by the length field of the IP header.
    pub ip_bytes: u32,
    /// Whether its checksum is wrong, so that its receiver drops it; not where the capture may have it from before
    /// its sender's network card.
    pub is_damaged: bool,
}

impl<'a> Segment<'a> {
    /// A segment that was seen at a time, under an IP header.
    #[must_use]
    #[inline]
    pub const fn new(time: Timestamp, from: usize, ip: &Ip, tcp: &'a Tcp) -> Self {
        Self {
            time,
            from,
            tcp,
            ttl: ip.ttl,
            traffic_class: ip.traffic_class,
            identification: ip.identification as u16,
            ip_bytes: ip.total_len,
            is_damaged: false,
        }
    }

    /// Whether any of the flags is set.
    #[inline]
    pub(super) const fn has(&self, flags: TcpFlags) -> bool {
        self.tcp.flags.any(flags)
    }

    /// How far behind its first byte of data lies the one that it marks as urgent, which may come in a
    /// later segment. The urgent pointer tells the byte behind that one (RFC 6093, 4); a pointer of 0
    /// names the first byte, as Linux has it. Control segments without data mark nothing.
    #[inline]
    pub(in super::super) const fn urgent_offset(&self) -> Option<u16> {
        let control = TcpFlags::SYN.with(TcpFlags::RST);
        let is_end = self.has(TcpFlags::FIN) && self.tcp.payload_len == 0;
        if !self.has(TcpFlags::URG) || self.has(control) || is_end {
            return None;
        }
        Some(self.tcp.urgent_pointer.saturating_sub(1))
    }

    /// Whether its sender is the originator.
    #[inline]
    pub(super) const fn is_originator(&self) -> bool {
        self.from == ORIGINATOR
    }
}
