//! Recording what the rings lend.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use netsniff_analysis::ingress::cut_headers::CutHeaders;
use netsniff_packet::decode::TunnelPorts;
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

/// Packets of a group whose headers are looked at: where many packets come, a group is hundreds, which are to cost no more
/// for this.
const LOOKED_AT: usize = 8;

/// Looks whether the snap length cuts headers.
#[derive(Debug)]
struct HeaderWatch {
    tunnel_ports: TunnelPorts,
    found: CutHeaders,
}

impl HeaderWatch {
    fn look(&mut self, group: PacketSlice<'_>) {
        let packets = group.packets.iter().map(|record| group.packet(record));
        for packet in packets.filter(Packet::is_cut).take(LOOKED_AT) {
            self.found.look(&packet, &self.tunnel_ports);
        }
    }
}

/// Hands the packets of one ring to a recorder.
#[derive(Debug)]
pub struct Recording {
    shared: Arc<Mutex<SharedRecorder>>,
    ring: usize,
    /// `None` where nothing is cut, or somebody else looks.
    headers: Option<HeaderWatch>,
}

impl Recording {
    /// For the ring of this number.
    #[must_use]
    pub const fn new(shared: Arc<Mutex<SharedRecorder>>, ring: usize) -> Self {
        Self { shared, ring, headers: None }
    }

    /// Looks at some of the packets that are cut, whether their headers are, too. Tunnels are looked for on these ports.
    #[must_use]
    pub fn watching_headers(self, tunnel_ports: TunnelPorts) -> Self {
        let headers = Some(HeaderWatch { tunnel_ports, found: CutHeaders::default() });
        Self { headers, ..self }
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
        if let Some(headers) = &mut self.headers {
            headers.look(group);
        }
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
        if let Some(headers) = &self.headers {
            report.cut_headers.clone_from(&headers.found);
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
    fn few_packets_of_a_group_are_looked_at_and_none_that_are_whole() {
        let name = format!("netsniff-watch-{}.pcapng", std::process::id());
        let path = std::env::temp_dir().join(name);
        let interface = Interface::new(LinkType::ETHERNET, 65_535);
        let options = Options::new(path.clone(), vec![interface]);
        let recorder = Recorder::start(&options, Timestamp::EPOCH).unwrap();
        let shared = Arc::new(Mutex::new(SharedRecorder::new(recorder, [0])));
        let mut plain = Recording::new(Arc::clone(&shared), 0);
        let mut watching =
            Recording::new(Arc::clone(&shared), 0).watching_headers(TunnelPorts::default());
        // The header of Ethernet says IPv4, of which six bytes are there.
        let mut frame = [0; 20];
        (frame[12], frame[14]) = (8, 0x45);
        let group = |recording: &mut Recording, cut: usize, whole: usize| {
            let mut batch = Batch::default();
            for number in 0..cut + whole {
                let wire_len = if number < whole { 20 } else { 100 };
                let (timestamp, link_type) = (Timestamp::EPOCH, LinkType::ETHERNET);
                batch.push(&Packet { timestamp, data: &frame, wire_len, link_type, interface: 0 });
            }
            let (data, packets) = (&batch.data, &batch.packets);
            recording.group(PacketSlice { data, packets, loss: None });
            let mut report = RingReport::default();
            recording.fill(&mut report);
            (report.cut_headers.looked_at(), report.cut_headers.packets())
        };
        assert_eq!(group(&mut plain, 100, 0), (0, 0));
        assert_eq!(group(&mut watching, 0, 50), (0, 0));
        assert_eq!(group(&mut watching, 3, 50), (3, 3));
        assert_eq!(group(&mut watching, 100, 50), (3 + LOOKED_AT as u64, 3 + LOOKED_AT as u64));
        drop((plain, watching));
        let shared = Arc::into_inner(shared).unwrap().into_inner().unwrap();
        let _ = shared.into_recorder().finish(Duration::from_secs(20));
        let _ = std::fs::remove_file(path);
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
