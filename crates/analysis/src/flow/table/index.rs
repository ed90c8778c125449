//! Which places hold flows with a hash: one cache line for nearly every look-up.

use crate::prefetch::prefetch;

/// Slots that share a cache line of 64 bytes.
const LINE: usize = 8;

/// The table doubles when more than 7 of 10 slots are taken.
const fn is_crowded(len: usize, slots: usize) -> bool {
    len * 10 > slots * 7
}

/// A slot: the hash above the place. All bits are set where it is free, so that no place may be
/// `u32::MAX`.
type Slot = u64;

const FREE: Slot = Slot::MAX;

#[derive(Clone, Debug)]
#[repr(align(64))]
struct Line([Slot; LINE]);

/// Places by hashes of 32 bits: open addressing with linear probing.
///
/// What a slot holds begins at the place that its hash, taken as a fraction of 2^32, has in the
/// table, or after it where that was taken; between the two no slot is free. Growing keeps the
/// order, so that it reads and writes memory from one end to the other.
#[derive(Clone, Debug, Default)]
pub struct Index {
    lines: Vec<Line>,
    /// By how much a hash is shifted to the right for the slot where the search begins.
    shift: u32,
    len: usize,
}

impl Index {
    /// Bytes for one more entry in the worst case: the table has just doubled, and the old one is
    /// still there.
    pub const BYTES: usize = 5 * size_of::<Slot>();

    /// The first place with this hash for which `is_it` holds.
    #[inline]
    pub fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut at = self.home(hash);
        for _ in 0..self.slots() {
            let slot = self.slot(at);
            if slot == FREE {
                return None;
            }
            if hash_of(slot) == hash && is_it(place_of(slot)) {
                return Some(place_of(slot));
            }
            at = self.next(at);
        }
        None
    }

    /// Asks for where the search for a hash begins.
    #[inline]
    pub fn prefetch(&self, hash: u32) {
        if let Some(line) = self.lines.get(self.home(hash) / LINE) {
            prefetch(line);
        }
    }

    /// Adds a place, which must not be `u32::MAX`.
    pub fn insert(&mut self, hash: u32, place: u32) {
        if is_crowded(self.len + 1, self.slots()) {
            self.grow();
        }
        self.put(u64::from(hash) << 32 | u64::from(place));
        self.len += 1;
    }

    /// Removes a place that was added with this hash; nothing happens where there is none.
    pub fn remove(&mut self, hash: u32, place: u32) {
        let wanted = u64::from(hash) << 32 | u64::from(place);
        let mut at = self.home(hash);
        for _ in 0..self.slots() {
            let slot = self.slot(at);
            if slot == FREE {
                return;
            }
            if slot == wanted {
                self.close_hole(at);
                self.len -= 1;
                return;
            }
            at = self.next(at);
        }
    }

    /// Moves what stands after a hole and belongs at it or before, and so on with the new hole.
    fn close_hole(&mut self, mut hole: usize) {
        let mask = self.slots() - 1;
        let mut at = hole;
        loop {
            at = self.next(at);
            let slot = self.slot(at);
            if slot == FREE {
                break;
            }
            let from_home = at.wrapping_sub(self.home(hash_of(slot))) & mask;
            if from_home >= at.wrapping_sub(hole) & mask {
                self.set(hole, slot);
                hole = at;
            }
        }
        self.set(hole, FREE);
    }

    fn put(&mut self, entry: Slot) {
        let mut at = self.home(hash_of(entry));
        while self.slot(at) != FREE {
            at = self.next(at);
        }
        self.set(at, entry);
    }

    fn grow(&mut self) {
        let lines = (2 * self.lines.len()).max(1);
        let old = core::mem::replace(&mut self.lines, vec![Line([FREE; LINE]); lines]);
        self.shift = 32_u32.saturating_sub((lines * LINE).ilog2());
        for slot in old.iter().flat_map(|line| line.0).filter(|&slot| slot != FREE) {
            self.put(slot);
        }
    }

    const fn slots(&self) -> usize {
        self.lines.len() * LINE
    }

    #[inline]
    const fn home(&self, hash: u32) -> usize {
        (hash >> self.shift) as usize
    }

    #[inline]
    const fn next(&self, at: usize) -> usize {
        let next = at + 1;
        if next == self.slots() { 0 } else { next }
    }

    #[inline]
    fn slot(&self, at: usize) -> Slot {
        self.lines.get(at / LINE).map_or(FREE, |line| line.0[at % LINE])
    }

    #[inline]
    fn set(&mut self, at: usize, slot: Slot) {
        if let Some(line) = self.lines.get_mut(at / LINE) {
            line.0[at % LINE] = slot;
        }
    }
}

const fn hash_of(slot: Slot) -> u32 {
    (slot >> 32) as u32
}

const fn place_of(slot: Slot) -> u32 {
    slot as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn check(index: &Index, model: &BTreeSet<(u32, u32)>, hashes: impl Iterator<Item = u32>) {
        assert_eq!(index.len, model.len());
        for hash in hashes {
            let mut found = BTreeSet::new();
            index.find(hash, |place| {
                assert!(found.insert((hash, place)), "{hash:x} {place} is there twice");
                false
            });
            let expected: BTreeSet<_> =
                model.range((hash, 0)..=(hash, u32::MAX)).copied().collect();
            assert_eq!(found, expected, "{hash:x}");
        }
    }

    /// Hashes crowd at both ends of the table, so that probing wraps around and many are equal.
    #[test]
    fn agrees_with_a_set_under_insertions_and_removals() {
        let hashes: Vec<u32> = (0..12).flat_map(|n| [n, n << 20, u32::MAX - n, n << 28]).collect();
        let (mut index, mut model) = (Index::default(), BTreeSet::new());
        let mut random = 1_u64;
        for step in 0..20_000_u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            let (choice, hash) = ((random >> 60) as u32, hashes[(random >> 33) as usize % 48]);
            // Grows to about 400 entries, then shrinks, and so on.
            let is_growing = step / 2000 % 2 == 0;
            if (choice < 10) == is_growing {
                index.insert(hash, step);
                model.insert((hash, step));
            } else if let Some(&(hash, place)) =
                model.range((hash, 0)..).next().or_else(|| model.first())
            {
                index.remove(hash, place);
                model.remove(&(hash, place));
            }
            if step % 97 == 0 {
                check(&index, &model, hashes.iter().copied());
            }
        }
        index.remove(77, 5);
        check(&index, &model, hashes.iter().copied());
    }

    #[test]
    fn an_empty_one_finds_nothing() {
        let mut index = Index::default();
        assert_eq!(index.find(0, |_| true), None);
        index.remove(1, 1);
        index.insert(u32::MAX, 0);
        assert_eq!(index.find(u32::MAX, |_| true), Some(0));
        assert_eq!(index.find(0, |_| true), None);
    }
}
