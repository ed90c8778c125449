//! All logs in one stream, each row with the name of its log.

use std::io::Write;

use anyhow::Context as _;
use netsniff_analysis::SortKey;
use netsniff_analysis::rows::LOGS;

use super::format::StreamRow;
use super::{Format, RowSink};

/// Writes rows with the name of their log in the column `_path`, before their own columns.
#[derive(Debug)]
pub struct Stream<W> {
    writer: W,
    name: &'static str,
    append: StreamRow,
    /// A row with the name of its log.
    row: Vec<u8>,
}

/// How rows of `format` stand in a stream.
///
/// # Errors
///
/// Where they cannot.
pub(super) fn appending(format: Format) -> anyhow::Result<StreamRow> {
    format.stream().with_context(|| format!("{} has no streams of several logs", format.name()))
}

impl<W: Write> Stream<W> {
    /// A stream into `writer`, which should be buffered; `name` stands in error messages.
    ///
    /// # Errors
    ///
    /// Where rows of several logs cannot stand in one stream of `format` ([`Format::streams`]).
    pub fn new(writer: W, name: &'static str, format: Format) -> anyhow::Result<Self> {
        Ok(Self { writer, name, append: appending(format)?, row: Vec::new() })
    }

    /// Writes what is still buffered.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.writer.flush().with_context(|| format!("cannot write {}", self.name))
    }
}

impl<W: Write> RowSink for Stream<W> {
    type Error = anyhow::Error;

    fn row(&mut self, log: usize, _: &SortKey, bytes: &[u8]) -> anyhow::Result<()> {
        let log = LOGS.get(log).context("a row of a log that is not in the list")?;
        self.row.clear();
        (self.append)(log, bytes, &mut self.row);
        self.writer.write_all(&self.row).with_context(|| format!("cannot write {}", self.name))
    }
}
