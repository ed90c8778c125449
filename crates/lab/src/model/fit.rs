//! Costs, from runs that lost something: their processor had no time left, so that what it did for frames is known.
//!
//! With λ frames a second that arrived and μ that were kept, λ frame + μ kept and the interrupts are all the time there was.
//! Frames that come one by one cost an interrupt each, those that come together share one, and all interrupts together take
//! no more than a part of the time. Costs grow with the size of frames; what is kept costs also what the application does, of which [`raw`](super::raw) tells how long
//! it takes by itself, and the fit how much longer in a capture. Least squares, and no cost is below 0.

use super::Costs;

/// A run whose processor had no time left.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Observation {
    /// Bytes of frames.
    pub size: u32,
    /// What the application costs by itself for each, in nanoseconds.
    pub raw: f64,
    /// Frames that came together.
    pub burst: u32,
    /// Frames a second that arrived.
    pub rate: f64,
    /// And that were kept.
    pub served: f64,
    /// The share of the time that there was: the machine stood still for the rest.
    pub time: f64,
}

/// Coefficients of costs, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Fit {
    /// By how much the application takes longer in a capture than by itself.
    pub slower: f64,
    /// What is kept costs in addition, for each frame and for each byte of it.
    pub kept: [f64; 2],
    /// What arrives costs, for each frame and for each byte.
    pub frame: [f64; 2],
    /// What it costs that something arrives: an interrupt, for frames that come together.
    pub wake: f64,
    /// The most of the time that interrupts take.
    #[serde(default = "super::whole")]
    pub share: f64,
    /// How exact it is: the standard deviation of the time that is explained, as a share of it.
    pub spread: f64,
}

/// How exact no fit is, whatever its runs say: two runs of one load differ by more.
const LEAST_SPREAD: f64 = 0.01;

/// Coefficients.
const NUMBER: usize = 5;

/// Rounds of descent, enough for any digits that matter.
const ROUNDS: u32 = 400;

impl Fit {
    /// The costs of frames of so many bytes, for which the application takes so many nanoseconds by itself.
    #[must_use]
    pub fn costs(&self, size: u32, raw: f64) -> Costs {
        let of = |[each, byte]: [f64; 2]| each + byte * f64::from(size);
        let kept = self.slower * raw + of(self.kept);
        Costs { wake: self.wake, share: self.share, frame: of(self.frame), kept }
    }

    /// The fit that explains most; `None` where there are fewer observations than sizes need, or none.
    #[must_use]
    pub fn of(observations: &[Observation]) -> Option<Self> {
        let wanted = wanted(observations);
        let needed = Self::needed(observations);
        let by_burst = by_burst(observations);
        if observations.len() < needed.min(2 * sizes(observations)) || observations.len() < 2 {
            return None;
        }
        let of = |(wake, share)| fitted(observations, wanted, (wake, share));
        let mut best = of((0.0, 1.0));
        if by_burst {
            let mut around = (MOST_WAKE / 2.0, 0.5);
            for part in PARTS {
                let all = interrupts(around, part).map(of);
                best = all.min_by(|one, other| one.1.total_cmp(&other.1))?;
                around = (best.0.wake, best.0.share);
            }
        }
        let (best, left) = best;
        let freedom = observations.len().saturating_sub(needed).max(1) as f64;
        Some(Self { spread: (left / freedom).sqrt().max(LEAST_SPREAD), ..best })
    }

    /// How many observations it takes to tell all costs of these apart.
    #[must_use]
    pub fn needed(observations: &[Observation]) -> usize {
        let wanted = wanted(observations).iter().filter(|is| **is).count();
        wanted + 2 * usize::from(by_burst(observations))
    }
}

/// How many sizes of frames there are.
fn sizes(observations: &[Observation]) -> usize {
    let mut sizes: Vec<_> = observations.iter().map(|one| one.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.len()
}

/// Whether some frames came by other numbers together than others.
fn by_burst(observations: &[Observation]) -> bool {
    observations.iter().any(|one| one.burst != observations[0].burst)
}

/// Which coefficients there are. What cannot be told apart is left out: work where there is none, and bytes where all sizes
/// are one.
fn wanted(observations: &[Observation]) -> [bool; NUMBER] {
    let has_work = observations.iter().any(|one| one.raw > 0.0);
    let by_size = sizes(observations) > 1;
    [has_work, true, by_size, true, by_size]
}

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

/// The best fit where an interrupt costs so much, and all take such a part of the time at most; and what it leaves: the sum
/// of [`missed`].
fn fitted(
    observations: &[Observation],
    wanted: [bool; NUMBER],
    (wake, share): (f64, f64),
) -> (Fit, f64) {
    let bound = Costs { wake, share, ..Costs::default() };
    // As shares of the time that there was.
    let rows: Vec<_> = observations.iter().map(|one| row(one, wanted)).collect();
    let rest = |one: &Observation| 1.0 - bound.interrupts(one.rate, one.burst) / one.time;
    let targets: Vec<_> = observations.iter().map(rest).collect();
    let errors = |found: &[f64; NUMBER]| -> Vec<f64> {
        rows.iter().zip(&targets).map(|(row, target)| dot(row, found) - target).collect()
    };
    let (mut found, mut weights) = ([0.0; NUMBER], vec![1.0; rows.len()]);
    for _ in 0..SETTLING {
        found = non_negative(&rows, &targets, &weights, found);
        let weight = |error: &f64| (FAR / error.abs().max(1e-12)).min(1.0);
        weights = errors(&found).iter().map(weight).collect();
    }
    let left = errors(&found).iter().map(|error| missed(*error)).sum();
    let [slower, kept, kept_byte, frame, frame_byte] = found;
    let fit = Fit {
        slower,
        kept: [kept * UNIT, kept_byte * UNIT / BYTES],
        frame: [frame * UNIT, frame_byte * UNIT / BYTES],
        wake,
        share,
        spread: 0.0,
    };
    (fit, left)
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

fn row(one: &Observation, wanted: [bool; NUMBER]) -> [f64; NUMBER] {
    let (arrive, keep) = (one.rate * 1e-6, one.served * 1e-6);
    let size = f64::from(one.size) / BYTES;
    let all = [keep * one.raw / UNIT, keep, keep * size, arrive, arrive * size];
    let mut row = [0.0; NUMBER];
    for (at, value) in row.iter_mut().enumerate() {
        *value = if wanted[at] { all[at] / one.time } else { 0.0 };
    }
    row
}

fn dot(one: &[f64; NUMBER], other: &[f64; NUMBER]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// Least squares without negative coefficients, by coordinate descent on the normal equations, which finds them since the
/// problem is convex.
fn non_negative(
    rows: &[[f64; NUMBER]],
    targets: &[f64],
    weights: &[f64],
    mut found: [f64; NUMBER],
) -> [f64; NUMBER] {
    let (mut matrix, mut right) = ([[0.0; NUMBER]; NUMBER], [0.0; NUMBER]);
    for ((row, target), weight) in rows.iter().zip(targets).zip(weights) {
        for at in 0..NUMBER {
            right[at] += weight * row[at] * target;
            for other in 0..NUMBER {
                matrix[at][other] += weight * row[at] * row[other];
            }
        }
    }
    for _ in 0..ROUNDS {
        for at in 0..NUMBER {
            let own = matrix[at][at];
            if own > 0.0 {
                let rest = right[at] - dot(&matrix[at], &found) + own * found[at];
                found[at] = f64::max(rest / own, 0.0);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(fit: &Fit, runs: &[(u32, u32, f64, f64)]) -> Vec<Observation> {
        let run = |&(size, burst, raw, over): &(u32, u32, f64, f64)| {
            let costs = fit.costs(size, raw);
            let rate = costs.knee(burst) * over;
            Observation { size, raw, burst, rate, served: costs.served(rate, burst), time: 1.0 }
        };
        runs.iter().map(run).collect()
    }

    const PLANTED: Fit = Fit {
        slower: 1.2,
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

    #[test]
    fn planted_costs_are_found() {
        let fit = Fit::of(&observed(&PLANTED, &RUNS)).unwrap();
        for (size, burst, raw) in [(64, 8, 1000.0), (512, 1, 5000.0), (1518, 1000, 30_000.0)] {
            let (found, planted) = (fit.costs(size, raw), PLANTED.costs(size, raw));
            assert!(
                (found.knee(burst) / planted.knee(burst) - 1.0).abs() < 0.01,
                "{found:?} {planted:?}"
            );
            assert!((found.frame / planted.frame - 1.0).abs() < 0.03, "{found:?} {planted:?}");
        }
        assert_eq!(fit.spread, LEAST_SPREAD);
    }

    #[test]
    fn noise_is_told() {
        let mut runs = observed(&PLANTED, &RUNS);
        for (number, run) in runs.iter_mut().enumerate() {
            run.served *= if number % 3 == 0 { 1.08 } else { 0.96 };
        }
        let fit = Fit::of(&runs).unwrap();
        assert!((0.02..0.2).contains(&fit.spread), "{fit:?}");
    }

    #[test]
    fn a_disturbed_run_bends_nothing() {
        let mut runs = observed(&PLANTED, &RUNS);
        runs[1].served *= 0.05;
        let fit = Fit::of(&runs).unwrap();
        for (size, burst, raw) in [(64, 8, 1000.0), (512, 32, 5000.0), (1518, 1000, 30_000.0)] {
            let (found, planted) = (fit.costs(size, raw), PLANTED.costs(size, raw));
            let off = found.knee(burst) / planted.knee(burst) - 1.0;
            assert!(off.abs() < 0.03, "{off}: {found:?} {planted:?}");
        }
    }

    #[test]
    fn nothing_costs_less_than_nothing() {
        // Twice as many come, and more than twice as many are kept: as if keeping them gave time.
        let run = |(rate, served)| Observation {
            size: 512,
            raw: 0.0,
            burst: 32,
            rate,
            served,
            time: 1.0,
        };
        let fit = Fit::of(&[(100e3, 20e3), (200e3, 50e3)].map(run)).unwrap();
        assert!(fit.kept[0] == 0.0 && fit.frame[0] > 0.0, "{fit:?}");
    }

    #[test]
    fn what_cannot_be_told_apart_is_left_out() {
        assert_eq!(Fit::of(&[]), None);
        let one_size =
            Fit { slower: 0.0, kept: [5000.0, 0.0], frame: [900.0, 0.0], wake: 0.0, ..PLANTED };
        let runs = observed(&one_size, &[(512, 32, 0.0, 1.2), (512, 32, 0.0, 1.9)]);
        assert_eq!(Fit::of(&runs[..1]), None);
        let fit = Fit::of(&runs).unwrap();
        assert!(
            (fit.costs(512, 0.0).knee(32) / one_size.costs(512, 0.0).knee(32) - 1.0).abs() < 1e-6
        );
        assert_eq!((fit.slower, fit.kept[1], fit.frame[1], fit.wake), (0.0, 0.0, 0.0, 0.0));
    }
}
