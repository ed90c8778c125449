//! So many packets at one time that their records cannot wait until the time has passed: rows are written
//! on, in the order in which they belong, and they are those of a capture where nothing is crowded.

use core::net::{IpAddr, Ipv4Addr};
use core::time::Duration;

use crate::support::{Rows, packet};
use netsniff_analysis::{Engine, Limits, Options, SortKey};
use netsniff_packet::Timestamp;
use netsniff_traffic::frame::{Host, udp_frame};

const BEGIN: i64 = 1_700_000_000_000_000_000;

/// A datagram of one flow of its own.
fn datagram(flow: u32) -> Vec<u8> {
    let [_, a, b, c] = flow.to_be_bytes();
    let client = Host::new(IpAddr::V4(Ipv4Addr::new(10, a, b, c)), 40_000);
    let server = Host::new(IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1)), 9_999);
    udp_frame(&client, &server, 1, b"x").unwrap()
}

/// Rows of flows whose datagrams come at `times`, and how many were written before the end.
fn rows(limits: Limits, times: impl Iterator<Item = i64>) -> (Rows, usize) {
    let mut engine = Engine::new(limits, Options::default(), 7);
    let mut rows = Rows::new(&limits);
    for (flow, time) in (0..).zip(times) {
        let frame = datagram(flow);
        engine.packet(&packet(Timestamp::from_nanos(time), &frame), &mut rows);
    }
    let before = rows.written("conn").len();
    engine.finish(&mut rows);
    for log in ["conn", "weird"] {
        let keys: Vec<SortKey> = rows.written(log).iter().map(|(key, _)| *key).collect();
        assert!(keys.is_sorted(), "rows of {log} are written in their order");
    }
    rows.sort();
    (rows, before)
}

#[test]
fn rows_of_equal_stamps_do_not_wait_for_the_end() {
    let (flows, kept) = (40_000, 1_000);
    let limits = Limits { flows: kept, ..Limits::default() };
    let (rows, before) = rows(limits, (0..flows).map(|_| BEGIN));
    assert_eq!(rows.log("conn").len(), flows);
    assert_eq!(before, 32_769 - kept, "those that are open have none, and less than a crowd waits");
}

#[test]
fn timers_within_a_crowded_time_come_in_their_order() {
    let limits = Limits { udp_inactivity: Duration::from_secs(1), ..Limits::default() };
    // Silences end before, at and behind the stamp of the crowd, in the same tick.
    let early = (0..2_000).map(|flow| BEGIN + flow * 4_000);
    let crowd = BEGIN + 1_004_000_000;
    let with = |size: usize| early.clone().chain((0..size).map(move |_| crowd));
    let (rows_with, before) = rows(limits, with(34_000));
    assert_eq!(before, 1_001, "silences up to the stamp of the crowd are over");
    let (rows_without, none) = rows(limits, with(2_000));
    assert_eq!(none, 0, "no crowd, and the tick is not over");
    let early_rows = |rows: &Rows| {
        let rows = rows.log("conn").into_iter().cloned();
        rows.filter(|row| row["ts"].as_str() < "1700000001").collect::<Vec<_>>()
    };
    assert_eq!(early_rows(&rows_with).len(), 2_000);
    assert_eq!(early_rows(&rows_with), early_rows(&rows_without));
}
