//! Classic pcap: a 24-byte file header, then records of a 16-byte header and the packet.
//!
//! Described in draft-ietf-opsawg-pcap; older versions of the format as libpcap reads them.

use netsniff_packet::{LinkType, PacketRecord, Timestamp};

use crate::error::DamageKind;
use crate::interface::{Interface, Resolution};
use crate::scan::{Scanned, Sink};

/// Length in bytes of the file header.
pub(crate) const FILE_HEADER_LEN: usize = 24;

/// The captured length that no packet exceeds, with the exceptions of [`captured_limit`].
const MAX_CAPTURED: u32 = 262_144;
/// The captured length that no packet of a message bus or USB exceeds.
const MAX_CAPTURED_BUS: u32 = 128 << 20;

/// Which of the variants of classic pcap a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Numbers are stored with their most significant byte first.
    pub big_endian: bool,
    /// Time stamps count nanoseconds, not microseconds.
    pub nanoseconds: bool,
    /// Record headers have 24 bytes (the "modified" format of old Linux distributions).
    pub modified: bool,
}

impl Variant {
    /// Tells the variant by the first four bytes of a file.
    pub(crate) fn of(magic: [u8; 4]) -> Option<Self> {
        let variant =
            |big_endian, nanoseconds, modified| Some(Self { big_endian, nanoseconds, modified });
        match magic {
            [0xa1, 0xb2, 0xc3, 0xd4] => variant(true, false, false),
            [0xd4, 0xc3, 0xb2, 0xa1] => variant(false, false, false),
            [0xa1, 0xb2, 0x3c, 0x4d] => variant(true, true, false),
            [0x4d, 0x3c, 0xb2, 0xa1] => variant(false, true, false),
            [0xa1, 0xb2, 0xcd, 0x34] => variant(true, false, true),
            [0x34, 0xcd, 0xb2, 0xa1] => variant(false, false, true),
            _ => None,
        }
    }
}

/// In which order the two lengths of a record stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LengthOrder {
    /// Captured, wire: as the format says.
    Usual,
    /// Wire, captured: files before version 2.3.
    Swapped,
    /// Either: the smaller is the captured length. Version 2.3 and DG/UX's 543.
    Unsure,
}

/// Finds the records of a classic pcap file.
#[derive(Debug)]
pub(crate) struct Classic {
    pub(crate) variant: Variant,
    pub(crate) interface: [Interface; 1],
    length_order: LengthOrder,
    limit: u32,
}

impl Classic {
    /// Reads the file header.
    pub(crate) fn new(variant: Variant, header: &[u8; FILE_HEADER_LEN]) -> Self {
        let short = |at: usize| {
            let bytes = [header[at], header[at + 1]];
            if variant.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
        };
        let long = |at: usize| {
            let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            if variant.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let length_order = match (short(4), short(6)) {
            (2, 0..=2) => LengthOrder::Swapped,
            (2, 3) | (543, _) => LengthOrder::Unsure,
            _ => LengthOrder::Usual,
        };
        let network = long(20);
        let mut interface = Interface::new(link_type(network as u16), long(16));
        if network & 0x0400_0000 != 0 {
            // The length of the frame check sequence counts in units of 16 bits.
            interface.fcs_len = Some((network >> 28) as u8 * 2);
        }
        if variant.nanoseconds {
            interface.resolution = Resolution::NANOSECONDS;
        }
        let limit = captured_limit(interface.link_type);
        Self { variant, interface: [interface], length_order, limit }
    }

    /// Finds the whole records in `data`.
    pub(crate) fn scan(&self, data: &[u8], sink: &mut Sink<'_>) -> Scanned {
        match (self.variant.big_endian, self.variant.modified) {
            (false, false) => self.scan_as::<false, 16>(data, sink),
            (true, false) => self.scan_as::<true, 16>(data, sink),
            (false, true) => self.scan_as::<false, 24>(data, sink),
            (true, true) => self.scan_as::<true, 24>(data, sink),
        }
    }

    #[inline]
    fn scan_as<const BIG_ENDIAN: bool, const HEADER_LEN: usize>(
        &self,
        data: &[u8],
        sink: &mut Sink<'_>,
    ) -> Scanned {
        let link_type = self.interface[0].link_type;
        let per_tick = if self.variant.nanoseconds { 1 } else { 1000 };
        // Lengths in another order than usual take the way of the odd records.
        let usual_limit =
            if self.length_order == LengthOrder::Swapped { None } else { Some(self.limit) };
        let mut rest = data;
        let mut needed = HEADER_LEN;
        while let Some((header, body)) = rest.split_first_chunk::<HEADER_LEN>() {
            let Some(numbers) = header.first_chunk() else { break };
            let [seconds, fraction, mut captured_len, mut wire_len] = words::<BIG_ENDIAN>(numbers);
            let at = data.len() - rest.len();
            if usual_limit.is_none_or(|limit| captured_len > wire_len.min(limit)) {
                match self.odd_lengths(captured_len, wire_len, at, sink) {
                    Some(lengths) => (captured_len, wire_len) = lengths,
                    None => return Scanned::stop(at),
                }
            }
            let Some((_, next)) = body.split_at_checked(captured_len as usize) else {
                needed = HEADER_LEN + captured_len as usize;
                break;
            };
            if captured_len > wire_len {
                let kind =
                    DamageKind::CapturedExceedsWire { captured: captured_len, wire: wire_len };
                sink.damage_at(at, 0, kind);
                wire_len = captured_len;
            }
            let nanos = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * per_tick;
            sink.packets.push(PacketRecord {
                timestamp: Timestamp::from_nanos(nanos as i64),
                offset: (at + HEADER_LEN) as u32,
                captured_len,
                wire_len,
                interface: 0,
                link_type,
            });
            rest = next;
        }
        Scanned::more(data.len() - rest.len(), needed)
    }

    /// The captured length and the length on the wire of a record whose lengths do not stand as
    /// usual, or `None` where the record cannot be used.
    #[cold]
    fn odd_lengths(
        &self,
        first: u32,
        second: u32,
        at: usize,
        sink: &mut Sink<'_>,
    ) -> Option<(u32, u32)> {
        let (captured, wire) = match self.length_order {
            LengthOrder::Usual => (first, second),
            LengthOrder::Swapped => (second, first),
            LengthOrder::Unsure => (first.min(second), first.max(second)),
        };
        if captured > self.limit {
            sink.damage_at(at, 0, DamageKind::CapturedLength { captured, limit: self.limit });
            return None;
        }
        Some((captured, wire))
    }
}

/// The first four numbers of a record header: seconds, fraction, captured length, length on the
/// wire.
#[inline(always)]
fn words<const BIG_ENDIAN: bool>(header: &[u8; 16]) -> [u32; 4] {
    let [a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3] = *header;
    let word = |bytes| {
        if BIG_ENDIAN { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    };
    [word([a0, a1, a2, a3]), word([b0, b1, b2, b3]), word([c0, c1, c2, c3]), word([d0, d1, d2, d3])]
}

/// The LINKTYPE of a number in a file. Some BSDs wrote their own number of raw IP.
pub(crate) const fn link_type(number: u16) -> LinkType {
    match number {
        12 | 14 => LinkType::RAW,
        _ => LinkType(number),
    }
}

/// The most bytes that a packet of `link_type` can have, as libpcap and Wireshark have it.
pub(crate) const fn captured_limit(link_type: LinkType) -> u32 {
    match link_type.0 {
        // USB_LINUX, USB_LINUX_MMAPPED, DBUS, USBPCAP.
        189 | 220 | 231 | 249 => MAX_CAPTURED_BUS,
        _ => MAX_CAPTURED,
    }
}
