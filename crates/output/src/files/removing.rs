//! Removing a file that was listed before, which may be hours ago: nothing else, wherever its name leads now.

use std::io;
use std::path::Path;

use crate::retention::EndedFile;

/// Removes a file below a directory, and the directories in between that it was the last one in. No link below the directory is
/// followed.
///
/// # Errors
///
/// Also where another file has its name, or a link stands for one of the directories.
#[cfg(unix)]
pub(super) fn remove(directory: &Path, file: &EndedFile) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, statat, unlinkat};

    use crate::descriptors::Identity;

    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let below = file.path.strip_prefix(directory).map_err(io::Error::other)?;
    let name = below.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut folder = openat(CWD, directory, flags, Mode::empty())?;
    let mut above = Vec::new();
    for part in below.parent().into_iter().flatten() {
        let inner = openat(&folder, part, flags | OFlags::NOFOLLOW, Mode::empty())?;
        above.push((core::mem::replace(&mut folder, inner), part));
    }
    let found = Identity::of_stat(&statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?);
    if found.is_none() || found != file.identity {
        return Err(io::Error::other("another file has taken its place"));
    }
    unlinkat(&folder, name, AtFlags::empty())?;
    for (outer, part) in above.into_iter().rev() {
        // One with other files stays, and so do those above it.
        if unlinkat(&outer, part, AtFlags::REMOVEDIR).is_err() {
            break;
        }
    }
    Ok(())
}

/// Removes a file, and the directories below `directory` that it was the last one in.
#[cfg(not(unix))]
pub(super) fn remove(directory: &Path, file: &EndedFile) -> io::Result<()> {
    std::fs::remove_file(&file.path)?;
    let folders = file.path.ancestors().skip(1).take_while(|folder| *folder != directory);
    for folder in folders {
        // One with other files stays, and so do those above it.
        if std::fs::remove_dir(folder).is_err() {
            break;
        }
    }
    Ok(())
}
