//! A certified rate, checked again with a short run.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::{Certified, RateVerdict};
use crate::load::Load;
use crate::search::HighestRate;
use crate::stop::{Stop, Why};
use crate::testbed::Testbed;
use crate::tools::Tool;
use crate::trial::{self, Trial};

/// What a run takes beside the time that frames are sent.
const AROUND: Duration = Duration::from_secs(3);

/// The shortest run: one that is shorter tells of the ring alone.
const SHORTEST: Duration = Duration::from_secs(1);

/// A run that proves nothing is repeated so often.
const TRIED: u32 = 3;

/// What a check of a size came to.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// Bytes of a frame.
    pub size: u32,
    /// The certified rate in frames a second.
    pub rate: Option<f64>,
    /// Whether the runs confirm the rate.
    pub verdict: RateVerdict,
    /// All runs; the last one decides.
    pub trials: Vec<Trial>,
    /// Why it ended before that.
    pub ended: Option<Why>,
}

/// How long each of so many runs sends, if all of them are to take this time.
#[must_use]
pub fn each(time: Duration, runs: usize) -> Duration {
    let runs = u32::try_from(runs.max(1)).unwrap_or(u32::MAX);
    (time / runs).saturating_sub(AROUND).max(SHORTEST)
}

/// How long so many runs take that send for so long.
#[must_use]
pub fn planned(each: Duration, runs: usize) -> Duration {
    (each + AROUND) * u32::try_from(runs).unwrap_or(u32::MAX)
}

/// Runs a tool at a certified rate until a run says something of it, three times at most; `report` hears of each run.
///
/// A rate that was the sender's limit is tried at full speed, as it was certified. Where that is faster now and something
/// is lost, what follows is sent at the certified rate.
///
/// # Errors
///
/// Where the tool or the generator cannot be run.
pub fn check(
    bed: &Testbed,
    netsniff: &Path,
    (tool, certified): (&Tool, &Certified),
    time: Duration,
    stop: &Stop<'_>,
    report: &mut dyn FnMut(&Trial),
) -> anyhow::Result<Checked> {
    let rate = certified.rate();
    let mut checked = Checked {
        size: certified.size,
        rate,
        verdict: RateVerdict::Open,
        trials: Vec::new(),
        ended: None,
    };
    let is_limit = matches!(certified.found, HighestRate::AtLeast(_));
    let mut load =
        Load { size: certified.size, rate: rate.filter(|_| !is_limit), time, ..Load::default() };
    for _ in 0..TRIED {
        if let Some(why) = stop.before(time + AROUND) {
            checked.ended = Some(why);
            break;
        }
        let trial = match trial::run(bed, netsniff, tool, &load) {
            // A signal of the terminal reaches tool and generator, too.
            _ if stop.is_set() => {
                checked.ended = Some(Why::Signal);
                break;
            }
            result => result?,
        };
        report(&trial);
        checked.verdict = certified.judge(&trial);
        let was_faster = trial.is_valid() && !trial.is_lossless();
        checked.trials.push(trial);
        if checked.verdict != RateVerdict::Open {
            break;
        }
        if was_faster {
            load.rate = rate;
        }
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_split_over_the_sizes() {
        let seconds = Duration::from_secs;
        assert_eq!(each(seconds(20), 1), seconds(17));
        assert_eq!(each(seconds(20), 2), seconds(7));
        assert_eq!(each(seconds(20), 0), seconds(17));
        assert_eq!(each(seconds(20), 30), seconds(1));
        assert_eq!(planned(seconds(7), 2), seconds(20));
    }
}
