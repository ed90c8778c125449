//! Which of the files that were extracted are kept: as many as the bounds allow, in the order in which
//! they ended.
//!
//! No worker could tell alone. A file is kept as a whole or not at all, and once one was not, none that
//! ended later is, so that the same files are kept for any number of workers.

use std::sync::Arc;

use super::{Content, Fact, Join, JoinStatistics, Joined, Told};
use crate::file::{FileReport, Stored};
use crate::limits::Limits;
use crate::log::files::Files;
use crate::protocol::Connection;
use crate::record::SortKey;

/// What became of the files that were to be extracted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtractionStatistics {
    /// Files that were kept.
    pub files: u64,
    /// Their bytes, holes among them.
    pub bytes: u64,
    /// Those of them that were longer than a file may be.
    pub cut: u64,
    /// Files that were not kept since a bound was reached.
    pub refused: u64,
    /// Files that were not kept since they came faster than they could be written.
    pub overrun: u64,
    /// Files that could not be written.
    pub failed: u64,
}

/// Keeps files until a bound is reached.
#[derive(Debug)]
pub struct Extraction {
    max_files: u64,
    max_bytes: u64,
    is_full: bool,
    statistics: ExtractionStatistics,
}

/// A row of the `files` log, of a file that was to be extracted.
#[derive(Debug)]
pub struct FileJoined {
    connection: Connection,
    report: Arc<FileReport>,
    is_kept: bool,
}

impl Extraction {
    /// Nothing was kept yet.
    #[must_use]
    pub fn join(limits: &Limits) -> Box<dyn Join> {
        Box::new(Self {
            max_files: limits.extracted_files,
            max_bytes: limits.extracted_bytes,
            is_full: false,
            statistics: ExtractionStatistics::default(),
        })
    }

    /// Whether a file is kept.
    fn keeps(&mut self, report: &FileReport) -> bool {
        let Some(extracted) = report.extracted() else { return false };
        let statistics = &mut self.statistics;
        let bytes = statistics.bytes.saturating_add(extracted.size());
        self.is_full |= statistics.files >= self.max_files || bytes > self.max_bytes;
        if self.is_full {
            statistics.refused += 1;
            extracted.refuse();
            return false;
        }
        let not_kept = match extracted.keep() {
            Stored::Whole => {
                statistics.files += 1;
                statistics.bytes = bytes;
                statistics.cut += u64::from(extracted.is_cut());
                return true;
            }
            Stored::Refused => &mut statistics.refused,
            Stored::Overrun => &mut statistics.overrun,
            Stored::Failed => &mut statistics.failed,
        };
        *not_kept += 1;
        false
    }
}

impl Join for Extraction {
    fn fact(&mut self, key: &SortKey, fact: Fact, told: &mut Told) -> Option<Fact> {
        let Fact { connection, content } = fact;
        let report = match content {
            Content::File(report) => report,
            content => return Some(Fact { connection, content }),
        };
        let is_kept = self.keeps(&report);
        told.push((*key, Joined::File(Box::new(FileJoined { connection, report, is_kept }))));
        None
    }

    fn count(&self, statistics: &mut JoinStatistics) {
        statistics.extraction = self.statistics;
    }
}

impl FileJoined {
    /// Hands the row of the log to `take`.
    pub fn report<T>(&self, take: impl FnOnce(&Files<'_>) -> T) -> T {
        let extracted = self.report.extracted().filter(|_| self.is_kept);
        self.report.report_extracted(&self.connection, extracted, take)
    }
}
