//! Rows that sessions and joins make: owned values, which are told of their connection as they are rendered.

use core::any::Any;
use core::fmt::Debug;

use super::{Connection, FieldInfo, LogType, Record, Value, Visitor};

/// A row of a log, without the columns of its connection. [`record!`](crate::record!) declares it.
pub trait Row: Debug + Send {
    /// The log that it belongs to.
    fn log(&self) -> &'static LogType;

    /// Sets the columns that follow from the connection, before anybody visits them.
    fn complete(&mut self, _: &Connection) {}

    /// Tells `visitor` each field once, in column order, but for those that a join adds.
    fn visit(&self, connection: &Connection, visitor: &mut dyn Visitor);

    /// The columns that a join adds. They are the last ones of the log.
    fn joined(&self) -> &'static [FieldInfo] {
        &[]
    }
}

/// The last columns of a row, which a join adds. [`columns!`](crate::columns!) declares them.
pub trait Columns: Debug + Send {
    /// The columns.
    fn fields(&self) -> &'static [FieldInfo];

    /// Tells `visitor` each field once, in order; the first one is column `first` of its log.
    fn visit(&self, first: usize, visitor: &mut dyn Visitor);
}

/// What makes a row, or the last columns of one, only together with what other flows tell: the input of a join.
pub trait Fact: Any + Debug + Send {
    /// Bytes that it holds outside itself, for whoever bounds the memory of facts that wait.
    fn heap_bytes(&self) -> usize;

    /// The log of which it makes one row, whatever else is told. `None` where that depends: several
    /// messages make an exchange, a certificate has a row once a day.
    fn log(&self) -> Option<&'static LogType> {
        None
    }

    /// Whether its join does something also where nobody wants rows.
    fn has_effects(&self) -> bool {
        false
    }
}

impl dyn Fact {
    /// Whether it is of a type.
    #[must_use]
    pub fn is<T: Fact>(&self) -> bool {
        let any: &dyn Any = self;
        any.is::<T>()
    }

    /// The fact as one of its type; `None` where it is of another one.
    #[must_use]
    pub fn downcast<T: Fact>(self: Box<Self>) -> Option<Box<T>> {
        let any: Box<dyn Any> = self;
        any.downcast().ok()
    }

    /// The fact as one of its type; `None` where it is of another one.
    #[must_use]
    pub fn downcast_ref<T: Fact>(&self) -> Option<&T> {
        let any: &dyn Any = self;
        any.downcast_ref()
    }
}

/// A row with its connection: all columns. Those that a join would add are not set.
#[derive(Clone, Copy, Debug)]
pub struct WholeRow<'a> {
    /// The connection.
    pub connection: &'a Connection,
    /// The row.
    pub row: &'a dyn Row,
}

impl Record for WholeRow<'_> {
    fn log(&self) -> &'static LogType {
        self.row.log()
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) {
        self.row.visit(self.connection, visitor);
        unset(self.row.log(), self.row.joined().len(), visitor);
    }
}

/// A row with its connection, up to the columns that a join adds.
#[derive(Clone, Copy, Debug)]
pub struct BegunRow<'a> {
    /// The connection.
    pub connection: &'a Connection,
    /// The row.
    pub row: &'a dyn Row,
}

impl Record for BegunRow<'_> {
    fn log(&self) -> &'static LogType {
        self.row.log()
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) {
        self.row.visit(self.connection, visitor);
    }
}

/// The last columns of a row that was rendered up to them.
#[derive(Clone, Copy, Debug)]
pub struct LastColumns<'a> {
    /// The row's log.
    pub log: &'static LogType,
    /// The columns.
    pub columns: &'a dyn Columns,
}

impl Record for LastColumns<'_> {
    fn log(&self) -> &'static LogType {
        self.log
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) {
        let first = self.log.fields.len().saturating_sub(self.columns.fields().len());
        self.columns.visit(first, visitor);
    }
}

/// Tells that the last `count` columns of a log are not set.
fn unset(log: &'static LogType, count: usize, visitor: &mut impl Visitor) {
    let own = log.fields.len().saturating_sub(count);
    for (index, info) in log.fields.iter().enumerate().skip(own) {
        visitor.field(index, info, Value::Unset);
    }
}
