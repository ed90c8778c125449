//! `netsniff lab predict`: what will be lost, said before it is tried.

mod limit;

use std::fs;
use std::io::stdout;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use netsniff_lab::bed::{Bed, Placement};
use netsniff_lab::load::{KEEP_GAPS, Load};
use netsniff_lab::model::Model;
use netsniff_lab::model::calibrate::{MOST, RAW, Subject, calibrate, raw_of, settings};
use netsniff_lab::model::ledger::{Entry, Scored, models, scored};
use netsniff_lab::model::plan::{Held, Pace, held};
use netsniff_lab::model::predict::Question;
use netsniff_lab::model::traffic::Traffic;
use netsniff_lab::report::sections;
use netsniff_lab::stop::Stop;
use netsniff_lab::tools::{FLAG, Setting, Tool};
use netsniff_lab::trial;
use netsniff_lab::work::Cost;

use super::common::{self, BedArgs};
use super::csv;
use super::journal::Journal;
use super::question::{MOST_QUESTIONS, QuestionArgs, fits, seconds, tell_traffic};
use super::wire::NoWireArgs;
use crate::clock;
use crate::commands::{DONE, FAILED, UsageError, print, quantity, say};
use crate::summary::number::exact;

/// Predictions, what they come from, and what came.
const LEDGER: &str = "ledger.jsonl";

/// How often a run that proves nothing is repeated, in all.
const TRIED: u32 = 3;

/// Looks at what an application costs by itself.
const LOOKS: usize = 5;

/// What a run takes beside the time that frames are sent.
const AROUND: Duration = Duration::from_secs(2);

/// Say what a capture will lose, before it is tried, and how good that was
///
/// A calibration of less than a minute finds what frames cost this machine. Every prediction is written down before it is
/// run, and scored after.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff lab predict -o model --size 512 --rate 100k,200k --zip 6      what will be lost\n  \
    netsniff lab predict -o model --score                                  and what is\n  \
    netsniff lab predict -o web --replay web.pcapng --tool analyze         of a capture, as it was recorded\n  \
    netsniff lab predict -o web --replay web.pcapng --tool analyze --rate 50k,200k --keep-gaps   and faster\n  \
    netsniff lab predict -o held --plan 60 --seed 7 --score --lossless 9   points that nobody knows before\n\n\
    -o has ledger.jsonl, which is only added to: plan, model, predictions, runs; predict.html, a report with plots; and\n\
    predictions.csv, a line for each prediction and what came of it.\n\n\
    Exit code: 0 fine; 1 failed, or ended before all was done; 2 wrong usage")]
pub(super) struct PredictArgs {
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
    /// Find out by trying what the highest rate without loss is, for so many of the predictions of a plan: of each some seven
    /// seconds long runs, ten or more
    #[arg(long, value_name = "N", requires = "score", requires = "plan", default_value_t = 0)]
    lossless: u32,
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
pub(super) fn run(args: &PredictArgs) -> anyhow::Result<u8> {
    let traffic = args.asked.replay.as_deref().map(Traffic::read).transpose()?;
    if let Some(traffic) = &traffic {
        tell_traffic(traffic);
    }
    if args.asked.keep_gaps && traffic.is_none() {
        return Err(UsageError("--keep-gaps is of --replay".to_owned()).into());
    }
    let questions = args.asked.questions(traffic.as_ref());
    if questions.is_empty() && args.plan.is_none() && !args.score && !args.calibrate {
        let said = "--rate asks, --plan makes points to ask, --score runs what was predicted, --calibrate finds a model";
        return Err(UsageError(said.to_owned()).into());
    }
    common::frames_fit(args.asked.size.as_slice())?;
    if questions.len() > MOST_QUESTIONS {
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
    fs::create_dir_all(&args.output)
        .with_context(|| format!("cannot make {}", args.output.display()))?;
    let mut journal: Journal<Entry> = Journal::open(&args.output.join(LEDGER), true)?;
    let signal = common::signal()?;
    let stop = Stop::new(&signal, args.budget);
    let mut lab = Lab { args, tool, traffic, journal: &mut journal, stop: &stop, bed: None };
    let done = lab.work(&questions);
    let tool = lab.tool.clone();
    drop(lab);
    let all = scored(journal.entries());
    let model = last_model(journal.entries());
    if let Some(model) = model {
        let head = common::head((&[tool], &[]), model.layout.clone());
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

fn tool(name: &str) -> Result<Tool, UsageError> {
    let ours = || Tool::all().into_iter().filter(|tool| tool.program.is_none());
    ours().find(|tool| tool.name == name).ok_or_else(|| {
        let names: Vec<_> = ours().map(|tool| tool.name).collect();
        UsageError(format!("losses of {name} cannot be predicted; there are {}", names.join(", ")))
    })
}

/// What predicts.
fn last_model(entries: &[Entry]) -> Option<&Model> {
    entries.iter().rev().find_map(|entry| match entry {
        Entry::Model { model, .. } => Some(&**model),
        _ => None,
    })
}

/// A ledger, and what adds to it.
struct Lab<'a> {
    args: &'a PredictArgs,
    tool: Tool,
    traffic: Option<Traffic>,
    journal: &'a mut Journal<Entry>,
    stop: &'a Stop<'a>,
    bed: Option<Bed>,
}

impl Lab<'_> {
    /// Does what is asked for; whether all of it was done.
    fn work(&mut self, questions: &[Question]) -> anyhow::Result<bool> {
        let points = match (self.args.plan, self.args.seed) {
            (Some(number), Some(seed)) => {
                let points = held(seed, number, self.args.asked.time.as_secs_f64());
                self.add(Entry::Plan { at: now(), seed, points: points.clone() })?;
                points
            }
            _ => Vec::new(),
        };
        let model = self.model(!points.is_empty())?;
        let asked: Vec<_> = points.iter().map(|point| &point.question).chain(questions).collect();
        if let (Some(traffic), None, false) = (&model.traffic, &self.traffic, questions.is_empty())
        {
            let path = traffic.path.display();
            let said = format!(
                "the model of the ledger is of {path}: --replay says that questions are, too"
            );
            return Err(UsageError(said).into());
        }
        for question in &asked {
            fits(&model, question)?;
        }
        self.tell_older();
        self.tell_plan(asked.len());
        let points = points.iter().map(|point| (point.question, Some(point)));
        let asked: Vec<_> =
            points.chain(questions.iter().map(|question| (*question, None))).collect();
        // Machines are faster and slower from minute to minute: what is run is predicted right before.
        let together = if self.args.score { 1 } else { asked.len().max(1) };
        for (number, some) in asked.chunks(together).enumerate() {
            if !self.answer(&model, some)? {
                return Ok(false);
            }
            if self.args.score {
                self.say(&format!("{} of {} predictions", number + 1, asked.len()));
                if !self.score(&model)? && self.is_over() {
                    return Ok(false);
                }
                if is_among(number, asked.len(), self.args.lossless) && !self.find_rate(&model)? {
                    return Ok(false);
                }
            }
        }
        if self.args.score { self.score(&model) } else { Ok(true) }
    }

    /// Predicts what is asked, and points of a plan with the rates that they come to; whether it could.
    fn answer(
        &mut self,
        model: &Model,
        asked: &[(Question, Option<&Held>)],
    ) -> anyhow::Result<bool> {
        let questions: Vec<_> = asked.iter().map(|(question, _)| question).collect();
        let raws = raws(&questions, model.traffic.as_ref(), self.stop)?;
        let Some(raws) = raws else { return Ok(false) };
        for ((question, point), raw) in asked.iter().zip(raws) {
            if self.is_over() {
                return Ok(false);
            }
            let question = point.map_or(*question, |point| point.question(model, raw));
            self.predict(model, &question, raw, point.map(|point| point.pace))?;
        }
        Ok(true)
    }

    /// Finds the rate without loss of the newest prediction; whether it could.
    fn find_rate(&mut self, model: &Model) -> anyhow::Result<bool> {
        let all = scored(self.journal.entries());
        let Some(last) = all.last() else { return Ok(true) };
        let (number, question) = (last.number, *last.question);
        let predicted = last.prediction.lossless.value;
        let (found, trials) = limit::find(self, model, &question, predicted)?;
        self.add(Entry::Rate { at: now(), number, found, trials })?;
        Ok(!self.is_over())
    }

    fn is_over(&self) -> bool {
        self.stop.before(Duration::ZERO).is_some()
    }

    fn add(&mut self, entry: Entry) -> anyhow::Result<()> {
        self.journal.add(entry)
    }

    fn say(&self, text: &str) {
        if !self.args.quiet {
            say(text);
        }
    }

    /// The model of the ledger, or a new one.
    fn model(&mut self, is_planned: bool) -> anyhow::Result<Model> {
        let layout = self.args.bed.single()?;
        if layout.tap.is_some() || layout.disk.is_some() || layout.files.is_some() {
            let said = "no model knows a tap or a disk: predictions are of testbeds without them";
            return Err(UsageError(said.to_owned()).into());
        }
        let is_one_whole = layout.processors == 1 && layout.quota.is_none();
        if layout.placement != Placement::Rps || !is_one_whole {
            let said = "the model is of --placement rps and of one whole processor: elsewhere frames wait in other queues";
            return Err(UsageError(said.to_owned()).into());
        }
        let known = last_model(self.journal.entries()).cloned();
        if let Some(model) = known.filter(|_| !self.args.calibrate && !is_planned) {
            ensure!(
                model.tool == self.tool.name && model.layout == layout,
                "the model of the ledger is of {} on another testbed, or of another tool; --calibrate makes a new one",
                model.tool
            );
            ensure!(
                self.traffic.as_ref().is_none_or(|now| {
                    model.traffic.as_ref().is_some_and(|before| before.path == now.path)
                }),
                "the model of the ledger is of other traffic; --calibrate makes a new one"
            );
            let traffic = model.traffic.as_ref().map(Traffic::again).transpose()?;
            return Ok(Model { traffic, ..model });
        }
        self.say(&format!("calibrating, {} at most", common::in_words(MOST)));
        self.make_bed(&layout)?;
        let Some(bed) = &self.bed else { bail!("there is no testbed") };
        let (program, _) = super::programs()?;
        let is_quiet = self.args.quiet;
        let mut tell = |text: &str| {
            if !is_quiet {
                say(&format!("calibrating: {text}"));
            }
        };
        let traffic = self.traffic.as_ref();
        let subject = Subject { tool: &self.tool, layout: &layout, traffic };
        let model = calibrate(bed, &program, subject, self.stop, &mut tell)?;
        self.say(&format!("calibrated in {:.1} s", model.seconds));
        self.add(Entry::Model { at: now(), model: Box::new(model.clone()) })?;
        Ok(model)
    }

    fn make_bed(&mut self, layout: &netsniff_lab::bed::Layout) -> anyhow::Result<()> {
        if self.bed.is_none() {
            let (_, warden) = super::programs()?;
            self.bed = Some(Bed::make(&warden, layout)?.until(self.stop));
        }
        Ok(())
    }

    fn predict(
        &mut self,
        model: &Model,
        question: &Question,
        raw: f64,
        pace: Option<Pace>,
    ) -> anyhow::Result<()> {
        let prediction = Box::new(model.predict(question, raw));
        let number = scored(self.journal.entries()).len();
        let number = u32::try_from(number).context("the ledger is full")?;
        self.add(Entry::Prediction { at: now(), number, pace, question: *question, prediction })
    }

    /// Tells how long it takes, where no run is repeated.
    fn tell_plan(&self, asked: usize) {
        let newest = models(self.journal.entries());
        let all = scored(self.journal.entries());
        let left = all.iter().filter(|one| one.model == newest && one.losses.is_empty()).count();
        let runs = if self.args.score { (asked + left) as u32 * self.args.repeat } else { 0 };
        let looks = RAW * LOOKS as u32 * asked as u32;
        let searches = limit::PLANNED * self.args.lossless;
        let time = looks + searches + (self.args.asked.time + AROUND) * runs;
        let (asked, runs) = (exact(asked as i128), exact(runs.into()));
        let time = common::in_words(time);
        self.say(&format!(
            "{asked} predictions and {runs} runs take about {time} if none is repeated"
        ));
    }

    /// Tells how many predictions are not run, since they are of older models.
    fn tell_older(&self) {
        let newest = models(self.journal.entries());
        let all = scored(self.journal.entries());
        let is_older =
            |one: &&Scored<'_>| one.model != newest && one.losses.len() < self.args.repeat as usize;
        let older = all.iter().filter(is_older).count();
        if older > 0 && self.args.score {
            self.say(&format!("{} of older models are not run", exact(older as i128)));
        }
    }

    /// Runs all predictions that were not run often enough; whether it could.
    fn score(&mut self, model: &Model) -> anyhow::Result<bool> {
        self.make_bed(&model.layout)?;
        let repeat = self.args.repeat as usize;
        // What other models predicted was of another testbed, tool or traffic, or of a machine that was another one then.
        let newest = models(self.journal.entries());
        let is_missing = |one: &Scored<'_>, round: usize| {
            one.model == newest && one.losses.len() < round && one.faulty < repeat * TRIED as usize
        };
        let missing = |journal: &Journal<Entry>, round: usize| -> Vec<(u32, Question)> {
            let all = scored(journal.entries());
            let missing = all.iter().filter(|one| is_missing(one, round));
            missing.map(|one| (one.number, *one.question)).collect()
        };
        // Rounds over all predictions, so that a disturbance does not meet all runs of one.
        for round in 1..=repeat {
            for _ in 0..TRIED {
                let left = missing(self.journal, round);
                for (at, (number, question)) in left.iter().enumerate() {
                    let time = seconds(question)? + AROUND;
                    if self.stop.before(time).is_some() {
                        return Ok(false);
                    }
                    let Some(trial) = self.run(model, question)? else { return Ok(false) };
                    let rest = time * u32::try_from(left.len() - at - 1).unwrap_or(u32::MAX);
                    let rest = common::in_words(rest);
                    let run = super::table::trial(&trial);
                    self.say(&format!("round {round} of {repeat}, {rest} left of it: {run}"));
                    self.add(Entry::Run { at: now(), number: *number, trial: Box::new(trial) })?;
                }
            }
        }
        let all = scored(self.journal.entries());
        Ok(all.iter().all(|one| one.model != newest || one.losses.len() >= repeat))
    }

    /// Runs what was asked; `None` after a signal.
    fn run(&self, model: &Model, question: &Question) -> anyhow::Result<Option<trial::Trial>> {
        let (program, _) = super::programs()?;
        let Some(bed) = &self.bed else { bail!("there is no testbed") };
        let tool = self.tool.with(&settings(question.cost, question.ring));
        let tool = tool.map_err(anyhow::Error::msg)?;
        let (name, value) = match question.keeps_gaps {
            true => (KEEP_GAPS, FLAG.to_owned()),
            false => ("burst", question.burst.to_string()),
        };
        let together = Setting { name: name.to_owned(), value };
        let load = Load {
            size: question.size,
            rate: Some(question.rate),
            time: seconds(question)?,
            capture: model.traffic.as_ref().map(|traffic| traffic.path.clone()),
            ..Load::default()
        };
        match trial::run(bed, Path::new(&program), &tool, &load.with(&[together])) {
            _ if self.stop.is_set() => Ok(None),
            result => result.map(Some),
        }
    }
}

/// Whether a number is one of so many that are spread evenly over all.
fn is_among(number: usize, all: usize, chosen: u32) -> bool {
    let before = |number: usize| number * chosen as usize / all.max(1);
    before(number + 1) > before(number)
}

/// What the application costs by itself, for each question: the middle of some looks in rounds over all of them, since
/// machines are faster and slower from second to second.
/// `None` where it was ended.
fn raws(
    questions: &[&Question],
    traffic: Option<&Traffic>,
    stop: &Stop<'_>,
) -> anyhow::Result<Option<Vec<f64>>> {
    let mut looks: Vec<((u32, Cost), Vec<f64>)> = Vec::new();
    for question in questions {
        let of = (question.size, question.cost);
        if !looks.iter().any(|(known, _)| *known == of) {
            looks.push((of, Vec::new()));
        }
    }
    for _ in 0..LOOKS {
        for ((size, cost), looks) in &mut looks {
            if stop.before(RAW).is_some() {
                return Ok(None);
            }
            looks.push(raw_of(*cost, *size, traffic)?);
        }
    }
    for (_, looks) in &mut looks {
        looks.sort_by(f64::total_cmp);
    }
    let middle = |question: &&Question| {
        let of = (question.size, question.cost);
        let found = looks.iter().find(|(known, _)| *known == of);
        found.map_or(0.0, |(_, looks)| looks[looks.len() / 2])
    };
    Ok(Some(questions.iter().map(middle).collect()))
}

fn now() -> i64 {
    clock::now().nanos()
}
