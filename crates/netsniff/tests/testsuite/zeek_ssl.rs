//! Our logs of TLS, certificates and QUIC against Zeek's, row by row, over the corpus.
//!
//! A row leaves the comparison only through `docs/differences-from-zeek.md`, or because it is of TLS
//! that began within a protocol that is not built yet. The Zeek that ran over the corpus was built
//! without QUIC: captures of it are compared with the baselines of Zeek's own tests, whose times are
//! masked.

use std::collections::BTreeSet;

use crate::zeek::compare::{Columns, QUIC, SSL, X509, compare};
use crate::zeek::corpus::{Capture, Scratch, analyze, captures, folders};
use crate::zeek::differences::{leave_out, listed};
use crate::zeek::log::{self, Row};
use crate::zeek::total::Total;
use crate::zeek::unbuilt;

/// Compares the log named `name` of each capture with that of the Zeek that ran over the corpus.
fn compare_with_zeek(name: &str, columns: Columns) -> Option<Total> {
    let captures = captures(&format!("no log of {name} was compared with Zeek's"))?;
    let mut unused = listed(name, columns);
    let (mut sound, mut fuzzed) = (Total::default(), Total::default());
    let mut not_built = 0;
    for capture in &captures {
        let run = capture.oracle().join("zeek-run");
        if !run.is_dir() {
            continue;
        }
        let ours = our_rows(capture, name);
        let read = |name: &str| log::read(&run.join(format!("{name}.log"))).unwrap();
        let mut theirs = read(name);
        let before = theirs.len();
        leave_out_within_others(&mut theirs, &read("ssl"), &read("conn"));
        not_built += before - theirs.len();
        if theirs.is_empty() && ours.is_empty() {
            continue;
        }
        let mut comparison = compare(columns, &theirs, &ours, &BTreeSet::new());
        let left_out = leave_out(&capture.name, &mut comparison, &mut unused);
        let total = if capture.is_fuzzed() { &mut fuzzed } else { &mut sound };
        total.add(&capture.name, &comparison, left_out);
    }
    eprintln!("columns compared: {} {}", columns.key.join(" "), columns.compared.join(" "));
    eprintln!("left out: {not_built} rows within protocols that are not built");
    sound.print("outside fuzz/");
    fuzzed.print("fuzz/");
    assert!(unused.is_empty(), "listed, but not so: {unused:#?}");
    Some(sound)
}

/// Leaves out rows of `ssl` or `x509` whose TLS began within a protocol that netsniff does not know.
fn leave_out_within_others(rows: &mut Vec<Row>, ssl: &[Row], conn: &[Row]) {
    let others: Vec<&Row> = ssl.iter().filter(|row| unbuilt::is_in(&row["uid"], conn)).collect();
    rows.retain(|row| {
        !others.iter().any(|other| match row.get("uid") {
            Some(uid) => other["uid"] == *uid,
            None => other["cert_chain_fps"].contains(&row["fingerprint"]),
        })
    });
}

fn our_rows(capture: &Capture, name: &str) -> Vec<Row> {
    let scratch = Scratch::new(&format!("zeek-{name}"));
    analyze(&capture.path, scratch.path(), &["--workers", "1"]);
    let mut rows = log::read(&scratch.path().join(format!("{name}.log"))).unwrap();
    if name == "ssl" {
        // What is within QUIC the other Zeek did not see.
        let quic = log::read(&scratch.path().join("quic.log")).unwrap();
        rows.retain(|row| !quic.iter().any(|other| other["uid"] == row["uid"]));
    }
    rows
}

#[test]
fn ssl_log_is_zeeks() {
    let Some(total) = compare_with_zeek("ssl", SSL) else { return };
    assert!(total.files >= 12 && total.rows >= 13, "{total:?}");
    assert_eq!(total.rows_same, total.rows, "rows differ");
}

#[test]
fn x509_log_is_zeeks() {
    let Some(total) = compare_with_zeek("x509", X509) else { return };
    assert!(total.files >= 8 && total.rows >= 18, "{total:?}");
    assert_eq!(total.rows_same, total.rows, "rows differ");
}

/// The columns of upstream's baselines that cannot be compared: times are masked.
const MASKED: [&str; 1] = ["ts"];

#[test]
fn logs_are_those_of_zeeks_own_tests() {
    let Some(captures) = captures("no log of QUIC was compared with Zeek's") else { return };
    let masked = BTreeSet::from(MASKED);
    for (name, columns, least) in [("quic", QUIC, 3), ("ssl", SSL, 7), ("x509", X509, 3)] {
        let mut total = Total::default();
        for capture in &captures {
            // What is within other protocols is compared with the Zeek that ran over the corpus.
            let tests = folders(&capture.oracle().join("zeek"));
            let is_own = |name: &str| name.contains(".ssl.") || name.contains(".quic.");
            let tests = tests.iter().filter(|test| {
                is_own(&test.file_name().unwrap().to_string_lossy())
                    && test.join(format!("{name}.log")).is_file()
            });
            for test in tests {
                let log = format!("{name}.log");
                let Some(theirs) = log::read(&test.join(&log)) else { continue };
                let scratch = Scratch::new(&format!("zeek-tests-{name}"));
                analyze(&capture.path, scratch.path(), &["--workers", "1"]);
                let ours = log::read(&scratch.path().join(&log)).unwrap();
                let comparison = compare(columns, &theirs, &ours, &masked);
                total.add(&test.display().to_string(), &comparison, 0);
            }
        }
        total.print(&format!("upstream's baselines of {name}"));
        assert!(total.files >= least, "{total:?}");
        assert_eq!(total.rows_same, total.rows, "Zeek's tests expect other rows of {name}");
    }
}
