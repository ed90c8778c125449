//! What all shares of an interval amount to, and its rows.

use core::cmp::Reverse;
use core::ops::AddAssign;
use std::collections::BTreeMap;
use std::sync::Arc;

use netsniff_packet::Address;

use super::Failure;
use super::clock::Intervals;
use super::connections::BusiestConnections;
use super::figures::{
    Bounded, FlowFigures, FlowInterval, HostTraffic, LostBytes, PacketFigures, Traffic,
};
use super::flows::LateShare;
use super::packets::HostRanking;
use crate::depth::Depth;
use crate::limits::Limits;
use crate::log::capture::CaptureVerdict;
use crate::log::series::{Kind, Series};
use crate::log::series_conn::SeriesConn;
use crate::record::Interval;

/// What all shares of an interval amount to so far.
#[derive(Debug, Default)]
pub(super) struct IntervalSum {
    depth: Depth,
    total: Traffic,
    dropped: Option<u64>,
    flows: FlowFigures,
    open_flows: Option<u64>,
    interfaces: BTreeMap<Interface, Traffic>,
    other_interfaces: Option<Traffic>,
    services: Bounded<Option<Box<str>>, FlowFigures>,
    hosts: Bounded<Address, HostFigures>,
    connections: BusiestConnections,
    /// How many told of packets: each names hosts up to its own bound.
    packet_shares: u32,
}

/// The interval that rows are of.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberedInterval {
    pub(super) intervals: Intervals,
    pub(super) number: i64,
    /// Whether it was told before.
    pub(super) is_late: bool,
}

/// Room for what single facts name, in all intervals that wait together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    hosts: usize,
    services: usize,
}

impl Room {
    /// What some intervals leave of the bounds.
    pub(super) fn beside<'a>(
        limits: &Limits,
        waiting: impl Iterator<Item = &'a IntervalSum>,
    ) -> Self {
        let mut room = Self { hosts: limits.series_hosts, services: limits.series_services };
        for sum in waiting {
            room.hosts = room.hosts.saturating_sub(sum.hosts.named.len());
            room.services = room.services.saturating_sub(sum.services.named.len());
        }
        room
    }
}

/// What tells an interface from others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Interface {
    Named(Arc<str>),
    Numbered(u32),
}

/// What is known of a host.
#[derive(Clone, Debug, Default)]
struct HostFigures {
    traffic: HostTraffic,
    flows: FlowFigures,
}

impl AddAssign<&Self> for HostFigures {
    fn add_assign(&mut self, other: &Self) {
        self.traffic += &other.traffic;
        self.flows += &other.flows;
    }
}

impl IntervalSum {
    /// Sets how deep flows are analysed.
    pub(super) const fn set_depth(&mut self, depth: Depth) {
        self.depth = depth;
    }

    /// Notes how many flows are open when it is told.
    pub(super) const fn set_open_flows(&mut self, flows: u64) {
        self.open_flows = Some(flows);
    }

    /// Adds the share of whoever counts packets, of the interface `name` where that is known.
    pub(super) fn add_packets(&mut self, share: &PacketFigures, name: Option<&Arc<str>>) {
        self.total += &share.total;
        self.packet_shares += 1;
        // Where the interface is known it is captured here, and all that is lost is told.
        if share.dropped > 0 || name.is_some() {
            let dropped = self.dropped.get_or_insert_default();
            *dropped = dropped.saturating_add(share.dropped);
        }
        for (&number, traffic) in &share.interfaces.named {
            let interface =
                name.map_or(Interface::Numbered(number), |name| Interface::Named(Arc::clone(name)));
            *self.interfaces.entry(interface).or_default() += traffic;
        }
        if let Some(rest) = &share.interfaces.rest {
            *self.other_interfaces.get_or_insert_default() += rest;
        }
        for (&host, traffic) in &share.hosts.named {
            self.hosts.entry(host).traffic += traffic;
        }
        if let Some(rest) = &share.hosts.rest {
            self.hosts.rest.get_or_insert_default().traffic += rest;
        }
    }

    /// Adds the share of a worker, with so many rows of `connections`.
    pub(super) fn add_flows(&mut self, share: &FlowInterval, connections: usize) {
        self.connections.add_all(&share.connections, connections);
        self.flows += &share.total;
        self.services.add(&share.services);
        for (&host, flows) in &share.hosts.named {
            self.hosts.entry(host).flows += flows;
        }
        if let Some(rest) = &share.hosts.rest {
            self.hosts.rest.get_or_insert_default().flows += rest;
        }
    }

    /// Adds what is known of a flow apart from its packets.
    pub(super) fn add_late(&mut self, share: &LateShare, room: &mut Room) {
        let figures = share.figures();
        self.flows += &figures;
        *self.services.of(share.service.clone(), &mut room.services) += &figures;
        for host in share.hosts.into_iter().flatten() {
            self.hosts.of(host, &mut room.hosts).flows += &figures;
        }
    }

    /// Whether hosts or services found no room.
    pub(super) const fn is_beyond(&self) -> bool {
        self.hosts.rest.is_some() || self.services.rest.is_some() || self.other_interfaces.is_some()
    }

    /// Adds its packets, and how many were dropped, as far as that is known.
    pub(super) fn add_to(&self, packets: &mut u64, dropped: &mut Option<u64>) {
        *packets = packets.saturating_add(self.total.packets);
        if let Some(more) = self.dropped {
            let sum = dropped.get_or_insert_default();
            *sum = sum.saturating_add(more);
        }
    }

    /// Hands the rows of its connections to `take`.
    pub(super) fn connection_rows(
        &mut self,
        interval: NumberedInterval,
        take: impl FnMut(SeriesConn),
    ) {
        let NumberedInterval { intervals, number, is_late } = interval;
        let length = Interval::from_nanos(intervals.length());
        let row = SeriesConn::of(intervals.start(number), length, is_late);
        core::mem::take(&mut self.connections).rows(&row, self.depth, take);
    }

    /// Hands the rows of the interval to `take`: the total, interfaces, services, hosts.
    pub(super) fn rows(
        mut self,
        interval: NumberedInterval,
        ranking: &HostRanking,
        verdict: Option<CaptureVerdict>,
        mut take: impl FnMut(Series),
    ) {
        let depth = self.depth;
        let row = |kind| {
            let NumberedInterval { intervals, number, is_late } = interval;
            let length = Interval::from_nanos(intervals.length());
            Series::of(intervals.start(number), length, kind, is_late)
        };
        let total = row(Kind::Total).with_packets(&self.total).with_roles(&self.flows, depth);
        take(Series {
            dropped: self.dropped,
            verdict,
            open_flows: self.open_flows,
            ..total.with_flows(&self.flows, depth)
        });
        for (interface, traffic) in core::mem::take(&mut self.interfaces) {
            let name = match interface {
                Interface::Named(name) => name.as_ref().into(),
                Interface::Numbered(number) => number.to_string().into(),
            };
            take(Series { interface: Some(name), ..row(Kind::Interface).with_packets(&traffic) });
        }
        if let Some(rest) = &self.other_interfaces {
            take(Series { is_other: true, ..row(Kind::Interface).with_packets(rest) });
        }
        let of_service = |flows: &FlowFigures| {
            row(Kind::Service).with_roles(flows, depth).with_flows(flows, depth)
        };
        let mut services: Vec<_> = self.services.named.into_iter().collect();
        services.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (service, flows) in services {
            take(Series { service, ..of_service(&flows) });
        }
        if let Some(rest) = &self.services.rest {
            take(Series { is_other: true, ..of_service(rest) });
        }
        // Where flows of some hosts are in the rest of whoever counted them, nobody knows whose they are.
        let is_beyond =
            self.hosts.rest.as_ref().is_some_and(|rest| rest.flows != FlowFigures::default());
        let unknown = FlowFigures::default();
        let of_host = |figures: &HostFigures| {
            let row = row(Kind::Host).with_host(&figures.traffic);
            match is_beyond {
                true => row.with_flows(&unknown, Depth::Packets),
                false => row.with_flows(&figures.flows, depth),
            }
        };
        let hosts = RankedHosts::new(self.hosts, self.packet_shares, ranking);
        for (host, figures) in hosts.listed {
            take(Series { host: Some(host), ..of_host(&figures) });
        }
        if let Some(rest) = &hosts.rest {
            take(Series { is_other: true, others: hosts.others, ..of_host(rest) });
        }
    }
}

/// Hosts with rows of their own, and the others.
struct RankedHosts {
    /// Those with the most bytes, which come first.
    listed: Vec<(Address, HostFigures)>,
    /// The sum of the others, if there are any.
    rest: Option<HostFigures>,
    /// How many others there are, where all of them are told apart.
    others: Option<u64>,
}

impl RankedHosts {
    fn new(hosts: Bounded<Address, HostFigures>, shares: u32, ranking: &HostRanking) -> Self {
        let Bounded { named, rest } = hosts;
        let mut listed: Vec<_> = named.into_iter().collect();
        // Where not all are told apart, one without traffic may have some in the rest.
        let is_whole =
            |figures: &HostFigures| rest.is_none() || (shares == 1 && figures.traffic.bytes() > 0);
        let rank = |figures: &HostFigures| {
            let HostTraffic { sent, received } = &figures.traffic;
            let FlowFigures { new, active, retransmitted, failures, .. } = figures.flows;
            let counts = [received.bytes, sent.packets, received.packets, new, active];
            (!is_whole(figures), Reverse(figures.traffic.bytes()), counts, retransmitted, failures)
        };
        // Pseudonyms are asked for only where all else is equal. Where several hosts have one, the last word makes runs alike.
        listed.sort_unstable_by(|(one, of_one), (other, of_other)| {
            rank(of_one)
                .cmp(&rank(of_other))
                .then_with(|| ranking.name(*one).cmp(&ranking.name(*other)))
                .then_with(|| one.cmp(other))
        });
        let whole = listed.partition_point(|(_, figures)| is_whole(figures));
        let others = listed.split_off(ranking.most.min(whole));
        if others.is_empty() && rest.is_none() {
            return Self { listed, rest: None, others: None };
        }
        let number = rest.is_none().then_some(others.len() as u64);
        let mut sum = rest.unwrap_or_default();
        others.iter().for_each(|(_, figures)| sum += figures);
        Self { listed, rest: Some(sum), others: number }
    }
}

impl Series {
    /// The row of all packets of a subject.
    fn with_packets(self, traffic: &Traffic) -> Self {
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

    /// The row of what originators and responders sent.
    fn with_roles(self, flows: &FlowFigures, depth: Depth) -> Self {
        let told = |count: u64| (depth >= Depth::Flows).then_some(count);
        Self {
            orig_pkts: told(flows.orig[0]),
            orig_ip_bytes: told(flows.orig[1]),
            resp_pkts: told(flows.resp[0]),
            resp_ip_bytes: told(flows.resp[1]),
            ..self
        }
    }

    /// The row of what flows showed that were analysed so deep.
    fn with_flows(self, flows: &FlowFigures, depth: Depth) -> Self {
        let of_flows = |count: u64| (depth >= Depth::Flows).then_some(count);
        let of_tcp = |count: u64| (depth >= Depth::Tcp).then_some(count);
        let of_protocols = |failure: Failure| {
            (depth >= Depth::Protocols).then_some(flows.failures[failure as usize])
        };
        let span = |nanos: u64| Interval::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
        let (rtt, extremes) = (&flows.rtt, flows.rtt.extremes());
        let LostBytes { network, capture, unknown } = flows.lost;
        Self {
            new_flows: of_flows(flows.new),
            active_flows: of_flows(flows.active),
            retransmitted: (depth >= Depth::Tcp).then_some(flows.retransmitted),
            network_lost: of_tcp(network),
            capture_lost: of_tcp(capture),
            unknown_lost: of_tcp(unknown),
            rtt_samples: of_tcp(rtt.count()),
            rtt_min: extremes.map(|(min, _)| span(min)),
            rtt_p50: rtt.percentile(50).map(span),
            rtt_p90: rtt.percentile(90).map(span),
            rtt_p99: rtt.percentile(99).map(span),
            rtt_max: extremes.map(|(_, max)| span(max)),
            dns_errors: of_protocols(Failure::DnsError),
            dns_unanswered: of_protocols(Failure::DnsUnanswered),
            tls_failures: of_protocols(Failure::Tls),
            ..self
        }
    }
}
