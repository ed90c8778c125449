//! Tables: one Apache Parquet file for each log (<https://parquet.apache.org/docs/file-format/>).
//!
//! A column of the log is a column of the file, with its name and the type that [`columns`] gives it; a set or vector is a list.
//! Rows are kept until a row group of them is worth writing. A file tells in its footer where its row groups are, so it can be
//! read once it has ended.

mod columns;
mod row_group;

use std::fmt;
use std::io;
use std::sync::Arc;

use netsniff_analysis::Record;
use netsniff_analysis::record::LogType;
use netsniff_packet::Timestamp;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::Result;
use parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::file::properties::{
    BloomFilterPosition, EnabledStatistics, WriterProperties, WriterPropertiesPtr,
};
use parquet::schema::types::SchemaDescriptor;

use self::columns::{Column, is_looked_up, schema};
use super::cells::{self, Cells};
use super::{LogEncoder, RowFormat, RowStyle};

/// What a file begins and ends with.
const MAGIC: &[u8] = b"PAR1";

/// Bytes that a row group adds to the footer for each of its columns, and no less.
const COLUMN_BYTES: usize = 160;

/// The memory of columns is asked for once for so many rows.
const WEIGHED: usize = 64;

/// Columns of rows, compressed by zstd.
pub(super) struct Parquet;

impl RowFormat for Parquet {
    const EXTENSION: &'static str = "parquet";
    const IS_READ_WHOLE: bool = true;

    #[inline]
    fn columns<R: Record>(_: RowStyle, record: &R, out: &mut Vec<u8>) {
        cells::columns(record, out);
    }

    fn encoder(log: &'static LogType) -> Box<dyn LogEncoder> {
        Box::new(Table::new(log))
    }
}

/// The file of one log.
struct Table {
    log: &'static LogType,
    properties: WriterPropertiesPtr,
    /// The rows that are kept.
    columns: Vec<Column>,
    /// So many they are, and so many bytes of memory they take, but for the last few, of which the cells count.
    rows: usize,
    kept: usize,
    /// Row groups that are in the file, and where the next one begins.
    groups: Vec<RowGroupMetaData>,
    end: usize,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { log, rows, kept, groups, end, .. } = self;
        let mut table = f.debug_struct("Table");
        table.field("log", &log.path).field("rows", rows).field("kept", kept);
        table.field("groups", &groups.len()).field("end", end).finish_non_exhaustive()
    }
}

impl Table {
    fn new(log: &'static LogType) -> Self {
        Self {
            log,
            properties: Arc::new(properties(log)),
            columns: log.fields.iter().map(Column::new).collect(),
            rows: 0,
            kept: 0,
            groups: Vec::new(),
            end: MAGIC.len(),
        }
    }

    /// The rows that are kept, as the row group that comes next in the file.
    fn encode(&mut self) -> Result<(Vec<u8>, RowGroupMetaData)> {
        let schema = schema(self.log)?;
        let (bytes, group) = row_group::encode(schema, &self.properties, &mut self.columns)?;
        let group = row_group::moved(group, self.groups.len(), self.end - MAGIC.len())?;
        Ok((bytes, group))
    }

    fn footer_bytes(&self) -> usize {
        let groups = self.groups.len() + usize::from(self.rows > 0);
        groups * self.columns.len() * COLUMN_BYTES
    }

    fn metadata(&self) -> Result<ParquetMetaData> {
        let rows = self.groups.iter().map(RowGroupMetaData::num_rows).sum();
        let created = concat!("netsniff version ", env!("CARGO_PKG_VERSION")).to_owned();
        let (told, schema) =
            (Some(about(self.log)), Arc::new(SchemaDescriptor::new(schema(self.log)?)));
        let file = FileMetaData::new(2, rows, Some(created), told, schema, None);
        Ok(ParquetMetaData::new(file, self.groups.clone()))
    }
}

impl LogEncoder for Table {
    fn header(&mut self, _: Timestamp, out: &mut Vec<u8>) {
        self.groups.clear();
        self.end = MAGIC.len();
        out.extend_from_slice(MAGIC);
    }

    fn row(&mut self, row: &[u8], _: &mut Vec<u8>) {
        let mut cells = Cells(row);
        for column in &mut self.columns {
            column.push(&mut cells);
        }
        self.rows += 1;
        self.kept += row.len();
        if self.rows.is_multiple_of(WEIGHED) {
            self.kept = self.columns.iter().map(Column::heap_bytes).sum();
        }
    }

    fn settle(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let encoded = self.encode();
        self.columns.iter_mut().for_each(Column::clear);
        (self.rows, self.kept) = (0, 0);
        let (bytes, group) = encoded.map_err(io::Error::other)?;
        self.groups.push(group);
        self.end += bytes.len();
        out.extend_from_slice(&bytes);
        Ok(())
    }

    fn unsettled(&self) -> usize {
        self.kept + self.footer_bytes()
    }

    fn kept_bytes(&self) -> usize {
        self.kept
    }

    fn waits_for_more(&self) -> bool {
        true
    }

    fn refused(&mut self, mut rows: u64) {
        while rows > 0
            && let Some(group) = self.groups.pop()
        {
            rows = rows.saturating_sub(group.num_rows().unsigned_abs());
            self.end = row_group::begin(&group).unwrap_or(self.end);
        }
    }

    fn footer(&mut self, _: Timestamp, out: &mut Vec<u8>) -> io::Result<()> {
        let written = self
            .metadata()
            .and_then(|metadata| ParquetMetaDataWriter::new(out, &metadata).finish());
        written.map_err(io::Error::other)
    }
}

fn properties(log: &LogType) -> WriterProperties {
    let mut all = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        // What a page has is in the footer for its row group; an index of pages would have to be kept until the end.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_bloom_filter_position(BloomFilterPosition::AfterRowGroup);
    for field in log.fields {
        let path = columns::path(field);
        if is_looked_up(field) {
            all = all.set_column_bloom_filter_enabled(path.clone(), true);
        }
        if !columns::repeats(field) {
            all = all.set_column_dictionary_enabled(path, false);
        }
    }
    all.build()
}

/// What a file tells of itself: its log, and for each column its type in Zeek's words, its unit, and what it means.
fn about(log: &LogType) -> Vec<KeyValue> {
    let mut all = vec![
        KeyValue::new("netsniff.log".to_owned(), log.path.to_owned()),
        KeyValue::new("netsniff.doc".to_owned(), log.doc.trim().to_owned()),
    ];
    for field in log.fields {
        let name = |what: &str| format!("netsniff.column.{}.{what}", field.name);
        all.push(KeyValue::new(name("type"), field.zeek_type.to_string()));
        if !field.unit.name().is_empty() {
            all.push(KeyValue::new(name("unit"), field.unit.name().to_owned()));
        }
        all.push(KeyValue::new(name("doc"), field.doc.trim().to_owned()));
    }
    all
}

#[cfg(test)]
mod tests;
