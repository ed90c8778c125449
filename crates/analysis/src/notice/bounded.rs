//! A table that never holds more than so many entries.

use std::collections::BTreeMap;

/// Entries by their keys. Where there is no room, the entry that was made first is given up.
#[derive(Debug)]
pub(super) struct Bounded<K, V> {
    entries: BTreeMap<K, (u64, V)>,
    ages: BTreeMap<u64, K>,
    made: u64,
    most: usize,
    given_up: u64,
}

impl<K: Ord + Clone, V> Bounded<K, V> {
    /// An empty table for `most` entries.
    pub(super) const fn new(most: usize) -> Self {
        Self { entries: BTreeMap::new(), ages: BTreeMap::new(), made: 0, most, given_up: 0 }
    }

    /// The entry of a key, if there is one.
    pub(super) fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: core::borrow::Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.entries.get(key).map(|(_, value)| value)
    }

    /// The entry of a key, which `make` makes where there is none.
    pub(super) fn entry(&mut self, key: &K, make: impl FnOnce() -> V) -> &mut V {
        if !self.entries.contains_key(key) {
            self.make_room();
            self.ages.insert(self.made, key.clone());
        }
        let made = self.made;
        let (age, value) = self.entries.entry(key.clone()).or_insert_with(|| (made, make()));
        self.made += u64::from(*age == made);
        value
    }

    /// Removes the entry of a key, which is not one that was given up.
    pub(super) fn remove(&mut self, key: &K) {
        if let Some((age, _)) = self.entries.remove(key) {
            self.ages.remove(&age);
        }
    }

    /// How many entries were given up for lack of room.
    pub(super) const fn given_up(&self) -> u64 {
        self.given_up
    }

    fn make_room(&mut self) {
        if self.entries.len() >= self.most
            && let Some((_, oldest)) = self.ages.pop_first()
        {
            self.entries.remove(&oldest);
            self.given_up += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_entry_goes_where_there_is_no_room() {
        let mut table = Bounded::new(2);
        for key in [1, 2, 1, 3, 3] {
            *table.entry(&key, || 0) += 1;
        }
        assert_eq!((table.get(&1), table.get(&2), table.get(&3)), (None, Some(&1), Some(&2)));
        assert_eq!((table.given_up(), table.ages.len()), (1, 2));
        table.remove(&2);
        *table.entry(&4, || 0) += 1;
        assert_eq!((table.get(&3), table.get(&4)), (Some(&2), Some(&1)), "there was room");
        assert_eq!((table.given_up(), table.ages.len()), (1, 2));
    }
}
