//! Stamps that jump, and hosts without a row of their own.

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;

use netsniff_packet::Address;

use super::table::{Table, Traffic, traffic};
use super::{series, summary};
use crate::recorded::recorded;
use crate::zeek::corpus::Scratch;
use crate::zeek::log::Row;

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
    let mut of_packets = table.0.iter().filter(|row| row["kind"] != "service");
    assert!(of_packets.all(|row| traffic(row).packets > 0));
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
    let of_first = |row: &&Row| row["kind"] == "total" && row["ts"].starts_with(&begin.to_string());
    let rows: Vec<Traffic> = table.0.iter().filter(of_first).map(traffic).collect();
    assert_eq!(rows, [Traffic { packets: 1, bytes: 28 }; 2], "told in time, and what came late");
}

#[test]
fn open_flows_are_those_of_the_end_of_the_interval() {
    let scratch = Scratch::new("series-open");
    let begin = 1_700_000_000;
    // The flow of the first host ends after a minute of silence.
    let mut packets = vec![(begin, 0, 1), (begin + 1, 0, 2), (begin + 1, 100_000, 3)];
    packets.extend((2..64).map(|second| (begin + second, 500_000, 2)));
    let table = series(&capture(&scratch, packets), &["--series", "1s"]);
    let open: Vec<&str> = table
        .0
        .iter()
        .filter(|row| row["kind"] == "total" && row["late"] == "F")
        .map(|row| row["open_flows"].as_str())
        .collect();
    assert_eq!(open[..2], ["3", "3"], "told a second behind the end of the interval");
    // Sixty seconds behind the last packets: of the first host at 0, of the third at 1.1.
    assert_eq!(open[57..61], ["3", "2", "2", "1"], "{open:?}");
    assert_eq!(open[62..], ["-", "-"], "the input ends before these are told");
}

#[test]
fn more_hosts_than_are_told_apart_are_in_the_rest_and_counted() {
    let scratch = Scratch::new("series-memory");
    let packets = (0..6_000).map(|n| (1_700_000_000 + n / 3_000, n % 3_000, n as u16));
    let path = capture(&scratch, packets);
    for workers in ["1", "2"] {
        let logs = scratch.path().join(workers);
        // A sixteenth of the least memory is for some hundred hosts.
        let memory = if workers == "1" { "176M" } else { "208M" };
        let run = Command::new(env!("CARGO_BIN_EXE_netsniff"))
            .args([
                "analyze",
                "--json",
                "--series",
                "1s",
                "--workers",
                workers,
                "--memory",
                memory,
                "-o",
            ])
            .args([&logs, &path])
            .output()
            .unwrap();
        let summary = String::from_utf8_lossy(&run.stdout).into_owned();
        assert!(summary.contains("intervals have further hosts"), "{summary}");
        let table = Table::read(&logs.join("series.log"));
        let all = Traffic { packets: 6_000, bytes: 168_000 };
        assert_eq!(table.sum("total"), all);
        assert_eq!(table.sum("host"), Traffic { packets: 12_000, bytes: 336_000 });
        let rests: Vec<_> = table.0.iter().filter(|row| row["other"] == "T").collect();
        assert_eq!(rests.len(), 2);
        assert!(rests.iter().all(|row| row["others"] == "-"), "{rests:?}");
        // Flows of some hosts are in the rest of whoever counted them: nobody knows of which.
        let hosts = table.0.iter().filter(|row| row["kind"] == "host");
        assert!(hosts.clone().count() > 2 && hosts.clone().all(|row| row["new_flows"] == "-"));
        let total = table.0.iter().filter(|row| row["kind"] == "total");
        let new = total.map(|row| row["new_flows"].parse::<u64>().unwrap());
        assert_eq!(new.sum::<u64>(), 6_000);
    }
}

#[test]
fn columns_are_unset_where_nobody_looks() {
    for (depth, set) in [("packets", 0), ("flows", 1), ("tcp", 2), ("protocols", 3)] {
        let table = series(&recorded("office.pcapng"), &["--series", "1m", "--depth", depth]);
        let total = table.0.iter().find(|row| row["kind"] == "total").unwrap();
        assert_ne!(total["packets"], "-");
        for (column, least) in [
            ("orig_pkts", 1),
            ("new_flows", 1),
            ("retransmitted", 2),
            ("network_lost", 2),
            ("rtt_samples", 2),
            ("dns_errors", 3),
            ("tls_failures", 3),
        ] {
            assert_eq!(total[column] != "-", set >= least, "{column} at {depth}");
        }
    }
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
    for (every, own) in zip_hosts(all, some) {
        let (mut every, mut own) = (every, own);
        if every.len() > listed {
            let rest = own.pop().unwrap();
            assert_eq!(rest["other"], "T");
            let others = every.split_off(listed);
            assert_eq!(rest["others"], others.len().to_string());
            for column in [
                "sent_packets",
                "sent_bytes",
                "received_packets",
                "received_bytes",
                "new_flows",
                "active_flows",
                "retransmitted",
                "network_lost",
                "rtt_samples",
                "dns_errors",
            ] {
                let sum: i64 = others.iter().map(|row| row[column].parse::<i64>().unwrap()).sum();
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

/// The rows of hosts of each interval, as both tables have them.
fn zip_hosts(all: &Table, some: &Table) -> Vec<(Vec<Row>, Vec<Row>)> {
    let intervals = |table: &Table| -> Vec<Vec<Row>> {
        let parts = table.0.chunk_by(|_, row| row["kind"] != "total");
        let hosts =
            |rows: &[Row]| rows.iter().filter(|row| row["kind"] == "host").cloned().collect();
        parts.map(hosts).collect()
    };
    let (all, some) = (intervals(all), intervals(some));
    assert_eq!(all.len(), some.len());
    all.into_iter().zip(some).collect()
}

/// With pseudonyms, hosts of which the same is told are in the order of these: that of addresses would tell about them.
#[test]
fn the_order_of_hosts_is_that_of_what_they_are_called() {
    let rows = series(&recorded("office.pcapng"), &["--series", "100ms", "-a"]).0;
    let hosts = rows.iter().filter(|row| row["kind"] == "host" && row["other"] == "F");
    let hosts: Vec<_> = hosts.collect();
    let columns = [
        "ts",
        "late",
        "sent_bytes",
        "received_bytes",
        "sent_packets",
        "received_packets",
        "new_flows",
        "active_flows",
        "retransmitted",
        "dns_errors",
        "dns_unanswered",
        "tls_failures",
    ];
    let address = |row: &Row| Address::from(row["host"].parse::<IpAddr>().unwrap());
    let mut ties = 0;
    for pair in hosts.windows(2) {
        let (one, next) = (pair[0], pair[1]);
        if columns.iter().all(|column| one[*column] == next[*column]) {
            assert!(address(one) < address(next), "{} and {}", one["host"], next["host"]);
            ties += 1;
        }
    }
    assert!(ties >= 8, "too few to be sure: {ties}");
    let is_client = |row: &&Row| row["host"].starts_with("192.0.2.");
    assert_eq!(rows.iter().filter(is_client).count(), 0);
}
