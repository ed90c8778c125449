//! Counts of what was seen, for the summary: exact, mergeable, without an entry per packet.

use std::collections::BTreeMap;

use netsniff_packet::Timestamp;

use crate::flow::Flow;
use crate::flow::report::proto;
use crate::limits::Limits;
use crate::log::conn::{ConnState, Proto};

/// Why a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// Both sides closed, or one reset; the wait for late packets is over.
    Closed,
    /// A SYN without an answer.
    Attempt,
    /// Half closed or half reset, and silent since.
    HalfClosed,
    /// Nothing for as long as the protocol's time-out.
    Inactivity,
    /// The same addresses and ports began a new connection.
    Reused,
    /// Ended early, because a bound was reached.
    Evicted,
    /// Still open at the end of the input.
    Finished,
}

impl Ending {
    /// Every ending.
    pub const ALL: &[Self] = &[
        Self::Closed,
        Self::Attempt,
        Self::HalfClosed,
        Self::Inactivity,
        Self::Reused,
        Self::Evicted,
        Self::Finished,
    ];

    /// A word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Attempt => "attempt",
            Self::HalfClosed => "half_closed",
            Self::Inactivity => "inactivity",
            Self::Reused => "reused",
            Self::Evicted => "evicted",
            Self::Finished => "open_at_end",
        }
    }

    /// Why the flow's timer fired at its deadline.
    #[must_use]
    pub fn of(flow: &Flow, deadline: Timestamp, limits: &Limits) -> Self {
        let Some(tcp) = &flow.tcp else { return Self::Inactivity };
        if tcp.deadline(flow.start, flow.seen, limits) > deadline {
            Self::Inactivity
        } else if tcp.is_ending() {
            Self::Closed
        } else if tcp.is_closed() {
            Self::HalfClosed
        } else {
            Self::Attempt
        }
    }
}

/// Counts over all flows of one worker. Those of several workers add up.
#[derive(Clone, Debug, Default)]
pub struct FlowStatistics {
    /// Flows begun, by protocol.
    pub begun: BTreeMap<&'static str, u64>,
    /// Flows ended, by reason.
    pub endings: BTreeMap<&'static str, u64>,
    /// Connection states of ended flows, TCP and others apart: (protocol, state).
    pub states: BTreeMap<(&'static str, &'static str), u64>,
    /// Oddities, by name.
    pub weirds: BTreeMap<&'static str, u64>,
    /// TCP segments that repeated data.
    pub retransmissions: u64,
    /// TCP payload bytes acknowledged but never seen.
    pub missed_bytes: u64,
    /// TCP connections with such bytes.
    pub flows_with_gaps: u64,
    /// The most flows held at once.
    pub peak_flows: usize,
    /// The most bytes that flows and their index took.
    pub peak_bytes: usize,
}

impl FlowStatistics {
    /// A flow began.
    pub(crate) fn begun(&mut self, proto: Proto) {
        *self.begun.entry(proto.name()).or_default() += 1;
    }

    /// A flow ended.
    pub(crate) fn ended(&mut self, flow: &Flow, ending: Ending) {
        *self.endings.entry(ending.name()).or_default() += 1;
        let state: ConnState = flow.state();
        let proto = proto(flow.key.protocol).name();
        *self.states.entry((proto, state.name())).or_default() += 1;
        if let Some(tcp) = &flow.tcp {
            let repeated = tcp.ends.iter().map(|end| u64::from(end.retransmissions.count()));
            self.retransmissions += repeated.sum::<u64>();
            self.missed_bytes = self.missed_bytes.saturating_add(tcp.missed_bytes);
            self.flows_with_gaps += u64::from(tcp.missed_bytes > 0);
        }
    }

    /// An oddity was met.
    pub(crate) fn weird(&mut self, name: &'static str) {
        *self.weirds.entry(name).or_default() += 1;
    }

    /// So many flows are held, in so many bytes.
    pub(crate) fn note_peak(&mut self, flows: usize, bytes: usize) {
        self.peak_flows = self.peak_flows.max(flows);
        self.peak_bytes = self.peak_bytes.max(bytes);
    }

    /// Adds the counts of another worker. Peaks add up too, since workers hold flows at the same
    /// time: the sum is an upper bound.
    pub fn merge(&mut self, other: &Self) {
        fn add<K: Copy + Ord>(to: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
            for (&key, &count) in from {
                *to.entry(key).or_default() += count;
            }
        }
        add(&mut self.begun, &other.begun);
        add(&mut self.endings, &other.endings);
        add(&mut self.states, &other.states);
        add(&mut self.weirds, &other.weirds);
        self.retransmissions += other.retransmissions;
        self.missed_bytes = self.missed_bytes.saturating_add(other.missed_bytes);
        self.flows_with_gaps += other.flows_with_gaps;
        self.peak_flows += other.peak_flows;
        self.peak_bytes += other.peak_bytes;
    }
}
