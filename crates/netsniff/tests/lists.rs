//! The lists that a new log or format must be entered in.

use std::fs;
use std::path::{Path, PathBuf};

use netsniff_analysis::rows::LOGS;
use netsniff_output::Format;

/// The Rust files below a folder of this workspace, with their stems and contents.
fn sources(folder: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder), &mut files);
    assert!(files.len() >= 2);
    let source = |file: PathBuf| {
        let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
        (stem, fs::read_to_string(&file).unwrap())
    };
    files.into_iter().map(source).collect()
}

/// The Rust files below a folder.
fn below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            below(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

#[test]
fn every_log_that_is_declared_is_in_the_list() {
    let mut declared = 0;
    for (file, source) in sources("analysis/src") {
        let own = source.split("#[cfg(test)]").next().unwrap_or_default();
        for line in own.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
            let Some((before, rest)) = line.split_once(" => \"") else { continue };
            let Some(log) = rest.strip_suffix("\" {").filter(|_| before.contains("struct ")) else {
                continue;
            };
            declared += 1;
            let is_listed = LOGS.iter().any(|known| known.path == log);
            assert!(is_listed, "{file}: no protocol names the log \"{log}\"");
        }
    }
    assert_eq!(declared, LOGS.len());
}

#[test]
fn every_format_is_in_the_list() {
    for (stem, source) in sources("output/src") {
        let is_format = source.lines().any(|line| line.starts_with("impl RowFormat for"));
        let listed = Format::ALL.iter().any(|format| format.name() == stem);
        assert_eq!(
            is_format, listed,
            "output/src/{stem}.rs and the list of formats in output/src/format.rs disagree"
        );
    }
}
