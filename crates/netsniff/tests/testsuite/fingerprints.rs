//! JA3, JA3S and JA4 against what Arkime, TShark, Suricata and the project of JA4 find in the corpus.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::zeek::corpus::{Scratch, analyze, captures};
use crate::zeek::log::{self, Row};
use netsniff_analysis::protocol::ProtocolId;
use serde_json::Value;

/// Fingerprints by their columns.
type Found = BTreeMap<&'static str, BTreeSet<String>>;

fn add(found: &mut Found, column: &'static str, value: &str) {
    if !value.is_empty() {
        found.entry(column).or_default().insert(value.to_owned());
    }
}

/// The expected sessions of Arkime.
fn arkime(oracle: &Path, found: &mut Found) {
    let Ok(files) = fs::read_dir(oracle.join("arkime")) else { return };
    for file in files {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        let Ok(sessions) = serde_json::from_str::<Value>(&text) else { continue };
        let sessions = sessions["sessions3"].as_array().into_iter().flatten();
        for tls in sessions.map(|session| &session["body"]["tls"]) {
            for column in ["ja3", "ja3s", "ja4"] {
                for value in tls[column].as_array().into_iter().flatten() {
                    add(found, column, value.as_str().unwrap());
                }
            }
        }
    }
}

/// The fields of TShark, of the first hello of each stream.
fn tshark(oracle: &Path, found: &mut Found) {
    let Ok(text) = fs::read_to_string(oracle.join("tshark/tls.tsv")) else { return };
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split('\t').collect();
    for line in lines {
        let cells: BTreeMap<&str, &str> = names.iter().copied().zip(line.split('\t')).collect();
        add(found, "ja3", cells["tls.handshake.ja3"]);
        add(found, "ja3s", cells["tls.handshake.ja3s"]);
    }
}

/// Whether a fingerprint is of a version whose hellos have signature algorithms: TLS 1.2 and later.
/// Without them Suricata hashes an underscore that nothing follows, which JA4 forbids; Arkime does as
/// JA4 says.
fn has_algorithms(ja4: &str) -> bool {
    ja4.get(1..3).is_some_and(|version| version >= "12")
}

/// The transactions of Suricata.
fn suricata(oracle: &Path, found: &mut Found) {
    let Ok(text) = fs::read_to_string(oracle.join("suricata-run/eve.json")) else { return };
    for line in text.lines() {
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        for protocol in ["tls", "quic"].map(|name| &event[name]) {
            for column in ["ja3", "ja3s"] {
                add(found, column, protocol[column]["hash"].as_str().unwrap_or_default());
            }
            let ja4 = protocol["ja4"].as_str().unwrap_or_default();
            add(found, "ja4", if has_algorithms(ja4) { ja4 } else { "" });
        }
    }
}

/// The expected output of the project of JA4.
fn ja4(oracle: &Path, found: &mut Found) {
    let Ok(entries) = fs::read_dir(oracle) else { return };
    let folders = entries.map(|entry| entry.unwrap().path());
    for folder in folders.filter(|it| it.file_name().unwrap().to_string_lossy().starts_with("ja4"))
    {
        for file in fs::read_dir(folder).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            for value in text.lines().filter_map(|line| line.trim().strip_prefix("ja4: ")) {
                add(found, "ja4", value);
            }
        }
    }
}

fn ours(rows: &[Row]) -> Found {
    let mut found = Found::new();
    for row in rows {
        for column in ["ja3", "ja3s", "ja4"] {
            if row[column] != "-" {
                add(&mut found, column, &row[column]);
            }
        }
    }
    found
}

/// Whether a capture has TLS that began within a protocol that netsniff does not know.
fn is_within_other(oracle: &Path) -> bool {
    let conn = log::read(&oracle.join("zeek-run/conn.log")).unwrap();
    conn.iter().any(|row| {
        let names: Vec<&str> = row["service"].split(',').collect();
        names.contains(&"ssl") && names.iter().any(|name| ProtocolId::named(name).is_none())
    })
}

#[test]
fn fingerprints_are_those_of_others() {
    let Some(captures) = captures("no fingerprint was compared with those of others") else {
        return;
    };
    let mut compared = BTreeMap::<_, usize>::new();
    for capture in captures.iter().filter(|capture| !capture.is_fuzzed()) {
        let oracle = capture.oracle();
        if is_within_other(&oracle) {
            eprintln!("left out: {}, within a protocol that is not built", capture.name);
            continue;
        }
        for (tool, read) in [
            ("arkime", arkime as fn(&Path, &mut Found)),
            ("tshark", tshark),
            ("suricata", suricata),
            ("ja4", ja4),
        ] {
            let mut theirs = Found::new();
            read(&oracle, &mut theirs);
            if theirs.is_empty() {
                continue;
            }
            let scratch = Scratch::new("fingerprints");
            analyze(&capture.path, scratch.path(), &["--workers", "1"]);
            let rows = log::read(&scratch.path().join("ssl.log")).unwrap();
            let ours = ours(&rows);
            for (column, values) in &theirs {
                let mut own = ours.get(column).cloned().unwrap_or_default();
                if (tool, *column) == ("suricata", "ja4") {
                    own.retain(|ja4| has_algorithms(ja4));
                }
                assert_eq!(&own, values, "{}: {column} of {tool}", capture.name);
                *compared.entry((tool, *column)).or_default() += values.len();
            }
        }
    }
    eprintln!("fingerprints that are the same: {compared:?}");
    for (tool, column, least) in [
        ("arkime", "ja3", 3),
        ("arkime", "ja4", 3),
        ("tshark", "ja3", 12),
        ("tshark", "ja3s", 9),
        ("suricata", "ja4", 8),
        ("ja4", "ja4", 1),
    ] {
        assert!(compared.get(&(tool, column)).is_some_and(|count| *count >= least), "{compared:?}");
    }
}
