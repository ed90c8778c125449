//! What the end of flows makes: the last of their findings, their rows, and room for others.
//!
//! The end of one flow passes more code than a processor's first cache holds, and the rows of `conn` and of `tcp`
//! share none of it. So flows that end together take each stage together.

use netsniff_packet::Timestamp;

use super::FlowTracker;
use crate::flow::Flow;
use crate::flow::flow_events::FlowEventKind;
use crate::flow::report::Knowledge;
use crate::flow::report::statistics::Ending;
use crate::flow::tcp::connection::verdict::NetworkLosses;
use crate::limits::Limits;
use crate::log::conn::Quality;
use crate::record::{Observer, Phase, SortKey};

/// Flows that end together: what they hold fits the second cache, and runs of so many rows are merged, not sorted anew.
pub(super) const TOGETHER: usize = 64;

/// Number behind which the records stand that the end of a flow makes. No packet makes as many.
const LAST_RECORDS: u32 = 1 << 16;

/// A flow that ends now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) place: u32,
    /// Where its last records stand.
    pub(super) key: SortKey,
    pub(super) ending: Ending,
}

impl Due {
    /// The flow at `place`, whose time is over at `deadline`.
    pub(super) fn by_timer(place: u32, flow: &Flow, deadline: Timestamp, limits: &Limits) -> Self {
        let (phase, uid) = (Phase::Timer, flow.uid());
        let key = SortKey { time: deadline, phase, ordinal: 0, uid, number: 0 };
        Self { place, key, ending: Ending::of(flow, deadline, limits) }
    }
}

impl FlowTracker {
    /// Ends the flows that are due, and empties the list.
    pub(super) fn end_due<O: Observer>(&mut self, due: &mut Vec<Due>, observer: &mut O) {
        if !due.is_empty() {
            self.end_together(due, observer);
            due.clear();
        }
    }

    /// Ends flows, each of which must stand in the table and in `due` once.
    pub(super) fn end_together<O: Observer>(&mut self, due: &[Due], observer: &mut O) {
        for due in due {
            self.end_sessions(due, observer);
        }
        self.hand_over(observer);
        let mut losses = core::mem::take(&mut self.network_losses);
        losses.extend(due.iter().map(|due| self.report_flow(due, observer)));
        for (due, lost) in due.iter().zip(losses.drain(..)) {
            self.report_tcp(due, lost.as_ref(), observer);
        }
        self.network_losses = losses;
        for due in due {
            self.forget(due);
        }
    }

    /// Ends what is said in a flow, and tells what that found.
    fn end_sessions<O: Observer>(&mut self, due: &Due, observer: &mut O) {
        let Due { place, key, .. } = due;
        self.release(*place);
        let Some(flow) = self.table.flow_mut(*place) else { return };
        self.heap_bytes = self.heap_bytes.saturating_sub(flow.heap_bytes());
        flow.unfold(&self.limits);
        self.end_talk(*place);
        self.note_beyond(*place);
        self.tell_failures(*place, key, observer);
        if self.findings.is_empty() {
            return;
        }
        let Some(flow) = self.table.flow(*place) else { return };
        // The packet that a flow ends with may have made records, too.
        let behind = SortKey { number: LAST_RECORDS, ..*key };
        let connection = flow.connection(key.uid);
        self.talking.expect(&mut self.findings, &connection, key.time, &self.limits);
        let last = flow.last;
        self.collect(&connection, last, behind, observer);
    }

    /// Tells of a flow and of what is missing of it. Returns what the network lost of each side, where all that its
    /// packets refer to is known.
    fn report_flow<O: Observer>(
        &mut self,
        due: &Due,
        observer: &mut O,
    ) -> Option<[NetworkLosses; 2]> {
        let Due { place, key, ending } = due;
        let flow = self.table.flow(*place)?;
        let verdict = flow.verdict(self.begun, &self.limits);
        let knowledge = Knowledge {
            verdict,
            losses: self.losses_until(key),
            checksums: self.checksums,
            sampling: self.sampling,
        };
        let quality = flow.quality(&knowledge);
        self.statistics.ended(flow, key.uid, *ending, quality);
        self.statistics.saved(knowledge.verdict.saved);
        let community_id = self.naming.community_id(&flow.key);
        flow.report(key.uid, community_id, &knowledge, |conn| observer.record(key, conn));
        let mut number = 0;
        flow.report_gaps(key.uid, &knowledge.verdict, |gap| {
            observer.record(&SortKey { number, ..*key }, gap);
            number += 1;
        });
        self.tell_losses(*place, key, &knowledge, observer);
        (quality == Quality::Clean).then_some(knowledge.verdict.network)
    }

    /// Tells of a connection's times, of how it was sent, and of what the network `lost` of it.
    fn report_tcp<O: Observer>(
        &mut self,
        due: &Due,
        lost: Option<&[NetworkLosses; 2]>,
        observer: &mut O,
    ) {
        let Due { place, key, .. } = due;
        let Some(flow) = self.table.flow(*place) else { return };
        flow.report_tcp(key.uid, self.gateway, lost, |tcp| {
            self.statistics.segments.row(tcp);
            observer.record(key, tcp);
        });
        if self.rtt_interval.is_some() {
            for (number, rtt) in (1..).zip(flow.open_rtt().into_iter().flatten()) {
                observer.record(&SortKey { number, ..*key }, &rtt);
            }
        }
    }

    /// Makes room for others.
    fn forget(&mut self, due: &Due) {
        self.end_series(due.place);
        let Some(flow) = self.table.flow(due.place) else { return };
        let hash = flow.key.hash(self.seed);
        self.turnover.note(&flow.key, due.key.time, FlowEventKind::End);
        self.table.remove(hash, due.place);
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use netsniff_traffic::dialogue::{Dialogue, Setup};

    use super::super::testing::Wire;
    use super::*;
    use crate::Options;
    use crate::flow::table::wheel;
    use crate::record::Record;

    /// How many rows there are of each log.
    #[derive(Default)]
    struct Tally(std::collections::BTreeMap<&'static str, usize>);

    impl Observer for Tally {
        fn record<R: Record>(&mut self, _: &SortKey, record: &R) {
            *self.0.entry(record.log().path).or_default() += 1;
        }
    }

    /// A deadline that came forward and went back again leaves two entries for one tick.
    #[test]
    fn a_flow_whose_timer_stands_twice_ends_once() {
        let mut dialogue = Dialogue::new(Setup::default());
        dialogue.connect();
        let story = dialogue.finish();
        let mut tracker = FlowTracker::new(Limits::default(), Options::default(), 1);
        let (mut wire, mut rows) = (Wire::new(), Tally::default());
        for seen in &story.seen {
            wire.frame(seen.timestamp, &seen.frame, &mut [&mut tracker], &mut rows);
        }
        let places: Vec<u32> = tracker.table.iter().map(|(place, _)| place).collect();
        let [place] = places[..] else { unreachable!("{places:?}") };
        let Some(flow) = tracker.table.flow_mut(place) else { unreachable!() };
        let deadline = wheel::tick_of(flow.deadline(&tracker.limits));
        flow.armed = tracker.wheel.arm(place, deadline);
        flow.armed = tracker.wheel.arm(place, deadline);
        tracker.advance(wire.ingress.now() + Duration::from_hours(1), &mut rows);
        assert_eq!(tracker.open_flows(), 0);
        assert_eq!((rows.0.get("conn"), rows.0.get("tcp")), (Some(&1), Some(&1)), "{:?}", rows.0);
    }
}
