//! Analysis apart from capture: packets are copied out of the ring and handed to a thread of their own.
//!
//! The ring itself is the better queue, so that this is not the default; it shows what a hand-off costs, and
//! helps where one thread keeps a ring empty that another one analyses in bursts. A full queue refuses, and
//! what was refused is a loss to the analysis, at its place.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use netsniff_capture::counters::Occupancy;
use netsniff_packet::{Batch, Loss, Stage, Timestamp};

use super::analysis::Analyser;
use super::books::RingReport;
use super::order::Group;
use super::ring::{Consumer, Patience};

/// Groups that may wait. A group is a block of the ring at most, so that these are 64 MiB with the usual blocks.
const QUEUE: usize = 64;

enum Task {
    Group(Batch),
    Occupied(Occupancy, Timestamp),
    Idle(Timestamp),
}

/// Hands the packets of one ring to a consumer in another thread.
pub struct Apart<C> {
    queue: Option<SyncSender<Task>>,
    free: Receiver<Batch>,
    thread: Option<JoinHandle<C>>,
    /// What the consumer told last.
    told: Arc<Mutex<RingReport>>,
    handed: u64,
    refused: u64,
    /// What was refused since the last group that found room.
    hole: Option<Loss>,
    last: Option<Timestamp>,
}

impl<C: Consumer + 'static> Apart<C> {
    /// Starts the thread, which pins itself to `cpu`.
    ///
    /// # Errors
    ///
    /// Where there can be no thread.
    pub fn start(mut consumer: C, cpu: Option<usize>) -> std::io::Result<Self> {
        let (queue, tasks) = sync_channel::<Task>(QUEUE);
        let (give_back, free) = channel();
        let told = Arc::new(Mutex::new(RingReport::default()));
        let tells = Arc::clone(&told);
        let thread = std::thread::Builder::new().name("analysis".to_owned()).spawn(move || {
            // Checked with the arguments; where it fails all the same the thread runs anywhere.
            let _ = cpu.map(netsniff_capture::pin);
            for task in tasks {
                match task {
                    Task::Group(batch) => {
                        let loss = batch.losses.first().map(|(_, loss)| loss);
                        let (data, packets) = (&batch.data, &batch.packets);
                        consumer.group(Group { data, packets, loss });
                        // The capturing thread may have ended already.
                        let _ = give_back.send(batch);
                    }
                    Task::Occupied(occupancy, now) => consumer.occupied(occupancy, now),
                    Task::Idle(settled) => consumer.idle(settled),
                }
                consumer.fill(&mut tells.lock().unwrap_or_else(PoisonError::into_inner));
            }
            consumer.finish();
            consumer.fill(&mut tells.lock().unwrap_or_else(PoisonError::into_inner));
            consumer
        })?;
        Ok(Self {
            queue: Some(queue),
            free,
            thread: Some(thread),
            told,
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

    fn send(&self, task: Task) -> Result<(), TrySendError<Task>> {
        match &self.queue {
            Some(queue) => queue.try_send(task),
            None => Err(TrySendError::Disconnected(task)),
        }
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

impl<C: Consumer + 'static> Consumer for Apart<C> {
    fn group(&mut self, group: Group<'_>) {
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
        if self.send(Task::Group(batch)).is_ok() {
            self.handed += packets;
            self.hole = None;
            self.last = group.packets.last().map(|packet| packet.timestamp).or(self.last);
        } else {
            self.refuse(packets, group.loss, first.unwrap_or(Timestamp::MAX));
        }
    }

    fn occupied(&mut self, occupancy: Occupancy, now: Timestamp) {
        // The next time will do.
        let _ = self.send(Task::Occupied(occupancy, now));
    }

    fn idle(&mut self, settled: Timestamp) {
        let _ = self.send(Task::Idle(settled));
    }

    fn finish(&mut self) {
        if let (Some(hole), Some(queue)) = (self.hole.take(), &self.queue) {
            let mut batch = Batch::default();
            batch.push_loss(hole);
            // Nothing is captured any more, so that waiting loses nothing.
            let _ = queue.send(Task::Group(batch));
        }
        drop(self.queue.take());
        if let Some(thread) = &self.thread {
            while !thread.is_finished() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    }

    fn fill(&self, report: &mut RingReport) {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let analysed = told.analysed.unwrap_or(0);
        report.analysed = Some(analysed);
        report.waiting += self.handed.saturating_sub(analysed);
        report.refused += self.refused;
        report.by_depth = told.by_depth;
        report.shed = told.shed;
        report.shed_nanos = told.shed_nanos;
        report.late = told.late;
        report.refused_rows = told.refused_rows;
        report.flows = told.flows;
        report.flow_split = told.flow_split;
        report.now = told.now;
    }
}

/// The analysis of one ring, in its own thread or apart.
pub enum Work {
    /// In the thread that captures.
    Here(Box<Analyser>),
    /// In another one.
    Apart(Box<Apart<Analyser>>),
}

impl Work {
    fn consumer(&mut self) -> &mut dyn Consumer {
        match self {
            Self::Here(analyser) => analyser.as_mut(),
            Self::Apart(apart) => apart.as_mut(),
        }
    }

    /// The analyser, once everything is over; `None` where its thread panicked.
    #[must_use]
    pub fn into_analyser(self) -> Option<Analyser> {
        match self {
            Self::Here(analyser) => Some(*analyser),
            Self::Apart(apart) => apart.into_consumer(),
        }
    }
}

impl Consumer for Work {
    fn wait_for_room(&mut self) -> Option<Patience> {
        self.consumer().wait_for_room()
    }

    fn group(&mut self, group: Group<'_>) {
        self.consumer().group(group);
    }

    fn occupied(&mut self, occupancy: Occupancy, now: Timestamp) {
        self.consumer().occupied(occupancy, now);
    }

    fn idle(&mut self, settled: Timestamp) {
        self.consumer().idle(settled);
    }

    fn finish(&mut self) {
        self.consumer().finish();
    }

    fn fill(&self, report: &mut RingReport) {
        match self {
            Self::Here(analyser) => analyser.fill(report),
            Self::Apart(apart) => apart.fill(report),
        }
    }
}

#[cfg(test)]
#[path = "apart/tests.rs"]
mod tests;
