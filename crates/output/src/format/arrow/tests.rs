//! Streams that are written are read back by the reader of arrow-ipc, and compared with the JSON of the same rows.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Float64Type, Int64Type, TimestampMicrosecondType, UInt16Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_schema::DataType;
use netsniff_analysis::rows::LOGS;
use serde_json::{Value as Json, json};

use super::*;
use crate::format::all_types::{All, json, rows};

/// The stream of rows, of which `settles` says behind which ones they are settled.
fn stream(rows: &[All<'_>], settles: impl Fn(usize) -> bool) -> Vec<u8> {
    let (mut batches, mut out) = (Batches(BatchBuilder::new(All::LOG)), Vec::new());
    batches.header(Timestamp::EPOCH, &mut out);
    for (at, row) in rows.iter().enumerate() {
        let mut cells = Vec::new();
        Arrow::columns(crate::Format::Arrow.into(), row, &mut cells);
        batches.row(&cells, &mut out);
        assert!(batches.unsettled() >= cells.len());
        if settles(at) {
            batches.settle(&mut out).unwrap();
            assert_eq!(batches.unsettled(), 0);
        }
    }
    batches.settle(&mut out).unwrap();
    // An end that is taken back leaves what comes behind as it is.
    batches.footer(Timestamp::EPOCH, &mut Vec::new()).unwrap();
    out
}

fn read(stream: &[u8]) -> Vec<RecordBatch> {
    StreamReader::try_new(stream, None).unwrap().map(Result::unwrap).collect()
}

fn row_of(batch: &RecordBatch, row: usize) -> Json {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    let set = columns.filter(|(_, column)| column.is_valid(row));
    Json::Object(set.map(|(field, column)| (field.name().clone(), value(column, row))).collect())
}

fn value(column: &dyn Array, row: usize) -> Json {
    match column.data_type() {
        DataType::Boolean => json!(column.as_boolean().value(row)),
        DataType::UInt16 => json!(column.as_primitive::<UInt16Type>().value(row)),
        DataType::UInt64 => json!(column.as_primitive::<UInt64Type>().value(row)),
        DataType::Int64 => json!(column.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => json!(column.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => json!(column.as_string::<i32>().value(row)),
        DataType::Timestamp(_, Some(zone)) if &**zone == "UTC" => {
            let micros = column.as_primitive::<TimestampMicrosecondType>().value(row);
            json!(micros as f64 / 1e6)
        }
        DataType::List(_) => {
            let list = column.as_list::<i32>().value(row);
            (0..list.len()).map(|at| value(&list, at)).collect()
        }
        other => panic!("a column of {other}"),
    }
}

#[test]
fn each_value_is_that_of_json_and_the_end_may_be_missing() {
    let rows = rows();
    for every in [1, 7, 1000] {
        let mut stream = stream(&rows, |at| at % every == every - 1);
        for _ in 0..2 {
            let batches = read(&stream);
            assert_eq!(batches.len(), rows.len().div_ceil(every));
            let read = batches.iter().flat_map(|it| (0..it.num_rows()).map(|row| row_of(it, row)));
            assert!(read.eq(rows.iter().map(json)));
            Batches(BatchBuilder::new(All::LOG)).footer(Timestamp::EPOCH, &mut stream).unwrap();
        }
    }
}

#[test]
fn a_row_that_tells_more_elements_than_it_has_has_them_unset() {
    let mut builder = BatchBuilder::new(All::LOG);
    for row in [&b""[..], b"\xff\x07\x05", b"\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"] {
        builder.push(row);
    }
    let batch = builder.finish().unwrap();
    assert_eq!((batch.num_rows(), builder.rows(), builder.bytes()), (3, 0, 0));
}

#[test]
fn every_log_has_a_schema_that_says_what_columns_mean() {
    for log in LOGS.iter() {
        let schema = schema(log);
        assert_eq!(schema.fields().len(), log.fields.len(), "{}", log.path);
        assert_eq!(schema.metadata()["netsniff.log"], log.path);
        for (field, info) in schema.fields().iter().zip(log.fields) {
            assert_eq!(field.metadata()["netsniff.type"], info.zeek_type.to_string());
            assert!(field.is_nullable() && field.metadata()["netsniff.doc"].ends_with('.'));
        }
        assert_eq!(BatchBuilder::new(log).finish().unwrap().num_rows(), 0);
    }
}
