//! Puts packets of one ring back into the order of their stamps, within a small window.
//!
//! Several processors that fill one ring take a place in it before they stamp the packet, so that
//! neighbours may lie tens of microseconds in the wrong order.

use std::time::Duration;

use netsniff_capture::prefetch;
use netsniff_packet::{Batch, Loss, Packet, PacketRecord, Timestamp};

/// How long a packet waits for earlier ones. Inversions of 43 microseconds were seen at the most.
pub const WINDOW: Duration = Duration::from_micros(200);

/// Bytes of packets that wait at the most. More would come of a window of hours over a file: then all that wait go on.
const MOST: usize = 256 << 20;

/// Packets whose bytes are fetched ahead.
const AHEAD: usize = 8;

/// Packets that lie in one buffer, in order.
#[derive(Clone, Copy, Debug)]
pub struct PacketSlice<'a> {
    /// Memory that holds the bytes.
    pub data: &'a [u8],
    /// Where each packet lies.
    pub packets: &'a [PacketRecord],
    /// What was lost before the first of them.
    pub loss: Option<&'a Loss>,
}

impl<'a> PacketSlice<'a> {
    /// The packet that a record of this group describes.
    #[inline]
    #[must_use]
    pub fn packet(&self, record: &PacketRecord) -> Packet<'a> {
        Packet {
            timestamp: record.timestamp,
            data: self.data.get(record.range()).unwrap_or_default(),
            wire_len: record.wire_len,
            link_type: record.link_type,
            interface: record.interface,
        }
    }

    /// The packets one after the other, with the bytes of those that follow on their way to the processor.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = (&'a PacketRecord, Packet<'a>)> {
        self.packets.iter().enumerate().map(move |(number, record)| {
            if let Some(later) = self.packets.get(number + AHEAD) {
                prefetch(self.data, later.offset as usize);
            }
            (record, self.packet(record))
        })
    }
}

/// Packets as they come out of a ring.
#[derive(Clone, Copy, Debug)]
pub struct RingPackets<'a> {
    /// The packets, and what was lost before the first of them, which may be unordered.
    pub group: PacketSlice<'a>,
    /// Whether the next portion lies in the same buffer, and this one stays there until then.
    pub goes_on: bool,
}

/// Holds the packets of the last moment until nothing earlier can come.
#[derive(Debug)]
pub struct ReorderBuffer {
    window: i64,
    /// Packets that wait where they are, since the buffer stays.
    left: Vec<PacketRecord>,
    /// Copies of the packets that wait, in order.
    held: Batch,
    /// What was lost before the first of them.
    held_loss: Option<Loss>,
    /// Bytes that may wait, and packets that went on since there were more.
    most: usize,
    released_early: u64,
    latest: Timestamp,
    sorted: Vec<PacketRecord>,
}

impl ReorderBuffer {
    /// Nothing waits. With an empty window nothing ever does.
    #[must_use]
    pub fn new(window: Duration) -> Self {
        Self::with_room(window, MOST)
    }

    /// The same with room for so many bytes of packets that wait.
    #[must_use]
    pub fn with_room(window: Duration, most: usize) -> Self {
        Self {
            window: i64::try_from(window.as_nanos()).unwrap_or(i64::MAX),
            left: Vec::new(),
            held: Batch::default(),
            held_loss: None,
            most,
            released_early: 0,
            latest: Timestamp::MIN,
            sorted: Vec::new(),
        }
    }

    /// Takes packets, and yields those before which nothing can come any more.
    pub fn push(&mut self, portion: RingPackets<'_>, mut each: impl FnMut(PacketSlice<'_>)) {
        let packets = portion.group.packets;
        let is_sorted = packets.is_sorted_by_key(|packet| packet.timestamp);
        if is_sorted && self.left.is_empty() {
            return self.push_sorted(portion, &mut each);
        }
        let mut sorted = core::mem::take(&mut self.sorted);
        sorted.clear();
        sorted.append(&mut self.left);
        let joins_on = sorted.last().zip(packets.first());
        let is_sorted =
            is_sorted && joins_on.is_none_or(|(last, first)| last.timestamp <= first.timestamp);
        sorted.extend_from_slice(packets);
        if !is_sorted {
            // Packets of one time stay as they came.
            sorted.sort_by_key(|packet| packet.timestamp);
        }
        let group = PacketSlice { packets: &sorted, ..portion.group };
        self.push_sorted(RingPackets { group, ..portion }, &mut each);
        self.sorted = sorted;
    }

    fn push_sorted(&mut self, portion: RingPackets<'_>, each: &mut impl FnMut(PacketSlice<'_>)) {
        let PacketSlice { data, packets: mut rest, mut loss } = portion.group;
        if let Some(last) = self.held.packets.last() {
            // Those that belong among the ones that wait are few.
            let before = last.timestamp;
            let overlap = rest.partition_point(|packet| packet.timestamp < before);
            if overlap > 0 {
                self.hold(data, &rest[..overlap]);
                self.held.packets.sort_by_key(|packet| packet.timestamp);
                rest = &rest[overlap..];
            }
        }
        if let Some(last) = rest.last() {
            self.latest = self.latest.max(last.timestamp);
        }
        let horizon = self.latest.offset(-self.window);
        // Where nothing of this goes out, more may come among the ones that wait.
        let ready = rest.partition_point(|packet| packet.timestamp <= horizon);
        if ready > 0
            || loss.is_some()
            || self.held.packets.last().is_some_and(|held| held.timestamp <= horizon)
        {
            self.flush(&mut *each);
        }
        if ready > 0 {
            each(PacketSlice { data, packets: &rest[..ready], loss: loss.take() });
        }
        if ready < rest.len() && portion.goes_on && loss.is_none() {
            self.left.extend_from_slice(&rest[ready..]);
        } else if ready < rest.len() {
            if self.held.packets.is_empty() {
                self.held_loss = loss.take().copied();
            }
            self.hold(data, &rest[ready..]);
        }
        if let Some(loss) = loss {
            each(PacketSlice { data: &[], packets: &[], loss: Some(loss) });
        }
        // Each has a description beside its bytes, of which a file may have none.
        let descriptions = self.held.packets.len() * size_of::<PacketRecord>();
        if self.held.data.len() + descriptions > self.most {
            self.released_early += self.held.packets.len() as u64;
            self.flush(each);
        }
    }

    /// Packets that waited for less than the window, since more bytes waited than there is room for.
    #[must_use]
    pub const fn released_early(&self) -> u64 {
        self.released_early
    }

    /// Yields all packets that wait, in the order of time.
    pub fn flush(&mut self, mut each: impl FnMut(PacketSlice<'_>)) {
        let loss = self.held_loss.take();
        if self.held.packets.is_empty() && loss.is_none() {
            return;
        }
        let held = &self.held;
        each(PacketSlice { data: &held.data, packets: &held.packets, loss: loss.as_ref() });
        self.held.clear();
    }

    /// Number of packets that wait.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.held.packets.len() + self.left.len()
    }

    fn hold(&mut self, data: &[u8], packets: &[PacketRecord]) {
        for packet in packets {
            let Some(bytes) = data.get(packet.range()) else { continue };
            // What waits is bounded far below the 4 GiB that an offset can say.
            let offset = self.held.data.len() as u32;
            self.held.data.extend_from_slice(bytes);
            self.held.packets.push(PacketRecord { offset, ..*packet });
        }
    }
}

#[cfg(test)]
mod statistics;

#[cfg(test)]
mod tests {
    use netsniff_packet::Stage;

    use super::super::testing::packets;
    use super::*;

    /// Pushes groups of stamps and returns what came out, a loss as -1.
    fn run(window: u64, groups: &[(&[i64], bool)]) -> (Vec<i64>, Vec<usize>) {
        let mut order = ReorderBuffer::new(Duration::from_micros(window));
        let (mut out, mut lens) = (Vec::new(), Vec::new());
        let loss = Loss { before: None, after: Timestamp::EPOCH, packets: 1, stage: Stage::System };
        let mut take = |group: PacketSlice<'_>| {
            out.extend(group.loss.map(|_| -1));
            for packet in group.packets {
                let micros = packet.timestamp.nanos() / 1000;
                assert_eq!(group.data[packet.range()], [micros as u8], "its own bytes");
                out.push(micros);
            }
            lens.push(group.packets.len());
        };
        for (micros, is_lossy) in groups {
            let (data, records) = packets(micros);
            let group =
                PacketSlice { data: &data, packets: &records, loss: is_lossy.then_some(&loss) };
            order.push(RingPackets { group, goes_on: false }, &mut take);
        }
        order.flush(&mut take);
        (out, lens)
    }

    #[test]
    fn ordered_packets_pass_and_the_last_ones_wait() {
        let (out, lens) = run(5, &[(&[1, 2, 3, 20, 21], false), (&[22, 40], false)]);
        assert_eq!(out, [1, 2, 3, 20, 21, 22, 40]);
        assert_eq!(lens, [3, 2, 1, 1]);
    }

    #[test]
    fn inversions_within_and_between_groups_are_mended() {
        let (out, _) = run(10, &[(&[1, 3, 2, 20, 18], false), (&[19, 17, 21, 50], false)]);
        assert_eq!(out, [1, 2, 3, 17, 18, 19, 20, 21, 50]);
        let (out, _) = run(10, &[(&[5], false), (&[4], false), (&[6], false), (&[3], false)]);
        assert_eq!(out, [3, 4, 5, 6]);
    }

    #[test]
    fn what_is_later_than_the_window_comes_as_it_is() {
        let (out, _) = run(5, &[(&[10, 30], false), (&[12, 31], false)]);
        assert_eq!(out, [10, 12, 30, 31], "30 still waits when 12 comes");
        let (out, _) = run(5, &[(&[10, 30, 40], false), (&[12, 41], false)]);
        assert_eq!(out, [10, 30, 12, 40, 41], "30 was gone");
    }

    #[test]
    fn losses_stand_between_what_was_before_and_after() {
        let (out, _) = run(5, &[(&[1, 2], false), (&[20, 21], true), (&[40], true)]);
        assert_eq!(out, [1, 2, -1, 20, 21, -1, 40]);
    }

    #[test]
    fn portions_of_one_buffer_wait_where_they_are() {
        let (data, records) = packets(&[1, 2, 20, 18, 19, 21, 17, 40, 41]);
        let mut order = ReorderBuffer::new(Duration::from_micros(5));
        let mut out = Vec::new();
        let mut take = |group: PacketSlice<'_>| {
            for packet in group.packets {
                let micros = packet.timestamp.nanos() / 1000;
                assert_eq!(group.data[packet.range()], [micros as u8], "its own bytes");
                out.push(micros);
            }
        };
        for (number, packets) in records.chunks(3).enumerate() {
            let group = PacketSlice { data: &data, packets, loss: None };
            order.push(RingPackets { group, goes_on: number < 2 }, &mut take);
            let copied = order.held.packets.len();
            assert_eq!(
                copied,
                if number < 2 { 0 } else { 2 },
                "only what the buffer is taken from"
            );
        }
        order.flush(&mut take);
        assert_eq!(out, [1, 2, 17, 18, 19, 20, 21, 40, 41]);
        assert_eq!(order.waiting(), 0);
    }

    #[test]
    fn what_waits_is_bounded_in_bytes() {
        let mut order =
            ReorderBuffer::with_room(Duration::from_secs(1), 4 * (1 + size_of::<PacketRecord>()));
        let mut out = Vec::new();
        for micros in [[3, 1], [5, 2], [9, 8], [7, 6]] {
            let (data, records) = packets(&micros);
            let group = PacketSlice { data: &data, packets: &records, loss: None };
            order.push(RingPackets { group, goes_on: false }, |group| {
                out.extend(group.packets.iter().map(|it| it.timestamp.nanos() / 1000));
            });
            assert!(order.waiting() <= 4);
        }
        assert_eq!((out, order.released_early()), (vec![1, 2, 3, 5, 8, 9], 6));
    }

    #[test]
    fn without_a_window_nothing_waits() {
        let (out, lens) = run(0, &[(&[1, 2], false), (&[3, 2], false)]);
        assert_eq!((out, lens), (vec![1, 2, 2, 3], vec![2, 2]));
    }
}
