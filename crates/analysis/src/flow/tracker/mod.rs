//! The flows of one worker: each packet finds or begins its flow and changes it, and each flow
//! that ends becomes a record.

mod app_context;
mod checksums;
mod closing;
mod contest;
mod depth;
mod ending;
mod findings;
mod held;
mod look_ahead;
mod room;
mod series;
#[cfg(test)]
mod testing;
mod update;

use std::sync::Arc;

use netsniff_packet::Timestamp;
use netsniff_packet::checksum::ChecksumVerdict;
use netsniff_packet::decode::{Ip, Tcp, TcpFlags, Transport};

use super::capture_losses::CaptureLosses;
use super::flow_events::{FlowEvent, FlowEventKind, FlowEvents};
use super::history::Letters;
use super::report::proto;
use super::report::statistics::{Ending, FlowStatistics};
use super::table::FlowTable;
use super::table::wheel::{self, Armed, Wheel};
use super::tcp::connection::verdict::NetworkLosses;
use super::tcp::metrics::series::IntervalRtt;
use super::tcp::{Claimed, HeldSyn, TcpConnection, Unanswered};
use super::{Flow, SentTotals, TransportState, VlanIds, roles};
use crate::depth::{Depth, FlowDepth};
use crate::key::{FlowKey, Side, TCP};
use crate::limits::Limits;
use crate::locality::LocalNets;
use crate::naming::Naming;
use crate::options::{ChecksumMode, Options};
use crate::protocol::Findings;
use crate::record::{Membership, Observer, Phase, SortKey, Undecided};
use crate::series::flows::FlowSeries;
use crate::unit::DecodedDatagram;
use crate::weird::Weirds;
use app_context::AppContext;
use closing::Due;
use findings::Report;
use look_ahead::LookAhead;

/// Steps in which the flows that are left at the end are reported, so that their records never
/// all wait at once.
pub const FINISH_STEPS: u32 = 256;

/// The flows of one worker.
#[derive(Debug)]
pub struct FlowTracker {
    limits: Limits,
    /// The depth in force for new flows, and the deepest that there may be.
    depth: Depth,
    deepest: Depth,
    gateway: bool,
    checksums: ChecksumMode,
    sampling: Option<u64>,
    local_nets: Arc<LocalNets>,
    /// What the transport checksum of the datagram at hand says; unknown where nobody looks.
    verdict: ChecksumVerdict,
    talking: AppContext,
    /// Nanoseconds by which the RTT is sampled.
    rtt_interval: Option<i64>,
    /// The sampling interval that the last segment ended.
    rtt: Option<IntervalRtt>,
    seed: u64,
    naming: Naming,
    table: FlowTable,
    wheel: Wheel,
    /// Bytes that flows hold outside the table.
    heap_bytes: usize,
    /// Whether anything may take more bytes than when that was last looked at.
    has_grown: bool,
    /// Whether streams are counted at once.
    is_tight: bool,
    /// The places of flows whose streams were read since they were counted.
    outdated: Vec<u32>,
    losses: CaptureLosses,
    /// When the capture began: engine time.
    begun: Option<Timestamp>,
    turnover: FlowEvents,
    weirds: Weirds,
    /// The SYN of a connection that begins with an answer to it, and that came within another.
    challenger: Option<Claimed>,
    /// SYNs before the one with which the next flow begins, which may be answered still.
    unanswered: Vec<Unanswered>,
    /// What sessions found in the last datagram.
    findings: Findings,
    /// What the network lost of flows that end together, between their rows; else empty.
    network_losses: Vec<Option<[NetworkLosses; 2]>>,
    statistics: FlowStatistics,
    /// What was found, until it is handed over.
    reports: Vec<Report>,
    /// Flows that end together.
    due: Vec<Due>,
    series: Option<Box<FlowSeries>>,
    /// The flows that are left once the end has begun, by the step in which they end: the upper
    /// half of their names, and their places.
    remaining: Vec<Vec<(u64, u32)>>,
}

/// What comes with a segment.
#[derive(Clone, Copy)]
struct Arrival<'a> {
    /// Engine time.
    now: Timestamp,
    /// The payload as far as it was captured.
    payload: &'a [u8],
    /// Whether the payload is known to be that of the segment before, at the same position.
    is_same: bool,
}

/// A datagram and what its headers tell of its flow.
#[derive(Clone, Copy)]
struct Lookup<'u> {
    unit: &'u DecodedDatagram,
    ip: &'u Ip,
    key: FlowKey,
    side: Side,
    hash: u32,
    /// Where its flow is, unless another is there by now; `None` where nobody looked.
    place: Option<u32>,
}

impl FlowTracker {
    /// No flows yet. `seed` keeps senders from aiming at one bucket of the table, and at fingerprints; it
    /// changes no record.
    #[must_use]
    pub fn new(limits: Limits, options: Options, seed: u64) -> Self {
        let depth = options.deepest();
        let series = options.series.as_ref().filter(|_| depth > Depth::Packets);
        let series = series.map(|series| Box::new(FlowSeries::new(series, depth, limits)));
        Self {
            limits,
            depth,
            deepest: depth,
            gateway: options.gateway,
            checksums: options.checksums,
            sampling: options.sampling,
            local_nets: Arc::clone(&options.local_nets),
            verdict: ChecksumVerdict::Unknown,
            talking: AppContext::new(&options, seed),
            rtt_interval: options.rtt_interval_nanos(),
            rtt: None,
            seed,
            naming: Naming::new(options.anonymizer),
            table: FlowTable::default(),
            wheel: Wheel::default(),
            heap_bytes: 0,
            has_grown: false,
            is_tight: false,
            outdated: Vec::new(),
            losses: CaptureLosses::default(),
            begun: None,
            turnover: FlowEvents::default(),
            weirds: Weirds::default(),
            challenger: None,
            unanswered: Vec::new(),
            findings: Findings::new(options.extract, options.watch.is_some()),
            network_losses: Vec::new(),
            statistics: FlowStatistics::default(),
            reports: Vec::new(),
            due: Vec::new(),
            series,
            remaining: Vec::new(),
        }
    }

    /// What the flows amount to so far.
    #[must_use]
    pub const fn statistics(&self) -> &FlowStatistics {
        &self.statistics
    }

    /// Bytes of memory that wait behind holes of streams now: segments that came, with what the other side said
    /// upon what is missing.
    #[must_use]
    pub const fn held_bytes(&self) -> usize {
        self.talking.held_bytes()
    }

    /// Looks for the most of these bytes anew ([`FlowStatistics::recent_held_bytes`]).
    pub fn begin_held_peak(&mut self) {
        self.statistics.begin_held_peak(self.talking.held_bytes());
    }

    /// Notes from now on which flows begin and end.
    pub fn note_turnover(&mut self) {
        self.turnover.begin();
    }

    /// Swaps what was noted of them, in order, for `empty`.
    pub const fn swap_turnover(&mut self, empty: &mut Vec<FlowEvent>) {
        self.turnover.swap(empty);
    }

    /// Flows that are open.
    #[must_use]
    pub const fn open_flows(&self) -> usize {
        self.table.len()
    }

    /// The open flow with this key, for whoever wants to know what a datagram changed.
    #[must_use]
    pub fn flow(&self, key: &FlowKey) -> Option<&Flow> {
        self.table.find(key.hash(self.seed), key).and_then(|place| self.table.flow(place))
    }

    /// How many of some datagrams belong to flows that are known: what finding flows costs, apart
    /// from changing them.
    #[must_use]
    pub fn known<'u>(&self, units: impl Iterator<Item = &'u DecodedDatagram>) -> usize {
        let mut known = 0;
        let mut ahead = LookAhead::new(units);
        while let Some(group) = ahead.next(self) {
            let found = group.iter().filter(|of| self.table.find(of.hash, &of.key).is_some());
            known += found.count();
        }
        known
    }

    /// Takes datagrams in order, with the bytes that they lie in.
    pub fn units<'u, O: Observer>(
        &mut self,
        units: impl Iterator<Item = &'u DecodedDatagram>,
        bytes: &[u8],
        observer: &mut O,
    ) {
        if self.depth == Depth::Packets && self.table.is_empty() {
            units.for_each(|unit| self.count_only(unit));
            return;
        }
        let mut ahead = LookAhead::new(units);
        while let Some(group) = ahead.next(self) {
            self.look_at_room();
            for lookup in group {
                self.unit(lookup, bytes, observer);
            }
            self.recount();
        }
        self.hand_over(observer);
    }

    /// Takes a datagram.
    #[inline]
    fn unit<O: Observer>(&mut self, lookup: &Lookup<'_>, bytes: &[u8], observer: &mut O) {
        let unit = lookup.unit;
        let tick = wheel::tick_of(unit.now);
        if self.wheel.is_behind(tick) {
            self.advance(unit.now, observer);
        }
        let is_there = |&place: &u32| self.table.is_at(place, &lookup.key);
        let place =
            lookup.place.filter(is_there).or_else(|| self.table.find(lookup.hash, &lookup.key));
        let depth = place.and_then(|place| self.depth_if_ongoing(place, lookup, tick, observer));
        let (mut begins, mut claimed_from) = (false, None);
        let place = match (place, depth) {
            (Some(place), Some(depth)) => {
                if self.take(lookup, bytes, place, depth) {
                    self.arm(place);
                }
                place
            }
            _ if self.depth == Depth::Packets => return self.count_only(unit),
            _ => {
                begins = true;
                claimed_from = self.challenger.as_ref().map(|challenger| challenger.time);
                let Some(place) = self.begin(lookup, bytes, observer) else { return };
                self.take(lookup, bytes, place, self.depth);
                self.arm_first(place);
                place
            }
        };
        if let Some(flow) = self.table.flow(place) {
            tell_membership(unit, flow, begins, claimed_from, observer);
        }
        if let Some(interval) = self.rtt.take()
            && let Some(flow) = self.table.flow(place)
        {
            observer.record(&packet_key(unit, flow), &flow.rtt_record(&interval));
        }
        if !self.weirds.is_empty() || !self.findings.is_empty() {
            self.report_findings(lookup, place, observer);
        }
        if core::mem::take(&mut self.has_grown) && self.bytes() > self.limits.flow_bytes {
            // The flow has grown; what it remembers counts as much as new flows do.
            self.make_room(unit, 0, observer);
        }
    }

    /// Takes a datagram of the flow at `place`, which has this depth. Returns whether that may have
    /// brought its deadline forward.
    #[inline]
    fn take(&mut self, lookup: &Lookup<'_>, bytes: &[u8], place: u32, depth: Depth) -> bool {
        let depth = match depth {
            Depth::Protocols if self.depth < Depth::Tcp => self.cut(place),
            depth => depth,
        };
        self.statistics.packets.add(depth, lookup.unit.is_packet.into());
        if self.series.is_some() {
            return self.take_counted(lookup, bytes, place, depth);
        }
        self.passes_checksums(lookup, bytes, place, depth) && self.update(lookup, bytes, place)
    }

    /// The depth of the flow that was found; `None` where it is over when this datagram comes, and then
    /// it is ended.
    #[inline]
    fn depth_if_ongoing<O: Observer>(
        &mut self,
        place: u32,
        lookup: &Lookup<'_>,
        tick: i64,
        observer: &mut O,
    ) -> Option<Depth> {
        let unit = lookup.unit;
        let flow = self.table.flow(place)?;
        let depth = flow.depth.now();
        // Deadlines never lie before the tick for which the flow is armed.
        if flow.armed.is_up(tick) {
            let deadline = flow.deadline(&self.limits);
            if deadline <= unit.now {
                self.expire(place, deadline, observer);
                return None;
            }
        }
        let Transport::Tcp(header) = &unit.decoded.transport else { return Some(depth) };
        if !header.flags.any(TcpFlags::SYN) {
            return Some(depth);
        }
        let from = usize::from(flow.originator != lookup.side);
        let other = |held: &HeldSyn| !held.first().is_repeated_by(header);
        if matches!(&flow.exchange, TransportState::Held(held) if other(held)) {
            self.release(place);
        }
        let flow = self.table.flow(place)?;
        let is_reused = match &flow.exchange {
            TransportState::Connection(tcp) => {
                self.challenger = tcp.challenger_answered_by(header, from);
                let is_late = unit.time >= flow.start;
                self.challenger.is_some() || tcp.is_reused_by(header, from, is_late)
            }
            TransportState::Opening(first) => first.is_reused_by(header, from),
            TransportState::Unopened | TransportState::Held(_) | TransportState::Datagrams(_) => {
                false
            }
        };
        if is_reused {
            self.reuse(place, lookup, header, observer);
            return None;
        }
        Some(depth)
    }

    /// Ends a flow because this datagram begins another one with its addresses and ports.
    #[cold]
    fn reuse<O: Observer>(
        &mut self,
        place: u32,
        lookup: &Lookup<'_>,
        header: &Tcp,
        observer: &mut O,
    ) {
        let unit = lookup.unit;
        let Some(flow) = self.table.flow_mut(place) else { return };
        if let Some(challenger) = &self.challenger {
            // Its SYN is one of the connection that begins, which the other side answers now.
            flow.sent[1 - lookup.side as usize].take_back(&challenger.sent);
        }
        self.unanswered = match &flow.exchange {
            TransportState::Opening(first) => vec![Unanswered { first: *first, time: flow.start }],
            TransportState::Connection(tcp) => tcp.unanswered(flow.start),
            TransportState::Unopened | TransportState::Held(_) | TransportState::Datagrams(_) => {
                Vec::new()
            }
        };
        let weird = match &flow.exchange {
            // It was told when the SYN came.
            _ if self.challenger.is_some() => None,
            TransportState::Connection(tcp) => {
                tcp.reuse_weird(header, [flow.seen, unit.now], &self.limits)
            }
            _ => Some("SYN_seq_jump"),
        };
        let key = packet_key(unit, flow);
        if let Some(weird) = weird {
            self.weirds.add(weird);
            self.report_findings(lookup, place, observer);
        }
        self.end_together(&[Due { place, key, ending: Ending::Reused }], observer);
    }

    /// Sees to it that the flow's timer comes up in time, after something that may have brought
    /// its deadline forward. Timers that come up too early are armed again then.
    fn arm(&mut self, place: u32) {
        let Some(flow) = self.table.flow_mut(place) else { return };
        let tick = wheel::tick_of(flow.deadline(&self.limits));
        if flow.armed.is_after(tick) {
            flow.armed = self.wheel.arm(place, tick);
        }
    }

    /// Arms the timer of a flow that has just begun.
    fn arm_first(&mut self, place: u32) {
        let Some(flow) = self.table.flow_mut(place) else { return };
        flow.armed = self.wheel.arm(place, wheel::tick_of(flow.deadline(&self.limits)));
    }

    /// Begins the flow of a datagram, whose timer waits for [`Self::arm_first`].
    fn begin<O: Observer>(
        &mut self,
        lookup: &Lookup<'_>,
        bytes: &[u8],
        observer: &mut O,
    ) -> Option<u32> {
        let Lookup { unit, key, side, hash, .. } = *lookup;
        self.wheel.start(wheel::tick_of(unit.now));
        self.make_room(unit, 1, observer);
        let name = self.naming.flow_name(unit, &key);
        let exchange = match unit.decoded.transport {
            Transport::Tcp(_) => TransportState::Unopened,
            _ => TransportState::Datagrams(Default::default()),
        };
        let mut flow = Flow {
            key,
            seen: unit.now,
            last: unit.time,
            armed: Armed::default(),
            kinds: 0,
            sent: [SentTotals::default(); 2],
            exchange,
            originator: side,
            interactive: false,
            spoken: false,
            contradicted: self.depth < Depth::Protocols,
            is_tunnelled: false,
            is_alive: true,
            local: [Side::Low, Side::High]
                .map(|side| self.local_nets.has(key.ends_from(side).0.address)),
            depth: FlowDepth::new(self.depth),
            protocol: None,
            attached: None,
            start: unit.time,
            letters: Letters::default(),
            name: [(name >> 64) as u32, (name >> 32) as u32, name as u32],
            losses: self.losses_before(unit),
            vlan: VlanIds::new(unit.decoded.vlan, unit.decoded.inner_vlan),
            bad_checksums: [0; 2],
        };
        self.choose_originator(&mut flow, unit, bytes, side);
        if self.depth < Depth::Protocols {
            // Nobody looks for what is said.
        } else if matches!(unit.decoded.transport, Transport::Udp(_)) {
            flow.protocol = self.talking.wanted.of_udp_port(flow.ends().1.port);
        } else if key.protocol == TCP {
            self.talking.meet(&mut flow, unit.now, &self.limits);
        }
        self.heap_bytes += flow.heap_bytes();
        self.has_grown = true;
        self.statistics.begun(proto(key.protocol));
        let place = self.table.insert(hash, flow)?;
        self.turnover.note(&key, unit.now, FlowEventKind::Begin);
        if let Some(series) = &mut self.series {
            series.begin(place, unit.time);
        }
        self.statistics.note_peak(self.table.len(), self.bytes());
        Some(place)
    }

    /// Makes the side that began the originator of a flow of which `side` sent the first datagram, as far as that tells.
    fn choose_originator(
        &mut self,
        flow: &mut Flow,
        unit: &DecodedDatagram,
        bytes: &[u8],
        side: Side,
    ) {
        let (source, destination) = flow.ends();
        let unanswered = core::mem::take(&mut self.unanswered);
        if let Some(challenger) = self.challenger.take() {
            flow.begin_with(&challenger, side, &self.limits);
        } else if !unanswered.is_empty() {
            let tcp = TcpConnection::behind(unanswered, self.depth);
            flow.exchange = TransportState::connection(tcp);
        } else if roles::speaks_as_server(unit, bytes)
            .unwrap_or_else(|| roles::begins_at_server(unit, source, destination))
        {
            flow.flip();
        }
    }
}

/// Tells to which flow the packet of a datagram belongs.
#[inline(always)]
fn tell_membership<O: Observer>(
    unit: &DecodedDatagram,
    flow: &Flow,
    begins: bool,
    claimed_from: Option<Timestamp>,
    observer: &mut O,
) {
    let (ordinal, time, key, name) = (unit.ordinal, unit.time, &flow.key, flow.name_bits());
    let fragments = unit.reassembled.as_ref().map_or(&[][..], |joined| &joined.packets);
    observer.member(&Membership { ordinal, time, fragments, key, name, begins, claimed_from });
    let TransportState::Connection(tcp) = &flow.exchange else { return };
    if let Transport::Tcp(header) = &unit.decoded.transport
        && header.flags.any(TcpFlags::SYN)
        && tcp.is_challenged_by(header)
    {
        observer.undecided(ordinal, Undecided::Syn(key));
    }
}

fn packet_key(unit: &DecodedDatagram, flow: &Flow) -> SortKey {
    SortKey {
        time: unit.now,
        phase: Phase::Packet,
        ordinal: unit.ordinal,
        uid: flow.uid(),
        number: 0,
    }
}
