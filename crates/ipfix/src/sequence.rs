//! What sequence numbers say is missing: they count what was sent before, modulo 2^32.

use std::collections::VecDeque;

/// How a message stands to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is the next one, or the first of all.
    Next,
    /// So much is missing before it.
    Gap(u32),
    /// It was missing.
    Late,
    /// The exporter counts from elsewhere now: what was missed between is unknown.
    Restart,
}

/// Numbers that did not come.
#[derive(Clone, Copy, Debug)]
struct Gap {
    from: u32,
    len: u32,
}

/// The numbers of one exporter and domain.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    /// The number that comes next.
    next: Option<u32>,
    gaps: VecDeque<Gap>,
    /// All that did not come.
    missing: u64,
    /// Whether `missing` may be off, since a gap was forgotten into which something came.
    is_off: bool,
    /// Messages that came late.
    late: u64,
    restarts: u64,
    /// Messages before which something was missing, or that began anew.
    faults: u64,
}

impl Sequence {
    /// Takes a message with this number, which counts for `count` numbers. `is_restarted` tells that the exporter was
    /// started anew.
    pub(crate) fn arrive(
        &mut self,
        number: u32,
        count: u32,
        is_restarted: bool,
        most: usize,
    ) -> Arrival {
        let arrival = self.judge(number, is_restarted);
        match arrival {
            Arrival::Late => {
                self.late += 1;
                self.fill(number, count);
                return arrival;
            }
            Arrival::Gap(len) => {
                self.faults += 1;
                self.missing += u64::from(len);
                if self.gaps.len() >= most.max(1) {
                    self.gaps.pop_front();
                }
                self.gaps.push_back(Gap { from: number.wrapping_sub(len), len });
            }
            Arrival::Restart => {
                self.faults += 1;
                self.restarts += 1;
                self.gaps.clear();
            }
            Arrival::Next => {}
        }
        self.next = Some(number.wrapping_add(count));
        arrival
    }

    fn judge(&self, number: u32, is_restarted: bool) -> Arrival {
        let Some(next) = self.next else { return Arrival::Next };
        if is_restarted {
            return Arrival::Restart;
        }
        let ahead = number.wrapping_sub(next);
        match ahead.cast_signed() {
            0 => Arrival::Next,
            1.. => Arrival::Gap(ahead),
            _ if self.gap_with(number).is_some() => Arrival::Late,
            _ => Arrival::Restart,
        }
    }

    /// Which gap a number lies in.
    fn gap_with(&self, number: u32) -> Option<usize> {
        self.gaps.iter().position(|gap| number.wrapping_sub(gap.from) < gap.len)
    }

    /// So many more numbers from `from` on were of a message that arrived: they were not understood then.
    pub(crate) fn settle(&mut self, from: u32, count: u32) {
        if self.next == Some(from) {
            self.next = Some(from.wrapping_add(count));
        } else {
            self.fill(from, count);
        }
    }

    /// The same of numbers that end at `until`.
    pub(crate) fn settle_before(&mut self, until: u32, count: u32) {
        // The gap, if there is one, ends where what was understood begins, and that is not known any more: it is the
        // one at the end of which the numbers lie, whatever lies between.
        let ends_before =
            |gap: &Gap| until.wrapping_sub(gap.from.wrapping_add(gap.len)) <= u32::MAX / 2;
        let Some(at) = self.gaps.iter().rposition(ends_before) else {
            self.is_off |= count > 0;
            return;
        };
        let Some(gap) = self.gaps.get_mut(at) else { return };
        let filled = count.min(gap.len);
        self.is_off |= filled < count;
        gap.len -= filled;
        self.missing -= u64::from(filled);
        if gap.len == 0 {
            self.gaps.remove(at);
        }
    }

    /// Takes numbers out of the gap that they lie in.
    fn fill(&mut self, number: u32, count: u32) {
        let Some(at) = self.gap_with(number) else {
            self.is_off |= count > 0;
            return;
        };
        let Some(gap) = self.gaps.get_mut(at) else { return };
        let before = number.wrapping_sub(gap.from);
        let filled = count.min(gap.len - before);
        // More than there was room for: the numbers of this exporter do not count what they should.
        self.is_off |= filled < count;
        let behind = Gap { from: number.wrapping_add(filled), len: gap.len - before - filled };
        gap.len = before;
        self.missing -= u64::from(filled);
        if before == 0 {
            self.gaps.remove(at);
        }
        if behind.len > 0 {
            self.gaps.push_back(behind);
        }
    }

    /// How much did not come; `None` where that is not known.
    fn missing(&self) -> Option<u64> {
        (!self.is_off).then_some(self.missing)
    }
}

/// What a message counts for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Records, or in NetFlow 9 the message.
    pub(crate) all: u32,
    /// Without records of the exporter itself.
    pub(crate) flows: u32,
}

/// A way in which an exporter counts.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// Whether the number of a message tells what was sent up to its end.
    is_up_to: bool,
    /// Whether records of the exporter itself are left out.
    is_of_flows: bool,
}

/// The way of RFC 7011, 3.1, and those of exporters that differ: softflowd 1.1 counts by the last one.
const WAYS: [Way; 4] = [
    Way { is_up_to: false, is_of_flows: false },
    Way { is_up_to: false, is_of_flows: true },
    Way { is_up_to: true, is_of_flows: false },
    Way { is_up_to: true, is_of_flows: true },
];

impl Way {
    const fn count(self, count: Count) -> u32 {
        if self.is_of_flows { count.flows } else { count.all }
    }
}

/// The numbers of one exporter and domain, by every way of counting.
///
/// Which way is right shows in the numbers: by a wrong one they go back now and then. Until that is certain, nobody knows what
/// is missing.
#[derive(Debug, Default)]
pub(crate) struct Numbers([Sequence; WAYS.len()]);

/// What the numbers amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) late: u64,
    pub(crate) restarts: u64,
    /// What did not come; `None` where that is not known.
    pub(crate) missing: Option<u64>,
}

/// The numbers behind a message, by every way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Behind([u32; WAYS.len()]);

impl Behind {
    /// The numbers behind so many more records.
    pub(crate) fn moved(mut self, count: Count) -> Self {
        for (number, way) in self.0.iter_mut().zip(WAYS) {
            *number = number.wrapping_add(way.count(count));
        }
        self
    }
}

impl Numbers {
    /// Takes a message, as [`Sequence::arrive`]. Returns how it stands by the way that the exporter counts.
    pub(crate) fn arrive(
        &mut self,
        number: u32,
        count: Count,
        is_restarted: bool,
        most: usize,
    ) -> (Arrival, Behind) {
        let (mut arrivals, mut behind) = ([Arrival::Next; WAYS.len()], Behind::default());
        for (at, (sequence, way)) in self.0.iter_mut().zip(WAYS).enumerate() {
            let count = way.count(count);
            let first = if way.is_up_to { number.wrapping_sub(count) } else { number };
            arrivals[at] = sequence.arrive(first, count, is_restarted, most);
            behind.0[at] = first.wrapping_add(count);
        }
        // Where the way is not known, neither a gap nor its end is certain.
        (self.decided().map_or(Arrival::Next, |at| arrivals[at]), behind)
    }

    /// So many more records of a message were understood, of which it had the numbers `behind` the others.
    pub(crate) fn settle(&mut self, behind: Behind, count: Count) {
        for ((sequence, way), number) in self.0.iter_mut().zip(WAYS).zip(behind.0) {
            if way.is_up_to {
                sequence.settle_before(number, way.count(count));
            } else {
                sequence.settle(number, way.count(count));
            }
        }
    }

    /// The way that the exporter counts; `None` where what came does not tell, and it matters.
    fn decided(&self) -> Option<usize> {
        let [usual, others @ ..] = &self.0;
        let (at, best) = others.iter().enumerate().min_by_key(|(_, other)| other.faults)?;
        let is_same = usual.missing == best.missing && usual.restarts == best.restarts;
        if usual.faults <= best.faults || is_same {
            return Some(0);
        }
        let is_other = usual.restarts > best.restarts && usual.faults >= 2 * best.faults + 2;
        is_other.then_some(at + 1)
    }

    /// What they amount to.
    pub(crate) fn counted(&self) -> Counted {
        let decided = self.decided().and_then(|at| self.0.get(at));
        let Sequence { late, restarts, .. } = decided.unwrap_or(&self.0[0]);
        let missing = decided.and_then(Sequence::missing);
        Counted { late: *late, restarts: *restarts, missing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages by number and count.
    fn arrivals(messages: &[(u32, u32)]) -> (Vec<Arrival>, Option<u64>) {
        let mut sequence = Sequence::default();
        let arrivals =
            messages.iter().map(|&(number, count)| sequence.arrive(number, count, false, 8));
        (arrivals.collect(), sequence.missing())
    }

    #[test]
    fn gaps_are_counted_and_filled() {
        use Arrival::{Gap, Late, Next, Restart};
        assert_eq!(arrivals(&[(7, 3), (10, 2), (12, 0), (12, 1)]), (vec![Next; 4], Some(0)));
        assert_eq!(arrivals(&[(0, 10), (15, 5)]), (vec![Next, Gap(5)], Some(5)));
        assert_eq!(arrivals(&[(0, 10), (15, 5), (10, 5)]), (vec![Next, Gap(5), Late], Some(0)));
        let twice = arrivals(&[(0, 10), (20, 5), (14, 2), (10, 4), (16, 4), (25, 1)]);
        assert_eq!(twice, (vec![Next, Gap(10), Late, Late, Late, Next], Some(0)));
        assert_eq!(arrivals(&[(100, 10), (0, 5), (5, 1)]), (vec![Next, Restart, Next], Some(0)));
        assert_eq!(arrivals(&[(u32::MAX, 3), (2, 1)]), (vec![Next, Next], Some(0)), "it wraps");
        assert_eq!(arrivals(&[(u32::MAX, 3), (4, 1)]), (vec![Next, Gap(2)], Some(2)));
        // More records than there was room for.
        assert_eq!(arrivals(&[(0, 10), (15, 5), (12, 5)]).1, None);
    }

    #[test]
    fn what_is_understood_later_was_not_missing() {
        let mut sequence = Sequence::default();
        sequence.arrive(0, 0, false, 8);
        assert_eq!(sequence.arrive(8, 1, false, 8), Arrival::Gap(8));
        sequence.settle(0, 5);
        assert_eq!(sequence.missing(), Some(3));
        sequence.arrive(9, 0, false, 8);
        sequence.settle(9, 2);
        assert_eq!(sequence.arrive(11, 2, false, 8), Arrival::Next);
    }

    #[test]
    fn gaps_that_were_forgotten_make_it_unknown() {
        let mut sequence = Sequence::default();
        for number in [0, 10, 20, 30] {
            sequence.arrive(number, 1, false, 1);
        }
        assert_eq!(sequence.missing(), Some(27));
        sequence.settle(1, 2);
        assert_eq!(sequence.missing(), None);
    }

    #[test]
    fn the_way_of_an_exporter_is_known_by_its_numbers() {
        let flows = [22, 28, 27, 30, 12, 3, 30, 30, 7, 28, 5];
        for way in WAYS {
            let mut numbers = Numbers::default();
            let mut total = 0;
            for (at, flows) in flows.into_iter().enumerate() {
                // Every third message tells of the exporter as well.
                let count = Count { all: flows + u32::from(at % 3 == 0), flows };
                let before = total;
                total += way.count(count);
                let number = if way.is_up_to { total } else { before };
                if at != 7 {
                    numbers.arrive(number, count, false, 8);
                }
            }
            let expected = Counted { late: 0, restarts: 0, missing: Some(30) };
            assert_eq!(numbers.counted(), expected, "{way:?}");
        }
    }

    #[test]
    fn what_no_way_is_sure_of_is_unknown() {
        let mut numbers = Numbers::default();
        let of = |flows| Count { all: flows, flows };
        numbers.arrive(22, of(22), false, 8);
        assert_eq!(numbers.counted().missing, Some(0));
        numbers.arrive(50, of(28), false, 8);
        assert_eq!(numbers.counted().missing, None, "6 by one way, none by another");
        numbers.arrive(60, of(4), false, 8);
        assert_eq!(numbers.counted().missing, None);
    }
}
