//! `netsniff lab paper`: the experiments of five papers, repeated here.

mod experiment;
mod share;

use std::fs;
use std::io::stdout;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use netsniff_console::{DONE, FAILED, print, quantity, say};
use serde::Serialize;

use self::share::Needed;
use super::Program;
use super::common::{self, Head};
use super::offline::{self, OFFLINE};
use super::reports::{self, LOSSLESS};
use super::scale::{self, TRACE};
use super::wire::NoWireArgs;
use crate::offline::subject::Variant;
use crate::paper::{Coverage, Experiment, Kind, NAMES, Paper, Results, Scale, Score, papers};
use crate::report::sections;
use crate::search::lossless::planned;
use crate::search::sweep::{self, Point};
use crate::search::{Goal, HighestRate};
use crate::stop::Stop;
use crate::testbed::Layout;
use crate::tools::Tool;

/// The experiments of the papers on losses of captures, repeated on this machine, with a scorecard of their claims
#[derive(Debug, clap::Args)]
#[command(after_help = "Papers:\n  \
    s0   buffers of 32 kB to 64 MB, 1 and 30 hosts (CAIA-TR-051027A)\n  \
    s1   load of the application, buffers, waiting (IMC 2010)\n  \
    s2   loss, memory, processor against rates and hosts, figures 1 to 8 (CAIA-TR-051004A)\n  \
    s3   four sessions of dumpcap over all sizes of frames (Skopko)\n  \
    s4   highest rates without loss of ways to capture (PF_RING)\n\n\
    Examples:\n  \
    netsniff lab paper all --short -o papers         three quarters of an hour\n  \
    netsniff lab paper s1 -o s1                      one of them, with all values\n  \
    netsniff lab paper s1 -o s1 --resume             what was interrupted goes on\n\n\
    Rates are parts of what the sender reaches here, which is measured first. -o has a page and a JSON file for each paper,\n\
    and a directory for each experiment, as those of lab sweep and lab lossless, which lab compare reads.\n\n\
    Exit code: 0 fine, whatever holds; 1 failed, or ended before all was measured; 2 wrong usage")]
pub struct PaperArgs {
    /// s0, s1, s2, s3, s4, or all
    #[arg(value_name = "PAPER", required = true, value_parser = paper)]
    papers: Vec<PaperChoice>,
    /// Few values and short runs: minutes instead of hours
    #[arg(long)]
    short: bool,
    /// How often every point of a sweep is run, instead of once to three times; with --resume also more often than before
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: Option<u32>,
    /// A directory for everything
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Go on with what is missing in the directory of -o
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    _no_wire: NoWireArgs,
    /// Time that all of it may take: where it is too short, each experiment gets a share and claims are coarse
    #[arg(long, value_name = "TIME", value_parser = quantity::interval)]
    budget: Option<Duration>,
    /// Print nothing but the scorecards
    #[arg(short, long)]
    quiet: bool,
}

/// A paper, or all.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PaperChoice(Option<&'static str>);

fn paper(text: &str) -> Result<PaperChoice, String> {
    match NAMES.iter().find(|name| **name == text) {
        Some(name) => Ok(PaperChoice(Some(name))),
        None if text == "all" => Ok(PaperChoice(None)),
        None => Err(format!("there are {} and all", NAMES.join(", "))),
    }
}

/// How everything is run.
struct Laboratory<'a> {
    args: &'a PaperArgs,
    output: PathBuf,
    stop: &'a Stop<'a>,
    layout: Layout,
    scale: Scale,
    program: Program,
}

/// What is left of a paper's experiment.
enum Remaining<'a> {
    Points(Vec<Point>),
    Searches(&'a Goal, f64, Vec<(&'a Tool, u32)>),
    /// Rounds over a file, all of them or none.
    Rounds(&'a [Variant], u32),
}

/// What a paper came to.
#[derive(Serialize)]
struct PaperOutcome<'a> {
    #[serde(flatten)]
    head: &'a Head<'a>,
    paper: &'static str,
    citation: &'static str,
    scale: &'a Scale,
    scores: &'a [Score],
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// A directory of the other form, and whatever prevents a testbed or a run.
pub(super) fn run(args: &PaperArgs, program: Program) -> anyhow::Result<u8> {
    if !args.resume {
        let directory = &args.output;
        fs::create_dir(directory).with_context(|| {
            format!("cannot make {}; --resume goes on with one", directory.display())
        })?;
    }
    // Runs name the trace by its path: they are known again however the directory is called.
    let output = fs::canonicalize(&args.output)
        .with_context(|| format!("there is no {} to go on with", args.output.display()))?;
    let signal = common::signal()?;
    let stop = Stop::new(&signal, args.budget);
    let layout = Layout::default();
    let Some(scale) = scale::of(&output, args.short, &layout, &stop, args.quiet)? else {
        say("ended before it was known what the sender reaches");
        return Ok(FAILED);
    };
    let scale = Scale { repeat: args.repeat, ..scale };
    let lab = Laboratory { args, output, stop: &stop, layout, scale, program };
    let is_wanted = |paper: &Paper| {
        args.papers.iter().any(|PaperChoice(which)| which.is_none_or(|name| name == paper.name))
    };
    let papers: Vec<_> = papers(&lab.scale).into_iter().filter(is_wanted).collect();
    lab.print_plan(&papers)?;
    let mut is_whole = true;
    for (number, paper) in papers.iter().enumerate() {
        is_whole &= lab.paper(paper, &papers[number + 1..])?;
        if stop.is_set() {
            return Ok(FAILED);
        }
    }
    Ok(if is_whole { DONE } else { FAILED })
}

impl Laboratory<'_> {
    fn print_plan(&self, papers: &[Paper]) -> anyhow::Result<()> {
        if self.args.quiet {
            return Ok(());
        }
        let mut time = Duration::ZERO;
        for paper in papers {
            for experiment in &paper.experiments {
                time += self.needed(paper, experiment, &self.results(paper)?)?;
            }
        }
        let names: Vec<_> = papers.iter().map(|paper| paper.name).collect();
        let is_coarse = self.stop.left().is_some_and(|left| left < time);
        let time = common::in_words(time);
        say(&format!("{}: about {time} where nothing is repeated", names.join(", ")));
        if is_coarse {
            say(
                "the budget is less: each experiment gets its share, with the points first that tell the most, and claims are coarse",
            );
        }
        Ok(())
    }

    fn directory(&self, paper: &Paper, experiment: &Experiment) -> PathBuf {
        self.output.join(format!("{}-{}", paper.name, experiment.name))
    }

    /// What is there of a paper.
    fn results(&self, paper: &Paper) -> anyhow::Result<Results> {
        let mut results = Results::default();
        for experiment in &paper.experiments {
            let (directory, name) = (self.directory(paper, experiment), experiment.name.to_owned());
            match &experiment.kind {
                Kind::Sweep(_) if directory.join(reports::RUNS).is_file() => {
                    results.runs.insert(name, reports::runs(&directory)?);
                }
                Kind::Search { .. } if directory.join(LOSSLESS).is_file() => {
                    let mut cells = reports::cells(&directory)?;
                    cells.retain(|cell| !matches!(cell.found, HighestRate::Ended));
                    results.cells.insert(name, cells);
                }
                Kind::Offline { .. } if directory.join(OFFLINE).is_file() => {
                    results.offline.insert(name, offline::read(&directory)?);
                }
                _ => {}
            }
            let coverage = self.coverage(paper, experiment, &results)?;
            results.coverage.insert(experiment.name.to_owned(), coverage);
        }
        Ok(results)
    }

    /// How much of an experiment there is, by tools that are here.
    fn coverage(
        &self,
        paper: &Paper,
        experiment: &Experiment,
        results: &Results,
    ) -> anyhow::Result<Coverage> {
        let number = |left: &Remaining<'_>| match left {
            Remaining::Points(points) => points.len(),
            Remaining::Searches(_, _, pairs) => pairs.len(),
            Remaining::Rounds(_, rounds) => *rounds as usize,
        };
        let planned = number(&self.left(paper, experiment, &Results::default())?);
        let left = number(&self.left(paper, experiment, results)?);
        Ok(Coverage { measured: planned - left, planned })
    }

    /// The time that an experiment needs, as far as it is missing.
    fn needed(
        &self,
        paper: &Paper,
        experiment: &Experiment,
        results: &Results,
    ) -> anyhow::Result<Duration> {
        Ok(match self.left(paper, experiment, results)? {
            Remaining::Points(points) => sweep::duration(&points),
            Remaining::Searches(goal, _, pairs) => {
                pairs.iter().map(|(tool, size)| planned(tool, *size, goal)[0]).sum()
            }
            Remaining::Rounds(variants, rounds) => experiment::rounds_take(variants, rounds),
        })
    }

    /// What is missing of an experiment, by tools that are here.
    fn left<'e>(
        &self,
        paper: &Paper,
        experiment: &'e Experiment,
        results: &Results,
    ) -> anyhow::Result<Remaining<'e>> {
        match &experiment.kind {
            Kind::Sweep(sweep) => {
                let trace = self.output.join(TRACE);
                let mut points = sweep.plan(experiment, &trace).points();
                points.retain(|point| is_here(experiment, &point.tool));
                ensure!(
                    points.iter().all(|point| point.load.rate.is_none_or(|rate| rate >= 1.0)),
                    "the sender is too slow for {}: see {}",
                    paper.name,
                    scale::FILE
                );
                let runs = results.runs.get(experiment.name).map_or(&[][..], Vec::as_slice);
                Ok(Remaining::Points(sweep::left(points, runs)))
            }
            Kind::Search { goal, tolerated } => {
                let done = results.cells(experiment.name);
                let is_left = |(tool, size): &(&Tool, u32)| {
                    tool.is_here()
                        && !done.iter().any(|cell| cell.tool == tool.name && cell.size == *size)
                };
                let pairs = experiment.sizes.iter();
                let pairs =
                    pairs.flat_map(|size| experiment.tools.iter().map(move |it| (it, *size)));
                Ok(Remaining::Searches(goal, *tolerated, pairs.filter(is_left).collect()))
            }
            Kind::Offline { variants, rounds } => {
                let done = results.stored(experiment.name);
                let is_done = done.is_some_and(|it| it.ended.is_none() && it.rounds >= *rounds);
                Ok(Remaining::Rounds(variants, if is_done { 0 } else { *rounds }))
            }
        }
    }

    /// The time that these papers need, as far as they are missing.
    fn needed_by(&self, papers: &[Paper]) -> anyhow::Result<Duration> {
        let mut time = Duration::ZERO;
        for paper in papers {
            let results = self.results(paper)?;
            for experiment in &paper.experiments {
                time += self.needed(paper, experiment, &results)?;
            }
        }
        Ok(time)
    }

    /// When an experiment has to end, so that those behind it and these papers get their share of the time; `None` where
    /// there is enough for all.
    fn share(
        &self,
        (paper, experiment): (&Paper, &Experiment),
        results: &Results,
        others: &[Paper],
    ) -> anyhow::Result<Option<Duration>> {
        let next = self.needed(paper, experiment, results)?;
        let mut all = self.needed_by(others)?;
        for it in paper.experiments.iter().skip_while(|it| it.name != experiment.name) {
            all += self.needed(paper, it, results)?;
        }
        let least = match self.left(paper, experiment, results)? {
            Remaining::Points(points) => share::ends(&points),
            Remaining::Searches(goal, _, pairs) => share::one_size(goal, &pairs),
            Remaining::Rounds(..) => next,
        };
        Ok(Needed { next, least, all }.share(self.stop))
    }

    /// Runs what is left of a paper, and judges all of it; whether all was measured. Others come behind it.
    fn paper(&self, paper: &Paper, others: &[Paper]) -> anyhow::Result<bool> {
        let mut results = self.results(paper)?;
        let mut is_whole = true;
        let missing: Vec<String> = paper
            .experiments
            .iter()
            .flat_map(|experiment| experiment.tools.iter().map(move |tool| (experiment, tool)))
            .filter(|(_, tool)| !tool.is_here())
            .map(|(of, tool)| format!("{} of {}: not installed", tool.name, of.title))
            .collect();
        let tools: Vec<Tool> =
            paper.experiments.iter().flat_map(|experiment| experiment.tools.clone()).collect();
        let head = common::head((&tools, &missing), self.layout.clone(), self.program);
        let head = head.of_interfaces(std::slice::from_ref(&self.layout));
        missing.iter().for_each(|what| say(&format!("{}: left out: {what}", paper.name)));
        let mut failed = Ok(());
        for experiment in &paper.experiments {
            if !self.args.quiet {
                say(&format!("{}: {}", paper.name, experiment.title));
            }
            let share = self.share((paper, experiment), &results, others)?;
            let done = match self.left(paper, experiment, &results)? {
                Remaining::Points(points) => {
                    let (points, stop) = match share {
                        Some(share) => (share::coarse_first(points), self.stop.within(share)),
                        None => (points, *self.stop),
                    };
                    self.sweep((paper, experiment), &points, &stop, &head)
                }
                Remaining::Searches(goal, tolerated, pairs) => {
                    let found = results.cells.remove(experiment.name).unwrap_or_default();
                    let goal = share::coarser(goal, &pairs, share);
                    let pairs = share.map_or(pairs.clone(), |_| share::sizes_coarse_first(pairs));
                    let stop = share.map_or(*self.stop, |share| self.stop.within(share));
                    self.search(
                        (paper, experiment),
                        (&goal, tolerated),
                        &pairs,
                        found,
                        (&stop, &head),
                    )
                }
                Remaining::Rounds(_, 0) => Ok(true),
                Remaining::Rounds(variants, rounds) => {
                    let stop = share.map_or(*self.stop, |share| self.stop.within(share));
                    self.offline((paper, experiment), (variants, rounds), (&stop, &head))
                }
            };
            match done {
                Ok(done) => is_whole &= done,
                Err(error) => failed = Err(error),
            }
            results = self.results(paper)?;
            if self.stop.is_set() || failed.is_err() {
                break;
            }
        }
        self.report(paper, &results, &head)?;
        failed?;
        Ok(is_whole && missing.is_empty())
    }

    /// Writes a paper's page and its scores, and prints them.
    fn report(&self, paper: &Paper, results: &Results, head: &Head<'_>) -> anyhow::Result<()> {
        let scores = (paper.judge)(results, &self.scale);
        let outcome = PaperOutcome {
            head,
            paper: paper.name,
            citation: paper.citation,
            scale: &self.scale,
            scores: &scores,
        };
        let json = serde_json::to_string_pretty(&outcome)? + "\n";
        let output = &self.output;
        common::write(output, &format!("{}.json", paper.name), &json)?;
        let sections = sections::paper(paper, results, &scores);
        let page =
            head.page(paper.citation, "Its experiments, repeated on this machine.", sections);
        common::write_page(output, paper.name, &page)?;
        let text = format!("{}\n{}{}", paper.citation, scorecard(&scores), points(&scores));
        print(stdout(), &text).context("cannot print the scorecard")
    }
}

fn is_here(experiment: &Experiment, name: &str) -> bool {
    experiment.tools.iter().any(|tool| tool.name == name && tool.is_here())
}

/// Claims with what was seen of them, for a terminal.
fn scorecard(scores: &[Score]) -> String {
    let line = |score: &Score| {
        format!(
            "  {:<23} {} [{}]\n  {:<23} seen: {}\n",
            score.verdict_words(),
            score.claim,
            score.source,
            "",
            score.seen_words()
        )
    };
    scores.iter().map(line).collect()
}

/// Verdicts on the key points of a paper; nothing of one without.
fn points(scores: &[Score]) -> String {
    let mut points: Vec<_> = scores.iter().filter_map(|it| Some((it.point?, it))).collect();
    points.sort_by_key(|(number, _)| *number);
    let line = |(number, score): &(u32, &Score)| {
        format!("  {number}  {:<23} {}\n", score.verdict_words(), score.claim)
    };
    let lines: String = points.iter().map(line).collect();
    let head = format!("  The {} key points:\n", points.len());
    if points.is_empty() { lines } else { head + &lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_points_are_told_in_their_order() {
        let of = |point, claim| Score {
            claim,
            source: "s",
            point,
            seen: String::new(),
            verdict: crate::paper::ClaimVerdict::Holds,
            coarse: None,
        };
        let told = points(&[of(Some(2), "b"), of(None, "c"), of(Some(1), "a")]);
        let lines: Vec<_> = told.lines().map(|line| line.split_whitespace().collect()).collect();
        let lines: Vec<Vec<&str>> = lines;
        assert_eq!(lines[1..], [["1", "holds", "a"], ["2", "holds", "b"]]);
        assert_eq!(lines[0].join(" "), "The 2 key points:");
        assert_eq!(points(&[of(None, "c")]), "");
    }

    #[test]
    fn papers_have_names() {
        assert_eq!(paper("s3"), Ok(PaperChoice(Some("s3"))));
        assert_eq!(paper("all"), Ok(PaperChoice(None)));
        assert!(paper("s5").unwrap_err().contains("s0, s1, s2, s3, s4 and all"));
    }
}
