//! A file to its rows, one at a time, whatever is wrong with it.

use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use super::header::{Header, find};
use super::lines::{Line, Lines};
use super::members::{Members, members};
use super::open::open_log;
use super::row::{Misread, Row, Values};

/// What of a log could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Lines that are no rows: cut, too long, or with more or fewer values than there are columns.
    pub lines: u64,
    /// Values that are not of the type of their column.
    pub values: u64,
    /// Why no more could be read.
    pub stopped: Option<String>,
    /// Whether the log ends without the line that whoever wrote it ends it with.
    pub is_open: bool,
    /// Whether its form has no such line, so that nobody can tell.
    pub is_endless: bool,
}

/// Reads the rows of a log.
pub struct Reader {
    lines: Lines,
    line: Range<usize>,
    header: Header,
    /// Where the values of the row are in its line: by the columns of the header, or by their names.
    columns: Vec<Range<usize>>,
    members: Members,
    misread: Misread,
    /// Lines that are no rows.
    bad_lines: u64,
    stopped: Option<String>,
    rows: u64,
}

impl Reader {
    /// Opens a log.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::of(open_log(path)?))
    }

    /// Reads the rows that come out of a file or pipe.
    pub(crate) fn of(input: impl Read + Send + 'static) -> Self {
        Self {
            lines: Lines::of(input),
            line: 0..0,
            header: Header::default(),
            columns: Vec::new(),
            members: Members::new(),
            misread: Misread::default(),
            bad_lines: 0,
            stopped: None,
            rows: 0,
        }
    }

    /// The next row; `None` where there is none, or nothing more can be read.
    pub fn next_row(&mut self) -> Option<Row<'_>> {
        self.next_row_that(|_| true, || true)
    }

    /// The next row whose line may be one that is wanted. Other lines are neither read any further nor counted as rows.
    /// `goes_on` is asked before each line, and within one that is too long, so that also a file in which nothing is wanted
    /// ends where nobody waits for it.
    pub(crate) fn next_row_that(
        &mut self,
        may_be: impl Fn(&[u8]) -> bool,
        goes_on: impl Fn() -> bool,
    ) -> Option<Row<'_>> {
        if let Some(kind) = self.find_row(may_be, &goes_on) {
            return Some(self.row(kind));
        }
        if self.stopped.is_none() && goes_on() {
            self.stopped = self.lines.end().err().map(|error| error.to_string());
        }
        None
    }

    /// The next row that is there by now. Where there is none, one may come when the file has grown.
    pub(crate) fn next_row_so_far(&mut self) -> Option<Row<'_>> {
        let kind = self.find_row(|_| true, || true)?;
        Some(self.row(kind))
    }

    fn find_row(
        &mut self,
        may_be: impl Fn(&[u8]) -> bool,
        goes_on: impl Fn() -> bool,
    ) -> Option<Kind> {
        while self.stopped.is_none() && goes_on() {
            match self.lines.next() {
                Ok(Line::End) => return None,
                Ok(Line::Whole(line)) => self.line = line,
                Ok(Line::Within) => continue,
                Ok(Line::TooLong) => {
                    self.bad_lines += 1;
                    continue;
                }
                Err(error) => {
                    self.stopped = Some(error.to_string());
                    return None;
                }
            }
            let line = self.lines.at(&self.line);
            match line.first() {
                None => {}
                Some(b'#') => self.header.take(line),
                Some(_) if !may_be(line) => {}
                Some(_) => match self.kind_of_row() {
                    Some(kind) => {
                        self.rows += 1;
                        self.misread.begin_row();
                        return Some(kind);
                    }
                    None => self.bad_lines += 1,
                },
            }
        }
        None
    }

    /// Rows that were read.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of the file that were read, as packed as they are.
    #[must_use]
    pub const fn bytes_read(&self) -> u64 {
        self.lines.bytes_read()
    }

    /// Lines so far that are no rows.
    pub(crate) const fn bad_lines(&self) -> u64 {
        self.bad_lines
    }

    /// The first bytes of the file, as packed as they are.
    pub(crate) fn head(&self) -> &[u8] {
        self.lines.head()
    }

    /// Whether another line was read already, so that nobody waits for the next row.
    pub(crate) fn has_more(&self) -> bool {
        self.lines.has_more()
    }

    /// Whether the last line of the file that was read is the one that whoever wrote it ends it with.
    pub(crate) const fn is_closed(&self) -> bool {
        self.header.is_closed()
    }

    /// Ends the reading. Returns whether the file ends within a row, or within what is packed.
    pub(crate) fn ends_cut(mut self) -> bool {
        self.stopped.is_none() && (self.lines.end().is_err() || self.lines.ends_within())
    }

    /// What was wrong so far.
    #[must_use]
    pub fn faults(&self) -> Faults {
        Faults {
            lines: self.bad_lines + u64::from(self.lines.ends_within()),
            values: self.misread.count(),
            stopped: self.stopped.clone(),
            is_open: self.header.is_open(),
            // Rows without a head of columns are JSON.
            is_endless: self.header.names.is_empty(),
        }
    }

    /// Takes the line to pieces.
    fn kind_of_row(&mut self) -> Option<Kind> {
        let line = self.lines.at(&self.line);
        if self.header.names.is_empty() {
            self.members = members(line)?;
            return Some(Kind::Members);
        }
        self.columns.clear();
        let separator = &self.header.marks.separator;
        let mut begin = 0;
        while let Some(at) = find(line.get(begin..)?, separator) {
            self.columns.push(begin..begin + at);
            begin += at + separator.len();
        }
        self.columns.push(begin..line.len());
        (self.columns.len() == self.header.names.len()).then_some(Kind::Columns)
    }

    fn row(&self, kind: Kind) -> Row<'_> {
        let Header { names, marks, .. } = &self.header;
        let line = self.lines.at(&self.line);
        let values = match kind {
            Kind::Columns => Values::Columns { names, line, places: &self.columns, marks },
            Kind::Members => Values::Members { line, places: &self.members },
        };
        Row { values, misread: &self.misread }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Columns,
    Members,
}

#[cfg(test)]
mod tests {
    use super::*;

    const TSV: &[u8] =
        b"#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n\
        #path\tx\n#fields\tts\tn\tname\tset\n#types\ttime\tcount\tstring\tset[string]\n\
        1.500000\t18446744073709551615\ta\\x09b\ta\\x2cb,(empty)\n\
        -\t-\t-\t-\n\
        too\tfew\n\
        2.0\tx\t\\x2d\t(empty)\n\
        3.0\t1";

    fn read(bytes: &'static [u8]) -> (Vec<String>, Faults) {
        let mut reader = Reader::of(bytes);
        let mut seen = Vec::new();
        while let Some(row) = reader.next_row() {
            let (ts, n) = (row.nanos("ts"), row.count("n"));
            // Whoever else asks gets the same, and nothing counts twice.
            assert_eq!(row.count("n"), n);
            let (name, set) = (row.text("name"), row.list("set"));
            seen.push(format!("{ts:?} {n:?} {name:?} {set:?} {:?}", row.text("none")));
        }
        assert_eq!(seen.len() as u64, reader.rows());
        (seen, reader.faults())
    }

    #[test]
    fn rows_have_what_is_set_and_faults_are_counted() {
        let (rows, faults) = read(TSV);
        let all = [
            "Some(1500000000) Some(18446744073709551615) Some(\"a\\tb\") Some([\"a,b\", \"\"]) None",
            "None None None None None",
            "Some(2000000000) None Some(\"-\") Some([]) None",
        ];
        assert_eq!(rows, all);
        assert_eq!(
            faults,
            Faults { lines: 2, values: 1, stopped: None, is_open: true, is_endless: false }
        );
    }

    #[test]
    fn rows_in_json_are_the_same() {
        let (rows, faults) = read(
            b"{\"ts\":1.5,\"n\":18446744073709551615,\"name\":\"a\\tb\",\"set\":[\"a,b\",\"\"]}\n\
              {\"ts\":null}\n[1]\n{\"ts\":2.0,\"n\":\"x\",\"name\":\"-\",\"set\":[]}\n{\"ts\":3.0,",
        );
        assert_eq!(rows, read(TSV).0);
        assert_eq!(
            faults,
            Faults { lines: 2, values: 1, stopped: None, is_open: false, is_endless: true }
        );
    }

    #[test]
    fn stamps_keep_all_nine_digits_in_both_forms() {
        for log in [
            &b"#fields\tts\tduration\n1767225600.123456789\t0.000000001\n"[..],
            b"{\"ts\":1767225600.123456789,\"duration\":1e-9}\n",
            b"{\"ts\":1.767225600123456789e9,\"duration\":\"0.000000001\"}\n",
        ] {
            let mut reader = Reader::of(log);
            let row = reader.next_row().unwrap();
            assert_eq!(row.nanos("ts"), Some(1_767_225_600_123_456_789));
            assert_eq!(row.nanos("duration"), Some(1));
        }
    }

    #[test]
    fn strings_that_stand_for_no_text_are_counted() {
        let mut reader =
            Reader::of(&b"{\"a\":\"\\ud800\",\"b\":[\"\\ud800\"],\"c\":\"\\u00e9\"}\n"[..]);
        let row = reader.next_row().unwrap();
        assert_eq!(
            (row.text("a"), row.list("b"), row.text("c").as_deref()),
            (None, None, Some("é"))
        );
        assert_eq!(reader.faults().values, 2);
    }

    #[test]
    fn a_line_without_end_is_given_up_where_nobody_waits() {
        let mut reader = Reader::of(io::repeat(b'x').take(64 << 20));
        let asked = core::cell::Cell::new(0);
        let goes_on = || {
            asked.set(asked.get() + 1);
            asked.get() < 10
        };
        assert!(reader.next_row_that(|_| true, goes_on).is_none());
        assert!(reader.bytes_read() < 4 << 20, "{}", reader.bytes_read());
        assert_eq!(reader.faults().lines, 1);
        // Whoever waits reads it to its end, and it counts once.
        assert!(reader.next_row().is_none());
        assert_eq!((reader.bytes_read(), reader.faults().lines), (64 << 20, 1));
    }

    #[test]
    fn a_log_with_its_last_line_is_whole() {
        assert!(!read(b"#fields\tts\n1.0\n#close\tx\n").1.is_open);
    }
}
