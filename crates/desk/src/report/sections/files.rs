//! Files that were transferred.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use netsniff_analysis::record::Unit;
use netsniff_console::number::exact;

use super::{About, Extent, Gather, ranked};
use crate::logs::Row;
use crate::page::sum::Sum;
use crate::page::table::{Cell, Column, Table};
use crate::page::{Part, Section};
use crate::report::top::{Tally, Top};

/// Files by kind, and the largest.
pub(super) struct Files {
    rows: usize,
    kinds: Top<(String, String), Kind>,
    /// By bytes, the most first, and by row.
    largest: BTreeMap<(Reverse<u64>, u64), Vec<Cell>>,
    all: u64,
}

/// What is known of a kind.
#[derive(Debug, Default)]
struct Kind {
    files: u64,
    seen: Sum,
    missing: Sum,
    timed_out: u64,
}

impl Tally for Kind {
    fn merge(&mut self, other: Self) {
        self.files += other.files;
        self.seen.merge(other.seen);
        self.missing.merge(other.missing);
        self.timed_out += other.timed_out;
    }

    fn rank(&self) -> u128 {
        self.seen.rank()
    }
}

impl Files {
    pub(super) fn new(extent: Extent) -> Self {
        Self { rows: extent.rows, kinds: Top::default(), largest: BTreeMap::new(), all: 0 }
    }

    fn large(&mut self, row: &Row<'_>) {
        self.all += 1;
        let seen = row.count("seen_bytes");
        let key = (Reverse(seen.unwrap_or(0)), self.all);
        if self.largest.len() >= self.rows {
            if self.largest.last_key_value().is_none_or(|(last, _)| *last < key) {
                return;
            }
            self.largest.pop_last();
        }
        let hashes = ["sha256", "sha1", "md5"].iter().find_map(|kind| row.text(kind));
        let cells = vec![
            Cell::time(row.nanos("ts")),
            Cell::maybe(row.text("filename")),
            Cell::maybe(row.text("mime_type")),
            Cell::maybe(row.text("source")),
            Cell::of(seen, Unit::Bytes),
            Cell::of(row.count("total_bytes"), Unit::Bytes),
            Cell::of(row.count("missing_bytes"), Unit::Bytes).alarming("warn"),
            Cell::maybe(hashes),
            Cell::maybe(row.text("uid")),
        ];
        self.largest.insert(key, cells);
    }
}

impl Gather for Files {
    fn logs(&self) -> &'static [&'static str] {
        &["files"]
    }

    fn row(&mut self, _: &str, row: &Row<'_>) {
        let text = |name: &str| row.text(name).unwrap_or_else(|| "not known".into()).into_owned();
        let kind = self.kinds.of((text("mime_type"), text("source")));
        kind.files += 1;
        kind.seen.add(row.count("seen_bytes"));
        kind.missing.add(row.count("missing_bytes"));
        kind.timed_out += u64::from(row.flag("timedout").unwrap_or(false));
        self.large(row);
    }

    fn section(self: Box<Self>, _: &About<'_>) -> Option<Section> {
        if self.all == 0 {
            return None;
        }
        let kinds = self.kinds.ranked(self.rows);
        let table = Table {
            id: "file-kinds".to_owned(),
            caption: "Files by kind, the most bytes first".to_owned(),
            columns: vec![
                Column::text("kind", "by its first bytes"),
                Column::text("carried by", "the protocol"),
                Column::number("files", "rows of files"),
                Column::number("bytes", "that came: seen_bytes"),
                Column::number("missing", "bytes missing in between: missing_bytes"),
                Column::number("without end", "files whose end was never seen: timedout"),
            ],
            ..Table::default()
        };
        let by_kind = ranked(table, &kinds, ("kind", "kinds"), |key, kind| {
            let (mime, source) = key.map_or(("", ""), |(mime, source)| (mime, source));
            vec![
                Cell::text(mime),
                Cell::text(source),
                Cell::count(kind.files),
                Cell::sum(&kind.seen, Unit::Bytes),
                Cell::sum(&kind.missing, Unit::Bytes).alarming("warn"),
                Cell::count(kind.timed_out).alarming("warn"),
            ]
        });
        let shown = exact(self.largest.len() as i128);
        let largest = Table {
            id: "files".to_owned(),
            caption: format!("The largest files: {shown} of {}", exact(self.all.into())),
            columns: vec![
                Column::text("time", "of its first bytes, UTC"),
                Column::text("name", "that it came with"),
                Column::text("kind", "by its first bytes"),
                Column::text("carried by", "the protocol"),
                Column::number("bytes", "that came"),
                Column::number("should have", "where the protocol told"),
                Column::number("missing", "bytes missing in between"),
                Column::text("hash", "of its content, where that is complete and wanted"),
                Column::text("uid", "its connection"),
            ],
            rows: self.largest.into_values().collect(),
            ..Table::default()
        };
        Some(Section {
            id: "files",
            title: "Files".to_owned(),
            lead: Vec::new(),
            parts: vec![Part::Table(by_kind.with_bars(3)), Part::Table(largest)],
        })
    }
}
