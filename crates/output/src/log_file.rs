//! The file of a log that is being written: its rows, what encodes them, and what tells it from other files.

use std::fs;
use std::path::PathBuf;

use netsniff_console::number;
use netsniff_packet::Timestamp;

use super::descriptors::Identity;
use super::format::LogEncoder;
use super::row_file::{RowFile, WriteOut};

/// Bytes of rows that an encoder may keep before they are written, with what the end of its file grows by.
pub(super) const MOST_UNSETTLED: usize = 8 << 20;

/// A file of a log, open.
#[derive(Debug)]
pub(super) struct LogFile {
    pub(super) path: PathBuf,
    pub(super) rows: RowFile,
    pub(super) encoder: Box<dyn LogEncoder>,
    /// Rows that are in it.
    pub(super) written: u64,
    /// Rows that the encoder keeps.
    pub(super) kept: u64,
    /// Bytes that they will take, and that its end grows by.
    pub(super) unsettled: usize,
    pub(super) opened: Timestamp,
    /// Bytes before the first row.
    pub(super) header: u64,
    /// What tells the file from another one by its name; `None` for pipes and devices, which are there
    /// on purpose, for a log to go through them.
    pub(super) identity: Option<Identity>,
    /// It could not be renamed, and goes on until the next flush.
    pub(super) is_staying: bool,
}

impl LogFile {
    #[inline]
    pub(super) fn push(&mut self, row: &[u8]) {
        let Self { rows, encoder, kept, unsettled, .. } = self;
        *kept += 1;
        if rows.push(*kept, |out| encoder.row(row, out)) {
            *kept = 0;
        } else {
            *unsettled = encoder.unsettled();
        }
    }

    /// Bytes that went through it, with those that wait and those that it will have besides.
    #[inline]
    pub(super) const fn size(&self) -> u64 {
        self.rows.size().saturating_add(self.unsettled as u64)
    }

    /// Whether a row may be added before [`Self::write_out`] is called.
    #[inline]
    pub(super) const fn has_room(&self) -> bool {
        self.rows.has_room() && self.unsettled < MOST_UNSETTLED
    }

    /// Writes the rows that wait and those that are kept; afterwards there are none.
    pub(super) fn write_out(&mut self) -> WriteOut {
        let Self { rows, encoder, written, kept, unsettled, .. } = self;
        if *kept > 0 && rows.push(*kept, |out| encoder.settle(out)) {
            *kept = 0;
        }
        let out = rows.write_out();
        *written += out.written;
        if out.refused > 0 {
            encoder.refused(out.refused);
        }
        *unsettled = encoder.unsettled();
        out
    }

    /// Its name, rows and bytes, for people.
    pub(super) fn summary(&self) -> String {
        let (rows, bytes) = (number::rows(self.written), number::bytes(self.rows.size()));
        format!("{}: {rows}, {bytes}", self.path.display())
    }

    /// What it ends with.
    pub(super) fn footer(&mut self, closed: Timestamp) -> Vec<u8> {
        let mut footer = Vec::new();
        self.encoder.footer(closed, &mut footer);
        footer
    }

    /// Whether it still has its name.
    pub(super) fn is_there(&self) -> bool {
        let metadata = fs::symlink_metadata(&self.path).ok();
        metadata.filter(fs::Metadata::is_file).map(|it| Identity::of(&it)) == self.identity
    }

    /// Whether it has no name any more, so that nobody will ever read it.
    pub(super) fn is_removed(&self) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            let metadata = self.rows.file().metadata();
            self.identity.is_some() && metadata.is_ok_and(|metadata| metadata.nlink() == 0)
        }
        #[cfg(not(unix))]
        false
    }
}
