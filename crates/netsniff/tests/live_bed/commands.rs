//! Commands that end by themselves, and captures for them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use netsniff_packet::{Batch, LinkType, Packet, Progress, Source as _, Timestamp};
use netsniff_pcapfile::{PcapWriter, Reader};
use netsniff_traffic::probe;
use serde_json::Value;

use super::{Bed, Done};

/// What a command that has ended came to.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Ended {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.output).unwrap_or_else(|_| panic!("{}", self.errors))
    }
}

pub(crate) fn ended(command: &mut Command) -> Ended {
    let out = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: out.status.code(), output: text(out.stdout), errors: text(out.stderr) }
}

/// netsniff at the sender's end.
pub(crate) fn netsniff(bed: &Bed, arguments: &[&str]) -> Ended {
    let binary = env!("CARGO_BIN_EXE_netsniff");
    ended(Command::new("ip").args(["netns", "exec", &bed.sender(), binary]).args(arguments))
}

pub(crate) fn json_of(done: &Done) -> Value {
    serde_json::from_str(&done.output).unwrap_or_else(|_| panic!("{}", done.errors))
}

/// `netsniff replay` of files on tx0.
pub(crate) fn replay(bed: &Bed, files: &[&Path], arguments: &[&str]) -> Ended {
    let binary = env!("CARGO_BIN_EXE_netsniff");
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &bed.sender(), binary, "replay", "-i", "tx0"]);
    ended(command.args(arguments).args(files))
}

/// A directory of a test, which goes with it.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(test: &str) -> Self {
        let directory =
            std::env::temp_dir().join(format!("netsniff-generate-{}-{test}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Captures of a test, which go with it.
pub(crate) struct Captures(pub(crate) PathBuf);

impl Captures {
    pub(crate) fn new(test: &str) -> Self {
        let name = format!("netsniff-replay-{}-{test}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    /// Writes packets: when each was recorded, its bytes, and how many it had on the wire.
    pub(crate) fn write(
        &self,
        name: &str,
        link_type: LinkType,
        packets: &[(i64, Vec<u8>, usize)],
    ) -> PathBuf {
        let path = self.0.join(name);
        let file = fs::File::create(&path).unwrap();
        let mut writer = PcapWriter::new(file, link_type, 0).unwrap();
        for (nanos, data, wire_len) in packets {
            let timestamp = Timestamp::from_nanos(1_700_000_000_000_000_000 + nanos);
            let wire_len = *wire_len as u32;
            let packet = Packet { timestamp, data, wire_len, link_type, interface: 0 };
            writer.write_packet(&packet).unwrap();
        }
        writer.finish().unwrap();
        path
    }

    /// Whole frames of several sizes, with so many nanoseconds between them.
    pub(crate) fn frames(&self, name: &str, count: u32, gap: i64) -> PathBuf {
        let packets = (0..count).map(|number| {
            let frame = probe::frame([64, 200, 1518, 90][number as usize % 4], number).unwrap();
            let len = frame.len();
            (i64::from(number) * gap, frame, len)
        });
        self.write(name, LinkType::ETHERNET, &packets.collect::<Vec<_>>())
    }
}

impl Drop for Captures {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The packets of a capture.
pub(crate) fn packets(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::new(fs::File::open(path).unwrap()).unwrap();
    let (mut batch, mut all) = (Batch::default(), Vec::new());
    loop {
        let progress = reader.read_batch(&mut batch).unwrap();
        all.extend(batch.iter().map(|packet| packet.data.to_vec()));
        if progress == Progress::End {
            return all;
        }
    }
}

/// How many packets of a capture TShark finds by a filter.
pub(crate) fn found(capture: &Path, filter: &str) -> usize {
    let checks = ["ip", "tcp", "udp"].map(|protocol| format!("{protocol}.check_checksum:TRUE"));
    let out = Command::new("tshark")
        .args(checks.iter().flat_map(|check| ["-o", check.as_str()]))
        .args(["-Y", filter, "-T", "fields", "-e", "frame.number", "-r"])
        .arg(capture)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).lines().count()
}
