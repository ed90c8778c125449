//! `netsniff lab sweep`: losses over all combinations of values.

use std::fs::{self, File, OpenOptions};
use std::io::{Write as _, stdout};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use netsniff_lab::bed::Bed;
use netsniff_lab::stop::Stop;
use netsniff_lab::sweep::{self, Axis, Plan, Point, Run};
use netsniff_lab::tools::Tool;

use super::common::{self, CommonArgs};
use super::reports::{self, RUNS, SWEEP};
use super::table;
use crate::commands::{DONE, FAILED, UsageError, print, quantity, say};
use crate::summary::number::exact;

/// Losses over all combinations of tools, sizes, rates and options
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff lab sweep --tools record --sizes 64,512 --rates 100k:500k:50k -o report\n  \
    netsniff lab sweep --tools record --sizes 76:1204:8 --rates top --time 5s --repeat 1\n  \
    netsniff lab sweep --tools count --rates 400k --vary ring=2M,16M,64M --vary wait=poll,adaptive\n\n\
    -o has runs.jsonl, which every run is added to when it is made, sweep.csv, and sweep.json, the machine.\n\n\
    Exit code: 0 fine; 1 failed, or ended before all was measured; 2 wrong usage")]
pub(super) struct SweepArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Frames a second: a rate, a range from:to:step, several with commas between them, or `top`
    #[arg(long, value_name = "RATES", required = true, value_parser = rates)]
    rates: Rates,
    /// Values of an option of the tools, by its long name, as ring=2M,64M; other tools than netsniff have them where
    /// {ring} stands in their --command; may be repeated
    #[arg(long, value_name = "OPTION=VALUES", value_parser = axis)]
    vary: Vec<Axis>,
    /// How long each run sends
    #[arg(long, value_name = "TIME", value_parser = quantity::interval, default_value = "10s")]
    time: Duration,
    /// How often each combination is run
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Go on with the runs that are missing in the directory of -o
    #[arg(long, requires = "output")]
    resume: bool,
}

/// Rates; `None` for full speed.
#[derive(Clone, Debug)]
struct Rates(Vec<Option<f64>>);

/// Rates at most, and combinations: more would take weeks.
const MOST: usize = 100_000;

fn rates(text: &str) -> Result<Rates, String> {
    let mut rates = Vec::new();
    for part in text.split(',') {
        if part == "top" {
            rates.push(None);
            continue;
        }
        let bounds = part.split(':').map(quantity::rate).collect::<Result<Vec<_>, _>>()?;
        let (from, to, step) = match bounds[..] {
            [rate] => (rate, rate, rate),
            [from, to, step] => (from, to, step),
            _ => return Err(format!("{part:?} is no range: it has a begin, an end and a step")),
        };
        let steps = ((to - from) / step + 1e-9).floor();
        if !(0.0..MOST as f64).contains(&steps) {
            return Err(format!("there is no rate in {part:?}, or too many"));
        }
        rates.extend((0..=steps as u32).map(|number| Some(from + f64::from(number) * step)));
    }
    Ok(Rates(rates))
}

fn axis(text: &str) -> Result<Axis, String> {
    let (name, values) = text.split_once('=').ok_or("expected as ring=2M,64M")?;
    let values = values.split(',').map(str::to_owned).collect();
    Ok(Axis { name: name.trim_start_matches('-').to_owned(), values })
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], and whatever prevents a testbed or a run.
pub(super) fn run(args: &SweepArgs) -> anyhow::Result<u8> {
    let common = &args.common;
    let (sizes, (tools, left_out)) = (common.sizes()?, common.chosen()?);
    let plan = Plan {
        tools: &tools,
        sizes: &sizes,
        rates: &args.rates.0,
        axes: &args.vary,
        time: args.time,
        repetitions: args.repeat,
    };
    if plan.number().is_none_or(|number| number > MOST) {
        let said = format!("these are more than {} combinations", exact(MOST as i128));
        return Err(UsageError(said).into());
    }
    let points = plan.points();
    check(&tools, &points)?;
    let signal = common::signal()?;
    let (mut runs, mut file) = match &common.output {
        None => (Vec::new(), None),
        Some(directory) => {
            let (runs, file) = open(directory, args.resume)?;
            let head = serde_json::to_string_pretty(&common.head(&tools, &left_out))? + "\n";
            common::write(directory, SWEEP, &head)?;
            (runs, Some(file))
        }
    };
    let left = sweep::left(points.clone(), &runs);
    common.tell_plan(left.len(), "run", plan.duration(left.len()), "");
    let (program, warden) = super::programs()?;
    let stop = Stop::new(&signal, common.budget);
    let bed = Bed::make(&warden, &common.layout())?;
    let begin = Instant::now();
    let mut ended = None;
    for (number, point) in left.iter().enumerate() {
        let mut tell = |run: Run| {
            if !common.quiet {
                let time = remaining(begin.elapsed(), number, left.len());
                let run = table::run(&run);
                say(&format!("{} of {}, {time}: {run}", number + 1, left.len()));
            }
            keep(file.as_mut(), &run)?;
            runs.push(run);
            Ok(())
        };
        ended = sweep::run(&bed, &program, (&tools, point), &stop, &mut tell)?;
        if ended.is_some() {
            break;
        }
    }
    drop(bed);
    if let Some(directory) = &common.output {
        common::write(directory, "sweep.csv", &table::runs_csv(&runs))?;
    }
    print(stdout(), &table::points(&points, &runs)).context("cannot print the table")?;
    Ok(if ended.is_none() { DONE } else { FAILED })
}

/// Whether all tools have all options.
fn check(tools: &[Tool], points: &[Point]) -> anyhow::Result<()> {
    for point in points {
        let tool = tools.iter().find(|tool| tool.name == point.tool);
        if let Some(Err(said)) = tool.map(|tool| tool.with(&point.settings)) {
            return Err(UsageError(said).into());
        }
    }
    Ok(())
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

/// Opens a directory for runs; with those that are there, where it is gone on with.
fn open(directory: &Path, resume: bool) -> anyhow::Result<(Vec<Run>, File)> {
    let path = directory.join(RUNS);
    if !resume {
        fs::create_dir(directory).with_context(|| {
            format!("cannot make {}; --resume goes on with one", directory.display())
        })?;
    }
    let text = if resume {
        let text = fs::read_to_string(&path);
        text.with_context(|| format!("cannot read {}, to go on with it", path.display()))?
    } else {
        String::new()
    };
    let (runs, whole) = reports::runs(&text, &path)?;
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let file = file.with_context(|| format!("cannot write {}", path.display()))?;
    ensure!(file.set_len(whole as u64).is_ok(), "cannot cut the last line of {}", path.display());
    Ok((runs, file))
}

fn keep(file: Option<&mut File>, run: &Run) -> anyhow::Result<()> {
    let Some(file) = file else { return Ok(()) };
    let line = serde_json::to_string(run)? + "\n";
    file.write_all(line.as_bytes()).context("cannot write the run down")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_lists_and_ranges() {
        let all = rates("100k:300k:100k,0.5M,top").unwrap().0;
        assert_eq!(all, [Some(1e5), Some(2e5), Some(3e5), Some(5e5), None]);
        for wrong in ["", "x", "1:2", "5:1:1", "1:1M:1", "1:2:0"] {
            assert!(rates(wrong).is_err(), "{wrong}");
        }
        let axis = axis("--ring=2M,64M").unwrap();
        assert_eq!(
            (axis.name.as_str(), &axis.values[..]),
            ("ring", &["2M".into(), "64M".into()][..])
        );
    }
}
