//! Dialogues in virtual time, as the tap sees them.

use netsniff_packet::Timestamp;
use netsniff_packet::decode::{Tcp, TcpFlags, TcpOptions};

use super::direction::Direction;
use super::{Metrics, Observed, TcpMetrics};

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
    /// Next IP identifications.
    ids: [u16; 2],
    window: u16,
    options: TcpOptions,
    ttl: u8,
    traffic_class: u8,
    interval: Option<i64>,
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
            payload_offset: 0,
            payload_len: len,
            payload_captured: len,
            options: self.options,
        };
        let seen = Observed {
            time: Timestamp::from_nanos(nanos),
            from,
            tcp: &tcp,
            ttl: self.ttl,
            traffic_class: self.traffic_class,
            identification: self.ids[from],
            scale: 0,
        };
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
        self.all().directions[side]
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
    assert!(size_of::<TcpMetrics>() <= 736, "{}", size_of::<TcpMetrics>());
    assert!(size_of::<Metrics>() <= 40, "{}", size_of::<Metrics>());
}

#[test]
fn the_handshake_is_split_at_the_tap() {
    let all = Tap::established().all();
    assert_eq!(all.handshake.responder, Some(10_000_000));
    assert_eq!(all.handshake.originator, Some(5_000_000));
    assert_eq!(all.handshake.rtt(), Some(15_000_000));
}

#[test]
fn a_repeated_syn_leaves_the_responder_side_unknown() {
    let mut tap = Tap::new();
    tap.see(0, O, SYN, 0, 0, 0);
    tap.see(1_000 * MS, O, SYN, 0, 0, 0);
    assert_eq!(tap.classes(O), [1, 0, 0, 0], "repeated while only SYNs were seen");
    assert_eq!(tap.metrics.heap_bytes(), 0, "SYNs alone must not cost memory");
    tap.see(1_010 * MS, R, SYN_ACK, 0, 1, 0);
    tap.see(1_015 * MS, O, ACK, 1, 1, 0);
    let all = tap.all();
    assert_eq!(all.handshake.responder, None);
    assert_eq!(all.handshake.originator, Some(5_000_000));
    assert_eq!(tap.classes(O), [1, 0, 0, 0]);
}

#[test]
fn a_syn_repeated_after_an_odd_answer_leaves_it_unknown_too() {
    let mut tap = Tap::new();
    tap.see(0, O, SYN, 0, 0, 0);
    tap.see(10 * MS, R, ACK, 77, 0, 0);
    tap.see(1_000 * MS, O, SYN, 0, 0, 0);
    tap.see(1_010 * MS, R, SYN_ACK, 0, 1, 0);
    assert_eq!(tap.all().handshake.responder, None);
    assert_eq!(tap.classes(O), [1, 0, 0, 0]);
}

#[test]
fn a_repeated_syn_ack_leaves_the_originator_side_unknown() {
    let mut tap = Tap::new();
    tap.see(0, O, SYN, 0, 0, 0);
    tap.see(10 * MS, R, SYN_ACK, 0, 1, 0);
    tap.see(1_010 * MS, R, SYN_ACK, 0, 1, 0);
    tap.see(1_015 * MS, O, ACK, 1, 1, 0);
    let all = tap.all();
    assert_eq!((all.handshake.responder, all.handshake.originator), (Some(10_000_000), None));
    assert_eq!(tap.classes(R), [1, 0, 0, 0]);
}

#[test]
fn a_clock_that_goes_back_gives_no_rtt() {
    let mut tap = Tap::new();
    tap.see(10 * MS, O, SYN, 0, 0, 0);
    tap.see(5 * MS, R, SYN_ACK, 0, 1, 0);
    tap.see(0, O, ACK, 1, 1, 0);
    tap.see(20 * MS, O, ACK, 1, 1, 100);
    tap.see(19 * MS, R, ACK, 1, 101, 0);
    let all = tap.all();
    assert_eq!((all.handshake.responder, all.handshake.originator), (None, None));
    assert_eq!(all.directions[O].rtt.count, 0);
}

#[test]
fn data_is_timed_once_at_a_time() {
    let mut tap = Tap::established();
    tap.see(20 * MS, O, ACK, 1, 1, 100);
    tap.see(21 * MS, O, ACK, 101, 1, 100);
    tap.see(30 * MS, R, ACK, 1, 201, 0);
    tap.see(40 * MS, O, ACK, 201, 1, 100);
    tap.see(60 * MS, R, ACK, 1, 301, 50);
    tap.see(64 * MS, O, ACK, 301, 51, 0);
    let o = tap.of(O);
    assert_eq!((o.rtt.count, o.rtt.min, o.rtt.max), (2, 10_000_000, 20_000_000));
    assert_eq!(o.rtt.average(), Some(15_000_000));
    assert_eq!(o.rtt.deviation(), Some(5_000_000));
    assert_eq!(o.rtt.jitter(), Some(625_000));
    let r = tap.of(R);
    assert_eq!((r.rtt.count, r.rtt.min, r.rtt.jitter()), (1, 4_000_000, None));
    assert_eq!((o.data_segments, o.payload_bytes, o.unique_bytes()), (3, 300, 300));
    assert_eq!((o.pure_acks, r.pure_acks), (2, 1));
}

#[test]
fn what_was_sent_again_is_not_timed() {
    let mut tap = Tap::established();
    tap.see(20 * MS, O, ACK, 1, 1, 100);
    tap.see(320 * MS, O, ACK, 1, 1, 100);
    tap.see(330 * MS, R, ACK, 1, 101, 0);
    assert_eq!(tap.of(O).rtt.count, 0);
    assert_eq!(tap.classes(O), [1, 0, 0, 0]);
    assert_eq!(tap.of(O).unique_bytes(), 100);
}

#[test]
fn three_duplicate_acknowledgements_make_it_fast() {
    let mut tap = Tap::established();
    tap.see(20 * MS, O, ACK, 1, 1, 100);
    tap.see(30 * MS, R, ACK, 1, 101, 0);
    // The segment at 101 is lost behind the tap.
    for index in 0..5 {
        tap.see(31 * MS, O, ACK, 101 + index * 100, 1, 100);
    }
    tap.duplicates(41 * MS, R, 1, 101, 3);
    tap.see(47 * MS, O, ACK, 101, 1, 100);
    tap.see(57 * MS, R, ACK, 1, 601, 0);
    assert_eq!(tap.classes(O), [0, 1, 0, 0]);
    assert_eq!(tap.of(R).counts.duplicate_acks, 3);
    assert_eq!(tap.of(O).in_flight(), Some(500));
}

#[test]
fn two_duplicate_acknowledgements_are_no_evidence() {
    let mut tap = Tap::established();
    for index in 0..5 {
        tap.see(31 * MS, O, ACK, 1 + index * 100, 1, 100);
    }
    tap.duplicates(41 * MS, R, 1, 1, 2);
    tap.see(47 * MS, O, ACK, 1, 1, 100);
    assert_eq!(tap.classes(O), [1, 0, 0, 0]);
}

#[test]
fn old_evidence_does_not_explain_a_late_retransmission() {
    let mut tap = Tap::established();
    for index in 0..5 {
        tap.see(31 * MS, O, ACK, 1 + index * 100, 1, 100);
    }
    tap.duplicates(41 * MS, R, 1, 1, 4);
    tap.see(500 * MS, O, ACK, 1, 1, 100);
    assert_eq!(tap.classes(O), [1, 0, 0, 0]);
}

#[test]
fn sack_makes_it_fast_and_a_partial_acknowledgement_goes_on() {
    let mut tap = Tap::established();
    for index in 0..6 {
        tap.see(31 * MS, O, ACK, 1 + index * 100, 1, 100);
    }
    tap.sack(&[(101, 201)], O);
    tap.see(41 * MS, R, ACK, 1, 1, 0);
    tap.sack(&[], O);
    tap.see(47 * MS, O, ACK, 1, 1, 100);
    tap.see(58 * MS, R, ACK, 1, 301, 0);
    // The peer asks no more in words, but did not take all that was sent before the repair.
    tap.see(64 * MS, O, ACK, 301, 1, 100);
    assert_eq!(tap.classes(O), [0, 2, 0, 0]);
    assert_eq!(tap.of(R).counts.sacks, 1);
}

#[test]
fn acknowledged_data_is_sent_again_in_vain() {
    let mut tap = Tap::established();
    tap.see(20 * MS, O, ACK, 1, 1, 100);
    tap.see(30 * MS, R, ACK, 1, 101, 0);
    tap.see(240 * MS, O, ACK, 1, 1, 100);
    assert_eq!(tap.classes(O), [0, 0, 1, 0]);
}

#[test]
fn a_dsack_takes_the_blame_off_the_network() {
    let mut tap = Tap::established();
    tap.see(20 * MS, O, ACK, 1, 1, 100);
    tap.see(240 * MS, O, ACK, 1, 1, 100);
    assert_eq!(tap.classes(O), [1, 0, 0, 0]);
    tap.sack(&[(1, 101)], O);
    tap.see(250 * MS, R, ACK, 1, 101, 0);
    assert_eq!(tap.classes(O), [0, 0, 1, 0]);
    assert_eq!(tap.of(R).counts.dsacks, 1);
    tap.see(251 * MS, R, ACK, 1, 101, 0);
    assert_eq!(tap.classes(O), [0, 0, 1, 0], "told twice, counted once");
}

#[test]
fn a_hole_that_closes_soon_was_reordering() {
    let mut tap = Tap::established();
    tap.see(20 * MS, O, ACK, 101, 1, 100);
    tap.see(21 * MS, O, ACK, 1, 1, 100);
    assert_eq!(tap.classes(O), [0, 0, 0, 1]);
    assert_eq!(tap.of(O).unique_bytes(), 200);
    // Long after one RTT it was a loss before the tap.
    tap.see(120 * MS, O, ACK, 301, 1, 100);
    tap.see(420 * MS, O, ACK, 201, 1, 100);
    assert_eq!(tap.classes(O), [1, 0, 0, 1]);
    assert_eq!(tap.of(O).unique_bytes(), 400);
}

#[test]
fn an_acknowledgement_shows_what_was_skipped() {
    let mut tap = Tap::established();
    tap.see(20 * MS, O, ACK, 101, 1, 0);
    tap.see(22 * MS, O, ACK, 1, 1, 100);
    assert_eq!(tap.classes(O), [0, 0, 0, 1]);
    assert_eq!(tap.of(O).unique_bytes(), 100);
}

#[test]
fn a_loss_before_the_tap_that_was_asked_for_is_fast() {
    let mut tap = Tap::established();
    for index in 1..5 {
        tap.see(20 * MS, O, ACK, 1 + index * 100, 1, 100);
    }
    tap.duplicates(30 * MS, R, 1, 1, 4);
    tap.see(36 * MS, O, ACK, 1, 1, 100);
    assert_eq!(tap.classes(O), [0, 1, 0, 0]);
}

#[test]
fn the_same_packet_twice_is_a_duplicate() {
    let mut tap = Tap::established();
    tap.see(20 * MS, O, ACK, 1, 1, 100);
    tap.see_again(20 * MS + 5, O, ACK, 1, 1, 100);
    tap.see(30 * MS, R, ACK, 1, 101, 0);
    tap.see_again(30 * MS + 5, R, ACK, 1, 101, 0);
    assert_eq!(tap.classes(O), [0; 4]);
    assert_eq!((tap.of(O).counts.duplicates, tap.of(R).counts.duplicates), (1, 1));
    assert_eq!(tap.of(R).counts.duplicate_acks, 0);
    assert_eq!(tap.of(O).rtt.count, 1, "a doubled packet makes no sample doubtful");
    assert_eq!((tap.of(O).payload_bytes, tap.of(O).unique_bytes()), (200, 100));
}

#[test]
fn a_constant_identification_tells_no_duplicates() {
    let mut tap = Tap::new();
    tap.ids = [1, 1];
    tap.see_again(0, O, SYN, 0, 0, 0);
    tap.see_again(10 * MS, R, SYN_ACK, 0, 1, 0);
    tap.see_again(15 * MS, O, ACK, 1, 1, 0);
    tap.see_again(20 * MS, O, ACK, 1, 1, 100);
    tap.see_again(320 * MS, O, ACK, 1, 1, 100);
    assert_eq!(tap.of(O).counts.duplicates, 0);
    assert_eq!(tap.classes(O), [1, 0, 0, 0]);
}

#[test]
fn doubled_packets_of_the_handshake_leave_it_known() {
    let mut tap = Tap::new();
    tap.see(0, O, SYN, 0, 0, 0);
    tap.see_again(5, O, SYN, 0, 0, 0);
    tap.see(10 * MS, R, SYN_ACK, 0, 1, 0);
    tap.see_again(10 * MS + 5, R, SYN_ACK, 0, 1, 0);
    tap.see(15 * MS, O, ACK, 1, 1, 0);
    tap.see_again(15 * MS + 5, O, ACK, 1, 1, 0);
    assert_eq!(tap.all().handshake.rtt(), Some(15_000_000));
    assert_eq!((tap.of(O).counts.duplicates, tap.of(R).counts.duplicates), (2, 1));
}

#[test]
fn keep_alives_with_and_without_a_byte() {
    let mut tap = Tap::established();
    tap.see(20 * MS, O, ACK, 1, 1, 100);
    tap.see(30 * MS, R, ACK, 1, 101, 0);
    tap.see(60_000 * MS, O, ACK, 100, 1, 0);
    tap.see(60_010 * MS, R, ACK, 1, 101, 0);
    tap.see(120_000 * MS, O, ACK, 100, 1, 1);
    tap.see(120_010 * MS, R, ACK, 1, 101, 0);
    assert_eq!(tap.of(O).counts.keep_alives, 2);
    assert_eq!(tap.classes(O), [0; 4]);
    assert_eq!(tap.of(R).counts.duplicate_acks, 0, "answers to keep-alives are none");
    assert_eq!(tap.of(O).unique_bytes(), 100);
}

#[test]
fn a_last_byte_that_was_not_acknowledged_is_no_keep_alive() {
    let mut tap = Tap::established();
    tap.see(20 * MS, O, ACK, 1, 1, 1);
    tap.see(320 * MS, O, ACK, 1, 1, 1);
    assert_eq!(tap.of(O).counts.keep_alives, 0);
    assert_eq!(tap.classes(O), [1, 0, 0, 0]);
}

#[test]
fn a_closed_window_is_timed_and_probed() {
    let mut tap = Tap::established();
    tap.see(20 * MS, O, ACK, 1, 1, 100);
    tap.window = 0;
    tap.see(30 * MS, R, ACK, 1, 101, 0);
    tap.window = 1_000;
    // One byte beyond the window, and then an empty segment just below, as Linux probes.
    tap.see(230 * MS, O, ACK, 101, 1, 1);
    tap.window = 0;
    tap.see(240 * MS, R, ACK, 1, 101, 0);
    tap.window = 1_000;
    tap.see(630 * MS, O, ACK, 100, 1, 0);
    tap.window = 500;
    tap.see(1_030 * MS, R, ACK, 1, 101, 0);
    tap.see(1_040 * MS, O, ACK, 101, 1, 100);
    let (o, r) = (tap.of(O), tap.of(R));
    assert_eq!((o.counts.window_probes, o.counts.keep_alives), (2, 0));
    assert_eq!(tap.classes(O), [0; 4]);
    assert_eq!(r.counts.zero_windows, 2);
    assert_eq!(r.zero_window_time(Timestamp::from_nanos(0)), 1_000_000_000);
    assert_eq!(o.unique_bytes(), 200);
}

#[test]
fn a_probe_that_is_taken_moves_on() {
    let mut tap = Tap::established();
    tap.window = 0;
    tap.see(30 * MS, R, ACK, 1, 1, 0);
    tap.window = 1_000;
    tap.see(230 * MS, O, ACK, 1, 1, 1);
    tap.see(240 * MS, R, ACK, 1, 2, 0);
    tap.see(250 * MS, O, ACK, 2, 1, 100);
    assert_eq!(tap.of(O).counts.window_probes, 1);
    assert_eq!(tap.classes(O), [0; 4]);
    assert_eq!(tap.of(O).unique_bytes(), 101);
}

#[test]
fn sequence_numbers_may_wrap() {
    let mut tap = Tap::starting_at([u32::MAX - 150, u32::MAX]);
    tap.shake();
    for index in 0..4_u32 {
        let at = 20 * MS + i64::from(index) * 20 * MS;
        tap.see(at, O, ACK, 1 + index * 100, 1, 100);
        tap.see(at + 10 * MS, R, ACK, 1, 101 + index * 100, 0);
    }
    tap.see(200 * MS, O, ACK, 501, 1, 100);
    tap.see(201 * MS, O, ACK, 401, 1, 100);
    let o = tap.of(O);
    assert_eq!(tap.all().handshake.rtt(), Some(15_000_000));
    assert_eq!((o.rtt.count, o.rtt.max, o.unique_bytes()), (4, 10_000_000, 600));
    assert_eq!(tap.classes(O), [0, 0, 0, 1]);
    assert_eq!(o.in_flight(), Some(200));
}

#[test]
fn in_mid_stream_what_the_syn_told_is_unknown() {
    let mut tap = Tap::new();
    tap.see(0, O, ACK, 7_001, 9_001, 100);
    tap.see(10 * MS, R, ACK, 9_001, 7_101, 0);
    let (all, o) = (tap.all(), tap.of(O));
    assert_eq!((all.handshake.rtt(), all.handshake.ecn), (None, None));
    assert_eq!(
        (o.mss(), o.window_scale(), o.windows(), o.sack_permitted()),
        (None, None, None, None)
    );
    assert_eq!(o.initial_window(), None);
    assert_eq!((o.rtt.count, o.rtt.min), (1, 10_000_000));
    assert_eq!(tap.classes(O), [0; 4]);
}

#[test]
fn one_way_traffic_shows_no_round_trip() {
    let mut tap = Tap::new();
    tap.see(0, O, SYN, 0, 0, 0);
    tap.see(15 * MS, O, ACK, 1, 1, 0);
    for index in 0..4 {
        tap.see(20 * MS, O, ACK, 1 + index * 100, 1, 100);
    }
    let (all, o) = (tap.all(), tap.of(O));
    assert!(!all.directions[R].is_seen());
    assert_eq!((o.rtt.count, o.in_flight(), o.initial_window()), (0, None, None));
    assert_eq!((all.handshake.responder, all.handshake.originator), (None, None));
    assert_eq!(o.counts.duplicate_acks, 0);
}

#[test]
fn a_syn_tells_what_its_host_can() {
    let mut tap = Tap::new();
    tap.options.mss = Some(1_460);
    tap.options.window_scale = Some(7);
    tap.options.sack_permitted = true;
    tap.options.timestamps = Some((1, 0));
    tap.ttl = 57;
    tap.see(0, O, SYN.with(TcpFlags::ECE).with(TcpFlags::CWR), 0, 0, 0);
    assert_eq!(tap.metrics.heap_bytes(), 0);
    for _ in 0..2 {
        let o = tap.of(O);
        assert_eq!((o.mss(), o.window_scale()), (Some(1_460), Some(7)));
        assert_eq!((o.sack_permitted(), o.timestamps()), (Some(true), true));
        assert_eq!((o.ttl(), o.hops(false), o.hops(true)), ((57, 57), 7, 6));
        tap.options = TcpOptions::default();
        tap.see(10 * MS, R, SYN_ACK.with(TcpFlags::ECE), 0, 1, 0);
    }
    assert_eq!(tap.all().handshake.ecn, Some(true));
    assert_eq!(tap.of(R).mss(), None);
    assert_eq!(tap.of(R).sack_permitted(), Some(false));
    tap.traffic_class = 3;
    tap.see(20 * MS, O, ACK, 1, 1, 100);
    tap.traffic_class = 2;
    tap.see(30 * MS, R, ACK.with(TcpFlags::ECE), 1, 101, 0);
    tap.see(40 * MS, O, ACK.with(TcpFlags::CWR), 101, 1, 100);
    let (o, r) = (tap.of(O).counts, tap.of(R).counts);
    assert_eq!((o.congestion_experienced, o.window_reduced, r.ecn_echoes), (1, 1, 1));
}

#[test]
fn hop_counts_never_go_below_zero() {
    for (ttl, hops) in [(255, 0), (129, 126), (128, 0), (65, 63), (33, 31), (32, 0), (0, 32)] {
        let mut tap = Tap::new();
        tap.ttl = ttl;
        tap.see(0, O, SYN, 0, 0, 0);
        assert_eq!(tap.of(O).hops(false), hops, "{ttl}");
        assert_eq!(tap.of(O).hops(true), hops.saturating_sub(1), "{ttl}");
    }
}

#[test]
fn the_initial_window_is_what_comes_before_the_first_acknowledgement() {
    let mut tap = Tap::established();
    for index in 0..10 {
        tap.see(20 * MS, O, ACK, 1 + index * 1_000, 1, 1_000);
    }
    tap.see(30 * MS, R, ACK, 1, 2_001, 0);
    tap.see(31 * MS, O, ACK, 10_001, 1, 1_000);
    assert_eq!(tap.of(O).initial_window(), Some(10_000));
    assert_eq!(tap.of(O).largest_segment, 1_000);
}

#[test]
fn a_lost_fin_is_sent_again() {
    let mut tap = Tap::established();
    tap.see(20 * MS, O, FIN_ACK, 1, 1, 0);
    tap.see(320 * MS, O, FIN_ACK, 1, 1, 0);
    tap.see(330 * MS, R, ACK, 1, 2, 0);
    assert_eq!(tap.classes(O), [1, 0, 0, 0]);
    assert_eq!(tap.of(O).fins, 2);
    assert_eq!(tap.of(O).unique_bytes(), 0);
}

#[test]
fn the_series_has_a_row_for_each_interval_with_samples() {
    let mut tap = Tap::new();
    tap.interval = Some(100 * MS);
    tap.shake();
    for (index, at) in [20, 60, 310, 320].into_iter().enumerate() {
        let seq = 1 + index as u32 * 100;
        tap.see(at * MS, O, ACK, seq, 1, 100);
        tap.see((at + 5) * MS, R, ACK, 1, seq + 100, 0);
    }
    let [row] = tap.rows.as_slice() else { panic!("{:?}", tap.rows) };
    assert_eq!((row.start.nanos(), row.samples, row.average), (0, 2, 5_000_000));
    let [Some(open), None] = tap.metrics.open_intervals() else { panic!("one is open") };
    assert_eq!((open.start.nanos(), open.samples, open.direction), (300 * MS, 2, 0));
}

#[test]
fn roles_that_change_take_the_metrics_along() {
    let mut tap = Tap::established();
    tap.see(20 * MS, O, ACK, 1, 1, 100);
    tap.metrics.flip();
    let all = tap.all();
    assert_eq!(all.directions[R].payload_bytes, 100);
    assert_eq!(all.directions[O].payload_bytes, 0);
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
        assert!(tap.metrics.heap_bytes() <= 1_000, "seed {seed}: bounded");
    }
    assert!(seen_classes.iter().all(|&count| count > 0), "every class: {seen_classes:?}");
}
