//! Which of the packets of one moment a packet is, told so that it does not depend on those of other hosts.
//!
//! Flows are named by the time of their first packet. Where stamps are coarse, or the clock stands still, a flow
//! may end and begin again within one time, so that the time alone names both. A number in the whole input
//! would tell them apart, but differs where rings share the packets; the number among those of the same pair
//! of addresses is the same in a file and in the ring that gets the pair.

use netsniff_packet::{Address, Timestamp};

/// Packets of one moment that are told apart by their pairs. A link of 100 Gb/s brings 15 in the hundred
/// nanoseconds that the coarsest clock of an interface counts; behind so many, packets are numbered whatever
/// their pair, which still gives no two of them the same number.
const MOST: usize = 64;

/// Numbers packets of one engine time.
#[derive(Debug)]
pub(super) struct Ties {
    now: Timestamp,
    packets: u64,
    /// Sums of the pairs of the packets at this time: what differs in its sum is another pair.
    sums: [u64; MOST],
    pairs: [[Address; 2]; MOST],
}

impl Ties {
    pub(super) fn new() -> Self {
        Self { now: Timestamp::MIN, packets: 0, sums: [0; MOST], pairs: [Default::default(); MOST] }
    }

    /// The number of a packet among those of its pair at the same engine time, from 0. `pair` is its
    /// outermost addresses, in either order; those of no packet of IP, where it has none.
    #[inline]
    pub(super) fn number(&mut self, now: Timestamp, pair: [Address; 2]) -> u64 {
        if now != self.now {
            (self.now, self.packets) = (now, 0);
        }
        let before = self.packets;
        self.packets += 1;
        let at = usize::try_from(before).unwrap_or(usize::MAX);
        let (Some(sum), Some(place)) = (self.sums.get_mut(at), self.pairs.get_mut(at)) else {
            return before;
        };
        (*sum, *place) = (sum_of(pair), pair);
        if at == 0 { 0 } else { self.number_of(pair, at) }
    }

    /// How many of the first packets, as many as `at`, are of a pair.
    #[inline(always)]
    fn number_of(&self, pair: [Address; 2], at: usize) -> u64 {
        let sum = sum_of(pair);
        let earlier = self.sums.get(..at).unwrap_or_default();
        if earlier.contains(&sum) { self.number_of_same(pair, at) } else { 0 }
    }

    #[inline(never)]
    fn number_of_same(&self, [a, b]: [Address; 2], at: usize) -> u64 {
        let earlier = self.pairs.iter().take(at);
        earlier.filter(|other| **other == [a, b] || **other == [b, a]).count() as u64
    }
}

/// The same in both directions.
#[inline]
const fn sum_of([source, destination]: [Address; 2]) -> u64 {
    let ([a, b], [c, d]) = (source.words(), destination.words());
    a.wrapping_add(c).rotate_left(32) ^ b.wrapping_add(d)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn at(nanos: i64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    fn pair(number: u8) -> [Address; 2] {
        [Address::from_v4([192, 0, 2, number]), Address::from_v4([192, 0, 2, 255])]
    }

    #[test]
    fn packets_of_other_pairs_do_not_count() {
        let (mut all, mut own) = (Ties::new(), Ties::new());
        for time in 0..3 {
            for number in 0..5 {
                all.number(at(time), pair(7));
                all.number(at(time), pair(8));
                assert_eq!(all.number(at(time), pair(1)), number);
                assert_eq!(own.number(at(time), pair(1)), number);
            }
        }
    }

    #[test]
    fn pairs_with_equal_sums_are_told_apart_and_directions_are_not() {
        let host = |last| Address::from_v4([192, 0, 2, last]);
        let mut ties = Ties::new();
        let pairs = [[1, 4], [2, 3], [4, 1], [3, 2], [1, 4]];
        let numbers = pairs.map(|[a, b]| ties.number(at(9), [host(a), host(b)]));
        assert_eq!(numbers, [0, 0, 1, 1, 2]);
    }

    #[test]
    fn no_two_packets_of_a_pair_have_one_number_while_time_stands_still() {
        let mut ties = Ties::new();
        let numbers: BTreeSet<_> = (0..200)
            .filter_map(|n| {
                let number = ties.number(at(5), pair(n % 2));
                (n % 2 == 0).then_some(number)
            })
            .collect();
        assert_eq!(numbers.len(), 100);
    }
}
