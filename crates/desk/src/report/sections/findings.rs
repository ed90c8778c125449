//! Findings, indicators that were seen, and oddities.

use std::collections::BTreeMap;

use netsniff_console::number::exact;

use super::{About, Gather, endpoint, ranked};
use crate::logs::Row;
use crate::page::table::{Cell, Column, Table};
use crate::page::{Part, Section};
use crate::report::top::{Tally, Top};

/// What deserves a look.
#[derive(Default)]
pub(super) struct Findings {
    notices: Kept,
    kinds: Top<(String, String), Times>,
    indicators: Kept,
    oddities: Top<String, Times>,
}

/// The surest rows, those of one confidence in their order, and how many there were.
#[derive(Default)]
struct Kept {
    rows: BTreeMap<(usize, u64), Vec<Cell>>,
    all: u64,
}

/// How often.
#[derive(Debug, Default)]
struct Times(u64);

/// Findings that have a row.
const MOST: usize = 500;
/// Oddities that have one.
const ODDITIES: usize = 50;

impl Tally for Times {
    fn merge(&mut self, other: Self) {
        self.0 += other.0;
    }

    fn rank(&self) -> u128 {
        self.0.into()
    }
}

impl Kept {
    fn add(&mut self, order: usize, cells: impl FnOnce() -> Vec<Cell>) {
        self.all += 1;
        let key = (order, self.all);
        if self.rows.len() >= MOST {
            if self.rows.last_key_value().is_none_or(|(last, _)| *last < key) {
                return;
            }
            self.rows.pop_last();
        }
        self.rows.insert(key, cells());
    }

    /// Puts them into a table.
    fn table(self, mut table: Table) -> Option<Part> {
        let left = self.all - self.rows.len() as u64;
        if left > 0 {
            table.notes.push(format!(
                "{} of {}; the others are in the log.",
                exact(self.rows.len() as i128),
                exact(self.all.into())
            ));
        }
        table.rows = self.rows.into_values().collect();
        (self.all > 0).then_some(Part::Table(table))
    }
}

fn notice(row: &Row<'_>) -> Vec<Cell> {
    let confidence = row.text("confidence");
    let look = match confidence.as_deref() {
        Some("high") => Some("bad"),
        Some("medium") => Some("warn"),
        _ => None,
    };
    vec![
        Cell::maybe(row.text("note")).looking(look),
        Cell::maybe(confidence).looking(look),
        Cell::maybe(row.text("msg")),
        Cell::maybe(row.text("sub")),
        Cell::maybe(row.text("src")),
        Cell::maybe(endpoint(row, "dst", "p")),
        Cell::time(row.nanos("ts")),
        Cell::maybe(row.text("quality")),
        Cell::maybe(row.text("advice")),
        Cell::maybe(row.text("uid")),
    ]
}

fn notices_table() -> Table {
    Table {
        id: "findings".to_owned(),
        caption: "Findings, the surest first".to_owned(),
        columns: vec![
            Column::text("finding", "its kind"),
            Column::text("confidence", "how sure it is"),
            Column::text("what", ""),
            Column::text("more", ""),
            Column::text("from", ""),
            Column::text("to", ""),
            Column::text("time", "UTC"),
            Column::text("quality", "of the connection that shows it"),
            Column::text("what to do", ""),
            Column::text("uid", "of the connection"),
        ],
        is_searched: true,
        ..Table::default()
    }
}

fn kinds_table() -> Table {
    Table {
        id: "finding-kinds".to_owned(),
        caption: "Findings by kind, the most frequent first".to_owned(),
        columns: vec![
            Column::text("finding", "its kind"),
            Column::text("confidence", "how sure it is"),
            Column::number("times", "rows of notice"),
        ],
        ..Table::default()
    }
}

fn indicator(row: &Row<'_>) -> Vec<Cell> {
    vec![
        Cell::maybe(row.text("seen.indicator")).looking(Some("bad")),
        Cell::maybe(row.text("seen.indicator_type")),
        Cell::maybe(row.text("seen.where")),
        Cell::maybe(row.list("sources").map(|sources| sources.join(", "))),
        Cell::maybe(endpoint(row, "id.orig_h", "id.orig_p")),
        Cell::maybe(endpoint(row, "id.resp_h", "id.resp_p")),
        Cell::time(row.nanos("ts")),
        Cell::maybe(row.text("uid")),
    ]
}

fn indicators_table() -> Table {
    let columns =
        ["indicator", "type", "seen in", "sources", "originator", "responder", "time", "uid"];
    Table {
        id: "indicators".to_owned(),
        caption: "Indicators that were seen".to_owned(),
        columns: columns.iter().map(|name| Column::text(name, "")).collect(),
        ..Table::default()
    }
}

/// The surest first.
fn order(row: &Row<'_>) -> usize {
    let word = row.text("confidence").unwrap_or_default();
    ["high", "medium", "low"].iter().position(|known| *known == word).unwrap_or(3)
}

impl Gather for Findings {
    fn logs(&self) -> &'static [&'static str] {
        &["intel", "notice", "weird"]
    }

    fn row(&mut self, log: &str, row: &Row<'_>) {
        match log {
            "notice" => {
                let text =
                    |name: &str| row.text(name).unwrap_or_else(|| "not told".into()).into_owned();
                self.kinds.of((text("note"), text("confidence"))).0 += 1;
                self.notices.add(order(row), || notice(row));
            }
            "intel" => self.indicators.add(0, || indicator(row)),
            _ => {
                let name = row.text("name").unwrap_or_else(|| "not told".into());
                self.oddities.of(name.into_owned()).0 += 1;
            }
        }
    }

    fn section(self: Box<Self>, about: &About<'_>) -> Option<Section> {
        let mut lead = Vec::new();
        if self.notices.all == 0 {
            lead.push(if about.material.is_fresh {
                "Nothing was found that deserves a look.".to_owned()
            } else {
                "There is no row of notice: nobody looked (--notices), or nothing was found."
                    .to_owned()
            });
        }
        let mut parts: Vec<Part> = Vec::new();
        let kinds = self.kinds.ranked(ODDITIES);
        if !kinds.shown.is_empty() {
            parts.push(Part::Table(ranked(
                kinds_table(),
                &kinds,
                ("kind", "kinds"),
                |key, times| {
                    let (note, confidence) = key.map_or(("", ""), |(note, word)| (note, word));
                    vec![Cell::text(note), Cell::text(confidence), Cell::count(times.0)]
                },
            )));
        }
        parts.extend(self.notices.table(notices_table()));
        parts.extend(self.indicators.table(indicators_table()));
        let oddities = self.oddities.ranked(ODDITIES);
        if !oddities.shown.is_empty() {
            let table = Table {
                id: "oddities".to_owned(),
                caption: "Oddities, the most frequent first".to_owned(),
                columns: vec![
                    Column::text("name", "in Zeek's words"),
                    Column::number("times", "rows of weird"),
                ],
                ..Table::default()
            };
            parts.push(Part::Table(ranked(table, &oddities, ("kind", "kinds"), |name, times| {
                vec![Cell::text(name.map_or("", String::as_str)), Cell::count(times.0)]
            })));
        }
        Some(Section { id: "findings", title: "Findings".to_owned(), lead, parts })
    }
}
