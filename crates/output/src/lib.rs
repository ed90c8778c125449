//! Logs on their way out: formats, buffers of rendered rows, files and streams.
//!
//! A worker renders records into a [`RowBuffer`], sorts it and hands it over; the writer merges the
//! buffers of all workers into a [`RowSink`]: files in a directory or one stream.

pub mod condition;
mod descriptors;
mod extracted;
mod extracting;
mod files;
mod format;
#[cfg(unix)]
mod live_stream;
mod log_file;
mod log_stream;
mod log_writer;
mod manifest;
mod nowhere;
mod one_log;
mod retention;
mod rolled;
mod row_file;
pub mod sigma;
mod stream;
mod unparsed;
mod watch;

pub use extracted::ExtractedFiles;
pub use extracting::{ContentBounds, ExtractionOutcome, ExtractionWriter};
pub use files::LogFiles;
#[cfg(feature = "arrow")]
pub use format::{BatchBuilder, schema};
pub use format::{Extension, Format, RowStyle, TimeForm};
#[cfg(unix)]
pub use live_stream::LiveStream;
pub use log_stream::LogStream;
pub use log_writer::{
    Bounds, END_WAIT, HandedOver, LogWriter, OnFailure, QUEUE_BYTES, RowProducer, SIDE_BYTES,
    WriterCommands, WriterOutcome, WriterSettings, WriterStatistics,
};
pub use netsniff_analysis::rows::{LogSet, RowSink, RowTally, SinkBooks};
pub use nowhere::Nowhere;
pub use one_log::OneLog;
pub use retention::{EndedFile, EndedFiles, Keep, KeepBound, OpenFiles, RemovedFiles, free_bytes};
pub use rolled::Roll;
pub use stream::Stream;
pub use unparsed::UnparsedFile;
pub use watch::{STALL, Stalls, Watch};

use std::sync::Arc;

use netsniff_packet::Timestamp;

/// Rows as a [`RowStyle`] renders them.
pub type RowBuffer = netsniff_analysis::rows::RowBuffer<RowStyle>;

/// Brings such rows into one order.
pub type Merger = netsniff_analysis::rows::Merger<RowStyle>;

/// A sink of a run that goes on for long, which a thread of its own fills
/// ([`LogWriter`]).
///
/// It keeps books: each row that it got is written, refused, or waits for [`Self::flush`]. Behind an
/// error it goes on. One that neither holds rows back nor writes files has nothing else to do.
pub trait LiveSink: RowSink<Error = anyhow::Error> + Send + 'static {
    /// Takes note of who measures its writes, and tells it when to wait no longer.
    fn attend(&mut self, _watch: Arc<Watch>) {}

    /// Writes what waits, as whole rows, and tries again what failed; `now` is the time of day.
    ///
    /// # Errors
    ///
    /// The first one; all else is written all the same.
    fn flush(&mut self, _now: Timestamp) -> anyhow::Result<()> {
        Ok(())
    }

    /// Ends all files and begins new ones, which a sink without files does not.
    ///
    /// # Errors
    ///
    /// The first one; all else is done all the same.
    fn roll(&mut self, _now: Timestamp) -> anyhow::Result<()> {
        Ok(())
    }

    /// Writes what waits, and ends everything; `closed` is the time at which the input ended.
    ///
    /// # Errors
    ///
    /// The first one; all else is ended all the same.
    fn end(&mut self, _closed: Timestamp) -> anyhow::Result<()> {
        Ok(())
    }

    /// What became of the rows that it got.
    fn books(&self) -> &SinkBooks;

    /// Keeps files within other bounds from now on, which a sink without files need not.
    ///
    /// # Errors
    ///
    /// When it cannot be told which files there are, or how much room; then the bounds stay as they were.
    fn keep(&mut self, _keep: Keep, _now: Timestamp) -> anyhow::Result<()> {
        Ok(())
    }

    /// Files that have ended and were removed, since not all are to stay.
    fn removed(&self) -> RemovedFiles {
        RemovedFiles::default()
    }
}
