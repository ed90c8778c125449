//! What tests of several crates share. What a test needs of the machine that it runs on is a [`Need`]: a test that
//! lacks it says so past the harness, and fails where `NETSNIFF_REQUIRE` names it.

pub mod filter;
pub mod log;
pub mod quality;

use std::env;
use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// What a test needs and not every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need<'a> {
    /// The right to make network namespaces, to mount, and to open raw sockets.
    Root,
    /// The folder of captures with expected answers that `NETSNIFF_CORPUS` names.
    Corpus,
    /// A second such folder: `NETSNIFF_CORPUS2`.
    Corpus2,
    /// Captures of faults that users reported: `NETSNIFF_REPORTS`.
    Reports,
    /// Captures that somebody made to do harm: `NETSNIFF_HOSTILE`.
    Hostile,
    /// A program of others.
    Program(&'a str),
    /// Two processors.
    Processors,
    /// Something that the kernel, its settings or the file system grants.
    Kernel,
    /// A machine that is not busy: no run proved anything.
    Quiet,
}

impl Need<'_> {
    /// The word for it in `NETSNIFF_REQUIRE`: `root`, `corpus`, `tshark` …
    pub fn name(&self) -> &str {
        match self {
            Self::Root => "root",
            Self::Corpus => "corpus",
            Self::Corpus2 => "corpus2",
            Self::Reports => "reports",
            Self::Hostile => "hostile",
            Self::Program(name) => name,
            Self::Processors => "processors",
            Self::Kernel => "kernel",
            Self::Quiet => "quiet",
        }
    }
}

/// Says that the test that calls this is left out, or a part of it, and why: a line
/// `SKIPPED: NEED: TEST: WHY` that `.ci/run` counts.
///
/// # Panics
///
/// When `NETSNIFF_REQUIRE` has the need's name: words with commas between.
#[track_caller]
pub fn skip(need: Need<'_>, why: impl fmt::Display) {
    let line = line(need, thread::current().name().unwrap_or("a test"), &why.to_string());
    let required = env::var("NETSNIFF_REQUIRE").unwrap_or_default();
    assert!(!is_required(need, &required), "NETSNIFF_REQUIRE={required}, but {line}");
    // Past the harness, which would keep it from the terminal; in one piece, since other tests write at the same time.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Writes a line past the harness, which keeps what a test prints to itself where it passes: for figures.
pub fn print_uncaptured(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Makes a device that takes no byte, as a full disk (`/dev/full` of Linux, 1:7); `false`, said loudly, where none can
/// be made.
///
/// # Panics
///
/// When `root` is required.
#[track_caller]
pub fn full_device(path: &Path, what: &str) -> bool {
    let made = Command::new("mknod").arg(path).args(["c", "1", "7"]).output();
    let is_made = made.is_ok_and(|output| output.status.success());
    if !is_made {
        skip(Need::Root, format_args!("only root may make a device that is full: {what}"));
    }
    is_made
}

fn line(need: Need<'_>, test: &str, why: &str) -> String {
    let why = why.trim().replace('\n', "; ");
    if why.contains(test) {
        return format!("SKIPPED: {}: {why}\n", need.name());
    }
    format!("SKIPPED: {}: {test}: {why}\n", need.name())
}

fn is_required(need: Need<'_>, required: &str) -> bool {
    required.split(',').any(|word| word.trim() == need.name())
}

/// The folder that a variable names, for a need that is a folder; `None`, said loudly, without one. `what` tells what
/// was not done.
///
/// # Panics
///
/// When the need is no folder, or is required.
#[track_caller]
pub fn folder(need: Need<'_>, what: &str) -> Option<PathBuf> {
    let variable = match need {
        Need::Corpus => "NETSNIFF_CORPUS",
        Need::Corpus2 => "NETSNIFF_CORPUS2",
        Need::Reports => "NETSNIFF_REPORTS",
        Need::Hostile => "NETSNIFF_HOSTILE",
        _ => panic!("{} is no folder", need.name()),
    };
    let folder = env::var_os(variable).map(PathBuf::from);
    if folder.is_none() {
        skip(need, format_args!("{variable} is not set: {what}"));
    }
    folder
}

/// Whether a program of others is here; where it is not, says loudly `what` was not done.
///
/// # Panics
///
/// When the program is required.
#[track_caller]
pub fn has_program(name: &str, what: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let beyond = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let is_here = env::split_paths(&path).chain(beyond).any(|folder| folder.join(name).is_file());
    if !is_here {
        skip(Need::Program(name), format_args!("{name} is not installed: {what}"));
    }
    is_here
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_need_test_and_reason_once() {
        let said = line(Need::Program("tshark"), "a_test", "it is missing:\n  no such file\n");
        assert_eq!(said, "SKIPPED: tshark: a_test: it is missing:;   no such file\n");
        assert_eq!(
            line(Need::Root, "a_test", "a_test needs it"),
            "SKIPPED: root: a_test needs it\n"
        );
    }

    #[test]
    fn only_whole_words_require() {
        assert!(is_required(Need::Corpus, "root, corpus,tshark"));
        assert!(is_required(Need::Program("tshark"), "root,corpus,tshark"));
        assert!(!is_required(Need::Corpus, "corpus2") && !is_required(Need::Corpus2, "corpus"));
        assert!(!is_required(Need::Quiet, ""));
    }

    #[test]
    fn a_program_is_looked_for_where_programs_are() {
        assert!(has_program("sh", "nothing"));
        let missing = std::panic::catch_unwind(|| folder(Need::Quiet, "nothing"));
        assert!(missing.is_err());
    }
}
