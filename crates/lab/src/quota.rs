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

/// What shares are given out by in groups of the second version, and the file that tells of what their groups are.
const CONTROLLER: &str = "cpu";
const CONTROL: &str = "cgroup.subtree_control";

/// In the scratch files of a testbed, where groups of the second version shared no processors out before.
const JOURNAL: &str = "quota";

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
pub(crate) struct Quota {
    /// The directory of the group.
    path: PathBuf,
    /// Of one processor.
    share: f64,
}

impl Quota {
    /// A group that gets a share of one processor. What is changed beside it stands in `scratch`, for [`restore`].
    ///
    /// # Errors
    ///
    /// Where the kernel has no such groups, or without the right.
    pub(crate) fn make(name: &str, share: f64, scratch: &Path) -> anyhow::Result<Self> {
        let (time, period) = period(share);
        let (root, file, value) = match FIRST.iter().find(|root| has(root, "cpu.cfs_quota_us")) {
            Some(root) => (*root, "cpu.cfs_quota_us", time.to_string()),
            None if has(SECOND, "cgroup.controllers") => {
                share_out(Path::new(SECOND), scratch)?;
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
        Ok(Self { path, share })
    }

    /// The share of one processor.
    pub(crate) const fn share(&self) -> f64 {
        self.share
    }

    /// Puts a process into the group, with all of its threads.
    ///
    /// # Errors
    ///
    /// Where it is gone.
    pub(crate) fn take(&self, pid: u32) -> anyhow::Result<()> {
        write(&self.path, "cgroup.procs", &pid.to_string())
    }
}

/// Lets the groups of a root share processors out, and writes down where they did not before.
fn share_out(root: &Path, scratch: &Path) -> anyhow::Result<()> {
    let control = root.join(CONTROL);
    let before = fs::read_to_string(&control).unwrap_or_default();
    if before.split_whitespace().any(|controller| controller == CONTROLLER) {
        return Ok(());
    }
    // First, so that it is known whatever comes next.
    let journal = scratch.join(JOURNAL);
    fs::write(&journal, CONTROLLER).context("cannot write down what groups there were")?;
    if fs::write(&control, format!("+{CONTROLLER}")).is_err() {
        // It may not be ours to change: then the group has no such file, which is said.
        fs::remove_file(&journal).context("cannot remove what was written down")?;
    }
    Ok(())
}

/// Lets groups share no processors out where they did not before, once the group of the testbed is removed.
///
/// # Errors
///
/// Where it cannot be put back.
pub(crate) fn restore(scratch: &Path) -> anyhow::Result<()> {
    take_back(Path::new(SECOND), scratch)
}

fn take_back(root: &Path, scratch: &Path) -> anyhow::Result<()> {
    if !scratch.join(JOURNAL).is_file() {
        return Ok(());
    }
    write(root, CONTROL, &format!("-{CONTROLLER}"))
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

    /// A plain file keeps what was written to it last, which the kernel would take.
    #[test]
    fn what_groups_did_not_do_before_is_taken_back() {
        let directory =
            std::env::temp_dir().join(format!("netsniff-groups-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory).unwrap();
        let (root, control) = (&*directory, directory.join(CONTROL));
        let course = |before: &str| {
            fs::write(&control, before).unwrap();
            share_out(root, root).unwrap();
            let meanwhile = fs::read_to_string(&control).unwrap();
            take_back(root, root).unwrap();
            let _ = fs::remove_file(root.join(JOURNAL));
            [meanwhile, fs::read_to_string(&control).unwrap()]
        };
        assert_eq!(course("cpuset memory pids\n"), ["+cpu", "-cpu"]);
        assert_eq!(course(""), ["+cpu", "-cpu"]);
        let others = "cpuset cpu memory\n";
        assert_eq!(course(others), [others, others], "it is others' to take back");
        // What cannot be changed is not taken back.
        fs::remove_file(&control).unwrap();
        fs::create_dir(&control).unwrap();
        share_out(root, root).unwrap();
        assert!(!root.join(JOURNAL).exists());
        take_back(root, root).unwrap();
        fs::remove_dir_all(directory).unwrap();
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
