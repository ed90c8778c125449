//! Two logs, row by row.

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use super::columns::*;
use super::log::Row;

/// Puts the elements of sets in one order.
pub(crate) fn sort_sets(rows: &mut [Row], columns: &[&str]) {
    for row in rows {
        for column in columns {
            let cell = row.get_mut(*column).unwrap_or_else(|| panic!("no column {column}"));
            let mut elements: Vec<&str> = cell.split(',').collect();
            elements.sort_unstable();
            *cell = elements.join(",");
        }
    }
}

/// What stands in place of cells that are not compared.
pub(crate) const ANY: &str = "*any*";

/// A row as far as it is compared: its name and the cells that are compared.
#[derive(Clone, Debug)]
struct Reduced<'a> {
    key: String,
    cells: Vec<&'a str>,
}

/// What is not the same for one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// Zeek has a row that we do not have.
    Missing,
    /// We have a row that Zeek does not have.
    Extra,
    /// Both have a row, with other cells in these columns: name, Zeek's cell, ours.
    Cells(Vec<(&'static str, String, String)>),
}

/// How two logs compare.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comparison {
    /// Rows, as many as the longer log has.
    pub(crate) rows: usize,
    /// Rows that are the same in both.
    pub(crate) same: usize,
    /// What is not, with the names of the rows.
    pub(crate) differences: Vec<(String, Difference)>,
}

impl Comparison {
    /// Rows that are not the same; a missing one and an extra one count together.
    pub(crate) fn differing(&self) -> usize {
        self.rows - self.same
    }
}

/// Compares the rows of two logs as multisets, without the columns in `without`.
pub(crate) fn compare(
    columns: Columns,
    theirs: &[Row],
    ours: &[Row],
    without: &BTreeSet<&str>,
) -> Comparison {
    let mut comparison = Comparison { rows: theirs.len().max(ours.len()), ..Default::default() };
    let mut groups: BTreeMap<String, [Vec<Reduced<'_>>; 2]> = BTreeMap::new();
    for (side, rows) in [theirs, ours].into_iter().enumerate() {
        for row in rows {
            let reduced = reduce(columns, row, without);
            groups.entry(reduced.key.clone()).or_default()[side].push(reduced);
        }
    }
    for (key, [mut theirs, ours]) in groups {
        let mut unmatched = Vec::new();
        for own in ours {
            match theirs.iter().position(|row| unequal(columns, row, &own).is_empty()) {
                Some(at) => {
                    theirs.swap_remove(at);
                    comparison.same += 1;
                }
                None => unmatched.push(own),
            }
        }
        let mut theirs = theirs.into_iter();
        let mut tell = |difference| comparison.differences.push((key.clone(), difference));
        for own in unmatched {
            match theirs.next() {
                Some(row) => tell(Difference::Cells(unequal(columns, &row, &own))),
                None => tell(Difference::Extra),
            }
        }
        theirs.for_each(|_| tell(Difference::Missing));
    }
    comparison
}

fn reduce<'a>(columns: Columns, row: &'a Row, without: &BTreeSet<&str>) -> Reduced<'a> {
    let cell = |name: &&str| {
        if without.contains(*name) {
            return ANY;
        }
        row.get(*name).unwrap_or_else(|| panic!("a log has no column {name}")).as_str()
    };
    Reduced {
        key: columns.key.iter().map(cell).collect::<Vec<_>>().join(" "),
        cells: columns.compared.iter().map(cell).collect(),
    }
}

fn unequal(
    columns: Columns,
    theirs: &Reduced<'_>,
    ours: &Reduced<'_>,
) -> Vec<(&'static str, String, String)> {
    let cells = theirs.cells.iter().zip(&ours.cells);
    let is_same = |name: &str, theirs: &str, ours: &str| {
        theirs == ours
            || theirs == ANY
            || (["duration", "rtt"].contains(&name) && are_near(theirs, ours))
    };
    let named = columns.compared.iter().zip(cells);
    named
        .filter(|(name, (theirs, ours))| !is_same(name, theirs, ours))
        .map(|(name, (theirs, ours))| (*name, (*theirs).to_owned(), (*ours).to_owned()))
        .collect()
}

/// Whether two durations are not further apart than a microsecond: Zeek computes with floating
/// point.
fn are_near(a: &str, b: &str) -> bool {
    match (micros(a), micros(b)) {
        (Some(a), Some(b)) => a.abs_diff(b) <= 1,
        _ => false,
    }
}

fn micros(text: &str) -> Option<i64> {
    let (whole, decimals) = text.split_once('.')?;
    if decimals.len() != 6 {
        return None;
    }
    whole.parse::<i64>().ok()?.checked_mul(1_000_000)?.checked_add(decimals.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(changes: &[(&str, &str)]) -> Row {
        let mut row: Row = CONN
            .key
            .iter()
            .chain(CONN.compared)
            .map(|&name| (name.to_owned(), "1".to_owned()))
            .collect();
        row.insert("duration".to_owned(), "0.000010".to_owned());
        for (name, cell) in changes {
            assert!(row.insert((*name).to_owned(), (*cell).to_owned()).is_some(), "{name}");
        }
        row
    }

    fn compared(theirs: &[Row], ours: &[Row]) -> Comparison {
        compare(CONN, theirs, ours, &BTreeSet::new())
    }

    #[test]
    fn rows_match_in_any_order_and_as_often_as_they_are_there() {
        let (a, b) = (row(&[]), row(&[("history", "Dd")]));
        let same = compared(&[a.clone(), b.clone(), a.clone()], &[a.clone(), a.clone(), b.clone()]);
        assert_eq!((same.rows, same.same), (3, 3));
        let once = compared(&[a.clone(), a.clone(), b.clone()], &[a, b]);
        assert_eq!((once.rows, once.same), (3, 2));
        assert_eq!(once.differences[0].1, Difference::Missing);
    }

    #[test]
    fn every_column_is_seen_to_differ() {
        for &name in CONN.compared {
            let other = compared(&[row(&[])], &[row(&[(name, "2")])]);
            let Difference::Cells(cells) = &other.differences[0].1 else { panic!("{name}") };
            assert_eq!((cells.len(), cells[0].0, other.differing()), (1, name, 1));
        }
        for &name in CONN.key {
            let other = compared(&[row(&[])], &[row(&[(name, "2")])]);
            assert_eq!((other.differing(), other.differences.len()), (1, 2), "{name}");
        }
    }

    #[test]
    fn what_is_not_compared_matches_anything() {
        for (service, same) in [(ANY, 1), ("dns", 0)] {
            let comparison = compared(&[row(&[("service", service)])], &[row(&[])]);
            assert_eq!(comparison.same, same, "{service}");
        }
    }

    #[test]
    fn durations_may_be_a_microsecond_apart() {
        for (duration, same) in
            [("0.000009", 1), ("0.000011", 1), ("0.000012", 0), ("-", 0), ("1.000010", 0)]
        {
            let comparison = compared(&[row(&[])], &[row(&[("duration", duration)])]);
            assert_eq!(comparison.same, same, "{duration}");
        }
    }
}
