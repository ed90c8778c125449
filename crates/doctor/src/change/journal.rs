//! What was changed, on disk before it was: so a process that is killed leaves the way back.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use netsniff_console::{trust, unlinked};

use serde::{Deserialize, Serialize};

use super::Change;
use super::place::Place;

/// Where it is, unless told.
pub const FOLDER: &str = "/var/lib/netsniff";

/// A folder in that for changes that are only tried, while something is measured.
pub const TRIED: &str = "tried";

/// Its name there.
const NAME: &str = "doctor.journal";

/// Bytes that are read of it at most.
const MOST: u64 = 16 << 20;

/// A change, and where it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// What was changed.
    #[serde(flatten)]
    pub change: Change,
    /// Where and when.
    #[serde(flatten)]
    pub place: Place,
}

/// The changes that the journal of a folder has, without a lock and without making anything.
///
/// # Errors
///
/// As [`Journal::open`].
pub fn stored(folder: &Path) -> anyhow::Result<Vec<Entry>> {
    match fs::metadata(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        facts => {
            let facts = facts.with_context(|| format!("cannot look at {}", folder.display()))?;
            trusted(folder, &facts)?;
        }
    }
    read(&folder.join(NAME))
}

/// The journal of a folder. Two processes do not have it at the same time.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    entries: Vec<Entry>,
    /// Held locked.
    _lock: File,
}

impl Journal {
    /// Opens the journal of a folder, which is made where it is missing.
    ///
    /// # Errors
    ///
    /// Without the right, as root where another user can write, where another process has it, and where it makes no sense: then
    /// nothing is changed.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(NAME);
        make(folder)?;
        let lock_path = folder.join("doctor.lock");
        let lock = unlinked::open(
            OpenOptions::new().create(true).append(true).mode(0o644),
            &lock_path,
            true,
        );
        let lock = lock.with_context(|| format!("cannot write {}", lock_path.display()))?;
        trusted(&lock_path, &lock.metadata()?)?;
        lock.try_lock().with_context(|| {
            format!("another doctor changes settings: {} is locked", folder.display())
        })?;
        let entries = read(&path)?;
        Ok(Self { path, entries, _lock: lock })
    }

    /// What was changed and not taken back, in order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The changes of these entries.
    #[must_use]
    pub fn changes(&self) -> Vec<Change> {
        self.entries.iter().map(|entry| entry.change.clone()).collect()
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Notes a change that is about to be made.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    pub fn note(&mut self, change: &Change, place: Place) -> anyhow::Result<()> {
        let mut entries = self.entries.clone();
        entries.push(Entry { change: change.clone(), place });
        self.keep(entries).context("nothing is changed without a way back")
    }

    /// Forgets the last change, which was not made.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    pub fn forget_last(&mut self) -> anyhow::Result<()> {
        let mut entries = self.entries.clone();
        entries.pop();
        self.keep(entries)
    }

    /// Has these changes from now on; without any, the file goes.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    pub fn keep(&mut self, entries: Vec<Entry>) -> anyhow::Result<()> {
        let name = self.path.display().to_string();
        if entries.is_empty() {
            match fs::remove_file(&self.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot remove {name}"));
                }
                _ => {}
            }
        } else {
            self.write(&entries).with_context(|| format!("cannot write {name}"))?;
        }
        self.entries = entries;
        Ok(())
    }

    /// A new file takes the old one's place in one step, once it is on the disk.
    fn write(&self, entries: &[Entry]) -> anyhow::Result<()> {
        let new = self.path.with_extension("new");
        let mut file = unlinked::replace(&new)?;
        for entry in entries {
            writeln!(file, "{}", serde_json::to_string(entry)?)?;
        }
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        // So that the name, too, is there after a crash.
        File::open(self.path.parent().unwrap_or(Path::new("/")))?.sync_all()?;
        Ok(())
    }
}

/// Refuses what another user can write: it says what is written to the kernel and to files of the system.
fn trusted(path: &Path, facts: &Metadata) -> anyhow::Result<()> {
    trust::check(path, facts).map_err(|why| {
        anyhow!(
            "netsniff runs as root, and keeps no journal of changes where another user can write: {why}, or choose another directory \
             by --state"
        )
    })
}

/// Makes a folder below what is trusted.
fn make(folder: &Path) -> anyhow::Result<()> {
    let about = || format!("cannot make {}", folder.display());
    let absolute = std::path::absolute(folder).with_context(about)?;
    if let Some(above) = absolute.ancestors().find(|path| path.exists()) {
        trusted(above, &fs::metadata(above).with_context(about)?)?;
    }
    // Whatever mask of modes this process has.
    DirBuilder::new().recursive(true).mode(0o755).create(folder).with_context(about)?;
    trusted(folder, &fs::metadata(folder).with_context(about)?)
}

fn read(path: &Path) -> anyhow::Result<Vec<Entry>> {
    let about = || format!("cannot read {}", path.display());
    let mut text = String::new();
    let file = match unlinked::open(OpenOptions::new().read(true), path, true) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        file => file.with_context(about)?,
    };
    trusted(path, &file.metadata().with_context(about)?)?;
    file.take(MOST).read_to_string(&mut text).with_context(about)?;
    let entry = |(number, line): (usize, &str)| {
        let said = || {
            let (path, line) = (path.display(), number + 1);
            format!("{path}:{line}: no change of a setting; nothing was taken back")
        };
        let entry: Entry = serde_json::from_str(line).with_context(said)?;
        let Change { setting, before, after } = &entry.change;
        [before, after]
            .into_iter()
            .try_for_each(|value| setting.check(value))
            .with_context(said)?;
        Ok(entry)
    };
    text.lines().enumerate().map(entry).collect()
}
