//! Analysis apart from capture: packets are copied out of the ring and handed to a thread of their own.
//!
//! The ring itself is the better queue, so that this is not the default; it shows what a hand-off costs, and
//! helps where one thread keeps a ring empty that another one analyses in bursts. While the queue is nearly full
//! packets stay in the ring, as far as that has room. Then it refuses, and what was refused is a loss to the
//! analysis, at its place.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use netsniff_capture::counters::Occupancy;
use netsniff_packet::{Batch, Loss, Stage, Timestamp};

use super::analysis::Analyser;
use super::books::RingReport;
use super::reorder::PacketSlice;
use super::ring::{Backpressure, Consumer, NO_ROOM_PAUSE};

/// Groups that may wait. A group is a block of the ring at most, so that these are 64 MiB with the usual blocks.
const QUEUE: usize = 64;

/// Groups from which on packets had better wait in the ring, so that there is room for what is told beside them.
const NEARLY_FULL: usize = QUEUE * 3 / 4;

/// How far they wait there. From half a ring on less is analysed of new flows, so that the queue gets shorter.
const NO_ROOM: Backpressure = Backpressure { time: Duration::from_secs(10), percent: 80 };

enum Task {
    Group(Batch),
    Occupied(Occupancy, Timestamp),
    Idle(Timestamp),
}

/// What both threads see.
#[derive(Default)]
struct Shared {
    /// Tasks in the queue.
    queued: AtomicUsize,
    /// Nothing is captured any more.
    is_stopping: AtomicBool,
    /// What the consumer told last.
    told: Mutex<RingReport>,
}

impl Shared {
    fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    fn report(&self) -> MutexGuard<'_, RingReport> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands the packets of one ring to a consumer in another thread.
pub struct OffThread<C> {
    queue: Option<SyncSender<Task>>,
    shared: Arc<Shared>,
    free: Receiver<Batch>,
    thread: Option<JoinHandle<C>>,
    handed: u64,
    refused: u64,
    /// What was refused since the last group that found room.
    hole: Option<Loss>,
    last: Option<Timestamp>,
}

impl<C: Consumer + 'static> OffThread<C> {
    /// Starts the thread, which pins itself to `cpu`.
    ///
    /// # Errors
    ///
    /// Where there can be no thread.
    pub fn start(consumer: C, cpu: Option<usize>) -> std::io::Result<Self> {
        let (queue, tasks) = sync_channel::<Task>(QUEUE);
        let (give_back, free) = channel();
        let shared = Arc::new(Shared::default());
        let mut worker = Worker {
            consumer,
            shared: Arc::clone(&shared),
            full_since: None,
            has_told_stop: false,
        };
        let thread = std::thread::Builder::new().name("analysis".to_owned()).spawn(move || {
            // Checked with the arguments; where it fails all the same the thread runs anywhere.
            let _ = cpu.map(netsniff_capture::pin);
            for task in tasks {
                // The capturing thread may have ended already.
                worker.work(task).map(|batch| give_back.send(batch));
            }
            worker.finish()
        })?;
        Ok(Self {
            queue: Some(queue),
            shared,
            free,
            thread: Some(thread),
            handed: 0,
            refused: 0,
            hole: None,
            last: None,
        })
    }

    /// The consumer, once everything is over; `None` where it panicked.
    #[must_use]
    pub fn into_consumer(mut self) -> Option<C> {
        drop(self.queue.take());
        self.thread.take()?.join().ok()
    }

    /// Sends it if there is room, or once there is, where nothing is captured any more. Whether it was sent.
    fn send(&self, task: Task) -> bool {
        let Some(queue) = &self.queue else { return false };
        // Counted before, so that the thread never takes off what was not counted.
        self.shared.queued.fetch_add(1, Ordering::Relaxed);
        let is_sent = if self.shared.is_stopping() {
            queue.send(task).is_ok()
        } else {
            queue.try_send(task).is_ok()
        };
        if !is_sent {
            self.shared.queued.fetch_sub(1, Ordering::Relaxed);
        }
        is_sent
    }

    fn refuse(&mut self, packets: u64, loss: Option<&Loss>, first: Timestamp) {
        self.refused += packets;
        let more = packets + loss.map_or(0, |loss| loss.packets);
        let hole = self.hole.get_or_insert(Loss {
            before: self.last,
            after: first,
            packets: 0,
            stage: Stage::System,
        });
        hole.packets = hole.packets.saturating_add(more);
    }
}

/// What the other thread works with.
struct Worker<C> {
    consumer: C,
    shared: Arc<Shared>,
    /// Since when the consumer has no room.
    full_since: Option<Instant>,
    has_told_stop: bool,
}

impl<C: Consumer> Worker<C> {
    /// Does a task, and gives back what it came in.
    fn work(&mut self, task: Task) -> Option<Batch> {
        self.shared.queued.fetch_sub(1, Ordering::Relaxed);
        let mut done = None;
        match task {
            Task::Group(batch) => {
                self.wait_for_room();
                let loss = batch.losses.first().map(|(_, loss)| loss);
                let (data, packets) = (&batch.data, &batch.packets);
                self.consumer.group(PacketSlice { data, packets, loss });
                done = Some(batch);
            }
            Task::Occupied(occupancy, now) => self.consumer.occupied(occupancy, now),
            Task::Idle(settled) => self.consumer.idle(settled),
        }
        self.tell();
        done
    }

    /// Tells what was counted. Peaks go on until the ring has told them.
    fn tell(&mut self) {
        let mut told = self.shared.report();
        let before = told.held.and_then(|held| held.most);
        self.consumer.fill(&mut told);
        told.held.iter_mut().for_each(|held| held.most = held.most.max(before));
        drop(told);
        self.consumer.reported();
    }

    /// Makes the queue wait for a consumer without room, as the ring waits for the queue.
    fn wait_for_room(&mut self) {
        loop {
            let is_stopping = self.shared.is_stopping();
            if is_stopping && !self.has_told_stop {
                self.has_told_stop = true;
                self.consumer.stopping();
            }
            let Some(patience) = self.consumer.wait_for_room() else {
                self.full_since = None;
                return;
            };
            let is_full = self.shared.queued() * 100 >= QUEUE * patience.percent as usize;
            let waited = self.full_since.get_or_insert_with(Instant::now).elapsed();
            if is_full && !is_stopping || waited >= patience.until_stop(is_stopping) {
                return;
            }
            std::thread::sleep(NO_ROOM_PAUSE);
        }
    }

    fn finish(mut self) -> C {
        self.consumer.finish();
        self.tell();
        self.consumer
    }
}

impl<C: Consumer + 'static> Consumer for OffThread<C> {
    fn wait_for_room(&mut self) -> Option<Backpressure> {
        let has_room = self.shared.queued() < NEARLY_FULL || self.shared.is_stopping();
        (!has_room).then_some(NO_ROOM)
    }

    fn group(&mut self, group: PacketSlice<'_>) {
        let mut batch = self.free.try_recv().unwrap_or_default();
        batch.clear();
        let first = group.packets.first().map(|packet| packet.timestamp);
        let mut loss = group.loss.copied();
        if let Some(hole) = &self.hole {
            let more = loss.map_or(0, |loss| loss.packets);
            let after = loss.map(|loss| loss.after).or(first).unwrap_or(hole.after);
            loss = Some(Loss { after, packets: hole.packets.saturating_add(more), ..*hole });
        }
        if let Some(loss) = loss {
            batch.push_loss(loss);
        }
        for record in group.packets {
            batch.push(&group.packet(record));
        }
        let packets = group.packets.len() as u64;
        if self.send(Task::Group(batch)) {
            self.handed += packets;
            self.hole = None;
            self.last = group.packets.last().map(|packet| packet.timestamp).or(self.last);
        } else {
            self.refuse(packets, group.loss, first.unwrap_or(Timestamp::MAX));
        }
    }

    fn occupied(&mut self, occupancy: Occupancy, now: Timestamp) {
        // The next time will do.
        self.send(Task::Occupied(occupancy, now));
    }

    fn idle(&mut self, settled: Timestamp) {
        self.send(Task::Idle(settled));
    }

    fn stopping(&mut self) {
        self.shared.is_stopping.store(true, Ordering::Relaxed);
    }

    fn finish(&mut self) {
        self.stopping();
        if let Some(hole) = self.hole.take() {
            let mut batch = Batch::default();
            batch.push_loss(hole);
            let _ = self.send(Task::Group(batch));
        }
        drop(self.queue.take());
        if let Some(thread) = &self.thread {
            while !thread.is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    fn fill(&self, report: &mut RingReport) {
        let told = self.shared.report().clone();
        let analysed = told.analysed.unwrap_or(0);
        report.analysed = Some(analysed);
        report.waiting += self.handed.saturating_sub(analysed);
        report.refused += self.refused;
        report.by_depth = told.by_depth;
        report.shed = told.shed;
        report.shed_nanos = told.shed_nanos;
        report.late = told.late;
        report.cut_headers = told.cut_headers;
        report.held = told.held;
        report.holes_given_up = told.holes_given_up;
        report.refused_rows = told.refused_rows;
        report.flows = told.flows;
        report.flow_split = told.flow_split;
        report.now = told.now;
    }

    fn reported(&mut self) {
        let mut told = self.shared.report();
        told.held.iter_mut().for_each(|held| held.most = Some(held.bytes));
    }
}

/// The analysis of one ring, in its own thread or apart.
pub enum RingAnalysis {
    /// In the thread that captures.
    Inline(Box<Analyser>),
    /// In a thread of its own.
    OffThread(Box<OffThread<Analyser>>),
}

impl RingAnalysis {
    fn consumer(&mut self) -> &mut dyn Consumer {
        match self {
            Self::Inline(analyser) => analyser.as_mut(),
            Self::OffThread(apart) => apart.as_mut(),
        }
    }

    /// The analyser, once everything is over; `None` where its thread panicked.
    #[must_use]
    pub fn into_analyser(self) -> Option<Analyser> {
        match self {
            Self::Inline(analyser) => Some(*analyser),
            Self::OffThread(apart) => apart.into_consumer(),
        }
    }
}

impl Consumer for RingAnalysis {
    fn wait_for_room(&mut self) -> Option<Backpressure> {
        self.consumer().wait_for_room()
    }

    fn group(&mut self, group: PacketSlice<'_>) {
        self.consumer().group(group);
    }

    fn occupied(&mut self, occupancy: Occupancy, now: Timestamp) {
        self.consumer().occupied(occupancy, now);
    }

    fn idle(&mut self, settled: Timestamp) {
        self.consumer().idle(settled);
    }

    fn stopping(&mut self) {
        self.consumer().stopping();
    }

    fn finish(&mut self) {
        self.consumer().finish();
    }

    fn fill(&self, report: &mut RingReport) {
        match self {
            Self::Inline(analyser) => analyser.fill(report),
            Self::OffThread(apart) => apart.fill(report),
        }
    }

    fn reported(&mut self) {
        self.consumer().reported();
    }
}

#[cfg(test)]
mod tests;
