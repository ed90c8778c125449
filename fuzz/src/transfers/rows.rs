//! Records as text.

use std::collections::BTreeMap;

use netsniff_analysis::record::{FieldInfo, Record, Value, Visitor};
use netsniff_analysis::{Observer, SortKey};

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

impl Observer for Rows {
    fn record<R: Record>(&mut self, key: &SortKey, record: &R) {
        let mut columns = Columns::default();
        record.visit(&mut columns);
        assert!(
            columns.0.values().all(|it| !it.starts_with("-") || it == "-"),
            "{}: {columns:?}",
            R::LOG.path
        );
        self.0.entry(R::LOG.path).or_default().insert(*key, columns.0);
    }
}

#[derive(Debug, Default)]
struct Columns(Row);

impl Visitor for Columns {
    fn field(&mut self, _: usize, info: &'static FieldInfo, value: Value<'_>) {
        self.0.insert(info.name, text(info.name, value));
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
