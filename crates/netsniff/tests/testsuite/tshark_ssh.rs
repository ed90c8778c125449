//! HASSH against TShark's, over the corpus.

use std::collections::BTreeSet;
use std::fs;

use crate::zeek::corpus::{Scratch, analyze, captures};
use crate::zeek::log;

#[test]
fn hassh_is_that_of_tshark() {
    let Some(captures) = captures("HASSH was not compared with TShark's") else { return };
    let mut compared = 0;
    for capture in &captures {
        let Ok(table) = fs::read_to_string(capture.oracle().join("tshark/ssh.tsv")) else {
            continue;
        };
        let scratch = Scratch::new("tshark-ssh");
        analyze(&capture.path, scratch.path(), &["--workers", "1"]);
        let ours = log::read(&scratch.path().join("ssh.log")).unwrap();
        let mut lines = table.lines();
        let names: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
        for (theirs, own) in [("ssh.kex.hassh", "hassh"), ("ssh.kex.hasshserver", "hassh_server")] {
            let at = names.iter().position(|name| *name == theirs).unwrap();
            let cells = lines.clone().filter_map(|line| line.split('\t').nth(at));
            let theirs: BTreeSet<&str> = cells.filter(|cell| !cell.is_empty()).collect();
            let own: BTreeSet<&str> = ours.iter().map(|row| row[own].as_str()).collect();
            // TShark knows SSH by its port alone, so that we may have more.
            assert!(theirs.is_subset(&own), "{}: {theirs:?} and {own:?}", capture.name);
            compared += theirs.len();
        }
    }
    eprintln!("{compared} fingerprints compared");
    assert!(compared >= 10, "{compared} fingerprints");
}
