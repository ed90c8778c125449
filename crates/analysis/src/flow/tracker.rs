//! The flows of one worker: each packet finds or begins its flow and changes it, and each flow
//! that ends becomes a record.

mod ending;

use netsniff_packet::Timestamp;
use netsniff_packet::decode::{Ip, Transport};

use super::history::{History, Letters};
use super::key::{self, FlowKey, Side};
use super::report::proto;
use super::table::FlowTable;
use super::tcp::metrics::series::IntervalRtt;
use super::tcp::{self, Segment, TcpConnection};
use super::wheel::{self, Armed, Wheel};
use super::{Exchange, Flow, Sent, roles};
use crate::limits::Limits;
use crate::log::conn::Proto;
use crate::log::weird::Weird;
use crate::options::Options;
use crate::protocol::{ProtocolId, Verdict};
use crate::record::{Observer, Phase, Port, SortKey};
use crate::statistics::{Ending, FlowStatistics};
use crate::unit::Unit;
use crate::weird::Weirds;

/// Packets whose flows are looked for together, so that the waits for memory overlap.
const GROUP: usize = 64;

/// Below this many flows everything is in the caches, and looking ahead costs more than it gains.
const LOOK_AHEAD_FROM: usize = 8_192;

/// Steps in which the flows that are left at the end are reported, so that their records never
/// all wait at once.
pub const FINISH_STEPS: u32 = 256;

/// The flows of one worker.
#[derive(Debug)]
pub struct FlowTracker {
    limits: Limits,
    gateway: bool,
    /// Nanoseconds by which the RTT is sampled.
    rtt_interval: Option<i64>,
    /// The sampling interval that the last segment ended.
    rtt: Option<IntervalRtt>,
    seed: u64,
    table: FlowTable,
    wheel: Wheel,
    /// Bytes that flows hold outside the table.
    heap_bytes: usize,
    losses: u32,
    weirds: Weirds,
    statistics: FlowStatistics,
    /// The flows that are left once the end has begun, by the step in which they end: the upper
    /// half of their names, and their places.
    remaining: Vec<Vec<(u64, u32)>>,
}

/// A datagram and what its headers tell of its flow.
#[derive(Clone, Copy)]
struct Lookup<'u> {
    unit: &'u Unit,
    ip: &'u Ip,
    key: FlowKey,
    side: Side,
    hash: u32,
}

impl FlowTracker {
    /// No flows yet. `seed` keeps senders from aiming at one bucket of the table; it changes no
    /// record.
    #[must_use]
    pub fn new(limits: Limits, options: Options, seed: u64) -> Self {
        Self {
            limits,
            gateway: options.gateway,
            rtt_interval: options.rtt_interval_nanos(),
            rtt: None,
            seed,
            table: FlowTable::default(),
            wheel: Wheel::default(),
            heap_bytes: 0,
            losses: 0,
            weirds: Weirds::default(),
            statistics: FlowStatistics::default(),
            remaining: Vec::new(),
        }
    }

    /// What the flows amount to so far.
    #[must_use]
    pub const fn statistics(&self) -> &FlowStatistics {
        &self.statistics
    }

    /// Takes datagrams in order, with the bytes that they lie in.
    pub fn units<'u, O: Observer>(
        &mut self,
        units: impl Iterator<Item = &'u Unit>,
        bytes: &[u8],
        observer: &mut O,
    ) {
        let mut group: [Option<Lookup<'u>>; GROUP] = [None; GROUP];
        let mut len = 0;
        for unit in units {
            let Some(ip) = unit.ip() else { continue };
            let Some((key, side)) = FlowKey::of(ip, &unit.decoded.transport) else { continue };
            group[len] = Some(Lookup { unit, ip, key, side, hash: key.hash(self.seed) });
            len += 1;
            if len == GROUP {
                self.group(&group, bytes, observer);
                len = 0;
            }
        }
        self.group(&group[..len], bytes, observer);
    }

    #[inline]
    fn group<O: Observer>(&mut self, group: &[Option<Lookup<'_>>], bytes: &[u8], observer: &mut O) {
        if self.table.len() >= LOOK_AHEAD_FROM {
            self.look_ahead(group);
        }
        for lookup in group.iter().flatten() {
            self.unit(lookup, bytes, observer);
        }
    }

    /// Reads a little of what each look-up will need. The reads do not depend on each other, so
    /// the processor waits for all of them at once.
    #[inline]
    fn look_ahead(&self, group: &[Option<Lookup<'_>>]) {
        let mut places = [None; GROUP];
        for (lookup, place) in group.iter().zip(&mut places) {
            *place = lookup.as_ref().and_then(|lookup| self.table.candidate(lookup.hash));
        }
        self.touch(places.iter().flatten().copied());
    }

    /// Reads every cache line of the flows at some places that a packet may need.
    #[inline]
    fn touch(&self, places: impl Iterator<Item = u32> + Clone) {
        let mut touched = 0;
        for flow in places.clone().filter_map(|place| self.table.flow(place)) {
            touched ^= flow.seen.nanos() ^ flow.sent[1].ip_bytes as i64;
        }
        for flow in places.filter_map(|place| self.table.flow(place)) {
            if let Exchange::Connection(tcp) = &flow.exchange {
                touched ^= tcp.touch();
            }
        }
        core::hint::black_box(touched);
    }

    #[inline]
    fn unit<O: Observer>(&mut self, lookup: &Lookup<'_>, bytes: &[u8], observer: &mut O) {
        let unit = lookup.unit;
        if self.wheel.is_behind(wheel::tick_of(unit.now)) {
            self.advance(unit.now, observer);
        }
        let mut place = self.table.find(lookup.hash, &lookup.key);
        if let Some(found) = place
            && self.is_over(found, unit, observer)
        {
            place = None;
        }
        let place = match place {
            Some(place) => {
                if self.update(lookup, bytes, place) {
                    self.arm(place);
                }
                place
            }
            None => {
                let Some(place) = self.begin(lookup, observer) else { return };
                self.update(lookup, bytes, place);
                self.arm_first(place);
                place
            }
        };
        if let Some(interval) = self.rtt.take()
            && let Some(flow) = self.table.flow(place)
        {
            observer.record(&packet_key(unit, flow), &flow.rtt_record(&interval));
        }
        if !self.weirds.is_empty() {
            self.report_weirds(unit, place, observer);
        }
        if self.bytes() > self.limits.flow_bytes {
            // The flow has grown; what it remembers counts as much as new flows do.
            self.make_room(unit, 0, observer);
        }
    }

    /// Whether the flow that was found is over when this datagram comes; then it is ended.
    #[inline]
    fn is_over<O: Observer>(&mut self, place: u32, unit: &Unit, observer: &mut O) -> bool {
        let Some(flow) = self.table.flow(place) else { return true };
        // Deadlines never lie before the tick for which the flow is armed.
        if flow.armed.is_up(wheel::tick_of(unit.now)) {
            let deadline = flow.deadline(&self.limits);
            if deadline <= unit.now {
                self.expire(place, deadline, observer);
                return true;
            }
        }
        let Transport::Tcp(header) = &unit.decoded.transport else { return false };
        let is_reused = match &flow.exchange {
            Exchange::Connection(tcp) => tcp.is_reused_by(header),
            Exchange::Opening(first) => first.is_reused_by(header),
            Exchange::Unopened | Exchange::Datagrams(_) => false,
        };
        if is_reused {
            let key = packet_key(unit, flow);
            self.end(place, &key, Ending::Reused, observer);
            return true;
        }
        false
    }

    /// Changes the flow by a datagram. Returns whether that may have brought its deadline forward.
    #[inline]
    fn update(&mut self, lookup: &Lookup<'_>, bytes: &[u8], place: u32) -> bool {
        let Lookup { unit, ip, side, .. } = *lookup;
        let Some(flow) = self.table.flow_mut(place) else { return false };
        flow.seen = unit.now;
        let sent = &mut flow.sent[side as usize];
        sent.packets += 1;
        sent.ip_bytes += u64::from(ip.total_len);
        if unit.parent.is_some() || flow.is_tunnelled {
            let before = flow.heap_bytes();
            if flow.note_parent(unit.parent, self.limits.tunnel_changes) {
                self.weirds.add("tunnel_max_changes_per_connection_exceeded");
            }
            let change = flow.heap_bytes() as isize - before as isize;
            self.heap_bytes = self.heap_bytes.saturating_add_signed(change);
        }
        match &unit.decoded.transport {
            Transport::Tcp(header) => {
                let from = usize::from(flow.originator != side);
                let segment = Segment::new(unit.time, from, ip, header);
                if let Exchange::Opening(first) = &mut flow.exchange
                    && first.repeat_plain(&segment)
                {
                    flow.last = unit.time;
                    return false;
                }
                return self.segment(&segment, place);
            }
            Transport::Udp(header) => {
                flow.last = unit.time;
                // Zeek notes the letter before the protocol says who asked.
                let from_originator = flow.originator == side;
                let (kind, letter) = if from_originator { (1, b'D') } else { (2, b'd') };
                flow.history().once(kind, letter);
                flow.count_payload(side, i64::from(header.len) - 8);
                if let Some(protocol) = flow.protocol {
                    note_message(flow, protocol, unit.payload(bytes), side);
                }
                if u32::from(header.len) != ip.payload_len {
                    self.weirds.add("UDP_datagram_length_mismatch");
                }
            }
            Transport::Icmp(_) => {
                flow.last = unit.time;
                flow.count_payload(side, i64::from(ip.payload_len) - 8);
            }
            Transport::Sctp(_) | Transport::Other | Transport::None => flow.last = unit.time,
        }
        false
    }

    /// Takes a connection on by a segment. Returns whether its deadline may have come forward.
    fn segment(&mut self, segment: &Segment<'_>, place: u32) -> bool {
        let Some(flow) = self.table.flow_mut(place) else { return false };
        let before = flow.exchange.heap_bytes();
        flow.unfold(&self.limits);
        let mut begun = None;
        let Flow { exchange, kinds, letters, last, .. } = flow;
        let tcp = match exchange {
            Exchange::Connection(tcp) => &mut **tcp,
            _ => begun.insert(TcpConnection::default()),
        };
        let mut context = tcp::machine::Context {
            history: History { seen: kinds, letters, grown: 0 },
            last_time: last,
            weirds: &mut self.weirds,
            limits: &self.limits,
            rtt_interval: self.rtt_interval,
            rtt: &mut self.rtt,
        };
        let was_established = tcp.is_handshake_done();
        let is_flipped = tcp.segment(segment, &mut context);
        let is_hastened = tcp.is_hastened();
        let is_established = tcp.is_handshake_done() && !was_established;
        let letters_grown = context.history.grown;
        if let Some(tcp) = begun {
            flow.exchange = match tcp.as_opening() {
                Some(first) => Exchange::Opening(first),
                None => Exchange::Connection(Box::new(tcp)),
            };
        }
        if is_flipped {
            flow.flip();
        }
        if is_established {
            flow.interactive = is_interactive(flow);
        }
        let after = flow.exchange.heap_bytes() + letters_grown;
        let change = after as isize - before as isize;
        if change != 0 {
            self.heap_bytes = self.heap_bytes.saturating_add_signed(change);
            self.statistics.note_peak(self.table.len(), self.bytes());
        }
        is_hastened
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
    fn begin<O: Observer>(&mut self, lookup: &Lookup<'_>, observer: &mut O) -> Option<u32> {
        let Lookup { unit, key, side, hash, .. } = *lookup;
        self.wheel.start(wheel::tick_of(unit.now));
        self.make_room(unit, 1, observer);
        let name = unit.flow_name(&key);
        let exchange = match unit.decoded.transport {
            Transport::Tcp(_) => Exchange::Unopened,
            _ => Exchange::Datagrams(Default::default()),
        };
        let mut flow = Flow {
            key,
            seen: unit.now,
            last: unit.time,
            armed: Armed::default(),
            kinds: 0,
            sent: [Sent::default(); 2],
            exchange,
            originator: side,
            interactive: false,
            spoken: false,
            contradicted: false,
            is_tunnelled: false,
            is_alive: true,
            protocol: None,
            parents: None,
            start: unit.time,
            letters: Letters::default(),
            name: [(name >> 64) as u32, (name >> 32) as u32, name as u32],
            losses: self.losses,
            vlan: [unit.decoded.vlan, unit.decoded.inner_vlan],
        };
        let (source, destination) = flow.ends();
        if roles::begins_at_server(unit, source, destination) {
            flow.flip();
        }
        if matches!(unit.decoded.transport, Transport::Udp(_)) {
            flow.protocol = ProtocolId::of_udp_port(flow.ends().1.port);
        }
        self.heap_bytes += flow.heap_bytes();
        self.statistics.begun(proto(key.protocol));
        let place = self.table.insert(hash, flow)?;
        self.statistics.note_peak(self.table.len(), self.bytes());
        Some(place)
    }

    #[cold]
    fn report_weirds<O: Observer>(&mut self, unit: &Unit, place: u32, observer: &mut O) {
        let Some(flow) = self.table.flow(place) else { return };
        let (originator, responder) = flow.ends();
        let mut key = packet_key(unit, flow);
        let source = match proto(flow.key.protocol) {
            Proto::Tcp => Some("TCP"),
            Proto::Udp => Some("UDP"),
            Proto::Icmp => Some("ICMP"),
            Proto::Unknown => None,
        };
        for name in self.weirds.drain() {
            self.statistics.weird(name);
            key.number += 1;
            observer.record(
                &key,
                &Weird {
                    ts: unit.time,
                    uid: Some(flow.uid()),
                    id_orig_h: Some(originator.address),
                    id_orig_p: Some(Port(originator.port)),
                    id_resp_h: Some(responder.address),
                    id_resp_p: Some(Port(responder.port)),
                    name,
                    addl: None,
                    notice: false,
                    peer: "netsniff",
                    source,
                },
            );
        }
    }
}

impl Flow {
    /// Bytes that it holds outside the table.
    fn heap_bytes(&self) -> usize {
        let parents = self.parents.as_ref().map_or(0, |parents| parents.bytes());
        self.exchange.heap_bytes() + parents + self.letters.heap_bytes()
    }

    /// Counts the payload of a datagram.
    #[inline]
    const fn count_payload(&mut self, side: Side, len: i64) {
        if let Exchange::Datagrams(payload) = &mut self.exchange {
            payload[side as usize].count(len);
        }
    }
}

impl Exchange {
    /// Bytes that it holds outside itself.
    #[inline]
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Connection(tcp) => size_of::<TcpConnection>() + tcp.heap_bytes(),
            Self::Datagrams(_) | Self::Unopened | Self::Opening(_) => 0,
        }
    }
}

fn timer_key(deadline: Timestamp, flow: &Flow) -> SortKey {
    SortKey { time: deadline, phase: Phase::Timer, ordinal: 0, uid: flow.uid(), number: 0 }
}

fn packet_key(unit: &Unit, flow: &Flow) -> SortKey {
    SortKey {
        time: unit.now,
        phase: Phase::Packet,
        ordinal: unit.ordinal,
        uid: flow.uid(),
        number: 0,
    }
}

/// The kind of history's X: something that could not be read, Zeek's `HIST_UNKNOWN_PKT`.
const UNKNOWN: u32 = 0x400;

/// Looks at a message of the protocol that the port hints at. The first one tells who asks: an
/// answer that comes first is one whose question was missed.
fn note_message(flow: &mut Flow, protocol: ProtocolId, payload: &[u8], side: Side) {
    if flow.contradicted {
        // Zeek removes an analyser when the packet after the one that it failed on comes. Until
        // then its time-out holds, so that the last packet of a flow changes nothing.
        flow.protocol = None;
        return;
    }
    let port = flow.ends().1.port;
    let verdict = protocol.protocol().datagram(port, payload);
    let is_unknown = matches!(verdict, Verdict::Unknown { .. });
    let from_server = match verdict {
        Verdict::Unclear => return,
        Verdict::FromClient => false,
        Verdict::FromServer => true,
        Verdict::Unknown { from_server } => from_server,
        Verdict::Contradicts { from_server } => {
            flow.contradicted = true;
            from_server
        }
    };
    // Multicast announcements answer nobody (RFC 6762, section 8.3).
    if from_server
        && !flow.spoken
        && flow.originator == side
        && !flow.ends().1.address.to_ip().is_multicast()
    {
        flow.flip();
    }
    flow.spoken = true;
    if is_unknown {
        flow.history().once(UNKNOWN, b'X');
    }
}

/// Whether people type at the other end, by the ports of an established connection.
fn is_interactive(flow: &Flow) -> bool {
    let (originator, responder) = flow.ends();
    let silent = flow
        .tcp()
        .is_some_and(|tcp| tcp.ends[tcp::machine::ORIGINATOR].state == tcp::State::Inactive);
    let likely = |port| roles::is_likely_server(key::TCP, port);
    let port = if silent && !likely(responder.port) && likely(originator.port) {
        originator.port
    } else {
        responder.port
    };
    roles::is_interactive(port)
}
