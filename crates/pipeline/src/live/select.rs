//! Which of the packets of a ring are wanted, where the kernel could not tell.

use std::sync::atomic::Ordering;

use netsniff_packet::{Packet, PacketRecord};

use super::books::{Control, RingReport};
use super::reorder::PacketSlice;

/// Asked for a packet whether it is wanted.
pub type Wanted = Box<dyn FnMut(&Packet<'_>) -> bool + Send>;

/// Passes wanted packets on, up to a number of them.
pub(super) struct Select<'a> {
    wanted: Option<Wanted>,
    /// Packets after which the run ends, over all rings.
    count: Option<u64>,
    control: &'a Control,
    /// Room for the packets that a filter leaves.
    matching: Vec<PacketRecord>,
    filtered: u64,
    beyond_end: u64,
}

impl<'a> Select<'a> {
    pub(super) const fn new(
        wanted: Option<Wanted>,
        count: Option<u64>,
        control: &'a Control,
    ) -> Self {
        Self { wanted, count, control, matching: Vec::new(), filtered: 0, beyond_end: 0 }
    }

    /// The packets of a group that are wanted.
    pub(super) fn group<'p>(&'p mut self, group: PacketSlice<'p>) -> PacketSlice<'p> {
        let mut packets = group.packets;
        if let Some(wants) = &mut self.wanted {
            self.matching.clear();
            let matching = packets.iter().filter(|record| wants(&group.packet(record)));
            self.matching.extend(matching);
            self.filtered += (packets.len() - self.matching.len()) as u64;
            packets = &self.matching;
        }
        if let Some(count) = self.count {
            // Over all rings, so that it is exact.
            let before = self.control.taken.fetch_add(packets.len() as u64, Ordering::Relaxed);
            let room = count.saturating_sub(before);
            if room <= packets.len() as u64 {
                self.beyond_end += packets.len() as u64 - room;
                packets = &packets[..room as usize];
                self.control.end();
            }
        }
        PacketSlice { packets, ..group }
    }

    pub(super) const fn fill(&self, report: &mut RingReport) {
        report.filtered = self.filtered;
        report.beyond_end = self.beyond_end;
    }
}

#[cfg(test)]
mod tests {
    use netsniff_packet::{Loss, Stage, Timestamp};

    use super::super::testing::packets;
    use super::*;

    const LOSS: Loss =
        Loss { before: None, after: Timestamp::EPOCH, packets: 9, stage: Stage::System };

    fn select(control: &Control, count: Option<u64>, wanted: Option<Wanted>) -> Select<'_> {
        Select::new(wanted, count, control)
    }

    /// Passes packets on in groups and returns how many were left of each, and what was told.
    fn run(mut select: Select<'_>, lens: &[usize]) -> (Vec<usize>, RingReport) {
        let each = |&len: &usize| {
            let (data, packets) = packets(&(0..len as i64).collect::<Vec<_>>());
            let group =
                select.group(PacketSlice { data: &data, packets: &packets, loss: Some(&LOSS) });
            assert_eq!(group.loss, Some(&LOSS), "what was lost was not refused");
            group.packets.len()
        };
        let left = lens.iter().map(each).collect();
        let mut report = RingReport::default();
        select.fill(&mut report);
        (left, report)
    }

    #[test]
    fn a_filter_counts_what_it_refuses_and_keeps_losses() {
        let control = Control::new(1);
        let wanted = |packet: &Packet<'_>| packet.data[0].is_multiple_of(3);
        let (left, report) = run(select(&control, None, Some(Box::new(wanted))), &[9, 1, 2]);
        assert_eq!((left, report.filtered, report.beyond_end), (vec![3, 1, 1], 7, 0));
        assert!(!control.ends());
    }

    #[test]
    fn a_count_is_exact_over_all_rings_and_ends_the_run_with_the_last_one() {
        let control = Control::new(2);
        let (left, report) = run(select(&control, Some(10), None), &[4]);
        assert_eq!((left, report.beyond_end, control.ends()), (vec![4], 0, false));
        let (left, report) = run(select(&control, Some(10), None), &[6]);
        assert_eq!((left, report.beyond_end), (vec![6], 0));
        assert!(control.ends(), "nobody waits for an eleventh");
        let (left, report) = run(select(&control, Some(10), None), &[5, 2]);
        assert_eq!((left, report.beyond_end), (vec![0, 0], 7));

        let control = Control::new(1);
        let (left, report) = run(select(&control, Some(10), None), &[4, 8, 3]);
        assert_eq!((left, report.beyond_end, control.ends()), (vec![4, 6, 0], 5, true));
    }
}
