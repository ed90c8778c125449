//! What a certificate holds for, compared with what is there now.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::host::machine::Machine;
use crate::host::nic::Nic;
use crate::host::storage::Storage;
use crate::testbed::{Layout, Sender, Wire};
use crate::tools::Tool;

/// Where a command of a certificate writes, which is another directory for each run.
const SCRATCH: &str = "DIR";

/// Everything that a certified rate depends on, as far as the machine tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// The version of netsniff: the sender, and the capture where that is netsniff.
    pub netsniff: String,
    /// The machine that captures.
    pub machine: Machine,
    /// How sender and capture are joined.
    pub testbed: Layout,
    /// The machine that sends, if that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<Sender>,
    /// The program that captures, with its options.
    pub tool: Capture,
}

/// A program that captures, with its options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// Its name in the list of tools, or the one that the user gave it.
    pub name: String,
    /// Its program; `None` for netsniff.
    pub program: Option<String>,
    /// Its command, with IFACE for the interface and DIR for a directory in memory.
    pub command: Vec<String>,
}

impl Capture {
    /// That of a tool.
    #[must_use]
    pub fn of(tool: &Tool) -> Self {
        Self {
            name: tool.name.clone(),
            program: tool.program.clone(),
            command: tool.words(Path::new("netsniff"), "IFACE", Path::new(SCRATCH)),
        }
    }
}

/// Something that is not as it was certified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Name of the fact, as the report has it.
    pub what: String,
    /// As it was; `None` where it was not told.
    pub certified: Option<String>,
    /// The fact now; `None` where it cannot be known.
    pub now: Option<String>,
    /// Whether receiving depends on it, so that the certificate does not hold.
    pub is_essential: bool,
}

impl Difference {
    /// One line of text for reports.
    #[must_use]
    pub fn words(&self) -> String {
        let or_unavailable =
            |value: &Option<String>| value.clone().unwrap_or("unavailable".to_owned());
        format!(
            "{} is {}, certified is {}",
            self.what,
            or_unavailable(&self.now),
            or_unavailable(&self.certified)
        )
    }
}

/// What files are on where no directory is given.
const MEMORY: &str = "memory";

/// All facts in which two configurations differ.
#[must_use]
pub fn differences(certified: &Configuration, now: &Configuration) -> Vec<Difference> {
    let mut list = List(Vec::new());
    let (before, after) = (&certified.machine, &now.machine);
    let number = |machine: &Machine| Some(machine.processors.to_string());
    let memory = |machine: &Machine| machine.memory.map(|bytes| bytes.to_string());
    list.text("the kernel", &before.kernel, &after.kernel);
    list.text("the processor", &before.processor, &after.processor);
    list.text("the number of processors", &number(before), &number(after));
    // A few pages more or less are no other machine.
    list.compare("the memory in bytes", memory(before), memory(after), false);
    list.text("the hypervisor", &before.hypervisor, &after.hypervisor);
    list.text("the clock source", &before.clocksource, &after.clocksource);
    list.named("", &before.sysctls, &after.sysctls);
    // Another sender sends the same frames.
    let is_ours = now.tool.program.is_none();
    let version = |it: &Configuration| Some(it.netsniff.clone());
    list.compare("the version of netsniff", version(certified), version(now), is_ours);
    list.named("the version of ", &before.versions, &after.versions);
    let place = |it: &Configuration| Some(it.testbed.placement.name().to_owned());
    list.compare("--placement", place(certified), place(now), true);
    let processors = |it: &Configuration| Some(it.testbed.processors.to_string());
    list.compare("processors of the capture", processors(certified), processors(now), true);
    let queues = |it: &Configuration| Some(it.testbed.queues.to_string());
    list.compare("queues", queues(certified), queues(now), true);
    list.compare("--quota", quota(&certified.testbed), quota(&now.testbed), true);
    let files =
        |machine: &Machine| Some(machine.files.as_ref().map_or(MEMORY.to_owned(), Storage::place));
    list.compare("what files are on", files(before), files(after), true);
    list.wire(certified, now);
    list.interfaces(&before.interfaces, now);
    let command = |it: &Configuration| Some(it.tool.command.join(" "));
    list.compare("the command of the capture", command(certified), command(now), true);
    list.0
}

fn quota(layout: &Layout) -> Option<String> {
    Some(layout.quota.map_or("none".to_owned(), |share| format!("{} %", share * 100.0)))
}

struct List(Vec<Difference>);

impl List {
    fn compare(
        &mut self,
        what: &str,
        certified: Option<String>,
        now: Option<String>,
        is_essential: bool,
    ) {
        if certified != now {
            self.0.push(Difference { what: what.to_owned(), certified, now, is_essential });
        }
    }

    fn text(&mut self, what: &str, certified: &Option<String>, now: &Option<String>) {
        self.compare(what, certified.clone(), now.clone(), true);
    }

    /// Where frames come from. Another machine that sends the same frames is no other capture.
    fn wire(&mut self, certified: &Configuration, now: &Configuration) {
        let is_wired = certified.testbed.wire.is_some() && now.testbed.wire.is_some();
        let url = |it: &Configuration| {
            let wire = it.testbed.wire.as_ref();
            Some(wire.map_or("none".to_owned(), |Wire { sender, .. }| sender.to_string()))
        };
        self.compare("--sender", url(certified), url(now), !is_wired);
        let [before, after] = [&certified.sender, &now.sender].map(Option::as_ref);
        let (Some(before), Some(after)) = (before, after) else { return };
        let mut fact = |what: &str, value: fn(&Sender) -> Option<String>| {
            self.compare(&format!("the {what} of the sender"), value(before), value(after), false);
        };
        fact("kernel", |it| it.kernel.clone());
        fact("processor", |it| it.processor.clone());
        fact("driver", |it| it.driver.clone());
    }

    /// What drives the interfaces of the same place, whatever their names are. A certificate from before they were in it
    /// says nothing of them; and those of a testbed that is yet to be made are the same as ever.
    fn interfaces(&mut self, certified: &[Nic], now: &Configuration) {
        let there = &now.machine.interfaces;
        if there.is_empty() && now.testbed.wire.is_none() {
            return;
        }
        for (number, before) in certified.iter().enumerate() {
            let (name, after) = (&before.interface, there.get(number));
            let driver = |nic: &Nic| nic.driven();
            let offloads = |nic: &Nic| nic.offloaded();
            self.compare(
                &format!("the driver of {name}"),
                driver(before),
                after.and_then(driver),
                true,
            );
            let offloaded = after.and_then(offloads);
            self.compare(&format!("what {name} offloads"), offloads(before), offloaded, true);
        }
    }

    /// Values by their names, of which either side may lack some.
    fn named(&mut self, prefix: &str, certified: &[(String, String)], now: &[(String, String)]) {
        let of = |list: &[(String, String)], name: &str| {
            list.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
        };
        let more = now.iter().filter(|(name, _)| of(certified, name).is_none());
        for (name, _) in certified.iter().chain(more) {
            self.compare(&format!("{prefix}{name}"), of(certified, name), of(now, name), true);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::testbed::Placement;

    pub(in crate::certificate) fn configuration() -> Configuration {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let machine = Machine {
            interfaces: Vec::new(),
            files: None,
            kernel: Some("Linux 6.12.1".to_owned()),
            processor: Some("A processor".to_owned()),
            processors: 2,
            memory: Some(4 << 30),
            hypervisor: None,
            clocksource: Some("tsc".to_owned()),
            sysctls: vec![
                pair("net.core.netdev_max_backlog", "1000"),
                pair("net.core.netdev_budget", "300"),
            ],
            versions: vec![pair("tcpdump", "tcpdump version 4.99.5")],
        };
        Configuration {
            netsniff: "0.1.0".to_owned(),
            machine,
            testbed: Layout { placement: Placement::Rps, ..Layout::default() },
            sender: None,
            tool: Capture::of(&Tool::all()[0]),
        }
    }

    fn after(change: impl Fn(&mut Configuration)) -> Vec<Difference> {
        let certified = configuration();
        let mut now = certified.clone();
        change(&mut now);
        differences(&certified, &now)
    }

    #[test]
    fn what_is_the_same_has_no_differences() {
        assert_eq!(after(|_| {}), []);
        // The order is the machine's affair.
        assert_eq!(after(|it| it.machine.sysctls.reverse()), []);
        let text = serde_json::to_string(&configuration()).unwrap();
        assert_eq!(serde_json::from_str::<Configuration>(&text).unwrap(), configuration());
    }

    #[test]
    fn each_fact_is_compared() {
        let words = |change: &dyn Fn(&mut Configuration)| {
            let [difference] = &after(change)[..] else { panic!("{:?}", after(change)) };
            (difference.words(), difference.is_essential)
        };
        let is = |change: &dyn Fn(&mut Configuration), expected: &str, is_essential: bool| {
            assert_eq!(words(change), (expected.to_owned(), is_essential));
        };
        is(
            &|it| it.machine.kernel = Some("Linux 6.1".to_owned()),
            "the kernel is Linux 6.1, certified is Linux 6.12.1",
            true,
        );
        is(
            &|it| it.machine.processor = None,
            "the processor is unavailable, certified is A processor",
            true,
        );
        is(&|it| it.machine.processors = 4, "the number of processors is 4, certified is 2", true);
        is(
            &|it| it.machine.memory = Some(1),
            "the memory in bytes is 1, certified is 4294967296",
            false,
        );
        is(
            &|it| it.machine.hypervisor = Some("xen".to_owned()),
            "the hypervisor is xen, certified is unavailable",
            true,
        );
        is(
            &|it| it.machine.clocksource = Some("hpet".to_owned()),
            "the clock source is hpet, certified is tsc",
            true,
        );
        is(
            &|it| it.machine.sysctls[0].1 = "10".to_owned(),
            "net.core.netdev_max_backlog is 10, certified is 1000",
            true,
        );
        is(
            &|it| drop(it.machine.sysctls.pop()),
            "net.core.netdev_budget is unavailable, certified is 300",
            true,
        );
        is(
            &|it| it.machine.sysctls.push(("net.core.new".to_owned(), "1".to_owned())),
            "net.core.new is 1, certified is unavailable",
            true,
        );
        is(
            &|it| it.machine.versions[0].1 = "tcpdump version 5".to_owned(),
            "the version of tcpdump is tcpdump version 5, certified is tcpdump version 4.99.5",
            true,
        );
        is(&|it| it.testbed.quota = Some(0.1), "--quota is 10 %, certified is none", true);
        is(&|it| it.testbed.processors = 2, "processors of the capture is 2, certified is 1", true);
        is(
            &|it| it.testbed.placement = Placement::None,
            "--placement is none, certified is rps",
            true,
        );
        is(
            &|it| it.netsniff = "0.2.0".to_owned(),
            "the version of netsniff is 0.2.0, certified is 0.1.0",
            true,
        );
        let setting = crate::tools::Setting { name: "ring".to_owned(), value: "64K".to_owned() };
        let small = Tool::all()[0].with(&[setting]).unwrap();
        let (said, is_essential) = words(&|it| it.tool = Capture::of(&small));
        let command = "the command of the capture is netsniff --no-config record";
        assert!(said.starts_with(command), "{said}");
        assert!(said.contains("--ring 64K") && said.contains("--ring 64M") && is_essential);
    }

    fn wired(change: impl Fn(&mut Configuration)) -> Vec<(String, bool)> {
        let nic = |gro| Nic {
            interface: "eth2".to_owned(),
            driver: Some("ixgbe".to_owned()),
            version: Some("6.1".to_owned()),
            offloads: vec![("gro".to_owned(), gro)],
        };
        let wire = |host: &str| Wire {
            sender: crate::testbed::Destination::parse(&format!("ssh://{host}")).unwrap(),
            sender_interface: "eth1".to_owned(),
            sender_program: "netsniff".to_owned(),
            interface: "eth2".to_owned(),
            ssh: vec!["ssh".to_owned()],
        };
        let mut certified = configuration();
        certified.testbed = Layout::of_wire(wire("far"));
        certified.machine.interfaces = vec![nic(false)];
        certified.sender = Some(Sender { kernel: Some("6.1".to_owned()), ..Sender::default() });
        let mut now = certified.clone();
        change(&mut now);
        let differences = differences(&certified, &now);
        differences.iter().map(|it| (it.words(), it.is_essential)).collect()
    }

    #[test]
    fn interfaces_decide_and_senders_do_not() {
        let is = |change: &dyn Fn(&mut Configuration), expected: &str, is_essential| {
            assert_eq!(wired(change), [(expected.to_owned(), is_essential)]);
        };
        assert_eq!(wired(|_| {}), []);
        is(
            &|it| it.machine.interfaces[0].driver = Some("e1000e".to_owned()),
            "the driver of eth2 is e1000e 6.1, certified is ixgbe 6.1",
            true,
        );
        is(
            &|it| it.machine.interfaces[0].offloads[0].1 = true,
            "what eth2 offloads is gro on, certified is gro off",
            true,
        );
        assert_eq!(wired(|it| it.machine.interfaces[0].interface = "eth3".to_owned()), []);
        assert_eq!(wired(|it| it.machine.interfaces.clear()).len(), 2);
        is(
            &|it| it.sender.as_mut().unwrap().kernel = Some("6.2".to_owned()),
            "the kernel of the sender is 6.2, certified is 6.1",
            false,
        );
        // Nobody was asked.
        assert_eq!(wired(|it| it.sender = None), []);
        let other = crate::testbed::Destination::parse("ssh://near").unwrap();
        is(
            &|it| it.testbed.wire.as_mut().unwrap().sender = other.clone(),
            "--sender is ssh://near, certified is ssh://far",
            false,
        );
        is(&|it| it.testbed.wire = None, "--sender is none, certified is ssh://far", true);
    }

    #[test]
    fn what_files_are_on_decides() {
        let disk = |directory: &str, device: &str| {
            let storage = Storage {
                directory: directory.into(),
                file_system: Some("ext4".to_owned()),
                device: Some(device.to_owned()),
                bytes_per_second: None,
            };
            move |it: &mut Configuration| it.machine.files = Some(storage.clone())
        };
        let [difference] = &after(disk("/a", "/dev/sda"))[..] else { panic!() };
        let said = "what files are on is ext4 on /dev/sda, certified is memory";
        assert_eq!((difference.words().as_str(), difference.is_essential), (said, true));
        let mut certified = configuration();
        disk("/a", "/dev/sda")(&mut certified);
        let now = |directory: &str, device: &str| {
            let mut now = configuration();
            disk(directory, device)(&mut now);
            differences(&certified, &now).len()
        };
        assert_eq!([now("/b", "/dev/sda"), now("/a", "/dev/sdb")], [0, 1]);
    }

    /// netsniff only sends there.
    #[test]
    fn another_tool_does_not_depend_on_the_version_of_netsniff() {
        let mut certified = configuration();
        let tcpdump = Tool::all().into_iter().find(|tool| tool.name == "tcpdump").unwrap();
        certified.tool = Capture::of(&tcpdump);
        let now = Configuration { netsniff: "0.2.0".to_owned(), ..certified.clone() };
        let [difference] = &differences(&certified, &now)[..] else { panic!() };
        assert!(!difference.is_essential, "{difference:?}");
    }
}
