//! What findings are made with: thresholds, and room for what they remember.

use core::cell::Cell;

use super::bounded::Bounded;
use super::finding::{MOST_ENTRIES, MOST_UIDS};
use super::threshold::{Threshold, Thresholds};

/// Thresholds, and the bytes that each table of a finding may take.
#[derive(Debug)]
pub struct Setting<'a> {
    thresholds: &'a Thresholds,
    table_bytes: usize,
    /// How many tables were made.
    tables: Cell<usize>,
}

/// Tables that all share: those of the findings, what was told, and one part for all rules.
const TABLES: usize = 16;

/// Bytes of a uid with its string, as the allocator has it.
pub(super) const UID_BYTES: usize = 64;
/// Bytes of the uids that one entry may name.
pub(super) const UIDS_BYTES: usize = MOST_UIDS * UID_BYTES;

impl<'a> Setting<'a> {
    /// Tables that take so many bytes together; as many entries as there may be at most where `bytes` is `None`.
    pub(super) fn new(thresholds: &'a Thresholds, bytes: Option<usize>) -> Self {
        let table_bytes = bytes.map_or(usize::MAX, |bytes| bytes / TABLES);
        Self { thresholds, table_bytes, tables: Cell::new(0) }
    }

    /// The value of a threshold.
    #[must_use]
    pub fn get(&self, threshold: &Threshold) -> u64 {
        self.thresholds.get(threshold)
    }

    /// A table whose entries have so many bytes elsewhere at most.
    pub(super) fn table<K: Ord + Clone, V>(&self, elsewhere: usize) -> Bounded<K, V> {
        self.tables.set(self.tables.get() + 1);
        Bounded::new(entries::<K, V>(self.table_bytes, elsewhere))
    }

    /// The part of one of so many rules.
    pub(super) fn of_rules(&self, count: usize) -> Self {
        Self {
            thresholds: self.thresholds,
            table_bytes: self.table_bytes.min(LARGEST) / count.max(1),
            tables: Cell::new(0),
        }
    }
}

/// How many entries a table has room for. A node of a B-tree may be half empty, and keys stand there twice.
fn entries<K, V>(bytes: usize, elsewhere: usize) -> usize {
    let entry = 2 * (2 * size_of::<K>() + 2 * size_of::<u64>() + size_of::<V>()) + elsewhere;
    // One that may be huge has fewer entries, however much room there is.
    let most = MOST_ENTRIES.min(LARGEST / entry.max(1));
    most.min(bytes / entry.max(1)).max(1)
}

/// Bytes of the largest table.
const LARGEST: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notice::findings::FINDINGS;

    #[test]
    fn every_table_has_its_part() {
        let thresholds = Thresholds::default();
        let setting = Setting::new(&thresholds, Some(16 << 20));
        for finding in FINDINGS {
            let _ = (finding.make)(&setting);
        }
        assert_eq!(setting.tables.get() + 2, TABLES);
        assert_eq!(setting.table_bytes, 1 << 20);
    }

    #[test]
    fn entries_are_as_many_as_there_is_room_for() {
        assert_eq!(entries::<u64, u64>(usize::MAX, 0), MOST_ENTRIES);
        assert_eq!(entries::<u64, u64>(100_000, 20), 1_000);
        assert_eq!(entries::<u64, u64>(0, 20), 1);
        assert_eq!(entries::<u64, u64>(usize::MAX, (1 << 20) - 80), 64);
    }
}
