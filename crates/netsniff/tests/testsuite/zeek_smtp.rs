//! Our log of mails against Zeek's, row by row, over the corpus.
//!
//! A row leaves the comparison only through `docs/differences-from-zeek.md`.

use std::collections::BTreeSet;

use crate::zeek::compare::{SMTP, compare, sort_sets};
use crate::zeek::corpus::{Scratch, analyze, captures};
use crate::zeek::log;
use crate::zeek::total::Total;

#[test]
fn smtp_log_is_zeeks() {
    let Some(captures) = captures("no log of mails was compared with Zeek's") else { return };
    let mut total = Total::default();
    for capture in &captures {
        let run = capture.oracle().join("zeek-run");
        if !run.is_dir() {
            continue;
        }
        let scratch = Scratch::new("zeek-smtp");
        analyze(&capture.path, scratch.path(), &["--workers", "1"]);
        let mut ours = log::read(&scratch.path().join("smtp.log")).unwrap();
        let mut theirs = log::read(&run.join("smtp.log")).unwrap();
        if theirs.is_empty() && ours.is_empty() {
            continue;
        }
        for rows in [&mut ours, &mut theirs] {
            sort_sets(rows, &["rcptto", "to", "cc"]);
            count_elements(rows, "fuids");
        }
        total.add(&capture.name, &compare(SMTP, &theirs, &ours, &BTreeSet::new()), 0);
    }
    eprintln!("columns compared: {} {}", SMTP.key.join(" "), SMTP.compared.join(" "));
    total.print("all captures");
    assert!(total.files >= 4 && total.rows >= 6, "{total:?}");
    assert_eq!(total.rows_same, total.rows, "rows differ");
}

/// Puts the number of elements in the place of names that are drawn at random.
fn count_elements(rows: &mut [log::Row], column: &str) {
    for row in rows {
        let cell = row.get_mut(column).unwrap();
        let count =
            if ["-", "(empty)"].contains(&cell.as_str()) { 0 } else { cell.split(',').count() };
        *cell = count.to_string();
    }
}
