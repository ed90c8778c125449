//! The testbed: a wire between who sends and who captures, and what is known of its two ends.
//!
//! Most are made: two network namespaces joined by a veth pair (`pair`). One may also be there, between two machines, of which
//! the other one sends (`line`); nothing of it is changed. What a run needs of either is `Ends`.
//!
//! Who makes a bed starts a warden (`warden`): a process of its own that waits until its standard input is closed, which
//! happens however its maker ends, and then kills what still runs and removes what was made. So nothing is left behind
//! after a signal, not even SIGKILL. Where the warden is killed, too, the next bed removes what it finds without a maker.

pub mod tap;

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
use crate::host::group::Group;
use crate::host::memory::{Bound, Pressure};
use crate::host::neighbour::Neighbours;
use crate::host::nic::Nic;
use crate::host::process;
use crate::host::quota;
use crate::host::storage;
use crate::load::Load;
use crate::stop::Stop;

mod cleanup;
mod layout;
mod line;
mod pair;
mod processors;

use self::cleanup::CleanupProcess;
pub use self::cleanup::watch;
pub use self::layout::{Layout, MOST_QUEUES, Placement};
pub use self::line::{Sender, Wire};
pub(crate) use self::processors::Processors;
pub use crate::remote::Destination;

/// Where scratch files are: in memory, so that no disk is measured.
const MEMORY: &str = "/dev/shm";

/// What the environment of every process of a bed has, with the bed's name.
const MARK: &str = "NETSNIFF_LAB";

/// What a run needs of the two ends of a wire.
trait WireEnds: fmt::Debug + Send {
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
    ) -> anyhow::Result<GeneratorOutput>;

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
pub(crate) struct GeneratorOutput {
    pub(crate) report: String,
    pub(crate) errors: String,
}

/// How often something is done meanwhile.
const TICK: Duration = Duration::from_millis(100);

/// A bed, which goes with this value.
#[derive(Debug)]
pub struct Testbed {
    name: String,
    /// What bounds the share of a processor, and that.
    quota: Option<(Group, f64)>,
    memory: Option<Bound>,
    _neighbours: Neighbours,
    disk: Option<Disk>,
    /// Where tools write their files.
    files: PathBuf,
    processors: Processors,
    /// What is set by a signal after which nothing more is sent.
    signal: Option<Arc<AtomicBool>>,
    // These end before the warden looks what is left.
    ends: Box<dyn WireEnds>,
    _warden: CleanupProcess,
}

impl Testbed {
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
        for number in [layout.processors, layout.receiving()] {
            processors::parse(&number.to_string(), there).map_err(anyhow::Error::msg)?;
        }
        let processors = Processors::of(layout.processors, there);
        cleanup::remove_orphans();
        let name = format!("{}{}", cleanup::PREFIX, process::Identity::of_self()?);
        let watching = CleanupProcess::start(warden, &name)?;
        let scratch = scratch(&name);
        fs::create_dir(&scratch).context("cannot make a directory for scratch files")?;
        // Of two that begin at the same time each sees the other one here.
        if let Some(maker) = cleanup::others(&name) {
            bail!(
                "another lab measures on this machine (process {maker}), and both would measure each other: begin once it \
                 has ended"
            );
        }
        let files = match &layout.files {
            Some(directory) => storage::make(&scratch, directory, &name)?,
            None => scratch.clone(),
        };
        let ends: Box<dyn WireEnds> = match &layout.wire {
            Some(wire) => Box::new(line::Line::connect(wire, &name, &processors)?.0),
            None => Box::new(pair::Pair::make(&name, &scratch, layout, &processors)?),
        };
        let quota = |share| quota::make(&name, share, &scratch).map(|group| (group, share));
        let quota = layout.quota.map(quota).transpose()?;
        let memory = |bytes| Bound::make(&name, bytes, &scratch);
        let memory = layout.memory.map(memory).transpose()?;
        let mark = |command: &mut Command| {
            command.env(MARK, &name);
        };
        let neighbours = Neighbours::start(layout.neighbours, processors.numbers(), mark)?;
        Ok(Self {
            name,
            quota,
            memory,
            _neighbours: neighbours,
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

    /// The name of the namespace that sends, where the bed has one.
    #[must_use]
    pub fn sender(&self) -> String {
        pair::sender(&self.name)
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
    ) -> anyhow::Result<GeneratorOutput> {
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
        self.quota.as_ref().map(|(_, share)| *share)
    }

    /// What bounds the memory of a capture, where something does.
    pub(crate) const fn memory(&self) -> Option<&Bound> {
        self.memory.as_ref()
    }

    /// What has happened where that is bounded; nothing where it is not.
    ///
    /// # Errors
    ///
    /// Where the kernel does not tell.
    pub(crate) fn pressure(&self) -> anyhow::Result<Pressure> {
        self.memory.as_ref().map_or_else(|| Ok(Pressure::default()), Bound::pressure)
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

    /// Takes a process that captures to its share of the processor, and to the memory that it may have.
    ///
    /// # Errors
    ///
    /// Where it is gone.
    pub fn restrict(&self, pid: u32) -> anyhow::Result<()> {
        self.quota.as_ref().map_or(Ok(()), |(group, _)| group.take(pid))?;
        self.memory.as_ref().map_or(Ok(()), |bound| bound.take(pid))
    }
}

/// The interfaces of a testbed: of one that is made for that, or of the wire that is there.
///
/// # Errors
///
/// As [`Testbed::make`].
pub fn interfaces(warden: &[String], layout: &Layout) -> anyhow::Result<Vec<Nic>> {
    match &layout.wire {
        Some(wire) => Ok(Nic::look(&wire.interface).into_iter().collect()),
        None => Ok(Testbed::make(warden, layout)?.nics()),
    }
}

/// The processor that sends.
pub const SENDER_CPU: usize = 0;

/// The processor that captures, or the first one that does.
pub const CAPTURE_CPU: usize = 1;

fn scratch(name: &str) -> PathBuf {
    Path::new(MEMORY).join(name)
}
