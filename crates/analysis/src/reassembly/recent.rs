//! What was handed on last of a stream, to notice copies that contradict it.

use core::num::NonZeroU32;
use std::collections::VecDeque;

use super::fingerprint::Fingerprints;

/// How many segments are remembered in any case. What was injected comes at most a flight before what it
/// stands in for, and the first flight is ten segments (RFC 6928), of which hosts that answer send fewer.
const SEGMENTS: usize = 8;

/// How many more, as long as they are not acknowledged.
const UNACKNOWLEDGED: usize = 248;

/// Parts of segments that copies brought, each apart from others.
const PARTS: usize = 256;

/// Bytes of all those parts.
const PART_BYTES: usize = 64 * 1024;

/// Lengths and fingerprints of the last segments, since the bytes themselves are gone.
///
/// Whoever knows one copy can make another with the same Internet checksum, so it takes a key. The
/// receiver needs every byte, so that copies of parts add up to the whole sooner or later.
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
    /// The bytes differ.
    Differs,
    /// It may count, and cannot be compared.
    Unknown,
}

#[derive(Clone, Copy, Debug, Default)]
struct Run {
    len: u32,
    /// Nothing where bytes are missing.
    fingerprint: Option<NonZeroU32>,
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
    /// What came of it with its positions, apart and in order.
    pieces: Vec<(u64, Vec<u8>)>,
}

impl Recent {
    /// Notes that `len` bytes from `next` on were handed on, or were missing, while everything below
    /// `acknowledged` was acknowledged.
    #[inline]
    pub(super) fn note(
        &mut self,
        len: u64,
        fingerprint: Option<NonZeroU32>,
        next: u64,
        acknowledged: u64,
    ) {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let place = usize::from(self.at) % SEGMENTS;
        let old = core::mem::replace(&mut self.runs[place], Run { len, fingerprint });
        let old_high = next.saturating_sub(self.span).saturating_add(old.len.into());
        self.span = self.span.saturating_sub(old.len.into()).saturating_add(len.into());
        self.at = self.at.wrapping_add(1);
        if old.len > 0 && (old_high > acknowledged || self.more.is_some()) {
            self.keep(old, old_high > acknowledged);
            self.forget_parts(old_high);
        }
    }

    /// Forgets up to `most` missing bytes that were noted last, and returns how many.
    #[cold]
    pub(super) fn forget_gap(&mut self, most: u64) -> u64 {
        let place = (usize::from(self.at) + SEGMENTS - 1) % SEGMENTS;
        let run = &mut self.runs[place];
        if run.fingerprint.is_some() || run.len == 0 {
            return 0;
        }
        let forgotten = run.len.min(u32::try_from(most).unwrap_or(u32::MAX));
        run.len -= forgotten;
        if run.len == 0 {
            self.at = self.at.wrapping_sub(1);
        }
        self.span = self.span.saturating_sub(forgotten.into());
        forgotten.into()
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

    /// Lets go of parts of segments that are remembered no longer: `high` lies behind the last of those.
    #[cold]
    fn forget_parts(&mut self, high: u64) {
        let Some(more) = self.more.as_mut().filter(|more| !more.parts.is_empty()) else { return };
        let remembered: u64 = more.older.iter().map(|run| u64::from(run.len)).sum();
        let low = high.saturating_sub(remembered);
        more.parts.retain(|parts| parts.low >= low);
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let Some(more) = &self.more else { return 0 };
        let parts = more
            .parts
            .iter()
            .map(|parts| parts.pieces.capacity() * size_of::<(u64, Vec<u8>)>() + parts.bytes());
        size_of::<More>()
            + more.older.capacity() * size_of::<Run>()
            + more.parts.capacity() * size_of::<Parts>()
            + parts.sum::<usize>()
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
        keys: &Fingerprints,
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
            if let Some(known) = run.fingerprint.filter(|_| from < to) {
                let copy = part(data, position, from, to);
                let is_whole = (from, to) == (low, high);
                // A keep-alive carries any byte, and comes when all was acknowledged.
                let is_unheard = acknowledged == 0 && to == next && !self.has_parts(low);
                let judged = if data.len() == 1 && (to <= acknowledged || is_unheard) {
                    Compared::Agrees
                } else if is_whole {
                    if keys.of(copy) == known { Compared::Agrees } else { Compared::Differs }
                } else {
                    self.compare_part((low, high), known, from, copy, keys)
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

    /// Whether copies of parts of the segment at `low` came.
    fn has_parts(&self, low: u64) -> bool {
        self.more.as_ref().is_some_and(|more| more.parts.iter().any(|parts| parts.low == low))
    }

    /// Adds a copy of a part of a segment to others of it, and compares them if they are all of it.
    #[cold]
    fn compare_part(
        &mut self,
        (low, high): (u64, u64),
        known: NonZeroU32,
        from: u64,
        copy: &[u8],
        keys: &Fingerprints,
    ) -> Compared {
        let all = &mut self.more.get_or_insert_default().parts;
        let count: usize = all.iter().map(|parts| parts.pieces.len()).sum();
        let held: usize = all.iter().map(Parts::bytes).sum();
        if count >= PARTS || held + copy.len() > PART_BYTES {
            all.drain(..all.len().min(1));
            return Compared::Unknown;
        }
        let at = all.iter().position(|parts| parts.low == low).unwrap_or_else(|| {
            all.push(Parts { low, pieces: Vec::new() });
            all.len() - 1
        });
        let Some(parts) = all.get_mut(at) else { return Compared::Unknown };
        if parts.add(from, copy) {
            return Compared::Differs;
        }
        let Some(whole) = parts.whole(low, high) else { return Compared::Agrees };
        let agrees = keys.of(whole) == known;
        all.remove(at);
        if agrees { Compared::Agrees } else { Compared::Differs }
    }
}

impl Parts {
    /// Bytes of its pieces.
    fn bytes(&self) -> usize {
        self.pieces.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Everything between two positions, if it came.
    fn whole(&self, low: u64, high: u64) -> Option<&[u8]> {
        let (start, bytes) = self.pieces.first()?;
        (*start == low && bytes.len() as u64 == high - low).then_some(bytes)
    }

    /// Adds the bytes from `from` on. Returns whether others came in their place before.
    fn add(&mut self, from: u64, copy: &[u8]) -> bool {
        let to = from + copy.len() as u64;
        let mut differs = false;
        let mut low = from;
        let mut all: Vec<(u64, Vec<u8>)> = Vec::with_capacity(self.pieces.len() + 2);
        for (start, bytes) in core::mem::take(&mut self.pieces) {
            let end = start + bytes.len() as u64;
            join(&mut all, low, part(copy, from, low, start.min(to)));
            let (both, until) = (start.max(from), end.min(to));
            differs |= part(&bytes, start, both, until) != part(copy, from, both, until);
            low = low.max(end);
            match all.last_mut() {
                Some((at, last)) if *at + last.len() as u64 == start => last.extend(bytes),
                _ => all.push((start, bytes)),
            }
        }
        join(&mut all, low, part(copy, from, low, to));
        self.pieces = all;
        differs
    }
}

/// Adds bytes behind what came before them.
fn join(pieces: &mut Vec<(u64, Vec<u8>)>, from: u64, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    match pieces.last_mut() {
        Some((at, last)) if *at + last.len() as u64 == from => last.extend(bytes),
        _ => pieces.push((from, bytes.to_vec())),
    }
}

/// The bytes between two positions, of those from `position` on.
fn part(data: &[u8], position: u64, low: u64, high: u64) -> &[u8] {
    let index = |at: u64| usize::try_from(at.saturating_sub(position)).unwrap_or(usize::MAX);
    data.get(index(low)..index(high)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use netsniff_traffic::Random;

    use super::*;

    fn keys() -> Fingerprints {
        Fingerprints::new(1)
    }

    fn recent(segments: &[&str]) -> (Recent, u64) {
        let mut recent = Recent::default();
        let mut next = 1;
        for segment in segments {
            let len = segment.len() as u64;
            recent.note(len, Some(keys().of(segment.as_bytes())), next, 1);
            next += len;
        }
        (recent, next)
    }

    /// What the last of several copies says.
    fn last(segments: &[&str], copies: &[(u64, &str)]) -> Compared {
        let (mut recent, next) = recent(segments);
        let compared = copies
            .iter()
            .map(|(position, it)| recent.compare(it.as_bytes(), *position, next, 1, &keys()));
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
                recent.note(2, Some(keys().of(b"xy")), at * 2 - 1, acknowledged);
            }
            let next = count * 2 + 1;
            assert_eq!(recent.compare(b"Xy", 1, next, acknowledged, &keys()), expected, "{count}");
            assert!(recent.heap_bytes() < 6_000);
        }
    }

    #[test]
    fn what_is_missing_contradicts_nothing() {
        let (mut recent, next) = recent(&["abc"]);
        recent.note(4, None, next, 1);
        assert_eq!(recent.compare(b"abc----", 1, next + 4, 1, &keys()), Compared::Agrees);
        assert_eq!(recent.compare(b"a-c----", 1, next + 4, 1, &keys()), Compared::Differs);
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
                let fingerprint = keys().of(&bytes[next..next + len]);
                recent.note(len as u64, Some(fingerprint), next as u64 + 1, 1);
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
                found.push(recent.compare(&copy[at..at + len], at as u64 + 1, 41, 1, &keys()));
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
