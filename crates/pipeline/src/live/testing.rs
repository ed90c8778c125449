//! What tests of live pipelines share: packets, a ring's facts, and a consumer that notes what it gets.

use std::sync::{Arc, Mutex};

use netsniff_analysis::depth::PacketsByDepth;
use netsniff_capture::counters::Occupancy;
use netsniff_packet::{LinkType, Loss, PacketRecord, Timestamp};

use super::books::{HeldBehindHoles, RingReport};
use super::reorder::PacketSlice;
use super::ring::{Backpressure, Consumer};

/// A buffer of packets with these stamps in microseconds; each one's only byte is its stamp.
pub(super) fn packets(micros: &[i64]) -> (Vec<u8>, Vec<PacketRecord>) {
    let records = (0..).zip(micros).map(|(offset, micros)| PacketRecord {
        timestamp: at(*micros),
        offset,
        captured_len: 1,
        wire_len: 1,
        interface: 0,
        link_type: LinkType::ETHERNET,
    });
    (micros.iter().map(|micros| *micros as u8).collect(), records.collect())
}

/// A time in microseconds.
pub(super) const fn at(micros: i64) -> Timestamp {
    Timestamp::from_nanos(micros * 1000)
}

/// What a consumer was told.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Told {
    /// A packet with this stamp in microseconds.
    Packet(i64),
    Loss(Loss),
    /// So many units are used.
    Occupied(u32),
    Idle(Timestamp),
    Stopping,
    Finish,
}

/// Notes what it is told.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(pub(super) Arc<Mutex<Vec<Told>>>);

impl Notes {
    pub(super) fn notes(&self) -> Vec<Told> {
        self.0.lock().unwrap().clone()
    }

    fn note(&self, told: Told) {
        self.0.lock().unwrap().push(told);
    }
}

impl Consumer for Notes {
    fn group(&mut self, group: PacketSlice<'_>) {
        group.loss.iter().for_each(|loss| self.note(Told::Loss(**loss)));
        for packet in group.packets {
            let micros = packet.timestamp.nanos() / 1000;
            assert_eq!(group.data[packet.range()], [micros as u8], "its own bytes");
            self.note(Told::Packet(micros));
        }
    }

    fn occupied(&mut self, occupancy: Occupancy, _: Timestamp) {
        self.note(Told::Occupied(occupancy.used));
    }

    fn idle(&mut self, settled: Timestamp) {
        self.note(Told::Idle(settled));
    }

    fn stopping(&mut self) {
        self.note(Told::Stopping);
    }

    fn finish(&mut self) {
        self.note(Told::Finish);
    }

    fn fill(&self, report: &mut RingReport) {
        let packets = self.notes().iter().filter(|told| matches!(told, Told::Packet(_))).count();
        report.analysed = Some(packets as u64);
        report.by_depth = Some(PacketsByDepth::from_fn(|depth| 20 + depth as u64));
        report.shed = 11;
        report.shed_nanos = 12;
        report.late = 13;
        report.cut_headers = crate::books::testing::cut_headers(2);
        report.held = Some(HeldBehindHoles { bytes: 17, most: Some(1_000 - packets as u64) });
        report.holes_given_up = 19;
        report.refused_rows = 14;
        report.flows = Some(15);
        report.now = Some(at(16));
    }
}

/// Notes what it is told, as far as it is let.
pub(super) struct Hindered {
    pub(super) notes: Notes,
    /// Called before each group, and may wait.
    pub(super) before_group: Box<dyn FnMut() + Send>,
    /// What it says of its room.
    pub(super) room: Box<dyn FnMut() -> Option<Backpressure> + Send>,
}

impl Consumer for Hindered {
    fn wait_for_room(&mut self) -> Option<Backpressure> {
        (self.room)()
    }

    fn group(&mut self, group: PacketSlice<'_>) {
        (self.before_group)();
        self.notes.group(group);
    }

    fn occupied(&mut self, occupancy: Occupancy, now: Timestamp) {
        self.notes.occupied(occupancy, now);
    }

    fn idle(&mut self, settled: Timestamp) {
        self.notes.idle(settled);
    }

    fn stopping(&mut self) {
        self.notes.stopping();
    }

    fn finish(&mut self) {
        self.notes.finish();
    }

    fn fill(&self, report: &mut RingReport) {
        self.notes.fill(report);
    }
}
