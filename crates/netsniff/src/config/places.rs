//! Where configuration files lie, and whether they can be trusted.

use std::env;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use netsniff_console::{UsageError, trust};

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
    trust::check(&file.path, &facts).map_err(|why| {
        refused(format!(
            "netsniff runs as root, and reads no configuration file that another user can write: {why}, or --no-config"
        ))
    })?;
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
