//! The analysis of one ring's packets.

use std::sync::Arc;
use std::time::{Duration, Instant};

use netsniff_analysis::flow::tracker::FINISH_STEPS;
use netsniff_analysis::flow::turnover::Turn;
use netsniff_analysis::ingress::Unparsed;
use netsniff_analysis::ingress::statistics::PacketStatistics;
use netsniff_analysis::statistics::FlowStatistics;
use netsniff_capture::counters::Occupancy;
use netsniff_packet::{Loss, Packet, PacketRecord, Stage, Timestamp};

use super::books::RingReport;
use super::order::Group;
use super::pace::Pace;
use super::ring::{Consumer, Patience};
use super::splits::Splits;
use crate::output::{HandedOver, RowBuffer, RowProducer};
use crate::pipeline::lane::Lane;
use crate::pipeline::run::{Front, Settings};
use crate::pipeline::shedding::Shedding;

/// How far the analysis waits where what gets the packets, too, stands still: less than what makes it shed.
const STALL: Patience = Patience { time: Duration::from_secs(1), percent: 40 };

/// How far it waits for the thread that writes the logs, whose queue holds the rows of seconds and is nearly full.
/// Nothing else is left to be done then, and a ring so full is emptied before anything is shed.
const NO_ROOM_FOR_ROWS: Patience = Patience { time: Duration::from_secs(10), percent: 40 };

/// Bytes that may be decoded of compressed bodies before the ring is looked at again, which takes less than
/// half a second. A block of honest traffic has a fifth of it at most.
const DECODED_AT_A_TURN: u64 = 32 << 20;

/// Gets a packet that was not understood, with the reason.
pub type TakeUnparsed = Box<dyn FnMut(&Packet<'_>, &Unparsed) + Send>;

/// Decodes packets, follows their flows, and hands over what is told of them.
pub struct Analyser {
    front: Front,
    lane: Lane,
    unparsed: TakeUnparsed,
    /// Gets the packets, too.
    also: Option<Box<dyn Consumer>>,
    rows: Option<RowProducer>,
    /// Complete rows of the lane and of the front.
    done: [RowBuffer; 2],
    /// Chooses the depth by how full the ring is; `None` where it stays.
    shedding: Option<Shedding>,
    /// Counts the flows that another ring has, too, where somebody can, with the number of this ring.
    splits: Option<(Arc<Splits>, usize)>,
    turns: Vec<Turn>,
    pace: Pace,
    analysed: u64,
    /// Packets that were left in the ring at the stop, and for which there was no time.
    refused: u64,
    refused_rows: u64,
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
        let Settings { limits, options, seed, format, .. } = settings;
        Self {
            front: Front::new(settings),
            lane: Lane::new(*limits, options.clone(), *seed, *format),
            unparsed,
            also,
            rows: Some(rows),
            done: [RowBuffer::new(*format), RowBuffer::new(*format)],
            shedding: sheds.then(|| Shedding::new(options.deepest(), crate::clock::now())),
            splits: None,
            turns: Vec::new(),
            pace: Pace::default(),
            analysed: 0,
            refused: 0,
            refused_rows: 0,
            is_stopping: false,
        }
    }

    /// Tells which flows begin and end as those of ring number `ring`.
    #[must_use]
    pub fn with_splits(mut self, splits: Arc<Splits>, ring: usize) -> Self {
        if splits.is_possible(ring) {
            self.lane.note_turnover();
        }
        self.splits = Some((splits, ring));
        self
    }

    /// Counts over packets and over flows.
    #[must_use]
    pub fn statistics(&self) -> (PacketStatistics, FlowStatistics) {
        (self.front.ingress.statistics().clone(), self.lane.tracker().statistics().clone())
    }

    /// Hands the datagrams that were decoded to their flows, and complete rows to the writer.
    fn round(&mut self, data: &[u8]) {
        let watermark = self.front.watermark();
        let units = self.front.units.as_slice().iter().enumerate();
        self.lane.units(units, self.front.units.holes(), data, watermark, &mut self.done[0]);
        self.front.units.clear();
        self.front.take_rows(watermark, &mut self.done[1]);
        self.hand_over(watermark);
        self.compare();
    }

    /// Tells which flows began and ended.
    fn compare(&mut self) {
        let Some((splits, ring)) = &self.splits else { return };
        self.lane.swap_turnover(&mut self.turns);
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
        self.front.loss(&Loss { before, after, packets, stage: Stage::System });
        self.round(&[]);
    }

    fn hand_over(&mut self, watermark: Timestamp) {
        let Some(writer) = &mut self.rows else { return };
        for rows in &mut self.done {
            if rows.is_empty() {
                continue;
            }
            let told = rows.tally().total();
            if writer.hand_over(watermark, rows) == HandedOver::Refused {
                self.refused_rows += told;
            }
        }
    }
}

impl Consumer for Analyser {
    fn wait_for_room(&mut self) -> Option<Patience> {
        if self.rows.as_ref().is_some_and(RowProducer::is_nearly_full) {
            return Some(NO_ROOM_FOR_ROWS);
        }
        self.also.as_mut()?.wait_for_room().and(Some(STALL))
    }

    fn group(&mut self, group: Group<'_>) {
        if let Some(also) = &mut self.also {
            also.group(group);
        }
        if !self.is_stopping {
            self.lane.allow_decoding(DECODED_AT_A_TURN);
        }
        if let Some(loss) = group.loss {
            self.front.loss(loss);
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
            for (record, packet) in (Group { packets: slice, ..group }).iter() {
                if let Some(why) = self.front.packet(&packet, record.range()) {
                    (self.unparsed)(&packet, &why);
                }
            }
            self.round(group.data);
            self.analysed += slice.len() as u64;
            self.pace.took(slice.len(), begin.elapsed());
        }
        if group.packets.is_empty() && group.loss.is_some() {
            self.round(&[]);
        }
    }

    fn occupied(&mut self, occupancy: Occupancy, now: Timestamp) {
        let Some(shedding) = &mut self.shedding else { return };
        let before = shedding.depth();
        let depth = shedding.observe(occupancy.used.into(), occupancy.capacity.into(), now);
        if depth != before {
            self.front.ingress.set_depth(depth);
            self.lane.set_depth(depth);
        }
    }

    fn idle(&mut self, settled: Timestamp) {
        if let Some(also) = &mut self.also {
            also.idle(settled);
        }
        // Before the first packet there is no time that could go on.
        if self.analysed > 0 {
            self.front.advance(settled);
            self.round(&[]);
            // Rows of other rings may wait for this.
            if let Some(writer) = &mut self.rows {
                let _ = writer.hand_over(self.front.watermark(), &mut self.done[0]);
            }
        }
    }

    fn stopping(&mut self) {
        self.is_stopping = true;
        if let Some(also) = &mut self.also {
            also.stopping();
        }
        if let Some(rows) = &self.rows {
            rows.begin_end();
        }
        self.pace.stop();
    }

    fn finish(&mut self) {
        self.stopping();
        if let Some(also) = &mut self.also {
            also.finish();
        }
        self.front.finish();
        let now = self.front.ingress.now();
        self.lane.begin_finish(now, &mut self.done[0]);
        self.front.take_rows(now, &mut self.done[1]);
        self.hand_over(now);
        for step in 0..FINISH_STEPS {
            self.lane.finish_step(step, now, &mut self.done[0]);
            self.front.take_rows(Timestamp::MAX, &mut self.done[1]);
            self.hand_over(now);
        }
        if let Some(rows) = self.rows.take() {
            rows.finish(now);
        }
    }

    fn fill(&self, report: &mut RingReport) {
        let packets = self.front.ingress.statistics();
        report.analysed = Some(self.analysed);
        report.late = packets.out_of_order;
        report.refused += self.refused;
        report.refused_rows = self.refused_rows;
        report.flows = Some(self.lane.tracker().open_flows() as u64);
        report.flow_split = self.splits.as_ref().and_then(|(splits, ring)| splits.count(*ring));
        let of_flows = &self.lane.tracker().statistics().packets;
        report.by_depth = Some(packets.without_flow.with(of_flows));
        if let Some(shedding) = &self.shedding {
            report.shed = shedding.in_force().skip(1).map(|(_, spells)| spells.times).sum();
            report.shed_nanos = shedding.in_force().skip(1).map(|(_, spells)| spells.nanos).sum();
        }
        report.now = (self.analysed > 0).then(|| self.front.ingress.now());
        if let Some(also) = &self.also {
            also.fill(report);
        }
    }
}

#[cfg(test)]
#[path = "analysis/tests.rs"]
mod tests;
