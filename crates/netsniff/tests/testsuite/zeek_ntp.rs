//! Our log of NTP against Zeek's, row by row, over the corpus: not one row may differ.

use std::collections::BTreeSet;

use crate::zeek::compare::{NTP, compare};
use crate::zeek::corpus::{Scratch, analyze, captures};
use crate::zeek::log;
use crate::zeek::total::Total;

#[test]
fn ntp_log_is_zeeks() {
    let Some(captures) = captures("no log of NTP was compared with Zeek's") else { return };
    let mut total = Total::default();
    for capture in &captures {
        let run = capture.oracle().join("zeek-run");
        if !run.is_dir() {
            continue;
        }
        let scratch = Scratch::new("zeek-ntp");
        analyze(&capture.path, scratch.path(), &["--workers", "1"]);
        let ours = log::read(&scratch.path().join("ntp.log")).unwrap();
        let theirs = log::read(&run.join("ntp.log")).unwrap();
        if !theirs.is_empty() || !ours.is_empty() {
            total.add(&capture.name, &compare(NTP, &theirs, &ours, &BTreeSet::new()), 0);
        }
    }
    eprintln!("columns compared: {} {}", NTP.key.join(" "), NTP.compared.join(" "));
    total.print("ntp");
    assert!(total.files >= 4 && total.rows >= 41, "{total:?}");
    assert_eq!((total.files_same, total.rows_same), (total.files, total.rows));
}
