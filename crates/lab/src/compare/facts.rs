//! What else two sides differ in: results depend on the kernel, the machine and who pays for receiving (PAPERS F12).

use serde::{Deserialize, Serialize};

use super::distinct;
use crate::host::machine::Machine;
use crate::host::nic::Nic;
use crate::host::storage::Storage;
use crate::testbed::{Layout, Sender, Wire};

/// What a report says of where it was made.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Setup {
    /// The version of netsniff.
    pub netsniff: String,
    /// The words of the command.
    pub command: Vec<String>,
    /// The machine on which the report was made.
    pub machine: Machine,
    /// The machine that sends, if that is another one.
    #[serde(default)]
    pub sender: Option<Sender>,
    /// How sender and capture were joined.
    pub testbed: Layout,
}

/// Something that two reports differ in. `None` is what one of them does not tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// Name of the fact, as the report has it.
    pub name: String,
    /// The fact in report A; `None` where that has none.
    pub a: Option<String>,
    /// The fact in report B; `None` where that has none.
    pub b: Option<String>,
}

/// Something that a machine tells.
type Told = fn(&Sender) -> Option<String>;

/// What is compared of a machine that sends.
const SENDER: [(&str, Told); 3] = [
    ("kernel", |sender| sender.kernel.clone()),
    ("processor", |sender| sender.processor.clone()),
    ("driver", |sender| sender.driver.clone()),
];

/// All that they differ in. Versions of programs that only one of them ran are not; nor is the revision of netsniff's source,
/// of which the version tells as much as figures depend on: what is measured goes on after a change of a comment.
#[must_use]
pub fn differing(a: &Setup, b: &Setup) -> Vec<Fact> {
    let mut facts = Differing::default();
    facts.note("netsniff", Some(a.netsniff.clone()), Some(b.netsniff.clone()));
    facts.of_machines(&a.machine, &b.machine);
    facts.of_wires(a, b);
    facts.of_testbeds(a, b);
    facts.of_files(&a.machine, &b.machine);
    facts.0
}

/// What two reports differ in, in the order in which it is asked for.
#[derive(Default)]
struct Differing(Vec<Fact>);

impl Differing {
    /// Notes what both sides tell of something, where that differs.
    fn note(&mut self, name: &str, a: Option<String>, b: Option<String>) {
        if a != b {
            self.0.push(Fact { name: name.to_owned(), a, b });
        }
    }

    /// Notes what both sides tell in the same words.
    fn each<T: ?Sized>(&mut self, name: &str, [a, b]: [&T; 2], words: impl Fn(&T) -> String) {
        self.note(name, Some(words(a)), Some(words(b)));
    }

    fn of_machines(&mut self, a: &Machine, b: &Machine) {
        self.note("kernel", a.kernel.clone(), b.kernel.clone());
        self.note("processor", a.processor.clone(), b.processor.clone());
        self.each("processors", [a, b], |it| it.processors.to_string());
        let [of_a, of_b] = [a, b].map(|it| it.memory.map(|bytes| format!("{bytes} bytes")));
        self.note("memory", of_a, of_b);
        self.note("hypervisor", a.hypervisor.clone(), b.hypervisor.clone());
        self.note("clocksource", a.clocksource.clone(), b.clocksource.clone());
        for name in names(&a.sysctls, &b.sysctls) {
            self.note(name, value(&a.sysctls, name), value(&b.sysctls, name));
        }
        for name in names(&a.versions, &b.versions) {
            let of = [value(&a.versions, name), value(&b.versions, name)];
            if let [Some(a), Some(b)] = of {
                self.note(&format!("version of {name}"), Some(a), Some(b));
            }
        }
        // Reports of before do not have them.
        for one in &a.interfaces {
            let same = |other: &&Nic| other.interface == one.interface;
            let Some(other) = b.interfaces.iter().find(same) else { continue };
            self.note(&format!("driver of {}", one.interface), one.driven(), other.driven());
            self.note(
                &format!("offloads of {}", one.interface),
                one.offloaded(),
                other.offloaded(),
            );
        }
    }

    /// How the frames come, and what sends them.
    fn of_wires(&mut self, a: &Setup, b: &Setup) {
        self.each("wire", [a, b], |setup| {
            let words =
                |it: &Wire| format!("{} of {} to {}", it.sender_interface, it.sender, it.interface);
            setup.testbed.wire.as_ref().map_or("made here".to_owned(), words)
        });
        let of_sender = |setup: &Setup, value: Told| {
            setup.sender.as_ref().map_or_else(|| Some("this machine".to_owned()), value)
        };
        for (name, value) in SENDER {
            self.note(&format!("{name} of the sender"), of_sender(a, value), of_sender(b, value));
        }
    }

    /// What the capture is given, and what is planted.
    fn of_testbeds(&mut self, a: &Setup, b: &Setup) {
        let both = [&a.testbed, &b.testbed];
        self.each("placement", both, |bed| bed.placement.name().to_owned());
        self.each("processors of the capture", both, |bed| bed.processors.to_string());
        self.each("processors that receive", both, |bed| {
            bed.receivers.map_or("of the placement".to_owned(), |number| number.to_string())
        });
        self.each("share of the processor", both, |bed| {
            bed.quota.map_or("all".to_owned(), |share| format!("{} %", share * 100.0))
        });
        self.each("memory of the capture", both, |bed| {
            bed.memory.map_or("all".to_owned(), |bytes| format!("{bytes} bytes"))
        });
        self.each("busy neighbours", both, |bed| bed.neighbours.to_string());
        self.each("queues", both, |bed| bed.queues.to_string());
        self.each("changed settings of the kernel", both, |bed| {
            let settings = bed.sysctls.iter();
            let words: Vec<_> = settings.map(|it| format!("{}={}", it.name, it.value)).collect();
            if words.is_empty() { "none".to_owned() } else { words.join(" ") }
        });
        self.each("tap", both, |bed| bed.tap.map_or("none".to_owned(), |tap| tap.words()));
        self.each("planted disk", both, |bed| {
            bed.disk.map_or("none".to_owned(), |disk| disk.words())
        });
    }

    fn of_files(&mut self, a: &Machine, b: &Machine) {
        self.each("files", [a, b], |machine| {
            machine.files.as_ref().map_or("in memory".to_owned(), |storage| {
                let Storage { file_system, device, .. } = storage;
                [file_system, device].map(|it| it.as_deref().unwrap_or("unknown")).join(" on ")
            })
        });
    }
}

fn names<'a>(a: &'a [(String, String)], b: &'a [(String, String)]) -> Vec<&'a str> {
    distinct(a.iter().chain(b).map(|(name, _)| name.as_str()))
}

fn value(pairs: &[(String, String)], name: &str) -> Option<String> {
    pairs.iter().find(|(of, _)| of == name).map(|(_, value)| value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use crate::testbed::Placement;

    fn nic(name: &str) -> Nic {
        Nic {
            interface: name.to_owned(),
            driver: Some("veth".to_owned()),
            version: Some("1.0".to_owned()),
            offloads: vec![("gro".to_owned(), false)],
        }
    }

    fn setup() -> Setup {
        let pairs = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        Setup {
            netsniff: "0.1.0".to_owned(),
            command: Vec::new(),
            machine: Machine {
                interfaces: vec![nic("rx0")],
                files: None,
                kernel: Some("Linux 6.1".to_owned()),
                processor: None,
                processors: 2,
                memory: Some(1 << 30),
                hypervisor: None,
                clocksource: Some("tsc".to_owned()),
                sysctls: pairs("net.core.netdev_budget", "300"),
                versions: pairs("tcpdump", "4.99.3"),
            },
            sender: None,
            testbed: Layout { placement: Placement::Rps, ..Layout::default() },
        }
    }

    #[test]
    fn every_fact_that_differs_is_said_and_no_other() {
        let names = |change: fn(&mut Setup)| {
            let mut other = setup();
            change(&mut other);
            let facts = differing(&setup(), &other);
            facts.into_iter().map(|fact| fact.name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(|it| it.command.push("sudo".to_owned())), "");
        assert_eq!(names(|it| it.netsniff.clear()), "netsniff");
        assert_eq!(names(|it| it.machine.kernel = None), "kernel");
        assert_eq!(names(|it| it.machine.processor = Some("Z80".to_owned())), "processor");
        assert_eq!(names(|it| it.machine.processors = 64), "processors");
        assert_eq!(names(|it| it.machine.memory = Some(1)), "memory");
        assert_eq!(names(|it| it.machine.hypervisor = Some("kvm".to_owned())), "hypervisor");
        assert_eq!(names(|it| it.machine.clocksource = None), "clocksource");
        assert_eq!(names(|it| it.machine.sysctls.clear()), "net.core.netdev_budget");
        assert_eq!(names(|it| it.machine.versions.clear()), "");
        assert_eq!(names(|it| it.machine.versions[0].1.push('a')), "version of tcpdump");
        let version = |it: &mut Setup| it.machine.interfaces[0].version = None;
        assert_eq!(names(version), "driver of rx0");
        assert_eq!(names(|it| it.machine.interfaces[0].offloads[0].1 = true), "offloads of rx0");
        assert_eq!(names(|it| it.machine.interfaces.clear()), "", "of a report of before");
        assert_eq!(names(|it| it.testbed.placement = Placement::Thread), "placement");
        assert_eq!(names(|it| it.testbed.processors = 2), "processors of the capture");
        assert_eq!(names(|it| it.testbed.quota = Some(0.5)), "share of the processor");
        assert_eq!(names(|it| it.testbed.memory = Some(1 << 20)), "memory of the capture");
        assert_eq!(names(|it| it.testbed.neighbours = 2), "busy neighbours");
        let disk =
            |it: &mut Setup| it.testbed.disk = Some(Disk { rate: Some(1 << 20), stall: None });
        assert_eq!(names(disk), "planted disk");
        let files = |it: &mut Setup| {
            let directory = "/data".into();
            let storage =
                Storage { directory, file_system: None, device: None, bytes_per_second: None };
            it.machine.files = Some(storage);
        };
        assert_eq!(names(files), "files");
        let of_sender = names(|it| it.sender = Some(Sender::default()));
        assert_eq!(of_sender, "kernel of the sender processor of the sender driver of the sender");
        let mut other = setup();
        other.testbed.quota = Some(0.5);
        let fact = differing(&setup(), &other).remove(0);
        assert_eq!((fact.a.as_deref(), fact.b.as_deref()), (Some("all"), Some("50 %")));
    }
}
