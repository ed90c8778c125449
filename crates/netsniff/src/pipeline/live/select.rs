//! Which of the packets of a ring are wanted, where the kernel could not tell.

use std::sync::atomic::Ordering;

use netsniff_packet::{Packet, PacketRecord};

use super::books::{Control, RingReport};
use super::order::Group;

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
    pub(super) fn group<'p>(&'p mut self, group: Group<'p>) -> Group<'p> {
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
                self.control.stop();
            }
        }
        Group { packets, ..group }
    }

    pub(super) const fn fill(&self, report: &mut RingReport) {
        report.filtered = self.filtered;
        report.beyond_end = self.beyond_end;
    }
}
