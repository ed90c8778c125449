//! From what the kernel says of each packet to the list that is lent, the same for every kind of ring.

use std::time::Duration;

use netsniff_packet::{LinkType, PacketRecord, Timestamp};

use crate::counters::RingCounters;

/// How far a stamp may lie outside of the time in which its packet came: packets wait in the interface and in
/// queues of the kernel for milliseconds, and a clock that is off by more is not the system's.
pub(super) const STAMP_MARGIN: Duration = Duration::from_secs(1);

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
pub(super) struct PacketListBuilder<'a> {
    shape: Shape,
    /// The latest stamp so far that was right.
    latest: &'a mut Timestamp,
    /// No packet of the group came before.
    since: Timestamp,
    /// Stamps before this are wrong.
    earliest: Timestamp,
    /// Stamps after this are wrong.
    limit: Timestamp,
    packets: &'a mut Vec<PacketRecord>,
    sums: Sums,
}

impl<'a> PacketListBuilder<'a> {
    pub(super) fn new(
        shape: Shape,
        latest: &'a mut Timestamp,
        limit: Timestamp,
        packets: &'a mut Vec<PacketRecord>,
    ) -> Self {
        packets.clear();
        let (since, sums) = (Timestamp::MIN, Sums::default());
        Self { shape, latest, since, earliest: since, limit, packets, sums }
    }

    /// Takes it as known that no packet of the group came before `time`. Stamps that are earlier by more
    /// than [`STAMP_MARGIN`] are wrong. Of several such times the latest counts.
    pub(super) fn began(&mut self, time: Timestamp) {
        self.since = self.since.max(time);
        self.earliest = self.since - STAMP_MARGIN;
    }

    /// Counts packets whose description makes no sense.
    pub(super) const fn malformed(&mut self, packets: u64) {
        self.sums.malformed += packets;
    }

    /// Lists a packet, and puts the VLAN tag back that the kernel keeps beside it. Returns `false`, and
    /// lists nothing, where it does not lie in `data`.
    // By itself the compiler passes the description through memory, packet by packet.
    #[inline(always)]
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
        const NOTABLE: u32 = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_CSUMNOTREADY;
        if description.status & NOTABLE != 0 {
            self.note_status(data, description, &mut record);
        }
        if record.timestamp < *self.latest
            || record.timestamp > self.limit
            || record.timestamp < self.earliest
        {
            self.note_stamp(&mut record);
        } else {
            *self.latest = record.timestamp;
        }
        let sums = &mut self.sums;
        sums.wire_bytes += u64::from(record.wire_len);
        sums.cut += u64::from(record.captured_len < record.wire_len);
        sums.super_frames += u64::from(record.wire_len > self.shape.largest_frame);
        self.packets.push(record);
        true
    }

    fn note_status(
        &mut self,
        data: &mut [u8],
        description: &Description,
        record: &mut PacketRecord,
    ) {
        if description.status & libc::TP_STATUS_VLAN_VALID != 0 && retag(data, description, record)
        {
            self.sums.retagged += 1;
        }
        let is_partial = description.status & libc::TP_STATUS_CSUMNOTREADY != 0;
        self.sums.partial_checksums += u64::from(is_partial);
    }

    /// Counts a stamp that is wrong, which gets another one, or before the latest one.
    #[cold]
    fn note_stamp(&mut self, record: &mut PacketRecord) {
        if record.timestamp > self.limit || record.timestamp < self.earliest {
            self.sums.wrong_stamps += 1;
            // The earliest time at which it can have come behind its neighbours: whatever is later would make
            // those late that follow with a right stamp.
            record.timestamp = self.since.max(*self.latest).min(self.limit);
        } else {
            self.sums.inversions += 1;
            let depth = self.latest.nanos_since(record.timestamp).unsigned_abs();
            self.sums.deepest_inversion = self.sums.deepest_inversion.max(depth);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000_000;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_secs_nanos(NOW + seconds, 0)
    }

    /// Lists packets with these stamps, in seconds before and after now, of which none came more than ten
    /// seconds ago, behind one of `latest`, and returns the stamps that they get, with what was counted.
    fn list(mut latest: Timestamp, stamps: &[i64]) -> (Vec<i64>, RingCounters) {
        let mut packets = Vec::new();
        let shape = Shape { link_type: LinkType::ETHERNET, largest_frame: 1518 };
        let mut listing =
            PacketListBuilder::new(shape, &mut latest, at(0) + STAMP_MARGIN, &mut packets);
        listing.began(at(-10));
        listing.began(at(-20));
        for stamp in stamps {
            let description = Description {
                timestamp: at(*stamp),
                offset: 0,
                free_from: 0,
                captured_len: 60,
                wire_len: 60,
                status: 0,
                vlan_tci: 0,
                vlan_tpid: 0,
            };
            assert!(listing.push(&mut [0; 60], &description));
        }
        let mut counters = RingCounters::default();
        listing.add_to(&mut counters);
        let given = packets.iter().map(|it| it.timestamp.nanos() / 1_000_000_000 - NOW);
        (given.collect(), counters)
    }

    #[test]
    fn stamps_outside_of_the_time_of_the_group_become_those_of_neighbours() {
        let (given, counters) = list(Timestamp::MIN, &[-8, 3600, -7, -12, -5, -9, 0]);
        assert_eq!(given, [-8, -8, -7, -7, -5, -9, 0]);
        assert_eq!((counters.wrong_stamps, counters.inversions), (2, 1));
        assert_eq!(counters.deepest_inversion, 4_000_000_000, "that of the right one alone");
    }

    #[test]
    fn a_second_is_no_error_in_either_direction() {
        let (given, counters) = list(Timestamp::MIN, &[-11, 1]);
        assert_eq!((given, counters.wrong_stamps), (vec![-11, 1], 0));
    }

    /// The interface's clock was never set: times are those in which the packets can have come.
    #[test]
    fn a_clock_that_is_off_as_a_whole_gives_times_in_order() {
        let (given, counters) = list(Timestamp::MIN, &[-NOW, -NOW + 1, -NOW + 2]);
        assert_eq!((given, counters.wrong_stamps), (vec![-10, -10, -10], 3));
        let (given, counters) = list(at(-4), &[37, -3, 38]);
        assert_eq!((given, counters.wrong_stamps), (vec![-4, -3, -3], 2), "no measure for others");
        assert_eq!(counters.inversions, 0);
    }
}
