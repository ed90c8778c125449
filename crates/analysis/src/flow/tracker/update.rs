//! How a datagram changes its flow.

use netsniff_packet::checksum;
use netsniff_packet::decode::{Tcp, Transport, Udp};

use super::{Arrival, FlowTracker, Lookup};
use crate::depth::Depth;
use crate::flow::history::History;
use crate::flow::tcp::connection::{SegmentContext, SegmentOutcome};
use crate::flow::tcp::{self, Segment, TcpConnection};
use crate::flow::{Flow, TransportState, roles};
use crate::key::{self, Side};
use crate::limits::Limits;
use crate::protocol::{Datagram, ProtocolId, Role};
use crate::unit::DecodedDatagram;
use crate::weird::{Detail, Weirds};

impl FlowTracker {
    /// Changes the flow by a datagram. Returns whether that may have brought its deadline forward.
    #[inline]
    pub(super) fn update(&mut self, lookup: &Lookup<'_>, bytes: &[u8], place: u32) -> bool {
        let Lookup { unit, ip, side, .. } = *lookup;
        let Some(flow) = self.table.flow_mut(place) else { return false };
        flow.seen = unit.now;
        let sent = &mut flow.sent[side as usize];
        sent.packets += 1;
        sent.ip_bytes += u64::from(ip.total_len);
        if unit.parent.is_some() || flow.is_tunnelled {
            let change = note_parent(flow, unit, &self.limits, &mut self.weirds);
            self.heap_bytes = self.heap_bytes.saturating_add_signed(change);
            self.has_grown = true;
        }
        match &unit.decoded.transport {
            Transport::Tcp(header) => return self.tcp(lookup, header, bytes, place),
            Transport::Udp(header) => {
                flow.last = unit.time;
                self.udp(lookup, header, bytes, place);
            }
            Transport::Icmp(_) => {
                flow.last = unit.time;
                flow.count_payload(side, i64::from(ip.payload_len) - 8);
            }
            Transport::Sctp(_) | Transport::Other | Transport::None => flow.last = unit.time,
        }
        false
    }

    /// Takes a segment. Returns whether it may have brought the flow's deadline forward.
    #[inline]
    fn tcp(&mut self, lookup: &Lookup<'_>, header: &Tcp, bytes: &[u8], place: u32) -> bool {
        let Lookup { unit, ip, side, .. } = *lookup;
        let Some(flow) = self.table.flow_mut(place) else { return false };
        let from = usize::from(flow.originator != side);
        let is_bad = self.verdict == checksum::ChecksumVerdict::Bad;
        let is_damaged = is_bad && flow.has_mostly_good(side);
        let segment = Segment { is_damaged, ..Segment::new(unit.time, from, ip, header) };
        let payload = unit.part(bytes, header.payload_offset, header.payload_captured);
        let arrival = Arrival { now: unit.now, payload, is_same: false };
        match &mut flow.exchange {
            TransportState::Connection(tcp) if !tcp.is_undecided() => {
                return self.segment(&arrival, &segment, place);
            }
            TransportState::Connection(_) | TransportState::Datagrams(_) => {}
            TransportState::Opening(first) => {
                if first.repeat_plain(&segment) {
                    flow.last = unit.time;
                    return false;
                }
            }
            TransportState::Held(_) | TransportState::Unopened => {
                if header.payload_len > 0 && self.hold(&arrival, &segment, place) {
                    return false;
                }
                self.release(place);
            }
        }
        self.connection(&arrival, segment, place)
    }

    /// Takes a segment into its connection. Returns whether its deadline may have come forward.
    #[inline]
    pub(super) fn connection(
        &mut self,
        arrival: &Arrival<'_>,
        segment: Segment<'_>,
        place: u32,
    ) -> bool {
        let Some(flow) = self.table.flow(place) else { return false };
        let segment = match flow.tcp() {
            Some(tcp) if tcp.is_undecided() => self.decide(segment, place),
            _ => segment,
        };
        self.unfold(place);
        self.segment(arrival, &segment, place)
    }

    /// Takes a datagram of UDP, which a protocol may know.
    #[inline]
    fn udp(&mut self, lookup: &Lookup<'_>, header: &Udp, bytes: &[u8], place: u32) {
        let Lookup { unit, ip, side, .. } = *lookup;
        let Some(flow) = self.table.flow_mut(place) else { return };
        // Zeek notes the letter before the protocol says who asked.
        let from_originator = flow.originator == side;
        let (kind, letter) = if from_originator { (1, b'D') } else { (1 << 16, b'd') };
        flow.history().once(kind, letter);
        if flow.contradicted {
            flow.forget_protocol();
        }
        if flow.protocol.is_none() && !flow.contradicted && flow.is_beginning() {
            flow.protocol = self.talking.wanted.of_datagram(unit.payload(bytes));
        }
        flow.count_payload(side, i64::from(header.len) - 8);
        if let Some(protocol) = flow.protocol {
            let payload = unit.payload(bytes);
            note_sender(flow, protocol, payload, side);
            let (port, time) = (hinting_port(flow, protocol), unit.time);
            let is_asked = flow.originator == side;
            let from = if is_asked { Role::Originator } else { Role::Responder };
            self.converse(protocol, &Datagram { time, from, port, payload }, place);
        }
        if header.len != ip.payload_len {
            let lengths = Detail::Unequal(header.len.into(), ip.payload_len.into());
            self.weirds.add_with("UDP_datagram_length_mismatch", lengths);
        }
    }

    /// Makes a connection of the flow at `place` where only its opening is kept.
    #[inline]
    fn unfold(&mut self, place: u32) {
        let Some(flow) = self.table.flow_mut(place) else { return };
        if matches!(flow.exchange, TransportState::Opening(_)) {
            flow.unfold(&self.limits);
            let change = flow.exchange.heap_bytes();
            self.note_change(change as isize);
        }
    }

    /// Takes a connection on by a segment. Returns whether its deadline may have come forward.
    fn segment(&mut self, arrival: &Arrival<'_>, segment: &Segment<'_>, place: u32) -> bool {
        let Some(flow) = self.table.flow_mut(place) else { return false };
        let Flow { exchange, kinds, letters, last, depth, .. } = flow;
        let mut context = SegmentContext {
            now: arrival.now,
            history: History { seen: kinds, letters, grown: 0 },
            last_time: last,
            weirds: &mut self.weirds,
            limits: &self.limits,
            rtt_interval: self.rtt_interval,
            rtt: &mut self.rtt,
        };
        let step = match exchange {
            TransportState::Connection(tcp) => {
                let was_established = tcp.is_handshake_done();
                let outcome = tcp.segment(segment, &mut context);
                Step {
                    outcome,
                    change: tcp.recount(),
                    is_hastened: tcp.is_hastened(),
                    is_established: tcp.is_handshake_done() && !was_established,
                }
            }
            _ => begin(exchange, depth.now(), segment, &mut context),
        };
        let change = step.change + context.history.grown as isize;
        let Step { outcome, is_hastened, is_established, .. } = step;
        if outcome.is_flipped {
            flow.flip();
        }
        if is_established {
            flow.interactive = is_interactive(flow);
        }
        self.note_change(change);
        if outcome.is_renumbering {
            // What comes now may be of others than what was said before.
            self.hush(place);
        }
        self.stream(arrival, segment, &outcome, place);
        is_hastened
    }
}

/// What a segment did to its connection.
struct Step {
    outcome: SegmentOutcome,
    /// Bytes by which the connection grew.
    change: isize,
    is_hastened: bool,
    is_established: bool,
}

/// Begins a connection with a segment.
#[inline(never)]
fn begin(
    exchange: &mut TransportState,
    depth: Depth,
    segment: &Segment<'_>,
    context: &mut SegmentContext<'_>,
) -> Step {
    let before = exchange.heap_bytes();
    let mut tcp = TcpConnection::at(depth);
    let outcome = tcp.unpredicted(segment, context);
    tcp.recount();
    let (is_hastened, is_established) = (tcp.is_hastened(), tcp.is_handshake_done());
    *exchange = match tcp.as_opening() {
        Some(first) => TransportState::Opening(first),
        None => TransportState::Connection(Box::new(tcp)),
    };
    let change = exchange.heap_bytes() as isize - before as isize;
    Step { outcome, change, is_hastened, is_established }
}

/// Notes the tunnel around a packet of the flow, and returns by how many bytes it grew.
pub(super) fn note_parent(
    flow: &mut Flow,
    unit: &DecodedDatagram,
    limits: &Limits,
    weirds: &mut Weirds,
) -> isize {
    let before = flow.heap_bytes();
    if flow.note_parent(unit.parent, limits.tunnel_changes) {
        let bound = Detail::Number(limits.tunnel_changes.into());
        weirds.add_with("tunnel_max_changes_per_connection_exceeded", bound);
    }
    flow.heap_bytes() as isize - before as isize
}

impl Flow {
    /// Bytes that it holds outside the table.
    pub(super) fn heap_bytes(&self) -> usize {
        self.exchange.heap_bytes() + self.attached_bytes() + self.letters.heap_bytes()
    }

    /// Bytes that tunnels and session take.
    pub(super) fn attached_bytes(&self) -> usize {
        self.attached.as_ref().map_or(0, |attached| attached.heap_bytes())
    }

    /// Whether its datagrams so far are few enough to look at the next one for its protocol.
    #[inline]
    fn is_beginning(&self) -> bool {
        let TransportState::Datagrams(payload) = &self.exchange else { return false };
        let sent = payload.iter().filter_map(|sent| sent.bytes());
        sent.fold(0_i64, i64::saturating_add) <= MAX_BEGINNING
    }

    /// Lets go of a protocol that the last message contradicted. Zeek removes an analyser when the packet
    /// after the one that it failed on comes. Until then its time-out holds, so that the last packet of
    /// a flow changes nothing. Where each message stands alone, this one may be of the protocol again.
    fn forget_protocol(&mut self) {
        if let Some(protocol) = self.protocol {
            self.contradicted = !protocol.protocol().is_datagram_alone();
            self.protocol = Some(protocol).filter(|id| id.protocol().is_known_by_port());
        }
    }

    /// Counts the payload of a datagram.
    #[inline]
    const fn count_payload(&mut self, side: Side, len: i64) {
        if let TransportState::Datagrams(payload) = &mut self.exchange {
            payload[side as usize].count(len);
        }
    }
}

impl TransportState {
    /// Bytes that it holds outside itself.
    #[inline]
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Connection(tcp) => size_of::<TcpConnection>() + tcp.heap_bytes(),
            Self::Held(held) => held.heap_bytes(),
            Self::Datagrams(_) | Self::Unopened | Self::Opening(_) => 0,
        }
    }
}

/// Payload of a flow of datagrams, in bytes, behind which its protocol is not looked for any more
/// (`dpd_buffer_size`).
const MAX_BEGINNING: i64 = 1024;

/// Looks at the header of a message of the protocol that the port hints at. The first one tells who
/// asks: an answer that comes first is one whose question was missed.
fn note_sender(flow: &mut Flow, protocol: ProtocolId, payload: &[u8], side: Side) {
    let Some(sender) = protocol.protocol().sender(hinting_port(flow, protocol), payload) else {
        return;
    };
    // Multicast announcements answer nobody (RFC 6762, section 8.3).
    if sender == Role::Responder
        && !flow.spoken
        && flow.originator == side
        && !flow.ends().1.address.to_ip().is_multicast()
    {
        flow.flip();
    }
    flow.spoken = true;
}

/// The port by which messages of a protocol differ: the responder's, but the originator's where only that one is known
/// for the protocol, as behind an answer that came first from another port.
fn hinting_port(flow: &Flow, protocol: ProtocolId) -> u16 {
    let (originator, responder) = flow.ends();
    let is_known = |port| protocol.protocol().udp_ports().contains(&port);
    if !is_known(responder.port) && is_known(originator.port) {
        originator.port
    } else {
        responder.port
    }
}

/// Whether people type at the other end, by the ports of an established connection.
pub(super) fn is_interactive(flow: &Flow) -> bool {
    let (originator, responder) = flow.ends();
    let silent = flow
        .tcp()
        .is_some_and(|tcp| tcp.ends[tcp::segment::ORIGINATOR].state == tcp::State::Inactive);
    let likely = |port| roles::is_likely_server(key::TCP, port);
    let port = if silent && !likely(responder.port) && likely(originator.port) {
        originator.port
    } else {
        responder.port
    };
    roles::is_interactive(port)
}
