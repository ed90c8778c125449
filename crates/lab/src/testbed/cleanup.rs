//! Who removes a bed however its maker ends.

use std::fs;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::pair;
use super::{MARK, MEMORY, scratch};
use crate::host::group;
use crate::host::namespace::ip;
use crate::host::process;
use crate::host::storage;
use crate::host::sysctl;

/// What all names of beds begin with.
pub(super) const PREFIX: &str = "nslab-";

/// Where ip-netns(8) keeps names.
const NAMES: &str = "/run/netns";

/// How long a killed process may take to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// A process that removes a bed, once this is gone; it has removed it after that.
#[derive(Debug)]
pub(super) struct CleanupProcess(Option<(Child, ChildStdin)>);

impl CleanupProcess {
    /// Starts it for the bed of a name.
    pub(super) fn start(words: &[String], name: &str) -> anyhow::Result<Self> {
        use std::os::unix::process::CommandExt as _;
        let (program, arguments) = words.split_first().context("there is no warden")?;
        let mut child = Command::new(program)
            .args(arguments)
            .arg(name)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // Signals of the terminal are not for it.
            .process_group(0)
            .spawn()
            .context("cannot start the process that removes the testbed")?;
        let input = child.stdin.take().context("a pipe was asked for")?;
        Ok(Self(Some((child, input))))
    }
}

impl Drop for CleanupProcess {
    fn drop(&mut self) {
        if let Some((mut child, input)) = self.0.take() {
            drop(input);
            let _ = child.wait();
        }
    }
}

/// Waits until standard input is closed, and then removes the bed of this name.
///
/// # Errors
///
/// Where something of it stays.
pub fn watch(name: &str) -> anyhow::Result<()> {
    ensure!(name.starts_with(PREFIX), "{name} is no testbed");
    // Nothing is ever written to it.
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    remove(name)
}

/// What there is of beds that this user made: names, and their makers.
fn traces() -> impl Iterator<Item = (String, process::Identity)> {
    let places = [NAMES, MEMORY].into_iter().chain(group::places());
    let entries = places.filter_map(|at| fs::read_dir(at).ok()).flatten().flatten();
    entries.filter(|entry| is_ours(&entry.path())).filter_map(|entry| {
        let file = entry.file_name().to_string_lossy().into_owned();
        let name = file.trim_end_matches("-tx").trim_end_matches("-rx");
        let maker = name.strip_prefix(PREFIX).and_then(process::Identity::parse)?;
        Some((name.to_owned(), maker))
    })
}

/// Removes beds whose makers are gone.
pub(super) fn remove_orphans() {
    for (name, _) in traces().filter(|(_, maker)| !maker.is_alive()) {
        // What cannot be removed is no reason not to measure.
        let _ = remove(&name);
    }
}

/// The process of another bed.
pub(super) fn others(own: &str) -> Option<u32> {
    let mut others = traces().filter(|(name, maker)| name != own && maker.is_alive());
    others.next().map(|(_, maker)| maker.pid())
}

/// Whether it was made by this user: anybody may make files where scratch files are, and what is in those of a bed is
/// believed.
fn is_ours(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let made = fs::symlink_metadata(path);
    made.is_ok_and(|made| made.uid() == rustix::process::geteuid().as_raw() && !made.is_symlink())
}

/// Kills what runs of a bed, and removes its namespaces and files.
fn remove(name: &str) -> anyhow::Result<()> {
    let scratch = scratch(name);
    // Where there is one of somebody else, nothing of it is believed.
    let restored = if is_ours(&scratch) { sysctl::restore(&scratch) } else { Ok(()) };
    let mut is_restored = restored.is_ok();
    let mut result = restored;
    result = result.and(end(name, || Ok(process::with_environment(MARK, name))));
    for namespace in [pair::sender(name), pair::receiver(name)] {
        if Path::new(NAMES).join(&namespace).exists() {
            let removed = empty(&namespace).and_then(|()| ip(&["netns", "del", &namespace]));
            result = result.and(removed);
        }
    }
    result = result.and(group::remove(name));
    if is_ours(&scratch) {
        let restored = group::restore(&scratch);
        is_restored &= restored.is_ok();
        result = result.and(restored);
        let removed = storage::remove(&scratch, name, is_ours);
        is_restored &= removed.is_ok();
        result = result.and(removed);
    }
    if !is_restored {
        // Who comes next tries again.
        return result;
    }
    match fs::remove_dir_all(scratch) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            result.and(Err(error).context("cannot remove scratch files"))
        }
        _ => result,
    }
}

/// Kills what runs in a namespace.
fn empty(namespace: &str) -> anyhow::Result<()> {
    end(namespace, || {
        let out = Command::new("ip").args(["netns", "pids", namespace]).output()?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        Ok(text.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect())
    })
}

/// Kills processes until there are none.
fn end(place: &str, processes: impl Fn() -> anyhow::Result<Vec<Pid>>) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let pids = processes()?;
        if pids.is_empty() {
            return Ok(());
        }
        ensure!(Instant::now() < end, "processes in {place} do not end: {pids:?}");
        for pid in pids {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
        thread::sleep(Duration::from_millis(20));
    }
}
