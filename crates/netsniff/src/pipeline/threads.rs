//! Workers in threads, joined by bounded queues of whole slices.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use anyhow::anyhow;
use netsniff_analysis::correlator::JoinStatistics;
use netsniff_analysis::flow::key::FlowKey;
use netsniff_analysis::flow::tracker::FINISH_STEPS;
use netsniff_analysis::statistics::FlowStatistics;
use netsniff_analysis::{Limits, Units};
use netsniff_packet::{Batch, Timestamp};

use super::lane::Lane;
use super::run::{Front, Settings};
use crate::output::{Format, Merger, RowBuffer, RowSink};

/// Slices that may wait in each queue. Enough that a short stall of one thread stops no other,
/// few enough that what waits stays in the caches.
const QUEUE: usize = 8;

/// What a worker is to do next.
enum Task {
    /// Some of the datagrams of a slice, the batch that they lie in, and the watermark after them.
    Units(Arc<Units>, Vec<u32>, Arc<Batch>, Timestamp),
    /// The end begins: the engine time of the last packet.
    BeginFinish(Timestamp),
    /// A part of the flows that are left.
    FinishStep(u32, Timestamp),
}

/// The ends that the reading thread holds.
pub(super) struct Workers<'scope> {
    tasks: Vec<SyncSender<Task>>,
    rows: SyncSender<RowBuffer>,
    free_shares: Receiver<Vec<u32>>,
    free_rows: Receiver<RowBuffer>,
    /// Slices that are decoded into again once nobody uses them.
    slices: VecDeque<Arc<Units>>,
    /// Which of a slice's datagrams are each worker's.
    shares: Vec<Vec<u32>>,
    format: Option<Format>,
    lanes: Vec<ScopedJoinHandle<'scope, FlowStatistics>>,
    writer: ScopedJoinHandle<'scope, anyhow::Result<JoinStatistics>>,
    /// Tells the writer the engine time at the end.
    end: Sender<Timestamp>,
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
        let (shares_back, free_shares) = channel();
        let mut queues = Vec::new();
        let mut tasks = Vec::new();
        let mut lanes = Vec::new();
        for _ in 0..settings.workers {
            let (send_task, receive_task) = sync_channel(QUEUE);
            let (filled, queue, free) = row_queue();
            let lane = Lane::new(limits, settings.options.clone(), settings.seed, settings.format);
            let (shares_back, format) = (shares_back.clone(), settings.format);
            lanes
                .push(scope.spawn(move || {
                    work(lane, &receive_task, &filled, &free, &shares_back, format)
                }));
            queues.push(queue);
            tasks.push(send_task);
        }
        let (rows, queue, free_rows) = row_queue();
        queues.push(queue);
        let merger =
            Merger::new(&settings.limits, settings.format, settings.options.anonymizer.clone());
        let (end, receive_end) = channel();
        let writer = scope.spawn(move || write(&queues, merger, &receive_end, sink));
        let shares = (0..settings.workers).map(|_| Vec::new()).collect();
        let format = settings.format;
        let slices = VecDeque::new();
        Self { tasks, rows, free_shares, free_rows, slices, shares, format, lanes, writer, end }
    }

    /// Hands the datagrams of a slice to their workers.
    pub(super) fn round(&mut self, front: &mut Front, batch: &Arc<Batch>) -> anyhow::Result<()> {
        let watermark = front.watermark();
        let workers = self.shares.len();
        for (at, unit) in (0..).zip(front.units.as_slice()) {
            if let Some(ip) = unit.ip() {
                self.shares[FlowKey::worker(ip.source, ip.destination, workers)].push(at);
            }
        }
        let slice = Arc::new(core::mem::take(&mut front.units));
        for worker in 0..workers {
            let empty = self.free_shares.try_recv().unwrap_or_default();
            let share = core::mem::replace(&mut self.shares[worker], empty);
            let task = Task::Units(Arc::clone(&slice), share, Arc::clone(batch), watermark);
            self.send(worker, task)?;
        }
        self.slices.push_back(slice);
        front.units = self.free_slice();
        self.send_rows(front, watermark)
    }

    fn free_slice(&mut self) -> Units {
        if self.slices.front().is_none_or(|slice| Arc::strong_count(slice) > 1) {
            return Units::default();
        }
        let slice = self.slices.pop_front().and_then(Arc::into_inner);
        let mut units = slice.unwrap_or_default();
        units.clear();
        units
    }

    /// Ends the workers, also where reading ended with an error.
    pub(super) fn finish(
        mut self,
        front: &mut Front,
        result: anyhow::Result<()>,
    ) -> anyhow::Result<(FlowStatistics, JoinStatistics)> {
        let result = result.and_then(|()| self.finish_flows(front));
        if result.is_ok() {
            // The writer may have failed already, which shows below.
            let _ = self.end.send(front.ingress.now());
        }
        drop((self.tasks, self.rows, self.end));
        let mut statistics = FlowStatistics::default();
        for lane in self.lanes {
            statistics.merge(&lane.join().map_err(|_| anyhow!("a worker panicked"))?);
        }
        // An error of the writer is the cause of whatever the reading thread saw.
        let joins = self.writer.join().map_err(|_| anyhow!("the writer panicked"))??;
        result.map(|()| (statistics, joins))
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
    shares_back: &Sender<Vec<u32>>,
    format: Option<Format>,
) -> FlowStatistics {
    for task in tasks {
        let mut done = free.try_recv().unwrap_or_else(|_| RowBuffer::new(format));
        match task {
            Task::Units(slice, mut share, batch, watermark) => {
                let units = slice.as_slice();
                let own = share.iter().map(|&at| at as usize);
                let own = own.filter_map(|at| Some((at, units.get(at)?)));
                lane.units(own, slice.holes(), &batch.data, watermark, &mut done);
                share.clear();
                // The reading thread may have ended already.
                let _ = shares_back.send(share);
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

/// The writer's thread: a buffer of each queue makes a round. Returns what the facts of several flows
/// amount to.
fn write<K: RowSink>(
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
