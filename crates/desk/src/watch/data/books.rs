//! The books of a live capture: what became of the packets, as the last rows of the log `capture` have it.

use std::collections::BTreeMap;

use super::row::LogRow;

/// Rows that are kept: interfaces, rings and the host.
const MOST: usize = 4_096;
/// Bytes of a row that is kept. A run's own take far less.
const LONGEST: usize = 16 << 10;

/// The last row of each interface, ring and host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Books(BTreeMap<Place, [Option<LogRow>; 2]>);

/// What a row is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    scope: u8,
    interface: String,
    ring: Option<u64>,
}

/// A row of the books, with the one before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) last: &'a LogRow,
    before: Option<&'a LogRow>,
}

impl Books {
    /// Takes a row of `capture`.
    pub(crate) fn take(&mut self, row: LogRow) {
        let scope = match row.text("scope") {
            Some("interface") => 0,
            Some("ring") => 1,
            _ => 2,
        };
        let interface = row.text("interface").unwrap_or_default().to_owned();
        let place = Place { scope, interface, ring: row.count("ring") };
        if row.size() > LONGEST {
            return;
        }
        if self.0.len() < MOST || self.0.contains_key(&place) {
            let [last, before] = self.0.entry(place).or_default();
            *before = last.replace(row);
        }
    }

    /// Interfaces, then rings, then the host.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.0.values().filter_map(|[last, before]| {
            Some(Line { last: last.as_ref()?, before: before.as_ref() })
        })
    }
}

impl Line<'_> {
    /// A total since the start, and how much of it came since the row before; nothing where nobody knows.
    pub(crate) fn total(&self, column: &str) -> [Option<i64>; 2] {
        let last = self.last.int(column);
        let before = self.before.and_then(|before| before.int(column));
        [last, last.zip(before).map(|(last, before)| last.saturating_sub(before))]
    }
}
