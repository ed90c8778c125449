//! From what the kernel says of each packet to the list that is lent, the same for every kind of ring.

use netsniff_packet::{LinkType, PacketRecord, Timestamp};

use crate::counters::RingCounters;

/// Bytes of a VLAN tag, and of the two addresses before it.
pub(super) const TAG: usize = 4;
const ADDRESSES: usize = 12;

/// What is the same for all packets of a ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) link_type: LinkType,
    /// The longest frame that one packet on the wire can be.
    pub(super) largest_frame: u32,
}

/// What the kernel says of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Description {
    pub(super) timestamp: Timestamp,
    /// Where it lies, and where the free bytes before it begin.
    pub(super) offset: usize,
    pub(super) free_from: usize,
    pub(super) captured_len: u32,
    pub(super) wire_len: u32,
    /// `TP_STATUS_…`.
    pub(super) status: u32,
    /// The VLAN tag that was taken out, where the status says so.
    pub(super) vlan_tci: u16,
    pub(super) vlan_tpid: u16,
}

/// What the packets of one group amount to, besides themselves.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    wire_bytes: u64,
    cut: u64,
    retagged: u64,
    partial_checksums: u64,
    super_frames: u64,
    malformed: u64,
    inversions: u64,
    deepest_inversion: u64,
    wrong_stamps: u64,
}

/// A group of packets on its way into the list.
#[derive(Debug)]
pub(super) struct Listing<'a> {
    shape: Shape,
    /// The latest stamp so far.
    latest: &'a mut Timestamp,
    /// Stamps after this are wrong, and become it.
    limit: Timestamp,
    packets: &'a mut Vec<PacketRecord>,
    sums: Sums,
}

impl<'a> Listing<'a> {
    /// An empty list.
    pub(super) fn new(
        shape: Shape,
        latest: &'a mut Timestamp,
        limit: Timestamp,
        packets: &'a mut Vec<PacketRecord>,
    ) -> Self {
        packets.clear();
        Self { shape, latest, limit, packets, sums: Sums::default() }
    }

    /// Makes room for so many packets.
    pub(super) fn expect(&mut self, packets: usize) {
        self.packets.reserve(packets);
    }

    /// Counts packets whose description makes no sense.
    pub(super) const fn malformed(&mut self, packets: u64) {
        self.sums.malformed += packets;
    }

    /// Lists a packet, and puts the VLAN tag back that the kernel keeps beside it. Returns `false`, and
    /// lists nothing, where it does not lie in `data`.
    #[inline]
    pub(super) fn push(&mut self, data: &mut [u8], description: &Description) -> bool {
        let end = description.offset.checked_add(description.captured_len as usize);
        let (Some(end), Ok(offset)) = (end, u32::try_from(description.offset)) else {
            return false;
        };
        if end > data.len() || description.offset < description.free_from {
            return false;
        }
        let mut record = PacketRecord {
            timestamp: description.timestamp,
            offset,
            captured_len: description.captured_len,
            wire_len: description.wire_len,
            interface: 0,
            link_type: self.shape.link_type,
        };
        let sums = &mut self.sums;
        if description.status & libc::TP_STATUS_VLAN_VALID != 0
            && retag(data, description, &mut record)
        {
            sums.retagged += 1;
        }
        sums.partial_checksums += u64::from(description.status & libc::TP_STATUS_CSUMNOTREADY != 0);
        if record.timestamp < *self.latest {
            sums.inversions += 1;
            let depth = self.latest.nanos_since(record.timestamp).unsigned_abs();
            sums.deepest_inversion = sums.deepest_inversion.max(depth);
        } else if record.timestamp <= self.limit {
            *self.latest = record.timestamp;
        } else {
            sums.wrong_stamps += 1;
            record.timestamp = self.limit;
        }
        sums.wire_bytes += u64::from(record.wire_len);
        sums.cut += u64::from(record.captured_len < record.wire_len);
        sums.super_frames += u64::from(record.wire_len > self.shape.largest_frame);
        self.packets.push(record);
        true
    }

    /// Adds the group to the counters of its ring.
    pub(super) fn add_to(self, counters: &mut RingCounters) {
        // Named one by one, so that a sum cannot be forgotten.
        let Sums {
            wire_bytes,
            cut,
            retagged,
            partial_checksums,
            super_frames,
            malformed,
            inversions,
            deepest_inversion,
            wrong_stamps,
        } = self.sums;
        counters.delivered += self.packets.len() as u64;
        counters.delivered_bytes += wire_bytes;
        counters.malformed += malformed;
        counters.cut += cut;
        counters.retagged += retagged;
        counters.partial_checksums += partial_checksums;
        counters.super_frames += super_frames;
        counters.inversions += inversions;
        counters.deepest_inversion = counters.deepest_inversion.max(deepest_inversion);
        counters.wrong_stamps += wrong_stamps;
        counters.waiting.groups += 1;
    }
}

/// Moves the Ethernet addresses four bytes to the front and puts the VLAN tag behind them.
fn retag(data: &mut [u8], description: &Description, record: &mut PacketRecord) -> bool {
    /// The protocol of a tag where the kernel does not tell.
    const DOT1Q: u16 = 0x8100;
    let offset = description.offset;
    let has_room = offset - description.free_from >= TAG;
    if !has_room || (record.captured_len as usize) < ADDRESSES {
        return false;
    }
    data.copy_within(offset..offset + ADDRESSES, offset - TAG);
    let tells = description.status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let tpid = if tells { description.vlan_tpid } else { DOT1Q };
    let place = offset + ADDRESSES - TAG;
    let Some(tag) = data.get_mut(place..place + TAG) else { return false };
    tag[..2].copy_from_slice(&tpid.to_be_bytes());
    tag[2..].copy_from_slice(&description.vlan_tci.to_be_bytes());
    record.offset -= TAG as u32;
    record.captured_len += TAG as u32;
    record.wire_len = record.wire_len.saturating_add(TAG as u32);
    true
}
