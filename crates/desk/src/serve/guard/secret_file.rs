//! Files with secrets: tokens and private keys.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use netsniff_console::{UsageError, say};

/// More than any key or token has.
const MOST: u64 = 64 * 1024;

/// Reads a secret. `what` names it in errors.
///
/// # Errors
///
/// Where it cannot be read, is too long, or everybody on this host can read or change it.
pub(super) fn read(path: &Path, what: &str) -> anyhow::Result<Vec<u8>> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot open the {what} {name}"))?;
    // Of the open file, which nobody can exchange for another one any more.
    let facts = file.metadata().with_context(|| format!("cannot look at the {what} {name}"))?;
    match readers(&facts) {
        Readers::Everybody => bail!(UsageError(format!(
            "everybody on this host can read or change the {what} {name}; to end that: chmod 600 {name}"
        ))),
        Readers::Group => {
            say(&format!("a group can read the {what} {name}; to end that: chmod 600 {name}"));
        }
        Readers::Owner => {}
    }
    let mut content = Vec::new();
    file.take(MOST + 1)
        .read_to_end(&mut content)
        .with_context(|| format!("cannot read the {what} {name}"))?;
    if content.len() as u64 > MOST {
        bail!(UsageError(format!("the {what} {name} is longer than {MOST} bytes")));
    }
    Ok(content)
}

/// Who besides root can read or change a file.
enum Readers {
    Owner,
    Group,
    Everybody,
}

#[cfg(unix)]
fn readers(facts: &Metadata) -> Readers {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = facts.permissions().mode();
    if mode & 0o007 != 0 {
        Readers::Everybody
    } else if mode & 0o070 != 0 {
        Readers::Group
    } else {
        Readers::Owner
    }
}

#[cfg(not(unix))]
fn readers(_: &Metadata) -> Readers {
    Readers::Owner
}
