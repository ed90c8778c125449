//! Logs read back: rows of a directory of logs, in both formats that are lines of text.
//!
//! | module | concern |
//! |---|---|
//! | `folder` | which files of a directory are which log |
//! | `reader` | a file to its rows, one at a time, whatever is wrong with it |
//! | `header` | what header lines tell of columns and of values that are not set |
//! | `members` | where the values of an object of JSON are in its line |
//! | `lines` | lines of bounded length |
//! | `unpack` | bytes as they were before gzip or zstd packed them |
//! | `open` | how a file is opened, in directories that others may own |
//! | `row` | the values of a row, by the names of columns |
//! | `typed` | a row as its log declares it, for conditions |
//! | `text` | values as the formats write them, to text and numbers |
//!
//! A value that is not set stays apart from one that is 0, and one that cannot be understood is counted.

mod folder;
mod header;
mod lines;
mod members;
mod open;
mod reader;
mod row;
mod text;
mod typed;
mod unpack;

pub use folder::{Folder, LogFile};
pub(crate) use open::open_log;
pub use reader::{Faults, Reader};
pub use row::Row;
pub(crate) use row::UNSET;
pub(crate) use text::{nanos, seconds};
pub(crate) use typed::{List, TypedRow, value};
