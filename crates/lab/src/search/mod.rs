//! The highest rate without loss (PAPERS F9: all that was sent was captured, and nothing was dropped), found with as few
//! runs as possible.
//!
//! Short runs halve the interval in which the rate must lie; one that loses something is made again, since machines are
//! disturbed now and then. The lower end then stands if long runs lose nothing, else it is lowered; and where long runs
//! proved one rate and not another one, the interval between these is halved in turn, so that what is found is as exact as
//! it is said to be. Where the sender's full speed loses nothing, the sender is the limit.
//!
//! | module | concern |
//! |---|---|
//! | [`lossless`] | this search for tools and sizes of frames |
//! | [`sweep`] | runs over all combinations of values instead |
//! | [`mod@median`] | the middle of some values |

pub mod lossless;
pub mod median;
pub mod sweep;

/// How exact, and how sure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// The interval is small enough once it is this part of its upper end.
    pub width: f64,
    /// Short runs at most.
    pub steps: u32,
    /// Long runs without loss that confirm a rate.
    pub confirmations: u32,
    /// By what part a rate is lowered that was not confirmed, as long as none was.
    pub lowered: f64,
    /// How many rates are to be confirmed at most.
    pub attempts: u32,
}

impl Default for Goal {
    fn default() -> Self {
        Self { width: 0.02, steps: 12, confirmations: 3, lowered: 0.05, attempts: 8 }
    }
}

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// To see what the sender reaches.
    Top,
    /// To see on which side of a rate the highest one is.
    Steer,
    /// To prove a rate.
    Confirm,
}

impl Purpose {
    /// The word for it in reports.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Top => "full speed",
            Self::Steer => "steering",
            Self::Confirm => "confirming",
        }
    }
}

/// What came of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunOutcome {
    /// The rate that was reached.
    pub reached: f64,
    /// Frames a second that were captured of these.
    pub kept: f64,
    /// Whether nothing was lost.
    pub is_lossless: bool,
}

/// Something that can be tried at a rate.
pub trait Bench {
    /// Runs it at a rate, or as fast as possible; `None` where it has to end.
    ///
    /// # Errors
    ///
    /// What prevents all runs.
    fn run(&mut self, rate: Option<f64>, purpose: Purpose) -> anyhow::Result<Option<RunOutcome>>;
}

/// The highest rate without loss.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "is", content = "rate", rename_all = "kebab-case")]
pub enum HighestRate {
    /// This: the slowest of the runs that confirm it reached so much.
    Rate(f64),
    /// At least this: the sender cannot do more.
    AtLeast(f64),
    /// Less than this: at the lowest rate that was tried something was lost.
    Below(f64),
    /// Not known, since it ended before.
    Ended,
}

/// The part of a rate that the next one is at least: a tool that captured nothing is tried with less, and not with nothing.
const LEAST_OF_TRIED: f64 = 0.1;

/// Searches.
///
/// # Errors
///
/// As [`Bench::run`].
pub fn search(bench: &mut impl Bench, goal: &Goal) -> anyhow::Result<HighestRate> {
    let Some(top) = bench.run(None, Purpose::Top)? else { return Ok(HighestRate::Ended) };
    let (mut low, mut high) = (0.0, top.reached);
    if top.is_lossless {
        match confirm(bench, None, goal)? {
            Confirmed::Lowest(rate) => return Ok(HighestRate::AtLeast(rate)),
            Confirmed::Ended => return Ok(HighestRate::Ended),
            Confirmed::Not(_) => {}
        }
    }
    for _ in 0..goal.steps {
        if high - low <= goal.width * high {
            break;
        }
        let rate = f64::midpoint(low, high);
        let Some(outcome) = steer(bench, rate)? else {
            return Ok(HighestRate::Ended);
        };
        if outcome.is_lossless {
            // A sender that was kept from its rate proves the one that it reached.
            low = low.max(outcome.reached.min(rate));
        } else {
            high = rate;
        }
    }
    prove(bench, goal, low, high)
}

/// Searches, and begins again with more where all that was tried lost nothing, as long as `more` raises the most that is
/// tried: what begins at a guess is not to end there.
///
/// # Errors
///
/// As [`Bench::run`].
pub fn widening<B: Bench>(
    bench: &mut B,
    goal: &Goal,
    mut more: impl FnMut(&mut B) -> bool,
) -> anyhow::Result<HighestRate> {
    let mut found = search(bench, goal)?;
    while matches!(found, HighestRate::AtLeast(_)) && more(bench) {
        found = search(bench, goal)?;
    }
    Ok(found)
}

/// What long runs say of an interval that short ones left: they begin at its lower end.
fn prove(bench: &mut impl Bench, goal: &Goal, low: f64, high: f64) -> anyhow::Result<HighestRate> {
    let (mut rate, mut lossy) = if low > 0.0 { (low, high) } else { (high, f64::INFINITY) };
    let (mut tried, mut proved) = (rate, None);
    for _ in 0..goal.attempts {
        tried = rate;
        match confirm(bench, Some(rate), goal)? {
            Confirmed::Lowest(reached) => proved = Some(reached),
            Confirmed::Ended => return Ok(HighestRate::Ended),
            Confirmed::Not(kept) => {
                lossy = rate;
                // Short runs may have filled a large ring, and told of that alone.
                rate = (rate * (1.0 - goal.lowered)).min(kept.max(rate * LEAST_OF_TRIED));
            }
        }
        if let Some(proved) = proved {
            if lossy - proved <= goal.width * lossy {
                break;
            }
            rate = f64::midpoint(proved, lossy);
        }
    }
    Ok(proved.map_or(HighestRate::Below(tried), HighestRate::Rate))
}

/// A short run, and another one where it loses something.
fn steer(bench: &mut impl Bench, rate: f64) -> anyhow::Result<Option<RunOutcome>> {
    match bench.run(Some(rate), Purpose::Steer)? {
        Some(RunOutcome { is_lossless: false, .. }) => bench.run(Some(rate), Purpose::Steer),
        outcome => Ok(outcome),
    }
}

enum Confirmed {
    /// Nothing was lost; the lowest rate that was reached.
    Lowest(f64),
    /// Something was; what was captured of it, in frames a second.
    Not(f64),
    Ended,
}

fn confirm(bench: &mut impl Bench, rate: Option<f64>, goal: &Goal) -> anyhow::Result<Confirmed> {
    let mut lowest = f64::INFINITY;
    for _ in 0..goal.confirmations {
        match bench.run(rate, Purpose::Confirm)? {
            None => return Ok(Confirmed::Ended),
            Some(RunOutcome { is_lossless: false, kept, .. }) => return Ok(Confirmed::Not(kept)),
            Some(RunOutcome { reached, .. }) => lowest = lowest.min(reached),
        }
    }
    Ok(Confirmed::Lowest(lowest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A capture that loses above its capacity, fed by a sender that has a limit, too. Short runs hide a part more.
    struct Planted {
        capacity: f64,
        sender: f64,
        runs: u32,
        most: u32,
        /// How many times its capacity it loses nothing of in short runs, since a ring holds the rest.
        hidden: f64,
        /// Which run is disturbed: it loses something whatever its rate.
        disturbed: Option<u32>,
    }

    impl Bench for Planted {
        fn run(
            &mut self,
            rate: Option<f64>,
            purpose: Purpose,
        ) -> anyhow::Result<Option<RunOutcome>> {
            self.runs += 1;
            if self.runs > self.most {
                return Ok(None);
            }
            let reached = rate.unwrap_or(self.sender).min(self.sender);
            let hidden = if purpose == Purpose::Confirm { 1.0 } else { self.hidden };
            let is_lossless =
                reached <= self.capacity * hidden && self.disturbed != Some(self.runs);
            // What the ring holds in the end was captured, too.
            let kept = if is_lossless { reached } else { reached.min(self.capacity * 1.01) };
            Ok(Some(RunOutcome { reached, kept, is_lossless }))
        }
    }

    fn planted(capacity: f64, sender: f64) -> Planted {
        Planted { capacity, sender, runs: 0, most: u32::MAX, hidden: 1.1, disturbed: None }
    }

    #[test]
    fn the_planted_capacity_is_found_from_below() {
        for capacity in [900.0, 12_345.0, 312_000.0, 799_000.0] {
            let mut bench = planted(capacity, 800_000.0);
            let found = search(&mut bench, &Goal::default()).unwrap();
            let HighestRate::Rate(rate) = found else { panic!("{found:?} of {capacity}") };
            assert!(rate <= capacity && rate > capacity * 0.98, "{rate} of {capacity}");
            assert!(bench.runs < 36, "{} runs", bench.runs);
        }
    }

    #[test]
    fn a_ring_that_short_runs_fill_hides_nothing_in_the_end() {
        for hidden in [1.5, 2.4, 10.0] {
            let mut bench = Planted { hidden, ..planted(40_000.0, 800_000.0) };
            let found = search(&mut bench, &Goal::default()).unwrap();
            let HighestRate::Rate(rate) = found else { panic!("{found:?}") };
            assert!(rate <= 40_000.0 && rate > 39_200.0, "{rate}");
        }
    }

    #[test]
    fn a_run_that_was_disturbed_does_not_decide() {
        for disturbed in 1..12 {
            let mut bench = Planted { disturbed: Some(disturbed), ..planted(312_000.0, 800_000.0) };
            let found = search(&mut bench, &Goal::default()).unwrap();
            let HighestRate::Rate(rate) = found else { panic!("{found:?}") };
            assert!(rate > 312_000.0 * 0.95, "{rate}, where run {disturbed} is disturbed");
        }
    }

    #[test]
    fn a_sender_that_is_too_slow_is_the_limit() {
        let mut bench = planted(2e6, 800_000.0);
        assert_eq!(search(&mut bench, &Goal::default()).unwrap(), HighestRate::AtLeast(800_000.0));
        assert_eq!(bench.runs, 4);
    }

    #[test]
    fn what_begins_at_a_guess_goes_beyond_it() {
        let widened = |most: f64| {
            let mut bench = planted(400_000.0, 50_000.0);
            widening(&mut bench, &Goal::default(), |bench| {
                bench.sender *= 2.0;
                bench.sender <= most
            })
            .unwrap()
        };
        let HighestRate::Rate(rate) = widened(1e6) else { panic!("it is beyond the guess") };
        assert!(rate <= 400_000.0 && rate > 392_000.0, "{rate}");
        assert_eq!(
            widened(200_000.0),
            HighestRate::AtLeast(200_000.0),
            "no further than there is more"
        );
    }

    #[test]
    fn what_loses_always_and_what_ends_has_no_rate() {
        let found = search(&mut planted(-1.0, 800_000.0), &Goal::default()).unwrap();
        let HighestRate::Below(rate) = found else { panic!("{found:?}") };
        assert!(rate < 800_000.0 / 1024.0, "{rate}");
        for most in 0..10 {
            let mut bench = Planted { most, ..planted(312_000.0, 800_000.0) };
            assert_eq!(search(&mut bench, &Goal::default()).unwrap(), HighestRate::Ended, "{most}");
        }
    }
}
