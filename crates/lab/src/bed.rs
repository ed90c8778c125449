//! Two network namespaces joined by a veth pair: `tx0` sends, `rx0` receives.
//!
//! Who makes a bed starts a warden: a process of its own that waits until its standard input is closed, which happens
//! however its maker ends, and then kills what still runs in the namespaces and removes them. So nothing is left behind
//! after a signal, not even SIGKILL. Where the warden is killed, too, the next bed removes what it finds without a maker.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::disk::Disk;
use crate::process;
use crate::quota::{self, Quota};
use crate::storage;
use crate::sysctl;
use crate::tap::{self, Tap};
use crate::tools::{Setting, Tool};

/// What all names of beds begin with.
const PREFIX: &str = "nslab-";

/// Where ip-netns(8) keeps names.
const NAMES: &str = "/run/netns";

/// Where scratch files are: in memory, so that no disk is measured.
const MEMORY: &str = "/dev/shm";

/// How long a killed process may take to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

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
}

impl Placement {
    /// THE list.
    pub const ALL: [Self; 4] = [Self::None, Self::Rps, Self::Thread, Self::Napi];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Rps => "rps",
            Self::Thread => "thread",
            Self::Napi => "napi",
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
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            placement: Placement::default(),
            quota: None,
            queues: 1,
            sysctls: Vec::new(),
            tap: None,
            disk: None,
            files: None,
        }
    }
}

/// Queues that an interface may have.
pub const MOST_QUEUES: u32 = 64;

impl Layout {
    /// The same with other values: `placement`, `quota` in percent, `queues`, `tap` and the losses planted at it
    /// (`loss-before`, `loss-at`, `loss-behind`, in percent), `disk` and `disk-stall`, settings of the kernel by their names,
    /// which have dots, and `profile` for several of these (`default`, `skopko64`).
    ///
    /// # Errors
    ///
    /// A sentence, where there is no such name or value.
    pub fn with(&self, settings: &[Setting]) -> Result<Self, String> {
        let mut layout = self.clone();
        for Setting { name, value } in settings {
            match name.as_str() {
                "placement" => layout.placement = Placement::parse(value)?,
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
                            "a testbed has no {name:?}: it has placement, quota, queues, tap, loss-before, loss-at, \
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

/// A bed, which goes with this value.
#[derive(Debug)]
pub struct Bed {
    name: String,
    quota: Option<Quota>,
    tap: Option<Tap>,
    disk: Option<Disk>,
    /// Where tools write their files.
    files: PathBuf,
    /// Who removes it, once this is closed.
    warden: Option<(Child, ChildStdin)>,
}

impl Bed {
    /// Makes a bed, and removes those that were left behind. `warden` is a program that calls [`watch`] with its last
    /// argument, which the name of the bed is appended to.
    ///
    /// # Errors
    ///
    /// Without the right, ip(8), or two processors; and beside another one, whose runs and this one's would be in each
    /// other's way.
    pub fn make(warden: &[String], layout: &Layout) -> anyhow::Result<Self> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        ensure!(processors >= 2, "a sender and a receiver need a processor each, and there is one");
        remove_orphans();
        let name = format!("{PREFIX}{}", process::Identity::of_self()?);
        let warden = Some(start_warden(warden, &name)?);
        let (files, tap, disk) = (scratch(&name), layout.tap, layout.disk);
        let mut bed = Self { warden, name, quota: None, tap, disk, files };
        fs::create_dir(bed.scratch()).context("cannot make a directory for scratch files")?;
        // Of two that begin at the same time each sees the other one here.
        if let Some(maker) = others(&bed.name) {
            bail!(
                "another lab measures on this machine (process {maker}), and both would measure each other: begin once it \
                 has ended"
            );
        }
        if let Some(directory) = &layout.files {
            bed.files = storage::make(&bed.scratch(), directory, &bed.name)?;
        }
        let queues = layout.queues.to_string();
        bed.build(&queues)?;
        if let Some(tap) = &layout.tap {
            tap.build(&bed.receiver(), &queues)?;
        }
        for setting in &layout.sysctls {
            sysctl::change(&bed.scratch(), &bed.receiver(), setting)?;
        }
        bed.place(layout)?;
        bed.quota = layout.quota.map(|share| Quota::make(&bed.name, share)).transpose()?;
        Ok(bed)
    }

    /// The namespace that sends.
    #[must_use]
    pub fn sender(&self) -> String {
        format!("{}-tx", self.name)
    }

    /// The namespace that receives.
    #[must_use]
    pub fn receiver(&self) -> String {
        format!("{}-rx", self.name)
    }

    /// The interface of the namespace that receives which a tool captures on.
    #[must_use]
    pub const fn interface(&self) -> &'static str {
        if self.tap.is_some() { tap::MONITOR } else { "rx0" }
    }

    /// What reads the counts of its tap, where it has one.
    pub(crate) fn meter(&self) -> anyhow::Result<Option<tap::Meter>> {
        self.tap.map(|tap| tap::Meter::open(&self.receiver(), tap)).transpose()
    }

    /// The slower disk that tools write to, where it has one.
    pub(crate) const fn disk(&self) -> Option<Disk> {
        self.disk
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

    /// Takes a process that captures to its share of the processor.
    ///
    /// # Errors
    ///
    /// Where it is gone.
    pub fn restrict(&self, pid: u32) -> anyhow::Result<()> {
        self.quota.as_ref().map_or(Ok(()), |quota| quota.take(pid))
    }

    /// A command in a namespace, on a processor.
    #[must_use]
    pub fn command(namespace: &str, processor: usize, words: &[String]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace, "taskset", "-c", &processor.to_string()]);
        command.args(words);
        command
    }

    fn build(&self, number: &str) -> anyhow::Result<()> {
        let (tx, rx) = (&self.sender(), &self.receiver());
        for namespace in [tx, rx] {
            ip(&["netns", "add", namespace])?;
            let off = "net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1";
            inside(namespace, &format!("sysctl -qw {off} || true"))?;
        }
        let queues = ["numtxqueues", number, "numrxqueues", number];
        let (one, other) = (["link", "add", "name", "tx0"], ["name", "rx0", "netns", rx]);
        let pair = [&one[..], &["netns", tx], &queues, &["type", "veth", "peer"], &other, &queues];
        ip(&pair.concat())?;
        for (namespace, name, address) in
            [(tx, "tx0", "02:00:00:00:00:0a"), (rx, "rx0", "02:00:00:00:00:0b")]
        {
            raise(namespace, name, &["address", address])?;
        }
        Ok(())
    }

    fn place(&self, layout: &Layout) -> anyhow::Result<()> {
        let rx = &self.receiver();
        // A veth has a NAPI only where it merges packets; ours are of different flows.
        let napi = "ethtool -K rx0 gro on";
        match layout.placement {
            Placement::None => Ok(()),
            Placement::Napi => inside(rx, napi),
            Placement::Rps => {
                let mask = format!("{:x}", 1 << CAPTURE_CPU);
                let each = "for queue in /sys/class/net/rx0/queues/rx-*";
                inside(rx, &format!("{each}; do echo {mask} >$queue/rps_cpus || exit 1; done"))
            }
            Placement::Thread => {
                inside(rx, &format!("{napi} && echo 1 >/sys/class/net/rx0/threaded"))?;
                let end = Instant::now() + PATIENCE;
                while process::pin_newest("napi/rx0-", layout.queues as usize, CAPTURE_CPU)?
                    < layout.queues as usize
                {
                    ensure!(Instant::now() < end, "rx0 has no NAPI thread for each queue");
                    thread::sleep(Duration::from_millis(20));
                }
                Ok(())
            }
        }
    }
}

/// The processor that sends.
pub const SENDER_CPU: usize = 0;

/// The processor that captures.
pub const CAPTURE_CPU: usize = 1;

impl Drop for Bed {
    fn drop(&mut self) {
        if let Some((mut child, input)) = self.warden.take() {
            drop(input);
            let _ = child.wait();
        }
    }
}

fn scratch(name: &str) -> PathBuf {
    Path::new(MEMORY).join(name)
}

fn start_warden(words: &[String], name: &str) -> anyhow::Result<(Child, ChildStdin)> {
    use std::os::unix::process::CommandExt as _;
    let (program, arguments) = words.split_first().context("there is no warden")?;
    let mut child = Command::new(program)
        .args(arguments)
        .arg(name)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        // Signals of the terminal are not for it.
        .process_group(0)
        .spawn()
        .context("cannot start the process that removes the testbed")?;
    let input = child.stdin.take().context("a pipe was asked for")?;
    Ok((child, input))
}

/// Waits until standard input is closed, and then removes the bed of this name.
///
/// # Errors
///
/// Where something of it stays.
pub fn watch(name: &str) -> anyhow::Result<()> {
    ensure!(name.starts_with(PREFIX), "{name} is no testbed");
    // Nothing is ever written to it.
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    remove(name)
}

/// What there is of beds that this user made: names, and their makers.
fn traces() -> impl Iterator<Item = (String, process::Identity)> {
    let places = [NAMES, MEMORY].into_iter().chain(quota::places());
    let entries = places.filter_map(|at| fs::read_dir(at).ok()).flatten().flatten();
    entries.filter(|entry| is_ours(&entry.path())).filter_map(|entry| {
        let file = entry.file_name().to_string_lossy().into_owned();
        let name = file.trim_end_matches("-tx").trim_end_matches("-rx");
        let maker = name.strip_prefix(PREFIX).and_then(process::Identity::parse)?;
        Some((name.to_owned(), maker))
    })
}

/// Removes beds whose makers are gone.
fn remove_orphans() {
    for (name, _) in traces().filter(|(_, maker)| !maker.is_alive()) {
        // What cannot be removed is no reason not to measure.
        let _ = remove(&name);
    }
}

/// The process of another bed.
fn others(own: &str) -> Option<u32> {
    let mut others = traces().filter(|(name, maker)| name != own && maker.is_alive());
    others.next().map(|(_, maker)| maker.pid())
}

/// Whether it was made by this user: anybody may make files where scratch files are, and what is in those of a bed is
/// believed.
fn is_ours(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let made = fs::symlink_metadata(path);
    made.is_ok_and(|made| made.uid() == rustix::process::geteuid().as_raw() && !made.is_symlink())
}

/// Kills what runs in the namespaces of a bed, and removes them and its files.
fn remove(name: &str) -> anyhow::Result<()> {
    let scratch = scratch(name);
    // Where there is one of somebody else, nothing of it is believed.
    let restored = if is_ours(&scratch) { sysctl::restore(&scratch) } else { Ok(()) };
    let mut is_restored = restored.is_ok();
    let mut result = restored;
    for namespace in [format!("{name}-tx"), format!("{name}-rx")] {
        if Path::new(NAMES).join(&namespace).exists() {
            let removed = empty(&namespace).and_then(|()| ip(&["netns", "del", &namespace]));
            result = result.and(removed);
        }
    }
    result = result.and(quota::remove(name));
    if is_ours(&scratch) {
        let removed = storage::remove(&scratch, name, is_ours);
        is_restored &= removed.is_ok();
        result = result.and(removed);
    }
    if !is_restored {
        // Who comes next tries again.
        return result;
    }
    match fs::remove_dir_all(scratch) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            result.and(Err(error).context("cannot remove scratch files"))
        }
        _ => result,
    }
}

/// Kills what runs in a namespace.
fn empty(namespace: &str) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let out = Command::new("ip").args(["netns", "pids", namespace]).output()?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let pids: Vec<_> = text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
        if pids.is_empty() {
            return Ok(());
        }
        ensure!(Instant::now() < end, "processes in {namespace} do not end: {text}");
        for pid in pids.into_iter().filter_map(Pid::from_raw) {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Sets an interface up, with more settings of ip-link(8), so that frames cross it as they are made and no others do.
pub(crate) fn raise(namespace: &str, name: &str, more: &[&str]) -> anyhow::Result<()> {
    let set = ["-n", namespace, "link", "set", "dev", name, "arp", "off"];
    ip(&[&set[..], more, &["up"]].concat())?;
    // Not every kernel has each of these.
    let off = "for what in tso gso gro sg tx rx txvlan rxvlan; do ethtool -K";
    inside(namespace, &format!("{off} {name} $what off >/dev/null 2>&1 || true; done"))
}

pub(crate) fn ip(arguments: &[&str]) -> anyhow::Result<()> {
    let out = Command::new("ip").args(arguments).output();
    let out = out.context("cannot run ip(8), of iproute2, which makes the testbed")?;
    if !out.status.success() {
        let why = String::from_utf8_lossy(&out.stderr).trim().to_owned();
        bail!("the testbed cannot be made: ip {}: {why}", arguments.join(" "));
    }
    Ok(())
}

/// Runs a line of shell in a namespace.
pub(crate) fn inside(namespace: &str, line: &str) -> anyhow::Result<()> {
    ip(&["netns", "exec", namespace, "sh", "-c", line])
}
