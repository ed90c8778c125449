//! Why data was sent again, or came late.

use super::*;

#[test]
fn parts_of_a_late_segment_that_share_their_number_are_no_doubles() {
    let mut tap = Tap::established();
    tap.see(20 * MS, O, ACK, 1, 1, 100);
    tap.ids[O] += 1;
    tap.see(21 * MS, O, ACK, 201, 1, 10);
    // Cut by an interface on the way, which numbers both alike; the second one fills the rest of the hole.
    tap.see_late(22 * MS, O, ACK, 101, 1, 60);
    tap.see_late(22 * MS, O, ACK, 161, 1, 40);
    assert_eq!((tap.of(O).counts.duplicates, tap.classes(O)), (0, [0, 0, 0, 2]));
    assert_eq!(tap.of(O).unique_bytes(), 210);
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
    tap.ids[O] += 1;
    tap.see(20 * MS, O, ACK, 101, 1, 100);
    tap.see_late(21 * MS, O, ACK, 1, 1, 100);
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
    tap.ids[O] += 1;
    tap.see(20 * MS, O, ACK, 101, 1, 0);
    tap.see_late(22 * MS, O, ACK, 1, 1, 100);
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
