//! One log in the hands of a caller, who has its rows and wants them as a file has them.

use core::fmt;
use std::io;

use netsniff_analysis::Record;
use netsniff_analysis::record::LogType;
use netsniff_analysis::rows::Encode as _;
use netsniff_packet::Timestamp;

use super::format::LogEncoder;
use super::{Format, RowStyle};

/// Makes the bytes of a file of one log, piece by piece.
pub struct OneLog {
    style: RowStyle,
    encoder: Box<dyn LogEncoder>,
    row: Vec<u8>,
}

impl fmt::Debug for OneLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OneLog").field("encoder", &self.encoder).finish_non_exhaustive()
    }
}

impl OneLog {
    /// A file of a log in a format.
    #[must_use]
    pub fn new(format: Format, log: &'static LogType) -> Self {
        Self { style: format.into(), encoder: format.encoder(log), row: Vec::new() }
    }

    /// Appends what it begins with; `opened` is when it did.
    pub fn begin(&mut self, opened: Timestamp, out: &mut Vec<u8>) {
        self.encoder.header(opened, out);
    }

    /// Appends a row of the log, or keeps it for later.
    pub fn row(&mut self, record: &impl Record, out: &mut Vec<u8>) {
        self.row.clear();
        self.style.encode(record, None, &mut self.row);
        self.encoder.row(&self.row, out);
    }

    /// Appends what is left, and what it ends with; `closed` is when it did.
    ///
    /// # Errors
    ///
    /// When that cannot be encoded: the file is not whole.
    pub fn end(&mut self, closed: Timestamp, out: &mut Vec<u8>) -> io::Result<()> {
        self.encoder.settle(out)?;
        self.encoder.footer(closed, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    netsniff_analysis::record! {
        /// A row of text.
        pub struct Note<'a> => "note" {
            /// The text.
            text: &'a str => "text", string, None, FreeText, Netsniff;
        }
    }

    fn file(format: Format) -> String {
        use netsniff_analysis::Record as _;
        let note = Note { text: "a\tb" };
        let (mut file, mut out) = (OneLog::new(format, note.log()), Vec::new());
        file.begin(Timestamp::from_nanos(0), &mut out);
        file.row(&note, &mut out);
        file.end(Timestamp::from_nanos(1_000_000_000), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_file_is_as_the_format_has_it() {
        assert_eq!(file(Format::Json), "{\"text\":\"a\\tb\"}\n");
        let tsv = file(Format::Tsv);
        assert!(tsv.starts_with("#separator \\x09\n") && tsv.contains("#path\tnote\n"), "{tsv}");
        assert!(tsv.ends_with("\na\\x09b\n#close\t1970-01-01-00-00-01\n"), "{tsv}");
    }
}
