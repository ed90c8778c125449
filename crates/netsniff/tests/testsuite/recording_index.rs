//! Recordings with an index beside each file: by it the same is extracted as without.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use netsniff::commands::extract::naming_choices;
use netsniff_analysis::{Limits, Options as Analysis};
use netsniff_packet::{Batch, LinkType, Packet, Progress, Source as _};
use netsniff_pcapfile::{Interface, Reader};
use netsniff_pipeline::carving::index::series::Naming;
use netsniff_pipeline::recording::Recorder;
use netsniff_pipeline::recording::books::State;
use netsniff_pipeline::recording::indexing::Indexed;
use netsniff_pipeline::recording::options::Options;
use netsniff_pipeline::recording::rotation::Rotation;
use netsniff_testing::log;

use crate::generated::Folder;

const PATIENCE: Duration = Duration::from_secs(20);

fn naming() -> Naming {
    let limits = Limits::default();
    let options = Analysis { tunnel_ports: Arc::default(), ..Analysis::default() };
    let choices = naming_choices(&limits, &options);
    Naming { limits, options, choices }
}

/// Packets that the recorder is given at once.
const PIECE: usize = 100;

/// Records a capture of the fixtures with indexes, and waits for them.
fn record(output: &Path, rotation: Rotation, seed: u64) -> Indexed {
    record_with(output, rotation, seed, |_| {})
}

/// The same, where `behind` is told how many packets were given to the recorder.
fn record_with(output: &Path, rotation: Rotation, seed: u64, behind: impl Fn(usize)) -> Indexed {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/office.pcapng");
    let mut reader = Reader::new(File::open(fixture).unwrap()).unwrap();
    let interfaces = vec![Interface::new(LinkType::ETHERNET, 0)];
    let index = Some(naming());
    let options = Options { rotation, index, seed, ..Options::new(output.to_owned(), interfaces) };
    let (mut batch, mut recorder, mut given) = (Batch::default(), None, 0);
    loop {
        let progress = reader.read_batch(&mut batch).unwrap();
        for records in batch.packets.chunks(PIECE) {
            let mut piece = Batch::default();
            for record in records {
                piece.push(&Packet { interface: 0, ..batch.packet(record) });
            }
            let begin = records[0].timestamp;
            let recorder =
                recorder.get_or_insert_with(|| Recorder::start(&options, begin).unwrap());
            recorder.batch(&piece);
            recorder.flush();
            given += piece.packets.len();
            behind(given);
        }
        if progress == Progress::End {
            break;
        }
    }
    let finished = recorder.unwrap().finish(PATIENCE);
    assert_eq!((finished.state, finished.statistics.refused.packets), (State::Recording, 0));
    let indexing = finished.indexing.unwrap();
    // All that was recorded was told, and no more of it was indexed.
    let ended = indexing.advance().ended;
    assert_eq!(ended, finished.statistics.file_bytes);
    let mut last = 0;
    indexing.wait(|now| {
        assert!((last..=ended).contains(&now.bytes), "{now:?}");
        last = now.bytes;
    })
}

fn netsniff(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netsniff")).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// Extracts, and returns what was written, what was said, and how many packets were read.
fn extract(folder: &Folder, inputs: &[&str], arguments: &[&str]) -> (Vec<u8>, String, u64) {
    let output = folder.path("extracted.pcapng");
    let words = ["extract", "--json", "-w", output.to_str().unwrap()];
    let run = netsniff(&[&words, inputs, arguments].concat());
    assert!(run.status.success(), "{}", said(&run));
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let written = fs::read(&output).unwrap();
    fs::remove_file(output).unwrap();
    (written, said(&run), report["packets_read"].as_u64().unwrap())
}

fn with_suffix(folder: &Folder, suffix: &str) -> Vec<PathBuf> {
    let mut files = folder.files();
    files.retain(|file| file.to_str().unwrap().ends_with(suffix));
    files
}

#[test]
fn files_of_a_rolling_recording_have_indexes_that_serve_together() {
    let (folder, outer) = (Folder::new("indexed"), Folder::new("indexed-out"));
    let rotation = Rotation { packets: Some(500), ..Rotation::default() };
    let indexed = record(&folder.path("day.pcapng"), rotation, 77);
    let (captures, indexes) = (with_suffix(&folder, ".pcapng"), with_suffix(&folder, ".nsi"));
    assert!(captures.len() >= 4, "{captures:?}");
    assert_eq!(indexed, Indexed { failure: None, files: captures.len() as u64, ..indexed.clone() });
    assert_eq!(indexes.len(), captures.len());
    let size = |files: &[PathBuf]| files.iter().map(|it| it.metadata().unwrap().len()).sum::<u64>();
    assert_eq!((indexed.bytes, indexed.capture_bytes), (size(&indexes), size(&captures)));
    assert!(indexed.bytes * 100 < indexed.capture_bytes, "1 % and more: {indexed:?}");
    let all: Vec<&str> = captures.iter().map(|it| it.to_str().unwrap()).collect();
    let logs = outer.path("logs");
    let run = netsniff(&[&["analyze", "-q", "-o", logs.to_str().unwrap()], &all[..]].concat());
    assert!(run.status.success(), "{}", said(&run));
    let rows = log::read(&logs.join("conn.log")).unwrap();
    let directory = folder.path("");
    let name = folder.path("day.pcapng");
    let (directory, name) = (directory.to_str().unwrap(), name.to_str().unwrap());
    let mut least = u64::MAX;
    for row in rows.iter().step_by(rows.len() / 10) {
        let uid = ["--uid", row["uid"].as_str()];
        let (whole, _, of_all) =
            extract(&outer, &[directory], &[&uid[..], &["--no-index"]].concat());
        // The directory, the name of the recording, and both with a file of it once more.
        for inputs in [&[directory][..], &[name], &[directory, name, all[1]]] {
            let (found, told, read) = extract(&outer, inputs, &uid);
            assert!(!told.contains("all of it is read"), "{told}");
            assert!(found == whole, "{inputs:?} {uid:?}: not the same bytes");
            least = least.min(read * 100 / of_all);
        }
    }
    // A file has at least two blocks that are always read.
    assert!(least < 60, "at least {least} % were read");
    // Files of two recordings do not serve together.
    let uid = rows.last().unwrap()["uid"].as_str();
    let other = outer.path("other.pcapng");
    record(&other, Rotation::default(), 78);
    let (_, told, _) = extract(&outer, &[all[0], other.to_str().unwrap()], &["--uid", uid]);
    assert!(told.contains("was made of other captures together"), "{told}");
}

/// Rows of `conn` of captures that are read as one.
fn rows_of(captures: &[&str], logs: &Path) -> Vec<log::Row> {
    let run = netsniff(&[&["analyze", "-q", "-o", logs.to_str().unwrap()], captures].concat());
    assert!(run.status.success(), "{}", said(&run));
    log::read(&logs.join("conn.log")).unwrap()
}

/// The files of a ring whose first one was removed: connections that began there have one uid in the indexes, which is that of
/// the whole recording, and another one where what is left is analysed.
#[test]
fn files_that_are_left_of_a_recording_tell_a_connection_by_both_of_its_uids() {
    let (folder, outer) = (Folder::new("indexed-left"), Folder::new("indexed-left-out"));
    let rotation = Rotation { packets: Some(500), ..Rotation::default() };
    record(&folder.path("day.pcapng"), rotation, 77);
    let captures = with_suffix(&folder, ".pcapng");
    let all: Vec<&str> = captures.iter().map(|it| it.to_str().unwrap()).collect();
    let left = &all[1..];
    let whole = rows_of(&all, &outer.path("whole"));
    let renamed = rows_of(left, &outer.path("left"));
    let names: Vec<_> = whole.iter().map(|row| &row["uid"]).collect();
    let columns = ["id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "proto"];
    let is_same =
        |one: &log::Row, other: &log::Row| columns.iter().all(|it| one[*it] == other[*it]);
    let mut compared = 0;
    for row in renamed.iter().filter(|row| !names.contains(&&row["uid"])) {
        let new = ["--uid", row["uid"].as_str()];
        let (expected, ..) = extract(&outer, left, &[&new[..], &["--no-index"]].concat());
        let (found, told, _) = extract(&outer, left, &new);
        assert!(told.contains("all of it is read for a connection"), "{told}");
        assert!(found == expected, "{new:?}: not the same bytes");
        let Some(old) = whole.iter().find(|it| is_same(it, row)) else { continue };
        let old = ["--uid", old["uid"].as_str()];
        let (by_old, told, _) = extract(&outer, left, &old);
        assert!(!told.contains("is read"), "{told}");
        let packets = |bytes: &[u8]| {
            let (mut batch, mut packets) = (Batch::default(), Vec::new());
            let mut reader = Reader::new(bytes).unwrap();
            while reader.read_batch(&mut batch).unwrap() == Progress::More
                || !batch.packets.is_empty()
            {
                packets.extend(batch.iter().map(|it| (it.timestamp, it.data.to_vec())));
            }
            packets
        };
        assert_eq!(packets(&by_old), packets(&expected));
        // Both at once, and one that nobody has.
        let (both, ..) = extract(&outer, left, &[new, old].concat());
        assert_eq!(packets(&both), packets(&expected));
        compared += 1;
    }
    assert!(compared >= 2, "{compared} connections");
    let output = outer.path("none.pcapng");
    let run = netsniff(
        &[&["extract", "-w", output.to_str().unwrap(), "--uid", "C0Uu1dTkqKSZqk4Kvm"], left]
            .concat(),
    );
    assert_eq!(run.status.code(), Some(1), "{}", said(&run));
}

#[test]
fn one_file_has_an_index_as_netsniff_index_writes_it_but_for_its_names_of_captures() {
    let folder = Folder::new("indexed-one");
    let capture = folder.path("one.pcapng");
    let indexed = record(&capture, Rotation::default(), 77);
    assert_eq!((indexed.files, indexed.failure), (1, None));
    let index = folder.path("one.pcapng.nsi");
    let recorded = fs::read(&index).unwrap();
    let run = netsniff(&["index", "-q", capture.to_str().unwrap()]);
    assert!(run.status.success(), "{}", said(&run));
    let again = fs::read(&index).unwrap();
    // Magic and identity, two words that differ, and a hash at the end.
    let (head, words, end) = (32, 48, again.len() - 8);
    assert!(recorded[..head] == again[..head] && recorded[words..end] == again[words..end]);
    assert!(recorded[head..words] != again[head..words]);
}

#[test]
fn indexes_go_with_their_files() {
    const PACKETS: usize = 300;
    let folder = Folder::new("indexed-ring");
    let rotation =
        Rotation { packets: Some(PACKETS as u64), files: Some(3), ..Rotation::default() };
    // A file has its index once the next one was read, which is before it is removed if the recorder waits for it.
    let wait_for = |number: usize, suffix: &str| {
        let begin = format!("ring_{number:05}_");
        let is_it = |file: &PathBuf| {
            let name = file.file_name().unwrap().to_str().unwrap();
            name.starts_with(&begin) && name.ends_with(suffix)
        };
        let end = Instant::now() + PATIENCE;
        while !folder.files().iter().any(is_it) {
            assert!(Instant::now() < end, "no {begin}*{suffix} in {:?}", folder.files());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let indexed = record_with(&folder.path("ring.pcapng"), rotation, 77, |given| {
        let ended = given.saturating_sub(1) / PACKETS;
        wait_for(ended + 1, ".pcapng");
        if ended > 1 {
            wait_for(ended - 1, ".nsi");
        }
    });
    let (captures, indexes) = (with_suffix(&folder, ".pcapng"), with_suffix(&folder, ".nsi"));
    assert_eq!((captures.len(), indexed.failure.as_deref()), (3, None));
    assert!(indexed.files > 3, "{indexed:?}");
    let names: Vec<_> = indexes.iter().map(|index| index.with_extension("")).collect();
    assert_eq!(names, captures);
    assert_eq!(folder.files().len(), captures.len() + indexes.len(), "{:?}", folder.files());
}
