//! What flows show interval by interval, for the log `series`.

use super::{FlowTracker, Lookup};
use crate::depth::Depth;
use crate::flow::report::Knowledge;
use crate::flow::tcp::metrics::counts::MetricsTally;
use crate::flow::tcp::segment::ORIGINATOR;
use crate::flow::{Flow, SentTotals, TransportState};
use crate::key::Side;
use crate::log::gaps::Cause;
use crate::record::{Connection, Observer, SortKey};
use crate::series::IntervalEnd;
use crate::series::figures::LostBytes;
use crate::series::flows::{FlowNames, LateFigure, Step};

/// What of a flow is counted by intervals.
#[derive(Clone, Copy)]
struct FlowTally {
    sent: [SentTotals; 2],
    metrics: MetricsTally,
}

impl FlowTally {
    /// What was added to `before` by a datagram of `side`.
    const fn since(&self, before: &Self, side: Side) -> Step {
        let (sent, sent_before) = (self.sent[side as usize], before.sent[side as usize]);
        let (metrics, metrics_before) = (self.metrics, before.metrics);
        Step {
            packets: sent.packets.saturating_sub(sent_before.packets),
            ip_bytes: sent.ip_bytes.saturating_sub(sent_before.ip_bytes),
            retransmitted: metrics.retransmitted as i64 - metrics_before.retransmitted as i64,
            samples: metrics.samples.saturating_sub(metrics_before.samples),
            nanos: metrics.nanos.saturating_sub(metrics_before.nanos),
        }
    }
}

impl FlowTracker {
    /// Takes a datagram as others, and counts what that changes.
    pub(super) fn take_counted(
        &mut self,
        lookup: &Lookup<'_>,
        bytes: &[u8],
        place: u32,
        depth: Depth,
    ) -> bool {
        let before = self.table.flow(place).map(Flow::tally);
        let is_hastened =
            self.passes_checksums(lookup, bytes, place, depth) && self.update(lookup, bytes, place);
        if let Some(series) = &mut self.series
            && let (Some(before), Some(flow)) = (before, self.table.flow(place))
        {
            let (time, side) = (lookup.unit.time, lookup.side);
            series.count(place, time, side, &flow.tally().since(&before, side));
            self.has_grown = true;
        }
        is_hastened
    }

    /// Tells what flows showed in intervals that are over. All shards do so at the same place.
    pub(super) fn end_interval<O: Observer>(&mut self, end: &IntervalEnd, observer: &mut O) {
        if self.series.is_none() {
            return;
        }
        // A flow whose time is over by then has ended, whenever a packet of others shows that.
        self.settle(end.key.time, observer);
        let flows = self.table.len() as u64;
        let Self { series: Some(series), table, .. } = self else { return };
        series.tell(end, flows, |place| table.flow(place).map(Flow::series_names), observer);
    }

    /// Tells what is missing of the flow at `place`, which ends.
    pub(super) fn tell_losses<O: Observer>(
        &self,
        place: u32,
        key: &SortKey,
        knowledge: &Knowledge,
        observer: &mut O,
    ) {
        let Some(series) = &self.series else { return };
        let Some(flow) = self.table.flow(place) else { return };
        let found = &knowledge.verdict.found;
        if found.is_empty() {
            return;
        }
        let names = flow.series_names();
        let (originator, responder) = flow.ends();
        for (number, found) in (0..).zip(found) {
            let sender = if found.from == ORIGINATOR { originator } else { responder };
            let mut lost = LostBytes::default();
            *match found.gap.cause {
                Cause::Capture => &mut lost.capture,
                Cause::NetworkBefore | Cause::NetworkBehind => &mut lost.network,
                Cause::Unknown => &mut lost.unknown,
            } = found.bytes;
            let lost = LateFigure::Lost(sender.address, lost);
            let fact = series.late(&names, found.gap.since, lost);
            observer.fact(&SortKey { number, ..*key }, &Connection::NONE, Box::new(fact));
        }
    }

    /// Tells what failed of what was said in the flow at `place`.
    pub(super) fn tell_failures<O: Observer>(
        &mut self,
        place: u32,
        key: &SortKey,
        observer: &mut O,
    ) {
        let Some(series) = &self.series else { return self.findings.failures.clear() };
        let Some(flow) = self.table.flow(place) else { return };
        if self.findings.failures.is_empty() {
            return;
        }
        let names = flow.series_names();
        for (number, (time, failure)) in (0..).zip(self.findings.failures.drain(..)) {
            let fact = series.late(&names, time, LateFigure::Failed(failure));
            observer.fact(&SortKey { number, ..*key }, &Connection::NONE, Box::new(fact));
        }
    }

    /// Names what the flow at `place` showed, which ends.
    pub(super) fn end_series(&mut self, place: u32) {
        if let Some(series) = &mut self.series
            && let Some(flow) = self.table.flow(place)
        {
            series.end(place, &flow.series_names());
        }
    }
}

impl Flow {
    fn tally(&self) -> FlowTally {
        let metrics = match &self.exchange {
            TransportState::Connection(tcp) => tcp.metrics.tally(),
            TransportState::Opening(first) => MetricsTally::of_opening(first),
            TransportState::Held(held) => MetricsTally::of_opening(held.first()),
            TransportState::Datagrams(_) | TransportState::Unopened => MetricsTally::default(),
        };
        FlowTally { sent: self.sent, metrics }
    }

    /// What names its figures as it is now.
    fn series_names(&self) -> FlowNames {
        let [low, high] = [self.key.ends_from(Side::Low).0, self.key.ends_from(Side::High).0];
        FlowNames {
            service: self.services().names(),
            hosts: [low.address, high.address],
            originator: self.originator,
            connection: self.connection(self.uid()),
        }
    }
}
