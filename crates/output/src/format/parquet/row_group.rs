//! Row groups, each encoded for itself, and moved to the place that it gets in a file.

use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::TypePtr;

use super::MAGIC;
use super::columns::Column;

/// Encodes rows as the first row group of a file. The bytes are those behind [`MAGIC`].
pub(super) fn encode(
    schema: TypePtr,
    properties: &WriterPropertiesPtr,
    columns: &mut [Column],
) -> Result<(Vec<u8>, RowGroupMetaData)> {
    let mut file =
        SerializedFileWriter::new(Vec::new(), schema, WriterPropertiesPtr::clone(properties))?;
    let mut group = file.next_row_group()?;
    let mut columns = columns.iter_mut();
    while let Some(mut written) = group.next_column()? {
        let column = columns.next().ok_or_else(|| general("a column without values"))?;
        column.write(&mut written)?;
        written.close()?;
    }
    group.close()?;
    let [group] = file.flushed_row_groups() else { return Err(general("no row group")) };
    let group = group.clone();
    let mut bytes = file.into_inner()?;
    bytes.drain(..MAGIC.len());
    Ok((bytes, group))
}

/// A row group that lies so many bytes farther in its file, where so many are before it.
pub(super) fn moved(group: RowGroupMetaData, before: usize, by: usize) -> Result<RowGroupMetaData> {
    let by = i64::try_from(by).map_err(|_| general("a file of more than 8 EiB"))?;
    let column = |column: &ColumnChunkMetaData| {
        let bloom = column.bloom_filter_offset().map(|at| at + by);
        let dictionary = column.dictionary_page_offset().map(|at| at + by);
        let data = column.data_page_offset() + by;
        let moved = column.clone().into_builder().set_data_page_offset(data);
        moved.set_dictionary_page_offset(dictionary).set_bloom_filter_offset(bloom).build()
    };
    let columns: Result<Vec<_>> = group.columns().iter().map(column).collect();
    let begin = group.file_offset().map(|at| at + by);
    let mut moved = group.into_builder().set_column_metadata(columns?);
    if let Some(begin) = begin {
        moved = moved.set_file_offset(begin);
    }
    // Readers number row groups by their order in the footer, too.
    if let Ok(before) = i32::try_from(before) {
        moved = moved.set_ordinal(before);
    }
    moved.build()
}

/// Where a row group begins in its file.
pub(super) fn begin(group: &RowGroupMetaData) -> Option<usize> {
    let first = group.columns().first()?;
    let begin = first.dictionary_page_offset().unwrap_or_else(|| first.data_page_offset());
    usize::try_from(begin).ok()
}

fn general(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}
