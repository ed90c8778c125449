//! Tools and generators that fail: one of many that are tried is no reason to give the others up.

use core::fmt;
use std::path::Path;

use serde::de::Error as _;

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

/// What is known of a run that could not be made: nothing was counted, so that no numbers are written.
#[derive(serde::Serialize, serde::Deserialize)]
struct Failed {
    tool: String,
    load: Load,
    faults: Vec<Fault>,
    failure: String,
}

impl serde::Serialize for Trial {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.failure {
            None => Self::serialize(self, serializer),
            Some(failure) => {
                let Self { tool, load, faults, .. } = self.clone();
                let failed = Failed { tool, load, faults, failure: failure.clone() };
                serde::Serialize::serialize(&failed, serializer)
            }
        }
    }
}

/// Only a run that could not be made may do without numbers.
impl<'de> serde::Deserialize<'de> for Trial {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        if value.get("failure").is_none() {
            return Self::deserialize(value).map_err(D::Error::custom);
        }
        let failed: Failed = serde_json::from_value(value).map_err(D::Error::custom)?;
        let Failed { tool, load, faults, failure } = failed;
        Ok(Self { tool, load, faults, failure: Some(failure), ..Self::default() })
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_was_not_counted_has_no_numbers() {
        let load =
            Load { size: 64, rate: Some(1e5), time: Duration::from_secs(1), ..Load::default() };
        let tool = Tool::all().remove(0);
        let failed = Trial::unable(&tool, &load, "it is not there".to_owned());
        let json = serde_json::to_value(&failed).unwrap();
        let names: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["failure", "faults", "load", "tool"]);
        let read: Trial = serde_json::from_value(json).unwrap();
        assert_eq!((&read.failure, &read.faults), (&failed.failure, &failed.faults));
        assert_eq!((read.offered(), read.loss(), read.kernel_loss()), (None, None, None));
        // Of what was counted all is written, and read again.
        let counted = Trial { sent: 7, arrived: 6, load, ..Trial::default() };
        let text = serde_json::to_string(&counted).unwrap();
        assert!(text.contains("\"sent\":7") && text.contains("\"backlog_dropped\":0"), "{text}");
        assert_eq!(serde_json::from_str::<Trial>(&text).unwrap(), counted);
        let error =
            serde_json::from_str::<Trial>(&text.replace("\"sent\"", "\"bent\"")).unwrap_err();
        assert!(error.to_string().starts_with("missing field `sent`"), "{error}");
    }
}
