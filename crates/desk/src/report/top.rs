//! Keys with what was counted of them, as many as memory is for.

use std::collections::HashMap;
use std::hash::Hash;

/// What is counted of a key.
pub(super) trait Tally: Default {
    /// Adds what another has.
    fn merge(&mut self, other: Self);

    /// By this the largest are told.
    fn rank(&self) -> u128;
}

/// Keys with their tallies. Where there are more than `most`, the smaller half is given up into one tally of all
/// others, so that the sum over everything stays exact.
#[derive(Debug)]
pub(super) struct Top<K, T> {
    most: usize,
    kept: HashMap<K, T>,
    given_up: T,
    /// Whether anything was given up: then a key that is kept may have been given up before.
    is_partial: bool,
}

/// The largest, and all others together.
#[derive(Debug)]
pub(super) struct Ranked<K, T> {
    /// The largest first; equal ones by their keys.
    pub shown: Vec<(K, T)>,
    /// All others together.
    pub rest: T,
    /// How many these are; `None` where nobody counted.
    pub others: Option<u64>,
    /// Whether tallies of keys may be too low.
    pub is_partial: bool,
}

/// Keys that are told apart, unless told otherwise.
pub(super) const MOST: usize = 100_000;

impl<K: Eq + Hash + Ord, T: Tally> Default for Top<K, T> {
    fn default() -> Self {
        Self::new(MOST)
    }
}

impl<K: Eq + Hash + Ord, T: Tally> Top<K, T> {
    /// One that tells so many keys apart.
    pub(super) fn new(most: usize) -> Self {
        Self { most: most.max(1), kept: HashMap::new(), given_up: T::default(), is_partial: false }
    }

    /// The tally of a key.
    pub(super) fn of(&mut self, key: K) -> &mut T {
        if self.kept.len() >= self.most && !self.kept.contains_key(&key) {
            self.give_up_half();
        }
        self.kept.entry(key).or_default()
    }

    fn give_up_half(&mut self) {
        let mut all: Vec<(K, T)> = self.kept.drain().collect();
        sort(&mut all);
        let rest = all.split_off(self.most / 2);
        rest.into_iter().for_each(|(_, tally)| self.given_up.merge(tally));
        self.kept.extend(all);
        self.is_partial = true;
    }

    /// The largest `number`.
    pub(super) fn ranked(self, number: usize) -> Ranked<K, T> {
        let mut shown: Vec<(K, T)> = self.kept.into_iter().collect();
        sort(&mut shown);
        let others = shown.split_off(number.min(shown.len()));
        let count = (!self.is_partial).then_some(others.len() as u64);
        let mut rest = self.given_up;
        others.into_iter().for_each(|(_, tally)| rest.merge(tally));
        Ranked { shown, rest, others: count, is_partial: self.is_partial }
    }
}

fn sort<K: Ord, T: Tally>(all: &mut [(K, T)]) {
    all.sort_by(|one, other| other.1.rank().cmp(&one.1.rank()).then_with(|| one.0.cmp(&other.0)));
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Tally for u64 {
        fn merge(&mut self, other: Self) {
            *self += other;
        }

        fn rank(&self) -> u128 {
            (*self).into()
        }
    }

    #[test]
    fn the_rest_is_exact() {
        let mut top = Top::new(10);
        for (key, value) in [("a", 5), ("b", 7), ("c", 5), ("d", 1), ("b", 1)] {
            *top.of(key) += value;
        }
        let ranked = top.ranked(2);
        assert_eq!(ranked.shown, [("b", 8), ("a", 5)]);
        assert_eq!((ranked.rest, ranked.others, ranked.is_partial), (6, Some(2), false));
    }

    #[test]
    fn memory_is_bounded_and_the_sum_stays() {
        let mut top = Top::new(8);
        for key in 0..1000_u64 {
            *top.of(key) += 1;
            *top.of(0) += 1;
            assert!(top.kept.len() <= 8);
        }
        let ranked = top.ranked(1);
        assert_eq!(ranked.shown, [(0, 1001)]);
        assert_eq!((ranked.rest, ranked.others, ranked.is_partial), (999, None, true));
    }
}
