//! Tests of the arithmetic of the books.

use netsniff_capture::counters::RingCounters;

use super::*;
use crate::books::testing::{entry, report};

#[test]
fn books_close_and_a_packet_that_is_nowhere_shows() {
    let mut closed = entry(Some(2), Some(10), Some(8));
    assert_eq!(closed.unexplained(), Some(0));
    assert_eq!(BooksLine { is_shared: true, ..closed.clone() }.unexplained(), None);
    closed.arrived = Some(101);
    assert_eq!(closed.unexplained(), Some(1));
    if let Some(report) = &mut closed.report {
        report.counters.delivered += 3;
        report.counters.accepted = Some(report.counters.delivered);
    }
    assert_eq!(closed.unexplained(), Some(-2), "counted twice");
}

#[test]
fn what_one_column_does_not_know_the_difference_does_not_know() {
    for (lost, filtered, dropped) in
        [(None, Some(1), Some(1)), (Some(1), None, Some(1)), (Some(1), Some(1), None)]
    {
        let entry = entry(lost, filtered, dropped);
        assert_eq!(entry.unexplained(), None);
        let row = entry.record(Timestamp::EPOCH, Timestamp::EPOCH, true);
        assert_eq!((row.unexplained, row.lost_interface, row.filtered), (None, lost, filtered));
    }
}

#[test]
fn ratios_have_the_denominators_of_the_paper() {
    let entry = entry(Some(20), Some(0), Some(8));
    assert_eq!(entry.kernel_loss(), Some(0.2), "of those that arrived");
    assert_eq!(entry.application_loss(), Some(0.1), "of those that the kernel processed");
    assert_eq!(entry.loss(), Some(0.28));
    assert_eq!(entry.verdict(), Some(CaptureVerdict::Bad));
    let mut idle = entry;
    idle.report = Some(RingReport {
        counters: RingCounters { dropped: Some(0), ..RingCounters::default() },
        ..RingReport::default()
    });
    idle.lost_interface = Some(0);
    assert_eq!((idle.loss(), idle.application_loss()), (Some(0.0), None));
    assert_eq!(idle.verdict(), Some(CaptureVerdict::Good));
}

/// With packets in the ring and behind it that no hand-off took.
fn with_more(entry: BooksLine) -> BooksLine {
    let report = entry.report.map(|report| RingReport {
        counters: RingCounters {
            accepted: report.counters.accepted.map(|accepted| accepted + 5),
            ..report.counters
        },
        waiting: 7,
        refused: 3,
        ..report
    });
    BooksLine {
        report,
        unrecorded: Some(4),
        arrived: entry.arrived.map(|arrived| arrived + 5),
        ..entry
    }
}

#[test]
fn packets_on_their_way_are_neither_lost_nor_unexplained() {
    let entry = with_more(entry(Some(0), Some(0), Some(0)));
    assert_eq!((entry.in_ring(), entry.in_flight()), (Some(5), Some(12)));
    assert_eq!(entry.unexplained(), Some(0));
}

#[test]
fn what_hand_offs_refuse_is_lost_to_the_application() {
    let entry = with_more(entry(Some(0), Some(0), Some(10)));
    assert_eq!(entry.refused(), 7);
    // 10 dropped of 100 that came to the socket, and 7 of the 90 that came out of the ring.
    assert_eq!((entry.application_loss(), entry.loss()), (Some(0.17), Some(0.17)));
    assert_eq!(entry.kernel_loss(), Some(0.0));
    let recorder_only = BooksLine { report: None, ..entry };
    assert_eq!((recorder_only.refused(), recorder_only.loss()), (4, None));
}

#[test]
fn each_column_has_a_counter_of_its_own() {
    let told = report(100);
    let entry = BooksLine {
        place: BooksScope::Ring("eth0".to_owned(), 1),
        link: Some(LinkState::Gone),
        arrived: Some(1),
        lost_interface: Some(2),
        lost_backlog: Some(3),
        time_squeezes: Some(4),
        filtered: Some(5),
        bound: Some(6),
        recorded: Some(7),
        unrecorded: Some(8),
        report: Some(told.clone()),
        ..entry(None, None, None)
    };
    let row = entry.record(Timestamp::from_nanos(90), Timestamp::from_nanos(60), true);
    let RingReport { counters, by_depth, .. } = &told;
    let at = |depth| by_depth.map(|packets| packets.of(depth));
    let nanos = |nanos: u64| Some(Interval::from_nanos(nanos as i64));
    for (name, found, expected) in [
        ("arrived", row.arrived, Some(1)),
        ("lost_interface", row.lost_interface, Some(2)),
        ("lost_backlog", row.lost_backlog, Some(3)),
        ("time_squeezes", row.time_squeezes, Some(4)),
        ("filtered", row.filtered, Some(5)),
        ("unexplained_bound", row.unexplained_bound, Some(6)),
        ("recorded", row.recorded, Some(7)),
        ("unrecorded", row.unrecorded, Some(8)),
        ("ring", row.ring, Some(1)),
        ("ring_dropped", row.ring_dropped, counters.dropped),
        ("delivered", row.delivered, Some(counters.delivered)),
        ("analysed", row.analysed, told.analysed),
        ("at_protocols", row.at_protocols, at(Depth::Protocols)),
        ("at_tcp", row.at_tcp, at(Depth::Tcp)),
        ("at_flows", row.at_flows, at(Depth::Flows)),
        ("at_packets", row.at_packets, at(Depth::Packets)),
        ("shed", row.shed, Some(told.shed)),
        ("refused", row.refused, Some(told.refused)),
        ("filtered_late", row.filtered_late, Some(told.filtered)),
        ("beyond_end", row.beyond_end, Some(told.beyond_end)),
        ("bytes", row.bytes, Some(counters.delivered_bytes)),
        ("cut", row.cut, Some(counters.cut)),
        ("super_frames", row.super_frames, Some(counters.super_frames)),
        ("partial_checksums", row.partial_checksums, Some(counters.partial_checksums)),
        ("retagged", row.retagged, Some(counters.retagged)),
        ("inversions", row.inversions, Some(counters.inversions)),
        ("late", row.late, Some(told.late)),
        ("cut_headers", row.cut_headers, Some(told.cut_headers.packets())),
        ("held_bytes", row.held_bytes, told.held.map(|held| held.bytes)),
        ("held_bytes_max", row.held_bytes_max, told.held.and_then(|held| held.most)),
        ("holes_given_up", row.holes_given_up, Some(told.holes_given_up)),
        ("wrong_stamps", row.wrong_stamps, Some(counters.wrong_stamps)),
        ("malformed", row.malformed, Some(counters.malformed)),
        ("ring_units", row.ring_units, Some(counters.occupancy.capacity.into())),
        ("ring_used", row.ring_used, Some(counters.occupancy.used.into())),
        ("ring_high_water", row.ring_high_water, Some(counters.occupancy.high_water.into())),
        ("ring_freezes", row.ring_freezes, counters.freezes),
        ("groups", row.groups, Some(counters.waiting.groups)),
        ("empty", row.empty, Some(counters.waiting.empty)),
        ("polls", row.polls, Some(counters.waiting.polls)),
        ("wakeups", row.wakeups, Some(counters.waiting.wakeups)),
        ("naps", row.naps, Some(counters.waiting.naps)),
        ("downs", row.downs, Some(told.downs)),
        ("flows", row.flows, told.flows),
        ("refused_rows", row.refused_rows, Some(told.refused_rows)),
    ] {
        assert_eq!(found, expected, "{name}");
    }
    assert!(row.cut_headers > Some(0));
    assert_eq!(row.shed_time, nanos(told.shed_nanos));
    assert_eq!(row.flow_split, told.flow_split);
    assert_eq!(row.inversion_max, nanos(counters.deepest_inversion));
    assert_eq!((row.is_final, Some(row.interval), row.link), (true, nanos(30), Some(Link::Gone)));
}

#[test]
fn the_host_tells_of_rows_that_were_refused_for_all_rings() {
    let host = BooksLine { place: BooksScope::Host, report: None, ..entry(None, None, None) };
    let refused =
        |host: &BooksLine| host.record(Timestamp::EPOCH, Timestamp::EPOCH, true).refused_rows;
    assert_eq!(refused(&host), None);
    assert_eq!(refused(&BooksLine { refused_rows: Some(7), ..host }), Some(7));
}
