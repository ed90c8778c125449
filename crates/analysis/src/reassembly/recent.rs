//! What was handed on last of a stream, to notice copies that contradict it.

use netsniff_packet::checksum;

/// How many segments are remembered. What was injected comes at most a flight before what it stands
/// in for, and the first flight is ten segments (RFC 6928), of which hosts that answer send fewer.
const SEGMENTS: usize = 8;

/// Lengths and sums of the last segments, since the bytes themselves are gone.
///
/// The Internet checksum of a segment tells the sum for nothing. It misses one contradiction of
/// 65,535, and those of a sender who knows the other copy and aims at its sum.
#[derive(Debug, Default)]
pub(super) struct Recent {
    runs: [Run; SEGMENTS],
    /// Where the next one goes, modulo their number.
    at: u8,
}

#[derive(Clone, Copy, Debug, Default)]
struct Run {
    len: u32,
    /// Nothing where bytes are missing.
    sum: Option<u16>,
}

impl Recent {
    /// Notes that `len` bytes were handed on, or were missing.
    #[inline]
    pub(super) fn note(&mut self, len: u64, sum: Option<u16>) {
        let place = usize::from(self.at) % SEGMENTS;
        self.runs[place] = Run { len: u32::try_from(len).unwrap_or(u32::MAX), sum };
        self.at = self.at.wrapping_add(1);
    }

    /// Whether a copy whose first byte stands at `position` differs from a segment that lies in it
    /// as a whole; everything below `next` was handed on.
    pub(super) fn is_contradicted_by(&self, data: &[u8], position: u64, next: u64) -> bool {
        let mut high = next;
        for back in 1..=SEGMENTS {
            let run = self.runs[(usize::from(self.at) + SEGMENTS - back) % SEGMENTS];
            let low = high.saturating_sub(run.len.into());
            if run.len == 0 || low < position {
                return false;
            }
            let index = |at: u64| usize::try_from(at - position).unwrap_or(usize::MAX);
            if let (Some(sum), Some(copy)) = (run.sum, data.get(index(low)..index(high)))
                && checksum::sum(copy) != sum
            {
                return true;
            }
            high = low;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recent(segments: &[&str]) -> (Recent, u64) {
        let mut recent = Recent::default();
        let mut next = 1;
        for segment in segments {
            recent.note(segment.len() as u64, Some(checksum::sum(segment.as_bytes())));
            next += segment.len() as u64;
        }
        (recent, next)
    }

    #[test]
    fn only_another_copy_of_whole_segments_contradicts() {
        let (recent, next) = recent(&["abc", "defg", "hi"]);
        let contradicts =
            |position, copy: &str| recent.is_contradicted_by(copy.as_bytes(), position, next);
        for copy in ["abcdefghi", "abcdefghijkl", "abc", "abcde"] {
            assert!(!contradicts(1, copy), "{copy}");
        }
        for (position, copy) in [(1, "abX"), (1, "abcdefgXi"), (4, "dXfghi"), (3, "cdXfg")] {
            assert!(contradicts(position, copy), "{copy}");
        }
        // Of a part of a segment nothing is known.
        assert!(
            !contradicts(1, "aX")
                && !contradicts(2, "XX")
                && !contradicts(8, "hX".get(..1).unwrap())
        );
        // Nor of what was not handed on.
        assert!(!contradicts(10, "XYZ"));
    }

    #[test]
    fn what_is_missing_or_long_past_contradicts_nothing() {
        let (mut recent, mut next) = recent(&["abc"]);
        recent.note(4, None);
        next += 4;
        assert!(!recent.is_contradicted_by(b"abc----", 1, next));
        assert!(recent.is_contradicted_by(b"a-c----", 1, next));
        for _ in 0..SEGMENTS - 2 {
            recent.note(1, Some(checksum::sum(b"x")));
            next += 1;
        }
        let rest = "x".repeat(SEGMENTS - 2);
        assert!(recent.is_contradicted_by(format!("aXc    {rest}").as_bytes(), 1, next));
        recent.note(1, Some(checksum::sum(b"x")));
        assert!(!recent.is_contradicted_by(format!("aXc    {rest}x").as_bytes(), 1, next + 1));
    }
}
