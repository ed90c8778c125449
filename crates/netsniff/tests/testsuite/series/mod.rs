//! The log `series`: the same in all intervals as TShark's statistics, in sum as the summary, and bounded.
//!
//! | module | concern |
//! |---|---|
//! | [`table`] | the rows of the log, added up by interval and name |
//! | [`oracle`] | what TShark tells of each packet |
//! | [`bounds`] | stamps that jump, hosts without a row of their own |
//! | [`connections`] | the busiest connections |
//! | [`flows`] | what flows show, as the logs of flows have it |

mod bounds;
mod connections;
mod flows;
mod oracle;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use netsniff_testing::print_uncaptured;

use crate::recorded::recorded;
use crate::zeek::corpus::{Scratch, analyze, captures};
use table::{Sums, Table, Traffic};

/// The log of a capture with these arguments.
fn series(capture: &Path, arguments: &[&str]) -> Table {
    let scratch = Scratch::new("series");
    analyze(capture, scratch.path(), arguments);
    Table::read(&scratch.path().join("series.log"))
}

/// What the summary has of a capture: all packets, and those whose stamp is not believed.
fn summary(capture: &Path) -> (Traffic, u64) {
    let run = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args(["analyze", "--json"])
        .arg(capture)
        .output()
        .unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let number = |name: &str| summary["input"][name].as_u64().unwrap();
    let total = Traffic { packets: number("packets"), bytes: number("wire_bytes") };
    let notes = summary["notes"].as_array().unwrap().iter().filter_map(|note| note.as_str());
    let ahead = notes
        .filter_map(|note| note.strip_prefix("packets stamped later than those around them: "));
    let digits = |text: &str| -> String {
        let count = text.split(", by at most").next().unwrap_or_default();
        count.chars().filter(char::is_ascii_digit).collect()
    };
    (total, ahead.map(|text| digits(text).parse::<u64>().unwrap()).sum())
}

/// Every interval of the recorded captures is the one that TShark's statistics had, which a script wrote down.
#[test]
fn recorded_captures_are_as_tshark_had_them() {
    let text = fs::read_to_string(recorded("series.tsv")).unwrap();
    for name in ["office.pcapng", "protocols.pcapng"] {
        let ours = series(&recorded(name), &["--series", "1s", "--series-hosts", "100000"]);
        let theirs = oracle::written(&text, name);
        assert!(theirs.len() >= 100, "{name}: {} lines", theirs.len());
        assert_eq!(ours.by_name(), theirs, "{name}");
    }
}

/// The same with TShark itself, over all captures that it can read.
#[test]
fn every_interval_is_that_of_tshark() {
    let Some(captures) = captures("series were not compared with TShark's") else { return };
    let (mut compared, mut intervals, mut hosts) = (0, 0, 0);
    let mut differing = Vec::new();
    for capture in &captures {
        let Some(theirs) = oracle::tshark(&capture.path, "series were not compared") else {
            return;
        };
        let ours = series(&capture.path, &["--series", "1s", "--series-hosts", "100000"]);
        let (total, ahead) = summary(&capture.path);
        assert_eq!(ours.sum("total"), total, "{}", capture.name);
        assert_eq!(ours.sum("interface"), total, "{}", capture.name);
        // A stamp of the far future is taken for the one before, and damaged files are cut in another place.
        if ahead > 0 || capture.is_fuzzed() {
            continue;
        }
        let of = |all: &Sums, is_host: bool| -> Sums {
            let wanted = all.iter().filter(|((_, kind, _), _)| (kind == "host") == is_host);
            wanted.map(|(name, traffic)| (name.clone(), *traffic)).collect()
        };
        let our = ours.by_name();
        compared += 1;
        if of(&our, false) != of(&theirs, false) {
            differing.push(format!("{}: {:?}", capture.name, differences(&our, &theirs, false)));
        }
        intervals += of(&our, false).len();
        if oracle::HOSTS_DIFFER.iter().any(|(name, _)| *name == capture.name) {
            continue;
        }
        hosts += of(&our, true).len();
        if of(&our, true) != of(&theirs, true) {
            differing.push(format!("{}: {:?}", capture.name, differences(&our, &theirs, true)));
        }
    }
    print_uncaptured(&format!(
        "series: {compared} captures, {intervals} intervals, {hosts} intervals of hosts as TShark"
    ));
    assert!(differing.is_empty(), "{differing:#?}");
    assert!(compared >= 60 && intervals > 1000 && hosts > 1000);
}

/// Some of what differs.
fn differences(ours: &Sums, theirs: &Sums, is_host: bool) -> Vec<String> {
    let names = ours.keys().chain(theirs.keys()).filter(|name| (name.1 == "host") == is_host);
    let differ = names.filter(|name| ours.get(*name) != theirs.get(*name));
    differ
        .take(4)
        .map(|name| format!("{name:?} {:?} {:?}", ours.get(name), theirs.get(name)))
        .collect()
}

/// `tshark -z io,stat` itself, which begins its intervals with the first packet: so the capture is moved until that is
/// where a second begins.
#[test]
fn the_statistics_of_tshark_are_equal_line_by_line() {
    for name in ["office.pcapng", "protocols.pcapng"] {
        let scratch = Scratch::new("series-iostat");
        fs::create_dir_all(scratch.path()).unwrap();
        let moved = scratch.path().join(name);
        let Some(theirs) = oracle::io_stat(&recorded(name), &moved) else { return };
        let ours = series(&moved, &["--series", "1s"]);
        let first = *ours.by_name().keys().map(|(second, ..)| second).min().unwrap();
        let total: BTreeMap<i64, Traffic> = ours
            .by_name()
            .into_iter()
            .filter(|((_, kind, _), _)| kind == "total")
            .map(|((second, ..), traffic)| (second - first, traffic))
            .collect();
        assert!(theirs.len() >= 20, "{theirs:?}");
        assert_eq!(total, theirs, "{name}");
    }
}

/// Whether intervals are told changes no other log.
#[test]
fn other_logs_are_the_same_without_series() {
    let mut paths = vec![recorded("office.pcapng"), recorded("protocols.pcapng")];
    let corpus = captures("logs were not compared with and without series");
    paths.extend(corpus.into_iter().flatten().map(|capture| capture.path));
    let mut files = 0;
    for path in &paths {
        let logs = |arguments: &[&str]| -> BTreeMap<_, _> {
            let scratch = Scratch::new("series-others");
            analyze(path, scratch.path(), arguments);
            let entries = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().path());
            let others = entries.filter(|path| !path.ends_with("series.log"));
            others
                .map(|path| (path.file_name().unwrap().to_owned(), fs::read(path).unwrap()))
                .collect()
        };
        let without = logs(&[]);
        assert!(logs(&["--series", "3ms"]) == without, "{}", path.display());
        files += without.len();
    }
    assert!(files >= 20, "{files} logs");
}

/// The log does not depend on who counts.
#[test]
fn series_do_not_depend_on_the_number_of_workers() {
    let mut paths = vec![recorded("office.pcapng"), recorded("protocols.pcapng")];
    let corpus = captures("series were not compared over numbers of workers");
    paths.extend(corpus.into_iter().flatten().map(|capture| capture.path));
    let mut bytes = 0;
    for path in &paths {
        for length in ["1s", "7ms"] {
            let log = |workers: &str| {
                let scratch = Scratch::new("series-workers");
                let arguments = ["--series", length, "--series-hosts", "2", "--workers", workers];
                let arguments = [&arguments[..], &["--series-conns", "2"]].concat();
                analyze(path, scratch.path(), &arguments);
                ["series.log", "series_conn.log"]
                    .map(|name| fs::read(scratch.path().join(name)).unwrap_or_default())
                    .concat()
            };
            let one = log("1");
            for workers in ["2", "3"] {
                assert!(log(workers) == one, "{} {length} {workers}", path.display());
            }
            bytes += one.len();
        }
    }
    assert!(bytes > 100_000, "{bytes} bytes compared");
}
