//! All rows of a directory, once each.

use std::fs;

use netsniff_console::terminal::progress::ProgressLine;

use crate::logs::{Faults, Folder, LogFile, Reader, Row};

/// Rows between two looks at the clock.
const ROWS_BETWEEN_LOOKS: u64 = 256;

/// How files could be read.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    /// Each file that was read, in the order in which it was.
    pub files: Vec<FileRead>,
}

/// How a file could be read.
#[derive(Clone, Debug)]
pub(super) struct FileRead {
    /// Its log.
    pub log: &'static str,
    /// Its name.
    pub name: String,
    /// Rows that it has.
    pub rows: u64,
    /// What could not be read.
    pub faults: Faults,
}

impl Reading {
    /// Reads the logs that are wanted, and hands each row over.
    pub(super) fn of(
        folder: &Folder,
        wants: impl Fn(&str) -> bool,
        mut take: impl FnMut(&str, &Row<'_>),
    ) -> Self {
        let mut reading = Self::default();
        let logs: Vec<_> = folder.logs().filter(|(log, _)| wants(log)).collect();
        let mut progress = Progress::new(logs.iter().flat_map(|(_, files)| *files));
        for (log, files) in logs {
            for file in files {
                let (rows, faults) = progress.read(file, |row| take(log, row));
                reading.files.push(FileRead { log, name: file.name.clone(), rows, faults });
            }
        }
        reading
    }

    /// Whether everything could be read.
    #[must_use]
    pub(super) fn is_whole(&self) -> bool {
        let is_whole =
            |faults: &Faults| faults.lines == 0 && faults.values == 0 && faults.stopped.is_none();
        self.files.iter().all(|file| is_whole(&file.faults))
    }

    /// Rows of a log.
    #[must_use]
    pub(super) fn rows(&self, log: &str) -> u64 {
        self.files.iter().filter(|file| file.log == log).map(|file| file.rows).sum()
    }
}

/// How far the reading is.
struct Progress {
    line: ProgressLine,
    /// Bytes of the files that were read.
    bytes: u64,
    /// Their rows.
    rows: u64,
}

impl Progress {
    fn new<'f>(files: impl Iterator<Item = &'f LogFile>) -> Self {
        let sizes = files.map(|file| Some(fs::metadata(&file.path).ok()?.len()));
        Self { line: ProgressLine::of(sizes.sum(), false, "rows"), bytes: 0, rows: 0 }
    }

    /// Reads a file, and returns how many rows it has.
    fn read(&mut self, file: &LogFile, mut take: impl FnMut(&Row<'_>)) -> (u64, Faults) {
        let mut reader = match Reader::open(&file.path) {
            Ok(reader) => reader,
            Err(error) => {
                return (0, Faults { stopped: Some(error.to_string()), ..Faults::default() });
            }
        };
        while let Some(row) = reader.next_row() {
            take(&row);
            if reader.rows().is_multiple_of(ROWS_BETWEEN_LOOKS) {
                let done = || (self.bytes + reader.bytes_read(), self.rows + reader.rows());
                self.line.update(done);
            }
        }
        self.bytes += reader.bytes_read();
        self.rows += reader.rows();
        (reader.rows(), reader.faults())
    }
}
