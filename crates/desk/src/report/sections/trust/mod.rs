//! What this is, and whether to believe it.

mod books;
mod judge;

use std::collections::BTreeMap;

use netsniff_analysis::record::Unit;
use netsniff_analysis::rows::LOGS;
use netsniff_console::number::exact;

use self::books::CaptureBooks;
use self::judge::judge;
use super::About;
use crate::logs::Row;
use crate::page::sum::Sum;
use crate::page::table::{Cell, Column, Table};
use crate::page::{Part, Section, Shares, Tile, Verdict};

/// The logs that tell.
pub(super) const LOGS_THAT_TELL: [&str; 3] = ["capture", "conn", "notice"];

/// Gathers what tells whether rows can be believed.
#[derive(Debug, Default)]
pub(super) struct Trust {
    books: CaptureBooks,
    connections: u64,
    findings: u64,
    bytes: Sum,
    packets: Sum,
    /// Connections by the word of a column, by column.
    words: BTreeMap<&'static str, BTreeMap<String, u64>>,
    missed: Sum,
    missed_by_capture: Sum,
    missed_by_network: Sum,
    bad_checksums: Sum,
    /// Rows that stand for others.
    sampled: u64,
    span: Option<(i64, i64)>,
}

/// What it amounts to.
pub(super) struct Judged {
    pub(super) span: Option<(i64, i64)>,
    pub(super) verdict: Verdict,
    pub(super) trust: Section,
    pub(super) sources: Section,
}

/// Columns of `conn` whose words are counted. Each has few: what is none of them is counted together.
const WORDS: [&str; 2] = ["quality", "depth"];
/// What counts where a row has no word.
const NOT_TOLD: &str = "not told";
/// Words of a column that are told apart.
const MOST_WORDS: usize = 16;

impl Trust {
    pub(super) fn row(&mut self, log: &str, row: &Row<'_>) {
        match log {
            "capture" => self.books.row(row),
            "conn" => self.connection(row),
            _ => self.findings += 1,
        }
    }

    fn connection(&mut self, row: &Row<'_>) {
        self.connections += 1;
        for name in ["orig_ip_bytes", "resp_ip_bytes"] {
            self.bytes.add(row.count(name));
        }
        for name in ["orig_pkts", "resp_pkts"] {
            self.packets.add(row.count(name));
        }
        for column in WORDS {
            let word = row.text(column).unwrap_or_else(|| NOT_TOLD.into());
            let words = self.words.entry(column).or_default();
            let word = if words.len() < MOST_WORDS || words.contains_key(word.as_ref()) {
                word.into_owned()
            } else {
                "other".to_owned()
            };
            *words.entry(word).or_default() += 1;
        }
        self.missed.add(row.count("missed_bytes"));
        if row.text("proto").as_deref() == Some("tcp") {
            self.missed_by_capture.add(row.count("capture_missed_bytes"));
            self.missed_by_network.add(row.count("network_missed_bytes"));
        }
        self.bad_checksums.add(row.count("bad_checksums"));
        self.sampled += u64::from(row.count("sampling").is_some());
        if let Some(begin) = row.nanos("ts") {
            let end = begin.saturating_add(row.nanos("duration").unwrap_or(0).max(0));
            let (first, last) = self.span.unwrap_or((begin, end));
            self.span = Some((first.min(begin), last.max(end)));
        }
    }

    fn words(&self, column: &str, word: &str) -> u64 {
        self.words.get(column).and_then(|words| words.get(word)).copied().unwrap_or(0)
    }

    /// The span of time, the verdict, the section with all that it stands on, and that with what was read.
    pub(super) fn judged(self, about: &About<'_>) -> Judged {
        let mut verdict = judge(&self, about);
        verdict.tiles = self.tiles(about);
        let mut parts = vec![];
        if self.connections > 0 {
            parts.push(Part::Shares(self.shares("quality", "Connections by quality")));
            parts.push(Part::Shares(self.shares("depth", "Connections by depth of analysis")));
            parts.push(Part::Table(self.missing()));
        }
        parts.extend(self.books.table().map(Part::Table));
        let summary = about.material.summary.as_ref();
        parts.extend(summary.map(books::summary).map(Part::Table));
        let read = summary.map(books::sources).into_iter().chain([files(about)]);
        let sources = Section {
            id: "sources",
            title: "What was read".to_owned(),
            lead: Vec::new(),
            parts: read.map(Part::Table).collect(),
        };
        let trust = Section {
            id: "trust",
            title: "What the verdict stands on".to_owned(),
            lead: Vec::new(),
            parts,
        };
        Judged { span: self.span, verdict, trust, sources }
    }

    fn shares(&self, column: &'static str, title: &str) -> Shares {
        let look = |word: &str| match word {
            "clean" | "protocols" => "good",
            "touched" => "warn",
            "suspect" => "bad",
            _ => "unknown",
        };
        let mut words: Vec<_> = self.words.get(column).into_iter().flatten().collect();
        words.sort_by_key(|(word, _)| order_of(column, word));
        let share = |(word, count): (&String, &u64)| {
            (word.clone(), look(word), *count, doc(column, word).replace('`', ""))
        };
        Shares::new(title, words.into_iter().map(share).collect())
    }

    fn tiles(&self, about: &About<'_>) -> Vec<Tile> {
        let tile = |name: &str, cell: Cell| Tile { name: name.to_owned(), cell };
        let mut tiles = vec![
            tile("connections", Cell::count(self.connections)),
            tile("bytes of IP in them", Cell::sum(&self.bytes, Unit::Bytes)),
            tile("packets in them", Cell::sum(&self.packets, Unit::Packets)),
        ];
        if let Some((first, last)) = self.span {
            tiles.push(tile(
                "from the first packet to the last",
                Cell::span(last.checked_sub(first)),
            ));
        }
        let looked = about.material.is_fresh || about.material.folder.has("notice");
        tiles.push(if looked {
            tile("findings", Cell::count(self.findings))
        } else {
            tile(
                "findings",
                Cell::unset("there is no log notice: nobody looked, or nothing was found"),
            )
        });
        tiles
    }

    fn missing(&self) -> Table {
        let row = |name: &str, doc: &str, sum: &Sum, unit: Unit, look: &'static str| {
            vec![Cell::text(name), Cell::sum(sum, unit).alarming(look), Cell::text(doc)]
        };
        Table {
            id: "missing".to_owned(),
            caption: "What is missing or wrong in the connections".to_owned(),
            columns: vec![
                Column::text("what", ""),
                Column::number("how much", "the sum of the column"),
                Column::text("column of conn", ""),
            ],
            rows: vec![
                row(
                    "lost by the capture",
                    "capture_missed_bytes, of TCP",
                    &self.missed_by_capture,
                    Unit::Bytes,
                    "bad",
                ),
                row(
                    "lost by the network",
                    "network_missed_bytes, of TCP",
                    &self.missed_by_network,
                    Unit::Bytes,
                    "warn",
                ),
                row(
                    "missing, for whatever cause",
                    "missed_bytes",
                    &self.missed,
                    Unit::Bytes,
                    "warn",
                ),
                row(
                    "packets with wrong checksums",
                    "bad_checksums",
                    &self.bad_checksums,
                    Unit::Packets,
                    "warn",
                ),
            ],
            ..Table::default()
        }
    }
}

/// The files that were read.
fn files(about: &About<'_>) -> Table {
    let row = |file: &crate::report::reading::FileRead| {
        let said = file.faults.stopped.clone().unwrap_or_else(|| {
            if file.faults.is_open { "it has no last line".to_owned() } else { String::new() }
        });
        vec![
            Cell::text(&file.name),
            Cell::count(file.rows),
            Cell::count(file.faults.lines).alarming("bad"),
            Cell::count(file.faults.values).alarming("bad"),
            Cell::text(said),
        ]
    };
    let mut notes = Vec::new();
    let unread: Vec<_> = about.material.folder.unread.iter().map(String::as_str).collect();
    if !unread.is_empty() {
        notes.push(format!(
            "Not read, since they are no lines of columns or JSON: {}.",
            unread.join(", ")
        ));
    }
    Table {
        id: "logs".to_owned(),
        caption: "The logs that this page is made of".to_owned(),
        columns: vec![
            Column::text("file", ""),
            Column::number("rows", ""),
            Column::number("lines not understood", "no row was made of them"),
            Column::number("values not understood", "they count as not set"),
            Column::text("remark", ""),
        ],
        rows: about.reading.files.iter().map(row).collect(),
        notes,
        ..Table::default()
    }
}

/// What a word of a column of `conn` means.
fn doc(column: &str, word: &str) -> &'static str {
    let words = LOGS.iter().find(|log| log.path == "conn").map_or(&[][..], |log| log.fields);
    let words = words.iter().find(|field| field.name == column).map_or(&[][..], |it| it.words);
    words.iter().find(|known| known.name == word).map_or("", |known| known.doc)
}

/// Words in the order of their declaration, and others behind them.
fn order_of(column: &str, word: &str) -> (usize, String) {
    let fields = LOGS.iter().find(|log| log.path == "conn").map_or(&[][..], |log| log.fields);
    let words = fields.iter().find(|field| field.name == column).map_or(&[][..], |it| it.words);
    let at = words.iter().position(|known| known.name == word).unwrap_or(words.len());
    (at, word.to_owned())
}

/// A number with its word.
pub(super) fn things(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", exact(number.into()), if number == 1 { one } else { many })
}
