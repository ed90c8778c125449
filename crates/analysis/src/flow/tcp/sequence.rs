//! Sequence numbers: 32 bits that wrap, counted on to 64 relative to a start.

/// The largest window that there is, RFC 7323 section 2.3: so much can be on its way at once.
pub const MAX_WINDOW: i32 = 1 << 30;

/// Distance from `b` to `a` in sequence space, RFC 9293 section 3.4: positive where `a` is later.
#[must_use]
#[inline]
pub const fn delta(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b) as i32
}

/// Whether `a` lies in the closed range from `low` to `high`.
#[must_use]
pub const fn between(a: u32, low: u32, high: u32) -> bool {
    delta(a, low) >= 0 && delta(high, a) >= 0
}

/// The highest sequence number of something seen so far, with how often it went round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wrapping {
    /// The sequence number as it stands in the header.
    pub number: u32,
    /// How often 2^32 was passed.
    pub wraps: u32,
}

impl Wrapping {
    /// A number that is the first one.
    #[must_use]
    pub const fn first(number: u32) -> Self {
        Self { number, wraps: 0 }
    }

    /// Moves on to a number that is known to be later.
    #[inline]
    pub const fn advance(&mut self, number: u32) {
        if number < self.number {
            self.wraps = self.wraps.wrapping_add(1);
        }
        self.number = number;
    }

    /// The number with its wraps as 64 bits.
    #[must_use]
    #[inline]
    pub const fn full(self) -> u64 {
        (self.wraps as u64) << 32 | self.number as u64
    }

    /// Where `number` lies relative to `start`, judged by its nearness to this one. The second
    /// value tells that it lies before the start, which makes it unusable; the first is then the
    /// negative distance as two's complement.
    #[must_use]
    #[inline(always)]
    pub const fn relative(self, number: u32, start: u32) -> (u64, bool) {
        let distance = delta(number, self.number);
        let mut wraps = self.wraps;
        if distance < 0 {
            if wraps > 0 && number > self.number {
                wraps -= 1;
            }
        } else if distance > 0 && number < self.number {
            wraps = wraps.wrapping_add(1);
        }
        if wraps == 0 {
            let from_start = delta(number, start);
            return (from_start as i64 as u64, from_start < 0);
        }
        let full = (wraps as u64) << 32 | number as u64;
        (full.wrapping_sub(start as u64), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        assert_eq!(delta(5, u32::MAX), 6);
        assert_eq!(delta(u32::MAX, 5), -6);
        assert!(between(2, u32::MAX - 1, 7));
        assert!(!between(9, u32::MAX - 1, 7));
    }

    #[test]
    fn relative_counts_on_past_four_gigabytes() {
        let start = 0xffff_ff00;
        let mut last = Wrapping { number: start, wraps: 0 };
        assert_eq!(last.relative(0xffff_ff10, start), (0x10, false));
        assert!(last.relative(start - 1, start).1);
        last.advance(0x20);
        assert_eq!(last.wraps, 1);
        assert_eq!(last.relative(0x20, start), (0x120, false));
        assert_eq!(last.relative(0xffff_fff0, start), (0xf0, false));
    }
}
