//! Clocks that run back, at any packet and by any step: no connection is split, and nothing is
//! negative.

mod support;

use netsniff_analysis::Limits;
use netsniff_packet::{Packet, Timestamp};
use support::wire::{Client, Server, Wire};
use support::{Rows, analyse};

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
            for row in rows.0.values().flatten().flat_map(|(_, row)| row) {
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
