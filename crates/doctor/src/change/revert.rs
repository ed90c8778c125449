//! The way back: the changes of a journal, setting by setting.

use std::io;

use super::journal::{Entry, Journal};
use super::place::Place;
use super::{Change, set};
use crate::kernel::Kernel;
use crate::setting::Setting;

/// `ENODEV` of errno(3): what drivers and sysfs say of an interface that is gone.
const NO_DEVICE: i32 = 19;

/// What became of a change that was to be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reverted {
    /// The value is what it was before: it was read again.
    Restored,
    /// It was so already, as after a restart.
    AsBefore,
    /// A restart has undone it, and there may be another setting in its place.
    Restarted,
    /// Somebody else has changed it since, to this.
    Foreign(String),
    /// It was made in another network namespace, whose interfaces are not seen here.
    Elsewhere,
    /// There is no such setting any more, as of an interface that is gone.
    Gone,
    /// The kernel does not tell, or did not take it.
    Failed(String),
}

impl Reverted {
    /// Whether there still is something to take back, so that the change stays in the journal.
    #[must_use]
    pub const fn is_left(&self) -> bool {
        matches!(self, Self::Foreign(_) | Self::Failed(_) | Self::Elsewhere)
    }
}

/// All changes of a setting that follow each other, as one: from the first value to the last.
#[derive(Debug)]
struct Chain<'a> {
    change: Change,
    /// Values of all steps.
    ours: Vec<&'a str>,
    /// Where the last step was made.
    place: &'a Place,
    /// Numbers of the entries.
    entries: Vec<usize>,
}

/// Whether a setting is another one in another network namespace.
fn is_of_namespace(setting: &Setting) -> bool {
    match setting {
        Setting::Irq { .. } | Setting::Governor { .. } => false,
        // Sizes of sockets' memory are of a namespace in newer kernels; all others of the list are the machine's.
        Setting::Sysctl { name } => name.contains("mem_"),
        _ => true,
    }
}

impl<'a> Chain<'a> {
    fn new(at: usize, entry: &'a Entry) -> Self {
        let Entry { change, place } = entry;
        let ours = vec![change.before.as_str(), change.after.as_str()];
        Self { change: change.clone(), ours, place, entries: vec![at] }
    }

    /// Whether a change is of the same setting of the same machine part.
    fn is_of(&self, Entry { change, place }: &Entry) -> bool {
        let setting = &change.setting;
        let is_another = match setting {
            Setting::Irq { .. } => place.is_of_another_boot(self.place),
            setting => is_of_namespace(setting) && place.is_of_another_namespace(self.place),
        };
        self.change.setting == *setting && !is_another
    }

    fn add(&mut self, at: usize, Entry { change, place }: &'a Entry) {
        let setting = &change.setting;
        // A restart has undone what was before, unless a file has made it again.
        if place.is_of_another_boot(self.place)
            && !setting.is_same(&change.before, &self.change.after)
        {
            self.change.before.clone_from(&change.before);
            self.ours.clear();
        }
        self.ours.extend([change.before.as_str(), change.after.as_str()]);
        self.change.after.clone_from(&change.after);
        self.place = place;
        self.entries.push(at);
    }

    /// What is to be told without a change; `None` where the value before is to be set.
    fn judge(&self, kernel: &dyn Kernel, here: &Place, is_forced: bool) -> Option<Reverted> {
        let Change { setting, before, .. } = &self.change;
        let is_elsewhere = self.place.is_of_another_namespace(here);
        if is_elsewhere && is_of_namespace(setting) {
            return Some(Reverted::Elsewhere);
        }
        if matches!(setting, Setting::Irq { .. }) && self.place.is_of_another_boot(here) {
            return Some(Reverted::Restarted);
        }
        let now = match setting.read(kernel) {
            Ok(now) => now,
            Err(error) if is_missing(&error) && !is_elsewhere => return Some(Reverted::Gone),
            Err(error) => return Some(Reverted::Failed(error.to_string())),
        };
        if setting.is_same(&now, before) {
            return Some(Reverted::AsBefore);
        }
        let is_ours = self.ours.iter().any(|value| setting.is_same(&now, value));
        (!is_ours && !is_forced).then_some(Reverted::Foreign(now))
    }
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(NO_DEVICE)
}

/// The changes of each setting, in the order of the first of them.
fn chains(entries: &[Entry]) -> Vec<Chain<'_>> {
    let mut chains: Vec<Chain<'_>> = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        match chains.iter_mut().find(|chain| chain.is_of(entry)) {
            Some(chain) => chain.add(at, entry),
            None => chains.push(Chain::new(at, entry)),
        }
    }
    chains
}

/// What [`revert`] would do with each setting, without a change: `None` where the value before would be set.
#[must_use]
pub fn preview(
    kernel: &dyn Kernel,
    entries: &[Entry],
    is_forced: bool,
) -> Vec<(Change, Option<Reverted>)> {
    let here = Place::of(kernel);
    let judged = |chain: Chain<'_>| {
        let outcome = chain.judge(kernel, &here, is_forced);
        (chain.change, outcome)
    };
    chains(entries).into_iter().rev().map(judged).collect()
}

/// Takes all changes of a journal back, the last setting first, and tells what became of each. Those that somebody else has
/// changed since are left alone unless `is_forced`; they stay in the journal, as do those that failed and those of another
/// network namespace.
///
/// # Errors
///
/// Where the journal cannot be written.
pub fn revert(
    kernel: &dyn Kernel,
    journal: &mut Journal,
    is_forced: bool,
) -> anyhow::Result<Vec<(Change, Reverted)>> {
    let here = Place::of(kernel);
    let (mut told, mut left) = (Vec::new(), Vec::new());
    for chain in chains(journal.entries()).into_iter().rev() {
        let outcome = chain.judge(kernel, &here, is_forced).unwrap_or_else(|| {
            let Change { setting, before, .. } = &chain.change;
            match set(kernel, setting, before) {
                Ok(()) => Reverted::Restored,
                Err(error) => Reverted::Failed(format!("{error:#}")),
            }
        });
        if outcome.is_left() {
            left.extend(chain.entries);
        }
        told.push((chain.change, outcome));
    }
    left.sort_unstable();
    let left = left.into_iter().filter_map(|at| journal.entries().get(at).cloned()).collect();
    journal.keep(left)?;
    Ok(told)
}
