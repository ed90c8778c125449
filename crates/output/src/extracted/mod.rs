//! The content of files that were taken out of the traffic, as files in a directory.
//!
//! Workers write to the disk what comes, each its own files, so that nothing waits in memory but the
//! last bytes of each. Whether a file stays is told later, when the logs of all workers are merged.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::Context as _;
use netsniff_analysis::Uid;
use netsniff_analysis::file::{Extract, Extraction, Stored};

use super::descriptors::{Descriptors, Identity};

/// Bytes of a file that are gathered before they are written: most bodies fit, and then make one
/// system call each.
pub(super) const BUFFER: usize = 16 << 10;

/// Bytes that files may have on the disk before it is told whether they stay; or as many as may stay,
/// if that is more. A capture of one megabyte can hold a thousand transfers at once, each of which
/// unpacks to a hundred.
const UNDECIDED_BYTES: u64 = 1 << 30;

/// Files that may wait for that.
const UNDECIDED_FILES: u64 = 100_000;

/// A directory that takes the content of files.
#[derive(Clone, Debug)]
pub struct ExtractedFiles(Arc<Directory>);

#[derive(Debug)]
struct Directory {
    path: PathBuf,
    descriptors: Descriptors,
    /// What was begun and not yet kept or removed.
    undecided_files: AtomicU64,
    undecided_bytes: AtomicU64,
    max_undecided_bytes: u64,
    /// Nothing that is still being written will be kept.
    is_full: AtomicBool,
    /// Whether a file could not be written, of which the first is told.
    has_failed: AtomicBool,
    tell: fn(&str),
    next: AtomicU64,
}

impl ExtractedFiles {
    /// A directory, which is made if it is missing. Files that an earlier run extracted there are
    /// removed: those whose names are such names, and that are regular files. `max_bytes` may stay in
    /// it, and the first error is handed to `tell`.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made or read, or a file in it cannot be removed.
    pub fn create(path: &Path, max_bytes: u64, tell: fn(&str)) -> anyhow::Result<Self> {
        fs::create_dir_all(path)
            .with_context(|| format!("cannot make the directory {}", path.display()))?;
        let read = || format!("cannot read the directory {}", path.display());
        for entry in fs::read_dir(path).with_context(read)? {
            let entry = entry.with_context(read)?;
            let is_file = entry.file_type().with_context(read)?.is_file();
            if is_file && entry.file_name().to_str().is_some_and(is_extracted) {
                let path = entry.path();
                fs::remove_file(&path)
                    .with_context(|| format!("cannot replace the old file {}", path.display()))?;
            }
        }
        Ok(Self(Arc::new(Directory {
            path: path.to_owned(),
            descriptors: Descriptors::default(),
            undecided_files: AtomicU64::new(0),
            undecided_bytes: AtomicU64::new(0),
            max_undecided_bytes: max_bytes.max(UNDECIDED_BYTES),
            is_full: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            tell,
            next: AtomicU64::new(0),
        })))
    }

    /// Whether a file could not be written.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.0.has_failed.load(Ordering::Relaxed)
    }
}

impl ExtractedFiles {
    /// Begins a file, unless no more are taken.
    pub(super) fn file(&self, name: &str) -> Option<Output> {
        let directory = &self.0;
        if directory.is_full.load(Ordering::Relaxed) {
            return None;
        }
        if directory.undecided_files.fetch_add(1, Ordering::Relaxed) >= UNDECIDED_FILES {
            directory.undecided_files.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Output {
            path: directory.path.join(name),
            id: directory.next.fetch_add(1, Ordering::Relaxed),
            directory: Arc::clone(directory),
            waiting: Vec::new(),
            at: 0,
            identity: None,
            written: 0,
            undecided: 0,
            stored: Stored::Whole,
            is_kept: AtomicBool::new(false),
        })
    }

    /// Nothing that is still being written will be kept.
    pub(super) fn close(&self) {
        self.0.is_full.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
impl ExtractedFiles {
    /// Files and bytes that were begun and neither kept nor removed.
    pub(super) fn undecided(&self) -> (u64, u64) {
        let Directory { undecided_files, undecided_bytes, .. } = &*self.0;
        (undecided_files.load(Ordering::Relaxed), undecided_bytes.load(Ordering::Relaxed))
    }
}

impl Extract for ExtractedFiles {
    fn begin(&self, name: &str) -> Option<Box<dyn Extraction>> {
        Some(Box::new(self.file(name)?))
    }
}

/// A file that is being written.
#[derive(Debug)]
pub(super) struct Output {
    directory: Arc<Directory>,
    id: u64,
    path: PathBuf,
    /// Bytes that are not written yet, and where they belong.
    waiting: Vec<u8>,
    at: u64,
    /// What it is on the disk, once it was made.
    identity: Option<Identity>,
    /// How far it was written.
    written: u64,
    /// Its bytes among those that are undecided.
    undecided: u64,
    stored: Stored,
    is_kept: AtomicBool,
}

impl Extraction for Output {
    fn write(&mut self, offset: u64, data: &[u8]) {
        if self.stored != Stored::Whole {
            return;
        }
        let len = data.len() as u64;
        let undecided = self.directory.undecided_bytes.fetch_add(len, Ordering::Relaxed);
        self.undecided += len;
        let is_too_much = undecided.saturating_add(len) > self.directory.max_undecided_bytes;
        if is_too_much || self.directory.is_full.load(Ordering::Relaxed) {
            self.give_up(Stored::Refused);
            return;
        }
        if self.at.checked_add(self.waiting.len() as u64) != Some(offset) {
            self.flush();
            self.at = offset;
        }
        if self.waiting.is_empty() && data.len() >= BUFFER {
            self.put(data);
            return;
        }
        self.waiting.extend_from_slice(data);
        if self.waiting.len() >= BUFFER {
            self.flush();
        }
    }

    fn end(&mut self, size: u64) {
        self.flush();
        if self.stored == Stored::Whole && (size > self.written || self.identity.is_none()) {
            // It ends with a hole.
            let result = self.with_file(|file, _| file.set_len(size));
            self.check(result);
        }
        self.waiting = Vec::new();
        self.directory.descriptors.close(self.id);
    }

    fn keep(&self) -> Stored {
        if self.stored == Stored::Whole && !self.is_kept.swap(true, Ordering::Relaxed) {
            self.directory.decided(self.undecided);
        }
        self.stored
    }

    fn refuse(&self) {
        self.directory.is_full.store(true, Ordering::Relaxed);
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.waiting.capacity() + self.path.capacity()
    }
}

impl Output {
    /// What became of it so far.
    pub(super) const fn stored(&self) -> Stored {
        self.stored
    }

    /// Writes the bytes that wait.
    fn flush(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let mut waiting = core::mem::take(&mut self.waiting);
        self.put(&waiting);
        waiting.clear();
        self.waiting = waiting;
    }

    /// Writes bytes where the file has come to.
    fn put(&mut self, data: &[u8]) {
        if self.stored != Stored::Whole {
            return;
        }
        let result = self.with_file(|file, at| {
            file.seek(SeekFrom::Start(at))?;
            file.write_all(data)
        });
        self.at = self.at.saturating_add(data.len() as u64);
        self.written = self.at;
        self.check(result);
    }

    /// Works on the file, with how far it has come.
    fn with_file(&mut self, work: impl FnOnce(&mut File, u64) -> io::Result<()>) -> io::Result<()> {
        let Self { directory, id, path, at, identity, .. } = self;
        let open = || match identity {
            Some(identity) => identity.open(path),
            None => {
                // Whatever is there by this name, a link above all, is not written to.
                let file = OpenOptions::new().write(true).create_new(true).open(path)?;
                *identity = Some(Identity::of(&file.metadata()?));
                Ok(file)
            }
        };
        directory.descriptors.with(*id, open, |file| work(file, *at))
    }

    fn check(&mut self, result: io::Result<()>) {
        let Err(error) = result else { return };
        if !self.directory.has_failed.swap(true, Ordering::Relaxed) {
            (self.directory.tell)(&format!("cannot write {}: {error}", self.path.display()));
        }
        self.give_up(Stored::Failed);
    }

    /// Removes what was written.
    fn give_up(&mut self, why: Stored) {
        self.stored = why;
        self.waiting = Vec::new();
        self.directory.descriptors.close(self.id);
        if self.identity.take().is_some() {
            // If it cannot be removed, there is nothing better to do.
            let _ = fs::remove_file(&self.path);
        }
        let undecided = core::mem::take(&mut self.undecided);
        self.directory.undecided_bytes.fetch_sub(undecided, Ordering::Relaxed);
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.is_kept.load(Ordering::Relaxed) {
            self.give_up(Stored::Refused);
            self.directory.decided(0);
        }
    }
}

impl Directory {
    /// One file less is undecided, which had so many bytes.
    fn decided(&self, bytes: u64) {
        self.undecided_files.fetch_sub(1, Ordering::Relaxed);
        self.undecided_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Whether it is a name under which content is extracted, `extract-TIME-PROTOCOL-FUID`.
fn is_extracted(name: &str) -> bool {
    let is_time = |text: &str| {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        text.split_once('.').is_some_and(|(seconds, micros)| {
            digits(seconds.strip_prefix('-').unwrap_or(seconds))
                && digits(micros)
                && micros.len() == 6
        })
    };
    let is_word = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let is_fuid = |text: &str| text.len() == Uid::LEN && text.starts_with('F') && is_word(text);
    let parts = name.strip_prefix("extract-").and_then(|rest| rest.rsplit_once('-'));
    let parts = parts.and_then(|(rest, fuid)| Some((rest.rsplit_once('-')?, fuid)));
    parts.is_some_and(|((time, source), fuid)| is_time(time) && is_word(source) && is_fuid(fuid))
}

#[cfg(test)]
mod tests;
