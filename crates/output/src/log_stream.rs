//! One log alone in one stream, such as a pipe, as a file of it would be.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use netsniff_analysis::SortKey;
use netsniff_analysis::rows::LOGS;
use netsniff_packet::Timestamp;

use super::log_file::LogFile;
use super::row_file::RowFile;
use super::watch::Watch;
use super::{Format, LiveSink, LogSet, RowSink, SinkBooks};

/// Writes the rows of one log. A stream without rows has all that stands around them.
///
/// Behind an error rows are refused until the next flush.
#[derive(Debug)]
pub struct LogStream {
    file: LogFile,
    log: usize,
    has_begun: bool,
    is_resting: bool,
    books: SinkBooks,
}

impl LogStream {
    /// A stream into `file` of the one log in `logs`; `name` stands in error messages.
    ///
    /// # Errors
    ///
    /// Where `logs` are none or several.
    pub fn new(file: File, name: &str, format: Format, logs: LogSet) -> anyhow::Result<Self> {
        let mut places = logs.places();
        let (Some(at), None) = (places.next(), places.next()) else {
            anyhow::bail!("a stream of one log has one");
        };
        let log = LOGS.get(at).context("a log that is not in the list")?;
        let rows = RowFile::new(file, None);
        let file = LogFile::new(PathBuf::from(name), rows, format.encoder(log), None);
        let books = SinkBooks::default();
        Ok(Self { file, log: at, has_begun: false, is_resting: false, books })
    }

    /// A stream to standard output.
    ///
    /// # Errors
    ///
    /// When that is closed, and as [`Self::new`].
    #[cfg(unix)]
    pub fn stdout(format: Format, logs: LogSet) -> anyhow::Result<Self> {
        use std::os::fd::AsFd as _;
        let own = io::stdout().as_fd().try_clone_to_owned();
        Self::new(own.context("it is closed")?.into(), "standard output", format, logs)
    }

    fn begin(&mut self, time: Timestamp) -> anyhow::Result<()> {
        if core::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        let begun = self.file.begin(time);
        self.done(begun)
    }

    fn write_out(&mut self) -> anyhow::Result<()> {
        let out = self.file.write_out();
        self.books.written.add_rows(self.log, out.written);
        self.books.refused.add_rows(self.log, out.refused);
        self.done(out.result)
    }

    /// Rests after an error.
    fn done(&mut self, result: io::Result<()>) -> anyhow::Result<()> {
        self.is_resting = result.is_err();
        result.with_context(|| format!("cannot write {}", self.file.path.display()))
    }
}

impl RowSink for LogStream {
    type Error = anyhow::Error;

    fn row(&mut self, log: usize, key: &SortKey, bytes: &[u8]) -> anyhow::Result<()> {
        if log != self.log {
            anyhow::bail!("a row of another log than the one that is written");
        }
        let begun = if self.is_resting { Ok(()) } else { self.begin(key.time) };
        if self.is_resting {
            self.books.refused.add_row(log);
            return begun;
        }
        self.file.push(bytes);
        if self.file.has_room() { Ok(()) } else { self.write_out() }
    }

    fn publish(&mut self) -> anyhow::Result<()> {
        if self.file.encoder.waits_for_more() { Ok(()) } else { self.write_out() }
    }
}

impl LiveSink for LogStream {
    fn attend(&mut self, watch: Arc<Watch>) {
        self.file.rows.watch(watch);
    }

    fn flush(&mut self, now: Timestamp) -> anyhow::Result<()> {
        // Whoever reads knows then that there is a stream, and of what.
        self.begin(now)?;
        self.is_resting = false;
        self.publish()
    }

    fn end(&mut self, closed: Timestamp) -> anyhow::Result<()> {
        self.begin(closed)?;
        self.write_out()?;
        let (ended, _) = self.file.end(closed);
        self.done(ended)
    }

    fn books(&self) -> &SinkBooks {
        &self.books
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use netsniff_analysis::log::Weird;
    use netsniff_analysis::{Phase, Uid};

    use super::*;

    fn key(nanos: i64) -> SortKey {
        let time = Timestamp::from_nanos(nanos);
        SortKey { time, phase: Phase::End, ordinal: 0, uid: Uid::NONE, number: 0 }
    }

    fn written(rows: &[&str]) -> String {
        let (mut reader, writer) = io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        let weird = LogSet::named(Weird::LOG.path).unwrap();
        let at = weird.places().next().unwrap();
        let mut stream = LogStream::new(file, "a pipe", Format::Tsv, weird).unwrap();
        for row in rows {
            stream.row(at, &key(1_000_000_000), row.as_bytes()).unwrap();
        }
        assert!(stream.row(at + 1, &key(0), b"").is_err());
        stream.end(Timestamp::from_nanos(2_000_000_000)).unwrap();
        assert_eq!(stream.books().written.rows(at), rows.len() as u64);
        drop(stream);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_stream_is_a_whole_file_with_and_without_rows() {
        for rows in [&["a\n", "b\n"][..], &[]] {
            let text = written(rows);
            assert!(text.contains("#path\tweird\n"), "{text}");
            let own: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
            assert_eq!(own.len(), rows.len());
            assert!(text.ends_with("#close\t1970-01-01-00-00-02\n"), "{text}");
        }
    }

    #[test]
    fn rows_behind_a_reader_that_left_are_refused_and_counted() {
        let (reader, writer) = io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        let weird = LogSet::named(Weird::LOG.path).unwrap();
        let at = weird.places().next().unwrap();
        let mut stream = LogStream::new(file, "a pipe", Format::Json, weird).unwrap();
        drop(reader);
        stream.row(at, &key(0), b"{}\n").unwrap();
        assert!(stream.publish().is_err());
        stream.row(at, &key(0), b"{}\n").unwrap();
        assert_eq!((stream.books().written.rows(at), stream.books().refused.rows(at)), (0, 2));
        assert!(LogStream::new(io_file(), "none", Format::Json, LogSet::NONE).is_err());
        assert!(LogStream::new(io_file(), "all", Format::Json, LogSet::ALL).is_err());
    }

    fn io_file() -> File {
        let (_, writer) = io::pipe().unwrap();
        std::os::fd::OwnedFd::from(writer).into()
    }
}
