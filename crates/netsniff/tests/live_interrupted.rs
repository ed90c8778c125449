//! Every command of the lab that makes a testbed, interrupted or killed in the middle: nothing of it stays. Needs root; says
//! so where it is missing.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use netsniff_lab::paper::Scale;
use netsniff_lab::search::HighestRate;
use netsniff_lab::testbed::Layout;

mod lab_bed;
mod lab_certificate;

use lab_bed::{BOUNDS, GROUPS, SHARES, alone, has_groups, left, make, signal, until};
use lab_certificate::{Files, MODEST};

const NETSNIFF: &str = env!("CARGO_BIN_EXE_netsniff");

/// Settings of the kernel, among them all that profiles change.
const SYSCTLS: &str = "/proc/sys/net/core";
const BACKLOG: &str = "/proc/sys/net/core/netdev_max_backlog";

/// What of the machine a lab may change.
#[derive(Debug, PartialEq, Eq)]
struct Host {
    interfaces: BTreeSet<String>,
    groups: BTreeSet<String>,
    sysctls: Vec<(String, String)>,
}

impl Host {
    fn now() -> Self {
        let names = |at: &str| {
            let entries = fs::read_dir(at).into_iter().flatten().flatten();
            entries.map(|entry| entry.path().display().to_string()).collect::<BTreeSet<_>>()
        };
        let value = |path: String| Some((path.clone(), fs::read_to_string(path).ok()?));
        Self {
            interfaces: names("/sys/class/net"),
            groups: GROUPS.into_iter().flat_map(names).collect(),
            sysctls: names(SYSCTLS).into_iter().filter_map(value).collect(),
        }
    }
}

/// A process for all time: its number and when it began, and its words.
type Process = (u32, String, String);

/// Parent and start of a process that has not ended (fields 3, 4 and 22 of /proc/PID/stat, proc(5)).
fn stat(pid: u32) -> Option<(u32, String)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let has_ended = ["Z", "X"].contains(fields.first()?);
    (!has_ended).then_some((fields.get(1)?.parse().ok()?, (*fields.get(19)?).to_owned()))
}

/// Whatever a process has started, and what that has.
fn family(pid: u32) -> Vec<Process> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let all: Vec<_> = pids.filter_map(|pid| Some((pid, stat(pid)?))).collect();
    let mut family: Vec<Process> = Vec::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        for (child, (_, start)) in all.iter().filter(|(_, (of, _))| *of == parent) {
            let words = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            family.push((*child, start.clone(), words));
            parents.push(*child);
        }
    }
    family
}

fn is_alive((pid, start, _): &Process) -> bool {
    stat(*pid).is_some_and(|(_, now)| now == *start)
}

/// A lab, which a test that fails does not leave behind.
struct Lab(Child);

impl Drop for Lab {
    fn drop(&mut self) {
        // It has ended, but where a test fails.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How a lab is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// As Ctrl-C does, which reaches all that the terminal has in front.
    Interrupt,
    /// It alone is asked to end.
    Terminate,
    /// It alone is killed.
    Kill,
}

/// A lab, the words of what it runs when it is ended, and how that is.
struct Case<'a> {
    words: Vec<&'a str>,
    running: &'a str,
    ends: &'a [End],
}

/// What all labs take that write files: those of tools, in a directory of ours, or on a slower disk.
struct Places {
    files: Files,
    own: String,
}

impl Places {
    fn make(name: &str) -> Self {
        let files = Files::make(name);
        files.certify(&[(512, HighestRate::Rate(MODEST))], |_| {});
        let own = files.at("own");
        fs::create_dir(&own).unwrap();
        let capture = files.at("c.pcap");
        let words =
            ["generate", "-w", &capture, "--size", "200", "--count", "9000", "--rate", "1k"];
        assert!(Command::new(NETSNIFF).args(words).output().unwrap().status.success());
        // What is measured before a paper's experiments, so that these begin at once.
        let scale = Scale {
            is_short: true,
            frames: Scale::SIZES.map(|size| (size, 20_000.0)).to_vec(),
            trace: 20_000.0,
            trace_size: 300,
            offline: None,
            repeat: None,
        };
        for name in ["paper", "scaled"] {
            fs::create_dir(files.at(name)).unwrap();
        }
        let text = serde_json::to_string(&scale).unwrap();
        fs::write(files.at("paper/scale.json"), text).unwrap();
        Self { files, own }
    }

    /// Starts a lab in a group of processes of its own, as a shell does.
    fn start(&self, words: &[&str]) -> Lab {
        use std::os::unix::process::CommandExt as _;
        let mut command = Command::new(NETSNIFF);
        command.arg("lab").args(words).current_dir(&self.files.0).process_group(0);
        Lab(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
    }
}

/// What the words of a lab ask for and is not there while it runs.
fn missing(words: &[&str], pid: u32, own: &Path) -> Option<&'static str> {
    let has = |word: &str| words.contains(&word);
    let name = format!("nslab-{pid}-");
    let entries = |at: &Path| {
        fs::read_dir(at).into_iter().flatten().flatten().map(|it| it.path()).collect::<Vec<_>>()
    };
    let ours = |at: &Path| {
        let is_ours =
            |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&name);
        entries(at).into_iter().find(is_ours)
    };
    let is_restricted = || {
        let group = GROUPS.iter().find_map(|at| ours(Path::new(at)));
        let tasks = group.map(|at| fs::read_to_string(at.join("cgroup.procs")).unwrap());
        tasks.is_some_and(|tasks| !tasks.is_empty())
    };
    let has_pipe = || {
        use std::os::unix::fs::FileTypeExt as _;
        let files = ours(Path::new("/dev/shm")).map(|at| entries(&at.join("run")));
        let kinds = files.into_iter().flatten().filter_map(|path| path.symlink_metadata().ok());
        kinds.into_iter().any(|it| it.file_type().is_fifo())
    };
    let is_behind_tap = || family(pid).iter().any(|(.., line)| line.contains("mon0"));
    let is_changed = || fs::read_to_string(BACKLOG).unwrap() == "64000\n";
    let all = [
        (has("profile=skopko64") && !is_changed(), "a setting of the kernel"),
        (has("--quota") && !is_restricted(), "a group that has the tool"),
        (has("--files") && ours(own).is_none(), "a directory of files"),
        (has("disk=20M") && !has_pipe(), "a planted disk"),
        ((has("loss-at=1%") || has("damage")) && !is_behind_tap(), "a tap"),
    ];
    all.into_iter().find_map(|(is_missing, what)| is_missing.then_some(what))
}

/// What a lab that has ended said of errors.
fn errors(lab: &mut Lab) -> String {
    let mut said = String::new();
    lab.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    said
}

/// Ends a lab in the middle, and looks for what stays.
fn end(places: &Places, case: &Case<'_>, how: End, before: &Host) {
    let mut lab = places.start(&case.words);
    let pid = lab.0.id();
    let of = format!("{:?} by {how:?}", case.words);
    until(&format!("{of} runs {}", case.running), || {
        family(pid).iter().any(|(.., line)| line.contains(case.running))
            || lab.0.try_wait().unwrap().is_some()
    });
    let family = family(pid);
    assert!(!family.is_empty(), "{of} ended by itself: {}", errors(&mut lab));
    let own = Path::new(&places.own);
    until(&format!("{of} has all that it asks for"), || missing(&case.words, pid, own).is_none());
    match how {
        // All of its group.
        End::Interrupt => {
            let group = format!("-{pid}");
            let sent = Command::new("kill").args(["-INT", "--", &group]).status().unwrap();
            assert!(sent.success());
        }
        End::Terminate => signal("-TERM", pid),
        End::Kill => signal("-KILL", pid),
    }
    until(&format!("{of} ends"), || lab.0.try_wait().unwrap().is_some());
    let expected = if how == End::Kill { None } else { Some(1) };
    let code = lab.0.wait().unwrap().code();
    assert_eq!(code, expected, "{of}: {}", errors(&mut lab));
    until(&format!("nothing is left of {of}"), || left(pid).is_empty());
    // The one who removes it all ends a moment later.
    until(&format!("all of {family:?} of {of} have ended"), || !family.iter().any(is_alive));
    assert_eq!(Host::now(), *before, "{of}");
    assert_eq!(fs::read_dir(&places.own).unwrap().count(), 0, "{of} left files");
}

#[test]
fn nothing_stays_of_any_lab_that_is_ended() {
    let _alone = alone();
    let test = "nothing_stays_of_any_lab_that_is_ended";
    if make(test, &Layout::default()).is_none() {
        return;
    }
    let places = Places::make("interrupted");
    let before = Host::now();
    let quota = if has_groups(SHARES) { &["--quota", "50"][..] } else { &[] };
    let memory = if has_groups(BOUNDS) { &["--host", "memory=4G"][..] } else { &[] };
    let profile = &["--host", "profile=skopko64"][..];
    let own = &["--files", &places.own][..];
    let slow = &["--host", "loss-at=1%", "--host", "disk=20M"][..];
    let (record, both) = (" record -i ", &[End::Interrupt, End::Kill][..]);
    let cases = [
        Case {
            words: [&["lossless", "--tools", "record", "--sizes", "512"][..], quota, profile, own]
                .concat(),
            running: record,
            ends: &[End::Interrupt, End::Terminate],
        },
        Case {
            words: [
                &["sweep", "--tools", "record", "--sizes", "128", "--rates", "2k"][..],
                &["--time", "5m"],
                quota,
                memory,
                profile,
                slow,
            ]
            .concat(),
            running: record,
            ends: &[End::Interrupt, End::Terminate, End::Kill],
        },
        Case {
            words: [&["predict", "-o", "predict", "--size", "512", "--rate", "9k"][..], profile]
                .concat(),
            running: " lab work -i ",
            ends: both,
        },
        // What it is scaled by is measured, and a trace is made for that.
        Case {
            words: vec!["paper", "s0", "--short", "-o", "scaled", "--resume"],
            running: " generate hosts ",
            ends: both,
        },
        Case {
            words: vec!["paper", "s3", "--short", "-o", "paper", "--resume"],
            running: " -i rx0 ",
            ends: both,
        },
        Case {
            words: vec!["damage", "--replay", "c.pcap", "--loss", "1", "--rate", "100"],
            running: record,
            ends: both,
        },
        Case {
            words: [&["certify", "--key", "key.pem", "-o", "made"][..], quota].concat(),
            running: record,
            ends: &[End::Interrupt],
        },
        Case {
            words: [&["certify", "--verify", "certificate.json", "--check", "5m"][..], quota]
                .concat(),
            running: record,
            ends: both,
        },
    ];
    for case in &cases {
        for how in case.ends {
            end(&places, case, *how, &before);
        }
    }
}

/// Where the one who removes it is killed first, the next bed does.
#[test]
fn the_next_lab_removes_what_nobody_removed() {
    let _alone = alone();
    let test = "the_next_lab_removes_what_nobody_removed";
    if make(test, &Layout::default()).is_none() {
        return;
    }
    let (places, before) = (Places::make("orphaned"), Host::now());
    let words = ["lossless", "--tools", "record", "--sizes", "512", "--host", "profile=skopko64"];
    let mut lab = places.start(&[&words[..], &["--files", &places.own]].concat());
    let pid = lab.0.id();
    until("it captures", || left(pid).iter().any(|line| line.contains(" record ")));
    let warden = family(pid).into_iter().find(|(.., line)| line.contains(" lab warden "));
    signal("-KILL", warden.unwrap().0);
    signal("-KILL", pid);
    lab.0.wait().unwrap();
    assert!(!left(pid).is_empty(), "nobody was there to remove it");
    assert_ne!(Host::now(), before);
    drop(make(test, &Layout::default()));
    assert_eq!((left(pid), Host::now()), (vec![], before));
    assert_eq!(fs::read_dir(&places.own).unwrap().count(), 0);
}
