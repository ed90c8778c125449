//! The values of a row, by the names of its columns.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;

use serde_json::{Map, Value};

use super::text::{nanos, unescaped};

/// How a file with columns writes what it has no text for, as its header says.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    pub(super) separator: Vec<u8>,
    pub(super) in_sets: Vec<u8>,
    pub(super) unset: Vec<u8>,
    pub(super) empty: Vec<u8>,
}

/// One row. A value that its file does not have, or has not set, is `None`.
#[derive(Debug)]
pub struct Row<'r> {
    pub(super) values: Values<'r>,
    pub(super) misread: &'r Cell<u64>,
}

/// Where the values are.
#[derive(Debug)]
pub(super) enum Values<'r> {
    Columns { names: &'r [String], line: &'r [u8], places: &'r [Range<usize>], marks: &'r Marks },
    Members(&'r Map<String, Value>),
}

impl<'r> Row<'r> {
    /// The bytes of a column that is set, as the file has them.
    fn raw(&self, name: &str) -> Option<&'r [u8]> {
        let Values::Columns { names, line, places, marks } = &self.values else { return None };
        let at = names.iter().position(|known| known == name)?;
        let raw = line.get(places.get(at)?.clone())?;
        (raw != marks.unset.as_slice()).then_some(raw)
    }

    fn member(&self, name: &str) -> Option<&'r Value> {
        let Values::Members(members) = &self.values else { return None };
        members.get(name).filter(|value| !value.is_null())
    }

    /// Text, and what any other value reads as.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<Cow<'r, str>> {
        match &self.values {
            Values::Columns { marks, .. } => {
                let raw = self.raw(name)?;
                Some(if raw == marks.empty.as_slice() { Cow::Borrowed("") } else { unescaped(raw) })
            }
            Values::Members(_) => Some(words(self.member(name)?)),
        }
    }

    /// A value that `read` understands; others count as misread, and are not told.
    fn read<T>(&self, name: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.text(name)?;
        let value = read(&text);
        if value.is_none() {
            self.misread.set(self.misread.get().saturating_add(1));
        }
        value
    }

    /// A count.
    #[must_use]
    pub fn count(&self, name: &str) -> Option<u64> {
        self.read(name, |text| text.parse().ok())
    }

    /// A number that may be negative.
    #[must_use]
    pub fn int(&self, name: &str) -> Option<i64> {
        self.read(name, |text| text.parse().ok())
    }

    /// A time since 1970 or a span of time, in nanoseconds.
    #[must_use]
    pub fn nanos(&self, name: &str) -> Option<i64> {
        self.read(name, nanos)
    }

    /// Whether something is so.
    #[must_use]
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.read(name, |text| match text {
            "T" | "true" => Some(true),
            "F" | "false" => Some(false),
            _ => None,
        })
    }

    /// The elements of a set or vector.
    #[must_use]
    pub fn list(&self, name: &str) -> Option<Vec<Cow<'r, str>>> {
        match &self.values {
            Values::Columns { marks, .. } => {
                let raw = self.raw(name)?;
                if raw == marks.empty.as_slice() {
                    return Some(Vec::new());
                }
                let separator = marks.in_sets.first().copied().unwrap_or(b',');
                let element = |raw: &'r [u8]| {
                    if raw == marks.empty.as_slice() { Cow::Borrowed("") } else { unescaped(raw) }
                };
                Some(raw.split(|byte| *byte == separator).map(element).collect())
            }
            Values::Members(_) => match self.member(name)? {
                Value::Array(elements) => Some(elements.iter().map(words).collect()),
                other => Some(vec![words(other)]),
            },
        }
    }
}

fn words(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}
