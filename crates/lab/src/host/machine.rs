//! What is measured on: facts that decide what figures mean.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use netsniff_doctor::look::{Processor, processors_of};

use super::nic::Nic;
use super::storage::Storage;

/// Sysctls that receiving depends on.
const SYSCTLS: [&str; 8] = [
    "net/core/netdev_max_backlog",
    "net/core/netdev_budget",
    "net/core/netdev_budget_usecs",
    "net/core/rmem_max",
    "net/core/rmem_default",
    "net/core/optmem_max",
    "net/core/busy_poll",
    "net/core/dev_weight",
];

/// Facts about this machine. `None` is what it does not tell.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Machine {
    /// Name and release of the kernel.
    pub kernel: Option<String>,
    /// Model name of the processor.
    pub processor: Option<String>,
    /// Processors that are on line.
    pub processors: usize,
    /// Main memory in bytes.
    pub memory: Option<u64>,
    /// What runs it, where it is virtual.
    pub hypervisor: Option<String>,
    /// What the kernel reads the time from.
    pub clocksource: Option<String>,
    /// Settings of the kernel.
    pub sysctls: Vec<(String, String)>,
    /// First lines that tools say of their version.
    pub versions: Vec<(String, String)>,
    /// Where capture files are, if not in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Storage>,
    /// The interfaces that are measured on; empty where none could be looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<Nic>,
}

impl Machine {
    /// This machine, with the versions of these programs.
    #[must_use]
    pub fn here(programs: &[String]) -> Self {
        let read = |path: &str| Some(fs::read_to_string(path).ok()?.trim().to_owned());
        let sysctl =
            |name: &&str| Some(((*name).replace('/', "."), read(&format!("/proc/sys/{name}"))?));
        let version = |program: &&String| Some(((*program).clone(), version(program)?));
        // A tool with several settings is one program.
        let programs: BTreeSet<_> = programs.iter().collect();
        Self {
            kernel: read("/proc/sys/kernel/osrelease").map(|release| format!("Linux {release}")),
            processor: field("/proc/cpuinfo", "model name"),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            memory: field("/proc/meminfo", "MemTotal")
                .and_then(|kib| kib.split_whitespace().next()?.parse::<u64>().ok())
                .map(|kib| kib << 10),
            hypervisor: read("/sys/hypervisor/type").or_else(hypervisor),
            clocksource: netsniff_capture::host::clocksource(),
            sysctls: SYSCTLS.iter().filter_map(sysctl).collect(),
            versions: programs.iter().filter_map(version).collect(),
            files: None,
            interfaces: Vec::new(),
        }
    }
}

/// What a processor did in some time, as shares of that: what mpstat(1) tells (PAPERS E-13).
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Busy {
    /// Programs, also those with a low priority.
    pub user: f64,
    /// The kernel for programs.
    pub system: f64,
    /// Receiving and the like.
    pub softirq: f64,
    /// Share of time in interrupts.
    pub irq: f64,
    /// Share of time that other virtual machines took.
    pub steal: f64,
    /// Nothing, or waiting for a disk.
    pub idle: f64,
}

/// The times of all processors, as /proc/stat has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times(Vec<Processor>);

impl Times {
    /// As of now; empty where the kernel does not tell.
    #[must_use]
    pub fn now() -> Self {
        Self::of(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn of(stat: &str) -> Self {
        Self(processors_of(stat))
    }

    /// What each processor did since then.
    #[must_use]
    pub fn since(&self, before: &Self) -> Vec<Busy> {
        let spent = |(after, before): (&Processor, &Processor)| {
            let spent = after.since(before);
            let all = spent.all().max(1) as f64;
            let [user, nice, system, idle, iowait, irq, softirq, steal] =
                spent.ticks.map(|time| time as f64 / all);
            Busy { user: user + nice, system, softirq, irq, steal, idle: idle + iowait }
        };
        self.0.iter().zip(&before.0).map(spent).collect()
    }
}

/// The value of the first line of `name: value`.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Processors of virtual machines say so.
fn hypervisor() -> Option<String> {
    let flags = field("/proc/cpuinfo", "flags")?;
    flags.split(' ').any(|flag| flag == "hypervisor").then(|| "virtual machine".to_owned())
}

/// The first line that a program says of its version.
fn version(program: &str) -> Option<String> {
    let out = Command::new(program).arg("--version").output().ok()?;
    let text = if out.stdout.is_empty() { out.stderr } else { out.stdout };
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_as_busy_as_proc_stat_says() {
        let before =
            Times::of("cpu  9 9 9 9\ncpu0 10 0 20 30 0 0 5 0 0 0\ncpu1 1 1 1 1 1 1 1 1\nintr 5\n");
        let after =
            Times::of("cpu  9 9 9 9\ncpu0 20 10 60 60 10 0 5 0 0 0\ncpu1 1 1 1 1 1 1 11 1\n");
        let busy = after.since(&before);
        let first = Busy { user: 0.2, system: 0.4, idle: 0.4, ..Busy::default() };
        assert_eq!(busy, [first, Busy { softirq: 1.0, ..Busy::default() }]);
        assert!(!Times::now().0.is_empty());
    }

    #[test]
    fn this_machine_has_a_kernel() {
        let machine = Machine::here(&["sh".to_owned(), "no such program".to_owned()]);
        assert!(machine.kernel.unwrap().starts_with("Linux "));
        assert!(machine.memory.unwrap() > 1 << 20 && machine.processors > 0);
        assert!(machine.versions.iter().all(|(program, _)| program == "sh"));
    }
}
