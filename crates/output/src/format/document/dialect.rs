//! What a dialect of JSON is: places of columns, and what stands beside them.

use netsniff_analysis::record::{FieldInfo, LogType, Origin};

use super::write::Inputs;

/// A dialect: the words that somebody else has for what logs tell.
///
/// A path has names with dots between. `a[].b` is the member `b` of each object in the array `a`: a list has a value for
/// each of them, and any other value is that of the first one.
#[derive(Debug)]
pub(in crate::format) struct Dialect {
    /// What stands behind a point in time.
    pub(in crate::format) zone: &'static str,
    /// The path of the time at which a row was written, where the dialect has one.
    pub(in crate::format) written: Option<&'static str>,
    /// The column whose path comes first.
    pub(in crate::format) leading: &'static str,
    /// What a document of a log says of its kind: paths, and JSON.
    pub(in crate::format) head: fn(&'static LogType, &Document) -> Vec<(&'static str, String)>,
    /// The name of a log before columns for which the dialect has no word.
    pub(in crate::format) beside: fn(&'static LogType, &Document) -> &'static str,
    /// Columns that mean the same in every log.
    pub(in crate::format) common: &'static [Told],
    /// What else follows from such columns, or from the connection, in every log that does not tell it.
    pub(in crate::format) derived: &'static [Derived],
    /// Columns of connections of ICMP, before all others.
    pub(in crate::format) icmp: &'static [Told],
    /// Logs for which the dialect has words.
    pub(in crate::format) documents: &'static [Document],
    /// Any other log.
    pub(in crate::format) other: Document,
}

/// A log in a dialect.
#[derive(Debug)]
pub(in crate::format) struct Document {
    /// The log.
    pub(in crate::format) log: &'static str,
    /// Its name in the dialect; empty where it is that of the log.
    pub(in crate::format) name: &'static str,
    /// Members that are always the same: paths, and JSON.
    pub(in crate::format) constants: &'static [(&'static str, &'static str)],
    /// Its columns, before those that are common to all logs.
    pub(in crate::format) columns: &'static [Told],
    /// What follows from them.
    pub(in crate::format) derived: &'static [Derived],
}

/// Where a column stands.
#[derive(Clone, Copy, Debug)]
pub(in crate::format) struct Told {
    pub(in crate::format) column: &'static str,
    pub(in crate::format) path: &'static str,
    pub(in crate::format) form: Form,
}

/// How the value of a column is written.
#[derive(Clone, Copy, Debug)]
pub(in crate::format) enum Form {
    /// As JSON has it.
    Plain,
    /// A number as a string.
    Text,
    /// A span in nanoseconds.
    Nanos,
    /// A span in seconds, without decimals where there are none.
    Seconds,
    /// A span as the point in time at which it ends, where it begins with the row's first point in time.
    End,
    /// The only one of a list.
    Listed,
    /// The same, as a string.
    ListedText,
    /// Another word; one that is not in the list stays.
    Word(&'static [(&'static str, &'static str)]),
}

/// A member that follows from columns.
#[derive(Clone, Copy, Debug)]
pub(in crate::format) struct Derived {
    pub(in crate::format) path: &'static str,
    /// The columns that it follows from.
    pub(in crate::format) inputs: &'static [&'static str],
    /// The column that stands nowhere else, because this tells all that it does.
    pub(in crate::format) tells: Option<&'static str>,
    /// Appends the value, or nothing.
    pub(in crate::format) make: fn(&Inputs<'_>, &mut Vec<u8>),
}

pub(in crate::format) const fn told(column: &'static str, path: &'static str) -> Told {
    told_as(column, path, Form::Plain)
}

pub(in crate::format) const fn told_as(
    column: &'static str,
    path: &'static str,
    form: Form,
) -> Told {
    Told { column, path, form }
}

pub(in crate::format) const fn derived(
    path: &'static str,
    inputs: &'static [&'static str],
    make: fn(&Inputs<'_>, &mut Vec<u8>),
) -> Derived {
    Derived { path, inputs, tells: None, make }
}

impl Derived {
    /// The same, in place of a column of which it tells all.
    pub(in crate::format) const fn instead_of(self, column: &'static str) -> Self {
        Self { tells: Some(column), ..self }
    }
}

impl Dialect {
    /// What it has for a log.
    pub(super) fn document(&self, log: &LogType) -> &Document {
        self.documents.iter().find(|document| document.log == log.path).unwrap_or(&self.other)
    }

    /// Its words for the columns of a log alone.
    #[cfg(test)]
    pub(in crate::format) fn document_columns(&self, log: &LogType) -> &[Told] {
        self.document(log).columns
    }

    /// The place of a column for which it has no word: beside the others of who defined it.
    pub(super) fn place_of(&self, log: &'static LogType, field: &FieldInfo) -> String {
        let whose = match field.origin {
            Origin::Zeek | Origin::ZeekPolicy => "zeek",
            Origin::Netsniff => "netsniff",
        };
        format!("{whose}.{}.{}", (self.beside)(log, self.document(log)), field.name)
    }
}

impl Document {
    /// The name of a log in the dialect.
    pub(in crate::format) const fn name_of(&self, log: &LogType) -> &'static str {
        if self.name.is_empty() { log.path } else { self.name }
    }
}
