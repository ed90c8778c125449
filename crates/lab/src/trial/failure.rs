//! Tools and generators that fail: one of many that are tried is no reason to give the others up.

use core::fmt;
use std::path::Path;

use serde::de::Error as _;

use super::scratch::Scratch;
use super::{Fault, Limit, Trial, run};
use crate::load::Load;
use crate::testbed::Testbed;
use crate::tools::Tool;

/// Why a tool or the generator could not be run. Everything else that a run fails with is of the testbed.
#[derive(Debug)]
pub(super) struct Failure {
    /// [`Fault::Unable`] or [`Fault::Failed`].
    fault: Fault,
    words: String,
    /// What there was too little of, where that is known.
    limit: Option<Limit>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl core::error::Error for Failure {}

impl Failure {
    pub(super) const fn new(words: String) -> Self {
        Self { fault: Fault::Failed, words, limit: None }
    }

    /// A tool that does not begin.
    pub(super) const fn unable(words: String) -> Self {
        Self { fault: Fault::Unable, words, limit: None }
    }

    /// The same of a tool that the kernel has killed, since it may have so many bytes of memory and needs more.
    fn starved(self, bytes: u64) -> Self {
        let why = format!("killed, since it needs more than {bytes} bytes of memory");
        Self { words: format!("{why}: {}", self.words), limit: Some(Limit::Memory), ..self }
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
        said => format!("{what}: {}", said.lines().collect::<Vec<_>>().join("; ")),
    }
}

/// What is known of a run that could not be made: nothing was counted, so that no numbers are written.
#[derive(serde::Serialize, serde::Deserialize)]
struct Failed {
    tool: String,
    load: Load,
    faults: Vec<Fault>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit: Option<Limit>,
    failure: String,
}

impl serde::Serialize for Trial {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.failure {
            None => Self::serialize(self, serializer),
            Some(failure) => {
                let Self { tool, load, faults, limit, .. } = self.clone();
                let failed = Failed { tool, load, faults, limit, failure: failure.clone() };
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
        let Failed { tool, load, faults, limit, failure } = failed;
        let failure = Some(failure);
        Ok(Self { tool, load, ended: true, faults, limit, failure, ..Self::default() })
    }
}

impl Trial {
    /// One of a tool that does not begin, for this reason.
    #[must_use]
    pub fn unable(tool: &Tool, load: &Load, why: String) -> Self {
        Self::failed(tool, load, Failure::unable(why))
    }

    fn failed(tool: &Tool, load: &Load, Failure { fault, words, limit }: Failure) -> Self {
        Self {
            tool: tool.name.clone(),
            load: load.clone(),
            ended: true,
            faults: vec![fault],
            limit,
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
pub fn attempt(bed: &Testbed, netsniff: &Path, tool: &Tool, load: &Load) -> anyhow::Result<Trial> {
    let before = bed.pressure()?;
    let error = match run(bed, netsniff, tool, load) {
        Err(error) => error,
        trial => return trial,
    };
    let failure = error.downcast::<Failure>()?;
    let is_killed = bed.pressure()?.killed > before.killed;
    let failure = match bed.memory().filter(|_| is_killed) {
        Some(bound) => failure.starved(bound.bytes()),
        None => failure,
    };
    Ok(Trial::failed(tool, load, failure))
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
        assert_eq!(failed.limit, None);
        let json = serde_json::to_value(&failed).unwrap();
        let names: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["failure", "faults", "load", "tool"]);
        let read: Trial = serde_json::from_value(json).unwrap();
        assert_eq!((&read.failure, &read.faults), (&failed.failure, &failed.faults));
        assert_eq!((read.offered(), read.loss(), read.kernel_loss()), (None, None, None));
        let starved = Failure::new("it ended".to_owned()).starved(1 << 20);
        let starved = Trial::failed(&tool, &failed.load, starved);
        assert_eq!(starved.limit, Some(Limit::Memory));
        let said = "killed, since it needs more than 1048576 bytes of memory: it ended";
        assert_eq!(starved.failure.as_deref(), Some(said));
        let json = serde_json::to_string(&starved).unwrap();
        assert_eq!(serde_json::from_str::<Trial>(&json).unwrap(), starved);
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
