//! The lists that a new log, join, finding, format, backend or way to send must be entered in.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use netsniff_analysis::notice::UNWRITTEN;
use netsniff_analysis::notice::findings::FINDINGS;
use netsniff_analysis::rows::{LOGS, joins};
use netsniff_capture::BACKENDS;
use netsniff_capture::transmit::WAYS;
use netsniff_output::Format;

/// The Rust files below a folder of this workspace, with their stems and contents.
fn sources(folder: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder), &mut files);
    assert!(files.len() >= 2);
    let source = |file: PathBuf| {
        // What is a folder is named by that.
        let named = if file.ends_with("mod.rs") { file.parent().unwrap() } else { &file };
        let stem = named.file_stem().unwrap().to_string_lossy().into_owned();
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
            let is_listed = LOGS.iter().chain(&UNWRITTEN).any(|known| known.path == log);
            assert!(is_listed, "{file}: no protocol names the log \"{log}\"");
        }
    }
    assert_eq!(declared, LOGS.len() + UNWRITTEN.len());
}

#[test]
fn every_format_is_in_the_list() {
    for (stem, source) in sources("output/src") {
        // A dialect is a format by what all documents have.
        let begins = ["impl RowFormat for", "impl Documents for"];
        let is_format =
            source.lines().any(|line| begins.iter().any(|begin| line.starts_with(begin)));
        let listed = Format::ALL.iter().any(|format| format.name() == stem);
        assert_eq!(
            is_format, listed,
            "output/src/format/{stem}.rs and the list of formats in output/src/format/mod.rs disagree"
        );
    }
}

/// The files below a folder that declare something by a line with this begin, before their tests.
fn declaring(folder: &str, begin: &str) -> Vec<String> {
    let mut files = sources(folder);
    files.retain(|(_, source)| {
        let own = source.split("#[cfg(test)]").next().unwrap_or_default();
        own.lines().any(|line| line.starts_with(begin))
    });
    files.into_iter().map(|(stem, _)| stem).collect()
}

#[test]
fn every_join_is_in_the_list_of_its_protocol() {
    // An exchange of messages is a join by what all exchanges have.
    let mut declared = declaring("analysis/src", "impl Join for ");
    declared.extend(declaring("analysis/src", "impl MessageExchange for "));
    // That of findings comes with what is looked for, and is in no list.
    let listed = joins().count() + 1;
    assert_eq!(
        declared.len(),
        listed,
        "{declared:?} declare joins, and `joins()` of protocols and files name {listed} of them"
    );
}

#[test]
fn every_finding_is_in_the_list() {
    let folder = "analysis/src/notice/findings";
    let mut declared = declaring(folder, "pub(super) const TYPE: FindingType");
    // Those in folders of their own.
    let deeper = "pub(in crate::notice::findings) const TYPE: FindingType";
    declared.extend(declaring(folder, deeper));
    assert_eq!(
        declared.len(),
        FINDINGS.len(),
        "{declared:?} are findings, and FINDINGS has others"
    );
}

#[test]
fn every_backend_is_in_the_list() {
    let declared =
        declaring("capture/src/backend", "pub(in crate::backend) const BACKEND: Backend");
    let listed: BTreeSet<_> = BACKENDS.iter().map(|backend| backend.name).collect();
    assert_eq!(
        declared.len(),
        listed.len(),
        "{declared:?} are backends, and BACKENDS in capture/src/backend/mod.rs has {listed:?}"
    );
}

#[test]
fn every_way_to_send_is_in_the_list() {
    let declared = declaring("capture/src/transmit", "pub(super) const WAY: SendMethod");
    let listed: BTreeSet<_> = WAYS.iter().map(|way| way.name).collect();
    assert_eq!(
        declared.len(),
        listed.len(),
        "{declared:?} are ways, and WAYS in capture/src/transmit/mod.rs has {listed:?}"
    );
}
