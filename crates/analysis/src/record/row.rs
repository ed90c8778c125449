//! Rows that sessions and joins make: owned values, which are told of their connection as they are rendered.

use core::any::Any;
use core::fmt::Debug;

use super::{Connection, LogType, Proto, Record, Value, Visitor};
use crate::key::uid::Uid;

/// A row of a log, without the columns of its connection. [`record!`](crate::record!) declares it.
pub trait Row: Debug + Send {
    /// The log that it belongs to.
    fn log(&self) -> &'static LogType;

    /// Sets the columns that follow from the connection, before anybody visits them.
    fn complete(&mut self, _: &Connection) {}

    /// Tells `visitor` each field once, in column order, but for those that a join adds.
    fn visit(&self, connection: &Connection, visitor: &mut dyn Visitor);

    /// How many columns a join adds. They are the last ones of the log.
    fn joined(&self) -> usize {
        0
    }
}

/// The last columns of a row, which a join adds. [`columns!`](crate::columns!) declares them.
pub trait Columns: Debug + Send {
    /// Tells `visitor` each field once, in order; the first one is column `first` of its log.
    fn visit(&self, first: usize, visitor: &mut dyn Visitor);
}

/// What makes a row, or the last columns of one, only together with what other flows tell: the input of a join.
pub trait Fact: Any + Debug + Send {
    /// Bytes that it holds outside itself, for whoever bounds the memory of facts that wait.
    fn heap_bytes(&self) -> usize;

    /// Whether its join does something also where nobody wants rows.
    fn has_effects(&self) -> bool {
        false
    }
}

impl dyn Fact {
    /// The fact as one of its type; `None` where it is of another one.
    #[must_use]
    pub fn downcast_ref<T: Fact>(&self) -> Option<&T> {
        let any: &dyn Any = self;
        any.downcast_ref()
    }
}

/// A row with its connection: all columns. Those that a join would add are not set.
#[derive(Clone, Copy, Debug)]
pub struct WholeRow<'a>(pub BegunRow<'a>);

impl<'a> WholeRow<'a> {
    /// A row of `connection`.
    #[must_use]
    pub const fn new(connection: &'a Connection, row: &'a dyn Row) -> Self {
        Self(BegunRow { connection, row })
    }
}

impl Record for WholeRow<'_> {
    fn log(&self) -> &'static LogType {
        self.0.log()
    }

    fn transport(&self) -> Option<Proto> {
        self.0.transport()
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) {
        self.0.visit(visitor);
        LastColumns { end: self.0.end(), columns: None }.visit(visitor);
    }
}

/// A row with its connection, up to the columns that a join adds.
#[derive(Clone, Copy, Debug)]
pub struct BegunRow<'a> {
    /// The connection whose columns come first.
    pub connection: &'a Connection,
    /// The row of the protocol.
    pub row: &'a dyn Row,
}

impl BegunRow<'_> {
    /// What is still to come of it.
    #[must_use]
    pub fn end(&self) -> RowEnd {
        let log = self.row.log();
        RowEnd { log, first: log.fields.len().saturating_sub(self.row.joined()) }
    }
}

impl Record for BegunRow<'_> {
    fn log(&self) -> &'static LogType {
        self.row.log()
    }

    fn transport(&self) -> Option<Proto> {
        (self.connection.uid != Uid::NONE).then_some(self.connection.proto)
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) {
        self.row.visit(self.connection, visitor);
    }
}

/// Where the columns stand that a join adds to a row.
#[derive(Clone, Copy, Debug)]
pub struct RowEnd {
    /// The log that the row belongs to.
    pub log: &'static LogType,
    /// The place of the first of them in the log.
    pub first: usize,
}

/// The columns that a join adds to a row which is rendered up to them.
#[derive(Clone, Copy, Debug)]
pub struct LastColumns<'a> {
    /// Where the columns of the join stand.
    pub end: RowEnd,
    /// The columns; `None` where they are not set.
    pub columns: Option<&'a dyn Columns>,
}

impl Record for LastColumns<'_> {
    fn log(&self) -> &'static LogType {
        self.end.log
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) {
        let RowEnd { log, first } = self.end;
        if let Some(columns) = self.columns {
            columns.visit(first, visitor);
            return;
        }
        for (index, info) in log.fields.iter().enumerate().skip(first) {
            visitor.field(index, info, Value::Unset);
        }
    }
}
