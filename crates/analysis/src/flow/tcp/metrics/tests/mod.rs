//! Dialogues in virtual time, as the tap sees them.

mod readings;
mod recovery;
mod round_trips;

use netsniff_packet::Timestamp;
use netsniff_packet::decode::{Tcp, TcpFlags, TcpOptions};

use super::direction::Direction;
use super::{Metrics, TcpMetrics};
use crate::flow::tcp::observed::{Observed, StreamPosition};
use crate::flow::tcp::segment::Segment;
use crate::limits::Limits;

const SYN: TcpFlags = TcpFlags::SYN;
const ACK: TcpFlags = TcpFlags::ACK;
const FIN_ACK: TcpFlags = TcpFlags::FIN.with(ACK);
const SYN_ACK: TcpFlags = SYN.with(ACK);
const MS: i64 = 1_000_000;
const O: usize = 0;
const R: usize = 1;

/// A tap between two hosts. Sequence numbers in dialogues are relative: the SYN is 0.
struct Tap {
    metrics: Metrics,
    start: [u32; 2],
    ids: [u16; 2],
    window: u16,
    options: TcpOptions,
    ttl: u8,
    traffic_class: u8,
    interval: Option<i64>,
    limits: Limits,
    rows: Vec<super::series::IntervalRtt>,
}

impl Tap {
    fn new() -> Self {
        Self::starting_at([1_000, 5_000])
    }

    fn starting_at(start: [u32; 2]) -> Self {
        Self {
            metrics: Metrics::default(),
            start,
            ids: [100, 200],
            window: 1_000,
            options: TcpOptions::default(),
            ttl: 64,
            traffic_class: 0,
            interval: None,
            limits: Limits { open_gaps: 16, listed_gaps: 16, ..Limits::default() },
            rows: Vec::new(),
        }
    }

    /// After a handshake that took 10 ms to the responder and 5 ms to the originator.
    fn established() -> Self {
        let mut tap = Self::new();
        tap.shake();
        tap
    }

    fn shake(&mut self) {
        self.see(0, O, SYN, 0, 0, 0);
        self.see(10 * MS, R, SYN_ACK, 0, 1, 0);
        self.see(15 * MS, O, ACK, 1, 1, 0);
    }

    fn see(&mut self, nanos: i64, from: usize, flags: TcpFlags, seq: u32, ack: u32, len: u32) {
        self.ids[from] = self.ids[from].wrapping_add(1).max(1);
        self.see_again(nanos, from, flags, seq, ack, len);
    }

    /// With the IP identification before that of the packet before, which overtook it.
    fn see_late(&mut self, nanos: i64, from: usize, flags: TcpFlags, seq: u32, ack: u32, len: u32) {
        self.ids[from] -= 1;
        self.see_again(nanos, from, flags, seq, ack, len);
        self.ids[from] += 1;
    }

    /// With the IP identification of the packet before.
    fn see_again(
        &mut self,
        nanos: i64,
        from: usize,
        flags: TcpFlags,
        seq: u32,
        ack: u32,
        len: u32,
    ) {
        let acknowledgement =
            if flags.any(ACK) { self.start[1 - from].wrapping_add(ack) } else { 0 };
        let tcp = Tcp {
            source_port: 1,
            destination_port: 2,
            sequence: self.start[from].wrapping_add(seq),
            acknowledgement,
            flags,
            window: self.window,
            urgent_pointer: 0,
            payload_offset: 0,
            payload_len: len,
            payload_captured: len,
            options: self.options,
        };
        let place = StreamPosition {
            position: i64::from(seq.cast_signed()),
            acknowledged: if flags.any(ACK) { i64::from(ack.cast_signed()) } else { 0 },
            limits: &self.limits,
        };
        let segment = Segment {
            time: Timestamp::from_nanos(nanos),
            from,
            tcp: &tcp,
            ttl: self.ttl,
            traffic_class: self.traffic_class,
            identification: self.ids[from],
            ip_bytes: 0,
            is_damaged: false,
        };
        let seen = Observed::new(&segment, from, 0, Some(place));
        self.rows.extend(self.metrics.segment(&seen, self.interval));
    }

    /// Duplicate acknowledgements of `from`, 0.1 ms apart.
    fn duplicates(&mut self, nanos: i64, from: usize, seq: u32, ack: u32, count: i64) {
        for index in 0..count {
            self.see(nanos + index * MS / 10, from, ACK, seq, ack, 0);
        }
    }

    fn sack(&mut self, blocks: &[(u32, u32)], of: usize) {
        self.options.sack_count = blocks.len() as u8;
        for (slot, (low, high)) in self.options.sack.iter_mut().zip(blocks) {
            let start = self.start[of];
            *slot = (start.wrapping_add(*low), start.wrapping_add(*high));
        }
    }

    fn all(&self) -> TcpMetrics {
        self.metrics.with(Clone::clone)
    }

    fn of(&self, side: usize) -> Direction {
        self.all().directions[side].clone()
    }

    /// Retransmissions by timer, fast, unnecessary, and segments out of order.
    fn classes(&self, side: usize) -> [u32; 4] {
        let counts = self.of(side).counts;
        [
            counts.retransmitted_timeout,
            counts.retransmitted_fast,
            counts.retransmitted_unnecessarily,
            counts.out_of_order,
        ]
    }
}

#[test]
fn a_direction_stays_small() {
    assert!(size_of::<TcpMetrics>() <= 832, "{}", size_of::<TcpMetrics>());
    assert!(size_of::<Metrics>() <= 40, "{}", size_of::<Metrics>());
}

/// A small generator, so that a failing run can be repeated (Steele and others, SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn number(&mut self) -> u32 {
        match self.roll(4) {
            0 => self.roll(1 << 32) as u32,
            1 => u32::MAX - self.roll(300) as u32,
            _ => self.roll(600) as u32,
        }
    }
}

#[test]
fn chaos_breaks_nothing() {
    let mut seen_classes = [0_u32; 4];
    for seed in 0..400 {
        let mut dice = Dice(seed);
        let mut tap = Tap::starting_at([dice.number(), dice.number()]);
        tap.interval = Some(1 + dice.roll(1 << 20) as i64);
        let mut sent = 0_u64;
        for _ in 0..300 {
            let time = match dice.roll(20) {
                0 => i64::MIN,
                1 => i64::MAX,
                _ => dice.roll(1 << 30) as i64,
            };
            let flags = TcpFlags(if dice.roll(3) == 0 { dice.roll(512) as u16 } else { ACK.0 });
            let (seq, ack) = (dice.number(), dice.number());
            let len = [0, 1, 100, dice.number()][dice.roll(4) as usize];
            let from = dice.roll(2) as usize;
            tap.window = [0, 1, 1_000, u16::MAX][dice.roll(4) as usize];
            tap.traffic_class = dice.roll(4) as u8;
            tap.ttl = dice.roll(256) as u8;
            let blocks: Vec<_> =
                (0..dice.roll(5)).map(|_| (dice.number(), dice.number())).collect();
            tap.sack(&blocks, 1 - from);
            if dice.roll(10) == 0 {
                tap.metrics.flip();
            }
            tap.see(time, from, flags, seq, ack, len);
            if !flags.any(TcpFlags::RST) {
                sent += u64::from(len);
            }
        }
        let all = tap.all();
        let payload: u64 = all.directions.iter().map(|side| side.payload_bytes).sum();
        assert_eq!(payload, sent, "seed {seed}: each payload byte is counted");
        for side in &all.directions {
            assert!(side.unique_bytes() <= side.payload_bytes, "seed {seed}");
            assert!(side.rtt.max <= i64::MAX.unsigned_abs(), "seed {seed}");
        }
        for side in [O, R] {
            for (sum, count) in seen_classes.iter_mut().zip(tap.classes(side)) {
                *sum += count;
            }
        }
        assert!(tap.metrics.heap_bytes() <= 10_000, "seed {seed}: bounded");
    }
    assert!(seen_classes.iter().all(|&count| count > 0), "every class: {seen_classes:?}");
}
