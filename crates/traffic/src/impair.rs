//! What a capture can suffer between the wire and the file: lost, late and doubled packets, seeded, with the truth kept.
//!
//! Losses of the network, which the hosts answer with retransmissions, are the business of [`crate::dialogue`].

use std::collections::BTreeMap;
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
    /// When it comes.
    pub timestamp: Timestamp,
    /// Which packet of those that came.
    pub index: usize,
    /// Whether it is the second copy.
    pub copy: bool,
}

/// What was captured, and the truth about the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImpairedTrace {
    /// The packets in the order in which they were captured.
    pub captured: Vec<Captured>,
    /// Which packets were not captured, in order.
    pub lost: Vec<usize>,
    /// Which packets were captured twice, in order.
    pub doubled: Vec<usize>,
    /// Which packets were captured late, in order; where none passes by, the order is still the same.
    pub late: Vec<usize>,
}

/// What happens to one packet.
#[derive(Clone, Copy, Debug)]
struct Fate {
    is_lost: bool,
    is_late: bool,
    is_doubled: bool,
    /// By how much it is late, if it is, and its copy behind it, if there is one.
    delay: Duration,
    copy_delay: Duration,
}

impl Fate {
    fn decide(impairment: &Impairment, random: &mut Random) -> Self {
        let most = u64::try_from(impairment.max_delay.as_nanos()).unwrap_or(u64::MAX);
        // All dice are thrown for each packet, so that one probability does not move what the others do.
        Self {
            is_lost: random.chance(impairment.loss),
            is_late: random.chance(impairment.reordering),
            is_doubled: random.chance(impairment.duplication),
            delay: Duration::from_nanos(random.below(most) + 1),
            copy_delay: Duration::from_nanos(random.below(most) + 1),
        }
    }

    /// When a packet that came at `time` is captured, and its copy.
    fn times(&self, time: Timestamp) -> (Option<Timestamp>, Option<Timestamp>) {
        if self.is_lost {
            return (None, None);
        }
        let time = if self.is_late { time + self.delay } else { time };
        (Some(time), self.is_doubled.then(|| time + self.copy_delay))
    }
}

/// Impairs packets that came at `times`.
#[must_use]
pub fn impair(times: &[Timestamp], impairment: &Impairment, seed: u64) -> ImpairedTrace {
    let mut random = Random::new(seed);
    let mut outcome = ImpairedTrace::default();
    for (index, &time) in times.iter().enumerate() {
        let fate = Fate::decide(impairment, &mut random);
        let (first, copy) = fate.times(time);
        let Some(timestamp) = first else {
            outcome.lost.push(index);
            continue;
        };
        if fate.is_late {
            outcome.late.push(index);
        }
        outcome.captured.push(Captured { timestamp, index, copy: false });
        if let Some(timestamp) = copy {
            outcome.doubled.push(index);
            outcome.captured.push(Captured { timestamp, index, copy: true });
        }
    }
    outcome.captured.sort_unstable();
    outcome
}

/// A packet that knows when it came.
pub trait Timed: Clone {
    /// When the packet came.
    fn timestamp(&self) -> Timestamp;

    /// The same packet, captured at another time.
    #[must_use]
    fn at(self, timestamp: Timestamp) -> Self;
}

/// Counts of what happened to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impaired {
    /// Packets that were not captured.
    pub lost: u64,
    /// Packets that were captured twice.
    pub doubled: u64,
    /// Packets that were captured late.
    pub late: u64,
}

/// Impairs packets as they come, in order of time; those that are late are held until then.
#[derive(Clone, Debug)]
pub struct Impairing<I: Iterator> {
    packets: core::iter::Peekable<I>,
    impairment: Impairment,
    random: Random,
    /// What is captured next: when, and its number to break ties.
    held: BTreeMap<(Timestamp, u64), I::Item>,
    number: u64,
    counts: Impaired,
}

impl<I: Iterator<Item: Timed>> Impairing<I> {
    /// Impairs packets, in the same way for the same seed.
    #[must_use]
    pub fn new(packets: I, impairment: Impairment, seed: u64) -> Self {
        Self {
            packets: packets.peekable(),
            impairment,
            random: Random::new(seed),
            held: BTreeMap::new(),
            number: 0,
            counts: Impaired::default(),
        }
    }

    /// What happened so far.
    #[must_use]
    pub const fn counts(&self) -> Impaired {
        self.counts
    }

    fn take_in(&mut self, packet: I::Item) {
        let fate = Fate::decide(&self.impairment, &mut self.random);
        let (first, copy) = fate.times(packet.timestamp());
        self.counts.lost += u64::from(fate.is_lost);
        self.counts.doubled += u64::from(copy.is_some());
        self.counts.late += u64::from(fate.is_late && first.is_some());
        for time in copy.into_iter().chain(first) {
            self.held.insert((time, self.number), packet.clone().at(time));
            self.number += 1;
        }
    }
}

impl<I: Iterator<Item: Timed>> Iterator for Impairing<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        loop {
            let next = self.packets.peek().map(Timed::timestamp);
            // Nothing that comes later can be captured before it comes.
            if let Some((time, _)) = self.held.first_key_value().map(|(key, _)| *key)
                && next.is_none_or(|next| time <= next)
            {
                return self.held.pop_first().map(|(_, packet)| packet);
            }
            let packet = self.packets.next()?;
            self.take_in(packet);
        }
    }
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

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Numbered(Timestamp, usize);

    impl Timed for Numbered {
        fn timestamp(&self) -> Timestamp {
            self.0
        }

        fn at(self, timestamp: Timestamp) -> Self {
            Self(timestamp, self.1)
        }
    }

    #[test]
    fn packets_that_come_one_by_one_suffer_the_same() {
        let times = times();
        let whole = impair(&times, &SOME, 4);
        let packets = times.iter().enumerate().map(|(at, time)| Numbered(*time, at));
        let mut impairing = Impairing::new(packets, SOME, 4);
        let mut captured: Vec<Numbered> = Vec::new();
        while let Some(packet) = impairing.next() {
            assert!(captured.last().is_none_or(|last| last.0 <= packet.0), "in order of time");
            assert!(impairing.held.len() < 50, "only late ones are held");
            captured.push(packet);
        }
        let key = |packet: &Numbered| (packet.0, packet.1);
        captured.sort_by_key(key);
        let expected = whole.captured.iter().map(|of| (of.timestamp, of.index));
        assert!(captured.iter().map(key).eq(expected));
        let counts = impairing.counts();
        assert_eq!(counts.lost, whole.lost.len() as u64);
        assert_eq!(
            (counts.doubled, counts.late),
            (whole.doubled.len() as u64, whole.late.len() as u64)
        );
    }
}
