//! What lies in a block of a TPACKET_V3 ring: `struct tpacket_block_desc`, `struct tpacket3_hdr` and the
//! packets, as <linux/if_packet.h> lays them out.

use netsniff_packet::{LinkType, PacketRecord, Timestamp};

/// Length of `struct tpacket3_hdr`, behind which a `struct sockaddr_ll` of 20 bytes lies.
const HEADER: usize = 48;
const ADDRESS: usize = 20;

/// Bytes of a VLAN tag, and of the two addresses before it.
const TAG: usize = 4;
const ADDRESSES: usize = 12;

/// What the head of a block says.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockHead {
    /// `TP_STATUS_…`.
    pub(super) status: u32,
    packets: u32,
    first: u32,
}

impl BlockHead {
    pub(super) fn parse(block: &[u8]) -> Option<Self> {
        Some(Self { status: word(block, 8)?, packets: word(block, 12)?, first: word(block, 16)? })
    }

    /// Whether drops were counted when the block was closed.
    pub(super) const fn tells_of_losses(&self) -> bool {
        self.status & libc::TP_STATUS_LOSING != 0
    }
}

/// What the packets of one block amount to, besides themselves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlockSums {
    pub(super) wire_bytes: u64,
    pub(super) cut: u64,
    pub(super) retagged: u64,
    pub(super) partial_checksums: u64,
    pub(super) super_frames: u64,
    pub(super) malformed: u64,
    pub(super) inversions: u64,
    pub(super) deepest_inversion: u64,
    pub(super) wrong_stamps: u64,
}

/// What is the same for all packets of a ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) link_type: LinkType,
    /// The longest frame that one packet on the wire can be.
    pub(super) largest_frame: u32,
}

/// Lists the packets of a block, and puts VLAN tags back that the kernel keeps beside them. `latest` is the
/// latest stamp before the block, and becomes the latest in it; stamps after `limit` are wrong and become
/// `limit`.
pub(super) fn walk(
    block: &mut [u8],
    head: &BlockHead,
    shape: Shape,
    latest: &mut Timestamp,
    limit: Timestamp,
    packets: &mut Vec<PacketRecord>,
) -> BlockSums {
    let mut sums = BlockSums::default();
    packets.clear();
    packets.reserve(head.packets as usize);
    let mut at = head.first as usize;
    for number in 0..head.packets {
        let Some(header) = block.get(at..).and_then(<[u8]>::first_chunk::<HEADER>) else {
            sums.malformed += u64::from(head.packets - number);
            break;
        };
        let header = PacketHeader::parse(header);
        let Some(mut record) = header.record(at, block.len(), shape.link_type) else {
            sums.malformed += u64::from(head.packets - number);
            break;
        };
        if header.status & libc::TP_STATUS_VLAN_VALID != 0 && retag(block, at, &header, &mut record)
        {
            sums.retagged += 1;
        }
        sums.partial_checksums += u64::from(header.status & libc::TP_STATUS_CSUMNOTREADY != 0);
        if record.timestamp < *latest {
            sums.inversions += 1;
            let depth = latest.nanos_since(record.timestamp).unsigned_abs();
            sums.deepest_inversion = sums.deepest_inversion.max(depth);
        } else if record.timestamp <= limit {
            *latest = record.timestamp;
        } else {
            sums.wrong_stamps += 1;
            record.timestamp = limit;
        }
        sums.wire_bytes += u64::from(record.wire_len);
        sums.cut += u64::from(record.captured_len < record.wire_len);
        sums.super_frames += u64::from(record.wire_len > shape.largest_frame);
        packets.push(record);
        at = at.saturating_add(header.next as usize);
    }
    sums
}

/// `struct tpacket3_hdr`.
#[derive(Clone, Copy, Debug)]
struct PacketHeader {
    next: u32,
    seconds: u32,
    nanos: u32,
    captured_len: u32,
    wire_len: u32,
    status: u32,
    mac: u16,
    vlan_tci: u32,
    vlan_tpid: u16,
}

impl PacketHeader {
    #[inline]
    fn parse(header: &[u8; HEADER]) -> Self {
        let word = |at: usize| {
            u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let half = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        Self {
            next: word(0),
            seconds: word(4),
            nanos: word(8),
            captured_len: word(12),
            wire_len: word(16),
            status: word(20),
            mac: half(24),
            vlan_tci: word(32),
            vlan_tpid: half(36),
        }
    }

    /// Where the packet lies; `None` where that is not in the block.
    #[inline]
    fn record(&self, at: usize, block_len: usize, link_type: LinkType) -> Option<PacketRecord> {
        let offset = at + usize::from(self.mac);
        let end = offset.checked_add(self.captured_len as usize)?;
        (end <= block_len && usize::from(self.mac) >= HEADER).then(|| PacketRecord {
            timestamp: Timestamp::from_secs_nanos(self.seconds.into(), self.nanos.into()),
            offset: offset as u32,
            captured_len: self.captured_len,
            wire_len: self.wire_len,
            interface: 0,
            link_type,
        })
    }
}

/// Moves the Ethernet addresses four bytes to the front and puts the VLAN tag behind them. There is room
/// before the packet, where the kernel leaves 14 bytes for its alignment.
fn retag(block: &mut [u8], at: usize, header: &PacketHeader, record: &mut PacketRecord) -> bool {
    /// The protocol of a tag where the kernel does not tell.
    const DOT1Q: u16 = 0x8100;
    let offset = record.offset as usize;
    let has_room = offset >= at + HEADER + ADDRESS + TAG;
    if !has_room || (record.captured_len as usize) < ADDRESSES {
        return false;
    }
    block.copy_within(offset..offset + ADDRESSES, offset - TAG);
    let tells = header.status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let tpid = if tells { header.vlan_tpid } else { DOT1Q };
    let place = offset + ADDRESSES - TAG;
    let Some(tag) = block.get_mut(place..place + TAG) else { return false };
    tag[..2].copy_from_slice(&tpid.to_be_bytes());
    tag[2..].copy_from_slice(&(header.vlan_tci as u16).to_be_bytes());
    record.offset -= TAG as u32;
    record.captured_len += TAG as u32;
    record.wire_len += TAG as u32;
    true
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}
