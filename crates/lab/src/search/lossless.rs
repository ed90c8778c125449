//! The highest rate without loss, for tools and sizes of frames.

use std::path::Path;
use std::time::Duration;

use super::{Bench, Goal, HighestRate, Purpose, RunOutcome, search};
use crate::load::Load;
use crate::stop::{Stop, Why};
use crate::testbed::Testbed;
use crate::tools::{Setting, Tool};
use crate::trial::{self, Fault, Limit, Trial};

/// Rings hold so much of a short run that its rate is hardly more than what is held; so short ones take longer for
/// small frames.
const SHORT: Duration = Duration::from_secs(2);
const SHORT_OF_SMALL: Duration = Duration::from_secs(5);
const SMALL: u32 = 512;

/// A run that proves a rate takes at least this long, and until a ring holds at most this part of what was sent.
const LONG: Duration = Duration::from_secs(10);
const MOST_HELD: f64 = 0.1;

/// What a run takes beside the time that frames are sent: start, settling, tail, end.
const AROUND: Duration = Duration::from_secs(3);

/// A run that proves nothing is repeated so often.
const REPEATED: u32 = 3;

/// What is searched for.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The tool that captures.
    pub tool: &'a Tool,
    /// Bytes of a frame.
    pub size: u32,
    /// Other options of the generator.
    pub options: &'a [Setting],
    /// The share of what is offered that may be lost, 0 for none.
    pub tolerated: f64,
}

/// Whether a run loses no more than is tolerated.
fn is_kept(trial: &Trial, tolerated: f64) -> bool {
    trial.is_lossless() || (tolerated > 0.0 && trial.loss().is_some_and(|loss| loss <= tolerated))
}

/// One trial of a search.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Step {
    /// What it was for.
    pub purpose: Purpose,
    /// What was counted in the run.
    #[serde(flatten)]
    pub trial: Trial,
}

impl Step {
    /// Whether it proves something: for the rate that it reached. One that is to prove a rate may have been slower all the
    /// time, but not held up.
    #[must_use]
    pub fn is_proof(&self) -> bool {
        let trial = &self.trial;
        trial.reached.is_some()
            && match self.purpose {
                Purpose::Top | Purpose::Steer => trial.is_true_at_reached(),
                Purpose::Confirm => trial.is_valid() || trial.faults == [Fault::Rate],
            }
    }
}

/// The runs that confirm the rate that a search found: one after another at the same rate, of which the slowest reached it.
pub(crate) fn proof(steps: &[Step], found: HighestRate) -> Vec<&Step> {
    let (HighestRate::Rate(rate) | HighestRate::AtLeast(rate)) = found else { return Vec::new() };
    let confirm = |step: &&Step| step.purpose == Purpose::Confirm && step.is_proof();
    let confirm: Vec<_> = steps.iter().filter(confirm).collect();
    let asked = |step: &Step| step.trial.load.rate;
    let slowest = |of: &[&Step]| of.iter().filter_map(|step| step.trial.reached).reduce(f64::min);
    let mut series = confirm.chunk_by(|one, other| asked(one) == asked(other));
    series.rfind(|of| slowest(of) == Some(rate)).unwrap_or_default().to_vec()
}

/// What a search came to.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Cell {
    /// Name of the tool that captured.
    pub tool: String,
    /// Bytes of a frame.
    pub size: u32,
    /// The highest rate without loss.
    pub found: HighestRate,
    /// The share that may be lost at it, 0 for none.
    #[serde(default)]
    pub tolerated: f64,
    /// Frames of the runs that confirm it.
    pub confirmed: u64,
    /// With 95 % confidence a smaller share than this is lost at that rate: 3 in so many frames (rule of three); for
    /// frames that are lost independently of each other.
    pub loss_below: Option<f64>,
    /// Why it ended before.
    pub ended: Option<String>,
    /// All runs of the search, in their order.
    pub steps: Vec<Step>,
}

impl Cell {
    /// What ended the search: the sender, or what was in the way of the slowest run that lost something, or of a tool that
    /// failed.
    #[must_use]
    pub fn limit(&self) -> Option<Limit> {
        if matches!(self.found, HighestRate::AtLeast(_)) {
            return Some(Limit::Sender);
        }
        let lost = self.steps.iter().filter(|step| step.is_proof() && !self.is_kept(&step.trial));
        let reached = |step: &&Step| step.trial.reached.unwrap_or(f64::INFINITY);
        let slowest = lost.min_by(|one, other| reached(one).total_cmp(&reached(other)));
        let mut failed = self.steps.iter().filter(|step| step.trial.failure.is_some());
        slowest.or_else(|| failed.next())?.trial.limit
    }

    /// Whether a run loses no more than is tolerated.
    #[must_use]
    pub fn is_kept(&self, trial: &Trial) -> bool {
        is_kept(trial, self.tolerated)
    }
}

/// How long a search takes where the first rate that is to be confirmed is, and how long at most where no run is
/// repeated.
#[must_use]
pub fn planned(tool: &Tool, size: u32, goal: &Goal) -> [Duration; 2] {
    // At a rate that is usual; slower ones take longer where a ring is large.
    let confirm = long(tool, size, 250_000.0) + AROUND;
    let steer = short(size) + AROUND;
    // Each step halves the interval, and about each other one loses something and is made again.
    let needed = ((1.0 / goal.width).log2() * 1.5).ceil() as u32 + 2;
    let (steps, attempts) = (2 * goal.steps + 1, goal.attempts + 1);
    [
        steer * needed + confirm * goal.confirmations,
        steer * steps + confirm * goal.confirmations * attempts,
    ]
}

fn short(size: u32) -> Duration {
    if size < SMALL { SHORT_OF_SMALL } else { SHORT }
}

fn long(tool: &Tool, size: u32, rate: f64) -> Duration {
    let needed = tool.ring.map(|ring| Load::long_enough(tool.kept(size), ring, rate, MOST_HELD));
    // A tool that captures next to nothing is not measured for an hour.
    needed.unwrap_or_default().clamp(LONG, LONG * 6)
}

/// Searches the highest rate of a tool; `tell` hears of each run.
///
/// # Errors
///
/// Where no tool can be run on the testbed: of one that fails, the cell tells why.
pub fn measure(
    bed: &Testbed,
    netsniff: &Path,
    subject: Subject<'_>,
    goal: &Goal,
    stop: &Stop<'_>,
    tell: &mut dyn FnMut(&Step),
) -> anyhow::Result<Cell> {
    let Subject { tool, size, tolerated, .. } = subject;
    let mut series =
        Series { bed, netsniff, subject, stop, tell, top: None, why: None, steps: Vec::new() };
    let found = search(&mut series, goal)?;
    let (why, steps) = (series.why, series.steps);
    let confirmed = proof(&steps, found).iter().filter_map(|step| step.trial.offered()).sum();
    // The rule of three is for nothing lost.
    let loss_below = (confirmed > 0 && tolerated <= 0.0).then(|| 3.0 / confirmed as f64);
    let ended = why.map(|why| match why {
        Ended::Stopped(why) => why.words().to_owned(),
        Ended::Faulty => "runs proved nothing, again and again".to_owned(),
        Ended::Unable(why) => why,
    });
    Ok(Cell {
        tool: tool.name.clone(),
        size,
        found,
        tolerated,
        confirmed,
        loss_below,
        ended,
        steps,
    })
}

#[derive(Clone, Debug)]
enum Ended {
    Stopped(Why),
    Faulty,
    /// The tool does not begin, for this reason.
    Unable(String),
}

/// The runs of a search.
struct Series<'a> {
    bed: &'a Testbed,
    netsniff: &'a Path,
    subject: Subject<'a>,
    stop: &'a Stop<'a>,
    tell: &'a mut dyn FnMut(&Step),
    /// What the sender reaches.
    top: Option<f64>,
    why: Option<Ended>,
    steps: Vec<Step>,
}

impl Bench for Series<'_> {
    fn run(&mut self, rate: Option<f64>, purpose: Purpose) -> anyhow::Result<Option<RunOutcome>> {
        let Subject { tool, size, options, .. } = self.subject;
        let time = match purpose {
            Purpose::Top | Purpose::Steer => short(size),
            Purpose::Confirm => long(tool, size, rate.or(self.top).unwrap_or(1.0)),
        };
        let load = Load { size, rate, time, ..Load::default() }.with(options);
        for _ in 0..REPEATED {
            if let Some(why) = self.stop.before(time + AROUND) {
                self.why = Some(Ended::Stopped(why));
                return Ok(None);
            }
            let trial = match trial::attempt(self.bed, self.netsniff, tool, &load) {
                // The signal of a terminal reaches tools and generator, too: the run was cut.
                _ if self.stop.is_set() => {
                    self.why = Some(Ended::Stopped(Why::Signal));
                    return Ok(None);
                }
                trial => trial?,
            };
            let step = Step { purpose, trial };
            (self.tell)(&step);
            let outcome =
                step.trial.reached.filter(|_| step.is_proof()).map(|reached| RunOutcome {
                    reached,
                    kept: step.trial.kept_rate().unwrap_or(reached),
                    is_lossless: is_kept(&step.trial, self.subject.tolerated),
                });
            let failure = step.trial.failure.clone();
            let is_unable = !step.trial.is_valid() && step.trial.is_final();
            self.steps.push(step);
            if let Some(outcome) = outcome {
                self.top = self.top.or(Some(outcome.reached));
                return Ok(Some(outcome));
            }
            if let Some(why) = failure.filter(|_| is_unable) {
                self.why = Some(Ended::Unable(why));
                return Ok(None);
            }
        }
        self.why = Some(Ended::Faulty);
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_slower_proves_the_rate_that_it_reached() {
        let step = |purpose, reached, faults: &[Fault]| {
            let trial = Trial { reached, faults: faults.to_vec(), ..Trial::default() };
            Step { purpose, trial }.is_proof()
        };
        let (reached, confirm) = (Some(1e5), Purpose::Confirm);
        assert!(step(confirm, reached, &[]) && step(confirm, reached, &[Fault::Rate]));
        for faults in [&[Fault::Slips][..], &[Fault::Rate, Fault::Slips], &[Fault::Books]] {
            assert!(!step(confirm, reached, faults), "{faults:?}");
        }
        assert!(step(Purpose::Steer, reached, &[Fault::Rate, Fault::Slips]));
        assert!(!step(Purpose::Steer, reached, &[Fault::Wire]) && !step(confirm, None, &[]));
    }
}
