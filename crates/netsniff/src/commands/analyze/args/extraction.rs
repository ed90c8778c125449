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
    #[arg(long = "extract-files", visible_alias = "extract", value_name = "DIR")]
    extract: Vec<PathBuf>,
    /// Bytes that are written of each file at most, as 500k or 1G; 0 for no limit. 100M unless told
    #[arg(long, value_name = "SIZE", requires = "extract", value_parser = size)]
    extract_limit: Option<usize>,
    /// Bytes of all files together. The first that is too much, and all that end later, are not kept,
    /// which is counted. 10G unless told
    #[arg(long, value_name = "SIZE", requires = "extract", value_parser = some)]
    extract_total: Option<usize>,
    /// How many files, likewise; 100000 unless told
    #[arg(long, value_name = "N", requires = "extract", value_parser = at_least_one)]
    extract_count: Option<usize>,
}

/// A size that leaves room for a file.
fn some(text: &str) -> Result<usize, String> {
    let told = size(text)?;
    let none = "with 0 bytes no file is kept: leave --extract-files out, or name a size, as 1T";
    if told == 0 { Err(none.to_owned()) } else { Ok(told) }
}

/// What the option names: a directory, and in its old meaning a number beside one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named<'a> {
    directory: Option<&'a Path>,
    count: Option<usize>,
}

impl ExtractionArgs {
    /// Whether files are to be extracted.
    pub(super) const fn is_wanted(&self) -> bool {
        !self.extract.is_empty()
    }

    /// Tells directories from numbers: the option was once that of their number, and `--extract` that of the directory.
    fn named(&self) -> Result<Named<'_>, UsageError> {
        let number = |path: &PathBuf| path.to_str().and_then(|text| text.parse::<usize>().ok());
        let mut named = Named { directory: None, count: None };
        for path in &self.extract {
            let is_second = match number(path) {
                Some(count) => named.count.replace(count).is_some(),
                None => named.directory.replace(path).is_some(),
            };
            if is_second {
                let said = "--extract-files (or --extract) names one directory, and --extract-count how many files";
                return Err(UsageError(said.to_owned()));
            }
        }
        match (named.directory, named.count) {
            (None, Some(count)) => Err(UsageError(format!(
                "--extract-files names a directory: write ./{count} for that, and --extract-count {count} for a number"
            ))),
            (_, Some(_)) if self.extract_count.is_some() => {
                Err(UsageError("the number of files is told twice".to_owned()))
            }
            (_, Some(0)) => Err(UsageError("--extract-files: 1 is the least".to_owned())),
            _ => Ok(named),
        }
    }

    /// The directory, if files are to be extracted.
    pub(super) fn directory(&self, anonymizes: bool) -> Result<Option<&Path>, UsageError> {
        let Some(directory) = self.named()?.directory else { return Ok(None) };
        let unfit = if anonymizes {
            "--extract-files writes what files contain as it is, names and all, which -a cannot make \
             anonymous: leave one of them out"
        } else if is_stdin(directory) {
            "--extract-files needs a directory: several files cannot go to standard output"
        } else {
            return Ok(Some(directory));
        };
        Err(UsageError(unfit.to_owned()))
    }

    /// The bounds with those that were told.
    ///
    /// # Errors
    ///
    /// What is neither a directory nor a number beside one.
    pub(super) fn bound(&self, limits: Limits) -> Result<Limits, UsageError> {
        let files = self.extract_count.or(self.named()?.count);
        let count = |number: Option<usize>| number.map(|number| number as u64);
        let of_each = count(self.extract_limit).map(|size| if size == 0 { u64::MAX } else { size });
        Ok(Limits {
            extracted_file_bytes: of_each.unwrap_or(limits.extracted_file_bytes),
            extracted_bytes: count(self.extract_total).unwrap_or(limits.extracted_bytes),
            extracted_files: count(files).unwrap_or(limits.extracted_files),
            ..limits
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Command {
        #[command(flatten)]
        extraction: ExtractionArgs,
    }

    fn named(words: &str) -> Result<(Option<PathBuf>, u64), String> {
        let words = ["analyze"].into_iter().chain(words.split_whitespace());
        let command = <Command as clap::Parser>::try_parse_from(words);
        let extraction = command.map_err(|error| error.to_string())?.extraction;
        let directory = extraction.directory(false).map_err(|error| error.to_string())?;
        let limits = extraction.bound(Limits::default()).map_err(|error| error.to_string())?;
        Ok((directory.map(Path::to_owned), limits.extracted_files))
    }

    #[test]
    fn the_old_spelling_means_what_it_meant_and_nothing_is_guessed() {
        let usual = Limits::default().extracted_files;
        let directory = |name: &str, count| Ok((Some(PathBuf::from(name)), count));
        assert_eq!(named(""), Ok((None, usual)));
        assert_eq!(named("--extract-files out"), directory("out", usual));
        assert_eq!(named("--extract out"), directory("out", usual));
        assert_eq!(named("--extract-files out --extract-count 5"), directory("out", 5));
        assert_eq!(named("--extract out --extract-files 5"), directory("out", 5));
        assert_eq!(named("--extract-files 5 --extract ./7"), directory("./7", 5));
        for (words, said) in [
            ("--extract-files 5", "write ./5"),
            ("--extract-files a --extract b", "one directory"),
            ("--extract a --extract-files 5 --extract-count 6", "told twice"),
            ("--extract a --extract-files 0", "1 is the least"),
            ("--extract-count 5", "--extract-files"),
            ("--extract a --extract-total 0", "with 0 bytes no file is kept"),
            ("--extract a --extract-total 0k", "with 0 bytes no file is kept"),
        ] {
            let error = named(words).unwrap_err();
            assert!(error.contains(said), "{words}: {error}");
        }
    }
}
