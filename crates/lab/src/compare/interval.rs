//! How sure the difference of two means is, from a few repetitions of each.
//!
//! Welch's interval: the two sides need not spread alike, and Student's t with the degrees of freedom of Welch and
//! Satterthwaite pays for few repetitions. A bootstrap does not: it only ever draws the few values that there are, so
//! that of three its intervals are much too narrow. What is assumed is that means spread about normally.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Both ends of an interval of 95 % leave out this part.
const TAIL: f64 = 0.025;

/// Above so many degrees of freedom quantiles are no longer exact, and from millions on wrong; they differ from this one
/// by less than 2 in 10,000.
const MOST_FREEDOM: f64 = 1e4;

/// A difference, or a mean of some, and how it spreads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// `None` where a side has one repetition.
    spread: Option<Spread>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    /// The variance of the estimate.
    variance: f64,
    /// The squares of its parts, each over its degrees of freedom.
    over_freedom: f64,
}

/// An interval that has the true value in 95 % of all cases, and where it is from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Interval {
    /// Welch's, from how the repetitions spread.
    Welch {
        /// Lower end of the interval.
        low: f64,
        /// Upper end of the interval.
        high: f64,
    },
    /// The rule of three, where nothing at all was lost on both sides: see [`of_nothing`].
    RuleOfThree {
        /// Lower end of the interval.
        low: f64,
        /// Upper end of the interval.
        high: f64,
    },
    /// No interval can be given.
    Unavailable {
        /// The reason, as a sentence.
        why: &'static str,
    },
}

impl Interval {
    /// Both ends; `None` where there is no interval.
    #[must_use]
    pub const fn ends(&self) -> Option<[f64; 2]> {
        match *self {
            Self::Welch { low, high } | Self::RuleOfThree { low, high } => Some([low, high]),
            Self::Unavailable { .. } => None,
        }
    }

    /// Whether it is from how repetitions spread.
    #[must_use]
    pub const fn is_of_spread(&self) -> bool {
        matches!(self, Self::Welch { .. })
    }
}

impl Estimate {
    /// The mean of B less the mean of A; `None` where a side has no value.
    #[must_use]
    pub fn difference(a: &[f64], b: &[f64]) -> Option<Self> {
        let (first, second) = (mean(a)?, mean(b)?);
        let parts = variance(a).zip(variance(b)).map(|(of_a, of_b)| {
            let part = |variance: f64, values: &[f64]| {
                let of_mean = variance / values.len() as f64;
                (of_mean, of_mean * of_mean / (values.len() - 1) as f64)
            };
            let ((a, a_over), (b, b_over)) = (part(of_a, a), part(of_b, b));
            Spread { variance: a + b, over_freedom: a_over + b_over }
        });
        Some(Self { value: second - first, spread: parts })
    }

    /// The mean of some values; `None` of nothing. Its interval is Student's. Of differences of pairs it is that of the mean
    /// difference, from which whatever both sides of a pair share is gone.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let spread = variance(values).map(|variance| {
            let of_mean = variance / values.len() as f64;
            let over_freedom = of_mean * of_mean / (values.len() - 1) as f64;
            Spread { variance: of_mean, over_freedom }
        });
        Some(Self { value: mean(values)?, spread })
    }

    /// The mean of independent estimates, each with the same weight: of these very points, not of others like them.
    #[must_use]
    pub fn mean(of: &[Self]) -> Option<Self> {
        let values: Vec<_> = of.iter().map(|estimate| estimate.value).collect();
        let spreads: Option<Vec<_>> = of.iter().map(|estimate| estimate.spread).collect();
        let weight = 1.0 / of.len() as f64;
        let spread = spreads.map(|spreads| Spread {
            variance: spreads.iter().map(|it| it.variance).sum::<f64>() * weight.powi(2),
            over_freedom: spreads.iter().map(|it| it.over_freedom).sum::<f64>() * weight.powi(4),
        });
        Some(Self { value: mean(&values)?, spread })
    }

    /// Its interval, with both ends as `scale` makes them.
    #[must_use]
    pub fn interval(&self, scale: fn(f64) -> f64) -> Interval {
        let Some(spread) = self.spread else {
            return Interval::Unavailable { why: "a side has one repetition" };
        };
        // Squares of what is next to nothing are nothing.
        if spread.over_freedom == 0.0 {
            return Interval::Unavailable { why: "the repetitions do not differ" };
        }
        let freedom = spread.variance * spread.variance / spread.over_freedom;
        let half = t(freedom) * spread.variance.sqrt();
        Interval::Welch { low: scale(self.value - half), high: scale(self.value + half) }
    }
}

/// What the difference of two shares may be where none of so many was lost: 3.7 in so many, instead of three, since the
/// two ends are to hold at once. For frames that are lost independently of each other.
#[must_use]
pub fn of_nothing(frames: [f64; 2]) -> Interval {
    if frames.contains(&0.0) {
        return Interval::Unavailable { why: "nothing was sent" };
    }
    let [a, b] = frames.map(|frames| -TAIL.ln() / frames);
    Interval::RuleOfThree { low: -a, high: b }
}

/// How many standard errors an interval has on either side.
fn t(freedom: f64) -> f64 {
    let of = StudentsT::new(0.0, 1.0, freedom.min(MOST_FREEDOM));
    of.map_or(f64::INFINITY, |t| t.inverse_cdf(1.0 - TAIL))
}

/// The arithmetic mean; `None` of nothing.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The variance of what values are a sample of; `None` of one.
fn variance(values: &[f64]) -> Option<f64> {
    let (first, rest) = values.split_first()?;
    if rest.is_empty() {
        return None;
    }
    // The mean of equal numbers may be off by a bit, which would be taken for a spread.
    if rest.iter().all(|value| value == first) {
        return Some(0.0);
    }
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(squares / rest.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(value: f64, expected: f64) -> bool {
        (value - expected).abs() <= 1e-9 * expected.abs()
    }

    /// `scipy.stats.t.ppf(0.975, freedom)`, scipy 1.17.1.
    #[test]
    fn quantiles_are_those_of_scipy() {
        for (freedom, expected) in [
            (1.0, 12.706204736174694),
            (1.5, 6.016663104427929),
            (2.0, 4.302652729749462),
            (3.0, 3.1824463052837078),
            (4.0, 2.7764451051977934),
            (7.25, 2.348194849105371),
            (30.0, 2.0422724563012378),
            (200.0, 1.9718962236339088),
            (10_000.0, 1.960201239890626),
        ] {
            assert!(is_near(t(freedom), expected), "{freedom}: {}", t(freedom));
        }
        // Every number of repetitions has one, and more of them are never worse.
        let mut before = f64::INFINITY;
        for step in 0..3000 {
            let value = t(1.007_f64.powi(step));
            assert!(value <= before && value > 1.959_963, "{step}: {value}");
            before = value;
        }
        assert!(before < 1.9603, "{before}");
    }

    const A: [f64; 3] = [0.10, 0.12, 0.17];
    const B: [f64; 3] = [0.22, 0.31, 0.26];

    fn ends(a: &[f64], b: &[f64], scale: fn(f64) -> f64) -> [f64; 2] {
        Estimate::difference(a, b).unwrap().interval(scale).ends().unwrap()
    }

    /// `scipy.stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)`, of the logarithms and with `numpy.exp`
    /// of the ends where ratios are asked for; scipy 1.17.1.
    #[test]
    fn intervals_are_those_of_scipy() {
        let [low, high] = ends(&A, &B, |end| end);
        assert!(is_near(low, 0.038991552980409766) && is_near(high, 0.22767511368625695));
        let [a, b] = [&[410.0, 395.0, 402.0][..], &[350.0, 361.0]]
            .map(|values| values.iter().map(|value: &f64| value.ln()).collect::<Vec<_>>());
        let [low, high] = ends(&a, &b, f64::exp);
        assert!(is_near(low, 0.8138387524369264) && is_near(high, 0.9593245167540428));
    }

    /// By numpy, with `v = numpy.var(x, ddof=1) / len(x) / 4` of each of the four samples, `s` the sum of them, and
    /// `scipy.stats.t.ppf(0.975, s**2 / sum(v**2 / (len(x) - 1))) * sqrt(s)` on either side.
    #[test]
    fn the_mean_of_differences_has_an_interval_of_its_own() {
        let second = Estimate::difference(&[0.01, 0.02, 0.06, 0.03], &[0.02, 0.05]).unwrap();
        let mean = Estimate::mean(&[Estimate::difference(&A, &B).unwrap(), second]).unwrap();
        assert!(is_near(mean.value, 0.06916666666666668), "{mean:?}");
        let [low, high] = mean.interval(|end| end).ends().unwrap();
        assert!(is_near(low, 0.02165331264171573) && is_near(high, 0.11668002069161763));
        assert_eq!(Estimate::mean(&[]), None);
    }

    /// `scipy.stats.t.interval(0.95, n - 1, numpy.mean(x), scipy.stats.sem(x))`; with t of 4.302652729749462 for two degrees
    /// of freedom, 0.13 and a standard error of 0.020816659994661327.
    #[test]
    fn one_sample_has_the_interval_of_student() {
        let estimate = Estimate::of(&A).unwrap();
        let [low, high] = estimate.interval(|end| end).ends().unwrap();
        let half = 4.302652729749462 * 0.020816659994661327;
        assert!(is_near(low, 0.13 - half) && is_near(high, 0.13 + half), "{low} {high}");
        assert_eq!(Estimate::of(&[0.2]).unwrap().interval(|end| end).ends(), None);
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn what_does_not_tell_how_it_spreads_has_no_interval() {
        let why = |a: &[f64], b: &[f64]| match Estimate::difference(a, b)?.interval(|end| end) {
            Interval::Unavailable { why } => Some(why),
            _ => None,
        };
        assert_eq!(why(&A, &[0.2]), Some("a side has one repetition"));
        // A tenth thrice, of which the mean is off by a bit.
        assert_eq!(why(&[0.1; 3], &[0.3; 3]), Some("the repetitions do not differ"));
        assert_eq!(why(&A, &[0.3; 3]), None);
        assert_eq!(Estimate::difference(&A, &[]), None);
        let once = Estimate::difference(&A, &[0.2]).unwrap();
        let mean = Estimate::mean(&[once, Estimate::difference(&A, &B).unwrap()]).unwrap();
        assert_eq!(mean.interval(|end| end).ends(), None);
    }

    #[test]
    fn turned_around_it_is_the_same_with_another_sign() {
        let [there, back] = [Estimate::difference(&A, &B[..2]), Estimate::difference(&B[..2], &A)]
            .map(|estimate| (estimate.unwrap().value, estimate.unwrap().interval(|end| end)));
        assert_eq!(there.0, -back.0);
        let ([low, high], [other_low, other_high]) =
            (there.1.ends().unwrap(), back.1.ends().unwrap());
        assert_eq!((low, high), (-other_high, -other_low));
    }

    /// Where 37,000 frames a side could be lost and none was: a share of 1e-4 is lost so seldom that none is seen, in
    /// less than 2.5 of 100 cases.
    #[test]
    fn nothing_lost_is_not_certainly_nothing() {
        let [low, high] = of_nothing([36_888.0, 1e6]).ends().unwrap();
        assert!((low + 1e-4).abs() < 1e-8 && (high - 3.69e-6).abs() < 1e-8, "{low} {high}");
        let unseen = (1.0_f64 - 1e-4).powi(36_888);
        assert!(unseen <= TAIL && unseen > TAIL * 0.99, "{unseen}");
    }
}
