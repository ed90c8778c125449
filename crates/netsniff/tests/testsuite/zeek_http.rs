//! Our logs of HTTP and WebSocket against Zeek's, row by row, over the corpus.
//!
//! A row leaves the comparison only through `docs/differences-from-zeek.md`.

use std::collections::BTreeSet;
use std::path::Path;

use crate::zeek::compare::{HTTP, WEBSOCKET, compare};
use crate::zeek::corpus::{Scratch, analyze, captures};
use crate::zeek::differences::{leave_out, listed};
use crate::zeek::log;
use crate::zeek::total::Total;

#[test]
fn http_log_is_zeeks() {
    let Some(captures) = captures("no log of HTTP was compared with Zeek's") else { return };
    let mut unused = listed("http", HTTP);
    let (mut sound, mut fuzzed) = (Total::default(), Total::default());
    for capture in &captures {
        let run = capture.oracle().join("zeek-run");
        if !run.is_dir() {
            continue;
        }
        let scratch = Scratch::new("zeek-http");
        analyze(&capture.path, scratch.path(), &["--workers", "1"]);
        let ours = rows(&scratch.path().join("http.log"));
        let theirs = rows(&run.join("http.log"));
        if theirs.is_empty() && ours.is_empty() {
            continue;
        }
        let mut comparison = compare(HTTP, &theirs, &ours, &BTreeSet::new());
        let left_out = leave_out(&capture.name, &mut comparison, &mut unused);
        let total = if capture.is_fuzzed() { &mut fuzzed } else { &mut sound };
        total.add(&capture.name, &comparison, left_out);
    }
    eprintln!("columns compared: {} {}", HTTP.key.join(" "), HTTP.compared.join(" "));
    sound.print("outside fuzz/");
    fuzzed.print("fuzz/");
    assert!(unused.is_empty(), "listed, but not so: {unused:#?}");
    assert!(sound.files >= 26 && sound.rows >= 440, "{sound:?}");
    assert!(sound.rows_same * 100 >= sound.rows * 98, "less than 98 % of the rows are the same");
    assert!(sound.files_same * 10 >= sound.files * 9, "more than one file in ten differ");
}

/// The rows of a log, with numbers of files in place of their names.
fn rows(log: &Path) -> Vec<log::Row> {
    let mut rows = log::read(log).unwrap();
    for row in &mut rows {
        for column in ["orig_fuids", "resp_fuids"] {
            let cell = row.get_mut(column).unwrap();
            if cell != "-" {
                *cell = cell.split(',').count().to_string();
            }
        }
    }
    rows
}

#[test]
fn websocket_log_is_zeeks() {
    let Some(captures) = captures("no log of WebSocket was compared with Zeek's") else { return };
    let mut total = Total::default();
    for capture in &captures {
        let run = capture.oracle().join("zeek-run");
        let theirs = log::read(&run.join("websocket.log")).unwrap();
        if theirs.is_empty() {
            continue;
        }
        let scratch = Scratch::new("zeek-websocket");
        analyze(&capture.path, scratch.path(), &["--workers", "1"]);
        let ours = log::read(&scratch.path().join("websocket.log")).unwrap();
        total.add(&capture.name, &compare(WEBSOCKET, &theirs, &ours, &BTreeSet::new()), 0);
    }
    total.print("websocket");
    assert!(total.rows >= 1 && total.rows_same == total.rows, "rows of the log websocket differ");
}
