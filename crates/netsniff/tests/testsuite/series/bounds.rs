//! Stamps that jump, and hosts without a row of their own.

use std::fs;
use std::path::PathBuf;

use super::table::{Table, Traffic, traffic};
use super::{series, summary};
use crate::recorded::recorded;
use crate::zeek::corpus::Scratch;

/// A capture of bare IPv4 packets of 28 bytes, from hosts by number, at seconds and microseconds.
fn capture(scratch: &Scratch, packets: impl IntoIterator<Item = (u32, u32, u16)>) -> PathBuf {
    const RAW_IP: u32 = 101;
    let mut bytes = Vec::new();
    bytes.extend(0xa1b2_c3d4_u32.to_le_bytes());
    bytes.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(65_535_u32.to_le_bytes());
    bytes.extend(RAW_IP.to_le_bytes());
    for (second, micros, host) in packets {
        let [high, low] = host.to_be_bytes();
        for word in [second, micros, 28, 28] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, high, low, 10, 2, 0, 1]);
        bytes.extend([0, 9, 0, 9, 0, 8, 0, 0]);
    }
    fs::create_dir_all(scratch.path()).unwrap();
    let path = scratch.path().join("made.pcap");
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn time_that_jumps_makes_no_empty_intervals_and_loses_nothing() {
    let scratch = Scratch::new("series-jumps");
    let (begin, years) = (1_700_000_000, 600_000_000);
    let mut packets = vec![(begin, 0, 1), (begin, 400_000, 2), (begin + 1, 0, 1)];
    // Years forward and back, again and again; then each packet in a second of its own, ever further back.
    packets.extend((0..500).map(|n| (begin + (n / 3 % 2) * years, n, 3)));
    packets.extend((0..2_000).map(|n| (begin + years - 2 * n, 7, 4)));
    let count = packets.len() as u64;
    let path = capture(&scratch, packets.clone());
    let table = series(&path, &["--series", "1ms"]);
    let all = Traffic { packets: count, bytes: 28 * count };
    assert_eq!(table.sum("total"), all);
    assert_eq!(table.sum("interface"), all);
    assert_eq!(table.sum("host"), Traffic { packets: 2 * count, bytes: 2 * all.bytes });
    let rows = table.0.iter().filter(|row| row["kind"] == "total").count() as u64;
    assert!(rows <= count, "{rows} rows of {count} packets");
    assert!(table.0.iter().all(|row| traffic(row).packets > 0));
    // Where the stamps are believed, each packet is in its own second.
    let seconds = series(&path, &["--series", "1s"]).by_name();
    let (_, ahead) = summary(&path);
    for second in [begin, begin + 1, begin + years, begin + years - 4_000 + 2] {
        let there = packets.iter().filter(|(at, ..)| *at == second).count() as u64;
        let key = (i64::from(second), "total".to_owned(), String::new());
        let told = seconds.get(&key).map_or(0, |traffic| traffic.packets);
        assert!(told.abs_diff(there) <= ahead, "{second}: {told} of {there}, {ahead} ahead");
    }
}

#[test]
fn a_packet_that_comes_late_is_added_to_its_interval() {
    let scratch = Scratch::new("series-late");
    let begin = 1_700_000_000;
    let path = capture(
        &scratch,
        [(begin, 0, 1), (begin + 1, 0, 1), (begin + 2, 500_000, 1), (begin, 900_000, 1)],
    );
    let table = series(&path, &["--series", "1s"]);
    let of_first = |row: &&crate::zeek::log::Row| {
        row["kind"] == "total" && row["ts"].starts_with(&begin.to_string())
    };
    let rows: Vec<Traffic> = table.0.iter().filter(of_first).map(traffic).collect();
    assert_eq!(rows, [Traffic { packets: 1, bytes: 28 }; 2], "told in time, and what came late");
}

#[test]
fn hosts_without_a_row_are_the_exact_rest() {
    for name in ["office.pcapng", "protocols.pcapng"] {
        let path = recorded(name);
        let all = series(&path, &["--series", "1s", "--series-hosts", "100000"]);
        assert!(all.0.iter().all(|row| row["other"] == "F"));
        for listed in ["1", "3"] {
            let some = series(&path, &["--series", "1s", "--series-hosts", listed]);
            check_rest(&all, &some, listed.parse().unwrap());
        }
    }
}

/// In each interval, the rows of `some` are the `listed` ones of `all` with the most bytes, and the sum of the others.
fn check_rest(all: &Table, some: &Table, listed: usize) {
    let mut rests = 0;
    let hosts_of = |table: &Table, ts: &str| {
        let is_wanted = |row: &&crate::zeek::log::Row| row["kind"] == "host" && row["ts"] == ts;
        table.0.iter().filter(is_wanted).cloned().collect::<Vec<_>>()
    };
    for total in all.0.iter().filter(|row| row["kind"] == "total") {
        let (mut every, mut own) = (hosts_of(all, &total["ts"]), hosts_of(some, &total["ts"]));
        if every.len() > listed {
            let rest = own.pop().unwrap();
            assert_eq!(rest["other"], "T");
            let others = every.split_off(listed);
            assert_eq!(rest["others"], others.len().to_string());
            for column in ["sent_packets", "sent_bytes", "received_packets", "received_bytes"] {
                let sum: u64 = others.iter().map(|row| row[column].parse::<u64>().unwrap()).sum();
                assert_eq!(rest[column], sum.to_string(), "{column}");
            }
            let least = every.iter().map(|row| traffic(row).bytes).min().unwrap();
            assert!(others.iter().all(|row| traffic(row).bytes <= least));
            rests += 1;
        }
        assert_eq!(every, own);
    }
    assert!(rests >= 10, "{rests} rests");
}
