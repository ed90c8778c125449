//! All logs of a run that goes on for long as JSON lines in one stream, which may stall.

use std::fs::File;
use std::io;
use std::sync::Arc;

use anyhow::Context as _;
use netsniff_analysis::SortKey;
use netsniff_packet::Timestamp;

use super::row_file::RowFile;
use super::stream::write_row;
use super::watch::Watch;
use super::{LiveSink, RowSink, SinkBooks};

/// Writes rows of [`Format::Json`](super::Format::Json) with `_path` before their own members.
///
/// Behind an error rows are refused until the next flush.
#[derive(Debug)]
pub struct LiveStream {
    rows: RowFile,
    name: &'static str,
    /// The logs of the rows that wait.
    logs: Vec<usize>,
    is_resting: bool,
    books: SinkBooks,
}

impl LiveStream {
    /// A stream into `file`, a pipe for one; `name` stands in error messages.
    #[must_use]
    pub fn new(file: File, name: &'static str) -> Self {
        let rows = RowFile::new(file, None);
        Self { rows, name, logs: Vec::new(), is_resting: false, books: SinkBooks::default() }
    }

    /// A stream to standard output.
    ///
    /// # Errors
    ///
    /// When that is closed.
    pub fn stdout() -> io::Result<Self> {
        use std::os::fd::AsFd as _;
        let own = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self::new(own.into(), "standard output"))
    }

    fn write_out(&mut self) -> anyhow::Result<()> {
        let out = self.rows.write_out();
        let written = usize::try_from(out.written).unwrap_or(usize::MAX);
        for (at, &log) in self.logs.iter().enumerate() {
            let books = &mut self.books;
            let tally = if at < written { &mut books.written } else { &mut books.refused };
            tally.add_row(log);
        }
        self.logs.clear();
        self.is_resting = out.result.is_err();
        out.result.with_context(|| format!("cannot write {}", self.name))
    }
}

impl RowSink for LiveStream {
    type Error = anyhow::Error;

    fn row(&mut self, log: usize, _: &SortKey, bytes: &[u8]) -> anyhow::Result<()> {
        if self.is_resting {
            self.books.refused.add_row(log);
            return Ok(());
        }
        let mut result = Ok(());
        self.rows.push_with(|waiting| result = write_row(waiting, log, bytes));
        self.logs.push(log);
        result?;
        if self.rows.has_room() { Ok(()) } else { self.write_out() }
    }
}

impl LiveSink for LiveStream {
    fn attend(&mut self, watch: Arc<Watch>) {
        self.rows.watch(watch);
    }

    fn flush(&mut self, _: Timestamp) -> anyhow::Result<()> {
        self.write_out()
    }

    fn end(&mut self, _: Timestamp) -> anyhow::Result<()> {
        self.write_out()
    }

    fn books(&self) -> &SinkBooks {
        &self.books
    }
}
