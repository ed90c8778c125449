//! Windows, probes, options, hop counts and the rest of what a connection tells.

use super::*;
use crate::flow::tcp::metrics::rtt::RttStatistics;

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
    tap.ids[O] += 1;
    tap.see(200 * MS, O, ACK, 501, 1, 100);
    tap.see_late(201 * MS, O, ACK, 401, 1, 100);
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
    assert_eq!((all.handshake.responder(), all.handshake.originator()), (None, None));
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
        assert_eq!((o.sack_permitted(), o.timestamps()), (Some(true), Some(true)));
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
    // Either side answers half as soon as in the handshake, wherever it stands.
    let least = [O, R].map(|side| all.handshake.least_answer(side, &RttStatistics::default()));
    assert_eq!(least, [Some(5_000_000), Some(2_500_000)]);
}
