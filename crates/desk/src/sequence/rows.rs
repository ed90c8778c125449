//! The rows of `conn`, `tcp` and `gaps` that are about the connection.

use std::collections::BTreeMap;

use netsniff_analysis::Record;
use netsniff_analysis::record::{FieldInfo, Value, Visitor};

/// A value of a row that is set.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Datum {
    Count(u64),
    Int(i64),
    /// A time since 1970, or a span of time.
    Nanos(i64),
    Flag(bool),
    Text(String),
}

/// A row: what is set in it, by columns.
#[derive(Clone, Debug, Default)]
pub(super) struct Row(BTreeMap<&'static str, Datum>);

impl Row {
    pub(super) fn of<R: Record>(record: &R) -> Self {
        let mut row = Self::default();
        record.visit(&mut row);
        row
    }

    /// A count, where it is set.
    pub(super) fn count(&self, column: &str) -> Option<u64> {
        match self.0.get(column)? {
            Datum::Count(count) => Some(*count),
            Datum::Int(int) => u64::try_from(*int).ok(),
            _ => None,
        }
    }

    /// A time or a span of time in nanoseconds, where it is set.
    pub(super) fn nanos(&self, column: &str) -> Option<i64> {
        match self.0.get(column)? {
            Datum::Nanos(nanos) => Some(*nanos),
            _ => None,
        }
    }

    /// Whether something is so, where it is set.
    pub(super) fn flag(&self, column: &str) -> Option<bool> {
        match self.0.get(column)? {
            Datum::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    /// A text, where it is set.
    pub(super) fn text(&self, column: &str) -> Option<&str> {
        match self.0.get(column)? {
            Datum::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Visitor for Row {
    fn field(&mut self, _index: usize, info: &'static FieldInfo, value: Value<'_>) {
        let lossy = |bytes: &[u8]| Datum::Text(String::from_utf8_lossy(bytes).into_owned());
        let datum = match value {
            Value::Count(count) => Datum::Count(count),
            Value::Int(int) => Datum::Int(int),
            Value::Port(port) => Datum::Count(port.into()),
            Value::Time(time) => Datum::Nanos(time.nanos()),
            Value::Interval(span) => Datum::Nanos(span.nanos()),
            Value::Bool(flag) => Datum::Flag(flag),
            Value::Word(bytes) | Value::Bytes(bytes) => lossy(bytes),
            Value::Str(text) => Datum::Text(text.to_owned()),
            Value::Addr(address) => Datum::Text(address.to_string()),
            // Nothing of the kind is in the picture.
            Value::Unset | Value::Double(_) | Value::Seconds(_) | Value::List(_) => return,
        };
        self.0.insert(info.name, datum);
    }
}

/// The rows of one connection. The engine bounds the losses that it lists.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) conn: Row,
    pub(super) tcp: Option<Row>,
    pub(super) gaps: Vec<Row>,
}

impl Rows {
    /// Takes a row that is about the connection.
    pub(super) fn take<R: Record>(&mut self, record: &R) {
        match record.log().path {
            "conn" => self.conn = Row::of(record),
            "tcp" => self.tcp = Some(Row::of(record)),
            "gaps" => self.gaps.push(Row::of(record)),
            _ => {}
        }
    }
}
