//! What the summary counts of flows, oddities and packets are the sums of the rows of the logs, and of the packets of the
//! capture.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::zeek::corpus::Scratch;
use crate::zeek::log::{self, Row};
use netsniff_packet::{Batch, LinkType, Packet, Progress, Source as _};
use netsniff_pcapfile::{PcapWriter, Reader};
use serde_json::Value;

const OFFICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/office.pcapng");

/// The office, of whose packets the capture lost each fiftieth, and cut or damaged some others. Returns the number of the
/// packets and their bytes on the wire.
fn damaged(path: &Path) -> [u64; 2] {
    let mut reader = Reader::new(fs::File::open(OFFICE).unwrap()).unwrap();
    let file = fs::File::create(path).unwrap();
    let mut writer = PcapWriter::new(file, LinkType::ETHERNET, 262_144).unwrap();
    let (mut batch, mut number, mut sums) = (Batch::default(), 0_usize, [0; 2]);
    let mut progress = Progress::More;
    while progress == Progress::More {
        progress = reader.read_batch(&mut batch).unwrap();
        for packet in batch.iter() {
            number += 1;
            if number % 50 == 0 {
                continue;
            }
            let mut data = packet.data.to_vec();
            match number % 400 {
                7 => data.truncate(20),
                11 => data[12..14].copy_from_slice(&[0x88, 0xcc]),
                _ => {}
            }
            sums = [sums[0] + 1, sums[1] + u64::from(packet.wire_len)];
            writer.write_packet(&Packet { data: &data, interface: 0, ..packet }).unwrap();
        }
    }
    writer.finish().unwrap();
    sums
}

/// The summary, and the rows of `conn` and `weird`.
fn analysed(capture: &Path, workers: &str) -> (Value, [Vec<Row>; 2]) {
    let scratch = Scratch::new("summary-sums");
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    command.arg("analyze").arg(capture).args(["--json", "--workers", workers, "-o"]);
    let output = command.arg(scratch.path()).output().unwrap();
    let rows = |name: &str| log::read(&scratch.path().join(name)).unwrap();
    (serde_json::from_slice(&output.stdout).unwrap(), ["conn.log", "weird.log"].map(rows))
}

/// How often each value stands in a column; of a set each element, and nothing of what is not known.
fn counted(rows: &[Row], column: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for cell in rows.iter().flat_map(|row| row[column].split(',')).filter(|cell| *cell != "-") {
        *counts.entry(cell.to_owned()).or_default() += 1;
    }
    counts
}

/// A list of names and counts.
fn counts(list: &Value) -> BTreeMap<String, u64> {
    let of = |item: &Value| {
        Some((item["name"].as_str()?.to_owned(), item["count"].as_u64().filter(|it| *it > 0)?))
    };
    list.as_array().unwrap().iter().filter_map(of).collect()
}

fn sum(rows: &[Row], column: &str) -> u64 {
    rows.iter().filter_map(|row| row[column].parse::<u64>().ok()).sum()
}

fn of_states(rows: &[Row], states: &[&str]) -> usize {
    let is_it = |row: &&Row| row["proto"] == "tcp" && states.contains(&row["conn_state"].as_str());
    rows.iter().filter(is_it).count()
}

#[test]
fn counts_are_sums_of_the_rows() {
    let scratch = Scratch::new("sums-made");
    fs::create_dir_all(scratch.path()).unwrap();
    let made = scratch.path().join("damaged.pcap");
    let sums = damaged(&made);
    for workers in ["1", "3"] {
        let (summary, [conn, weird]) = analysed(&made, workers);
        let (flows, tcp) = (&summary["flows"], &summary["tcp"]);
        assert_eq!(flows["total"], conn.len());
        for (field, column) in [
            ("by_protocol", "proto"),
            ("by_state", "conn_state"),
            ("by_service", "service"),
            ("by_quality", "quality"),
        ] {
            assert_eq!(counts(&flows[field]), counted(&conn, column), "{field} with {workers}");
        }
        let ends = counts(&flows["by_end"]).values().sum::<u64>();
        assert_eq!(ends, conn.len() as u64, "ends with {workers}");
        let of_tcp: Vec<_> = conn.iter().filter(|row| row["proto"] == "tcp").cloned().collect();
        assert_eq!(tcp["connections"], of_tcp.len());
        assert_eq!(tcp["rejected"], of_states(&conn, &["REJ"]));
        assert_eq!(tcp["unanswered"], of_states(&conn, &["S0"]));
        assert_eq!(tcp["reset"], of_states(&conn, &["RSTO", "RSTR"]));
        assert_eq!(tcp["missed_bytes"], sum(&of_tcp, "missed_bytes"), "with {workers}");
        let gaps = of_tcp.iter().filter(|row| row["missed_bytes"] != "0").count();
        assert_eq!(tcp["with_gaps"], gaps, "with {workers}");
        assert_eq!(counts(&summary["oddities"]), counted(&weird, "name"), "with {workers}");
        assert!(gaps > 10 && weird.len() > 5, "{gaps} gaps, {} oddities", weird.len());
    }
    packets_are_all(&analysed(&made, "2").0, sums);
}

/// The books and the layers have each packet.
fn packets_are_all(summary: &Value, [packets, bytes]: [u64; 2]) {
    let (input, books) = (&summary["input"], &summary["books"]);
    assert_eq!([&input["packets"], &input["wire_bytes"]], [packets, bytes]);
    let layers = summary["layers"].as_array().unwrap();
    let layer = |name: &str| {
        let found = layers.iter().find(|layer| layer["name"] == name);
        found.map_or(0, |layer| layer["packets"].as_u64().unwrap())
    };
    let ethernet = &layers[0];
    assert_eq!([&ethernet["packets"], &ethernet["bytes"]], [packets, bytes]);
    let parts = books["parts"].as_array().unwrap();
    let of_parts: u64 = parts.iter().map(|part| part["packets"].as_u64().unwrap()).sum();
    assert_eq!(of_parts, packets);
    let checksums = |name: &str| {
        let counts = summary["checksums"][name].as_object().unwrap();
        counts.values().map(|count| count.as_u64().unwrap()).sum::<u64>()
    };
    // Of a header that is cut nobody knows whether its checksum fits.
    let cut = parts.iter().find(|part| part["name"] == "with headers malformed or cut").unwrap();
    let cut = cut["packets"].as_u64().unwrap();
    assert_eq!(checksums("ip") + cut, layer("IPv4") + layer("IPv6"));
    assert!(cut > 5);
    assert!(layer("TCP") >= checksums("tcp") && checksums("tcp") > 3_000);
}
