//! The analysis of one ring's packets.

use std::sync::Arc;
use std::time::{Duration, Instant};

use netsniff_analysis::engine::decoding::Intake;
use netsniff_analysis::flow::flow_events::FlowEvent;
use netsniff_analysis::flow::report::statistics::FlowStatistics;
use netsniff_analysis::ingress::Unparsed;
use netsniff_analysis::ingress::statistics::PacketStatistics;
use netsniff_analysis::reassembly::stream::GapCause;
use netsniff_analysis::rows::{Collector, TakeComplete};
use netsniff_analysis::{Engine, SortKey};
use netsniff_capture::counters::Occupancy;
use netsniff_output::{HandedOver, RowBuffer, RowProducer, RowStyle};
use netsniff_packet::{Loss, Packet, PacketRecord, Stage, Timestamp};

use super::books::{HeldBehindHoles, RingReport};
use super::pace::Pace;
use super::reorder::PacketSlice;
use super::ring::{Backpressure, Consumer};
use super::splits::SplitFlowDetector;
use crate::files::Settings;
use crate::shedding::Shedding;

/// How far the analysis waits where what gets the packets, too, stands still: less than what makes it shed.
const STALL: Backpressure = Backpressure { time: Duration::from_secs(1), percent: 40 };

/// How far it waits for the thread that writes the logs, whose queue holds the rows of seconds and is nearly full.
/// Nothing else is left to be done then, and a ring so full is emptied before anything is shed.
const NO_ROOM_FOR_ROWS: Backpressure = Backpressure { time: Duration::from_secs(10), percent: 40 };

/// Bytes that may be decoded of compressed bodies before the ring is looked at again, which takes less than
/// half a second. A block of honest traffic has a fifth of it at most.
const DECODED_AT_A_TURN: u64 = 32 << 20;

/// Gets a packet that was not understood, with the reason.
pub type TakeUnparsed = Box<dyn FnMut(&Packet<'_>, &Unparsed) + Send>;

/// Hands those packets on that were not understood.
struct Odd(TakeUnparsed);

impl Intake for Odd {
    fn unparsed(&mut self, packet: &Packet<'_>, why: &Unparsed) {
        (self.0)(packet, why);
    }
}

/// Hands rows over to the thread that writes them.
struct HandOver {
    complete: RowBuffer,
    /// `None` once nothing more is told.
    writer: Option<RowProducer>,
    /// The engine time at the end, once it has come: what is still to be told belongs there.
    end: Timestamp,
    /// Up to where rows are complete.
    watermark: Timestamp,
    /// Rows that found no room.
    refused: u64,
}

impl HandOver {
    /// Says up to where rows are complete, also where there is nothing to hand over: rows of other rings may
    /// wait for this.
    fn settle(&mut self) {
        self.complete.clear();
        if let Some(writer) = &mut self.writer {
            let _ = writer.hand_over(self.watermark, &mut self.complete);
        }
    }
}

impl TakeComplete<RowStyle> for HandOver {
    fn take_complete(&mut self, waiting: &mut RowBuffer, watermark: SortKey) {
        waiting.take_before(watermark, &mut self.complete);
        self.watermark = watermark.time.min(self.end);
        let (Some(writer), false) = (&mut self.writer, self.complete.is_empty()) else { return };
        if let HandedOver::Refused(rows) = writer.hand_over(self.watermark, &mut self.complete) {
            self.refused += rows;
        }
    }
}

/// Decodes packets, follows their flows, and hands over what is told of them.
pub struct Analyser {
    engine: Engine,
    odd: Odd,
    /// Gets the packets, too.
    also: Option<Box<dyn Consumer>>,
    rows: Collector<RowStyle, HandOver>,
    /// Chooses the depth by how full the ring is; `None` where it stays.
    shedding: Option<Shedding>,
    /// Counts the flows that another ring has, too, where somebody can, with the number of this ring.
    splits: Option<(Arc<SplitFlowDetector>, usize)>,
    turns: Vec<FlowEvent>,
    pace: Pace,
    analysed: u64,
    /// Packets that were left in the ring at the stop, and for which there was no time.
    refused: u64,
    /// Only what is in the ring still comes, and somebody waits for that.
    is_stopping: bool,
}

impl Analyser {
    /// Nothing seen yet. `also` gets all packets before they are analysed. With `sheds`, new flows get less
    /// depth while the ring fills up.
    #[must_use]
    pub fn new(
        settings: &Settings,
        unparsed: TakeUnparsed,
        also: Option<Box<dyn Consumer>>,
        rows: RowProducer,
        sheds: bool,
    ) -> Self {
        let Settings { limits, options, seed, .. } = settings;
        let waiting = settings.rows();
        let (complete, end) = (waiting.same(), Timestamp::MAX);
        Self {
            engine: Engine::new(*limits, options.clone(), *seed),
            odd: Odd(unparsed),
            also,
            rows: Collector::new(
                waiting,
                HandOver {
                    complete,
                    writer: Some(rows),
                    end,
                    watermark: Timestamp::MIN,
                    refused: 0,
                },
            ),
            shedding: sheds
                .then(|| Shedding::new(options.deepest(), netsniff_console::clock::now())),
            splits: None,
            turns: Vec::new(),
            pace: Pace::default(),
            analysed: 0,
            refused: 0,
            is_stopping: false,
        }
    }

    /// Tells which flows begin and end as those of ring number `ring`.
    #[must_use]
    pub fn with_splits(mut self, splits: Arc<SplitFlowDetector>, ring: usize) -> Self {
        if splits.is_possible(ring) {
            self.engine.note_turnover();
        }
        self.splits = Some((splits, ring));
        self
    }

    /// Counts over packets and over flows.
    #[must_use]
    pub fn statistics(&self) -> (PacketStatistics, FlowStatistics) {
        (self.engine.ingress().statistics().clone(), self.engine.tracker().statistics().clone())
    }

    /// Tells which flows began and ended.
    fn compare(&mut self) {
        let Some((splits, ring)) = &self.splits else { return };
        self.engine.swap_turnover(&mut self.turns);
        if !self.turns.is_empty() {
            splits.turn(*ring, &self.turns);
            self.turns.clear();
        }
    }

    /// Counts packets that there was no time for, and tells of them as of a loss.
    fn refuse(&mut self, packets: &[PacketRecord]) {
        let (Some(first), Some(last)) = (packets.first(), packets.last()) else { return };
        self.refused += packets.len() as u64;
        let (before, after) = (Some(first.timestamp), last.timestamp.max(first.timestamp));
        let packets = packets.len() as u64;
        let loss = Loss { before, after, packets, stage: Stage::System };
        self.engine.loss(&loss, &mut self.rows);
        self.compare();
    }
}

impl Consumer for Analyser {
    fn wait_for_room(&mut self) -> Option<Backpressure> {
        if self.rows.taker.writer.as_ref().is_some_and(RowProducer::is_nearly_full) {
            return Some(NO_ROOM_FOR_ROWS);
        }
        self.also.as_mut()?.wait_for_room().and(Some(STALL))
    }

    fn group(&mut self, group: PacketSlice<'_>) {
        if let Some(also) = &mut self.also {
            also.group(group);
        }
        if !self.is_stopping {
            self.engine.allow_decoding(DECODED_AT_A_TURN);
        }
        if let Some(loss) = group.loss {
            self.engine.loss(loss, &mut self.rows);
            self.compare();
        }
        let mut left = group.packets;
        while !left.is_empty() {
            let begin = Instant::now();
            if self.pace.is_over() {
                self.refuse(left);
                return;
            }
            let (slice, behind) = left.split_at(self.pace.slice().min(left.len()));
            left = behind;
            let packets = PacketSlice { packets: slice, ..group }.iter();
            self.engine.round(packets, group.data, &mut self.odd, &mut self.rows);
            self.compare();
            self.analysed += slice.len() as u64;
            self.pace.took(slice.len(), begin.elapsed());
        }
    }

    fn occupied(&mut self, occupancy: Occupancy, now: Timestamp) {
        let Some(shedding) = &mut self.shedding else { return };
        let before = shedding.depth();
        let depth = shedding.observe(occupancy.used.into(), occupancy.capacity.into(), now);
        if depth != before {
            self.engine.set_depth(depth);
        }
    }

    fn idle(&mut self, settled: Timestamp) {
        if let Some(also) = &mut self.also {
            also.idle(settled);
        }
        // Before the first packet there is no time that could go on.
        if self.analysed > 0 {
            self.engine.advance(settled, &mut self.rows);
            self.compare();
            self.rows.taker.settle();
        }
    }

    fn stopping(&mut self) {
        self.is_stopping = true;
        if let Some(also) = &mut self.also {
            also.stopping();
        }
        if let Some(writer) = &self.rows.taker.writer {
            writer.begin_end();
        }
        self.pace.stop();
    }

    fn finish(&mut self) {
        self.stopping();
        if let Some(also) = &mut self.also {
            also.finish();
        }
        let now = self.engine.ingress().now();
        self.rows.taker.end = now;
        self.engine.finish_with(&mut self.odd, &mut self.rows);
        if let Some(writer) = self.rows.taker.writer.take() {
            writer.finish(now);
        }
    }

    fn fill(&self, report: &mut RingReport) {
        let packets = self.engine.ingress().statistics();
        report.analysed = Some(self.analysed);
        report.late = packets.out_of_order;
        report.cut_headers.clone_from(&packets.cut_headers);
        report.refused += self.refused;
        report.refused_rows = self.rows.taker.refused;
        report.flows = Some(self.engine.tracker().open_flows() as u64);
        report.flow_split = self.splits.as_ref().and_then(|(splits, ring)| splits.count(*ring));
        let of_flows = self.engine.tracker().statistics();
        report.by_depth = Some(packets.without_flow.with(&of_flows.packets));
        report.held = Some(HeldBehindHoles {
            bytes: self.engine.tracker().held_bytes() as u64,
            most: Some(of_flows.recent_held_bytes() as u64),
        });
        report.holes_given_up = of_flows.holes.gaps[GapCause::Bound as usize];
        if let Some(shedding) = &self.shedding {
            report.shed = shedding.in_force().skip(1).map(|(_, spells)| spells.times).sum();
            report.shed_nanos = shedding.in_force().skip(1).map(|(_, spells)| spells.nanos).sum();
        }
        report.now = (self.analysed > 0).then(|| self.engine.ingress().now());
        if let Some(also) = &self.also {
            also.fill(report);
        }
    }

    fn reported(&mut self) {
        self.engine.begin_held_peak();
        if let Some(also) = &mut self.also {
            also.reported();
        }
    }
}

#[cfg(test)]
mod tests;
