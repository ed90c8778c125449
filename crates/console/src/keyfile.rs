//! Files with secret keys.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;

use crate::say;

/// How to make a key.
pub const MAKE_ONE: &str = "To make one: (umask 077; head -c 32 /dev/urandom > KEYFILE)";

/// More than any key has.
const MOST_READ: u64 = 4096;

/// Reads a key, and says where others can read it, too.
///
/// # Errors
///
/// Failures to read it, with what to do.
pub fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let name = path.display();
    let file =
        File::open(path).with_context(|| format!("cannot open the key file {name}. {MAKE_ONE}"))?;
    warn_of_readers(path, &file);
    let mut content = Vec::new();
    file.take(MOST_READ)
        .read_to_end(&mut content)
        .with_context(|| format!("cannot read the key file {name}"))?;
    Ok(content)
}

/// A key that others can read protects nothing from them.
#[cfg(unix)]
fn warn_of_readers(path: &Path, file: &File) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = file.metadata().map_or(0, |metadata| metadata.permissions().mode());
    if mode & 0o077 != 0 {
        let name = path.display();
        say(&format!("others can read the key file {name}; to change that: chmod 600 {name}"));
    }
}

#[cfg(not(unix))]
fn warn_of_readers(_: &Path, _: &File) {}
