//! All logs of a run that goes on for long in one stream, which may stall.

use std::fs::File;
use std::io;
use std::sync::Arc;

use anyhow::Context as _;
use netsniff_analysis::SortKey;
use netsniff_packet::Timestamp;

use super::row_file::RowFile;
use super::stream::Appender;
use super::watch::Watch;
use super::{Format, LiveSink, RowSink, SinkBooks};

/// Writes rows with the name of their log in the column `_path`, before their own columns.
///
/// Behind an error rows are refused until the next flush.
#[derive(Debug)]
pub struct LiveStream {
    rows: RowFile,
    name: &'static str,
    appender: Appender,
    /// The logs of the rows that wait.
    logs: Vec<usize>,
    is_resting: bool,
    books: SinkBooks,
}

impl LiveStream {
    /// A stream into `file`, a pipe for one; `name` stands in error messages.
    ///
    /// # Errors
    ///
    /// Where rows of several logs cannot stand in one stream of `format` ([`Format::streams`]).
    pub fn new(file: File, name: &'static str, format: Format) -> anyhow::Result<Self> {
        let (rows, appender) = (RowFile::new(file, None), Appender::new(format)?);
        let (logs, books) = (Vec::new(), SinkBooks::default());
        Ok(Self { rows, name, appender, logs, is_resting: false, books })
    }

    /// A stream to standard output.
    ///
    /// # Errors
    ///
    /// When that is closed, and as [`Self::new`].
    pub fn stdout(format: Format) -> anyhow::Result<Self> {
        use std::os::fd::AsFd as _;
        let own = io::stdout().as_fd().try_clone_to_owned();
        Self::new(own.context("it is closed")?.into(), "standard output", format)
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
        if self.is_resting {
            self.appender.begin_anew();
        }
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
        let mut appended = Ok(());
        self.rows.push(1, |waiting| appended = self.appender.append(log, bytes, waiting));
        appended?;
        self.logs.push(log);
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
