//! The packets of several rings in the order of their stamps, for whoever consumes them together.
//!
//! Each ring's packets come in order, as [`super::reorder`] puts them. A packet is passed on once every ring has
//! been seen up to its time: with one ring at once and from where it lies, with several as a copy where
//! another ring is behind. What waits is bounded: where a ring holds up more than that, it is waited for no
//! longer, and what it brings then comes behind later packets.

use std::collections::VecDeque;

use netsniff_packet::{Batch, Packet, PacketRecord, Timestamp};

use super::reorder::PacketSlice;

/// Bytes that may wait for a ring that is behind: half a second of an Ethernet at 1 Gb/s. A ring tells up to
/// when nothing came within some 150 milliseconds.
pub const WAITING_BYTES: usize = 64 << 20;

/// Batches that are kept to be used again, for each ring.
const SPARE: usize = 2;

/// Takes packets in order.
pub trait MergeSink: Send {
    /// Takes the next packet in the order of time.
    fn packet(&mut self, packet: &Packet<'_>);

    /// So many packets of an interface were lost before the next one of it.
    fn lose(&mut self, interface: u32, packets: u64);
}

/// Puts the packets of several rings in order.
#[derive(Debug)]
pub struct Merge<S> {
    sink: S,
    lanes: Vec<MergeInput>,
    most_bytes: usize,
    held_bytes: usize,
    spare: Vec<Batch>,
}

/// What is known of a ring.
#[derive(Debug)]
struct MergeInput {
    /// The number that its interface has for the sink.
    interface: u32,
    held: VecDeque<Held>,
    /// Packets of the first of these that were passed on.
    passed: usize,
    /// All its packets up to then have come; [`Timestamp::MAX`] once no more come.
    seen: Timestamp,
}

/// Copies of packets that wait.
#[derive(Debug)]
struct Held {
    batch: Batch,
    /// Packets that were lost before the first one.
    lost: u64,
    latest: Timestamp,
}

impl Held {
    fn bytes(&self) -> usize {
        self.batch.data.len() + self.batch.packets.len() * size_of::<PacketRecord>()
    }
}

/// What a ring lends, with what of it was passed on.
struct Lent<'a> {
    ring: usize,
    group: PacketSlice<'a>,
    passed: usize,
    lost: u64,
}

impl<'a> Lent<'a> {
    fn rest(&self) -> &'a [PacketRecord] {
        self.group.packets.get(self.passed..).unwrap_or_default()
    }
}

impl<S: MergeSink> Merge<S> {
    /// For rings with these interfaces; at most `most_bytes` wait.
    #[must_use]
    pub fn new(sink: S, interfaces: impl IntoIterator<Item = u32>, most_bytes: usize) -> Self {
        let lane = |interface| MergeInput {
            interface,
            held: VecDeque::new(),
            passed: 0,
            seen: Timestamp::MIN,
        };
        let lanes = interfaces.into_iter().map(lane).collect();
        Self { sink, lanes, most_bytes, held_bytes: 0, spare: Vec::new() }
    }

    /// What takes the packets.
    pub const fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// What took the packets.
    #[must_use]
    pub fn into_sink(self) -> S {
        self.sink
    }

    /// Takes what a ring lends, of which the last packet has the latest stamp.
    pub fn group(&mut self, ring: usize, group: PacketSlice<'_>) {
        let latest = group.packets.last().map(|packet| packet.timestamp);
        let lost = group.loss.map_or(0, |loss| loss.packets);
        let mut lent = Lent { ring, group, passed: 0, lost };
        self.see(ring, latest.unwrap_or(Timestamp::MIN));
        self.pass(&mut lent, self.horizon());
        self.hold(&lent);
        self.give_way();
    }

    /// Everything up to `settled` has come from a ring.
    pub fn settle(&mut self, ring: usize, settled: Timestamp) {
        self.see(ring, settled);
        self.pass(&mut self.nothing(), self.horizon());
    }

    /// Nothing more comes from a ring.
    pub fn end(&mut self, ring: usize) {
        self.settle(ring, Timestamp::MAX);
    }

    /// Up to then all packets of all rings have been passed on.
    #[must_use]
    pub fn horizon(&self) -> Timestamp {
        self.lanes.iter().map(|lane| lane.seen).min().unwrap_or(Timestamp::MAX)
    }

    /// Packets of a ring that wait.
    #[must_use]
    pub fn waiting(&self, ring: usize) -> u64 {
        let Some(lane) = self.lanes.get(ring) else { return 0 };
        let held = lane.held.iter().map(|held| held.batch.packets.len()).sum::<usize>();
        (held - lane.passed) as u64
    }

    /// Whether no packet waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.held.is_empty())
    }

    fn see(&mut self, ring: usize, time: Timestamp) {
        if let Some(lane) = self.lanes.get_mut(ring) {
            lane.seen = lane.seen.max(time);
        }
    }

    /// What no ring lends.
    fn nothing(&self) -> Lent<'static> {
        let group = PacketSlice { data: &[], packets: &[], loss: None };
        Lent { ring: self.lanes.len(), group, passed: 0, lost: 0 }
    }

    /// Passes on what waits and what is lent, up to `horizon`.
    fn pass(&mut self, lent: &mut Lent<'_>, horizon: Timestamp) {
        loop {
            // Rings are few, so that a look at all of them for each run of packets of one costs little.
            let (mut lead, mut next) = (None, None);
            for head in
                (0..self.lanes.len()).filter_map(|ring| Some((self.head(ring, lent)?, ring)))
            {
                if lead.is_none_or(|lead| head < lead) {
                    next = lead.replace(head);
                } else if next.is_none_or(|next| head < next) {
                    next = Some(head);
                }
            }
            let Some((time, ring)) = lead else { return };
            if time > horizon {
                return;
            }
            self.run(ring, lent, next.map_or(horizon, |(time, _)| time.min(horizon)));
        }
    }

    /// The stamp of a ring's next packet.
    fn head(&self, ring: usize, lent: &Lent<'_>) -> Option<Timestamp> {
        let lane = self.lanes.get(ring)?;
        let next = match lane.held.front() {
            Some(held) => held.batch.packets.get(lane.passed),
            None if ring == lent.ring => lent.rest().first(),
            None => None,
        };
        next.map(|packet| packet.timestamp)
    }

    /// Passes on the next packets of one ring, up to `limit`.
    fn run(&mut self, ring: usize, lent: &mut Lent<'_>, limit: Timestamp) {
        let Some(lane) = self.lanes.get_mut(ring) else { return };
        let interface = lane.interface;
        let Some(held) = lane.held.front_mut() else {
            report_loss(&mut self.sink, interface, &mut lent.lost);
            let rest = lent.rest();
            let ready = rest.iter().position(|packet| packet.timestamp > limit);
            let packets = rest.get(..ready.unwrap_or(rest.len())).unwrap_or_default();
            for (_, packet) in (PacketSlice { packets, ..lent.group }).iter() {
                self.sink.packet(&Packet { interface, ..packet });
            }
            lent.passed += packets.len();
            return;
        };
        report_loss(&mut self.sink, interface, &mut held.lost);
        let rest = held.batch.packets.get(lane.passed..).unwrap_or_default();
        for record in rest.iter().take_while(|packet| packet.timestamp <= limit) {
            self.sink.packet(&Packet { interface, ..held.batch.packet(record) });
            lane.passed += 1;
        }
        if lane.passed == held.batch.packets.len() {
            self.release(ring);
        }
    }

    /// Lets the first of what waits of a ring go, and what has no packets behind it.
    fn release(&mut self, ring: usize) {
        let most_spare = SPARE * self.lanes.len();
        let Some(lane) = self.lanes.get_mut(ring) else { return };
        lane.passed = 0;
        while let Some(mut first) = lane.held.pop_front() {
            self.held_bytes -= first.bytes();
            report_loss(&mut self.sink, lane.interface, &mut first.lost);
            if self.spare.len() < most_spare {
                first.batch.clear();
                self.spare.push(first.batch);
            }
            if lane.held.front().is_none_or(|next| !next.batch.packets.is_empty()) {
                return;
            }
        }
    }

    /// Copies what is left of what a ring lends.
    fn hold(&mut self, lent: &Lent<'_>) {
        let Some(lane) = self.lanes.get_mut(lent.ring) else { return };
        let mut lost = lent.lost;
        if lent.rest().is_empty() {
            if lane.held.is_empty() {
                report_loss(&mut self.sink, lane.interface, &mut lost);
            }
            if lost == 0 {
                return;
            }
        }
        let mut held =
            Held { batch: self.spare.pop().unwrap_or_default(), lost, latest: Timestamp::MIN };
        for record in lent.rest() {
            held.latest = held.latest.max(record.timestamp);
            held.batch.push(&lent.group.packet(record));
        }
        self.held_bytes += held.bytes();
        lane.held.push_back(held);
    }

    /// Waits no longer for whoever holds up too much.
    fn give_way(&mut self) {
        while self.held_bytes > self.most_bytes {
            let firsts = self.lanes.iter().filter_map(|lane| lane.held.front());
            let Some(until) = firsts.map(|held| held.latest).min() else { return };
            self.pass(&mut self.nothing(), until);
        }
    }
}

/// Tells of a loss, once.
fn report_loss(sink: &mut impl MergeSink, interface: u32, lost: &mut u64) {
    match core::mem::take(lost) {
        0 => {}
        packets => sink.lose(interface, packets),
    }
}

#[cfg(test)]
mod tests {
    use netsniff_packet::{LinkType, Loss, Stage};

    use super::*;

    /// What came, as interface and stamp; a loss as its interface and the negative number of packets.
    #[derive(Default)]
    struct Seen(Vec<(u32, i64)>);

    impl MergeSink for Seen {
        fn packet(&mut self, packet: &Packet<'_>) {
            assert_eq!(packet.data, [packet.timestamp.nanos() as u8; 8], "its own bytes");
            self.0.push((packet.interface, packet.timestamp.nanos()));
        }

        fn lose(&mut self, interface: u32, packets: u64) {
            self.0.push((interface, -(packets as i64)));
        }
    }

    fn merge(most_bytes: usize) -> Merge<Seen> {
        Merge::new(Seen::default(), [10, 11, 12], most_bytes)
    }

    /// Lends packets of 8 bytes with these stamps, behind a loss of so many.
    fn lend(merge: &mut Merge<Seen>, ring: usize, stamps: &[i64], lost: u64) {
        let mut batch = Batch::default();
        for stamp in stamps {
            batch.push(&Packet {
                timestamp: Timestamp::from_nanos(*stamp),
                data: &[*stamp as u8; 8],
                wire_len: 8,
                link_type: LinkType::ETHERNET,
                interface: 0,
            });
        }
        let after = Timestamp::EPOCH;
        let loss = Loss { before: None, after, packets: lost, stage: Stage::System };
        let loss = (lost > 0).then_some(&loss);
        merge.group(ring, PacketSlice { data: &batch.data, packets: &batch.packets, loss });
    }

    fn settle(merge: &mut Merge<Seen>, ring: usize, time: i64) {
        merge.settle(ring, Timestamp::from_nanos(time));
    }

    /// What came since the last time.
    fn came(merge: &mut Merge<Seen>) -> Vec<(u32, i64)> {
        core::mem::take(&mut merge.sink().0)
    }

    #[test]
    fn a_packet_is_passed_on_once_every_ring_has_been_seen_up_to_its_time() {
        let mut merge = merge(1 << 20);
        lend(&mut merge, 0, &[1, 4, 7], 0);
        lend(&mut merge, 1, &[2, 3, 9], 0);
        assert_eq!(came(&mut merge), [], "the third ring has told nothing");
        assert_eq!((merge.waiting(0), merge.waiting(1), merge.waiting(2)), (3, 3, 0));
        settle(&mut merge, 2, 5);
        assert_eq!(came(&mut merge), [(10, 1), (11, 2), (11, 3), (10, 4)]);
        lend(&mut merge, 2, &[6, 8], 0);
        assert_eq!(came(&mut merge), [(12, 6), (10, 7)], "the first may go on with 8");
        assert_eq!((merge.waiting(0), merge.waiting(1), merge.waiting(2)), (0, 1, 1));
        (0..3).for_each(|ring| merge.end(ring));
        assert_eq!(came(&mut merge), [(12, 8), (11, 9)]);
        assert!(merge.is_empty() && merge.held_bytes == 0);
    }

    #[test]
    fn one_ring_waits_for_nobody() {
        let mut merge = Merge::new(Seen::default(), [3], 0);
        lend(&mut merge, 0, &[5, 6, 4, 8], 2);
        assert_eq!(came(&mut merge), [(3, -2), (3, 5), (3, 6), (3, 4), (3, 8)]);
        lend(&mut merge, 0, &[], 1);
        assert_eq!(came(&mut merge), [(3, -1)]);
        assert!(merge.is_empty());
    }

    #[test]
    fn losses_stay_before_the_packets_that_followed_them() {
        let mut merge = merge(1 << 20);
        merge.end(2);
        lend(&mut merge, 0, &[1, 5], 0);
        lend(&mut merge, 0, &[], 4);
        lend(&mut merge, 0, &[6], 7);
        lend(&mut merge, 1, &[2], 3);
        assert_eq!(came(&mut merge), [(10, 1), (11, -3), (11, 2)]);
        settle(&mut merge, 1, 5);
        assert_eq!(came(&mut merge), [(10, 5), (10, -4)]);
        merge.end(1);
        assert_eq!(came(&mut merge), [(10, -7), (10, 6)]);
        merge.end(0);
        assert!(merge.is_empty());
    }

    #[test]
    fn a_ring_that_holds_up_too_much_is_waited_for_no_longer() {
        let each = 8 + size_of::<PacketRecord>();
        let mut merge = merge(4 * each);
        merge.end(2);
        lend(&mut merge, 0, &[10, 11], 0);
        lend(&mut merge, 0, &[12, 14], 0);
        assert_eq!(came(&mut merge), [], "they fit");
        lend(&mut merge, 0, &[16], 0);
        assert_eq!(came(&mut merge), [(10, 10), (10, 11)]);
        assert!(merge.held_bytes <= 4 * each);
        lend(&mut merge, 1, &[9, 13, 15], 0);
        assert_eq!(came(&mut merge), [(11, 9), (10, 12), (11, 13), (10, 14), (11, 15)]);
        (0..2).for_each(|ring| merge.end(ring));
        assert_eq!(came(&mut merge), [(10, 16)]);
    }

    #[test]
    fn packets_that_are_late_in_their_own_ring_hold_up_nothing() {
        let mut merge = merge(0);
        lend(&mut merge, 0, &[5, 9], 0);
        lend(&mut merge, 0, &[7], 0);
        assert_eq!(came(&mut merge), [(10, 5), (10, 9), (10, 7)], "nothing may wait");
        assert!(merge.is_empty());
    }
}
