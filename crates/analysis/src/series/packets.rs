//! Packets and bytes of each interval, counted where all packets pass in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use netsniff_packet::{Address, Anonymizer, Loss, Packet, Timestamp};

use super::SeriesOptions;
use super::clock::{IntervalClock, IntervalEnd, Intervals};
use super::figures::{PacketFigures, Traffic};
use crate::depth::Depth;
use crate::key::uid::Uid;
use crate::limits::Limits;
use crate::record::{Connection, Fact, Observer, Phase, SortKey};

/// Counts packets by intervals.
#[derive(Debug)]
pub(crate) struct PacketSeries {
    intervals: Intervals,
    clock: IntervalClock,
    depth: Depth,
    ranking: HostRanking,
    interface: Option<Arc<str>>,
    /// The interval of the last packet, which is most often that of the next one.
    last: i64,
    current: PacketFigures,
    /// The other intervals that were not told yet.
    others: BTreeMap<i64, PacketFigures>,
    /// Room for hosts and for interfaces that have none yet, in all intervals together.
    hosts: usize,
    interfaces: usize,
    limits: Limits,
}

/// What an ingress tells of the packets of some intervals.
#[derive(Debug)]
pub(super) struct PacketShare {
    pub(super) intervals: Intervals,
    /// How deep flows are analysed at most.
    pub(super) depth: Depth,
    pub(super) ranking: HostRanking,
    pub(super) interface: Option<Arc<str>>,
    /// Figures by the number of the interval.
    pub(super) figures: Vec<(i64, PacketFigures)>,
}

impl Fact for PacketShare {
    fn heap_bytes(&self) -> usize {
        let figures = self.figures.iter().map(|(_, figures)| figures.heap_bytes()).sum::<usize>();
        figures + self.figures.capacity() * size_of::<(i64, PacketFigures)>()
    }
}

/// All shares were told that belong at its place: those of intervals that are over.
#[derive(Debug)]
pub(super) struct SharesEnd {
    /// The first interval that goes on.
    pub(super) open: i64,
    pub(super) ranking: HostRanking,
}

/// Which hosts have rows of their own.
#[derive(Clone, Debug, Default)]
pub(super) struct HostRanking {
    /// How many do.
    pub(super) most: usize,
    /// What rows call them: the order of hosts with equal bytes must not tell what they are called really.
    pub(super) pseudonyms: Option<Arc<Anonymizer>>,
}

impl HostRanking {
    /// What a host is called.
    pub(super) fn name(&self, host: Address) -> Address {
        self.pseudonyms.as_ref().map_or(host, |pseudonyms| pseudonyms.address(host))
    }
}

impl Fact for SharesEnd {
    fn heap_bytes(&self) -> usize {
        0
    }
}

impl PacketSeries {
    /// Nothing counted yet.
    pub(crate) fn new(
        options: &SeriesOptions,
        depth: Depth,
        pseudonyms: Option<Arc<Anonymizer>>,
        limits: Limits,
    ) -> Self {
        let intervals = Intervals::new(options.interval);
        Self {
            intervals,
            clock: IntervalClock::new(intervals),
            depth,
            ranking: HostRanking { most: options.hosts, pseudonyms },
            interface: options.interface.clone(),
            last: i64::MIN,
            current: PacketFigures::default(),
            others: BTreeMap::new(),
            hosts: limits.series_hosts,
            interfaces: limits.series_interfaces,
            limits,
        }
    }

    /// Goes on to engine time `now`, at which packet `ordinal` comes. Tells what is over by then, and returns where
    /// whoever counts flows is to do the same.
    #[inline]
    pub(crate) fn advance<O: Observer>(
        &mut self,
        now: Timestamp,
        ordinal: u64,
        observer: &mut O,
    ) -> Option<IntervalEnd> {
        if let Some((open, time)) = self.clock.advance(now) {
            return Some(self.tell(open, SortKey::first_at(time), observer));
        }
        if self.others.len() >= self.limits.series_intervals
            && self.others.first_key_value().is_some_and(|(first, _)| *first < self.clock.open())
        {
            // Packets of ever other times, which nobody waits for.
            let (phase, uid) = (Phase::Packet, Uid::NONE);
            let key = SortKey { time: now, phase, ordinal, uid, number: 0 };
            return Some(self.tell(self.clock.open(), key, observer));
        }
        None
    }

    /// Counts a packet that was seen at `time`, between the hosts of its outermost IP header.
    #[inline]
    pub(crate) fn count(
        &mut self,
        packet: &Packet<'_>,
        time: Timestamp,
        hosts: Option<(Address, Address)>,
    ) {
        self.enter(time);
        let one = Traffic::one(packet.wire_len);
        let Self { current, interfaces, hosts: room, .. } = self;
        current.total += &one;
        *current.interfaces.of(packet.interface, interfaces) += &one;
        if let Some((source, destination)) = hosts {
            current.hosts.of(source, room).sent += &one;
            current.hosts.of(destination, room).received += &one;
        }
    }

    /// Counts what the capture lost by engine time `now`, where the row of `gaps` has it: nobody confirms times of losses, so
    /// that those of the future are taken for now.
    pub(crate) fn lose(&mut self, loss: &Loss, now: Timestamp) {
        self.enter(loss.before.unwrap_or(loss.after).min(now));
        self.current.dropped = self.current.dropped.saturating_add(loss.packets);
    }

    /// Makes the interval of `time` the current one.
    #[inline]
    fn enter(&mut self, time: Timestamp) {
        let number = self.intervals.number(time);
        if number != self.last {
            self.change(number);
        }
    }

    #[cold]
    fn change(&mut self, number: i64) {
        let next = self.others.remove(&number).unwrap_or_default();
        let left = core::mem::replace(&mut self.current, next);
        let was = core::mem::replace(&mut self.last, number);
        if left.total.packets > 0 || left.dropped > 0 {
            self.others.insert(was, left);
        }
    }

    /// Tells the intervals before `open`.
    #[cold]
    fn tell<O: Observer>(&mut self, open: i64, key: SortKey, observer: &mut O) -> IntervalEnd {
        self.hand_over(open, key, observer);
        let end = SortKey { number: 1, ..key };
        observer.fact(
            &end,
            &Connection::NONE,
            Box::new(SharesEnd { open, ranking: self.ranking.clone() }),
        );
        IntervalEnd { key, open }
    }

    fn hand_over<O: Observer>(&mut self, open: i64, key: SortKey, observer: &mut O) {
        if self.last < open {
            self.change(i64::MAX);
        }
        let later = self.others.split_off(&open);
        let told = core::mem::replace(&mut self.others, later);
        for figures in told.values() {
            self.hosts += figures.hosts.named.len();
            self.interfaces += figures.interfaces.named.len();
        }
        if told.is_empty() {
            return;
        }
        let Self { intervals, depth, .. } = *self;
        let ranking = self.ranking.clone();
        let (interface, figures) = (self.interface.clone(), told.into_iter().collect());
        let share = PacketShare { intervals, depth, ranking, interface, figures };
        observer.fact(&key, &Connection::NONE, Box::new(share));
    }

    /// Tells what is left at the end of the input, at engine time `now`.
    pub(crate) fn finish<O: Observer>(&mut self, now: Timestamp, observer: &mut O) {
        self.change(i64::MAX);
        self.hand_over(i64::MAX, end_key(now), observer);
    }
}

/// Where what is left belongs at the end of the input.
pub(crate) const fn end_key(now: Timestamp) -> SortKey {
    SortKey { time: now, phase: Phase::Join, ordinal: 0, uid: Uid::NONE, number: 0 }
}
