//! Rows of a log by a condition, in order, a page at a time: one pass over its files, with no more memory than the rows of the page and
//! those before it take.
//!
//! | module | concern |
//! |---|---|
//! | `pass` | one pass over the files of a log |
//! | `order` | what rows are in order by, and the first of an order |
//! | `download` | all of them, as a file |
//! | `shown` | the cells of a row |
//! | `naming` | rows of all logs that name a connection |

pub(super) mod download;
pub(super) mod naming;
pub(super) mod order;
pub(super) mod pass;
pub(super) mod shown;

use core::ops::ControlFlow;
use std::path::Path;

use self::order::{First, Order};
use self::pass::{GoesOn, Wanted};
use crate::logs::Folder;
use crate::page::table::Cell;

/// Rows that are kept at once: all that come before the end of the page.
pub(super) const DEEPEST: usize = 10_000;

/// Bytes of the rows that are kept for a page, so that also rows of long texts and lists have a bound. The deepest page of
/// usual rows of `conn` takes a fifth of it.
pub(super) const KEPT: usize = 256 << 20;

/// What is asked for.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) wanted: Wanted,
    pub(super) order: Order,
    /// Rows before the first that is wanted.
    pub(super) skip: usize,
    /// Rows that are wanted.
    pub(super) most: usize,
    /// Bytes of memory that there are for the rows before and on the page.
    pub(super) bytes: usize,
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
    /// How many rows of the order had room, where that ended before the page.
    pub(super) ended: Option<usize>,
}

impl Query {
    /// Reads the log in a directory, as far as somebody waits for it.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read.
    pub(super) fn run(&self, directory: &Path, goes_on: GoesOn<'_>) -> anyhow::Result<Found> {
        let folder = Folder::open(directory)?;
        let left_out = self.wanted.left_out(&folder);
        let mut wrong: Vec<_> = left_out.map(|(name, why)| format!("{name} {why}")).collect();
        let room = self.skip.saturating_add(self.most).min(DEEPEST);
        let mut first = First::new(room, self.bytes);
        let passed = self.wanted.pass(&folder, goes_on, |row, number| {
            let rank = self.order.rank(row.row, number);
            first.take(rank, || {
                let cells = shown::cells(self.wanted.log, row.row);
                let bytes = cells.iter().map(Cell::memory).sum();
                (cells, bytes)
            });
            ControlFlow::Continue(())
        });
        wrong.extend(passed.wrong.said);
        let kept: Vec<_> = first.into_rows().collect();
        let wanted = usize::try_from(passed.matched).unwrap_or(usize::MAX).min(room);
        let ended = (kept.len() < wanted).then_some(kept.len());
        let rows = kept.into_iter().skip(self.skip).take(self.most).collect();
        Ok(Found { rows, matched: passed.matched, all: passed.all, wrong, ended })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use netsniff_output::condition::Condition;

    use super::*;
    use crate::watch::data::row::log_named;

    fn query(condition: Option<&str>, sort: &str, is_ascending: bool) -> Query {
        let log = log_named("conn").unwrap();
        let condition = condition.map(|text| Condition::parse(text, log).unwrap());
        Query {
            wanted: Wanted { log, condition },
            order: Order {
                column: log.fields.iter().find(|field| field.name == sort).unwrap(),
                is_ascending,
            },
            skip: 0,
            most: 2,
            bytes: KEPT,
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
        let run = |query: &Query| query.run(&directory, &|| true).unwrap();
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
        // Nobody knows whether another form of the log has other rows.
        ["conn.json", "conn.txt", "dns.json", "dns.log"]
            .into_iter()
            .for_each(|name| fs::write(directory.join(name), rows).unwrap());
        let left_out = [
            "conn.txt is in a form that is not read",
            "conn.json is not read: another form of the log is",
            "conn.log: 1 lines are no rows",
        ];
        assert_eq!(run(&query(None, "ts", true)).wrong, left_out);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_page_ends_where_its_rows_have_no_more_room() {
        let name = format!("netsniff-room-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let list = format!("\"{}\"", ["x"; 200].concat());
        let lists = [list.as_str(); 60].join(",");
        let row = |number| {
            format!("{{\"ts\":{number},\"uid\":\"C{number}\",\"tunnel_parents\":[{lists}]}}\n")
        };
        fs::write(directory.join("conn.log"), (0..20).map(row).collect::<String>()).unwrap();
        let run = |skip, bytes| {
            let query = Query { skip, most: 8, bytes, ..query(None, "ts", true) };
            let found = query.run(&directory, &|| true).unwrap();
            assert_eq!(found.matched, 20);
            (found.rows.len(), found.ended)
        };
        assert_eq!(run(8, KEPT), (8, None));
        assert_eq!(run(16, KEPT), (4, None));
        // The list alone takes 12 kB.
        let (rows, ended) = run(8, 12 * 12_000);
        let ended = ended.unwrap();
        assert!((3..12).contains(&ended) && rows == ended.saturating_sub(8), "{rows} {ended}");
        assert_eq!(run(0, 12_000), (0, Some(0)));
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn values_that_cannot_be_understood_are_told_wherever_they_are() {
        let name = format!("netsniff-values-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let rows = "{\"ts\":1,\"uid\":\"Ca\",\"orig_bytes\":5.0,\"resp_bytes\":-7,\"tunnel_parents\":[]}\n\
                    {\"ts\":2,\"uid\":\"Cb\",\"id.orig_h\":\"nohost\",\"id.resp_p\":70000}\n\
                    {\"ts\":3,\"uid\":\"Cc\",\"resp_bytes\":null,\"service\":\"\"}\n";
        fs::write(directory.join("conn.log"), rows).unwrap();
        let all = ["conn.log: 4 values cannot be understood"];
        for condition in [None, Some("resp_bytes > 1"), Some("uid = 'Cc'")] {
            // Also those of rows that have no room on the page.
            let one = Query { most: 1, ..query(condition, "ts", false) };
            assert_eq!(one.run(&directory, &|| true).unwrap().wrong, all, "{condition:?}");
        }
        let naming = naming::Naming::of("Cb", &directory, &|| true).unwrap();
        assert_eq!(naming.wrong, ["conn.log: 2 values cannot be understood"]);
        fs::remove_dir_all(&directory).unwrap();
    }

    /// How often a pass over many lines, of which none is wanted, asks whether anybody waits, where nobody does from the
    /// tenth time on.
    fn times_asked(line: &str, name: &str) -> u32 {
        let directory = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("conn.json"), line.repeat(10_000)).unwrap();
        let asked = core::cell::Cell::new(0);
        let goes_on = || {
            asked.set(asked.get() + 1);
            asked.get() < 10
        };
        let found = query(Some("id.resp_p = 1"), "ts", true).run(&directory, &goes_on);
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(found.unwrap().matched, 0);
        asked.get()
    }

    #[test]
    fn a_pass_ends_where_nobody_waits_also_where_nothing_is_found() {
        for line in ["{\"id.resp_p\":80}\n", "no row\n", "#comment\n"] {
            let asked = times_asked(line, "netsniff-unwanted");
            // Once before each line, and once more behind the last.
            assert!((10..13).contains(&asked), "{line}: {asked}");
        }
    }
}
