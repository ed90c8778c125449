//! A row as the log's declaration has it, so that conditions hold for it.

use std::net::IpAddr;

use netsniff_analysis::Record;
use netsniff_analysis::record::{
    Elements, FieldInfo, Interval, LogType, Scalar, Shape, Value, Visitor,
};
use netsniff_packet::{Address, Timestamp};

use super::Row;
use super::text::nanos;

/// A row of a log that is known. A column that its file does not have is unset.
#[derive(Debug)]
pub(crate) struct TypedRow<'a> {
    pub(crate) log: &'static LogType,
    pub(crate) row: &'a Row<'a>,
}

impl TypedRow<'_> {
    /// Looks at all values, so that those that cannot be understood count also where nobody asks for them.
    pub(crate) fn check(&self) {
        self.visit(&mut Nobody);
    }

    /// A value of a column. One that is none of its type is unset, and counts as misread.
    fn value<'v>(&self, field: &FieldInfo, bytes: &'v [u8]) -> Value<'v> {
        let value = value(bytes, field.zeek_type.scalar);
        if matches!(value, Value::Unset) {
            self.row.misread(field.name);
        }
        value
    }
}

/// Who only looks.
struct Nobody;

impl Visitor for Nobody {
    fn field(&mut self, _: usize, _: &'static FieldInfo, _: Value<'_>) {}
}

impl Record for TypedRow<'_> {
    fn log(&self) -> &'static LogType {
        self.log
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) {
        for (index, field) in self.log.fields.iter().enumerate() {
            if field.zeek_type.shape == Shape::One {
                let bytes = self.row.bytes(field.name);
                let value = bytes.as_ref().map_or(Value::Unset, |bytes| self.value(field, bytes));
                visitor.field(index, field, value);
            } else if let Some(elements) = self.row.elements_as_bytes(field.name) {
                let one = |bytes| self.value(field, bytes);
                let elements = elements.iter().map(|it| it.as_deref().map_or(Value::Unset, one));
                let elements = List::of(elements);
                visitor.field(index, field, Value::List(&elements));
            } else {
                visitor.field(index, field, Value::Unset);
            }
        }
    }
}

/// The elements of a set or vector.
pub(crate) struct List<'a>(Vec<Value<'a>>);

impl<'a> List<'a> {
    /// Elements, of which some may be unset.
    pub(crate) fn of(all: impl Iterator<Item = Value<'a>>) -> Self {
        Self(all.collect())
    }
}

impl Elements for List<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn element(&self, index: usize) -> Value<'_> {
        self.0.get(index).copied().unwrap_or(Value::Unset)
    }
}

/// What a log has as a value of its type; unset where it is none.
pub(crate) fn value(bytes: &[u8], scalar: Scalar) -> Value<'_> {
    if matches!(scalar, Scalar::Enum | Scalar::String) {
        return Value::Bytes(bytes);
    }
    let number = str::from_utf8(bytes).ok().and_then(|text| number(text, scalar));
    number.unwrap_or(Value::Unset)
}

/// What is no text.
fn number(text: &str, scalar: Scalar) -> Option<Value<'static>> {
    match scalar {
        Scalar::Bool => match text {
            "T" | "true" => Some(Value::Bool(true)),
            "F" | "false" => Some(Value::Bool(false)),
            _ => None,
        },
        Scalar::Count => text.parse().ok().map(Value::Count),
        Scalar::Int => text.parse().ok().map(Value::Int),
        Scalar::Double => text.parse().ok().map(Value::Double),
        Scalar::Time => nanos(text).map(|time| Value::Time(Timestamp::from_nanos(time))),
        Scalar::Interval => nanos(text).map(|span| Value::Interval(Interval::from_nanos(span))),
        Scalar::Addr => {
            text.parse::<IpAddr>().ok().map(|address| Value::Addr(Address::from(address)))
        }
        Scalar::Port => text.parse().ok().map(Value::Port),
        Scalar::Enum | Scalar::String => None,
    }
}
