//! One analysis from its first packet to its last record.

use std::collections::VecDeque;
use std::sync::Arc;

use netsniff_analysis::correlator::JoinStatistics;
use netsniff_analysis::engine::decoding::{DecodeStage, Intake};
use netsniff_analysis::flow::report::statistics::FlowStatistics;
use netsniff_analysis::ingress::statistics::PacketStatistics;
use netsniff_analysis::rows::Output;
use netsniff_analysis::{Engine, Limits, Options};
use netsniff_output::{Format, Merger, RowBuffer, RowSink};
use netsniff_packet::{Batch, Progress, Source, Timestamp};

use super::threads::Workers;

/// Bytes to read at once: small pieces stay in the caches of one thread, large ones let threads
/// work without waking each other often.
#[must_use]
pub const fn read_size(workers: usize) -> usize {
    if workers == 1 { 256 << 10 } else { 1 << 20 }
}

/// How packets are analysed.
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

impl Settings {
    /// An empty buffer for rows as they are wanted.
    pub(super) fn rows(&self) -> RowBuffer {
        RowBuffer::new(self.format).anonymized(self.options.anonymizer.clone())
    }

    /// What brings such rows into one order.
    pub(super) fn merger(&self) -> Merger {
        Merger::new(&self.limits, self.format, self.options.anonymizer.clone())
    }
}

/// What an analysis amounts to.
#[derive(Clone, Debug)]
pub struct AnalysisOutcome {
    /// Counts of packets by what became of them.
    pub packets: PacketStatistics,
    /// Counts of flows and of what was found in them.
    pub flows: FlowStatistics,
    /// Packets that the filter refused.
    pub filtered: u64,
    /// Counts over what several flows told together.
    pub joins: JoinStatistics,
    /// Engine time at the end.
    pub now: Timestamp,
}

impl AnalysisOutcome {
    pub(super) fn new(stage: &DecodeStage, flows: FlowStatistics, joins: JoinStatistics) -> Self {
        Self {
            packets: stage.ingress().statistics().clone(),
            flows,
            filtered: stage.refused(),
            joins,
            now: stage.ingress().now(),
        }
    }
}

/// Whoever attends an analysis of files.
pub trait Attend<S>: Intake {
    /// A batch of `source` was taken. Without an override nobody is told.
    ///
    /// # Errors
    ///
    /// Whatever is to end the analysis.
    fn taken(&mut self, _source: &S) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Attends to nothing.
impl<S> Attend<S> for () {}

/// Reads `source` to its end and writes the records to `sink`.
///
/// # Errors
///
/// Failures of the source, of the sink and of `attendant`.
pub fn run<S, A, K>(
    source: &mut S,
    settings: &Settings,
    attendant: &mut A,
    sink: &mut K,
) -> anyhow::Result<AnalysisOutcome>
where
    S: Source<Error: Into<anyhow::Error>>,
    A: Attend<S>,
    K: RowSink<Error = anyhow::Error> + Send,
{
    if settings.workers > 1 {
        return std::thread::scope(|scope| {
            let mut workers = Workers::start(scope, settings, sink);
            let result = read_all(source, |source, batch| {
                workers.batch(batch, attendant)?;
                attendant.taken(source)
            });
            workers.finish(attendant, result)
        });
    }
    // Everything in the calling thread, without hand-offs.
    let mut engine = Engine::new(settings.limits, settings.options.clone(), settings.seed);
    let mut output = Output::to_sink(settings.rows(), settings.merger(), sink);
    read_all(source, |source, batch| {
        engine.batch_with(batch, attendant, &mut output);
        output.check()?;
        attendant.taken(source)
    })?;
    engine.finish_with(attendant, &mut output);
    output.finish(engine.ingress().now())?;
    Ok(AnalysisOutcome::new(engine.stage(), engine.tracker().statistics().clone(), output.joins()))
}

/// Reads all batches of a source into memory that is used again and again.
fn read_all<S: Source<Error: Into<anyhow::Error>>>(
    source: &mut S,
    mut take: impl FnMut(&S, &Arc<Batch>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut pool = Pool::default();
    loop {
        let mut batch = pool.take();
        let state = match Arc::get_mut(&mut batch) {
            Some(batch) => source.read_batch(batch).map_err(Into::into)?,
            None => anyhow::bail!("a batch that is still in use was taken from the pool"),
        };
        take(source, &batch)?;
        pool.give_back(batch);
        if state == Progress::End {
            return Ok(());
        }
    }
}

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
