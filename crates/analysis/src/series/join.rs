//! Shares of intervals, added up until all of them have come.

use core::any::TypeId;
use std::collections::BTreeMap;

use netsniff_packet::Timestamp;

use super::clock::Intervals;
use super::flows::{FlowShare, LateShare};
use super::packets::{HostRanking, PacketShare, SharesEnd, end_key};
use super::sum::{IntervalSum, NumberedInterval, Room};
use crate::correlator::{Bound, GivenUp, Join, JoinOutput};
use crate::limits::Limits;
use crate::log::capture::CaptureVerdict;
use crate::record::{Connection, Fact, SortKey};

/// Adds up shares, and tells the rows of their sums.
#[derive(Debug)]
pub(super) struct SeriesJoin {
    waiting: BTreeMap<(Intervals, i64), IntervalSum>,
    /// How many flows are open at the end of an interval, which may have no packets.
    open_flows: BTreeMap<(Intervals, i64), u64>,
    /// Intervals before this one were told.
    told: i64,
    /// Packets of the last intervals that were told, and how many were dropped.
    past: BTreeMap<(Intervals, i64), (u64, Option<u64>)>,
    ranking: HostRanking,
    room: Room,
    /// The first key that has no row yet, at the place of the last rows.
    next: SortKey,
    /// Intervals of which not all could be told apart.
    beyond: u64,
    limits: Limits,
}

impl SeriesJoin {
    /// Nothing waits yet.
    pub(super) fn join(limits: &Limits) -> Box<dyn Join> {
        Box::new(Self {
            waiting: BTreeMap::new(),
            open_flows: BTreeMap::new(),
            told: i64::MIN,
            past: BTreeMap::new(),
            ranking: HostRanking::default(),
            room: Room::beside(limits, core::iter::empty()),
            next: SortKey::first_at(Timestamp::MIN),
            beyond: 0,
            limits: *limits,
        })
    }

    /// The rows of the intervals before number `open`, from `key` on.
    fn tell(&mut self, open: i64, key: &SortKey, out: &mut JoinOutput) {
        let mut key = self.next_key(key);
        let open_flows = core::mem::take(&mut self.open_flows);
        for ((intervals, at), mut sum) in
            self.waiting.extract_if(.., |(_, at), _| *at < open).collect::<Vec<_>>()
        {
            if let Some(&flows) = open_flows.get(&(intervals, at)) {
                sum.set_open_flows(flows);
            }
            self.beyond += u64::from(sum.is_beyond());
            let verdict = self.verdict(&sum, intervals, at);
            let interval = NumberedInterval { intervals, number: at, is_late: at < self.told };
            sum.connection_rows(interval, |row| {
                out.row(key, row);
                key.number += 1;
            });
            sum.rows(interval, &self.ranking, verdict, |row| {
                out.row(key, row);
                key.number += 1;
            });
        }
        self.next = key;
        self.room = Room::beside(&self.limits, self.waiting.values());
    }

    /// The first key for rows that belong at `key`: one fact makes many, and the next one may belong beside it.
    fn next_key(&self, key: &SortKey) -> SortKey {
        let is_beside = SortKey { number: 0, ..self.next } == SortKey { number: 0, ..*key };
        if is_beside { self.next.max(*key) } else { *key }
    }

    /// What all packets of an interval say that were told so far; of one that is long over nobody knows.
    fn verdict(
        &mut self,
        sum: &IntervalSum,
        intervals: Intervals,
        number: i64,
    ) -> Option<CaptureVerdict> {
        let is_known = number >= self.told || self.past.contains_key(&(intervals, number));
        if !is_known {
            return None;
        }
        let (packets, dropped) = self.past.entry((intervals, number)).or_default();
        sum.add_to(packets, dropped);
        let verdict = CaptureVerdict::of(dropped.map(|dropped| {
            let all = dropped.saturating_add(*packets);
            if all == 0 { 0.0 } else { dropped as f64 / all as f64 }
        }));
        if self.past.len() > self.limits.series_intervals {
            self.past.pop_first();
        }
        Some(verdict)
    }
}

impl Join for SeriesJoin {
    fn takes(&self) -> &'static [TypeId] {
        const {
            &[
                TypeId::of::<PacketShare>(),
                TypeId::of::<FlowShare>(),
                TypeId::of::<LateShare>(),
                TypeId::of::<SharesEnd>(),
            ]
        }
    }

    fn fact(&mut self, key: &SortKey, _: &Connection, fact: &dyn Fact, out: &mut JoinOutput) {
        if let Some(share) = fact.downcast_ref::<LateShare>() {
            let sum = self.waiting.entry((share.intervals, share.number)).or_default();
            sum.set_depth(share.depth);
            sum.add_late(share, &mut self.room);
            if self.waiting.len() > self.limits.series_intervals {
                self.tell(self.told, key, out);
            }
        } else if let Some(share) = fact.downcast_ref::<PacketShare>() {
            self.ranking = share.ranking.clone();
            for (number, figures) in &share.figures {
                let sum = self.waiting.entry((share.intervals, *number)).or_default();
                sum.set_depth(share.depth);
                sum.add_packets(figures, share.interface.as_ref());
            }
        } else if let Some(share) = fact.downcast_ref::<FlowShare>() {
            if let Some((number, flows)) = share.open_flows {
                *self.open_flows.entry((share.intervals, number)).or_default() += flows;
            }
            for (number, figures) in &share.figures {
                let sum = self.waiting.entry((share.intervals, *number)).or_default();
                sum.set_depth(share.depth);
                sum.add_flows(figures, share.connections);
            }
        } else if let Some(end) = fact.downcast_ref::<SharesEnd>() {
            self.ranking = end.ranking.clone();
            self.tell(end.open, key, out);
            self.told = self.told.max(end.open);
        }
    }

    fn finish(&mut self, now: Timestamp, out: &mut JoinOutput) {
        self.tell(i64::MAX, &end_key(now), out);
    }

    fn given_up(&self) -> Option<GivenUp> {
        Some(GivenUp {
            bound: Bound::Number(self.limits.series_hosts),
            of: "hosts of the series at a time",
            count: self.beyond,
            what: "intervals have further hosts, services or interfaces in one row",
        })
    }
}
