//! Recordings with an index beside each file: by it the same is extracted as without.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use netsniff::commands::extract::naming_choices;
use netsniff_analysis::{Limits, Options as Analysis};
use netsniff_packet::{Batch, LinkType, Progress, Source as _};
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

/// Records a capture of the fixtures with indexes, and waits for them.
fn record(output: &Path, rotation: Rotation, seed: u64) -> Indexed {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/office.pcapng");
    let mut reader = Reader::new(File::open(fixture).unwrap()).unwrap();
    let interfaces = vec![Interface::new(LinkType::ETHERNET, 0)];
    let index = Some(naming());
    let options = Options { rotation, index, seed, ..Options::new(output.to_owned(), interfaces) };
    let (mut batch, mut recorder) = (Batch::default(), None);
    loop {
        let progress = reader.read_batch(&mut batch).unwrap();
        batch.packets.iter_mut().for_each(|packet| packet.interface = 0);
        batch.losses.clear();
        if let Some(first) = batch.packets.first() {
            let begin = first.timestamp;
            recorder.get_or_insert_with(|| Recorder::start(&options, begin).unwrap()).batch(&batch);
        }
        if progress == Progress::End {
            break;
        }
    }
    let finished = recorder.unwrap().finish(PATIENCE);
    assert_eq!((finished.state, finished.statistics.refused.packets), (State::Recording, 0));
    finished.indexing.unwrap().wait()
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
    // A part of a recording serves as well, with the names of the whole; files of two recordings do not.
    let uid = rows.last().unwrap()["uid"].as_str();
    let (_, told, _) = extract(&outer, &all[1..], &["--uid", uid]);
    assert!(!told.contains("all of it is read"), "{told}");
    let other = outer.path("other.pcapng");
    record(&other, Rotation::default(), 78);
    let (_, told, _) = extract(&outer, &[all[0], other.to_str().unwrap()], &["--uid", uid]);
    assert!(told.contains("was made of other captures together"), "{told}");
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
    let folder = Folder::new("indexed-ring");
    let rotation = Rotation { packets: Some(300), files: Some(2), ..Rotation::default() };
    record(&folder.path("ring.pcapng"), rotation, 77);
    let (captures, indexes) = (with_suffix(&folder, ".pcapng"), with_suffix(&folder, ".nsi"));
    assert_eq!(captures.len(), 2);
    let is_of_one = |index: &PathBuf| captures.contains(&index.with_extension(""));
    assert!(indexes.iter().all(is_of_one), "{indexes:?}");
    assert_eq!(folder.files().len(), captures.len() + indexes.len(), "{:?}", folder.files());
}
