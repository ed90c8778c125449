//! One analysis from its first packet to its last record.

use std::collections::VecDeque;
use std::sync::Arc;

use netsniff_analysis::correlator::JoinStatistics;
use netsniff_analysis::engine::decoding::{DecodeStage, Intake};
use netsniff_analysis::flow::report::statistics::FlowStatistics;
use netsniff_analysis::ingress::statistics::PacketStatistics;
use netsniff_analysis::rows::Output;
use netsniff_analysis::{Engine, Limits, Options};
use netsniff_output::{LogSet, Merger, RowBuffer, RowSink, RowStyle};
use netsniff_packet::{Batch, Progress, Source, Timestamp};

use super::crew;

/// Bytes to read at once: as many for each thread as stay in its caches until its flows have taken them.
#[must_use]
pub const fn read_size(workers: usize) -> usize {
    let threads = if workers < 8 { workers } else { 8 };
    threads * (256 << 10)
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
    pub style: Option<RowStyle>,
    /// The logs that are wanted.
    pub logs: LogSet,
    /// Protects tables from senders who aim at them.
    pub seed: u64,
    /// Whether rows are to be seen as soon as they are complete, for an input that may wait for its next packet.
    pub prompt: bool,
}

impl Settings {
    /// An empty buffer for rows as they are wanted.
    pub(crate) fn rows(&self) -> RowBuffer {
        let rows = RowBuffer::new(self.style).only(self.logs);
        let rows = rows.anonymized(self.options.anonymizer.clone());
        rows.watched(self.options.watch.clone())
    }

    /// What brings such rows into one order.
    #[must_use]
    pub fn merger(&self) -> Merger {
        let merger = Merger::new(&self.limits, self.style, self.options.anonymizer.clone());
        merger.only(self.logs).watched(self.options.watch.clone())
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
    S: Source<Error: Into<anyhow::Error>> + Send,
    A: Attend<S> + Send,
    K: RowSink<Error = anyhow::Error> + Send,
{
    if settings.workers > 1 {
        return crew::run(source, settings, attendant, sink);
    }
    // Everything in the calling thread, without hand-offs.
    let mut engine = Engine::new(settings.limits, settings.options.clone(), settings.seed);
    let mut output = Output::to_sink(settings.rows(), settings.merger(), sink);
    let mut pool = BatchPool::default();
    loop {
        let (batch, progress) = pool.read(source)?;
        engine.batch_with(&batch, attendant, &mut output);
        if settings.prompt {
            output.publish()?;
        } else {
            output.check()?;
        }
        attendant.taken(source)?;
        pool.give_back(batch);
        if progress == Progress::End {
            break;
        }
    }
    engine.finish_with(attendant, &mut output);
    output.finish(engine.ingress().now())?;
    Ok(AnalysisOutcome::new(engine.stage(), engine.tracker().statistics().clone(), output.joins()))
}

/// Batches that are read into again once nobody uses them.
#[derive(Default)]
pub(super) struct BatchPool(VecDeque<Arc<Batch>>);

impl BatchPool {
    /// Reads what comes next into a batch that nobody uses.
    pub(super) fn read<S: Source<Error: Into<anyhow::Error>>>(
        &mut self,
        source: &mut S,
    ) -> anyhow::Result<(Arc<Batch>, Progress)> {
        let mut batch = match self.0.front() {
            Some(batch) if Arc::strong_count(batch) == 1 => self.0.pop_front().unwrap_or_default(),
            _ => Arc::default(),
        };
        let Some(empty) = Arc::get_mut(&mut batch) else {
            anyhow::bail!("a batch that is still in use was taken from the pool")
        };
        let progress = source.read_batch(empty).map_err(Into::into)?;
        Ok((batch, progress))
    }

    /// Takes a batch back, which others may still use.
    pub(super) fn give_back(&mut self, batch: Arc<Batch>) {
        self.0.push_back(batch);
    }
}
