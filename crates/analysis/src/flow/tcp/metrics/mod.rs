//! What the segments of a connection tell about the path and the hosts, measured mid-path: at
//! the tap, which sees packets out of order and packets that never arrive.
//!
//! | module | concern |
//! |---|---|
//! | [`first`] | the first segment, for connections of which nothing else is seen |
//! | [`direction`] | counters and sequence numbers of one direction |
//! | `bit` | what happened to a direction, as bits |
//! | [`acknowledge`] | how the peer answered |
//! | [`readings`] | what a direction tells in the end |
//! | [`classify`] | why data was sent again |
//! | [`counts`] | how often what is rare happened |
//! | [`identifications`] | packets that were seen before |
//! | [`marks`] | when data was sent first |
//! | [`handshake`] | the round trip on either side of the tap |
//! | `predict` | the short way of a segment that the connection awaited |
//! | [`rtt`] | round-trip times: sums, deviation, jitter |
//! | [`series`] | round-trip times by interval |
//!
//! `docs/tcp-metrics.md` defines every metric.

pub mod acknowledge;
mod bit;
pub mod classify;
pub mod counts;
pub mod direction;
pub mod first;
pub mod handshake;
pub mod identifications;
pub mod marks;
mod predict;
pub mod readings;
pub mod rtt;
pub mod series;

use netsniff_packet::Timestamp;
use netsniff_packet::decode::TcpFlags;

use super::losses::Ledger;
use super::observed::Observed;
use super::sequence::delta;
use counts::MetricsTally;
use direction::Direction;
use first::First;
use handshake::{Handshake, sent_last};
use series::{IntervalRtt, RttSeries};

/// The metrics of a connection. The bulk is made only once a connection shows more than a single
/// kind of opening segment, so that a flood of SYNs does not pay for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// When the first segment was sent last, as far as that was seen.
    begun: Timestamp,
    first: Option<First>,
    full: Option<Box<TcpMetrics>>,
}

impl Metrics {
    /// Asks for what every segment needs of the metrics in full.
    #[inline]
    pub(in crate::flow::tcp) fn prefetch_full(&self) {
        if let Some(full) = &self.full {
            full.directions.iter().for_each(Direction::prefetch);
        }
    }

    /// Takes one segment. Returns the sampling interval that it ends, where `interval` (in
    /// nanoseconds) asks for sampling.
    #[inline]
    pub fn segment(&mut self, seen: &Observed<'_>, interval: Option<i64>) -> Option<IntervalRtt> {
        if let Some(full) = &mut self.full {
            return full.segment(seen, interval);
        }
        if self.take(seen) {
            return None;
        }
        let mut full = Box::new(self.of_first());
        let ended = full.segment(seen, interval);
        self.full = Some(full);
        ended
    }

    /// As [`Self::segment`], for a segment that the connection awaited, with whether they may take more memory now.
    #[inline]
    pub(in crate::flow::tcp) fn predicted(
        &mut self,
        seen: &Observed<'_>,
        interval: Option<i64>,
    ) -> (Option<IntervalRtt>, bool) {
        if let Some(full) = &mut self.full
            && let Some(rtt) = full.predicted(seen)
        {
            return (full.answered(seen, rtt, interval), interval.is_some());
        }
        (self.segment(seen, interval), true)
    }

    /// Takes the segment, if it is the first and without payload, or repeats a first one that is
    /// a SYN. Of any other there is nothing to keep here.
    #[inline]
    pub(in crate::flow::tcp) fn take(&mut self, seen: &Observed<'_>) -> bool {
        if seen.segment.tcp.payload_len > 0 {
            return false;
        }
        if let Some(first) = &mut self.first {
            let is_repeated = first.repeat(seen);
            if is_repeated {
                self.begun = sent_last(self.begun, seen.segment.time);
            }
            return is_repeated;
        }
        self.begun = seen.segment.time;
        self.first = Some(First::of(seen));
        true
    }

    /// The metrics after the first segment and its repetitions.
    fn of_first(&self) -> TcpMetrics {
        self.first.map_or_else(TcpMetrics::default, |first| TcpMetrics::of(&first, self.begun))
    }

    /// The first segment, where there is nothing else.
    #[must_use]
    pub fn only_first(&self) -> Option<First> {
        self.first.filter(|_| self.full.is_none())
    }

    /// The first segment, whatever came after it.
    #[must_use]
    pub(in crate::flow::tcp) const fn opening(&self) -> Option<First> {
        self.first
    }

    /// Goes on with the count of repetitions that `first` has, the last of which was seen at `last`.
    pub(in crate::flow::tcp) fn resume(&mut self, first: &First, last: Timestamp) {
        self.first = Some(*first);
        if first.repeats() > 0 {
            self.begun = sent_last(self.begun, last);
        }
    }

    /// Originator and responder change places.
    pub fn flip(&mut self) {
        if let Some(first) = &mut self.first {
            first.flip();
        }
        if let Some(full) = &mut self.full {
            full.flip();
        }
    }

    /// Bytes held outside itself.
    #[must_use]
    #[inline]
    pub fn heap_bytes(&self) -> usize {
        match &self.full {
            Some(full) => size_of::<TcpMetrics>() + full.heap_bytes(),
            None => 0,
        }
    }

    /// Nanoseconds from the first SYN to the acknowledgement of its answer, where both parts of
    /// that round trip were seen.
    #[must_use]
    pub fn handshake_nanos(&self) -> Option<u64> {
        self.full.as_ref()?.handshake.rtt()
    }

    /// Whether something about a segment that was taken tells that it may never reach its receiver,
    /// or that the receiver drops it.
    #[must_use]
    #[inline]
    pub(in crate::flow::tcp) fn is_doubtful(&self, seen: &Observed<'_>) -> bool {
        let Some(full) = &self.full else { return false };
        let [low, high] = &full.directions;
        let (sender, peer) = if seen.from == 0 { (low, high) } else { (high, low) };
        sender.doubts(seen) || peer.is_ahead(seen)
    }

    /// Positions in what `side` sent are higher by so many numbers than they were.
    #[cold]
    pub(in crate::flow::tcp) fn move_positions(&mut self, side: usize, by: i64) {
        if let Some(full) = &mut self.full {
            full.ledger.move_positions(side, by);
        }
    }

    /// What `side` sent goes on at `number`, which stands at `position`, and nobody knows what lies before that.
    #[cold]
    pub(in crate::flow::tcp) fn renumber(
        &mut self,
        side: usize,
        number: u32,
        position: i64,
        time: Timestamp,
    ) {
        if let Some(full) = &mut self.full {
            let direction = &mut full.directions[side & 1];
            if !direction.has_begun() {
                // There is nothing before it that lies apart from it.
                return;
            }
            let unseen = i64::from(delta(number, direction.next()));
            full.ledger.renumber(side, [position - unseen, position], time);
            direction.set(bit::OPEN_GAPS, true);
        }
    }

    /// What was acknowledged of `side` at some time lies from the first position of a range up to the second,
    /// and was never sent; the next number that its peer awaits is `next`.
    #[cold]
    pub(in crate::flow::tcp) fn take_back(
        &mut self,
        side: usize,
        next: u32,
        range: [i64; 2],
        time: Timestamp,
    ) {
        if let Some(full) = &mut self.full {
            full.directions[side & 1].take_back(next);
            full.ledger.take_back(side, range, time);
        }
    }

    /// What tells of losses, where more than the opening was seen.
    #[must_use]
    pub(in crate::flow::tcp) fn evidence(&self) -> Option<(&[Direction; 2], &Handshake, &Ledger)> {
        let full = self.full.as_ref()?;
        Some((&full.directions, &full.handshake, &full.ledger))
    }

    /// The number that the first acknowledgement of `side` told, where the SYN of the acknowledging side was seen.
    #[must_use]
    pub(in crate::flow::tcp) fn expected_begin(&self, side: usize) -> Option<u32> {
        let directions = &self.full.as_ref()?.directions;
        let has_syn = directions[1 - (side & 1)].has_syn();
        directions[side & 1].expected_begin().filter(|_| has_syn)
    }

    /// Hands all metrics to `take`.
    pub fn with<T>(&self, take: impl FnOnce(&TcpMetrics) -> T) -> T {
        match &self.full {
            Some(full) => take(full),
            None => take(&self.of_first()),
        }
    }

    /// What they amount to so far.
    #[must_use]
    pub fn tally(&self) -> MetricsTally {
        let Some(full) = &self.full else {
            return self
                .first
                .as_ref()
                .map_or_else(MetricsTally::default, MetricsTally::of_opening);
        };
        let mut tally = MetricsTally::default();
        full.directions.iter().for_each(|side| tally.add(&side.counts, &side.rtt));
        tally
    }

    /// The sampling intervals that are still open: what the originator's data showed, and the
    /// responder's.
    #[must_use]
    pub fn open_intervals(&self) -> [Option<IntervalRtt>; 2] {
        match self.full.as_ref().and_then(|full| full.series.as_ref()) {
            Some(series) => [series[0].open(0), series[1].open(1)],
            None => [None; 2],
        }
    }
}

/// The metrics of a connection of which more than its opening was seen. What is in a box comes first, beside what
/// every segment of the originator touches.
#[derive(Clone, Debug, Default, PartialEq)]
#[repr(C)]
pub struct TcpMetrics {
    /// Round-trip times by interval, where they are wanted and there are any.
    series: Option<Box<[RttSeries; 2]>>,
    /// What is missing in both streams, and why.
    ledger: Ledger,
    /// Originator and responder: what each sent, and how it was acknowledged.
    pub directions: [Direction; 2],
    /// Times and options of the handshake.
    pub handshake: Handshake,
}

const _: () = assert!(size_of::<TcpMetrics>() <= 640, "allocators round up to 640, then to 768");

impl TcpMetrics {
    /// The metrics after the segments that `first` stands for, which was sent last at `begun`.
    #[must_use]
    fn of(first: &First, begun: Timestamp) -> Self {
        let mut metrics = Self::default();
        let replay = first.replay(begun);
        let segment = replay.segment();
        metrics.segment(&Observed::new(&segment, segment.from, 0, None), None);
        let direction = &mut metrics.directions[segment.from];
        if first.repeats() > 0 || first.duplicates() > 0 {
            direction.counts.retransmitted_timeout = first.repeats().into();
            direction.counts.duplicates = first.duplicates().into();
        }
        if first.repeats() > 0 {
            metrics.handshake.opening_repeated();
        }
        metrics
    }

    #[inline]
    fn segment(&mut self, seen: &Observed<'_>, interval: Option<i64>) -> Option<IntervalRtt> {
        let [low, high] = &mut self.directions;
        let (sender, peer) = if seen.from == 0 { (low, high) } else { (high, low) };
        if sender.is_duplicate(seen, peer, &self.ledger) {
            sender.duplicate(seen);
            self.ledger.doubled(seen);
            return None;
        }
        sender.note_header(seen);
        if !self.handshake.is_done() {
            self.handshake.segment(seen, sender, peer);
        }
        if seen.has(TcpFlags::RST) {
            sender.resets = sender.resets.saturating_add(1);
            peer.reset_acknowledges(seen, sender, &self.handshake, &mut self.ledger);
            return None;
        }
        sender.note_window(seen);
        sender.send(seen, peer, &self.handshake, &mut self.ledger);
        if !seen.has(TcpFlags::ACK) {
            return None;
        }
        let rtt = peer.acknowledged(seen, sender, &self.handshake, &mut self.ledger);
        self.answered(seen, rtt, interval)
    }

    /// Adds the round-trip time that an acknowledgement gave, if it gave one.
    #[inline]
    fn answered(
        &mut self,
        seen: &Observed<'_>,
        rtt: Option<u64>,
        interval: Option<i64>,
    ) -> Option<IntervalRtt> {
        let rtt = rtt?;
        self.directions[1 - (seen.from & 1)].rtt.add(rtt);
        self.sample(1 - seen.from, seen.segment.time, rtt, interval?)
    }

    /// Adds a sample to the series of one direction.
    fn sample(
        &mut self,
        direction: usize,
        time: Timestamp,
        rtt: u64,
        interval: i64,
    ) -> Option<IntervalRtt> {
        let series = self.series.get_or_insert_default();
        series[direction & 1].add(direction, time, rtt, interval)
    }

    fn flip(&mut self) {
        self.directions.swap(0, 1);
        self.handshake.flip();
        self.ledger.flip();
        if let Some(series) = &mut self.series {
            series.swap(0, 1);
        }
    }

    #[inline]
    fn heap_bytes(&self) -> usize {
        let series = if self.series.is_some() { size_of::<[RttSeries; 2]>() } else { 0 };
        let [low, high] = &self.directions;
        series + self.ledger.heap_bytes() + low.counts.heap_bytes() + high.counts.heap_bytes()
    }
}

#[cfg(test)]
mod tests;
