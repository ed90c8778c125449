//! What the comparisons of all captures amount to.

use std::collections::{BTreeMap, BTreeSet};

use super::compare::{Columns, Comparison, Difference, compare};
use super::corpus::{Scratch, analyze, captures};
use super::differences::{Listed, leave_out};
use super::log;

/// What was compared so far.
#[derive(Debug, Default)]
pub(crate) struct Total {
    /// Files that were compared.
    pub(crate) files: usize,
    /// Files without a difference.
    pub(crate) files_same: usize,
    /// Rows that were compared.
    pub(crate) rows: usize,
    /// Rows that are the same.
    pub(crate) rows_same: usize,
    /// Rows that the list of differences takes out.
    pub(crate) rows_left_out: usize,
    /// How often each column differs.
    columns: BTreeMap<&'static str, usize>,
}

impl Total {
    /// Adds a comparison, and prints its differences.
    pub(crate) fn add(&mut self, name: &str, comparison: &Comparison, left_out: usize) {
        self.files += 1;
        self.files_same += usize::from(comparison.differing() == 0);
        self.rows += comparison.rows;
        self.rows_same += comparison.same;
        self.rows_left_out += left_out;
        for (key, difference) in &comparison.differences {
            match difference {
                Difference::Missing => eprintln!("{name}: {key}\n    only in Zeek"),
                Difference::Extra => eprintln!("{name}: {key}\n    only in netsniff"),
                Difference::Cells(cells) => {
                    eprintln!("{name}: {key}");
                    for (column, theirs, ours) in cells {
                        eprintln!("    {column}: Zeek {theirs}, netsniff {ours}");
                        *self.columns.entry(column).or_default() += 1;
                    }
                }
            }
        }
    }

    /// Prints what was compared.
    pub(crate) fn print(&self, what: &str) {
        let Self { files, files_same, rows, rows_same, rows_left_out, columns } = self;
        eprintln!(
            "{what}: {files_same} of {files} files without a difference; \
             {rows_same} of {rows} rows the same ({:.2} %), {rows_left_out} left out by the list; \
             columns that differ: {columns:?}",
            100.0 * *rows_same as f64 / (*rows).max(1) as f64
        );
    }
}

/// Compares a log over the corpus: what the captures outside `fuzz/` amount to, and those in it.
/// `None` without a corpus. The rows in `unused` are left out.
///
/// # Panics
///
/// When a row that is to be left out is there, and the same in both logs.
pub(crate) fn over_corpus(
    log: &str,
    columns: Columns,
    mut unused: Vec<Listed>,
) -> Option<(Total, Total)> {
    let captures = captures(&format!("no log {log} was compared with Zeek's"))?;
    let (mut sound, mut fuzzed) = (Total::default(), Total::default());
    for capture in &captures {
        let run = capture.oracle().join("zeek-run");
        if !run.is_dir() {
            continue;
        }
        let scratch = Scratch::new(&format!("zeek-{log}"));
        analyze(&capture.path, scratch.path(), &["--workers", "1"]);
        let file = format!("{log}.log");
        let ours = log::read(&scratch.path().join(&file)).unwrap();
        let theirs = log::read(&run.join(&file)).unwrap();
        if theirs.is_empty() && ours.is_empty() {
            continue;
        }
        let mut comparison = compare(columns, &theirs, &ours, &BTreeSet::new());
        let left_out = leave_out(&capture.name, &mut comparison, &mut unused);
        let total = if capture.is_fuzzed() { &mut fuzzed } else { &mut sound };
        total.add(&capture.name, &comparison, left_out);
    }
    assert!(unused.is_empty(), "listed, but not so: {unused:#?}");
    eprintln!("columns compared: {} {}", columns.key.join(" "), columns.compared.join(" "));
    sound.print("outside fuzz/");
    fuzzed.print("fuzz/");
    Some((sound, fuzzed))
}
