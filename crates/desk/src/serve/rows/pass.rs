//! One pass over the files of a log, which ends where nobody waits for it any more.

use core::ops::ControlFlow;

use netsniff_analysis::record::LogType;
use netsniff_output::condition::Condition;

use crate::logs::{Faults, Folder, LogFile, Reader, Row, TypedRow};

/// Whether anybody waits.
pub(crate) type GoesOn<'a> = &'a dyn Fn() -> bool;

/// Which rows of a log are wanted.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) log: &'static LogType,
    pub(crate) condition: Option<Condition>,
}

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// Rows for which the condition holds.
    pub(crate) matched: u64,
    /// Rows of the log.
    pub(crate) all: u64,
    /// Whether it was broken off.
    pub(crate) is_broken_off: bool,
    pub(crate) wrong: Wrong,
}

impl Passed {
    /// Whether all files were read to their end.
    pub(crate) const fn is_whole(&self) -> bool {
        !self.is_broken_off && !self.wrong.is_cut
    }
}

/// What could not be read.
#[derive(Debug, Default)]
pub(crate) struct Wrong {
    /// Lines that are no rows.
    pub(crate) lines: u64,
    /// Values that are not of the type of their column.
    pub(crate) values: u64,
    /// Whether a file could not be opened, or not be read to its end.
    pub(crate) is_cut: bool,
    /// All of it in words, by file.
    pub(crate) said: Vec<String>,
}

impl Wanted {
    /// Names of files of the log that are not read, each with the reason.
    pub(crate) fn left_out<'a>(
        &self,
        folder: &'a Folder,
    ) -> impl Iterator<Item = (&'a str, &'static str)> {
        let log = self.log.path;
        folder.left_out().filter(move |(name, _)| {
            name.strip_prefix(log).is_some_and(|rest| rest.starts_with('.'))
        })
    }

    /// Hands over the rows that are wanted, each with its number among them, in the order of the log.
    pub(crate) fn pass(
        &self,
        folder: &Folder,
        goes_on: GoesOn<'_>,
        mut take: impl FnMut(&TypedRow<'_>, u64) -> ControlFlow<()>,
    ) -> Passed {
        let mut passed = Passed::default();
        let files = folder.logs().find(|(log, _)| *log == self.log.path).map(|(_, files)| files);
        let files = files.unwrap_or_default();
        let flow = passed.wrong.pass(
            files,
            goes_on,
            |_| true,
            |row| {
                passed.all += 1;
                let typed = TypedRow { log: self.log, row };
                match &self.condition {
                    Some(condition) if !condition.matches(&typed) => {
                        return ControlFlow::Continue(());
                    }
                    Some(_) => {}
                    // A condition sees all values. Without one, those of rows that nobody is shown are to count as well.
                    None => typed.check(),
                }
                passed.matched += 1;
                take(&typed, passed.matched)
            },
        );
        passed.is_broken_off = flow.is_break();
        passed
    }
}

impl Wrong {
    /// Hands over the rows of files whose lines may be wanted. It breaks off where that does, or nobody waits.
    pub(crate) fn pass(
        &mut self,
        files: &[LogFile],
        goes_on: GoesOn<'_>,
        may_be: impl Fn(&[u8]) -> bool,
        mut take: impl FnMut(&Row<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for file in files {
            match Reader::open(&file.path) {
                Ok(mut reader) => {
                    while let Some(row) = reader.next_row_that(&may_be, goes_on) {
                        take(&row)?;
                    }
                    self.take(&file.name, &reader.faults());
                }
                Err(error) => {
                    self.is_cut = true;
                    self.said.push(format!("{}: {error}", file.name));
                }
            }
            if !goes_on() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn take(&mut self, name: &str, faults: &Faults) {
        if faults.lines > 0 {
            self.lines += faults.lines;
            self.said.push(format!("{name}: {} lines are no rows", faults.lines));
        }
        if faults.values > 0 {
            self.values += faults.values;
            self.said.push(format!("{name}: {} values cannot be understood", faults.values));
        }
        if let Some(why) = &faults.stopped {
            self.is_cut = true;
            self.said.push(format!("{name}: could not be read to its end: {why}"));
        }
    }
}
