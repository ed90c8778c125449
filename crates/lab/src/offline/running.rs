//! A process on processors of its own, from its start to its end, with everything that it used.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use netsniff_capture::{Ended, wait_for};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::host::process::{self, Identity};
use crate::stop::Stop;

/// How long a run may take: what takes longer is killed.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// How often to look whether a signal came while a run goes on.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// How directories of scratch files begin; behind it stands whose they are.
const PREFIX: &str = "netsniff-offline-";

/// A directory for what is written, which goes with this value.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Makes one in a directory, and removes those there whose owners are gone.
    pub(super) fn make(parent: &Path) -> anyhow::Result<Self> {
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            if owner.and_then(Identity::parse).is_some_and(|owner| !owner.is_alive()) {
                // It may be of another user.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let path = parent.join(format!("{PREFIX}{}", Identity::of_self()?));
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }

    /// A file in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// An empty directory in it, anew for each run. Others may write to it, since programs give their rights up.
    pub(super) fn output(&self) -> anyhow::Result<PathBuf> {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.path("out");
        if path.exists() {
            fs::remove_dir_all(&path).context("cannot remove the output of a run")?;
        }
        fs::create_dir(&path).context("cannot make a directory for the output of a run")?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o1777))
            .context("cannot open a directory to programs")?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing else can be done about it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process that has ended.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) ended: Ended,
    pub(super) wall: Duration,
    /// The most resident memory; as an error, what it did not exceed, where it had no more than this process.
    pub(super) peak: Result<u64, u64>,
    pub(super) output: String,
    pub(super) errors: String,
    /// Whether it was killed because it took too long.
    pub(super) is_late: bool,
}

/// Runs a command in a directory, on these processors alone, and kills it once it is to stop.
///
/// # Errors
///
/// Where it cannot be started or watched.
pub(super) fn run(
    words: &[String],
    processors: &[usize],
    scratch: &Scratch,
    stop: &Stop<'_>,
) -> anyhow::Result<Process> {
    let Some((program, arguments)) = words.split_first() else { bail!("there is no command") };
    let directory = scratch.output()?;
    let file = |name: &str| {
        let path = scratch.path(name);
        File::create(&path).with_context(|| format!("cannot write {}", path.display()))
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(&directory)
        .stdin(Stdio::null())
        .stdout(file("said")?)
        .stderr(file("errors")?);
    let before = process::own_peak();
    // What a thread starts runs where that thread does.
    let (child, begin) = process::on_processors(processors, || {
        let begin = Instant::now();
        (command.spawn(), begin)
    })?;
    let child = child.with_context(|| format!("cannot start {program}"))?;
    let pid = Pid::from_raw(child.id().cast_signed()).context("a process has no number")?;
    let handle = pidfd_open(pid, PidfdFlags::empty()).context("cannot watch a process")?;
    let is_late = watch(&handle, begin, stop)?;
    let wall = begin.elapsed();
    let ended = wait_for(child).context("cannot wait for a process")?;
    let read = |name: &str| {
        let said = fs::read(scratch.path(name)).unwrap_or_default();
        String::from_utf8_lossy(&said).into_owned()
    };
    // Up to its own start it shared the memory of this process.
    let is_its_own = before.is_some_and(|before| ended.peak_bytes > before);
    Ok(Process {
        ended,
        wall,
        peak: if is_its_own { Ok(ended.peak_bytes) } else { Err(ended.peak_bytes) },
        output: read("said"),
        errors: read("errors"),
        is_late,
    })
}

/// Returns once a process has ended, or was killed since it is to stop; whether it took too long.
fn watch(handle: &impl AsFd, begin: Instant, stop: &Stop<'_>) -> anyhow::Result<bool> {
    let mut is_late = false;
    let mut is_killed = false;
    loop {
        let mut fds = [PollFd::new(handle, PollFlags::IN)];
        match poll(&mut fds, Some(&TICK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(is_late),
            Err(error) => return Err(error).context("cannot watch a process"),
        }
        is_late |= begin.elapsed() > PATIENCE;
        if !is_killed && (is_late || stop.is_set()) {
            is_killed = true;
            // It may have ended already.
            let _ = pidfd_send_signal(handle, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn scratch(name: &str) -> (PathBuf, Scratch) {
        let parent = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&parent).unwrap();
        let scratch = Scratch::make(&parent).unwrap();
        (parent, scratch)
    }

    fn words(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_run_tells_what_it_said_and_used() {
        let (parent, scratch) = scratch("netsniff-offline-run");
        let signal = Arc::new(AtomicBool::new(false));
        let stop = Stop::new(&signal, None);
        let processors = process::allowed().unwrap();
        let script = "echo said; echo wrong >&2; touch here; grep Cpus_allowed_list /proc/self/status; exit 5";
        let done = run(&words(script), &processors[..1], &scratch, &stop).unwrap();
        assert_eq!(done.ended.status.code(), Some(5));
        assert_eq!((done.errors.as_str(), done.is_late), ("wrong\n", false));
        assert!(done.output.starts_with("said\n"), "{done:?}");
        // This process has more memory than a shell, which the kernel counts for it.
        assert!(done.peak.is_err_and(|bound| bound > 1 << 20), "{done:?}");
        assert!(done.output.ends_with(&format!(":\t{}\n", processors[0])), "{done:?}");
        assert!(scratch.path("out/here").is_file());
        let next = run(&words("ls"), &processors[..1], &scratch, &stop).unwrap();
        assert_eq!(next.output, "", "every run begins with an empty directory");
        let missing = ["/no/such/program".to_owned()];
        let error = run(&missing, &processors[..1], &scratch, &stop).unwrap_err();
        assert_eq!(error.to_string(), "cannot start /no/such/program");
        drop(scratch);
        assert!(fs::read_dir(&parent).unwrap().next().is_none(), "nothing stays");
        fs::remove_dir_all(parent).unwrap();
    }

    #[test]
    fn a_signal_ends_a_run_at_once() {
        let (parent, scratch) = scratch("netsniff-offline-stop");
        let signal = Arc::new(AtomicBool::new(true));
        let begin = Instant::now();
        let processors = process::allowed().unwrap();
        let stop = Stop::new(&signal, None);
        let done = run(&words("exec sleep 60"), &processors, &scratch, &stop).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(10) && !done.ended.status.success());
        drop(scratch);
        fs::remove_dir_all(parent).unwrap();
    }

    #[test]
    fn what_others_left_behind_goes() {
        let parent =
            std::env::temp_dir().join(format!("netsniff-offline-old-{}", std::process::id()));
        let this = Identity::of_self().unwrap();
        let dead = format!("{PREFIX}{}-1", this.pid());
        let others = [dead.as_str(), "netsniff-offline-x", "other"];
        for name in others {
            fs::create_dir_all(parent.join(name)).unwrap();
        }
        let scratch = Scratch::make(&parent).unwrap();
        let left = others.map(|name| parent.join(name).is_dir());
        assert_eq!(left, [false, true, true]);
        drop(scratch);
        fs::remove_dir_all(parent).unwrap();
    }
}
