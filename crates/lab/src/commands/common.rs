//! What all commands of the lab have in common.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, bail};
use netsniff_console::number::duration;
use netsniff_console::sizes::Sizes;
use netsniff_console::unlinked::create_named;
use netsniff_console::{UsageError, quantity, say};
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::Program;
use super::wire::WireArgs;
use crate::host::machine::Machine;
use crate::host::nic::Nic;
use crate::host::storage::Storage;
use crate::load::Load;
use crate::report::{Report, Section, sections};
use crate::search::sweep::Axis;
use crate::testbed::tap::Tap;
use crate::testbed::{self, Layout, Placement, SENDER_CPU, Sender, Wire};
use crate::tools::{FLAG, Setting, Tool};

/// The shortest and the longest frame that the testbed takes.
const SHORTEST: u32 = 64;
const LONGEST: u32 = 1518;

/// How the testbed is made.
#[derive(Debug, clap::Args)]
pub(super) struct BedArgs {
    /// Who pays for receiving: none, rps, thread, or napi [default: rps]
    #[arg(long, value_name = "WHERE", value_parser = Placement::parse)]
    placement: Option<Placement>,
    /// The share of its processor that a capture gets, as a slower host has it
    #[arg(long, value_name = "PERCENT", value_parser = quota)]
    quota: Option<Quota>,
    /// A directory for what tools write, instead of memory: a disk is measured, too; nothing stays in it
    #[arg(long, value_name = "DIR", value_parser = directory)]
    files: Option<PathBuf>,
    /// Another value of the testbed: placement, processors (how many capture and receive, or all), receivers (how many
    /// receive, if others), quota, neighbours (busy processes on each processor that captures), queues, a tap with losses that are planted before, at and
    /// behind it (loss-before=1%, loss-at=1%, loss-behind=1%), a slower disk for files (disk=20M, disk-stall=500ms/2s), or a
    /// setting of the kernel, as net.core.netdev_max_backlog=100; it is put back; may be repeated
    #[arg(long, value_name = "NAME=VALUES", value_parser = axis)]
    pub(super) host: Vec<Axis>,
}

/// A share of a processor; `None` for all of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quota(pub(super) Option<f64>);

/// A share of a processor, in percent.
pub(super) fn quota(text: &str) -> Result<Quota, String> {
    crate::host::quota::parse(text).map(Quota)
}

/// A directory that is there, by its whole name.
pub(super) fn directory(text: &str) -> Result<PathBuf, String> {
    let path = fs::canonicalize(text).map_err(|error| error.to_string())?;
    if path.is_dir() { Ok(path) } else { Err("it is no directory".to_owned()) }
}

/// Options of all commands.
#[derive(Debug, clap::Args)]
pub(super) struct CommonArgs {
    /// What captures, of the list that --tools list prints
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_values = ["record", "tcpdump-default"])]
    pub(super) tools: Vec<String>,
    /// Another tool: its name, and its command with IFACE and FILE in it, a capture file that it writes; may be
    /// repeated
    #[arg(long, value_name = "NAME=COMMAND", value_parser = Tool::of_command)]
    command: Vec<Tool>,
    /// Bytes of frames, frame check sequence included: a size, a range from:to:step, or several with commas between
    /// them
    #[arg(long, value_name = "BYTES", default_value = "64,512,1518")]
    sizes: Sizes,
    #[command(flatten)]
    pub(super) bed: BedArgs,
    #[command(flatten)]
    wire: WireArgs,
    /// Another option of `netsniff generate`, as burst=1000 or payload; may be repeated
    #[arg(long, value_name = "OPTION=VALUES", value_parser = axis)]
    pub(super) send: Vec<Axis>,
    /// Time that all of it may take; what would exceed it is not begun
    #[arg(long, value_name = "TIME", value_parser = quantity::interval)]
    pub(super) budget: Option<Duration>,
    /// A directory for the report
    #[arg(short, long, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
    /// Print nothing but the table
    #[arg(short, long)]
    pub(super) quiet: bool,
}

/// An option and its values.
pub(super) fn axis(text: &str) -> Result<Axis, String> {
    let (name, values) = text.split_once('=').unwrap_or((text, FLAG));
    let values = values.split(',').map(str::to_owned).collect();
    Ok(Axis { name: name.trim_start_matches('-').to_owned(), values })
}

/// Options of which each has one value.
///
/// # Errors
///
/// [`UsageError`] where one has several.
pub(super) fn single(axes: &[Axis]) -> Result<Vec<Setting>, UsageError> {
    let setting = |Axis { name, values }: &Axis| match &values[..] {
        [value] => Ok(Setting { name: name.clone(), value: value.clone() }),
        _ => Err(UsageError(format!("{name} has one value here; `lab sweep` takes several"))),
    };
    axes.iter().map(setting).collect()
}

/// Whether our own programs take their arguments: a generator's, and those of our tools.
///
/// # Errors
///
/// [`UsageError`] with what they say.
pub fn check(load: &Load, tool: Option<&Tool>, program: Program) -> Result<(), UsageError> {
    let refuse = |arguments: &[String]| {
        (program.refusal)(arguments).map_or(Ok(()), |said| Err(UsageError(said)))
    };
    refuse(&load.arguments("tx0", SENDER_CPU))?;
    match tool.filter(|tool| tool.program.is_none()) {
        Some(tool) => refuse(&tool.words(Path::new("netsniff"), "rx0", Path::new("/"))[1..]),
        None => Ok(()),
    }
}

/// These sizes of frames.
///
/// # Errors
///
/// [`UsageError`] for one that the testbed does not take.
pub(super) fn frames_fit(sizes: &[usize]) -> anyhow::Result<Vec<u32>> {
    let sizes: Vec<u32> =
        sizes.iter().map(|&size| u32::try_from(size).unwrap_or(u32::MAX)).collect();
    match sizes.iter().find(|size| !(SHORTEST..=LONGEST).contains(*size)) {
        None => Ok(sizes),
        Some(size) => {
            let said = format!("frames have {SHORTEST} to {LONGEST} bytes here, not {size}");
            Err(UsageError(said).into())
        }
    }
}

/// How a report begins.
#[derive(Debug, Serialize)]
pub(super) struct Head<'a> {
    netsniff: &'static str,
    /// Of its source; `None` where git did not know when it was built.
    revision: Option<&'static str>,
    command: Vec<String>,
    machine: Machine,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<Sender>,
    #[serde(skip_serializing_if = "Option::is_none")]
    testbed: Option<Layout>,
    left_out: &'a [String],
}

impl Head<'_> {
    /// What could not be measured, and why.
    pub(super) const fn left_out(&self) -> &[String] {
        self.left_out
    }

    /// A page of these sections.
    pub(super) fn page(&self, title: &str, lead: &str, sections: Vec<Section>) -> Report {
        let revision = self.revision.map_or("unavailable".to_owned(), str::to_owned);
        let version = ("netsniff".to_owned(), self.netsniff.to_owned());
        let version = [version, ("revision".to_owned(), revision)];
        let facts = sections::facts(&self.command, &self.machine, self.testbed.as_ref());
        let sender = self.sender.iter().flat_map(sections::sender);
        let left_out = self.left_out.iter().map(|what| ("left out".to_owned(), what.clone()));
        Report {
            title: title.to_owned(),
            lead: vec![lead.to_owned()],
            facts: version.into_iter().chain(facts).chain(sender).chain(left_out).collect(),
            sections,
        }
    }
}

/// How a report of these tools begins, with the testbed, where one was used; nothing is known of its interfaces yet.
pub(super) fn head<'a>(
    (tools, left_out): (&[Tool], &'a [String]),
    testbed: impl Into<Option<Layout>>,
    program: Program,
) -> Head<'a> {
    let programs: Vec<_> = tools.iter().filter_map(|tool| tool.program.clone()).collect();
    let testbed = testbed.into();
    let files = testbed.as_ref().and_then(|layout| layout.files.as_deref()).map(Storage::of);
    Head {
        netsniff: env!("CARGO_PKG_VERSION"),
        command: (program.words)(),
        revision: program.revision,
        machine: Machine { files, ..Machine::here(&programs) },
        sender: None,
        testbed,
        left_out,
    }
}

impl Head<'_> {
    /// The same with what other programs say of their version, and where files are written.
    pub(super) fn with_programs(
        mut self,
        versions: Vec<(String, String)>,
        files: Option<Storage>,
    ) -> Self {
        self.machine.versions = versions;
        self.machine.files = files;
        self
    }

    /// The same with these interfaces.
    pub(super) fn with_interfaces(mut self, interfaces: Vec<Nic>) -> Self {
        self.machine.interfaces = interfaces;
        self
    }

    /// The same with the interfaces of these testbeds, each looked at in one that is made for that; none of those that
    /// cannot be made, which is said where they are needed. Where they differ, names tell of which testbed they are.
    pub(super) fn of_interfaces(mut self, layouts: &[Layout]) -> Self {
        // What else differs changes no interface.
        let shape = |layout: &Layout| Layout {
            placement: layout.placement,
            queues: layout.queues,
            tap: layout.tap.map(|_| Tap::default()),
            wire: layout.wire.clone(),
            ..Layout::default()
        };
        let mut shapes: Vec<Layout> = Vec::new();
        for shape in layouts.iter().map(shape) {
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
        let interfaces = &mut self.machine.interfaces;
        for shape in shapes {
            let all =
                super::programs().and_then(|(_, warden)| testbed::interfaces(&warden, &shape));
            for mut nic in all.unwrap_or_default() {
                if interfaces.contains(&nic) {
                    continue;
                }
                if interfaces.iter().any(|other| other.interface == nic.interface) {
                    nic.interface +=
                        &format!(" ({}, {} queues)", shape.placement.name(), shape.queues);
                }
                interfaces.push(nic);
            }
        }
        self
    }
}

impl BedArgs {
    /// Whether the user says where frames are received.
    pub(super) const fn is_placed(&self) -> bool {
        self.placement.is_some()
    }

    /// The testbed, but for what --host says.
    pub(super) fn layout(&self) -> Layout {
        let quota = self.quota.and_then(|Quota(share)| share);
        let files = self.files.clone();
        let placement = self.placement.unwrap_or_default();
        Layout { placement, quota, files, ..Layout::default() }
    }

    /// The testbed, where --host says one value of each.
    ///
    /// # Errors
    ///
    /// [`UsageError`] for several values, and for what no testbed has.
    pub(super) fn single(&self) -> Result<Layout, UsageError> {
        self.layout().with(&single(&self.host)?).map_err(UsageError)
    }
}

impl CommonArgs {
    /// The tools, and what is said of those that are not here.
    ///
    /// # Errors
    ///
    /// [`UsageError`] for an unknown one; none that is installed.
    pub(super) fn chosen(&self) -> anyhow::Result<(Vec<Tool>, Vec<String>)> {
        let all = Tool::all();
        let mut tools = Vec::new();
        for name in &self.tools {
            let Some(tool) = all.iter().find(|tool| tool.name == *name) else {
                let names: Vec<_> = all.iter().map(|tool| tool.name.as_str()).collect();
                let said = format!("there is no tool {name}; there are {}", names.join(", "));
                return Err(UsageError(said).into());
            };
            tools.push(tool.clone());
        }
        tools.extend(self.command.iter().cloned());
        let (tools, missing): (Vec<_>, Vec<_>) = tools.into_iter().partition(Tool::is_here);
        let left_out: Vec<_> =
            missing.iter().map(|tool| format!("{}: not installed", tool.name)).collect();
        if tools.is_empty() {
            bail!("none of the tools is installed");
        }
        if !self.quiet {
            left_out.iter().for_each(|what| say(&format!("left out: {what}")));
        }
        Ok((tools, left_out))
    }

    /// The sizes.
    ///
    /// # Errors
    ///
    /// [`UsageError`] for one that the testbed does not take.
    pub(super) fn sizes(&self) -> anyhow::Result<Vec<u32>> {
        frames_fit(self.sizes.as_slice())
    }

    /// The testbed, but for what --host says.
    ///
    /// # Errors
    ///
    /// [`UsageError`] for what is no matter of a wire between two machines.
    pub(super) fn layout(&self) -> Result<Layout, UsageError> {
        let made = self.bed.layout();
        let found = self.wire.layout(self.bed.placement.is_some())?;
        Ok(found.map(|found| Layout { quota: made.quota, ..found }).unwrap_or(made))
    }

    /// How a report of these tools begins, with the machine that sends, if that is another one.
    ///
    /// # Errors
    ///
    /// Where that machine cannot send.
    pub(super) fn head<'a>(
        &self,
        (tools, left_out): (&[Tool], &'a [String]),
        testbed: Layout,
        program: Program,
    ) -> anyhow::Result<Head<'a>> {
        let sender = testbed.wire.as_ref().map(Wire::look).transpose()?;
        Ok(Head { sender, ..head((tools, left_out), testbed, program) })
    }

    /// Tells how long so many things will take.
    pub(super) fn print_plan(&self, number: usize, what: &str, time: Duration, more: &str) {
        if self.quiet {
            return;
        }
        let plural = if number == 1 {
            ""
        } else if what.ends_with('h') {
            "es"
        } else {
            "s"
        };
        let budget = match self.budget {
            None => String::new(),
            Some(budget) => format!(", and --budget is {} s", budget.as_secs_f64()),
        };
        let time = in_words(time);
        say(&format!(
            "{number} {what}{plural}, about {time} in all where nothing is repeated{more}{budget}"
        ));
    }
}

/// A time for people.
pub(super) fn in_words(time: Duration) -> String {
    duration(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// Set by a signal.
///
/// # Errors
///
/// Where signals cannot be caught.
pub(super) fn signal() -> anyhow::Result<Arc<AtomicBool>> {
    let signal = Arc::new(AtomicBool::new(false));
    for number in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(number, Arc::clone(&signal)).context("cannot catch signals")?;
    }
    Ok(signal)
}

/// Writes a file of a report, whole or not at all: what goes on later reads it.
///
/// # Errors
///
/// Where it cannot be written, with its name.
pub(super) fn write(directory: &Path, name: &str, content: &str) -> anyhow::Result<()> {
    let (path, new) = (directory.join(name), directory.join(format!(".{name}.new")));
    let written = create_named(&new)
        .and_then(|mut file| file.write_all(content.as_bytes()))
        .and_then(|()| fs::rename(&new, &path));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Pictures by themselves, for other pages than ours.
const PLOTS: &str = "plots";

/// Writes the page of a report, as `NAME.html`, and its plots beside it, as `plots/NAME-TITLE-light.svg` and `-dark.svg`.
///
/// # Errors
///
/// Where one of them cannot be written, with its name.
pub(super) fn write_page(directory: &Path, name: &str, report: &Report) -> anyhow::Result<()> {
    write(directory, &format!("{name}.html"), &report.html())?;
    let plots = directory.join(PLOTS);
    let pictures = report.pictures();
    if !pictures.is_empty() {
        fs::create_dir_all(&plots).with_context(|| format!("cannot make {}", plots.display()))?;
    }
    pictures.iter().try_for_each(|(title, svg)| write(&plots, &format!("{name}-{title}"), svg))
}

#[cfg(test)]
mod tests {
    use crate::report::{Chart, Part, Plot, Waterfall};

    use super::*;

    #[test]
    fn plots_lie_beside_their_page() {
        let name = format!("netsniff-page-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let mut report = Report::default();
        write_page(&directory, "empty", &report).unwrap();
        assert!(!directory.join(PLOTS).exists(), "without plots there is no directory for them");
        let plot = Plot::new("Loss, by rate", "", Chart::Waterfall(Waterfall::default()));
        report.sections.push(Section { title: String::new(), parts: vec![Part::Plot(plot)] });
        write_page(&directory, "sweep", &report).unwrap();
        let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
        assert!(read("sweep.html").contains("<figure>"));
        for page in ["light", "dark"] {
            let svg = read(&format!("plots/sweep-loss-by-rate-{page}.svg"));
            assert!(svg.starts_with("<svg ") && svg.contains("xmlns="), "{svg}");
        }
        fs::remove_dir_all(directory).unwrap();
    }
}
