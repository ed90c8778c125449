//! Rows of all logs that name a connection.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use netsniff_analysis::record::{FieldInfo, LogType};

use super::{shown, wrong};
use crate::logs::{Folder, Reader, Row};
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
    pub(crate) fn of(uid: &str, directory: &Path, given_up: &AtomicBool) -> anyhow::Result<Self> {
        let mut naming = Self::default();
        let finder = memchr::memmem::Finder::new(uid.as_bytes());
        for (name, files) in Folder::open(directory)?.logs() {
            let Some(log) = log_named(name).filter(|_| !NOT_ABOUT_IT.contains(&name)) else {
                continue;
            };
            let fields = log.fields.iter().filter(|field| shown::has_uid(field));
            let fields: Vec<_> = fields.collect();
            let mut named = Named { log, rows: Vec::new(), all: 0 };
            for file in files.iter().filter(|_| !fields.is_empty()) {
                match Reader::open(&file.path) {
                    Ok(mut reader) => {
                        // Where nobody waits any more, the next row will do to see it.
                        let may_be = |line: &[u8]| {
                            given_up.load(Ordering::Relaxed) || finder.find(line).is_some()
                        };
                        while let Some(row) = reader.next_row_that(may_be) {
                            named.take(uid, &fields, &row);
                            if given_up.load(Ordering::Relaxed) {
                                return Ok(naming);
                            }
                        }
                        naming.wrong.extend(wrong(&file.name, &reader.faults()));
                    }
                    Err(error) => naming.wrong.push(format!("{}: {error}", file.name)),
                }
            }
            if named.all > 0 {
                naming.logs.push(named);
            }
        }
        Ok(naming)
    }
}

impl Named {
    fn take(&mut self, uid: &str, fields: &[&'static FieldInfo], row: &Row<'_>) {
        // A text may have it as well.
        let names = |field: &&FieldInfo| match row.elements(field.name) {
            Some(list) => list.iter().any(|one| one == uid),
            None => false,
        };
        if fields.iter().copied().any(|field| names(&field)) {
            self.all += 1;
            if self.rows.len() < MOST {
                self.rows.push(shown::cells(self.log, row));
            }
        }
    }
}
