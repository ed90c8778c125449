//! Files that have another name until they are whole, and directories of such: they do not stay where they never become so.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Those of this process.
static ALL: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn all() -> MutexGuard<'static, Vec<PathBuf>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file or directory that is removed unless it gets its name.
#[derive(Debug)]
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// A file that is about to be made with this name, or was.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        all().push(path.clone());
        Self(path)
    }

    /// Where it is now.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Gives it its name.
    ///
    /// # Errors
    ///
    /// Where it cannot be renamed.
    pub fn finish(self, name: &Path) -> io::Result<()> {
        let mut all = all();
        fs::rename(&self.0, name)?;
        all.retain(|path| *path != self.0);
        // Nothing is left to be removed.
        drop(all);
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut all = all();
        if all.contains(&self.0) {
            remove(&self.0);
            all.retain(|path| *path != self.0);
        }
    }
}

/// Removes all of them, and lets `end` end the process. None can be made or get its name meanwhile.
pub fn remove_all(end: impl FnOnce()) {
    let all = all();
    for path in &*all {
        remove(path);
    }
    end();
}

/// Removes a file, or a directory with all that is in it.
fn remove(path: &Path) {
    let is_directory = fs::symlink_metadata(path).is_ok_and(|it| it.is_dir());
    // It may never have been made.
    let _ = if is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_goes_with_all_that_is_in_it() {
        let path = std::env::temp_dir().join(format!("netsniff-scratch-{}", std::process::id()));
        let unfinished = Unfinished::new(path.clone());
        fs::create_dir_all(path.join("inner")).unwrap();
        fs::write(path.join("inner/file"), "1").unwrap();
        drop(unfinished);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_gets_its_name_or_goes() {
        let folder =
            std::env::temp_dir().join(format!("netsniff-unfinished-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let at = |name: &str| folder.join(name);
        let unfinished = Unfinished::new(at("a"));
        fs::write(unfinished.path(), "1").unwrap();
        unfinished.finish(&at("b")).unwrap();
        // Another one of the same name is not touched by what is over.
        fs::write(at("a"), "2").unwrap();
        let unfinished = Unfinished::new(at("c"));
        fs::write(at("c"), "3").unwrap();
        drop(unfinished);
        assert!(at("a").exists() && at("b").exists() && !at("c").exists());
        // What cannot get its name goes as well.
        let unfinished = Unfinished::new(at("a"));
        assert!(unfinished.finish(&at("none/b")).is_err() && !at("a").exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
