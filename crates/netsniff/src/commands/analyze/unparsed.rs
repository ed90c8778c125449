//! Packets that nobody understood, on their way to a file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use netsniff_analysis::ingress::Unparsed;
use netsniff_console::number::count;
use netsniff_output::UnparsedFile;
use netsniff_packet::Batch;
use netsniff_pipeline::live::TakeUnparsed;

/// Packets without meaning that may wait to be written.
const UNPARSED_QUEUE: usize = 1024;

/// Writes packets that nobody understood, in a thread of its own, so that no ring waits for it.
pub(super) struct UnparsedWriter {
    queue: Option<SyncSender<(Batch, Unparsed)>>,
    /// Returns how many packets the file had no room for.
    thread: Option<JoinHandle<anyhow::Result<u64>>>,
    refused: Arc<AtomicU64>,
}

impl UnparsedWriter {
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

    /// Ends the file and returns how many packets had no room on their way to it, and in it.
    pub(super) fn finish(mut self) -> anyhow::Result<[u64; 2]> {
        drop(self.queue.take());
        let left_out = match self.thread.take() {
            Some(thread) => {
                thread.join().map_err(|_| anyhow::anyhow!("the thread of a file panicked"))??
            }
            None => 0,
        };
        Ok([self.refused.load(Ordering::Relaxed), left_out])
    }
}

/// What is to be said of packets for which `unparsed.pcapng` had no room.
pub(super) fn left_out(packets: u64) -> Option<String> {
    (packets > 0).then(|| {
        format!(
            "{} packets are missing in unparsed.pcapng: it is as large as --unparsed lets it be",
            count(packets)
        )
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;
    use std::time::Duration;

    use netsniff_analysis::ingress::Ingress;
    use netsniff_analysis::{Limits, Options};
    use netsniff_packet::{LinkType, Packet, Timestamp};

    use super::*;

    /// The file is a pipe that nobody reads yet: what finds no room is counted, and nobody waits.
    #[test]
    fn what_finds_no_room_is_counted() {
        let directory = std::env::temp_dir().join(format!("netsniff-aside-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let pipe = directory.join("unparsed.pcapng");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let why = unparsed();
        let file = UnparsedFile::new(&directory, &Options::default(), u64::MAX).unwrap();
        let aside = UnparsedWriter::new(Some(file));
        let mut take = aside.taker();
        let packet = packet();
        take(&packet, &why);
        // The thread takes the first one, and waits for somebody to read.
        std::thread::sleep(Duration::from_millis(100));
        (0..UNPARSED_QUEUE + 50).for_each(|_| take(&packet, &why));
        drop(take);
        let reads = |path: &Path| fs::read(path).unwrap();
        let read = std::thread::spawn(move || reads(&pipe));
        assert_eq!(aside.finish().unwrap(), [50, 0]);
        assert!(read.join().unwrap().len() > UNPARSED_QUEUE * 32);
        let _ = fs::remove_dir_all(&directory);
    }

    fn packet() -> Packet<'static> {
        Packet {
            timestamp: Timestamp::EPOCH,
            data: &[0; 4],
            wire_len: 4,
            link_type: LinkType::ETHERNET,
            interface: 0,
        }
    }

    /// Why that packet is not understood.
    fn unparsed() -> Unparsed {
        let mut ingress = Ingress::new(Limits::default(), Options::default());
        let mut units = netsniff_analysis::DatagramBatch::default();
        let mut rows = netsniff_output::RowBuffer::new(None);
        ingress.packet(&packet(), 0..4, &mut units, &mut rows).unwrap()
    }
}
