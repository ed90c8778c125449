//! What is said in flows, on its way to sessions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use netsniff_packet::decode::TcpFlags;
use netsniff_packet::{Address, Timestamp};

use super::update::is_interactive;
use super::{Arrival, FlowTracker};
use crate::file::{Bodies, HashKinds};
use crate::flow::attached::{AppLayer, Attached, DatagramTalk};
use crate::flow::expectations::{Expectations, Route};
use crate::flow::history::UNKNOWN;
use crate::flow::streams::{SegmentPayload, StreamContext, StreamSegment, Streams};
use crate::flow::tcp::connection::SegmentOutcome;
use crate::flow::tcp::{Segment, TcpConnection};
use crate::flow::{Flow, TransportState};
use crate::key::Endpoint;
use crate::key::Side;
use crate::limits::Limits;
use crate::options::{Options, Urgent};
use crate::protocol::{
    Conversation, Datagram, DatagramVerdict, Findings, MAX_ODDITIES, ProtocolId, ProtocolSet, Role,
    Session, SessionContext,
};
use crate::reassembly::fingerprint::Fingerprints;
use crate::reassembly::piece::Overlap;
use crate::reassembly::stream::{HoleEndings, ReassemblyContext};
use crate::record::Connection;

/// What the conversations of all flows share.
#[derive(Debug)]
pub(super) struct AppContext {
    /// The protocols that are looked for.
    pub(super) wanted: ProtocolSet,
    overlap: Overlap,
    urgent: Urgent,
    hashes: HashKinds,
    bodies: Bodies,
    /// The key of fingerprints of what was read.
    keys: Fingerprints,
    /// Bytes that streams hold behind holes.
    held_bytes: usize,
    /// Connections that others announced.
    pub(super) expectations: Expectations,
}

impl AppContext {
    pub(super) fn new(options: &Options, seed: u64) -> Self {
        let Options { protocols, overlap, urgent, hashes, bodies, .. } = *options;
        Self {
            wanted: protocols,
            overlap,
            urgent,
            hashes,
            bodies,
            keys: Fingerprints::new(seed),
            held_bytes: 0,
            expectations: Expectations::default(),
        }
    }

    /// What sessions of a flow are told.
    fn context<'a>(&self, flow: &Flow, limits: &'a Limits) -> SessionContext<'a> {
        SessionContext {
            limits,
            name: flow.name_bits(),
            port: flow.ends().1.port,
            hashes: self.hashes,
            bodies: self.bodies,
            is_midstream: flow.tcp().is_some_and(TcpConnection::is_partial),
            is_multicast: flow.ends().1.address.to_ip().is_multicast(),
            crossing_port: flow
                .tcp()
                .is_some_and(TcpConnection::is_crossed)
                .then(|| flow.ends().0.port),
        }
    }

    /// Bytes of memory that wait behind holes of streams.
    pub(super) const fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Goes on with what conversations between other hosts shared.
    pub(super) fn go_on_for(&mut self, other: Self) {
        self.held_bytes += other.held_bytes;
        self.expectations.go_on_for(other.expectations);
    }

    /// Gives back bytes that streams held.
    pub(super) const fn give_back(&mut self, held: usize) {
        self.held_bytes = self.held_bytes.saturating_sub(held);
    }

    /// Gives a TCP connection that begins `now` the conversation that was announced for it.
    #[inline]
    pub(super) fn meet(&mut self, flow: &mut Flow, now: Timestamp, limits: &Limits) {
        if !self.expectations.is_empty() {
            self.meet_announced(flow, now, limits);
        }
    }

    fn meet_announced(&mut self, flow: &mut Flow, now: Timestamp, limits: &Limits) {
        let (originator, responder) = flow.ends();
        let route = Route { from: originator.address, to: responder };
        let Some(announced) = self.expectations.take(&route, now) else { return };
        let context = self.context(flow, limits);
        let conversation = Conversation::announced(announced, self.wanted, &context);
        let mut streams = Box::new(Streams::with(conversation));
        streams.recount();
        flow.attached.get_or_insert_default().talk = AppLayer::Streams(streams);
        flow.spoken = true;
    }

    /// Awaits what sessions of a connection announced.
    pub(super) fn expect(
        &mut self,
        found: &mut Findings,
        connection: &Connection,
        now: Timestamp,
        limits: &Limits,
    ) {
        let mut last_to_third = None;
        let mut announcements = core::mem::take(&mut found.expected);
        for expected in announcements.drain(..) {
            let (from, peer) = match expected.from {
                Role::Originator => (connection.originator, connection.responder),
                Role::Responder => (connection.responder, connection.originator),
            };
            let announced = ProtocolId::named(expected.announced.protocol);
            if !announced.is_some_and(|id| self.wanted.has(id)) {
                continue;
            }
            let is_third = |to: &Address| *to != peer.address && *to != from.address;
            if expected.to.as_ref().is_some_and(is_third) {
                // Whoever does not know which side will begin announces both.
                let errand = Arc::as_ptr(&expected.announced.errand);
                if last_to_third.replace(errand) != Some(errand) {
                    found.odd_announcement("expected_connection_to_third_host");
                }
            }
            let is_pair = expected.or_peer || expected.to.is_none_or(|to| to == peer.address);
            if !is_pair {
                continue;
            }
            let to = Endpoint { address: peer.address, port: expected.port };
            let route = Route { from: from.address, to };
            if !self.expectations.add(route, expected.announced, now, limits) {
                found.odd_announcement("too_many_expected_connections");
            }
        }
        found.expected = announcements;
    }

    /// What streams need, with the `context` of their flow.
    fn around<'a, 'b>(
        &'a mut self,
        context: SessionContext<'b>,
        endings: &'a mut HoleEndings,
        found: &'a mut Findings,
    ) -> StreamContext<'a, 'b>
    where
        'b: 'a,
    {
        let Self { overlap, keys, held_bytes, .. } = self;
        let streams = ReassemblyContext {
            limits: context.limits,
            overlap: *overlap,
            keys,
            held_in_all: held_bytes,
            endings,
        };
        StreamContext { streams, context, found }
    }
}

impl FlowTracker {
    /// Hands a datagram to the session of its flow, which begins with the first one.
    pub(super) fn converse(&mut self, protocol: ProtocolId, datagram: &Datagram<'_>, place: u32) {
        let Some(flow) = self.table.flow_mut(place) else { return };
        // Whatever its session makes known or awaits is of no flow.
        self.has_grown = true;
        let before = flow.attached_bytes();
        let context = self.talking.context(flow, &self.limits);
        let talk = &mut flow.attached.get_or_insert_default().talk;
        if matches!(talk, AppLayer::Silence) {
            let session = protocol.protocol().session(&context);
            *talk = AppLayer::Datagrams(DatagramTalk::new(protocol, session));
        }
        if let AppLayer::Datagrams(said) = talk {
            let (id, session) = (said.id, &mut said.session);
            // Where each stands alone, one that contradicts takes back nothing of what was read before.
            let is_safe = id.protocol().is_datagram_alone() && session.is_confirmed();
            let mut verdict = DatagramVerdict::Fits;
            let is_well = contain(id, session, &mut self.findings, |session, found| {
                verdict = session.datagram(datagram, found);
            });
            said.recount();
            if !is_well {
                *talk = AppLayer::Over;
            }
            match verdict {
                DatagramVerdict::Fits => {}
                DatagramVerdict::Unknown => _ = flow.history().once(UNKNOWN, b'X'),
                DatagramVerdict::Contradicts if is_safe => {}
                DatagramVerdict::Contradicts => {
                    flow.contradicted = true;
                    flow.spoken = true;
                }
            }
        }
        let change = flow.attached_bytes() as isize - before as isize;
        self.note_change(change);
    }

    /// Hands a segment to the streams of its connection, which begin with the first data or its end.
    #[inline]
    pub(super) fn stream(
        &mut self,
        arrival: &Arrival<'_>,
        segment: &Segment<'_>,
        taken: &SegmentOutcome,
        place: u32,
    ) {
        let Some(flow) = self.table.flow_mut(place) else { return };
        // A FIN tells where data ends that may come behind it, and an urgent pointer names a byte of it.
        let tells = segment.tcp.flags.any(TcpFlags::FIN.with(TcpFlags::URG));
        let is_of_interest = flow.spoken || segment.tcp.payload_len > 0 || tells;
        if flow.contradicted || !is_of_interest || arrival.is_same && flow.has_read(segment, taken)
        {
            return;
        }
        self.deliver(arrival, segment, taken, place);
    }

    fn deliver(
        &mut self,
        arrival: &Arrival<'_>,
        segment: &Segment<'_>,
        taken: &SegmentOutcome,
        place: u32,
    ) {
        let Some(flow) = self.table.flow_mut(place) else { return };
        self.has_grown = true;
        let mut change = 0;
        if !flow.spoken {
            let before = flow.attached_bytes();
            flow.spoken = true;
            let streams = Streams::new(self.talking.wanted);
            flow.attached.get_or_insert_default().talk = AppLayer::Streams(Box::new(streams));
            change = flow.attached_bytes() as isize - before as isize;
        }
        let context = self.talking.context(flow, &self.limits);
        let withdrawn = flow.tcp().and_then(TcpConnection::withdrawn);
        let is_doubtful = segment.is_damaged
            || taken.position.is_some()
                && flow.tcp().is_some_and(|tcp| tcp.is_doubtful(segment, taken));
        let Some(attached) = &mut flow.attached else { return };
        let AppLayer::Streams(streams) = &mut attached.talk else { return };
        if taken.is_flipped {
            streams.flip();
        }
        if let Some(withdrawn) = withdrawn {
            streams.withdraw(withdrawn);
        }
        let was_turned = streams.conversation().is_turned();
        let endings = &mut self.statistics.holes;
        let urgent = self.talking.urgent;
        let mut around = self.talking.around(context, endings, &mut self.findings);
        let mut delivery = delivery(arrival, segment, taken, is_doubtful);
        if let Some(offset) = segment.urgent_offset()
            && urgent == Urgent::OutOfBand
        {
            delivery.mark_urgent(offset, taken);
        }
        let is_copy = delivery.payload.is_some_and(|it| streams.has_had(delivery.from, &it));
        streams.segment(&delivery, &mut around);
        self.statistics.note_held(self.talking.held_bytes);
        let is_turned = streams.conversation().is_turned() && !was_turned;
        if streams.conversation().is_over() {
            flow.contradicted = true;
            let held = &mut self.talking.held_bytes;
            *held = held.saturating_sub(streams.held());
            change -= (size_of::<Streams>() + streams.heap_bytes()) as isize;
            attached.services = *streams.conversation().services();
            attached.talk = AppLayer::Over;
        } else if segment.tcp.payload_len > 0 && !is_copy || streams.held() > 0 {
            if self.is_tight {
                change += streams.recount();
            } else if streams.outdate() {
                self.outdated.push(place);
            }
        }
        if is_turned {
            change += flow.turn();
        }
        self.note_change(change);
    }

    /// Ends what is said in the flow at `place`, which is about to end.
    pub(super) fn end_talk(&mut self, place: u32) {
        let Some(flow) = self.table.flow_mut(place) else { return };
        let context = self.talking.context(flow, &self.limits);
        let last = flow.last;
        let mut change = 0;
        let Some(attached) = &mut flow.attached else { return };
        match &mut attached.talk {
            AppLayer::Silence | AppLayer::Over => {}
            AppLayer::Datagrams(DatagramTalk { id, session, .. }) => {
                contain(*id, session, &mut self.findings, |session, found| session.end(found));
            }
            AppLayer::Streams(streams) => {
                let was_turned = streams.conversation().is_turned();
                let endings = &mut self.statistics.holes;
                let mut around = self.talking.around(context, endings, &mut self.findings);
                streams.finish(last, &mut around);
                if streams.conversation().is_turned() && !was_turned {
                    change = flow.turn();
                }
            }
        }
        self.note_change(change);
    }
}

impl Flow {
    /// Whether most packets of a side have right checksums, so that one with a wrong one is not left
    /// to the network card of its sender.
    pub(super) const fn has_mostly_good(&self, side: Side) -> bool {
        self.bad_checksums[side as usize] as u64 * 2 < self.sent[side as usize].packets
    }
}

impl Flow {
    /// Whether a segment adds nothing whose payload is that of the one before: the streams are read to behind it, and wait
    /// for nothing.
    #[cold]
    fn has_read(&self, segment: &Segment<'_>, taken: &SegmentOutcome) -> bool {
        let is_withdrawn = self.tcp().and_then(TcpConnection::withdrawn).is_some();
        let reach =
            taken.position.map(|begin| begin.saturating_add(segment.tcp.payload_len.into()));
        match (self.attached.as_deref(), reach) {
            (Some(Attached { talk: AppLayer::Streams(streams), .. }), Some(reach)) => {
                !taken.is_flipped && !is_withdrawn && streams.is_read_to(taken.from, reach)
            }
            _ => false,
        }
    }

    /// Makes the responder the originator, since what is said shows that it is the client. Returns by how many
    /// bytes the flow has grown.
    #[cold]
    fn turn(&mut self) -> isize {
        let before = self.letters.heap_bytes();
        self.flip();
        if let TransportState::Connection(tcp) = &mut self.exchange {
            tcp.turn();
        }
        if let Some(Attached { talk: AppLayer::Streams(streams), .. }) =
            self.attached.as_deref_mut()
        {
            streams.flip();
        }
        self.interactive = is_interactive(self);
        self.letters.heap_bytes() as isize - before as isize
    }
}

impl StreamSegment<'_> {
    /// Notes the byte that the segment marks as urgent.
    #[cold]
    fn mark_urgent(&mut self, offset: u16, taken: &SegmentOutcome) {
        let Some(position) = taken.position else { return };
        let nothing = SegmentPayload { position, data: &[], missing: 0, urgent: None };
        let payload = self.payload.get_or_insert(nothing);
        payload.urgent = position.checked_add(offset.into());
    }
}

/// What a segment brings for the streams of its connection.
#[inline]
fn delivery<'a>(
    arrival: &Arrival<'a>,
    segment: &Segment<'_>,
    taken: &SegmentOutcome,
    is_doubtful: bool,
) -> StreamSegment<'a> {
    let len = segment.tcp.payload_len;
    let payload = taken.position.filter(|_| len > 0).map(|position| {
        let data = arrival.payload;
        let data = data.get(..len as usize).unwrap_or(data);
        let missing = u64::from(len) - data.len() as u64;
        SegmentPayload { position, data, missing, urgent: None }
    });
    let end = taken.position.filter(|_| segment.tcp.flags.any(TcpFlags::FIN));
    StreamSegment {
        now: arrival.now,
        time: segment.time,
        from: taken.from,
        payload,
        acknowledged: taken.acknowledged,
        end: end.map(|position| position.saturating_add(len.into())),
        is_doubtful,
        is_reset: taken.is_reset,
    }
}

/// Calls a session. One that panics is counted; returns whether it did not.
fn contain(
    id: ProtocolId,
    session: &mut Box<dyn Session>,
    found: &mut Findings,
    call: impl FnOnce(&mut dyn Session, &mut Findings),
) -> bool {
    let result = catch_unwind(AssertUnwindSafe(|| call(&mut **session, &mut *found)));
    found.attribute(id.protocol().analyzer(), &mut { MAX_ODDITIES });
    found.panics += u64::from(result.is_err());
    result.is_ok()
}
