//! The values of a row, by the names of its columns.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::ops::Range;

use serde_json::value::RawValue;

use super::header::Marks;
use super::members::Members;
use super::text::{bounded, nanos, unescaped};

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
    Members { line: &'r [u8], places: &'r Members },
}

impl<'r> Row<'r> {
    /// The bytes of a column that is set, as the file has them.
    fn raw(&self, name: &str) -> Option<&'r [u8]> {
        let Values::Columns { names, line, places, marks } = &self.values else { return None };
        let at = names.iter().position(|known| known == name)?;
        let raw = line.get(places.get(at)?.clone())?;
        (raw != marks.unset.as_slice()).then_some(raw)
    }

    /// A member that is set, as JSON has it.
    fn member(&self, name: &str) -> Option<&'r [u8]> {
        let Values::Members { line, places } = &self.values else { return None };
        line.get(places.get(name)?.clone()).filter(|value| *value != b"null")
    }

    /// Text, and what any other value reads as. Long ones are cut, with a hash of the whole.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<Cow<'r, str>> {
        self.whole(name).map(bounded)
    }

    /// Text that is not cut.
    pub(crate) fn whole(&self, name: &str) -> Option<Cow<'r, str>> {
        match &self.values {
            Values::Columns { marks, .. } => {
                let raw = self.raw(name)?;
                Some(if raw == marks.empty.as_slice() { Cow::Borrowed("") } else { unescaped(raw) })
            }
            Values::Members { .. } => {
                let words = words(self.member(name)?);
                if words.is_none() {
                    self.misread.take(name);
                }
                words
            }
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
            Values::Members { .. } => {
                let member = self.member(name)?;
                let elements = if member.starts_with(b"[") {
                    let elements: Option<Vec<&RawValue>> = serde_json::from_slice(member).ok();
                    elements.and_then(|all| {
                        all.into_iter().map(|it| words(it.get().as_bytes())).collect()
                    })
                } else {
                    words(member).map(|one| vec![one])
                };
                if elements.is_none() {
                    self.misread.take(name);
                }
                elements
            }
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

/// What a value of JSON reads as; `None` for a string that stands for no text.
fn words(value: &[u8]) -> Option<Cow<'_, str>> {
    let Some(text) = value.strip_prefix(b"\"") else {
        return str::from_utf8(value).ok().map(Cow::Borrowed);
    };
    if value.contains(&b'\\') {
        return serde_json::from_slice(value).ok().map(Cow::Owned);
    }
    str::from_utf8(text.strip_suffix(b"\"")?).ok().map(Cow::Borrowed)
}
