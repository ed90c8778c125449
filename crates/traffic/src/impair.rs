//! What a capture can suffer between the wire and the file: lost, late and doubled packets, seeded, with the truth kept.
//!
//! Losses of the network, which the hosts answer with retransmissions, are the business of [`crate::dialogue`].

use std::time::Duration;

use netsniff_packet::Timestamp;

use crate::Random;

/// How often what happens to a packet, each a probability from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Impairment {
    /// It is not captured.
    pub loss: f64,
    /// It is captured twice.
    pub duplication: f64,
    /// It is captured later than it came.
    pub reordering: f64,
    /// By how much at most, for late packets and second copies.
    pub max_delay: Duration,
}

/// A packet that was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Captured {
    /// When.
    pub timestamp: Timestamp,
    /// Which packet of those that came.
    pub index: usize,
    /// Whether it is the second copy.
    pub copy: bool,
}

/// What was captured, and the truth about the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The packets in the order in which they were captured.
    pub captured: Vec<Captured>,
    /// Which packets were not captured, in order.
    pub lost: Vec<usize>,
    /// Which packets were captured twice, in order.
    pub doubled: Vec<usize>,
    /// Which packets were captured late, in order; where none passes by, the order is still the same.
    pub late: Vec<usize>,
}

/// Impairs packets that came at `times`.
#[must_use]
pub fn impair(times: &[Timestamp], impairment: &Impairment, seed: u64) -> Outcome {
    let mut random = Random::new(seed);
    let most = u64::try_from(impairment.max_delay.as_nanos()).unwrap_or(u64::MAX);
    let mut outcome = Outcome::default();
    for (index, &time) in times.iter().enumerate() {
        // All dice are thrown for each packet, so that one probability does not move what the others do.
        let (loss, late) = (random.chance(impairment.loss), random.chance(impairment.reordering));
        let (doubled, delay) = (random.chance(impairment.duplication), random.below(most) + 1);
        let (copy_delay, delayed) =
            (Duration::from_nanos(random.below(most) + 1), time + Duration::from_nanos(delay));
        if loss {
            outcome.lost.push(index);
            continue;
        }
        let timestamp = if late { delayed } else { time };
        if late {
            outcome.late.push(index);
        }
        outcome.captured.push(Captured { timestamp, index, copy: false });
        if doubled {
            outcome.doubled.push(index);
            outcome.captured.push(Captured {
                timestamp: timestamp + copy_delay,
                index,
                copy: true,
            });
        }
    }
    outcome.captured.sort_unstable();
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times() -> Vec<Timestamp> {
        (0..10_000).map(|at| Timestamp::from_nanos(at * 1000)).collect()
    }

    const SOME: Impairment = Impairment {
        loss: 0.02,
        duplication: 0.01,
        reordering: 0.05,
        max_delay: Duration::from_micros(10),
    };

    #[test]
    fn the_books_close() {
        let times = times();
        let outcome = impair(&times, &SOME, 4);
        assert_eq!(outcome.captured.len(), 10_000 - outcome.lost.len() + outcome.doubled.len());
        assert!((150..250).contains(&outcome.lost.len()), "{}", outcome.lost.len());
        assert!((60..140).contains(&outcome.doubled.len()), "{}", outcome.doubled.len());
        assert!((400..600).contains(&outcome.late.len()), "{}", outcome.late.len());
        assert!(outcome.captured.is_sorted_by_key(|captured| captured.timestamp));
        let mut seen: Vec<_> = outcome.captured.iter().filter(|captured| !captured.copy).collect();
        let inversions = seen.windows(2).filter(|pair| pair[0].index > pair[1].index).count();
        assert!(inversions > 100, "{inversions}");
        seen.sort_by_key(|captured| captured.index);
        let missing =
            |index: &usize| seen.binary_search_by_key(index, |captured| captured.index).is_err();
        assert_eq!((0..10_000).filter(missing).collect::<Vec<_>>(), outcome.lost);
        for captured in &outcome.captured {
            let delay = captured.timestamp.nanos_since(times[captured.index]);
            assert!((0..=20_000).contains(&delay));
            assert!(
                delay == 0 || captured.copy || outcome.late.binary_search(&captured.index).is_ok()
            );
        }
    }

    #[test]
    fn the_seed_decides_and_nothing_changes_nothing() {
        assert_eq!(impair(&times(), &SOME, 4), impair(&times(), &SOME, 4));
        assert_ne!(impair(&times(), &SOME, 4).lost, impair(&times(), &SOME, 5).lost);
        let untouched = impair(&times(), &Impairment::default(), 1);
        assert!(untouched.captured.iter().enumerate().all(|(at, captured)| captured.index == at));
        assert_eq!(untouched.captured.len(), 10_000);
    }
}
