//! `netsniff lab lossless`: the highest rate without loss.

use std::fs;
use std::io::stdout;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use netsniff_console::{DONE, FAILED, UsageError, print, quantity, say};
use serde::Serialize;

use super::Program;
use super::common::{self, CommonArgs, Head};
use super::reports::LOSSLESS;
use super::{csv, table};
use crate::load::Load;
use crate::report::sections;
use crate::search::Goal;
use crate::search::lossless::{Cell, Step, Subject, measure, planned};
use crate::search::sweep::Axis;
use crate::stop::Stop;
use crate::testbed::Testbed;
use crate::tools::Tool;

/// The highest rate at which nothing is lost, for tools and sizes of frames
///
/// Captured is what was sent, and nothing was dropped: short runs steer to the rate, three long ones confirm it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff lab lossless\n  \
    netsniff lab lossless --tools record,tcpdump,dumpcap --sizes 64,512,1518 -o report\n  \
    netsniff lab lossless --command 'mine=/opt/mine -i IFACE -w FILE' --budget 10m\n  \
    netsniff lab lossless --sender ssh://me@host --sender-interface eth1 -i eth2\n\n\
    -o makes the directory, with lossless.html, a report with plots, and lossless.json and lossless.csv, which have every\n\
    run.\n\n\
    Exit code: 0 fine; 1 failed, or ended before all was measured; 2 wrong usage")]
pub struct LosslessArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Another option of the tools, by its long name, as ring=2M; other tools than netsniff have it where {ring} stands
    /// in their --command; may be repeated
    #[arg(long, value_name = "OPTION=VALUE", value_parser = common::axis)]
    set: Vec<Axis>,
    /// The share of what is sent that may be lost; 0 for nothing, which also needs that nobody says anything was dropped
    #[arg(long, value_name = "PERCENT", value_parser = quantity::percentage, default_value = "0")]
    tolerate: f64,
}

/// All that was measured.
#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    cells: &'a [Cell],
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], and whatever prevents a testbed or a run.
pub(super) fn run(args: &LosslessArgs, program: Program) -> anyhow::Result<u8> {
    let (settings, tolerated) = (common::single(&args.set)?, args.tolerate / 100.0);
    let args = &args.common;
    if args.tools == ["list"] {
        print(stdout(), &table::tools(&Tool::all())).context("cannot print the list")?;
        return Ok(DONE);
    }
    let (sizes, (tools, left_out)) = (args.sizes()?, args.chosen()?);
    let layout = args.layout()?.with(&common::single(&args.bed.host)?).map_err(UsageError)?;
    let options = common::single(&args.send)?;
    let with = |tool: &Tool| tool.with(&settings).map_err(UsageError);
    let tools = tools.iter().map(with).collect::<Result<Vec<_>, _>>()?;
    for tool in &tools {
        layout.suits(tool).map_err(UsageError)?;
        let load = Load { size: sizes[0], time: Duration::from_secs(1), ..Load::default() };
        common::check(&load.with(&options), Some(tool), program)?;
    }
    let signal = common::signal()?;
    let head = args.head((&tools, &left_out), layout.clone(), program)?;
    let head = head.of_interfaces(std::slice::from_ref(&layout));
    if let Some(directory) = &args.output {
        fs::create_dir(directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
    }
    let (program, warden) = super::programs()?;
    let goal = Goal::default();
    let pairs = sizes.iter().flat_map(|size| tools.iter().map(move |tool| (tool, *size)));
    let pairs: Vec<_> = pairs.collect();
    let times = pairs.iter().map(|(tool, size)| planned(tool, *size, &goal));
    let [time, most] =
        times.fold([Duration::ZERO; 2], |[least, most], [one, other]| [least + one, most + other]);
    let most = common::in_words(most);
    let more = format!(", {most} at most where rates that short runs find are not confirmed");
    args.print_plan(pairs.len(), "search", time, &more);
    let stop = Stop::new(&signal, args.budget);
    let bed = Testbed::make(&warden, &layout)?.until(&stop);
    let subject = |&(tool, size)| Subject { tool, size, options: &options, tolerated };
    let subjects: Vec<_> = pairs.iter().map(subject).collect();
    let (cells, failed) = measure_all(&bed, &program, &subjects, &goal, &stop, args.quiet);
    drop(bed);
    if let Some(directory) = &args.output {
        write(directory, &Report { head, cells: &cells })?;
    }
    print(stdout(), &table::cells(&cells)).context("cannot print the table")?;
    // What was measured is there, whatever prevents the rest.
    failed?;
    let is_whole = cells.len() == pairs.len() && cells.iter().all(|cell| cell.ended.is_none());
    Ok(if is_whole { DONE } else { FAILED })
}

/// Searches for one subject after the other, until all are measured, one fails or the user has had enough.
fn measure_all(
    bed: &Testbed,
    program: &Path,
    subjects: &[Subject<'_>],
    goal: &Goal,
    stop: &Stop,
    is_quiet: bool,
) -> (Vec<Cell>, anyhow::Result<()>) {
    let mut cells = Vec::new();
    for (number, subject) in subjects.iter().enumerate() {
        let mut report = |step: &Step| {
            if !is_quiet {
                say(&format!("{} of {}: {}", number + 1, subjects.len(), table::step(step)));
            }
        };
        match measure(bed, program, *subject, goal, stop, &mut report) {
            Ok(cell) => cells.push(cell),
            Err(error) => return (cells, Err(error)),
        }
        if stop.is_set() {
            break;
        }
    }
    (cells, Ok(()))
}

/// Writes what was measured as JSON, CSV and a page.
fn write(directory: &Path, report: &Report<'_>) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(report)? + "\n";
    common::write(directory, LOSSLESS, &json)?;
    common::write(directory, "lossless.csv", &csv::steps(report.cells))?;
    let lead = "How many frames a second are captured without losing one, for each size of frames.";
    let page = report.head.page("Capture without loss", lead, sections::lossless(report.cells));
    common::write_page(directory, "lossless", &page)
}
