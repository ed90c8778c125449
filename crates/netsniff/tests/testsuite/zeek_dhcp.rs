//! Our log of DHCP against Zeek's, row by row, over the corpus: not one row may differ.

use std::collections::{BTreeMap, BTreeSet};

use crate::zeek::compare::{DHCP, compare};
use crate::zeek::corpus::{Scratch, analyze, captures};
use crate::zeek::log::{self, Row};
use crate::zeek::total::Total;

/// In how many connections the messages of each row came, by the row's time: the names of
/// connections are random in Zeek.
fn connections(rows: &[Row]) -> BTreeMap<&str, usize> {
    rows.iter().map(|row| (row["ts"].as_str(), row["uids"].split(',').count())).collect()
}

/// The connections that rows name and that the log of connections lacks.
fn unknown_connections(rows: &[Row], conn: &[Row]) -> Vec<String> {
    let known: BTreeSet<&str> = conn.iter().map(|row| row["uid"].as_str()).collect();
    let named = rows.iter().flat_map(|row| row["uids"].split(','));
    named.filter(|uid| !known.contains(uid)).map(str::to_owned).collect()
}

#[test]
fn dhcp_log_is_zeeks() {
    let Some(captures) = captures("no log of DHCP was compared with Zeek's") else { return };
    let mut total = Total::default();
    for capture in &captures {
        let run = capture.oracle().join("zeek-run");
        if !run.is_dir() {
            continue;
        }
        let theirs = log::read(&run.join("dhcp.log")).unwrap();
        for workers in ["1", "3"] {
            let scratch = Scratch::new("zeek-dhcp");
            analyze(&capture.path, scratch.path(), &["--workers", workers]);
            let ours = log::read(&scratch.path().join("dhcp.log")).unwrap();
            if theirs.is_empty() && ours.is_empty() {
                break;
            }
            total.add(&capture.name, &compare(DHCP, &theirs, &ours, &BTreeSet::new()), 0);
            assert_eq!(connections(&ours), connections(&theirs), "{}", capture.name);
            let conn = log::read(&scratch.path().join("conn.log")).unwrap();
            assert_eq!(unknown_connections(&ours, &conn), [""; 0], "{}", capture.name);
        }
    }
    eprintln!("columns compared: {} {}", DHCP.key.join(" "), DHCP.compared.join(" "));
    total.print("dhcp, with one worker and with three");
    assert!(total.files >= 8 && total.rows >= 12, "{total:?}");
    assert_eq!((total.files_same, total.rows_same), (total.files, total.rows));
}
