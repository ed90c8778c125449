//! Captures that grow while they are read: a file, or the files of a directory one after the other.

mod folder;
mod growing;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use netsniff_console::say;
use netsniff_pcapfile::Reader;
use signal_hook::consts::{SIGINT, SIGTERM};

use self::folder::Folder;
use self::growing::Growing;
use super::{CaptureFile, Input, capture};

/// How often is looked for more. Notices of the kernel would not come from file systems of other machines.
const POLL: Duration = Duration::from_millis(100);

/// What is followed, and how far.
#[derive(Debug)]
pub(super) struct Followed {
    /// The file that is read next, where it is no directory.
    file: Option<PathBuf>,
    folder: Option<Arc<Folder>>,
    is_over: Arc<AtomicBool>,
    /// Bytes that were read of the file that is read now.
    position: Arc<AtomicU64>,
    read_size: usize,
    refused: u64,
}

impl Followed {
    /// Nothing read yet.
    ///
    /// # Errors
    ///
    /// Where the path cannot be looked at, or signals cannot be listened for.
    pub(super) fn new(path: &Path, read_size: usize) -> anyhow::Result<Self> {
        let metadata = path.metadata();
        let metadata = metadata.with_context(|| format!("cannot follow {}", path.display()))?;
        let folder = metadata.is_dir().then(|| Arc::new(Folder::new(path)));
        let is_over = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The second one ends the process at once.
            let flag = Arc::clone(&is_over);
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&is_over))
                .and_then(|_| signal_hook::flag::register(signal, flag))
                .context("cannot listen for signals")?;
        }
        Ok(Self {
            file: folder.is_none().then(|| path.to_owned()),
            folder,
            is_over,
            position: Arc::default(),
            read_size,
            refused: 0,
        })
    }

    /// Waits for the next file that is a capture; `None` where there will be none.
    pub(super) fn next(&mut self) -> Option<(CaptureFile, Reader<Input>)> {
        loop {
            let path = self.next_path()?;
            match self.open(&path) {
                Ok(opened) => return Some(opened),
                Err(_) if self.is_over.load(Ordering::Relaxed) => return None,
                Err(said) => {
                    say(&format!("{}: {said}", path.display()));
                    self.refused += 1;
                }
            }
        }
    }

    /// Files that could not be read at all, or not as they were first seen.
    pub(super) const fn refused(&self) -> u64 {
        self.refused
    }

    /// The bytes of the file that is left, as many as were read; `None` where it is the only one, which may grow on.
    pub(super) fn leave(&self) -> Option<u64> {
        self.folder.as_ref().map(|_| self.position.load(Ordering::Relaxed))
    }

    fn next_path(&mut self) -> Option<PathBuf> {
        let Some(folder) = &self.folder else { return self.file.take() };
        while !self.is_over.load(Ordering::Relaxed) {
            if let Some((path, is_anew)) = folder.next() {
                if is_anew {
                    say(&format!(
                        "{}: it was written anew before it was read; what it had is lost",
                        path.display()
                    ));
                    self.refused += 1;
                }
                return Some(path);
            }
            std::thread::sleep(POLL);
        }
        let left = std::iter::from_fn(|| folder.next()).count();
        if left > 0 {
            say(&format!("files of the directory that were not read: {left}"));
        }
        None
    }

    fn open(&self, path: &Path) -> Result<(CaptureFile, Reader<Input>), String> {
        self.position.store(0, Ordering::Relaxed);
        let growing = Growing::open(path, self)?;
        capture(path, Box::new(growing), None, self.read_size).map_err(|refused| refused.said)
    }
}
