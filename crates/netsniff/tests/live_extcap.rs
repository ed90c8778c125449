//! `netsniff extcap`: live captures for Wireshark, on a veth pair of this machine. Needs root; says so where it is
//! missing.

mod live_bed;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use live_bed::{Bed, Sent};
use netsniff_packet::{Batch, Progress, Source as _};
use netsniff_pcapfile::Reader;
use netsniff_testing::has_program;

const NETSNIFF: &str = env!("CARGO_BIN_EXE_netsniff");
/// No run takes longer, whatever goes wrong.
const LIMIT: Duration = Duration::from_secs(20);

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("netsniff-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A program at the receiver's end.
fn at_receiver(bed: &Bed, program: &str, words: &[&str]) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &bed.receiver(), program]).args(words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits for the end, while `meanwhile` happens again and again.
fn ended(mut child: Child, mut meanwhile: impl FnMut()) -> Output {
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > LIMIT {
            let _ = child.kill();
            panic!("it does not end: {:?}", child.wait_with_output());
        }
        meanwhile();
        thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

/// The lengths of the packets of a capture, and what its interface counted as received.
fn packets(capture: &Path) -> (Vec<u32>, Option<u64>, Option<String>) {
    let mut reader = Reader::new(File::open(capture).unwrap()).unwrap();
    let (mut batch, mut lengths) = (Batch::default(), Vec::new());
    while {
        let progress = reader.read_batch(&mut batch).unwrap();
        lengths.extend(batch.iter().map(|packet| packet.wire_len));
        progress == Progress::More
    } {}
    let interface = &reader.interfaces()[0];
    (lengths, interface.counters.received, interface.name.clone())
}

#[test]
fn tshark_captures_with_netsniff_and_leaves_no_process() {
    if !has_program("tshark", "nobody captured by extcap") {
        return;
    }
    let Some(bed) = Bed::up("extcap") else { return };
    let folder = Folder::new("extcap-tshark");
    let programs = folder.0.join("wireshark/extcap");
    let install = Command::new(NETSNIFF)
        .args(["extcap", "--install", "--dir"])
        .arg(&programs)
        .stdout(Stdio::null())
        .status();
    assert!(install.unwrap().success());
    let written = folder.0.join("out.pcapng");
    let words = ["-Q", "-i", "netsniff-live-rx0", "-f", "greater 100", "-c", "200", "-w"];
    let child = at_receiver(&bed, "tshark", &[&words[..], &[written.to_str().unwrap()]].concat())
        .env("XDG_CONFIG_HOME", &folder.0)
        .spawn()
        .unwrap();
    let run = ended(child, || {
        bed.send(&Sent { count: 20, size: 300, rate: 2000 });
        bed.send(&Sent { count: 20, size: 80, rate: 2000 });
    });
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    let (lengths, _, name) = packets(&written);
    // The frame check sequence is not captured.
    assert!(lengths.len() >= 200 && lengths.iter().all(|len| *len == 296), "{lengths:?} {said}");
    assert_eq!(name.as_deref(), Some("rx0"), "the interface that netsniff names");
    let begin = Instant::now();
    let pids = || Command::new("ip").args(["netns", "pids", &bed.receiver()]).output().unwrap();
    while !pids().stdout.is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(5), "a process is left: {:?}", pids());
        thread::sleep(Duration::from_millis(50));
    }
}

/// What Wireshark does: it makes the pipe, starts the program and reads.
fn captured(bed: &Bed, fifo: &Path) -> (Child, File) {
    assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
    let words = ["--capture", "--extcap-interface=netsniff-live-rx0", "--fifo"];
    let child = at_receiver(bed, NETSNIFF, &[&words[..], &[fifo.to_str().unwrap()]].concat());
    let child = { child }.spawn().unwrap();
    (child, File::open(fifo).unwrap())
}

#[test]
fn a_signal_ends_a_capture_with_what_the_interface_counted() {
    let Some(bed) = Bed::up("extsig") else { return };
    let folder = Folder::new("extcap-signal");
    let (child, mut pipe) = captured(&bed, &folder.0.join("fifo"));
    let written = folder.0.join("out.pcapng");
    let copy = thread::spawn({
        let mut to = File::create(&written).unwrap();
        move || std::io::copy(&mut pipe, &mut to)
    });
    let begin = Instant::now();
    while fs::metadata(&written).unwrap().len() == 0 {
        assert!(begin.elapsed() < LIMIT, "no header comes");
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(Duration::from_millis(300));
    bed.send(&Sent { count: 500, size: 200, rate: 5000 });
    thread::sleep(Duration::from_millis(500));
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let run = ended(child, || {});
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    copy.join().unwrap().unwrap();
    let (lengths, received, _) = packets(&written);
    assert_eq!((lengths.len(), received), (500, Some(500)));
}

/// No packet comes by which a write would tell it.
#[test]
fn a_capture_ends_where_nobody_reads_it_any_more() {
    let Some(bed) = Bed::up("extidle") else { return };
    let folder = Folder::new("extcap-idle");
    let (child, pipe) = captured(&bed, &folder.0.join("fifo"));
    thread::sleep(Duration::from_millis(500));
    drop(pipe);
    let begin = Instant::now();
    let run = ended(child, || {});
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && said.contains("has enough"), "{said}");
    assert!(begin.elapsed() < Duration::from_secs(3), "it took {:?}", begin.elapsed());
}
