//! One live run at a time in a directory: a second one would rename, and in time remove, what the first one writes.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, bail};

/// Held as long as a run writes to a directory, which is what is locked. The system lets go of it when the process ends, however
/// that comes.
#[derive(Debug)]
pub(super) struct DirectoryLock(File);

impl DirectoryLock {
    /// Locks a directory. Where its file system knows no locks, nobody holds one.
    ///
    /// # Errors
    ///
    /// Also where another run holds it.
    pub(super) fn take(directory: &Path) -> anyhow::Result<Option<Self>> {
        let opened = File::open(directory);
        let file = opened.with_context(|| format!("cannot open {}", directory.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => bail!(
                "another netsniff writes its logs to {}: end it, or write to another directory",
                directory.display()
            ),
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(None),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock {}", directory.display()))
            }
        }
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // A child that is not yet another program has the file open, too, and would hold the lock for a moment.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use netsniff_analysis::SortKey;
    use netsniff_packet::Timestamp;

    use super::super::LogFiles;
    use crate::{Format, LiveSink as _, Roll, RowSink as _};

    #[test]
    fn a_second_run_touches_nothing_of_the_first() {
        let directory = std::env::temp_dir().join(format!("netsniff-lock-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        let live = || LogFiles::live(&directory, Format::Json, Roll::default(), Timestamp::EPOCH);
        let mut first = live().unwrap();
        first.row(0, &SortKey::first_at(Timestamp::EPOCH), b"{}\n").unwrap();
        first.flush(Timestamp::EPOCH).unwrap();
        let error = live().unwrap_err().to_string();
        assert!(error.starts_with("another netsniff writes its logs to "), "{error}");
        assert!(directory.join("conn.log").exists(), "the log of the first is renamed");
        first.end(Timestamp::EPOCH).unwrap();
        // One that has ended, and one that is dropped, holds nothing any more.
        drop(live().unwrap());
        drop(live().unwrap());
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1, "nothing but the log");
        std::fs::remove_dir_all(directory).unwrap();
    }
}
