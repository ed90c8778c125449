//! Which numbered frames arrived: once, twice, late or never.

use std::collections::BTreeMap;

/// What arrived of one stream of stamped frames.
///
/// Memory grows with the number of holes, not of frames.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Numbers that arrived, as ranges from begin to end (exclusive) that do not touch.
    ranges: BTreeMap<u64, u64>,
    /// The range that grew last.
    last: (u64, u64),
    received: u64,
    duplicates: u64,
    out_of_order: u64,
}

impl Ledger {
    /// Notes the arrival of a frame.
    #[inline]
    pub fn note(&mut self, sequence: u64) {
        self.received += 1;
        if sequence == self.last.1 && self.last.1 > self.last.0 {
            self.last.1 += 1;
            return;
        }
        self.elsewhere(sequence);
    }

    fn elsewhere(&mut self, sequence: u64) {
        self.settle();
        let highest = self.ranges.last_key_value().map(|(_, end)| *end);
        let before = self.ranges.range(..=sequence).next_back().map(|(begin, end)| (*begin, *end));
        if before.is_some_and(|(_, end)| sequence < end) {
            self.duplicates += 1;
            self.last = before.unwrap_or_default();
            self.ranges.remove(&self.last.0);
            return;
        }
        if highest.is_some_and(|highest| sequence < highest) {
            self.out_of_order += 1;
        }
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
            self.duplicates += end.min(next_end) - next;
            self.ranges.remove(&next);
            end = end.max(next_end);
        }
        self.ranges.insert(begin, end);
    }

    /// What it amounts to, if frames 0 to `sent` (exclusive) were sent.
    #[must_use]
    pub fn close(mut self, sent: u64) -> Arrivals {
        self.settle();
        let mut missing = Vec::new();
        let mut next = 0;
        let mut unexpected = 0;
        for (begin, end) in self.ranges {
            if next < begin && next < sent {
                missing.push((next, begin.min(sent)));
            }
            unexpected += end.max(sent) - begin.max(sent);
            next = end;
        }
        if next < sent {
            missing.push((next, sent));
        }
        Arrivals {
            received: self.received,
            duplicates: self.duplicates,
            out_of_order: self.out_of_order,
            unexpected,
            missing,
        }
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
    /// Different frames with numbers that were never sent.
    pub unexpected: u64,
    /// Numbers that never arrived, as ranges from begin to end (exclusive).
    pub missing: Vec<(u64, u64)>,
}

impl Arrivals {
    /// Frames that never arrived.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.missing.iter().map(|(begin, end)| end - begin).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Random;

    fn close(sequences: &[u64], sent: u64) -> Arrivals {
        let mut ledger = Ledger::default();
        sequences.iter().for_each(|sequence| ledger.note(*sequence));
        ledger.close(sent)
    }

    #[test]
    fn all_that_was_sent_arrived() {
        let arrivals = close(&[0, 1, 2, 3], 4);
        assert_eq!((arrivals.received, arrivals.lost(), arrivals.duplicates), (4, 0, 0));
        assert_eq!(close(&[], 3).missing, [(0, 3)]);
    }

    #[test]
    fn holes_doubles_and_late_frames_are_told_apart() {
        let arrivals = close(&[0, 1, 4, 5, 3, 5, 1, 9], 12);
        assert_eq!(arrivals.missing, [(2, 3), (6, 9), (10, 12)]);
        assert_eq!((arrivals.duplicates, arrivals.out_of_order, arrivals.lost()), (2, 1, 6));
        assert_eq!(close(&[0, 1, 7, 7], 2).unexpected, 1);
    }

    #[test]
    fn any_order_gives_the_same_holes() {
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
        }
    }
}
