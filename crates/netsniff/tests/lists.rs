//! The lists that a new log or format must be entered in.

use std::fs;
use std::path::{Path, PathBuf};

use netsniff::output::Format;
use netsniff_analysis::log::LOGS;

/// The Rust files of a folder of this workspace, with their stems and contents.
fn sources(folder: &str) -> Vec<(String, String)> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let mut sources = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "rs") && stem != "mod" {
            sources.push((stem, fs::read_to_string(&path).unwrap()));
        }
    }
    assert!(sources.len() >= 2);
    sources
}

#[test]
fn every_log_is_in_the_list() {
    for (stem, source) in sources("analysis/src/log") {
        let declared = source.contains(&format!("=> \"{stem}\" {{"));
        assert!(declared, "analysis/src/log/{stem}.rs does not declare the log \"{stem}\"");
        let listed = LOGS.iter().any(|log| log.path == stem);
        assert!(listed, "the log \"{stem}\" is not in the list LOGS in analysis/src/log/mod.rs");
    }
}

#[test]
fn every_format_is_in_the_list() {
    for (stem, source) in sources("netsniff/src/output") {
        let is_format = source.lines().any(|line| line.starts_with("impl RowFormat for"));
        let listed = Format::ALL.iter().any(|format| format.name() == stem);
        assert_eq!(
            is_format, listed,
            "netsniff/src/output/{stem}.rs and the list of formats in output/mod.rs disagree"
        );
    }
}
