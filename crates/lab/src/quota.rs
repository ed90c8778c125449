//! A share of a processor for a capture: a slower host without another one (PAPERS C3), by a control group of the kernel.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

/// Where control groups of the first version are mounted that share processors out.
const FIRST: [&str; 2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];

/// Where those of the second version are.
const SECOND: &str = "/sys/fs/cgroup";

/// In each period a group runs for its share of that, in microseconds.
const PERIOD: u32 = 10_000;

/// How long the kernel may take to empty a group.
const PATIENCE: Duration = Duration::from_secs(2);

/// A group, which [`remove`] removes.
#[derive(Debug)]
pub(crate) struct Quota(PathBuf);

impl Quota {
    /// A group that gets a share of one processor.
    ///
    /// # Errors
    ///
    /// Where the kernel has no such groups, or without the right.
    pub(crate) fn make(name: &str, share: f64) -> anyhow::Result<Self> {
        let time = (f64::from(PERIOD) * share).round().max(1000.0);
        let (root, file, value) = match FIRST.iter().find(|root| has(root, "cpu.cfs_quota_us")) {
            Some(root) => (*root, "cpu.cfs_quota_us", time.to_string()),
            None if has(SECOND, "cgroup.controllers") => {
                let control = Path::new(SECOND).join("cgroup.subtree_control");
                // It may be on already, and may not be ours to change.
                let _ = fs::write(control, "+cpu");
                (SECOND, "cpu.max", format!("{time} {PERIOD}"))
            }
            None => bail!("there are no control groups here that share processors out"),
        };
        let path = Path::new(root).join(name);
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        if file == "cpu.cfs_quota_us" {
            write(&path, "cpu.cfs_period_us", &PERIOD.to_string())?;
        }
        write(&path, file, &value)?;
        Ok(Self(path))
    }

    /// Puts a process into the group, with all of its threads.
    ///
    /// # Errors
    ///
    /// Where it is gone.
    pub(crate) fn take(&self, pid: u32) -> anyhow::Result<()> {
        write(&self.0, "cgroup.procs", &pid.to_string())
    }
}

fn has(root: &str, file: &str) -> bool {
    Path::new(root).join(file).exists()
}

fn write(path: &Path, file: &str, value: &str) -> anyhow::Result<()> {
    let path = path.join(file);
    fs::write(&path, value).with_context(|| format!("cannot write {value} to {}", path.display()))
}

/// Removes the group of this name, if there is one, once its processes are gone.
///
/// # Errors
///
/// Where they do not go.
pub(crate) fn remove(name: &str) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    for root in FIRST.iter().chain([&SECOND]) {
        let path = Path::new(root).join(name);
        loop {
            match fs::remove_dir(&path) {
                Ok(()) => break,
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(error) if Instant::now() >= end => {
                    let what = format!("cannot remove {}", path.display());
                    return Err(error).context(what);
                }
                // A process that was killed is in it for a moment.
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }
    Ok(())
}

/// Where groups are.
pub(crate) fn places() -> impl Iterator<Item = &'static str> {
    FIRST.into_iter().chain([SECOND])
}
