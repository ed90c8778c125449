//! Files that are offered: rows of the log that wait for what comes of them.

use std::sync::Arc;

use super::log::Irc;
use crate::protocol::ExpectedTransfer;

/// A file that was offered.
#[derive(Debug)]
pub(super) struct Offered {
    /// Its row, which lacks what comes of it.
    pub(super) row: Irc,
    /// Its name, and what came of it.
    pub(super) errand: Arc<ExpectedTransfer>,
}

impl Offered {
    /// Whether the file has come so far that its kind is known.
    pub(super) fn is_complete(&self) -> bool {
        self.errand.mime_type.get().is_some()
    }

    /// Whether the file has begun to come.
    pub(super) fn has_come(&self) -> bool {
        self.errand.fuid.get().is_some()
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.row.heap_bytes()
            + self.errand.filename.as_ref().map_or(0, |name| name.len())
            + size_of::<ExpectedTransfer>()
    }

    /// The row, with what came of the file.
    pub(super) fn into_row(self) -> Irc {
        let Self { row, errand } = self;
        Irc {
            dcc_file_name: errand.filename.clone(),
            dcc_mime_type: errand.mime_type.get().or_else(|| errand.head.kind()),
            fuid: errand.fuid.get().copied(),
            ..row
        }
    }
}
