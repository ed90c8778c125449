//! `netsniff lab predict`: what will be lost, said before it is tried.

mod burst;
mod lab;
mod limit;
mod score;

use std::fs;
use std::io::stdout;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use netsniff_console::number::exact;
use netsniff_console::{DONE, FAILED, UsageError, print, quantity};

use self::lab::Lab;
use super::Program;
use super::common::{self, BedArgs};
use super::csv;
use super::journal::Journal;
use super::question::{MOST_QUESTIONS, QuestionArgs, print_traffic};
use super::wire::NoWireArgs;
use crate::model::Model;
use crate::model::ledger::{LedgerEntry, scored};
use crate::model::traffic::Traffic;
use crate::report::sections;
use crate::stop::Stop;
use crate::tools::Tool;

/// Predictions, what they come from, and what came.
const LEDGER: &str = "ledger.jsonl";

/// The tool that goes as deep as it is told to.
const ANALYZE: &str = "analyze";

/// How often a run that proves nothing is repeated, in all.
const TRIED: u32 = 3;

/// What a run takes beside the time that frames are sent.
const AROUND: Duration = Duration::from_secs(2);

/// Say what a capture will lose, before it is tried, and how good that was
///
/// A calibration of a minute at most finds what frames cost this machine. Every prediction is written down before it is
/// run, and scored after.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff lab predict -o model --size 512 --rate 100k,200k --zip 6      what will be lost\n  \
    netsniff lab predict -o model --score                                  and what is\n  \
    netsniff lab predict -o deep --tool analyze --depth tcp,protocols --rate 200k   at two depths\n  \
    netsniff lab predict -o web --replay web.pcapng --tool analyze         of a capture, as it was recorded\n  \
    netsniff lab predict -o web --replay web.pcapng --tool analyze --rate 50k,200k --keep-gaps   and faster\n  \
    netsniff lab predict -o held --plan 60 --seed 7 --score --lossless 9 --bursts 9   points that nobody knows before\n\n\
    -o has ledger.jsonl, which is only added to: plan, model, predictions, runs; predict.html, a report with plots; and\n\
    predictions.csv, a line for each prediction and what came of it.\n\n\
    Exit code: 0 fine; 1 failed, or ended before all was done; 2 wrong usage")]
pub struct PredictArgs {
    /// The directory of the ledger; it is made where there is none
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// What captures: work, record, analyze or count
    #[arg(long, value_name = "NAME", default_value = "work")]
    tool: String,
    #[command(flatten)]
    bed: BedArgs,
    #[command(flatten)]
    _no_wire: NoWireArgs,
    /// Calibrate again, though the ledger has a model
    #[arg(long)]
    calibrate: bool,
    #[command(flatten)]
    asked: QuestionArgs,
    /// Predict so many points of a plan, which is written down before the calibration
    #[arg(long, value_name = "N", requires = "seed", conflicts_with_all = ["rate", "size", "burst", "rings", "zip", "delay"],
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    plan: Option<u32>,
    /// What the points of the plan come from
    // No `requires`: clap takes what is in conflict with an argument for that argument where it is required.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run what was predicted, and tell how good it was
    #[arg(long)]
    score: bool,
    /// Find out by trying what the highest rate without loss is, for so many of the predictions: of each ten runs or more, of
    /// some seven seconds
    #[arg(long, value_name = "N", requires = "score", default_value_t = 0)]
    lossless: u32,
    /// Find out by trying what the longest burst at the sender's full speed is that loses nothing, for so many of the
    /// predictions: of each some ten runs of a few bursts, and more where rings are large
    #[arg(long, value_name = "N", requires = "score", default_value_t = 0)]
    bursts: u32,
    /// How often each prediction is run
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Time that all of it may take; what would exceed it is not begun
    #[arg(long, value_name = "TIME", value_parser = quantity::interval)]
    budget: Option<Duration>,
    /// Print nothing but the table
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], a ledger that cannot be read, and whatever prevents a testbed or a run.
pub(super) fn run(args: &PredictArgs, program: Program) -> anyhow::Result<u8> {
    let traffic = args.asked.replay.as_deref().map(Traffic::read).transpose()?;
    if let Some(traffic) = &traffic {
        print_traffic(traffic);
    }
    let questions = args.asked.questions(traffic.as_ref());
    let tool = check(args, traffic.is_some(), questions.len())?;
    fs::create_dir_all(&args.output)
        .with_context(|| format!("cannot make {}", args.output.display()))?;
    let mut journal: Journal<LedgerEntry> = Journal::open(&args.output.join(LEDGER), true)?;
    let signal = common::signal()?;
    let stop = Stop::new(&signal, args.budget);
    let mut lab = Lab { args, tool, traffic, journal: &mut journal, stop: &stop, bed: None };
    let done = lab.work(&questions);
    let tool = lab.tool.clone();
    let interfaces = lab.bed.as_ref().map_or_else(Vec::new, crate::testbed::Testbed::nics);
    drop(lab);
    let all = scored(journal.entries());
    let model = last_model(journal.entries());
    if let Some(model) = model {
        let head = common::head((&[tool], &[]), model.layout.clone(), program);
        // Of what was measured on, if it was in this call.
        let head = head.with_interfaces(interfaces);
        let lead = "What a capture will lose, said before it was tried, and what came.";
        let sections = sections::predictions(Some(model), &all);
        let page = head.page("Predicted losses", lead, sections);
        common::write_page(&args.output, "predict", &page)?;
        common::write(&args.output, "predictions.csv", &csv::predictions(&all))?;
    }
    // How good they were comes last, where it is seen.
    let sections = sections::predictions(None, &all).into_iter().rev();
    let text: String = sections.map(|section| section.text()).collect();
    print(stdout(), &text).context("cannot print the table")?;
    // What was measured is there, whatever prevents the rest.
    Ok(if done? { DONE } else { FAILED })
}

/// Refuses options that are not of each other, and returns the tool whose losses are predicted.
fn check(args: &PredictArgs, is_replay: bool, questions: usize) -> anyhow::Result<Tool> {
    if args.asked.keep_gaps && !is_replay {
        return Err(UsageError("--keep-gaps is of --replay".to_owned()).into());
    }
    if questions == 0 && args.plan.is_none() && !args.score && !args.calibrate {
        let said = "--rate asks, --plan makes points to ask, --score runs what was predicted, --calibrate finds a model";
        return Err(UsageError(said.to_owned()).into());
    }
    common::frames_fit(args.asked.size.as_slice())?;
    if questions > MOST_QUESTIONS {
        let most = exact(MOST_QUESTIONS as i128);
        return Err(UsageError(format!("these are more than {most} questions")).into());
    }
    let tool = tool(&args.tool)?;
    let is_dialled = args.asked.delay.is_some() || !args.asked.zip.is_empty();
    if args.seed.is_some() && args.plan.is_none() {
        return Err(UsageError("--seed is of --plan".to_owned()).into());
    }
    if args.plan.is_some() && is_dialled {
        return Err(UsageError("the points of --plan have levels of their own".to_owned()).into());
    }
    if tool.name != "work" && (is_dialled || args.plan.is_some()) {
        let said = "--zip, --delay and --plan are of the tool work alone";
        return Err(UsageError(said.to_owned()).into());
    }
    if tool.name != ANALYZE && !args.asked.depth.is_empty() {
        return Err(UsageError("--depth is of the tool analyze alone".to_owned()).into());
    }
    Ok(tool)
}

fn tool(name: &str) -> Result<Tool, UsageError> {
    let ours = || Tool::all().into_iter().filter(|tool| tool.program.is_none());
    ours().find(|tool| tool.name == name).ok_or_else(|| {
        let names: Vec<_> = ours().map(|tool| tool.name).collect();
        UsageError(format!("losses of {name} cannot be predicted; there are {}", names.join(", ")))
    })
}

fn last_model(entries: &[LedgerEntry]) -> Option<&Model> {
    entries.iter().rev().find_map(|entry| match entry {
        LedgerEntry::Model { model, .. } => Some(&**model),
        _ => None,
    })
}
