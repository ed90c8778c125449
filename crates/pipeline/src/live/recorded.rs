//! Recording what the rings lend.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use netsniff_packet::{Packet, Timestamp};

use super::books::RingReport;
use super::merge::{Merge, MergeSink, WAITING_BYTES};
use super::reorder::PacketSlice;
use super::ring::{Backpressure, Consumer};
use crate::recording::Recorder;

/// How long packets may wait for their buffer to fill, in nanoseconds.
const FLUSH: i64 = 1_000_000_000;

impl MergeSink for Recorder {
    #[inline]
    fn packet(&mut self, packet: &Packet<'_>) {
        self.packet(packet);
    }

    fn lose(&mut self, interface: u32, packets: u64) {
        self.lose(interface, packets);
    }
}

/// What stays in the ring where the disk stands still, whose worst moments are shorter. The rest of the ring
/// takes what comes until packets are refused.
const STALL: Backpressure = Backpressure { time: Duration::from_secs(10), percent: 80 };

/// A recorder that several rings share, whose packets it gets in one order.
#[derive(Debug)]
pub struct SharedRecorder {
    merge: Merge<Recorder>,
    /// The time of the packets at the last flush.
    flushed: Timestamp,
}

impl SharedRecorder {
    /// For rings whose interfaces have these numbers in the file.
    #[must_use]
    pub fn new(recorder: Recorder, interfaces: impl IntoIterator<Item = u32>) -> Self {
        let merge = Merge::new(recorder, interfaces, WAITING_BYTES);
        Self { merge, flushed: Timestamp::MIN }
    }

    /// The recorder that takes the packets.
    pub const fn recorder(&mut self) -> &mut Recorder {
        self.merge.sink()
    }

    /// The recorder, which has all packets once every ring has ended.
    #[must_use]
    pub fn into_recorder(self) -> Recorder {
        self.merge.into_sink()
    }
}

/// Hands the packets of one ring to a recorder.
#[derive(Debug)]
pub struct Recording {
    shared: Arc<Mutex<SharedRecorder>>,
    ring: usize,
}

impl Recording {
    /// For the ring of this number.
    #[must_use]
    pub const fn new(shared: Arc<Mutex<SharedRecorder>>, ring: usize) -> Self {
        Self { shared, ring }
    }

    fn lock(&self) -> MutexGuard<'_, SharedRecorder> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Consumer for Recording {
    fn wait_for_room(&mut self) -> Option<Backpressure> {
        (!self.lock().recorder().has_buffers()).then_some(STALL)
    }

    fn group(&mut self, group: PacketSlice<'_>) {
        let mut shared = self.lock();
        shared.merge.group(self.ring, group);
        if let Some(last) = group.packets.last()
            && last.timestamp.nanos_since(shared.flushed) >= FLUSH
        {
            shared.flushed = last.timestamp;
            shared.recorder().flush();
        }
    }

    fn idle(&mut self, settled: Timestamp) {
        let mut shared = self.lock();
        shared.merge.settle(self.ring, settled);
        let horizon = shared.merge.horizon();
        // While others are busy, buffers fill up by themselves.
        let is_idle = shared.merge.is_empty();
        let recorder = shared.recorder();
        recorder.advance(horizon);
        if is_idle {
            recorder.flush();
        }
    }

    fn finish(&mut self) {
        self.lock().merge.end(self.ring);
    }

    fn fill(&self, report: &mut RingReport) {
        // What waits here and was analysed is not on its way to be.
        if report.analysed.is_none() {
            report.waiting += self.lock().merge.waiting(self.ring);
        }
    }
}

#[cfg(test)]
mod tests {
    use netsniff_packet::{Batch, LinkType};
    use netsniff_pcapfile::Interface;

    use super::*;
    use crate::recording::options::Options;

    fn lend(recording: &mut Recording, seconds: &[i64]) {
        let mut batch = Batch::default();
        for second in seconds {
            batch.push(&Packet {
                timestamp: Timestamp::from_secs_nanos(*second, 0),
                data: &[0; 60],
                wire_len: 60,
                link_type: LinkType::ETHERNET,
                interface: 0,
            });
        }
        recording.group(PacketSlice { data: &batch.data, packets: &batch.packets, loss: None });
    }

    #[test]
    fn rings_wait_for_each_other_and_late_packets_are_counted() {
        let name = format!("netsniff-shared-{}.pcapng", std::process::id());
        let path = std::env::temp_dir().join(name);
        let interface = Interface::new(LinkType::ETHERNET, 65_535);
        let options = Options::new(path.clone(), vec![interface.clone(), interface]);
        let recorder = Recorder::start(&options, Timestamp::EPOCH).unwrap();
        let shared = Arc::new(Mutex::new(SharedRecorder::new(recorder, [0, 1])));
        let [mut one, mut other] = [0, 1].map(|ring| Recording::new(Arc::clone(&shared), ring));
        lend(&mut one, &[1, 3, 5]);
        let mut report = RingReport::default();
        one.fill(&mut report);
        assert_eq!(report.waiting, 3);
        lend(&mut other, &[2, 4]);
        one.fill(&mut report);
        assert_eq!(report.waiting, 3 + 1, "5 is left");
        other.idle(Timestamp::from_secs_nanos(6, 0));
        // Nobody told of these in time.
        lend(&mut other, &[4, 7]);
        one.finish();
        other.finish();
        drop((one, other));
        let shared = Arc::into_inner(shared).unwrap().into_inner().unwrap();
        let done = shared.into_recorder().finish(Duration::from_secs(20));
        let _ = std::fs::remove_file(path);
        let statistics = done.statistics;
        assert_eq!((statistics.recorded.packets, statistics.out_of_order), (7, 1));
    }
}
