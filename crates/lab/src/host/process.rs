//! Processes: who they are, what they use, and how they end.

use std::fs;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// How often to look whether one has ended.
const TICK: Duration = Duration::from_millis(10);

/// A process for all time: numbers are given out again, but not with the same start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pid: u32,
    /// When it began, in ticks since the machine was started.
    start: u64,
}

impl Identity {
    pub(crate) fn of_self() -> anyhow::Result<Self> {
        let pid = std::process::id();
        let start = start_of(pid).context("/proc does not tell when this process began")?;
        Ok(Self { pid, start })
    }

    /// Reads what [`core::fmt::Display`] gives.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (pid, start) = text.split_once('-')?;
        Some(Self { pid: pid.parse().ok()?, start: start.parse().ok()? })
    }

    pub(crate) const fn pid(self) -> u32 {
        self.pid
    }

    pub(crate) fn is_alive(self) -> bool {
        start_of(self.pid) == Some(self.start)
    }
}

impl core::fmt::Display for Identity {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}-{}", self.pid, self.start)
    }
}

/// Field 22 of /proc/PID/stat (proc(5)); the name before it may have blanks and brackets.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// What a process has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Nanoseconds on a processor, of all threads.
    pub(crate) cpu_ns: u64,
    /// Resident memory, in bytes.
    pub(crate) resident: u64,
    /// That part of it which is neither of files nor shared with the kernel, as a ring is (`RssAnon`, proc(5)); `None` where
    /// the kernel does not tell.
    pub(crate) own: Option<u64>,
}

/// What a process has used; `None` where it is gone.
pub(crate) fn usage(pid: u32) -> Option<Usage> {
    let mut cpu_ns = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let Ok(stat) = fs::read_to_string(task.ok()?.path().join("schedstat")) else { continue };
        cpu_ns += stat.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kib << 10)
    };
    Some(Usage { cpu_ns, resident: bytes("VmRSS:")?, own: bytes("RssAnon:") })
}

/// Lets so many of the newest processes whose names begin so run on one of these processors alone each, in turn; returns
/// how many there are.
pub(crate) fn pin_newest(name: &str, most: usize, processors: &[usize]) -> anyhow::Result<usize> {
    let pids = fs::read_dir("/proc").context("cannot read /proc")?.flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_named = |pid: &u32| {
        let comm = fs::read_to_string(format!("/proc/{pid}/comm"));
        comm.is_ok_and(|comm| comm.starts_with(name))
    };
    let mut named: Vec<_> = pids.filter(is_named).collect();
    named.sort_by_key(|pid| std::cmp::Reverse(start_of(*pid)));
    named.truncate(most);
    let pids = named.iter().filter_map(|pid| Pid::from_raw(pid.cast_signed()));
    for (pid, processor) in pids.zip(processors.iter().cycle()) {
        let mut set = CpuSet::new();
        set.set(*processor);
        sched_setaffinity(Some(pid), &set).with_context(|| format!("cannot pin {name}"))?;
    }
    Ok(named.len())
}

/// Processes that have a variable of a value in their environment. Those of other users are none, without the right to look.
pub(crate) fn with_environment(name: &str, value: &str) -> Vec<Pid> {
    let wanted = format!("{name}={value}");
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_one = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(is_one).filter_map(Pid::from_raw).collect()
}

/// Does something on one processor, in a thread of its own.
pub(crate) fn on_processor<T: Send>(
    processor: usize,
    what: impl FnOnce() -> T + Send,
) -> anyhow::Result<T> {
    on_processors(&[processor], what)
}

/// Does something on these processors, in a thread of its own. What it starts runs there, too.
pub(crate) fn on_processors<T: Send>(
    processors: &[usize],
    what: impl FnOnce() -> T + Send,
) -> anyhow::Result<T> {
    let pinned = || {
        let mut set = CpuSet::new();
        processors.iter().for_each(|processor| set.set(*processor));
        sched_setaffinity(None, &set)
            .with_context(|| format!("cannot run on processors {processors:?}"))?;
        Ok(what())
    };
    let done = thread::scope(|scope| scope.spawn(pinned).join());
    done.map_err(|_| anyhow::anyhow!("a thread panicked"))?
}

/// Processors that this thread may run on.
pub(crate) fn allowed() -> anyhow::Result<Vec<usize>> {
    let set = sched_getaffinity(None).context("cannot tell which processors there are")?;
    Ok((0..CpuSet::MAX_CPU).filter(|processor| set.is_set(*processor)).collect())
}

/// The most resident memory that this process had so far, in bytes; `None` where the kernel does not tell.
pub(crate) fn own_peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

/// Keeps this thread off processors, and off another one where there are more.
pub(crate) fn avoid(never: &[usize], rather_not: usize) -> anyhow::Result<()> {
    let mut set = sched_getaffinity(None).context("cannot tell which processors there are")?;
    never.iter().filter(|never| **never != rather_not).for_each(|never| set.unset(*never));
    if set.count() > 1 {
        set.unset(rather_not);
    }
    sched_setaffinity(None, &set).context("cannot choose a processor")
}

/// Waits so long until a process ends; `None` where it does not.
pub(crate) fn wait(child: &mut Child, time: Duration) -> anyhow::Result<Option<ExitStatus>> {
    let end = Instant::now() + time;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a process")? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
        thread::sleep(TICK);
    }
}

/// Asks a process to end, as Ctrl-C does, and kills it where it has not ended after so long; whether it ended itself.
pub(crate) fn interrupt(child: &mut Child, patience: Duration) -> anyhow::Result<bool> {
    if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
        // It may have ended already.
        let _ = kill_process(pid, Signal::INT);
    }
    if wait(child, patience)?.is_some() {
        return Ok(true);
    }
    child.kill().context("cannot kill a process")?;
    child.wait().context("cannot wait for a process")?;
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_off_processors_while_there_are_others() {
        let left = |never: &[usize], rather_not: usize| {
            let never = never.to_vec();
            let mut before = sched_getaffinity(None).unwrap();
            let after = thread::spawn(move || {
                avoid(&never, rather_not).unwrap();
                sched_getaffinity(None).unwrap()
            });
            before.unset(1);
            if before.count() > 1 {
                before.unset(0);
            }
            (after.join().unwrap(), before)
        };
        if sched_getaffinity(None).unwrap().count() < 2 {
            return;
        }
        for never in [&[1][..], &[1, 0]] {
            let (after, expected) = left(never, 0);
            assert!(after == expected && !after.is_set(1), "{never:?}");
        }
    }

    #[test]
    fn a_process_is_known_by_its_number_and_its_start() {
        let this = Identity::of_self().unwrap();
        assert!(this.is_alive());
        assert_eq!(Identity::parse(&this.to_string()), Some(this));
        assert!(
            !Identity { start: this.start + 1, ..this }.is_alive(),
            "another one of its number"
        );
        assert_eq!(Identity::parse("12"), None);
        let used = usage(this.pid).unwrap();
        assert!(used.cpu_ns > 0 && used.resident > 100_000 && used.own.unwrap() < used.resident);
    }
}
