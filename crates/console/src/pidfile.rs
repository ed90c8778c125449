//! The file with the number of the running process (`-p FILE`), which others send signals by.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::unlinked;

/// How often the file may be replaced by others while it is opened, before that is no chance.
const ATTEMPTS: usize = 10;

/// A file that holds the number of this process while it runs. It is locked, so that a file which was
/// left by a process that died, whose number another one may have now, hinders nobody.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
    file: File,
}

impl PidFile {
    /// Writes the number of this process to the file `path`.
    ///
    /// # Errors
    ///
    /// When a running process holds the file, and when it cannot be written.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        let mut file = Self::locked(path)?;
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.write_all(format!("{}\n", std::process::id()).as_bytes())?;
            file.flush()
        };
        write(&mut file).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path: path.to_owned(), file })
    }

    fn locked(path: &Path) -> anyhow::Result<File> {
        for _ in 0..ATTEMPTS {
            // Opening a pipe would wait, and a device is not to be written to.
            if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
                bail!("{} is no file for the number of a process", path.display());
            }
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            let mut file = unlinked::open(&mut options, path, false)
                .with_context(|| format!("cannot open {}", path.display()))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let mut holder = String::new();
                    // The message does without the number where it cannot be read.
                    let _ = (&mut file).take(20).read_to_string(&mut holder);
                    let holder = match holder.trim() {
                        "" => String::new(),
                        number => format!(" {number}"),
                    };
                    bail!("the process{holder} runs already and holds {}", path.display());
                }
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("cannot lock {}", path.display()));
                }
            }
            // Its holder may have removed it after it was opened here, and before it was locked.
            if is_at(&file, path) {
                return Ok(file);
            }
        }
        bail!("{} is replaced again and again", path.display())
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let is_removed = is_at(&self.file, &self.path) && fs::remove_file(&self.path).is_ok();
        if !is_removed {
            // Without the right to find or to remove it any more, no number is better than an old one.
            let _ = self.file.set_len(0);
        }
    }
}

/// Whether `path` still leads to the file.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let there = fs::metadata(path).map(identity).ok();
        there.is_some() && there == file.metadata().map(identity).ok()
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path of a file of its own, removed at the end.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let name = format!("netsniff-pidfile-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_file(&path);
            Self(path)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn it_holds_the_number_while_the_process_runs() {
        let place = Place::new("alone");
        let held = PidFile::create(&place.0).unwrap();
        let number = format!("{}\n", std::process::id());
        assert_eq!(fs::read_to_string(&place.0).unwrap(), number);
        let error = PidFile::create(&place.0).unwrap_err().to_string();
        let expected = format!("the process {} runs already and holds", std::process::id());
        assert!(error.starts_with(&expected), "{error}");
        assert_eq!(
            fs::read_to_string(&place.0).unwrap(),
            number,
            "the refused one changed nothing"
        );
        drop(held);
        assert!(!place.0.exists());
    }

    #[test]
    fn one_that_was_left_is_taken_over() {
        let place = Place::new("left");
        fs::write(&place.0, "4194304 and a long rest of something\n").unwrap();
        let held = PidFile::create(&place.0).unwrap();
        assert_eq!(fs::read_to_string(&place.0).unwrap(), format!("{}\n", std::process::id()));
        drop(held);
        assert!(!place.0.exists());
    }

    #[test]
    fn the_file_of_another_is_left_alone() {
        let place = Place::new("replaced");
        let first = PidFile::create(&place.0).unwrap();
        fs::remove_file(&place.0).unwrap();
        let second = PidFile::create(&place.0).unwrap();
        drop(first);
        assert!(place.0.exists(), "the first one removed the file of the second");
        drop(second);
        assert!(!place.0.exists());
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let error = PidFile::create(&std::env::temp_dir()).unwrap_err().to_string();
        assert!(error.ends_with("is no file for the number of a process"), "{error}");
        let nowhere = std::env::temp_dir().join("netsniff-no-such-directory").join("pid");
        let error = PidFile::create(&nowhere).unwrap_err().to_string();
        assert!(error.starts_with("cannot open"), "{error}");
    }
}
