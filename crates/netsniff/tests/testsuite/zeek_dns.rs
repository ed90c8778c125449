//! Our log of DNS against Zeek's, row by row, over the corpus.
//!
//! A row leaves the comparison only through `docs/differences-from-zeek.md`.

use std::collections::BTreeSet;

use crate::zeek::compare::{DNS, compare};
use crate::zeek::corpus::{Scratch, analyze, captures};
use crate::zeek::differences::{leave_out, listed};
use crate::zeek::log;
use crate::zeek::total::Total;

#[test]
fn dns_log_is_zeeks() {
    let Some(captures) = captures("no log of DNS was compared with Zeek's") else { return };
    let mut unused = listed("dns", DNS);
    let (mut sound, mut fuzzed) = (Total::default(), Total::default());
    for capture in &captures {
        let run = capture.oracle().join("zeek-run");
        if !run.is_dir() {
            continue;
        }
        let scratch = Scratch::new("zeek-dns");
        analyze(&capture.path, scratch.path(), &["--workers", "1"]);
        let ours = log::read(&scratch.path().join("dns.log")).unwrap();
        let theirs = log::read(&run.join("dns.log")).unwrap();
        if theirs.is_empty() && ours.is_empty() {
            continue;
        }
        let mut comparison = compare(DNS, &theirs, &ours, &BTreeSet::new());
        let left_out = leave_out(&capture.name, &mut comparison, &mut unused);
        let total = if capture.is_fuzzed() { &mut fuzzed } else { &mut sound };
        total.add(&capture.name, &comparison, left_out);
    }
    eprintln!("columns compared: {} {}", DNS.key.join(" "), DNS.compared.join(" "));
    sound.print("outside fuzz/");
    fuzzed.print("fuzz/");
    assert!(unused.is_empty(), "listed, but not so: {unused:#?}");
    assert!(sound.files >= 16 && sound.rows >= 200, "{sound:?}");
    assert!(sound.rows_same * 100 >= sound.rows * 98, "less than 98 % of the rows are the same");
    assert!(sound.files_same * 10 >= sound.files * 8, "more than two files in ten differ");
    assert!(fuzzed.rows_same * 100 >= fuzzed.rows * 95, "fuzzed: less than 95 % are the same");
}
