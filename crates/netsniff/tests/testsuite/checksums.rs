//! `netsniff analyze --checksums` as a user runs it, on the recorded capture and on one that is
//! damaged.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::zeek::corpus::Scratch;
use crate::zeek::log;
use netsniff_packet::{Batch, LinkType, Progress, Source as _, Timestamp};
use netsniff_pcapfile::{PcapWriter, Reader};
use serde_json::Value;

/// The recorded capture: every checksum is as the wire had it.
const OFFICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/office.pcapng");

fn analyze(capture: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    command.arg("analyze").arg(capture).args(arguments).output().unwrap()
}

fn summary(capture: &Path, arguments: &[&str]) -> Value {
    let output = analyze(capture, &[&["--json"], arguments].concat());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_checksum_of_the_recorded_capture_is_good() {
    let checksums = &summary(Path::new(OFFICE), &[])["checksums"];
    assert_eq!(checksums["mode"], "count");
    for (protocol, good) in [("ip", 1838), ("tcp", 3781), ("udp", 240), ("icmp", 44)] {
        let counts = &checksums[protocol];
        assert_eq!(counts["good"], good, "{protocol}");
        let others = ["bad", "partial", "unknown"].map(|name| counts[name].as_u64().unwrap());
        assert_eq!(others, [0; 3], "{protocol}");
    }
    let text = String::from_utf8(analyze(Path::new(OFFICE), &[]).stdout).unwrap();
    assert!(!text.contains("CHECKSUMS"), "{text}");
}

/// The recorded capture with one byte of payload changed in its 500th frame and those that follow
/// at a distance of 500, as far as they carry TCP over IPv6.
fn damaged(scratch: &Scratch) -> (std::path::PathBuf, u64) {
    let mut reader = Reader::new(fs::File::open(OFFICE).unwrap()).unwrap();
    let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 0).unwrap();
    let (mut batch, mut number, mut wrong) = (Batch::default(), 0_u32, 0);
    let mut progress = Progress::More;
    while progress == Progress::More {
        progress = reader.read_batch(&mut batch).unwrap();
        for packet in batch.iter() {
            number += 1;
            let mut data = packet.data.to_vec();
            let is_tcp = data.len() > 100 && data[12..14] == [0x86, 0xdd] && data[20] == 6;
            if number.is_multiple_of(500) && is_tcp {
                data[99] ^= 1;
                wrong += 1;
            }
            let timestamp = Timestamp::from_nanos(packet.timestamp.nanos());
            writer
                .write_packet(&netsniff_packet::Packet { data: &data, timestamp, ..packet })
                .unwrap();
        }
    }
    fs::create_dir_all(scratch.path()).unwrap();
    let path = scratch.path().join("damaged.pcap");
    fs::write(&path, writer.finish().unwrap()).unwrap();
    (path, wrong)
}

#[test]
fn the_modes_count_leave_out_and_ignore() {
    let scratch = Scratch::new("checksums");
    let (capture, wrong) = damaged(&scratch);
    assert!(wrong >= 2);
    let rows = |mode: &str| {
        let logs = scratch.path().join(mode);
        let arguments = ["--checksums", mode, "-q", "-o", logs.to_str().unwrap()];
        assert!(analyze(&capture, &arguments).status.success());
        let read = |name: &str| log::read(&logs.join(name)).unwrap();
        (read("conn.log"), read("weird.log"))
    };
    let sum = |rows: &[log::Row], column: &str| {
        rows.iter().map(|row| row[column].parse::<u64>().unwrap_or(0)).sum::<u64>()
    };
    let ((counted, no_weirds), (left_out, weirds), (ignored, _)) =
        (rows("count"), rows("discard"), rows("ignore"));
    assert!(no_weirds.is_empty());
    assert_eq!(weirds.len() as u64, wrong);
    assert_eq!((sum(&counted, "bad_checksums"), sum(&left_out, "bad_checksums")), (wrong, wrong));
    assert!(ignored.iter().all(|row| row["bad_checksums"] == "-"));
    let packets = |rows| sum(rows, "orig_pkts") + sum(rows, "resp_pkts");
    assert_eq!(packets(&counted), packets(&left_out) + wrong);
    assert_eq!(packets(&counted), packets(&ignored));

    let of = |mode| summary(&capture, &["--checksums", mode])["checksums"].clone();
    assert_eq!(
        (of("count")["tcp"]["bad"].clone(), of("count")["discarded"].clone()),
        (wrong.into(), 0.into())
    );
    assert_eq!(of("discard")["discarded"], wrong);
    assert!(of("ignore")["tcp"].is_null());
    assert_eq!(analyze(&capture, &["--checksums", "fix"]).status.code(), Some(2));
    let text = String::from_utf8(analyze(&capture, &[]).stdout).unwrap();
    assert!(text.contains(&format!("CHECKSUMS\n  wrong: TCP {wrong}\n")), "{text}");
}
