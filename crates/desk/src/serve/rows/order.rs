//! What rows are in order by, values of a column as its type has them, and the first rows of an order.

use core::cmp::Ordering;
use std::collections::BinaryHeap;
use std::net::IpAddr;

use netsniff_analysis::record::{FieldInfo, Scalar, Shape};

use crate::logs::Row;

/// Bytes of a text that count for its order.
const COMPARED: usize = 64;

/// An order of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    /// The column whose values are compared.
    pub(crate) column: &'static FieldInfo,
    pub(crate) is_ascending: bool,
}

impl Order {
    /// The place of a row, which has this number in the log.
    pub(super) fn rank(self, row: &Row<'_>, number: u64) -> Rank {
        let key = Key::of(row, self.column);
        Rank { key, is_ascending: self.is_ascending, number }
    }
}

/// The value of a column, to be compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Number(i128),
    /// A number with a fraction, as bits in the order of their values.
    Fraction(i64),
    Address(IpAddr),
    Text(Box<str>),
}

/// The place of a row among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rank {
    key: Option<Key>,
    is_ascending: bool,
    /// The place in the log, by which rows of one value stay as they are.
    number: u64,
}

impl Key {
    /// That of a row; `None` where it is unset.
    fn of(row: &Row<'_>, field: &FieldInfo) -> Option<Self> {
        let name = field.name;
        if field.zeek_type.shape != Shape::One {
            return row.list(name).map(|list| Self::of_text(&list.join(", ")));
        }
        match field.zeek_type.scalar {
            Scalar::Time | Scalar::Interval => row.nanos(name).map(|it| Self::Number(it.into())),
            Scalar::Count | Scalar::Port => row.count(name).map(|it| Self::Number(it.into())),
            Scalar::Int => row.int(name).map(|it| Self::Number(it.into())),
            Scalar::Bool => row.flag(name).map(|it| Self::Number(it.into())),
            Scalar::Double => row.text(name)?.parse().ok().map(fraction),
            // Those of version 4 come before those of version 6.
            Scalar::Addr => row.text(name)?.parse().ok().map(Self::Address),
            Scalar::Enum | Scalar::String => Some(Self::of_text(&row.text(name)?)),
        }
    }

    fn of_text(text: &str) -> Self {
        let text = text.to_lowercase();
        let end = text.floor_char_boundary(COMPARED);
        Self::Text(text.get(..end).unwrap_or_default().into())
    }
}

/// Bits of a number that are in order as numbers are (IEEE 754, 5.10).
fn fraction(value: f64) -> Key {
    let bits = value.to_bits().cast_signed();
    Key::Fraction(if bits < 0 { bits ^ i64::MAX } else { bits })
}

impl Rank {
    /// Bytes of memory that it takes beside itself.
    const fn heap(&self) -> usize {
        match &self.key {
            Some(Key::Text(text)) => text.len(),
            _ => 0,
        }
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        let keys = match (&self.key, &other.key) {
            (Some(own), Some(other)) if self.is_ascending => own.cmp(other),
            (Some(own), Some(other)) => other.cmp(own),
            // What is not known comes last, whichever order.
            (own, other) => own.is_none().cmp(&other.is_none()),
        };
        keys.then(self.number.cmp(&other.number))
    }
}

/// The first rows of an order: no more of them, and no more bytes, than there is room for.
pub(super) struct First<T> {
    kept: BinaryHeap<Kept<T>>,
    rows: usize,
    bytes: usize,
    /// Bytes of those that are kept.
    taken: usize,
    /// The first that had no room: none behind it is kept, or others would be missing between.
    end: Option<Rank>,
}

struct Kept<T> {
    rank: Rank,
    row: T,
    bytes: usize,
}

impl<T> PartialEq for Kept<T> {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl<T> Eq for Kept<T> {}

impl<T> PartialOrd for Kept<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Kept<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl<T> First<T> {
    /// Room for so many rows and bytes.
    pub(super) fn new(rows: usize, bytes: usize) -> Self {
        Self { kept: BinaryHeap::new(), rows, bytes, taken: 0, end: None }
    }

    /// Takes a row, which is made with its bytes only where there is room.
    pub(super) fn take(&mut self, rank: Rank, make: impl FnOnce() -> (T, usize)) {
        if self.end.as_ref().is_some_and(|end| *end <= rank) {
            return;
        }
        let (row, bytes) = make();
        let bytes = bytes.saturating_add(rank.heap());
        self.taken = self.taken.saturating_add(bytes);
        self.kept.push(Kept { rank, row, bytes });
        while self.kept.len() > self.rows || self.taken > self.bytes {
            let Some(last) = self.kept.pop() else { break };
            self.taken -= last.bytes;
            self.end = Some(last.rank);
        }
    }

    /// The rows in their order.
    pub(super) fn into_rows(self) -> impl Iterator<Item = T> {
        self.kept.into_sorted_vec().into_iter().map(|kept| kept.row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rows_have_none_missing_between() {
        let first = |rows, bytes| {
            let mut first = First::new(rows, bytes);
            for (number, key) in [5, 1, 4, 9, 2, 3, 7].into_iter().enumerate() {
                let key_of = Some(Key::Number(key));
                let rank = Rank { key: key_of, is_ascending: true, number: number as u64 };
                // The larger the key, the smaller the row: what was given up would fit later.
                first.take(rank, || (key, 10 - key as usize));
            }
            first.into_rows().collect::<Vec<_>>()
        };
        assert_eq!(first(3, usize::MAX), [1, 2, 3]);
        assert_eq!(first(99, 24), [1, 2, 3]);
        assert_eq!(first(99, 18), [1, 2]);
        assert!(first(0, 99).is_empty());
        assert_eq!(first(99, usize::MAX), [1, 2, 3, 4, 5, 7, 9]);
    }

    #[test]
    fn keys_of_texts_and_lists_are_short_and_count() {
        let long = "\u{c9}".repeat(40_000);
        let line = format!("{{\"query\":\"{long}\",\"answers\":[\"{long}\",\"{long}\"]}}\n");
        let mut reader = crate::logs::Reader::of(std::io::Cursor::new(line));
        let row = reader.next_row().unwrap();
        let log = crate::watch::data::row::log_named("dns").unwrap();
        for name in ["query", "answers"] {
            let column = log.fields.iter().find(|field| field.name == name).unwrap();
            let rank = Order { column, is_ascending: true }.rank(&row, 1);
            assert_eq!(rank.key, Some(Key::Text("\u{e9}".repeat(COMPARED / 2).into())), "{name}");
            let mut first = First::new(9, COMPARED);
            first.take(rank.clone(), || ((), 1));
            assert_eq!(first.into_rows().count(), 0, "one byte too many");
            let mut first = First::new(9, COMPARED);
            first.take(rank, || ((), 0));
            assert_eq!(first.into_rows().count(), 1);
        }
    }

    #[test]
    fn addresses_are_in_the_order_of_their_versions_and_numbers() {
        let addresses = ["0.0.0.1", "255.0.0.1", "::1", "2001:db8::2", "2001:db8::3"];
        let keys = addresses.map(|text| Key::Address(text.parse().unwrap()));
        assert!(keys.is_sorted_by(|one, other| one < other), "{keys:?}");
    }

    #[test]
    fn fractions_are_in_the_order_of_numbers() {
        let numbers = [f64::NEG_INFINITY, -2.5, -0.1, 0.0, 1e-9, 3.0, f64::INFINITY];
        let keys: Vec<_> = numbers.into_iter().map(fraction).collect();
        assert!(keys.is_sorted(), "{keys:?}");
    }
}
