//! Packets that nobody understood, on their way to a file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use netsniff_analysis::ingress::Unparsed;
use netsniff_packet::Batch;

use crate::output::UnparsedFile;
use crate::pipeline::live::TakeUnparsed;

/// Packets without meaning that may wait to be written.
const UNPARSED_QUEUE: usize = 1024;

/// Writes packets that nobody understood, in a thread of its own, so that no ring waits for it.
pub(super) struct Aside {
    queue: Option<SyncSender<(Batch, Unparsed)>>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
    refused: Arc<AtomicU64>,
}

impl Aside {
    /// Begins with the file, if there is to be one.
    pub(super) fn new(file: Option<UnparsedFile>) -> Self {
        let refused = Arc::default();
        let Some(mut file) = file else { return Self { queue: None, thread: None, refused } };
        let (queue, packets) = sync_channel::<(Batch, Unparsed)>(UNPARSED_QUEUE);
        let thread = std::thread::spawn(move || {
            for (batch, why) in packets {
                for packet in batch.iter() {
                    file.add(&packet, &why)?;
                }
            }
            file.finish()
        });
        Self { queue: Some(queue), thread: Some(thread), refused }
    }

    /// What a ring calls for each such packet.
    pub(super) fn taker(&self) -> TakeUnparsed {
        let Some(queue) = self.queue.clone() else { return Box::new(|_, _| {}) };
        let refused = Arc::clone(&self.refused);
        Box::new(move |packet, why| {
            let mut batch = Batch::default();
            batch.push(packet);
            if queue.try_send((batch, *why)).is_err() {
                refused.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    /// Ends the file and returns how many packets had no room on their way to it.
    pub(super) fn finish(mut self) -> anyhow::Result<u64> {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            thread.join().map_err(|_| anyhow::anyhow!("the thread of a file panicked"))??;
        }
        Ok(self.refused.load(Ordering::Relaxed))
    }
}
