//! What was handed on last of a stream, to notice copies that contradict it.

use std::collections::VecDeque;

use netsniff_packet::checksum;

/// How many segments are remembered in any case. What was injected comes at most a flight before what it
/// stands in for, and the first flight is ten segments (RFC 6928), of which hosts that answer send fewer.
const SEGMENTS: usize = 8;

/// How many more, as long as they are not acknowledged.
const UNACKNOWLEDGED: usize = 248;

/// Parts of segments that copies brought, each apart from others.
const PARTS: usize = 256;

/// Lengths and sums of the last segments, since the bytes themselves are gone.
///
/// The Internet checksum of a segment tells the sum for nothing. It misses one contradiction of
/// 65,535, and those of a sender who knows the other copy and aims at its sum. The receiver needs every
/// byte, so that copies of parts add up to the whole sooner or later.
#[derive(Debug, Default)]
pub(super) struct Recent {
    runs: [Run; SEGMENTS],
    /// Where the next one goes, modulo their number.
    at: u8,
    /// Bytes of all of them.
    span: u64,
    more: Option<Box<More>>,
}

/// What a copy says of what was handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// Nothing else, as far as it can be compared.
    Agrees,
    /// Something else.
    Differs,
    /// It may count, and cannot be compared.
    Unknown,
}

#[derive(Clone, Copy, Debug, Default)]
struct Run {
    len: u32,
    /// Nothing where bytes are missing.
    sum: Option<u16>,
}

/// What few streams need.
#[derive(Debug, Default)]
struct More {
    /// Segments right before the last ones that were not acknowledged when others took their place.
    older: VecDeque<Run>,
    parts: Vec<Parts>,
}

/// Copies of parts of a segment.
#[derive(Debug)]
struct Parts {
    low: u64,
    /// What came of it, apart and in order, and the sum of that.
    covered: Vec<(u64, u64)>,
    sum: u32,
}

impl Recent {
    /// Notes that `len` bytes from `next` on were handed on, or were missing, while everything below
    /// `acknowledged` was acknowledged.
    #[inline]
    pub(super) fn note(&mut self, len: u64, sum: Option<u16>, next: u64, acknowledged: u64) {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let place = usize::from(self.at) % SEGMENTS;
        let old = core::mem::replace(&mut self.runs[place], Run { len, sum });
        let old_high = next.saturating_sub(self.span).saturating_add(old.len.into());
        self.span = self.span.saturating_sub(old.len.into()).saturating_add(len.into());
        self.at = self.at.wrapping_add(1);
        if old.len > 0 && (old_high > acknowledged || self.more.is_some()) {
            self.keep(old, old_high > acknowledged);
        }
    }

    #[cold]
    fn keep(&mut self, old: Run, is_wanted: bool) {
        let more = self.more.get_or_insert_default();
        if !is_wanted {
            // What lies before it was acknowledged, too.
            more.older.clear();
            return;
        }
        if more.older.len() >= UNACKNOWLEDGED {
            more.older.pop_front();
        }
        more.older.push_back(old);
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let Some(more) = &self.more else { return 0 };
        let ranges: usize = more.parts.iter().map(|parts| parts.covered.capacity()).sum();
        size_of::<More>()
            + more.older.capacity() * size_of::<Run>()
            + more.parts.capacity() * size_of::<Parts>()
            + ranges * size_of::<(u64, u64)>()
    }

    /// The segment `back` places before the next one, the last one being 1.
    fn run(&self, back: usize) -> Option<Run> {
        if back <= SEGMENTS {
            return Some(self.runs[(usize::from(self.at) + SEGMENTS - back) % SEGMENTS]);
        }
        let older = &self.more.as_ref()?.older;
        older.get(older.len().checked_sub(back - SEGMENTS)?).copied()
    }

    /// What a copy says whose first byte stands at `position`; everything below `next` was handed on, and
    /// below `acknowledged` acknowledged.
    pub(super) fn compare(
        &mut self,
        data: &[u8],
        position: u64,
        next: u64,
        acknowledged: u64,
    ) -> Compared {
        let end = position.saturating_add(data.len() as u64);
        let mut found = Compared::Agrees;
        let mut high = next;
        let mut back = 1;
        while high > position
            && let Some(run) = self.run(back).filter(|run| run.len > 0)
        {
            let low = high.saturating_sub(run.len.into());
            let (from, to) = (low.max(position), high.min(end));
            if let Some(sum) = run.sum.filter(|_| from < to) {
                let copy = part(data, position, from, to);
                let is_whole = (from, to) == (low, high);
                let judged = if is_whole && data.len() > 1 {
                    if checksum::sum(copy) == sum { Compared::Agrees } else { Compared::Differs }
                } else if is_whole {
                    // A keep-alive carries any byte.
                    Compared::Agrees
                } else {
                    self.compare_part((low, high), sum, from, copy)
                };
                match judged {
                    Compared::Differs => return judged,
                    Compared::Unknown => found = judged,
                    Compared::Agrees => {}
                }
            }
            (high, back) = (low, back + 1);
        }
        // What is older than all that is remembered counts only if it is not acknowledged.
        if high.min(end) > position.max(acknowledged) { Compared::Unknown } else { found }
    }

    /// Adds a copy of a part of a segment to others of it, and compares them if they are all of it.
    #[cold]
    fn compare_part(&mut self, run: (u64, u64), sum: u16, from: u64, copy: &[u8]) -> Compared {
        let all = &mut self.more.get_or_insert_default().parts;
        let (low, high) = run;
        let count: usize = all.iter().map(|parts| parts.covered.len()).sum();
        if count >= PARTS {
            all.remove(0);
            return Compared::Unknown;
        }
        let at = all.iter().position(|parts| parts.low == low).unwrap_or_else(|| {
            all.push(Parts { low, covered: Vec::new(), sum: 0 });
            all.len() - 1
        });
        let Some(parts) = all.get_mut(at) else { return Compared::Unknown };
        parts.add(from, copy);
        if parts.covered.first() != Some(&(low, high)) {
            return Compared::Agrees;
        }
        let whole = fold(parts.sum);
        all.remove(at);
        if whole == sum { Compared::Agrees } else { Compared::Differs }
    }
}

impl Parts {
    /// Adds what is new of the bytes from `from` on.
    fn add(&mut self, from: u64, copy: &[u8]) {
        let to = from + copy.len() as u64;
        let mut low = from;
        for &(start, end) in &self.covered {
            if low < start.min(to) {
                self.sum += self.sum_of(from, copy, low, start.min(to));
            }
            low = low.max(end);
        }
        if low < to {
            self.sum += self.sum_of(from, copy, low, to);
        }
        self.sum = fold(self.sum).into();
        self.covered.push((from, to));
        self.covered.sort_unstable();
        self.covered.dedup_by(|next, last| {
            let is_joined = next.0 <= last.1;
            if is_joined {
                last.1 = last.1.max(next.1);
            }
            is_joined
        });
    }

    /// The sum of the bytes between two positions as a part of the whole: at an odd place bytes change
    /// places (RFC 1071, 2).
    fn sum_of(&self, from: u64, copy: &[u8], low: u64, high: u64) -> u32 {
        let sum = checksum::sum(part(copy, from, low, high));
        let is_odd = (low - self.low) % 2 == 1;
        u32::from(if is_odd { sum.swap_bytes() } else { sum })
    }
}

/// The bytes between two positions, of those from `position` on.
fn part(data: &[u8], position: u64, low: u64, high: u64) -> &[u8] {
    let index = |at: u64| usize::try_from(at.saturating_sub(position)).unwrap_or(usize::MAX);
    data.get(index(low)..index(high)).unwrap_or_default()
}

/// A sum of sums as [`checksum::sum`] gives it.
const fn fold(sum: u32) -> u16 {
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    if folded == 0xffff { 0 } else { folded as u16 }
}

#[cfg(test)]
mod tests {
    use netsniff_traffic::Random;

    use super::*;

    fn recent(segments: &[&str]) -> (Recent, u64) {
        let mut recent = Recent::default();
        let mut next = 1;
        for segment in segments {
            let len = segment.len() as u64;
            recent.note(len, Some(checksum::sum(segment.as_bytes())), next, 1);
            next += len;
        }
        (recent, next)
    }

    /// What the last of several copies says.
    fn last(segments: &[&str], copies: &[(u64, &str)]) -> Compared {
        let (mut recent, next) = recent(segments);
        let compared =
            copies.iter().map(|(position, it)| recent.compare(it.as_bytes(), *position, next, 1));
        compared.last().unwrap()
    }

    #[test]
    fn another_copy_of_whole_segments_contradicts() {
        let segments = ["abc", "defg", "hi"];
        for copy in ["abcdefghi", "abcdefghijkl", "abc", "abcde"] {
            assert_eq!(last(&segments, &[(1, copy)]), Compared::Agrees, "{copy}");
        }
        for (position, copy) in [(1, "abX"), (1, "abcdefgXi"), (4, "dXfghi"), (3, "cdXfg")] {
            assert_eq!(last(&segments, &[(position, copy)]), Compared::Differs, "{copy}");
        }
        // Nor is what was not handed on.
        assert_eq!(last(&segments, &[(10, "XYZ")]), Compared::Agrees);
    }

    #[test]
    fn copies_of_parts_are_compared_once_they_are_the_whole() {
        let segments = ["abcdefg", "hijk"];
        // A part tells nothing by itself.
        for part in [(1, "aX"), (2, "XX"), (8, "hX")] {
            assert_eq!(last(&segments, &[part]), Compared::Agrees, "{part:?}");
        }
        for (parts, result) in [
            (vec![(1, "abc"), (4, "defg")], Compared::Agrees),
            (vec![(1, "abc"), (4, "deXg")], Compared::Differs),
            (vec![(1, "aXc"), (4, "defghi"), (10, "jk")], Compared::Agrees),
            (vec![(1, "aXc"), (4, "defghi")], Compared::Differs),
            // In any order, over each other, and byte by byte.
            (vec![(5, "efghi"), (1, "abcX")], Compared::Differs),
            (vec![(3, "cd"), (1, "ab"), (2, "bcde"), (5, "efg")], Compared::Agrees),
            (vec![(3, "cX"), (1, "ab"), (2, "bcde"), (5, "efg")], Compared::Differs),
            (
                vec![(7, "g"), (1, "a"), (6, "f"), (2, "b"), (5, "e"), (3, "X"), (4, "d")],
                Compared::Differs,
            ),
        ] {
            assert_eq!(last(&segments, &parts), result, "{parts:?}");
        }
    }

    #[test]
    fn what_is_not_acknowledged_is_compared_however_far_back() {
        for (count, acknowledged, expected) in [
            (9, 1, Compared::Differs),
            (256, 1, Compared::Differs),
            (257, 1, Compared::Unknown),
            (257, 258, Compared::Agrees),
            (9, 9, Compared::Agrees),
        ] {
            let mut recent = Recent::default();
            for at in 1..=count {
                recent.note(2, Some(checksum::sum(b"xy")), at * 2 - 1, acknowledged);
            }
            let next = count * 2 + 1;
            assert_eq!(recent.compare(b"Xy", 1, next, acknowledged), expected, "{count}");
            assert!(recent.heap_bytes() < 6_000);
        }
    }

    #[test]
    fn what_is_missing_contradicts_nothing() {
        let (mut recent, next) = recent(&["abc"]);
        recent.note(4, None, next, 1);
        assert_eq!(recent.compare(b"abc----", 1, next + 4, 1), Compared::Agrees);
        assert_eq!(recent.compare(b"a-c----", 1, next + 4, 1), Compared::Differs);
    }

    /// The same bytes, however they are cut, never contradict; with one byte changed they do as soon as
    /// all came.
    #[test]
    fn any_other_cut_of_the_same_bytes_agrees() {
        let mut random = Random::new(7);
        for round in 0..300 {
            let bytes: Vec<u8> = (0..40).map(|_| random.below(256) as u8).collect();
            let mut recent = Recent::default();
            let mut next = 0;
            while next < bytes.len() {
                let len = (1 + random.below(12) as usize).min(bytes.len() - next);
                let sum = checksum::sum(&bytes[next..next + len]);
                recent.note(len as u64, Some(sum), next as u64 + 1, 1);
                next += len;
            }
            let mut copy = bytes.clone();
            if round % 2 == 1 {
                copy[random.below(40) as usize] ^= 0x10;
            }
            let mut found = Vec::new();
            let mut at = 0;
            while at < copy.len() {
                let len = (2 + random.below(9) as usize).min(copy.len() - at);
                found.push(recent.compare(&copy[at..at + len], at as u64 + 1, 41, 1));
                at += len;
            }
            let expected = if round % 2 == 1 { Compared::Differs } else { Compared::Agrees };
            let is_found = found.contains(&Compared::Differs);
            assert_eq!(is_found, expected == Compared::Differs, "{round} {found:?}");
        }
    }

    #[test]
    fn too_many_parts_are_told() {
        let segment = "a".repeat(3 * PARTS);
        let parts: Vec<_> = (0..PARTS as u64 + 1).map(|at| (1 + 2 * at, "a")).collect();
        assert_eq!(last(&[&segment], &parts), Compared::Unknown);
    }
}
