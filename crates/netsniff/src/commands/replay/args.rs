//! The arguments of `replay`, and the plan that they ask for.

use std::path::PathBuf;
use std::time::Duration;

use crate::commands::inputs::span::SpanArgs;
use crate::commands::wire::WireArgs;
use anyhow::Context as _;
use netsniff_console::number::exact;
use netsniff_console::{UsageError, quantity};
use netsniff_traffic::addresses::Clones;
use netsniff_traffic::pace::Late;
use netsniff_traffic::plan::{Even, Mean, Plan, Poisson, Rate, Recorded};

use super::edit::EditArgs;
use super::frames::Copies;
use super::judge::{Cut, Judge};
use super::store::{Facts, Store};

/// Send the packets of captures on an interface, at a pace, and tell how well it was kept
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff replay capture.pcap -i eth1                     as it was recorded\n  \
    netsniff replay capture.pcap -i eth1 --pps 50000 --loop 0 --duration 1m\n  \
    netsniff replay capture.pcap -i eth1 --mbps 200 --keep-gaps\n  \
    netsniff replay capture.pcap -i eth1 --hosts 30          as if 30 hosts had it at once\n  \
    netsniff replay capture.pcap -i eth1 --server-interface eth2   through a device between them\n  \
    netsniff replay capture.pcap -i eth1 --topspeed --json\n\n\
    Sends real traffic: use an interface that leads to a testbed.\n\n\
    Exit code: 0 fine; 1 failed; 2 wrong usage; 3 a capture was damaged, or packets of it could not be\n\
    sent, and all others were; 4 the rate was off by more than --tolerance, or the interface lost frames")]
pub struct ReplayArgs {
    /// Capture files, pcap or pcapng, also packed with gzip, zstd or lz4; `-` for standard input; several are
    /// sent as one, by time
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,
    /// The interface to send on
    #[arg(short, long, value_name = "IFACE")]
    pub(super) interface: String,
    #[command(flatten)]
    pub(super) span: SpanArgs,
    #[command(flatten)]
    pub(super) wire: WireArgs,
    /// The interface on which servers send, while clients send on the other: who opens connections is a client, or,
    /// where nobody does, who has the higher port
    #[arg(long, value_name = "IFACE")]
    pub(super) server_interface: Option<String>,
    #[command(flatten)]
    rate: RateArgs,
    #[command(flatten)]
    gaps: GapArgs,
    /// How often to send everything; 0 for again and again
    #[arg(long = "loop", value_name = "N", default_value_t = 1)]
    rounds: u64,
    /// Send the capture as so many hosts at once: each copy has addresses of its own, in every place of a packet where
    /// they stand, and begins a little after the one before
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=4096))]
    hosts: u64,
    /// By how much later each of --hosts begins; as much as spreads them evenly over the time of the capture where it
    /// is not given
    #[arg(long, value_name = "TIME", value_parser = quantity::interval, requires = "hosts")]
    stagger: Option<Duration>,
    /// Give each round of --loop addresses of its own, so that its flows are new ones
    #[arg(long)]
    unique_ip: bool,
    /// Frames to send at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) limit: Option<u64>,
    /// Time to send at most, as 90s or 5m
    #[arg(long, value_name = "TIME", value_parser = quantity::interval)]
    pub(super) duration: Option<Duration>,
    /// What to do about frames that are late
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    late: LateArg,
    /// By how much the rate may be off
    #[arg(long, value_name = "PERCENT", value_parser = quantity::percentage, conflicts_with = "topspeed")]
    pub(super) tolerance: Option<f64>,
    /// What to do about packets that were not captured whole
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub(super) cut: Cut,
    /// Captures that need no more memory than this are read before the first frame is sent, others meanwhile
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, default_value = "1G")]
    pub(super) memory: usize,
    /// Print the report as one line of JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Print no report
    #[arg(short, long, conflicts_with = "json")]
    pub(super) quiet: bool,
    #[command(flatten)]
    pub(super) edit: EditArgs,
}

/// The mean rate; as it was recorded where none is given.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct RateArgs {
    /// Frames a second
    #[arg(long, value_name = "RATE", value_parser = positive)]
    pps: Option<f64>,
    /// Million bits a second, of the packets as they are in the capture
    #[arg(long, value_name = "RATE", value_parser = positive)]
    mbps: Option<f64>,
    /// So many times as fast as it was recorded
    #[arg(long, value_name = "FACTOR", value_parser = positive)]
    multiplier: Option<f64>,
    /// As fast as possible
    #[arg(long)]
    topspeed: bool,
}

/// The gaps between frames.
#[derive(Debug, clap::Args)]
struct GapArgs {
    /// Keep the recorded gaps, scaled to the mean rate; so it is without --pps and --mbps
    #[arg(long, conflicts_with_all = ["ignore_gaps", "poisson", "topspeed"])]
    keep_gaps: bool,
    /// Even gaps, whatever was recorded; so it is with --pps and --mbps
    #[arg(long, conflicts_with_all = ["poisson", "topspeed"])]
    ignore_gaps: bool,
    /// Random gaps, as of many senders that know nothing of each other
    #[arg(long, conflicts_with = "topspeed")]
    poisson: bool,
    /// What the random gaps depend on: the same number gives the same gaps
    #[arg(long, value_name = "N", default_value_t = 1, requires = "poisson")]
    seed: u64,
    /// Send so many frames together, at the same mean rate
    #[arg(long, value_name = "N", conflicts_with_all = ["keep_gaps", "topspeed"],
        value_parser = clap::value_parser!(u64).range(1..))]
    burst: Option<u64>,
    /// Cut recorded gaps that are longer
    #[arg(long, value_name = "TIME", value_parser = quantity::interval,
        conflicts_with_all = ["ignore_gaps", "poisson", "topspeed", "burst", "hosts"])]
    max_gap: Option<Duration>,
}

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum LateArg {
    /// Send them as fast as possible: the mean rate stays, bursts follow stalls
    #[default]
    CatchUp,
    /// Move all later ones as well: no bursts, but it takes longer
    Slip,
}

/// The gaps that are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gaps {
    Recorded,
    Even,
    Poisson,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.001 => Ok(value),
        _ => Err("expected a number from 0.001".to_owned()),
    }
}

/// Hosts for each of which a thread may read.
const MOST_READERS: u64 = 64;

/// Nanoseconds of scaled gaps are counted in millionths of the factor.
const MILLION: u64 = 1_000_000;

impl ReplayArgs {
    /// What to do about late frames.
    pub(super) const fn late(&self) -> Late {
        match self.late {
            LateArg::CatchUp => Late::CatchUp,
            LateArg::Slip => Late::Slip,
        }
    }

    /// How often everything is sent, and as whose.
    ///
    /// # Errors
    ///
    /// Captures that cannot be read again, and more hosts than there are addresses for.
    pub(super) fn copies(&self, store: &Store, judge: &Judge) -> anyhow::Result<Copies> {
        let mut copies = Copies {
            hosts: self.hosts,
            stagger: 0,
            rounds: (self.rounds > 0).then_some(self.rounds),
            clones: None,
            is_unique: self.unique_ip,
        };
        if self.hosts > MOST_READERS && !store.is_held() {
            let said = format!(
                "more than {MOST_READERS} hosts need the capture in memory, and it exceeds --memory"
            );
            return Err(UsageError(said).into());
        }
        if self.hosts > 1 || self.unique_ip {
            let clones = Clones::new(store.addresses(&judge.edit)?);
            let clones = clones.context("the capture has an address of every network of IPv4")?;
            if clones.most() < self.hosts {
                let most = exact(clones.most().into());
                let said = format!("there are addresses for {most} copies of this capture at most");
                return Err(UsageError(said).into());
            }
            copies.clones = Some(clones);
        }
        if self.hosts > 1 {
            let spread =
                || Ok::<_, anyhow::Error>(store.facts(judge, None)?.span / self.hosts as u32);
            let stagger = self.stagger.map_or_else(spread, Ok)?;
            copies.stagger = i64::try_from(stagger.as_nanos()).unwrap_or(i64::MAX);
        }
        Ok(copies)
    }

    /// The plan, `None` for as fast as possible, and what it is in words.
    ///
    /// # Errors
    ///
    /// Captures whose packets have all the same time, where the rate depends on times.
    pub(super) fn plan(
        &self,
        store: &Store,
        judge: &Judge,
        copies: &Copies,
    ) -> anyhow::Result<(Option<Plan>, String)> {
        if self.rate.topspeed {
            return Ok((None, "as fast as possible, recorded gaps not kept".to_owned()));
        }
        let gaps = self.gaps.kind(self.rate.is_given());
        let burst = self.gaps.burst.unwrap_or(1);
        let plan = match gaps {
            Gaps::Recorded => self.recorded(store, judge, copies)?,
            Gaps::Even => Plan::Even(Even::new(self.mean(store, judge, copies)?, burst)),
            Gaps::Poisson => {
                Plan::Poisson(Poisson::new(self.mean(store, judge, copies)?, burst, self.gaps.seed))
            }
        };
        Ok((Some(plan), self.in_words(gaps, burst)))
    }

    /// Recorded gaps, so scaled that the mean is the asked one.
    fn recorded(&self, store: &Store, judge: &Judge, copies: &Copies) -> anyhow::Result<Plan> {
        let longest = self.gaps.max_gap;
        let (wanted, recorded) = if self.rate.is_given() {
            let facts = facts(store, judge, copies, longest)?;
            // The last frame is due when the others have taken their time.
            let wanted = match self.mean(store, judge, copies)? {
                Mean::Frames(rate) => (facts.packets - 1) as f64 / rate.units(),
                Mean::Bits { rate, .. } => {
                    let others = facts.bytes as f64 * (facts.packets - 1) as f64;
                    others / facts.packets as f64 * 8.0 / rate.units()
                }
            };
            ((wanted * 1e9).round() as u64, facts.span.as_nanos() as u64)
        } else {
            if self.rounds != 1 {
                // Rounds without a span would follow each other at once.
                facts(store, judge, copies, longest)?;
            }
            let factor = self.rate.multiplier.unwrap_or(1.0);
            (MILLION, (factor * MILLION as f64).round() as u64)
        };
        Ok(Plan::Recorded(Recorded::new(wanted, recorded, longest)))
    }

    /// The mean rate that is asked for.
    fn mean(&self, store: &Store, judge: &Judge, copies: &Copies) -> anyhow::Result<Mean> {
        let rate = |units: f64| Rate::per_second(units).context("this rate is too low");
        if let Some(pps) = self.rate.pps {
            return Ok(Mean::Frames(rate(pps)?));
        }
        if let Some(mbps) = self.rate.mbps {
            return Ok(Mean::bits(rate(mbps * 1e6)?));
        }
        let facts = facts(store, judge, copies, None)?;
        let recorded = (facts.packets - 1) as f64 / facts.span.as_secs_f64();
        Ok(Mean::Frames(rate(recorded * self.rate.multiplier.unwrap_or(1.0))?))
    }

    fn in_words(&self, gaps: Gaps, burst: u64) -> String {
        let rate = match (&self.rate.pps, &self.rate.mbps, &self.rate.multiplier) {
            (Some(pps), ..) => format!("{pps} frames/s"),
            (_, Some(mbps), _) => format!("{mbps} Mbit/s"),
            (.., Some(factor)) => format!("{factor} times as fast as recorded"),
            _ => "as recorded".to_owned(),
        };
        let gaps = match gaps {
            Gaps::Recorded => "recorded gaps kept",
            Gaps::Even => "even gaps, recorded ones not kept",
            Gaps::Poisson => "random gaps (Poisson), recorded ones not kept",
        };
        let bursts =
            if burst > 1 { format!(", bursts of {}", exact(burst.into())) } else { String::new() };
        format!("{rate}, {gaps}{bursts}")
    }
}

impl RateArgs {
    /// Whether a rate is given that does not depend on what was recorded.
    const fn is_given(&self) -> bool {
        self.pps.is_some() || self.mbps.is_some()
    }
}

impl GapArgs {
    const fn kind(&self, rate_is_given: bool) -> Gaps {
        if self.poisson {
            Gaps::Poisson
        } else if self.ignore_gaps
            || self.burst.is_some()
            || rate_is_given && !self.keep_gaps && self.max_gap.is_none()
        {
            Gaps::Even
        } else {
            Gaps::Recorded
        }
    }
}

/// What can be sent by all hosts.
fn facts(
    store: &Store,
    judge: &Judge,
    copies: &Copies,
    longest: Option<Duration>,
) -> anyhow::Result<Facts> {
    let mut facts = store.facts(judge, longest)?;
    facts.packets *= copies.hosts;
    facts.bytes *= copies.hosts;
    let later = copies.stagger.unsigned_abs().saturating_mul(copies.hosts - 1);
    facts.span = facts.span.saturating_add(Duration::from_nanos(later));
    if facts.packets < 2 || facts.span.is_zero() {
        let said = "the packets have all the same time, so that there is no recorded rate: give --pps or --mbps \
                    without --keep-gaps";
        return Err(UsageError(said.to_owned()).into());
    }
    Ok(facts)
}
