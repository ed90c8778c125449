//! Workers in threads, joined by bounded queues of whole slices.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use anyhow::anyhow;
use netsniff_analysis::correlator::JoinStatistics;
use netsniff_analysis::engine::decoding::{DecodeStage, Intake};
use netsniff_analysis::engine::shard::{FinishStep, Shard};
use netsniff_analysis::flow::report::statistics::FlowStatistics;
use netsniff_analysis::key::FlowKey;
use netsniff_analysis::{DatagramBatch, Limits, SortKey};
use netsniff_output::{Merger, RowBuffer, RowSink};
use netsniff_packet::{Batch, Timestamp};

use super::run::{AnalysisOutcome, Settings};

/// Rounds that may wait in each queue. Enough that a short stall of one thread stops no other,
/// few enough that what waits stays in the caches.
const QUEUE: usize = 8;

/// Packets of a round: enough that waking the other threads hardly counts.
const ROUND: usize = 2048;

/// What a worker is to do next.
enum Task {
    /// Some of the datagrams of a round, the batch that they lie in, and the watermark behind them.
    Round(Arc<DatagramBatch>, Vec<u32>, Arc<Batch>, SortKey),
    /// A part of the end.
    Finish(FinishStep),
}

/// The part of the reading thread: decoding, and sharing out.
pub(super) struct Workers<'scope> {
    stage: DecodeStage,
    /// The rows of decoding that are not complete.
    waiting: RowBuffer,
    queues: Queues<'scope>,
}

/// The ends that the reading thread holds.
struct Queues<'scope> {
    tasks: Vec<SyncSender<Task>>,
    rows: SyncSender<RowBuffer>,
    free_shares: Receiver<Vec<u32>>,
    free_rows: Receiver<RowBuffer>,
    /// Rounds that are decoded into again once nobody uses them.
    rounds: VecDeque<Arc<DatagramBatch>>,
    /// Which of a round's datagrams are each worker's.
    shares: Vec<Vec<u32>>,
    shards: Vec<ScopedJoinHandle<'scope, FlowStatistics>>,
    writer: ScopedJoinHandle<'scope, anyhow::Result<JoinStatistics>>,
    /// Tells the writer the engine time at the end.
    end: Sender<Timestamp>,
    /// Why nothing is shared out any more.
    error: Option<anyhow::Error>,
}

/// The queues of one stream of rows: filled buffers one way, empty ones back.
struct RowQueue {
    filled: Receiver<RowBuffer>,
    free: Sender<RowBuffer>,
}

impl<'scope> Workers<'scope> {
    pub(super) fn start<'env, K: RowSink<Error = anyhow::Error> + Send>(
        scope: &'scope Scope<'scope, 'env>,
        settings: &Settings,
        sink: &'env mut K,
    ) -> Self {
        let limits = share_of(settings.limits, settings.workers);
        let (shares_back, free_shares) = channel();
        let (mut queues, mut tasks, mut shards) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..settings.workers {
            let (send_task, receive_task) = sync_channel(QUEUE);
            let (filled, queue, free) = row_queue();
            let shard = Shard::new(limits, settings.options.clone(), settings.seed);
            let (shares_back, waiting) = (shares_back.clone(), settings.rows());
            shards.push(
                scope.spawn(move || {
                    work(shard, waiting, &receive_task, &filled, &free, &shares_back)
                }),
            );
            queues.push(queue);
            tasks.push(send_task);
        }
        let (rows, queue, free_rows) = row_queue();
        queues.push(queue);
        let (end, receive_end) = channel();
        let merger = settings.merger();
        let writer = scope.spawn(move || write(&queues, merger, &receive_end, sink));
        let shares = (0..settings.workers).map(|_| Vec::new()).collect();
        let (rounds, error) = (VecDeque::new(), None);
        Self {
            stage: DecodeStage::new(settings.limits, settings.options.clone(), ROUND),
            waiting: settings.rows(),
            queues: Queues {
                tasks,
                rows,
                free_shares,
                free_rows,
                rounds,
                shares,
                shards,
                writer,
                end,
                error,
            },
        }
    }

    /// Decodes a batch, and hands its datagrams to their workers.
    pub(super) fn batch(
        &mut self,
        batch: &Arc<Batch>,
        intake: &mut impl Intake,
    ) -> anyhow::Result<()> {
        let Self { stage, waiting, queues } = self;
        stage.batch(batch, Arc::new, intake, waiting, |stage, batch, waiting| {
            queues.round(stage, batch, waiting);
        });
        queues.error.take().map_or(Ok(()), Err)
    }

    /// Ends the workers, also where reading ended with an error.
    pub(super) fn finish(
        mut self,
        intake: &mut impl Intake,
        result: anyhow::Result<()>,
    ) -> anyhow::Result<AnalysisOutcome> {
        let result = result.and_then(|()| self.finish_flows(intake));
        let Self { stage, queues, .. } = self;
        if result.is_ok() {
            // The writer may have failed already, which shows below.
            let _ = queues.end.send(stage.ingress().now());
        }
        drop((queues.tasks, queues.rows, queues.end));
        let mut flows = FlowStatistics::default();
        for shard in queues.shards {
            flows.merge(&shard.join().map_err(|_| anyhow!("a worker panicked"))?);
        }
        // An error of the writer is the cause of whatever the reading thread saw.
        let joins = queues.writer.join().map_err(|_| anyhow!("the writer panicked"))??;
        result.map(|()| AnalysisOutcome::new(&stage, flows, joins))
    }

    fn finish_flows(&mut self, intake: &mut impl Intake) -> anyhow::Result<()> {
        let Self { stage, waiting, queues } = self;
        stage.finish(Arc::new, intake, waiting, |stage, batch, waiting| {
            queues.round(stage, batch, waiting);
        });
        queues.error.take().map_or(Ok(()), Err)?;
        for step in FinishStep::all(stage.ingress().now()) {
            for worker in 0..queues.tasks.len() {
                queues.send(worker, Task::Finish(step))?;
            }
            queues.send_rows(waiting, step.watermark())?;
        }
        Ok(())
    }
}

impl Queues<'_> {
    /// Shares out the datagrams of a round. Behind an error nothing is shared out any more.
    fn round(&mut self, stage: &mut DecodeStage, batch: &Arc<Batch>, waiting: &mut RowBuffer) {
        if self.error.is_none() {
            self.error = self.try_round(stage, batch, waiting).err();
        }
    }

    fn try_round(
        &mut self,
        stage: &mut DecodeStage,
        batch: &Arc<Batch>,
        waiting: &mut RowBuffer,
    ) -> anyhow::Result<()> {
        let watermark = stage.watermark();
        let workers = self.shares.len();
        for (at, unit) in (0..).zip(stage.units().as_slice()) {
            if let Some(ip) = unit.ip() {
                self.shares[FlowKey::worker(ip.source, ip.destination, workers)].push(at);
            }
        }
        let round = Arc::new(stage.take_units(self.free_round()));
        for worker in 0..workers {
            let empty = self.free_shares.try_recv().unwrap_or_default();
            let share = core::mem::replace(&mut self.shares[worker], empty);
            let task = Task::Round(Arc::clone(&round), share, Arc::clone(batch), watermark);
            self.send(worker, task)?;
        }
        self.rounds.push_back(round);
        self.send_rows(waiting, watermark)
    }

    fn free_round(&mut self) -> DatagramBatch {
        if self.rounds.front().is_none_or(|round| Arc::strong_count(round) > 1) {
            return DatagramBatch::default();
        }
        let round = self.rounds.pop_front().and_then(Arc::into_inner);
        let mut units = round.unwrap_or_default();
        units.clear();
        units
    }

    fn send(&self, worker: usize, task: Task) -> anyhow::Result<()> {
        self.tasks[worker].send(task).map_err(|_| anyhow!("a worker has stopped"))
    }

    fn send_rows(&self, waiting: &mut RowBuffer, watermark: SortKey) -> anyhow::Result<()> {
        let mut done = self.free_rows.try_recv().unwrap_or_else(|_| waiting.same());
        waiting.take_before(watermark, &mut done);
        self.rows.send(done).map_err(|_| anyhow!("the writer has stopped"))
    }
}

fn row_queue() -> (SyncSender<RowBuffer>, RowQueue, Receiver<RowBuffer>) {
    let (send, filled) = sync_channel(QUEUE);
    let (free, receive_free) = channel();
    (send, RowQueue { filled, free }, receive_free)
}

fn work(
    mut shard: Shard,
    mut waiting: RowBuffer,
    tasks: &Receiver<Task>,
    filled: &SyncSender<RowBuffer>,
    free: &Receiver<RowBuffer>,
    shares_back: &Sender<Vec<u32>>,
) -> FlowStatistics {
    for task in tasks {
        let watermark = match task {
            Task::Round(round, mut share, batch, watermark) => {
                let units = round.as_slice();
                let own = share.iter().map(|&at| at as usize);
                let own = own.filter_map(|at| Some((at, units.get(at)?)));
                shard.round(own, round.holes(), &batch.data, watermark, &mut waiting);
                share.clear();
                // The reading thread may have ended already.
                let _ = shares_back.send(share);
                watermark
            }
            Task::Finish(step) => {
                shard.finish(step, &mut waiting);
                step.watermark()
            }
        };
        let mut done = free.try_recv().unwrap_or_else(|_| waiting.same());
        waiting.take_before(watermark, &mut done);
        if filled.send(done).is_err() {
            break;
        }
    }
    shard.tracker().statistics().clone()
}

/// The writer's thread: a buffer of each queue makes a round. Returns what the facts of several flows
/// amount to.
fn write<K: RowSink<Error = anyhow::Error>>(
    queues: &[RowQueue],
    mut merger: Merger,
    end: &Receiver<Timestamp>,
    sink: &mut K,
) -> anyhow::Result<JoinStatistics> {
    let mut round = Vec::with_capacity(queues.len());
    loop {
        for queue in queues {
            match queue.filled.recv() {
                Ok(buffer) => round.push(buffer),
                Err(_) => {
                    // Without an end the analysis has failed, and no row is the last one.
                    if let Ok(now) = end.recv() {
                        merger.finish(now, sink)?;
                    }
                    return Ok(merger.statistics());
                }
            }
        }
        merger.merge(&mut round, sink)?;
        for (queue, buffer) in queues.iter().zip(round.drain(..)) {
            let _ = queue.free.send(buffer);
        }
    }
}

/// The bounds of one of `workers` workers.
#[must_use]
pub const fn share_of(limits: Limits, workers: usize) -> Limits {
    Limits {
        flows: limits.flows.div_ceil(workers),
        flow_bytes: limits.flow_bytes.div_ceil(workers),
        ..limits
    }
}
