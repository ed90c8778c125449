//! Who talks to whom, as a table of shades.

use std::collections::BTreeMap;

use netsniff_console::number::exact;
use serde::Serialize;

use super::sum::Sum;
use super::table::Cell;
use netsniff_analysis::record::Unit;

/// Bytes by originator and responder.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Matrix {
    /// What it shows.
    pub caption: String,
    /// The responders, with all others at the end.
    pub columns: Vec<String>,
    /// For each originator its name and its cells, the sum at the end.
    pub rows: Vec<(String, Vec<Cell>)>,
}

/// Hosts that have a row, and those that have a column.
const HOSTS: [usize; 2] = [10, 8];
/// Shades, from none to the most.
const SHADES: [&str; 6] = ["s1", "s2", "s3", "s4", "s5", "s6"];

impl Matrix {
    /// One of pairs, originator and responder, with the bytes between them; `rest` is of pairs that nobody names.
    pub(crate) fn new(pairs: &[((&str, &str), Sum)], rest: Sum) -> Self {
        let mut sums = [BTreeMap::<&str, Sum>::new(), BTreeMap::new()];
        for ((from, to), sum) in pairs {
            sums[0].entry(from).or_default().merge(*sum);
            sums[1].entry(to).or_default().merge(*sum);
        }
        let [from, to] = sums;
        let [from, to] = [Axis::new(from, HOSTS[0]), Axis::new(to, HOSTS[1])];
        let mut cells = vec![vec![Sum::default(); to.len()]; from.len()];
        let places =
            pairs.iter().map(|((one, other), sum)| (from.place(one), to.place(other), sum));
        let nowhere = (from.shown.len(), to.shown.len(), &rest);
        for (row, column, sum) in places.chain([nowhere].into_iter().filter(|_| rest.rows() > 0)) {
            if let Some(cell) = cells.get_mut(row).and_then(|row| row.get_mut(column)) {
                cell.merge(*sum);
            }
        }
        let most = cells.iter().flatten().map(Sum::rank).max().unwrap_or(0);
        let rows = from.names(rest).into_iter().zip(&cells).map(|(name, row)| {
            let mut all = Sum::default();
            row.iter().for_each(|sum| all.merge(*sum));
            let shown = row.iter().map(|sum| shaded(sum, most));
            (name, shown.chain([Cell::sum(&all, Unit::Bytes)]).collect())
        });
        Self { caption: String::new(), rows: rows.collect(), columns: to.names(rest) }
    }
}

/// The hosts of one side.
struct Axis<'a> {
    shown: Vec<&'a str>,
    others: usize,
}

impl<'a> Axis<'a> {
    fn new(sums: BTreeMap<&'a str, Sum>, most: usize) -> Self {
        let mut all: Vec<_> = sums.into_iter().collect();
        all.sort_by(|one, other| other.1.rank().cmp(&one.1.rank()).then(one.0.cmp(other.0)));
        let shown: Vec<_> = all.iter().take(most).map(|(name, _)| *name).collect();
        Self { others: all.len() - shown.len(), shown }
    }

    const fn len(&self) -> usize {
        // All others have a place, too.
        self.shown.len() + 1
    }

    fn place(&self, name: &str) -> usize {
        self.shown.iter().position(|shown| *shown == name).unwrap_or(self.shown.len())
    }

    fn names(&self, rest: Sum) -> Vec<String> {
        let mut names: Vec<_> = self.shown.iter().map(|name| (*name).to_owned()).collect();
        names.push(if rest.rows() > 0 {
            "all others".to_owned()
        } else {
            format!("{} others", exact(self.others as i128))
        });
        names
    }
}

/// A sum in its shade: each shade is ten times the one before.
fn shaded(sum: &Sum, most: u128) -> Cell {
    if sum.rows() == 0 {
        return Cell { title: Some("no connection".to_owned()), ..Cell::default() };
    }
    let cell = Cell::sum(sum, Unit::Bytes);
    let below = most
        .checked_div(sum.rank())
        .map_or(SHADES.len(), |ratio| ratio.checked_ilog10().map_or(0, |power| power as usize));
    let shade = SHADES.len().saturating_sub(1).saturating_sub(below);
    cell.looking(SHADES.get(shade).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(value: u64) -> Sum {
        let mut sum = Sum::default();
        sum.add(Some(value));
        sum
    }

    #[test]
    fn every_byte_is_in_one_cell() {
        let names: Vec<String> = (0..30).map(|at| format!("h{at:02}")).collect();
        let mut pairs = Vec::new();
        for (at, name) in names.iter().enumerate() {
            pairs.push(((name.as_str(), names[at / 2].as_str()), sum(at as u64 + 1)));
        }
        let matrix = Matrix::new(&pairs, sum(1000));
        assert_eq!((matrix.rows.len(), matrix.columns.len()), (11, 9));
        let value =
            |cell: &Cell| cell.value.as_ref().map_or(0, |value| value.parse::<u64>().unwrap());
        let cells = matrix.rows.iter().flat_map(|(_, row)| &row[..row.len() - 1]).map(value);
        let margins = matrix.rows.iter().map(|(_, row)| value(&row[row.len() - 1]));
        assert_eq!(cells.sum::<u64>(), 30 * 31 / 2 + 1000);
        assert_eq!(margins.sum::<u64>(), 30 * 31 / 2 + 1000);
        assert_eq!(matrix.rows[0].0, "h29");
        assert_eq!(matrix.columns[8], "all others");
    }
}
