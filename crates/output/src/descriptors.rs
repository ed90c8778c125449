//! Open files, of which there may be only so many: the one that was not used for longest is closed for
//! one more, and opened again when it is needed.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use netsniff_console::unlinked;

/// Groups of open files: two threads that write seldom wait for each other.
const GROUPS: usize = 8;
/// Files of each group. All together stay far below what systems allow (256 on some).
const PER_GROUP: usize = 12;

/// Files that are open for writing, by numbers.
#[derive(Debug, Default)]
pub(super) struct Descriptors([Mutex<Vec<Open>>; GROUPS]);

#[derive(Debug)]
struct Open {
    id: u64,
    file: File,
}

impl Descriptors {
    /// Works on the file `id`, which `open` opens unless it is open.
    pub(super) fn with<T>(
        &self,
        id: u64,
        open: impl FnOnce() -> io::Result<File>,
        work: impl FnOnce(&mut File) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut group = self.group(id).lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = match group.iter().position(|open| open.id == id) {
            Some(at) => group.remove(at),
            None => {
                if group.len() >= PER_GROUP {
                    group.remove(0);
                }
                Open { id, file: open()? }
            }
        };
        let result = work(&mut open.file);
        // The last one was used last.
        group.push(open);
        result
    }

    /// Closes the file `id`, if it is open.
    pub(super) fn close(&self, id: u64) {
        let mut group = self.group(id).lock().unwrap_or_else(PoisonError::into_inner);
        group.retain(|open| open.id != id);
    }

    fn group(&self, id: u64) -> &Mutex<Vec<Open>> {
        &self.0[(id % GROUPS as u64) as usize]
    }
}

/// What tells a file from another one that took its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    #[cfg(unix)]
    device_and_inode: (u64, u64),
}

impl Identity {
    /// That of a regular file, by what statat(2) told.
    #[cfg(unix)]
    pub(super) fn of_stat(stat: &rustix::fs::Stat) -> Option<Self> {
        let is_file = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file();
        is_file.then_some(Self { device_and_inode: (stat.st_dev, stat.st_ino) })
    }

    pub(super) fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt as _;
        #[cfg(not(unix))]
        let _ = metadata;
        Self {
            #[cfg(unix)]
            device_and_inode: (metadata.dev(), metadata.ino()),
        }
    }

    /// Opens the file again to go on writing.
    ///
    /// # Errors
    ///
    /// Also where another file, or a link, has taken its place, which is not touched.
    pub(super) fn open(&self, path: &Path) -> io::Result<File> {
        let check = |metadata: &Metadata| {
            if metadata.is_file() && Self::of(metadata) == *self {
                return Ok(());
            }
            Err(io::Error::other("another file has taken its place"))
        };
        // Before, since opening a pipe would wait; and behind, since it may change in between.
        check(&fs::symlink_metadata(path)?)?;
        let file = unlinked::open(OpenOptions::new().write(true), path, false)?;
        check(&file.metadata()?)?;
        Ok(file)
    }
}
