//! One analysis from its first packet to its last record.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use netsniff_analysis::correlator::JoinStatistics;
use netsniff_analysis::flow::tracker::FINISH_STEPS;
use netsniff_analysis::ingress::statistics::PacketStatistics;
use netsniff_analysis::ingress::{Ingress, Unparsed};
use netsniff_analysis::statistics::FlowStatistics;
use netsniff_analysis::{HoleKind, Limits, Options, Units};
use netsniff_packet::{Batch, Loss, Packet, Progress, Source, Timestamp};

use super::lane::{Lane, watermark};
use super::threads::Workers;
use crate::output::{Format, Merger, RowBuffer, RowSink};

/// Packets that go through together where one thread does everything: their datagrams fit a
/// processor's second-level cache.
pub(super) const SLICE: usize = 512;

/// Packets that are handed over together: enough that waking the other threads hardly counts.
const SHARED_SLICE: usize = 2048;

/// Bytes to read at once: small pieces stay in the caches of one thread, large ones let threads
/// work without waking each other often.
#[must_use]
pub const fn read_size(workers: usize) -> usize {
    if workers == 1 { 256 << 10 } else { 1 << 20 }
}

/// How to analyse.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Bounds, those of all workers together.
    pub limits: Limits,
    /// Choices that change what records say.
    pub options: Options,
    /// Threads that analyse; with 1 there is only the calling thread.
    pub workers: usize,
    /// How rows are rendered; `None` where nobody wants them.
    pub format: Option<Format>,
    /// Protects tables from senders who aim at them.
    pub seed: u64,
}

/// What an analysis amounts to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Counts over packets.
    pub packets: PacketStatistics,
    /// Counts over flows.
    pub flows: FlowStatistics,
    /// Packets that the filter refused.
    pub filtered: u64,
    /// Counts over what several flows told together.
    pub joins: JoinStatistics,
    /// Engine time at the end.
    pub now: Timestamp,
}

/// Reads `source` to its end and writes the records to `sink`. `wanted` is asked for each packet
/// whether it is to be analysed, `unparsed` gets those that were not understood, with the reason, and
/// `progress` is told after each batch how many were read.
///
/// # Errors
///
/// Failures of the source, of the sink and of `unparsed`.
pub fn run<S, K>(
    source: &mut S,
    settings: &Settings,
    mut wanted: impl FnMut(&Packet<'_>) -> bool,
    mut unparsed: impl FnMut(&Packet<'_>, &Unparsed) -> anyhow::Result<()>,
    sink: &mut K,
    mut progress: impl FnMut(&S, u64),
) -> anyhow::Result<Outcome>
where
    S: Source<Error: Into<anyhow::Error>>,
    K: RowSink + Send,
{
    let mut front = Front::new(settings);
    let slice = if settings.workers == 1 { SLICE } else { SHARED_SLICE };
    let mut read = |front: &mut Front, deliver: &mut Deliver<'_>| {
        let mut pool = Pool::default();
        // The last packet of a batch, if it is so far ahead that the next one must tell whether it is wrong.
        let mut held = Arc::<Batch>::default();
        loop {
            let mut batch = pool.take();
            let state = match Arc::get_mut(&mut batch) {
                Some(batch) => source.read_batch(batch).map_err(Into::into)?,
                None => anyhow::bail!("a batch that is still in use was taken from the pool"),
            };
            if !held.packets.is_empty() && (!batch.packets.is_empty() || state == Progress::End) {
                front.ingress.foresee(batch.packets.first().map(|record| record.timestamp));
                for record in &held.packets {
                    let packet = held.packet(record);
                    if let Some(why) = front.packet(&packet, record.range()) {
                        unparsed(&packet, &why)?;
                    }
                }
                held.losses.iter().for_each(|(_, loss)| front.loss(loss));
                deliver(front, &held)?;
                held = Arc::default();
            }
            let mut losses = batch.losses.iter().peekable();
            let mut at = 0;
            for records in batch.packets.chunks(slice) {
                for record in records {
                    while let Some((_, loss)) = losses.next_if(|(before, _)| *before <= at) {
                        front.loss(loss);
                    }
                    at += 1;
                    let packet = batch.packet(record);
                    if wanted(&packet) {
                        if front.ingress.is_ahead(packet.timestamp) {
                            let next = batch.packets.get(at as usize).map(|next| next.timestamp);
                            if next.is_none() && state != Progress::End && hold(&mut held, &packet)
                            {
                                continue;
                            }
                            front.ingress.foresee(next);
                        }
                        if let Some(why) = front.packet(&packet, record.range()) {
                            unparsed(&packet, &why)?;
                        }
                    } else {
                        front.filtered += 1;
                    }
                }
                deliver(front, &batch)?;
            }
            if losses.peek().is_some() {
                for (_, loss) in losses {
                    match Arc::get_mut(&mut held).filter(|held| !held.packets.is_empty()) {
                        Some(held) => held.push_loss(*loss),
                        None => front.loss(loss),
                    }
                }
                deliver(front, &batch)?;
            }
            pool.give_back(batch);
            progress(source, front.ingress.statistics().total.packets);
            if state == Progress::End {
                return Ok::<_, anyhow::Error>(());
            }
        }
    };
    let (flows, joins) = if settings.workers == 1 {
        let mut alone = Alone::new(settings, sink);
        read(&mut front, &mut |front, batch| alone.round(front, batch))?;
        alone.finish(&mut front)?
    } else {
        std::thread::scope(|scope| {
            let mut workers = Workers::start(scope, settings, sink);
            let result = read(&mut front, &mut |front, batch| workers.round(front, batch));
            workers.finish(&mut front, result)
        })?
    };
    Ok(Outcome {
        packets: front.ingress.statistics().clone(),
        flows,
        filtered: front.filtered,
        joins,
        now: front.ingress.now(),
    })
}

/// Puts a packet aside. Returns whether it could be.
fn hold(held: &mut Arc<Batch>, packet: &Packet<'_>) -> bool {
    Arc::get_mut(held).is_some_and(|held| held.push(packet))
}

/// Hands the datagrams of a slice on, with the batch that they lie in.
type Deliver<'a> = dyn FnMut(&mut Front, &Arc<Batch>) -> anyhow::Result<()> + 'a;

/// Batches that are read into again once nobody uses them.
#[derive(Default)]
struct Pool(VecDeque<Arc<Batch>>);

impl Pool {
    fn take(&mut self) -> Arc<Batch> {
        match self.0.front() {
            Some(batch) if Arc::strong_count(batch) == 1 => self.0.pop_front().unwrap_or_default(),
            _ => Arc::default(),
        }
    }

    fn give_back(&mut self, batch: Arc<Batch>) {
        self.0.push_back(batch);
    }
}

/// The reading thread's part: decoding, and the records that this alone yields.
pub(super) struct Front {
    pub(super) ingress: Ingress,
    pub(super) units: Units,
    rows: RowBuffer,
    filtered: u64,
}

impl Front {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            ingress: Ingress::new(settings.limits, settings.options.clone()),
            units: Units::default(),
            rows: RowBuffer::new(settings.format).anonymized(settings.options.anonymizer.clone()),
            filtered: 0,
        }
    }

    #[inline]
    pub(super) fn packet(&mut self, packet: &Packet<'_>, bytes: Range<usize>) -> Option<Unparsed> {
        self.ingress.packet(packet, bytes, &mut self.units, &mut self.rows)
    }

    pub(super) fn loss(&mut self, loss: &Loss) {
        self.ingress.loss(loss, &mut self.rows);
        self.units.note_hole(self.ingress.now(), HoleKind::Loss);
    }

    /// Ends what ends until `now`, in the absence of packets.
    pub(super) fn advance(&mut self, now: Timestamp) {
        self.ingress.advance(now, &mut self.rows);
    }

    /// The watermark after what was read so far.
    pub(super) fn watermark(&self) -> Timestamp {
        watermark(self.ingress.now())
    }

    /// Closes what is open once everything was read.
    pub(super) fn finish(&mut self) {
        self.ingress.finish(&mut self.rows);
    }

    /// Fills `done` with the complete rows of its own.
    pub(super) fn take_rows(&mut self, watermark: Timestamp, done: &mut RowBuffer) {
        self.rows.take_before(watermark, done);
    }
}

/// Analysis without hand-offs.
struct Alone<'a, K> {
    lane: Lane,
    /// Rows of the lane, and of the reading part.
    done: [RowBuffer; 2],
    merger: Merger,
    sink: &'a mut K,
}

impl<'a, K: RowSink> Alone<'a, K> {
    fn new(settings: &Settings, sink: &'a mut K) -> Self {
        Self {
            lane: Lane::new(
                settings.limits,
                settings.options.clone(),
                settings.seed,
                settings.format,
            ),
            done: [RowBuffer::new(settings.format), RowBuffer::new(settings.format)],
            merger: Merger::new(
                &settings.limits,
                settings.format,
                settings.options.anonymizer.clone(),
            ),
            sink,
        }
    }

    fn round(&mut self, front: &mut Front, batch: &Batch) -> anyhow::Result<()> {
        let watermark = front.watermark();
        let units = front.units.as_slice().iter().enumerate();
        let holes = front.units.holes();
        self.lane.units(units, holes, &batch.data, watermark, &mut self.done[0]);
        front.units.clear();
        self.write(front, watermark)
    }

    fn finish(mut self, front: &mut Front) -> anyhow::Result<(FlowStatistics, JoinStatistics)> {
        front.finish();
        let now = front.ingress.now();
        self.lane.begin_finish(now, &mut self.done[0]);
        self.write(front, now)?;
        for step in 0..FINISH_STEPS {
            self.lane.finish_step(step, now, &mut self.done[0]);
            self.write(front, Timestamp::MAX)?;
        }
        self.merger.finish(now, self.sink)?;
        Ok((self.lane.tracker().statistics().clone(), self.merger.statistics()))
    }

    fn write(&mut self, front: &mut Front, watermark: Timestamp) -> anyhow::Result<()> {
        front.take_rows(watermark, &mut self.done[1]);
        if self.done.iter().any(|rows| !rows.is_empty()) {
            self.merger.merge(&mut self.done, self.sink)?;
        }
        Ok(())
    }
}
