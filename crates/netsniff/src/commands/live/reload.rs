//! Reading the configuration of a service once more, while it runs.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a service is to do by its configuration, read once more.
#[derive(Debug)]
pub struct Reread<A> {
    /// The arguments of its command.
    pub args: A,
    /// Long names of the options that are set otherwise than at the start.
    pub changed: BTreeSet<String>,
}

/// How a service reads its configuration once more.
pub struct Reloading<'a, A> {
    /// Reads it; what is wrong in it is an error, and changes nothing.
    pub again: &'a dyn Fn() -> anyhow::Result<Reread<A>>,
    /// The files that it is read from.
    pub files: Vec<PathBuf>,
}

impl<A> Reloading<'_, A> {
    /// The directories in which its files lie: who changes a file often puts another one in its place.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().filter_map(|file| file.parent())
    }
}

impl<A> fmt::Debug for Reloading<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloading").field("files", &self.files).finish_non_exhaustive()
    }
}

/// What came of it, in a sentence: what is in force, and what of `changed` is only after a restart.
#[must_use]
pub fn said(in_force: &BTreeSet<String>, changed: &BTreeSet<String>) -> String {
    let list =
        |names: Vec<&String>| names.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let later: Vec<_> = changed.difference(in_force).collect();
    let mut said = "the configuration was read again".to_owned();
    match in_force.is_empty() && later.is_empty() {
        true => said += ": nothing in it has changed",
        false if in_force.is_empty() => {}
        false => said += &format!(": in force are {}", list(in_force.iter().collect())),
    }
    if !later.is_empty() {
        said += &format!("; a restart is needed for {}", list(later));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_force_and_what_is_not_is_said() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        for (in_force, changed, expected) in [
            (&[][..], &[][..], ": nothing in it has changed"),
            (&["intel"], &[], ": in force are intel"),
            (
                &["intel", "keep-days"],
                &["keep-days", "roll"],
                ": in force are intel, keep-days; a restart is needed for roll",
            ),
            (&[], &["filter", "roll"], "; a restart is needed for filter, roll"),
        ] {
            let said = said(&set(in_force), &set(changed));
            assert_eq!(said, format!("the configuration was read again{expected}"));
        }
    }
}
