//! The rows of the log `series`, of the shares that were counted of each interval.

use core::any::TypeId;
use core::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use netsniff_packet::{Address, Timestamp};

use super::clock::Intervals;
use super::figures::{Bounded, HostTraffic, PacketFigures, Traffic};
use super::packets::{PacketShare, SharesEnd, end_key};
use crate::correlator::{Join, JoinOutput};
use crate::limits::Limits;
use crate::log::series::{Kind, Series};
use crate::record::{Connection, Fact, Interval, SortKey};

/// Adds up shares until all of them have come.
#[derive(Debug)]
pub(super) struct SeriesJoin {
    waiting: BTreeMap<(Intervals, i64), Sum>,
    /// Hosts that have rows of their own.
    listed: usize,
    room: usize,
    limits: Limits,
}

/// What all shares of an interval amount to so far.
#[derive(Debug, Default)]
struct Sum {
    total: Traffic,
    dropped: u64,
    interfaces: BTreeMap<Interface, Traffic>,
    other_interfaces: Option<Traffic>,
    hosts: Bounded<Address, HostTraffic>,
}

/// What tells an interface from others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Interface {
    Named(Arc<str>),
    Numbered(u32),
}

impl SeriesJoin {
    /// Nothing waits yet.
    pub(super) fn join(limits: &Limits) -> Box<dyn Join> {
        Box::new(Self {
            waiting: BTreeMap::new(),
            listed: 0,
            room: limits.series_hosts,
            limits: *limits,
        })
    }

    /// The rows of all that waits, from `key` on.
    fn tell(&mut self, key: &SortKey, out: &mut JoinOutput) {
        self.room = self.limits.series_hosts;
        let mut number = key.number;
        for ((intervals, at), sum) in core::mem::take(&mut self.waiting) {
            sum.rows(intervals, at, self.listed, |row| {
                out.row(SortKey { number, ..*key }, row);
                number += 1;
            });
        }
    }
}

impl Join for SeriesJoin {
    fn takes(&self) -> &'static [TypeId] {
        const { &[TypeId::of::<PacketShare>(), TypeId::of::<SharesEnd>()] }
    }

    fn fact(&mut self, key: &SortKey, _: &Connection, fact: &dyn Fact, out: &mut JoinOutput) {
        if let Some(share) = fact.downcast_ref::<PacketShare>() {
            self.listed = share.listed;
            for (number, figures) in &share.figures {
                let sum = self.waiting.entry((share.intervals, *number)).or_default();
                sum.add(figures, share.interface.as_ref(), &mut self.room);
            }
        } else {
            self.tell(key, out);
        }
    }

    fn finish(&mut self, now: Timestamp, out: &mut JoinOutput) {
        self.tell(&end_key(now), out);
    }
}

impl Sum {
    fn add(&mut self, share: &PacketFigures, name: Option<&Arc<str>>, room: &mut usize) {
        self.total += share.total;
        self.dropped = self.dropped.saturating_add(share.dropped);
        for (&number, &traffic) in &share.interfaces.named {
            let interface =
                name.map_or(Interface::Numbered(number), |name| Interface::Named(Arc::clone(name)));
            *self.interfaces.entry(interface).or_default() += traffic;
        }
        if let Some(rest) = share.interfaces.rest {
            *self.other_interfaces.get_or_insert_default() += rest;
        }
        self.hosts.add(&share.hosts, room);
    }

    /// Hands the rows of the interval to `take`: the total, interfaces, hosts.
    fn rows(self, intervals: Intervals, number: i64, listed: usize, mut take: impl FnMut(Series)) {
        let row = |kind| {
            let interval = Interval::from_nanos(intervals.length());
            Series::of(intervals.start(number), interval, kind)
        };
        take(Series { dropped: Some(self.dropped), ..row(Kind::Total).with(self.total) });
        for (interface, traffic) in self.interfaces {
            let name = match interface {
                Interface::Named(name) => name.as_ref().into(),
                Interface::Numbered(number) => number.to_string().into(),
            };
            take(Series { interface: Some(name), ..row(Kind::Interface).with(traffic) });
        }
        if let Some(rest) = self.other_interfaces {
            take(Series { is_other: true, ..row(Kind::Interface).with(rest) });
        }
        let (hosts, rest) = ranked(self.hosts, listed);
        for (host, traffic) in hosts {
            take(Series { host: Some(host), ..row(Kind::Host).with_host(&traffic) });
        }
        if let Some(Rest { others, traffic }) = rest {
            take(Series { is_other: true, others, ..row(Kind::Host).with_host(&traffic) });
        }
    }
}

/// Hosts without rows of their own.
struct Rest {
    /// How many; `None` where there were more than are told apart.
    others: Option<u64>,
    traffic: HostTraffic,
}

/// The `listed` hosts with the most bytes, those with the most first, and the sum of the others.
fn ranked(
    hosts: Bounded<Address, HostTraffic>,
    listed: usize,
) -> (Vec<(Address, HostTraffic)>, Option<Rest>) {
    let Bounded { named, rest } = hosts;
    let mut named: Vec<_> = named.into_iter().collect();
    named.sort_unstable_by_key(|(host, traffic)| (Reverse(traffic.bytes()), *host));
    let others = named.split_off(listed.min(named.len()));
    if others.is_empty() && rest.is_none() {
        return (named, None);
    }
    let number = rest.is_none().then_some(others.len() as u64);
    let mut sum = rest.unwrap_or_default();
    others.into_iter().for_each(|(_, traffic)| sum += traffic);
    (named, Some(Rest { others: number, traffic: sum }))
}

impl Series {
    /// The row of all packets of a subject.
    fn with(self, traffic: Traffic) -> Self {
        Self { packets: Some(traffic.packets), bytes: Some(traffic.bytes), ..self }
    }

    /// The row of what hosts sent and received.
    fn with_host(self, HostTraffic { sent, received }: &HostTraffic) -> Self {
        Self {
            sent_packets: Some(sent.packets),
            sent_bytes: Some(sent.bytes),
            received_packets: Some(received.packets),
            received_bytes: Some(received.bytes),
            ..self
        }
    }
}
