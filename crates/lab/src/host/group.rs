//! Control groups of the kernel, of both versions, in which a capture has less than its host.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

/// What groups bound or share out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Controller {
    name: &'static str,
    /// Where groups of the first version are mounted that have it.
    first: &'static [&'static str],
    /// A file that each of these groups has.
    file: &'static str,
    /// What it does, behind "control groups that".
    words: &'static str,
}

/// The controller that counts and limits time on processors.
pub(crate) const CPU: Controller = Controller {
    name: "cpu",
    first: &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"],
    file: "cpu.cfs_quota_us",
    words: "share processors out",
};

/// The controller that counts and limits memory.
pub(crate) const MEMORY: Controller = Controller {
    name: "memory",
    first: &["/sys/fs/cgroup/memory"],
    file: "memory.limit_in_bytes",
    words: "bound memory",
};

const ALL: [Controller; 2] = [CPU, MEMORY];

/// Where groups of the second version are mounted.
const SECOND: &str = "/sys/fs/cgroup";

/// The file that tells of a group of the second version what its groups may do.
const CONTROL: &str = "cgroup.subtree_control";

/// How long the kernel may take to empty a group.
const PATIENCE: Duration = Duration::from_secs(2);

impl Controller {
    /// In the scratch files of a testbed, where groups of the second version did without it before.
    fn journal(&self, scratch: &Path) -> PathBuf {
        scratch.join(format!("group-{}", self.name))
    }
}

/// Which version a group is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// Each controller has groups of its own.
    First,
    /// All controllers have the same groups.
    Second,
}

/// A group, which [`remove`] removes.
#[derive(Debug)]
pub(crate) struct Group {
    path: PathBuf,
    version: Version,
}

impl Group {
    /// A group in which a controller works. What is changed beside it stands in `scratch`, for [`restore`].
    ///
    /// # Errors
    ///
    /// Where the kernel has no such groups, or without the right.
    pub(crate) fn make(
        controller: &Controller,
        name: &str,
        scratch: &Path,
    ) -> anyhow::Result<Self> {
        let has = |root: &str, file: &str| Path::new(root).join(file).exists();
        let first = controller.first.iter().find(|root| has(root, controller.file));
        let (root, version) = match first {
            Some(root) => (*root, Version::First),
            None if has(SECOND, "cgroup.controllers") => {
                allow(controller, Path::new(SECOND), scratch)?;
                (SECOND, Version::Second)
            }
            None => bail!("there are no control groups here that {}", controller.words),
        };
        let path = Path::new(root).join(name);
        match fs::create_dir(&path) {
            // That of another controller.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made.with_context(|| format!("cannot make {}", path.display()))?,
        }
        Ok(Self { path, version })
    }

    /// Which version it is of.
    pub(crate) const fn version(&self) -> Version {
        self.version
    }

    /// Sets a value.
    ///
    /// # Errors
    ///
    /// Where the kernel does not take it.
    pub(crate) fn set(&self, file: &str, value: &str) -> anyhow::Result<()> {
        write(&self.path, file, value)
    }

    /// What a file of it says.
    ///
    /// # Errors
    ///
    /// Where there is none.
    pub(crate) fn read(&self, file: &str) -> anyhow::Result<String> {
        let path = self.path.join(file);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Puts a process into it, with all of its threads.
    ///
    /// # Errors
    ///
    /// Where it is gone.
    pub(crate) fn take(&self, pid: u32) -> anyhow::Result<()> {
        self.set("cgroup.procs", &pid.to_string())
    }
}

/// Lets the groups of a root have a controller, and writes down where they had it not before.
fn allow(controller: &Controller, root: &Path, scratch: &Path) -> anyhow::Result<()> {
    let control = root.join(CONTROL);
    let before = fs::read_to_string(&control).unwrap_or_default();
    if before.split_whitespace().any(|name| name == controller.name) {
        return Ok(());
    }
    // First, so that it is known whatever comes next.
    let journal = controller.journal(scratch);
    fs::write(&journal, controller.name).context("cannot write down what groups there were")?;
    if fs::write(&control, format!("+{}", controller.name)).is_err() {
        // It may not be ours to change: then the group has no such file, which is said.
        fs::remove_file(&journal).context("cannot remove what was written down")?;
    }
    Ok(())
}

/// Takes controllers from groups that had them not before, once the group of the testbed is removed.
///
/// # Errors
///
/// Where it cannot be put back.
pub(crate) fn restore(scratch: &Path) -> anyhow::Result<()> {
    // What one cannot have back keeps no other from it.
    let each = ALL.iter().map(|controller| take_back(controller, Path::new(SECOND), scratch));
    each.fold(Ok(()), anyhow::Result::and)
}

fn take_back(controller: &Controller, root: &Path, scratch: &Path) -> anyhow::Result<()> {
    if !controller.journal(scratch).is_file() {
        return Ok(());
    }
    write(root, CONTROL, &format!("-{}", controller.name))
}

fn write(path: &Path, file: &str, value: &str) -> anyhow::Result<()> {
    let path = path.join(file);
    fs::write(&path, value).with_context(|| format!("cannot write {value} to {}", path.display()))
}

/// Removes the groups of this name, if there are any, once their processes are gone.
///
/// # Errors
///
/// Where they do not go.
pub(crate) fn remove(name: &str) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    for root in places() {
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

/// Where control groups may be mounted.
pub(crate) fn places() -> impl Iterator<Item = &'static str> {
    ALL.iter().flat_map(|controller| controller.first).copied().chain([SECOND])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plain file keeps what was written to it last, which the kernel would take.
    #[test]
    fn what_groups_did_not_do_before_is_taken_back() {
        let directory =
            std::env::temp_dir().join(format!("netsniff-groups-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory).unwrap();
        let (root, control) = (&*directory, directory.join(CONTROL));
        let course = |controller: &Controller, before: &str| {
            fs::write(&control, before).unwrap();
            allow(controller, root, root).unwrap();
            let meanwhile = fs::read_to_string(&control).unwrap();
            take_back(controller, root, root).unwrap();
            let _ = fs::remove_file(controller.journal(root));
            [meanwhile, fs::read_to_string(&control).unwrap()]
        };
        assert_eq!(course(&CPU, "cpuset memory pids\n"), ["+cpu", "-cpu"]);
        assert_eq!(course(&MEMORY, "cpuset cpu pids\n"), ["+memory", "-memory"]);
        assert_eq!(course(&CPU, ""), ["+cpu", "-cpu"]);
        let others = "cpuset cpu memory\n";
        for controller in ALL {
            assert_eq!(course(&controller, others), [others, others], "it is others' to take back");
        }
        // What cannot be changed is not taken back.
        fs::remove_file(&control).unwrap();
        fs::create_dir(&control).unwrap();
        allow(&CPU, root, root).unwrap();
        assert!(!CPU.journal(root).exists());
        take_back(&CPU, root, root).unwrap();
        fs::remove_dir_all(directory).unwrap();
    }
}
