//! What is sent at the sender's end of the pair.

use std::thread;

use netsniff_capture::interface::LinkReader;
use netsniff_capture::transmit::{Transmitter, WAYS};
use netsniff_capture::{Interface, monotonic};
use netsniff_packet::Timestamp;
use netsniff_traffic::pace::{Late, Pacer};
use netsniff_traffic::plan::{Even, Mean, Outgoing, Rate};
use netsniff_traffic::probe;
use netsniff_traffic::stamp::Stamp;

use super::Bed;

/// Frames to send.
pub(crate) struct Sent {
    pub(crate) count: u64,
    /// Bytes with frame check sequence.
    pub(crate) size: usize,
    /// Frames a second.
    pub(crate) rate: u32,
}

impl Bed {
    /// Sends stamped frames of 256 flows, paced.
    pub(crate) fn send(&self, what: &Sent) {
        self.send_on("tx0", what);
    }

    /// The same at this end of a pair.
    pub(crate) fn send_on(&self, interface: &str, what: &Sent) {
        self.in_sender(|| {
            let mut transmitter = transmitter(interface);
            let rate = Rate::per_second(f64::from(what.rate)).unwrap();
            let mut plan = Even::new(Mean::Frames(rate), 1);
            let mut pacer = Pacer::new(monotonic(), Late::Slip);
            for sequence in 0..what.count {
                let planned = plan.due(&Outgoing { recorded: Timestamp::EPOCH, len: what.size });
                while monotonic() < pacer.due(planned) {
                    thread::yield_now();
                }
                pacer.leaves(planned, monotonic());
                let mut frame = probe::frame(what.size, sequence as u32 % 256).unwrap();
                let stamp = Stamp { run: 1, stream: 0, sequence, sent: 0 };
                assert!(stamp.emit(&mut frame[probe::STAMP_AT..]));
                transmit(&mut *transmitter, &frame);
            }
        });
    }

    /// Sends these frames, one by one.
    pub(crate) fn send_frames(&self, frames: &[Vec<u8>]) {
        self.in_sender(|| {
            let mut transmitter = transmitter("tx0");
            frames.iter().for_each(|frame| transmit(&mut *transmitter, frame));
        });
    }

    /// Sends so many frames with a VLAN tag.
    pub(crate) fn send_tagged(&self, count: u32) {
        let frames = (0..count).map(|number| {
            let plain = probe::frame(200, number % 16).unwrap();
            [&plain[..12], &[0x81, 0, 0, 5], &plain[12..]].concat()
        });
        self.send_frames(&frames.collect::<Vec<_>>());
    }

    /// Sends so many small frames as fast as possible by an XDP socket, and returns how many of them the
    /// sender's end of the pair dropped.
    pub(crate) fn send_fast(&self, count: u64) -> u64 {
        self.in_sender(|| {
            // Beside the processor that receives, where `place` chose that.
            netsniff_capture::pin(0).unwrap();
            let interface = Interface::find("tx0").unwrap();
            let mut reader = LinkReader::new(interface.index).unwrap();
            let before = reader.counters().unwrap().unwrap();
            let mut transmitter = WAYS[0].open(&interface, 0).unwrap();
            let frame = probe::frame(64, 0).unwrap();
            let mut sent = 0;
            while sent < count {
                // As many as there is room for, which the kernel then takes at one go.
                while sent < count
                    && let Some((_, room)) = transmitter.room()
                {
                    room[..frame.len()].copy_from_slice(&frame);
                    transmitter.fill(frame.len());
                    sent += 1;
                }
                transmitter.flush().unwrap();
            }
            while transmitter.pending() > 0 {
                transmitter.flush().unwrap();
            }
            let after = reader.counters().unwrap().unwrap();
            after.tx_dropped - before.tx_dropped
        })
    }
}

/// Sends frame by frame at this interface.
fn transmitter(interface: &str) -> Box<dyn Transmitter> {
    let interface = Interface::find(interface).unwrap();
    let way = WAYS.iter().find(|way| way.name == "sendmmsg").unwrap();
    way.open(&interface, 0).unwrap()
}

fn transmit(transmitter: &mut dyn Transmitter, frame: &[u8]) {
    transmitter.room().unwrap().1[..frame.len()].copy_from_slice(frame);
    transmitter.fill(frame.len());
    while transmitter.pending() > 0 {
        transmitter.flush().unwrap();
    }
}
