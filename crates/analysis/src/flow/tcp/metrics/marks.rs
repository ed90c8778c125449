//! When a direction had sent how much: what came again can have been asked for only if it was sent long
//! enough before.

use netsniff_packet::Timestamp;

use super::handshake::REORDER;
use crate::flow::tcp::losses::Repair;
use crate::flow::tcp::observed::elapsed;
use crate::flow::tcp::sequence::delta;

/// Two marks in the stream, the later one last; one that was not made is as old as can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marks {
    next: [u32; 2],
    at: [Timestamp; 2],
}

impl Default for Marks {
    fn default() -> Self {
        Self { next: [0; 2], at: [Timestamp::MIN; 2] }
    }
}

impl Marks {
    /// Notes that data beyond `sequence` is sent, of which nothing was seen before.
    #[inline]
    pub fn note(&mut self, sequence: u32, time: Timestamp, repair: impl FnOnce() -> Repair) {
        // Near enough to tell what was sent within the time of a repair from what is older. No timer runs out sooner
        // than after the least of them, so that most data asks for no more than that.
        let age = elapsed(self.at[1], time);
        if age.is_some_and(|age| age < REORDER / 2 || age < repair().by_timer / 2) {
            return;
        }
        (self.next[0], self.at[0]) = (self.next[1], self.at[1]);
        (self.next[1], self.at[1]) = (sequence, time);
    }

    /// Whether what stands at `low` was surely sent for the first time less than so many nanoseconds
    /// before `now`.
    #[must_use]
    pub fn is_within(&self, low: u32, now: Timestamp, nanos: u64) -> bool {
        self.next.iter().zip(self.at).any(|(next, at)| {
            delta(low, *next) >= 0 && elapsed(at, now).is_some_and(|age| age < nanos)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn data_is_as_old_as_the_last_mark_before_it() {
        let mut marks = Marks::default();
        let at = |ms: i64| Timestamp::from_nanos(ms * MS);
        let age = |marks: &Marks, low, now, ms: u64| marks.is_within(low, at(now), ms * 1_000_000);
        assert!(!age(&marks, 100, 5, 10), "nothing was sent");
        let repair =
            Repair { asked_for: 0, by_timer: 3_000_000, behind_a_hole: 0, hardly_shown: 0 };
        for (sequence, ms) in [(100, 0), (200, 1), (300, 2), (400, 5)] {
            marks.note(sequence, at(ms), || repair);
        }
        // The marks are at 2 and 5 ms.
        assert!(age(&marks, 300, 6, 5) && !age(&marks, 300, 6, 4));
        assert!(age(&marks, 400, 6, 2) && !age(&marks, 299, 6, 60));
        assert!(!age(&marks, 400, 1, 60), "the clock ran back");
    }
}
