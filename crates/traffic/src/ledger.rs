//! Which numbered frames arrived: once, twice, late or never.

use std::collections::BTreeMap;

/// Ranges that are remembered at most. Beyond that the lower half is given up: it is counted, and frames that come so
/// late cannot be told from doubles any more.
const MOST_RANGES: usize = 1 << 16;

/// Ranges of missing frames that are listed at most; all are counted.
const MOST_LISTED: usize = 10_000;

/// What arrived of one stream of stamped frames, in bounded memory.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Numbers that arrived, as ranges from begin to end (exclusive) that do not touch.
    ranges: BTreeMap<u64, u64>,
    /// The range that grew last.
    last: (u64, u64),
    /// The highest number that arrived.
    highest: u64,
    received: u64,
    duplicates: u64,
    out_of_order: u64,
    /// Below it ranges are forgotten.
    floor: u64,
    missing: Missing,
    too_late: u64,
}

/// Numbers that did not arrive.
#[derive(Clone, Debug, Default)]
struct Missing {
    frames: u64,
    ranges: u64,
    listed: Vec<(u64, u64)>,
}

impl Missing {
    fn add(&mut self, begin: u64, end: u64) {
        if begin < end {
            self.frames += end - begin;
            self.ranges += 1;
            if self.listed.len() < MOST_LISTED {
                self.listed.push((begin, end));
            }
        }
    }
}

impl Ledger {
    /// Notes the arrival of a frame.
    #[inline]
    pub fn note(&mut self, sequence: u64) {
        self.received += 1;
        if sequence == self.last.1 && self.last.1 > self.last.0 {
            self.last.1 += 1;
            self.out_of_order += u64::from(sequence < self.highest);
            self.highest = self.highest.max(sequence);
            return;
        }
        self.elsewhere(sequence);
    }

    /// Frames that arrived, doubles included.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// One more than the highest number that arrived.
    #[must_use]
    pub fn next(&self) -> u64 {
        let highest = self.ranges.last_key_value().map_or(self.floor, |(_, end)| *end);
        highest.max(self.last.1)
    }

    fn elsewhere(&mut self, sequence: u64) {
        self.settle();
        self.forget();
        if sequence < self.floor {
            self.too_late += 1;
            return;
        }
        let before = self.ranges.range(..=sequence).next_back().map(|(begin, end)| (*begin, *end));
        if before.is_some_and(|(_, end)| sequence < end) {
            self.duplicates += 1;
            self.last = before.unwrap_or_default();
            self.ranges.remove(&self.last.0);
            return;
        }
        self.out_of_order += u64::from(sequence < self.highest);
        self.highest = self.highest.max(sequence);
        let mut range = (sequence, sequence + 1);
        if let Some((begin, end)) = before
            && end == sequence
        {
            self.ranges.remove(&begin);
            range.0 = begin;
        }
        if let Some(end) = self.ranges.remove(&range.1) {
            range.1 = end;
        }
        self.last = range;
    }

    /// Puts the range that grew last among the others.
    fn settle(&mut self) {
        let (begin, mut end) = core::mem::take(&mut self.last);
        if begin == end {
            return;
        }
        // It may have grown up to the next one, or into it by frames that came twice.
        while let Some((&next, &next_end)) = self.ranges.range(begin..=end).next() {
            let doubled = end.min(next_end) - next;
            self.duplicates += doubled;
            // They were taken for late frames, but for the highest of all.
            let is_highest = self.ranges.last_key_value() == Some((&next, &next_end));
            let told_late = doubled - u64::from(is_highest && end >= next_end);
            self.out_of_order -= told_late.min(self.out_of_order);
            self.ranges.remove(&next);
            end = end.max(next_end);
        }
        self.ranges.insert(begin, end);
    }

    /// Gives up the lower half of the ranges where there are too many.
    fn forget(&mut self) {
        if self.ranges.len() <= MOST_RANGES {
            return;
        }
        while self.ranges.len() > MOST_RANGES / 2
            && let Some((begin, end)) = self.ranges.pop_first()
        {
            self.missing.add(self.floor, begin);
            self.floor = end;
        }
    }

    /// What it amounts to, if frames 0 to `sent` (exclusive) were sent; `None` where so many more arrived, with holes
    /// between them, that this cannot be told.
    #[must_use]
    pub fn close(mut self, sent: u64) -> Option<Arrivals> {
        self.settle();
        if self.floor > sent {
            return None;
        }
        let mut next = self.floor;
        let mut unexpected = 0;
        for (begin, end) in self.ranges {
            self.missing.add(next, begin.min(sent));
            unexpected += end.max(sent) - begin.max(sent);
            next = end;
        }
        self.missing.add(next, sent);
        Some(Arrivals {
            received: self.received,
            duplicates: self.duplicates,
            out_of_order: self.out_of_order,
            too_late: self.too_late,
            unexpected,
            lost: self.missing.frames,
            holes: self.missing.ranges,
            missing: self.missing.listed,
        })
    }
}

/// The sums of a [`Ledger`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// Frames that arrived, doubles included.
    pub received: u64,
    /// Frames that had arrived before.
    pub duplicates: u64,
    /// Frames that came after one with a higher number.
    pub out_of_order: u64,
    /// Frames that came so late that it is not known whether they had arrived before; each may be one that is counted
    /// as lost.
    pub too_late: u64,
    /// Different frames with numbers that were never sent.
    pub unexpected: u64,
    /// Frames that never arrived.
    pub lost: u64,
    /// Ranges of their numbers.
    pub holes: u64,
    /// The first of these ranges, from begin to end (exclusive).
    pub missing: Vec<(u64, u64)>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Random;

    fn close(sequences: &[u64], sent: u64) -> Arrivals {
        let mut ledger = Ledger::default();
        sequences.iter().for_each(|sequence| ledger.note(*sequence));
        ledger.close(sent).unwrap()
    }

    #[test]
    fn all_that_was_sent_arrived() {
        let arrivals = close(&[0, 1, 2, 3], 4);
        assert_eq!((arrivals.received, arrivals.lost, arrivals.duplicates), (4, 0, 0));
        assert_eq!(close(&[], 3).missing, [(0, 3)]);
    }

    #[test]
    fn holes_doubles_and_late_frames_are_told_apart() {
        let arrivals = close(&[0, 1, 4, 5, 3, 5, 1, 9], 12);
        assert_eq!(arrivals.missing, [(2, 3), (6, 9), (10, 12)]);
        assert_eq!((arrivals.duplicates, arrivals.out_of_order, arrivals.lost), (2, 1, 6));
        assert_eq!(close(&[0, 1, 7, 7], 2).unexpected, 1);
    }

    #[test]
    fn any_order_gives_the_same_holes() {
        assert_eq!(close(&[0, 10, 1, 2, 3], 11).out_of_order, 3);
        let mut random = Random::new(7);
        for _ in 0..200 {
            let sent = 1 + random.below(60);
            let sequences: Vec<u64> = (0..random.below(90)).map(|_| random.below(sent)).collect();
            let seen: BTreeSet<u64> = sequences.iter().copied().collect();
            let arrivals = close(&sequences, sent);
            let missing: Vec<u64> = (0..sent).filter(|number| !seen.contains(number)).collect();
            let told: Vec<u64> = arrivals.missing.iter().flat_map(|(a, b)| *a..*b).collect();
            assert_eq!(told, missing, "{sequences:?}");
            assert_eq!(arrivals.duplicates, (sequences.len() - seen.len()) as u64, "{sequences:?}");
            assert_eq!(arrivals.unexpected, 0);
            let mut came = BTreeSet::new();
            let late = |sequence: &&u64| {
                let is_late = came.last().is_some_and(|highest| *sequence < highest);
                came.insert(**sequence) && is_late
            };
            assert_eq!(arrivals.out_of_order, sequences.iter().filter(late).count() as u64);
        }
    }

    #[test]
    fn memory_is_bounded_and_nothing_that_is_lost_is_forgotten() {
        let mut ledger = Ledger::default();
        let frames = 4 * MOST_RANGES as u64;
        (0..frames).for_each(|frame| ledger.note(2 * frame));
        assert!(ledger.ranges.len() <= MOST_RANGES + 1);
        assert_eq!(ledger.next(), 2 * frames - 1);
        ledger.note(1);
        let mut other = ledger.clone();
        let arrivals = ledger.close(2 * frames).unwrap();
        assert_eq!((arrivals.lost, arrivals.holes, arrivals.too_late), (frames, frames, 1));
        assert_eq!(arrivals.missing.len(), MOST_LISTED);
        assert_eq!(arrivals.missing[..2], [(1, 2), (3, 4)]);
        other.note(u64::MAX - 1);
        assert_eq!(other.close(10), None, "what was forgotten is beyond it");
    }
}
