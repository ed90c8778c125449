//! What the summary counts of TCP's segments are the sums of the columns of the log `tcp`, and nothing that is known is
//! left out of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::zeek::corpus::Scratch;
use crate::zeek::log::{self, Row};
use netsniff_packet::{Batch, LinkType, Packet, Progress, Source as _, Timestamp};
use netsniff_pcapfile::{PcapWriter, Reader};
use serde_json::Value;

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded");

/// Fields of the summary, each with the columns of one side that it sums up.
const SUMS: [(&str, &[&str]); 4] = [
    ("data_segments", &["data_segments"]),
    ("retransmitted", &["retx_rto", "retx_fast", "retx_spurious"]),
    ("out_of_order", &["out_of_order"]),
    ("duplicates", &["duplicates"]),
];

fn captures() -> Vec<PathBuf> {
    let entries = fs::read_dir(RECORDED).unwrap().map(|entry| entry.unwrap().path());
    let is_capture = |path: &PathBuf| {
        path.extension().is_some_and(|it| it.to_str().unwrap().starts_with("pcap"))
    };
    let mut captures: Vec<_> = entries.filter(is_capture).collect();
    captures.sort();
    assert!(captures.len() >= 2);
    captures
}

/// The section `tcp` of the summary, and the rows of the log.
fn analysed(capture: &Path, workers: &str) -> (Value, Vec<Row>) {
    let scratch = Scratch::new("tcp-sums");
    let output = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .arg("analyze")
        .arg(capture)
        .args(["--json", "--workers", workers, "-o"])
        .arg(scratch.path())
        .output()
        .unwrap();
    let mut summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    (summary["tcp"].take(), log::read(&scratch.path().join("tcp.log")).unwrap())
}

fn sum(rows: &[Row], columns: &[&str]) -> u64 {
    let names =
        columns.iter().flat_map(|column| ["orig", "resp"].map(|side| format!("{side}_{column}")));
    let of = |name: &String| -> u64 {
        rows.iter().filter_map(|row| row[name].parse::<u64>().ok()).sum()
    };
    names.map(|name| of(&name)).sum()
}

/// The office, of which a network has doubled every tenth packet and put every seventeenth behind the next two.
fn disturbed(path: &Path) {
    let mut reader =
        Reader::new(fs::File::open(Path::new(RECORDED).join("office.pcapng")).unwrap()).unwrap();
    let mut batch = Batch::default();
    let mut frames: Vec<(Timestamp, Vec<u8>)> = Vec::new();
    loop {
        let progress = reader.read_batch(&mut batch).unwrap();
        frames.extend(batch.iter().map(|packet| (packet.timestamp, packet.data.to_vec())));
        if progress == Progress::End {
            break;
        }
    }
    for at in (0..frames.len() - 2).step_by(17) {
        let data: Vec<_> = frames[at..at + 3].iter().map(|(_, data)| data.clone()).collect();
        for (place, data) in [2, 0, 1].into_iter().zip(data) {
            frames[at + place].1 = data;
        }
    }
    let file = fs::File::create(path).unwrap();
    let mut writer = PcapWriter::new(file, LinkType::ETHERNET, 262_144).unwrap();
    for (number, (timestamp, data)) in frames.iter().enumerate() {
        let wire_len = u32::try_from(data.len()).unwrap();
        let timestamp = *timestamp;
        let packet =
            Packet { timestamp, data, wire_len, link_type: LinkType::ETHERNET, interface: 0 };
        for _ in 0..1 + usize::from(number % 10 == 0) {
            writer.write_packet(&packet).unwrap();
        }
    }
    writer.finish().unwrap();
}

#[test]
fn counts_of_segments_are_sums_of_the_log() {
    let mut seen = [0; SUMS.len()];
    let scratch = Scratch::new("tcp-disturbed");
    fs::create_dir_all(scratch.path()).unwrap();
    let made = scratch.path().join("disturbed.pcap");
    disturbed(&made);
    for capture in captures().into_iter().chain([made]) {
        for workers in ["1", "3"] {
            let (tcp, rows) = analysed(&capture, workers);
            if rows.is_empty() {
                continue;
            }
            for ((field, columns), seen) in SUMS.iter().zip(&mut seen) {
                let expected = sum(&rows, columns);
                assert_eq!(tcp[field], expected, "{field} of {} with {workers}", capture.display());
                *seen += expected;
            }
        }
    }
    let [data, retransmitted, out_of_order, _] = seen;
    assert!(
        data > 1000 && retransmitted > 0 && out_of_order > 0,
        "nothing was summed up: {seen:?}"
    );
}

#[test]
fn nothing_that_is_known_is_null() {
    let (tcp, _) = analysed(&Path::new(RECORDED).join("office.pcapng"), "2");
    let nulls: Vec<_> =
        tcp.as_object().unwrap().iter().filter(|(_, value)| value.is_null()).collect();
    assert!(nulls.is_empty(), "{nulls:?}");
}
