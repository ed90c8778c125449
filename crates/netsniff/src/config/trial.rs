//! Which options go together: the command line is asked.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::{Setting, value};

/// Arguments to which some of files can be added, to see what clap says of them together.
pub(super) struct Trial<'w> {
    command: Command,
    words: &'w [OsString],
    /// Where the words of files go.
    after: usize,
}

impl<'w> Trial<'w> {
    pub(super) fn new(root: &Command, words: &'w [OsString], after: usize) -> Self {
        Self { command: root.clone(), words, after }
    }

    /// The arguments that are missing once these are added, as clap writes them.
    ///
    /// # Errors
    ///
    /// What clap says where they do not go together.
    pub(super) fn missing(&mut self, added: &[&Setting]) -> Result<BTreeSet<String>, String> {
        let words = join(self.words, self.after, added);
        let Err(error) = self.command.try_get_matches_from_mut(words) else {
            return Ok(BTreeSet::new());
        };
        if error.kind() != ErrorKind::MissingRequiredArgument {
            return Err(value::said(&error));
        }
        Ok(match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::Strings(names)) => names.iter().cloned().collect(),
            Some(ContextValue::String(name)) => BTreeSet::from([name.clone()]),
            _ => BTreeSet::new(),
        })
    }

    /// Those that can be added: they contradict nothing that stands before them, and have all that they need.
    pub(super) fn fitting<'s>(&mut self, mut open: Vec<&'s Setting>) -> Vec<&'s Setting> {
        if self.missing(&open).is_ok_and(|missing| missing.is_empty()) {
            return open;
        }
        let mut chosen = Vec::new();
        loop {
            let Ok(missing) = self.missing(&chosen) else { return chosen };
            let found = open.iter().find_map(|set| self.closed(&chosen, set, &open, &missing));
            let Some(more) = found else { return chosen };
            open.retain(|set| !more.contains(set));
            chosen.extend(more);
        }
    }

    /// An option with those that it needs, if they can be added to the chosen ones.
    fn closed<'s>(
        &mut self,
        chosen: &[&'s Setting],
        set: &'s Setting,
        open: &[&'s Setting],
        missing: &BTreeSet<String>,
    ) -> Option<Vec<&'s Setting>> {
        let mut more = vec![set];
        loop {
            let now = self.missing(&[chosen, more.as_slice()].concat()).ok()?;
            let needed: Vec<_> = now.difference(missing).collect();
            if needed.is_empty() {
                return Some(more);
            }
            let is_needed = |other: &&Setting| {
                let flag = format!("--{}", other.option);
                !more.contains(other)
                    && needed.iter().any(|name| name.split(' ').next() == Some(&flag))
            };
            let others: Vec<_> = open.iter().copied().filter(is_needed).collect();
            if others.is_empty() {
                return None;
            }
            more.extend(others);
        }
    }
}

/// Words with those of files among them.
pub(super) fn join(words: &[OsString], after: usize, added: &[&Setting]) -> Vec<OsString> {
    let (before, behind) = words.split_at(after.min(words.len()));
    let added = added.iter().flat_map(|set| set.words());
    before.iter().cloned().chain(added).chain(behind.iter().cloned()).collect()
}
