//! Rows of all logs that name a connection.

use core::ops::ControlFlow;
use std::path::Path;

use netsniff_analysis::record::{FieldInfo, LogType};

use super::pass::{GoesOn, Wrong};
use super::shown;
use crate::logs::{Folder, Row, TypedRow};
use crate::page::table::Cell;
use crate::watch::data::row::log_named;

/// Rows of a log that are shown.
const MOST: usize = 500;
/// Logs whose rows tell of intervals: there would be one for each of them.
const NOT_ABOUT_IT: [&str; 2] = ["series", "series_conn"];

/// The rows of a log that name a connection.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) log: &'static LogType,
    /// The first of them, with the cells of all columns.
    pub(crate) rows: Vec<Vec<Cell>>,
    /// How many there are.
    pub(crate) all: u64,
}

/// What names a connection.
#[derive(Debug, Default)]
pub(crate) struct Naming {
    pub(crate) logs: Vec<Named>,
    /// What could not be read, by file.
    pub(crate) wrong: Vec<String>,
}

impl Naming {
    /// Reads all logs in a directory.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read.
    pub(crate) fn of(uid: &str, directory: &Path, goes_on: GoesOn<'_>) -> anyhow::Result<Self> {
        let (mut naming, mut wrong) = (Self::default(), Wrong::default());
        let finder = memchr::memmem::Finder::new(uid.as_bytes());
        for (name, files) in Folder::open(directory)?.logs() {
            let Some(log) = log_named(name).filter(|_| !NOT_ABOUT_IT.contains(&name)) else {
                continue;
            };
            let fields = log.fields.iter().filter(|field| shown::has_uid(field));
            let fields: Vec<_> = fields.collect();
            let mut named = Named { log, rows: Vec::new(), all: 0 };
            if fields.is_empty() {
                continue;
            }
            let may_be = |line: &[u8]| finder.find(line).is_some();
            let take = |row: &Row<'_>| {
                named.take(uid, &fields, row);
                ControlFlow::Continue(())
            };
            if wrong.pass(files, goes_on, may_be, take).is_break() {
                break;
            }
            if named.all > 0 {
                naming.logs.push(named);
            }
        }
        naming.wrong = wrong.said;
        Ok(naming)
    }
}

impl Named {
    fn take(&mut self, uid: &str, fields: &[&'static FieldInfo], row: &Row<'_>) {
        // A text may have it as well.
        let names = |field: &&FieldInfo| match row.elements(field.name) {
            Some(list) => list.iter().any(|one| one.as_deref() == Some(uid)),
            None => false,
        };
        if fields.iter().copied().any(|field| names(&field)) {
            self.all += 1;
            TypedRow { log: self.log, row }.check();
            if self.rows.len() < MOST {
                self.rows.push(shown::cells(self.log, row));
            }
        }
    }
}
