//! `netsniff doctor tune`: settings that keep a capture from losing, found by measuring.

use std::fs;
use std::io::stdout;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use netsniff_console::{DONE, FAILED, UsageError, print, quantity, say};
use netsniff_doctor::change::{self, Change, journal};
use netsniff_doctor::kernel::Here;
use netsniff_doctor::setting::Setting as MachineSetting;
use serde::Serialize;

use super::Program;
use super::common::{self, BedArgs, Head};
use super::wire::WireArgs;
use crate::compare::interval::mean;
use crate::load::Load;
use crate::report::number::exact;
use crate::report::{
    Axis as PlotAxis, Chart, Interval as Row, Intervals, Part, Plot, Report, Section, Table, Value,
};
use crate::search::sweep::Axis;
use crate::stop::Stop;
use crate::tools::{Setting, Tool};
use crate::tune::beds::{Beds, candidates};
use crate::tune::{Outcome, TuneGoal, Tuned, Verdict, What, tune, words};

/// Search for settings that keep a capture from losing: one change at a time, measured in turns with what there is
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff doctor tune                                    as many frames a second as can be\n  \
    netsniff doctor tune --goal 300k --size 64 -o tuned     this rate without loss, and a page\n  \
    netsniff doctor tune --goal 300k --try queues=4         another candidate beside those of the list\n  \
    netsniff doctor tune --goal 200k --host quota=10        how a slower host would be tuned\n\n\
    It measures in network namespaces of its own, as netsniff lab does, and needs root, two processors and ip(8). What\n\
    helps beyond noise is kept, and the rest taken back. In the end, kept settings of the kernel are set on this\n\
    machine with --apply, as netsniff doctor --apply does; netsniff doctor --revert takes them back.\n\n\
    Exit code: 0 nothing is lost in the end; 1 failed, or something is lost still; 2 wrong usage")]
pub struct TuneArgs {
    /// What is wanted: frames a second, as 300k, or `lossless` for as many as can be
    #[arg(long, value_name = "RATE", default_value = "lossless", value_parser = goal)]
    goal: Goal,
    /// The tool that captures, of the list that `netsniff lab lossless --tools list` prints
    #[arg(long, value_name = "NAME", default_value = "record")]
    tool: String,
    /// Bytes of frames, frame check sequence included
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = clap::value_parser!(u32).range(64..=1518))]
    size: u32,
    /// How long each run sends
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = quantity::interval)]
    time: Duration,
    /// How often a candidate and what there is are measured against each other
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(2..=50))]
    pairs: u8,
    #[command(flatten)]
    bed: BedArgs,
    #[command(flatten)]
    wire: WireArgs,
    /// An option that the tool begins with, by its long name, as ring=2M; may be repeated
    #[arg(long, value_name = "OPTION=VALUE", value_parser = common::axis)]
    set: Vec<Axis>,
    /// Another option of `netsniff generate`, as flows=1 or burst=1000; may be repeated
    #[arg(long, value_name = "OPTION=VALUE", value_parser = common::axis)]
    send: Vec<Axis>,
    /// Try this, too: a value of the testbed as --host has it, or an option of the tool; may be repeated
    #[arg(long = "try", value_name = "NAME=VALUE", value_parser = common::axis)]
    more: Vec<Axis>,
    /// Try this alone of the list; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    only: Vec<String>,
    /// Time that all of it may take
    #[arg(long, value_name = "TIME", value_parser = quantity::interval)]
    budget: Option<Duration>,
    /// Set kept settings of the kernel on this machine in the end
    #[arg(long)]
    apply: bool,
    /// Where the journal of changes is
    #[arg(long, value_name = "DIR", default_value = journal::FOLDER)]
    state: PathBuf,
    /// A directory for the report
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print nothing but the table
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug)]
struct Goal(Option<f64>);

fn goal(text: &str) -> Result<Goal, String> {
    if text == "lossless" {
        return Ok(Goal(None));
    }
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1e3),
        None => text.strip_suffix('M').map_or((text, 1.0), |digits| (digits, 1e6)),
    };
    let rate = digits
        .parse::<f64>()
        .ok()
        .map(|rate| rate * factor)
        .filter(|rate| (1.0..=1e9).contains(rate));
    rate.map(|rate| Goal(Some(rate)))
        .ok_or_else(|| format!("{text:?} is neither a rate, as 300k, nor lossless"))
}

/// Frames a second that a search begins with.
const FIRST: f64 = 50_000.0;

/// What a run takes beside its frames: a testbed is made, and a tool begins and ends.
const BESIDE: Duration = Duration::from_secs(3);

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], and whatever prevents a testbed or a run.
pub fn run(args: &TuneArgs, program: Program) -> anyhow::Result<u8> {
    let found = args.wire.layout(args.bed.is_placed())?;
    let layout = match found {
        Some(found) => found.with(&common::single(&args.bed.host)?).map_err(UsageError)?,
        None => args.bed.single()?,
    };
    let tool = args.tool()?;
    let load = Load { size: args.size, time: args.time, ..Load::default() };
    let load = load.with(&common::single(&args.send)?);
    common::check(&load, Some(&tool), program)?;
    layout.suits(&tool).map_err(UsageError)?;
    let goal = TuneGoal {
        rate: args.goal.0,
        first: FIRST,
        pairs: args.pairs.into(),
        run: args.time + BESIDE,
    };
    let (netsniff, warden) = super::programs()?;
    let journal =
        layout.wire.as_ref().map(|_| journal::Journal::open(&args.state.join(journal::TRIED)));
    let mut beds = Beds {
        netsniff: &netsniff,
        warden: &warden,
        layout,
        tool,
        load,
        journal: journal.transpose()?,
    };
    let advised = beds.advised(goal.rate.unwrap_or(goal.first))?;
    let more = common::single(&args.more)?;
    let mut all = candidates((&beds.layout, &beds.tool), &beds.load, &advised, &more);
    if !args.only.is_empty() {
        let is_wanted = |name: &str| {
            args.only
                .iter()
                .any(|only| only.trim_start_matches('-') == name.trim_start_matches('-'))
        };
        all.retain(|candidate| is_wanted(&candidate.name));
    }
    if all.is_empty() {
        return Err(UsageError(
            "there is nothing to try: --only names no candidate of the list".to_owned(),
        )
        .into());
    }
    let signal = common::signal()?;
    let stop = Stop::new(&signal, args.budget);
    let tools = [beds.tool.clone()];
    let head = common::head((&tools, &[]), beds.layout.clone(), program);
    let mut told = |line: &str| {
        if !args.quiet {
            say(line);
        }
    };
    let tuned = tune(&mut beds, &all, &goal, &stop, &mut told)?;
    print(stdout(), &table(&tuned)).context("cannot print the table")?;
    if let Some(directory) = &args.output {
        write(directory, &head, &tuned, &beds.tool)?;
    }
    if args.apply {
        apply(args, &tuned)?;
    }
    Ok(if tuned.is_lossless { DONE } else { FAILED })
}

impl TuneArgs {
    fn tool(&self) -> Result<Tool, UsageError> {
        let all = Tool::all();
        let tool = all.iter().find(|tool| tool.name == self.tool);
        let names = || all.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ");
        let tool = tool.ok_or_else(|| {
            UsageError(format!("there is no tool {}; there are {}", self.tool, names()))
        })?;
        if !tool.is_here() {
            return Err(UsageError(format!("{} is not installed", tool.name)));
        }
        tool.with(&common::single(&self.set)?).map_err(UsageError)
    }
}

/// Sets what was kept of the kernel on this machine, by the doctor's journal.
fn apply(args: &TuneArgs, tuned: &Tuned) -> anyhow::Result<()> {
    let kernel = Here::open()?;
    let mut journal = journal::Journal::open(&args.state)?;
    for change in tuned.kept().flat_map(|it| changes(&kernel, &it.what)) {
        let change = change?;
        if change.setting.is_same(&change.before, &change.after) {
            continue;
        }
        change::apply(&kernel, &mut journal, &change)?;
        let Change { setting, before, after } = &change;
        say(&format!("changed ({before}): {}", setting.command(after)));
    }
    Ok(())
}

/// What of a candidate can be set on this machine. The rest is said.
fn changes(kernel: &Here, what: &What) -> Vec<anyhow::Result<Change>> {
    let of_host = |Setting { name, value }: &Setting| {
        let setting = MachineSetting::sysctl(name);
        if !setting.is_known() {
            say(&format!(
                "{name}={value} is a matter of the testbed, and is not set on this machine"
            ));
            return None;
        }
        let before = setting.read(kernel).with_context(|| format!("cannot read {setting}"));
        Some(before.map(|before| Change { before, after: value.clone(), setting }))
    };
    match what {
        What::Host(settings) => settings.iter().filter_map(of_host).collect(),
        What::Machine(change) => vec![Ok(change.clone())],
        What::Tool(_) => Vec::new(),
    }
}

fn rate_in_words(rate: f64) -> String {
    format!("{} frames a second", exact(rate.round() as u64))
}

fn share(of: &[f64]) -> String {
    mean(of).map_or_else(|| "unavailable".to_owned(), |mean| format!("{:.4} %", mean * 100.0))
}

/// What was tried, and what came of it.
fn table(tuned: &Tuned) -> String {
    let mut text = String::new();
    for outcome in &tuned.outcomes {
        text += &format!("{}\n", words(outcome));
    }
    let kept: Vec<_> = tuned.kept().map(|it| it.name.as_str()).collect();
    let kept = if kept.is_empty() { "nothing".to_owned() } else { kept.join(", ") };
    text += &format!(
        "\nat {}: lost {} before, {} after; kept: {kept}\n",
        rate_in_words(tuned.rate),
        share(&tuned.before),
        share(&tuned.after)
    );
    if let Some(why) = tuned.ended {
        text += &format!("not all was tried: {}\n", why.words());
    }
    text
}

/// All that was measured.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    head: &'a Head<'a>,
    #[serde(flatten)]
    tuned: &'a Tuned,
}

fn write(
    directory: &std::path::Path,
    head: &Head<'_>,
    tuned: &Tuned,
    tool: &Tool,
) -> anyhow::Result<()> {
    fs::create_dir(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let json = serde_json::to_string_pretty(&Written { head, tuned })? + "\n";
    common::write(directory, "tune.json", &json)?;
    let lead = "Each change was measured in turns with what there was, and kept where less was lost beyond noise.";
    common::write_page(directory, "tune", &page(head, lead, tuned, tool))
}

fn page(head: &Head<'_>, lead: &str, tuned: &Tuned, tool: &Tool) -> Report {
    let columns = [
        ("change", false),
        ("rate", true),
        ("lost without", true),
        ("lost with", true),
        ("verdict", false),
    ];
    let row = |it: &Outcome| {
        let verdict = match &it.verdict {
            Verdict::Kept => "kept".to_owned(),
            Verdict::NoEffect => "no effect beyond noise".to_owned(),
            Verdict::Worse => "worse".to_owned(),
            Verdict::Untried(why) => format!("not tried: {why}"),
        };
        vec![
            it.candidate.name.clone(),
            rate_in_words(it.rate),
            share(&it.without),
            share(&it.with),
            verdict,
        ]
    };
    let table = Table {
        columns: columns.map(|(name, is_number)| (name.to_owned(), is_number)).to_vec(),
        rows: tuned.outcomes.iter().map(row).collect(),
        note: Some("Shares are means of the frames that were sent. What was kept stands in the rows below it.".to_owned()),
    };
    let summary = format!(
        "At {} {} lost {} of the frames before, and {} after.",
        rate_in_words(tuned.rate),
        tool.name,
        share(&tuned.before),
        share(&tuned.after)
    );
    let section = |title: &str, parts| Section { title: title.to_owned(), parts };
    let mut sections = vec![
        section("Before and after", vec![Part::Text(summary)]),
        section("Each change by itself", vec![Part::Table(table), Part::Plot(plot(tuned))]),
    ];
    let notes = notes(tuned);
    if !notes.is_empty() {
        sections.push(section(NOTES, notes.into_iter().map(Part::Text).collect()));
    }
    head.page("What keeps this host from losing", lead, sections)
}

/// Over what is said of candidates that a loss does not tell all of.
const NOTES: &str = "What loss does not judge";

/// That, a sentence for each.
fn notes(tuned: &Tuned) -> Vec<String> {
    let noted = tuned.outcomes.iter().map(|it| &it.candidate);
    noted.filter_map(|it| Some(format!("{}: {}.", it.name, it.note?.words()))).collect()
}

/// Differences with their intervals.
fn plot(tuned: &Tuned) -> Plot {
    let row = |it: &Outcome| {
        let ends = it.interval.ends();
        Row {
            label: it.candidate.name.clone(),
            value: it.difference.map_or(Value::Unknown, |value| Value::Exactly(value * 100.0)),
            ends: ends.map_or([None; 2], |ends| ends.map(|end| Some(end * 100.0))),
            words: it
                .difference
                .map_or_else(|| "unavailable".to_owned(), |value| format!("{:+.3}", value * 100.0)),
            is_apart: matches!(it.verdict, Verdict::Kept | Verdict::Worse),
        }
    };
    let x = PlotAxis {
        label: "loss with the change less that without it, in points of percent".to_owned(),
        ..PlotAxis::default()
    };
    let rows = tuned.outcomes.iter().filter(|it| it.difference.is_some()).map(row).collect();
    Plot::new(
        "Effect of each change",
        "Intervals have the true difference in 95 % of all cases. Left of 0 less is lost.",
        Chart::Intervals(Intervals { x, none: 0.0, rows }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_rates_or_as_many_as_can_be() {
        assert!(goal("lossless").unwrap().0.is_none());
        assert_eq!(goal("300k").unwrap().0, Some(300_000.0));
        assert_eq!(goal("1.5M").unwrap().0, Some(1_500_000.0));
        for bad in ["", "0", "-1", "fast", "300q", "inf", "nan"] {
            assert!(goal(bad).is_err(), "{bad}");
        }
    }
}
