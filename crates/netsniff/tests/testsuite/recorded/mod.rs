//! The recorded captures of the project, and what their servers and clients told of themselves.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::zeek::corpus::{Scratch, analyze};
use super::zeek::log::{self, Row};

/// A file beside the captures.
pub(crate) fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded").join(name)
}

/// What servers and clients of the protocols told.
pub(crate) fn expected(name: &str) -> String {
    fs::read_to_string(recorded("protocols.expected").join(name)).unwrap()
}

/// The same where it is a table, whose first line names its columns.
pub(crate) fn table(name: &str) -> Vec<Row> {
    let text = expected(name);
    let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned));
    let names: Vec<String> = lines.next().unwrap().collect();
    let rows = lines.map(|cells| names.iter().cloned().zip(cells).collect());
    rows.inspect(|row: &Row| assert_eq!(row.len(), names.len(), "{row:?}")).collect()
}

/// The logs of a recorded capture.
pub(crate) struct Logs(Scratch);

impl Logs {
    /// Analyses a capture with further arguments; what is extracted lies beside the logs.
    pub(crate) fn of(capture: &str, arguments: &[&str]) -> Self {
        let scratch = Scratch::new("recorded");
        let files = scratch.path().join("files");
        let extraction = ["--extract", files.to_str().unwrap(), "--workers", "2"];
        analyze(&recorded(capture), scratch.path(), &[&extraction, arguments].concat());
        Self(scratch)
    }

    /// The rows of a log.
    pub(crate) fn rows(&self, name: &str) -> Vec<Row> {
        log::read(&self.0.path().join(format!("{name}.log"))).unwrap()
    }

    /// What was extracted of the file of a row of `files`.
    pub(crate) fn content(&self, file: &Row) -> Vec<u8> {
        fs::read(self.0.path().join("files").join(&file["extracted"])).unwrap()
    }
}

/// The SHA-256 of bytes.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How often each of some things is there.
pub(crate) fn counted<T: Ord>(things: impl IntoIterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    for thing in things {
        *counts.entry(thing).or_default() += 1;
    }
    counts
}
