//! Every capture of the corpus against what TShark and capinfos say of it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use netsniff_packet::{Batch, Progress, Source, Timestamp};
use netsniff_pcapfile::{Format, Reader};
use netsniff_testing::{Need, folder};

/// What is compared of one packet: time, captured length, length on the wire, interface.
type Row = (Timestamp, u32, u32, Option<u32>);

/// The capture files of the corpus, or `None` where there is no corpus.
fn captures() -> Option<Vec<PathBuf>> {
    let root = folder(Need::Corpus, "no capture was compared")?;
    let mut files = Vec::new();
    for folder in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
        if folder.is_dir() {
            files.extend(fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    files.retain(|path| path.is_file() && oracle(path, "summary.tsv").is_file());
    files.sort();
    assert!(!files.is_empty(), "NETSNIFF_CORPUS holds no captures with an oracle");
    Some(files)
}

fn oracle(capture: &Path, name: &str) -> PathBuf {
    let mut folder = capture.as_os_str().to_owned();
    folder.push(".oracle");
    PathBuf::from(folder).join("tshark").join(name)
}

fn read(path: &Path) -> (Vec<Row>, Reader<File>) {
    let mut reader = Reader::new(File::open(path).unwrap()).unwrap();
    let mut batch = Batch::default();
    let mut rows = Vec::new();
    let mut progress = Progress::More;
    while progress == Progress::More {
        progress = reader.read_batch(&mut batch).unwrap();
        let has_interfaces = matches!(reader.format(), Format::Pcapng { .. });
        rows.extend(batch.iter().map(|packet| {
            let interface = has_interfaces.then_some(packet.interface);
            (packet.timestamp, packet.data.len() as u32, packet.wire_len, interface)
        }));
    }
    (rows, reader)
}

fn seconds(text: &str) -> Timestamp {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let nanos = format!("{fraction:0<9}").parse().unwrap();
    Timestamp::from_secs_nanos(seconds.parse().unwrap(), nanos)
}

fn expected_rows(table: &str) -> Vec<Row> {
    let row = |line: &str| {
        let fields: Vec<_> = line.split('\t').collect();
        let number = |at: usize| fields[at].parse().unwrap();
        (seconds(fields[1]), number(2), number(3), fields[4].parse().ok())
    };
    table.lines().skip(1).map(row).collect()
}

#[test]
fn every_packet_is_as_tshark_says() {
    let Some(files) = captures() else { return };
    let (mut compared, mut packets) = (0, 0);
    for path in &files {
        let Ok(table) = fs::read_to_string(oracle(path, "packets.tsv")) else { continue };
        let (rows, reader) = read(path);
        assert_eq!(rows, expected_rows(&table), "{}", path.display());
        assert_eq!(reader.packets(), rows.len() as u64);
        compared += 1;
        packets += rows.len();
    }
    eprintln!("compared {packets} packets of {compared} files out of {}", files.len());
    assert!(compared > 0);
}

#[test]
fn the_sums_are_as_capinfos_says() {
    let Some(files) = captures() else { return };
    for path in &files {
        let summary = fs::read_to_string(oracle(path, "summary.tsv")).unwrap();
        let fact = |name: &str| {
            let line = summary.lines().find_map(|line| line.strip_prefix(name));
            line.map_or("", |value| value.trim())
        };
        let (rows, reader) = read(path);
        let name = path.display();
        let wire: u64 = rows.iter().map(|row| u64::from(row.2)).sum();
        assert_eq!(rows.len().to_string(), fact("tshark: packets\t"), "{name}");
        assert_eq!(wire.to_string(), fact("tshark: sum frame.len\t"), "{name}");
        assert_eq!(reader.damage(), [], "{name}");
    }
}
