//! A recorder that is killed at any moment leaves files that everybody reads up to the last block.

use std::env;
use std::fs;
use std::io::{Read as _, Write as _, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use netsniff_pipeline::recording::Recorder;
use netsniff_pipeline::recording::books::State;
use netsniff_pipeline::recording::naming::{CaptureFormat, packing_of_name};
use netsniff_pipeline::recording::options::Options;
use netsniff_pipeline::recording::rotation::Rotation;
use netsniff_testing::has_program;

use crate::generated::{Folder, bytes, options, packet, read, run, start};

/// Tells the process that it is the recorder, and where to record.
const RECORD_TO: &str = "NETSNIFF_TEST_RECORD_TO";
/// Packets after which a recorder that nobody kills ends by itself.
const MOST_PACKETS: u64 = 3_000_000;
/// How often a recorder is killed.
const KILLS: usize = 50;

/// Starts this test again in a process of its own, as the recorder.
fn child(test: &str, output: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args([
            &format!("recording_killed::{test}"),
            "--exact",
            "--nocapture",
            "--quiet",
            "--test-threads",
            "1",
        ])
        .env(RECORD_TO, output)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Records without end, and prints again and again how many packets are written.
fn record(output: PathBuf) {
    let format = CaptureFormat::of_name(&output).unwrap();
    let packing = packing_of_name(&output);
    let rotation = Rotation { packets: Some(20_000), ..Rotation::default() };
    // More than may be queued, written and filled at a time, so that none is refused.
    let options = Options { format, packing, rotation, buffers: 16, ..options(output) };
    let mut recorder = Recorder::start(&options, start()).unwrap();
    for number in 0..MOST_PACKETS {
        recorder.packet(&packet(number, &bytes(number)));
        while recorder.statistics().queued > 2 {
            thread::yield_now();
        }
        if number % 100 == 99 {
            recorder.flush();
            let said = format!("recorded {}\n", recorder.statistics().recorded.packets);
            stdout().write_all(said.as_bytes()).unwrap();
        }
    }
}

/// The last number that the recorder said, if it said one whole.
fn promised(said: &str) -> u64 {
    let whole = said.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let last = whole.lines().rev().find_map(|line| line.strip_prefix("recorded "));
    last.map_or(0, |number| number.parse().unwrap())
}

/// A small generator of random numbers (SplitMix64).
fn random(seed: usize) -> u64 {
    let mut value = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Packets that a program of others finds; `None` where it is missing.
fn counted(program: &str, path: &Path) -> Option<u64> {
    let path = path.to_str().unwrap();
    if program == "capinfos" {
        let output = run("capinfos", &["-K", "-Tmrc", path])?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        return said.trim().rsplit_once(',').and_then(|(_, packets)| packets.parse().ok());
    }
    let output = run("tshark", &["-r", path, "-T", "fields", "-e", "frame.number"])?;
    Some(String::from_utf8_lossy(&output.stdout).lines().count() as u64)
}

#[test]
fn a_killed_recorder_leaves_files_that_everybody_reads() {
    if let Some(output) = env::var_os(RECORD_TO) {
        return record(PathBuf::from(output));
    }
    let names = ["a.pcapng", "a.pcap", "a.pcapng.gz", "a.pcapng.zst", "a.pcap.lz4"];
    let (mut broken_off, mut most, mut rotated) = (0, [0; 5], 0);
    for kill in 0..KILLS {
        let folder = Folder::new(&format!("killed-{kill}"));
        let name = names[kill % names.len()];
        let test = "a_killed_recorder_leaves_files_that_everybody_reads";
        let mut recorder = child(test, &folder.path(name));
        thread::sleep(Duration::from_micros(20_000 + random(kill) % 300_000));
        recorder.kill().unwrap();
        let mut said = String::new();
        recorder.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        let status = recorder.wait().unwrap();
        assert!(!status.success(), "the recorder was not killed: it ended before");
        let mut numbers = Vec::new();
        let files = folder.files();
        for (at, path) in files.iter().enumerate() {
            let found = read(path);
            // A file that another one follows has ended as it should.
            assert!(found.damage.is_empty() || at + 1 == files.len(), "{:?}", found.damage);
            assert!(found.damage.len() <= 1, "{:?}", found.damage);
            broken_off += found.damage.len();
            numbers.extend_from_slice(&found.numbers);
            let has_packets = !found.numbers.is_empty();
            if has_packets && at + 1 == files.len() {
                agree(path, found.numbers.len() as u64, kill % 10 < 5);
            }
        }
        let promised = promised(&said);
        let whole = (0..numbers.len() as u64).collect::<Vec<_>>();
        assert!(numbers == whole, "{name}: packets are missing between others");
        assert!(numbers.len() as u64 >= promised, "{name}: {promised} were recorded");
        let of_name = &mut most[kill % names.len()];
        *of_name = promised.max(*of_name);
        rotated += usize::from(files.len() > 1);
    }
    eprintln!("{broken_off} broken off, {most:?} packets at most, {rotated} with several files");
    let all_recorded = most.iter().all(|most| *most > 500);
    assert!(all_recorded, "{most:?} packets at most: killed too early, or nothing was flushed");
}

/// Holds our count of packets against those of others.
fn agree(path: &Path, packets: u64, with_tshark: bool) {
    let programs = if with_tshark { &["capinfos", "tshark"][..] } else { &["capinfos"] };
    for program in programs {
        if let Some(theirs) = counted(program, path) {
            assert_eq!(theirs, packets, "{program} on {}", path.display());
        }
    }
}

#[test]
fn a_pipe_into_tshark_shows_every_packet() {
    if let Some(output) = env::var_os(RECORD_TO) {
        let to_stdout = Options { buffers: 64, ..options(PathBuf::from(output)) };
        let mut recorder = Recorder::start(&to_stdout, start()).unwrap();
        for number in 0..1000 {
            recorder.packet(&packet(number, &bytes(number)));
        }
        let finished = recorder.finish(Duration::from_secs(20));
        assert_eq!((finished.state, finished.statistics.refused.packets), (State::Recording, 0));
        // The harness must not add to what was written.
        std::process::exit(0);
    }
    if !has_program("tshark", "nothing was piped into it") {
        return;
    }
    let mut recorder = child("a_pipe_into_tshark_shows_every_packet", Path::new("-"));
    // The harness says a line before the test runs.
    let mut said = Vec::new();
    recorder.stdout.take().unwrap().read_to_end(&mut said).unwrap();
    assert!(recorder.wait().unwrap().success());
    let magic = [0x0a, 0x0d, 0x0d, 0x0a];
    let begin = said.windows(4).position(|window| window == magic).unwrap();
    let mut tshark = Command::new("tshark")
        .args(["-r", "-", "-T", "fields", "-e", "frame.number"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = tshark.stdin.take().unwrap();
    let writing = thread::spawn(move || input.write_all(&said[begin..]).unwrap());
    let mut shown = String::new();
    tshark.stdout.take().unwrap().read_to_string(&mut shown).unwrap();
    writing.join().unwrap();
    assert!(tshark.wait().unwrap().success());
    assert_eq!(shown.lines().count(), 1000);
    drop(fs::metadata("-").map(|_| panic!("a file called - was made")));
}
