//! The interval set of one direction: which positions were skipped, and what is known of each hole.
//!
//! Positions are relative: the SYN is 0 and the first byte of data is 1. What lies below the top and
//! in no hole was seen. Each user keeps what it knows of a hole beside it:
//!
//! | user | a position counts as seen | known of a hole |
//! |---|---|---|
//! | [`super::assembler`] | when its byte was captured, by the rules of Zeek | nothing |
//! | [`super::losses`], [`super::metrics`] | when it passed the tap | evidence of who lost it |
//!
//! `docs/decisions/coverage.md` tells why these are two sets of one kind and not one set.

/// Positions that were skipped, from `low` up to but not including `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole<T> {
    /// The first position.
    pub low: i64,
    /// One past the last position.
    pub high: i64,
    /// What its user knows of it.
    pub known: T,
}

impl<T: Copy> Hole<T> {
    /// Number of positions.
    #[must_use]
    pub fn size(&self) -> u64 {
        (self.high - self.low).max(0).unsigned_abs()
    }

    /// Whether it has a position in common with those from `low` up to `high`.
    #[must_use]
    pub const fn overlaps(&self, low: i64, high: i64) -> bool {
        self.low < high && low < self.high
    }

    /// The same hole with other ends; `None` if nothing lies between them.
    fn between(self, low: i64, high: i64) -> Option<Self> {
        (low < high).then_some(Self { low, high, ..self })
    }
}

/// The holes of one direction.
///
/// Invariants: the holes are sorted, not empty, do not overlap, and end at the top or below it.
#[derive(Clone, Debug, PartialEq)]
pub struct Coverage<T> {
    /// Up to where something was seen, or skipped.
    top: i64,
    /// Most streams never have one, so they take one word until then.
    #[expect(clippy::box_collection, reason = "two words less in every connection")]
    holes: Option<Box<Vec<Hole<T>>>>,
}

impl<T> Default for Coverage<T> {
    /// Nothing is known of any position.
    fn default() -> Self {
        Self { top: i64::MIN, holes: None }
    }
}

impl<T: Copy> Coverage<T> {
    /// A stream of which everything below `top` was seen.
    #[must_use]
    pub const fn up_to(top: i64) -> Self {
        Self { top, holes: None }
    }

    /// One past the highest position that was seen or skipped.
    #[must_use]
    pub const fn top(&self) -> i64 {
        self.top
    }

    /// The first position that was not seen.
    #[must_use]
    #[inline]
    pub fn next(&self) -> i64 {
        self.holes().first().map_or(self.top, |hole| hole.low)
    }

    /// The holes, the lowest first.
    #[must_use]
    #[inline]
    pub fn holes(&self) -> &[Hole<T>] {
        self.holes.as_ref().map_or(&[], |holes| holes.as_slice())
    }

    /// The holes, to note what becomes known of them. Their ends stay as they are.
    pub fn holes_mut(&mut self) -> impl Iterator<Item = &mut Hole<T>> {
        self.holes.iter_mut().flat_map(|holes| holes.iter_mut())
    }

    /// The holes that have a position in common with those from `low` up to `high`, the lowest first.
    pub fn within(&self, low: i64, high: i64) -> impl Iterator<Item = &Hole<T>> {
        let above = self.holes().get(self.above(low)..).unwrap_or_default();
        above.iter().take_while(move |hole| hole.low < high)
    }

    /// Bytes that it holds outside itself.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let of = |holes: &Vec<Hole<T>>| {
            size_of::<Vec<Hole<T>>>() + holes.capacity() * size_of::<Hole<T>>()
        };
        self.holes.as_deref().map_or(0, of)
    }

    /// Everything below `top` counts as seen, and nothing above.
    pub fn begin_at(&mut self, top: i64) {
        *self = Self::up_to(top);
    }

    /// All positions are higher by so many numbers.
    pub fn move_by(&mut self, by: i64) {
        self.top = self.top.saturating_add(by);
        for hole in self.holes_mut() {
            hole.low = hole.low.saturating_add(by);
            hole.high = hole.high.saturating_add(by);
        }
    }

    /// Positions from the top up to `position` count as seen.
    #[inline]
    pub fn extend(&mut self, position: i64) {
        self.top = self.top.max(position);
    }

    /// Positions behind `position` were never there. No hole may lie there.
    pub fn shrink(&mut self, position: i64) {
        self.top = position;
    }

    /// What lies from `low` up to `high` was skipped, as far as it is above the top.
    pub fn skip(&mut self, low: i64, high: i64, known: T) {
        let hole = Hole { low: low.max(self.top), high, known };
        if hole.low < hole.high {
            self.top = high;
            self.insert(self.holes().len(), hole);
        }
    }

    /// What lies from `low` up to `high` was skipped after all. No hole may lie there.
    pub fn reopen(&mut self, low: i64, high: i64, known: T) {
        if low < high {
            self.extend(high);
            self.insert(self.above(low), Hole { low, high, known });
        }
    }

    /// What lies from `low` up to `high` was seen: takes the first part of a hole out that lies
    /// there. `None` when nothing of a hole is left there.
    pub fn fill(&mut self, low: i64, high: i64) -> Option<Hole<T>> {
        let at = self.above(low);
        let holes = self.holes.as_deref_mut()?;
        let hole = *holes.get(at).filter(|hole| hole.low < high)?;
        let (from, to) = (low.max(hole.low), high.min(hole.high));
        match (hole.between(hole.low, from), hole.between(to, hole.high)) {
            (Some(below), Some(above)) => {
                holes[at] = below;
                self.insert(at + 1, above);
            }
            (Some(part), None) | (None, Some(part)) => holes[at] = part,
            (None, None) => drop(holes.remove(at)),
        }
        self.release_empty();
        hole.between(from, to)
    }

    /// Cuts the hole that reaches over `position` in two, if it is one that `is_cut`.
    pub fn split(&mut self, position: i64, is_cut: impl Fn(&T) -> bool) {
        let at = self.above(position);
        let Some(holes) = self.holes.as_deref_mut() else { return };
        let Some(&hole) = holes.get(at).filter(|it| it.low < position && is_cut(&it.known)) else {
            return;
        };
        holes[at].high = position;
        self.insert(at + 1, Hole { low: position, ..hole });
    }

    /// Takes a hole out, if there are more than `limit`: the first of those with the least `worth`.
    pub fn surplus<K: Ord>(
        &mut self,
        limit: usize,
        worth: impl Fn(&Hole<T>) -> K,
    ) -> Option<Hole<T>> {
        let holes = self.holes.as_deref_mut().filter(|holes| holes.len() > limit)?;
        let (at, _) = holes.iter().enumerate().min_by_key(|(_, hole)| worth(hole))?;
        let hole = holes.remove(at);
        self.release_empty();
        Some(hole)
    }

    /// Takes all holes out of which `is_kept` is not true.
    pub fn retain(&mut self, is_kept: impl FnMut(&Hole<T>) -> bool) {
        if let Some(holes) = &mut self.holes {
            holes.retain(is_kept);
        }
        self.release_empty();
    }

    /// Puts a hole before the one at an index. The list grows by halves: whole ones are many bytes where a flood
    /// makes holes in all connections.
    fn insert(&mut self, at: usize, hole: Hole<T>) {
        let holes = self.holes.get_or_insert_default();
        if holes.len() == holes.capacity() {
            holes.reserve_exact((holes.len() / 2).max(4));
        }
        holes.insert(at, hole);
    }

    /// Gives back the memory of a list without holes.
    fn release_empty(&mut self) {
        if self.holes().is_empty() {
            self.holes = None;
        }
    }

    /// Index of the first hole that ends above `position`.
    #[inline]
    fn above(&self, position: i64) -> usize {
        self.holes().partition_point(|hole| hole.high <= position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holes from pairs; each knows its index.
    fn coverage(holes: &[(i64, i64)]) -> Coverage<usize> {
        let mut coverage = Coverage::up_to(1);
        for (at, &(low, high)) in holes.iter().enumerate() {
            coverage.extend(low);
            coverage.skip(low, high, at);
        }
        coverage
    }

    fn holes(coverage: &Coverage<usize>) -> Vec<(i64, i64, usize)> {
        coverage.holes().iter().map(|hole| (hole.low, hole.high, hole.known)).collect()
    }

    #[test]
    fn a_hole_is_filled_from_either_end_and_in_the_middle() {
        let mut c = coverage(&[(100, 200)]);
        let mut fill = |low, high| c.fill(low, high).map(|hole| (hole.low, hole.high));
        assert_eq!(fill(50, 120), Some((100, 120)));
        assert_eq!(fill(180, 300), Some((180, 200)));
        assert_eq!(fill(140, 150), Some((140, 150)));
        assert_eq!(fill(140, 150), None);
        assert_eq!(holes(&c), [(120, 140, 0), (150, 180, 0)]);
        assert_eq!((c.next(), c.top()), (120, 200));
    }

    #[test]
    fn one_segment_fills_several_holes_one_after_the_other() {
        let mut c = coverage(&[(10, 20), (30, 40), (50, 60)]);
        let mut parts = Vec::new();
        while let Some(part) = c.fill(15, 55) {
            parts.push((part.low, part.high, part.known));
        }
        assert_eq!(parts, [(15, 20, 0), (30, 40, 1), (50, 55, 2)]);
        assert_eq!(holes(&c), [(10, 15, 0), (55, 60, 2)]);
    }

    #[test]
    fn what_was_seen_is_not_skipped_again() {
        let mut c = coverage(&[(10, 20)]);
        c.skip(5, 15, 7);
        assert_eq!(holes(&c), [(10, 20, 0)]);
        c.skip(15, 30, 7);
        assert_eq!(holes(&c), [(10, 20, 0), (20, 30, 7)]);
    }

    #[test]
    fn a_hole_is_cut_where_an_acknowledgement_ends() {
        let mut c = coverage(&[(10, 20), (30, 40)]);
        c.split(35, |_| true);
        c.split(30, |_| true);
        c.split(15, |_| false);
        assert_eq!(holes(&c), [(10, 20, 0), (30, 35, 1), (35, 40, 1)]);
    }

    #[test]
    fn the_hole_of_the_least_worth_pays_for_too_many() {
        let mut c = coverage(&[(10, 20), (30, 40), (50, 60)]);
        assert_eq!(c.surplus(2, |hole| hole.low).map(|hole| hole.known), Some(0));
        assert_eq!(c.surplus(2, |hole| hole.low), None);
        assert_eq!(c.surplus(1, |hole| -hole.low).map(|hole| hole.known), Some(2));
        assert_eq!((c.next(), c.top()), (30, 60));
    }

    #[test]
    fn without_holes_it_takes_no_memory() {
        let mut c = coverage(&[(10, 20)]);
        assert!(c.heap_bytes() > 0);
        assert_eq!(c.fill(0, 100).map(|hole| hole.size()), Some(10));
        assert_eq!((c.heap_bytes(), c.next()), (0, 20));
    }

    #[test]
    fn a_hole_may_open_below_others() {
        let mut c = coverage(&[(30, 40)]);
        c.reopen(10, 20, 5);
        assert_eq!(holes(&c), [(10, 20, 5), (30, 40, 0)]);
        let within = |low, high| c.within(low, high).map(|hole| hole.known).collect::<Vec<_>>();
        assert_eq!((within(20, 30), within(15, 30), within(19, 31)), (vec![], vec![5], vec![5, 0]));
    }

    /// Numbers that look random, the same in each run (Marsaglia, xorshift).
    fn random(state: &mut u64, below: u64) -> i64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state % below).cast_signed()
    }

    #[test]
    fn it_agrees_with_a_list_of_all_positions() {
        const LEN: u64 = 64;
        let mut state = 0x2545_f491_4f6c_dd1d;
        for _ in 0..2_000 {
            let mut is_unseen = [false; 2 * LEN as usize];
            let mut c = Coverage::<()>::up_to(0);
            for _ in 0..40 {
                let low = random(&mut state, LEN);
                let high = low + random(&mut state, LEN / 4);
                let top = c.top();
                match random(&mut state, 3) {
                    0 => {
                        c.skip(low, high, ());
                        (low.max(top)..high).for_each(|at| is_unseen[at as usize] = true);
                    }
                    1 => {
                        while c.fill(low, high).is_some() {}
                        (low..high).for_each(|at| is_unseen[at as usize] = false);
                    }
                    _ => c.split(low, |()| true),
                }
                let listed = |at| c.holes().iter().any(|hole| hole.overlaps(at, at + 1));
                for at in 0..2 * LEN.cast_signed() {
                    assert_eq!(listed(at), is_unseen[at as usize], "{c:?}, {at}");
                }
                let first = is_unseen.iter().position(|&it| it).map(|at| at as i64);
                assert_eq!(c.next(), first.unwrap_or(c.top()));
                let is_sorted = c.holes().windows(2).all(|two| two[0].high <= two[1].low);
                assert!(is_sorted && c.holes().iter().all(|hole| hole.low < hole.high), "{c:?}");
            }
        }
    }
}
