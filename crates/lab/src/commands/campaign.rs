//! Runs of many points, one after another, each on the testbed that it needs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use netsniff_console::{UsageError, say};

use super::common::{self, Head};
use super::journal::Journal;
use super::reports::{RUNS, SWEEP};
use super::{csv, table};
use crate::compare::facts::{Fact, Setup, differing};
use crate::report::sections;
use crate::search::sweep::{self, Point, Run};
use crate::stop::{Stop, Why};
use crate::testbed::{Layout, Testbed};
use crate::tools::{Setting, Tool};

pub(super) struct Campaign<'a> {
    pub(super) tools: &'a [Tool],
    /// The testbed, but for what points say of it.
    pub(super) layout: &'a Layout,
    /// When it ends before.
    pub(super) stop: &'a Stop<'a>,
    /// Whether nothing is said of each run.
    pub(super) is_quiet: bool,
}

impl Campaign<'_> {
    /// Runs points; `report` gets each run, and why it ended before is returned.
    ///
    /// # Errors
    ///
    /// Whatever prevents a testbed or a run, and what `report` fails with.
    pub(super) fn run(
        &self,
        points: &[Point],
        report: &mut dyn FnMut(Run) -> anyhow::Result<()>,
    ) -> anyhow::Result<Option<Why>> {
        let (program, warden) = super::programs()?;
        let mut bed: Option<(&[Setting], Testbed)> = None;
        let begin = Instant::now();
        for (number, point) in points.iter().enumerate() {
            let mut report = |run: Run| {
                if !self.is_quiet {
                    let time = remaining(begin.elapsed(), number, points.len());
                    let run = table::run(&run);
                    say(&format!("{} of {}, {time}: {run}", number + 1, points.len()));
                }
                report(run)
            };
            if bed.as_ref().is_none_or(|(host, _)| *host != point.host) {
                // There is one at a time.
                drop(bed.take());
                let layout = self.layout.with(&point.host).map_err(UsageError)?;
                bed = Some((&point.host, Testbed::make(&warden, &layout)?.until(self.stop)));
            }
            let Some((_, made)) = &bed else { continue };
            let ended = sweep::run(made, &program, (self.tools, point), self.stop, &mut report)?;
            if ended.is_some() {
                return Ok(ended);
            }
        }
        Ok(None)
    }
}

/// How long the rest will take, by what was done.
fn remaining(spent: Duration, done: usize, all: usize) -> String {
    match u32::try_from(done) {
        Ok(0) | Err(_) => "time left unknown".to_owned(),
        Ok(done_) => {
            let each = spent / done_;
            let left = each * u32::try_from(all - done).unwrap_or(u32::MAX);
            format!("{} left", common::in_words(left))
        }
    }
}

/// The directory of a sweep: its head, every run as it is made, and in the end a table and a page.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    journal: Journal<Run>,
}

/// What was measured on before.
fn before(path: &Path) -> anyhow::Result<Setup> {
    let text = fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}, to go on with it", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is not of this version", path.display()))
}

impl Directory {
    /// Opens it, which is there where runs go on, and writes the head.
    ///
    /// # Errors
    ///
    /// Where it cannot be read or written, or its runs are of another machine, version or testbed.
    pub(super) fn open(path: &Path, may_begin: bool, head: &Head<'_>) -> anyhow::Result<Self> {
        let name = path.join(SWEEP);
        if !may_begin || name.is_file() {
            let now: Setup = serde_json::from_value(serde_json::to_value(head)?)?;
            let other = differing(&before(&name)?, &now);
            let words = |fact: &Fact| {
                let or_unknown =
                    |side: &Option<String>| side.clone().unwrap_or("unknown".to_owned());
                format!("{} was {}, and is {}", fact.name, or_unknown(&fact.a), or_unknown(&fact.b))
            };
            let words: Vec<_> = other.iter().map(words).collect();
            ensure!(
                other.is_empty(),
                "the runs in {} are of something else, and no others are added to them: {}",
                path.display(),
                words.join("; ")
            );
        }
        let journal = Journal::open(&path.join(RUNS), may_begin)?;
        common::write(path, SWEEP, &(serde_json::to_string_pretty(head)? + "\n"))?;
        Ok(Self { path: path.to_owned(), journal })
    }

    /// The runs that it has.
    pub(super) fn runs(&self) -> &[Run] {
        self.journal.entries()
    }

    /// Adds a run.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    pub(super) fn add(&mut self, run: Run) -> anyhow::Result<()> {
        self.journal.add(run)
    }

    /// Writes the table and the page.
    ///
    /// # Errors
    ///
    /// Where they cannot be written.
    pub(super) fn finish(&self, head: &Head<'_>) -> anyhow::Result<()> {
        common::write(&self.path, "sweep.csv", &csv::runs(self.runs()))?;
        common::write(&self.path, "processors.csv", &csv::processors(self.runs()))?;
        let lead =
            "What is lost of frames that are sent at many rates, and what the capture costs.";
        let page = head.page("Losses of captures", lead, sections::sweep(self.runs()));
        common::write_page(&self.path, "sweep", &page)
    }
}
