//! Who talks most: addresses and connections with the most bytes, and how long answers take, in
//! bounded memory.

use std::borrow::Cow;

use hashbrown::HashMap;
use netsniff_packet::{Address, Timestamp};

use super::proto;
use crate::flow::Flow;
use crate::key::Endpoint;
use crate::key::uid::Uid;
use crate::log::conn::ConnState;
use crate::protocol::Services;
use crate::record::Proto;

/// Addresses of which counts are kept; twice as many for a while.
const ADDRESSES: usize = 16_384;

/// Counts that are taken into the table together: so many look-ups wait for memory at once, and not one after
/// another, each in the midst of the end of its flow.
const TOGETHER: usize = 128;

/// Connections that are kept.
const CONNECTIONS: usize = 10;

/// The traffic of one address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes of IP that it sent.
    pub sent: u64,
    /// Bytes of IP that it received.
    pub received: u64,
    /// Flows that the host has a part in.
    pub flows: u64,
}

impl Traffic {
    /// Bytes in both directions.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.sent.saturating_add(self.received)
    }

    const fn add(&mut self, other: &Self) {
        self.sent = self.sent.saturating_add(other.sent);
        self.received = self.received.saturating_add(other.received);
        self.flows += other.flows;
    }
}

/// A connection with many bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The identifier of the connection.
    pub uid: Uid,
    /// The host that began.
    pub originator: Endpoint,
    /// The host that answered.
    pub responder: Endpoint,
    /// TCP, UDP or ICMP.
    pub proto: Proto,
    /// The application protocol that its content showed.
    pub services: Services,
    /// How it began and ended.
    pub state: ConnState,
    /// Time of its first packet.
    pub start: Timestamp,
    /// From its first packet to its last, in nanoseconds.
    pub duration_nanos: i64,
    /// Packets in both directions.
    pub packets: u64,
    /// Bytes of IP in both directions.
    pub bytes: u64,
}

impl Connection {
    /// Most bytes first; equal ones by name, so that the order is always the same.
    fn rank(&self) -> (core::cmp::Reverse<u64>, Uid) {
        (core::cmp::Reverse(self.bytes), self.uid)
    }
}

/// The addresses and connections with the most bytes.
///
/// Counts are exact while fewer than 32,768 addresses were met. With more of them, those with the
/// fewest bytes are forgotten now and then, and a count may miss up to [`Self::missed_at_most`]
/// bytes.
#[derive(Clone, Debug, Default)]
pub struct Talkers {
    hosts: Hosts,
    connections: Vec<Connection>,
    handshakes: Latencies,
}

/// The traffic of addresses.
#[derive(Clone, Debug, Default)]
struct Hosts {
    traffic: HashMap<Address, Traffic>,
    missed_at_most: u64,
    /// What is to be counted still, in order.
    waiting: Vec<(Address, Traffic)>,
}

impl Hosts {
    fn add(&mut self, address: Address, traffic: Traffic) {
        self.waiting.push((address, traffic));
        if self.waiting.len() >= TOGETHER {
            self.count();
        }
    }

    /// Counts what waits.
    fn count(&mut self) {
        let mut waiting = core::mem::take(&mut self.waiting);
        for (address, traffic) in waiting.drain(..) {
            self.traffic.entry(address).or_default().add(&traffic);
            if self.traffic.len() >= 2 * ADDRESSES {
                self.forget();
            }
        }
        self.waiting = waiting;
    }

    /// The same with everything counted.
    fn counted(&self) -> Cow<'_, Self> {
        if self.waiting.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut all = self.clone();
        all.count();
        Cow::Owned(all)
    }

    /// Forgets the half of the addresses with the fewest bytes.
    fn forget(&mut self) {
        let mut totals: Vec<u64> = self.traffic.values().map(Traffic::total).collect();
        let (_, &mut limit, _) = totals.select_nth_unstable(ADDRESSES);
        self.traffic.retain(|_, traffic| traffic.total() > limit);
        self.missed_at_most = self.missed_at_most.saturating_add(limit);
    }

    /// Forgets what has too few bytes to matter, where too many addresses came together.
    fn forget_surplus(&mut self) {
        while self.traffic.len() >= 2 * ADDRESSES {
            self.forget();
        }
    }

    /// Adds what another worker counted.
    fn merge(&mut self, other: &Self) {
        self.count();
        let other = other.counted();
        for (&address, traffic) in &other.traffic {
            self.traffic.entry(address).or_default().add(traffic);
        }
        self.missed_at_most = self.missed_at_most.saturating_add(other.missed_at_most);
    }
}

impl Talkers {
    /// Counts a flow that ended, whose name is `uid`.
    pub(crate) fn flow(&mut self, flow: &Flow, uid: Uid) {
        let (originator, responder) = flow.ends();
        let (orig, resp) = flow.sent_by_role();
        let (sent, received) = (orig.ip_bytes, resp.ip_bytes);
        self.hosts.add(originator.address, Traffic { sent, received, flows: 1 });
        self.hosts.add(responder.address, Traffic { sent: received, received: sent, flows: 1 });
        let bytes = sent.saturating_add(received);
        let is_first =
            |last: &Connection| bytes > last.bytes || bytes == last.bytes && uid < last.uid;
        if self.connections.len() < CONNECTIONS || self.connections.last().is_some_and(is_first) {
            self.connection(Connection {
                uid,
                originator,
                responder,
                proto: proto(flow.key.protocol),
                services: flow.services(),
                state: flow.state(),
                start: flow.start,
                duration_nanos: flow.last.nanos_since(flow.start),
                packets: orig.packets + resp.packets,
                bytes,
            });
        }
        if let Some(tcp) = flow.tcp()
            && let Some(nanos) = tcp.metrics.handshake_nanos()
        {
            self.handshakes.add(nanos);
        }
    }

    fn connection(&mut self, connection: Connection) {
        let at = self.connections.partition_point(|other| other.rank() < connection.rank());
        self.connections.insert(at, connection);
        self.connections.truncate(CONNECTIONS);
    }

    /// The addresses with the most bytes, at most `count`.
    #[must_use]
    pub fn addresses(&self, count: usize) -> Vec<(Address, Traffic)> {
        let hosts = self.hosts.counted();
        let mut all: Vec<_> = hosts.traffic.iter().map(|(&of, &traffic)| (of, traffic)).collect();
        all.sort_unstable_by_key(|(of, traffic)| (core::cmp::Reverse(traffic.total()), *of));
        all.truncate(count);
        all
    }

    /// Bytes that the count of an address may miss; 0 where counts are exact.
    #[must_use]
    pub fn missed_at_most(&self) -> u64 {
        self.hosts.counted().missed_at_most
    }

    /// The connections with the most bytes, most first.
    #[must_use]
    pub fn connections(&self) -> &[Connection] {
        &self.connections
    }

    /// Round-trip times of handshakes.
    #[must_use]
    pub const fn handshakes(&self) -> &Latencies {
        &self.handshakes
    }

    /// Adds what another worker counted.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.hosts.merge(&other.hosts);
        for connection in &other.connections {
            self.connection(connection.clone());
        }
        self.handshakes.merge(&other.handshakes);
    }

    /// Forgets hosts with few bytes, where too many came together.
    pub(crate) fn forget(&mut self) {
        self.hosts.forget_surplus();
    }
}

/// Steps within a factor of two.
const STEPS: u32 = 32;

/// How often which durations occurred, told apart to three percent.
#[derive(Clone, Debug)]
pub struct Latencies {
    bins: Vec<u64>,
    total: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { bins: vec![0; (64 * STEPS) as usize], total: 0 }
    }
}

impl Latencies {
    /// Counts a duration in nanoseconds.
    pub fn add(&mut self, nanos: u64) {
        self.bins[bin_of(nanos)] += 1;
        self.total += 1;
    }

    /// The least duration that `share` (0 to 1) of all do not exceed, in nanoseconds and to three
    /// percent; `None` where there is none.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let wanted = ((self.total as f64 * share).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        self.bins
            .iter()
            .position(|count| {
                seen += count;
                seen >= wanted
            })
            .map(middle_of)
    }

    fn merge(&mut self, other: &Self) {
        for (to, from) in self.bins.iter_mut().zip(&other.bins) {
            *to += from;
        }
        self.total += other.total;
    }
}

/// The bin of a duration: its power of two, and the next five bits below the highest.
const fn bin_of(nanos: u64) -> usize {
    if nanos < STEPS as u64 {
        return nanos as usize;
    }
    let power = nanos.ilog2();
    let step = (nanos >> (power - STEPS.ilog2())) as u32 - STEPS;
    (power * STEPS + step) as usize
}

/// The middle of a bin in nanoseconds.
const fn middle_of(bin: usize) -> u64 {
    let (power, step) = (bin as u32 / STEPS, bin as u32 % STEPS);
    if power < STEPS.ilog2() {
        return bin as u64;
    }
    let width = 1_u64 << (power - STEPS.ilog2());
    (STEPS + step) as u64 * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_three_percent() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile(0.5), None);
        (1..=1000).for_each(|ms| latencies.add(ms * 1_000_000));
        for (share, expected) in [(0.5, 500.0), (0.95, 950.0), (1.0, 1000.0), (0.0, 1.0)] {
            let found = latencies.quantile(share).unwrap() as f64 / 1e6;
            assert!((found / expected - 1.0).abs() < 0.032, "{share}: {found}");
        }
        assert_eq!(middle_of(bin_of(7)), 7);
        assert!(bin_of(u64::MAX) < 64 * STEPS as usize);
    }

    #[test]
    fn rare_addresses_are_forgotten_and_the_error_is_told() {
        let mut talkers = Talkers::default();
        let address = |n: u32| Address::from_v4(n.to_be_bytes());
        let traffic = |sent| Traffic { sent, received: 0, flows: 1 };
        talkers.hosts.add(address(u32::MAX), traffic(1_000_000));
        assert_eq!(talkers.missed_at_most(), 0);
        for n in 0..4 * ADDRESSES as u32 {
            talkers.hosts.add(address(n), traffic(10));
        }
        talkers.hosts.add(address(u32::MAX), traffic(1));
        assert!(talkers.hosts.traffic.len() <= 2 * ADDRESSES);
        let [(first, most)] = talkers.addresses(1)[..] else { panic!("one is asked for") };
        assert_eq!((first, most.sent), (address(u32::MAX), 1_000_001));
        assert!(talkers.missed_at_most() >= 10);
    }
}
