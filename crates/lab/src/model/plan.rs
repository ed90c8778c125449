//! Points that a model is tried on, which nobody has seen when it is made: they come from a seed, and are written down
//! before. Rates are told by what they do, since nobody knows yet which they are.

use netsniff_traffic::Random;

use super::Model;
use super::predict::Question;
use super::raw::Raw;
use crate::work::{Cost, MOST_LEVEL};

/// Sizes of frames, bytes of rings, frames that leave together: none of them is one that models are made from, but for
/// bursts of 1 and 32.
const SIZES: [u32; 10] = [96, 192, 256, 320, 448, 512, 640, 768, 896, 1280];
const RINGS: [u64; 5] = [2, 6, 8, 16, 32];
const BURSTS: [u32; 5] = [1, 8, 32, 256, 1500];

/// Levels that models are made from.
const KNOWN_LEVELS: [u32; 2] = [1, 6];

/// The share of its full speed that a sender keeps to, whatever the frames and the capture.
const REACHED: f64 = 0.7;

/// What the rate of a point does.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "is", content = "value", rename_all = "kebab-case")]
pub enum Pace {
    /// It is this part of the rate that the processor manages, well below that.
    Below(f64),
    /// So, and at most a fifth away from that.
    Near(f64),
    /// It loses about this share.
    Losing(f64),
}

impl Pace {
    /// The word for it on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Below(_) => "below the knee",
            Self::Near(_) => "near the knee",
            Self::Losing(_) => "losing",
        }
    }
}

/// A point that is held back from the model.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Held {
    /// Everything but the rate, which is 0.
    pub question: Question,
    /// What the rate does.
    pub pace: Pace,
}

/// So many points, a third of each pace, that belong to a seed.
#[must_use]
pub fn held(seed: u64, number: u32, seconds: f64) -> Vec<Held> {
    let mut random = Random::new(seed);
    let levels: Vec<_> = (1..=MOST_LEVEL).filter(|level| !KNOWN_LEVELS.contains(level)).collect();
    let point = |number: u32| {
        let part = random.below(1 << 32) as f64 / (1_u64 << 32) as f64;
        let pace = match number % 3 {
            0 => Pace::Below(0.3 + 0.48 * part),
            1 => Pace::Near(0.8 + 0.4 * part),
            _ => Pace::Losing(0.05 + 0.85 * part),
        };
        let mut pick = |from: usize| random.below(from as u64) as usize;
        let question = Question {
            size: SIZES[pick(SIZES.len())],
            rate: 0.0,
            burst: BURSTS[pick(BURSTS.len())],
            keeps_gaps: false,
            ring: RINGS[pick(RINGS.len())] << 20,
            cost: Cost { zip: Some(levels[pick(levels.len())]), delay: None },
            settings: Vec::new(),
            seconds,
        };
        Held { question, pace }
    };
    (0..number).map(point).collect()
}

impl Held {
    /// The question with its rate, by a model, where the work takes so long by itself; `None` as
    /// [`Model::fit_with`].
    #[must_use]
    pub fn question(&self, model: &Model, raw: Option<Raw>) -> Option<Question> {
        let question = &self.question;
        let most = 1e9 / model.gap(question.size) * REACHED;
        let knee = model.costs(question, raw)?.knee(question.burst);
        let rate = match self.pace {
            Pace::Below(part) | Pace::Near(part) => (knee * part).min(most),
            Pace::Losing(share) => model.rate_of_loss(question, raw, share, most)?,
        };
        Some(Question { rate: rate.round(), ..question.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_its_points() {
        let points = held(7, 60, 3.0);
        assert_eq!(points, held(7, 60, 3.0));
        assert_ne!(points, held(8, 60, 3.0));
        for name in ["below the knee", "near the knee", "losing"] {
            assert_eq!(points.iter().filter(|point| point.pace.name() == name).count(), 20);
        }
        for Held { question, pace } in points {
            assert!(!KNOWN_LEVELS.contains(&question.cost.zip.unwrap()) && question.rate == 0.0);
            assert!(match pace {
                Pace::Below(part) => part < 0.8,
                Pace::Near(part) => (0.8..=1.2).contains(&part),
                Pace::Losing(share) => (0.05..=0.9).contains(&share),
            });
        }
    }
}
