//! A wire that is there, from a machine that ssh(1) reaches to this one. Nothing of it is changed, on neither machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use netsniff_capture::Interface;
use netsniff_capture::interface::{LinkCounters, LinkReader};

use super::pair::counters;
use super::processors;
use super::{GeneratorOutput, MARK, Meanwhile, Processors, SENDER_CPU, TICK, WireEnds};
use crate::host::nic::Nic;
use crate::load::Load;
use crate::remote::{Destination, RemoteAccess, Shell, quoted};
use crate::tools;

/// Which wire is measured on, and how its other end is reached.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Wire {
    /// The machine that sends.
    pub sender: Destination,
    /// Interface of the sending machine.
    pub sender_interface: String,
    /// Path of netsniff on the sending machine.
    pub sender_program: String,
    /// The interface of this machine that frames come to.
    pub interface: String,
    /// The words of ssh(1).
    pub ssh: Vec<String>,
}

/// Facts about the machine that sends. `None` is what it does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Sender {
    /// The version of its netsniff.
    pub netsniff: String,
    /// Name and release of its kernel.
    pub kernel: Option<String>,
    /// Model name of the sending machine's processor.
    pub processor: Option<String>,
    /// What drives the interface that sends.
    pub driver: Option<String>,
}

impl Wire {
    /// One line of text for reports.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { sender, sender_interface, interface, .. } = self;
        format!("a wire from {sender_interface} of {sender} to {interface} of this machine")
    }

    /// What is at the other end, where it can send.
    ///
    /// # Errors
    ///
    /// Where it cannot be reached, has no such program or interface, or has another version of netsniff than this one.
    pub fn look(&self) -> anyhow::Result<Sender> {
        // Nothing captures.
        Ok(Line::connect(self, "", &Processors::of(1, processors::there()))?.1)
    }

    /// The interface here, if frames can come to it.
    fn here(&self) -> anyhow::Result<Interface> {
        let found = Interface::find(&self.interface).context("cannot capture on this machine")?;
        let name = &self.interface;
        ensure!(found.is_up, "{name} of this machine is down; ip link set {name} up");
        ensure!(found.has_carrier, "{name} of this machine has no carrier: is the cable in?");
        Ok(found)
    }
}

impl Sender {
    /// Asks the sending machine for what reports say of it.
    fn ask(wire: &Wire, shell: &mut Shell) -> anyhow::Result<Self> {
        let Wire { sender, sender_interface, sender_program, .. } = wire;
        let netsniff = version(shell, wire)?;
        let there = quoted(&format!("/sys/class/net/{sender_interface}"));
        if shell.ask(&format!("test -e {there}"))?.status != 0 {
            let all = shell.ask("ls /sys/class/net")?.said.replace('\n', ", ");
            bail!("{sender} has no interface {sender_interface}; it has {all}");
        }
        // It cannot be read where the interface is down.
        let carrier = shell.ask(&format!("cat {there}/carrier"))?;
        ensure!(
            carrier.said == "1",
            "{sender_interface} of {sender} is down or has no carrier, so that {sender_program} cannot send there"
        );
        let mut fact = |line: &str| -> anyhow::Result<Option<String>> {
            let answer = shell.ask(line)?;
            Ok(Some(answer.said).filter(|said| answer.status == 0 && !said.is_empty()))
        };
        let processor = fact("grep -m 1 '^model name' /proc/cpuinfo")?;
        let name = |line: String| line.rsplit_once(':').map(|(_, name)| name.trim().to_owned());
        let driver = fact(&format!("readlink {there}/device/driver"))?;
        Ok(Self {
            netsniff,
            kernel: fact("uname -sr")?,
            processor: processor.and_then(name),
            driver: driver.map(|path| path.rsplit('/').next().unwrap_or_default().to_owned()),
        })
    }
}

/// The version of a machine's netsniff, which must be ours: the two have to mean the same by what they count.
fn version(shell: &mut Shell, wire: &Wire) -> anyhow::Result<String> {
    let Wire { sender, sender_program: program, .. } = wire;
    let answer = shell.ask(&format!("{} --version", quoted(program)))?;
    match answer.status {
        0 => {}
        126 | 127 => bail!(
            "there is no program {program} on {sender}: install netsniff there, or say where it is with --sender-program: \
             {}",
            answer.said
        ),
        status => bail!("{program} --version on {sender} fails ({status}): {}", answer.said),
    }
    let Some(there) = answer.said.strip_prefix("netsniff ") else {
        bail!("{program} on {sender} is not netsniff: it says {:?}", answer.said);
    };
    let here = env!("CARGO_PKG_VERSION");
    ensure!(
        there == here,
        "netsniff on {sender} is version {there}, and this is version {here}: install the same on both"
    );
    Ok(there.to_owned())
}

/// A wire that is measured on.
#[derive(Debug)]
pub(super) struct Line {
    wire: Wire,
    processors: Processors,
    mark: (&'static str, String),
    rx: Mutex<LinkReader>,
    there: Mutex<RemoteEnd>,
}

/// The netsniff that sends from the other machine.
#[derive(Debug)]
struct RemoteEnd {
    shell: Shell,
    /// The capture that was copied there last.
    copied: Option<(PathBuf, String)>,
}

impl Line {
    /// Looks at both ends, and stays connected for the bed of a name, of which these processors capture.
    pub(super) fn connect(
        wire: &Wire,
        bed: &str,
        processors: &Processors,
    ) -> anyhow::Result<(Self, Sender)> {
        let rx = LinkReader::new(wire.here()?.index).context("cannot read counters")?;
        let mark = (MARK, bed.to_owned());
        let mut shell = Shell::connect(way(wire, &mark))?;
        let sender = Sender::ask(wire, &mut shell)?;
        let there = Mutex::new(RemoteEnd { shell, copied: None });
        let (wire, processors) = (wire.clone(), processors.clone());
        Ok((Self { wire, processors, mark, rx: Mutex::new(rx), there }, sender))
    }

    fn there(&self) -> MutexGuard<'_, RemoteEnd> {
        self.there.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a capture is on the machine that sends. It goes with the connection.
    fn copied(&self, there: &mut RemoteEnd, capture: &Path) -> anyhow::Result<String> {
        match &there.copied {
            Some((path, name)) if path == capture => Ok(name.clone()),
            _ => {
                let name = there.shell.directory()? + "/capture";
                way(&self.wire, &self.mark).copy(capture, &name)?;
                there.copied = Some((capture.to_owned(), name.clone()));
                Ok(name)
            }
        }
    }
}

fn way<'a>(wire: &'a Wire, mark: &'a (&'static str, String)) -> RemoteAccess<'a> {
    RemoteAccess { ssh: &wire.ssh, destination: &wire.sender, mark }
}

impl WireEnds for Line {
    fn interface(&self) -> &str {
        &self.wire.interface
    }

    fn capture(&self, words: &[String]) -> Command {
        let [program, arguments @ ..] = self.processors.taskset();
        let mut command = Command::new(program);
        command.args(arguments).args(words);
        command
    }

    fn send(
        &self,
        _netsniff: &Path,
        load: &Load,
        most: Duration,
        meanwhile: Meanwhile<'_>,
    ) -> anyhow::Result<GeneratorOutput> {
        let mut there = self.there();
        let mut load = load.clone();
        if let Some(capture) = &load.capture {
            load.capture = Some(self.copied(&mut there, capture)?.into());
        }
        let program = tools::ours(&self.wire.sender_program);
        let words = [program, load.arguments(&self.wire.sender_interface, SENDER_CPU)].concat();
        let (report, answer) = there.shell.run(&words, most, (TICK, meanwhile))?;
        Ok(GeneratorOutput { report, errors: answer.said })
    }

    fn left(&self) -> anyhow::Result<u64> {
        let Wire { sender, sender_interface, .. } = &self.wire;
        let at = quoted(&format!("/sys/class/net/{sender_interface}/statistics"));
        let said = self.there().shell.ask(&format!("cat {at}/tx_packets {at}/tx_dropped"))?.said;
        let numbers: Vec<u64> = said.lines().filter_map(|line| line.parse().ok()).collect();
        match numbers[..] {
            // As of interfaces here: some count what was lost at the other end as not sent.
            [sent, dropped] => Ok(sent.wrapping_add(dropped)),
            _ => bail!("{sender} does not tell what {sender_interface} has sent: {said}"),
        }
    }

    fn came(&self) -> anyhow::Result<LinkCounters> {
        counters(&self.rx, &self.wire.interface)
    }

    fn nics(&self) -> Vec<Nic> {
        Nic::look(&self.wire.interface).into_iter().collect()
    }
}
