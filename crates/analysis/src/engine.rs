//! The engine: packets in, records out, with time as an argument.

use netsniff_packet::{Batch, Loss, Packet, Timestamp};

use crate::flow::tracker::{FINISH_STEPS, FlowTracker};
use crate::flow::wheel::tick_of;
use crate::ingress::Ingress;
use crate::limits::Limits;
use crate::options::Options;
use crate::record::Observer;
use crate::unit::Units;

/// Both halves of the analysis in one: [`Ingress`] and one [`FlowTracker`].
///
/// Call the doors in any order, [`Self::finish`] last. The same packets give the same records,
/// however they are grouped into calls.
#[derive(Debug)]
pub struct Engine {
    ingress: Ingress,
    tracker: FlowTracker,
    units: Units,
}

/// Datagrams that are collected before their flows are looked for.
const GROUP: usize = 256;

impl Engine {
    /// An engine that has seen nothing. `seed` protects its tables from senders who aim at them,
    /// and changes no record.
    #[must_use]
    pub fn new(limits: Limits, options: Options, seed: u64) -> Self {
        Self {
            ingress: Ingress::new(limits, options),
            tracker: FlowTracker::new(limits, options, seed),
            units: Units::default(),
        }
    }

    /// Takes a packet, after ending what its time ends.
    pub fn packet<O: Observer>(&mut self, packet: &Packet<'_>, observer: &mut O) {
        let all = 0..packet.data.len();
        let _ = self.ingress.packet(packet, all, &mut self.units, observer);
        self.flush(packet.data, observer);
        self.tracker.advance(self.ingress.now(), observer);
    }

    /// Takes the packets of a batch in order: the same as one by one, but faster.
    pub fn batch<O: Observer>(&mut self, batch: &Batch, observer: &mut O) {
        let mut losses = batch.losses.iter().peekable();
        for (at, record) in (0..).zip(&batch.packets) {
            while let Some((_, loss)) = losses.next_if(|(before, _)| *before <= at) {
                self.flush(&batch.data, observer);
                self.loss(loss, observer);
            }
            let packet = batch.packet(record);
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
        losses.for_each(|(_, loss)| self.loss(loss, observer));
        self.tracker.advance(self.ingress.now(), observer);
    }

    /// Ends what the time ends, in the absence of packets.
    pub fn advance<O: Observer>(&mut self, now: Timestamp, observer: &mut O) {
        self.ingress.advance(now, observer);
        self.tracker.advance(self.ingress.now(), observer);
    }

    /// Notes that the capture lost packets here: flows that are alive now, and those that go on,
    /// are touched by it.
    pub fn loss<O: Observer>(&mut self, loss: &Loss, observer: &mut O) {
        self.ingress.loss(loss, observer);
        self.tracker.loss(self.ingress.now(), observer);
    }

    /// Ends every flow.
    pub fn finish<O: Observer>(&mut self, observer: &mut O) {
        self.ingress.finish(observer);
        let now = self.ingress.now();
        self.tracker.begin_finish(now, observer);
        for step in 0..FINISH_STEPS {
            self.tracker.finish_step(step, now, observer);
        }
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
}
