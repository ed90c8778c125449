//! One experiment of a paper: runs over points, or searches.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use netsniff_console::say;
use serde::Serialize;

use super::super::campaign::{Campaign, Directory};
use super::super::common::{self, Head};
use super::super::offline::{self, OFFLINE};
use super::super::reports::LOSSLESS;
use super::super::{scale, table};
use super::Laboratory;
use crate::offline::StoredCapture;
use crate::offline::rounds::{Rounds, usual_scratch};
use crate::offline::subject::{OfflineSubject, Variant};
use crate::paper::{Experiment, Paper};
use crate::search::Goal;
use crate::search::lossless::{Cell, Subject, measure};
use crate::search::sweep::Point;
use crate::stop::Stop;
use crate::testbed::Testbed;
use crate::tools::Tool;

/// All that was found by searches.
#[derive(Serialize)]
struct Searches<'a> {
    #[serde(flatten)]
    head: &'a Head<'a>,
    cells: &'a [Cell],
}

/// Sessions of a file that is analysed: so many that the start of the program is little beside them.
const SESSIONS: &str = "1000";

/// What a run over them takes, to plan by.
const RUN: Duration = Duration::from_millis(200);

/// The time that rounds over a file take, about, with the one that does not count.
pub(super) fn rounds_take(variants: &[Variant], rounds: u32) -> Duration {
    let runs = u32::try_from(variants.len() + 1).unwrap_or(u32::MAX);
    let rounds = if rounds == 0 { 0 } else { rounds + 1 };
    RUN.saturating_mul(runs.saturating_mul(rounds))
}

/// Makes a file of sessions as those of the trace.
fn make_sessions(program: &Path, file: &Path) -> anyhow::Result<()> {
    let mut make = Command::new(program);
    make.arg("--no-config").args(scale::generation(SESSIONS)).arg("-w").arg(file);
    let made = make.stdin(Stdio::null()).output().context("cannot make sessions")?;
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    ensure!(made.status.success(), "cannot make sessions: {}", said.trim());
    Ok(())
}

impl Laboratory<'_> {
    /// Analyses sessions as a file, with these options beside; whether all rounds were done.
    pub(super) fn offline(
        &self,
        (paper, experiment): (&Paper, &Experiment),
        (variants, number): (&[Variant], u32),
        (stop, head): (&Stop<'_>, &Head<'_>),
    ) -> anyhow::Result<bool> {
        let path = self.directory(paper, experiment);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        let (program, _) = super::super::programs()?;
        let subjects = OfflineSubject::of_variants(variants, &program.display().to_string());
        let scratch = usual_scratch();
        let rounds = Rounds { number, subjects: &subjects, scratch: &scratch, stop };
        let began = offline::now()?;
        let file = path.join("sessions.pcapng");
        make_sessions(&program, &file)?;
        let outcome = StoredCapture::read(&file).and_then(|it| rounds.measure(it, &mut |_, _| {}));
        // It is large, and made again at once.
        fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
        let outcome = outcome?;
        for subject in &subjects {
            if let Some(why) = outcome.failure(subject) {
                say(&format!("{}: {}: {why}", paper.name, subject.name));
            }
        }
        if let Some(why) = &outcome.ended {
            say(&format!("{}: ended: {why}", paper.name));
        }
        let is_whole = outcome.ended.is_none();
        let outcomes = [outcome];
        common::write(&path, OFFLINE, &offline::json(head, began, &[], &outcomes)?)?;
        Ok(is_whole)
    }

    /// Runs points; whether all were.
    pub(super) fn sweep(
        &self,
        (paper, experiment): (&Paper, &Experiment),
        points: &[Point],
        stop: &Stop<'_>,
        head: &Head<'_>,
    ) -> anyhow::Result<bool> {
        let path = self.directory(paper, experiment);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        let mut directory = Directory::open(&path, true, head)?;
        let campaign = Campaign {
            tools: &experiment.tools,
            layout: &self.layout,
            stop,
            is_quiet: self.args.quiet,
        };
        let ended = match points.first().map(|point| stop.before(point.load.time)) {
            Some(Some(why)) => Some(why),
            _ => match campaign.run(points, &mut |run| directory.add(run)) {
                Ok(ended) => ended,
                // What was measured is there, whatever prevents the rest.
                Err(error) => return directory.finish(head).and(Err(error)),
            },
        };
        directory.finish(head)?;
        if let Some(why) = ended {
            say(&format!("{}: ended: {}", paper.name, why.words()));
        }
        Ok(ended.is_none())
    }

    /// Searches for pairs of tools and sizes, beside what was found before; whether all were.
    pub(super) fn search(
        &self,
        (paper, experiment): (&Paper, &Experiment),
        (goal, tolerated): (&Goal, f64),
        pairs: &[(&Tool, u32)],
        mut cells: Vec<Cell>,
        (stop, head): (&Stop<'_>, &Head<'_>),
    ) -> anyhow::Result<bool> {
        let path = self.directory(paper, experiment);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        let (program, warden) = super::super::programs()?;
        let bed = match pairs {
            [] => None,
            _ => Some(Testbed::make(&warden, &self.layout)?.until(stop)),
        };
        let (mut is_whole, mut failed) = (true, Ok(()));
        for (number, (tool, size)) in pairs.iter().enumerate() {
            let Some(bed) = &bed else { break };
            let mut tell = |step: &_| {
                if !self.args.quiet {
                    say(&format!("{} of {}: {}", number + 1, pairs.len(), table::step(step)));
                }
            };
            let subject = Subject { tool, size: *size, options: &[], tolerated };
            let cell = match measure(bed, &program, subject, goal, stop, &mut tell) {
                Ok(cell) => cell,
                Err(error) => {
                    failed = Err(error);
                    break;
                }
            };
            is_whole &= cell.ended.is_none();
            cells.push(cell);
            let json = serde_json::to_string_pretty(&Searches { head, cells: &cells })? + "\n";
            common::write(&path, LOSSLESS, &json)?;
            if self.stop.is_set() {
                break;
            }
        }
        common::write(&path, "lossless.csv", &super::super::csv::steps(&cells))?;
        failed.map(|()| is_whole)
    }
}
