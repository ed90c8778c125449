//! Logs on their way out: formats, buffers of rendered rows, files and streams.
//!
//! A worker renders records into a [`RowBuffer`], sorts it and hands it over; the writer merges the
//! buffers of all workers into a [`RowSink`]: files in a directory or one stream.

mod descriptors;
mod digits;
mod extracted;
mod extracting;
mod files;
mod hand_off;
mod json;
#[cfg(unix)]
mod live_stream;
mod log_writer;
mod nowhere;
mod rolled;
mod row_file;
mod stream;
mod tsv;
mod unparsed;
mod watch;
mod writing;

pub use extracted::ExtractedFiles;
pub use extracting::{ContentBounds, ExtractionOutcome, ExtractionWriter};
pub use files::LogFiles;
pub use hand_off::{Bounds, HandedOver, QUEUE_BYTES, RowProducer, SIDE_BYTES};
#[cfg(unix)]
pub use live_stream::LiveStream;
pub use log_writer::{
    END_WAIT, LogWriter, OnFailure, WriterCommands, WriterOutcome, WriterSettings, WriterStatistics,
};
pub use netsniff_analysis::rows::{RowSink, RowTally, SinkBooks};
pub use nowhere::Nowhere;
pub use rolled::Roll;
pub use stream::Stream;
pub use unparsed::UnparsedFile;
pub use watch::{STALL, Stalls, Watch};

use std::sync::Arc;

use netsniff_analysis::Record;
use netsniff_analysis::record::LogType;
use netsniff_analysis::rows::Encode;
use netsniff_packet::Timestamp;

/// How a log is written: what stands before its rows, in a row, and after them.
trait RowFormat {
    /// Appends what a file of the log `log` begins with; `opened` is the time of its first row.
    fn header(log: &LogType, opened: Timestamp, out: &mut Vec<u8>);
    /// Appends what stands before the columns of a row.
    fn begin_row(_out: &mut Vec<u8>) {}
    /// Appends columns of one row, behind others of it or not.
    fn columns<R: Record>(record: &R, out: &mut Vec<u8>);
    /// Appends the end of a row, with its end of line.
    fn end_row(out: &mut Vec<u8>);
    /// Appends what a file ends with; `closed` is the time at which the input ended.
    fn footer(closed: Timestamp, out: &mut Vec<u8>);
}

/// Rows as a [`Format`] renders them.
pub type RowBuffer = netsniff_analysis::rows::RowBuffer<Format>;

/// Brings such rows into one order.
pub type Merger = netsniff_analysis::rows::Merger<Format>;

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
}

/// Makes the list of formats, and calls each through a `match` so that rendering stays static.
macro_rules! formats {
    ($( $(#[doc = $doc:literal])+ $variant:ident => $format:ty, $name:literal; )+) => {
        /// The formats in which logs can be written.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format {
            $( $(#[doc = $doc])+ $variant, )+
        }

        impl Format {
            /// Every format.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name for the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// What the format is, for the command line.
            #[must_use]
            pub const fn doc(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc),+).trim_ascii(),)+
                }
            }

            /// Appends what a file of the log `log` begins with; `opened` is the time of its first
            /// row.
            pub fn header(self, log: &LogType, opened: Timestamp, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant => <$format>::header(log, opened, out),)+
                }
            }


            /// Appends what a file ends with; `closed` is the time at which the input ended.
            pub fn footer(self, closed: Timestamp, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant => <$format>::footer(closed, out),)+
                }
            }
        }

        impl Encode for Format {
            #[inline]
            fn begin(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant => <$format>::begin_row(out),)+
                }
            }

            #[inline]
            fn columns<R: Record>(&self, record: &R, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant => <$format>::columns(record, out),)+
                }
            }

            #[inline]
            fn end(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant => <$format>::end_row(out),)+
                }
            }
        }
    };
}

// THE list: a format is a file here and an entry below.
formats! {
    /// Columns with tabs between and header lines, as Zeek writes by default.
    Tsv => tsv::Tsv, "tsv";
    /// One JSON object on each line, as Zeek writes with `LogAscii::use_json`.
    Json => json::Json, "json";
}

impl clap::ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        Self::ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.name()).help(self.doc()))
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn formats_are_found_by_name() {
        for &format in Format::ALL {
            assert_eq!(Format::from_str(format.name(), false), Ok(format));
            assert!(format.doc().ends_with('.'), "{} lacks a sentence", format.name());
        }
        assert!(Format::from_str("xml", false).is_err());
    }
}
