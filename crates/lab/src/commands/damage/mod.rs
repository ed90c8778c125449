//! `netsniff lab damage`: how many flows a loss damages, by arithmetic and by counting.

mod capture;
mod lost;
mod text;

use std::fs;
use std::io::stdout;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use netsniff_console::number::exact;
use netsniff_console::{DONE, FAILED, UsageError, print, quantity, say};
use netsniff_traffic::random::Random;
use serde::Serialize;

use self::capture::Capture;
use self::lost::Lost;
use super::Program;
use super::common::{self, Head};
use super::wire::NoWireArgs;
use crate::damage::{Damage, DamageOutcome, Flows, Mix};
use crate::report::sections;
use crate::stop::Stop;
use crate::testbed::tap::Tap;

/// How many flows miss packets where a share of the packets is lost, expected and counted
///
/// A flow of n packets is damaged with the probability 1 - (1 - p)^n. Over the flows of a capture, as netsniff finds them,
/// that is summed up, and then counted: the capture is sent through a tap that loses packets on purpose.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff lab damage --replay web.pcapng -o damage                 expected, and counted behind a tap\n  \
    netsniff lab damage --replay web.pcapng --loss 0.1% --simulate    counted in memory: needs no root\n  \
    netsniff lab damage --replay web.pcapng --tolerate 1%,5%          the loss that damages so many flows\n  \
    netsniff lab damage --flows 1000 --packets 20 --tolerate 1%       likewise, without a capture\n\n\
    -o makes the directory, with damage.html, a report with plots, and damage.json and damage.csv, which have every\n\
    round.\n\n\
    Exit code: 0 fine; 1 failed, or ended before all was counted; 2 wrong usage")]
pub struct DamageArgs {
    /// The capture whose flows are looked at, and whose packets are lost
    #[arg(long, value_name = "FILE", required_unless_present = "packets")]
    replay: Option<PathBuf>,
    /// Instead of a capture: flows of so many packets each
    #[arg(long, value_name = "N", conflicts_with = "replay", value_parser = quantity::count)]
    packets: Option<u64>,
    /// How many flows of --packets there are
    #[arg(long, value_name = "N", conflicts_with = "replay", value_parser = quantity::count, default_value = "1000")]
    flows: u64,
    /// Shares of the packets that are lost; 0.01%, 0.1% and 1% where none are given, but for --tolerate
    /// alone
    #[arg(long, value_name = "PERCENTS", value_delimiter = ',', value_parser = quantity::percentage)]
    loss: Vec<f64>,
    /// Shares of the flows that may be damaged: tells how much loss that is
    #[arg(long, value_name = "PERCENTS", value_delimiter = ',', value_parser = quantity::percentage)]
    tolerate: Vec<f64>,
    /// Lose packets in memory, by chance that comes from --seed, instead of behind a tap
    #[arg(long)]
    simulate: bool,
    /// What the chance of --simulate comes from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How often packets are lost and flows counted; 3 behind a tap, and 100 with --simulate
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeat: Option<u32>,
    /// Frames a second that the capture is sent with to the tap
    #[arg(long, value_name = "RATE", value_parser = quantity::rate, default_value = "20k")]
    rate: f64,
    #[command(flatten)]
    _no_wire: NoWireArgs,
    /// Time that all of it may take; what would exceed it is not begun
    #[arg(long, value_name = "TIME", value_parser = quantity::interval)]
    budget: Option<Duration>,
    /// A directory for the report
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print nothing but the table
    #[arg(short, long)]
    quiet: bool,
}

/// What is lost where nothing is said, in percent.
const LOSSES: [f64; 3] = [0.01, 0.1, 1.0];

/// Rounds where nothing is said.
const ROUNDS: u32 = 3;
const ROUNDS_IN_MEMORY: u32 = 100;

/// Packets of flows without a capture, at most, that are lost in memory.
const MOST: u64 = 4_000_000;

/// How packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum LossModel {
    /// Really, by a tap of the testbed.
    Tap,
    /// By chance that comes from a seed.
    Memory,
    /// Nothing is lost: arithmetic alone.
    None,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    capture: Option<&'a Path>,
    #[serde(flatten)]
    subject: &'a Subject,
    counted: LossModel,
    /// Seed of the losses of [`LossModel::Memory`].
    seed: Option<u64>,
    losses: &'a [DamageOutcome],
    tolerable: Vec<Tolerable>,
}

/// A loss that may be tolerated.
#[derive(Clone, Copy, Debug, Serialize)]
struct Tolerable {
    /// The share of the flows that are damaged.
    share: f64,
    loss: f64,
}

/// Whose flows are damaged.
#[derive(Debug, Serialize)]
struct Subject {
    flows: u64,
    packets: u64,
    /// Packets of the capture that are of no flow; 0 without a capture.
    without_flow: u64,
    /// Packets of the shortest flow, of that in the middle, and of the longest.
    lengths: [u64; 3],
    #[serde(skip)]
    mix: Mix,
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], a capture that cannot be read or has no flows, and whatever prevents a testbed or a run.
pub(super) fn run(args: &DamageArgs, program: Program) -> anyhow::Result<u8> {
    let losses = args.losses();
    let (way, capture) = (args.way(&losses), args.read()?);
    let subject = args.subject(capture.as_ref())?;
    let signal = common::signal()?;
    if let Some(directory) = &args.output {
        fs::create_dir(directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
    }
    let stop = Stop::new(&signal, args.budget);
    let rounds = match way {
        LossModel::Tap => {
            let (Some(capture), Some(path)) = (&capture, &args.replay) else {
                bail!("there is no capture");
            };
            let lost = Lost { capture, path, rate: args.rate, stop: &stop, is_quiet: args.quiet };
            lost.rounds(&losses, args.wanted(way))?
        }
        LossModel::Memory => {
            let flows = args.flows_of(capture);
            args.simulated(&flows, &losses, &stop)
        }
        LossModel::None => vec![Vec::new(); losses.len()],
    };
    let wanted = if way == LossModel::None { 0 } else { args.wanted(way) as usize };
    let is_whole = rounds.iter().all(|rounds| rounds.len() == wanted);
    let outcomes: Vec<_> = losses
        .iter()
        .zip(rounds)
        .map(|(loss, rounds)| DamageOutcome::new(&subject.mix, *loss, rounds))
        .collect();
    let tolerable = args.tolerable(&subject.mix);
    if let Some(directory) = &args.output {
        args.write(directory, &subject, way, &outcomes, program)?;
    }
    let told = text::text(&subject, &outcomes, &tolerable);
    print(stdout(), &told).context("cannot print the table")?;
    if !is_whole {
        say("not all was counted: it ended before, or runs proved nothing again and again");
    }
    Ok(if is_whole { DONE } else { FAILED })
}

impl DamageArgs {
    fn losses(&self) -> Vec<f64> {
        // Who asks what may be tolerated alone has not asked to lose anything.
        let is_usual = self.loss.is_empty() && (self.tolerate.is_empty() || self.simulate);
        let given = if is_usual { &LOSSES[..] } else { &self.loss };
        given.iter().map(|percent| percent / 100.0).collect()
    }

    const fn way(&self, losses: &[f64]) -> LossModel {
        match (losses.is_empty(), self.simulate, &self.replay) {
            (true, ..) | (false, false, None) => LossModel::None,
            (false, true, _) => LossModel::Memory,
            (false, false, Some(_)) => LossModel::Tap,
        }
    }

    const fn wanted(&self, way: LossModel) -> u32 {
        match (self.repeat, way) {
            (Some(rounds), _) => rounds,
            (None, LossModel::Memory) => ROUNDS_IN_MEMORY,
            (None, LossModel::Tap | LossModel::None) => ROUNDS,
        }
    }

    fn read(&self) -> anyhow::Result<Option<Capture>> {
        let capture = self.replay.as_deref().map(Capture::read).transpose()?;
        if let Some(capture) = capture.as_ref().filter(|capture| capture.has_more) {
            let number = exact(capture.flows.len() as i128);
            say(&format!("of the capture the first {number} packets are looked at"));
        }
        Ok(capture)
    }

    fn subject(&self, capture: Option<&Capture>) -> anyhow::Result<Subject> {
        let (mix, without_flow) = match (capture, self.packets) {
            (Some(capture), _) => (capture.flows.mix(), capture.flows.without_flow() as u64),
            (None, packets) => {
                let packets = packets.unwrap_or(1);
                if self.flows.checked_mul(packets).is_none_or(|all| self.simulate && all > MOST) {
                    let said =
                        format!("--flows times --packets is more than {}", exact(MOST.into()));
                    return Err(UsageError(said).into());
                }
                (Mix::same(self.flows, packets), 0)
            }
        };
        let lengths = mix.lengths().context("the capture has no flow")?;
        Ok(Subject { flows: mix.flows(), packets: mix.packets(), without_flow, lengths, mix })
    }

    /// The packets that are lost in memory.
    fn flows_of(&self, capture: Option<Capture>) -> Flows {
        match capture {
            Some(capture) => capture.flows,
            None => {
                let number = u32::try_from(self.flows).unwrap_or(u32::MAX);
                let each = self.packets.unwrap_or(1) as usize;
                let flows = (0..number).flat_map(|flow| std::iter::repeat_n(Some(flow), each));
                Flows::of(flows.collect())
            }
        }
    }

    fn simulated(&self, flows: &Flows, losses: &[f64], stop: &Stop<'_>) -> Vec<Vec<Damage>> {
        let mut random = Random::new(self.seed);
        let mut rounds = vec![Vec::new(); losses.len()];
        for (loss, rounds) in losses.iter().zip(&mut rounds) {
            for _ in 0..self.wanted(LossModel::Memory) {
                if stop.before(Duration::ZERO).is_some() {
                    break;
                }
                rounds.push(flows.simulate(*loss, &mut random));
            }
        }
        rounds
    }

    fn tolerable(&self, mix: &Mix) -> Vec<(f64, f64)> {
        let shares = self.tolerate.iter().map(|percent| percent / 100.0);
        shares.filter_map(|share| Some((share, mix.tolerable(share)?))).collect()
    }

    fn write(
        &self,
        directory: &Path,
        subject: &Subject,
        way: LossModel,
        outcomes: &[DamageOutcome],
        program: Program,
    ) -> anyhow::Result<()> {
        let tolerable = self.tolerable(&subject.mix);
        // The losses stand in the report.
        let testbed = (way == LossModel::Tap).then(|| lost::layout(Tap::default()));
        let pairs = tolerable.iter().map(|&(share, loss)| Tolerable { share, loss });
        let report = Report {
            head: common::head((&[], &[]), testbed.clone(), program)
                .of_interfaces(testbed.as_slice()),
            capture: self.replay.as_deref(),
            subject,
            counted: way,
            seed: (way == LossModel::Memory).then_some(self.seed),
            losses: outcomes,
            tolerable: pairs.collect(),
        };
        let json = serde_json::to_string_pretty(&report)? + "\n";
        common::write(directory, "damage.json", &json)?;
        common::write(directory, "damage.csv", &text::csv(subject, outcomes))?;
        let lead = text::about(subject);
        let sections = sections::damage(&subject.mix, outcomes, &tolerable);
        let page = report.head.page("Flows that losses damage", &lead, sections);
        common::write_page(directory, "damage", &page)
    }
}
