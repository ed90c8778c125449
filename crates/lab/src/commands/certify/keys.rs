//! Files with keys and certificates.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};

use crate::certificate::key::{PrivateKey, PublicKey};

/// More than any of them has.
const MOST_READ: u64 = 16 << 20;

/// What others may do with a file.
const OTHERS: u32 = 0o077;

/// Reads a key that signs.
///
/// # Errors
///
/// Where it cannot be read, others can read it, or it is no such key; with what to do.
pub(super) fn private(path: &Path) -> anyhow::Result<PrivateKey> {
    let name = path.display();
    let file = open(path).context("openssl genpkey -algorithm ed25519 -out FILE makes a key")?;
    // Of the file that is open, whatever its name comes to mean.
    let mode = file.metadata().with_context(|| format!("cannot look at {name}"))?;
    if mode.permissions().mode() & OTHERS != 0 {
        bail!("others can read the key {name}, and could sign with it: chmod 600 {name}");
    }
    PrivateKey::of_pem(&read(file, path)?).map_err(|said| anyhow::anyhow!("the key {name}: {said}"))
}

/// Reads a key that verifies.
///
/// # Errors
///
/// Where it cannot be read or is no such key.
pub(super) fn public(path: &Path) -> anyhow::Result<PublicKey> {
    let key = PublicKey::of_pem(&content(path)?);
    key.map_err(|said| anyhow::anyhow!("the key {}: {said}", path.display()))
}

/// Reads a file of text.
///
/// # Errors
///
/// Where it cannot be read, is too large, or is no text.
pub(super) fn content(path: &Path) -> anyhow::Result<String> {
    read(open(path)?, path)
}

fn open(path: &Path) -> anyhow::Result<File> {
    File::open(path).with_context(|| format!("cannot open {}", path.display()))
}

fn read(file: File, path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let size = file.take(MOST_READ + 1).read_to_string(&mut text);
    let size = size.with_context(|| format!("cannot read {}", path.display()))?;
    if size as u64 > MOST_READ {
        bail!("{} is too large: it has more than {} MiB", path.display(), MOST_READ >> 20);
    }
    Ok(text)
}
