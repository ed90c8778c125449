//! Costs, from runs that lost something: their processor had no time left, so that what it did for frames is known.
//!
//! With λ frames a second that arrived and μ that were kept, λ frame + μ kept and the interrupts are all the time there was.
//! Frames that come one by one cost an interrupt each, those that come together share one, and all interrupts together take
//! no more than a part of the time that frames leave. Costs grow with the size of frames; what is kept costs also what the application does, of which [`raw`](super::raw) tells how long
//! it takes by itself, and the fit how much longer in a capture: by a part of all of it, and by a part of what it does for the smallest frame, since that is done
//! in caches that others have used meanwhile. Where the application was tried with several settings, what is
//! kept costs something else with each, and all else is the same: the kernel knows nothing of them. Least squares, and no
//! cost is below 0.

use super::Costs;
use super::squares::{dot, non_negative};
use crate::tools::Setting;

/// A run whose processor had no time left.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Observation {
    /// Settings of the application that its cost depends on; none where it ran as it comes.
    #[serde(default)]
    pub settings: Vec<Setting>,
    /// Frame size in bytes.
    pub size: u32,
    /// What the application costs by itself for each, in nanoseconds.
    pub raw: f64,
    /// What it costs by itself for each of the smallest frames; 0 where that is not known.
    #[serde(default)]
    pub least: f64,
    /// Frames that came together.
    pub burst: u32,
    /// Frames a second that arrived.
    pub rate: f64,
    /// And that were kept.
    pub served: f64,
    /// The share of the time that there was: the machine stood still for the rest.
    pub time: f64,
}

/// What frames cost where the application has some settings.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Variant {
    /// The settings; none where it is as it comes.
    pub settings: Vec<Setting>,
    /// What frames cost then.
    pub fit: Fit,
}

/// Coefficients of costs, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Fit {
    /// By how much the application takes longer in a capture than by itself.
    pub slower: f64,
    /// By how much of what it takes for the smallest frame it takes longer in addition.
    #[serde(default)]
    pub cold: f64,
    /// What is kept costs in addition, for each frame and for each byte of it.
    pub kept: [f64; 2],
    /// What arrives costs, for each frame and for each byte.
    pub frame: [f64; 2],
    /// What it costs that something arrives: an interrupt, for frames that come together.
    pub wake: f64,
    /// The most that interrupts take of the time that frames leave.
    #[serde(default = "super::whole")]
    pub share: f64,
    /// How exact it is: the standard deviation of the time that is explained, as a share of it.
    pub spread: f64,
}

/// How exact no fit is, whatever its runs say: two runs of one load differ by more.
const LEAST_SPREAD: f64 = 0.01;

impl Fit {
    /// The costs of frames of so many bytes, for which the application takes so many nanoseconds by itself, and so many for the
    /// smallest ones.
    #[must_use]
    pub fn costs(&self, size: u32, raw: f64, least: f64) -> Costs {
        let of = |[each, byte]: [f64; 2]| each + byte * f64::from(size);
        let kept = self.slower * raw + self.cold * least + of(self.kept);
        Costs { wake: self.wake, share: self.share, frame: of(self.frame), kept, deviation: 0.0 }
    }

    /// The fit that explains most, for each of the settings that there are, in their order; none where there are fewer
    /// observations than sizes need.
    #[must_use]
    pub fn variants(observations: &[Observation]) -> Vec<Variant> {
        let wanted = Terms::of(observations);
        let needed = wanted.number();
        let least = 2 * sizes(observations.iter()) * wanted.variants.len();
        if observations.len() < needed.min(least) || observations.len() < 2 {
            return Vec::new();
        }
        let of = |(wake, share)| fitted(observations, &wanted, (wake, share));
        let mut best = of((0.0, 1.0));
        if wanted.bursts {
            let mut around = (MOST_WAKE / 2.0, 0.5);
            for part in PARTS {
                let all = interrupts(around, part).map(of);
                best = all.min_by(|one, other| one.left.total_cmp(&other.left)).unwrap_or(best);
                around = (best.wake, best.share);
            }
        }
        let freedom = observations.len().saturating_sub(needed).max(1) as f64;
        let spread = (best.left / freedom).sqrt().max(LEAST_SPREAD);
        best.variants(&wanted, spread)
    }

    /// How many observations it takes to tell all costs of these apart.
    #[must_use]
    pub fn needed(observations: &[Observation]) -> usize {
        Terms::of(observations).number()
    }
}

/// How many sizes of frames there are.
fn sizes<'a>(observations: impl Iterator<Item = &'a Observation>) -> usize {
    let mut sizes: Vec<_> = observations.map(|one| one.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.len()
}

/// What can be told apart. The rest is left out: work where there is none, bytes where all sizes are one, and interrupts where
/// all come alike.
struct Terms<'a> {
    work: bool,
    /// What the smallest frame takes, beside that.
    cold: bool,
    bytes: bool,
    bursts: bool,
    /// Settings of the application, and whether it was tried with several sizes then.
    variants: Vec<(&'a [Setting], bool)>,
}

impl<'a> Terms<'a> {
    fn of(observations: &'a [Observation]) -> Self {
        let mut variants: Vec<(&[Setting], bool)> = Vec::new();
        for Observation { settings, .. } in observations {
            if !variants.iter().any(|(known, _)| known == settings) {
                let alike = observations.iter().filter(|one| one.settings == *settings);
                variants.push((settings, sizes(alike) > 1));
            }
        }
        let bytes = sizes(observations.iter()) > 1;
        Self {
            work: observations.iter().any(|one| one.raw > 0.0),
            // Of one work alone that is as what everything that is kept costs.
            cold: bytes && observations.iter().any(|one| one.least > 0.0),
            bytes,
            bursts: observations.iter().any(|one| one.burst != observations[0].burst),
            variants,
        }
    }

    /// Numbers to be found.
    fn number(&self) -> usize {
        let kept = self.variants.iter().map(|(_, bytes)| 1 + usize::from(*bytes));
        usize::from(self.work)
            + usize::from(self.cold)
            + 1
            + usize::from(self.bytes)
            + kept.sum::<usize>()
            + 2 * usize::from(self.bursts)
    }

    /// What one of the coefficients is multiplied with, in their order: work, that of the smallest frame, what arrives and its bytes, and for each
    /// variant what is kept and its bytes. 0 where it is not wanted.
    fn row(&self, one: &Observation) -> Vec<f64> {
        let (arrive, keep) = (one.rate * 1e-6, one.served * 1e-6);
        let size = f64::from(one.size) / BYTES;
        let only = |is_wanted: bool, value: f64| if is_wanted { value / one.time } else { 0.0 };
        let mut row = vec![
            only(self.work, keep * one.raw / UNIT),
            only(self.cold, keep * one.least / UNIT),
            only(true, arrive),
            only(self.bytes, arrive * size),
        ];
        for (settings, bytes) in &self.variants {
            let is_its = one.settings == *settings;
            row.extend([only(is_its, keep), only(is_its && *bytes, keep * size)]);
        }
        row
    }
}

/// Coefficients in the order of [`Terms::row`], in microseconds and thousands of bytes.
struct Coefficients {
    coefficients: Vec<f64>,
    wake: f64,
    share: f64,
    /// What they leave: the sum of [`missed`].
    left: f64,
}

impl Coefficients {
    fn variants(&self, wanted: &Terms<'_>, spread: f64) -> Vec<Variant> {
        let of =
            |at: usize| [self.coefficients[at] * UNIT, self.coefficients[at + 1] * UNIT / BYTES];
        let variant = |(number, (settings, _)): (usize, &(&[Setting], bool))| Variant {
            settings: settings.to_vec(),
            fit: Fit {
                slower: self.coefficients[0],
                cold: self.coefficients[1],
                kept: of(SHARED + 2 * number),
                frame: of(ARRIVES),
                wake: self.wake,
                share: self.share,
                spread,
            },
        };
        wanted.variants.iter().enumerate().map(variant).collect()
    }
}

/// Coefficients that all variants have in common, and where those of what arrives are.
const SHARED: usize = 4;
const ARRIVES: usize = 2;

/// What an interrupt may cost, in nanoseconds, at most.
const MOST_WAKE: f64 = 32_000.0;

/// What is tried of what an interrupt may cost, and of the part of the time that all may take: so many steps to each side
/// of the best that is known, first over a half of everything, then over smaller parts.
const STEPS: u32 = 5;
const PARTS: [f64; 4] = [0.5, 0.1, 0.02, 0.004];

fn interrupts((wake, share): (f64, f64), part: f64) -> impl Iterator<Item = (f64, f64)> {
    let each = move |middle: f64, most: f64| {
        let step = move |step: u32| {
            let off = f64::from(step) / f64::from(STEPS) - 1.0;
            (middle + off * part * most).clamp(0.0, most)
        };
        (0..=2 * STEPS).map(step)
    };
    each(wake, MOST_WAKE).flat_map(move |wake| each(share, 1.0).map(move |share| (wake, share)))
}

/// The best fit where an interrupt costs so much, and all take such a part at most of the time that frames leave.
fn fitted(
    observations: &[Observation],
    wanted: &Terms<'_>,
    (wake, share): (f64, f64),
) -> Coefficients {
    let number = SHARED + 2 * wanted.variants.len();
    let mut coefficients = vec![0.0; number];
    let mut weights = vec![1.0; observations.len()];
    let mut left = 0.0;
    for _ in 0..SETTLING {
        // As shares of the time that there was. What frames leave for interrupts is of the round before.
        let all = observations.iter().map(|one| {
            let frame = arrives(&coefficients, one.size);
            let bound = Costs { wake, share, frame, ..Costs::default() };
            with_interrupts(one, wanted.row(one), &bound)
        });
        let (rows, targets): (Vec<_>, Vec<_>) = all.unzip();
        coefficients = non_negative(&rows, &targets, &weights, number);
        let errors =
            rows.iter().zip(&targets).map(|(row, target)| dot(row, &coefficients) - target);
        let errors: Vec<_> = errors.collect();
        left = errors.iter().map(|error| missed(*error)).sum();
        let weight = |error: &f64| (FAR / error.abs().max(1e-12)).min(1.0);
        weights = errors.iter().map(weight).collect();
    }
    Coefficients { coefficients, wake, share, left }
}

/// What a frame costs that arrives.
fn arrives(coefficients: &[f64], size: u32) -> f64 {
    (coefficients[ARRIVES] + coefficients[ARRIVES + 1] * f64::from(size) / BYTES) * UNIT
}

/// A row of coefficients and what it is to come to, where interrupts cost what they are bound by: as much each, or a part of
/// what frames leave, of which the frames' own part grows with what those cost.
fn with_interrupts(one: &Observation, mut row: Vec<f64>, bound: &Costs) -> (Vec<f64>, f64) {
    let interrupts = bound.interrupts(one.rate, one.burst);
    let left = (1.0 - one.rate * bound.frame / 1e9).max(0.0);
    // Rounding is not to decide.
    if interrupts * (1.0 + 1e-9) < bound.share * left || left == 0.0 {
        return (row, 1.0 - interrupts / one.time);
    }
    row[ARRIVES..SHARED].iter_mut().for_each(|part| *part *= 1.0 - bound.share);
    (row, 1.0 - bound.share / one.time)
}

/// What is off by more than this share of the time counts as it is, and not squared (Huber 1964): a run that was disturbed
/// is not to bend the fit of all others.
const FAR: f64 = 0.03;

/// Rounds until weights are settled.
const SETTLING: u32 = 8;

/// How much an error counts.
fn missed(error: f64) -> f64 {
    let error = error.abs();
    if error <= FAR { error * error } else { (2.0 * error - FAR) * FAR }
}

/// Coefficients are sought in microseconds, and bytes in thousands, so that all are near 1.
const UNIT: f64 = 1000.0;
const BYTES: f64 = 1000.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(fit: &Fit, runs: &[(u32, u32, f64, f64)]) -> Vec<Observation> {
        let run = |&(size, burst, raw, over): &(u32, u32, f64, f64)| {
            let costs = fit.costs(size, raw, 0.0);
            let rate = costs.knee(burst) * over;
            Observation {
                settings: Vec::new(),
                size,
                raw,
                least: 0.0,
                burst,
                rate,
                served: costs.served(rate, burst),
                time: 1.0,
            }
        };
        runs.iter().map(run).collect()
    }

    const PLANTED: Fit = Fit {
        slower: 1.2,
        cold: 0.0,
        kept: [600.0, 0.9],
        frame: [1100.0, 0.3],
        wake: 6000.0,
        share: 0.6,
        spread: LEAST_SPREAD,
    };

    const RUNS: [(u32, u32, f64, f64); 12] = [
        (128, 32, 2000.0, 1.3),
        (128, 32, 2000.0, 2.0),
        (128, 32, 4000.0, 1.3),
        (128, 32, 4000.0, 2.0),
        (128, 1, 4000.0, 1.1),
        (128, 1, 4000.0, 3.0),
        (1024, 32, 9000.0, 1.3),
        (1024, 32, 9000.0, 2.0),
        (1024, 32, 20_000.0, 1.3),
        (1024, 32, 20_000.0, 2.0),
        (1024, 1, 20_000.0, 1.1),
        (1024, 1, 20_000.0, 3.0),
    ];

    /// The fit of an application that has no settings.
    fn only(observations: &[Observation]) -> Option<Fit> {
        let variants = Fit::variants(observations);
        assert!(variants.iter().all(|variant| variant.settings.is_empty()) && variants.len() < 2);
        variants.first().map(|variant| variant.fit)
    }

    #[test]
    fn settings_have_costs_of_their_own() {
        let deep = Fit { kept: [2500.0, 2.2], slower: 0.0, ..PLANTED };
        let flat = Fit { kept: [700.0, 0.1], ..deep };
        // Where nothing is kept at all, nothing is told of what that costs.
        let runs = RUNS.map(|(size, burst, _, over)| (size, burst, 0.0, f64::min(over, 1.5)));
        let depth = |name: &str| vec![Setting { name: "depth".to_owned(), value: name.to_owned() }];
        let mut all = Vec::new();
        for (fit, name) in [(deep, "protocols"), (flat, "flows")] {
            let of = observed(&fit, &runs).into_iter();
            all.extend(of.map(|one| Observation { settings: depth(name), ..one }));
        }
        let variants = Fit::variants(&all);
        assert_eq!(variants.len(), 2, "{variants:?}");
        for (variant, (planted, name)) in
            variants.iter().zip([(deep, "protocols"), (flat, "flows")])
        {
            assert_eq!(variant.settings, depth(name));
            for (size, burst) in [(64, 8), (512, 1), (1518, 1000)] {
                let [found, planted] = [variant.fit, planted].map(|fit| fit.costs(size, 0.0, 0.0));
                let off = found.knee(burst) / planted.knee(burst) - 1.0;
                assert!(off.abs() < 0.01, "{off}: {found:?} {planted:?}");
            }
        }
        // What both have in common is told by both.
        assert_eq!(variants[0].fit.frame, variants[1].fit.frame);
        assert_eq!(Fit::needed(&all), 8);
        // One that was seen with one size has no cost of bytes, and the other one keeps its own.
        all.retain(|one| one.settings == depth("flows") || one.size == 128);
        let variants = Fit::variants(&all);
        assert_eq!((variants[0].fit.kept[1], Fit::needed(&all)), (0.0, 7));
        assert!((variants[1].fit.kept[1] - 0.1).abs() < 0.05, "{variants:?}");
    }

    #[test]
    fn planted_costs_are_found() {
        let fit = only(&observed(&PLANTED, &RUNS)).unwrap();
        for (size, burst, raw) in [(64, 8, 1000.0), (512, 1, 5000.0), (1518, 1000, 30_000.0)] {
            let (found, planted) = (fit.costs(size, raw, 0.0), PLANTED.costs(size, raw, 0.0));
            assert!(
                (found.knee(burst) / planted.knee(burst) - 1.0).abs() < 0.01,
                "{found:?} {planted:?}"
            );
            assert!((found.frame / planted.frame - 1.0).abs() < 0.03, "{found:?} {planted:?}");
        }
        assert_eq!(fit.spread, LEAST_SPREAD);
    }

    #[test]
    fn some_frames_together_tell_what_an_interrupt_costs() {
        // One by one they take all that interrupts may take, and many together share one: both tell nothing of it alone.
        let runs = [
            (128, 32, 2000.0, 1.3),
            (128, 32, 6000.0, 2.0),
            (128, 1, 2000.0, 2.0),
            (128, 1, 6000.0, 2.0),
            (128, 6, 2000.0, 1.6),
            (128, 6, 6000.0, 1.6),
            (1024, 32, 5000.0, 1.3),
            (1024, 32, 19_000.0, 2.0),
            (1024, 1, 5000.0, 2.0),
            (1024, 6, 19_000.0, 1.6),
        ];
        let fit = only(&observed(&PLANTED, &runs)).unwrap();
        assert!((fit.wake / PLANTED.wake - 1.0).abs() < 0.1, "{fit:?}");
    }

    #[test]
    fn what_the_smallest_frame_takes_counts_beside_the_rest() {
        let planted = Fit { cold: 0.4, slower: 1.0, ..PLANTED };
        // Two works, each of which takes so long for the smallest frame, and for one of 1518 bytes.
        let works = [[1300.0, 5800.0], [3100.0, 19_900.0]];
        let mut all = Vec::new();
        for [least, most] in works {
            for (size, raw) in [(64, least), (1518, most)] {
                for (burst, over) in [(32, 1.35), (1, 1.6), (6, 1.6), (32, 2.1)] {
                    let costs = planted.costs(size, raw, least);
                    let rate = costs.knee(burst) * over;
                    let served = costs.served(rate, burst);
                    let settings = Vec::new();
                    all.push(Observation {
                        settings,
                        size,
                        raw,
                        least,
                        burst,
                        rate,
                        served,
                        time: 1.0,
                    });
                }
            }
        }
        let fit = only(&all).unwrap();
        for (size, burst, raw, least) in [(96, 8, 4400.0, 3000.0), (640, 1, 14_000.0, 3200.0)] {
            let [found, planted] =
                [fit, planted].map(|fit| fit.costs(size, raw, least).knee(burst));
            assert!((found / planted - 1.0).abs() < 0.01, "{found}, not {planted}: {fit:?}");
        }
        assert!((fit.cold - 0.4).abs() < 0.05, "{fit:?}");
        assert_eq!(Fit::needed(&all), 8);
    }

    #[test]
    fn noise_is_told() {
        let mut runs = observed(&PLANTED, &RUNS);
        for (number, run) in runs.iter_mut().enumerate() {
            run.served *= if number % 3 == 0 { 1.08 } else { 0.96 };
        }
        let fit = only(&runs).unwrap();
        assert!((0.02..0.2).contains(&fit.spread), "{fit:?}");
    }

    #[test]
    fn a_disturbed_run_bends_nothing() {
        // As a calibration makes them.
        let loads = [(64, 1300.0), (64, 3100.0), (1518, 5800.0), (1518, 19_900.0)];
        let all = loads.into_iter().flat_map(|(size, raw)| {
            super::super::calibrate::OVER.map(|(over, burst)| (size, burst, raw, over))
        });
        let mut runs = observed(&PLANTED, &all.collect::<Vec<_>>());
        runs[1].served *= 0.05;
        let fit = only(&runs).unwrap();
        for (size, burst, raw) in [(64, 8, 1000.0), (512, 32, 5000.0), (1518, 1000, 30_000.0)] {
            let (found, planted) = (fit.costs(size, raw, 0.0), PLANTED.costs(size, raw, 0.0));
            let off = found.knee(burst) / planted.knee(burst) - 1.0;
            assert!(off.abs() < 0.03, "{off}: {found:?} {planted:?}");
        }
    }

    #[test]
    fn nothing_costs_less_than_nothing() {
        // Twice as many come, and more than twice as many are kept: as if keeping them gave time.
        let run = |(rate, served)| Observation {
            settings: Vec::new(),
            size: 512,
            raw: 0.0,
            least: 0.0,
            burst: 32,
            rate,
            served,
            time: 1.0,
        };
        let fit = only(&[(100e3, 20e3), (200e3, 50e3)].map(run)).unwrap();
        assert!(fit.kept[0] == 0.0 && fit.frame[0] > 0.0, "{fit:?}");
    }

    #[test]
    fn what_cannot_be_told_apart_is_left_out() {
        assert_eq!(only(&[]), None);
        let one_size =
            Fit { slower: 0.0, kept: [5000.0, 0.0], frame: [900.0, 0.0], wake: 0.0, ..PLANTED };
        let runs = observed(&one_size, &[(512, 32, 0.0, 1.2), (512, 32, 0.0, 1.9)]);
        assert_eq!(only(&runs[..1]), None);
        let fit = only(&runs).unwrap();
        assert!(
            (fit.costs(512, 0.0, 0.0).knee(32) / one_size.costs(512, 0.0, 0.0).knee(32) - 1.0)
                .abs()
                < 1e-6
        );
        assert_eq!((fit.slower, fit.kept[1], fit.frame[1], fit.wake), (0.0, 0.0, 0.0, 0.0));
    }
}
