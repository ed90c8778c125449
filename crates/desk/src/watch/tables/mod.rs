//! Tables of what is known, in order and by a condition: what a view lists, before anything is drawn.
//!
//! | module | concern |
//! |---|---|
//! | `cell` | values, how they are ordered and written |
//! | `columns` | the columns of each table |
//! | `filter` | conditions on rows |
//! | `losses` | where packets and bytes were lost |

pub(crate) mod cell;
pub(crate) mod columns;
pub(crate) mod filter;
pub(crate) mod losses;

use self::cell::Cell;
use self::columns::Column;
use self::filter::Filter;
use super::data::Data;
use super::data::subjects::Span;

/// What a table lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Hosts.
    Hosts,
    /// Services.
    Services,
    /// Connections.
    Connections,
    /// Those of a process of this host, or those of which no process is known.
    ConnectionsOf(Option<Box<str>>),
    /// Processes of this host.
    Processes,
    /// Rows of all logs that name a connection.
    Rows(Box<str>),
}

/// By which column rows are in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sort {
    /// Its place.
    pub(crate) column: usize,
    /// Whether the least comes first.
    pub(crate) is_ascending: bool,
}

/// Rows in order.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) columns: &'static [Column],
    pub(crate) rows: Vec<TableRow>,
    /// How many rows there were before the condition.
    pub(crate) all: usize,
}

/// A row of a table.
#[derive(Debug)]
pub(crate) struct TableRow {
    /// What it is found by later.
    pub(crate) name: Box<str>,
    pub(crate) cells: Vec<Cell>,
}

impl Table {
    /// The table of what is known.
    pub(crate) fn of(
        data: &Data,
        subject: &Subject,
        span: Span,
        sort: Sort,
        filter: Option<&Filter>,
    ) -> Self {
        let columns = columns::of(subject);
        let (mut rows, all) = columns::rows(data, subject, span, filter);
        let cell = |row: &TableRow| row.cells.get(sort.column).cloned().unwrap_or(Cell::Unknown);
        // What has no value comes last, whichever order; names make equal rows stay where they are.
        rows.sort_by_cached_key(|row| {
            let cell = cell(row);
            (cell.is_unknown(), cell.order(sort.is_ascending), row.name.clone())
        });
        Self { columns, rows, all }
    }

    /// Where the row with this name is; the first one where none is.
    pub(crate) fn place(&self, name: Option<&str>) -> usize {
        let place = |name: &str| self.rows.iter().position(|row| *row.name == *name);
        name.and_then(place).unwrap_or(0)
    }
}
