//! Files of lines that are only added to: each is whole or not there, so that what was interrupted goes on.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use netsniff_console::unlinked;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Entries, one to a line of JSON.
#[derive(Debug)]
pub(super) struct Journal<T> {
    path: PathBuf,
    file: File,
    entries: Vec<T>,
}

impl<T: Serialize + DeserializeOwned> Journal<T> {
    /// Opens a journal with what it has; one that is not there is begun where it may be.
    ///
    /// # Errors
    ///
    /// Where it cannot be read or written, with its name, and the line that is no entry.
    pub(super) fn open(path: &Path, may_begin: bool) -> anyhow::Result<Self> {
        let text = match fs::read_to_string(path) {
            Err(error) if may_begin && error.kind() == std::io::ErrorKind::NotFound => {
                String::new()
            }
            text => {
                text.with_context(|| format!("cannot read {}, to go on with it", path.display()))?
            }
        };
        let (entries, whole) = entries(&text, path)?;
        let file = unlinked::open(OpenOptions::new().create(true).append(true), path, false);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        ensure!(
            file.set_len(whole as u64).is_ok(),
            "cannot cut the last line of {}",
            path.display()
        );
        Ok(Self { path: path.to_owned(), file, entries })
    }

    pub(super) fn entries(&self) -> &[T] {
        &self.entries
    }

    /// Adds an entry.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    pub(super) fn add(&mut self, entry: T) -> anyhow::Result<()> {
        let line = serde_json::to_string(&entry)? + "\n";
        let written = self.file.write_all(line.as_bytes());
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        self.entries.push(entry);
        Ok(())
    }
}

/// The entries of a journal, and where what was written as a whole ends: a line that was cut when its writer was killed
/// is not there.
///
/// # Errors
///
/// A line that is no entry, with its number.
pub(super) fn entries<T: DeserializeOwned>(
    text: &str,
    path: &Path,
) -> anyhow::Result<(Vec<T>, usize)> {
    let whole = text.rfind('\n').map_or(0, |at| at + 1);
    let entry = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| {
            let (at, number) = (path.display(), number + 1);
            anyhow::anyhow!("line {number} of {at} is not of this version: {error}")
        })
    };
    let entries = text[..whole].lines().enumerate().map(entry).collect::<Result<_, _>>()?;
    Ok((entries, whole))
}
