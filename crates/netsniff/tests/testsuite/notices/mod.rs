//! Findings and indicators: what is found in recorded traffic, for any number of workers, and what nobody may read of it.
//!
//! | module | concern |
//! |---|---|
//! | [`traffic`] | captures that are made for a finding |
//! | [`certificates`] | weak keys and signatures, beside strong ones |
//! | [`files`] | what is found across files that are read together |
//! | [`found`] | each finding in such a capture, and none in one that looks similar |
//! | [`rules`] | findings of the user's own |
//! | [`sigma`] | findings by rules of Sigma |
//! | [`stamps`] | jumps of stamps, beside pauses |

mod certificates;
mod files;
mod found;
mod rules;
mod sigma;
mod stamps;
mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use netsniff_analysis::notice::findings::FINDINGS;
use netsniff_analysis::notice::intel::INTEL_NOTICE;
use serde_json::Value;

use crate::zeek::corpus::{Scratch, captures};

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded").join(name)
}

fn netsniff(capture: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    command.args(["analyze", "-q"]).arg(capture).args(["-o", "-"]).args(arguments).output().unwrap()
}

/// What a run writes to standard output.
fn stream(capture: &Path, arguments: &[&str]) -> String {
    let run = netsniff(capture, arguments);
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(matches!(run.status.code(), Some(0 | 3)), "{}: {said}", capture.display());
    String::from_utf8(run.stdout).unwrap()
}

/// The rows of a log.
fn rows(stream: &str, log: &str) -> Vec<Value> {
    let rows = stream.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.filter(|row| row["_path"] == log).collect()
}

/// How many findings there are of each name and confidence.
fn count(stream: &str, into: &mut BTreeMap<String, usize>) {
    for row in rows(stream, "notice") {
        let words = ["note", "confidence"].map(|column| row[column].as_str().unwrap().to_owned());
        *into.entry(words.join(" ")).or_default() += 1;
    }
}

fn table(counts: &BTreeMap<String, usize>) -> String {
    counts.iter().map(|(what, count)| format!("{what} {count}\n")).collect()
}

/// Compares with a file, or writes it.
fn compare(path: &Path, found: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(path, found).unwrap();
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(found, expected, "{}", path.display());
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testsuite/notices").join(name)
}

/// Each finding of `high` in these tables was looked at: it is true.
#[test]
fn findings_of_recorded_traffic_are_those_of_the_table() {
    let mut counts = BTreeMap::new();
    for name in ["office.pcapng", "protocols.pcapng"] {
        count(&stream(&recorded(name), &["--notices"]), &mut counts);
    }
    compare(&golden("recorded.txt"), &table(&counts));
}

#[test]
fn findings_of_the_corpus_are_those_of_the_table() {
    let Some(captures) = captures("findings of the corpus were not counted") else { return };
    let mut counts = BTreeMap::new();
    for capture in captures {
        count(&stream(&capture.path, &["--notices"]), &mut counts);
    }
    compare(&golden("corpus.txt"), &table(&counts));
}

const INDICATORS: &str =
    "#fields\tindicator\tindicator_type\tmeta.source\tmeta.desc\tmeta.do_notice\n";

/// A file of indicators.
fn indicators(scratch: &Scratch, lines: &str) -> PathBuf {
    let path = scratch.path().join("intel.dat");
    fs::create_dir_all(scratch.path()).unwrap();
    fs::write(&path, format!("{INDICATORS}{lines}")).unwrap();
    path
}

/// An address that the recorded office has, and a name that it asks for.
fn office_address_and_name() -> (String, String) {
    let all = stream(&recorded("office.pcapng"), &[]);
    let address = rows(&all, "conn")[0]["id.orig_h"].as_str().unwrap().to_owned();
    let name = rows(&all, "dns").iter().find_map(|row| row["query"].as_str().map(str::to_owned));
    (address, name.unwrap())
}

#[test]
fn indicators_are_seen_once_in_each_row_for_any_number_of_workers() {
    let (address, name) = office_address_and_name();
    let scratch = Scratch::new("intel");
    let lines = format!("{address}\tIntel::ADDR\tlist\t-\tT\n{name}\tIntel::DOMAIN\tlist\t-\tF\n");
    let file = indicators(&scratch, &lines);
    let file = file.to_str().unwrap();
    let run = |workers: &str| {
        let arguments = ["--intel", file, "--notices", "--workers", workers];
        stream(&recorded("office.pcapng"), &arguments)
    };
    let one = run("1");
    let seen = |column: &str, value: &str| {
        rows(&one, "intel").iter().filter(|row| row[column] == value).count()
    };
    let conns = rows(&one, "conn");
    let of_address = |column: &str| conns.iter().filter(|row| row[column] == *address).count();
    assert!(of_address("id.orig_h") > 0);
    assert_eq!(seen("seen.where", "Conn::IN_ORIG"), of_address("id.orig_h"));
    assert_eq!(seen("seen.where", "Conn::IN_RESP"), of_address("id.resp_h"));
    let queries = rows(&one, "dns").iter().filter(|row| row["query"] == *name).count();
    assert_eq!(seen("seen.where", "DNS::IN_REQUEST"), queries);
    assert!(rows(&one, "notice").iter().any(|row| row["note"] == "Intel::Notice"));
    for workers in ["2", "3"] {
        assert!(run(workers) == one, "{workers} workers write something else");
    }
}

#[test]
fn pseudonyms_hide_what_findings_and_indicators_tell() {
    let (address, name) = office_address_and_name();
    let scratch = Scratch::new("intel-anonymous");
    let lines = format!("{address}\tIntel::ADDR\tlist\t-\tT\n{name}\tIntel::DOMAIN\tlist\t-\tT\n");
    let file = indicators(&scratch, &lines);
    let arguments = ["--intel", file.to_str().unwrap(), "--notices", "-a"];
    let all = stream(&recorded("office.pcapng"), &arguments);
    assert!(!rows(&all, "intel").is_empty() && !rows(&all, "notice").is_empty());
    for secret in [&address, &name] {
        let quoted = format!("\"{secret}\"");
        assert!(!all.contains(&quoted), "{secret} is told");
    }
}

/// Suricata tells the SHA-1 of the certificate that a server sent.
#[test]
fn certificates_are_seen_by_the_sha1_that_suricata_tells() {
    let Some(captures) = captures("SHA-1 of certificates were not compared") else { return };
    let mut compared = 0;
    for capture in captures {
        let events = capture.oracle().join("suricata-run/eve.json");
        let text = fs::read_to_string(events).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let theirs: BTreeSet<_> = events
            .filter_map(|event| Some(event["tls"]["fingerprint"].as_str()?.replace(':', "")))
            .collect();
        let lines = theirs.iter().map(|hash| format!("{hash}\tIntel::CERT_HASH\tlist\t-\tT\n"));
        if theirs.is_empty() {
            continue;
        }
        let scratch = Scratch::new("intel-certificates");
        let file = indicators(&scratch, &lines.collect::<String>());
        let all = stream(&capture.path, &["--intel", file.to_str().unwrap()]);
        let seen = rows(&all, "intel").into_iter();
        let ours: BTreeSet<_> =
            seen.map(|row| row["seen.indicator"].as_str().unwrap().to_owned()).collect();
        assert_eq!(ours, theirs, "{}", capture.name);
        compared += theirs.len();
    }
    assert!(compared >= 5, "{compared} certificates");
}

#[test]
fn wrong_files_of_indicators_are_refused_with_their_line() {
    let scratch = Scratch::new("intel-wrong");
    let file = indicators(&scratch, "nowhere\tIntel::ADDR\tlist\t-\tF\n");
    let run = netsniff(&recorded("office.pcapng"), &["--intel", file.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(said.contains("line 2: \"nowhere\" is no IP address"), "{said}");
}

#[test]
fn the_page_of_the_documentation_has_every_finding() {
    let mut page = String::from(PAGE);
    for threshold in FINDINGS.iter().flat_map(|finding| finding.thresholds) {
        let _ =
            writeln!(page, "| `{}` | {} | {} |", threshold.name, threshold.default, threshold.doc);
    }
    page.push_str("\n## The findings\n");
    let notes = FINDINGS.iter().flat_map(|finding| finding.notes).copied();
    for note in notes.chain([&INTEL_NOTICE]) {
        let _ = write!(
            page,
            "\n### {}\n\n{}\n\n- How sure: {}\n- What to do: {}\n",
            note.name, note.doc, note.confidence, note.advice
        );
    }
    compare(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/notices.md"), &page);
}

/// What stands before the lists.
const PAGE: &str = include_str!("page.txt");

/// A user and a hash are told in their protocols' own columns, whose pseudonyms those of names are not.
#[test]
fn pseudonyms_leave_out_what_is_neither_host_nor_name() {
    let capture = recorded("protocols.pcapng");
    let plain = stream(&capture, &["--notices"]);
    let found = rows(&plain, "notice");
    let is_clear_text = |row: &&Value| row["note"] == "Netsniff::Clear_Text_Password";
    assert!(found.iter().any(|row| is_clear_text(&row)), "{found:?}");
    let scratch = Scratch::new("intel-users");
    let file = indicators(&scratch, "alice\tIntel::USER_NAME\tlist\t-\tT\n");
    let arguments = ["--intel", file.to_str().unwrap(), "--notices"];
    let (open, hidden) =
        (stream(&capture, &arguments), stream(&capture, &[&arguments[..], &["-a"]].concat()));
    let seen = |all: &str| {
        rows(all, "intel").iter().filter(|row| row["seen.indicator"] == "alice").count()
    };
    assert!(seen(&open) > 0, "the user is seen");
    assert_eq!(rows(&open, "intel").len(), rows(&hidden, "intel").len());
    assert_eq!(seen(&hidden), 0);
    for row in rows(&hidden, "intel").iter().chain(&rows(&hidden, "notice")) {
        assert!(row["seen.indicator"].is_null() && row["sub"].is_null(), "{row}");
    }
}
