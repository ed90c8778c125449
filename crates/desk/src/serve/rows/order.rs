//! What rows are in order by: values of a column as its type has them.

use core::cmp::Ordering;
use std::net::IpAddr;

use netsniff_analysis::record::{FieldInfo, Scalar, Shape};

use crate::logs::Row;

/// Bytes of a text that count for its order.
const COMPARED: usize = 64;

/// The value of a column, to be compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
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
    pub(super) fn of(row: &Row<'_>, field: &FieldInfo) -> Option<Self> {
        let name = field.name;
        if field.zeek_type.shape != Shape::One {
            return row.list(name).map(|list| Self::Text(list.join(", ").into()));
        }
        match field.zeek_type.scalar {
            Scalar::Time | Scalar::Interval => row.nanos(name).map(|it| Self::Number(it.into())),
            Scalar::Count | Scalar::Port => row.count(name).map(|it| Self::Number(it.into())),
            Scalar::Int => row.int(name).map(|it| Self::Number(it.into())),
            Scalar::Bool => row.flag(name).map(|it| Self::Number(it.into())),
            Scalar::Double => row.text(name)?.parse().ok().map(fraction),
            // Those of version 4 come before those of version 6.
            Scalar::Addr => row.text(name)?.parse().ok().map(Self::Address),
            Scalar::Enum | Scalar::String => {
                let text = row.text(name)?.to_lowercase();
                let end = text.floor_char_boundary(COMPARED);
                Some(Self::Text(text.get(..end).unwrap_or_default().into()))
            }
        }
    }
}

/// Bits of a number that are in order as numbers are (IEEE 754, 5.10).
fn fraction(value: f64) -> Key {
    let bits = value.to_bits().cast_signed();
    Key::Fraction(if bits < 0 { bits ^ i64::MAX } else { bits })
}

impl Rank {
    pub(super) const fn of(key: Option<Key>, is_ascending: bool, number: u64) -> Self {
        Self { key, is_ascending, number }
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

#[cfg(test)]
mod tests {
    use super::*;

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
