//! What tests of the lab have in common.
#![allow(dead_code, reason = "no test needs all of it")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use netsniff_lab::load::Load;
use netsniff_lab::testbed::{Layout, Testbed};
use netsniff_lab::tools::Tool;
use netsniff_lab::trial::{self, Trial};
use netsniff_testing::{Need, skip};

/// There is one testbed at a time on a machine.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where control groups are.
pub(crate) const GROUPS: [&str; 3] =
    ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/memory"];

/// Whether there are control groups that have this file, which those of the first version have, or any of the second.
pub(crate) fn has_groups(file: &str) -> bool {
    let has = |file: &&str| GROUPS.iter().any(|at| Path::new(at).join(file).exists());
    [file, "cgroup.controllers"].iter().any(has)
}

/// What groups have that share processors out, and those that bound memory.
pub(crate) const SHARES: &str = "cpu.cfs_quota_us";
pub(crate) const BOUNDS: &str = "memory.limit_in_bytes";

/// Whether this machine has what a testbed needs: the right to make namespaces, and two processors. A test that is skipped
/// where it has proves nothing.
pub(crate) fn is_able() -> bool {
    let name = format!("netsniff-probe-{}", std::process::id());
    let ip = |what| Command::new("ip").args(["netns", what, &name]).output();
    let is_made = ip("add").is_ok_and(|out| out.status.success());
    // Where it was not made it cannot be removed, either.
    let _ = ip("del");
    is_made && thread::available_parallelism().is_ok_and(|processors| processors.get() > 1)
}

/// A sweep that ran as it should: on a busy machine the code tells of points that no run proves, and the words why.
#[track_caller]
pub(crate) fn assert_swept(code: Option<i32>, errors: &str) {
    let is_busy = errors.contains("held up") || errors.contains("too slow");
    assert!(code == Some(0) || (code == Some(1) && is_busy), "{errors}");
}

/// A testbed; `None`, said loudly, where this machine can have none.
pub(crate) fn make(test: &str, layout: &Layout) -> Option<Testbed> {
    let warden = [env!("CARGO_BIN_EXE_netsniff"), "lab", "warden"].map(str::to_owned);
    match Testbed::make(&warden, layout) {
        Ok(bed) => Some(bed),
        Err(why) => {
            assert!(!is_able(), "a namespace can be made here: {why:#}");
            let alone = thread::available_parallelism().is_ok_and(|it| it.get() < 2);
            let need = if alone { Need::Processors } else { Need::Root };
            skip(need, format_args!("{test} needs a testbed, which cannot be made here: {why:#}"));
            None
        }
    }
}

/// What is there of a lab with this number: namespaces, processes, files.
pub(crate) fn left(pid: u32) -> Vec<String> {
    let name = format!("nslab-{pid}-");
    let mut left = Vec::new();
    for directory in ["/run/netns", "/dev/shm"].into_iter().chain(GROUPS) {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        left.extend(names.filter(|file| file.starts_with(&name)));
    }
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        left.extend(line.contains(&name).then_some(line));
    }
    left
}

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "it does not come to that: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

pub(crate) fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

/// A second of slow frames of a size.
pub(crate) fn load(size: u32) -> Load {
    Load { size, rate: Some(5000.0), time: Duration::from_secs(1), ..Load::default() }
}

/// The first run that proves something, of ten.
pub(crate) fn valid(bed: &Testbed, tool: &Tool, load: &Load) -> Option<Trial> {
    let netsniff = Path::new(env!("CARGO_BIN_EXE_netsniff"));
    (0..10).map(|_| trial::run(bed, netsniff, tool, load).unwrap()).find(Trial::is_valid)
}
