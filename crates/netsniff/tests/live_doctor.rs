//! `netsniff doctor` against planted faults: for each, it names the stage. Needs root; says so where it is missing. Alone in its
//! binary, since it changes settings of the whole host for a moment.

mod live_bed;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use live_bed::{Bed, Run, Setting};
use netsniff_testing::{Need, skip};
use serde_json::Value;

const NETSNIFF: &str = env!("CARGO_BIN_EXE_netsniff");

/// Faults are planted one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A bed whose packets are received on another processor than they are sent on; `None`, said loudly, where there can be none.
fn bed(name: &str) -> Option<Bed> {
    let bed = Bed::up(name)?;
    if thread::available_parallelism().map_or(1, usize::from) < 2 {
        skip(
            Need::Processors,
            format_args!("{name}: receiving on another processor needs two of them"),
        );
        return None;
    }
    bed.place("rps1");
    Some(bed)
}

/// Runs the doctor at the receiver's end.
fn doctor(bed: &Bed, arguments: &[&str]) -> Output {
    let inside = ["netns", "exec", &bed.receiver(), NETSNIFF, "doctor"];
    Command::new("ip").args(inside).args(arguments).output().unwrap()
}

/// What it says of the interface while frames come as fast as they can: its report, and whether packets were lost.
fn diagnosis(bed: &Bed, arguments: &[&str]) -> Value {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                bed.send_fast(200_000);
            }
        });
        let all = [&["-i", "rx0", "--time", "2s", "--json"][..], arguments].concat();
        let out = doctor(bed, &all);
        is_over.store(true, Ordering::Relaxed);
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(matches!(out.status.code(), Some(0 | 4)), "{errors}");
        serde_json::from_slice(&out.stdout).unwrap_or_else(|why| panic!("{why}: {errors}"))
    })
}

/// What it found at a stage.
fn found(report: &Value, stage: &str) -> Vec<String> {
    let all = report["findings"].as_array().unwrap().iter();
    let of = all.filter(|finding| finding["stage"] == stage);
    of.map(|finding| finding["text"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn assert_found(report: &Value, stage: &str, words: &str) {
    let said = found(report, stage);
    assert!(
        said.iter().any(|text| text.contains(words)),
        "{stage}: {said:?} of {}, where processors were so busy: {}",
        report["findings"],
        report["busy"]
    );
}

/// A setting of the kernel with a fault in it; `None`, said loudly, where it cannot be set.
fn plant(name: &str, value: &str) -> Option<Setting> {
    let planted = Setting::set(name, value);
    if planted.is_none() {
        skip(Need::Kernel, format_args!("{name} cannot be set here"));
    }
    planted
}

/// A directory for a journal.
struct State(PathBuf);

impl State {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("netsniff-doctor-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn words(&self) -> [&str; 2] {
        ["--state", self.0.to_str().unwrap()]
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The first fault: a backlog that is too short. It is named, repaired, and as it was in the end.
#[test]
fn a_short_backlog_is_found_repaired_and_restored() {
    let _alone = alone();
    let Some(bed) = bed("d-backlog") else { return };
    let Some(planted) = plant("net.core.netdev_max_backlog", "8") else { return };
    let report = diagnosis(&bed, &["--no-packets"]);
    assert_found(&report, "backlog", "packets were lost while it was watched");
    let state = State::new("backlog");
    let is_over = AtomicBool::new(false);
    let applied = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                bed.send_fast(200_000);
            }
        });
        let words = ["-i", "rx0", "--time", "1s", "--no-packets", "--apply", "--only", "backlog"];
        let out = doctor(&bed, &[&words[..], &state.words()].concat());
        is_over.store(true, Ordering::Relaxed);
        out
    });
    let said = String::from_utf8_lossy(&applied.stdout).into_owned();
    assert!(said.contains("changed (8): sysctl -w net.core.netdev_max_backlog='"), "{said}");
    let hint = format!("netsniff doctor --revert --state {} takes it back", state.0.display());
    assert!(said.contains(&hint), "{said}");
    assert!(planted.now().parse::<u64>().unwrap() >= 4000, "{}", planted.now());
    let reverted = doctor(&bed, &[&["--revert"][..], &state.words()].concat());
    let said = String::from_utf8_lossy(&reverted.stdout).into_owned();
    assert!(said.contains("everything is as it was"), "{said}");
    assert_eq!(planted.now(), "8");
}

/// The second: a budget that lets no processor finish its work.
#[test]
fn a_small_budget_is_found() {
    let _alone = alone();
    let Some(bed) = bed("d-budget") else { return };
    let Some(_planted) = plant("net.core.netdev_budget", "1") else { return };
    let report = diagnosis(&bed, &["--no-packets"]);
    assert_found(&report, "napi", "time_squeeze");
}

/// The third: segments are merged behind the driver.
#[test]
fn merged_segments_are_found() {
    let _alone = alone();
    let Some(bed) = bed("d-merging") else { return };
    let merge = ["netns", "exec", &bed.receiver(), "ethtool", "-K", "rx0", "gro", "on"];
    let is_merging = Command::new("ip").args(merge).output().is_ok_and(|out| out.status.success());
    if !is_merging {
        skip(Need::Program("ethtool"), "segments are not merged here");
        return;
    }
    let run = Run::record(&bed, "d-merging", "out.pcap", &[]);
    // Nothing comes, so that a processor has time for segments.
    let out = doctor(&bed, &["-i", "rx0", "--time", "300ms", "--json", "--no-packets"]);
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    drop(run.end());
    assert_found(&report, "offloads", "rx-gro is on");
    let stages = report["stages"].as_array().unwrap();
    let offloads = stages.iter().find(|stage| stage["id"] == "offloads").unwrap();
    let knobs = offloads["knobs"].as_array().unwrap().iter();
    let advised = knobs.filter(|knob| knob["advice"]["value"] == "off").count();
    assert_eq!(advised, 1, "{offloads}");
}

/// The fourth: a ring that holds a moment alone.
#[test]
fn a_small_ring_is_found() {
    let _alone = alone();
    let Some(bed) = bed("d-ring") else { return };
    let run = Run::record(&bed, "d-ring", "out.pcap", &["--ring", "128K", "--block", "64K"]);
    let report = diagnosis(&bed, &["--no-packets"]);
    assert_found(&report, "socket", "has 128 KiB");
    drop(run.end());
}

/// The fifth: a capture whose control group gives it a twentieth of a processor.
#[test]
fn a_small_share_of_a_processor_is_found() {
    let _alone = alone();
    let Some(bed) = bed("d-quota") else { return };
    let run = Run::record(&bed, "d-quota", "out.pcap", &[]);
    let Some(_group) = Group::of(run.pid()) else { return };
    let report = diagnosis(&bed, &["--no-packets"]);
    assert_found(&report, "process", "control group had used up its share");
    drop(run.end());
}

/// The sixth: a capture that may run only where packets are received.
#[test]
fn a_capture_in_the_way_of_receiving_is_found() {
    let _alone = alone();
    let Some(bed) = bed("d-same") else { return };
    let run = Run::record(&bed, "d-same", "out.pcap", &["--cpus", "1"]);
    let report = diagnosis(&bed, &["--no-packets"]);
    assert_found(&report, "process", "may run on processor 1 alone, where receiving takes");
    drop(run.end());
}

/// The seventh: others that want the capture's processor.
#[test]
fn a_busy_neighbour_is_found() {
    let _alone = alone();
    let Some(bed) = bed("d-hog") else { return };
    let run = Run::record(&bed, "d-hog", "out.pcap", &["--cpus", "1"]);
    let hog = || {
        Command::new("taskset")
            .args(["-c", "1", "nice", "-n", "-10", "sh", "-c", "while :; do :; done"])
            .spawn()
    };
    let mut hogs: Vec<_> = (0..2).map(|_| hog().unwrap()).collect();
    let report = diagnosis(&bed, &["--no-packets"]);
    for hog in &mut hogs {
        hog.kill().unwrap();
        hog.wait().unwrap();
    }
    assert_found(&report, "process", "waited for a processor");
    drop(run.end());
}

/// The eighth: one flow, which no queue shares with another one.
#[test]
fn an_elephant_is_found() {
    let _alone = alone();
    let Some(bed) = bed("d-elephant") else { return };
    let inside = ["netns", "exec", &bed.sender(), NETSNIFF, "generate", "-i", "tx0"];
    let load = ["--rate", "20k", "--size", "64", "--duration", "4s"];
    let mut sender = Command::new("ip")
        .args(inside)
        .args(load)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let out = doctor(&bed, &["-i", "rx0", "--time", "2s", "--json"]);
    sender.kill().unwrap();
    sender.wait().unwrap();
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_found(&report, "queues", "of the packets are of one flow, 198.18.0.0:");
}

/// Without a fault nothing loses, and what was saved is diagnosed alike elsewhere.
#[test]
fn a_calm_interface_is_calm_and_saved() {
    let _alone = alone();
    let Some(bed) = bed("d-calm") else { return };
    let state = State::new("calm");
    fs::create_dir_all(&state.0).unwrap();
    let (saved, page) = (state.0.join("saved.json"), state.0.join("page.html"));
    let words = [
        "-i",
        "rx0",
        "--time",
        "500ms",
        "--json",
        "--save",
        saved.to_str().unwrap(),
        "--html",
        page.to_str().unwrap(),
    ];
    let here = doctor(&bed, &words);
    assert_eq!(here.status.code(), Some(0), "{}", String::from_utf8_lossy(&here.stderr));
    let there =
        Command::new(NETSNIFF).args(["doctor", "--json", "--from"]).arg(&saved).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&here.stdout), String::from_utf8_lossy(&there.stdout));
    assert!(fs::read_to_string(&page).unwrap().contains("The way of packets"));
    let report: Value = serde_json::from_slice(&here.stdout).unwrap();
    let losing =
        report["findings"].as_array().unwrap().iter().filter(|it| it["level"] == "losing").count();
    assert_eq!(losing, 0, "{report}");
}

/// An ordinary user gets what may be read, and is told what may not.
#[test]
fn an_ordinary_user_is_told_what_is_missing() {
    let _alone = alone();
    let Some(_bed) = bed("d-user") else { return };
    let out = Command::new("setpriv")
        .args([
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
            NETSNIFF,
            "doctor",
            "-i",
            "lo",
            "--time",
            "200ms",
        ])
        .output();
    let Ok(out) = out else {
        skip(Need::Program("setpriv"), "the doctor is not tried as an ordinary user");
        return;
    };
    let (said, errors) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert_eq!(out.status.code(), Some(0), "{errors}");
    assert!(errors.contains("packets are not looked at: no permission"), "{errors}");
    assert!(said.contains("BACKLOG AND STEERING"), "{said}");
}

/// A control group with a twentieth of a processor, which goes with this value.
struct Group(PathBuf);

impl Group {
    fn of(pid: u32) -> Option<Self> {
        let name = format!("netsniff-doctor-{pid}");
        for (root, file, value) in [
            ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "5000"),
            ("/sys/fs/cgroup", "cpu.max", "5000 100000"),
        ] {
            let path = Path::new(root).join(&name);
            if fs::create_dir(&path).is_err() {
                continue;
            }
            let group = Self(path);
            let is_bound = fs::write(group.0.join(file), value).is_ok();
            if is_bound && fs::write(group.0.join("cgroup.procs"), pid.to_string()).is_ok() {
                return Some(group);
            }
        }
        skip(Need::Kernel, "no control group that bounds a processor's share can be made here");
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Processes must leave before.
        let root = self.0.parent().unwrap().join("cgroup.procs");
        for pid in fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default().lines() {
            let _ = fs::write(&root, pid);
        }
        let _ = fs::remove_dir(&self.0);
    }
}
