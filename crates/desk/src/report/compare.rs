//! Two runs side by side: what is more, what is less, and what only one of them has.

use std::collections::BTreeMap;

use netsniff_console::number::exact;

use super::sections::Sections;
use crate::page::table::{Cell, Column, Table};
use crate::page::{Part, Section, Tile};

/// The tables that are compared, with the columns that tell which row is which.
const COMPARED: [(&str, usize); 12] = [
    ("missing", 1),
    ("books-of-files", 1),
    ("finding-kinds", 2),
    ("oddities", 1),
    ("services", 1),
    ("hosts", 1),
    ("tcp", 1),
    ("dns", 1),
    ("dns-failed", 2),
    ("tls-versions", 1),
    ("tls-failures", 2),
    ("file-kinds", 2),
];
/// Values that differ and have a row, in each table.
const MOST: usize = 300;

/// The sections of a page on two runs.
pub(super) fn compared(names: [&str; 2], runs: [&Sections; 2]) -> Vec<Section> {
    let [one, other] = runs.map(|run| run.verdict.tiles.as_slice());
    let mut sections = vec![Section {
        id: "totals",
        title: "All together".to_owned(),
        lead: Vec::new(),
        parts: vec![Part::Table(totals(names, one, other))],
    }];
    // Each section once, in the order of the first run, and then those that only the second has.
    let mut ids: Vec<(&'static str, &str)> = Vec::new();
    for section in runs.iter().flat_map(|run| &run.sections) {
        if !ids.iter().any(|(id, _)| *id == section.id) {
            ids.push((section.id, &section.title));
        }
    }
    for (id, title) in ids {
        let parts: Vec<_> = COMPARED
            .iter()
            .filter_map(|(table, keys)| {
                let of = runs.map(|run| table_of(run, id, table));
                of.iter().any(Option::is_some).then(|| Part::Table(joined(names, of, *keys)))
            })
            .collect();
        if !parts.is_empty() {
            sections.push(Section { id, title: title.to_owned(), lead: Vec::new(), parts });
        }
    }
    sections
}

fn table_of<'a>(run: &'a Sections, section: &str, id: &str) -> Option<&'a Table> {
    let section = run.sections.iter().find(|it| it.id == section)?;
    section.parts.iter().find_map(|part| match part {
        Part::Table(table) if table.id == id => Some(table),
        _ => None,
    })
}

fn columns(first: Vec<Column>, names: [&str; 2]) -> Vec<Column> {
    let mut columns = first;
    columns.extend(names.map(|name| Column::number(name, "")));
    columns.push(Column::number("change", "from the first to the second"));
    columns
}

fn totals(names: [&str; 2], one: &[Tile], other: &[Tile]) -> Table {
    let row = |tile: &Tile| {
        let second = other.iter().find(|it| it.name == tile.name);
        let second = second.map_or_else(|| Cell::unset("it is not told"), |it| it.cell.clone());
        let change = change(&tile.cell, &second);
        vec![Cell::text(&tile.name), tile.cell.clone(), second, change]
    };
    Table {
        id: "totals".to_owned(),
        caption: "Everything".to_owned(),
        columns: columns(vec![Column::text("what", "")], names),
        rows: one.iter().map(row).collect(),
        ..Table::default()
    }
}

/// The values of two tables that differ.
fn joined(names: [&str; 2], tables: [Option<&Table>; 2], keys: usize) -> Table {
    let Some(shape) = tables[0].or(tables[1]) else { return Table::default() };
    let mut first = shape.columns.get(..keys).unwrap_or_default().to_vec();
    first.push(Column::text("value", "the column that differs"));
    let mut order: Vec<Vec<String>> = Vec::new();
    let mut found: BTreeMap<Vec<String>, [Option<&[Cell]>; 2]> = BTreeMap::new();
    for (side, table) in tables.iter().enumerate() {
        for row in table.iter().flat_map(|table| &table.rows) {
            let key: Vec<_> = row.iter().take(keys).map(|cell| cell.text.clone()).collect();
            let sides = found.entry(key.clone()).or_insert_with(|| {
                order.push(key);
                [None, None]
            });
            sides[side] = Some(row);
        }
    }
    let (mut rows, mut same, mut left) = (Vec::new(), 0_u64, 0_u64);
    for key in &order {
        let Some(sides) = found.get(key) else { continue };
        for (at, column) in shape.columns.iter().enumerate().filter(|(_, it)| it.is_number) {
            let value = |side: usize| match sides[side] {
                Some(row) => row.get(at).cloned().unwrap_or_default(),
                None => absent(tables[side]),
            };
            let [one, other] = [value(0), value(1)];
            if one.text == other.text && one.value == other.value {
                same += 1;
            } else if rows.len() < MOST {
                let mut row: Vec<_> = key.iter().map(Cell::text).collect();
                row.push(Cell::text(&column.name));
                let change = change(&one, &other);
                row.extend([one, other, change].map(|cell| Cell { bar: None, ..cell }));
                rows.push(row);
            } else {
                left += 1;
            }
        }
    }
    let mut notes = vec![format!("Equal in both: {} values.", exact(same.into()))];
    if left > 0 {
        notes.push(format!("{} more values differ and have no row.", exact(left.into())));
    }
    Table {
        id: shape.id.clone(),
        caption: shape.caption.clone(),
        columns: columns(first, names),
        rows,
        notes,
        is_searched: true,
        ..Table::default()
    }
}

/// What a run has that has no row for something.
fn absent(table: Option<&Table>) -> Cell {
    match table {
        Some(table) if !table.foot.is_empty() => Cell::unset("it may be among the others"),
        _ => Cell { title: Some("it has no row".to_owned()), ..Cell::text("none") },
    }
}

/// How a value changed, where both are known.
fn change(one: &Cell, other: &Cell) -> Cell {
    let none = |cell: &Cell| cell.text == "none";
    let number = |cell: &Cell| cell.value.as_ref()?.parse::<i128>().ok();
    if [one, other].iter().any(|cell| cell.text.starts_with('\u{2265}')) {
        return Cell::unset("one of them is a lower bound");
    }
    match (number(one), number(other)) {
        (Some(0), Some(0)) => Cell::text("none"),
        (Some(0), Some(_)) => Cell::text("new"),
        (Some(before), Some(after)) => ratio(before, after),
        (None, Some(_)) if none(one) => Cell::text("new"),
        (Some(_), None) if none(other) => Cell::text("gone"),
        _ => Cell::unset("one of them is not known"),
    }
}

fn ratio(before: i128, after: i128) -> Cell {
    // Thousandths, cut: a tenth of a percent is what is shown.
    let change = after.saturating_sub(before).saturating_mul(1000).checked_div(before.abs());
    let Some(change) = change else { return Cell::unset("it is too large to tell") };
    let sign = match (after - before).signum() {
        1 => "+",
        -1 => "\u{2212}",
        _ => "",
    };
    let text = match change.unsigned_abs() {
        0 if after != before => format!("{sign}<0.1 %"),
        change => format!(
            "{sign}{}.{} %",
            exact((change / 1000 * 100 + change % 1000 / 10) as i128),
            change % 10
        ),
    };
    Cell { text, value: Some(change.to_string()), ..Cell::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_where_both_are_known() {
        let count = |count: u128| Cell::count(count);
        let none = absent(None);
        for (one, other, expected) in [
            (count(100), count(150), "+50.0 %"),
            (count(1000), count(999), "\u{2212}0.1 %"),
            (count(1000), count(1), "\u{2212}99.9 %"),
            (count(100_000), count(100_001), "+<0.1 %"),
            (count(1), count(21), "+2,000.0 %"),
            (count(5), count(5), "0.0 %"),
            (count(0), count(7), "new"),
            (none.clone(), count(7), "new"),
            (count(7), none, "gone"),
            (count(7), Cell::unset(""), "\u{2013}"),
            (count(7).at_least("why"), count(9), "\u{2013}"),
        ] {
            assert_eq!(change(&one, &other).text, expected, "{one:?} {other:?}");
        }
    }

    #[test]
    fn values_that_differ_have_a_row() {
        let table = |rows: &[(&str, u128)], foot: bool| Table {
            columns: vec![Column::text("k", ""), Column::number("n", "")],
            rows: rows.iter().map(|(k, n)| vec![Cell::text(k), Cell::count(*n)]).collect(),
            foot: if foot { vec![vec![Cell::text("others")]] } else { Vec::new() },
            ..Table::default()
        };
        let one = table(&[("a", 1), ("b", 2), ("c", 3)], false);
        let other = table(&[("b", 2), ("c", 6), ("d", 4)], true);
        let joined = joined(["x", "y"], [Some(&one), Some(&other)], 1);
        let rows: Vec<Vec<&str>> = joined
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| cell.text.as_str()).collect())
            .collect();
        let expected = [
            vec!["a", "n", "1", "\u{2013}", "\u{2013}"],
            vec!["c", "n", "3", "6", "+100.0 %"],
            vec!["d", "n", "none", "4", "new"],
        ];
        assert_eq!(rows, expected);
        assert_eq!(joined.notes, ["Equal in both: 1 values."]);
    }
}
