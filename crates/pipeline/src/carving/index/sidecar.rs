//! The index of a capture file on its way: under another name until it is whole.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use netsniff_console::unfinished::Unfinished;
use netsniff_console::unlinked;

use super::blocks::{Block, blocks_of};
use super::format::{Header, Together, Writer};
use super::{Identity, index_name, open_regular};

/// Bytes gathered before a system call writes them.
const WRITE_SIZE: usize = 256 << 10;

/// A capture file, and where its index is written. What is not finished is removed.
#[derive(Debug)]
pub struct Sidecar {
    capture: PathBuf,
    identity: Identity,
    blocks: Vec<Block>,
    packets: u64,
    written: Unfinished,
}

/// A file that is open only while something is written to it: there may be as many as captures, and a process may have
/// only so many open.
#[derive(Debug)]
pub struct Appended {
    path: PathBuf,
    /// What waits to be written.
    bytes: Vec<u8>,
}

impl Appended {
    /// Makes the file, which is for its owner alone, in the place of what has its name.
    ///
    /// # Errors
    ///
    /// Where it cannot be made.
    fn new(path: &Path) -> io::Result<Self> {
        unlinked::replace_private(path)?;
        Ok(Self { path: path.to_owned(), bytes: Vec::new() })
    }
}

impl Write for Appended {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend(bytes);
        if self.bytes.len() >= WRITE_SIZE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // So is its memory only there for as long.
        let bytes = core::mem::take(&mut self.bytes);
        if bytes.is_empty() {
            return Ok(());
        }
        unlinked::open(OpenOptions::new().append(true), &self.path, false)?.write_all(&bytes)
    }
}

/// An index that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its name.
    pub name: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// The bytes of its capture.
    pub capture_bytes: u64,
}

impl Sidecar {
    /// For a capture as it is now.
    ///
    /// # Errors
    ///
    /// Why it cannot be indexed, in a sentence that begins with its name.
    pub fn of(capture: &Path) -> Result<Self, String> {
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", capture.display());
        let identity = Identity::of(capture).map_err(|error| told(&error))?;
        let (file, _) = open_regular(capture).map_err(|error| told(&error))?;
        let (blocks, packets) = blocks_of(file).map_err(|error| told(&error))?;
        let mut written = index_name(capture).into_os_string();
        written.push(format!(".{}", std::process::id()));
        let capture = capture.to_owned();
        Ok(Self { capture, identity, blocks, packets, written: Unfinished::new(written.into()) })
    }

    /// The capture.
    #[must_use]
    pub fn capture(&self) -> &Path {
        &self.capture
    }

    /// What the capture is known by.
    #[must_use]
    pub const fn identity(&self) -> Identity {
        self.identity
    }

    /// The packets of the capture.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Begins the index.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    pub fn begin(&self, together: Together, choices: u64) -> anyhow::Result<Writer<Appended>> {
        let header = Header { capture: self.identity, together, choices };
        let begun = Appended::new(self.written.path()).and_then(|output| {
            let mut writer = Writer::new(output, &header, &self.blocks)?;
            writer.flush()?;
            Ok(writer)
        });
        begun.with_context(|| format!("cannot write {}", self.written.path().display()))
    }

    /// Gives the index its name, unless its capture was removed meanwhile.
    ///
    /// # Errors
    ///
    /// Where the capture is not what it was, and where there is a link of that name.
    pub fn finish(self) -> anyhow::Result<Option<Written>> {
        let name = index_name(&self.capture);
        if is_removed(&self.capture) {
            return Ok(None);
        }
        let is_same = Identity::of(&self.capture).is_ok_and(|now| now == self.identity);
        anyhow::ensure!(is_same, "{} changed meanwhile: index it again", self.capture.display());
        let Self { capture, identity, written, .. } = self;
        let renamed = || -> io::Result<u64> {
            unlinked::refuse(&name)?;
            written.finish(&name)?;
            Ok(name.metadata()?.len())
        };
        let bytes = renamed().with_context(|| format!("cannot write {}", name.display()))?;
        if is_removed(&capture) {
            // Whoever removed the capture did not see the index.
            let _ = fs::remove_file(&name);
            return Ok(None);
        }
        Ok(Some(Written { name, bytes, capture_bytes: identity.size }))
    }
}

fn is_removed(capture: &Path) -> bool {
    matches!(capture.try_exists(), Ok(false))
}
