//! `--from` and `--to`: each command that reads captures reads the same part of them, and the rest is counted.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use netsniff_testing::{has_program, log};

use crate::generated::{Folder, run};

/// The fixture has 22 seconds from 2026-11-21 22:08:57.
const FROM: &str = "2026-11-21T22:09:01.5Z";
const TO: &str = "2026-11-21T22:09:09Z";

fn capture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded/office.pcapng")
}

fn netsniff(words: &[&str], paths: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netsniff")).args(words).args(paths).output().unwrap()
}

/// What `netsniff info` counts of a capture: packets, the earliest and the latest stamp.
fn facts(path: &Path) -> (u64, String, String) {
    let output = netsniff(&["info", "--json"], &[path]);
    let facts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |name: &str| facts[name].as_str().unwrap().to_owned();
    (facts["packets"].as_u64().unwrap(), text("earliest"), text("latest"))
}

#[test]
fn all_commands_read_the_same_part() {
    let scratch = Folder::new("spans");
    let (capture, path) = (capture(), |name: &str| scratch.path(name));
    let span = ["--from", FROM, "--to", TO];
    let of = |command: &[&str], name: &str, flag: &[&str]| {
        let output = path(name);
        let words = [command, &span].concat();
        let mut run = Command::new(env!("CARGO_BIN_EXE_netsniff"));
        run.args(words).arg(&capture).args(flag).arg(&output);
        assert!(run.status().unwrap().success(), "{name}");
        facts(&output)
    };
    let carved = of(&["extract", "-q"], "carved.pcapng", &["-w"]);
    assert!(carved.0 > 500, "too few to be sure: {carved:?}");
    assert_eq!(of(&["sort", "-q"], "sorted.pcapng", &[]), carved);
    assert_eq!(of(&["anonymize", "-q"], "anonymous.pcapng", &[]), carved);
    let told = netsniff(&["info", "--json", "--from", FROM, "--to", TO], &[&capture]);
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(told["packets"].as_u64(), Some(carved.0));
    assert_eq!(told["packets_outside"].as_u64(), Some(facts(&capture).0 - carved.0));
    assert_eq!([&told["earliest"], &told["latest"]], [&carved.1, &carved.2]);
    let received =
        netsniff(&["receive", "--json", "--from", FROM, "--to", TO], &[capture.as_path()]);
    let received: serde_json::Value = serde_json::from_slice(&received.stdout).unwrap();
    assert_eq!(received["other_packets"].as_u64(), Some(carved.0), "{received}");

    // Flows of a part are those of a capture that has no more.
    let rows = |words: &[&str], capture: &Path, name: &str| {
        let logs = path(name);
        let words = [&["analyze", "-q", "-o", logs.to_str().unwrap()], words].concat();
        assert!(netsniff(&words, &[capture]).status.success());
        log::read(&logs.join("conn.log")).unwrap()
    };
    let here = rows(&span, &capture, "here");
    assert_eq!(here, rows(&[], &path("carved.pcapng"), "there"));
    assert!(here.len() < rows(&[], &capture, "all").len());

    if has_program("editcap", "nothing else chose the packets") {
        let theirs = path("editcap.pcapng");
        let mut editcap = Command::new("editcap");
        editcap.env("TZ", "UTC").args(["-A", "2026-11-21 22:09:01.5", "-B", "2026-11-21 22:09:09"]);
        assert!(editcap.arg(&capture).arg(&theirs).status().unwrap().success());
        assert_eq!(facts(&theirs), carved);
    }
}

#[test]
fn the_rest_is_counted() {
    let output = netsniff(&["analyze", "--json", "--from", FROM, "--to", TO], &[&capture()]);
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let books = &summary["books"];
    let parts = books["parts"].as_array().unwrap();
    let of = |part: &serde_json::Value| part["packets"].as_u64().unwrap();
    let outside = parts.iter().find(|part| part["name"] == "outside of --from and --to").unwrap();
    assert!(of(outside) > 500, "{books}");
    assert_eq!(parts.iter().map(of).sum::<u64>(), books["read"].as_u64().unwrap());
    // The input is told whole, and what its counters tell is of all of it.
    let (packets, ..) = facts(&capture());
    assert_eq!(books["read"].as_u64(), Some(packets));
    assert_eq!(summary["input"]["wire_bytes"].as_u64(), whole()["input"]["wire_bytes"].as_u64());
    assert!(summary["notes"].to_string().contains("what --from and --to leave of them"));
}

fn whole() -> serde_json::Value {
    let output = netsniff(&["analyze", "--json"], &[&capture()]);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_span_that_makes_no_sense_is_refused() {
    let said = |words: &[&str]| {
        let output = netsniff(words, &[]);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let capture = capture();
    let capture = capture.to_str().unwrap();
    for command in ["analyze", "sort", "replay", "anonymize", "receive", "info"] {
        let end: &[&str] = match command {
            "sort" | "anonymize" => &["/dev/null"],
            "replay" => &["-i", "lo"],
            _ => &[],
        };
        let words = [&[command, capture], end, &["--from", TO, "--to", FROM]].concat();
        let said = said(&words);
        assert!(said.contains("--from is not before --to"), "{command}: {said}");
    }
    let live = said(&["analyze", "-i", "lo", "--from", FROM]);
    assert!(live.contains("live traffic has a --duration"), "{live}");
    assert!(said(&["analyze", capture, "--from", "now"]).contains("no point in time"));
}

#[test]
fn filters_choose_from_what_the_span_leaves() {
    let words = ["analyze", "--json", "--from", FROM, "--to", TO, "-f", "tcp port 80", "-r"];
    let output = netsniff(&words, &[&capture()]);
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let ours = summary["input"]["wanted_packets"].as_u64().unwrap();
    let filter =
        "tcp.port == 80 && frame.time_epoch >= 1795298941.5 && frame.time_epoch < 1795298949";
    let capture = capture();
    let arguments = ["-r", capture.to_str().unwrap(), "-Y", filter];
    let Some(theirs) = run("tshark", &arguments) else { return };
    assert_eq!(ours, String::from_utf8(theirs.stdout).unwrap().lines().count() as u64);
}
