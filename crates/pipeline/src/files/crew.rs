//! Several threads, each with a share of all flows, that read, decode and merge in turns.
//!
//! No thread only reads, and none only writes. Whoever finds no round for its flows takes the *baton*: it reads one
//! piece, decodes it in its own cache and puts the rounds on the board. Whoever finds the oldest round complete merges
//! its rows. Each round goes to every shard, in order, so that no record depends on who did what.

use std::sync::Mutex;

use anyhow::anyhow;
use netsniff_analysis::Limits;
use netsniff_analysis::engine::shard::Shard;
use netsniff_analysis::flow::report::statistics::FlowStatistics;
use netsniff_output::{Merger, RowBuffer, RowSink};
use netsniff_packet::Source;

use super::board::{Job, Round, SharedBoard, Work, lock};
use super::reading::Reading;
use super::run::{AnalysisOutcome, Attend, Settings};

/// Analyses `source` in the threads that `settings` ask for, of which the calling one is one.
///
/// # Errors
///
/// Failures of the source, of the sink and of `attendant`. Rows of what was read before are written, unless the
/// sink fails.
pub(super) fn run<S, A, K>(
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
    let crew = Crew {
        board: SharedBoard::new(settings.workers, settings.prompt, settings.rows().same()),
        reading: Mutex::new(Reading::new(source, settings, attendant)),
        merging: Mutex::new(Merging { merger: settings.merger(), sink, prompt: settings.prompt }),
    };
    let crew_ref = &crew;
    let flows = std::thread::scope(|scope| {
        let others = (1..settings.workers).map(|at| {
            let worker = Worker::new(at, settings);
            scope.spawn(move || crew_ref.serve(worker))
        });
        let others: Vec<_> = others.collect();
        let mut flows = crew_ref.serve(Worker::new(0, settings));
        for other in others {
            flows.merge(&other.join().map_err(|_| anyhow!("a worker panicked"))?);
        }
        Ok::<_, anyhow::Error>(flows)
    })?;
    crew.outcome(flows)
}

/// What the threads share.
struct Crew<'a, S, A, K> {
    board: SharedBoard,
    /// The baton: whoever reads holds it.
    reading: Mutex<Reading<'a, S, A>>,
    merging: Mutex<Merging<'a, K>>,
}

/// Where complete rounds go.
struct Merging<'a, K> {
    merger: Merger,
    sink: &'a mut K,
    /// Whether rows are to be seen as soon as they are complete.
    prompt: bool,
}

impl<S, A, K> Crew<'_, S, A, K>
where
    S: Source<Error: Into<anyhow::Error>>,
    A: Attend<S>,
    K: RowSink<Error = anyhow::Error>,
{
    /// Does whatever is to be done, until nothing is left.
    fn serve(&self, mut worker: Worker) -> FlowStatistics {
        let watch = self.board.watch();
        while let Some(job) = self.board.job(worker.next) {
            match job {
                Job::Round(round, rows) => {
                    let rows = worker.round(&round, rows);
                    drop(round);
                    self.board.round_done(worker.next - 1, rows);
                }
                Job::Read => {
                    let read = lock(&self.reading).piece(&self.board);
                    self.board.reading_done(read);
                }
                Job::Merge(mut rows) => {
                    let Merging { merger, sink, prompt } = &mut *lock(&self.merging);
                    let merged = merger.merge(&mut rows, *sink);
                    let merged =
                        merged.and_then(|()| if *prompt { sink.publish() } else { Ok(()) });
                    self.board.merging_done(rows, merged);
                }
            }
        }
        drop(watch);
        worker.shard.tracker().statistics().clone()
    }

    /// What came of it, once all threads have ended.
    fn outcome(self, flows: FlowStatistics) -> anyhow::Result<AnalysisOutcome> {
        self.board.check()?;
        let stage = into_inner(self.reading).into_stage();
        let Merging { mut merger, sink, .. } = into_inner(self.merging);
        merger.finish(stage.ingress().now(), sink)?;
        Ok(AnalysisOutcome::new(&stage, flows, merger.statistics()))
    }
}

fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What one thread alone has.
struct Worker {
    /// Its number.
    at: usize,
    /// The round that its shard takes next.
    next: u64,
    shard: Shard,
    /// Rows that are not complete.
    waiting: RowBuffer,
}

impl Worker {
    fn new(at: usize, settings: &Settings) -> Self {
        let limits = share_of(settings.limits, settings.workers);
        let shard = Shard::new(limits, settings.options.clone(), settings.seed);
        Self { at, next: 0, shard, waiting: settings.rows() }
    }

    /// Takes a round, and puts the rows that are complete behind it in place of those in `done`.
    fn round(&mut self, round: &Round, mut done: RowBuffer) -> RowBuffer {
        match &round.work {
            Work::Datagrams(batch) => {
                let (units, share) = (round.units.as_slice(), &round.shares[self.at]);
                let own = share.iter().map(|&at| at as usize);
                let own = own.filter_map(|at| Some((at, units.get(at)?)));
                let holes = round.units.holes();
                self.shard.round(own, holes, &batch.data, round.watermark, &mut self.waiting);
            }
            Work::Finish(step) => self.shard.finish(*step, &mut self.waiting),
        }
        self.waiting.take_before(round.watermark, &mut done);
        self.next += 1;
        done
    }
}

/// The bounds of one of `workers` workers.
#[must_use]
pub const fn share_of(limits: Limits, workers: usize) -> Limits {
    Limits {
        flows: limits.flows.div_ceil(workers),
        flow_bytes: limits.flow_bytes.div_ceil(workers),
        series_hosts: limits.series_hosts.div_ceil(workers),
        ..limits
    }
}
