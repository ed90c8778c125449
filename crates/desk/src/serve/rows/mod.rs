//! Rows of a log by a condition, in order, a page at a time: one pass over its files, with no more memory than the rows of the page and
//! those before it take.
//!
//! | module | concern |
//! |---|---|
//! | `order` | what rows are in order by |
//! | `shown` | the cells of a row |
//! | `naming` | rows of all logs that name a connection |

pub(super) mod naming;
mod order;
pub(super) mod shown;

use std::collections::BinaryHeap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use netsniff_analysis::record::{FieldInfo, LogType};
use netsniff_output::condition::Condition;

use self::order::{Key, Rank};
use crate::logs::{Faults, Folder, Reader, Row, TypedRow};
use crate::page::table::Cell;

/// Rows that are kept at once: all that come before the end of the page.
pub(super) const DEEPEST: usize = 10_000;
/// After how many rows it is asked whether anybody waits for them.
const STRIDE: u64 = 1024;

/// What is asked for.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) log: &'static LogType,
    pub(super) condition: Option<Condition>,
    /// The column that rows are in order by.
    pub(super) sort: &'static FieldInfo,
    pub(super) is_ascending: bool,
    /// Rows before the first that is wanted.
    pub(super) skip: usize,
    /// Rows that are wanted.
    pub(super) most: usize,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The rows that were asked for, each with the cells of all columns.
    pub(super) rows: Vec<Vec<Cell>>,
    /// Rows for which the condition holds.
    pub(super) matched: u64,
    /// Rows of the log.
    pub(super) all: u64,
    /// What could not be read, by file.
    pub(super) wrong: Vec<String>,
}

/// A row that is kept, ordered by its rank.
struct Kept {
    rank: Rank,
    cells: Vec<Cell>,
}

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl Eq for Kept {}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Kept {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl Query {
    /// Reads the log in a directory. `None` where nobody waits for it any more.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read.
    pub(super) fn run(&self, directory: &Path, given_up: &AtomicBool) -> anyhow::Result<Found> {
        let folder = Folder::open(directory)?;
        let mut found = Found::default();
        let mut kept = BinaryHeap::new();
        let unread = folder.unread.iter().filter(|name| {
            name.strip_prefix(self.log.path).is_some_and(|rest| rest.starts_with('.'))
        });
        found.wrong.extend(unread.map(|name| format!("{name} is in a form that is not read here")));
        let files = folder.logs().find(|(log, _)| *log == self.log.path).map(|(_, files)| files);
        for file in files.into_iter().flatten() {
            match Reader::open(&file.path) {
                Ok(mut reader) => {
                    while let Some(row) = reader.next_row() {
                        self.take(&row, &mut found, &mut kept);
                        if found.all.is_multiple_of(STRIDE) && given_up.load(Ordering::Relaxed) {
                            return Ok(found);
                        }
                    }
                    found.wrong.extend(wrong(&file.name, &reader.faults()));
                }
                Err(error) => found.wrong.push(format!("{}: {error}", file.name)),
            }
        }
        let rows = kept.into_sorted_vec().into_iter().map(|kept: Kept| kept.cells);
        found.rows = rows.skip(self.skip).take(self.most).collect();
        Ok(found)
    }

    fn take(&self, row: &Row<'_>, found: &mut Found, kept: &mut BinaryHeap<Kept>) {
        found.all += 1;
        let typed = TypedRow { log: self.log, row };
        if self.condition.as_ref().is_some_and(|condition| !condition.matches(&typed)) {
            return;
        }
        found.matched += 1;
        let rank = Rank::of(Key::of(row, self.sort), self.is_ascending, found.matched);
        let room = self.skip.saturating_add(self.most).min(DEEPEST);
        if kept.len() >= room {
            if kept.peek().is_none_or(|last| last.rank < rank) {
                return;
            }
            kept.pop();
        }
        kept.push(Kept { rank, cells: shown::cells(self.log, row) });
    }
}

/// What of a file could not be read.
pub(super) fn wrong(name: &str, faults: &Faults) -> Vec<String> {
    let mut said = Vec::new();
    if faults.lines > 0 {
        said.push(format!("{name}: {} lines are no rows", faults.lines));
    }
    if let Some(why) = &faults.stopped {
        said.push(format!("{name}: could not be read to its end: {why}"));
    }
    said
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::watch::data::row::log_named;

    fn query(condition: Option<&str>, sort: &str, is_ascending: bool) -> Query {
        let log = log_named("conn").unwrap();
        Query {
            log,
            condition: condition.map(|text| Condition::parse(text, log).unwrap()),
            sort: log.fields.iter().find(|field| field.name == sort).unwrap(),
            is_ascending,
            skip: 0,
            most: 2,
        }
    }

    fn uids(found: &Found) -> Vec<&str> {
        found.rows.iter().map(|cells| cells[1].text.as_str()).collect()
    }

    #[test]
    fn rows_of_all_files_come_in_order_a_page_at_a_time() {
        let name = format!("netsniff-rows-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let rows = "{\"ts\":1,\"uid\":\"Ca\",\"orig_bytes\":9,\"id.resp_p\":80}\n\
                    {\"ts\":2,\"uid\":\"Cb\",\"id.resp_p\":443}\n";
        fs::write(directory.join("conn.2026-11-21-22-09-03.log"), rows).unwrap();
        let tsv = "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\tconn\n\
                   #fields\tts\tuid\tid.resp_p\torig_bytes\n#types\ttime\tstring\tport\tcount\n\
                   3.000000\tCc\t80\t10\nbroken\n4.000000\tCd\t80\t2\n";
        fs::write(directory.join("conn.log"), tsv).unwrap();
        let run = |query: &Query| query.run(&directory, &AtomicBool::new(false)).unwrap();
        let newest = run(&query(None, "ts", false));
        assert_eq!((uids(&newest), newest.all, newest.matched), (vec!["Cd", "Cc"], 4, 4));
        assert_eq!(newest.wrong, ["conn.log: 1 lines are no rows"]);
        let second = run(&Query { skip: 2, ..query(None, "ts", false) });
        assert_eq!(uids(&second), ["Cb", "Ca"]);
        // Numbers are numbers, and what is not known comes last in either order.
        let bytes = |is_ascending| Query { most: 4, ..query(None, "orig_bytes", is_ascending) };
        assert_eq!(uids(&run(&bytes(true))), ["Cd", "Ca", "Cc", "Cb"]);
        assert_eq!(uids(&run(&bytes(false))), ["Cc", "Ca", "Cd", "Cb"]);
        let wanted = run(&query(Some("id.resp_p = 80 AND orig_bytes > 2"), "ts", true));
        assert_eq!((uids(&wanted), wanted.all, wanted.matched), (vec!["Ca", "Cc"], 4, 2));
        fs::remove_dir_all(&directory).unwrap();
    }
}
