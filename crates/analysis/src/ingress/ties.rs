//! Which of the packets of one moment a packet is, told so that it does not depend on those of other hosts.
//!
//! Flows are named by the time of their first packet. Where stamps are coarse, or the clock stands still, a flow
//! may end and begin again within one time, so that the time alone names both. A number in the whole input
//! would tell them apart, but differs where rings share the packets; the number among those of the same pair
//! of addresses is the same in a file and in the ring that gets the pair.

use netsniff_packet::Timestamp;

/// Packets of one moment that are told apart by their pairs. A link of 100 Gb/s brings 15 in the hundred
/// nanoseconds that the coarsest clock of an interface counts; behind so many, packets are numbered whatever
/// their pair, which still gives no two of them the same number.
const MOST: usize = 64;

/// Numbers packets of one engine time.
#[derive(Debug)]
pub(super) struct Ties {
    now: Timestamp,
    /// The pairs of the packets at this time.
    pairs: [u64; MOST],
    packets: u64,
}

impl Ties {
    pub(super) const fn new() -> Self {
        Self { now: Timestamp::MIN, pairs: [0; MOST], packets: 0 }
    }

    /// The number of a packet among those of its pair at the same engine time, from 0. `pair` is a hash
    /// of its outermost addresses.
    #[inline]
    pub(super) fn number(&mut self, now: Timestamp, pair: u64) -> u64 {
        if now != self.now {
            (self.now, self.packets) = (now, 0);
        }
        let before = self.packets;
        self.packets += 1;
        let at = usize::try_from(before).unwrap_or(usize::MAX);
        let Some(place) = self.pairs.get_mut(at) else { return before };
        *place = pair;
        let earlier = self.pairs.iter().take(at);
        earlier.filter(|earlier| **earlier == pair).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn at(nanos: i64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn packets_of_other_pairs_do_not_count() {
        let (mut all, mut own) = (Ties::new(), Ties::new());
        for time in 0..3 {
            for number in 0..5 {
                all.number(at(time), 7);
                all.number(at(time), 8);
                assert_eq!(all.number(at(time), 1), number);
                assert_eq!(own.number(at(time), 1), number);
            }
        }
    }

    #[test]
    fn no_two_packets_of_a_pair_have_one_number_while_time_stands_still() {
        let mut ties = Ties::new();
        let numbers: BTreeSet<_> = (0..200)
            .filter_map(|n| {
                let number = ties.number(at(5), n % 2);
                (n % 2 == 0).then_some(number)
            })
            .collect();
        assert_eq!(numbers.len(), 100);
    }
}
