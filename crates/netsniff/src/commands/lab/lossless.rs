//! `netsniff lab lossless`: the highest rate without loss.

use std::fs;
use std::io::stdout;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, bail};
use netsniff_lab::bed::{Bed, Placement};
use netsniff_lab::lossless::{Cell, Step, measure, planned};
use netsniff_lab::machine::Machine;
use netsniff_lab::search::Goal;
use netsniff_lab::stop::Stop;
use netsniff_lab::tools::Tool;
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::table;
use crate::commands::{DONE, FAILED, UsageError, print, quantity, say};
use crate::summary::number::duration;

/// The highest rate at which nothing is lost, for tools and sizes of frames
///
/// Captured is what was sent, and nothing was dropped: short runs steer to the rate, three long ones confirm it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff lab lossless\n  \
    netsniff lab lossless --tools record,tcpdump,dumpcap --sizes 64,512,1518 -o report\n  \
    netsniff lab lossless --command 'mine=/opt/mine -i IFACE -w FILE' --budget 10m\n\n\
    Exit code: 0 fine; 1 failed, or ended before all was measured; 2 wrong usage")]
pub(super) struct LosslessArgs {
    /// What captures, of the list that --tools list prints
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_values = ["record", "tcpdump-default"])]
    tools: Vec<String>,
    /// Another tool: its name, and its command with IFACE and FILE in it, a capture file that it writes; may be
    /// repeated
    #[arg(long, value_name = "NAME=COMMAND", value_parser = Tool::of_command)]
    command: Vec<Tool>,
    /// Bytes of frames, frame check sequence included
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values = ["64", "512", "1518"],
        value_parser = clap::value_parser!(u32).range(64..=1518))]
    sizes: Vec<u32>,
    /// Who pays for receiving
    #[arg(long, value_name = "WHERE", default_value = "rps", value_parser = placement)]
    placement: Placement,
    /// Time that all of it may take; what would exceed it is not begun
    #[arg(long, value_name = "TIME", value_parser = quantity::interval)]
    budget: Option<Duration>,
    /// A new directory for the report: lossless.json and lossless.csv with every run
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print nothing but the table
    #[arg(short, long)]
    quiet: bool,
}

fn placement(text: &str) -> Result<Placement, String> {
    let names = || Placement::ALL.map(Placement::name).join(", ");
    let found = Placement::ALL.into_iter().find(|placement| placement.name() == text);
    found.ok_or_else(|| format!("there are {}", names()))
}

/// All that was measured.
#[derive(Debug, Serialize)]
struct Report<'a> {
    netsniff: &'static str,
    command: Vec<String>,
    machine: &'a Machine,
    placement: Placement,
    left_out: &'a [String],
    cells: &'a [Cell],
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], and whatever prevents a testbed or a run.
pub(super) fn run(args: &LosslessArgs) -> anyhow::Result<u8> {
    if args.tools == ["list"] {
        print(stdout(), &table::tools(&Tool::all())).context("cannot print the list")?;
        return Ok(DONE);
    }
    let (tools, left_out) = args.chosen()?;
    let signal = Arc::new(AtomicBool::new(false));
    for number in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(number, Arc::clone(&signal)).context("cannot catch signals")?;
    }
    if let Some(directory) = &args.output {
        fs::create_dir(directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
    }
    let (program, warden) = super::programs()?;
    let machine =
        Machine::here(&tools.iter().filter_map(|tool| tool.program.clone()).collect::<Vec<_>>());
    let goal = Goal::default();
    let pairs: Vec<_> =
        args.sizes.iter().flat_map(|size| tools.iter().map(move |tool| (tool, *size))).collect();
    args.tell_plan(&pairs, &goal, &left_out);
    let stop = Stop::new(&signal, args.budget);
    let bed = Bed::make(&warden, args.placement)?;
    let mut cells = Vec::new();
    for (number, pair) in pairs.iter().enumerate() {
        let mut tell = |step: &Step| {
            if !args.quiet {
                say(&format!("{} of {}: {}", number + 1, pairs.len(), table::step(step)));
            }
        };
        cells.push(measure(&bed, &program, *pair, &goal, &stop, &mut tell)?);
        if stop.is_set() {
            break;
        }
    }
    drop(bed);
    let command = std::env::args().collect();
    let (netsniff, placement, left_out) =
        (env!("CARGO_PKG_VERSION"), args.placement, &left_out[..]);
    let report =
        Report { netsniff, command, machine: &machine, placement, left_out, cells: &cells };
    args.write(&report)?;
    print(stdout(), &table::cells(&cells)).context("cannot print the table")?;
    let is_whole = cells.len() == pairs.len() && cells.iter().all(|cell| cell.ended.is_none());
    Ok(if is_whole { DONE } else { FAILED })
}

impl LosslessArgs {
    /// The tools, and what is said of those that are not here.
    fn chosen(&self) -> anyhow::Result<(Vec<Tool>, Vec<String>)> {
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
        let left_out = missing.iter().map(|tool| format!("{}: not installed", tool.name)).collect();
        if tools.is_empty() {
            bail!("none of the tools is installed");
        }
        Ok((tools, left_out))
    }

    fn tell_plan(&self, pairs: &[(&Tool, u32)], goal: &Goal, left_out: &[String]) {
        if self.quiet {
            return;
        }
        left_out.iter().for_each(|what| say(&format!("left out: {what}")));
        let time: Duration = pairs.iter().map(|(tool, size)| planned(tool, *size, goal)).sum();
        let time = duration(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let budget = match self.budget {
            None => String::new(),
            Some(budget) => format!(", and --budget is {} s", budget.as_secs_f64()),
        };
        let searches = match pairs.len() {
            1 => "1 search".to_owned(),
            many => format!("{many} searches"),
        };
        say(&format!("{searches}, about {time} in all where nothing is repeated{budget}"));
    }

    fn write(&self, report: &Report<'_>) -> anyhow::Result<()> {
        let Some(directory) = &self.output else { return Ok(()) };
        let json = serde_json::to_string_pretty(report)? + "\n";
        for (name, content) in [("lossless.json", json), ("lossless.csv", table::csv(report.cells))]
        {
            let path = directory.join(name);
            fs::write(&path, content)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}
