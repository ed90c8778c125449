//! Processors and memory.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::Look;
use crate::kernel::Kernel;
use crate::setting::Setting;
use crate::stage::{Loss, Stage, StageId};

const STAT: &str = "/proc/stat";

/// What a processor has done, in ticks of the kernel (proc(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Processor {
    /// Its number.
    pub number: u32,
    /// user, nice, system, idle, iowait, irq, softirq, steal.
    pub ticks: [u64; 8],
}

impl Processor {
    /// Programs, and the kernel for them.
    #[must_use]
    pub const fn work(&self) -> u64 {
        self.ticks[0].saturating_add(self.ticks[1]).saturating_add(self.ticks[2])
    }

    /// Interrupts and what follows them: receiving.
    #[must_use]
    pub const fn softirq(&self) -> u64 {
        self.ticks[5].saturating_add(self.ticks[6])
    }

    /// What other virtual machines took.
    #[must_use]
    pub const fn steal(&self) -> u64 {
        self.ticks[7]
    }

    /// Nothing, or waiting for a disk.
    #[must_use]
    pub const fn idle(&self) -> u64 {
        self.ticks[3].saturating_add(self.ticks[4])
    }

    /// All ticks.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.ticks.iter().copied().fold(0, u64::saturating_add)
    }

    /// What it has done since then.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut ticks = self.ticks;
        ticks.iter_mut().zip(before.ticks).for_each(|(now, then)| *now = now.saturating_sub(then));
        Self { ticks, ..*self }
    }
}

/// Reads `/proc/stat`: what each processor has done, without their sum.
#[must_use]
pub fn processors_of(text: &str) -> Vec<Processor> {
    let processor = |line: &str| {
        let (number, rest) = line.strip_prefix("cpu")?.split_once(' ')?;
        let mut ticks = [0; 8];
        let numbers = rest.split_whitespace().map_while(|word| word.parse().ok());
        ticks.iter_mut().zip(numbers).for_each(|(tick, number)| *tick = number);
        Some(Processor { number: number.parse().ok()?, ticks })
    };
    text.lines().filter_map(processor).collect()
}

/// What processors have done; empty where the kernel does not tell.
#[must_use]
pub fn processors(kernel: &dyn Kernel) -> Vec<Processor> {
    processors_of(&kernel.read(STAT).unwrap_or_default())
}

fn folder(number: u32) -> String {
    format!("/sys/devices/system/cpu/cpu{number}")
}

/// Numbers of a list, as `0-2,7`, each once; what makes no sense in it is left out.
fn numbers_of(list: &str) -> BTreeSet<u32> {
    /// More processors no kernel has (`CONFIG_NR_CPUS`).
    const MOST: u32 = 8192;
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse().ok()?, last.parse::<u32>().ok()?);
        Some(first..=last.min(MOST))
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

fn siblings_of(kernel: &dyn Kernel, number: u32) -> Vec<u32> {
    let file = format!("{}/topology/thread_siblings_list", folder(number));
    let list = kernel.read(&file).unwrap_or_default();
    numbers_of(&list).into_iter().filter(|other| *other != number).collect()
}

/// Each processor that shares its core with others, with those.
#[must_use]
pub fn siblings(kernel: &dyn Kernel) -> BTreeMap<u32, Vec<u32>> {
    let all = processors(kernel).into_iter().map(|it| (it.number, siblings_of(kernel, it.number)));
    all.filter(|(_, siblings)| !siblings.is_empty()).collect()
}

pub(super) fn stage(look: &Look<'_>) -> Stage {
    let mut stage = Stage::new(StageId::Processors);
    let kernel = look.kernel;
    for processor in processors(kernel) {
        let number = processor.number;
        for (name, ticks) in [
            ("work", processor.work()),
            ("softirq", processor.softirq()),
            ("steal", processor.steal()),
            ("idle", processor.idle()),
        ] {
            stage.count(&format!("{name} of processor {number}"), STAT, Some(ticks), Loss::None);
        }
        stage.knob(
            kernel,
            Setting::Governor { processor: number },
            "who chooses the frequency of the processor",
        );
        let siblings = siblings_of(kernel, number);
        if siblings.iter().min().is_some_and(|least| number < *least) {
            let all: Vec<_> =
                [number].into_iter().chain(siblings).map(|it| it.to_string()).collect();
            stage.notes.push(format!(
                "Processors {} are threads of one core, and share what it can do.",
                all.join(", ")
            ));
        }
    }
    if let Some(deepest) = deepest_sleep(kernel) {
        stage.notes.push(format!("Processors may sleep so deeply that waking takes {deepest} µs."));
    }
    if let Ok(node) = kernel.read(&look.file("device/numa_node"))
        && node != "-1"
    {
        let local = kernel
            .read(&format!("/sys/devices/system/node/node{node}/cpulist"))
            .unwrap_or_default();
        stage.notes.push(format!("The interface is at NUMA node {node}, with processors {local}."));
    }
    for (file, what) in [("cpu", "processors"), ("memory", "memory")] {
        if let Some(share) = pressure(kernel, file) {
            stage.notes.push(format!(
                "In the last 10 s, work waited for {what} in {share} % of the time."
            ));
        }
    }
    let clock = kernel.read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    if let Ok(clock) = clock {
        stage.notes.push(format!("The kernel reads the time from {clock}."));
    }
    stage.notes.push(
        "The bandwidth of memory cannot be read here without counters of the processor.".to_owned(),
    );
    stage
}

/// Microseconds that the deepest sleep of the first processor takes to end.
fn deepest_sleep(kernel: &dyn Kernel) -> Option<u64> {
    let states = format!("{}/cpuidle", folder(0));
    let names = kernel.list(&states).ok()?;
    names.iter().filter_map(|name| kernel.number(&format!("{states}/{name}/latency"))).max()
}

/// The share of time in which some work waited, in the kernel's words (Documentation/accounting/psi.rst).
pub(super) fn pressure(kernel: &dyn Kernel, of: &str) -> Option<String> {
    let text = kernel.read(&format!("/proc/pressure/{of}")).ok()?;
    let some = text.lines().find(|line| line.starts_with("some"))?;
    some.split_whitespace().find_map(|word| word.strip_prefix("avg10=")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Recorded;

    #[test]
    fn processors_are_read_without_their_sum() {
        let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu11 1 0 0 9\nintr 1 2";
        let all = processors(&Recorded::of_files([(STAT, text)]));
        let first = Processor { number: 0, ticks: [1, 2, 3, 4, 5, 6, 7, 8] };
        assert_eq!((all.len(), all[0], all[1].number, all[1].all()), (2, first, 11, 10));
        assert_eq!((first.work(), first.softirq(), first.steal(), first.idle()), (6, 13, 8, 9));
    }

    #[test]
    fn threads_of_a_core_are_siblings() {
        assert_eq!(numbers_of("0-2,7,0-1\n"), BTreeSet::from([0, 1, 2, 7]));
        assert!(numbers_of(&"0-4294967295,".repeat(1000)).len() < 10_000);
        assert!(numbers_of("x,3-,5-4").is_empty());
        let list = |number: u32| format!("{}/topology/thread_siblings_list", folder(number));
        let (first, second, third) = (list(0), list(1), list(2));
        let kernel = Recorded::of_files([
            (STAT, "cpu0 1\ncpu1 1\ncpu2 1\ncpu3 1"),
            (&*first, "0,2"),
            (&*second, "1"),
            (&*third, "0,2"),
        ]);
        assert_eq!(siblings(&kernel), BTreeMap::from([(0, vec![2]), (2, vec![0])]));
        let stage = stage(&Look { kernel: &kernel, interface: "eth0" });
        let said = stage.notes.iter().filter(|note| note.contains("threads of one core"));
        assert_eq!(
            said.collect::<Vec<_>>(),
            ["Processors 0, 2 are threads of one core, and share what it can do."]
        );
    }
}
