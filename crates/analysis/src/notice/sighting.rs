//! What findings see of a record: a copy of the columns that they read.

use netsniff_packet::Address;

use crate::record::{Elements, Fact, FieldInfo, LogType, Value, Visitor};

/// An ask that is true of a record: the number of its rule, and its own there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matched {
    pub(super) rule: u16,
    pub(super) ask: u16,
}

/// A record as findings see it.
#[derive(Debug)]
pub struct Sighting {
    /// Its log.
    pub log: &'static LogType,
    columns: Vec<(&'static str, Seen)>,
    /// What rules ask that is true of it.
    pub(super) rules: Vec<Matched>,
}

/// The value of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// True or false.
    Bool(bool),
    /// A number that is no fraction.
    Number(i128),
    /// A time or a span of time, in nanoseconds.
    Nanos(i64),
    /// An address.
    Address(Address),
    /// A port.
    Port(u16),
    /// Text, or bytes as somebody sent them.
    Text(Box<[u8]>),
    /// The values of a set or vector.
    List(Vec<Self>),
}

/// Most values that are copied of one list. Records bound theirs, too.
const LONGEST_LIST: usize = 256;

impl Seen {
    /// The copy of a value; `None` where it is not set, and for fractions, which no finding reads.
    fn of(value: Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Unset | Value::Double(_) => return None,
            Value::Bool(value) => Self::Bool(value),
            Value::Count(number) => Self::Number(number.into()),
            Value::Int(number) => Self::Number(number.into()),
            Value::Time(time) => Self::Nanos(time.nanos()),
            Value::Seconds(time) => Self::Nanos(time.0.saturating_mul(1_000_000_000)),
            Value::Interval(span) => Self::Nanos(span.nanos()),
            Value::Addr(address) => Self::Address(address),
            Value::Port(port) => Self::Port(port),
            Value::Word(bytes) | Value::Bytes(bytes) => Self::Text(bytes.into()),
            Value::Str(text) => Self::Text(text.as_bytes().into()),
            Value::List(list) => Self::List(Self::all(list)),
        })
    }

    fn all(list: &dyn Elements) -> Vec<Self> {
        let count = list.count().min(LONGEST_LIST);
        (0..count).filter_map(|at| Self::of(list.element(at))).collect()
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::List(list) => {
                size_of_val(&**list) + list.iter().map(Self::heap_bytes).sum::<usize>()
            }
            _ => 0,
        }
    }
}

impl Sighting {
    /// An empty copy of a record of `log`.
    pub(super) const fn new(log: &'static LogType) -> Self {
        Self { log, columns: Vec::new(), rules: Vec::new() }
    }

    /// The value of a column; `None` where it is not set.
    #[must_use]
    pub fn get(&self, column: &str) -> Option<&Seen> {
        self.columns.iter().find(|(name, _)| *name == column).map(|(_, seen)| seen)
    }

    /// Bytes of a text.
    #[must_use]
    pub fn text(&self, column: &str) -> Option<&[u8]> {
        match self.get(column)? {
            Seen::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A word of a fixed list, or an identifier.
    #[must_use]
    pub fn word(&self, column: &str) -> Option<&str> {
        core::str::from_utf8(self.text(column)?).ok()
    }

    /// A number.
    #[must_use]
    pub fn number(&self, column: &str) -> Option<i128> {
        match self.get(column)? {
            Seen::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// A time or a span of time, in nanoseconds.
    #[must_use]
    pub fn nanos(&self, column: &str) -> Option<i64> {
        match self.get(column)? {
            Seen::Nanos(nanos) => Some(*nanos),
            _ => None,
        }
    }

    /// Whether a column is true; `None` where it is not set.
    #[must_use]
    pub fn flag(&self, column: &str) -> Option<bool> {
        match self.get(column)? {
            Seen::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// An address.
    #[must_use]
    pub fn address(&self, column: &str) -> Option<Address> {
        match self.get(column)? {
            Seen::Address(address) => Some(*address),
            _ => None,
        }
    }

    /// A port.
    #[must_use]
    pub fn port(&self, column: &str) -> Option<u16> {
        match self.get(column)? {
            Seen::Port(port) => Some(*port),
            _ => None,
        }
    }

    /// The values of a column: those of a list, or the one that it has.
    #[must_use]
    pub fn values(&self, column: &str) -> &[Seen] {
        match self.get(column) {
            Some(Seen::List(list)) => list,
            Some(one) => core::slice::from_ref(one),
            None => &[],
        }
    }
}

impl Fact for Sighting {
    fn heap_bytes(&self) -> usize {
        let columns = self.columns.iter().map(|(_, seen)| seen.heap_bytes()).sum::<usize>();
        self.columns.capacity() * size_of::<(&str, Seen)>()
            + self.rules.capacity() * size_of::<Matched>()
            + columns
    }
}

/// Copies the wanted columns of the record that it visits.
pub(super) struct Copying<'a> {
    pub(super) wanted: &'a [&'static str],
    pub(super) into: Sighting,
}

impl Visitor for Copying<'_> {
    fn field(&mut self, _: usize, info: &'static FieldInfo, value: Value<'_>) {
        if self.wanted.contains(&info.name)
            && let Some(seen) = Seen::of(value)
        {
            self.into.columns.push((info.name, seen));
        }
    }
}
