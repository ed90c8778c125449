//! Losses with an interval, the rate without loss, bursts that are survived.

use netsniff_traffic::Random;
use statrs::distribution::{ContinuousCDF as _, Normal};

use super::raw::Raw;
use super::simulate::{FrameArrival, Held, Queues, SimulationOutcome, room, simulate};
use super::stalls::Stalls;
use super::wakes::Wakes;
use super::{Costs, Model, TOGETHER};
use crate::tools::Setting;
use crate::work::Cost;

/// Runs of the model for an interval.
const DRAWS: usize = 40;

/// Halvings of an interval in which a rate or a burst is sought: to a thousandth of it.
const STEPS: u32 = 10;

/// The longest burst that is looked for, in frames.
const LONGEST: f64 = 4e6;

/// Draws of costs for the rate without loss, each with other stalls.
const RATES: usize = 9;

/// For how many seconds nothing is lost at the rate without loss.
pub const SECONDS: f64 = 5.0;

/// A load and a buffer.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Question {
    /// Bytes of frames, frame check sequence included.
    pub size: u32,
    /// The rate in frames a second.
    pub rate: f64,
    /// Frames that leave together, as fast as the sender can; where gaps are kept, none do.
    pub burst: u32,
    /// Whether a capture's frames come with the gaps that were recorded, scaled to the rate.
    #[serde(default)]
    pub keeps_gaps: bool,
    /// Bytes of the ring.
    pub ring: u64,
    /// What the application does for each packet.
    pub cost: Cost,
    /// Settings of the application that its cost depends on; none where it is as it comes.
    #[serde(default)]
    pub settings: Vec<Setting>,
    /// Seconds that frames are sent for.
    pub seconds: f64,
}

/// A value that as many are below as above, and what 9 in 10 are between.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Estimate {
    /// The value that is predicted.
    pub value: f64,
    /// Lower end of the interval of prediction.
    pub low: f64,
    /// Upper end of the interval of prediction.
    pub high: f64,
}

impl Estimate {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |share: f64| values[(share * (values.len() - 1) as f64).round() as usize];
        Self { value: at(0.5), low: at(0.05), high: at(0.95) }
    }
}

/// What is to come.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Prediction {
    /// What the application costs by itself for each frame on average, in nanoseconds, as it was measured for this.
    pub raw: f64,
    /// How that is distributed; `None` where it is not known.
    #[serde(default)]
    pub service: Option<Raw>,
    /// What the processor does for a frame.
    pub costs: Costs,
    /// The share that is lost before the ring, of what is sent.
    pub kernel: Estimate,
    /// The share that is lost at the ring, of what comes to it.
    pub application: Estimate,
    /// The share that is lost, of what is sent.
    pub total: Estimate,
    /// When the first frame is lost, in seconds: the median where at least half of all runs of the model lose any.
    pub first_loss: Option<f64>,
    /// Between which seconds 9 of 10 runs of the model lose the first frame, of those that lose any; `None` where
    /// `first_loss` is, and in predictions of earlier versions.
    #[serde(default)]
    pub first_loss_within: Option<[f64; 2]>,
    /// The highest rate without loss for frames, buffer and application of the question, in frames a second: nothing is lost
    /// at it and below; at most what the sender sends at full speed.
    pub lossless: Estimate,
    /// Frames of the longest burst at the sender's full speed that loses nothing; `None` where it is longer than anyone
    /// looks.
    pub survived: Option<f64>,
}

impl Model {
    /// What the processor does for a frame, where an application takes so long for it by itself; `None` as
    /// [`Self::fit_with`]. Where it is not known what the application takes, all that is known is in the fit, and nothing of
    /// how its frames differ.
    #[must_use]
    pub fn costs(&self, question: &Question, raw: Option<Raw>) -> Option<Costs> {
        let fit = self.fit_with(&question.settings)?;
        let Raw { mean, deviation, least, .. } = raw.unwrap_or_default();
        let costs = fit.costs(question.size, mean, least);
        let costs = Costs { deviation: fit.slower * deviation, ..costs };
        Some(match question.cost.delay {
            None => costs,
            // Who waits for the time to pass does not mind what the kernel does meanwhile.
            Some(delay) => {
                let kept = (delay.as_nanos() as f64).max(costs.frame + costs.kept);
                Costs { wake: 0.0, share: 1.0, frame: 0.0, kept, deviation: 0.0 }
            }
        })
    }

    /// Answers a question, where the application takes so long for a frame by itself; `None` as [`Self::fit_with`].
    #[must_use]
    pub fn predict(&self, question: &Question, raw: Option<Raw>) -> Option<Prediction> {
        let costs = self.costs(question, raw)?;
        let outcomes: Vec<_> = self.draws(question, costs, &self.stalls).collect();
        let share =
            |of: fn(&SimulationOutcome) -> f64| Estimate::of(outcomes.iter().map(of).collect());
        let first: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.first_loss).collect();
        let is_usual = !first.is_empty() && first.len() * 2 >= outcomes.len();
        let first = is_usual.then(|| Estimate::of(first.iter().map(|at| at / 1e9).collect()));
        Some(Prediction {
            raw: raw.unwrap_or_default().mean,
            service: raw,
            costs,
            kernel: share(|outcome| outcome.lost_backlog / outcome.frames.max(1.0)),
            application: share(|outcome| {
                outcome.lost_ring / (outcome.frames - outcome.lost_backlog).max(1.0)
            }),
            total: share(SimulationOutcome::loss),
            first_loss: first.map(|first| first.value),
            first_loss_within: first.map(|first| [first.low, first.high]),
            lossless: self.lossless(question, costs),
            survived: self.survived(question, costs),
        })
    }

    /// The rate at which so much is lost, at most `most`; `None` as [`Self::fit_with`].
    #[must_use]
    pub fn rate_of_loss(
        &self,
        question: &Question,
        raw: Option<Raw>,
        loss: f64,
        most: f64,
    ) -> Option<f64> {
        let costs = self.costs(question, raw)?;
        let lost = |rate| {
            let outcome = self.once(&Question { rate, ..question.clone() }, costs, &NO_STALLS, 0);
            outcome.loss() <= loss
        };
        Some(highest(costs.knee(question.burst) * 0.5, most, lost))
    }

    /// The model with everything as it is fitted, and then with costs that are off by as much as the fit may be.
    fn draws<'a>(
        &'a self,
        question: &'a Question,
        costs: Costs,
        stalls: &'a Stalls,
    ) -> impl Iterator<Item = SimulationOutcome> + 'a {
        self.factors(DRAWS)
            .zip(0..)
            .map(move |(factor, draw)| self.once(question, costs.times(factor), stalls, draw))
    }

    /// What costs may be of what they are thought to be: as many more as less, evenly over what is likely.
    fn factors(&self, number: usize) -> impl Iterator<Item = f64> {
        let spread = self.fit.spread;
        (0..number).map(move |draw| {
            let part = (draw as f64 + 0.5) / number as f64;
            (spread * Normal::standard().inverse_cdf(part)).exp()
        })
    }

    fn once(
        &self,
        question: &Question,
        costs: Costs,
        stalls: &Stalls,
        seed: u64,
    ) -> SimulationOutcome {
        let queues = Queues::new(question.ring, self.backlog, self.clock);
        // Who has given times makes up for what it slept too long.
        let is_by_time = question.cost.delay.is_some();
        let wakes = if is_by_time { &AT_ONCE } else { &self.wakes };
        let held = Held { stalls, wakes, is_by_time };
        simulate(self.arrivals(question, costs), &queues, held, &mut Random::new(seed))
    }

    fn arrivals<'a>(
        &'a self,
        question: &'a Question,
        costs: Costs,
    ) -> Box<dyn Iterator<Item = FrameArrival> + 'a> {
        let of = (question.rate, question.seconds);
        match &self.traffic {
            None => Box::new(self.stamped(question, costs)),
            Some(traffic) if question.keeps_gaps => {
                Box::new(traffic.recorded(of, self.gap(question.size), costs))
            }
            Some(traffic) => {
                let together = (question.burst, self.gap(question.size));
                Box::new(traffic.even(of, together, costs))
            }
        }
    }

    fn stamped(
        &self,
        question: &Question,
        costs: Costs,
    ) -> impl Iterator<Item = FrameArrival> + use<> {
        let &Question { size, rate, burst, seconds, .. } = question;
        let gap = self.gap(size);
        let room = room(size);
        // Longer bursts come in groups, of which each joins the one before where that is still being taken.
        let (burst, group) = (u64::from(burst.max(1)), u64::from(burst.clamp(1, TOGETHER)));
        let all = (rate * seconds) as u64;
        (0..all.div_ceil(group)).map(move |number| {
            let first = number * group;
            let (whole, within) = (first / burst * burst, first % burst);
            let at = whole as f64 / rate * 1e9 + within as f64 * gap;
            FrameArrival { at, frames: group.min(all - first) as f64, room, costs }
        })
    }

    /// The highest rate that, as all below it, loses nothing in some seconds, by each draw of costs.
    fn lossless(&self, question: &Question, costs: Costs) -> Estimate {
        let mut rates = Vec::new();
        for (factor, draw) in self.factors(RATES).zip(0..) {
            let costs = costs.times(factor);
            let is_lossless = |rate| {
                let question = Question {
                    rate,
                    seconds: self.long_enough(question, rate),
                    ..question.clone()
                };
                self.once(&question, costs, &self.stalls, draw).loss() == 0.0
            };
            // The sender does not send more.
            let most = (costs.knee(question.burst) * 1.1).min(1e9 / self.gap(question.size));
            rates.push(highest_of_all(most, is_lossless));
        }
        Estimate::of(rates)
    }

    /// Seconds that tell whether a rate loses nothing: of a capture with its own gaps all of it, or half a million frames.
    fn long_enough(&self, question: &Question, rate: f64) -> f64 {
        match &self.traffic {
            Some(traffic) if question.keeps_gaps => {
                SECONDS.max(traffic.packets.min(WHOLE) as f64 / rate.max(1.0))
            }
            _ => SECONDS,
        }
    }

    /// The longest burst at the sender's full speed that loses nothing.
    fn survived(&self, question: &Question, costs: Costs) -> Option<f64> {
        let rate = 1e9 / self.gap(question.size);
        if costs.served(rate, TOGETHER) >= rate {
            return None;
        }
        let is_survived = |frames: f64| {
            let seconds = frames / rate;
            let burst =
                Question { rate, burst: TOGETHER, keeps_gaps: false, seconds, ..question.clone() };
            self.once(&burst, costs, &NO_STALLS, 0).loss() == 0.0
        };
        // What would fill the ring if nothing were read is where the search begins.
        let mut most = (2.0 * question.ring as f64 / room(question.size)).min(LONGEST);
        while is_survived(most) {
            most *= 4.0;
            if most > LONGEST {
                return None;
            }
        }
        Some(highest(0.0, most, is_survived).floor())
    }
}

/// Frames of a capture that tell whether a rate of it loses nothing, at most.
const WHOLE: u64 = 500_000;

/// No stalls at all.
const NO_STALLS: Stalls = Stalls { watched: 1, lengths: Vec::new() };

/// Nobody sleeps too long.
const AT_ONCE: Wakes = Wakes { lengths: Vec::new() };

/// The highest value between two for which something holds, where it holds for all that are lower.
fn highest(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    if holds(high) {
        return high;
    }
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Equal parts of what was found, up to which it is looked at again.
const PARTS: u32 = 8;

/// The highest value for which, and below which everywhere, something holds, as far as looking at some of them tells.
///
/// More can be less: a ring of two blocks has lost frames where the kernel's clock closes the one block while the other one
/// is read, which happens to no rate that never fills a block, and again to none that fills one well before that.
fn highest_of_all(most: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let mut found = highest(0.0, most, &holds);
    let fails = |found: f64| {
        let lower = (1..PARTS).map(|part| found * f64::from(part) / f64::from(PARTS));
        lower.into_iter().find(|value| !holds(*value))
    };
    while let Some(lower) = fails(found) {
        found = highest(0.0, lower, &holds);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::fit::{Fit, Variant};
    use crate::testbed::Layout;
    use std::time::Duration;

    fn model(frame: f64, kept: f64) -> Model {
        Model {
            tool: "work".to_owned(),
            layout: Layout::default(),
            traffic: None,
            fit: Fit {
                slower: 1.0,
                cold: 0.0,
                kept: [kept, 0.0],
                frame: [frame, 0.0],
                wake: 0.0,
                share: 1.0,
                spread: 0.01,
            },
            variants: Vec::new(),
            gaps: vec![(128, 1000.0), (1024, 1500.0)],
            stalls: NO_STALLS,
            wakes: AT_ONCE,
            services: Vec::new(),
            backlog: 1000,
            clock: crate::model::Clock::default(),
            observations: Vec::new(),
            left_out: 0,
            seconds: 0.0,
        }
    }

    fn question(rate: f64) -> Question {
        let cost = Cost::default();
        Question {
            size: 512,
            rate,
            burst: 32,
            keeps_gaps: false,
            ring: 8 << 20,
            cost,
            settings: Vec::new(),
            seconds: 3.0,
        }
    }

    #[track_caller]
    fn near(value: f64, expected: f64, by: f64) {
        assert!((value - expected).abs() <= by, "{value} is not {expected}");
    }

    #[test]
    fn predictions_are_what_arithmetic_says() {
        let model = model(2000.0, 7000.0);
        let above = model.predict(&question(200e3), Some(Raw::even(1000.0))).unwrap();
        // 600,000 frames, of which seven blocks of 1771 are held; (1 - 0.4) / 8 us are served in a second.
        let expected = 1.0 - (75e3 * 3.0 + 7.0 * 1771.0) / 600e3;
        near(above.total.value, expected, 0.01);
        assert!(above.total.low < expected && above.total.high > expected, "{above:?}");
        assert_eq!(above.kernel.value, 0.0);
        // It is full once (200 - 75) k/s have filled it.
        near(above.first_loss.unwrap(), 7.0 * 1771.0 / 125e3, 0.03);
        let [low, high] = above.first_loss_within.unwrap();
        assert!(low < above.first_loss.unwrap() && above.first_loss.unwrap() < high, "{above:?}");
        near(above.lossless.value, 100e3, 4e3);
        let below = model.predict(&question(90e3), Some(Raw::even(1000.0))).unwrap();
        assert_eq!((below.total.value, below.first_loss), (0.0, None));
        assert_eq!(below.first_loss_within, None);
        near(
            model.rate_of_loss(&question(0.0), Some(Raw::even(1000.0)), expected, 500e3).unwrap(),
            200e3,
            2e3,
        );
    }

    #[test]
    fn frames_that_differ_widen_the_interval_and_leave_the_mean() {
        // A small ring near the knee: 2 blocks of 1771 frames, which all take 9 us, or 9 us on average.
        let model = Model { fit: Fit { spread: 1e-6, ..model(0.0, 0.0).fit }, ..model(0.0, 0.0) };
        let asked = Question { ring: 2 << 20, ..question(113e3) };
        let [even, uneven] = [0.0, 45_000.0].map(|deviation| {
            let raw = Raw { deviation, ..Raw::even(9000.0) };
            model.predict(&asked, Some(raw)).unwrap()
        });
        let width = |prediction: &Prediction| prediction.total.high - prediction.total.low;
        assert!(width(&uneven) > width(&even) + 0.002, "{even:?} {uneven:?}");
        assert_eq!(even.costs.kept, uneven.costs.kept);
        // Far above the knee all that is drawn comes to the mean.
        let far = Question { ring: 16 << 20, rate: 200e3, ..asked };
        let [even, uneven] = [0.0, 45_000.0].map(|deviation| {
            let raw = Raw { deviation, ..Raw::even(9000.0) };
            model.predict(&far, Some(raw)).unwrap().total.value
        });
        near(uneven, even, 0.003);
        // Who takes a given time takes it for every frame.
        let cost = Cost { zip: None, delay: Some(Duration::from_micros(10)) };
        let costs =
            model.costs(&Question { cost, ..far }, Some(Raw { deviation: 1.0, ..Raw::even(1.0) }));
        assert_eq!(costs.unwrap().deviation, 0.0);
    }

    /// A block of 1771 frames fills in the kernel's 50 ms at 35,420 a second. A little faster, the clock closes the second
    /// block while the first one is read, for 14 ms; from 49,500 on that is done before.
    #[test]
    fn nothing_is_lost_below_the_rate_without_loss() {
        let model = Model { fit: Fit { spread: 1e-6, ..model(0.0, 0.0).fit }, ..model(0.0, 0.0) };
        let predict = |rate| {
            let asked = Question { ring: 2 << 20, burst: 1, ..question(rate) };
            model.predict(&asked, Some(Raw::even(8000.0))).unwrap()
        };
        let lost = [30e3, 42e3, 55e3].map(|rate| predict(rate).total.value > 0.0);
        assert_eq!(lost, [false, true, false]);
        near(predict(42e3).lossless.value, 35_420.0, 400.0);
    }

    #[test]
    fn settings_are_those_that_were_tried() {
        let depth = |name: &str| vec![Setting { name: "depth".to_owned(), value: name.to_owned() }];
        let [deep, flat] = [model(2000.0, 7000.0), model(2000.0, 2000.0)].map(|model| model.fit);
        let variant = |settings, fit| Variant { settings, fit };
        let variants = vec![variant(depth("tcp"), deep), variant(depth("flows"), flat)];
        let known = Model { variants, ..model(1.0, 1.0) };
        let lossless = |settings| {
            let question = Question { settings, ..question(150e3) };
            known.predict(&question, None).map(|prediction| prediction.lossless.value)
        };
        near(lossless(depth("tcp")).unwrap(), 1e9 / 9000.0, 4e3);
        near(lossless(depth("flows")).unwrap(), 250e3, 1e4);
        assert_eq!((lossless(depth("packets")), lossless(Vec::new())), (None, None));
        // A model that was never tried with settings is of none.
        let question = Question { settings: depth("tcp"), ..question(150e3) };
        assert_eq!(model(2000.0, 7000.0).predict(&question, None), None);
    }

    #[test]
    fn the_longest_burst_is_what_fits() {
        let model = model(0.0, 0.0);
        let cost = Cost { zip: None, delay: Some(Duration::from_micros(10)) };
        let question = Question { cost, ..question(50e3) };
        let gap = model.gap(512);
        // Frames that come every `gap` ns, of which one in 10 us is taken, fill seven of eight blocks.
        let expected = 7.0 * 1771.0 / (1.0 - gap / 10_000.0);
        let survived = model.predict(&question, None).unwrap().survived.unwrap();
        near(survived / expected, 1.0, 0.1);
        let longer = Question {
            burst: survived as u32 + 2000,
            rate: 1000.0,
            seconds: 100.0,
            ..question.clone()
        };
        assert!(model.predict(&longer, None).unwrap().total.value > 0.0);
        let shorter = Question { burst: survived as u32 - 2000, ..longer.clone() };
        assert_eq!(model.predict(&shorter, None).unwrap().total.value, 0.0);
        // Who is faster than the sender survives everything.
        let fast = Question { cost: Cost::default(), ..question };
        assert_eq!(model.predict(&fast, None).unwrap().survived, None);
    }
}
