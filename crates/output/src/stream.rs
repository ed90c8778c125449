//! All logs in one stream, each row with the name of its log.

use std::io::Write;

use anyhow::Context as _;
use netsniff_analysis::SortKey;
use netsniff_analysis::rows::LOGS;

use super::format::StreamLayout;
use super::{Format, RowSink};

/// Appends rows of all logs, the first one of each log behind what begins it.
#[derive(Debug)]
pub(super) struct Appender {
    layout: StreamLayout,
    /// Which logs have begun.
    begun: Vec<bool>,
}

impl Appender {
    /// For rows that are rendered as `format`.
    ///
    /// # Errors
    ///
    /// Where rows of several logs cannot stand in one stream of it.
    pub(super) fn new(format: Format) -> anyhow::Result<Self> {
        let layout = format.stream();
        let layout =
            layout.with_context(|| format!("{} has no streams of several logs", format.name()))?;
        Ok(Self { layout, begun: vec![false; LOGS.len()] })
    }

    /// Appends a row of the log `at`.
    pub(super) fn append(
        &mut self,
        at: usize,
        row: &[u8],
        out: &mut Vec<u8>,
    ) -> anyhow::Result<()> {
        let (Some(log), Some(has_begun)) = (LOGS.get(at), self.begun.get_mut(at)) else {
            anyhow::bail!("a row of a log that is not in the list");
        };
        if !core::mem::replace(has_begun, true) {
            (self.layout.begin)(log, out);
        }
        (self.layout.row)(log, row, out);
        Ok(())
    }

    /// Begins every log again with its next row: what began it may be lost.
    pub(super) fn begin_anew(&mut self) {
        self.begun.fill(false);
    }
}

/// Writes rows with the name of their log in the column `_path`, before their own columns.
#[derive(Debug)]
pub struct Stream<W> {
    writer: W,
    name: &'static str,
    appender: Appender,
    /// A row with the name of its log.
    row: Vec<u8>,
}

impl<W: Write> Stream<W> {
    /// A stream into `writer`, which should be buffered; `name` stands in error messages.
    ///
    /// # Errors
    ///
    /// Where rows of several logs cannot stand in one stream of `format` ([`Format::streams`]).
    pub fn new(writer: W, name: &'static str, format: Format) -> anyhow::Result<Self> {
        Ok(Self { writer, name, appender: Appender::new(format)?, row: Vec::new() })
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
        self.row.clear();
        self.appender.append(log, bytes, &mut self.row)?;
        self.writer.write_all(&self.row).with_context(|| format!("cannot write {}", self.name))
    }

    fn publish(&mut self) -> anyhow::Result<()> {
        self.writer.flush().with_context(|| format!("cannot write {}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_a_log_stands_before_its_first_row_and_again_after_a_loss() {
        let mut appender = Appender::new(Format::Text).unwrap();
        let mut out = Vec::new();
        for (log, row) in [(0, "a\n"), (1, "b\n"), (0, "c\n")] {
            appender.append(log, row.as_bytes(), &mut out).unwrap();
        }
        appender.begin_anew();
        appender.append(0, b"d\n", &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let kinds: Vec<_> = text.lines().map(|line| line.split(' ').next().unwrap()).collect();
        let expected =
            ["#path", "#fields", "a", "#path", "#fields", "b", "c", "#path", "#fields", "d"];
        assert_eq!(kinds, expected);
        assert!(appender.append(usize::MAX, b"", &mut Vec::new()).is_err());
        assert!(Appender::new(Format::Tsv).is_err());
    }
}
