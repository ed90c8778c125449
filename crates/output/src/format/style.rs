//! How rows are rendered: in which format, and what the format leaves open.

use super::Format;

/// How rows are rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowStyle {
    /// The format.
    pub format: Format,
    /// How JSON writes points in time.
    pub times: TimeForm,
    /// What stands in each JSON object before the columns of its row.
    pub extension: Extension,
}

/// How JSON writes points in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeForm {
    /// Seconds since 1970-01-01 in UTC, a number.
    #[default]
    Epoch,
    /// ISO 8601 in UTC with microseconds, a string.
    Iso8601,
}

/// Columns of the row itself, before those of its log, with a `_` as Zeek's scripts name them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extension {
    /// None.
    #[default]
    None,
    /// `_write_ts`: the time at which the row was written.
    WriteTime,
    /// `_path`, the name of the log, and `_write_ts`.
    PathAndWriteTime,
}

impl RowStyle {
    /// A format with what it does unless told otherwise.
    #[must_use]
    pub const fn of(format: Format) -> Self {
        Self { format, times: TimeForm::Epoch, extension: Extension::None }
    }
}

impl From<Format> for RowStyle {
    fn from(format: Format) -> Self {
        Self::of(format)
    }
}
