//! Record batches of Apache Arrow, and streams of them (<https://arrow.apache.org/docs/format/Columnar.html>, "IPC Streaming
//! Format").
//!
//! A stream begins with the schema of its log, and can be read while it grows: each batch is whole. Rows are kept until a
//! batch of them is worth writing, or until somebody wants to see them.

mod columns;

use std::io;

use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use netsniff_analysis::Record;
use netsniff_analysis::record::LogType;
use netsniff_packet::Timestamp;

pub use self::columns::{BatchBuilder, schema};
use super::cells;
use super::{LogEncoder, RowFormat, RowStyle};

/// Batches of columns.
pub(super) struct Arrow;

impl RowFormat for Arrow {
    const EXTENSION: &'static str = "arrows";

    #[inline]
    fn columns<R: Record>(_: RowStyle, record: &R, out: &mut Vec<u8>) {
        cells::columns(record, out);
    }

    fn encoder(log: &'static LogType) -> Box<dyn LogEncoder> {
        Box::new(Batches(BatchBuilder::new(log)))
    }
}

/// The stream of one log.
#[derive(Debug)]
struct Batches(BatchBuilder);

impl Batches {
    /// What a writer writes that has written the schema.
    fn written(
        &self,
        write: impl FnOnce(&mut StreamWriter<Vec<u8>>) -> Result<(), ArrowError>,
    ) -> Result<Vec<u8>, ArrowError> {
        let mut writer = StreamWriter::try_new(Vec::new(), self.0.schema())?;
        writer.get_mut().clear();
        write(&mut writer)?;
        Ok(core::mem::take(writer.get_mut()))
    }
}

impl LogEncoder for Batches {
    fn header(&mut self, _: Timestamp, out: &mut Vec<u8>) {
        // Into memory nothing fails.
        if let Ok(writer) = StreamWriter::try_new(Vec::new(), self.0.schema()) {
            out.extend_from_slice(writer.get_ref());
        }
    }

    fn row(&mut self, row: &[u8], _: &mut Vec<u8>) {
        self.0.push(row);
    }

    fn settle(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        if self.0.rows() == 0 {
            return Ok(());
        }
        let batch = self.0.finish().map_err(io::Error::other)?;
        let bytes = self.written(|writer| writer.write(&batch)).map_err(io::Error::other)?;
        out.extend_from_slice(&bytes);
        Ok(())
    }

    fn unsettled(&self) -> usize {
        self.0.bytes()
    }

    fn footer(&mut self, _: Timestamp, out: &mut Vec<u8>) -> io::Result<()> {
        let bytes = self.written(StreamWriter::finish).map_err(io::Error::other)?;
        out.extend_from_slice(&bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
