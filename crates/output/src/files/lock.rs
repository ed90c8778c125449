//! One live run at a time in a directory: a second one would rename, and in time remove, what the first one writes.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use anyhow::{Context as _, bail};
use netsniff_console::unlinked;

/// The file that is locked. It has the name of no log, and stays: if it were removed, two runs could each lock one of that name.
pub(super) const NAME: &str = ".netsniff.lock";

/// Held as long as a run writes to a directory. The system lets go of it when the process ends, however that comes.
#[derive(Debug)]
pub(super) struct DirectoryLock(File);

impl DirectoryLock {
    /// Locks a directory.
    ///
    /// # Errors
    ///
    /// Also where another run holds it.
    pub(super) fn take(directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join(NAME);
        let opened = unlinked::open(OpenOptions::new().write(true).create(true), &path, true);
        let file = opened.with_context(|| format!("cannot create {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => bail!(
                "another netsniff writes its logs to {}: end it, or write to another directory",
                directory.display()
            ),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock {}", path.display()))
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
    use super::*;
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
        #[cfg(unix)]
        {
            std::fs::remove_file(directory.join(NAME)).unwrap();
            std::os::unix::fs::symlink("elsewhere", directory.join(NAME)).unwrap();
            let error = format!("{:#}", live().unwrap_err());
            assert!(error.contains("is a symbolic link"), "{error}");
            assert!(!directory.join("elsewhere").exists());
        }
        std::fs::remove_dir_all(directory).unwrap();
    }
}
