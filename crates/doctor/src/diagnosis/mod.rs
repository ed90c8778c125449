//! Which stage loses, why, and what to change: from what was watched to findings and advice.

mod advice;
mod findings;

use serde::Serialize;

use crate::stage::{Loss, Stage, StageId};
use crate::watch::Watched;

/// What was found out about an interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Name of the interface.
    pub interface: String,
    /// Megabits a second of its link; `None` where it does not tell.
    pub megabits: Option<u64>,
    /// What loses now, or will, the worst first; empty where nothing was seen.
    pub findings: Vec<Finding>,
    /// What was seen, with what is advised.
    #[serde(flatten)]
    pub watched: Watched,
}

/// Something that loses packets, or will.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The stage.
    pub stage: StageId,
    /// How bad it is.
    pub level: Level,
    /// What it is, in a sentence.
    pub text: String,
    /// Packets that it lost while it was watched; `None` where nobody counts them.
    pub lost: Option<u64>,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Packets were lost while it was watched.
    Losing,
    /// They will be lost at more load, or may have been.
    Near,
    /// It was so before, or is worth knowing.
    Note,
}

impl Diagnosis {
    /// Judges what was watched on an interface.
    #[must_use]
    pub fn of(interface: &str, megabits: Option<u64>, mut watched: Watched) -> Self {
        let mut findings = findings::all(&watched);
        findings.sort_by(|one, other| {
            one.level
                .cmp(&other.level)
                .then(other.lost.cmp(&one.lost))
                .then(one.stage.cmp(&other.stage))
        });
        advice::advise(&mut watched, &findings, megabits);
        Self { interface: interface.to_owned(), megabits, findings, watched }
    }

    /// The stage that lost most while it was watched.
    #[must_use]
    pub fn worst(&self) -> Option<StageId> {
        self.findings
            .iter()
            .find(|finding| finding.level == Level::Losing)
            .map(|finding| finding.stage)
    }

    /// What is said where nothing was found, with the stages of which nobody can tell.
    #[must_use]
    pub fn silence(&self) -> String {
        let is_unknown = |stage: &&Stage| {
            let mut counting = stage.counters.iter().filter(|it| it.loss == Loss::Packets);
            counting.any(|it| it.during.is_none()) || !stage.unread.is_empty()
        };
        let unknown = self.watched.stages.iter().filter(is_unknown);
        let unknown: Vec<_> = unknown.map(|stage| stage.id.name()).collect();
        let mut said =
            "No counter that can be read grew while it was watched, and nothing is near it."
                .to_owned();
        if !unknown.is_empty() {
            said += &format!(" Not all can be read of: {}.", unknown.join(", "));
        }
        said
    }

    /// A stage.
    #[must_use]
    pub fn stage(&self, id: StageId) -> Option<&Stage> {
        self.watched.stages.iter().find(|stage| stage.id == id)
    }
}

#[cfg(test)]
mod tests;
