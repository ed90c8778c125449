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
/// Bytes of the rows of a log that are shown, so that also those of long texts and lists have a bound. As many usual ones as
/// are shown take less.
const KEPT: usize = 4 << 20;
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
    /// Bytes that there are for more rows.
    room: usize,
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
            let mut named = Named { log, rows: Vec::new(), all: 0, room: KEPT };
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
            self.keep(row);
        }
    }

    /// Keeps a row where there is room. Behind the first that had none, none is kept: others would be missing between.
    fn keep(&mut self, row: &Row<'_>) {
        if self.rows.len() >= MOST || self.room == 0 {
            return;
        }
        let cells = shown::cells(self.log, row);
        let bytes = cells.iter().map(Cell::memory).sum();
        match self.room.checked_sub(bytes) {
            Some(room) => self.room = room,
            // The page is about the first one.
            None if self.rows.is_empty() => self.room = 0,
            None => {
                self.room = 0;
                return;
            }
        }
        self.rows.push(cells);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn rows_that_name_a_connection_take_no_more_memory_than_there_is() {
        let name = format!("netsniff-naming-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let list = format!("\"{}\"", "x".repeat(200));
        let lists = [list.as_str(); 60].join(",");
        let long = format!("{{\"ts\":1,\"uid\":\"Ca\",\"tunnel_parents\":[{lists}]}}\n");
        let short = "{\"ts\":2,\"uid\":\"Ca\"}\n";
        fs::write(directory.join("conn.log"), long.repeat(450) + &short.repeat(100)).unwrap();
        fs::write(directory.join("dns.log"), short.repeat(600)).unwrap();
        let naming = Naming::of("Ca", &directory, &|| true).unwrap();
        fs::remove_dir_all(&directory).unwrap();
        let of = |path| naming.logs.iter().find(|named| named.log.path == path).unwrap();
        let (conn, dns) = (of("conn"), of("dns"));
        let bytes: usize = conn.rows.iter().flatten().map(Cell::memory).sum();
        assert!(conn.rows.len() > 100 && bytes <= KEPT, "{} {bytes}", conn.rows.len());
        assert!(conn.rows.iter().all(|row| row == &conn.rows[0]), "rows are missing between");
        assert_eq!((conn.all, dns.all, dns.rows.len()), (550, 600, MOST));
    }
}
