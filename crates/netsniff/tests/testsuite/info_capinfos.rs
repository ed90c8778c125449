//! The facts of every capture of the corpus against those that capinfos and TShark found.

use std::fs;
use std::path::{Path, PathBuf};

use netsniff::commands::info::Report;
use netsniff_testing::{Need, folder};

/// The captures of the corpus and the summary of each, by its lines.
fn captures(root: &Path) -> Vec<(PathBuf, String)> {
    let mut captures = Vec::new();
    for folder in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
            let oracle = format!("{}.oracle/tshark/summary.tsv", path.display());
            if let Ok(summary) = fs::read_to_string(oracle) {
                captures.push((path, summary));
            }
        }
    }
    captures.sort();
    captures
}

/// The decimal number without the zeros at its end.
fn trimmed(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[test]
fn facts_are_those_of_capinfos() {
    let Some(root) = folder(Need::Corpus, "nothing was compared with capinfos") else {
        return;
    };
    let captures = captures(Path::new(&root));
    assert!(!captures.is_empty(), "NETSNIFF_CORPUS holds no captures with an oracle");
    let mut compared = 0;
    for (path, summary) in &captures {
        let report = Report::of_file(path).unwrap();
        let ours = [
            ("capinfos: Number of packets", report.packets.to_string()),
            ("capinfos: File size (bytes)", report.file_bytes.to_string()),
            ("capinfos: Data size (bytes)", report.wire_bytes.to_string()),
            ("capinfos: Capture duration (seconds)", report.duration.clone()),
            ("capinfos: Start time", report.earliest.clone().unwrap_or_default()),
            ("capinfos: End time", report.latest.clone().unwrap_or_default()),
            (
                "capinfos: Strict time order",
                String::from(if report.in_time_order { "True" } else { "False" }),
            ),
            ("tshark: sum frame.cap_len", report.captured_bytes.to_string()),
            ("tshark: packets cut (cap_len<len)", report.cut_packets.to_string()),
            ("tshark: packets earlier than predecessor", report.inversions.to_string()),
        ];
        for (name, value) in &ours {
            let line = summary.lines().find_map(|line| line.strip_prefix(&format!("{name}\t")));
            let Some(theirs) = line else { continue };
            assert_eq!(trimmed(value), trimmed(theirs.trim()), "{name} of {}", path.display());
            compared += 1;
        }
    }
    eprintln!("compared {compared} facts of {} captures", captures.len());
    assert!(compared > 5 * captures.len());
}
