//! Which IP identifications of a direction were seen lately: a packet that the network doubled has
//! one of them once more, however many others came between.

/// The latest identification and which of those before it were seen, as IPsec keeps its numbers (RFC
/// 4303, 3.4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Identifications {
    /// Bit `n` stands for the number `n` below the latest.
    seen: u64,
    latest: u16,
}

/// Numbers in a window of 64 from which on a host surely counts its packets: random ones are hardly
/// ever that near each other.
const COUNTING: u32 = 3;

impl Identifications {
    /// Notes one; 0 says that there is none. One far from the others begins anew.
    #[inline]
    pub const fn note(&mut self, identification: u16) {
        if identification == 0 {
            return;
        }
        let ahead = identification.wrapping_sub(self.latest);
        let behind = self.latest.wrapping_sub(identification);
        if (ahead as u32) < u64::BITS {
            self.seen = self.seen << ahead | 1;
            self.latest = identification;
        } else if (behind as u32) < u64::BITS {
            self.seen |= 1 << behind;
        } else {
            (self.seen, self.latest) = (1, identification);
        }
    }

    /// Whether this one was seen among the latest of a host that counts.
    #[inline]
    #[must_use]
    pub const fn has(&self, identification: u16) -> bool {
        let behind = self.latest.wrapping_sub(identification) as u32;
        identification != 0
            && behind < u64::BITS
            && self.seen >> behind & 1 != 0
            && self.is_counting()
    }

    /// Whether the host numbers its packets one after another.
    #[must_use]
    pub const fn is_counting(&self) -> bool {
        self.seen.count_ones() >= COUNTING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(numbers: impl IntoIterator<Item = u16>) -> Identifications {
        let mut all = Identifications::default();
        numbers.into_iter().for_each(|number| all.note(number));
        all
    }

    #[test]
    fn numbers_in_any_order_are_known_again() {
        let all = noted([65_530, 65_532, 65_531, 65_535, 1, 3]);
        for (number, is_seen) in [(65_530, true), (65_533, false), (1, true), (2, false), (3, true)]
        {
            assert_eq!(all.has(number), is_seen, "{number}");
        }
        assert!(!all.has(4) && !all.has(0) && !all.has(40_000));
    }

    #[test]
    fn the_window_ends() {
        let all = noted(1..=64);
        assert!(all.has(1));
        assert!(!noted(1..=65).has(1));
    }

    #[test]
    fn hosts_that_do_not_count_prove_nothing() {
        assert!(!noted([7, 7, 7, 7]).has(7), "one number for all");
        let random = noted((1..200_u16).map(|n| n.wrapping_mul(40_503)));
        assert!(!random.is_counting() && !random.has(199_u16.wrapping_mul(40_503)));
    }
}
