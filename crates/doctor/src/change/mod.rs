//! Changes: those that a diagnosis advises, each in a journal before it is made, so that all of them can be taken back.
//!
//! | module | concern |
//! |---|---|
//! | [`journal`] | what was changed, on disk |
//! | [`place`] | where and when it was changed |
//! | `revert` | the way back |
//! | [`persist`] | changes that outlive a restart |

pub mod journal;
pub mod persist;
pub mod place;
mod revert;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use self::journal::Journal;
use self::place::Place;
pub use self::revert::{Reverted, preview, revert};
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
/// Where the journal cannot be written, or the kernel takes another value or none. Then it is as it was; if it cannot be made so
/// again, it stays in the journal.
pub fn apply(kernel: &dyn Kernel, journal: &mut Journal, change: &Change) -> anyhow::Result<()> {
    let Change { setting, before, after } = change;
    let now = setting.read(kernel)?;
    if !setting.is_same(&now, before) {
        bail!("{setting} has become {now} meanwhile, and was {before}: look again");
    }
    // What could not be set again must not be changed.
    setting.check(before)?;
    setting.check(after)?;
    journal.note(change, Place::of(kernel))?;
    let Err(error) = set(kernel, setting, after) else { return Ok(()) };
    // What was not taken needs no way back; where there is a half, the way back is tried at once.
    if !is_now(kernel, setting, before)
        && let Err(why) = set(kernel, setting, before)
    {
        let stays = format!("{why:#}; it stays in {}", journal.path().display());
        return Err(error.context(stays));
    }
    journal.forget_last()?;
    Err(error)
}

/// Whether a setting surely has this value.
fn is_now(kernel: &dyn Kernel, setting: &Setting, value: &str) -> bool {
    setting.read(kernel).is_ok_and(|now| setting.is_same(&now, value))
}

/// Sets a value, and reads it again.
fn set(kernel: &dyn Kernel, setting: &Setting, value: &str) -> anyhow::Result<()> {
    setting.write(kernel, value)?;
    let now = setting.read(kernel).with_context(|| format!("cannot read {setting} again"))?;
    if !setting.is_same(&now, value) {
        bail!("the kernel made {now} of {value} for {setting}");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
