//! Counts of what was seen, for the summary: exact, mergeable, without an entry per packet.

use std::collections::BTreeMap;

use netsniff_packet::Timestamp;
use netsniff_packet::checksum::ChecksumVerdict;

use super::proto;
use super::talkers::Talkers;
use crate::checksums::{Checked, Verdicts};
use crate::depth::{Depth, PacketsByDepth};
use crate::flow::tcp::losses::stream::RecoveredHoles;
use crate::flow::{Flow, TransportState};
use crate::key::uid::Uid;
use crate::limits::Limits;
use crate::log::Tcp;
use crate::log::conn::{ConnState, Quality};
use crate::protocol::PROTOCOLS;
use crate::reassembly::stream::HoleEndings;
use crate::record::Proto;

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
    /// Every ending, in the order of the summary.
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
        let tcp = match &flow.exchange {
            TransportState::Connection(tcp) => tcp,
            TransportState::Opening(_) | TransportState::Held(_)
                if flow.start + limits.tcp_attempt <= deadline =>
            {
                return Self::Attempt;
            }
            _ => return Self::Inactivity,
        };
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

/// Sums of columns of the log `tcp`: both sides of all its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    /// Segments with payload: `data_segments`.
    pub data: u64,
    /// Those that were sent again, whatever for: `retx_rto`, `retx_fast` and `retx_spurious`.
    pub retransmitted: u64,
    /// Those that came behind later ones without having been sent again: `out_of_order`.
    pub out_of_order: u64,
    /// Copies that the network or the capture made: `duplicates`.
    pub duplicates: u64,
}

impl Segments {
    /// Adds what a row of the log `tcp` says.
    pub(crate) fn row(&mut self, row: &Tcp) {
        let sum = |columns: &[Option<u32>]| {
            columns.iter().flatten().map(|it| u64::from(*it)).sum::<u64>()
        };
        self.data += sum(&[row.orig.data_segments, row.resp.data_segments]);
        self.retransmitted += sum(&[row.orig.retx_rto, row.orig.retx_fast, row.orig.retx_spurious]);
        self.retransmitted += sum(&[row.resp.retx_rto, row.resp.retx_fast, row.resp.retx_spurious]);
        self.out_of_order += sum(&[row.orig.out_of_order, row.resp.out_of_order]);
        self.duplicates += sum(&[row.orig.duplicates, row.resp.duplicates]);
    }

    const fn merge(&mut self, other: &Self) {
        self.data += other.data;
        self.retransmitted += other.retransmitted;
        self.out_of_order += other.out_of_order;
        self.duplicates += other.duplicates;
    }
}

/// Counts over all flows of one worker. Those of several workers add up.
#[derive(Clone, Debug, Default)]
pub struct FlowStatistics {
    /// Packets of flows, by the depth that their flow had when they came; one in a tunnel counts where
    /// its innermost flow is. Those that would have begun one count as `packets` where none was to begin.
    pub packets: PacketsByDepth,
    begun: [u64; Proto::ALL.len()],
    endings: [u64; Ending::ALL.len()],
    states: [[u64; ConnState::ALL.len()]; Proto::ALL.len()],
    qualities: [[u64; Quality::ALL.len()]; Proto::ALL.len()],
    services: [u64; PROTOCOLS.len()],
    /// The hosts and connections with the most bytes.
    pub talkers: Talkers,
    /// How often each oddity was met, by its name.
    pub weirds: BTreeMap<&'static str, u64>,
    /// Segments of TCP, as the rows of the log `tcp` have them.
    pub segments: Segments,
    /// TCP payload bytes acknowledged but never seen.
    pub missed_bytes: u64,
    /// TCP connections with such bytes.
    pub flows_with_gaps: u64,
    /// TCP connections whose streams nobody followed, so that they are not in the counts of losses here.
    pub unwatched: u64,
    /// Holes whose data came after its acknowledgement, but in time, and their bytes.
    pub saved: RecoveredHoles,
    /// How holes in the streams of TCP ended.
    pub holes: HoleEndings,
    /// Sessions of protocols that failed by a fault of this program, and lost their flow alone.
    pub failed_sessions: u64,
    /// Datagrams that were left out, since their checksums were wrong.
    pub discarded: u64,
    checksums: [Verdicts; Checked::ALL.len()],
    /// The most flows held at once.
    pub peak_flows: usize,
    /// The most bytes that flows and their index took.
    pub peak_bytes: usize,
    /// The most bytes of memory that waited behind holes of streams at once, of all that was before `held_recently`.
    held_before: usize,
    /// The most since somebody wanted to know it anew.
    held_recently: usize,
}

impl FlowStatistics {
    /// Counts a flow that began.
    pub(crate) const fn begun(&mut self, proto: Proto) {
        self.begun[proto as usize] += 1;
    }

    /// Counts a flow that ended, whose name is `uid`.
    pub(crate) fn ended(&mut self, flow: &Flow, uid: Uid, ending: Ending, quality: Quality) {
        self.qualities[proto(flow.key.protocol) as usize][quality as usize] += 1;
        for id in flow.services().iter() {
            self.services[id.index()] += 1;
        }
        self.talkers.flow(flow, uid);
        self.endings[ending as usize] += 1;
        self.states[proto(flow.key.protocol) as usize][flow.state() as usize] += 1;
        if let Some(tcp) = flow.tcp() {
            self.unwatched += u64::from(flow.depth.now() < Depth::Tcp);
            self.missed_bytes = self.missed_bytes.saturating_add(tcp.missed_bytes);
            self.flows_with_gaps += u64::from(tcp.missed_bytes > 0);
        }
    }

    /// Data of a flow came after its acknowledgement, but in time.
    pub(crate) const fn saved(&mut self, saved: RecoveredHoles) {
        self.saved.holes = self.saved.holes.saturating_add(saved.holes);
        self.saved.bytes = self.saved.bytes.saturating_add(saved.bytes);
    }

    /// A datagram's checksum was looked at.
    #[inline]
    pub(crate) const fn checksum(&mut self, checked: Checked, verdict: ChecksumVerdict) {
        self.checksums[checked as usize].count(verdict);
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

    /// So many bytes wait behind holes of streams.
    #[inline]
    pub(crate) fn note_held(&mut self, bytes: usize) {
        self.held_recently = self.held_recently.max(bytes);
    }

    /// Looks for the most bytes behind holes anew, while so many wait there.
    pub(crate) fn begin_held_peak(&mut self, bytes: usize) {
        self.held_before = self.peak_held_bytes();
        self.held_recently = bytes;
    }

    /// The most bytes of memory that waited behind holes of streams at once, looked at behind every segment. They are in
    /// [`Self::peak_bytes`], too. Those of several workers add up.
    #[must_use]
    pub fn peak_held_bytes(&self) -> usize {
        self.held_before.max(self.held_recently)
    }

    /// The same since [`FlowTracker::begin_held_peak`](crate::flow::tracker::FlowTracker::begin_held_peak) was called last.
    #[must_use]
    pub const fn recent_held_bytes(&self) -> usize {
        self.held_recently
    }

    /// Flows begun, by protocol.
    pub fn flows_begun(&self) -> impl Iterator<Item = (Proto, u64)> {
        Proto::ALL.iter().copied().zip(self.begun)
    }

    /// Flows ended, by application protocol; one that spoke several counts in each.
    pub fn services(&self) -> impl Iterator<Item = (&'static str, u64)> {
        PROTOCOLS.iter().map(|protocol| protocol.name()).zip(self.services)
    }

    /// Flows ended, by reason.
    pub fn endings(&self) -> impl Iterator<Item = (Ending, u64)> {
        Ending::ALL.iter().copied().zip(self.endings)
    }

    /// Ended flows of a protocol by how they began and ended.
    pub fn states(&self, proto: Proto) -> impl Iterator<Item = (ConnState, u64)> {
        ConnState::ALL.iter().copied().zip(self.states[proto as usize])
    }

    /// Ended flows by whether their records can be believed.
    pub fn qualities(&self) -> impl Iterator<Item = (Quality, u64)> {
        let all = |&quality: &Quality| self.qualities.iter().map(|of| of[quality as usize]).sum();
        Quality::ALL.iter().map(move |quality| (*quality, all(quality)))
    }

    /// Ended flows of a protocol that have a quality.
    #[must_use]
    pub const fn of_quality(&self, proto: Proto, quality: Quality) -> u64 {
        self.qualities[proto as usize][quality as usize]
    }

    /// Checksums above IP, by protocol. One that was put together from fragments counts once.
    pub fn checksums(&self) -> impl Iterator<Item = (Checked, Verdicts)> {
        Checked::ALL.iter().copied().zip(self.checksums)
    }

    /// Adds the counts of a later part of the input, whose flows began once all of these had ended.
    pub fn append(&mut self, later: &Self) {
        let (flows, bytes) = (self.peak_flows, self.peak_bytes);
        let held = self.peak_held_bytes();
        self.merge(later);
        self.talkers.forget();
        self.peak_flows = flows.max(later.peak_flows);
        self.peak_bytes = bytes.max(later.peak_bytes);
        (self.held_before, self.held_recently) = (held, later.peak_held_bytes());
    }

    /// Adds the counts of another worker. Peaks add up too, since workers hold flows at the same
    /// time: the sum is an upper bound.
    pub fn merge(&mut self, other: &Self) {
        fn add(to: &mut [u64], from: &[u64]) {
            for (to, from) in to.iter_mut().zip(from) {
                *to += from;
            }
        }
        self.packets = self.packets.with(&other.packets);
        add(&mut self.begun, &other.begun);
        add(&mut self.endings, &other.endings);
        add(&mut self.services, &other.services);
        self.talkers.merge(&other.talkers);
        for (to, from) in self.states.iter_mut().zip(&other.states) {
            add(to, from);
        }
        for (to, from) in self.qualities.iter_mut().zip(&other.qualities) {
            add(to, from);
        }
        for (&name, &count) in &other.weirds {
            *self.weirds.entry(name).or_default() += count;
        }
        self.segments.merge(&other.segments);
        self.missed_bytes = self.missed_bytes.saturating_add(other.missed_bytes);
        self.flows_with_gaps += other.flows_with_gaps;
        self.unwatched += other.unwatched;
        self.saved(other.saved);
        self.holes.merge(&other.holes);
        self.failed_sessions += other.failed_sessions;
        self.discarded += other.discarded;
        for (to, from) in self.checksums.iter_mut().zip(&other.checksums) {
            to.merge(from);
        }
        self.peak_flows += other.peak_flows;
        self.peak_bytes += other.peak_bytes;
        self.held_before = self.peak_held_bytes() + other.peak_held_bytes();
        self.held_recently += other.held_recently;
    }
}
