//! One analysis from its first packet to its last record.

use netsniff_analysis::flow::tracker::FINISH_STEPS;
use netsniff_analysis::ingress::Ingress;
use netsniff_analysis::ingress::statistics::PacketStatistics;
use netsniff_analysis::statistics::FlowStatistics;
use netsniff_analysis::{Limits, Unit};
use netsniff_packet::{Batch, Packet, Progress, Source, Timestamp};

use super::lane::{Lane, Task, watermark};
use super::threads::Workers;
use crate::output::{Format, RowBuffer, RowSink, merge};

/// Packets that go through together: their datagrams fit a processor's second-level cache.
const SLICE: usize = 512;

/// How to analyse.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bounds, those of all workers together.
    pub limits: Limits,
    /// Threads that analyse; with 1 there is only the calling thread.
    pub workers: usize,
    /// How rows are rendered.
    pub format: Format,
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
    /// Engine time at the end.
    pub now: Timestamp,
}

/// Reads `source` to its end and writes the records to `sink`. `wanted` is asked for each packet
/// whether it is to be analysed, `progress` is told after each batch how many were read.
///
/// # Errors
///
/// Failures of the source and of the sink.
pub fn run<S, K>(
    source: &mut S,
    settings: &Settings,
    mut wanted: impl FnMut(&Packet<'_>) -> bool,
    sink: &mut K,
    mut progress: impl FnMut(&S, u64),
) -> anyhow::Result<Outcome>
where
    S: Source<Error: Into<anyhow::Error>>,
    K: RowSink + Send,
{
    let mut front = Front::new(settings);
    let mut read = |front: &mut Front,
                    deliver: &mut dyn FnMut(&mut Front) -> anyhow::Result<()>| {
        let mut batch = Batch::default();
        loop {
            let state = source.read_batch(&mut batch).map_err(Into::into)?;
            for slice in batch.packets.chunks(SLICE) {
                for record in slice {
                    let packet = batch.packet(record);
                    if wanted(&packet) {
                        front.ingress.packet(&packet, &mut front.units, &mut front.rows);
                    } else {
                        front.filtered += 1;
                    }
                }
                deliver(front)?;
            }
            progress(source, front.ingress.statistics().total.packets);
            if state == Progress::End {
                return Ok::<_, anyhow::Error>(());
            }
        }
    };
    let flows = if settings.workers == 1 {
        let mut alone = Alone::new(settings, sink);
        read(&mut front, &mut |front| alone.round(front))?;
        alone.finish(&mut front)?
    } else {
        std::thread::scope(|scope| {
            let mut workers = Workers::start(scope, settings, sink);
            let result = read(&mut front, &mut |front| workers.round(front));
            workers.finish(&mut front, result)
        })?
    };
    Ok(Outcome {
        packets: front.ingress.statistics().clone(),
        flows,
        filtered: front.filtered,
        now: front.ingress.now(),
    })
}

/// The reading thread's part: decoding, and the records that this alone yields.
pub(super) struct Front {
    pub(super) ingress: Ingress,
    pub(super) units: Vec<Unit>,
    rows: RowBuffer,
    filtered: u64,
}

impl Front {
    fn new(settings: &Settings) -> Self {
        Self {
            ingress: Ingress::new(settings.limits),
            units: Vec::with_capacity(SLICE),
            rows: RowBuffer::new(settings.format),
            filtered: 0,
        }
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
    done: [RowBuffer; 2],
    sink: &'a mut K,
}

impl<'a, K: RowSink> Alone<'a, K> {
    fn new(settings: &Settings, sink: &'a mut K) -> Self {
        Self {
            lane: Lane::new(settings.limits, settings.seed, settings.format),
            done: [RowBuffer::new(settings.format), RowBuffer::new(settings.format)],
            sink,
        }
    }

    fn round(&mut self, front: &mut Front) -> anyhow::Result<()> {
        let watermark = front.watermark();
        let units = core::mem::take(&mut front.units);
        if let Some(memory) = self.task(Task::Units(units, watermark), watermark, front)? {
            front.units = memory;
        }
        Ok(())
    }

    fn task(
        &mut self,
        task: Task,
        watermark: Timestamp,
        front: &mut Front,
    ) -> anyhow::Result<Option<Vec<Unit>>> {
        let [own, reading] = &mut self.done;
        let memory = self.lane.work(task, own);
        front.take_rows(watermark, reading);
        if !own.is_empty() || !reading.is_empty() {
            merge(&self.done, self.sink)?;
        }
        Ok(memory)
    }

    fn finish(mut self, front: &mut Front) -> anyhow::Result<FlowStatistics> {
        front.finish();
        let now = front.ingress.now();
        self.task(Task::BeginFinish(now), now, front)?;
        for step in 0..FINISH_STEPS {
            self.task(Task::FinishStep(step, now), Timestamp::MAX, front)?;
        }
        Ok(self.lane.tracker().statistics().clone())
    }
}
