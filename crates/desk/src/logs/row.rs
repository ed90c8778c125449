//! The values of a row, by the names of its columns.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::ops::Range;

use serde_json::value::RawValue;

use super::header::Marks;
use super::members::Members;
use super::text::{bounded, nanos, shown, unescaped, unescaped_bytes};

/// Elements of a set or vector that are read: people are shown no more.
const ELEMENTS: usize = 64;

/// What stands for an element that is not set.
pub(crate) const UNSET: &str = "-";

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

    /// The same as bytes, of which a log in columns has also those that are no text.
    pub(super) fn bytes(&self, name: &str) -> Option<Cow<'r, [u8]>> {
        match &self.values {
            Values::Columns { marks, .. } => Some(bytes(self.raw(name)?, marks)),
            Values::Members { .. } => self.whole(name).map(bytes_of),
        }
    }

    /// Counts a column whose value cannot be understood.
    pub(crate) fn misread(&self, name: &str) {
        self.misread.take(name);
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

    /// The first elements of a set or vector, each cut as other text, `-` for one that is not set; the last one is `…` where there
    /// are more.
    #[must_use]
    pub fn list(&self, name: &str) -> Option<Vec<Cow<'r, str>>> {
        let word = |element: Option<_>| element.map_or(Cow::Borrowed(UNSET), bounded);
        Some(first(self.elements(name)?.into_iter().map(word)))
    }

    /// All elements of a set or vector, which are as many as a line has room for; `None` for one that is not set.
    pub(crate) fn elements(&self, name: &str) -> Option<Vec<Option<Cow<'r, str>>>> {
        let elements = self.elements_as_bytes(name)?;
        Some(elements.into_iter().map(|element| element.map(shown)).collect())
    }

    /// The same as bytes.
    pub(super) fn elements_as_bytes(&self, name: &str) -> Option<Vec<Option<Cow<'r, [u8]>>>> {
        match &self.values {
            Values::Columns { marks, .. } => {
                let element = |raw: &'r [u8]| (raw != marks.unset).then(|| bytes(raw, marks));
                Some(self.raw_elements(name, marks)?.map(element).collect())
            }
            Values::Members { .. } => self.members(name, |value| match value {
                b"null" => Some(None),
                value => words(value).map(bytes_of).map(Some),
            }),
        }
    }

    fn raw_elements(&self, name: &str, marks: &Marks) -> Option<impl Iterator<Item = &'r [u8]>> {
        let raw = self.raw(name)?;
        let separator = marks.in_sets.first().copied().unwrap_or(b',');
        // The word for an empty one stands in place of elements.
        let has_any = raw != marks.empty;
        Some(raw.split(move |byte| *byte == separator).filter(move |_| has_any))
    }

    /// What `read` makes of each element of an array, or of the one value in place of it.
    fn members<T>(&self, name: &str, read: impl Fn(&'r [u8]) -> Option<T>) -> Option<Vec<T>> {
        let member = self.member(name)?;
        let elements = if member.starts_with(b"[") {
            let elements: Option<Vec<&RawValue>> = serde_json::from_slice(member).ok();
            elements.and_then(|all| all.into_iter().map(|it| read(it.get().as_bytes())).collect())
        } else {
            read(member).map(|one| vec![one])
        };
        if elements.is_none() {
            self.misread.take(name);
        }
        elements
    }
}

/// The bytes of a value that is set.
fn bytes<'r>(raw: &'r [u8], marks: &Marks) -> Cow<'r, [u8]> {
    if raw == marks.empty { Cow::Borrowed(b"") } else { unescaped_bytes(raw) }
}

fn bytes_of(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
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
