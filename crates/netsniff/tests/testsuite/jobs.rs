//! `--jobs`: files that are analysed by themselves give the logs and the summary of all in order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use netsniff_packet::{Batch, Packet, Progress, Source as _, Timestamp};
use netsniff_pcapfile::{Interface, PcapngWriter, Reader, Resolution, Section};
use serde_json::Value;

use crate::zeek::corpus::{Capture, Scratch, captures, second_captures};

/// Numbers that look random, and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }
}

/// What may lie between two pieces, in milliseconds: about each time-out, and none.
const GAPS: [i64; 12] =
    [0, 0, 2_500, 4_000, 6_000, 11_000, 35_000, 65_000, 310_000, 700_000, 4_000_000, 90_000_000];

/// A packet that stays, with what was lost before it.
struct Kept {
    packet: Batch,
    lost: u64,
}

fn packets(path: &Path) -> Vec<Kept> {
    let Ok(mut reader) = Reader::new(File::open(path).unwrap()) else { return Vec::new() };
    let (mut all, mut batch) = (Vec::new(), Batch::default());
    loop {
        let progress = reader.read_batch(&mut batch);
        for (number, packet) in (0..).zip(batch.iter()) {
            let losses = batch.losses.iter().filter(|(before, _)| *before == number);
            let lost = losses.map(|(_, loss)| loss.packets).sum();
            let mut packet_alone = Batch::default();
            assert!(packet_alone.push(&packet));
            all.push(Kept { packet: packet_alone, lost });
        }
        if !matches!(progress, Ok(Progress::More)) {
            return all;
        }
    }
}

/// Writes packets to a file of their own, later by so many milliseconds.
fn write(path: &Path, packets: &[Kept], later: i64) {
    let file = std::io::BufWriter::new(File::create(path).unwrap());
    let mut writer = PcapngWriter::new(file, &Section::default()).unwrap();
    let mut interfaces = BTreeMap::new();
    for Kept { packet, lost } in packets {
        for packet in packet.iter() {
            let interface = *interfaces.entry(packet.link_type).or_insert_with(|| {
                let resolution = Resolution::NANOSECONDS;
                let interface = Interface { resolution, ..Interface::new(packet.link_type, 0) };
                writer.add_interface(&interface).unwrap()
            });
            let nanos = packet.timestamp.nanos().max(0) + later * 1_000_000;
            let timestamp = Timestamp::from_nanos(nanos);
            let packet = Packet { interface, timestamp, ..packet };
            match lost {
                0 => writer.write_packet(&packet).unwrap(),
                _ => writer.write_packet_after_loss(&packet, *lost).unwrap(),
            }
        }
    }
    writer.finish().unwrap();
}

/// Cuts packets into two to eight files at any places, and lets time pass between them. Returns the files.
fn cut(packets: &mut [Kept], folder: &Path, gaps: &[i64], numbers: &mut Numbers) -> Vec<PathBuf> {
    let pieces = 2 + numbers.below(7);
    let mut borders: Vec<_> = (1..pieces).map(|_| numbers.below(packets.len() + 1)).collect();
    borders.extend([0, packets.len()]);
    borders.sort_unstable();
    let mut later = 0;
    let pieces = borders.windows(2).enumerate().map(|(at, border)| {
        let path = folder.join(format!("{at}.pcapng"));
        write(&path, &packets[border[0]..border[1]], later);
        later += gaps[numbers.below(gaps.len())];
        path
    });
    pieces.collect()
}

/// The logs in a folder, and the summary without what tells how it came to be.
type Told = (BTreeMap<String, Vec<u8>>, Value);

/// How many files were analysed by themselves, whole or by pairs.
#[derive(Clone, Copy, Default)]
struct Apart {
    whole: u64,
    by_pairs: u64,
}

impl Apart {
    fn of(jobs: Option<&Value>) -> Self {
        let count = |name| jobs.and_then(|jobs| jobs[name].as_u64()).unwrap_or(0);
        Self { whole: count("apart"), by_pairs: count("by_pairs") }
    }

    fn add(&mut self, other: Self) {
        self.whole += other.whole;
        self.by_pairs += other.by_pairs;
    }
}

/// Analyses files. Returns what it told, and how many files were analysed by themselves.
fn analysed(files: &[PathBuf], output: &Path, arguments: &[&str]) -> (Told, Apart) {
    let run = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args(["analyze", "--json", "-o"])
        .arg(output)
        .args(arguments)
        .args(files)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.code().is_some_and(|code| code < 4), "{files:?}: {} {errors}", run.status);
    let entries = fs::read_dir(output).unwrap().map(|entry| entry.unwrap());
    let logs = entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()));
    let logs = logs.collect();
    fs::remove_dir_all(output).unwrap();
    let mut summary: Value = serde_json::from_slice(&run.stdout).unwrap();
    let input = summary["input"].as_object_mut().unwrap();
    input.remove("elapsed_seconds");
    let apart = Apart::of(input.remove("jobs").as_ref());
    if let Some(flows) = summary["flows"].as_object_mut() {
        // What is over leaves the table with the packets that come next, and here before the next file.
        for name in ["peak", "peak_bytes", "peak_held_bytes"] {
            flows.remove(name);
        }
    }
    ((logs, summary), apart)
}

fn all_captures(what: &str) -> Option<Vec<Capture>> {
    let first = captures(what)?;
    let second = second_captures(what).into_iter().flatten().flatten();
    Some(first.into_iter().chain(second).collect())
}

/// The first line of each log, and the parts of the summary, that are not the same.
fn differences(one: &Told, other: &Told) -> Vec<String> {
    let names: BTreeSet<_> = one.0.keys().chain(other.0.keys()).collect();
    let logs = names.into_iter().filter(|name| one.0.get(*name) != other.0.get(*name));
    let differing = logs.map(|name| {
        let [one, other] = [one, other].map(|of| of.0.get(name).map_or("", |it| text(it)));
        let lines = || one.lines().zip(other.lines()).find(|(one, other)| one != other);
        format!(
            "{name} ({} and {} lines): {:?}",
            one.lines().count(),
            other.lines().count(),
            lines()
        )
    });
    let mut differing: Vec<_> = differing.collect();
    for (name, value) in one.1.as_object().unwrap() {
        if other.1[name] != *value {
            differing.push(format!("{name} of the summary: {value} and {}", other.1[name]));
        }
    }
    differing
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn pieces_of_a_capture_give_the_logs_of_the_whole() {
    let Some(captures) = all_captures("pieces of captures were not analysed by themselves") else {
        return;
    };
    let scratch = Scratch::new("jobs-pieces");
    fs::create_dir_all(scratch.path()).unwrap();
    let (output, whole) = (scratch.path().join("logs"), scratch.path().join("whole.pcapng"));
    let (mut numbers, mut compared, mut differing) = (Numbers(1), 0, Vec::new());
    let mut of_all = Apart::default();
    for capture in &captures {
        let mut packets = packets(&capture.path);
        if packets.len() < 2 {
            continue;
        }
        write(&whole, &packets, 0);
        let (expected, _) = analysed(core::slice::from_ref(&whole), &output, &["--workers", "1"]);
        let pieces = cut(&mut packets, scratch.path(), &[0], &mut numbers);
        // Where stamps go back, pieces are merged in another order.
        let (in_order, _) = analysed(&pieces, &output, &["--workers", "1"]);
        compared += usize::from(in_order.0 == expected.0);
        for jobs in ["2", "3"] {
            let (told, apart) = analysed(&pieces, &output, &["--jobs", jobs]);
            of_all.add(apart);
            let differences = differences(&in_order, &told);
            if !differences.is_empty() {
                differing.push(format!("{} --jobs {jobs}: {differences:?}", capture.name));
            }
        }
    }
    eprintln!("{} captures, {compared} of them the same as the whole", captures.len());
    assert!(differing.is_empty(), "not the same: {differing:#?}");
    assert!(compared > 60, "{compared}");
    eprintln!("{} pieces were analysed by pairs, {} whole", of_all.by_pairs, of_all.whole);
    assert!(of_all.by_pairs > 200, "{}", of_all.by_pairs);
}

#[test]
fn pieces_with_time_between_them_give_the_logs_of_all_in_order() {
    let Some(captures) = all_captures("pieces apart were not analysed by themselves") else {
        return;
    };
    let scratch = Scratch::new("jobs-apart");
    fs::create_dir_all(scratch.path()).unwrap();
    let output = scratch.path().join("logs");
    let (mut numbers, mut pieces_of_all, mut of_all) = (Numbers(2), 0, Apart::default());
    let mut differing = Vec::new();
    for (round, capture) in captures.iter().enumerate() {
        let mut packets = packets(&capture.path);
        if packets.len() < 2 {
            continue;
        }
        if round % 3 == 0 {
            let at = numbers.below(packets.len());
            packets[at].lost += 3;
        }
        let filter: &[&str] =
            if round % 4 == 1 { &["-f", "not tcp[tcpflags] & 2 != 0"] } else { &[] };
        let pieces = cut(&mut packets, scratch.path(), &GAPS, &mut numbers);
        let (expected, _) = analysed(&pieces, &output, &[&["--workers", "1"], filter].concat());
        for jobs in ["2", "3"] {
            let (told, apart) = analysed(&pieces, &output, &[&["--jobs", jobs], filter].concat());
            pieces_of_all += pieces.len() as u64;
            of_all.add(apart);
            let differences = differences(&expected, &told);
            if !differences.is_empty() {
                differing.push(format!("{} --jobs {jobs}: {differences:?}", capture.name));
            }
        }
    }
    let Apart { whole, by_pairs } = of_all;
    eprintln!("of {pieces_of_all} pieces {whole} were analysed by themselves, {by_pairs} by pairs");
    assert!(differing.is_empty(), "not the same: {differing:#?}");
    assert!(whole > 200 && by_pairs > 100, "{whole} and {by_pairs} of {pieces_of_all}");
}

#[test]
fn threads_beyond_the_files_are_not_begun() {
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/office.pcapng");
    let scratch = Scratch::new("jobs-many");
    fs::create_dir_all(scratch.path()).unwrap();
    let (output, files) = (scratch.path().join("logs"), [PathBuf::from(capture)]);
    let (expected, _) = analysed(&files, &output, &["--workers", "1"]);
    // With a share of the bounds for each of them, flows would be ended early.
    let (told, _) = analysed(&files, &output, &["--jobs", "1024"]);
    assert_eq!(differences(&expected, &told), [] as [String; 0]);
}

/// Captures of other days: nearly all can be analysed by themselves. All of them are one input.
#[test]
fn captures_of_many_days_are_analysed_by_themselves() {
    let Some(captures) = all_captures("captures of many days were not analysed by themselves")
    else {
        return;
    };
    let scratch = Scratch::new("jobs-days");
    fs::create_dir_all(scratch.path()).unwrap();
    let output = scratch.path().join("logs");
    let (mut files, mut end) = (Vec::new(), 0);
    for capture in &captures {
        let packets = packets(&capture.path);
        let stamps = || packets.iter().flat_map(|kept| kept.packet.iter().map(|it| it.timestamp));
        let (Some(first), Some(last)) = (stamps().min(), stamps().max()) else { continue };
        let millis = |stamp: Timestamp| stamp.nanos().max(0) / 1_000_000;
        if millis(last) - millis(first) > 40 * 86_400_000 {
            continue;
        }
        let later = end + 86_400_000 - millis(first);
        let path = scratch.path().join(format!("{}.pcapng", files.len()));
        write(&path, &packets, later);
        end = millis(last) + later;
        files.push(path);
    }
    for format in ["tsv", "json"] {
        let arguments = |how| ["--format", format, how];
        let workers = [&arguments("--workers")[..], &["1"]].concat();
        let (expected, _) = analysed(&files, &output, &workers);
        for jobs in ["1", "2", "3", "4"] {
            let how = [&arguments("--jobs")[..], &[jobs]].concat();
            let (told, apart) = analysed(&files, &output, &how);
            assert_eq!(
                differences(&expected, &told),
                [] as [String; 0],
                "--jobs {jobs} --format {format}"
            );
            let whole = apart.whole;
            eprintln!("--jobs {jobs}: {whole} of {} files by themselves", files.len());
            if jobs != "1" {
                assert!(whole as usize * 4 > files.len(), "{whole} of {}", files.len());
            }
        }
    }
}
