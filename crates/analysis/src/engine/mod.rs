//! The engine: packets in, records out, with time as an argument.
//!
//! | module | concern |
//! |---|---|
//! | [`decoding`] | the stage before the flows: batches in, rounds of datagrams out |
//! | [`shard`] | the flows of one worker, round by round to the end |
//! | `border` | where one engine may go on for another |
//! | [`pairs`] | engines that share out the pairs of hosts in a part of the input |

mod border;
pub mod decoding;
pub mod pairs;
pub mod shard;

use std::borrow::Cow;

use netsniff_packet::{Batch, Loss, Packet, PacketRecord, Timestamp};

use crate::depth::{Depth, PacketsByDepth};
use crate::engine::decoding::{DecodeStage, Intake};
use crate::engine::shard::{FinishStep, Shard};
use crate::flow::flow_events::FlowEvent;
use crate::flow::tracker::FlowTracker;
use crate::ingress::Ingress;
use crate::limits::Limits;
use crate::options::Options;
use crate::record::Observer;

/// Packets of a round: their datagrams fit a processor's second-level cache.
const ROUND: usize = 512;

/// The analysis of one thread: a [`DecodeStage`] and one [`Shard`].
///
/// Call the doors in any order, [`Self::finish`] last. The same packets give the same records and facts,
/// however they are grouped into calls; [`Output`](crate::rows::Output) joins the facts. With several
/// workers the same parts are driven with queues between.
#[derive(Debug)]
pub struct Engine {
    stage: DecodeStage,
    shard: Shard,
    /// A packet that came alone.
    single: Batch,
}

impl Engine {
    /// An engine that has seen nothing. `seed` protects its tables from senders who aim at them,
    /// and changes no record.
    #[must_use]
    pub fn new(limits: Limits, options: Options, seed: u64) -> Self {
        Self {
            stage: DecodeStage::new(limits, options.clone(), ROUND),
            shard: Shard::new(limits, options, seed),
            single: Batch::default(),
        }
    }

    /// Takes a packet, after ending what its time ends.
    pub fn packet<O: Observer>(&mut self, packet: &Packet<'_>, observer: &mut O) {
        let mut single = core::mem::take(&mut self.single);
        single.clear();
        if single.push(packet) {
            self.batch(&single, observer);
        }
        self.single = single;
    }

    /// Takes the packets of a batch in order: the same as one by one, but faster.
    pub fn batch<O: Observer>(&mut self, batch: &Batch, observer: &mut O) {
        self.batch_with(batch, &mut (), observer);
    }

    /// The same for whoever chooses packets, or wants to know what was not understood.
    pub fn batch_with<I: Intake, O: Observer>(
        &mut self,
        batch: &Batch,
        intake: &mut I,
        observer: &mut O,
    ) {
        let Self { stage, shard, .. } = self;
        stage.batch(
            &Cow::Borrowed(batch),
            Cow::Owned,
            intake,
            observer,
            |stage, batch, observer| {
                end_round(stage, shard, &batch.data, observer);
            },
        );
    }

    /// Takes packets that lie in `bytes` as one round. Their stamps are all believed, as those of this
    /// machine's clock are.
    pub fn round<'p, I: Intake, O: Observer>(
        &mut self,
        packets: impl Iterator<Item = (&'p PacketRecord, Packet<'p>)>,
        bytes: &[u8],
        intake: &mut I,
        observer: &mut O,
    ) {
        for (record, packet) in packets {
            self.stage.packet(&packet, record.range(), intake, observer);
        }
        end_round(&mut self.stage, &mut self.shard, bytes, observer);
    }

    /// Ends what the time ends, in the absence of packets.
    pub fn advance<O: Observer>(&mut self, now: Timestamp, observer: &mut O) {
        self.take_held(None, &mut (), observer);
        self.stage.advance(now, observer);
        end_round(&mut self.stage, &mut self.shard, &[], observer);
    }

    /// Notes that the capture lost packets here: flows that are alive now, and those that go on,
    /// are touched by it.
    pub fn loss<O: Observer>(&mut self, loss: &Loss, observer: &mut O) {
        self.take_held(None, &mut (), observer);
        self.stage.loss(loss, observer);
        end_round(&mut self.stage, &mut self.shard, &[], observer);
    }

    /// Takes the packet that was put aside, if one was; `next` is the stamp of the one behind it, if one follows for now.
    pub fn take_held<I: Intake, O: Observer>(
        &mut self,
        next: Option<Timestamp>,
        intake: &mut I,
        observer: &mut O,
    ) {
        let Self { stage, shard, .. } = self;
        stage.take_held(next, Cow::Owned, intake, observer, &mut |stage, batch, observer| {
            end_round(stage, shard, &batch.data, observer);
        });
    }

    /// Ends every flow that is still open, at the end of the input.
    pub fn finish<O: Observer>(&mut self, observer: &mut O) {
        self.finish_with(&mut (), observer);
    }

    /// The same for whoever wants to know whether the last packet was understood.
    pub fn finish_with<I: Intake, O: Observer>(&mut self, intake: &mut I, observer: &mut O) {
        let Self { stage, shard, .. } = self;
        stage.finish(Cow::Owned, intake, observer, |stage, batch, observer| {
            end_round(stage, shard, &batch.data, observer);
        });
        for step in FinishStep::all(stage.ingress().now()) {
            shard.finish(step, observer);
            observer.complete(step.watermark());
        }
    }

    /// How deep flows are analysed that begin from now on. Those in progress: as
    /// [`FlowTracker::set_depth`] tells.
    pub fn set_depth(&mut self, depth: Depth) {
        self.stage.set_depth(depth);
        self.shard.set_depth(depth);
    }

    /// How many bytes may be decoded of compressed bodies until this is called again.
    pub const fn allow_decoding(&mut self, bytes: u64) {
        self.shard.allow_decoding(bytes);
    }

    /// Notes from now on which flows begin and end.
    pub fn note_turnover(&mut self) {
        self.shard.note_turnover();
    }

    /// Swaps what was noted of them for `empty`.
    pub const fn swap_turnover(&mut self, empty: &mut Vec<FlowEvent>) {
        self.shard.swap_turnover(empty);
    }

    /// Looks for the most bytes behind holes of streams anew: [`FlowTracker::begin_held_peak`].
    pub fn begin_held_peak(&mut self) {
        self.shard.begin_held_peak();
    }

    /// The packets that were analysed so far, all whose headers were read to the end, by depth.
    #[must_use]
    pub fn packets_by_depth(&self) -> PacketsByDepth {
        self.ingress().statistics().without_flow.with(&self.tracker().statistics().packets)
    }

    /// The half before the flows.
    #[must_use]
    pub const fn stage(&self) -> &DecodeStage {
        &self.stage
    }

    /// Decoding, with its counts.
    #[must_use]
    pub const fn ingress(&self) -> &Ingress {
        self.stage.ingress()
    }

    /// The table of open flows.
    #[must_use]
    pub const fn tracker(&self) -> &FlowTracker {
        self.shard.tracker()
    }
}

/// Hands the datagrams of a round, which lie in `bytes`, to their flows.
#[inline]
fn end_round<O: Observer>(
    stage: &mut DecodeStage,
    shard: &mut Shard,
    bytes: &[u8],
    observer: &mut O,
) {
    let watermark = stage.watermark();
    let units = stage.units();
    shard.round(units.as_slice().iter().enumerate(), units.holes(), bytes, watermark, observer);
    stage.clear_units();
    observer.complete(watermark);
}
