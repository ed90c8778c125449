//! Arguments of the extraction of files.

use std::path::{Path, PathBuf};

use netsniff_analysis::Limits;
use netsniff_console::UsageError;
use netsniff_console::paths::is_stdin;
use netsniff_console::quantity::{at_least_one, size};

/// Where the content of files goes, and how much of it.
#[derive(Debug, Default, clap::Args)]
pub(super) struct ExtractionArgs {
    /// Write the content of files that protocols carry to this directory, one file each. What an
    /// earlier run extracted there is removed
    #[arg(long, value_name = "DIR")]
    extract: Option<PathBuf>,
    /// Bytes that are written of each file at most, as 500k or 1G; 0 for no limit. 100M unless told
    #[arg(long, value_name = "SIZE", requires = "extract", value_parser = size)]
    extract_limit: Option<usize>,
    /// Bytes of all files together. The first that is too much, and all that end later, are not kept,
    /// which is counted. 10G unless told
    #[arg(long, value_name = "SIZE", requires = "extract", value_parser = size)]
    extract_total: Option<usize>,
    /// How many files, likewise; 100000 unless told
    #[arg(long, value_name = "N", requires = "extract", value_parser = at_least_one)]
    extract_files: Option<usize>,
}

impl ExtractionArgs {
    /// Whether files are to be extracted.
    pub(super) const fn is_wanted(&self) -> bool {
        self.extract.is_some()
    }

    /// The directory, if files are to be extracted.
    pub(super) fn directory(&self, anonymizes: bool) -> Result<Option<&Path>, UsageError> {
        let Some(directory) = &self.extract else { return Ok(None) };
        let unfit = if anonymizes {
            "--extract writes what files contain as it is, names and all, which -a cannot make \
             anonymous: leave one of them out"
        } else if is_stdin(directory) {
            "--extract needs a directory: several files cannot go to standard output"
        } else {
            return Ok(Some(directory));
        };
        Err(UsageError(unfit.to_owned()))
    }

    /// The bounds with those that were told.
    pub(super) fn bound(&self, limits: Limits) -> Limits {
        let count = |number: Option<usize>| number.map(|number| number as u64);
        let of_each = count(self.extract_limit).map(|size| if size == 0 { u64::MAX } else { size });
        Limits {
            extracted_file_bytes: of_each.unwrap_or(limits.extracted_file_bytes),
            extracted_bytes: count(self.extract_total).unwrap_or(limits.extracted_bytes),
            extracted_files: count(self.extract_files).unwrap_or(limits.extracted_files),
            ..limits
        }
    }
}
