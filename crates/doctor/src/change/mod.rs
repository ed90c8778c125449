//! Changes: those that a diagnosis advises, each in a journal before it is made, so that all of them can be taken back.
//!
//! | module | concern |
//! |---|---|
//! | [`journal`] | what was changed, on disk |
//! | [`persist`] | changes that outlive a restart |

pub mod journal;
pub mod persist;

use anyhow::bail;
use serde::{Deserialize, Serialize};

use self::journal::Journal;
use crate::diagnosis::Diagnosis;
use crate::kernel::Kernel;
use crate::setting::Setting;
use crate::stage::StageId;

/// A setting with another value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// What is changed.
    pub setting: Setting,
    /// Its value before.
    pub before: String,
    /// Its value behind.
    pub after: String,
}

/// What a diagnosis advises, of these stages, or of all.
#[must_use]
pub fn advised(diagnosis: &Diagnosis, only: &[StageId]) -> Vec<Change> {
    let stages = diagnosis.watched.stages.iter();
    let stages = stages.filter(|stage| only.is_empty() || only.contains(&stage.id));
    let knobs = stages.flat_map(|stage| &stage.knobs);
    let change = |knob: &crate::stage::Knob| {
        Some(Change {
            setting: knob.setting.clone(),
            before: knob.value.clone()?,
            after: knob.advice.as_ref()?.value.clone(),
        })
    };
    knobs.filter_map(change).collect()
}

/// Makes a change: writes it to the journal, to the kernel, and looks whether the kernel has it.
///
/// # Errors
///
/// Where the journal cannot be written, or the kernel takes another value or none; then it is as it was.
pub fn apply(kernel: &dyn Kernel, journal: &mut Journal, change: &Change) -> anyhow::Result<()> {
    let Change { setting, before, after } = change;
    let now = setting.read(kernel)?;
    if !setting.is_same(&now, before) {
        bail!("{setting} has become {now} meanwhile, and was {before}: look again");
    }
    journal.note(change)?;
    let done = setting.write(kernel, after).and_then(|()| {
        let now = setting.read(kernel)?;
        if !setting.is_same(&now, after) {
            bail!("the kernel made {now} of {after} for {setting}");
        }
        Ok(())
    });
    if let Err(error) = done {
        // What was not taken needs no way back; where there is a half, the way back is tried at once.
        if setting.read(kernel).is_ok_and(|now| !setting.is_same(&now, before)) {
            setting.write(kernel, before)?;
        }
        journal.forget_last()?;
        return Err(error);
    }
    Ok(())
}

/// What became of a change that was to be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reverted {
    /// The value is what it was before.
    Restored,
    /// It was so already, as after a restart.
    AsBefore,
    /// Somebody else has changed it since, to this.
    Foreign(String),
    /// There is no such setting any more, as of an interface that is gone.
    Gone,
    /// The kernel did not take it.
    Failed(String),
}

/// Takes all changes of a journal back, the last one first, and tells what became of each. Those that somebody else has
/// changed since are left alone unless `is_forced`; they stay in the journal, as do those that failed.
///
/// # Errors
///
/// Where the journal cannot be written.
pub fn revert(
    kernel: &dyn Kernel,
    journal: &mut Journal,
    is_forced: bool,
) -> anyhow::Result<Vec<(Change, Reverted)>> {
    let mut told = Vec::new();
    let mut left = Vec::new();
    for change in journal.changes().iter().rev() {
        let outcome = take_back(kernel, change, is_forced);
        if matches!(outcome, Reverted::Foreign(_) | Reverted::Failed(_)) {
            left.insert(0, change.clone());
        }
        told.push((change.clone(), outcome));
    }
    journal.keep(left)?;
    Ok(told)
}

fn take_back(kernel: &dyn Kernel, change: &Change, is_forced: bool) -> Reverted {
    let Change { setting, before, after } = change;
    let now = match setting.read(kernel) {
        Ok(now) => now,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Reverted::Failed(error.to_string());
        }
        Err(_) => return Reverted::Gone,
    };
    if setting.is_same(&now, before) {
        return Reverted::AsBefore;
    }
    if !setting.is_same(&now, after) && !is_forced {
        return Reverted::Foreign(now);
    }
    match setting.write(kernel, before) {
        Ok(()) => Reverted::Restored,
        Err(error) => Reverted::Failed(format!("{error:#}")),
    }
}

#[cfg(test)]
mod tests;
