//! `netsniff lab compare`: what changed between two things that were measured.

mod page;
mod rows;
mod text;

use std::fs;
use std::io::stdout;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use netsniff_console::{DONE, UsageError, print, say};
use serde::Serialize;

use super::reports::{self, Report, ReportContent};
use super::{Program, common};
use crate::compare::facts::{Fact, Setup, differing};
use crate::compare::{Chosen, LeftOut, Measured, Selection, choose, rates, runs};
use crate::report::Report as Page;
use crate::search::lossless::Cell;
use crate::search::sweep::Run;

/// What changed from A to B, and how sure that is
///
/// A and B are directories that the -o of `lab sweep` or of `lab lossless` made, and a tool and values of settings in them,
/// if not all of them are meant. Points are paired where all else is equal.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff lab compare before after                         all that both have\n  \
    netsniff lab compare report:tcpdump report:record         two tools\n  \
    netsniff lab compare waits:wait=poll waits:wait=adaptive  two values of a setting\n  \
    netsniff lab compare before after -o change               a report with plots, too\n\n\
    -o makes the directory, with compare.html, a report with plots, compare.json, as --json prints it, and compare.csv, a\n\
    line for each point and quantity.\n\n\
    Exit code: 0 fine; 1 failed, or A and B have nothing in common; 2 wrong usage")]
pub struct CompareArgs {
    /// What is compared with: DIR, DIR:TOOL, DIR:TOOL:ring=2M
    #[arg(value_name = "A")]
    a: String,
    /// What is compared
    #[arg(value_name = "B")]
    b: String,
    /// A directory for the report
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print nothing but the tables, or the JSON
    #[arg(short, long)]
    quiet: bool,
}

/// All that is told.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    /// What is compared with, and what is compared.
    pub(super) a: Named,
    pub(super) b: Named,
    /// What else they differ in.
    pub(super) differing: Vec<Fact>,
    #[serde(flatten)]
    pub(super) changes: Changes,
}

#[derive(Debug, Serialize)]
pub(super) struct Named {
    pub(super) directory: String,
    /// What was selected of it.
    #[serde(flatten)]
    pub(super) selection: Selection,
    /// The version of netsniff that measured it.
    netsniff: String,
    /// The command that did.
    command: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "of", rename_all = "kebab-case")]
pub(super) enum Changes {
    /// Of the highest rates without loss.
    Lossless {
        /// Rates by tool and size.
        groups: Vec<rates::Group>,
        /// What has no partner.
        left_out: Vec<LeftOut<u32>>,
    },
    /// Changes between two sweeps.
    Sweep {
        /// Runs by tool and point.
        groups: Vec<runs::Group>,
        /// What has no partner.
        left_out: Vec<LeftOut<runs::Shared>>,
        /// Changes of points that have an interval from their spread.
        intervals: usize,
        /// How many of these do not have what would be no change.
        significant: usize,
    },
}

impl Changes {
    const fn is_empty(&self) -> bool {
        match self {
            Self::Lossless { groups, .. } => groups.is_empty(),
            Self::Sweep { groups, .. } => groups.is_empty(),
        }
    }
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], reports that cannot be read, and nothing that they have in common.
pub(super) fn run(args: &CompareArgs, program: Program) -> anyhow::Result<u8> {
    let (first, of_a) = open(&args.a, args.quiet)?;
    let (second, of_b) = open(&args.b, args.quiet)?;
    let differing = differing(&first.setup, &second.setup);
    let selections = (of_a, of_b);
    let (selections, changes) = match (&first.content, &second.content) {
        (ReportContent::Lossless(a), ReportContent::Lossless(b)) => lossless(selections, a, b)?,
        (ReportContent::Sweep(a), ReportContent::Sweep(b)) => sweep(selections, a, b)?,
        (a, b) => {
            let said = format!("A is of lab {}, and B is of lab {}", a.name(), b.name());
            return Err(UsageError(said).into());
        }
    };
    let [a, b] = selections;
    let (a, b) = (Named::new(&first, a), Named::new(&second, b));
    let comparison = Comparison { a, b, differing, changes };
    let json = serde_json::to_string_pretty(&comparison)? + "\n";
    if let Some(directory) = &args.output {
        let page = page::page(&comparison, [&first.setup, &second.setup], &(program.words)());
        write(directory, &comparison, &page, &json)?;
    }
    let text = if args.json { json } else { text::text(&comparison, args.quiet) };
    print(stdout(), &text).context("cannot print the comparison")?;
    if comparison.changes.is_empty() {
        bail!(
            "A and B have no point in common: size, rate, time, settings and tool must be equal, but for what is \
             selected, as DIR:TOOL:ring=2M"
        );
    }
    Ok(DONE)
}

fn write(directory: &Path, comparison: &Comparison, page: &Page, json: &str) -> anyhow::Result<()> {
    fs::create_dir(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    common::write(directory, "compare.json", json)?;
    common::write(directory, "compare.csv", &rows::csv(&comparison.changes))?;
    common::write_page(directory, "compare", page)
}

fn open(text: &str, is_quiet: bool) -> anyhow::Result<(Report, Selection)> {
    let (directory, selection) = reports::reference(text)?;
    let (report, is_cut) = reports::read(directory)?;
    if is_cut && !is_quiet {
        let at = report.directory.display();
        say(&format!("the last line of {} in {at} was cut, and is left out", reports::RUNS));
    }
    Ok((report, selection))
}

fn lossless(
    selections: (Selection, Selection),
    a: &[Cell],
    b: &[Cell],
) -> anyhow::Result<([Selection; 2], Changes)> {
    let sides = chosen(selections, a, b)?;
    let (groups, left_out) = rates::compare(&sides);
    Ok((sides.map(|side| side.selection), Changes::Lossless { groups, left_out }))
}

fn sweep(
    selections: (Selection, Selection),
    a: &[Run],
    b: &[Run],
) -> anyhow::Result<([Selection; 2], Changes)> {
    let sides = chosen(selections, a, b)?;
    let (groups, left_out) = runs::compare(&sides);
    let changes = groups.iter().flat_map(|group| &group.rows).flat_map(|row| &row.compared);
    let changes = changes.filter_map(|compared| compared.change.as_ref());
    let welch = changes.filter(|change| change.interval.is_of_spread());
    let significant: Vec<_> = welch.map(|change| change.is_significant).collect();
    let (intervals, significant) =
        (significant.len(), significant.into_iter().filter(|is| *is).count());
    let changes = Changes::Sweep { groups, left_out, intervals, significant };
    Ok((sides.map(|side| side.selection), changes))
}

fn chosen<'a, T: Measured>(
    (of_a, of_b): (Selection, Selection),
    a: &'a [T],
    b: &'a [T],
) -> anyhow::Result<[Chosen<'a, T>; 2]> {
    choose([(of_a, a), (of_b, b)]).map_err(|said| UsageError(said).into())
}

impl Named {
    fn new(report: &Report, selection: Selection) -> Self {
        let Setup { netsniff, command, .. } = report.setup.clone();
        let directory = report.directory.display().to_string();
        Self { directory, selection, netsniff, command }
    }
}
