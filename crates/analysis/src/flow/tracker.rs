//! The flows of one worker: each packet finds or begins its flow and changes it, and each flow
//! that ends becomes a record.

mod checksums;
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
use super::{Flow, Sent, roles};
use crate::limits::Limits;
use crate::log::conn::Proto;
use crate::log::weird::Weird;
use crate::options::{ChecksumMode, Options};
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
    checksums: ChecksumMode,
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
            checksums: options.checksums,
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
            touched ^= flow.seen.nanos() ^ flow.sent[1].ip_bytes as i64 ^ flow.start.nanos();
        }
        for flow in places.filter_map(|place| self.table.flow(place)) {
            if let Some(tcp) = &flow.tcp {
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
            Some(place) => place,
            None => match self.begin(lookup, observer) {
                Some(place) => place,
                None => return,
            },
        };
        if self.passes_checksums(lookup, bytes, place) {
            self.update(lookup, bytes, place);
        }
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
                let key = timer_key(deadline, flow);
                self.end(place, &key, Ending::of(flow, deadline, &self.limits), observer);
                return true;
            }
        }
        if let (Some(tcp), Transport::Tcp(header)) = (&flow.tcp, &unit.decoded.transport)
            && tcp.is_reused_by(header)
        {
            let key = packet_key(unit, flow);
            self.end(place, &key, Ending::Reused, observer);
            return true;
        }
        false
    }

    #[inline]
    fn update(&mut self, lookup: &Lookup<'_>, bytes: &[u8], place: u32) {
        let Lookup { unit, ip, side, .. } = *lookup;
        let Some(flow) = self.table.flow_mut(place) else { return };
        flow.seen = unit.now;
        let sent = &mut flow.sent[side as usize];
        sent.packets += 1;
        sent.ip_bytes += u64::from(ip.total_len);
        let mut heap_change = 0;
        if unit.parent.is_some() || flow.parents.is_some() {
            heap_change = note_parent(flow, unit, &self.limits, &mut self.weirds);
        }
        let mut is_hastened = false;
        match &unit.decoded.transport {
            Transport::Tcp(header) => {
                let from = usize::from(flow.originator != side);
                let segment = Segment { time: unit.time, from, ip, tcp: header };
                let Flow { tcp, kinds, letters, last, .. } = flow;
                if let Some(tcp) = tcp {
                    let before = tcp.heap_bytes();
                    let mut context = tcp::machine::Context {
                        history: History { seen: kinds, letters },
                        last_time: last,
                        weirds: &mut self.weirds,
                        limits: &self.limits,
                        rtt_interval: self.rtt_interval,
                        rtt: &mut self.rtt,
                    };
                    let established = tcp.is_handshake_done();
                    let flipped = tcp.segment(&segment, &mut context);
                    heap_change += tcp.heap_bytes() as isize - before as isize;
                    is_hastened = tcp.is_hastened();
                    let established_now = tcp.is_handshake_done() && !established;
                    if flipped {
                        flow.flip();
                    }
                    if established_now {
                        flow.interactive = is_interactive(flow);
                    }
                }
            }
            Transport::Udp(header) => {
                flow.last = unit.time;
                // Zeek notes the letter before the protocol says who asked.
                let from_originator = flow.originator == side;
                let (kind, letter) = if from_originator { (1, b'D') } else { (2, b'd') };
                flow.history().once(kind, letter);
                let len = i64::from(header.len) - 8;
                flow.sent[side as usize].count_payload(len);
                if let Some(protocol) = flow.protocol {
                    note_message(flow, protocol, unit.payload(bytes), side);
                }
                if u32::from(header.len) != ip.payload_len {
                    self.weirds.add("UDP_datagram_length_mismatch");
                }
            }
            Transport::Icmp(_) => {
                flow.last = unit.time;
                let len = i64::from(ip.payload_len) - 8;
                flow.sent[side as usize].count_payload(len);
            }
            Transport::Sctp(_) | Transport::Other | Transport::None => flow.last = unit.time,
        }
        if heap_change != 0 {
            self.heap_bytes = self.heap_bytes.saturating_add_signed(heap_change);
            self.statistics.note_peak(self.table.len(), self.bytes());
        }
        if is_hastened {
            self.arm(place);
        }
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

    fn begin<O: Observer>(&mut self, lookup: &Lookup<'_>, observer: &mut O) -> Option<u32> {
        let Lookup { unit, key, side, hash, .. } = *lookup;
        self.wheel.start(wheel::tick_of(unit.now));
        self.make_room(unit, 1, observer);
        let name = unit.flow_name(&key);
        let is_tcp = matches!(unit.decoded.transport, Transport::Tcp(_));
        let mut flow = Flow {
            key,
            seen: unit.now,
            last: unit.time,
            armed: Armed::default(),
            kinds: 0,
            sent: [Sent::default(); 2],
            tcp: is_tcp.then(Box::<TcpConnection>::default),
            originator: side,
            interactive: false,
            spoken: false,
            protocol: None,
            parents: None,
            start: unit.time,
            letters: Letters::default(),
            name: [(name >> 64) as u32, (name >> 32) as u32, name as u32],
            contradicted: false,
            losses: self.losses,
            vlan: [unit.decoded.vlan, unit.decoded.inner_vlan],
            bad_checksums: [0; 2],
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
        let tick = wheel::tick_of(flow.deadline(&self.limits));
        let place = self.table.insert(hash, flow)?;
        let armed = self.wheel.arm(place, tick);
        if let Some(flow) = self.table.flow_mut(place) {
            flow.armed = armed;
        }
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

/// Notes the tunnel around a packet of the flow, and returns by how many bytes it grew.
fn note_parent(flow: &mut Flow, unit: &Unit, limits: &Limits, weirds: &mut Weirds) -> isize {
    let before = flow.heap_bytes();
    if flow.note_parent(unit.parent, limits.tunnel_changes) {
        weirds.add("tunnel_max_changes_per_connection_exceeded");
    }
    flow.heap_bytes() as isize - before as isize
}

impl Flow {
    /// Bytes that it holds outside the table.
    fn heap_bytes(&self) -> usize {
        let tcp = self.tcp.as_ref().map_or(0, |tcp| size_of::<TcpConnection>() + tcp.heap_bytes());
        let parents = self.parents.as_ref().map_or(0, |parents| parents.bytes());
        tcp + parents + self.letters.heap_bytes()
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
        .tcp
        .as_ref()
        .is_some_and(|tcp| tcp.ends[tcp::machine::ORIGINATOR].state == tcp::State::Inactive);
    let likely = |port| roles::is_likely_server(key::TCP, port);
    let port = if silent && !likely(responder.port) && likely(originator.port) {
        originator.port
    } else {
        responder.port
    };
    roles::is_interactive(port)
}
