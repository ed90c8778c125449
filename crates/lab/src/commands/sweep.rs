//! `netsniff lab sweep`: losses over all combinations of values.

use std::fs;
use std::io::stdout;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use netsniff_console::number::exact;
use netsniff_console::{DONE, FAILED, UsageError, print, quantity};

use super::Program;
use super::campaign::{Campaign, Directory};
use super::common::{self, CommonArgs, Head};
use super::table;
use crate::content::TrafficContent;
use crate::load::FCS_LEN;
use crate::search::sweep::{self, Axis, Pace, Plan, Point};
use crate::stop::Stop;
use crate::testbed::Layout;
use crate::tools::Tool;

/// Losses over all combinations of tools, sizes, rates and options
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff lab sweep --tools record --sizes 64,512 --rates 100k:500k:50k -o report\n  \
    netsniff lab sweep --tools record --sizes 76:1204:8 --rates top --time 5s --repeat 1\n  \
    netsniff lab sweep --tools count --rates 400k --vary ring=2M,16M,64M --vary wait=poll,adaptive\n  \
    netsniff lab sweep --tools record --sizes 76:1204:8 --ifg 12 --link 1g --time 5s\n  \
    netsniff lab sweep --rates 100k --send burst=1,1000 --host net.core.netdev_max_backlog=100,1000\n  \
    netsniff lab sweep --replay browsing.pcapng --send hosts=1,30 --rates 1k:50k:5k\n\n\
    -o has runs.jsonl, which every run is added to when it is made, sweep.csv, sweep.json, the machine, and sweep.html,\n\
    a report with plots.\n\n\
    Exit code: 0 fine; 1 failed, ended before all was measured, or has runs that prove nothing; 2 wrong usage")]
pub struct SweepArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Frames a second: a rate, a range from:to:step, several with commas between them, or `top`
    #[arg(long, value_name = "RATES", required_unless_present = "ifg", value_parser = rates)]
    rates: Option<Rates>,
    /// Instead of rates, bytes between two frames on a link of --link: 12 is its full speed
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        conflicts_with = "rates",
        requires = "link"
    )]
    ifg: Vec<u32>,
    /// The speed of the link that --ifg is a gap on, as 100m or 1g
    #[arg(long, value_name = "SPEED", value_parser = quantity::link, requires = "ifg")]
    link: Option<f64>,
    /// Send this capture again and again instead of stamped frames; --send is then of options of `netsniff replay`, as
    /// hosts=1,30
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ifg", "sizes"])]
    replay: Option<PathBuf>,
    /// Values of an option of the tools, by its long name, as ring=2M,64M; other tools than netsniff have them where
    /// {ring} stands in their --command; may be repeated
    #[arg(long, value_name = "OPTION=VALUES", value_parser = common::axis)]
    vary: Vec<Axis>,
    /// How long each run sends; several with commas between them
    #[arg(long, value_name = "TIMES", value_delimiter = ',', value_parser = quantity::interval, default_value = "10s")]
    time: Vec<Duration>,
    /// How often each combination is run
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Go on with the runs that are missing in the directory of -o
    #[arg(long, requires = "output")]
    resume: bool,
}

/// Rates that were given.
#[derive(Clone, Debug)]
struct Rates(Vec<Pace>);

/// Rates at most, and combinations: more would take weeks.
const MOST: usize = 100_000;

fn rates(text: &str) -> Result<Rates, String> {
    let mut rates = Vec::new();
    for part in text.split(',') {
        if part == "top" {
            rates.push(Pace::Top);
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
        rates.extend((0..=steps as u32).map(|number| Pace::Rate(from + f64::from(number) * step)));
    }
    Ok(Rates(rates))
}

impl SweepArgs {
    fn paces(&self) -> Vec<Pace> {
        let link = self.link.unwrap_or_default();
        match &self.rates {
            Some(rates) => rates.0.clone(),
            None => self.ifg.iter().map(|&bytes| Pace::Gap { bytes: bytes.into(), link }).collect(),
        }
    }

    /// Bytes of frames: of a capture's on average.
    fn sizes(&self) -> anyhow::Result<Vec<u32>> {
        let Some(path) = &self.replay else { return self.common.sizes() };
        let TrafficContent { packets: frames, bytes, .. } =
            TrafficContent::of(path).context("cannot replay it")?;
        ensure!(frames > 0, "{} has no frames to replay", path.display());
        Ok(vec![u32::try_from(bytes / frames)?.saturating_add(FCS_LEN)])
    }
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], and whatever prevents a testbed or a run.
pub(super) fn run(args: &SweepArgs, program: Program) -> anyhow::Result<u8> {
    let common = &args.common;
    let (sizes, paces, (tools, left_out)) = (args.sizes()?, args.paces(), common.chosen()?);
    let layout = common.layout()?;
    // Runs that go on later name the capture in the same way.
    let capture = args.replay.as_ref().map(fs::canonicalize).transpose();
    let capture = capture.context("cannot replay it")?;
    let plan = Plan {
        tools: &tools,
        sizes: &sizes,
        paces: &paces,
        capture: capture.as_deref(),
        axes: &args.vary,
        send: &common.send,
        host: &common.bed.host,
        times: &args.time,
        repetitions: args.repeat,
    };
    if plan.number().is_none_or(|number| number > MOST) {
        let said = format!("these are more than {} combinations", exact(MOST as i128));
        return Err(UsageError(said).into());
    }
    let points = plan.points();
    check(&tools, &points, &layout, program)?;
    let signal = common::signal()?;
    let mut layouts: Vec<_> = points.iter().map(|point| &point.host).collect();
    layouts.dedup();
    let layouts = layouts.into_iter().map(|host| layout.with(host).map_err(UsageError));
    let layouts = layouts.collect::<Result<Vec<_>, _>>()?;
    let head = common.head((&tools, &left_out), layout.clone(), program)?.of_interfaces(&layouts);
    let mut directory = match &common.output {
        None => None,
        Some(path) => Some(open(path, args.resume, &head)?),
    };
    let mut runs = directory.as_ref().map_or(Vec::new(), |directory| directory.runs().to_vec());
    let left = sweep::left(points.clone(), &runs);
    common.print_plan(left.len(), "run", sweep::duration(&left), "");
    let stop = Stop::new(&signal, common.budget);
    let campaign = Campaign { tools: &tools, layout: &layout, stop: &stop, is_quiet: common.quiet };
    let ended = campaign.run(&left, &mut |run| {
        runs.push(run.clone());
        directory.as_mut().map_or(Ok(()), |directory| directory.add(run))
    });
    // What was measured is there, whatever prevents the rest.
    if let Some(directory) = &directory {
        directory.finish(&head)?;
    }
    print(stdout(), &table::points(&points, &runs)).context("cannot print the table")?;
    let ended = ended?;
    let is_proved =
        |point: &Point| runs.iter().any(|run| run.point == *point && run.trial.is_valid());
    Ok(if ended.is_none() && points.iter().all(is_proved) { DONE } else { FAILED })
}

/// Whether tools, generator and testbed have all options.
fn check(
    tools: &[Tool],
    points: &[Point],
    layout: &Layout,
    program: Program,
) -> anyhow::Result<()> {
    let is_alike = |one: &&Point, other: &&Point| {
        (&one.host, &one.tool, &one.settings, &one.load.options, one.load.rate.is_some())
            == (
                &other.host,
                &other.tool,
                &other.settings,
                &other.load.options,
                other.load.rate.is_some(),
            )
    };
    let first = points.first().map_or(0, |point| point.repetition);
    let points: Vec<_> = points.iter().filter(|point| point.repetition == first).collect();
    for alike in points.chunk_by(is_alike) {
        let point = alike[0];
        let layout = layout.with(&point.host).map_err(UsageError)?;
        let tool = tools.iter().find(|tool| tool.name == point.tool);
        tool.map_or(Ok(()), |tool| layout.suits(tool)).map_err(UsageError)?;
        let tool = tool.map(|tool| tool.with(&point.settings)).transpose().map_err(UsageError)?;
        common::check(&point.load, tool.as_ref(), program)?;
    }
    Ok(())
}

/// Opens a directory for runs; with those that are there, where it is gone on with.
fn open(path: &Path, resume: bool, head: &Head<'_>) -> anyhow::Result<Directory> {
    if !resume {
        fs::create_dir(path).with_context(|| {
            format!("cannot make {}; --resume goes on with one", path.display())
        })?;
    }
    Directory::open(path, !resume, head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_lists_and_ranges() {
        let all = rates("100k:300k:100k,0.5M,top").unwrap().0;
        let paces = [1e5, 2e5, 3e5, 5e5].map(Pace::Rate);
        assert_eq!(all, [&paces[..], &[Pace::Top]].concat());
        for wrong in ["", "x", "1:2", "5:1:1", "1:1M:1", "1:2:0"] {
            assert!(rates(wrong).is_err(), "{wrong}");
        }
        let axis = common::axis("--ring=2M,64M").unwrap();
        assert_eq!(
            (axis.name.as_str(), &axis.values[..]),
            ("ring", &["2M".into(), "64M".into()][..])
        );
    }
}
