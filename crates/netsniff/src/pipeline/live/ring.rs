//! THE hot loop of live traffic: what a ring lends is put in order, analysed and told, in one thread.

use std::sync::atomic::Ordering;
use std::time::Duration;

use netsniff_analysis::flow::tracker::FINISH_STEPS;
use netsniff_analysis::ingress::Unparsed;
use netsniff_analysis::ingress::statistics::PacketStatistics;
use netsniff_analysis::statistics::FlowStatistics;
use netsniff_capture::{Arrival, Receiver};
use netsniff_packet::{Loss, Packet, PacketRecord, Timestamp};

use super::books::{Control, LinkState, RingReport};
use super::order::{Group, Order};
use crate::output::{HandedOver, RowBuffer, RowProducer};
use crate::pipeline::lane::Lane;
use crate::pipeline::run::{Front, SLICE, Settings};

/// How long a ring is waited for before the thread looks at what else there is to do.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long to leave an interface alone that is down or gone.
const LINK_PAUSE: Duration = Duration::from_millis(100);

/// What to do where an interface is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum IfGone {
    /// End the run
    #[default]
    End,
    /// Wait until one of its name is there, and go on with that
    Wait,
}

/// Gets each packet that was taken, and what was lost between them, in the order of the analysis.
pub trait Tap: Send {
    /// Takes packets.
    fn group(&mut self, group: Group<'_>);

    /// Nothing came for a while: what is buffered should not wait any longer.
    fn idle(&mut self);
}

/// Opens the interface again by its name; `None` while there is none.
pub type Reopen = Box<dyn FnMut() -> Option<Box<dyn Receiver>> + Send>;

/// Asked for a packet whether it is to be analysed.
pub type Wanted = Box<dyn FnMut(&Packet<'_>) -> bool + Send>;

/// Gets a packet that was not understood, with the reason.
pub type TakeUnparsed = Box<dyn FnMut(&Packet<'_>, &Unparsed) + Send>;

/// What one ring's thread works with.
pub struct RingWork<'a> {
    /// Its number among the rings.
    pub number: usize,
    /// The processor that its thread is to run on.
    pub cpu: Option<usize>,
    /// Where packets come from; started.
    pub receiver: Box<dyn Receiver>,
    /// How to analyse.
    pub settings: &'a Settings,
    /// What the ruling thread wants.
    pub control: &'a Control,
    /// Asked for each packet whether it is to be analysed, where the kernel cannot tell.
    pub wanted: Option<Wanted>,
    /// Gets packets that were not understood, with the reason.
    pub unparsed: TakeUnparsed,
    /// Gets every packet.
    pub tap: Option<Box<dyn Tap>>,
    /// Where rows go.
    pub rows: RowProducer,
    /// How long packets wait for earlier ones.
    pub window: Duration,
    /// Packets after which the run ends, over all rings.
    pub count: Option<u64>,
    /// How to go on once the interface is gone; without it the run ends.
    pub reopen: Option<Reopen>,
}

/// What came of one ring.
#[derive(Debug)]
pub struct RingOutcome {
    /// Counts over packets.
    pub packets: PacketStatistics,
    /// Counts over flows.
    pub flows: FlowStatistics,
    /// What was counted to the end.
    pub report: RingReport,
    /// Engine time at the end.
    pub now: Timestamp,
    /// Why the ring ended early, if so.
    pub failure: Option<String>,
}

/// The analysis of one ring.
struct Analysis<'a> {
    control: &'a Control,
    front: Front,
    lane: Lane,
    wanted: Option<Wanted>,
    unparsed: TakeUnparsed,
    tap: Option<Box<dyn Tap>>,
    rows: RowProducer,
    /// Complete rows of the lane and of the front.
    done: [RowBuffer; 2],
    /// Room for the packets that a filter leaves.
    wanted_packets: Vec<PacketRecord>,
    analysed: u64,
    filtered: u64,
    beyond_end: u64,
    refused_rows: u64,
    /// Packets that may still be taken, where that is bounded.
    count: Option<u64>,
}

impl Analysis<'_> {
    /// Analyses packets that are in order.
    fn group(&mut self, group: Group<'_>) {
        let mut wanted = core::mem::take(&mut self.wanted_packets);
        let packets = self.select(group, &mut wanted);
        if let Some(tap) = &mut self.tap {
            tap.group(Group { packets, ..group });
        }
        if let Some(loss) = group.loss {
            self.front.loss(loss);
        }
        for slice in packets.chunks(SLICE) {
            for record in slice {
                let packet = packet_at(group.data, record);
                if let Some(why) = self.front.packet(&packet, record.range()) {
                    (self.unparsed)(&packet, &why);
                }
            }
            self.round(group.data);
        }
        self.analysed += packets.len() as u64;
        if packets.is_empty() && group.loss.is_some() {
            self.round(&[]);
        }
        self.wanted_packets = wanted;
    }

    /// The packets that are to be analysed; those that the filter leaves are listed in `wanted`.
    fn select<'p>(
        &mut self,
        group: Group<'p>,
        wanted: &'p mut Vec<PacketRecord>,
    ) -> &'p [PacketRecord] {
        let mut packets = group.packets;
        if let Some(wants) = &mut self.wanted {
            wanted.clear();
            let matching = packets.iter().filter(|record| wants(&packet_at(group.data, record)));
            wanted.extend(matching);
            self.filtered += (packets.len() - wanted.len()) as u64;
            packets = wanted;
        }
        if let Some(count) = self.count {
            // Over all rings, so that it is exact.
            let before = self.control.taken.fetch_add(packets.len() as u64, Ordering::Relaxed);
            let room = count.saturating_sub(before);
            if room <= packets.len() as u64 {
                self.beyond_end += packets.len() as u64 - room;
                packets = &packets[..room as usize];
                self.control.stop();
            }
        }
        packets
    }

    /// Hands the datagrams that were decoded to their flows, and complete rows to the writer.
    fn round(&mut self, data: &[u8]) {
        let watermark = self.front.watermark();
        let units = self.front.units.as_slice().iter().enumerate();
        self.lane.units(units, self.front.units.holes(), data, watermark, &mut self.done[0]);
        self.front.units.clear();
        self.front.take_rows(watermark, &mut self.done[1]);
        self.hand_over(watermark);
    }

    /// Ends what the time ends, in the absence of packets.
    fn idle(&mut self, settled: Timestamp) {
        if let Some(tap) = &mut self.tap {
            tap.idle();
        }
        // Before the first packet there is no time that could go on.
        if self.analysed > 0 {
            self.front.advance(settled);
            self.round(&[]);
        }
    }

    fn hand_over(&mut self, watermark: Timestamp) {
        for rows in &mut self.done {
            if rows.is_empty() {
                continue;
            }
            let count = rows.len() as u64;
            if self.rows.hand_over(watermark, rows) == HandedOver::Refused {
                self.refused_rows += count;
            }
        }
    }

    /// Ends all flows.
    fn finish(mut self) -> (Self, Timestamp) {
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
        (self, now)
    }
}

#[inline]
fn packet_at<'d>(data: &'d [u8], record: &PacketRecord) -> Packet<'d> {
    Packet {
        timestamp: record.timestamp,
        data: data.get(record.range()).unwrap_or_default(),
        wire_len: record.wire_len,
        link_type: record.link_type,
        interface: record.interface,
    }
}

/// The state of the thread besides its analysis.
struct Loop<'a> {
    number: usize,
    receiver: Box<dyn Receiver>,
    control: &'a Control,
    order: Order,
    reopen: Option<Reopen>,
    link: LinkState,
    downs: u64,
    /// The number of the report that was made last.
    reported: u64,
    is_stopping: bool,
    /// What earlier rings of an interface that went away and came back had counted.
    before: Option<RingReport>,
}

impl RingWork<'_> {
    /// Captures and analyses until the run is to end or the interface is gone, and ends all flows.
    #[must_use]
    pub fn run(self) -> RingOutcome {
        // Checked with the arguments; where it fails all the same the ring runs anywhere.
        let _ = self.cpu.map(netsniff_capture::pin);
        let analysis = Analysis {
            control: self.control,
            front: Front::new(self.settings),
            lane: Lane::new(
                self.settings.limits,
                self.settings.options.clone(),
                self.settings.seed,
                self.settings.format,
            ),
            wanted: self.wanted,
            unparsed: self.unparsed,
            tap: self.tap,
            rows: self.rows,
            done: [RowBuffer::new(self.settings.format), RowBuffer::new(self.settings.format)],
            wanted_packets: Vec::new(),
            analysed: 0,
            filtered: 0,
            beyond_end: 0,
            refused_rows: 0,
            count: self.count,
        };
        let turn = Loop {
            number: self.number,
            receiver: self.receiver,
            control: self.control,
            order: Order::new(self.window),
            reopen: self.reopen,
            link: LinkState::Up,
            downs: 0,
            reported: 0,
            is_stopping: false,
            before: None,
        };
        turn.run(analysis)
    }
}

/// What one turn of the loop came to.
enum Turn {
    GoOn,
    End,
}

impl Loop<'_> {
    fn run(mut self, mut analysis: Analysis<'_>) -> RingOutcome {
        let failure = loop {
            match self.turn(&mut analysis) {
                Ok(Turn::GoOn) => {}
                Ok(Turn::End) => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        if failure.is_some() {
            self.control.stop();
        }
        self.rest(&mut analysis);
        let (analysis, now) = analysis.finish();
        let report = self.report(&analysis);
        self.control.report(self.number, u64::MAX, report.clone());
        let Analysis { front, lane, rows, .. } = analysis;
        rows.finish(now);
        RingOutcome {
            packets: front.ingress.statistics().clone(),
            flows: lane.tracker().statistics().clone(),
            report,
            now,
            failure,
        }
    }

    /// Analyses what waits, and notes what was lost behind it.
    fn rest(&mut self, analysis: &mut Analysis<'_>) {
        self.flush(analysis);
        if let Some(loss) = self.receiver.last_loss() {
            analysis.group(Group { data: &[], packets: &[], loss: Some(&loss) });
        }
    }

    fn flush(&mut self, analysis: &mut Analysis<'_>) {
        self.order.flush(|group| analysis.group(group));
    }

    /// Waits for packets once and does what came.
    fn turn(&mut self, analysis: &mut Analysis<'_>) -> netsniff_capture::Result<Turn> {
        let wanted = self.control.wanted();
        if wanted > self.reported {
            let report = self.report(analysis);
            self.control.report(self.number, wanted, report);
            self.reported = wanted;
        }
        if self.control.stops() && !self.is_stopping {
            self.is_stopping = true;
            self.receiver.stop()?;
        }
        match self.receiver.receive(PATIENCE)? {
            Arrival::Packets(lent) => {
                self.link = LinkState::Up;
                let loss: Option<&Loss> = lent.loss.as_ref();
                self.order.push(lent.data, lent.packets, loss, |group| analysis.group(group));
            }
            Arrival::Nothing(settled) => {
                self.link = LinkState::Up;
                self.flush(analysis);
                analysis.idle(settled);
            }
            Arrival::Down => {
                if self.link == LinkState::Up {
                    self.downs += 1;
                }
                self.link = LinkState::Down;
                return Ok(self.pause(analysis));
            }
            Arrival::Gone => {
                self.link = LinkState::Gone;
                return self.gone(analysis);
            }
            Arrival::End => return Ok(Turn::End),
        }
        Ok(Turn::GoOn)
    }

    /// Leaves an interface alone for a while; flows go on to end.
    fn pause(&mut self, analysis: &mut Analysis<'_>) -> Turn {
        self.flush(analysis);
        analysis.idle(netsniff_capture::realtime() - LINK_PAUSE);
        if self.is_stopping {
            return Turn::End;
        }
        std::thread::sleep(LINK_PAUSE);
        Turn::GoOn
    }

    /// Goes on with an interface of the same name, once there is one and that is wanted.
    fn gone(&mut self, analysis: &mut Analysis<'_>) -> netsniff_capture::Result<Turn> {
        let Some(reopen) = &mut self.reopen else {
            self.control.stop();
            return Ok(Turn::End);
        };
        if let Some(receiver) = reopen() {
            self.rest(analysis);
            let report = self.report(analysis);
            self.before = Some(report);
            self.receiver = receiver;
            self.receiver.start()?;
            return Ok(Turn::GoOn);
        }
        Ok(self.pause(analysis))
    }

    fn report(&mut self, analysis: &Analysis<'_>) -> RingReport {
        let packets = analysis.front.ingress.statistics();
        let mut counters = self.receiver.counters().unwrap_or_default();
        if let Some(before) = &self.before {
            counters.add_earlier(&before.counters);
        }
        RingReport {
            counters,
            analysed: analysis.analysed,
            filtered: analysis.filtered,
            beyond_end: analysis.beyond_end,
            waiting: self.order.waiting() as u64,
            late: packets.out_of_order,
            latest_lateness: packets.furthest_back_nanos,
            refused_rows: analysis.refused_rows,
            link: self.link,
            downs: self.downs,
            flows: analysis.lane.tracker().open_flows() as u64,
            now: (analysis.analysed > 0).then(|| analysis.front.ingress.now()),
        }
    }
}
