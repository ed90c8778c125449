//! What is timed, and what is not: the handshake and data.

use super::*;
use crate::flow::tcp::metrics::rtt::RttStatistics;

#[test]
fn the_handshake_is_split_at_the_tap() {
    let all = Tap::established().all();
    assert_eq!(all.handshake.responder(), Some(10_000_000));
    assert_eq!(all.handshake.originator(), Some(5_000_000));
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
    assert_eq!(all.handshake.responder(), None);
    assert_eq!(all.handshake.originator(), Some(5_000_000));
    assert_eq!(tap.classes(O), [1, 0, 0, 0]);
}

#[test]
fn a_syn_repeated_after_an_odd_answer_leaves_it_unknown_too() {
    let mut tap = Tap::new();
    tap.see(0, O, SYN, 0, 0, 0);
    tap.see(10 * MS, R, ACK, 77, 0, 0);
    tap.see(1_000 * MS, O, SYN, 0, 0, 0);
    tap.see(1_010 * MS, R, SYN_ACK, 0, 1, 0);
    assert_eq!(tap.all().handshake.responder(), None);
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
    assert_eq!((all.handshake.responder(), all.handshake.originator()), (Some(10_000_000), None));
    assert_eq!(tap.classes(R), [1, 0, 0, 0]);
}

/// The network doubles a segment at once, and its host sends it again a second later.
#[test]
fn a_handshake_that_comes_twice_tells_the_shortest_round_trip() {
    for (again, least) in [(3, 8), (99, 104), (1_000, 5)] {
        for is_syn in [true, false] {
            let mut tap = Tap::new();
            tap.see(0, O, SYN, 0, 0, 0);
            if is_syn {
                tap.see(again * MS, O, SYN, 0, 0, 0);
                tap.see((again + 5) * MS, R, SYN_ACK, 0, 1, 0);
                tap.see((again + 25) * MS, O, ACK, 1, 1, 0);
            } else {
                tap.see(20 * MS, R, SYN_ACK, 0, 1, 0);
                tap.see((20 + again) * MS, R, SYN_ACK, 0, 1, 0);
                tap.see((25 + again) * MS, O, ACK, 1, 1, 0);
            }
            let all = tap.all();
            let answers =
                [R, O].map(|from| all.handshake.least_answer(from, &RttStatistics::default()));
            let [doubled, other] = if is_syn { answers } else { [answers[1], answers[0]] };
            let half = |ms: u64| Some(ms * 500_000);
            assert_eq!([doubled, other], [half(least), half(20)], "{again} {is_syn}");
            assert_eq!(all.handshake.rtt(), None, "nobody knows which copy was answered");
        }
    }
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
    assert_eq!((all.handshake.responder(), all.handshake.originator()), (None, None));
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

/// Of a side whose first numbers come behind others that both sides disowned, nothing is missing before them.
#[test]
fn a_side_that_is_renumbered_before_it_begins_is_timed_behind_a_copy() {
    let mut tap = Tap::new();
    tap.see(0, R, ACK, 1, 900_000, 0);
    tap.see(0, R, ACK, 1, 1_000_000, 0);
    let number = tap.start[O].wrapping_add(1_000_000);
    tap.metrics.renumber(O, number, 1_000_000, Timestamp::from_nanos(0));
    tap.see(MS, O, ACK, 1_000_000, 1, 100);
    tap.see(300 * MS, O, ACK, 1_000_000, 1, 100);
    tap.see(310 * MS, R, ACK, 1, 1_000_100, 0);
    tap.see(400 * MS, O, ACK, 1_000_100, 1, 100);
    tap.see(420 * MS, R, ACK, 1, 1_000_200, 0);
    let rtt = tap.of(O).rtt;
    assert_eq!((rtt.count, rtt.min), (1, 20_000_000));
}
