//! `netsniff extract`: packets back from records.

mod args;
mod choose;
mod extraction;
pub mod index;
mod indexed;
mod renamed;
mod written;

use std::io::{ErrorKind, stderr, stdout};
use std::path::PathBuf;

use anyhow::Context as _;
use netsniff_analysis::{Options, Uid};
use netsniff_console::number::exact;
use netsniff_console::paths::is_stdin;
use netsniff_console::terminal::progress::{ProgressLine, is_output_seen};
use netsniff_console::{DAMAGED, DONE, FAILED, print, say, unlinked};
use netsniff_pipeline::carving::choice::FlowChoice;
use netsniff_pipeline::carving::{Carver, CarvingStatistics};
use netsniff_pipeline::recording::naming::CaptureFormat;
use serde::Serialize;

pub use self::args::ExtractArgs;
use self::choose::{Chosen, choose};
pub use self::extraction::{Extracted, Extraction};
use self::extraction::{carved, seed};
use self::indexed::Indexed;
pub use self::indexed::naming_choices;
use self::written::Written;
use super::inputs::Inputs;
use super::interrupted;

/// Bytes read at once.
const READ_SIZE: usize = 256 << 10;

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`](netsniff_console::UsageError), and an output that cannot be written.
pub fn run(args: &ExtractArgs) -> anyhow::Result<u8> {
    let paths = args.inputs()?;
    let packets = args.packets()?;
    let mut flows = args.flows();
    let options = args.options()?;
    let seed = seed();
    let condition = args.condition()?;
    interrupted::remove_unfinished()?;
    let mut missing_files = Vec::new();
    if args.reads_twice() {
        let Some(mut inputs) = open(&paths) else { return Ok(FAILED) };
        let Chosen { uids, missing_files: missing } =
            choose(args, options.clone(), condition, &mut inputs, seed)?;
        flows.chosen(uids);
        missing_files = missing;
    }
    if args.uses_indexes() && indexed::is_there(&paths) {
        match by_indexes(args, &options, &flows, &paths, seed)? {
            Ok((indexed, renamed)) => {
                let (mut statistics, found) = match indexed.carve(args, packets) {
                    Err(error) if is_stdin(args.output()) && is_closed_pipe(&error) => {
                        return Ok(DONE);
                    }
                    result => result?,
                };
                statistics.read = statistics.read.max(renamed.read);
                statistics.hurried += renamed.hurried;
                return end(args, false, &statistics, &flows.missing_in(&found), &missing_files);
            }
            Err(why) => say(&format!("{why}; all of it is read")),
        }
    }
    let Some(mut inputs) = open(&paths) else { return Ok(FAILED) };
    inputs.merged.keep_notes();
    let carver = Carver::new(flows, packets, args.limits(), options, seed, args.hold());
    let written = carve(args, carver, &mut inputs);
    let (statistics, missing) = match written {
        // Whoever reads has enough.
        Err(error) if is_stdin(args.output()) && is_closed_pipe(&error) => return Ok(DONE),
        result => result?,
    };
    end(args, inputs.report_damage(), &statistics, &missing, &missing_files)
}

/// Opens captures by their indexes, with what was read to that end; or tells why they do not serve, in a sentence without
/// a full stop.
///
/// # Errors
///
/// Where what indexes lack cannot be found.
fn by_indexes(
    args: &ExtractArgs,
    options: &Options,
    flows: &FlowChoice,
    paths: &[PathBuf],
    seed: u64,
) -> anyhow::Result<Result<(Indexed, CarvingStatistics), String>> {
    let mut looked_up = match indexed::look_up(args, options, flows, paths) {
        Ok(looked_up) => looked_up,
        Err(why) => return Ok(Err(why)),
    };
    let (unknown, mut statistics) = (looked_up.unknown(flows), CarvingStatistics::default());
    if let Some(first) = unknown.first() {
        let others = if unknown.len() > 1 { " and others" } else { "" };
        say(&format!(
            "{first}{others}: the indexes have the uids of the whole recording, and no such one; all of it is read for a \
             connection that began before the files at hand"
        ));
        let (mut inputs, refused) = Inputs::open(paths, READ_SIZE);
        if let Some(input) = refused.first() {
            return Ok(Err(format!("{}: {}", input.path.display(), input.said)));
        }
        let found = renamed::indexes(args, options.clone(), unknown, &mut inputs, seed)?;
        statistics = found.0;
        if let Err(why) = looked_up.add(found.1) {
            return Ok(Err(why));
        }
    }
    Ok(looked_up.open().map(|indexed| (indexed, statistics)))
}

/// Says what was done, and returns the exit code.
fn end(
    args: &ExtractArgs,
    is_damaged: bool,
    statistics: &CarvingStatistics,
    missing: &[Uid],
    missing_files: &[Uid],
) -> anyhow::Result<u8> {
    let report = Report::new(statistics, missing, missing_files);
    report.warn();
    report.print(args)?;
    Ok(match (report.is_all_found(), is_damaged) {
        (false, _) => FAILED,
        (true, true) => DAMAGED,
        (true, false) => DONE,
    })
}

/// Opens all files, or says which cannot be read.
fn open(paths: &[PathBuf]) -> Option<Inputs> {
    let (inputs, refused) = Inputs::open(paths, READ_SIZE);
    for input in &refused {
        say(&format!("{}: {}", input.path.display(), input.said));
    }
    refused.is_empty().then_some(inputs)
}

/// Reads the files to their end, and writes what is wanted.
fn carve(
    args: &ExtractArgs,
    carver: Carver,
    inputs: &mut Inputs,
) -> anyhow::Result<(CarvingStatistics, Vec<Uid>)> {
    let is_quiet = args.quiet() || is_stdin(args.output()) && is_output_seen();
    let mut progress = ProgressLine::new(inputs.size(), is_quiet);
    let mut written = Written::new(args.output(), args.format());
    let failed = || format!("cannot write {}", args.output().display());
    let outcome = carved(carver, inputs, &mut written, |inputs, written| {
        written.describe(inputs);
        progress.update(|| (inputs.bytes_read(), inputs.packets()));
    });
    let outcome = outcome.with_context(failed)?;
    written.finish(inputs).with_context(failed)?;
    Ok(outcome)
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// What was done.
#[derive(Debug, Serialize)]
struct Report {
    packets_read: u64,
    packets_written: u64,
    /// Packets that were decided before all was known of them, since too much waited.
    packets_hurried: u64,
    /// What was asked for and is not in the input.
    missing: Vec<String>,
}

impl Report {
    fn new(statistics: &CarvingStatistics, uids: &[Uid], fuids: &[Uid]) -> Self {
        Self {
            packets_read: statistics.read,
            packets_written: statistics.packets,
            packets_hurried: statistics.hurried,
            missing: uids.iter().chain(fuids).map(ToString::to_string).collect(),
        }
    }

    const fn is_all_found(&self) -> bool {
        self.missing.is_empty()
    }

    /// Says what must be known of the output.
    fn warn(&self) {
        for name in &self.missing {
            say(&format!(
                "{name}: it is not in the input, or another condition excludes it; uids are those of netsniff analyze over \
                 the same files, without --from, --to and a filter, with the same --timeout and --tunnel-ports"
            ));
        }
        if self.packets_hurried > 0 {
            say(&format!(
                "{} packets were decided before their datagrams were whole or their SYNs \
                 answered: give more with --hold",
                exact(self.packets_hurried.into())
            ));
        }
    }

    fn print(&self, args: &ExtractArgs) -> anyhow::Result<()> {
        if args.quiet() {
            return Ok(());
        }
        let text = if args.json() {
            serde_json::to_string(self)? + "\n"
        } else {
            let count = |number: u64| exact(number.into());
            let (written, read) = (count(self.packets_written), count(self.packets_read));
            let mut lines = format!("packets written: {written} of {read}\n");
            if args.format() == CaptureFormat::Pcap {
                lines += "  without uids, losses and counters, which pcap cannot hold\n";
            }
            lines
        };
        // What was done is no part of a capture.
        let to_stderr = is_stdin(args.output()) || unlinked::is_of_system(args.output());
        let printed = if to_stderr { print(stderr(), &text) } else { print(stdout(), &text) };
        printed.context("cannot print what was done")
    }
}
