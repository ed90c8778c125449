//! What was lost of one interface, told in its files once each.
//!
//! A loss stands before the packet that follows it (epb_dropcount), and in the totals at the end of
//! each file (interface statistics block). Totals count from the begin of their own file, so that
//! each file is complete in itself, and files that are read together add up. Packets that the
//! recorder refused are counted with those that the system dropped, as dumpcap has it.

use netsniff_pcapfile::Counters;

/// The losses of one interface, and what its current file says of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ledger {
    /// The latest totals of the capture.
    totals: Counters,
    /// The totals at the begin of the file; those of the system are ahead by what the file before
    /// told of already.
    base: Counters,
    /// Packets refused since the file began.
    refused: u64,
    /// Losses since the last packet that was written.
    pending: u64,
    /// What the packets of the file tell.
    told: u64,
    /// Packets that got another stamp: those of the capture, and those that earlier files told of.
    restamped: (u64, u64),
}

impl Ledger {
    /// The capture lost packets before the one that comes next.
    pub(super) const fn lose(&mut self, packets: u64) {
        self.pending = self.pending.saturating_add(packets);
    }

    /// A packet was refused.
    pub(super) const fn refuse(&mut self) {
        self.refused += 1;
        self.pending = self.pending.saturating_add(1);
    }

    /// Takes the totals of the capture, to tell what was lost between packets.
    pub(super) const fn update(&mut self, totals: &Counters) {
        self.totals = *totals;
    }

    /// What the next packet is to tell, if anything.
    #[inline]
    pub(super) fn pending(&self) -> Option<u64> {
        (self.pending > 0).then_some(self.pending)
    }

    /// The packet was written.
    #[cold]
    pub(super) const fn note_written(&mut self) {
        self.told = self.told.saturating_add(self.pending);
        self.pending = 0;
    }

    /// So many packets of the capture got another stamp, since theirs was wrong.
    pub(super) const fn restamp(&mut self, total: u64) {
        self.restamped.0 = total;
    }

    /// What people should know of the file that ends.
    pub(super) fn comment(&self) -> Option<String> {
        let restamped = self.restamped.0.saturating_sub(self.restamped.1);
        let refused = (self.refused > 0)
            .then(|| format!("{} packets were refused: they could not be written", self.refused));
        let restamped = (restamped > 0).then(|| {
            format!("{restamped} packets got the time of a neighbour: their stamps were wrong")
        });
        let said: Vec<_> = refused.into_iter().chain(restamped).collect();
        (!said.is_empty()).then(|| said.join("; "))
    }

    /// The totals of the file, which ends.
    pub(super) fn end_file(&mut self) -> Counters {
        let since = |total: Option<u64>, base: Option<u64>| {
            total.map(|total| total.saturating_sub(base.unwrap_or(0)))
        };
        let (totals, base) = (self.totals, self.base);
        let counters = Counters {
            received: since(totals.received, base.received),
            dropped_by_interface: since(totals.dropped_by_interface, base.dropped_by_interface),
            accepted_by_filter: since(totals.accepted_by_filter, base.accepted_by_filter),
            dropped_by_os: since(totals.dropped_by_os, base.dropped_by_os)
                .map(|dropped| dropped.saturating_add(self.refused)),
            delivered: since(totals.delivered, base.delivered),
            ..Counters::NONE
        };
        self.base = totals;
        if let Some(dropped) = counters.dropped_by_os {
            // What the totals tell beyond the packets needs no packet of the next file.
            self.pending = self.pending.saturating_sub(dropped.saturating_sub(self.told));
            // Totals are told now and then, losses at once: what packets told first is not told
            // again by the totals of the next file.
            let ahead = self.told.saturating_sub(dropped);
            self.base.dropped_by_os = totals.dropped_by_os.map(|it| it.saturating_add(ahead));
        }
        (self.refused, self.told, self.restamped.1) = (0, 0, self.restamped.0);
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dropped(total: u64) -> Counters {
        Counters { dropped_by_os: Some(total), received: Some(10 * total), ..Counters::NONE }
    }

    #[test]
    fn each_loss_is_told_once_in_whichever_file() {
        let mut ledger = Ledger::default();
        ledger.lose(3);
        assert_eq!(ledger.pending(), Some(3));
        ledger.note_written();
        assert_eq!(ledger.pending(), None);
        // The totals do not know of one of them yet.
        ledger.update(&dropped(2));
        let counters = ledger.end_file();
        assert_eq!((counters.dropped_by_os, counters.received), (Some(2), Some(20)));
        // Two more are lost behind the last packet: the totals tell.
        ledger.lose(2);
        ledger.update(&dropped(5));
        assert_eq!(ledger.end_file().dropped_by_os, Some(2));
        assert_eq!(ledger.pending(), None);
        ledger.update(&dropped(5));
        assert_eq!(ledger.end_file().dropped_by_os, Some(0));
    }

    #[test]
    fn refused_packets_are_in_the_totals_if_there_are_any() {
        let mut ledger = Ledger::default();
        ledger.refuse();
        assert!(ledger.comment().is_some_and(|said| said.starts_with("1 packets were refused")));
        assert_eq!(ledger.end_file(), Counters::NONE);
        // Without totals the packet of the next file tells.
        assert_eq!(ledger.pending(), Some(1));
        ledger.refuse();
        ledger.update(&dropped(1));
        assert_eq!(ledger.end_file().dropped_by_os, Some(2));
        assert_eq!(ledger.pending(), None);
    }
    #[test]
    fn each_file_says_of_its_own_wrong_stamps() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.comment(), None);
        ledger.restamp(7);
        assert!(ledger.comment().is_some_and(|said| said.starts_with("7 packets got")));
        ledger.end_file();
        assert_eq!(ledger.comment(), None);
        ledger.restamp(9);
        ledger.refuse();
        let said = ledger.comment().unwrap_or_default();
        assert!(said.starts_with("1 packets were refused") && said.contains("; 2 packets got"));
    }
}
