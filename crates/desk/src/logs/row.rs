//! The values of a row, by the names of its columns.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::ops::Range;

use serde_json::{Map, Value};

use super::text::{bounded, nanos, unescaped};

/// How a file with columns writes what it has no text for, as its header says.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    pub(super) separator: Vec<u8>,
    pub(super) in_sets: Vec<u8>,
    pub(super) unset: Vec<u8>,
    pub(super) empty: Vec<u8>,
}

/// Elements of a set or vector that are read: people are shown no more.
const ELEMENTS: usize = 64;

/// One row. A value that its file does not have, or has not set, is `None`.
#[derive(Debug)]
pub struct Row<'r> {
    pub(super) values: Values<'r>,
    pub(super) misread: &'r Misread,
}

/// Values that are not of the type of their column, each once however many ask for it.
#[derive(Debug, Default)]
pub(super) struct Misread {
    count: Cell<u64>,
    of_row: RefCell<Vec<String>>,
}

impl Misread {
    /// Forgets the columns of the row before.
    pub(super) fn begin_row(&self) {
        self.of_row.borrow_mut().clear();
    }

    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.count.get()
    }

    fn take(&self, column: &str) {
        let mut of_row = self.of_row.borrow_mut();
        if !of_row.iter().any(|known| known == column) {
            of_row.push(column.to_owned());
            self.count.set(self.count.get().saturating_add(1));
        }
    }
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

    /// Text, and what any other value reads as. Long ones are cut, with a hash of the whole.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<Cow<'r, str>> {
        self.whole(name).map(bounded)
    }

    /// Text that is not cut.
    pub(super) fn whole(&self, name: &str) -> Option<Cow<'r, str>> {
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
        let text = self.whole(name)?;
        let value = read(&text);
        if value.is_none() {
            self.misread.take(name);
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

    /// The first elements of a set or vector, each cut as other text; the last one is `…` where there are more.
    #[must_use]
    pub fn list(&self, name: &str) -> Option<Vec<Cow<'r, str>>> {
        Some(first(self.elements(name)?.into_iter().map(bounded)))
    }

    /// All elements of a set or vector, which are as many as a line has room for.
    pub(crate) fn elements(&self, name: &str) -> Option<Vec<Cow<'r, str>>> {
        match &self.values {
            Values::Columns { marks, .. } => {
                let raw = self.raw(name)?;
                if raw == marks.empty.as_slice() {
                    return Some(Vec::new());
                }
                let separator = marks.in_sets.first().copied().unwrap_or(b',');
                let element = |raw: &'r [u8]| {
                    let is_empty = raw == marks.empty.as_slice();
                    if is_empty { Cow::Borrowed("") } else { unescaped(raw) }
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

/// The first of them, and a sign that there are more.
fn first<'r>(mut elements: impl Iterator<Item = Cow<'r, str>>) -> Vec<Cow<'r, str>> {
    let mut list: Vec<_> = elements.by_ref().take(ELEMENTS).collect();
    if elements.next().is_some() {
        list.push(Cow::Borrowed("\u{2026}"));
    }
    list
}

fn words(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}
