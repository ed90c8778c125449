//! Workers in threads, joined by bounded queues of whole slices.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use anyhow::anyhow;
use netsniff_analysis::flow::key::FlowKey;
use netsniff_analysis::flow::tracker::FINISH_STEPS;
use netsniff_analysis::statistics::FlowStatistics;
use netsniff_analysis::{Limits, Unit};
use netsniff_packet::{Batch, Timestamp};

use super::lane::Lane;
use super::run::{Front, Settings};
use crate::output::{Format, RowBuffer, RowSink, merge};

/// Slices that may wait in each queue. Enough that a short stall of one thread stops no other,
/// few enough that what waits stays in the caches.
const QUEUE: usize = 8;

/// What a worker is to do next.
enum Task {
    /// Datagrams with the batch that they lie in, and the watermark after them.
    Units(Vec<Unit>, Arc<Batch>, Timestamp),
    /// The end begins: the engine time of the last packet.
    BeginFinish(Timestamp),
    /// A part of the flows that are left.
    FinishStep(u32, Timestamp),
}

/// The ends that the reading thread holds.
pub(super) struct Workers<'scope> {
    tasks: Vec<SyncSender<Task>>,
    rows: SyncSender<RowBuffer>,
    free_units: Receiver<Vec<Unit>>,
    free_rows: Receiver<RowBuffer>,
    shares: Vec<Vec<Unit>>,
    format: Format,
    lanes: Vec<ScopedJoinHandle<'scope, FlowStatistics>>,
    writer: ScopedJoinHandle<'scope, anyhow::Result<()>>,
}

/// The queues of one stream of rows: filled buffers one way, empty ones back.
struct RowQueue {
    filled: Receiver<RowBuffer>,
    free: Sender<RowBuffer>,
}

impl<'scope> Workers<'scope> {
    pub(super) fn start<'env, K: RowSink + Send>(
        scope: &'scope Scope<'scope, 'env>,
        settings: &Settings,
        sink: &'env mut K,
    ) -> Self {
        let limits = share_of(settings.limits, settings.workers);
        let (units_back, free_units) = channel();
        let mut queues = Vec::new();
        let mut tasks = Vec::new();
        let mut lanes = Vec::new();
        for _ in 0..settings.workers {
            let (send_task, receive_task) = sync_channel(QUEUE);
            let (filled, queue, free) = row_queue();
            let lane = Lane::new(limits, settings.seed, settings.format);
            let (units_back, format) = (units_back.clone(), settings.format);
            lanes.push(
                scope.spawn(move || work(lane, &receive_task, &filled, &free, &units_back, format)),
            );
            queues.push(queue);
            tasks.push(send_task);
        }
        let (rows, queue, free_rows) = row_queue();
        queues.push(queue);
        let writer = scope.spawn(move || write(&queues, sink));
        let shares = (0..settings.workers).map(|_| Vec::new()).collect();
        let format = settings.format;
        Self { tasks, rows, free_units, free_rows, shares, format, lanes, writer }
    }

    /// Hands the datagrams of a slice to their workers.
    pub(super) fn round(&mut self, front: &mut Front, batch: &Arc<Batch>) -> anyhow::Result<()> {
        let watermark = front.watermark();
        let workers = self.shares.len();
        for unit in front.units.drain(..) {
            let worker = FlowKey::worker(unit.ip.source, unit.ip.destination, workers);
            self.shares[worker].push(unit);
        }
        for worker in 0..workers {
            let empty = self.free_units.try_recv().unwrap_or_default();
            let share = core::mem::replace(&mut self.shares[worker], empty);
            self.send(worker, Task::Units(share, Arc::clone(batch), watermark))?;
        }
        self.send_rows(front, watermark)
    }

    /// Ends the workers, also where reading ended with an error.
    pub(super) fn finish(
        mut self,
        front: &mut Front,
        result: anyhow::Result<()>,
    ) -> anyhow::Result<FlowStatistics> {
        let result = result.and_then(|()| self.finish_flows(front));
        drop((self.tasks, self.rows));
        let mut statistics = FlowStatistics::default();
        for lane in self.lanes {
            statistics.merge(&lane.join().map_err(|_| anyhow!("a worker panicked"))?);
        }
        // An error of the writer is the cause of whatever the reading thread saw.
        self.writer.join().map_err(|_| anyhow!("the writer panicked"))??;
        result.map(|()| statistics)
    }

    fn finish_flows(&mut self, front: &mut Front) -> anyhow::Result<()> {
        front.finish();
        let now = front.ingress.now();
        for worker in 0..self.tasks.len() {
            self.send(worker, Task::BeginFinish(now))?;
        }
        self.send_rows(front, now)?;
        for step in 0..FINISH_STEPS {
            for worker in 0..self.tasks.len() {
                self.send(worker, Task::FinishStep(step, now))?;
            }
            self.send_rows(front, Timestamp::MAX)?;
        }
        Ok(())
    }

    fn send(&self, worker: usize, task: Task) -> anyhow::Result<()> {
        self.tasks[worker].send(task).map_err(|_| anyhow!("a worker has stopped"))
    }

    fn send_rows(&self, front: &mut Front, watermark: Timestamp) -> anyhow::Result<()> {
        let mut done = self.free_rows.try_recv().unwrap_or_else(|_| RowBuffer::new(self.format));
        front.take_rows(watermark, &mut done);
        self.rows.send(done).map_err(|_| anyhow!("the writer has stopped"))
    }
}

fn row_queue() -> (SyncSender<RowBuffer>, RowQueue, Receiver<RowBuffer>) {
    let (send, filled) = sync_channel(QUEUE);
    let (free, receive_free) = channel();
    (send, RowQueue { filled, free }, receive_free)
}

/// A worker's thread.
fn work(
    mut lane: Lane,
    tasks: &Receiver<Task>,
    filled: &SyncSender<RowBuffer>,
    free: &Receiver<RowBuffer>,
    units_back: &Sender<Vec<Unit>>,
    format: Format,
) -> FlowStatistics {
    for task in tasks {
        let mut done = free.try_recv().unwrap_or_else(|_| RowBuffer::new(format));
        match task {
            Task::Units(mut units, batch, watermark) => {
                lane.units(&units, &batch.data, watermark, &mut done);
                units.clear();
                // The reading thread may have ended already.
                let _ = units_back.send(units);
            }
            Task::BeginFinish(now) => lane.begin_finish(now, &mut done),
            Task::FinishStep(step, now) => lane.finish_step(step, now, &mut done),
        }
        if filled.send(done).is_err() {
            break;
        }
    }
    lane.tracker().statistics().clone()
}

/// The writer's thread: a buffer of each queue makes a round.
fn write<K: RowSink>(queues: &[RowQueue], sink: &mut K) -> anyhow::Result<()> {
    let mut round = Vec::with_capacity(queues.len());
    loop {
        for queue in queues {
            match queue.filled.recv() {
                Ok(buffer) => round.push(buffer),
                Err(_) => return Ok(()),
            }
        }
        merge(&round, sink)?;
        for (queue, buffer) in queues.iter().zip(round.drain(..)) {
            let _ = queue.free.send(buffer);
        }
    }
}

/// The bounds of one of `workers` workers.
const fn share_of(limits: Limits, workers: usize) -> Limits {
    Limits {
        flows: limits.flows.div_ceil(workers),
        flow_bytes: limits.flow_bytes.div_ceil(workers),
        ..limits
    }
}
