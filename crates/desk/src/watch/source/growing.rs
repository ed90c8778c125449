//! A log file that may grow while it is read, packed by gzip or not.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use flate2::write::MultiGzDecoder;

use super::tsv::Columns;
use crate::logs::open_log;

/// Bytes that are read at once.
const PIECE: usize = 16 << 10;
/// Bytes of a row; a longer one is none.
const LONGEST: usize = 4 << 20;
/// Bytes at the begin by which a file is known to be the same still.
const HEAD: usize = 256;
/// What files begin with that gzip packed (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// What a file is, whatever its name.
pub(crate) type Identity = (u64, u64);

/// A log file that is read.
#[derive(Debug)]
pub(crate) struct GrowingFile {
    file: File,
    identity: Identity,
    columns: Columns,
    /// The first bytes that were read.
    head: Vec<u8>,
    /// How many bytes were read.
    offset: u64,
    unpacker: Option<MultiGzDecoder<Vec<u8>>>,
    /// Whether it could not be read to its end.
    has_failed: bool,
    lines: Lines,
}

/// Bytes to lines.
#[derive(Debug, Default)]
struct Lines {
    /// What was read of a line that is not whole.
    begun: Vec<u8>,
    is_too_long: bool,
}

/// What the file with a name is.
pub(crate) fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|data| (data.dev(), data.ino()))
}

impl GrowingFile {
    /// Opens a file of the log with this name.
    ///
    /// # Errors
    ///
    /// When it cannot be opened, or is no regular file.
    pub(crate) fn open(path: &Path, log: &str) -> io::Result<Self> {
        let file = open_log(path)?;
        let data = file.metadata()?;
        let columns = Columns::of(log).ok_or_else(|| io::Error::other("it is no log"))?;
        Ok(Self {
            file,
            identity: (data.dev(), data.ino()),
            columns,
            head: Vec::new(),
            offset: 0,
            unpacker: None,
            has_failed: false,
            lines: Lines::default(),
        })
    }

    pub(crate) const fn identity(&self) -> Identity {
        self.identity
    }

    /// Whether it has its last line.
    pub(crate) const fn is_closed(&self) -> bool {
        self.columns.is_closed
    }

    /// Whether what was read of it is not there any more: somebody has written it from its begin.
    pub(crate) fn is_anew(&self) -> bool {
        if self.file.metadata().is_ok_and(|data| data.len() < self.offset) {
            return true;
        }
        let mut head = vec![0; self.head.len()];
        self.file.read_exact_at(&mut head, 0).is_ok() && head != self.head
    }

    /// Reads the next piece, and adds its rows. Returns whether there was any.
    ///
    /// # Errors
    ///
    /// When nothing more can be read. That is said once.
    pub(crate) fn read(&mut self, rows: &mut Vec<String>) -> io::Result<bool> {
        if self.has_failed {
            return Ok(false);
        }
        let read = self.read_piece(rows);
        self.has_failed = read.is_err();
        read
    }

    fn read_piece(&mut self, rows: &mut Vec<String>) -> io::Result<bool> {
        let mut piece = vec![0; PIECE];
        let read = self.file.read(&mut piece)?;
        let mut piece = piece.get(..read).unwrap_or_default();
        if self.offset == 0 {
            self.head = piece.iter().take(HEAD).copied().collect();
            self.unpacker = piece.starts_with(&GZIP).then(|| MultiGzDecoder::new(Vec::new()));
        }
        self.offset += read as u64;
        let Some(unpacker) = &mut self.unpacker else {
            self.lines.take(piece, |line| rows.extend(self.columns.row(line)));
            return Ok(read > 0);
        };
        // Each call unpacks a bounded number of bytes.
        while !piece.is_empty() {
            let taken = unpacker.write(piece)?;
            piece = piece.get(taken..).unwrap_or_default();
            let unpacked = std::mem::take(unpacker.get_mut());
            self.lines.take(&unpacked, |line| rows.extend(self.columns.row(line)));
        }
        if read > 0 {
            unpacker.flush()?;
            let unpacked = std::mem::take(unpacker.get_mut());
            self.lines.take(&unpacked, |line| rows.extend(self.columns.row(line)));
        }
        Ok(read > 0)
    }

    /// Ends the reading. Returns whether it ended within a row, or within what gzip packed.
    pub(crate) fn ends_cut(mut self) -> bool {
        if self.has_failed {
            return false;
        }
        let is_cut = self.unpacker.as_mut().is_some_and(|it| it.try_finish().is_err());
        is_cut || !self.lines.begun.is_empty()
    }
}

impl Lines {
    /// Takes bytes, and hands over the lines that they end.
    fn take(&mut self, bytes: &[u8], mut line: impl FnMut(&str)) {
        let mut parts = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            if self.begun.len() + part.len() > LONGEST {
                self.begun = Vec::new();
                self.is_too_long = true;
            } else if !self.is_too_long {
                self.begun.extend_from_slice(part);
            }
            if parts.peek().is_none() {
                return;
            }
            let whole = std::mem::take(&mut self.begun);
            if !std::mem::take(&mut self.is_too_long) {
                line(&String::from_utf8_lossy(&whole));
            }
        }
    }
}
