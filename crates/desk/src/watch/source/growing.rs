//! A log file that may grow while it is read, packed or not.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use netsniff_analysis::record::LogType;

use super::next_rows;
use crate::logs::{Reader, open_log};
use crate::watch::data::row::LogRow;

/// What a file is, whatever its name.
pub(crate) type Identity = (u64, u64);

/// A log file that is read.
pub(crate) struct GrowingFile {
    /// What is read, to be looked at.
    file: File,
    identity: Identity,
    log: &'static LogType,
    reader: Reader,
    /// Whether it was told why nothing more can be read.
    has_told_why: bool,
    /// Whether lines were told that are no rows.
    has_told_lines: bool,
    /// Whether values were told that cannot be understood.
    has_told_values: bool,
}

/// What the file with a name is.
pub(crate) fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|data| (data.dev(), data.ino()))
}

impl GrowingFile {
    /// Opens a file of a log.
    ///
    /// # Errors
    ///
    /// When it cannot be opened, or is no regular file.
    pub(crate) fn open(path: &Path, log: &'static LogType) -> io::Result<Self> {
        let file = open_log(path)?;
        let data = file.metadata()?;
        let identity = (data.dev(), data.ino());
        let reader = Reader::of(file.try_clone()?);
        Ok(Self {
            file,
            identity,
            log,
            reader,
            has_told_why: false,
            has_told_lines: false,
            has_told_values: false,
        })
    }

    pub(crate) const fn identity(&self) -> Identity {
        self.identity
    }

    /// Whether it has its last line.
    pub(crate) const fn is_closed(&self) -> bool {
        self.reader.is_closed()
    }

    /// Whether what was read of it is not there any more: somebody has written it from its begin.
    pub(crate) fn is_anew(&self) -> bool {
        if self.file.metadata().is_ok_and(|data| data.len() < self.reader.bytes_read()) {
            return true;
        }
        let mut head = vec![0; self.reader.head().len()];
        self.file.read_exact_at(&mut head, 0).is_ok() && head != self.reader.head()
    }

    /// Adds the rows that come next. Returns whether there may be more by now.
    pub(crate) fn read(&mut self, rows: &mut Vec<LogRow>) -> bool {
        next_rows(&mut self.reader, Some(self.log), rows)
    }

    /// What of it could not be read, each once.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        let mut complaints = Vec::new();
        let faults = self.reader.faults();
        if let Some(error) = faults.stopped
            && !std::mem::replace(&mut self.has_told_why, true)
        {
            complaints.push(error);
        }
        if self.reader.bad_lines() > 0 && !std::mem::replace(&mut self.has_told_lines, true) {
            complaints.push("it has lines that are no rows".to_owned());
        }
        if faults.values > 0 && !std::mem::replace(&mut self.has_told_values, true) {
            complaints.push("it has values that cannot be understood".to_owned());
        }
        complaints
    }

    /// Ends the reading. Returns whether it ended within a row, or within what is packed.
    pub(crate) fn ends_cut(self) -> bool {
        self.reader.ends_cut()
    }
}
