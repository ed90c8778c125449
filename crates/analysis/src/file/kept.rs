//! Which of the files that were extracted are kept: as many as the bounds allow, in the order in which
//! they ended.
//!
//! No worker could tell alone. A file is kept as a whole or not at all, and once one was not, none that
//! ended later is, so that the same files are kept for any number of workers.

use core::any::TypeId;

use super::extraction::{Extracted, Stored};
use crate::correlator::{ExtractionStatistics, Join, JoinOutput};
use crate::limits::Limits;
use crate::record::{Connection, Fact, SortKey};

crate::columns! {
    /// Where the content of a file is kept.
    #[derive(Default)]
    pub(super) struct Kept {
        /// Name of the file that its content was written to, where that was wanted.
        extracted: Option<Box<str>> => "extracted", string, None, Plain, Zeek;
        /// Whether the content was longer than what may be written of a file.
        extracted_cutoff: Option<bool> => "extracted_cutoff", bool, None, Plain, Zeek;
        /// Size of that file: bytes that came, and zeros for those that are missing.
        extracted_size: Option<u64> => "extracted_size", count, Bytes, Plain, Zeek;
    }
}

impl Fact for Extracted {
    fn heap_bytes(&self) -> usize {
        Self::heap_bytes(self)
    }

    /// Files are kept or not.
    fn has_effects(&self) -> bool {
        true
    }
}

/// Keeps files until a bound is reached.
#[derive(Debug)]
pub(super) struct Extraction {
    max_files: u64,
    max_bytes: u64,
    is_full: bool,
    statistics: ExtractionStatistics,
}

impl Extraction {
    /// Nothing was kept yet.
    pub(super) fn join(limits: &Limits) -> Box<dyn Join> {
        Box::new(Self {
            max_files: limits.extracted_files,
            max_bytes: limits.extracted_bytes,
            is_full: false,
            statistics: ExtractionStatistics::default(),
        })
    }

    /// Whether a file is kept.
    fn keeps(&mut self, extracted: &Extracted) -> bool {
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
    fn takes(&self) -> &'static [TypeId] {
        const { &[TypeId::of::<Extracted>()] }
    }

    fn fact(&mut self, _: &SortKey, _: &Connection, fact: &dyn Fact, out: &mut JoinOutput) {
        let Some(extracted) = fact.downcast_ref::<Extracted>() else { return };
        out.columns(if self.keeps(extracted) {
            Kept {
                extracted: Some(extracted.name().into()),
                extracted_cutoff: Some(extracted.is_cut()),
                extracted_size: Some(extracted.size()),
            }
        } else {
            Kept::default()
        });
    }

    fn extraction(&self) -> Option<ExtractionStatistics> {
        Some(self.statistics)
    }
}
