//! What a pcapng file says was lost, told once each and at its place.
//!
//! Two counters may tell of the same packets: those of packets' blocks (epb_dropcount), which name
//! the place, and the totals of interface statistics blocks.

use netsniff_packet::{Loss, Stage, Timestamp};

use crate::interface::Counters;

/// What is known of one interface's losses so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    /// Packets of the interface.
    pub(super) packets: u64,
    /// Time of the last one.
    pub(super) latest: Option<Timestamp>,
    /// The totals of the last statistics block: by the interface, by the system; and its time.
    totals: [u64; 2],
    totalled: Option<Timestamp>,
    /// What packets' blocks have told since.
    told_since: u64,
    /// What the last statistics block told and no packet's block did, and the number of packets
    /// before it. The next packet alone may tell of it again.
    ahead: (u64, u64),
}

impl Losses {
    pub(super) const NONE: Self = Self {
        packets: 0,
        latest: None,
        totals: [0; 2],
        totalled: None,
        told_since: 0,
        ahead: (0, 0),
    };

    /// A packet's block tells that so many packets were lost between the packet before, of the same
    /// interface, and this one. To be asked before the packet is counted.
    #[cold]
    pub(super) fn before_packet(&mut self, drops: u64, time: Timestamp) -> Option<Loss> {
        let (ahead, packets) = self.ahead;
        let known = if packets == self.packets { ahead } else { 0 };
        let new = drops.saturating_sub(known);
        self.told_since = self.told_since.saturating_add(new);
        (new > 0).then_some(Loss {
            before: self.latest,
            after: time,
            packets: new,
            stage: Stage::Unknown,
        })
    }

    /// A statistics block tells totals. What the packets' blocks have told already is left out; the
    /// system's losses first, since it is the system that counts losses between packets.
    pub(super) fn at_statistics(
        &mut self,
        counters: &Counters,
        time: Timestamp,
    ) -> impl Iterator<Item = Loss> + use<> {
        let totals = [counters.dropped_by_interface, counters.dropped_by_os];
        let mut grown = [0; 2];
        for ((grown, total), last) in grown.iter_mut().zip(totals).zip(&mut self.totals) {
            if let Some(total) = total {
                *grown = total.saturating_sub(*last);
                *last = total;
            }
        }
        let [by_interface, by_system] = grown;
        let rest = self.told_since.saturating_sub(by_system);
        let by_system = by_system.saturating_sub(self.told_since);
        let by_interface = by_interface.saturating_sub(rest);
        let before = self.totalled;
        if totals.iter().any(Option::is_some) {
            self.totalled = Some(time);
            self.told_since = 0;
            self.ahead = (by_interface.saturating_add(by_system), self.packets);
        }
        [(by_interface, Stage::Interface), (by_system, Stage::System)]
            .into_iter()
            .filter(|(packets, _)| *packets > 0)
            .map(move |(packets, stage)| Loss { before, after: time, packets, stage })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanos: i64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    fn totals(by_interface: u64, by_system: Option<u64>) -> Counters {
        Counters {
            dropped_by_interface: Some(by_interface),
            dropped_by_os: by_system,
            ..Counters::NONE
        }
    }

    #[test]
    fn totals_that_grow_are_told_by_stage() {
        let mut losses = Losses::NONE;
        let told: Vec<_> = losses.at_statistics(&totals(2, Some(3)), at(5)).collect();
        let loss = |before, after, packets, stage| Loss { before, after, packets, stage };
        let expected =
            [loss(None, at(5), 2, Stage::Interface), loss(None, at(5), 3, Stage::System)];
        assert_eq!(told, expected);
        assert_eq!(losses.at_statistics(&totals(2, Some(3)), at(6)).count(), 0);
        // A total that is not told has not changed, and one that shrinks begins anew.
        let told: Vec<_> = losses.at_statistics(&totals(7, None), at(8)).collect();
        assert_eq!(told, [loss(Some(at(6)), at(8), 5, Stage::Interface)]);
        assert_eq!(losses.at_statistics(&totals(1, Some(3)), at(9)).count(), 0);
        assert_eq!(losses.at_statistics(&totals(4, Some(3)), at(9)).count(), 1);
        assert_eq!(losses.at_statistics(&Counters::NONE, at(10)).count(), 0);
    }

    #[test]
    fn the_same_loss_is_told_once_whoever_tells_first() {
        let mut losses = Losses::NONE;
        losses.latest = Some(at(1));
        let first = losses.before_packet(4, at(2)).unwrap();
        assert_eq!((first.before, first.after, first.packets), (Some(at(1)), at(2), 4));
        losses.packets += 1;
        // Three of the seven are new.
        let told: Vec<_> = losses.at_statistics(&totals(1, Some(6)), at(3)).collect();
        let packets: Vec<_> = told.iter().map(|loss| (loss.packets, loss.stage)).collect();
        assert_eq!(packets, [(1, Stage::Interface), (2, Stage::System)]);
        // The next packet tells of those three, and of two more.
        assert_eq!(losses.before_packet(5, at(4)).map(|loss| loss.packets), Some(2));
        losses.packets += 1;
        assert_eq!(losses.before_packet(2, at(5)).map(|loss| loss.packets), Some(2));
        losses.packets += 1;
        assert_eq!(losses.at_statistics(&totals(1, Some(10)), at(6)).count(), 0);
        assert_eq!(losses.before_packet(0, at(7)), None);
    }
}
