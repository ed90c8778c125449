//! Our log of connections against Zeek's, row by row, over the corpus.
//!
//! A row leaves the comparison only through `docs/differences-from-zeek.md`.

mod zeek;

use std::collections::{BTreeMap, BTreeSet};

use zeek::compare::{COLUMNS, Comparison, Difference, KEY, compare};
use zeek::corpus::{Capture, Scratch, analyze, captures, folders};
use zeek::differences::{Listed, leave_out, listed};
use zeek::log;

/// What was compared so far.
#[derive(Debug, Default)]
struct Total {
    files: usize,
    files_same: usize,
    rows: usize,
    rows_same: usize,
    rows_left_out: usize,
    /// How often each column differs.
    columns: BTreeMap<&'static str, usize>,
}

impl Total {
    fn add(&mut self, name: &str, comparison: &Comparison, left_out: usize) {
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

    fn print(&self, what: &str) {
        let Self { files, files_same, rows, rows_same, rows_left_out, columns } = self;
        eprintln!(
            "{what}: {files_same} of {files} files without a difference; \
             {rows_same} of {rows} rows the same ({:.2} %), {rows_left_out} left out by the list; \
             columns that differ: {columns:?}",
            100.0 * *rows_same as f64 / (*rows).max(1) as f64
        );
    }
}

#[test]
fn conn_log_is_zeeks() {
    let Some(captures) = captures("no log of connections was compared with Zeek's") else { return };
    let none = BTreeSet::new();
    let mut unused: Vec<Listed> =
        listed().into_iter().filter(|listed| !is_baseline(&listed.file)).collect();
    let (mut sound, mut fuzzed) = (Total::default(), Total::default());
    for capture in &captures {
        let ours = our_rows(capture);
        let run = capture.oracle().join("zeek-run");
        if !run.is_dir() {
            continue;
        }
        let mut comparison = compare(&log::read(&run.join("conn.log")).unwrap(), &ours, &none);
        let left_out = leave_out(&capture.name, &mut comparison, &mut unused);
        let total = if capture.is_fuzzed() { &mut fuzzed } else { &mut sound };
        total.add(&capture.name, &comparison, left_out);
    }
    eprintln!("columns compared: {} {}", KEY.join(" "), COLUMNS.join(" "));
    sound.print("outside fuzz/");
    fuzzed.print("fuzz/");
    assert!(unused.is_empty(), "listed, but not so: {unused:#?}");
    assert!(sound.files >= 70 && sound.rows >= 500, "{sound:?}");
    assert!(sound.rows_same * 100 >= sound.rows * 98, "less than 98 % of the rows are the same");
    assert!(sound.files_same * 10 >= sound.files * 9, "more than one file in ten differs");
    assert!(
        sound.rows_left_out * 50 <= sound.rows + sound.rows_left_out,
        "more than 2 % of the rows are left out"
    );
}

fn our_rows(capture: &Capture) -> Vec<log::Row> {
    let scratch = Scratch::new("zeek-conn");
    analyze(&capture.path, scratch.path(), &["--workers", "1"]);
    log::read(&scratch.path().join("conn.log")).unwrap()
}

fn is_baseline(file: &str) -> bool {
    file.contains(".oracle/")
}

/// The columns of upstream's baselines that cannot be compared: times are masked, and which
/// networks are local depends on the settings.
const MASKED: [&str; 3] = ["ts", "local_orig", "local_resp"];

#[test]
fn conn_log_is_that_of_zeeks_own_tests() {
    let Some(captures) = captures("no log of connections was compared with Zeek's tests") else {
        return;
    };
    let masked = BTreeSet::from(MASKED);
    let mut unused: Vec<Listed> =
        listed().into_iter().filter(|listed| is_baseline(&listed.file)).collect();
    let mut total = Total::default();
    for capture in &captures {
        let tests = folders(&capture.oracle().join("zeek"));
        let tests: Vec<_> = tests.iter().filter(|test| test.join("conn.log").is_file()).collect();
        if tests.is_empty() {
            continue;
        }
        let ours = our_rows(capture);
        for test in tests {
            let name = test.file_name().unwrap().to_str().unwrap();
            let Some(theirs) = log::read(&test.join("conn.log")) else {
                eprintln!("left out: {name}, whose log has no names of columns");
                continue;
            };
            let mut comparison = compare(&theirs, &ours, &masked);
            let file = format!("{}.oracle/zeek/{name}", capture.name);
            let left_out = leave_out(&file, &mut comparison, &mut unused);
            total.add(&file, &comparison, left_out);
        }
    }
    total.print("upstream's baselines");
    eprintln!("columns left out of them: {}", MASKED.join(" "));
    assert!(unused.is_empty(), "listed, but not so: {unused:#?}");
    assert!(total.files >= 26 && total.rows >= 160, "{total:?}");
    assert_eq!(total.rows_same, total.rows, "Zeek's tests expect other rows");
}
