//! Files that are written are read back by the reader of the crate `parquet`, row by row, and compared with the JSON of the same rows.

use netsniff_analysis::rows::{Encode as _, LOGS};
use parquet::file::properties::ReaderProperties;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::serialized_reader::ReadOptionsBuilder;
use parquet::record::{Field, Row};
use serde_json::{Value as Json, json};

use super::*;
use crate::Format;
use crate::format::all_types::{All, json, rows};

/// What a writer makes of rows, of which `settles` says behind which ones they are settled.
fn file(rows: &[All<'_>], settles: impl Fn(usize) -> bool) -> (Vec<u8>, Table) {
    let mut table = Table::new(All::LOG);
    let mut out = Vec::new();
    table.header(Timestamp::EPOCH, &mut out);
    for (at, row) in rows.iter().enumerate() {
        let mut cells = Vec::new();
        RowStyle::of(Format::Parquet).columns(row, &mut cells);
        table.row(&cells, &mut out);
        if settles(at) {
            table.settle(&mut out).unwrap();
        }
    }
    table.settle(&mut out).unwrap();
    (out, table)
}

fn ended(mut out: Vec<u8>, table: &mut Table) -> SerializedFileReader<bytes::Bytes> {
    table.footer(Timestamp::EPOCH, &mut out).unwrap();
    let properties = ReaderProperties::builder().set_read_bloom_filter(true).build();
    let options = ReadOptionsBuilder::new().with_reader_properties(properties).build();
    SerializedFileReader::new_with_options(bytes::Bytes::from(out), options).unwrap()
}

/// A row as the JSON of the same row has it.
fn read(row: &Row) -> Json {
    let set = row.get_column_iter().filter(|(_, field)| **field != Field::Null);
    Json::Object(set.map(|(name, field)| (name.clone(), value(field))).collect())
}

fn value(field: &Field) -> Json {
    match field {
        Field::Bool(value) => json!(value),
        Field::UShort(value) => json!(value),
        Field::ULong(value) => json!(value),
        Field::Long(value) => json!(value),
        Field::Double(value) => json!(value),
        Field::TimestampMicros(value) => json!(*value as f64 / 1e6),
        Field::Str(value) => json!(value),
        Field::ListInternal(list) => list.elements().iter().map(value).collect(),
        other => panic!("a column of {other:?}"),
    }
}

fn assert_reads(reader: &SerializedFileReader<bytes::Bytes>, rows: &[All<'_>]) {
    let told = reader.metadata().file_metadata().num_rows();
    assert_eq!(told, i64::try_from(rows.len()).unwrap());
    let read: Vec<_> = reader.get_row_iter(None).unwrap().map(|row| read(&row.unwrap())).collect();
    assert_eq!(read.len(), rows.len());
    for (read, row) in read.iter().zip(rows) {
        assert_eq!(*read, json(row));
    }
}

#[test]
fn each_value_is_that_of_json() {
    let rows = rows();
    for every in [1, 7, 1000] {
        let (out, mut table) = file(&rows, |at| at % every == every - 1);
        let reader = ended(out, &mut table);
        assert_eq!(reader.num_row_groups(), rows.len().div_ceil(every));
        assert_reads(&reader, &rows);
    }
}

#[test]
fn rows_that_were_refused_are_in_no_footer() {
    let rows = rows();
    let (mut out, mut table) = file(&rows[..20], |at| at == 9);
    // The second ten of them could not be written, and these could.
    let second = table.groups.last().unwrap();
    out.truncate(row_group::begin(second).unwrap());
    table.refused(10);
    for row in &rows[20..50] {
        let mut cells = Vec::new();
        RowStyle::of(Format::Parquet).columns(row, &mut cells);
        table.row(&cells, &mut out);
    }
    table.settle(&mut out).unwrap();
    let reader = ended(out, &mut table);
    let mut expected = rows;
    expected.drain(50..);
    expected.drain(10..20);
    assert_reads(&reader, &expected);
}

#[test]
fn an_end_may_be_taken_back_and_another_file_begun() {
    let rows = rows();
    let (out, mut table) = file(&rows[..5], |_| false);
    assert_reads(&ended(out.clone(), &mut table), &rows[..5]);
    assert_reads(&ended(out, &mut table), &rows[..5]);
    // Rows that are kept go into the next file.
    let mut cells = Vec::new();
    RowStyle::of(Format::Parquet).columns(&rows[5], &mut cells);
    let mut out = Vec::new();
    table.row(&cells, &mut out);
    assert!(out.is_empty() && table.kept_bytes() >= cells.len());
    table.header(Timestamp::EPOCH, &mut out);
    table.settle(&mut out).unwrap();
    assert_eq!(table.kept_bytes(), 0);
    assert_reads(&ended(out, &mut table), &rows[5..6]);
}

#[test]
fn row_groups_tell_what_is_in_them() {
    let rows = rows();
    let (out, mut table) = file(&rows, |at| at == 99);
    let reader = ended(out, &mut table);
    let at = |name: &str| All::LOG.fields.iter().position(|field| field.name == name).unwrap();
    for group in reader.metadata().row_groups() {
        let column = |name: &str| group.column(at(name));
        assert!(column("ts").statistics().is_some_and(|it| it.min_bytes_opt().is_some()));
        assert!(column("id.orig_h").bloom_filter_offset().is_some());
        assert!(column("count").bloom_filter_offset().is_none());
        assert_eq!(group.num_rows(), 100);
    }
    let of_second = reader.get_row_group(1).unwrap();
    let filter = of_second.get_column_bloom_filter(at("id.orig_h")).unwrap();
    assert!(filter.check(&"10.0.0.100") && !filter.check(&"192.0.2.1"));
    let told = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let told = |name: &str| told.iter().find(|it| it.key == name).and_then(|it| it.value.clone());
    assert_eq!(told("netsniff.log").as_deref(), Some("all"));
    assert_eq!(told("netsniff.column.count.unit").as_deref(), Some("bytes"));
    assert_eq!(told("netsniff.column.ts.unit").as_deref(), Some("seconds"));
}

#[test]
fn every_log_has_a_schema() {
    for log in LOGS.iter() {
        let schema = schema(log).unwrap();
        assert_eq!(schema.get_fields().len(), log.fields.len(), "{}", log.path);
    }
}
