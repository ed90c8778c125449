//! Our log of files against Zeek's, row by row, over the corpus.
//!
//! A row leaves the comparison only through `docs/differences-from-zeek.md`, or because it is of a
//! protocol that is not built yet, or within one.

use std::collections::BTreeSet;

use crate::zeek::compare::{FILES, compare};
use crate::zeek::corpus::{Scratch, analyze, captures};
use crate::zeek::differences::{leave_out, listed};
use crate::zeek::log;
use crate::zeek::total::Total;
use crate::zeek::unbuilt;

#[test]
fn files_log_is_zeeks() {
    let Some(captures) = captures("no log of files was compared with Zeek's") else { return };
    let mut unused = listed("files", FILES);
    let (mut sound, mut fuzzed, mut all_sound) = (Total::default(), Total::default(), (0, 0));
    let mut not_built = 0;
    for capture in &captures {
        let run = capture.oracle().join("zeek-run");
        if !run.is_dir() {
            continue;
        }
        let scratch = Scratch::new("zeek-files");
        analyze(&capture.path, scratch.path(), &["--workers", "1"]);
        let ours = log::read(&scratch.path().join("files.log")).unwrap();
        let mut theirs = log::read(&run.join("files.log")).unwrap();
        let conn = log::read(&run.join("conn.log")).unwrap();
        let before = theirs.len();
        theirs.retain(|row| !unbuilt::is_in(&row["uid"], &conn));
        not_built += before - theirs.len();
        if theirs.is_empty() && ours.is_empty() {
            continue;
        }
        let mut comparison = compare(FILES, &theirs, &ours, &BTreeSet::new());
        if !capture.is_fuzzed() {
            all_sound.0 += comparison.rows;
            all_sound.1 += comparison.same;
        }
        let left_out = leave_out(&capture.name, &mut comparison, &mut unused);
        let total = if capture.is_fuzzed() { &mut fuzzed } else { &mut sound };
        total.add(&capture.name, &comparison, left_out);
    }
    eprintln!("columns compared: {} {}", FILES.key.join(" "), FILES.compared.join(" "));
    eprintln!("left out: {not_built} rows of protocols that are not built");
    eprintln!("with those that the list takes out: {} of {} the same", all_sound.1, all_sound.0);
    sound.print("outside fuzz/");
    fuzzed.print("fuzz/");
    assert!(unused.is_empty(), "listed, but not so: {unused:#?}");
    assert!(sound.files >= 25 && sound.rows >= 420, "{sound:?}");
    assert!(all_sound.1 * 100 >= all_sound.0 * 95, "less than 95 % of all rows are the same");
    assert!(sound.rows_same * 100 >= sound.rows * 98, "less than 98 % of the rows are the same");
    assert!(sound.files_same * 10 >= sound.files * 9, "more than one file in ten differ");
}
