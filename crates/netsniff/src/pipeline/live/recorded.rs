//! Recording what the rings lend.

use std::sync::{Arc, Mutex, PoisonError};

use netsniff_packet::{Packet, Timestamp};

use super::books::RingReport;
use super::order::Group;
use super::ring::Consumer;
use crate::recording::Recorder;

/// How long packets may wait for their buffer to fill, in nanoseconds.
const FLUSH: i64 = 1_000_000_000;

/// Hands the packets of one ring to a recorder, which several rings may share.
#[derive(Debug)]
pub struct Recording {
    recorder: Arc<Mutex<Recorder>>,
    /// The number of the ring's interface in the file.
    interface: u32,
    flushed: Timestamp,
}

impl Recording {
    /// For a ring of the interface that has this number in the file.
    #[must_use]
    pub const fn new(recorder: Arc<Mutex<Recorder>>, interface: u32) -> Self {
        Self { recorder, interface, flushed: Timestamp::MIN }
    }
}

impl Consumer for Recording {
    fn group(&mut self, group: Group<'_>) {
        let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loss) = group.loss {
            recorder.lose(self.interface, loss.packets);
        }
        for (_, packet) in group.iter() {
            recorder.packet(&Packet { interface: self.interface, ..packet });
        }
        if let Some(last) = group.packets.last()
            && last.timestamp.nanos_since(self.flushed) >= FLUSH
        {
            self.flushed = last.timestamp;
            recorder.flush();
        }
    }

    fn idle(&mut self, settled: Timestamp) {
        let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        recorder.advance(settled);
        recorder.flush();
    }

    fn finish(&mut self) {}

    fn fill(&self, _: &mut RingReport) {}
}
