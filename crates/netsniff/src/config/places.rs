//! Where configuration files lie, and whether they can be trusted.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use netsniff_console::UsageError;

/// The environment variable that names the file; where it is empty, none is read.
pub const VARIABLE: &str = "NETSNIFF_CONFIG";

/// The file of the whole system.
const OF_SYSTEM: &str = "/etc/netsniff/netsniff.toml";

/// Bytes that a file may have.
const MOST_BYTES: u64 = 1 << 20;

/// A file that may be read.
pub(super) struct File {
    pub(super) path: PathBuf,
    /// Whether it has been asked for, so that it has to be there.
    pub(super) is_named: bool,
}

impl File {
    pub(super) fn named(path: &Path) -> Self {
        Self { path: path.to_owned(), is_named: true }
    }
}

/// The files to read, the one that stands above the others first.
pub(super) fn files(named: Option<&Path>, none: bool) -> Vec<File> {
    if none {
        return Vec::new();
    }
    if let Some(path) = named {
        return vec![File::named(path)];
    }
    match env::var_os(VARIABLE) {
        Some(path) if path.is_empty() => Vec::new(),
        Some(path) => vec![File::named(Path::new(&path))],
        None => {
            let usual = |path| File { path, is_named: false };
            of_user().into_iter().chain([OF_SYSTEM.into()]).map(usual).collect()
        }
    }
}

/// The file of the user. As the XDG Base Directory Specification has it, a relative path counts as none.
fn of_user() -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join("netsniff/netsniff.toml"))
}

/// Its text; `None` for one that is not there and need not be.
pub(super) fn read(file: &File) -> anyhow::Result<Option<String>> {
    let path = file.path.display();
    let mut options = OpenOptions::new();
    options.read(true);
    // A pipe that nobody writes to must not keep us.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0),
    );
    let opened = match options.open(&file.path) {
        Err(error) if error.kind() == ErrorKind::NotFound && !file.is_named => return Ok(None),
        opened => opened,
    };
    let refused = |said: String| UsageError(format!("{path}: {said}"));
    let opened = opened.map_err(|error| {
        refused(format!("cannot read this configuration file ({error}): --no-config reads none"))
    })?;
    let facts = opened.metadata().with_context(|| format!("cannot look at {path}"))?;
    if !facts.is_file() {
        return Err(
            refused("a configuration file is a regular file, and this is none".to_owned()).into()
        );
    }
    safety::check(&file.path, &facts).map_err(refused)?;
    let mut bytes = Vec::new();
    let read = opened.take(MOST_BYTES + 1).read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read {path}"))?;
    if bytes.len() as u64 > MOST_BYTES {
        let said =
            format!("a configuration file has {MOST_BYTES} bytes at most, and this has more");
        return Err(refused(said).into());
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(error) => {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
            Err(anyhow!(UsageError(format!("{path}:{line}: this is no UTF-8 text"))))
        }
    }
}

#[cfg(target_os = "linux")]
mod safety {
    //! What root reads, no other user must be able to write.

    use std::fs::Metadata;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;

    use super::fs;

    const ROOT: u32 = 0;
    const OTHERS_WRITE: u32 = 0o002;
    const GROUP_WRITES: u32 = 0o020;
    const STICKY: u32 = 0o1000;

    /// Whether this process may do what the file says: as root, where only root can have written it.
    pub(super) fn check(path: &Path, facts: &Metadata) -> Result<(), String> {
        if !nix::unistd::geteuid().is_root() {
            return Ok(());
        }
        let as_root =
            "netsniff runs as root, and reads no configuration file that another user can write";
        let refused = |what: &Path, why: String, cure: String| {
            let what = what.display();
            format!("{as_root}: {what} {why}. Say `{cure}`, or --no-config")
        };
        if let Some((why, cure)) = writer(facts, false) {
            return Err(refused(path, why, format!("{cure} {}", path.display())));
        }
        // Who can write a folder can put another file there.
        let real = path.canonicalize().map_err(|error| error.to_string())?;
        for folder in real.ancestors().skip(1) {
            let facts =
                fs::metadata(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            if let Some((why, cure)) = writer(&facts, true) {
                return Err(refused(folder, why, format!("{cure} {}", folder.display())));
            }
        }
        Ok(())
    }

    /// Who but root can write it, and what takes that from them.
    fn writer(facts: &Metadata, is_folder: bool) -> Option<(String, &'static str)> {
        judge((facts.uid(), facts.gid()), facts.mode(), is_folder)
    }

    pub(super) fn judge(
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

#[cfg(not(target_os = "linux"))]
mod safety {
    //! Elsewhere nothing runs with rights that its user has not.

    use std::fs::Metadata;
    use std::path::Path;

    pub(super) fn check(_: &Path, _: &Metadata) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::safety::judge;

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
            let said = judge(owner, mode, is_folder);
            assert_eq!(said.is_none(), is_trusted, "{owner:?} {mode:o} {is_folder}: {said:?}");
        }
    }
}
