//! The books: of a live capture by its log, of files by the summary of their run.

use std::collections::BTreeMap;

use netsniff_analysis::record::Unit;

use crate::logs::Row;
use crate::page::table::{Cell, Column, Table};
use crate::report::material::{BookLine, Source, Summary};

/// The last row of each interface and run.
#[derive(Debug, Default)]
pub(super) struct CaptureBooks {
    /// By interface and run, counted from 1.
    last: BTreeMap<(String, u64), Line>,
    /// Runs of which nothing is kept.
    pub(super) left_out: u64,
}

/// What a row says.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) ts: Option<i64>,
    pub(super) is_final: bool,
    pub(super) verdict: Option<String>,
    pub(super) arrived: Option<u64>,
    pub(super) lost_interface: Option<u64>,
    pub(super) ring_dropped: Option<u64>,
    pub(super) refused: Option<u64>,
    pub(super) delivered: Option<u64>,
    pub(super) analysed: Option<u64>,
    pub(super) unexplained: Option<i64>,
    pub(super) unexplained_bound: Option<u64>,
    pub(super) refused_rows: Option<u64>,
}

/// Interfaces and runs that are told apart.
const MOST: usize = 1000;

impl CaptureBooks {
    /// Takes a row: those of interfaces are the sums of their rings.
    pub(super) fn row(&mut self, row: &Row<'_>) {
        if row.text("scope").as_deref() != Some("interface") {
            return;
        }
        let name = row.text("interface").unwrap_or_else(|| "not told".into()).into_owned();
        let line = Line {
            ts: row.nanos("ts"),
            is_final: row.flag("final").unwrap_or(false),
            verdict: row.text("verdict").map(std::borrow::Cow::into_owned),
            arrived: row.count("arrived"),
            lost_interface: row.count("lost_interface"),
            ring_dropped: row.count("ring_dropped"),
            refused: row.count("refused"),
            delivered: row.count("delivered"),
            analysed: row.count("analysed"),
            unexplained: row.int("unexplained"),
            unexplained_bound: row.count("unexplained_bound"),
            refused_rows: row.count("refused_rows"),
        };
        let of_name = (name.clone(), 0)..=(name.clone(), u64::MAX);
        let (run, begins) = match self.last.range(of_name).next_back() {
            None => (0, true),
            // Counts are totals since the start of a run: they never fall.
            Some(((_, run), last)) => (*run, last.is_final || line.delivered < last.delivered),
        };
        let key = (name, if begins { run + 1 } else { run });
        if self.last.len() < MOST || self.last.contains_key(&key) {
            self.last.insert(key, line);
        } else {
            self.left_out += 1;
        }
    }

    /// The interfaces with the last row of each of their runs.
    pub(super) fn lines(&self) -> impl Iterator<Item = (&str, &Line)> {
        self.last.iter().map(|((name, _), line)| (name.as_str(), line))
    }

    /// The books as a table.
    pub(super) fn table(&self) -> Option<Table> {
        if self.last.is_empty() {
            return None;
        }
        let number = |name: &str, doc: &str| Column::number(name, doc);
        Some(Table {
            id: "books".to_owned(),
            caption: "The books of the live capture, in packets".to_owned(),
            columns: vec![
                Column::text("interface", ""),
                Column::text("up to", "time of the last row, UTC"),
                Column::text("final", "whether traffic had been stopped and every ring was empty"),
                number("arrived", "by the interface's own counters"),
                number("lost by the interface", "lost_interface"),
                number("dropped for want of room", "ring_dropped"),
                number("delivered", ""),
                number("refused", "by the hand-off to the analysis"),
                number("analysed", ""),
                number("unexplained", "what is left of those that arrived"),
                number("off by", "unexplained_bound: by so many any difference may be off"),
                number("rows refused", "rows of logs for which there was no room"),
                Column::text("verdict", "whether the capture can be believed"),
            ],
            rows: self.lines().map(|(name, line)| line.cells(name)).collect(),
            ..Table::default()
        })
    }
}

impl Line {
    fn cells(&self, name: &str) -> Vec<Cell> {
        let packets = |value: Option<u64>| Cell::of(value, Unit::Packets);
        let unexplained = match self.unexplained {
            None => Cell::unset("a counter that it needs is not available"),
            Some(number) => Cell {
                text: netsniff_console::number::exact(number.into()),
                value: Some(number.to_string()),
                ..Cell::default()
            },
        };
        let look = match self.verdict.as_deref() {
            Some("good") => "good",
            Some("degraded") => "warn",
            Some("bad") => "bad",
            _ => "unknown",
        };
        vec![
            Cell::text(name),
            Cell::time(self.ts),
            Cell::text(if self.is_final { "yes" } else { "no" }),
            packets(self.arrived),
            packets(self.lost_interface).alarming("bad"),
            packets(self.ring_dropped).alarming("bad"),
            packets(self.delivered),
            packets(self.refused).alarming("bad"),
            packets(self.analysed),
            unexplained,
            packets(self.unexplained_bound),
            Cell::of(self.refused_rows, Unit::None).alarming("bad"),
            Cell::maybe(self.verdict.as_deref()).looking(Some(look)),
        ]
    }
}

/// The books of a run by its summary.
pub(super) fn summary(summary: &Summary) -> Table {
    let row = |name: &str, cell: Cell| vec![Cell::text(name), cell];
    let line = |line: &BookLine, look: Option<&'static str>| {
        let cell = match line.packets {
            Some(packets) => Cell::count(packets),
            None => Cell::unset("nobody can tell"),
        };
        row(&line.name, look.map_or_else(|| cell.clone(), |look| cell.clone().alarming(look)))
    };
    let read = summary.books.read.or(summary.input.packets);
    let mut rows = vec![row("read", Cell::of(read, Unit::Packets))];
    rows.extend(summary.books.parts.iter().map(|part| line(part, None)));
    let unexplained = match summary.books.unexplained {
        None => Cell::unset("nobody can tell"),
        Some(number) => Cell {
            text: netsniff_console::number::exact(number.into()),
            value: Some(number.to_string()),
            ..Cell::default()
        },
    };
    rows.push(row("unexplained", unexplained.alarming("bad")));
    rows.extend(summary.books.lost.iter().map(|part| line(part, Some("bad"))));
    Table {
        id: "books-of-files".to_owned(),
        caption: "Where every packet went, as the run's summary tells".to_owned(),
        columns: vec![Column::text("what became of it", ""), Column::number("packets", "")],
        rows,
        notes: vec![
            "Packets that were lost never came in: they are no part of those read.".to_owned(),
        ],
        ..Table::default()
    }
}

/// The captures of a run by its summary.
pub(super) fn sources(summary: &Summary) -> Table {
    let row = |source: &Source| {
        vec![
            Cell::text(&source.name),
            Cell::of(source.packets, Unit::Packets),
            Cell::of(source.damage_count, Unit::None).alarming("bad"),
        ]
    };
    let all =
        vec![Cell::text("all"), Cell::of(summary.input.packets, Unit::Packets), Cell::default()];
    let bytes = Cell::of(summary.input.wire_bytes, Unit::Bytes);
    let said = bytes.title.map_or(bytes.text, |title| title);
    Table {
        id: "sources".to_owned(),
        caption: "Captures".to_owned(),
        columns: vec![
            Column::text("file or interface", ""),
            Column::number("packets", ""),
            Column::number("places with damage", ""),
        ],
        rows: summary.input.sources.iter().map(row).collect(),
        foot: vec![all],
        notes: vec![format!("On the wire: {said}.")],
        ..Table::default()
    }
}
