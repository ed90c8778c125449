//! Whether another user can write what root reads or keeps: a file, and each folder that leads to it.

use std::fs::Metadata;
use std::path::Path;

/// Who but root can write it, and what takes that from them.
#[derive(Debug, PartialEq, Eq)]
pub struct Distrusted(String);

impl core::fmt::Display for Distrusted {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Distrusted {}

/// Whether this process may rely on a file or folder with these facts: always as an ordinary user, and as root where only root
/// can have written it.
///
/// # Errors
///
/// The first file or folder that another user can write, with the command that takes the right.
#[cfg(target_os = "linux")]
pub fn check(path: &Path, facts: &Metadata) -> Result<(), Distrusted> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    linux::check(path, facts)
}

/// Elsewhere nothing runs with rights that its user has not.
///
/// # Errors
///
/// None.
#[cfg(not(target_os = "linux"))]
pub fn check(_: &Path, _: &Metadata) -> Result<(), Distrusted> {
    Ok(())
}

/// Whether a file may be believed that tells of another one: if only root, this user, or whoever can write the other one can
/// have written it.
///
/// # Errors
///
/// Who else can write it.
#[cfg(target_os = "linux")]
pub fn check_beside(facts: &Metadata, other: &Metadata) -> Result<(), Distrusted> {
    linux::check_beside(facts, other, rustix::process::geteuid().as_raw())
}

/// Elsewhere nobody is known who can write a file.
///
/// # Errors
///
/// None.
#[cfg(not(target_os = "linux"))]
pub fn check_beside(_: &Metadata, _: &Metadata) -> Result<(), Distrusted> {
    Ok(())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{self, Metadata};
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;

    use super::Distrusted;

    const ROOT: u32 = 0;
    const OTHERS_WRITE: u32 = 0o002;
    const GROUP_WRITES: u32 = 0o020;
    const STICKY: u32 = 0o1000;

    pub(super) fn check(path: &Path, facts: &Metadata) -> Result<(), Distrusted> {
        judged(path, facts, true)?;
        // Who can write a folder can put another file there.
        let real = path.canonicalize().map_err(|error| unseen(path, &error))?;
        for folder in real.ancestors().skip(1) {
            let facts = fs::metadata(folder).map_err(|error| unseen(folder, &error))?;
            judged(folder, &facts, false)?;
        }
        Ok(())
    }

    pub(super) fn check_beside(
        facts: &Metadata,
        other: &Metadata,
        user: u32,
    ) -> Result<(), Distrusted> {
        let of = |it: &Metadata| ((it.uid(), it.gid()), it.mode());
        stranger(of(facts), of(other), user).map_or(Ok(()), |who| Err(Distrusted(who)))
    }

    /// Who can write a file, by its owner, group and mode, and not the other one.
    pub(super) fn stranger(
        ((owner, group), mode): ((u32, u32), u32),
        ((other_owner, other_group), other_mode): ((u32, u32), u32),
        user: u32,
    ) -> Option<String> {
        if ![ROOT, user, other_owner].contains(&owner) {
            return Some(format!("it belongs to the user with the number {owner}"));
        }
        let is_shared = other_mode & OTHERS_WRITE != 0;
        if mode & OTHERS_WRITE != 0 && !is_shared {
            return Some("it can be written by everybody".to_owned());
        }
        let is_of_group = group == ROOT || group == other_group && other_mode & GROUP_WRITES != 0;
        let by_group = mode & GROUP_WRITES != 0 && !is_of_group && !is_shared;
        by_group.then(|| format!("it can be written by the group with the number {group}"))
    }

    fn unseen(path: &Path, error: &std::io::Error) -> Distrusted {
        Distrusted(format!("cannot look at {}: {error}", path.display()))
    }

    fn judged(path: &Path, facts: &Metadata, is_itself: bool) -> Result<(), Distrusted> {
        let path = path.display();
        match writer((facts.uid(), facts.gid()), facts.mode(), facts.is_dir()) {
            None => Ok(()),
            // The folder of a user, such as a home, stays the user's.
            Some((why, _)) if !is_itself && facts.uid() != ROOT => {
                Err(Distrusted(format!("{path} {why}. Choose a place that is root's alone")))
            }
            Some((why, cure)) => Err(Distrusted(format!("{path} {why}. Say `{cure} {path}`"))),
        }
    }

    pub(super) fn writer(
        (owner, group): (u32, u32),
        mode: u32,
        is_folder: bool,
    ) -> Option<(String, &'static str)> {
        if owner != ROOT {
            return Some((format!("belongs to the user with the number {owner}"), "chown root"));
        }
        // In a sticky folder, nobody can replace what is root's.
        if is_folder && mode & STICKY != 0 {
            return None;
        }
        if mode & OTHERS_WRITE != 0 {
            return Some(("can be written by everybody".to_owned(), "chmod o-w"));
        }
        let by_group = mode & GROUP_WRITES != 0 && group != ROOT;
        by_group
            .then(|| (format!("can be written by the group with the number {group}"), "chmod g-w"))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::linux::{stranger, writer};

    #[test]
    fn a_file_that_tells_of_another_is_by_no_stranger() {
        for (facts, other, is_stranger) in [
            (((7, 7), 0o600), ((5, 5), 0o644), false),
            (((0, 0), 0o664), ((5, 5), 0o644), false),
            (((5, 5), 0o600), ((5, 5), 0o644), false),
            (((6, 5), 0o600), ((5, 5), 0o644), true),
            (((7, 7), 0o602), ((5, 5), 0o644), true),
            (((7, 7), 0o602), ((5, 5), 0o666), false),
            (((7, 7), 0o660), ((5, 5), 0o664), true),
            (((7, 5), 0o660), ((5, 5), 0o664), false),
            (((7, 5), 0o660), ((5, 5), 0o644), true),
        ] {
            let said = stranger(facts, other, 7);
            assert_eq!(said.is_some(), is_stranger, "{facts:?} {other:?}: {said:?}");
        }
    }

    #[test]
    fn root_trusts_what_only_root_can_write() {
        for (owner, mode, is_folder, is_trusted) in [
            ((0, 0), 0o644, false, true),
            ((0, 0), 0o664, false, true),
            ((0, 50), 0o644, false, true),
            ((0, 50), 0o664, false, false),
            ((0, 0), 0o646, false, false),
            ((1000, 0), 0o600, false, false),
            ((0, 0), 0o1777, true, true),
            ((0, 0), 0o1666, false, false),
            ((0, 0), 0o777, true, false),
            ((1000, 1000), 0o1755, true, false),
        ] {
            let said = writer(owner, mode, is_folder);
            assert_eq!(said.is_none(), is_trusted, "{owner:?} {mode:o} {is_folder}: {said:?}");
        }
    }
}
