//! Losses that a pcapng file tells of, between packets and in totals: the connections that were
//! alive there are touched, whatever the number of workers and files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::zeek::corpus::Scratch;
use crate::zeek::log::{self, Row};
use netsniff_packet::{Batch, LinkType, Packet, Progress, Source as _, Timestamp};
use netsniff_pcapfile::{Counters, Interface, PcapngWriter, Reader, Resolution, Section};
use serde_json::Value;

/// The recorded capture, 22 seconds without a loss.
const OFFICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/office.pcapng");

/// What a file says was lost before the packet with a number, from 0.
#[derive(Clone, Copy)]
enum Told {
    /// The packet's own block: so many since the last packet.
    Drops(u64),
    /// A statistics block before it: totals of interface and system.
    Totals(u64, u64),
}

struct Seen {
    timestamp: Timestamp,
    data: Vec<u8>,
}

fn office() -> Vec<Seen> {
    let mut reader = Reader::new(fs::File::open(OFFICE).unwrap()).unwrap();
    let (mut batch, mut packets) = (Batch::default(), Vec::new());
    let mut progress = Progress::More;
    while progress == Progress::More {
        progress = reader.read_batch(&mut batch).unwrap();
        let seen =
            |packet: Packet<'_>| Seen { timestamp: packet.timestamp, data: packet.data.to_vec() };
        packets.extend(batch.iter().map(seen));
    }
    packets
}

/// Writes the packets with the given numbers, and what is told before them. What is told of a
/// number behind the last packet stands at the end of the file.
fn write(
    path: &Path,
    packets: &[Seen],
    numbers: impl Iterator<Item = usize>,
    told: &BTreeMap<usize, Told>,
) {
    let mut writer = PcapngWriter::new(Vec::new(), &Section::default()).unwrap();
    let interface =
        Interface { resolution: Resolution::NANOSECONDS, ..Interface::new(LinkType::ETHERNET, 0) };
    writer.add_interface(&interface).unwrap();
    let totals = |by_interface, by_system| Counters {
        dropped_by_interface: Some(by_interface),
        dropped_by_os: Some(by_system),
        ..Counters::NONE
    };
    for number in numbers {
        let Seen { timestamp, data } = &packets[number];
        let (timestamp, link_type) = (*timestamp, LinkType::ETHERNET);
        let wire_len = data.len() as u32;
        let packet = Packet { timestamp, data, wire_len, link_type, interface: 0 };
        match told.get(&number) {
            Some(Told::Drops(drops)) => writer.write_packet_after_loss(&packet, *drops).unwrap(),
            Some(Told::Totals(by_interface, by_system)) => {
                writer.write_counters(0, timestamp, &totals(*by_interface, *by_system)).unwrap();
                writer.write_packet(&packet).unwrap();
            }
            None => writer.write_packet(&packet).unwrap(),
        }
    }
    if let Some(Told::Totals(by_interface, by_system)) = told.get(&packets.len()) {
        let end = packets.last().unwrap().timestamp;
        writer.write_counters(0, end, &totals(*by_interface, *by_system)).unwrap();
    }
    fs::write(path, writer.finish().unwrap()).unwrap();
}

fn analyze(files: &[PathBuf], workers: &str, output: &Path) -> Value {
    let run = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args(["analyze", "--json", "--workers", workers, "-o"])
        .arg(output)
        .args(files)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    serde_json::from_slice(&run.stdout).unwrap()
}

fn conn(output: &Path) -> Vec<Row> {
    log::read(&output.join("conn.log")).unwrap()
}

/// First and last packet in microseconds since the epoch.
fn span(row: &Row) -> (i64, i64) {
    let micros = |text: &str| text.replace('.', "").parse::<i64>().unwrap();
    let start = micros(&row["ts"]);
    let duration = if row["duration"] == "-" { 0 } else { micros(&row["duration"]) };
    (start, start + duration)
}

/// Checks rows against the places of the losses: packet numbers in the whole capture. Returns how
/// many are touched.
fn check_rows(rows: &[Row], places: &[i64]) -> usize {
    let mut touched = 0;
    for row in rows {
        let (first, last) = span(row);
        // No connection is over within four seconds of its last packet.
        let is_inside = places.iter().any(|place| first < *place && *place <= last + 4_000_000);
        let is_before = places.iter().all(|place| first >= *place);
        match row["quality"].as_str() {
            "touched" => {
                touched += 1;
                assert!(!is_before, "it began after every loss: {row:?}");
            }
            _ => assert!(!is_inside, "it was alive at a loss: {row:?}"),
        }
    }
    touched
}

#[test]
fn connections_alive_at_a_loss_are_touched() {
    let (packets, scratch) = (office(), Scratch::new("losses"));
    fs::create_dir_all(scratch.path()).unwrap();
    let micros = |number: usize| packets[number].timestamp.nanos() / 1000;
    let end = packets.len();
    let drops = BTreeMap::from([(700, Told::Drops(3)), (2500, Told::Drops(9))]);
    let totals = BTreeMap::from([
        (500, Told::Totals(0, 0)),
        (1500, Told::Totals(0, 4)),
        (2000, Told::Totals(0, 4)),
        (3000, Told::Totals(5, 4)),
    ]);
    // The totals at the end tell of what the packets told, and of one more.
    let both = BTreeMap::from([
        (700, Told::Drops(3)),
        (1200, Told::Totals(0, 3)),
        (2500, Told::Drops(9)),
        (end, Told::Totals(1, 12)),
    ]);
    for (name, told, places, holes) in [
        ("none", BTreeMap::new(), vec![], (0, 0)),
        ("drops", drops, vec![700, 2500], (2, 12)),
        ("totals", totals, vec![1500, 3000], (2, 9)),
        ("both", both, vec![700, 2500, end], (3, 13)),
    ] {
        let file = scratch.path().join(format!("{name}.pcapng"));
        write(&file, &packets, 0..end, &told);
        let mut first: Option<Vec<u8>> = None;
        for workers in ["1", "2", "3"] {
            let output = scratch.path().join(format!("{name}-{workers}"));
            let books = analyze(core::slice::from_ref(&file), workers, &output)["books"].clone();
            let told = (books["holes"]["places"].as_u64(), books["holes"]["packets"].as_u64());
            assert_eq!(told, (Some(holes.0), Some(holes.1)), "{name}");
            let mut bytes = fs::read(output.join("conn.log")).unwrap();
            bytes.extend(fs::read(output.join("gaps.log")).unwrap());
            assert_eq!(*first.get_or_insert_with(|| bytes.clone()), bytes, "{name}, {workers}");
        }
        let rows = log::read(&scratch.path().join(format!("{name}-1")).join("gaps.log")).unwrap();
        let lost = rows.iter().filter(|row| row["what"] == "packets");
        let packets_lost: u64 =
            lost.clone().map(|row| row["packets"].parse::<u64>().unwrap()).sum();
        assert_eq!((lost.count() as u64, packets_lost), holes, "{name}: a row for each place");
        // What stands behind the last packet is behind its time.
        let place =
            |number: usize| if number == end { micros(end - 1) + 1 } else { micros(number) };
        let places: Vec<_> = places.into_iter().map(place).collect();
        let touched = check_rows(&conn(&scratch.path().join(format!("{name}-1"))), &places);
        eprintln!("{name}: {touched} touched");
        assert_eq!(touched > 0, holes.0 > 0, "{name}");
    }
}

#[test]
fn the_books_tell_the_same_losses_once() {
    let (packets, scratch) = (office(), Scratch::new("losses-books"));
    fs::create_dir_all(scratch.path()).unwrap();
    let told = BTreeMap::from([
        (700, Told::Drops(3)),
        (2500, Told::Drops(9)),
        (packets.len(), Told::Totals(1, 12)),
    ]);
    let file = scratch.path().join("both.pcapng");
    write(&file, &packets, 0..packets.len(), &told);
    let books = &analyze(&[file], "2", &scratch.path().join("logs"))["books"];
    let lost = books["lost"].as_array().unwrap();
    let named = |part: &str| {
        lost.iter().find(|line| line["name"].as_str().unwrap().contains(part)).unwrap()["packets"]
            .as_u64()
    };
    assert_eq!(
        (named("interface"), named("system"), named("between")),
        (Some(1), Some(12), Some(12))
    );
    let all = named("interface").unwrap() + named("system").unwrap();
    assert_eq!(books["holes"]["packets"].as_u64(), Some(all));
}

#[test]
fn losses_of_several_files_keep_their_places() {
    let (packets, scratch) = (office(), Scratch::new("losses-merged"));
    fs::create_dir_all(scratch.path()).unwrap();
    let told = BTreeMap::from([(702, Told::Drops(3)), (2600, Told::Totals(0, 5))]);
    let last = 3501;
    let whole = scratch.path().join("whole.pcapng");
    write(&whole, &packets, 0..packets.len(), &told);
    let [even, odd] = ["even", "odd"].map(|name| scratch.path().join(format!("{name}.pcapng")));
    write(&even, &packets, (0..packets.len()).step_by(2), &told);
    // One of the files ends earlier than the other, with totals behind its last packet.
    write(&odd, &packets[..=last], (1..=last).step_by(2), &BTreeMap::new());
    let rest = scratch.path().join("rest.pcapng");
    write(&rest, &packets, (last + 2..packets.len()).step_by(2), &BTreeMap::new());

    let expected = scratch.path().join("expected");
    analyze(core::slice::from_ref(&whole), "1", &expected);
    let expected = fs::read(expected.join("conn.log")).unwrap();
    let files = [even.clone(), odd.clone(), rest.clone()];
    for workers in ["1", "2", "3"] {
        let output = scratch.path().join(format!("merged-{workers}"));
        let summary = analyze(&files, workers, &output);
        assert_eq!(summary["books"]["holes"]["packets"], 5, "3 of them are told twice");
        assert!(fs::read(output.join("conn.log")).unwrap() == expected, "{workers} workers");
    }

    // A loss that stands behind the last packet of one file, while the other goes on.
    let ended = BTreeMap::from([(last + 1, Told::Totals(7, 0))]);
    write(&odd, &packets[..=last], (1..=last).step_by(2), &ended);
    let output = scratch.path().join("ended");
    let summary = analyze(&files, "2", &output);
    assert_eq!(summary["books"]["holes"]["packets"], 5 + 7);
    let micros = |number: usize| packets[number].timestamp.nanos() / 1000;
    check_rows(&conn(&output), &[702, 2600, last].map(micros));
}

/// The losses of the recorded capture, as the wires told them: microseconds from sending to
/// noticing do not matter, nor those that leave no trace at the tap.
#[test]
fn what_the_wires_lost_is_told_with_its_place() {
    let scratch = Scratch::new("losses-office");
    analyze(&[OFFICE.into()], "2", scratch.path());
    let (mut told, mut expected) = (BTreeMap::new(), BTreeMap::new());
    for row in log::read(&scratch.path().join("gaps.log")).unwrap() {
        assert_eq!((row["what"].as_str(), row["ended"].as_str()), ("data", "filled"), "{row:?}");
        let port = if row["is_orig"] == "T" { "id.resp_p" } else { "id.orig_p" };
        let key = (row[port].clone(), row["cause"].clone());
        *told.entry(key).or_insert(0) += row["bytes"].parse::<u64>().unwrap();
    }
    let text = fs::read_to_string(OFFICE.replace("pcapng", "losses.tsv")).unwrap();
    for line in text.lines().skip(1) {
        let fields: Vec<_> = line.split('\t').collect();
        let (wire, to, port, bytes) = (fields[1], fields[2], fields[6], fields[8]);
        let bytes = bytes.parse::<u64>().unwrap();
        // The one request that was lost is the only data on its way: when it comes again, it is in
        // order.
        if bytes == 0 || to == "to servers" {
            continue;
        }
        let cause = if wire == "far" { "network_before" } else { "network_behind" };
        *expected.entry((port.to_owned(), cause.to_owned())).or_insert(0) += bytes;
    }
    assert_eq!(told, expected);
    assert_eq!(expected.len(), 5);
    let rows = conn(scratch.path());
    let tcp: Vec<_> = rows.iter().filter(|row| row["proto"] == "tcp").collect();
    let clean = tcp.iter().filter(|row| row["quality"] == "clean").count();
    assert_eq!((tcp.len(), clean), (82, 81), "a SYN that nobody answered tells nothing");
    assert!(rows.iter().filter(|row| row["proto"] != "tcp").all(|row| row["quality"] == "unknown"));
}
