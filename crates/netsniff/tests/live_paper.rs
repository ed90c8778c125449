//! `netsniff lab paper`. Needs root; says so where it is missing.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

mod lab_bed;

use lab_bed::is_able;
use netsniff_testing::{Need, skip};

const NETSNIFF: &str = env!("CARGO_BIN_EXE_netsniff");

fn paper(arguments: &[&str], directory: &Path) -> Output {
    let mut command = Command::new(NETSNIFF);
    command.args(["lab", "paper"]).args(arguments).arg("-o").arg(directory).output().unwrap()
}

fn errors(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// What the budget ends goes on with the same trace and the same rates, and is judged each time by all that is there.
#[test]
fn a_paper_is_repeated_in_parts() {
    let directory = std::env::temp_dir().join(format!("netsniff-paper-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    let begun = paper(&["s0", "--short", "--budget", "45s"], &directory);
    let said = errors(&begun);
    if !is_able() {
        skip(Need::Root, format_args!("a_paper_is_repeated_in_parts needs a testbed: {said}"));
        return;
    }
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
    assert_eq!(begun.status.code(), Some(1), "{said}");
    assert!(said.contains("the budget is used up"), "{said}");
    let (scale, runs) = (read("scale.json"), read("s0-buffers/runs.jsonl"));
    assert!(runs.lines().count() >= 1, "{said}");
    let text = String::from_utf8_lossy(&begun.stdout).into_owned();
    assert_eq!(text.matches("seen: ").count(), 5, "{text}");
    let scores: serde_json::Value = serde_json::from_str(&read("s0.json")).unwrap();
    assert_eq!(scores["scores"].as_array().unwrap().len(), 5);
    assert!(read("s0.html").contains("Scorecard"));

    let again = paper(&["s0", "--short"], &directory);
    assert_eq!(again.status.code(), Some(1));
    assert!(errors(&again).contains("--resume goes on with one"), "{}", errors(&again));
    let other = paper(&["s0", "--resume"], &directory);
    assert_eq!(other.status.code(), Some(2));
    assert!(errors(&other).contains("is of the short form"), "{}", errors(&other));

    let more = paper(&["s0", "--short", "--resume", "--budget", "12s"], &directory);
    assert_eq!((more.status.code(), read("scale.json")), (Some(1), scale), "{}", errors(&more));
    let more = read("s0-buffers/runs.jsonl");
    let new = more.strip_prefix(&runs).unwrap();
    // What is proved is not run again.
    let entries = |text: &str| -> Vec<serde_json::Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let proved = |run: &&serde_json::Value| run["trial"]["faults"].as_array().unwrap().is_empty();
    let known = entries(&runs);
    let known: Vec<_> = known.iter().filter(proved).map(|run| &run["point"]).collect();
    assert!(!new.is_empty() && !known.is_empty(), "{new}");
    assert!(entries(new).iter().all(|run| !known.contains(&&run["point"])), "{more}");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn papers_are_named() {
    let out = paper(&["s7"], Path::new("never-made"));
    assert_eq!(out.status.code(), Some(2));
    assert!(errors(&out).contains("there are s0, s1, s2, s3, s4 and all"), "{}", errors(&out));
    assert!(!Path::new("never-made").exists());
}
