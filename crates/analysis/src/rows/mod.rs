//! Rows on their way from those who make them to whoever writes them.
//!
//! Whoever follows flows observes records into a [`RowBuffer`], which encodes them at once. Up to a
//! watermark the rows of a buffer are complete: [`Observer::complete`] says so. A [`Merger`] brings the
//! rows of many buffers into one order, adds those that joins make of several flows' facts, and
//! writes them to a [`RowSink`]. Where everything happens in one thread, [`Output`] does both.
//!
//! [`Observer::complete`]: crate::record::Observer::complete

mod buffer;
mod lists;
mod log_set;
mod merge;
mod output;
mod tally;

pub use buffer::RowBuffer;
pub use lists::{LOGS, joins};
pub use log_set::LogSet;
pub use merge::Merger;
pub use output::{Collector, Merging, Output, TakeComplete};
pub use tally::{RowTally, SinkBooks};

use netsniff_packet::Timestamp;

use crate::record::{LogType, Record, SortKey};

/// Encodes records for whoever writes them.
pub trait Encode {
    /// Appends what stands before the columns of a row that `record` tells, wholly or in part; the row belongs at `time`
    /// among all others, where that is known.
    fn begin<R: Record>(&self, _record: &R, _time: Option<Timestamp>, _out: &mut Vec<u8>) {}

    /// Appends the columns that `record` tells: those of a whole row, or of one up to the columns that a join
    /// adds, or these behind the others.
    fn columns<R: Record>(&self, record: &R, out: &mut Vec<u8>);

    /// Ends a row of `log`, which was begun where `out` had `start` bytes.
    fn end(&self, _log: &'static LogType, _start: usize, _out: &mut Vec<u8>) {}

    /// Appends one row in the format of the output.
    fn encode<R: Record>(&self, record: &R, time: Option<Timestamp>, out: &mut Vec<u8>) {
        let start = out.len();
        self.begin(record, time, out);
        self.columns(record, out);
        self.end(record.log(), start, out);
    }
}

/// Takes encoded rows in their final order.
pub trait RowSink {
    /// Why a row cannot be written.
    type Error;

    /// Writes one row: `log` counts in [`LOGS`], `key` is where the row belongs, and
    /// `bytes` are what [`Encode`] appended.
    ///
    /// # Errors
    ///
    /// When the row cannot be written.
    fn row(&mut self, log: usize, key: &SortKey, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Lets whoever reads along see all rows so far. Without an override nothing waits for that.
    ///
    /// # Errors
    ///
    /// When a row cannot be written.
    fn publish(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl<S: RowSink> RowSink for &mut S {
    type Error = S::Error;

    #[inline]
    fn row(&mut self, log: usize, key: &SortKey, bytes: &[u8]) -> Result<(), Self::Error> {
        (**self).row(log, key, bytes)
    }

    fn publish(&mut self) -> Result<(), Self::Error> {
        (**self).publish()
    }
}
