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
    /// The pairs of the packets at this time, each in two words.
    sums: [u64; MOST],
    products: [u64; MOST],
}

impl Ties {
    pub(super) const fn new() -> Self {
        Self { now: Timestamp::MIN, packets: 0, sums: [0; MOST], products: [0; MOST] }
    }

    /// The number of a packet among those of its pair at the same engine time, from 0. `pair` is its
    /// outermost addresses, in either order; none where it has no header of IP.
    #[inline(always)]
    pub(super) fn number(&mut self, now: Timestamp, pair: Option<(&Address, &Address)>) -> u64 {
        if now != self.now {
            (self.now, self.packets) = (now, 0);
        }
        let before = self.packets;
        self.packets += 1;
        let at = usize::try_from(before).unwrap_or(usize::MAX);
        let (Some(sum), Some(product)) = (self.sums.get_mut(at), self.products.get_mut(at)) else {
            return before;
        };
        (*sum, *product) = pair.map_or((0, 0), words_of);
        if at == 0 {
            return 0;
        }
        let (own, earlier) = (*sum, self.sums.get(..at).unwrap_or_default());
        if earlier.contains(&own) { self.number_of_same(at) } else { 0 }
    }

    /// How many packets before the one at `at` are of its pair.
    #[inline(never)]
    fn number_of_same(&self, at: usize) -> u64 {
        let words = || self.sums.iter().zip(&self.products);
        let own = words().nth(at);
        words().take(at).filter(|earlier| Some(*earlier) == own).count() as u64
    }
}

/// A pair in two words, the same in both directions: sums and products, which together tell any two pairs of IPv4
/// apart, and all but crafted ones of IPv6. They are of no consequence but for the name of a flow.
// Of halves, as they were just written: whoever reads both at once waits for the store.
#[inline(always)]
const fn words_of((one, other): (&Address, &Address)) -> (u64, u64) {
    let ([a, b], [c, d]) = (one.words(), other.words());
    let sum = a.wrapping_add(c).rotate_left(32) ^ b.wrapping_add(d);
    (sum, a.wrapping_mul(c).rotate_left(32) ^ b.wrapping_mul(d))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn numbered(ties: &mut Ties, nanos: i64, [one, other]: [Address; 2]) -> u64 {
        ties.number(Timestamp::from_nanos(nanos), Some((&one, &other)))
    }

    fn pair(number: u8) -> [Address; 2] {
        [Address::from_v4([192, 0, 2, number]), Address::from_v4([192, 0, 2, 255])]
    }

    #[test]
    fn packets_of_other_pairs_do_not_count() {
        let (mut all, mut own) = (Ties::new(), Ties::new());
        for time in 0..3 {
            for number in 0..5 {
                numbered(&mut all, time, pair(7));
                numbered(&mut all, time, pair(8));
                assert_eq!(numbered(&mut all, time, pair(1)), number);
                assert_eq!(numbered(&mut own, time, pair(1)), number);
            }
        }
    }

    #[test]
    fn pairs_with_equal_sums_are_told_apart_and_directions_are_not() {
        let host = |last| Address::from_v4([192, 0, 2, last]);
        let mut ties = Ties::new();
        let pairs = [[1, 4], [2, 3], [4, 1], [3, 2], [1, 4]];
        let numbers = pairs.map(|[a, b]| numbered(&mut ties, 9, [host(a), host(b)]));
        assert_eq!(numbers, [0, 0, 1, 1, 2]);
    }

    #[test]
    fn no_two_packets_of_a_pair_have_one_number_while_time_stands_still() {
        let mut ties = Ties::new();
        let numbers: BTreeSet<_> = (0..200)
            .filter_map(|n| {
                let number = numbered(&mut ties, 5, pair(n % 2));
                (n % 2 == 0).then_some(number)
            })
            .collect();
        assert_eq!(numbers.len(), 100);
    }
}
