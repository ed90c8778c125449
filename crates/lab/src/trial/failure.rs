//! Tools and generators that fail: one of many that are tried is no reason to give the others up.

use core::fmt;
use std::path::Path;

use super::scratch::Scratch;
use super::{Fault, Trial, run};
use crate::bed::Bed;
use crate::load::Load;
use crate::tools::Tool;

/// Why a tool or the generator could not be run. Everything else that a run fails with is of the testbed.
#[derive(Debug)]
pub(super) struct Failure {
    /// [`Fault::Unable`] or [`Fault::Failed`].
    fault: Fault,
    words: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl core::error::Error for Failure {}

impl Failure {
    /// One meanwhile.
    pub(super) const fn new(words: String) -> Self {
        Self { fault: Fault::Failed, words }
    }

    /// A tool that does not begin.
    pub(super) const fn unable(words: String) -> Self {
        Self { fault: Fault::Unable, words }
    }

    /// A tool whose counts cannot be read.
    pub(super) fn of(error: anyhow::Error) -> Self {
        Self::new(format!("{error:#}"))
    }

    /// A tool that has ended by itself.
    pub(super) fn ended(tool: &Tool, scratch: &Scratch) -> Self {
        let what = format!("{} ended before the load did", tool.name);
        Self::new(saying(what, &scratch.said().1))
    }
}

/// What happened, with what the tool said, if it did.
pub(super) fn saying(what: String, errors: &str) -> String {
    match errors.trim() {
        "" => what,
        said => format!("{what}: {said}"),
    }
}

impl Trial {
    /// One of a tool that does not begin, for this reason.
    #[must_use]
    pub fn unable(tool: &Tool, load: &Load, why: String) -> Self {
        Self::failed(tool, load, Failure::unable(why))
    }

    fn failed(tool: &Tool, load: &Load, Failure { fault, words }: Failure) -> Self {
        Self {
            tool: tool.name.clone(),
            load: load.clone(),
            ended: true,
            faults: vec![fault],
            failure: Some(words),
            ..Self::default()
        }
    }
}

/// As [`run`], but where the tool or the generator cannot be run, that is a run that proves nothing, with the reason.
///
/// # Errors
///
/// Where no tool could be tried: what prevents counts, scratch files, or what is between two machines.
pub fn attempt(bed: &Bed, netsniff: &Path, tool: &Tool, load: &Load) -> anyhow::Result<Trial> {
    match run(bed, netsniff, tool, load) {
        Err(error) => {
            let failure = error.downcast::<Failure>()?;
            Ok(Trial::failed(tool, load, failure))
        }
        trial => trial,
    }
}
