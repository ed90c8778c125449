//! The file of a log that is being written: its rows, what encodes them, and what tells it from other files.

use std::fs;
use std::io;
use std::path::PathBuf;

use netsniff_console::number;
use netsniff_packet::Timestamp;

use super::descriptors::Identity;
use super::format::LogEncoder;
use super::row_file::{RowFile, WriteOut};

/// Bytes of rows that an encoder may keep before they are written.
pub(super) const MOST_KEPT: usize = 8 << 20;

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
    /// Bytes of memory that they take.
    pub(super) kept_bytes: usize,
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
    /// A file that has not begun.
    pub(super) fn new(
        path: PathBuf,
        rows: RowFile,
        encoder: Box<dyn LogEncoder>,
        identity: Option<Identity>,
    ) -> Self {
        Self {
            path,
            rows,
            encoder,
            written: 0,
            kept: 0,
            unsettled: 0,
            kept_bytes: 0,
            opened: Timestamp::EPOCH,
            header: 0,
            identity,
            is_staying: false,
        }
    }

    /// Writes what stands before the first row, which belongs at `time`.
    pub(super) fn begin(&mut self, time: Timestamp) -> io::Result<()> {
        let mut header = Vec::new();
        self.encoder.header(time, &mut header);
        self.rows.write_frame(&header)?;
        self.opened = time;
        self.header = self.rows.size();
        self.unsettled = self.encoder.unsettled();
        self.kept_bytes = self.encoder.kept_bytes();
        Ok(())
    }

    #[inline]
    pub(super) fn push(&mut self, row: &[u8]) {
        let Self { rows, encoder, kept, unsettled, kept_bytes, .. } = self;
        *kept += 1;
        if rows.push(*kept, |out| encoder.row(row, out)) {
            *kept = 0;
        } else {
            *unsettled = encoder.unsettled();
            *kept_bytes = encoder.kept_bytes();
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
        self.rows.has_room() && self.kept_bytes < MOST_KEPT
    }

    /// Writes the rows that wait and those that are kept; afterwards there are none.
    pub(super) fn write_out(&mut self) -> WriteOut {
        let Self { rows, encoder, kept, .. } = self;
        let mut settled = Ok(());
        let all = core::mem::take(kept);
        if all > 0 && !rows.push(all, |out| settled = encoder.settle(out)) && settled.is_ok() {
            *kept = all;
        }
        let mut out = self.write_settled();
        if settled.is_err() {
            out.refused += all;
            out.result = out.result.and(settled);
        }
        out
    }

    /// Writes the rows that wait, without those that are kept.
    pub(super) fn write_settled(&mut self) -> WriteOut {
        let Self { rows, encoder, written, unsettled, kept_bytes, .. } = self;
        let out = rows.write_out();
        *written += out.written;
        if out.refused > 0 {
            encoder.refused(out.refused);
        }
        *unsettled = encoder.unsettled();
        *kept_bytes = encoder.kept_bytes();
        out
    }

    /// Its name, rows and bytes, for people.
    pub(super) fn summary(&self) -> String {
        let (rows, bytes) = (number::rows(self.written), number::bytes(self.rows.size()));
        format!("{}: {rows}, {bytes}", self.path.display())
    }

    /// Writes what it ends with, which has so many bytes.
    pub(super) fn end(&mut self, closed: Timestamp) -> (io::Result<()>, usize) {
        let mut footer = Vec::new();
        let encoded = self.encoder.footer(closed, &mut footer);
        (encoded.and_then(|()| self.rows.write_frame(&footer)), footer.len())
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
