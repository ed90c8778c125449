//! All logs as JSON lines in one stream, each row with the name of its log.

use std::io::Write;

use anyhow::Context as _;
use netsniff_analysis::SortKey;
use netsniff_analysis::rows::LOGS;

use super::RowSink;

/// Writes rows of [`Format::Json`](super::Format::Json) with `_path` before their own members.
#[derive(Debug)]
pub struct Stream<W> {
    writer: W,
    name: &'static str,
}

impl<W: Write> Stream<W> {
    /// A stream into `writer`, which should be buffered; `name` stands in error messages.
    pub const fn new(writer: W, name: &'static str) -> Self {
        Self { writer, name }
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

/// Writes a row of JSON with the name of its log before its own members.
pub(super) fn write_row(writer: &mut impl Write, log: usize, row: &[u8]) -> anyhow::Result<()> {
    let log = LOGS.get(log).context("a row of a log that is not in the list")?;
    let members = row.strip_prefix(b"{").context("a row that is no JSON object")?;
    writer.write_all(b"{\"_path\":\"")?;
    writer.write_all(log.path.as_bytes())?;
    writer.write_all(if members.starts_with(b"}") { b"\"" } else { b"\"," })?;
    Ok(writer.write_all(members)?)
}

impl<W: Write> RowSink for Stream<W> {
    type Error = anyhow::Error;

    fn row(&mut self, log: usize, _: &SortKey, bytes: &[u8]) -> anyhow::Result<()> {
        write_row(&mut self.writer, log, bytes)
            .with_context(|| format!("cannot write {}", self.name))
    }
}
