//! What all commands of the lab have in common.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, bail};
use netsniff_lab::bed::{Layout, Placement};
use netsniff_lab::machine::Machine;
use netsniff_lab::tools::Tool;
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::commands::sizes::Sizes;
use crate::commands::{UsageError, quantity, say};
use crate::summary::number::duration;

/// The shortest and the longest frame that the testbed takes.
const SHORTEST: u32 = 64;
const LONGEST: u32 = 1518;

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
    /// Who pays for receiving
    #[arg(long, value_name = "WHERE", default_value = "rps", value_parser = placement)]
    placement: Placement,
    /// The share of its processor that a capture gets, as a slower host has it
    #[arg(long, value_name = "PERCENT", value_parser = quantity::percentage)]
    quota: Option<f64>,
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

/// A placement by its name.
///
/// # Errors
///
/// A sentence, where there is none.
pub(super) fn placement(text: &str) -> Result<Placement, String> {
    let names = || Placement::ALL.map(Placement::name).join(", ");
    let found = Placement::ALL.into_iter().find(|placement| placement.name() == text);
    found.ok_or_else(|| format!("there are {}", names()))
}

/// How a report begins.
#[derive(Debug, Serialize)]
pub(super) struct Head<'a> {
    netsniff: &'static str,
    command: Vec<String>,
    machine: Machine,
    testbed: Layout,
    left_out: &'a [String],
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
        bounded(&self.sizes)
    }

    /// The testbed.
    pub(super) fn layout(&self) -> Layout {
        Layout { placement: self.placement, quota: self.quota.map(|percent| percent / 100.0) }
    }

    /// How a report of these tools begins.
    pub(super) fn head<'a>(&self, tools: &[Tool], left_out: &'a [String]) -> Head<'a> {
        let programs: Vec<_> = tools.iter().filter_map(|tool| tool.program.clone()).collect();
        Head {
            netsniff: env!("CARGO_PKG_VERSION"),
            command: std::env::args().collect(),
            machine: Machine::here(&programs),
            testbed: self.layout(),
            left_out,
        }
    }

    /// Tells how long so many things will take.
    pub(super) fn tell_plan(&self, number: usize, what: &str, time: Duration, more: &str) {
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

/// Sizes that the testbed takes.
///
/// # Errors
///
/// [`UsageError`] for one that it does not.
pub(super) fn bounded(sizes: &Sizes) -> anyhow::Result<Vec<u32>> {
    let sizes = sizes.as_slice().iter();
    let sizes: Vec<u32> = sizes.map(|&size| u32::try_from(size).unwrap_or(u32::MAX)).collect();
    match sizes.iter().find(|size| !(SHORTEST..=LONGEST).contains(*size)) {
        None => Ok(sizes),
        Some(size) => {
            let said = format!("frames have {SHORTEST} to {LONGEST} bytes here, not {size}");
            Err(UsageError(said).into())
        }
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

/// Writes a file of a report.
///
/// # Errors
///
/// Where it cannot be written, with its name.
pub(super) fn write(directory: &Path, name: &str, content: &str) -> anyhow::Result<()> {
    let path = directory.join(name);
    fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))
}
