//! `--depth`: what each depth writes and says, and that less depth changes nothing of what it keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::zeek::corpus::{Scratch, analyze, captures};
use crate::zeek::log;
use serde_json::Value;

/// The depths, the shallowest first.
const DEPTHS: [&str; 4] = ["packets", "flows", "tcp", "protocols"];

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded").join(name)
}

/// Exit code, output and errors.
fn run(arguments: &[&str], capture: &Path) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .arg("analyze")
        .args(arguments)
        .arg(capture)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The summary; damage in a file is no failure.
fn summary(arguments: &[&str], capture: &Path) -> Value {
    let (code, output, errors) = run(&[&["--json"], arguments].concat(), capture);
    assert!(code == 0 || code == 3, "{errors}");
    serde_json::from_str(&output).unwrap()
}

/// The logs that a run writes, by name.
fn logs(capture: &Path, arguments: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let scratch = Scratch::new("depth");
    analyze(capture, scratch.path(), arguments);
    let entries = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect()
}

/// The rows of connections.
fn conn(capture: &Path, arguments: &[&str]) -> Vec<log::Row> {
    let scratch = Scratch::new("depth-conn");
    analyze(capture, scratch.path(), arguments);
    log::read(&scratch.path().join("conn.log")).unwrap()
}

/// The lines of the books with packets in them.
fn parts(summary: &Value) -> Vec<(String, u64)> {
    let parts = summary["books"]["parts"].as_array().unwrap().iter();
    let part = |part: &Value| {
        (part["name"].as_str().unwrap().to_owned(), part["packets"].as_u64().unwrap())
    };
    parts.map(part).filter(|(_, packets)| *packets > 0).collect()
}

#[test]
fn each_depth_writes_its_logs_and_its_books_close() {
    let office = recorded("office.pcapng");
    let in_full = summary(&[], &office);
    let read = in_full["books"]["read"].as_u64().unwrap();
    // The office has 17 packets of ARP, of which no log tells at any depth.
    let arp = ("in no log: ARP, GRE acknowledgements".to_owned(), 17);
    assert_eq!(parts(&in_full), [("analysed".to_owned(), read - 17), arp.clone()]);
    for depth in DEPTHS {
        let arguments = ["--depth", depth];
        let names: BTreeSet<String> = logs(&office, &arguments).into_keys().collect();
        let has = |name: &str| names.contains(&format!("{name}.log"));
        assert_eq!(has("conn"), depth != "packets", "{depth} {names:?}");
        assert_eq!(has("tcp"), matches!(depth, "tcp" | "protocols"), "{depth} {names:?}");
        assert_eq!(has("http") && has("dns"), depth == "protocols", "{depth} {names:?}");
        let rows = conn(&office, &arguments);
        assert!(rows.iter().all(|row| row["depth"] == depth && row["depth_begin"] == depth));

        let summary = summary(&arguments, &office);
        assert_eq!(summary["books"]["unexplained"], 0, "{depth}");
        if depth != "protocols" {
            let line = format!("analysed at the depth {depth}");
            assert_eq!(parts(&summary), [(line, read - 17), arp.clone()], "{depth}");
        }
        for section in ["layers", "input"] {
            let told = |summary: &Value| {
                let mut told = summary[section].clone();
                told.as_object_mut().map(|input| input.remove("elapsed_seconds"));
                told
            };
            assert_eq!(told(&summary), told(&in_full), "{depth} {section}");
        }
        assert_eq!(summary["flows"].is_null(), depth == "packets", "{depth}");
        assert_eq!(summary["tcp"].is_null(), depth == "packets", "{depth}");
        assert_eq!(summary["tcp"]["with_gaps"].is_null(), !has("tcp"), "{depth}");
        for sum in ["data_segments", "retransmitted", "out_of_order", "duplicates"] {
            let expected = if has("tcp") { in_full["tcp"][sum].clone() } else { Value::Null };
            assert_eq!(summary["tcp"][sum], expected, "{depth} {sum}");
        }
    }
}

/// What nobody looked at is not told as none.
#[test]
fn the_text_of_packets_alone_has_layers_and_books() {
    let (code, text, errors) = run(&["--depth", "packets"], &recorded("office.pcapng"));
    assert_eq!((code, errors.as_str()), (0, ""));
    for section in
        ["INPUT", "LAYERS", "BOOKS", "analysed at the depth packets", "not verified: TCP"]
    {
        assert!(text.contains(section), "{section}: {text}");
    }
    for section in ["FLOWS", "TOP ", "RTT"] {
        assert!(!text.contains(section), "{section}: {text}");
    }
}

#[test]
fn what_a_depth_leaves_nothing_for_is_wrong_usage() {
    let office = recorded("office.pcapng");
    for (arguments, said) in [
        (vec!["--depth", "flows", "-s", "1"], "--rtt-interval needs --depth tcp"),
        (vec!["--depth", "tcp", "--extract", "never"], "--extract-files needs --depth protocols"),
        (vec!["--depth", "deep"], "deep"),
    ] {
        let (code, _, errors) = run(&arguments, &office);
        assert!(code == 2 && errors.contains(said), "{arguments:?}: {errors}");
    }
    assert!(!Path::new("never").exists());
}

#[test]
fn no_depth_depends_on_the_number_of_workers() {
    for name in ["office.pcapng", "protocols.pcapng"] {
        for depth in DEPTHS {
            let of = |workers| logs(&recorded(name), &["--depth", depth, "--workers", workers]);
            assert!(of("1") == of("4"), "{name} {depth}");
            let books = |workers| {
                parts(&summary(&["--depth", depth, "--workers", workers], &recorded(name)))
            };
            assert_eq!(books("1"), books("4"), "{name} {depth}");
        }
    }
}

/// The columns that counters, times and flags alone make.
const COUNTED: [&str; 15] = [
    "ts",
    "uid",
    "id.orig_h",
    "id.orig_p",
    "id.resp_h",
    "id.resp_p",
    "proto",
    "orig_pkts",
    "orig_ip_bytes",
    "resp_pkts",
    "resp_ip_bytes",
    "ip_proto",
    "vlan",
    "tunnel_parents",
    "community_id",
];

/// The columns that would need to know what was seen of streams only where data is missing before a FIN.
const STATES: [&str; 6] = ["uid", "conn_state", "duration", "orig_bytes", "resp_bytes", "history"];

/// Rows without the letters of gaps, for which nobody looks at every depth.
fn without_gaps(rows: &[log::Row]) -> Vec<log::Row> {
    let mut rows = rows.to_vec();
    for row in &mut rows {
        let letters = row["history"].replace(['G', 'g'], "");
        row.insert("history".to_owned(), letters);
    }
    rows
}

/// Rows as lines of some columns, sorted.
fn lines(rows: &[log::Row], columns: &[&str]) -> Vec<String> {
    let line = |row: &log::Row| columns.iter().map(|of| format!("{} ", row[*of])).collect();
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    lines.sort();
    lines
}

#[test]
fn less_depth_keeps_what_it_keeps_over_the_corpus() {
    let Some(captures) = captures("depths were not compared over captures") else { return };
    let (mut rows, mut differing, mut states) = (0, Vec::new(), Vec::new());
    for capture in &captures {
        let name = &capture.name;
        let of = |depth, workers| logs(&capture.path, &["--depth", depth, "--workers", workers]);
        let tcp = of("tcp", "1");
        if tcp != logs(&capture.path, &["--protocols", "none", "--workers", "1"]) {
            differing.push(format!("{name}: --protocols none"));
        }
        for depth in ["packets", "flows", "tcp"] {
            if of(depth, "1") != of(depth, "4") {
                differing.push(format!("{name}: {depth} with other workers"));
            }
        }
        for depth in DEPTHS {
            let summary = summary(&["--depth", depth], &capture.path);
            if summary["books"]["unexplained"] != 0 {
                differing.push(format!("{name}: books at {depth}"));
            }
        }
        let of = |depth| conn(&capture.path, &["--depth", depth, "--workers", "1"]);
        let (tcp, flows) = (of("tcp"), of("flows"));
        rows += tcp.len();
        if lines(&tcp, &COUNTED) != lines(&flows, &COUNTED) {
            differing.push(format!("{name}: counters"));
        }
        if lines(&without_gaps(&tcp), &STATES) != lines(&without_gaps(&flows), &STATES) {
            states.push(name);
        }
        for row in &flows {
            let is_unset = row["service"] == "-" && row["bad_checksums"] == "-";
            let is_tcp = row["proto"] == "tcp";
            assert!(
                is_unset && row["quality"] != "clean" && row["quality"] != "suspect",
                "{row:?}"
            );
            assert_eq!(row["missed_bytes"], if is_tcp { "-" } else { "0" }, "{name}");
        }
        assert_eq!(of("packets").len(), 0, "{name}");
    }
    eprintln!(
        "{} captures, {rows} connections; states or sizes differ in {states:?}",
        captures.len()
    );
    assert!(differing.is_empty(), "{differing:#?}");
    // Damaged on purpose: a packet comes behind FINs of which one lacks data before it.
    assert!(states.len() <= 1 && states.iter().all(|name| name.starts_with("fuzz/")), "{states:?}");
    assert!(captures.len() >= 70 && rows > 500);
}
