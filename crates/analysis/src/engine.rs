//! The engine: packets in, records out, with time as an argument.

use netsniff_packet::{Batch, Loss, Packet, Timestamp};

use crate::correlator::{Correlator, Fact};
use crate::depth::{Depth, PacketsByDepth};
use crate::flow::tracker::{FINISH_STEPS, FlowTracker};
use crate::flow::wheel::{TICK_NANOS, tick_of};
use crate::ingress::Ingress;
use crate::limits::Limits;
use crate::options::Options;
use crate::record::{Observer, Record, SortKey};
use crate::unit::Units;

/// All of the analysis in one: [`Ingress`], one [`FlowTracker`], and a [`Correlator`].
///
/// Call the doors in any order, [`Self::finish`] last. The same packets give the same records,
/// however they are grouped into calls.
#[derive(Debug)]
pub struct Engine {
    ingress: Ingress,
    tracker: FlowTracker,
    units: Units,
    correlator: Correlator,
    /// Facts that wait until nothing earlier can come.
    facts: Vec<(SortKey, Fact)>,
    /// A packet that is far ahead, until the next one tells whether it is so alone, and losses behind it.
    held: Batch,
}

/// Datagrams that are collected before their flows are looked for.
const GROUP: usize = 256;

impl Engine {
    /// An engine that has seen nothing. `seed` protects its tables from senders who aim at them,
    /// and changes no record.
    #[must_use]
    pub fn new(limits: Limits, options: Options, seed: u64) -> Self {
        Self {
            ingress: Ingress::new(limits, options.clone()),
            tracker: FlowTracker::new(limits, options, seed),
            units: Units::default(),
            correlator: Correlator::new(&limits),
            facts: Vec::new(),
            held: Batch::default(),
        }
    }

    /// Takes a packet, after ending what its time ends.
    pub fn packet<O: Observer>(&mut self, packet: &Packet<'_>, observer: &mut O) {
        self.sift(observer, |engine, sieve| {
            engine.take_held(Some(packet.timestamp), sieve);
            if engine.holds(packet) {
                return;
            }
            let all = 0..packet.data.len();
            let _ = engine.ingress.packet(packet, all, &mut engine.units, sieve);
            engine.flush(packet.data, sieve);
            engine.tracker.advance(engine.ingress.now(), sieve);
        });
    }

    /// Takes the packets of a batch in order: the same as one by one, but faster.
    pub fn batch<O: Observer>(&mut self, batch: &Batch, observer: &mut O) {
        self.sift(observer, |engine, sieve| engine.take_batch(batch, sieve));
    }

    fn take_batch<O: Observer>(&mut self, batch: &Batch, observer: &mut O) {
        if let Some(first) = batch.packets.first() {
            self.take_held(Some(first.timestamp), observer);
        }
        let mut losses = batch.losses.iter().peekable();
        for (at, record) in (0..).zip(&batch.packets) {
            while let Some((_, loss)) = losses.next_if(|(before, _)| *before <= at) {
                self.flush(&batch.data, observer);
                self.take_loss(loss, observer);
            }
            let packet = batch.packet(record);
            if self.ingress.is_ahead(packet.timestamp) {
                match batch.packets.get(at as usize + 1) {
                    Some(next) => self.ingress.foresee(Some(next.timestamp)),
                    None if self.holds(&packet) => continue,
                    None => {}
                }
            }
            let tick = tick_of(self.ingress.now());
            let _ = self.ingress.packet(&packet, record.range(), &mut self.units, observer);
            let is_next_tick = tick_of(self.ingress.now()) != tick;
            if is_next_tick || self.units.as_slice().len() >= GROUP {
                self.flush(&batch.data, observer);
            }
            if is_next_tick {
                // As often as without batches, since flows that are over take room from others.
                self.tracker.advance(self.ingress.now(), observer);
            }
        }
        self.flush(&batch.data, observer);
        for (_, loss) in losses {
            if self.held.packets.is_empty() {
                self.take_loss(loss, observer);
            } else {
                self.held.push_loss(*loss);
            }
        }
        self.tracker.advance(self.ingress.now(), observer);
    }

    /// Whether a packet was put aside until the next one is known.
    fn holds(&mut self, packet: &Packet<'_>) -> bool {
        self.ingress.is_ahead(packet.timestamp) && self.held.push(packet)
    }

    /// Takes the packet that was put aside, if one was; `next` is the stamp of the one behind it.
    fn take_held<O: Observer>(&mut self, next: Option<Timestamp>, observer: &mut O) {
        if self.held.packets.is_empty() {
            return;
        }
        let mut held = core::mem::take(&mut self.held);
        for record in &held.packets {
            self.ingress.foresee(next);
            let packet = held.packet(record);
            let _ = self.ingress.packet(&packet, record.range(), &mut self.units, observer);
        }
        self.flush(&held.data, observer);
        held.losses.iter().for_each(|(_, loss)| self.take_loss(loss, observer));
        self.tracker.advance(self.ingress.now(), observer);
        held.clear();
        self.held = held;
    }

    /// Ends what the time ends, in the absence of packets.
    pub fn advance<O: Observer>(&mut self, now: Timestamp, observer: &mut O) {
        self.sift(observer, |engine, sieve| {
            engine.take_held(None, sieve);
            engine.ingress.advance(now, sieve);
            engine.tracker.advance(engine.ingress.now(), sieve);
        });
    }

    /// Notes that the capture lost packets here: flows that are alive now, and those that go on,
    /// are touched by it.
    pub fn loss<O: Observer>(&mut self, loss: &Loss, observer: &mut O) {
        self.sift(observer, |engine, sieve| {
            engine.take_held(None, sieve);
            engine.take_loss(loss, sieve);
        });
    }

    fn take_loss<O: Observer>(&mut self, loss: &Loss, observer: &mut O) {
        self.ingress.loss(loss, observer);
        self.tracker.loss(self.ingress.now(), observer);
    }

    /// How deep flows are analysed that begin from now on. Those in progress: as
    /// [`FlowTracker::set_depth`] tells.
    pub fn set_depth(&mut self, depth: Depth) {
        self.ingress.set_depth(depth);
        self.tracker.set_depth(depth);
    }

    /// The packets that were analysed so far, all whose headers were read to the end, by depth.
    #[must_use]
    pub fn packets_by_depth(&self) -> PacketsByDepth {
        self.ingress.statistics().without_flow.with(&self.tracker.statistics().packets)
    }

    /// Ends every flow.
    pub fn finish<O: Observer>(&mut self, observer: &mut O) {
        self.sift(observer, |engine, sieve| {
            engine.take_held(None, sieve);
            engine.ingress.finish(sieve);
            let now = engine.ingress.now();
            engine.tracker.begin_finish(now, sieve);
            for step in 0..FINISH_STEPS {
                engine.tracker.finish_step(step, now, sieve);
            }
        });
        self.join(Timestamp::MAX, observer);
        self.correlator.finish(self.ingress.now(), observer);
    }

    /// The half before the flows.
    #[must_use]
    pub const fn ingress(&self) -> &Ingress {
        &self.ingress
    }

    /// The flows.
    #[must_use]
    pub const fn tracker(&self) -> &FlowTracker {
        &self.tracker
    }

    fn flush<O: Observer>(&mut self, bytes: &[u8], observer: &mut O) {
        for hole in self.units.holes() {
            // Losses come by their own door; only the begin stands here, before everything.
            self.tracker.hole(hole, observer);
        }
        self.tracker.units(self.units.as_slice().iter(), bytes, observer);
        self.units.clear();
    }

    /// Lets `work` observe through a sieve, and joins the facts that are complete then.
    fn sift<O: Observer>(
        &mut self,
        observer: &mut O,
        work: impl FnOnce(&mut Self, &mut Sieve<'_, O>),
    ) {
        let facts = core::mem::take(&mut self.facts);
        let mut sieve = Sieve { observer, facts };
        work(self, &mut sieve);
        self.facts = sieve.facts;
        let now = self.ingress.now().nanos();
        // Timers are noticed by their ticks: what belongs before this one has all come.
        let watermark = Timestamp::from_nanos(now.saturating_sub(now.rem_euclid(TICK_NANOS)));
        self.join(watermark, observer);
    }

    /// Joins the facts that belong before `watermark`.
    fn join<O: Observer>(&mut self, watermark: Timestamp, observer: &mut O) {
        self.facts.sort_by_key(|(key, _)| *key);
        let count = self.facts.partition_point(|(key, _)| key.time < watermark);
        for (key, fact) in self.facts.drain(..count) {
            self.correlator.fact(&key, fact, observer);
        }
    }
}

/// Lets records through to an observer and keeps facts.
struct Sieve<'a, O> {
    observer: &'a mut O,
    facts: Vec<(SortKey, Fact)>,
}

impl<O: Observer> Observer for Sieve<'_, O> {
    #[inline]
    fn record<R: Record>(&mut self, key: &SortKey, record: &R) {
        self.observer.record(key, record);
    }

    fn fact(&mut self, key: &SortKey, fact: Fact) {
        self.facts.push((*key, fact));
    }
}
