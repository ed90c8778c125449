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

/// In each period a group runs for its share of that: microseconds of the shortest period, and of the longest one that
/// the kernel takes.
const PERIOD: (f64, f64) = (10_000.0, 1_000_000.0);

/// What the kernel gives a group at least in a period, in microseconds.
const TURN: f64 = 1000.0;

/// The smallest share of a processor that the kernel gives.
pub const LEAST: f64 = TURN / PERIOD.1;

/// The share of a processor that a percentage is; `None` for all of it.
///
/// # Errors
///
/// A sentence, where the kernel does not give such a share.
pub fn parse(text: &str) -> Result<Option<f64>, String> {
    let share =
        text.strip_suffix('%').unwrap_or(text).parse::<f64>().map(|percent| percent / 100.0);
    match share {
        Ok(1.0) => Ok(None),
        Ok(share) if (LEAST..1.0).contains(&share) => Ok(Some(share)),
        _ => Err(format!(
            "{text:?} is no share of a processor from {} to 100 percent",
            LEAST * 100.0
        )),
    }
}

/// The time that a group with a share gets, and in which one, both in microseconds: a small share needs a long period.
fn period(share: f64) -> (u32, u32) {
    let period = (TURN / share).clamp(PERIOD.0, PERIOD.1).round();
    ((period * share).round() as u32, period as u32)
}

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
        let (time, period) = period(share);
        let (root, file, value) = match FIRST.iter().find(|root| has(root, "cpu.cfs_quota_us")) {
            Some(root) => (*root, "cpu.cfs_quota_us", time.to_string()),
            None if has(SECOND, "cgroup.controllers") => {
                let control = Path::new(SECOND).join("cgroup.subtree_control");
                // It may be on already, and may not be ours to change.
                let _ = fs::write(control, "+cpu");
                (SECOND, "cpu.max", format!("{time} {period}"))
            }
            None => bail!("there are no control groups here that share processors out"),
        };
        let path = Path::new(root).join(name);
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        if file == "cpu.cfs_quota_us" {
            write(&path, "cpu.cfs_period_us", &period.to_string())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shares_have_long_periods() {
        assert_eq!(period(0.5), (5000, 10_000));
        assert_eq!(period(0.1), (1000, 10_000));
        assert_eq!(period(0.05), (1000, 20_000));
        assert_eq!(period(LEAST), (1000, 1_000_000));
    }

    #[test]
    fn shares_are_those_that_the_kernel_gives() {
        assert_eq!((parse("100"), parse("100%")), (Ok(None), Ok(None)));
        assert_eq!((parse("25%"), parse("0.1")), (Ok(Some(0.25)), Ok(Some(0.001))));
        for wrong in ["0", "0.05", "-5", "101", "NaN", "inf", "x", ""] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
