//! What a stage of the way is: what it counts, what rules it, and what is advised.

use serde::Serialize;

use crate::arithmetic::Holds;
use crate::kernel::Kernel;
use crate::setting::Setting;

/// THE list of stages, in the order in which a packet meets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageId {
    /// The wire, and the interface's own memory.
    Wire,
    /// The ring that the interface and its driver share.
    NicRing,
    /// When interrupts come.
    Coalescing,
    /// What the interface and the stack do with frames before a capture sees them.
    Offloads,
    /// Queues, and how packets are spread over them.
    Queues,
    /// Which processor an interrupt comes to.
    Interrupts,
    /// Taking frames from the ring.
    Napi,
    /// Packets on their way to another processor, or from a virtual interface.
    Backlog,
    /// XDP, the order of taps, and queueing disciplines.
    Taps,
    /// What packets wait in for a capture.
    Socket,
    /// The process that captures.
    Process,
    /// Processors.
    Processors,
    /// Files that are written.
    Disk,
}

impl StageId {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Wire,
        Self::NicRing,
        Self::Coalescing,
        Self::Offloads,
        Self::Queues,
        Self::Interrupts,
        Self::Napi,
        Self::Backlog,
        Self::Taps,
        Self::Socket,
        Self::Process,
        Self::Processors,
        Self::Disk,
    ];

    /// Its name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wire => "wire and interface",
            Self::NicRing => "ring of the interface",
            Self::Coalescing => "interrupt coalescing",
            Self::Offloads => "offloads",
            Self::Queues => "queues and hash",
            Self::Interrupts => "interrupts",
            Self::Napi => "NAPI",
            Self::Backlog => "backlog and steering",
            Self::Taps => "taps and queueing",
            Self::Socket => "sockets of captures",
            Self::Process => "processes that capture",
            Self::Processors => "processors",
            Self::Disk => "disk and page cache",
        }
    }

    /// Its name for `--only` and `--json`.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Wire => "wire",
            Self::NicRing => "nic-ring",
            Self::Coalescing => "coalescing",
            Self::Offloads => "offloads",
            Self::Queues => "queues",
            Self::Interrupts => "interrupts",
            Self::Napi => "napi",
            Self::Backlog => "backlog",
            Self::Taps => "taps",
            Self::Socket => "socket",
            Self::Process => "process",
            Self::Processors => "processors",
            Self::Disk => "disk",
        }
    }
}

/// One stage of a host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stage {
    /// Which one it is.
    pub id: StageId,
    /// What it has counted.
    pub counters: Vec<Counter>,
    /// What rules it.
    pub knobs: Vec<Knob>,
    /// What else there is to say, in sentences.
    pub notes: Vec<String>,
    /// What could not be read, and why.
    pub unread: Vec<String>,
}

/// A number that the kernel or a driver counts up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counter {
    /// Its name, as its source has it.
    pub name: String,
    /// The file or call that tells it.
    pub source: String,
    /// What stands there; `None` where it cannot be read.
    pub total: Option<u64>,
    /// By how much it grew while it was watched; `None` where it was not.
    pub during: Option<u64>,
    /// Whether each one is a packet that was lost at this stage, and of what.
    pub loss: Loss,
}

/// What a count says of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Nothing.
    None,
    /// Each is a packet that was lost, and no other counter of the stages has it.
    Packets,
    /// Each is a packet that another counter may have, too, or that nobody wanted.
    Maybe,
    /// No packet, but a sign that some will be lost.
    Sign,
}

/// A setting, with its value, what that comes to, and what is advised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Knob {
    /// What is set.
    pub setting: Setting,
    /// The buffer or the work that it rules.
    pub rules: &'static str,
    /// Its value; `None` where it cannot be read.
    pub value: Option<String>,
    /// The most that it may be, where that is known.
    pub most: Option<String>,
    /// Whether nobody can change it.
    pub is_fixed: bool,
    /// What the buffer holds, where it is one.
    pub holds: Option<Holds>,
    /// What to change.
    pub advice: Option<Advice>,
}

/// What to change, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// The value to set.
    pub value: String,
    /// Why.
    pub reason: String,
    /// Who says that it helps.
    pub source: &'static str,
    /// What it costs others.
    pub cost: &'static str,
}

impl Stage {
    /// One of which nothing is known.
    #[must_use]
    pub const fn new(id: StageId) -> Self {
        Self { id, counters: Vec::new(), knobs: Vec::new(), notes: Vec::new(), unread: Vec::new() }
    }

    /// Adds a counter.
    pub fn count(&mut self, name: &str, source: &str, total: Option<u64>, loss: Loss) {
        let (name, source) = (name.to_owned(), source.to_owned());
        self.counters.push(Counter { name, source, total, during: None, loss });
    }

    /// Adds a setting with its value. What cannot be read for want of a right is said; what there is not, is left out.
    pub fn knob(
        &mut self,
        kernel: &dyn Kernel,
        setting: Setting,
        rules: &'static str,
    ) -> Option<&mut Knob> {
        let value = match setting.read(kernel) {
            Ok(value) => Some(value),
            Err(error) => {
                let is_refused = error.kind() == std::io::ErrorKind::PermissionDenied;
                if is_refused {
                    self.unread.push(format!("{setting}: {error}"));
                }
                return None;
            }
        };
        self.knobs.push(Knob {
            setting,
            rules,
            value,
            most: None,
            is_fixed: false,
            holds: None,
            advice: None,
        });
        self.knobs.last_mut()
    }

    /// Packets that were lost here while it was watched: `None` where it was not, and where nobody counts them.
    #[must_use]
    pub fn lost(&self) -> Option<u64> {
        let losses = self.counters.iter().filter(|counter| counter.loss == Loss::Packets);
        let mut all = losses.map(|counter| counter.during).peekable();
        all.peek()?;
        all.sum()
    }

    /// How much a counter grew.
    #[must_use]
    pub fn during(&self, name: &str) -> Option<u64> {
        self.counters.iter().find(|counter| counter.name == name)?.during
    }

    /// What a counter stands at.
    #[must_use]
    pub fn total(&self, name: &str) -> Option<u64> {
        self.counters.iter().find(|counter| counter.name == name)?.total
    }

    /// Notes by how much each counter grew since then. One that went back was reset, and nobody knows.
    pub fn since(&mut self, before: &Self) {
        for counter in &mut self.counters {
            let first = before.total(&counter.name);
            counter.during = counter.total.zip(first).and_then(|(now, then)| now.checked_sub(then));
        }
    }
}

impl Knob {
    /// Its value as a number.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        self.value.as_ref()?.parse().ok()
    }

    /// Advises another value, unless it has that.
    pub fn advise(
        &mut self,
        value: String,
        reason: String,
        source: &'static str,
        cost: &'static str,
    ) {
        let is_there = self.value.as_ref().is_some_and(|now| self.setting.is_same(now, &value));
        if !is_there {
            self.advice = Some(Advice { value, reason, source, cost });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_not_nothing() {
        let stage = |total: Option<u64>, other: Option<u64>| {
            let mut stage = Stage::new(StageId::Wire);
            stage.count("a", "x", total, Loss::Packets);
            stage.count("b", "x", other, Loss::Packets);
            stage.count("c", "x", total.map(|total| total + 100), Loss::Maybe);
            stage
        };
        let lost = |mut after: Stage, before: &Stage| {
            after.since(before);
            after.lost()
        };
        assert_eq!(lost(stage(Some(5), Some(1)), &stage(Some(2), Some(1))), Some(3));
        assert_eq!(lost(stage(Some(5), None), &stage(Some(2), Some(1))), None);
        assert_eq!(lost(stage(Some(1), Some(1)), &stage(Some(2), Some(1))), None, "it was reset");
        assert_eq!(stage(Some(1), Some(1)).lost(), None, "it was not watched");
        assert_eq!(Stage::new(StageId::Disk).lost(), None);
    }

    #[test]
    fn advice_is_another_value() {
        let setting = Setting::of_interface("eth0", "queues/rx-0/rps_cpus");
        let mut knob = Knob {
            setting,
            rules: "",
            value: Some("00000000,00000003".to_owned()),
            most: None,
            is_fixed: false,
            holds: None,
            advice: None,
        };
        knob.advise("3".to_owned(), String::new(), "", "");
        assert_eq!(knob.advice, None);
        knob.advise("2".to_owned(), String::new(), "", "");
        assert_eq!(knob.advice.unwrap().value, "2");
    }
}
