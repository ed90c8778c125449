//! All rows of a directory, once each.

use crate::logs::{Faults, Folder, Reader, Row};

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
        for (log, files) in folder.logs().filter(|(log, _)| wants(log)) {
            for file in files {
                let (rows, faults) = match Reader::open(&file.path) {
                    Ok(mut reader) => {
                        while let Some(row) = reader.next_row() {
                            take(log, &row);
                        }
                        (reader.rows(), reader.faults())
                    }
                    Err(error) => {
                        (0, Faults { stopped: Some(error.to_string()), ..Faults::default() })
                    }
                };
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
