//! The logs of a capture are the same bytes whatever the number of workers, and in every run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::zeek::corpus::{Scratch, analyze, captures};

/// The logs in a folder: name and bytes.
fn logs(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(&path).unwrap())
        })
        .collect()
}

#[test]
fn logs_do_not_depend_on_the_number_of_workers_or_the_run() {
    let Some(captures) = captures("logs were not compared over numbers of workers") else { return };
    let scratch = Scratch::new("workers");
    let (mut bytes, mut files, mut differing) = (0, 0, Vec::new());
    for capture in &captures {
        let mut first: Option<BTreeMap<String, Vec<u8>>> = None;
        for (run, workers) in ["1", "1", "2", "3", "8", "8"].into_iter().enumerate() {
            let output = scratch.path().join(run.to_string());
            analyze(&capture.path, &output, &["--workers", workers]);
            let logs = logs(&output);
            fs::remove_dir_all(&output).unwrap();
            files += logs.len();
            bytes += logs.values().map(Vec::len).sum::<usize>();
            match &first {
                None => first = Some(logs),
                Some(first) => {
                    for name in first.keys().chain(logs.keys()) {
                        if first.get(name) != logs.get(name) {
                            differing.push(format!("{} {name} --workers {workers}", capture.name));
                        }
                    }
                }
            }
        }
    }
    eprintln!("{} captures, {files} logs, {bytes} bytes compared", captures.len());
    assert!(differing.is_empty(), "not the same bytes: {differing:#?}");
    assert!(captures.len() >= 70 && files >= 6 * captures.len());
}

/// The counts of checksums that a summary tells.
fn checksums(capture: &Path, arguments: &[&str]) -> serde_json::Value {
    let run = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args(["analyze", "--json"])
        .args(arguments)
        .arg(capture)
        .output()
        .unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    summary["checksums"].clone()
}

#[test]
fn neither_do_logs_and_counts_of_wrong_checksums_in_any_mode() {
    let Some(captures) = captures("modes of checksums were not compared over numbers of workers")
    else {
        return;
    };
    let scratch = Scratch::new("workers-checksums");
    let (mut files, mut differing) = (0, Vec::new());
    for capture in &captures {
        for mode in ["count", "discard", "ignore"] {
            let of = |workers| {
                let arguments = ["--workers", workers, "--checksums", mode];
                let output = scratch.path().join(mode);
                analyze(&capture.path, &output, &arguments);
                let logs = logs(&output);
                fs::remove_dir_all(&output).unwrap();
                (logs, checksums(&capture.path, &arguments))
            };
            let first = of("1");
            files += first.0.len();
            for workers in ["2", "3"] {
                if of(workers) != first {
                    differing.push(format!("{} {mode} --workers {workers}", capture.name));
                }
            }
        }
    }
    eprintln!("{} captures, {files} logs compared", captures.len());
    assert!(differing.is_empty(), "not the same: {differing:#?}");
    assert!(captures.len() >= 70 && files >= 3 * captures.len());
}
