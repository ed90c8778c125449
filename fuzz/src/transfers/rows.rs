//! Records as text.

use std::collections::BTreeMap;

use core::convert::Infallible;

use netsniff_analysis::SortKey;
use netsniff_analysis::record::{FieldInfo, Record, Value, Visitor};
use netsniff_analysis::rows::{Encode, LOGS, RowSink};

/// A record: text by column.
pub(super) type Row = BTreeMap<&'static str, String>;

/// The records of each log by their keys.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rows(BTreeMap<&'static str, BTreeMap<SortKey, Row>>);

impl Rows {
    pub(super) fn log(&self, name: &str) -> impl Iterator<Item = &Row> {
        self.0.get(name).into_iter().flat_map(BTreeMap::values)
    }
}

impl RowSink for Rows {
    type Error = Infallible;

    fn row(&mut self, log: usize, key: &SortKey, bytes: &[u8]) -> Result<(), Infallible> {
        let values = bytes.split(|&byte| byte == 0).map(String::from_utf8_lossy);
        let log = LOGS[log];
        let columns: Row =
            log.fields.iter().map(|info| info.name).zip(values.map(Into::into)).collect();
        assert!(
            columns.values().all(|it| !it.starts_with("-") || it == "-"),
            "{}: {columns:?}",
            log.path
        );
        self.0.entry(log.path).or_default().insert(*key, columns);
        Ok(())
    }
}

/// The values of all columns, each with a zero behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values;

impl Encode for Values {
    fn columns<R: Record>(&self, record: &R, out: &mut Vec<u8>) {
        record.visit(&mut Text(out));
    }
}

struct Text<'a>(&'a mut Vec<u8>);

impl Visitor for Text<'_> {
    fn field(&mut self, _: usize, info: &'static FieldInfo, value: Value<'_>) {
        self.0.extend_from_slice(text(info.name, value).replace('\0', "\\0").as_bytes());
        self.0.push(0);
    }
}

/// # Panics
///
/// Where a time is negative, or a number is none.
fn text(name: &str, value: Value<'_>) -> String {
    match value {
        Value::Unset => "-".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Count(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Double(value) => {
            assert!(value.is_finite() && value >= 0.0, "{name} is {value}");
            value.to_string()
        }
        Value::Time(value) => value.to_string(),
        Value::Seconds(value) => value.0.to_string(),
        Value::Interval(value) => value.nanos().to_string(),
        Value::Addr(value) => value.to_string(),
        Value::Port(value) => value.to_string(),
        Value::Str(value) => value.to_owned(),
        Value::Bytes(value) | Value::Word(value) => value.escape_ascii().to_string(),
        Value::List(list) => {
            (0..list.count()).map(|at| text(name, list.element(at)) + ",").collect()
        }
    }
}
