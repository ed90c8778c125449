//! Our log of connections against Zeek's, row by row, over the corpus.
//!
//! A row leaves the comparison only through `docs/differences-from-zeek.md`.

use std::collections::BTreeSet;

use crate::zeek::compare::{ANY, CONN, compare};
use crate::zeek::corpus::{Capture, Scratch, analyze, captures, folders};
use crate::zeek::differences::{Listed, leave_out, listed};
use crate::zeek::log;
use crate::zeek::total::Total;
use netsniff_analysis::protocol::ProtocolId;

#[test]
fn conn_log_is_zeeks() {
    let Some(captures) = captures("no log of connections was compared with Zeek's") else { return };
    let none = BTreeSet::new();
    let mut unused: Vec<Listed> =
        listed("conn", CONN).into_iter().filter(|listed| !is_baseline(&listed.file)).collect();
    let (mut sound, mut fuzzed) = (Total::default(), Total::default());
    for capture in &captures {
        let ours = our_rows(capture);
        let run = capture.oracle().join("zeek-run");
        if !run.is_dir() {
            continue;
        }
        let theirs = without_other_services(log::read(&run.join("conn.log")).unwrap());
        let mut comparison = compare(CONN, &theirs, &ours, &none);
        let left_out = leave_out(&capture.name, &mut comparison, &mut unused);
        let total = if capture.is_fuzzed() { &mut fuzzed } else { &mut sound };
        total.add(&capture.name, &comparison, left_out);
    }
    eprintln!("columns compared: {} {}", CONN.key.join(" "), CONN.compared.join(" "));
    eprintln!("service compared where Zeek's has only protocols that netsniff knows");
    sound.print("outside fuzz/");
    fuzzed.print("fuzz/");
    assert!(unused.is_empty(), "listed, but not so: {unused:#?}");
    assert!(sound.files >= 70 && sound.rows >= 500, "{sound:?}");
    assert!(sound.rows_same * 100 >= sound.rows * 98, "less than 98 % of the rows are the same");
    assert!(sound.files_same * 10 >= sound.files * 9, "more than one file in ten differs");
    assert!(
        sound.rows_same * 100 >= (sound.rows + sound.rows_left_out) * 95,
        "less than 95 % of all rows are the same, those that are left out counted as others"
    );
}

fn our_rows(capture: &Capture) -> Vec<log::Row> {
    let scratch = Scratch::new("zeek-conn");
    analyze(&capture.path, scratch.path(), &["--workers", "1"]);
    log::read(&scratch.path().join("conn.log")).unwrap()
}

/// Zeek's rows, where the services that netsniff does not know match anything.
fn without_other_services(mut rows: Vec<log::Row>) -> Vec<log::Row> {
    for row in &mut rows {
        let services = row["service"].split(',');
        let is_known = |name: &str| name == "-" || ProtocolId::named(name).is_some();
        if !services.clone().all(is_known) {
            row.insert("service".to_owned(), ANY.to_owned());
        }
    }
    rows
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
        listed("conn", CONN).into_iter().filter(|listed| is_baseline(&listed.file)).collect();
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
            let theirs = without_other_services(theirs);
            let mut comparison = compare(CONN, &theirs, &ours, &masked);
            let file = format!("{}.oracle/zeek/{name}", capture.name);
            let left_out = leave_out(&file, &mut comparison, &mut unused);
            total.add(&file, &comparison, left_out);
        }
    }
    total.print("upstream's baselines");
    eprintln!("columns left out of them: {}", MASKED.join(" "));
    assert!(unused.is_empty(), "listed, but not so: {unused:#?}");
    assert!(total.files >= 26 && total.rows + total.rows_left_out >= 160, "{total:?}");
    assert_eq!(total.rows_same, total.rows, "Zeek's tests expect other rows");
}
