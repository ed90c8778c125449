//! The testbed: a wire between who sends and who captures, and what is known of its two ends.
//!
//! Most are made: two network namespaces joined by a veth pair (`pair`). One may also be there, between two machines, of which
//! the other one sends (`line`); nothing of it is changed. What a run needs of either is `Ends`.
//!
//! Who makes a bed starts a warden (`warden`): a process of its own that waits until its standard input is closed, which
//! happens however its maker ends, and then kills what still runs and removes what was made. So nothing is left behind
//! after a signal, not even SIGKILL. Where the warden is killed, too, the next bed removes what it finds without a maker.

use core::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use netsniff_capture::interface::LinkCounters;

use crate::disk::Disk;
use crate::load::Load;
use crate::nic::Nic;
use crate::process;
use crate::quota::{self, Quota};
use crate::stop::Stop;
use crate::storage;
use crate::sysctl;
use crate::tap::{self, Tap};
use crate::tools::{Setting, Tool};

mod line;
mod pair;
mod processors;
mod warden;

pub use self::line::{Sender, Wire};
pub(crate) use self::pair::{inside, ip, raise};
pub(crate) use self::processors::Processors;
use self::warden::Warden;
pub use self::warden::watch;
pub use crate::remote::Destination;

/// Where scratch files are: in memory, so that no disk is measured.
const MEMORY: &str = "/dev/shm";

/// What the environment of every process of a bed has, with the bed's name.
const MARK: &str = "NETSNIFF_LAB";

/// Who pays for receiving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// The sender's processor also runs the receiver's softirq; the capture has its own processor for itself.
    None,
    /// The softirq runs on the processor of the capture, as where a card interrupts that: the usual case.
    #[default]
    Rps,
    /// As [`Self::Rps`], by a NAPI thread on the processor of the capture.
    Thread,
    /// As [`Self::None`], by the NAPI of the interface, which has a ring of its own (256 frames for a veth).
    Napi,
    /// Whoever the machine has for it: of a wire that is there nothing is changed.
    AsFound,
}

impl Placement {
    /// THE list of those that a bed can be made with.
    pub const ALL: [Self; 4] = [Self::None, Self::Rps, Self::Thread, Self::Napi];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Rps => "rps",
            Self::Thread => "thread",
            Self::Napi => "napi",
            Self::AsFound => "as-found",
        }
    }

    /// The one of this name.
    ///
    /// # Errors
    ///
    /// A sentence, where there is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|placement| placement.name() == text);
        found.ok_or_else(|| {
            format!("no placement {text:?}: there are {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

/// How a bed is made.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Layout {
    /// Who pays for receiving.
    pub placement: Placement,
    /// How many processors capture, and receive for it where the placement has that on the processor of the capture:
    /// from [`CAPTURE_CPU`] on, and the sender's as the last one.
    pub processors: u32,
    /// The share of its processor that a capture gets; `None` for all of it.
    pub quota: Option<f64>,
    /// Queues of each interface.
    pub queues: u32,
    /// Settings of the kernel (sysctl(8)) that are changed while it stands.
    pub sysctls: Vec<Setting>,
    /// A tap that the capture is behind, with losses that are planted; without it the capture is on the wire itself.
    pub tap: Option<Tap>,
    /// A slower disk that tools write their files to; without it they are in memory.
    pub disk: Option<Disk>,
    /// A directory that tools write their files in; `None` for memory.
    pub files: Option<PathBuf>,
    /// The wire to another machine that sends; without it all is made on this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<Wire>,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            placement: Placement::default(),
            processors: 1,
            quota: None,
            queues: 1,
            sysctls: Vec::new(),
            tap: None,
            disk: None,
            files: None,
            wire: None,
        }
    }
}

/// Queues that an interface may have.
pub const MOST_QUEUES: u32 = 64;

impl Layout {
    /// A wire that is there.
    #[must_use]
    pub fn of_wire(wire: Wire) -> Self {
        Self { placement: Placement::AsFound, wire: Some(wire), ..Self::default() }
    }

    /// The same with other values: `placement`, `processors` (a number, or `all` of this machine's), `quota` in percent,
    /// `queues`, `tap` and the losses planted at it
    /// (`loss-before`, `loss-at`, `loss-behind`, in percent), `disk` and `disk-stall`, settings of the kernel by their names,
    /// which have dots, and `profile` for several of these (`default`, `skopko64`).
    ///
    /// # Errors
    ///
    /// A sentence, where there is no such name or value, and for what is changed of no wire that is there.
    pub fn with(&self, settings: &[Setting]) -> Result<Self, String> {
        let mut layout = self.clone();
        for Setting { name, value } in settings {
            if self.wire.is_some() && !["quota", "processors"].contains(&name.as_str()) {
                return Err(format!(
                    "{name} is of a testbed that the lab makes: of a wire between machines it changes neither the \
                     interfaces nor the kernel; only quota and processors are left"
                ));
            }
            match name.as_str() {
                "placement" => layout.placement = Placement::parse(value)?,
                "processors" => layout.processors = processors::parse(value, processors::there())?,
                "quota" => layout.quota = quota::parse(value)?,
                "queues" => {
                    let number =
                        value.parse().ok().filter(|number| (1..=MOST_QUEUES).contains(number));
                    let said = || format!("{value:?} is no number of queues up to {MOST_QUEUES}");
                    layout.queues = number.ok_or_else(said)?;
                }
                name if let Some(disk) = Disk::with(layout.disk, name, value) => {
                    layout.disk = disk?;
                }
                name if sysctl::is_name(name) && value.is_empty() => {
                    return Err(format!("{name} has no value: {name}=VALUE"));
                }
                name if sysctl::is_name(name) => {
                    layout.change(Setting { name: name.to_owned(), value: value.clone() });
                }
                "profile" => {
                    sysctl::profile(value)?.into_iter().for_each(|setting| layout.change(setting));
                }
                name => {
                    layout.tap = Tap::with(layout.tap, name, value).ok_or_else(|| {
                        format!(
                            "a testbed has no {name:?}: it has placement, processors, quota, queues, tap, loss-before, loss-at, \
                             loss-behind, disk, disk-stall, profile, and settings of the kernel with dots in their names, as \
                             net.core.netdev_max_backlog"
                        )
                    })??;
                }
            }
        }
        if layout.disk.is_some() && layout.files.is_some() {
            return Err("files are in a directory or on a planted disk, and not both".to_owned());
        }
        Ok(layout)
    }

    /// Another setting of the kernel, instead of one of the same name.
    fn change(&mut self, setting: Setting) {
        self.sysctls.retain(|old| old.name != setting.name);
        self.sysctls.push(setting);
    }

    /// Whether a tool can be tried on it.
    ///
    /// # Errors
    ///
    /// A sentence, where it cannot.
    pub fn suits(&self, tool: &Tool) -> Result<(), String> {
        match self.disk {
            Some(_) if !tool.writes_file() => Err(format!(
                "{} writes no capture file, so that no disk can be planted under it",
                tool.name
            )),
            _ => Ok(()),
        }
    }
}

/// What a run needs of the two ends of a wire.
trait Ends: fmt::Debug + Send {
    /// The interface that a tool captures on.
    fn interface(&self) -> &str;

    /// A command where frames arrive, on the processors that capture.
    fn capture(&self, words: &[String]) -> Command;

    /// Runs the generator where frames are sent from, for so long at most: `netsniff`, where that is this machine.
    /// `meanwhile` is called again and again; where it fails, nothing more is sent.
    fn send(
        &self,
        netsniff: &Path,
        load: &Load,
        most: Duration,
        meanwhile: Meanwhile<'_>,
    ) -> anyhow::Result<Said>;

    /// Frames that the interface that sends has counted.
    fn left(&self) -> anyhow::Result<u64>;

    /// Frames that the wire itself has dropped, where it is one that can tell.
    fn dropped(&self) -> anyhow::Result<u64> {
        Ok(0)
    }

    /// What the interface has counted that frames arrive on.
    fn came(&self) -> anyhow::Result<LinkCounters>;

    /// What is known of its interfaces on this machine.
    fn nics(&self) -> Vec<Nic>;

    /// What reads the counts of a tap, where there is one.
    fn meter(&self) -> anyhow::Result<Option<tap::Meter>> {
        Ok(None)
    }
}

/// What is done again and again while frames are sent, and may end that.
type Meanwhile<'a> = &'a mut dyn FnMut() -> anyhow::Result<()>;

/// What the generator has said.
#[derive(Debug)]
pub(crate) struct Said {
    /// Its report.
    pub(crate) report: String,
    /// Its errors.
    pub(crate) errors: String,
}

/// How often something is done meanwhile.
const TICK: Duration = Duration::from_millis(100);

/// A bed, which goes with this value.
#[derive(Debug)]
pub struct Bed {
    name: String,
    quota: Option<Quota>,
    disk: Option<Disk>,
    /// Where tools write their files.
    files: PathBuf,
    /// Who captures.
    processors: Processors,
    /// What is set by a signal after which nothing more is sent.
    signal: Option<Arc<AtomicBool>>,
    // These end before the warden looks what is left.
    ends: Box<dyn Ends>,
    _warden: Warden,
}

impl Bed {
    /// Makes a bed, and removes those that were left behind. `warden` is this program, with arguments such that it calls
    /// [`watch`] with one more, the name of the bed.
    ///
    /// # Errors
    ///
    /// Without the right, ip(8), or two processors; beside another one, whose runs and this one's would be in each
    /// other's way; where the machine that is to send cannot.
    pub fn make(warden: &[String], layout: &Layout) -> anyhow::Result<Self> {
        let there = processors::there();
        ensure!(
            there > CAPTURE_CPU,
            "captures run on processor {CAPTURE_CPU}, beside whatever else there is, and there is one processor"
        );
        processors::parse(&layout.processors.to_string(), there).map_err(anyhow::Error::msg)?;
        let processors = Processors::of(layout.processors, there);
        warden::remove_orphans();
        let name = format!("{}{}", warden::PREFIX, process::Identity::of_self()?);
        let watching = Warden::start(warden, &name)?;
        let scratch = scratch(&name);
        fs::create_dir(&scratch).context("cannot make a directory for scratch files")?;
        // Of two that begin at the same time each sees the other one here.
        if let Some(maker) = warden::others(&name) {
            bail!(
                "another lab measures on this machine (process {maker}), and both would measure each other: begin once it \
                 has ended"
            );
        }
        let files = match &layout.files {
            Some(directory) => storage::make(&scratch, directory, &name)?,
            None => scratch.clone(),
        };
        let ends: Box<dyn Ends> = match &layout.wire {
            Some(wire) => Box::new(line::Line::connect(wire, &name, &processors)?.0),
            None => Box::new(pair::Pair::make(&name, &scratch, layout, &processors)?),
        };
        let quota = layout.quota.map(|share| Quota::make(&name, share, &scratch)).transpose()?;
        Ok(Self {
            name,
            quota,
            disk: layout.disk,
            files,
            processors,
            signal: None,
            ends,
            _warden: watching,
        })
    }

    /// The same, where a signal ends what is sent before its time. One of a terminal reaches the generator, too, but only
    /// one that runs already.
    #[must_use]
    pub fn until(mut self, stop: &Stop<'_>) -> Self {
        self.signal = Some(stop.signal());
        self
    }

    /// The name of the namespace that receives, where the bed has one.
    #[must_use]
    pub fn receiver(&self) -> String {
        pair::receiver(&self.name)
    }

    /// The interface that a tool captures on, where frames arrive.
    #[must_use]
    pub fn interface(&self) -> &str {
        self.ends.interface()
    }

    /// What is known of its interfaces on this machine.
    #[must_use]
    pub fn nics(&self) -> Vec<Nic> {
        self.ends.nics()
    }

    /// What reads the counts of its tap, where it has one.
    pub(crate) fn meter(&self) -> anyhow::Result<Option<tap::Meter>> {
        self.ends.meter()
    }

    /// Frames that the interface that sends has counted.
    pub(crate) fn left(&self) -> anyhow::Result<u64> {
        self.ends.left()
    }

    /// Frames that the wire itself has dropped, where it is one that can tell.
    pub(crate) fn dropped(&self) -> anyhow::Result<u64> {
        self.ends.dropped()
    }

    /// What the interface has counted that frames arrive on.
    pub(crate) fn came(&self) -> anyhow::Result<LinkCounters> {
        self.ends.came()
    }

    /// Sends a load, for so long at most; `netsniff` does, where it is sent from here. `meanwhile` is called again and
    /// again.
    ///
    /// # Errors
    ///
    /// Where the generator cannot be run, does not end, or a signal has ended it.
    pub(crate) fn send(
        &self,
        netsniff: &Path,
        load: &Load,
        most: Duration,
        meanwhile: &mut dyn FnMut(),
    ) -> anyhow::Result<Said> {
        let mut meanwhile = || {
            meanwhile();
            let is_set = self.signal.as_ref().is_some_and(|signal| signal.load(Ordering::Relaxed));
            ensure!(!is_set, "a signal has ended what was sent");
            Ok(())
        };
        self.ends.send(netsniff, load, most, &mut meanwhile)
    }

    /// The slower disk that tools write to, where it has one.
    pub(crate) const fn disk(&self) -> Option<Disk> {
        self.disk
    }

    /// The share of a processor that a capture gets, where it does not get all.
    pub(crate) fn quota(&self) -> Option<f64> {
        self.quota.as_ref().map(Quota::share)
    }

    /// The processors that capture.
    pub(crate) fn processors(&self) -> &[usize] {
        self.processors.numbers()
    }

    /// A directory in memory for scratch files.
    #[must_use]
    pub fn scratch(&self) -> PathBuf {
        scratch(&self.name)
    }

    /// A directory for the files that tools write: in memory, unless the layout has another one.
    pub(crate) fn files(&self) -> &Path {
        &self.files
    }

    /// A command that captures, which does not outlive the bed.
    #[must_use]
    pub fn capture(&self, words: &[String]) -> Command {
        let mut command = self.ends.capture(words);
        self.mark(&mut command);
        command
    }

    /// Marks a command as one of the bed, which does not outlive it.
    pub fn mark<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env(MARK, &self.name)
    }

    /// Takes a process that captures to its share of the processor.
    ///
    /// # Errors
    ///
    /// Where it is gone.
    pub fn restrict(&self, pid: u32) -> anyhow::Result<()> {
        self.quota.as_ref().map_or(Ok(()), |quota| quota.take(pid))
    }
}

/// The processor that sends.
pub const SENDER_CPU: usize = 0;

/// The processor that captures, or the first one that does.
pub const CAPTURE_CPU: usize = 1;

fn scratch(name: &str) -> PathBuf {
    Path::new(MEMORY).join(name)
}
