//! Clocks that run back, at any packet and by any step, and stamps of the far future: no connection is
//! split, and nothing is negative.

use crate::support;
use crate::support::wire::{Client, Server, Wire};
use crate::support::{Rows, analyse};
use netsniff_analysis::{Engine, Limits, Options};
use netsniff_packet::{Batch, Packet, Timestamp};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const SECOND: i64 = 1_000_000_000;

fn wire() -> Wire {
    let mut wire = Wire::new(80);
    wire.open().says(Client, REQUEST).says(Server, RESPONSE).ends(Client).ends(Server);
    wire
}

/// The rows where the packets from the one at `at` on have stamps that are `back` nanoseconds earlier.
fn rows(wire: &Wire, at: usize, back: i64) -> Rows {
    let set_back = |(number, packet): (usize, Packet<'_>)| {
        let nanos = packet.timestamp.nanos() - if number >= at { back } else { 0 };
        (Timestamp::from_nanos(nanos), packet.data.to_vec())
    };
    let frames: Vec<_> = wire.packets().enumerate().map(set_back).collect();
    analyse(frames.iter().map(|(time, data)| support::packet(*time, data)), Limits::default())
}

#[test]
fn a_clock_that_is_set_back_splits_no_connection() {
    let wire = wire();
    for at in 0..wire.len() {
        for back in [SECOND / 100, SECOND, 20 * SECOND, 3_600 * SECOND, 86_400 * SECOND] {
            let rows = rows(&wire, at, back);
            let conn = rows.log("conn");
            assert_eq!(conn.len(), 1, "{at} {back}");
            assert_eq!((conn[0]["orig_pkts"].as_str(), conn[0]["resp_pkts"].as_str()), ("6", "5"));
            assert_eq!(conn[0]["conn_state"], "SF");
            assert!(!conn[0]["duration"].starts_with('-') || conn[0]["duration"] == "-");
            let sizes = (conn[0]["orig_bytes"].as_str(), conn[0]["resp_bytes"].as_str());
            assert_eq!(sizes, ("27", "43"), "{at} {back}");
            assert_eq!(rows.log("http").len(), 1);
            for row in rows.logs.values().flatten().flat_map(|(_, row)| row) {
                assert!(!row.1.starts_with("-0.") && !row.1.starts_with("-1"), "{row:?}");
            }
        }
    }
}

#[test]
fn connections_that_begin_on_the_earlier_clock_are_whole() {
    let mut wire = wire();
    let first = wire.len();
    // Pauses that are no time-outs by the clock in force.
    wire.pass(1_000).anew(7, 9).open().pass(4_000).says(Client, REQUEST).pass(20_000);
    wire.says(Server, RESPONSE).ends(Client).ends(Server);
    for back in [0, 30 * SECOND, 3_600 * SECOND] {
        let rows = rows(&wire, first, back);
        let mut states: Vec<_> =
            rows.log("conn").iter().map(|row| row["history"].clone()).collect();
        states.sort();
        assert_eq!(states, ["ShADadFf", "ShADadFf"], "{back}");
    }
}

/// The rows where batches of so many packets are taken, and the packet at `at` is stamped `ahead`
/// nanoseconds later.
fn rows_ahead(wire: &Wire, at: usize, ahead: i64, size: usize) -> (Rows, u64) {
    let packets: Vec<_> = wire.packets().collect();
    let mut engine = Engine::new(Limits::default(), Options::default(), 1);
    let mut rows = Rows::default();
    for (number, packets) in packets.chunks(size).enumerate() {
        let mut batch = Batch::default();
        for (place, packet) in packets.iter().enumerate() {
            let later = if number * size + place == at { ahead } else { 0 };
            let timestamp = Timestamp::from_nanos(packet.timestamp.nanos() + later);
            assert!(batch.push(&Packet { timestamp, ..*packet }));
        }
        engine.batch(&batch, &mut rows);
    }
    engine.finish(&mut rows);
    let ahead = engine.ingress().statistics().ahead;
    rows.sort();
    (rows, ahead)
}

#[test]
fn one_stamp_of_the_far_future_ends_and_splits_nothing() {
    let wire = wire();
    let plain = rows(&wire, 0, 0);
    // The first three stamps are believed, and so is the last, behind which nothing is.
    for at in 3..wire.len() - 1 {
        for ahead in [6 * SECOND, 400 * SECOND, 86_400 * SECOND, 30 * 365 * 86_400 * SECOND] {
            for size in [1, 2, 3, wire.len()] {
                let (rows, count) = rows_ahead(&wire, at, ahead, size);
                assert_eq!(count, 1, "{at} {ahead} {size}");
                for log in ["conn", "http"] {
                    let (wrong, right) = (rows.log(log), plain.log(log));
                    assert_eq!((wrong.len(), right.len()), (1, 1), "{at} {ahead} {size}");
                    for (column, cell) in wrong[0] {
                        // Times are those of the packet before, milliseconds off.
                        let is_time = ["ts", "duration"].contains(&column.as_str());
                        let is_right = *cell == right[0][column];
                        assert!(is_right || is_time || column == "uid", "{column} {cell} {at}");
                        assert!(!is_time || cell.len() <= right[0][column].len(), "{cell}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_pause_that_two_packets_agree_on_ends_what_it_ends() {
    let mut wire = wire();
    let first = wire.len();
    wire.pass(400_000).anew(7, 9).open().says(Client, REQUEST).says(Server, RESPONSE);
    for size in [1, first + 1, first, wire.len()] {
        let (rows, count) = rows_ahead(&wire, usize::MAX, 0, size);
        assert_eq!((rows.log("conn").len(), count), (2, 0), "{size}");
    }
    // The last packet stands alone behind the pause, and nothing contradicts it.
    let last = wire.len() - 1;
    let (rows, count) = rows_ahead(&wire, last, 400 * SECOND, 4);
    assert_eq!((rows.log("conn").len(), count), (3, 0));
}
