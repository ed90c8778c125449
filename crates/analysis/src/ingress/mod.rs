//! From packets to datagrams: time, decoding, fragments and tunnels, before any flow is known.
//!
//! What happens here needs all packets in order; what comes after needs only those between the
//! same two addresses, and can be shared out among workers.

use core::ops::Range;
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use netsniff_packet::checksum::{self, ChecksumVerdict};
use netsniff_packet::decode::{self, Decoded, Transport, TunnelPorts, tunnel};
use netsniff_packet::{Loss, Packet, Timestamp};

use crate::depth::Depth;
use crate::key::uid::Uid;
use crate::limits::Limits;
use crate::log::Gaps;
use crate::naming::Naming;
use crate::options::{ChecksumMode, Options};
use crate::reassembly::fragments::Fragments;
use crate::record::{Observer, Phase, SortKey};
use crate::series::packets::PacketSeries;
use crate::unit::{DatagramBatch, DecodedDatagram, HoleKind};
use boundary::Boundary;
use clock::Clock;
use statistics::{Fate, PacketStatistics};
use steps::Steps;
use ties::Ties;
use tunnels::Tunnels;
use walk::{OuterHeaders, Walk};

mod arp;
mod border;
pub mod boundary;
mod clock;
pub mod cut_headers;
pub mod stamps;
pub mod statistics;
mod steps;
mod ties;
pub mod tunnels;
mod unparsed;
mod walk;

pub use unparsed::Unparsed;

/// Packets that make a clock: with fewer before it, a stamp of the far future may as well be the one that is right.
const CLOCK: u64 = 3;

/// Decodes packets, and keeps the state that this needs.
#[derive(Debug)]
pub struct Ingress {
    limits: Limits,
    tunnel_ports: Arc<TunnelPorts>,
    checksums: ChecksumMode,
    /// The depth in force, and the deepest that there may be.
    depth: Depth,
    deepest: Depth,
    clock: Clock,
    /// When fragments or tunnels have something to end next, or it is time for a look, or before.
    deadline: Timestamp,
    /// When it is time to look at what waits to be over, and how long that is behind the last look.
    next_look: Timestamp,
    look_interval: Duration,
    ordinal: u64,
    ties: Ties,
    /// The number of the packet among those of its pair at the same time.
    tie: u64,
    fragments: Fragments,
    tunnels: Tunnels,
    statistics: PacketStatistics,
    series: Option<Box<PacketSeries>>,
    /// Jumps of stamps, where somebody looks for findings.
    steps: Option<Box<Steps>>,
    /// Whether somebody looks through what packets tell that no flow has.
    is_watched: bool,
    /// Interfaces that go on from an earlier file, with the first of the same.
    continued: BTreeMap<u32, u32>,
    /// Pairs of hosts, where somebody wants to know them.
    boundary: Option<Box<Boundary>>,
}

impl Ingress {
    /// An ingress that has seen no packet.
    #[must_use]
    pub fn new(limits: Limits, options: Options) -> Self {
        Self {
            limits,
            tunnel_ports: Arc::clone(&options.tunnel_ports),
            checksums: options.checksums,
            depth: options.deepest(),
            deepest: options.deepest(),
            clock: Clock::default(),
            deadline: Timestamp::MIN,
            next_look: Timestamp::MIN,
            look_interval: limits.look_interval,
            ordinal: 0,
            ties: Ties::new(),
            tie: 0,
            fragments: Fragments::new(limits),
            series: options.series.as_ref().map(|series| {
                let pseudonyms = options.anonymizer.clone();
                Box::new(PacketSeries::new(series, options.deepest(), pseudonyms, limits))
            }),
            tunnels: Tunnels::new(limits, options.tunnel_ports, Naming::new(options.anonymizer)),
            statistics: PacketStatistics::default(),
            steps: options.watch.as_deref().and_then(Steps::new).map(Box::new),
            is_watched: options.watch.is_some(),
            continued: BTreeMap::new(),
            boundary: None,
        }
    }

    /// Counts packets that belong to no flow at this depth from now on: what is analysed of them is the
    /// same at any.
    pub fn set_depth(&mut self, depth: Depth) {
        self.depth = depth.min(self.deepest);
    }

    /// Notes that an interface goes on from an earlier file, where it had another number.
    pub fn continue_interface(&mut self, (number, first): (u32, u32)) {
        if self.is_watched {
            self.continued.insert(number, first);
        }
    }

    /// Engine time: the latest stamp so far that is believed; [`Timestamp::MIN`] before the first packet.
    #[must_use]
    #[inline]
    pub const fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The number of the last packet, from 1.
    #[must_use]
    #[inline]
    pub const fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// Whether a packet with this stamp is to be taken only once the next one is known, for
    /// [`Self::foresee`]: it lies so far ahead that something would end, and may be wrong.
    #[must_use]
    #[inline]
    pub const fn is_ahead(&self, time: Timestamp) -> bool {
        self.clock.is_ahead(time)
    }

    /// Tells the stamp of the packet after the one that is taken next; `None` at the end.
    pub const fn foresee(&mut self, next: Option<Timestamp>) {
        self.clock.foresee(next);
    }

    /// What the packets amount to so far.
    #[must_use]
    pub const fn statistics(&self) -> &PacketStatistics {
        &self.statistics
    }

    /// The datagrams that are being put together.
    #[must_use]
    pub const fn fragments(&self) -> &Fragments {
        &self.fragments
    }

    /// What carries other packets.
    #[must_use]
    pub const fn tunnels(&self) -> &Tunnels {
        &self.tunnels
    }

    /// Takes one packet and appends the datagrams that it completes to `units`; `bytes` is where
    /// the packet lies among the bytes that will go with them. Returns why, where some of it was not
    /// understood.
    #[inline]
    pub fn packet<O: Observer>(
        &mut self,
        packet: &Packet<'_>,
        bytes: Range<usize>,
        units: &mut DatagramBatch,
        observer: &mut O,
    ) -> Option<Unparsed> {
        self.ordinal += 1;
        let time = self.take_time(packet.timestamp, observer);
        if self.ordinal == 1 {
            units.note_hole(self.now(), HoleKind::Begin);
        }
        if self.series.is_some() {
            self.end_intervals(units, observer);
        }
        let unit = units.spare();
        let is_straight =
            decode::packet_into(packet.link_type, packet.data, packet.wire_len, &mut unit.decoded);
        let pair = unit.ip().map(|ip| (&ip.source, &ip.destination));
        self.tie = self.ties.number(self.now(), pair);
        if let Some(boundary) = &mut self.boundary {
            boundary.packet(unit.ip(), self.clock.now());
        }
        if let Some(series) = &mut self.series {
            series.count(packet, time, pair.map(|(&source, &destination)| (source, destination)));
        }
        // A stamp that is ahead alone is counted, and no clock's.
        if let Some(steps) = &mut self.steps
            && time == packet.timestamp
        {
            let place = (self.clock.now(), self.ordinal);
            steps.packet(packet, &unit.decoded, place, observer);
        }
        if self.is_plain(&unit.decoded, is_straight, packet.data)
            && let header = self.checksums.judge_header(&unit.decoded, packet.data)
            && !self.checksums.discards(header)
        {
            // Most packets: nothing is strange, and nothing can be inside.
            unit.time = time;
            unit.now = self.now();
            unit.ordinal = self.ordinal;
            unit.tie = self.tie;
            unit.bytes = bytes;
            unit.reassembled = None;
            unit.parent = None;
            unit.header_checksum = header;
            unit.checksum = None;
            unit.is_packet = true;
            self.statistics.ip_checksums.count(header);
            let (layers, now) = (unit.decoded.layers, self.clock.now());
            self.statistics.passed(packet, time, layers, now);
            if packet.is_cut() {
                self.statistics.cut_headers.note(packet, None, [&unit.decoded]);
            }
            units.commit();
            return None;
        }
        let decoded = unit.decoded;
        let first = units.len();
        let mut walk = Walk::new(self, (time, bytes), units, observer);
        walk.datagram(&decoded, packet.data, &OuterHeaders::default());
        let (layers, fate, told) = (walk.layers, walk.fate, walk.reported_by());
        // What is unknown inside a flow belongs to that flow, which has a row.
        let has_row = units.len() > first;
        let fate = if fate == Fate::Unknown && has_row { Fate::Passed } else { fate };
        let now = self.now();
        if self.is_watched {
            let interface = self.continued.get(&packet.interface).unwrap_or(&packet.interface);
            arp::tell(packet, *interface, &decoded, (now, self.ordinal), observer);
        }
        let is_decoded = self.statistics.packet(packet, time, layers, fate, now);
        if packet.is_cut() {
            self.note_cut(packet, fate, units.as_slice().get(first..).unwrap_or_default());
        }
        if is_decoded && !units.mark_packet(first) {
            self.statistics.note_without_flow(self.depth, told);
        }
        self.note_deadline();
        Unparsed::of(packet.link_type, layers, fate)
    }

    /// Notes headers that were not captured to their end.
    #[cold]
    fn note_cut(&mut self, packet: &Packet<'_>, fate: Fate, units: &[DecodedDatagram]) {
        let stop = if let Fate::Stopped(stop) = &fate { Some(stop) } else { None };
        let own = units.iter().filter(|unit| unit.reassembled.is_none());
        self.statistics.cut_headers.note(packet, stop, own.map(|unit| &unit.decoded));
    }

    /// Counts what the capture lost here, and writes it down.
    pub fn loss<O: Observer>(&mut self, loss: &Loss, observer: &mut O) {
        self.statistics.losses.add(loss);
        let now = self.now();
        if let Some(series) = &mut self.series {
            series.lose(loss, now);
        }
        let key = SortKey {
            time: self.now(),
            phase: Phase::Packet,
            ordinal: self.ordinal,
            uid: Uid::NONE,
            number: self.statistics.losses.places as u32,
        };
        observer.record(&key, &Gaps::of_capture(loss));
    }

    /// Ends what ends until `now`; time does not go back.
    #[inline]
    pub fn advance<O: Observer>(&mut self, now: Timestamp, observer: &mut O) {
        let now = self.clock.advance(now);
        if self.deadline <= now {
            self.fragments.expire(now);
            self.tunnels.advance(now, self.next_look, observer);
            if self.next_look <= now {
                self.look(now, observer);
            }
            self.note_deadline();
        }
    }

    /// Tells which intervals are over by now, here and to those behind.
    pub fn end_intervals<O: Observer>(&mut self, units: &mut DatagramBatch, observer: &mut O) {
        let (now, ordinal) = (self.now(), self.ordinal);
        let Some(series) = &mut self.series else { return };
        if let Some(end) = series.advance(now, ordinal, observer) {
            units.note_hole(now, HoleKind::IntervalEnd(end));
        }
    }

    /// Looks at what waits to be over. As in Zeek the looks are those of the whole capture, and each waits for a
    /// packet: what is told of a silence depends on them.
    #[cold]
    fn look<O: Observer>(&mut self, now: Timestamp, observer: &mut O) {
        self.next_look = now + self.look_interval;
        self.tunnels.look(now, observer);
        let ordinal = self.ordinal;
        let key = SortKey { time: now, phase: Phase::Timer, ordinal, uid: Uid::NONE, number: 0 };
        observer.look(&key);
    }

    /// Takes the stamp of a packet. Returns when it came: where the stamp is wrong, with the packet before.
    #[inline]
    fn take_time<O: Observer>(&mut self, stamp: Timestamp, observer: &mut O) -> Timestamp {
        if self.ordinal > CLOCK
            && let Some(ahead) = self.clock.alone_ahead(stamp)
        {
            self.statistics.ahead += 1;
            self.statistics.furthest_ahead_nanos = self.statistics.furthest_ahead_nanos.max(ahead);
            return self.now();
        }
        self.advance(stamp, observer);
        stamp
    }

    /// Notes when [`Self::advance`] has something to do next.
    fn note_deadline(&mut self) {
        let fragments = self.fragments.deadline().unwrap_or(Timestamp::MAX);
        let tunnels = self.tunnels.deadline().unwrap_or(Timestamp::MAX);
        self.deadline = tunnels.min(fragments).min(self.next_look);
    }

    /// Whether a packet is one datagram and nothing more: no oddity, no fragment, no tunnel, and no
    /// datagram of a flow that carries tunnels.
    #[inline]
    fn is_plain(&self, decoded: &Decoded, is_straight: bool, data: &[u8]) -> bool {
        if !is_straight && (decoded.stop.is_some() || !decoded.oddities.is_empty()) {
            return false;
        }
        match &decoded.transport {
            Transport::Tcp(_) | Transport::Icmp(_) => true,
            Transport::Udp(udp) => {
                !self.tunnels.has_unexpected_carriers()
                    && !tunnel::may_be_in_udp(udp, data, &self.tunnel_ports)
            }
            Transport::Sctp(_) | Transport::Other | Transport::None => false,
        }
    }

    /// Closes what is still open at the end of the input.
    pub fn finish<O: Observer>(&mut self, observer: &mut O) {
        self.tunnels.finish(self.clock.now(), observer);
        if let Some(series) = &mut self.series {
            series.finish(self.clock.now(), observer);
        }
        if let Some(steps) = &mut self.steps {
            steps.finish((self.clock.now(), self.ordinal), observer);
        }
    }
}

impl ChecksumMode {
    /// What the checksum of an IP header that was decoded from `data` says; unknown where there is
    /// no header, or nobody wants to know.
    #[inline]
    fn judge_header(self, decoded: &Decoded, data: &[u8]) -> ChecksumVerdict {
        match &decoded.ip {
            Some(ip) if self != Self::Ignore => {
                checksum::ip_header(data.get(ip.offset as usize..).unwrap_or_default())
            }
            _ => ChecksumVerdict::Unknown,
        }
    }

    /// Whether what has such a checksum is left out.
    #[inline]
    pub(crate) const fn discards(self, verdict: ChecksumVerdict) -> bool {
        matches!(self, Self::Discard) && verdict.is_wrong()
    }
}
