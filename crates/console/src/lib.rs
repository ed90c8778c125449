//! What commands read and print, and how they end: the words that a person types and reads.
//!
//! | module | concern |
//! |---|---|
//! | [`quantity`], [`sizes`], [`keyfile`] | values of arguments |
//! | [`number`], [`calendar`], [`clock`] | numbers, dates and the time of day |
//! | [`mod@printable`] | text from outside, without characters that control, hide, turn or separate |
//! | [`exposition`] | metrics as text |
//! | [`terminal`] | how far long work is, tables, and which signs are shown |
//! | [`paths`], [`unlinked`], [`pidfile`] | files by the names that arguments give |
//! | [`unfinished`] | files that get their names once they are whole |
//! | [`trust`] | files that another user can write |

pub mod calendar;
pub mod clock;
pub mod exposition;
pub mod keyfile;
pub mod number;
pub mod paths;
pub mod pidfile;
pub mod printable;
pub mod quantity;
pub mod sizes;
pub mod terminal;
pub mod trust;
pub mod unfinished;
pub mod unlinked;

use std::io::{self, ErrorKind, Write, stderr};

use printable::{printable, printable_lines};

/// Exit code: everything that was asked for was done.
pub const DONE: u8 = 0;
/// Something failed that is not the input's fault, or nothing could be read.
pub const FAILED: u8 = 1;
/// The arguments make no sense.
pub const USAGE: u8 = 2;
/// An input was damaged, cut or unreadable, and all that could be read was used.
pub const DAMAGED: u8 = 3;
/// The capture's quality is below what was required.
pub const BELOW_QUALITY: u8 = 4;
/// Not every row is with its receiver.
pub const UNDELIVERED: u8 = 5;

/// Arguments that make no sense, in a sentence.
#[derive(Debug)]
pub struct UsageError(pub String);

impl core::fmt::Display for UsageError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for UsageError {}

/// Prints a line to standard error; where that is closed there is nobody to tell. Names from a file
/// must not steer the terminal.
pub fn say(line: &str) {
    let line = printable(line);
    let _ = terminal::progress::aside(|| writeln!(stderr(), "netsniff: {line}"));
}

/// Prints lines, whose names from outside must not steer the terminal; where whoever reads has enough, that is no failure.
pub fn print(mut to: impl Write, lines: &str) -> io::Result<()> {
    let cells: Vec<_> = lines.split('\t').map(printable_lines).collect();
    match to.write_all(cells.join("\t").as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
