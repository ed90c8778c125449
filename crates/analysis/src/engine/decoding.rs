//! The stage before the flows: packets in, rounds of datagrams out.

use core::ops::{Deref, Range};

use netsniff_packet::{Batch, Loss, Packet, PacketRecord, Timestamp};

use crate::depth::Depth;
use crate::flow::table::wheel::{TICK_NANOS, tick_of};
use crate::ingress::boundary::Boundary;
use crate::ingress::{Ingress, Unparsed};
use crate::limits::Limits;
use crate::options::Options;
use crate::record::{Observer, SortKey};
use crate::unit::{DatagramBatch, HoleKind};

/// Whoever wants to choose packets, and to know which were not understood.
pub trait Intake {
    /// Whether a packet is to be analysed.
    fn wants(&mut self, _packet: &Packet<'_>) -> bool {
        true
    }

    /// Gets a packet that was not understood, or not all of it, with the reason.
    fn unparsed(&mut self, _packet: &Packet<'_>, _why: &Unparsed) {}
}

/// Wants everything, and nothing else.
impl Intake for () {}

/// Decodes packets, and collects their datagrams until they are handed on.
#[derive(Debug)]
pub struct DecodeStage {
    ingress: Ingress,
    units: DatagramBatch,
    /// Packets that make a round.
    round: usize,
    /// A packet that is far ahead, until the next one tells whether it is so alone, and losses behind it.
    held: Batch,
    /// Packets that nobody wanted.
    refused: u64,
    /// The tick that engine time lies in, and the packet up to which records were complete in it.
    settled: (i64, u64),
}

/// Packets within one tick behind which records do not wait for its end. Without them the records of a
/// capture whose stamps are all equal would wait in memory up to its end.
const CROWD: u64 = 32_768;

impl DecodeStage {
    /// Nothing decoded yet. Batches are handed on in rounds of `round` packets.
    #[must_use]
    pub fn new(limits: Limits, options: Options, round: usize) -> Self {
        Self {
            ingress: Ingress::new(limits, options),
            units: DatagramBatch::default(),
            round: round.max(1),
            held: Batch::default(),
            refused: 0,
            settled: (i64::MIN, 0),
        }
    }

    /// Takes the packets of a batch in order, and calls `hand_on` at the end of each round, with the
    /// batch that its datagrams lie in. A packet that was put aside before lies in a batch of its own,
    /// which `own` makes one that can be handed on.
    pub fn batch<B: Deref<Target = Batch>, I: Intake, O: Observer>(
        &mut self,
        batch: &B,
        own: impl Fn(Batch) -> B,
        intake: &mut I,
        observer: &mut O,
        mut hand_on: impl FnMut(&mut Self, &B, &mut O),
    ) {
        batch.continued.iter().for_each(|&of| self.ingress.continue_interface(of));
        if let Some(first) = batch.packets.first() {
            self.take_held(Some(first.timestamp), own, intake, observer, &mut hand_on);
        }
        let mut losses = batch.losses.iter().peekable();
        let mut next_loss = losses.peek().map_or(u32::MAX, |(before, _)| *before);
        let mut at = 0;
        for records in batch.packets.chunks(self.round) {
            for record in records {
                while next_loss <= at {
                    losses.next().into_iter().for_each(|(_, loss)| self.loss(loss, observer));
                    next_loss = losses.peek().map_or(u32::MAX, |(before, _)| *before);
                }
                at += 1;
                let next = || batch.packets.get(at as usize);
                self.packet_of(batch, record, next, intake, observer);
            }
            hand_on(self, batch, observer);
        }
        if losses.peek().is_none() {
            return;
        }
        for (_, loss) in losses {
            if self.held.packets.is_empty() {
                self.loss(loss, observer);
            } else {
                self.held.push_loss(*loss);
            }
        }
        hand_on(self, batch, observer);
    }

    #[inline]
    fn packet_of<'b, I: Intake, O: Observer>(
        &mut self,
        batch: &'b Batch,
        record: &PacketRecord,
        next: impl FnOnce() -> Option<&'b PacketRecord>,
        intake: &mut I,
        observer: &mut O,
    ) {
        let packet = batch.packet(record);
        if !intake.wants(&packet) {
            self.refused += 1;
            return;
        }
        if self.ingress.is_ahead(packet.timestamp) {
            match next() {
                Some(next) => self.ingress.foresee(Some(next.timestamp)),
                None if self.held.push(&packet) => return,
                None => self.ingress.foresee(None),
            }
        }
        self.packet(&packet, record.range(), intake, observer);
    }

    /// Takes the packet that was put aside, if one was; `next` is the stamp of the one behind it.
    pub fn take_held<B: Deref<Target = Batch>, I: Intake, O: Observer>(
        &mut self,
        next: Option<Timestamp>,
        own: impl Fn(Batch) -> B,
        intake: &mut I,
        observer: &mut O,
        hand_on: &mut impl FnMut(&mut Self, &B, &mut O),
    ) {
        if self.held.packets.is_empty() {
            return;
        }
        let held = own(core::mem::take(&mut self.held));
        for record in &held.packets {
            self.ingress.foresee(next);
            self.packet(&held.packet(record), record.range(), intake, observer);
        }
        held.losses.iter().for_each(|(_, loss)| self.loss(loss, observer));
        hand_on(self, &held, observer);
    }

    /// Takes a packet whose stamp is believed; `bytes` is where it lies among the bytes that go on with
    /// its round.
    #[inline]
    pub fn packet<I: Intake, O: Observer>(
        &mut self,
        packet: &Packet<'_>,
        bytes: Range<usize>,
        intake: &mut I,
        observer: &mut O,
    ) {
        if let Some(why) = self.ingress.packet(packet, bytes, &mut self.units, observer) {
            intake.unparsed(packet, &why);
        }
    }

    /// Notes that the capture lost packets here: flows that are alive now, and those that go on, are
    /// touched by it.
    pub fn loss<O: Observer>(&mut self, loss: &Loss, observer: &mut O) {
        self.ingress.loss(loss, observer);
        self.units.note_hole(self.ingress.now(), HoleKind::Loss);
    }

    /// Ends what ends until `now`, in the absence of packets.
    pub fn advance<O: Observer>(&mut self, now: Timestamp, observer: &mut O) {
        self.ingress.advance(now, observer);
        self.ingress.end_intervals(&mut self.units, observer);
    }

    /// Closes what is open once everything was read. What was put aside is handed on before.
    pub fn finish<B: Deref<Target = Batch>, I: Intake, O: Observer>(
        &mut self,
        own: impl Fn(Batch) -> B,
        intake: &mut I,
        observer: &mut O,
        mut hand_on: impl FnMut(&mut Self, &B, &mut O),
    ) {
        self.take_held(None, own, intake, observer, &mut hand_on);
        self.ingress.finish(observer);
    }

    /// Counts packets that belong to no flow at this depth from now on.
    pub fn set_depth(&mut self, depth: Depth) {
        self.ingress.set_depth(depth);
    }

    /// Up to where records are complete behind the datagrams that were decoded so far: whatever comes
    /// later belongs at or behind it. Timers are noticed by their ticks, so that it is the begin of the
    /// tick at hand; where too many packets lie in that, all timers are settled up to the last of them.
    pub fn watermark(&mut self) -> SortKey {
        let (now, ordinal) = (self.ingress.now(), self.ingress.ordinal());
        let tick = tick_of(now);
        if self.settled.0 != tick {
            self.settled = (tick, ordinal);
        }
        if ordinal - self.settled.1 >= CROWD {
            self.settled.1 = ordinal;
            return SortKey::behind_packet(now, ordinal);
        }
        let begin = now.nanos().saturating_sub(now.nanos().rem_euclid(TICK_NANOS));
        SortKey::first_at(Timestamp::from_nanos(begin))
    }

    /// The datagrams of the round, and the holes between them.
    #[must_use]
    pub const fn units(&self) -> &DatagramBatch {
        &self.units
    }

    /// Begins another round, in the memory of `empty`. Returns what was collected for this one.
    pub fn take_units(&mut self, empty: DatagramBatch) -> DatagramBatch {
        core::mem::replace(&mut self.units, empty)
    }

    /// Forgets the units of the last round, and keeps their memory.
    pub fn clear_units(&mut self) {
        self.units.clear();
    }

    /// Packets that [`Intake::wants`] refused.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Numbers packets as those of a part of the input: [`Engine::of_part`](super::Engine::of_part).
    pub(super) fn begin_part(&mut self, part: u32) {
        self.ingress.begin_part(part);
    }

    /// Ends what ends until `first`, the stamp of the packet that comes next.
    pub(super) fn settle_before<O: Observer>(&mut self, first: Timestamp, observer: &mut O) {
        self.ingress.settle_before(first, observer);
    }

    /// Whether nothing that is remembered matters to packets from `first` on.
    pub(super) fn is_over_before(&self, first: Timestamp) -> bool {
        self.held.packets.is_empty() && self.ingress.is_over_before(first)
    }

    /// Whether decoding tells of packets from `first` on what it did if none had come before, but for tunnels that are known.
    pub(super) fn is_new_to_others(&self, first: Timestamp) -> bool {
        self.held.packets.is_empty() && self.ingress.is_new_to_others(first)
    }

    /// Whether a packet was put aside.
    pub(super) const fn has_held(&self) -> bool {
        !self.held.packets.is_empty()
    }

    /// Notes from now on which pairs of hosts there are, up to `most`.
    pub(super) fn note_boundary(&mut self, most: usize) {
        self.ingress.note_boundary(most);
    }

    /// The pairs that were noted, if they were.
    pub(super) fn take_boundary(&mut self) -> Option<Boundary> {
        self.ingress.take_boundary()
    }

    /// Decoding, with its counts.
    #[must_use]
    pub const fn ingress(&self) -> &Ingress {
        &self.ingress
    }
}
