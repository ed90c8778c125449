//! Disks of `netsniff lab`: what is lost before planted ones is what arithmetic says, and nothing stays on those of users.
//! Needs root; says so where it is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use netsniff_lab::disk::{PIPE, Stream};
use netsniff_lab::load::{FCS_LEN, Load};
use netsniff_lab::testbed::{Layout, Testbed};
use netsniff_lab::tools::{Setting, Tool};
use netsniff_lab::trial::{self, Fault, Trial};

mod lab_bed;

use lab_bed::{alone, assert_swept, make};
use netsniff_testing::{Need, skip};

const NETSNIFF: &str = env!("CARGO_BIN_EXE_netsniff");

/// Frames a second, and the bytes of each.
const RATE: f64 = 20_000.0;
const SIZE: u32 = 512;

/// Bytes of a packet in a pcap file, with its header.
const STORED: f64 = (SIZE - FCS_LEN + 16) as f64;

fn setting(name: &str, value: &str) -> Setting {
    Setting { name: name.into(), value: value.into() }
}

fn load(seconds: u64) -> Load {
    let time = Duration::from_secs(seconds);
    Load { size: SIZE, rate: Some(RATE), time, ..Load::default() }
}

fn tool(name: &str) -> Tool {
    Tool::all().into_iter().find(|tool| tool.name == name).unwrap()
}

fn bed(test: &str, host: &[(&str, &str)]) -> Option<Testbed> {
    let host: Vec<_> = host.iter().map(|(name, value)| setting(name, value)).collect();
    make(test, &Layout::default().with(&host).unwrap())
}

fn run(bed: &Testbed, tool: &Tool, load: &Load) -> Trial {
    trial::run(bed, Path::new(NETSNIFF), tool, load).unwrap()
}

/// The first run that proves something, of ten.
fn valid(bed: &Testbed, tool: &Tool, load: &Load) -> Option<Trial> {
    (0..10).map(|_| run(bed, tool, load)).find(Trial::is_valid)
}

/// Every tool that is here writes to a planted disk, and has all its packets there.
#[test]
fn every_tool_writes_to_a_planted_disk() {
    let _alone = alone();
    let test = "every_tool_writes_to_a_planted_disk";
    let Some(bed) = bed(test, &[("disk", "50M"), ("disk-stall", "50ms/500ms")]) else { return };
    let mine = format!("mine={NETSNIFF} record -i IFACE -w FILE --format pcapng");
    let tools = Tool::all().into_iter().chain([Tool::of_command(&mine).unwrap()]);
    for tool in tools {
        if !tool.is_here() {
            skip(Need::Program(&tool.name), format_args!("{test}: {} is not installed", tool.name));
            continue;
        }
        if Layout::default().with(&[setting("disk", "50M")]).unwrap().suits(&tool).is_err() {
            assert!(trial::run(&bed, Path::new(NETSNIFF), &tool, &load(1)).is_err());
            continue;
        }
        let mut trial = run(&bed, &tool, &load(1));
        if !trial.is_lossless() {
            // Others that have the processors for a while may be why, but not twice.
            eprintln!("lost once: {trial:?}");
            trial = run(&bed, &tool, &load(1));
        }
        let allowed = |fault: &Fault| matches!(fault, Fault::Slips | Fault::Rate);
        assert!(trial.faults.iter().all(allowed), "{trial:?}");
        assert!(trial.is_lossless() && trial.ended, "{trial:?}");
        let written = trial.written.unwrap();
        assert_eq!(written.packets, Some(trial.sent), "{trial:?}");
        assert!(written.bytes >= trial.sent * STORED as u64, "{trial:?}");
        let order = trial.counted.order;
        assert!(written.order.is_some() && order.is_some(), "{trial:?}");
        // Netsniff tells the order of its rings, and others have that of what the disk got.
        assert!(tool.program.is_none() || order == written.order, "{trial:?}");
    }
}

/// Packets that the ring of a tool has room for, but for half a block, since one is read while the disk stalls.
fn ring(tool: &Tool, block: u64) -> f64 {
    Load::share_of_ring(load(1).size, tool.ring.unwrap() - block / 2, 1)
}

/// A tool before a disk: what it loses, and what arithmetic says, where its queues have room for so many packets beside
/// the pipe. A machine that others share may slow one run down unseen: where that one is off, the next two are not.
fn compare(
    test: &str,
    host: &[(&str, &str)],
    tool: &Tool,
    seconds: u64,
    queues: f64,
) -> Option<[f64; 2]> {
    let bed = bed(test, host)?;
    let settings: Vec<_> = host.iter().map(|(name, value)| setting(name, value)).collect();
    let disk = Layout::default().with(&settings).unwrap().disk.unwrap();
    let room = queues + PIPE as f64 / STORED;
    let measure = || {
        let Some(trial) = valid(&bed, tool, &load(seconds)) else {
            skip(
                Need::Quiet,
                format_args!("{test}: this machine is too busy, no run proves anything"),
            );
            return None;
        };
        let time = Duration::from_secs_f64(trial.sent as f64 / RATE);
        let expected = disk.loses(&Stream { packets: RATE, bytes: STORED, room, time });
        let counted = trial.counted.captured.unwrap() + trial.counted.dropped.unwrap();
        assert_eq!(counted + trial.backlog_dropped, trial.sent, "every packet is known: {trial:?}");
        let lost = trial.loss().unwrap();
        let is_as_expected =
            (lost - expected).abs() < 0.03 && (expected > 0.0 || trial.is_lossless());
        Some((is_as_expected, [lost, expected], trial))
    };
    let (is_as_expected, said, trial) = measure()?;
    if is_as_expected {
        return Some(said);
    }
    eprintln!("{said:?} lost and expected, once: {trial:?}");
    let mut last = None;
    for _ in 0..2 {
        let (is_as_expected, said, trial) = measure()?;
        let [lost, expected] = said;
        assert!(is_as_expected, "{lost} was lost, {expected} expected: {trial:?}");
        last = Some(said);
    }
    last
}

/// libpcap's block of a ring: the longest packet that it takes.
const BLOCK: u64 = 256 << 10;

/// A ring holds what comes while the disk stalls, or loses what it has no room for; of a disk that is too slow it is only
/// the begin that a ring changes.
#[test]
fn tools_lose_before_a_planted_disk_what_arithmetic_says() {
    let _alone = alone();
    let test = "tools_lose_before_a_planted_disk_what_arithmetic_says";
    for name in ["tcpdump-default", "dumpcap-default"] {
        let tool = tool(name);
        if !tool.is_here() {
            skip(Need::Program(name), format_args!("{test}: {name} is not installed"));
            continue;
        }
        let small = ring(&tool, BLOCK);
        let large = tool.with(&[setting("ring", "32M")]).unwrap();
        for (tool, host, seconds, room, is_lossless) in [
            (&tool, ("disk-stall", "100ms/1s"), 2, small, true),
            (&tool, ("disk-stall", "500ms/2s"), 4, small, false),
            (&large, ("disk-stall", "500ms/2s"), 4, ring(&large, BLOCK), true),
            (&tool, ("disk", "5M"), 3, small, false),
        ] {
            let Some([_, expected]) = compare(test, &[host], tool, seconds, room) else { return };
            assert_eq!(expected == 0.0, is_lossless, "{host:?}");
        }
    }
}

/// The recorder has buffers of its own behind its ring, of which it leaves a fifth free; what it refuses then is lost as what
/// the ring drops is.
#[test]
fn record_loses_before_a_planted_disk_what_arithmetic_says() {
    let _alone = alone();
    let test = "record_loses_before_a_planted_disk_what_arithmetic_says";
    let record = tool("record");
    // A fifth of the ring is six blocks, of 11 ms each: shorter pauses of this machine lose nothing. A few of them are
    // closed by the kernel's clock, and less full.
    let options = [("ring", "4M"), ("block", "128K"), ("write-buffer", "4M")];
    let small = record.with(&options.map(|(name, value)| setting(name, value))).unwrap();
    // One buffer is on its way through the pipe, as long as not all of it is.
    let buffers = |bytes: u64| (bytes - (256 << 10)) as f64 / STORED;
    let (few, many) = (buffers(4 << 20) + 0.8 * ring(&small, BLOCK / 2), buffers(32 << 20));
    let mut long = Vec::new();
    for (tool, host, seconds, room, is_lossless) in [
        (&small, ("disk-stall", "350ms/1s"), 2, few, true),
        (&small, ("disk-stall", "900ms/2s"), 4, few, false),
        (&record, ("disk-stall", "1s/2s"), 4, many, true),
        (&small, ("disk", "5M"), 2, few, false),
        (&small, ("disk", "5M"), 8, few, false),
    ] {
        let Some([lost, expected]) = compare(test, &[host], tool, seconds, room) else { return };
        assert_eq!(expected == 0.0, is_lossless, "{host:?}");
        long.push(lost);
    }
    let limit = 1.0 - f64::from(5 << 20) / (RATE * STORED);
    assert!(long[3] < long[4] && long[4] < limit, "the limit of {limit} is neared: {long:?}");
}

fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("netsniff-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).unwrap();
    fs::canonicalize(path).unwrap()
}

fn entries(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().count()
}

/// Tools write where they are told to, and reports say what that is on.
#[test]
fn files_are_in_a_directory_of_the_users() {
    let _alone = alone();
    let (files, output) = (directory("files"), directory("report"));
    let layout = Layout { files: Some(files.clone()), ..Layout::default() };
    let Some(bed) = make("files_are_in_a_directory_of_the_users", &layout) else { return };
    for tool in ["record", "analyze", "tcpdump"].map(tool).into_iter().filter(Tool::is_here) {
        let mut seen = Vec::new();
        let mut look = |file: &Path| {
            seen = fs::read_dir(file.parent().unwrap()).unwrap().flatten().collect();
            assert!(file.starts_with(&files), "{}", file.display());
            Ok(())
        };
        let netsniff = Path::new(NETSNIFF);
        let trial = trial::run_and(&bed, netsniff, &tool, &load(1), &mut look).unwrap();
        assert!(trial.is_lossless() && trial.written.is_none(), "{trial:?}");
        let names: Vec<_> = seen.iter().map(fs::DirEntry::file_name).collect();
        assert_eq!(names, [if tool.name == "analyze" { "logs" } else { "out.pcap" }]);
        let made = fs::read_dir(&files).unwrap().next().unwrap().unwrap();
        assert_eq!(entries(&made.path()), 0, "each run removes its own");
    }
    drop(bed);
    assert_eq!(entries(&files), 0);
    let report = output.join("sweep");
    let mut command = Command::new(NETSNIFF);
    command.args(["lab", "sweep", "--tools", "record", "--rates", "2k", "--sizes", "128"]);
    command.args(["--time", "300ms", "--repeat", "1", "-o"]).arg(&report).arg("--files");
    let out = command.arg(&files).output().unwrap();
    assert_swept(out.status.code(), &String::from_utf8_lossy(&out.stderr));
    let head = fs::read(report.join("sweep.json")).unwrap();
    let head: serde_json::Value = serde_json::from_slice(&head).unwrap();
    let storage = &head["machine"]["files"];
    assert_eq!(head["testbed"]["files"], storage["directory"]);
    assert!(storage["file_system"].is_string() && storage["device"].is_string(), "{storage}");
    assert!(storage["bytes_per_second"].as_f64().unwrap() > 1000.0, "{storage}");
    assert!(fs::read_to_string(report.join("sweep.html")).unwrap().contains("MB a second"));
    assert_eq!(entries(&files), 0);
    fs::remove_dir(files).unwrap();
    fs::remove_dir_all(output).unwrap();
}

/// Not even where the lab is killed while a tool writes.
#[test]
fn nothing_stays_in_a_directory_of_the_users() {
    let _alone = alone();
    let test = "nothing_stays_in_a_directory_of_the_users";
    if bed(test, &[]).is_none() {
        return;
    }
    let files = directory("killed");
    let until = |what: &str, holds: &dyn Fn() -> bool| {
        let end = Instant::now() + Duration::from_secs(30);
        while !holds() {
            assert!(Instant::now() < end, "it does not come to that: {what}");
            thread::sleep(Duration::from_millis(50));
        }
    };
    for name in ["-INT", "-KILL"] {
        let mut command = Command::new(NETSNIFF);
        command.args(["lab", "lossless", "--sizes", "512", "--tools", "record", "--files"]);
        let mut lab =
            command.arg(&files).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let writes = |at: fs::DirEntry| at.path().join("run/out.pcap").exists();
        until("a tool writes", &|| fs::read_dir(&files).unwrap().flatten().any(writes));
        let sent = Command::new("kill").args([name, &lab.id().to_string()]).status().unwrap();
        assert!(sent.success());
        lab.wait().unwrap();
        until(&format!("nothing stays after {name}"), &|| entries(&files) == 0);
    }
    fs::remove_dir(files).unwrap();
}
